//! Runs whose times begin after set-up, and measured parts that begin by time.

use crate::kit::{Bench, FOREVER, Script, Step, loads, program, stores};
use piebald_sim::{Course, Outcome, ProgramSetup, SimError, Stay};
use piebald_units::{Picos, op::Next};
use piebald_workload::memory::mark;

const A: u64 = 0x10_0000;
const B: u64 = 0x4000_0000;
const MICRO: u64 = 1_000_000;

fn micros(n: u64) -> Picos {
    Picos(n * MICRO)
}

fn run(course: Course, programs: Vec<ProgramSetup>) -> Result<Outcome, SimError> {
    let bench = Bench {
        course: Some(course),
        ..Bench::default()
    };
    bench.run(programs)
}

const READY: Step = Step::Do(Next::Mark(mark::READY));

/// A set-up of so many passes over 256 KiB, then loads from a small area.
fn prepares(name: &str, core: &str, base: u64, passes: u64) -> ProgramSetup {
    let then = loads(base + (1 << 20), 2048, FOREVER);
    let steps = vec![stores(base, 256 << 10, passes), READY, then];
    ProgramSetup {
        marks_ready: true,
        budget: FOREVER,
        ..program(name, core, Script::new(steps))
    }
}

fn after_setup(until: u64) -> Course {
    Course {
        until: micros(until),
        every: micros(10),
        after_setup: true,
        warmup: None,
    }
}

#[test]
fn times_begin_when_the_longest_set_up_is_over() {
    let mut late = prepares("late", "2", B, 0);
    late.stay.arrives = Some(micros(50));
    let mut plain = program("plain", "3", Script::new(vec![loads(A, 2048, FOREVER)]));
    plain.budget = FOREVER;
    let programs = vec![
        prepares("short", "0", A, 1),
        prepares("long", "1", A, 30),
        late,
        plain,
    ];
    let outcome = run(after_setup(100), programs).expect("runs");
    let times: Vec<u64> = outcome.timeline.iter().map(|s| s.time.0 / MICRO).collect();
    assert_eq!(times, (1..=10).map(|n| n * 10).collect::<Vec<u64>>());
    // No set-up is part of it: who has one, who had a short one and who has none hit alike.
    let first = &outcome.timeline[0];
    for program in [0, 1, 3] {
        let (refs, counters) = &first.programs[program];
        assert!(*refs > 500, "{program}: {first:?}");
        assert!(counters.level[2].misses < 300, "{program}: {first:?}");
    }
    assert_eq!(outcome.timeline[3].programs[2].0, 0, "it is not there yet");
    assert!(outcome.timeline[7].programs[2].0 > 0);
    // The short one did not go on while the long one prepared: as many references since.
    let refs = |p: usize| {
        outcome
            .timeline
            .iter()
            .map(|s| s.programs[p].0)
            .sum::<u64>()
    };
    let (short, long) = (refs(0), refs(1));
    assert!(short.abs_diff(long) < long / 20, "{short} {long}");
    let all: u64 = (0..4).map(refs).sum();
    // What was done before is the two set-ups, of 4096 lines a pass.
    let before = outcome.refs - all;
    assert!((31 * 4096..31 * 4096 + 1024).contains(&before), "{before}");
}

#[test]
fn without_set_ups_times_begin_at_once() {
    let script = || Script::new(vec![loads(A, 2048, FOREVER)]);
    let runs = |waits| {
        let course = Course {
            after_setup: waits,
            ..after_setup(50)
        };
        let programs = vec![program("a", "0", script()), program("b", "1", script())];
        run(course, programs).expect("runs").timeline
    };
    assert_eq!(runs(true), runs(false));
}

#[test]
fn measured_parts_begin_by_time_and_go_on_when_a_program_begins_anew() {
    let course = Course {
        warmup: Some(micros(40)),
        ..after_setup(100)
    };
    // It ends some times, before the warm-up is over too.
    let short = Script::new(vec![READY, loads(B, 2048, 50)]);
    let mut again = program("again", "1", short);
    (again.marks_ready, again.warmup, again.budget) = (true, 10, 10);
    let mut guest = prepares("guest", "2", B, 0);
    guest.stay = Stay {
        arrives: Some(micros(60)),
        leaves: Some(micros(80)),
        class: None,
        remembered: false,
    };
    let programs = vec![prepares("stays", "0", A, 2), again, guest];
    let outcome = run(course, programs).expect("runs");
    let time = |p: usize| outcome.programs[p].region.time;
    assert_eq!((time(0), time(1)), (micros(60), micros(60)));
    assert!(
        outcome.programs[1].restarts > 2,
        "{:?}",
        outcome.programs[1]
    );
    let from_40 = |p: usize| {
        let looks = outcome.timeline[4..].iter();
        looks.map(|s| s.programs[p].0).sum::<u64>()
    };
    for p in [0, 1] {
        let refs = outcome.programs[p].region.refs;
        assert!(refs.abs_diff(from_40(p)) <= 512, "{refs} {}", from_40(p));
        assert!(!outcome.programs[p].region.ended_early);
    }
    // A guest is measured while it is there.
    let guest = &outcome.programs[2].region;
    assert!(guest.refs > 0 && guest.ended_early);
    assert!(
        (19 * MICRO..22 * MICRO).contains(&guest.time.0),
        "{guest:?}"
    );
}
