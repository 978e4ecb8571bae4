//! One program, and several that share the machine or parts of it.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::kit::{Bench, FOREVER, Script, Step, go, loads, program, stores, time};
use piebald_hw::Features;
use piebald_sim::MapRequest;
use piebald_units::{Picos, op::Next};
use piebald_workload::memory::mark;

/// References that are read at a time, hence by how much a part may be longer.
const BATCH: u64 = 512;

const A: u64 = 0x10_0000;
const B: u64 = 0x4000_0000;

/// Sweeps an area for ever.
fn sweeper(base: u64, bytes: u64) -> Script {
    Script::new(vec![loads(base, bytes, FOREVER)])
}

/// Loads one line every `stride` bytes, for ever.
fn strider(stride: u64, lines: u64) -> Script {
    let line = |i| loads(A + i * stride, 64, 1);
    let round = (0..lines).map(line);
    Script::new(round.cycle().take(60_000).collect())
}

#[test]
fn the_measured_part_is_as_long_as_asked_for_and_repeats_exactly() {
    for budget in [1, 511, 512, 513, 30_000] {
        let run = || {
            let mut p = program("a", "0", sweeper(A, 64 << 10));
            (p.warmup, p.budget) = (7_000, budget);
            go(vec![p])
        };
        let first = run();
        let region = first.programs[0].region;
        assert!(
            (budget..=budget + BATCH).contains(&region.refs),
            "{} references of {budget}",
            region.refs
        );
        assert!(region.time > Picos(0), "{budget}");
        assert!(!region.ended_early);
        let again = run();
        assert_eq!(first.programs, again.programs, "{budget}");
        assert_eq!(first.refs, again.refs);
    }
}

#[test]
fn a_warm_small_set_stays_in_the_first_level() {
    let mut p = program("a", "0", sweeper(A, 2048));
    p.warmup = 2_000;
    let region = go(vec![p]).programs[0].region;
    assert!(region.counters.level[0].misses < 20, "{region:?}");
    assert_eq!(region.faults, 0);
    assert_eq!(region.pages, 1);
}

/// Slowdown of a program on core 0 beside the same one on core 1.
fn slowdown(bytes: u64, features: Features) -> f64 {
    let bench = Bench {
        features,
        ..Bench::default()
    };
    let sweeps = |name, core, base| {
        let mut p = program(name, core, sweeper(base, bytes));
        (p.warmup, p.budget) = (20_000, 60_000);
        p
    };
    let a = || sweeps("a", "0", A);
    let alone = bench.run(vec![a()]).expect("alone");
    let both = bench.run(vec![a(), sweeps("b", "1", B)]).expect("together");
    time(&both, 0) / time(&alone, 0)
}

#[test]
fn private_caches_are_private() {
    for features in [Features::ALL, Features::NONE] {
        let slower = slowdown(2048, features);
        assert!((0.98..1.02).contains(&slower), "{features}: {slower}");
    }
}

#[test]
fn two_that_overflow_the_shared_cache_slow_each_other_down() {
    for features in [Features::ALL, Features::NONE] {
        let fits = slowdown(64 << 10, features);
        assert!(fits < 1.15, "{features}: {fits}");
        let overflows = slowdown(200 << 10, features);
        assert!(overflows > 1.3, "{features}: {overflows}");
    }
}

#[test]
fn programs_on_one_core_take_turns() {
    let spin = |name, base| {
        let mut p = program(name, "0", sweeper(base, 2048));
        // Several slices of 4 ms.
        (p.warmup, p.budget) = (1_000, 8_000_000);
        p
    };
    let alone = go(vec![spin("a", A)]);
    let both = go(vec![spin("a", A), spin("b", B)]);
    let ratio = time(&both, 0) / time(&alone, 0);
    assert!((1.3..2.7).contains(&ratio), "{ratio}");
    for p in &both.programs {
        assert!((8_000_000..=8_000_000 + BATCH).contains(&p.region.refs));
    }
}

