//! Time of loads, stores, fetches and translations against closed formulas, on a
//! machine whose cycle is 1 ns and whose DRAM always takes the same time.

use crate::machine_kit;
use crate::machine_kit::{Build, CYCLE, DRAM, FIXED, LINE, Rig, access, cache, load, store};
use piebald_hw::Options;
use piebald_units::{PageSize, memory::PhysRef, op::RefKind};

const MEMORY: u64 = 40 + FIXED + DRAM;

/// 4 KiB, 32 KiB and 512 KiB of 4, 10 and 40 cycles.
fn three() -> Build {
    Build {
        caches: vec![
            cache(1, 8, 8, 4, ""),
            cache(2, 64, 8, 10, ""),
            cache(3, 512, 16, 40, ""),
        ],
        ..Build::default()
    }
}

fn dependent(addr: u64) -> PhysRef {
    PhysRef {
        dep: 1,
        ..load(addr)
    }
}

/// Cycles per load of a chase through `n` lines, after one pass over them.
fn chase(rig: &mut Rig, n: u64) -> f64 {
    let pass: Vec<_> = (0..n).map(|i| dependent(i * LINE)).collect();
    rig.cycles(0, &pass);
    rig.cycles(0, &pass) as f64 / n as f64
}

#[test]
fn a_pointer_chase_pays_each_levels_latency_in_full() {
    for (n, latency) in [(32, 4), (256, 10), (4096, 40)] {
        let per_load = chase(&mut three().rig("window"), n);
        let first = 1.0 / n as f64;
        assert!(
            (per_load - latency as f64).abs() <= first,
            "{n} lines: {per_load}"
        );
    }
    let per_load = chase(&mut three().rig("window"), 20_000);
    assert!(
        (per_load - MEMORY as f64).abs() < 0.01,
        "memory: {per_load}"
    );
}

#[test]
fn independent_misses_overlap_up_to_the_fill_buffers() {
    for buffers in [1, 2, 8, 10] {
        let mut build = three();
        build.fills = buffers;
        let mut rig = build.rig("window");
        let n = 100;
        let cycles = rig.cycles(0, &(0..n).map(|i| load(i * LINE)).collect::<Vec<_>>());
        let rounds = n.div_ceil(u64::from(buffers));
        let exact = rounds * MEMORY;
        // Those of a round follow one another over the data bus, 4 cycles each.
        assert!(
            cycles >= exact && cycles <= exact + 4 * u64::from(buffers) + 4,
            "{buffers} buffers: {cycles}, {exact} expected"
        );
    }
}

#[test]
fn without_the_window_every_load_blocks() {
    let mut rig = three().rig("none");
    let cycles = rig.cycles(0, &(0..50).map(|i| load(i * LINE)).collect::<Vec<_>>());
    assert_eq!(cycles, 50 * (1 + MEMORY));
}

#[test]
fn a_miss_blocks_the_instruction_a_whole_window_later_and_none_before() {
    for window in [8u64, 32, 64] {
        let mut build = three();
        build.window = window as u32;
        let clock_after = |more: u64| {
            let mut rig = build.rig("window");
            rig.run(0, &[load(0)]);
            let id = piebald_units::CoreId(0);
            let now = rig.now[0];
            let now =
                piebald_units::memory::MemoryPort::retire(&mut rig.machine, id, more as u32, now);
            now.0 / CYCLE
        };
        // The load dispatches at cycle 1 and is done at 1 + MEMORY.
        assert_eq!(clock_after(window - 1), window, "{window}");
        assert_eq!(clock_after(window), 1 + MEMORY, "{window}");
        assert_eq!(
            clock_after(window + 25),
            1 + MEMORY + 25,
            "{window}: at the base rate again"
        );
    }
}

#[test]
fn stores_wait_only_for_a_place_in_the_store_buffer() {
    let mut build = three();
    build.store_buffer = 4;
    let mut rig = build.rig("window");
    let stores: Vec<_> = (0..5).map(|i| store(i * LINE)).collect();
    assert_eq!(rig.run(0, &stores[..4]) / CYCLE, 4);
    // The fifth takes the place of the first, which dispatched at cycle 1.
    assert_eq!(rig.run(0, &stores[4..]) / CYCLE, 1 + MEMORY - 4);
}

#[test]
fn a_fetch_miss_stalls_dispatch_by_what_the_front_end_does_not_hide() {
    let mut build = three();
    build
        .caches
        .insert(0, cache(1, 8, 8, 4, "holds = \"instruction\""));
    let mut rig = build.rig("window,fetch");
    let fetch = access(RefKind::Fetch, 0, 1);
    assert_eq!(rig.run(0, &[fetch]) / CYCLE, 1 + MEMORY - 4);
    assert_eq!(rig.run(0, &[fetch]) / CYCLE, 1);
    let mut off = build.rig("window");
    assert_eq!(
        off.run(0, &[fetch]) / CYCLE,
        1,
        "fetches are free when switched off"
    );
}

