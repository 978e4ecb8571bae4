//! Caches against closed formulas and against a plain oracle.

use crate::cache_oracle::{Kind, Level, Oracle, Policy, Tally};
use crate::machine_kit::{Build, LINE, Rig, Rng, access, cache, load};
use piebald_hw::presets;
use piebald_units::{VirtAddr, memory::PhysRef, op::RefKind};

/// Three levels of 64, 256 and 1024 lines.
fn three(policy: &str) -> Build {
    let extra = format!("replacement = \"{policy}\"");
    Build {
        caches: vec![
            cache(1, 16, 4, 4, &extra),
            cache(2, 32, 8, 10, &extra),
            cache(3, 64, 16, 40, &extra),
        ],
        ..Build::default()
    }
}

fn lines(n: u64, step: u64) -> Vec<PhysRef> {
    (0..n).map(|i| load(i * step * LINE)).collect()
}

fn misses(rig: &Rig) -> [u64; 3] {
    rig.counters(0).level.map(|l| l.misses)
}

const POLICIES: [&str; 5] = ["lru", "tree-plru", "nru", "rrip", "random"];

#[test]
fn a_streaming_scan_misses_once_per_line_at_every_level() {
    for policy in POLICIES {
        let mut rig = three(policy).rig("window");
        // Eight loads per line.
        let refs: Vec<_> = (0..5000 * 8).map(|i| load(i * 8)).collect();
        rig.run(0, &refs);
        assert_eq!(misses(&rig), [5000; 3], "{policy}");
        assert_eq!(rig.counters(0).level[0].accesses, 40_000);
        assert_eq!(rig.counters(0).memory_reads, 5000);
    }
}

#[test]
fn a_stride_uses_only_the_sets_that_it_reaches() {
    // A stride of 8 lines reaches 2 of 16, 4 of 32 and 8 of 64 sets: 8, 32 and
    // 128 lines stay.
    for (n, expected) in [(8, [8, 8, 8]), (32, [96, 32, 32]), (128, [384, 384, 128])] {
        let mut rig = three("lru").rig("window");
        for _ in 0..3 {
            rig.run(0, &lines(n, 8));
        }
        assert_eq!(misses(&rig), expected, "{n} lines");
    }
}

#[test]
fn a_working_set_that_fits_misses_in_its_first_pass_only() {
    for policy in POLICIES {
        for (n, level) in [(64, 0), (256, 1), (1024, 2)] {
            let mut rig = three(policy).rig("window");
            rig.run(0, &lines(n, 1));
            let first = misses(&rig)[level];
            for _ in 0..4 {
                rig.run(0, &lines(n, 1));
            }
            assert_eq!((first, misses(&rig)[level]), (n, n), "{policy}");
        }
    }
}

#[test]
fn a_cycle_one_line_per_set_too_long_always_misses_under_lru() {
    for ways in [1, 2, 7, 16, 24] {
        let build = Build {
            caches: vec![cache(1, 8, ways, 4, "")],
            ..Build::default()
        };
        let mut rig = build.rig("window");
        let n = 8 * (ways + 1);
        for _ in 0..5 {
            rig.run(0, &lines(n, 1));
        }
        assert_eq!(misses(&rig)[0], 5 * n, "{ways} ways");
    }
}

#[test]
fn uniform_random_accesses_hit_in_proportion_to_the_capacity() {
    // Every line of W is equally likely, and C of them are held under any policy
    // that knows nothing of the future.
    for policy in POLICIES {
        let build = Build {
            caches: vec![cache(1, 64, 8, 4, &format!("replacement = \"{policy}\""))],
            ..Build::default()
        };
        let (capacity, working_set, n) = (512u64, 2048u64, 200_000u64);
        let mut rig = build.rig("window");
        let mut rng = Rng(11);
        let mut pass = |n: u64| -> Vec<_> {
            (0..n)
                .map(|_| load(rng.below(working_set) * LINE))
                .collect()
        };
        rig.run(0, &pass(20_000));
        let before = misses(&rig)[0];
        rig.run(0, &pass(n));
        let hits = n - (misses(&rig)[0] - before);
        let ratio = hits as f64 / n as f64;
        let expected = capacity as f64 / working_set as f64;
        // Three standard deviations of n independent trials.
        let tolerance = 3.0 * (expected * (1.0 - expected) / n as f64).sqrt();
        assert!((ratio - expected).abs() < tolerance, "{policy}: {ratio}");
    }
}

