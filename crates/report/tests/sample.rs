//! An invented replay: shaped like a real one, but every number is made up by the
//! formulas below, so it proves nothing about any policy.

use piebald_report::{
    MissRatioCheck, MissRatioCurve, MissRatioPoint, REPLAY_SCHEMA, Replay, ReplayConditions,
    ReplayIo, ReplayPolicy, ReplayRun, ReplayTrace,
};

const REFERENCES: u64 = 1_600_000;
/// Memory sizes in MiB.
pub const SIZES_MIB: [u64; 8] = [40, 80, 120, 160, 200, 240, 280, 320];

/// A policy's share of misses at large memory, and the pages at which half of what can
/// be hit is hit; how long its sequences are.
struct Shape {
    name: &'static str,
    about: &'static str,
    floor: f64,
    half: f64,
    length: f64,
}

const SHAPES: [Shape; 4] = [
    Shape {
        name: "lru",
        about: "least recently used goes first",
        floor: 0.12,
        half: 38_000.0,
        length: 5.0,
    },
    Shape {
        name: "dulo",
        about: "recency weighed against sequentiality on disk",
        floor: 0.12,
        half: 31_000.0,
        length: 5.2,
    },
    Shape {
        name: "2q",
        about: "a page proves itself in a queue first",
        floor: 0.11,
        half: 21_000.0,
        length: 3.6,
    },
    Shape {
        name: "arc",
        about: "recency and frequency share the memory",
        floor: 0.11,
        half: 23_000.0,
        length: 4.0,
    },
];

fn miss_ratio(shape: &Shape, pages: f64) -> f64 {
    shape.floor + (0.9 - shape.floor) / (1.0 + (pages / shape.half).powf(2.2))
}

/// Sequences up to 128 pages whose lengths fall off geometrically around `mean`.
fn sequences(pages: u64, mean: f64) -> Vec<(u32, u64)> {
    let weight =
        |l: u32| f64::from(l) * (-f64::from(l) / mean).exp() + if l == 128 { 4.0 } else { 0.0 };
    let all: f64 = (1..=128).map(weight).sum();
    let of = |l: u32| (l, (pages as f64 * weight(l) / all) as u64);
    (1..=128).map(of).filter(|(_, pages)| *pages > 0).collect()
}

fn run(shape: &Shape, mib: u64) -> ReplayRun {
    let size_pages = mib * 256;
    let misses = (REFERENCES as f64 * miss_ratio(shape, size_pages as f64)) as u64;
    // One policy has room to save what is costly to read: at medium sizes.
    let room = (-((mib as f64 - 170.0) / 80.0).powi(2)).exp();
    let gain = if shape.name == "dulo" {
        1.6 * room
    } else {
        0.0
    };
    let length = shape.length * (1.0 + mib as f64 / 400.0 + gain);
    let requests = (misses as f64 / length) as u64;
    let elapsed_s = requests as f64 * 0.0085 + misses as f64 * 0.00021;
    ReplayRun {
        parts: None,
        policy: shape.name.to_owned(),
        size_pages,
        references: REFERENCES,
        hits: REFERENCES - misses,
        misses,
        bytes: None,
        io: Some(ReplayIo {
            elapsed_s,
            waited_s: elapsed_s * 0.97,
            disk_busy_s: elapsed_s * 0.93,
            read_requests: requests,
            pages_read: misses * 21 / 20,
            prefetched: misses * 3 / 5,
            prefetched_unused: misses / 20,
            waited_hits: misses / 9,
            sequences: sequences(misses, length),
            ..ReplayIo::default()
        }),
        extra: match shape.name {
            "dulo" => vec![("merge comparisons per miss".to_owned(), 1.7, String::new())],
            _ => vec![],
        },
    }
}

fn curve(shape: &Shape, exact: bool) -> MissRatioCurve {
    let point = |i: u32| {
        let size_pages = 2f64.powf(f64::from(i) / 4.0).round() as u64;
        let real = miss_ratio(shape, size_pages as f64);
        let off = if exact {
            0.0
        } else {
            0.01 * f64::from(i).sin()
        };
        MissRatioPoint {
            size_pages,
            misses: exact.then_some((real * REFERENCES as f64) as u64),
            miss_ratio: real + off,
            ci95: (!exact).then_some([real - 0.03, real + 0.02]),
        }
    };
    let check = |i: u32| MissRatioCheck {
        size_pages: point(i).size_pages,
        sampled: point(i).miss_ratio,
        full: point(i).miss_ratio + 0.011,
    };
    MissRatioCurve {
        policy: shape.name.to_owned(),
        exact,
        sampling_rate: if exact { 1.0 } else { 0.01 },
        samples: if exact { 0 } else { 8 },
        references: REFERENCES,
        points: (24..80).map(point).collect(),
        checks: match exact {
            true => vec![],
            false => [30u32, 50].map(check).to_vec(),
        },
    }
}

/// The invented replay: 4 policies, 8 sizes, a disk, three curves.
pub fn sample_replay() -> Replay {
    let policy = |s: &Shape| ReplayPolicy {
        name: s.name.to_owned(),
        about: s.about.to_owned(),
    };
    let of_shape = |s: &'static Shape| SIZES_MIB.iter().map(move |mib| run(s, *mib));
    Replay {
        curves_refused: vec![],
        findings: vec![],
        schema: REPLAY_SCHEMA,
        title: "multi1 (invented)".to_owned(),
        version: "0.1.0".to_owned(),
        command: Some(
            "piebald replay multi1.pbt --policy lru,dulo,2q,arc --size 40M:320M".to_owned(),
        ),
        complete: true,
        traces: vec![ReplayTrace {
            path: "multi1.pbt".to_owned(),
            format: "piebald".to_owned(),
            requests: 412_345,
            references: REFERENCES,
            reads: REFERENCES - 1_234,
            writes: 1_234,
            unique_pages: 202_752,
            object_bytes: None,
            sequential_share: 0.75,
            skipped: vec![],
        }],
        conditions: ReplayConditions {
            page_bytes: 4096,
            device: "st39102lw".to_owned(),
            readahead: "linux".to_owned(),
            scheduler: "deadline".to_owned(),
            pace: "tasks".to_owned(),
            layout: "Every file begins on a slot of 1 MiB of its own.".to_owned(),
            warmup_references: 0,
            seed: 42,
            notes: vec!["All numbers of this sample are invented.".to_owned()],
        },
        policies: SHAPES.iter().map(policy).collect(),
        sizes: SIZES_MIB.map(|mib| mib * 256).to_vec(),
        runs: SHAPES.iter().flat_map(of_shape).collect(),
        curves: vec![
            curve(&SHAPES[0], true),
            curve(&SHAPES[0], false),
            curve(&SHAPES[3], false),
        ],
        host_seconds: 12.5,
    }
}

/// The same without a disk below.
#[allow(dead_code, reason = "not every test file has a use for it")]
pub fn without_device() -> Replay {
    let mut replay = sample_replay();
    replay.runs.iter_mut().for_each(|r| r.io = None);
    replay.conditions.device = "none".to_owned();
    replay
}