const TLB: &str = "[tlb]\nl1 = { entries = 16, ways = 4 }\nl1_huge = { entries = 8, ways = 4 }\n\
                   l1i = { entries = 16, ways = 4 }\nl2 = { entries = 64, ways = 4 }\n\
                   l2_latency = 7\n";

/// One load in each of `n` pages, lines spread over the sets.
fn pages(n: u64) -> Vec<PhysRef> {
    (0..n).map(|p| load(p * 4096 + p % 8 * LINE)).collect()
}

#[test]
fn tlbs_reach_as_far_as_their_entries() {
    for (n, misses, walks) in [(16, 0, 0), (64, 64, 0), (128, 128, 128)] {
        let mut build = three();
        build.rest = TLB.into();
        let mut rig = build.rig("window,tlb");
        rig.run(0, &pages(n));
        let before = rig.counters(0);
        rig.run(0, &pages(n));
        let c = rig.counters(0) - before;
        assert_eq!((c.tlb_misses, c.walks), (misses, walks), "{n} pages");
    }
}

/// Cycles of one load of a line that the first level holds.
fn translated(rig: &mut Rig, addr: u64) -> u64 {
    rig.settle();
    rig.cycles(0, &[access(RefKind::Load, addr, 0)])
}

#[test]
fn a_second_level_hit_adds_its_latency() {
    let mut build = three();
    build.rest = TLB.into();
    let mut rig = build.rig("window,tlb");
    rig.run(0, &pages(1));
    assert_eq!(translated(&mut rig, 0), 4);
    // Four other pages of set 0 push page 0 out of the first level.
    for p in 1..5 {
        rig.run(0, &[load(p * 16384 + 2 * LINE)]);
    }
    assert_eq!(translated(&mut rig, 0), 4 + 7);
    assert_eq!(translated(&mut rig, 8), 4);
}

#[test]
fn a_page_walk_reads_its_entries_one_after_the_other() {
    for (walk_cache, reads) in [(0, 4), (16, 1)] {
        let mut build = three();
        build.rest = format!("{TLB}walk_cache = {walk_cache}\n");
        let mut rig = build.rig("window,tlb");
        // Page 0 makes the upper entries known; page 32's entry has another line.
        rig.run(0, &[load(0)]);
        assert_eq!(rig.counters(0).walks, 1);
        let cycles = translated(&mut rig, 32 * 4096);
        // Upper entries are in the first level, the last one and the data are not.
        assert_eq!(
            cycles,
            (reads - 1) * 4 + MEMORY + 7 + MEMORY,
            "walk cache {walk_cache}"
        );
    }
}

#[test]
fn a_huge_page_needs_one_entry_and_a_shorter_walk() {
    let mut build = three();
    build.rest = TLB.into();
    let mut rig = build.rig("window,tlb");
    rig.page = PageSize::Huge;
    rig.run(0, &pages(512));
    assert_eq!(rig.counters(0).walks, 1);
    let mut rig = build.rig("window,tlb");
    rig.page = PageSize::Huge;
    rig.run(0, &[load(0)]);
    // The next 2 MiB page: three entries on lines that the first level holds.
    assert_eq!(translated(&mut rig, 2 << 20), 3 * 4 + 7 + MEMORY);
    assert_eq!(rig.counters(0).walks, 2);
}

#[test]
fn non_caching_loads_leave_nothing_in_levels_that_are_not_inclusive() {
    for (outer, second_pass) in [("non-inclusive", 1000), ("victim", 1000), ("inclusive", 0)] {
        let mut build = three();
        build.caches[2] = cache(3, 512, 16, 40, &format!("inclusion = \"{outer}\""));
        let mut rig = build.rig("window");
        let pass: Vec<_> = (0..1000)
            .map(|i| access(RefKind::LoadNt, i * LINE, 1))
            .collect();
        for _ in 0..2 {
            rig.run(0, &pass);
        }
        let c = rig.counters(0);
        assert_eq!(c.memory_reads, 1000 + second_pass, "{outer}");
        assert_eq!(
            c.level[1].misses, 2000,
            "{outer}: never in the second level"
        );
    }
}

#[test]
fn non_caching_loads_start_no_prefetcher() {
    let spec = piebald_hw::presets::load("opteron4x4").unwrap_or_else(|e| panic!("{e}"));
    let prefetches = |kind| {
        let mut rig = Rig::new(&spec, "window,prefetch");
        let one = |i| PhysRef {
            dep: 1,
            ..access(kind, i * LINE, 1)
        };
        let pass: Vec<_> = (0..4096).map(one).collect();
        rig.run(0, &pass);
        let c = rig.counters(0);
        assert!(c.memory_reads + c.prefetch_reads >= 4096);
        c.prefetches
    };
    assert!(prefetches(RefKind::Load) > 1000);
    assert_eq!(prefetches(RefKind::LoadNt), 0);
}

