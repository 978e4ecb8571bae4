//! Programs that HVR manages: classes, arrivals and departures, jobs that take time.

use crate::kit::{Bench, FOREVER, Script, loads, program, stores, sys};
use piebald_os_model::kernel::{Observed, SysMonConfig, What};
use piebald_policy::hvr::{Class, Config, Framework, Policy};
use piebald_sim::{Course, Outcome, ProgramSetup, SimError, Stay};
use piebald_units::{
    Picos,
    op::{SpawnKind, SysOp},
};

const A: u64 = 0x10_0000;
const B: u64 = 0x4000_0000;
const MICRO: u64 = 1_000_000;

fn bench(config: Config) -> Bench {
    Bench {
        hvr: Some((config, None)),
        ..Bench::default()
    }
}

fn micros(n: u64) -> Picos {
    Picos(n * MICRO)
}

/// Loads every line of an area, over and over.
fn sweep(name: &str, core: &str, base: u64, bytes: u64, class: Option<Class>) -> ProgramSetup {
    ProgramSetup {
        stay: Stay {
            class,
            ..Stay::default()
        },
        ..program(name, core, Script::new(vec![loads(base, bytes, FOREVER)]))
    }
}

fn misses(outcome: &Outcome, program: usize) -> f64 {
    let region = &outcome.programs[program].region;
    region.counters.level[2].misses as f64 / region.refs as f64
}

#[test]
fn who_would_sweep_the_cache_gets_a_part_of_it() {
    // The L3 is 256 KiB, of which three quarters are left.
    let mix = || {
        let mut mine = sweep("mine", "0", A, 160 << 10, Some(Class::Llch));
        (mine.warmup, mine.budget) = (60_000, 60_000);
        let fast = Script::new(vec![stores(B, 4 << 20, FOREVER)]);
        let mut other = program("other", "1", fast);
        other.stay.class = Some(Class::Llct);
        vec![mine, other]
    };
    let shared = Config {
        framework: Framework::Fixed(Policy::Random),
        ..Config::PAPER
    };
    let shared = bench(shared).run(mix()).expect("runs");
    let parted = bench(Config::PAPER).run(mix()).expect("runs");
    assert_eq!(parted.hvr.last().expect("an event").policy, Policy::CurveVp);
    let (before, after) = (misses(&shared, 0), misses(&parted, 0));
    assert!(after < 0.5 * before, "{before} {after}");
    // And does not need more.
    let (before, after) = (misses(&shared, 1), misses(&parted, 1));
    assert!((after - before).abs() < 0.05, "{before} {after}");
}

#[test]
fn programs_come_and_go_by_the_clock() {
    let mut bench = bench(Config::PAPER);
    bench.course = Some(Course {
        until: micros(1000),
        every: micros(100),
        ..Course::default()
    });
    let first = sweep("first", "0", A, 96 << 10, Some(Class::Llch));
    let mut guest = sweep("guest", "1", B, 1 << 20, Some(Class::Llct));
    (guest.stay.arrives, guest.stay.leaves) = (Some(micros(250)), Some(micros(650)));
    let outcome = bench.run(vec![first, guest]).expect("runs");
    let events: Vec<_> = outcome.hvr.iter().map(|e| (e.program, e.what)).collect();
    let expected = [(1, What::Arrived), (2, What::Arrived), (2, What::Left)];
    assert_eq!(events, expected);
    let at: Vec<u64> = outcome.hvr.iter().map(|e| e.time.0 / MICRO).collect();
    assert_eq!(at[0], 0);
    // A core's clock is that of its next request, which may be ahead of what it does before.
    assert!(
        (250..260).contains(&at[1]) && (640..660).contains(&at[2]),
        "{at:?}"
    );
    // Where the guest is, the first has lost colours, and gets them back.
    let of_first: Vec<u32> = outcome.hvr.iter().map(|e| e.programs[0].2.len()).collect();
    assert!(
        of_first[1] < of_first[0] && of_first[2] == of_first[0],
        "{of_first:?}"
    );
    let times: Vec<u64> = outcome.timeline.iter().map(|s| s.time.0 / MICRO).collect();
    assert_eq!(times, (1..=10).map(|n| n * 100).collect::<Vec<u64>>());
    let refs: Vec<u64> = outcome.timeline.iter().map(|s| s.programs[1].0).collect();
    assert!(refs[..2].iter().all(|n| *n == 0), "{refs:?}");
    assert!(refs[2..6].iter().all(|n| *n > 0), "{refs:?}");
    assert!(refs[7..].iter().all(|n| *n == 0), "{refs:?}");
    // It does not come back.
    assert_eq!(outcome.programs[1].restarts, 0);
    let total: u64 = outcome.timeline.iter().map(|s| s.programs[0].0).sum();
    assert!(total > 0 && outcome.timeline.iter().all(|s| s.programs[0].0 > 0));
    // What was counted of a look is not counted again.
    let instructions = |s: &piebald_sim::TimeSample| s.programs[0].1.instructions;
    assert!(
        outcome
            .timeline
            .iter()
            .all(|s| instructions(s) >= s.programs[0].0)
    );
}