/// Stream with reuse: mostly near the last place, sometimes far.
fn mixed_stream(rng: &mut Rng, n: usize) -> Vec<(u64, RefKind)> {
    let mut place = 0;
    (0..n)
        .map(|_| {
            if rng.below(6) == 0 {
                place = rng.below(400);
            }
            let line = (place + rng.below(24)) % 400;
            match rng.below(10) {
                0..3 => (line, RefKind::Store),
                3 => (line, RefKind::Update),
                4 => (line, RefKind::LoadNt),
                5 => (1000 + line % 40, RefKind::Fetch),
                _ => (line, RefKind::Load),
            }
        })
        .collect()
}

/// Sets of three levels, of which the second and the third are no power of two: slices in
/// turn. What picks the slice is written in the oracle as a plain remainder.
const SLICED: [u64; 3] = [4, 12, 20];

fn compare(policy: Policy, kinds: [Kind; 2], sets: [u64; 3], ways: [u64; 3], seed: u64) {
    let keys = |k: usize| {
        let (policy, kind) = (policy.name(), kinds[k - 1].name());
        let slices = sets[k] >> sets[k].trailing_zeros();
        format!("replacement = \"{policy}\"\ninclusion = \"{kind}\"\nslices = {slices}")
    };
    // Fetches from the line of the fetch before need no access: the front end has
    // it. Only RRIP tells one use from two.
    let fetch_policy = match policy {
        Policy::Rrip => Policy::Lru,
        policy => policy,
    };
    let first = |holds: &str, policy: Policy| {
        let policy = policy.name();
        format!("replacement = \"{policy}\"\nholds = \"{holds}\"")
    };
    let build = Build {
        caches: vec![
            cache(1, sets[0], ways[0], 4, &first("instruction", fetch_policy)),
            cache(1, sets[0], ways[0], 4, &first("data", policy)),
            cache(2, sets[1], ways[1], 10, &keys(1)),
            cache(3, sets[2], ways[2], 40, &keys(2)),
        ],
        ..Build::default()
    };
    let mut rig = build.rig("window,fetch,coherence");
    let level = |k: usize, kind| Level::new(sets[k] as usize, ways[k] as usize, policy, kind);
    let mut oracle = Oracle {
        data: vec![
            level(0, Kind::NonInclusive),
            level(1, kinds[0]),
            level(2, kinds[1]),
        ],
        fetch: Level::new(
            sets[0] as usize,
            ways[0] as usize,
            fetch_policy,
            Kind::NonInclusive,
        ),
        tally: Tally::default(),
    };
    let mut rng = Rng(seed);
    for (n, (line, kind)) in mixed_stream(&mut rng, 2500).into_iter().enumerate() {
        rig.run(0, &[access(kind, line * LINE, 1)]);
        oracle.access(line, kind);
        let c = rig.counters(0);
        let ours = Tally {
            accesses: c.level.map(|l| l.accesses),
            misses: c.level.map(|l| l.misses),
            fetch_misses: c.fetch.misses,
            memory_reads: c.memory_reads,
            memory_writes: c.memory_writes,
        };
        let what =
            format!("{policy:?} {kinds:?} {sets:?} {ways:?}: step {n}, {kind:?} of line {line}");
        assert_eq!(ours, oracle.tally, "{what}");
    }
    assert!(oracle.tally.memory_writes > 50 && oracle.tally.misses[2] > 200);
}

#[test]
fn every_policy_and_kind_of_inclusion_agrees_with_the_oracle_step_by_step() {
    for policy in Policy::ALL {
        for inner in Kind::ALL {
            for outer in Kind::ALL {
                compare(policy, [inner, outer], [4, 8, 8], [2, 4, 16], 21);
                compare(policy, [inner, outer], SLICED, [2, 4, 8], 23);
                if policy != Policy::TreePlru {
                    compare(policy, [inner, outer], [4, 8, 8], [3, 5, 20], 22);
                    compare(policy, [inner, outer], SLICED, [3, 3, 7], 24);
                }
            }
        }
    }
}

/// The same physical line through a virtual address of another colour.
fn alias(addr: u64, color: u64) -> PhysRef {
    PhysRef {
        vaddr: VirtAddr((1 << 32) + color * 4096 + addr % 4096),
        frame: (addr >> 12) as u32,
        gap: 1,
        size: 8,
        ..PhysRef::default()
    }
}

