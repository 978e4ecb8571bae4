//! How many references per second the machine model simulates, on the four
//! streams of the cache-simulator comparison in `bench/`.
//!
//! `rate [PRESET] [FEATURES] [REFS] [STREAM]` prints one line per stream:
//! `stream references cpu_seconds millions_per_cpu_second l1_misses l2_misses l3_misses`.
//! With `--dump DIR` it writes the streams' line addresses as little-endian
//! 64-bit numbers instead, for the tools that it is compared with.

use std::io::Write;

use piebald_hw::{
    Features, Machine, Options, presets,
    spec::{Inclusion, Replacement},
};
use piebald_units::{
    Asid, Bytes, CoreId, PageSize, PhysAddr, Picos, VirtAddr,
    memory::{MemoryPort, PageTables, PhysRef, Walk},
    op::RefKind,
};

struct Identity;

impl PageTables for Identity {
    fn asid(&self) -> Asid {
        Asid(1)
    }

    fn walk(&self, addr: VirtAddr) -> Walk {
        // Leaf entries of an identity map, 8 bytes per page, above the data.
        let leaf = (1 << 30) + (addr.0 >> 12) * 8;
        let upper = (1 << 30) + (1 << 28) + (addr.0 >> 21) * 8;
        Walk {
            entries: [
                PhysAddr((1 << 31) + 8),
                PhysAddr(1 << 31),
                PhysAddr(upper),
                PhysAddr(leaf),
            ],
            levels: 4,
            page: PageSize::Base,
        }
    }
}

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Zipf with exponent 1 over `n` items by inverting the harmonic sum's integral;
/// ranks are scattered over the range by a multiplicative hash.
fn zipf(rng: &mut Rng, n: u64) -> u64 {
    let rank = ((n as f64 + 1.0).powf(rng.unit()) - 1.0) as u64;
    rank.min(n - 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) % n
}

fn streams(n: usize) -> Vec<(&'static str, Vec<u64>)> {
    let mut rng = Rng(0x2545_F491_4F6C_DD1D);
    let hot = (0..n)
        .map(|_| match rng.next() % 10 {
            0 => (16 << 20) + rng.next() % (64 << 20),
            _ => rng.next() % (16 << 10),
        })
        .collect();
    let zipf = (0..n).map(|_| zipf(&mut rng, 1 << 20) * 64).collect();
    let uniform = (0..n).map(|_| rng.next() % (256 << 20)).collect();
    let strided = (0..n as u64).map(|i| i * 8 % (256 << 20)).collect();
    vec![
        ("hot", hot),
        ("zipf", zipf),
        ("uniform", uniform),
        ("strided", strided),
    ]
}

/// Time that this process has spent on a processor: other load does not count.
fn cpu_seconds() -> Result<f64, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let ns = text
        .split_whitespace()
        .next()
        .ok_or("no time in /proc/self/schedstat")?;
    Ok(ns.parse::<f64>()? / 1e9)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let text = |i: usize, default: &str| args.get(i).cloned().unwrap_or(default.to_owned());
    let n: usize = text(2, "4000000").parse()?;
    if text(0, "") == "--dump" {
        for (name, addrs) in streams(n) {
            let path = format!("{}/{name}.u64", text(1, "."));
            let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
            for addr in addrs {
                file.write_all(&(addr & !63).to_le_bytes())?;
            }
        }
        return Ok(());
    }
    let mut spec = presets::load(&text(0, "w3540"))?;
    if let Some(kind) = std::env::var_os("PEER_GEOMETRY") {
        // The geometry of the comparison: 32 KiB, 512 KiB, 2 MiB; with `lru` also
        // the replacement and inclusion of simulators that know nothing else.
        for cache in &mut spec.cache {
            if kind == "lru" {
                cache.replacement = Replacement::Lru;
                cache.inclusion = Inclusion::NonInclusive;
            }
            cache.size = match (cache.level, cache.size) {
                (2, _) => Bytes(512 << 10),
                (3, _) => Bytes(2 << 20),
                (_, size) => size,
            };
        }
    }
    let features: Features = text(1, "none").parse()?;
    let only = text(3, "");
    for (name, addrs) in streams(n) {
        if !only.is_empty() && only != name {
            continue;
        }
        let refs: Vec<PhysRef> = addrs
            .iter()
            .map(|a| PhysRef {
                vaddr: VirtAddr(a & !7),
                frame: (a >> 12) as u32,
                gap: 3,
                size: 8,
                kind: RefKind::Load,
                ..PhysRef::default()
            })
            .collect();
        let options = Options {
            features,
            ..Options::default()
        };
        let mut machine = Machine::new(&spec, &options)?;
        machine.set_running(CoreId(0), Some(1));
        let start = cpu_seconds()?;
        let mut now = Picos(0);
        for batch in refs.chunks(1024) {
            now = machine
                .run(CoreId(0), &Identity, batch, now, Picos::MAX)
                .now;
        }
        let seconds = cpu_seconds()? - start;
        let counters = machine.counters(CoreId(0));
        let misses: Vec<String> = counters
            .level
            .iter()
            .map(|l| l.misses.to_string())
            .collect();
        println!(
            "{name:8} {n} {seconds:.3} {:.1} {}  ({} simulated)",
            n as f64 / seconds / 1e6,
            misses.join(" "),
            Picos(now.0 / 1000 * 1000)
        );
    }
    Ok(())
}