/// Programs that need 5 us for a page are watched for 15 ms.
fn watches(time_scale: u32) -> Bench {
    let mut config = Config::PAPER;
    config.monitor.hot_window = micros(100);
    config.monitor.thresholds.ccf_pages = 10;
    config.monitor.passes = 20;
    config.monitor.bounds = [2, 6, 10, 15];
    let sysmon = SysMonConfig {
        time_scale,
        ..SysMonConfig::default()
    };
    Bench {
        hvr: Some((config, Some(sysmon))),
        course: Some(Course {
            until: micros(15_000),
            every: micros(1000),
            ..Course::default()
        }),
        ..Bench::default()
    }
}

#[test]
fn a_program_that_begins_again_is_a_new_one_unless_it_is_remembered() {
    let starts = |remembered| {
        let bench = watches(10_000);
        // It ends after some 9 ms, when three windows of 2 ms are over.
        let short = loads(A, 32 << 10, 1200);
        let mut small = program("small", "0", Script::new(vec![short]));
        small.stay.remembered = remembered;
        let large = sweep("large", "1", B, 256 << 10, None);
        let outcome = bench.run(vec![small, large]).expect("runs");
        assert!(outcome.programs[0].restarts > 0);
        let starts = outcome.hvr.iter().filter(|e| e.program == 1);
        let starts: Vec<_> = starts.filter(|e| e.what == What::Arrived).collect();
        let class = starts.iter().map(|e| {
            let mine = e.programs.iter().find(|p| p.0 == 1);
            mine.and_then(|p| p.1)
        });
        // It is watched on.
        let mut watched = outcome.observations.iter();
        assert!(watched.any(|o| o.program == 1 && o.time > starts[1].time));
        class.collect::<Vec<_>>()
    };
    let new = starts(false);
    assert!(new.iter().all(Option::is_none), "{new:?}");
    let known = starts(true);
    assert_eq!(known[0], None);
    let later = &known[1..];
    assert!(later.iter().all(|c| *c == Some(Class::Ccf)), "{known:?}");
}

#[test]
fn classes_are_found_while_programs_run_and_looking_takes_time() {
    let run = |time_scale| {
        let bench = watches(time_scale);
        let small = sweep("small", "0", A, 32 << 10, None);
        let large = sweep("large", "1", B, 256 << 10, None);
        bench.run(vec![small, large]).expect("runs")
    };
    // Windows every 300 us.
    let outcome = run(10_000);
    let classes: Vec<_> = outcome.hvr.iter().map(|e| (e.program, e.what)).collect();
    assert!(
        classes.contains(&(1, What::Class(Class::Ccf))),
        "{classes:?}"
    );
    assert!(
        classes.contains(&(2, What::Class(Class::Llct))),
        "{classes:?}"
    );
    let hot = |program| {
        let mine = outcome.observations.iter().filter(|o| o.program == program);
        let hot = mine.filter_map(|o| match o.observed {
            Observed::Hot(n) => Some(n),
            Observed::Window(_) => None,
        });
        hot.collect::<Vec<u32>>()
    };
    // The small one goes through its eight pages in a window; its page tables are no pages.
    assert!(hot(1).iter().skip(1).all(|n| *n == 8), "{:?}", hot(1));
    assert!(outcome.sample_time > Picos(0));
    let rarer = run(1000);
    assert!(rarer.sample_time < outcome.sample_time);
    let never = run(1);
    assert_eq!(never.sample_time, Picos(0));
    assert_eq!(never.observations, []);
}

#[test]
fn a_program_of_several_threads_cannot_leave() {
    let mut bench = bench(Config::PAPER);
    bench.course = Some(Course {
        until: micros(500),
        every: micros(100),
        ..Course::default()
    });
    let spawn = sys(SysOp::Spawn {
        thread: 1,
        kind: SpawnKind::Thread,
    });
    let script = Script::threads(vec![
        vec![spawn, loads(A, 64 << 10, FOREVER)],
        vec![loads(B, 64 << 10, FOREVER)],
    ]);
    let mut pair = program("pair", "0-1", script);
    pair.stay.leaves = Some(micros(200));
    let error = bench.run(vec![pair]).expect_err("two threads");
    assert!(
        matches!(error, SimError::Leaves { threads: 2, .. }),
        "{error}"
    );
}

#[test]
fn looks_that_follow_one_another_too_soon_are_refused() {
    let mut bench = bench(Config::PAPER);
    bench.course = Some(Course {
        until: micros(500),
        every: Picos(10),
        ..Course::default()
    });
    let error = bench.run(vec![sweep("a", "0", A, 64 << 10, None)]);
    let text = error.expect_err("10 ps").to_string();
    assert!(text.contains("every 10 ps; allowed: 1 us"), "{text}");
}