#[test]
fn an_alias_in_a_virtually_indexed_cache_misses_once_and_moves_the_line() {
    // The Opteron's 64 KiB in two ways: eight page colours. One physical line
    // may be there only once, as the real part ensures by a probe.
    let mut spec = presets::load("opteron4x4").unwrap_or_else(|e| panic!("{e}"));
    spec.tlb = None;
    let mut rig = Rig::new(&spec, "window,coherence");
    let store = |color| PhysRef {
        kind: RefKind::Store,
        ..alias(0, color)
    };
    for turn in 0..10 {
        for color in 0..8 {
            rig.run(0, &[store(color), alias(0, color)]);
            let moves = turn * 8 + color + 1;
            assert_eq!(misses(&rig)[0], moves, "one miss per change of the alias");
        }
    }
    // Two lines of one page colour and many physical colours share a set.
    assert_eq!(
        rig.counters(0).memory_reads,
        1,
        "the line stayed on the chip"
    );
    rig.machine.validate().unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn virtual_indexing_takes_the_set_from_the_virtual_address() {
    // Three frames of different physical colours through one virtual colour
    // fight for two ways; through different virtual colours they do not.
    for (same_color, expected) in [(true, 30), (false, 3)] {
        let mut spec = presets::load("opteron4x4").unwrap_or_else(|e| panic!("{e}"));
        spec.tlb = None;
        let mut rig = Rig::new(&spec, "window");
        for _ in 0..10 {
            for frame in 0..3 {
                let color = if same_color { 0 } else { frame };
                rig.run(0, &[alias(frame * 4096, color)]);
            }
        }
        assert_eq!(misses(&rig)[0], expected, "same colour: {same_color}");
    }
}

#[test]
fn a_hashed_cache_spreads_pages_and_strides_evenly_over_its_slices() {
    for name in ["skylake-sp", "zen"] {
        let spec = presets::load(name).unwrap_or_else(|e| panic!("{e}"));
        let last = spec.cache.last().expect("caches");
        if last.slice_hash.is_empty() {
            continue;
        }
        let slices = 1u64 << last.slice_hash.len();
        let sets = last.size.0 / u64::from(last.ways) / LINE;
        // As many lines as half the cache, at strides that a linear index would
        // map to a fraction of the sets.
        for stride in [1u64, 3, 17] {
            let mut build = spec.clone();
            build.tlb = None;
            let mut rig = Rig::new(&build, "none");
            let n = sets * u64::from(last.ways) / 4;
            rig.run(0, &lines(n, stride));
            let cells = rig.machine.occupancy(0, slices as usize, 2);
            let held: Vec<u64> = cells
                .iter()
                .map(|c| c.iter().map(|n| u64::from(*n)).sum())
                .collect();
            let all: u64 = held.iter().sum();
            assert!(all > 0, "{name}");
            for (slice, lines) in held.iter().enumerate() {
                let even = all as f64 / slices as f64;
                let off = (*lines as f64 / even - 1.0).abs();
                assert!(off < 0.05, "{name} stride {stride} slice {slice}: {held:?}");
            }
        }
    }
}

#[test]
fn cores_behind_one_instance_share_it_and_others_do_not() {
    // Four cores, an L2 for two of them, an L3 for all.
    let build = Build {
        per_socket: 4,
        caches: vec![
            cache(1, 16, 4, 4, ""),
            cache(2, 32, 8, 10, "shared_by = 2"),
            cache(3, 64, 16, 40, "shared_by = 4"),
        ],
        ..Build::default()
    };
    let mut rig = build.rig("window,coherence");
    rig.run(0, &lines(100, 1));
    let found = |rig: &mut Rig, core: usize| {
        let before = rig.counters(core);
        rig.run(core, &lines(100, 1));
        (rig.counters(core) - before).level.map(|l| l.misses)
    };
    assert_eq!(found(&mut rig, 1), [100, 0, 0], "same L2");
    assert_eq!(found(&mut rig, 2), [100, 100, 0], "same L3");
    assert_eq!(
        found(&mut rig, 3),
        [100, 0, 0],
        "core 2 has filled their L2"
    );
    rig.machine.validate().unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn hyperthreads_of_a_core_share_its_first_level() {
    let mut build = three("lru");
    build.smt = 2;
    let mut rig = build.rig("window");
    rig.run(0, &lines(64, 1));
    rig.run(1, &lines(64, 1));
    assert_eq!(rig.counters(1).level[0].misses, 0);
    // Together they need more than it has.
    let mut misses = 0;
    for _ in 0..4 {
        for thread in 0..2 {
            let own: Vec<_> = (0..40).map(|i| load((thread * 4096 + i) * LINE)).collect();
            rig.run(thread as usize, &own);
        }
        misses = rig.counters(0).level[0].misses;
    }
    assert!(misses > 64 + 40, "{misses}");
}
