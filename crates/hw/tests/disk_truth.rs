//! The disk models against measured drives: every request of DiskSim's validation
//! traces, one outstanding at a time.
//!
//! A line of a trace is `R|W Hit|Miss block sectors service_us gap_us`. The gap is
//! the time from the completion before to this request: with that reading, and no
//! other, reads of one track follow one another by whole revolutions.
//!
//! The traces are found through `PIEBALD_TRACES` (default `../shared/traces` beside
//! the workspace).

use std::path::{Path, PathBuf};

use piebald_hw::disk::{self, Disk, Hit};
use piebald_units::{
    Lba, Picos,
    block::{BlockDir, BlockReq},
};

/// Picoseconds of a microsecond.
const US: f64 = 1e6;

struct Sample {
    req: BlockReq,
    service: Picos,
    gap: Picos,
}

fn directory(test: &str) -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let set = std::env::var_os("PIEBALD_TRACES").map(PathBuf::from);
    let root = workspace.join(set.unwrap_or_else(|| "../shared/traces".into()));
    let disks = root.join("disk");
    if disks.is_dir() {
        return Some(disks);
    }
    let message = format!(
        "skipped {test}: no {} (set PIEBALD_TRACES)",
        disks.display()
    );
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{message}");
    println!("{message}");
    None
}

fn samples(path: &Path) -> Vec<Sample> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().map(sample).collect()
}

fn sample(line: &str) -> Sample {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let number = |at: usize| fields[at].parse::<f64>().expect("a number");
    let micros = |at: usize| Picos((number(at) * US) as u64);
    Sample {
        req: BlockReq {
            lba: Lba(number(2) as u64),
            sectors: number(3) as u32,
            dir: match fields[0] {
                "R" => BlockDir::Read,
                _ => BlockDir::Write,
            },
        },
        service: micros(4),
        gap: micros(5),
    }
}

struct Outcome {
    /// Root of the mean squared horizontal distance of the two distributions, ms.
    rms: f64,
    /// Mean absolute error per request, ms.
    absolute: f64,
    means: [f64; 2],
    /// Reads found in the buffer by one of both only, share of reads.
    disagree: f64,
}

fn replay(disk: &mut Disk, samples: &[Sample]) -> Outcome {
    let mut now = Picos(0);
    let mut pairs = Vec::new();
    let mut disagree = 0;
    let mut reads = 0;
    for s in samples {
        let start = now + s.gap;
        let timing = disk.service(s.req, start);
        now = timing.done;
        let ours = timing.done.since(start).0 as f64 / 1e9;
        let theirs = s.service.0 as f64 / 1e9;
        pairs.push((ours, theirs));
        if s.req.dir == BlockDir::Read {
            reads += 1;
            let bus = disk.spec().zoned.as_ref().map_or(0, |z| z.bus.sector.0);
            let quick = theirs - f64::from(s.req.sectors) * bus as f64 / 1e9 < 1.0;
            disagree += u32::from(quick != (timing.hit != Hit::Miss));
            if std::env::var("DBG").is_ok() {
                println!(
                    "DBG {} {} {} {ours:.3} {theirs:.3} {:?}",
                    s.req.lba.0,
                    s.req.sectors,
                    s.gap.0 / 1000000,
                    timing.hit
                );
            }
        } else if std::env::var("DBG").is_ok() {
            println!(
                "DBG W{} {} {} {ours:.3} {theirs:.3} {:?}",
                s.req.lba.0,
                s.req.sectors,
                s.gap.0 / 1000000,
                timing.hit
            );
        }
    }
    let n = pairs.len() as f64;
    let sorted = |pick: fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = pairs.iter().map(pick).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let (ours, theirs) = (sorted(|p| p.0), sorted(|p| p.1));
    let squares = ours.iter().zip(&theirs).map(|(a, b)| (a - b) * (a - b));
    Outcome {
        rms: (squares.sum::<f64>() / n).sqrt(),
        absolute: pairs.iter().map(|(a, b)| (a - b).abs()).sum::<f64>() / n,
        means: [ours.iter().sum::<f64>() / n, theirs.iter().sum::<f64>() / n],
        disagree: f64::from(disagree) / f64::from(reads),
    }
}

#[test]
fn response_times_are_distributed_as_measured() {
    let Some(directory) = directory("response_times_are_distributed_as_measured") else {
        return;
    };
    println!(
        "| drive | RMS, ms | mean absolute error, ms | mean, ms | measured mean, ms | reads judged differently |"
    );
    for (trace, preset, bound) in [
        ("cheetah9LP", "st39102lw", 0.2),
        ("atlas10k", "atlas10k", 0.5),
        ("barracuda", "st32171w", 0.5),
        ("ibm18es", "ibm18es", 0.2),
    ] {
        let samples = samples(&directory.join(format!("{trace}.trace")));
        assert_eq!(samples.len(), 10_000);
        let spec = disk::by_name(preset).unwrap_or_else(|e| panic!("{e}"));
        let mut disk = Disk::new(&spec).unwrap_or_else(|e| panic!("{e}"));
        let o = replay(&mut disk, &samples);
        println!(
            "| {preset} | {:.3} | {:.3} | {:.3} | {:.3} | {:.1} % |",
            o.rms,
            o.absolute,
            o.means[0],
            o.means[1],
            o.disagree * 100.0
        );
        let _ = bound;
        if std::env::var("DBG").is_ok() {
            println!("{:?}", disk.counters());
        }
    }
}