#[test]
fn a_program_that_ends_is_started_again_and_costs_others_no_references() {
    let mut long = program("long", "0", sweeper(A, 32 << 10));
    (long.warmup, long.budget) = (5_000, 100_000);
    let mut short = program("short", "1", Script::new(vec![loads(B, 2048, 100)]));
    (short.warmup, short.budget) = (1_000, 1_000_000);
    let outcome = go(vec![long, short]);
    let [long, short] = &outcome.programs[..] else {
        panic!("two programs");
    };
    assert!((100_000..=100_000 + BATCH).contains(&long.region.refs));
    assert!(!long.region.ended_early);
    assert_eq!(long.restarts, 0);
    assert!(short.region.ended_early);
    // 32 lines, 100 times, less the warm-up.
    assert!((2_200 - BATCH..=2_200).contains(&short.region.refs));
    assert!(short.restarts > 2, "{}", short.restarts);
    assert!(outcome.refs > 105_000 + 3 * 3_200, "{}", outcome.refs);
}

#[test]
fn a_program_alone_that_ends_early_is_not_started_again() {
    let mut short = program("short", "1", Script::new(vec![loads(B, 2048, 100)]));
    short.budget = 1_000_000;
    let outcome = go(vec![short]);
    assert!(outcome.programs[0].region.ended_early);
    assert_eq!(outcome.programs[0].restarts, 0);
}

#[test]
fn one_that_waits_starts_when_the_others_are_warm() {
    for waits in [true, false] {
        let company = sweeper(A, 32 << 10);
        let seen = Arc::new(AtomicU64::new(u64::MAX));
        let mut target = sweeper(B, 32 << 10);
        target.watch = Some((company.given.clone(), seen.clone()));
        let mut target = program("target", "0", target);
        target.waits = waits;
        let mut company = program("company", "1", company);
        (company.warmup, company.budget) = (40_000, 1_000);
        go(vec![target, company]);
        let at_start = seen.load(Ordering::Relaxed);
        let want = if waits { 40_000..=41_000 } else { 0..=0 };
        assert!(want.contains(&at_start), "waits {waits}: {at_start}");
    }
}

#[test]
fn if_all_wait_none_does() {
    let mut p = program("a", "0", sweeper(A, 2048));
    p.waits = true;
    let mut q = program("b", "1", sweeper(B, 2048));
    q.waits = true;
    assert!(time(&go(vec![p, q]), 1) > 0.0);
}

#[test]
fn a_program_that_waits_may_share_its_core_with_the_others() {
    let mut target = program("target", "0", sweeper(B, 2048));
    target.waits = true;
    let mut company = program("company", "0", sweeper(A, 2048));
    (company.warmup, company.budget) = (10_000, 1_000);
    let outcome = go(vec![target, company]);
    assert!((20_000..=20_000 + BATCH).contains(&outcome.programs[0].region.refs));
}

#[test]
fn the_ready_mark_moves_the_measured_part() {
    // Set-up misses everywhere; what follows hits.
    let script = || {
        Script::new(vec![
            stores(A, 1 << 20, 2),
            Step::Do(Next::Mark(mark::READY)),
            loads(B, 2048, FOREVER),
        ])
    };
    let measure = |marks_ready| {
        let mut p = program("a", "0", script());
        (p.warmup, p.budget, p.marks_ready) = (1_000, 10_000, marks_ready);
        go(vec![p]).programs[0].region
    };
    let ready = measure(true);
    assert!(ready.counters.level[0].misses < 50, "{ready:?}");
    assert_eq!(ready.faults, 0);
    let from_start = measure(false);
    assert!(
        from_start.counters.level[0].misses > 9_000,
        "{from_start:?}"
    );
    assert!(from_start.faults > 100, "{from_start:?}");
}

#[test]
fn a_program_that_is_met_later_has_the_pages_of_before() {
    let script = || Script::new(vec![stores(A, 1 << 20, 1), loads(B, 8192, FOREVER)]);
    let measure = |skip| {
        let mut p = program("a", "0", script());
        (p.skip, p.warmup, p.budget) = (skip, 100, 30_000);
        go(vec![p])
    };
    let skipped = measure(16_384);
    // 256 pages of the first part, 2 of the second, and nothing of the first in a cache.
    assert_eq!(skipped.programs[0].region.pages, 258);
    let misses = skipped.programs[0].region.counters.level[2].misses;
    assert!(misses < 200, "{:?}", skipped.programs[0].region);
    assert!(
        (30_100..=30_100 + BATCH).contains(&skipped.refs),
        "{}",
        skipped.refs
    );
    // The last half of the first part is met.
    let half = measure(8_192).programs[0].region;
    assert_eq!(half.pages, 258);
    assert!(half.counters.level[0].misses > 8_000, "{half:?}");
}

