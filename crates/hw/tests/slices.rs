//! Last levels whose sets are no power of two, in a whole machine, against closed formulas.

use crate::machine_kit::{Build, LINE, Rig, cache, load};
use piebald_hw::presets;
use piebald_units::{Bytes, memory::PhysRef};

/// One level of so many sets and ways under LRU, in slices that take turns.
fn one_level(sets: u64, ways: u64, slices: u64) -> Rig {
    let build = Build {
        caches: vec![cache(1, sets, ways, 4, &format!("slices = {slices}"))],
        ..Build::default()
    };
    build.rig("window")
}

fn scan(first: u64, lines: u64) -> Vec<PhysRef> {
    (first..first + lines).map(|i| load(i * LINE)).collect()
}

fn misses(rig: &Rig) -> u64 {
    rig.counters(0).level[0].misses
}

const SHAPES: [(u64, u64, u64); 5] = [
    (40, 11, 5),
    (40, 11, 20),
    (57 * 8, 12, 57),
    (480, 16, 15),
    (96, 7, 3),
];

#[test]
fn a_scan_that_fits_misses_once_wherever_it_begins() {
    for (sets, ways, slices) in SHAPES {
        for first in [0, 1, 12_345] {
            let mut rig = one_level(sets, ways, slices);
            let n = sets * ways;
            for _ in 0..3 {
                rig.run(0, &scan(first, n));
                assert_eq!(misses(&rig), n, "{sets} x {ways} from {first}");
            }
            let held = rig.machine.occupancy(0, slices as usize, 2);
            let held: Vec<u32> = held.iter().map(|cell| cell.iter().sum()).collect();
            assert!(held.iter().all(|n| u64::from(*n) == sets / slices * ways));
        }
    }
}

#[test]
fn a_scan_that_is_longer_misses_in_the_sets_that_it_overfills() {
    // Under LRU a set with one line too many in a cycle never hits: `over` more lines than
    // there is room for overfill `over` sets, each by one.
    for (sets, ways, slices) in SHAPES {
        for over in [1, sets / 3, sets] {
            let mut rig = one_level(sets, ways, slices);
            let n = sets * ways + over;
            rig.run(0, &scan(77, n));
            assert_eq!(misses(&rig), n);
            rig.run(0, &scan(77, n));
            assert_eq!(
                misses(&rig),
                n + over * (ways + 1),
                "{sets} x {ways} + {over}"
            );
        }
    }
}

#[test]
fn a_stride_of_a_slice_visits_every_slice_in_turn() {
    for (sets, ways, slices) in SHAPES {
        let mut rig = one_level(sets, ways, slices);
        // One set of each slice, all of its ways.
        let refs: Vec<_> = (0..slices * ways)
            .map(|i| load(i * (sets / slices) * LINE))
            .collect();
        for _ in 0..2 {
            rig.run(0, &refs);
        }
        assert_eq!(misses(&rig), slices * ways, "{sets} x {ways}");
    }
}

#[test]
fn levels_of_today_keep_their_size() {
    // 27.5 MiB of 11 ways, 114 MiB of 12, 480 MiB of 16, 36 MiB of 12, 30 MiB of 20.
    for (size, ways, slices) in [
        ("27.5MiB", 11, 20),
        ("27.5MiB", 11, 5),
        ("114MiB", 12, 19),
        ("480MiB", 16, 15),
        ("36MiB", 12, 3),
        ("30MiB", 20, 12),
    ] {
        let mut spec = presets::load("skylake-sp").unwrap_or_else(|e| panic!("{e}"));
        let last = &mut spec.cache[3];
        (last.size, last.ways) = (size.parse::<Bytes>().expect("a size"), ways);
        (last.slice_hash, last.slices) = (Vec::new(), Some(slices));
        let lines = last.size.0 / LINE;
        let mut rig = Rig::new(&spec, "window,coherence");
        assert_eq!(rig.machine.last_level_lines() as u64, lines, "{size}");
        for i in 0..20_000 {
            rig.run(0, &[load(i * 4099 % 3_000_000 * LINE)]);
        }
        rig.machine.validate().unwrap_or_else(|e| panic!("{e}"));
    }
}
