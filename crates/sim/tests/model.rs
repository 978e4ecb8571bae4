//! The model as a host: kernels by what is asked for, and outcomes that a store keeps.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use piebald_hw::{Features, presets, spec::MachineSpec};
use piebald_os_model::kernel::{Actions, Fault, Kernel};
use piebald_policy::color_map::{BitClass, ColorMap};
use piebald_sim::{
    Boot, Case, CaseError, ColorSetup, Course, CurveRequest, FrameRule, Model, Outcome,
    ProgramSetup, SimError, Stay, Watch,
};
use piebald_store::Store;
use piebald_trace::recording::ReplayOptions;
use piebald_units::{
    Bytes, CoreId, CoreSet, Pfn, Picos, VirtAddr,
    memory::PhysRef,
    op::{MemRef, RefKind},
};
use piebald_workload::{Builtin, Library, Program};
use serde::Serialize;

fn machine() -> MachineSpec {
    let mut machine = presets::load("w3540").expect("the preset");
    machine.memory.size = Bytes(192 << 20);
    machine
}

fn map() -> ColorMap {
    let bits: Vec<(u64, BitClass)> = (3..7).map(|bit| (1 << bit, BitClass::Cache)).collect();
    ColorMap::from_masks(&bits).expect("four bits")
}

fn rules() -> Vec<FrameRule> {
    vec![
        FrameRule::Stock,
        FrameRule::Random(3),
        FrameRule::BinHopping(16),
        FrameRule::PageColoring(map()),
        FrameRule::Owned(map()),
    ]
}

/// Frames that a program gets for its first pages, those of its end given back.
fn frames(mut kernel: Kernel) -> Vec<Pfn> {
    let mut got = Vec::new();
    let mut actions = Actions::new();
    for _ in 0..2 {
        let task = kernel.start(1).expect("starts");
        for page in 0..500 {
            let r = MemRef {
                addr: VirtAddr(0x10_0000 + page * 4096),
                kind: RefKind::Store,
                size: 8,
                ..MemRef::default()
            };
            let mut out: Vec<PhysRef> = Vec::new();
            let fault: Option<Fault> = kernel
                .translate(task, &[r], &mut out)
                .expect("translates")
                .fault;
            if let Some(fault) = fault {
                kernel
                    .fault(task, CoreId(1), fault, &mut actions)
                    .expect("a frame");
                kernel.translate(task, &[r], &mut out).expect("translates");
            }
            got.extend(out.iter().map(|p| Pfn(u64::from(p.frame))));
        }
        kernel.exit(task, CoreId(1), &mut actions).expect("ends");
    }
    kernel.validate().expect("the books are right");
    got
}

#[test]
fn who_shares_a_history_gets_the_frames_that_it_would_get_with_its_own() {
    let (machine, model) = (machine(), Model::keeping(20));
    for rule in rules() {
        for thp in [false, true] {
            let boot = |seed| Boot {
                thp,
                ..Boot::new(rule.clone(), Some(seed))
            };
            let own = |seed| {
                frames(
                    Model::keeping(0)
                        .boot(&machine, &boot(seed))
                        .expect("boots"),
                )
            };
            let shared = |seed| frames(model.boot(&machine, &boot(seed)).expect("boots"));
            let first = own(1);
            assert!(first.len() >= 1000, "{rule:?}");
            assert_eq!(
                [shared(1), shared(1), shared(1)],
                [&first; 3].map(Clone::clone)
            );
            assert_ne!(shared(2), first, "{rule:?}");
            assert_eq!(shared(2), own(2), "{rule:?}");
        }
    }
    // Memory of another size, or none that is aged, is another history.
    let boot = Boot::new(FrameRule::Stock, Some(1));
    let mut larger = machine.clone();
    larger.memory.size = Bytes(256 << 20);
    let frames_of =
        |machine: &MachineSpec, boot: &Boot| frames(model.boot(machine, boot).expect("boots"));
    let smaller = Boot {
        memory: Some(machine.memory.size),
        ..boot.clone()
    };
    assert_ne!(frames_of(&larger, &boot), frames_of(&machine, &boot));
    assert_eq!(frames_of(&larger, &smaller), frames_of(&machine, &boot));
    let fresh = Boot::new(FrameRule::Stock, None);
    assert_ne!(frames_of(&machine, &fresh), frames_of(&machine, &boot));
}