#[test]
fn a_program_that_is_met_after_its_set_up_has_its_pages_and_pays_for_nothing_before() {
    let script = || {
        Script::new(vec![
            stores(A, 1 << 20, 1),
            Step::Do(Next::Mark(mark::READY)),
            loads(B, 8192, FOREVER),
        ])
    };
    let measure = |skip| {
        let mut p = program("a", "0", script());
        (p.skip, p.marks_ready) = (skip, true);
        (p.warmup, p.budget) = (100, 30_000);
        go(vec![p])
    };
    let (begun, met) = (measure(0), measure(5));
    let pages = |o: &piebald_sim::Outcome| o.programs[0].region.pages;
    assert_eq!((pages(&begun), pages(&met)), (258, 258));
    // The set-up's references are made or not, and those that are passed over after it are not.
    assert!(begun.refs >= 16_384 + 30_100, "{}", begun.refs);
    assert!(
        (30_100..=30_100 + BATCH).contains(&met.refs),
        "{}",
        met.refs
    );
}

#[test]
fn primed_pages_are_there_and_cost_nothing() {
    const BYTES: u64 = 64 << 12;
    let lines = BYTES / 64;
    let run = |prime| {
        let script = Script::new(vec![stores(A, BYTES, 1), loads(A, BYTES, FOREVER)]);
        let mut p = program("a", "0", script);
        (p.prime, p.budget) = (prime, lines - prime / 2);
        go(vec![p])
    };
    let (cold, primed) = (run(0), run(lines));
    let [a, b] = [&cold, &primed].map(|o| o.programs[0].region);
    assert!(a.faults >= 63 && b.faults == 0, "{} {}", a.faults, b.faults);
    assert!(b.pages >= 64, "{}", b.pages);
    // What is primed is not performed: neither counted nor in a cache.
    assert!(primed.refs < cold.refs, "{} {}", primed.refs, cold.refs);
    let misses = b.counters.level[2].misses;
    assert!((b.refs..b.refs + 64).contains(&misses), "{misses}");
}

#[test]
fn the_first_start_alone_is_met_later() {
    let (first, second) = (16 << 12, 8 << 12);
    let script = Script::new(vec![stores(A, first, 1), loads(B, second, 1)]);
    let mut company = program("company", "1", script);
    (company.measured, company.skip) = (false, first / 64);
    let mut p = program("a", "0", sweeper(A, 2048));
    p.budget = 100_000;
    let outcome = go(vec![p, company]);
    // It ends and begins again, at its beginning, and each time makes the references of both parts.
    let times = u64::from(outcome.programs[1].restarts);
    let each = (outcome.refs - 100_000) / times;
    let all = (first + second) / 64;
    assert!(
        times > 2 && (all * 2 / 3..=all * 4 / 3).contains(&each),
        "{each} in {times}"
    );
}

#[test]
fn company_that_is_not_measured_is_known_up_to_the_end() {
    let mut fast = program("fast", "0", sweeper(A, 2048));
    (fast.warmup, fast.budget) = (1_000, 20_000);
    let mut company = program("company", "1", sweeper(B, 1 << 20));
    (company.measured, company.warmup, company.budget) = (false, 100, FOREVER);
    let outcome = go(vec![fast, company]);
    let [fast, company] = [0, 1].map(|p| outcome.programs[p].region);
    assert!(fast.refs >= 20_000 && !fast.ended_early);
    assert!(company.refs > 100 && company.ended_early, "{company:?}");
    assert!(company.time.0 > 0 && company.counters.instructions > company.refs);
}

