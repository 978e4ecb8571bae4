//! How fast block and file traces are read.
//!
//! `cargo run --release -p piebald-trace --example block_speed` reads synthetic traces of the common
//! formats, of about 64 MiB each, from memory.
//!
//! `cargo run --release -p piebald-trace --example block_speed FILE...` reads files.
//!
//! Printed are unpacked bytes and requests per second of processor time, and what the process held
//! at most.

use std::fs;
use std::path::Path;

use piebald_trace::block::{BlockError, BlockTrace, Format, Options};

/// Unpacked bytes of a synthetic trace.
const BYTES: usize = 64 << 20;

/// Seconds that this thread has spent on a processor: unlike the time of day, this does not count
/// what other work takes.
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = stat.split(' ').next().and_then(|n| n.parse::<u64>().ok());
    first.unwrap_or(0) as f64 / 1e9
}

/// Largest resident size so far, in kB.
fn peak_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmHWM"));
    let number = line.and_then(|l| l.split_ascii_whitespace().nth(1)?.parse().ok());
    number.unwrap_or(0)
}

fn measure(name: &str, mut trace: BlockTrace) -> Result<(), BlockError> {
    let begin = cpu_seconds();
    let mut batch = Vec::new();
    let mut requests = 0u64;
    while trace.next_batch(&mut batch)? {
        requests += batch.len() as u64;
    }
    let seconds = (cpu_seconds() - begin).max(1e-9);
    println!(
        "{name:<20} {:<16} {:>8.1} MB/s {:>8.2} M requests/s {:>10} requests, peak {} kB",
        trace.format().name(),
        trace.offset() as f64 / seconds / 1e6,
        requests as f64 / seconds / 1e6,
        requests,
        peak_kb()
    );
    Ok(())
}

/// A format, and what its `n`-th record of a synthetic trace is, for a random number.
type Synthetic = (Format, fn(u64, u64, &mut Vec<u8>));

const SYNTHETIC: [Synthetic; 9] = [
    (Format::Msr, |n, r, out| {
        let (op, offset) = (
            ["Read", "Write"][(r % 2) as usize],
            r % (1 << 37) / 512 * 512,
        );
        let ticks = 128_166_372_003_061_629 + n * 1000;
        text(
            out,
            format_args!("{ticks},hm,1,{op},{offset},{},{}\n", r % 64 * 512, r % 9999),
        );
    }),
    (Format::Spc, |n, r, out| {
        let (op, s, us) = (["R", "w"][(r % 2) as usize], n / 1000, n % 1000);
        text(
            out,
            format_args!(
                "{},{},{},{op},{s}.{us:06}\n",
                r % 24,
                r % (1 << 28),
                r % 64 * 512
            ),
        );
    }),
    (Format::Blkparse, |n, r, out| {
        let (s, ns, sector) = (n / 1_000_000, n % 1_000_000, r % (1 << 30));
        text(
            out,
            format_args!(
                "  8,0    3 {n:>8} {s:>5}.{ns:09}   697  Q  WS {sector} + 8 [kjournald]\n"
            ),
        );
    }),
    (Format::Ids, |_, r, out| {
        text(out, format_args!("{}\n", r % 1_000_000))
    }),
    (Format::Arc, |n, r, out| {
        text(out, format_args!("{} {} 0 {n}\n", r % (1 << 30), r % 64));
    }),
    (Format::Fpt, |n, r, out| {
        if n < 10_000 {
            text(
                out,
                format_args!("F {n} 40960 linux/drivers/net/file_{n}.c\n"),
            );
        } else {
            text(
                out,
                format_args!("R 5965 {} {} {}\n", r % 10_000, r % 1000, r % 8 + 1),
            );
        }
    }),
    (Format::Strace, |n, r, out| {
        let fd = 3 + r % 8;
        match n {
            0..8 => {
                let fd = n + 3;
                text(
                    out,
                    format_args!("5965 openat(AT_FDCWD</w>, \"f{fd}\", O_RDWR) = {fd}</w/f{fd}>\n"),
                );
            }
            _ if r % 3 == 0 => text(
                out,
                format_args!(
                    "5965 lseek({fd}</w/f{fd}>, {}, SEEK_SET)    = {}\n",
                    r % 99_999,
                    r % 99_999
                ),
            ),
            _ => text(
                out,
                format_args!(
                    "5965 read({fd}</w/f{fd}>, \"0123456789abcdef0123456789abcdef\"..., 4096) = 4096\n"
                ),
            ),
        }
    }),
    (Format::VscsiV1, |n, r, out| {
        for word in [n as u32, (r % 64) as u32 * 512, 1, 0x0100_002a] {
            out.extend(word.to_le_bytes());
        }
        out.extend((r % (1 << 30)).to_le_bytes());
        out.extend((n * 10).to_le_bytes());
    }),
    (Format::OracleGeneral, |n, r, out| {
        out.extend((n as u32 / 1000).to_le_bytes());
        out.extend((r % (1 << 30)).to_le_bytes());
        out.extend(4096u32.to_le_bytes());
        out.extend((-1i64).to_le_bytes());
    }),
];

fn text(out: &mut Vec<u8>, line: std::fmt::Arguments<'_>) {
    use std::io::Write;
    let _ = out.write_fmt(line);
}

fn synthetic((format, record): Synthetic) -> Vec<u8> {
    let mut out = Vec::with_capacity(BYTES + 256);
    let mut state = 0x5eed;
    let mut n = 0;
    while out.len() < BYTES {
        state = u64::wrapping_add(
            u64::wrapping_mul(state, 6_364_136_223_846_793_005),
            1_442_695_040_888_963_407,
        );
        record(n, state >> 20, &mut out);
        n += 1;
    }
    assert!(!out.is_empty(), "{format}");
    out
}

fn main() -> Result<(), BlockError> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    for file in &files {
        let trace = BlockTrace::open(Path::new(file), Options::default())?;
        let name = Path::new(file).file_name().unwrap_or_default();
        measure(&name.to_string_lossy(), trace)?;
    }
    if files.is_empty() {
        for case in SYNTHETIC {
            let bytes = synthetic(case);
            let options = Options {
                format: Some(case.0),
                ..Options::default()
            };
            measure(
                "synthetic",
                BlockTrace::from_bytes("synthetic", &bytes, options)?,
            )?;
        }
    }
    Ok(())
}