#[test]
fn a_kernel_that_cannot_be_is_told_every_time() {
    let (mut machine, model) = (machine(), Model::keeping(2));
    machine.memory.size = Bytes(1 << 20);
    for _ in 0..2 {
        let boot = Boot::new(FrameRule::Stock, Some(1));
        assert!(model.boot(&machine, &boot).is_err());
    }
}

#[test]
fn colors_that_are_held_are_nobody_elses() {
    let (machine, model) = (machine(), Model::keeping(1));
    let held = "0-7".parse().expect("colors");
    let boot = Boot {
        held: vec![held],
        ..Boot::new(FrameRule::Owned(map()), Some(1))
    };
    let map = map();
    let colors = frames(model.boot(&machine, &boot).expect("boots"));
    assert!(colors.iter().all(|frame| map.color(*frame).0 >= 8));
    let free = Boot::new(FrameRule::Owned(map.clone()), Some(1));
    let colors = frames(model.boot(&machine, &free).expect("boots"));
    assert!(colors.iter().any(|frame| map.color(*frame).0 < 8));
}

/// The first references of a program.
fn input(seed: u64, refs: u64) -> Arc<dyn Program> {
    let builtin = Builtin::parse("gups:256KiB").expect("a program");
    let options = ReplayOptions::default();
    let input = Library::new().program(&builtin, seed, refs, options);
    Arc::new(input.expect("it runs"))
}

fn program(seed: u64) -> ProgramSetup {
    ProgramSetup {
        name: "gups".to_owned(),
        input: input(seed, 40_000),
        cores: CoreSet::first(1),
        colors: ColorSetup::default(),
        stay: Stay::default(),
        start: Picos(0),
        waits: false,
        measured: true,
        skip: 0,
        prime: 0,
        marks_ready: true,
        warmup: 1000,
        budget: 10_000,
        each: false,
    }
}

fn case() -> Case {
    let boot = Boot::new(FrameRule::Owned(map()), Some(1));
    Case {
        fill: true,
        ..Case::new(&machine(), boot, vec![program(1)], 7)
    }
}

fn run(model: &Model, case: &Case) -> Outcome {
    model.run(case, Watch::default()).expect("it runs")
}

#[test]
fn an_outcome_comes_back_from_a_store_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || Arc::new(Store::open(folder.path(), "e").expect("a store"));
    let without = run(&Model::keeping(1), &case());
    let rich = Case {
        curve: Some(CurveRequest {
            program: 0,
            colors: (3..7).map(|bit| 1 << bit).collect(),
            sample_shift: 0,
        }),
        course: Some(Course {
            until: Picos(200_000_000),
            every: Picos(20_000_000),
            ..Course::default()
        }),
        ..case()
    };
    let rich_without = run(&Model::keeping(1), &rich);
    assert!(!rich_without.timeline.is_empty());
    for round in 0..2 {
        let store = open();
        let model = Model::keeping(1).with_store(Some(store.clone()));
        assert_eq!(run(&model, &case()), without);
        assert_eq!(run(&model, &rich), rich_without);
        let tally = store.tally();
        assert_eq!((tally.found, tally.kept), ([0, 2][round], [2, 0][round]));
    }
}

#[test]
fn whatever_changes_is_another_case() {
    let mut all = vec![case()];
    let mut add = |change: &dyn Fn(&mut Case)| {
        let mut other = case();
        change(&mut other);
        all.push(other);
    };
    add(&|c| c.machine.cache[0].ways *= 2);
    add(&|c| c.features = Features::NONE);
    add(&|c| c.disabled_controllers = vec![0]);
    add(&|c| c.seed += 1);
    add(&|c| c.boot.aged = Some(2));
    add(&|c| c.boot.aged = None);
    add(&|c| c.boot.thp = true);
    add(&|c| c.boot.frames = FrameRule::Stock);
    add(&|c| c.boot.held = vec!["3".parse().expect("a color")]);
    add(&|c| c.boot.tick = Some(Picos(1)));
    add(&|c| c.boot.memory = Some(Bytes(128 << 20)));
    add(&|c| c.threads.balance = true);
    add(&|c| c.before = vec![program(1)]);
    add(&|c| c.programs.push(program(1)));
    add(&|c| c.programs = vec![program(2)]);
    add(&|c| c.programs[0].cores = CoreSet::first(2));
    add(&|c| c.programs[0].start = Picos(1));
    add(&|c| c.programs[0].skip = 1);
    add(&|c| c.programs[0].budget += 1);
    add(&|c| c.programs[0].measured = false);
    add(&|c| c.fill = false);
    add(&|c| c.course = Some(Course::default()));
    let mut keys: Vec<String> = all.iter().filter_map(Case::identity).collect();
    assert_eq!(keys.len(), all.len());
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), all.len());
    // A name is only for messages.
    let mut renamed = case();
    renamed.programs[0].name = "other".to_owned();
    assert_eq!(renamed.identity(), case().identity());
}