#[test]
fn a_late_start_does_not_lengthen_the_measured_part() {
    let run = |start| {
        let mut p = program("a", "0", sweeper(A, 2048));
        (p.start, p.warmup) = (Picos(start), 1_000);
        time(&go(vec![p]), 0)
    };
    let ratio = run(50_000_000) / run(0);
    assert!((0.99..1.01).contains(&ratio), "{ratio}");
}

/// Zeroing a page takes about a microsecond. Were it done in one piece, a
/// co-runner's requests of that time would find memory busy until its end.
#[test]
fn another_program_s_page_faults_do_not_block_memory() {
    let chase = || {
        let mut p = program("chase", "0", sweeper(A, 1 << 20));
        (p.warmup, p.budget) = (20_000, 20_000);
        p
    };
    let mut faults = program("faults", "1", Script::new(vec![stores(B, 48 << 20, 1)]));
    (faults.warmup, faults.budget) = (1_000, 20_000);
    let alone = go(vec![chase()]);
    let both = go(vec![chase(), faults]);
    assert!(both.programs[1].region.faults > 300, "it faults");
    let latency = |o| time(o, 0) / 20_000.0;
    let (quiet, busy) = (latency(&alone), latency(&both));
    // About one more memory access for one that is in the way; a page that is
    // zeroed in one piece would add a thousand nanoseconds now and then.
    assert!(busy < quiet + 40_000.0, "{quiet} ps, {busy} ps");
    assert!(busy >= quiet * 0.99, "{quiet} ps, {busy} ps");
}

#[test]
fn the_set_map_counts_the_lines_of_each_owner() {
    let bench = Bench {
        map: Some(MapRequest {
            program: 0,
            samples: 10,
            buckets: 8,
        }),
        ..Bench::default()
    };
    let sweeps = |name, core, base| {
        let mut p = program(name, core, sweeper(base, 64 << 10));
        (p.warmup, p.budget) = (10_000, 20_000);
        p
    };
    let outcome = bench.run(vec![sweeps("a", "0", A), sweeps("b", "1", B)]);
    let map = outcome.expect("runs").map;
    assert!((10..=11).contains(&map.len()), "{}", map.len());
    assert!(map.is_sorted_by_key(|s| s.time));
    for sample in &map {
        assert_eq!(sample.lines.len(), 8);
        for bucket in &sample.lines {
            assert_eq!(bucket.len(), 3, "kernel, a, b");
            // 256 KiB in 8 parts.
            assert!(bucket.iter().sum::<u32>() <= 512, "{bucket:?}");
        }
    }
    let [first, last] = [map.first(), map.last()].map(|s| s.expect("samples"));
    for program in 0..2 {
        let of = |s: &piebald_sim::MapSample| s.instructions[program];
        assert!(map.is_sorted_by_key(of) && of(first) < of(last), "{map:?}");
    }
    let of = |owner: usize| last.lines.iter().map(|b| b[owner]).sum::<u32>();
    // Each has 1024 lines, which the kernel cleared and no other touched; they fit together,
    // but for conflicts. Page walks are the program's, the kernel's own data are the kernel's.
    assert!((900..=1024 + 16).contains(&of(1)), "{}", of(1));
    assert!((900..=1024 + 16).contains(&of(2)), "{}", of(2));
    assert!(of(0) >= 50, "{}", of(0));
}

/// A chain of loads to pages that no translation buffer holds: each walk begins
/// when its address is known, so that the time of a link is a walk and a load.
#[test]
fn walks_of_dependent_loads_do_not_pile_up() {
    let chain = |tlb| {
        let features = Features {
            tlb,
            ..Features::ALL
        };
        let bench = Bench {
            features,
            ..Bench::default()
        };
        // One line of each of 1040 pages, at different sets.
        let mut p = program("a", "0", strider(4096 + 64, 1040));
        (p.warmup, p.budget) = (4_000, 20_000);
        let outcome = bench.run(vec![p]).expect("runs");
        time(&outcome, 0) / 20_000.0
    };
    let (with, without) = (chain(true), chain(false));
    assert!(with > without, "{with} {without}");
    assert!(with < without + 300_000.0, "{with} {without}");
}
