//! How fast is the DRAM model? `cargo run --release -p piebald-hw --example dram_speed [COUNT [PATTERN]]`
//!
//! Prints nanoseconds of this computer per modelled read, for several streams,
//! with reads asked for at a fixed distance in time and with a fixed number
//! outstanding.

use std::{hint::black_box, time::Instant};

use piebald_hw::dram::{Dram, DramSpec};
use piebald_units::{PhysAddr, Picos};

const MACHINE: &str = r#"
channels = 2
interleave = { xor = [[6, 16]] }
ranks = 4
banks = 8
row_size = "8KiB"
[bits]
column = [3, 4, 5, 7, 8, 9, 10, 11, 12, 16]
bank = [[13], [14], [15]]
rank = [[21], [22]]
[timing]
tck = "1.5ns"
cl = 9
cwl = 7
bl = 8
rcd = 9
rp = 9
ras = 24
rc = 33
ccd = 4
rrd = 4
faw = 20
wr = 10
wtr = 5
rtp = 5
rfc = 74
refi = 5200
"#;

const SIZE: u64 = 8 << 30;

/// Next address of a pattern, from the last.
type Pattern = fn(&mut u64) -> u64;

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state % SIZE
}

fn streaming(state: &mut u64) -> u64 {
    *state = (*state + 64) % SIZE;
    *state
}

fn two_rows(state: &mut u64) -> u64 {
    *state ^= 1 << 23;
    *state & 1 << 23
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count = match std::env::args().nth(1) {
        Some(text) => text.parse()?,
        None => 100_000_000u64,
    };
    let patterns: [(&str, Pattern); 3] = [
        ("random", random),
        ("streaming", streaming),
        ("two rows", two_rows),
    ];
    let only = std::env::args().nth(2).unwrap_or_default();
    for (name, pattern) in patterns
        .into_iter()
        .filter(|(name, _)| name.starts_with(&only))
    {
        let nothing = time(count, |state, _| {
            black_box(pattern(state));
            0
        });
        for gap in [1_000_000, 20_000, 6_000, 0] {
            let mut dram = machine()?;
            let mut window = [0u64; 10];
            let took = time(count, |state, i| {
                let slot = (i % 10) as usize;
                let now = (i * gap).max(window[slot]);
                window[slot] = dram.read(PhysAddr(pattern(state)), Picos(now)).ready.0;
                window[slot]
            });
            println!(
                "{name:10} every {gap:>7} ps, at most 10 outstanding: {:5.1} ns/read",
                took - nothing
            );
        }
        let mut dram = machine()?;
        let took = time(count, |state, i| {
            dram.write(PhysAddr(pattern(state)), Picos(i * 20_000))
                .ready
                .0
        });
        println!(
            "{name:10} writes every 20000 ps: {:5.1} ns/write",
            took - nothing
        );
    }
    Ok(())
}

fn machine() -> Result<Dram, Box<dyn std::error::Error>> {
    let spec: DramSpec = toml::from_str(MACHINE)?;
    Ok(Dram::new(&spec, SIZE, "memory.dram")?)
}

/// Nanoseconds per call of `step(state, i)`: the median of parts that are short
/// beside a time slice of this computer, so that other work disturbs only some.
fn time(count: u64, mut step: impl FnMut(&mut u64, u64) -> u64) -> f64 {
    const PART: u64 = 10_000;
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let mut parts = Vec::new();
    for from in (0..count).step_by(PART as usize) {
        let start = Instant::now();
        let mut sum = 0u64;
        for i in from..from + PART {
            sum = sum.wrapping_add(step(&mut state, i));
        }
        black_box(sum);
        parts.push(start.elapsed().as_nanos() as f64 / PART as f64);
    }
    parts.sort_by(f64::total_cmp);
    parts.get(parts.len() / 2).copied().unwrap_or(0.0)
}