/// What a store holds of a case.
#[derive(Serialize)]
enum Kept {
    Outcome(Outcome),
}

/// Of 64 keys one is checked: a wrong outcome under it is found out.
#[test]
fn a_found_outcome_that_is_wrong_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Arc::new(Store::open(folder.path(), "e").expect("a store"));
    let model = Model::keeping(1).with_store(Some(store.clone()));
    let sampled = (0..2000u64)
        .map(|seed| Case { seed, ..case() })
        .find(|case| {
            let text = case.identity().expect("it is known");
            store.key(&text).is_one_in(64)
        });
    let sampled = sampled.expect("one of two thousand");
    let right = run(&model, &sampled);
    assert_eq!(run(&model, &sampled), right);
    assert_eq!(store.tally().checked, 1);
    let mut wrong = right;
    wrong.programs[0].region.refs += 1;
    let text = sampled.identity().expect("known");
    store.put(&text, &Kept::Outcome(wrong), Duration::ZERO);
    let refused = model.run(&sampled, Watch::default());
    assert!(matches!(refused, Err(CaseError::Differs(_))), "{refused:?}");
}

#[test]
fn that_a_run_fails_is_known_to_those_who_only_look() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut failing = case();
    // It ends before.
    failing.programs[0].warmup = 1 << 40;
    let look = || Model::keeping(1).with_store(Some(Arc::new(Store::to_look(folder.path(), "e"))));
    let store = Arc::new(Store::open(folder.path(), "e").expect("a store"));
    let model = Model::keeping(1).with_store(Some(store.clone()));
    let why = |model: &Model| model.run(&failing, Watch::default()).expect_err("it fails");
    assert!(matches!(why(&look()), CaseError::NotKept));
    let first = why(&model);
    assert!(
        matches!(first, CaseError::Run(SimError::TooShort { .. })),
        "{first:?}"
    );
    let known = why(&look());
    assert!(matches!(known, CaseError::Failed(_)), "{known:?}");
    assert_eq!(known.to_string(), first.to_string());
    // A model that runs cases runs it again, and says what failed.
    assert!(matches!(
        why(&model),
        CaseError::Run(SimError::TooShort { .. })
    ));
    assert_eq!(store.tally().found, 0);
    // A run that was stopped is none that fails.
    let stop = AtomicBool::new(true);
    let watch = Watch {
        stop: Some(&stop),
        ..Watch::default()
    };
    let mut other = case();
    other.programs[0].input = input(1, 4_000_000);
    other.programs[0].budget = 4_000_000;
    let stopped = model.run(&other, watch);
    assert!(
        matches!(stopped, Err(CaseError::Run(SimError::Stopped))),
        "{stopped:?}"
    );
    let missing = look().run(&other, Watch::default());
    assert!(matches!(missing, Err(CaseError::NotKept)), "{missing:?}");
}

#[test]
fn a_model_whose_store_is_to_look_only_runs_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let look = || Arc::new(Store::to_look(folder.path(), "e"));
    let looking = Model::keeping(1).with_store(Some(look()));
    assert!(looking.only_looks());
    let found = looking.run(&case(), Watch::default());
    assert!(matches!(found, Err(CaseError::NotKept)), "{found:?}");
    let store = Arc::new(Store::open(folder.path(), "e").expect("a store"));
    let model = Model::keeping(1).with_store(Some(store));
    assert!(!model.only_looks());
    let outcome = run(&model, &case());
    let store = look();
    let looking = Model::keeping(1).with_store(Some(store.clone()));
    assert_eq!(run(&looking, &case()), outcome);
    // What somebody foresees takes no outcome away.
    model.keep_failure(&case(), &"foreseen");
    assert_eq!(run(&model, &case()), outcome);
    let looked = store.looked();
    assert!(looked.len() == 1 && looked[0].seconds.is_some_and(|s| s > 0.0));
}
