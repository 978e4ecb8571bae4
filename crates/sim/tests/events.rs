//! Threads, processes, and what can go wrong in a run.

use crate::kit;
use std::sync::{Arc, atomic::AtomicBool};

use crate::kit::{
    Bench, FOREVER, Script, Step, fails, go, loads, post, program, stores, sys, wait_for,
};
use piebald_os_model::kernel::KernelError;
use piebald_sim::{ProgramSetup, SimError};
use piebald_units::{
    CoreSet,
    op::{Next, OpSource, SpawnKind, SysOp},
};
use piebald_workload::{Program, ProgramError};

const A: u64 = 0x10_0000;
const B: u64 = 0x4000_0000;

fn spawn(thread: u32, kind: SpawnKind) -> Step {
    sys(SysOp::Spawn { thread, kind })
}

fn exit() -> Step {
    Step::Do(Next::Exit(0))
}

/// Measures all of a program that ends.
fn whole(name: &str, cores: &str, script: Script) -> ProgramSetup {
    ProgramSetup {
        budget: FOREVER,
        ..program(name, cores, script)
    }
}

/// Main works and posts; its thread waits for that and works.
fn pair(first: u64) -> Script {
    Script::threads(vec![
        vec![
            loads(A, 1024, 1),
            spawn(1, SpawnKind::Thread),
            loads(A, 1024, first),
            post(7),
            loads(A, 1024, 1),
        ],
        vec![loads(B, 1024, 10), wait_for(7), loads(B, 1024, 10)],
    ])
}

#[test]
fn threads_wait_for_what_comes_later_or_has_come() {
    for cores in ["0", "0-1", "2-3"] {
        // The post comes long after the wait, or long before it.
        for first in [1, 2_000] {
            let outcome = go(vec![whole("pair", cores, pair(first))]);
            let refs = outcome.programs[0].region.refs;
            let all = 16 * (2 + first + 20);
            // Warm-up is 0 references, so that the part begins after the first.
            assert!(
                (all.saturating_sub(512)..=all).contains(&refs),
                "{cores} {first}: {refs}"
            );
            assert!(outcome.programs[0].region.ended_early);
            assert_eq!(outcome.refs, all);
        }
    }
}

#[test]
fn a_wait_costs_the_time_until_the_post() {
    let time = |first| {
        let o = go(vec![whole("pair", "0-1", pair(first))]);
        o.programs[0].region.time.0
    };
    assert!(time(4_000) > time(2_000));
}

#[test]
fn two_threads_work_at_the_same_time() {
    let both = || {
        Script::threads(vec![
            vec![
                loads(A, 64, 1),
                spawn(1, SpawnKind::Thread),
                loads(A, 1024, 4_000),
            ],
            vec![loads(B, 1024, 4_000)],
        ])
    };
    let time = |cores| {
        let o = go(vec![whole("both", cores, both())]);
        o.programs[0].region.time.0 as f64
    };
    let speedup = time("0") / time("0-1");
    assert!((1.6..2.2).contains(&speedup), "{speedup}");
}

fn crossed() -> Script {
    Script::threads(vec![
        vec![
            loads(A, 1024, 100),
            spawn(1, SpawnKind::Thread),
            wait_for(1),
            post(2),
        ],
        vec![loads(B, 1024, 100), wait_for(2), post(1)],
    ])
}