#[test]
fn half_of_the_controllers_give_half_of_the_bandwidth() {
    // Four channels' worth of misses in flight on eight controllers, then on four.
    let rate = |disabled: Vec<u16>| {
        let mut build = three();
        build.controllers = 8;
        let text = build
            .text()
            .replace("controllers = 8", "controllers = 8\nspread = \"line\"");
        let spec =
            piebald_hw::presets::parse(&text.replace("tck = \"1ns\"", "tck = \"20ns\""), "test");
        let spec = spec.unwrap_or_else(|e| panic!("{e}"));
        let options = Options {
            features: "window".parse().unwrap_or_else(|e| panic!("{e}")),
            disabled_controllers: disabled,
            ..Options::default()
        };
        let mut rig = Rig::with(&spec, &options);
        let refs: Vec<_> = (0..4000).map(|i| load(i * LINE)).collect();
        rig.cycles(0, &refs) as f64
    };
    let ratio = rate(vec![4, 5, 6, 7]) / rate(vec![]);
    assert!((ratio - 2.0).abs() < 0.05, "{ratio}");
}

/// Loads of 8 bytes in rising or falling order over `n` lines.
fn scan(n: u64, step: i64) -> Vec<PhysRef> {
    let start = if step < 0 { n as i64 * 64 - 8 } else { 0 };
    (0..n as i64 * 64 / step.abs())
        .map(|i| PhysRef {
            site: 7,
            ..access(RefKind::Load, (start + i * step) as u64, 40)
        })
        .collect()
}

fn prefetching(flag: &str) -> Rig {
    let mut build = three();
    build.rest = format!("[prefetch]\n{flag} = true\n");
    build.rig("window,prefetch")
}

#[test]
fn each_prefetcher_alone_covers_its_stream_inside_pages() {
    let n = 64 * 20;
    // Flag, stream, level whose misses it removes, misses left per page at most.
    let cases = [
        ("dcu_next_line", 8, 0, 3),
        ("dcu_ip_stride", 8, 0, 2),
        ("dcu_ip_stride", -8, 0, 2),
        ("dcu_ip_stride", 256, 0, 4),
        ("l2_streamer", 8, 1, 4),
        ("l2_streamer", -8, 1, 4),
        ("l2_adjacent_line", 8, 1, 32),
    ];
    for (flag, step, level, left) in cases {
        let mut rig = prefetching(flag);
        rig.run(0, &scan(n, step));
        let c = rig.counters(0);
        let misses = c.level[level].misses;
        assert!(misses <= 20 * left, "{flag} {step}: {misses}");
        assert!(
            misses >= 20,
            "{flag} {step}: the first line of a page is never prefetched"
        );
        assert!(
            c.useful_prefetches * 10 >= c.prefetches * 9,
            "{flag} {step}: {c:?}"
        );
        assert_eq!(c.memory_reads + c.prefetch_reads, c.row_accesses());
        let lines = n.min(n * 64 / step.unsigned_abs());
        assert_eq!(
            c.memory_reads + c.prefetch_reads,
            lines,
            "{flag} {step}: nothing outside"
        );
    }
}

#[test]
fn prefetchers_for_streams_stay_silent_on_random_lines() {
    for flag in ["dcu_next_line", "dcu_ip_stride", "l2_streamer"] {
        let mut rig = prefetching(flag);
        let mut rng = machine_kit::Rng(9);
        let refs: Vec<_> = (0..20_000)
            .map(|_| PhysRef {
                site: 7,
                ..access(RefKind::Load, rng.below(1 << 20) * LINE, 4)
            })
            .collect();
        rig.run(0, &refs);
        let c = rig.counters(0);
        assert!(c.prefetches < 20, "{flag}: {}", c.prefetches);
    }
}

#[test]
fn independent_misses_pass_a_chain_that_waits_for_its_own() {
    // Eight loads of a chain start one after the other: they never hold more than
    // one buffer at a time, so that eight others still overlap with them.
    let mut build = three();
    build.fills = 10;
    let mut rig = build.rig("window");
    let mut refs = Vec::new();
    for i in 0..8 {
        // The chain's load before lies two loads back.
        let dep = if i > 0 { 2 } else { 0 };
        refs.push(PhysRef {
            dep,
            ..load(i * LINE)
        });
        refs.push(load((1000 + i) * LINE));
    }
    let chain = 8 * MEMORY;
    let cycles = rig.cycles(0, &refs);
    assert!(
        cycles <= chain + 40,
        "{cycles}, the chain alone takes {chain}"
    );
}
