//! Random programs on every configuration: the host stays consistent after every
//! step, every call ends, and every page that went to the queue came back.

use crate::filehost::{
    disk::TestDisk,
    driver::{self, Do},
    lru::Lru,
};
use piebald_os_model::{
    file::{
        CpuCost, FileConfig, FileHost, FileTable, Layout, Span, Stats, SwapArea, Watermarks,
        readahead::ReadaheadConfig,
    },
    io::{IoConfig, IoStats},
    replace::registry::{POLICIES, Setup, Visitor, build},
};
use piebald_policy::contract::replacement::Replacement;
use piebald_units::{FileId, Lba, Picos};
use rand::{Rng, SeedableRng, rngs::SmallRng};

const FILES: u64 = 6;
const PAGES: u64 = 70;

fn op(rng: &mut SmallRng) -> Do {
    let file = rng.random_range(0..FILES);
    let page = rng.random_range(0..PAGES);
    let bytes = Span {
        offset: rng.random_range(0..PAGES * 4096),
        len: rng.random_range(0..50_000),
    };
    match rng.random_range(0..20) {
        0..5 => Do::Read(file, Span::pages(page, rng.random_range(1..60))),
        5..8 => Do::Read(file, bytes),
        8..10 => Do::Write(file, Span::pages(page, rng.random_range(1..5))),
        10 => Do::Write(file, bytes),
        11..13 => Do::Map(file, page, rng.random()),
        13..18 => Do::Anon(page, rng.random()),
        18 if rng.random_range(0..4) == 0 => Do::Delete(file, rng.random_range(0..PAGES)),
        18 if rng.random_range(0..4) == 0 => Do::Exit,
        18 => Do::Cut(file, rng.random_range(0..PAGES)),
        _ => Do::Think(Picos(rng.random_range(0..20_000_000_000_000))),
    }
}

fn configs() -> Vec<FileConfig> {
    let kernels = [
        FileConfig::plain(),
        FileConfig::dulo_simulation(),
        FileConfig::linux_2_6_11(),
        FileConfig::linux_2_6_30(),
        FileConfig::linux_6(),
    ];
    let mut all = Vec::new();
    for base in kernels {
        let swap = SwapArea {
            cluster_slots: 16,
            ..SwapArea::new(Lba(1 << 20), 400)
        };
        all.push(FileConfig {
            swap: Some(swap),
            ..base.clone()
        });
        all.push(FileConfig {
            swap: Some(swap),
            cpu: CpuCost::P4_1700,
            watermarks: Some(Watermarks { low: 4, high: 8 }),
            readahead: ReadaheadConfig::linux_2_6_32().with_max_pages(8),
            io: IoConfig {
                max_sectors: 40,
                requests: 6,
                congestion_on: 5,
                congestion_off: 4,
                depth: 3,
                ..base.io.clone()
            },
            ..base
        });
    }
    all
}

type Seen = (Stats, IoStats);

fn run<P: Replacement>(config: FileConfig, policy: P, seed: u64, steps: usize) -> Seen {
    let mut rng = SmallRng::seed_from_u64(seed);
    let layout = match seed % 3 {
        0 => Layout::Packed {
            start: Lba(64),
            gap_pages: 1,
        },
        1 => Layout::Scatter {
            seed,
            capacity_pages: 1 << 16,
        },
        _ => Layout::Slots {
            slot_sectors: 256,
            capacity_sectors: 100_000,
        },
    };
    let files = FileTable::new(layout).unwrap();
    let mut host = FileHost::new(config, files, policy, TestDisk::default()).unwrap();
    for file in 0..FILES {
        host.add_file(FileId(file), rng.random_range(0..PAGES))
            .unwrap();
    }
    let mut tasks: driver::Tasks = (0..4)
        .map(|task| (task, (0..steps).map(|_| op(&mut rng)).collect()))
        .collect();
    driver::run(&mut host, &mut tasks, |h| {
        h.validate().unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    });
    while let Some(event) = host.next_event() {
        host.advance(event).unwrap();
        host.validate().unwrap();
    }
    assert_eq!(host.dirty_pages(), 0, "what is old is written");
    let (io, pages) = (host.io_stats(), host.runs().pages());
    assert_eq!(io.pages_read, pages, "every page read lies in one run");
    (host.stats(), io)
}

#[test]
fn random_programs_leave_the_host_consistent_and_every_call_ends() {
    let mut reached = [0; 16];
    for (n, config) in configs().into_iter().enumerate() {
        for memory in [24, 80, 400] {
            let seed = n as u64 * 10 + u64::from(memory);
            let ghosts = memory / 2 * (n as u32 % 2);
            let policy = Lru::with_ghosts(memory, ghosts);
            let seen = run(config.clone(), policy, seed, 60);
            reached
                .iter_mut()
                .zip(paths(seen))
                .for_each(|(sum, n)| *sum += n);
        }
    }
    assert!(
        reached.iter().all(|&n| n > 0),
        "a path was never taken: {reached:?}"
    );
}

/// What the programs should bring about.
fn paths((stats, io): Seen) -> [u64; 16] {
    let uses = stats.uses();
    [
        uses.hits,
        uses.waited,
        uses.misses,
        stats.prefetched_used,
        stats.prefetched_unused,
        stats.evicted,
        stats.deleted,
        stats.victims_written,
        stats.written_back,
        stats.swap_ins,
        stats.swap_readahead,
        stats.swap_outs,
        stats.memory_waits,
        stats.throttled,
        io.back_merges,
        io.backlogged,
    ]
}

#[test]
fn fuzz_programs_on_random_configurations() {
    // A case is a whole program of calls, as long as tens of other rooms' cases.
    let cases = std::env::var("PIEBALD_FUZZ_CASES").ok();
    let cases: Option<u64> = cases.and_then(|n| n.parse().ok());
    let cases = cases.map_or(10, |n| n.div_ceil(10));
    let configs = configs();
    for seed in 0..cases {
        let mut rng = SmallRng::seed_from_u64(!seed);
        let config = configs[rng.random_range(0..configs.len())].clone();
        let memory = rng.random_range(12..200);
        let policy = Lru::with_ghosts(memory, rng.random_range(0..50));
        run(config, policy, seed, 40);
    }
}

/// Runs a program with whichever policy it gets.
struct Program {
    config: FileConfig,
    seed: u64,
}

impl Visitor for Program {
    type Out = Seen;

    fn visit<P: Replacement + Send + 'static>(self, policy: P) -> Seen {
        run(self.config, policy, self.seed, 60)
    }
}

#[test]
fn every_policy_of_the_registry_serves_random_programs() {
    for (n, row) in POLICIES.iter().enumerate() {
        let seed = n as u64;
        let all = configs().into_iter().zip([24, 60, 120].iter().cycle());
        for (config, memory) in all.skip(n % 3).step_by(3) {
            println!("{} with {memory} pages, {:?}", row.name, config.readahead);
            let program = Program { config, seed };
            let seen = build(row.name, &Setup::new(*memory), program).unwrap();
            assert!(seen.0.evicted > 0 || *memory > 24, "{}", row.name);
        }
    }
}