fn assert_deadlock(error: SimError, name: &str) {
    match error {
        SimError::Deadlock { program, event } => {
            assert_eq!(program, name);
            assert!([1, 2].contains(&event), "{event}");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn threads_that_wait_for_one_another_are_a_deadlock() {
    for cores in ["0", "0-1"] {
        let error = fails(vec![whole("crossed", cores, crossed())]);
        let text = error.to_string();
        assert!(
            text.contains("deadlock") && text.contains("\"crossed\""),
            "{text}"
        );
        assert_deadlock(error, "crossed");
    }
}

#[test]
fn a_deadlock_shows_although_another_program_runs_on() {
    for cores in ["1", "1-2"] {
        let endless = program("endless", "0", Script::new(vec![loads(A, 1024, FOREVER)]));
        assert_deadlock(
            fails(vec![endless, whole("crossed", cores, crossed())]),
            "crossed",
        );
    }
}

#[test]
fn a_wait_for_what_the_last_other_thread_left_out_is_a_deadlock() {
    let abandoned = Script::threads(vec![
        vec![loads(A, 1024, 10), spawn(1, SpawnKind::Thread), wait_for(2)],
        vec![loads(B, 1024, 1_000), exit()],
    ]);
    let endless = program("endless", "0", Script::new(vec![loads(A, 1024, FOREVER)]));
    assert_deadlock(
        fails(vec![endless, whole("left", "1-2", abandoned)]),
        "left",
    );
}

#[test]
fn events_of_two_instances_are_not_confused() {
    // The second life waits again, though its first life has posted.
    let mut long = program("long", "0", Script::new(vec![loads(A, 1024, FOREVER)]));
    long.budget = 200_000;
    let outcome = go(vec![long, whole("pair", "1-2", pair(5))]);
    assert!(outcome.programs[1].restarts > 2);
}

#[test]
fn a_forked_process_copies_what_it_stores_to() {
    const PAGES: u64 = 8;
    let forks = |child: Step| {
        Script::threads(vec![
            vec![
                stores(A, PAGES * 4096, 1),
                spawn(1, SpawnKind::Fork),
                wait_for(1),
            ],
            vec![child, post(1)],
        ])
    };
    let counts = |child| {
        let o = go(vec![whole("forks", "0-1", forks(child))]);
        (o.kernel, o.programs[0].region)
    };
    let (kernel, region) = counts(stores(A, PAGES * 4096, 1));
    assert_eq!((kernel.forks, kernel.cow_copies), (1, PAGES));
    assert!(region.faults >= PAGES);
    let (kernel, _) = counts(loads(A, PAGES * 4096, 1));
    assert_eq!((kernel.forks, kernel.cow_copies), (1, 0));
}

#[test]
fn memory_that_runs_out_names_the_program() {
    // 32 MiB, of which the kernel takes 16 and more.
    let bench = Bench {
        frames: 8 << 10,
        ..Bench::default()
    };
    let small = program("small", "0", Script::new(vec![loads(A, 2048, FOREVER)]));
    let greedy = whole("greedy", "1", Script::new(vec![stores(B, 32 << 20, 1)]));
    let mut small = small;
    small.budget = FOREVER;
    let error = bench.run(vec![small, greedy]).expect_err("fails");
    let text = error.to_string();
    assert!(text.contains("\"greedy\""), "{text}");
    // The message says which owners hold the frames.
    for part in [
        "; of its 8192 frames ",
        " hold its own memory",
        " the kernel",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    match error {
        SimError::Kernel { program, error } => {
            assert_eq!(program, "greedy");
            assert!(matches!(error, KernelError::OutOfMemory(_)), "{error}");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_program_that_ends_in_its_warm_up_is_too_short() {
    let mut p = program("brief", "0", Script::new(vec![loads(A, 1024, 10)]));
    p.warmup = 1_000;
    match fails(vec![p]) {
        SimError::TooShort { program, refs } => {
            assert_eq!((program.as_str(), refs), ("brief", 160));
        }
        other => panic!("{other}"),
    }
}

#[test]
fn one_that_never_gets_ready_is_too_short() {
    let mut p = program("unready", "0", Script::new(vec![loads(A, 1024, 100)]));
    p.marks_ready = true;
    assert!(matches!(fails(vec![p]), SimError::TooShort { .. }));
}

#[test]
fn a_stop_ends_a_run() {
    let stop = AtomicBool::new(true);
    let spec = kit::machine();
    let mut p = program("a", "0", Script::new(vec![loads(A, 1 << 20, FOREVER)]));
    p.budget = FOREVER;
    let frames = piebald_os_model::frames::RandomFrames::new(32 << 10, 1).expect("frames");
    let config = piebald_os_model::kernel::KernelConfig::new(4);
    let result = piebald_sim::run(piebald_sim::Setup {
        machine: &spec,
        options: piebald_hw::Options::default(),
        kernel: piebald_os_model::kernel::Kernel::new(config, Box::new(frames)).expect("kernel"),
        programs: vec![p],
        threads: piebald_sim::Threads::default(),
        map: None,
        fill: false,
        curve: None,
        course: None,
        quantum: piebald_units::Picos(1_000_000),
        skew: piebald_units::Picos(50_000),
        stop: Some(&stop),
        progress: None,
    });
    assert!(matches!(result, Err(SimError::Stopped)));
}

#[test]
fn cores_that_the_machine_lacks_are_refused() {
    for cores in [
        CoreSet::EMPTY,
        "4".parse().expect("cores"),
        "0,63".parse().expect("cores"),
    ] {
        let mut p = program("far", "0", Script::new(vec![loads(A, 1024, 10)]));
        p.cores = cores;
        let text = fails(vec![p]).to_string();
        for part in ["\"far\"", "cores", "0-3"] {
            assert!(text.contains(part), "{text}");
        }
    }
}

#[test]
fn an_input_that_breaks_off_says_where() {
    let broken = Script::new(vec![loads(A, 1024, 10), Step::Do(Next::Broken)]);
    let text = fails(vec![whole("torn", "0", broken)]).to_string();
    assert!(
        text.contains("\"torn\"") && text.contains("offset 17"),
        "{text}"
    );
}

#[test]
fn a_cut_input_ends_like_an_exit() {
    let cut = Script::new(vec![loads(A, 1024, 10), Step::Do(Next::End)]);
    assert!(
        go(vec![whole("cut", "0", cut)]).programs[0]
            .region
            .ended_early
    );
}

#[test]
fn a_thread_that_the_program_lacks_is_an_error() {
    let lacks = Script::new(vec![loads(A, 1024, 10), spawn(5, SpawnKind::Thread)]);
    let text = fails(vec![whole("lacks", "0", lacks)]).to_string();
    assert!(
        text.contains("\"lacks\"") && text.contains("no thread 5"),
        "{text}"
    );
}

struct Unreadable;

impl Program for Unreadable {
    fn name(&self) -> &str {
        "unreadable"
    }

    fn threads(&self) -> u32 {
        1
    }

    fn open(&self, _: u32) -> Result<Box<dyn OpSource>, ProgramError> {
        Err(ProgramError::Unreadable {
            name: "unreadable".to_owned(),
            problem: "chunk 3: checksum".to_owned(),
        })
    }
}

#[test]
fn an_input_that_cannot_be_opened_is_an_error() {
    let mut p = program("shut", "0", Script::default());
    p.input = Arc::new(Unreadable);
    let text = fails(vec![p]).to_string();
    assert!(
        text.contains("\"shut\"") && text.contains("chunk 3"),
        "{text}"
    );
}

#[test]
fn a_run_without_programs_is_empty() {
    assert!(go(Vec::new()).programs.is_empty());
}

#[test]
fn marks_of_each_thread_end_with_the_first_that_is_through() {
    // One thread stays in its first level, the other goes through memory.
    let uneven = || {
        Script::threads(vec![
            vec![spawn(1, SpawnKind::Thread), loads(A, 1024, 1_000)],
            vec![loads(B, 512 << 10, 2)],
        ])
    };
    let region = |each| {
        let setup = ProgramSetup {
            warmup: 1_000,
            budget: 8_000,
            each,
            ..program("uneven", "0-1", uneven())
        };
        go(vec![setup]).programs[0].region
    };
    let (each, all) = (region(true), region(false));
    assert!(!each.ended_early && !all.ended_early);
    assert_eq!(all.refs, 8_000);
    // The fast one makes all of its 8,000, the slow one some.
    assert!((8_001..16_000).contains(&each.refs), "{}", each.refs);
    assert!(each.time > all.time);
}
