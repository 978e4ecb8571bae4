//! HVR in the modelled kernel: programs come, go and are classified by their access bits, and
//! their pages follow when they are touched.

use piebald_os_model::{
    frames::{ColorMap, Colored, ColoredConfig},
    kernel::{
        Action, Actions, ColorConfig, FaultKind, Kernel, KernelConfig, KernelError, Known,
        Observed, SysMonConfig, SysWork, What,
    },
};
use piebald_policy::{
    color_map::BitClass,
    contract::Mode,
    hvr::{self, Class, Policy, Rule, Watched},
    rainbow,
};
use piebald_units::ColorAsk;
use piebald_units::{
    Color, ColorSet, CoreId, Picos, TaskId, VirtAddr, Vpn,
    op::{MemRef, RefKind, SpawnKind, SysOp},
};

const CORE: CoreId = CoreId(0);
const FRAMES: u64 = 1 << 15;
const BASE: u64 = 0x100;
const MICRO: u64 = 1_000_000;

/// The 32 colours of x-Buddy: address bits 14 and 15 (O), 16 (C), 21 and 22 (B).
fn x_buddy() -> ColorMap {
    let bits = [
        (2, BitClass::Both),
        (3, BitClass::Both),
        (4, BitClass::Cache),
        (9, BitClass::Bank),
        (10, BitClass::Bank),
    ];
    ColorMap::from_masks(&bits.map(|(bit, class)| (1 << bit, class))).unwrap()
}

fn kernel(config: hvr::Config) -> Kernel {
    let map = x_buddy();
    let config = KernelConfig {
        image_pages: 64,
        zero_page: false,
        colors: Some(ColorConfig {
            map: map.clone(),
            rainbow: rainbow::Config::PAPER,
            hvr: Some(config),
        }),
        ..KernelConfig::new(2)
    };
    let frames = ColoredConfig {
        core_frames: 64,
        batch: 16,
        ..ColoredConfig::new(FRAMES, 2, map)
    };
    Kernel::new(config, Box::new(Colored::new(&frames).unwrap())).unwrap()
}

fn start(k: &mut Kernel, program: u16, known: Option<Class>) -> TaskId {
    let t = k.start(program).unwrap();
    let known = known.map_or(Known::Nothing, Known::Class);
    k.manage(t, CORE, known, &mut Actions::new()).unwrap();
    t
}

/// A store to a page: its frame, what its faults were, and what they cost.
fn touch(k: &mut Kernel, t: TaskId, page: u64) -> (u32, Vec<FaultKind>, Actions) {
    let r = MemRef {
        addr: VirtAddr((BASE + page) << 12),
        size: 8,
        kind: RefKind::Store,
        ..MemRef::default()
    };
    let (mut out, mut found, mut actions) = (Vec::new(), Vec::new(), Actions::new());
    while let Some(fault) = k.translate(t, &[r], &mut out).unwrap().fault {
        found.push(k.fault(t, CORE, fault, &mut actions).unwrap().kind);
    }
    (out[0].frame, found, actions)
}

fn color(frame: u32) -> Color {
    x_buddy().color(piebald_units::Pfn(frame.into()))
}

fn colors(k: &Kernel, t: TaskId) -> ColorSet {
    k.colors_of(t).unwrap().unwrap().clone()
}

fn exit(k: &mut Kernel, t: TaskId) {
    k.exit(t, CORE, &mut Actions::new()).unwrap();
}

fn spawn(k: &mut Kernel, t: TaskId, kind: SpawnKind) -> TaskId {
    let op = SysOp::Spawn { thread: 1, kind };
    match k.syscall(t, CORE, &op, &mut Actions::new()).unwrap() {
        SysWork::Spawned { task, .. } => task,
        other => panic!("{other:?}"),
    }
}

/// Pages of a task that lie outside its program's colours.
fn misplaced(k: &Kernel, t: TaskId, pages: std::ops::Range<u64>) -> usize {
    let (set, space) = (colors(k, t), k.space(t).unwrap());
    let frames = pages.filter_map(|p| space.frame_of(Vpn(BASE + p)));
    frames.filter(|f| !set.contains(color(*f))).count()
}

#[test]
fn pages_follow_their_programs_colors_when_they_are_touched_and_not_before() {
    let mut k = kernel(hvr::Config::PAPER);
    let a = start(&mut k, 1, Some(Class::Llch));
    for page in 0..320 {
        touch(&mut k, a, page);
    }
    assert_eq!(misplaced(&k, a, 0..320), 0);
    // An LLCT beside it: Curve-VP. A quarter of A's banks and an eighth of the cache go.
    let b = start(&mut k, 2, Some(Class::Llct));
    assert_eq!(k.hvr().unwrap().decision().policy, Policy::CurveVp);
    assert_eq!(colors(&k, b).len(), 4);
    let stale = misplaced(&k, a, 0..320);
    assert!(stale > 0, "{stale}");
    let before = k.counters();
    let mut moved = 0;
    for page in 0..100 {
        let was = k.space(a).unwrap().frame_of(Vpn(BASE + page)).unwrap();
        let wrong = !colors(&k, a).contains(color(was));
        let (frame, faults, actions) = touch(&mut k, a, page);
        let copies = actions
            .as_slice()
            .iter()
            .filter(|a| matches!(a, Action::Copy { .. }));
        assert_eq!(copies.count(), usize::from(wrong));
        match wrong {
            true => assert_eq!(faults, [FaultKind::Followed], "page {page}"),
            false => assert_eq!((frame, faults.len()), (was, 0), "page {page}"),
        }
        assert!(colors(&k, a).contains(color(frame)));
        moved += u64::from(wrong);
    }
    assert_eq!(k.counters().followed - before.followed, moved);
    assert_eq!(k.hvr().unwrap().counters().moves, moved);
    // Pages that nobody touched are where they were.
    assert_eq!(misplaced(&k, a, 0..320), stale - moved as usize);
    // Touched twice, they move once.
    assert!(touch(&mut k, a, 5).1.is_empty());
    k.validate().unwrap();
}

#[test]
fn a_kernel_buffer_moves_the_page_that_it_reads_or_writes() {
    let mut k = kernel(hvr::Config::PAPER);
    let a = start(&mut k, 1, Some(Class::Llch));
    k.ensure_file(piebald_units::FileId(1), 64).unwrap();
    for page in 0..64 {
        touch(&mut k, a, page);
    }
    start(&mut k, 2, Some(Class::Llct));
    assert!(misplaced(&k, a, 0..64) > 0);
    let read = SysOp::Read {
        file: piebald_units::FileId(1),
        offset: 0,
        len: 64 << 12,
        buffer: VirtAddr(BASE << 12),
    };
    k.syscall(a, CORE, &read, &mut Actions::new()).unwrap();
    assert_eq!(misplaced(&k, a, 0..64), 0);
    k.validate().unwrap();
}

#[test]
fn children_are_the_same_program_and_it_ends_with_the_last_of_them() {
    let mut k = kernel(hvr::Config::PAPER);
    let a = start(&mut k, 1, None);
    for page in 0..20 {
        touch(&mut k, a, page);
    }
    let child = spawn(&mut k, a, SpawnKind::Fork);
    assert_eq!(k.managed(child).unwrap(), k.managed(a).unwrap());
    assert_eq!(k.hvr().unwrap().mix().programs(), 1);
    // Copy-on-write pages are shared: they are asked about, and stay.
    start(&mut k, 2, Some(Class::Llct));
    let stale = misplaced(&k, a, 0..20);
    assert!(stale > 0);
    for page in 0..20 {
        let r = MemRef {
            addr: VirtAddr((BASE + page) << 12),
            size: 8,
            kind: RefKind::Load,
            ..MemRef::default()
        };
        let mut out = Vec::new();
        while let Some(fault) = k.translate(a, &[r], &mut out).unwrap().fault {
            k.fault(a, CORE, fault, &mut Actions::new()).unwrap();
        }
    }
    assert_eq!(misplaced(&k, a, 0..20), stale);
    assert_eq!(k.counters().follow_failed, stale as u64);
    assert_eq!(k.hvr().unwrap().counters().moves, 0);
    k.validate().unwrap();
    exit(&mut k, a);
    assert_eq!(k.hvr().unwrap().counters().left, 0);
    exit(&mut k, child);
    assert_eq!(k.hvr().unwrap().counters().left, 1);
    assert_eq!(k.hvr_events().last().unwrap().what, What::Left);
    k.validate().unwrap();
}

#[test]
fn threads_make_rule_4_and_their_end_unmakes_it() {
    let mut k = kernel(hvr::Config::PAPER);
    let a = start(&mut k, 1, None);
    let b = start(&mut k, 2, Some(Class::Llch));
    assert_eq!(k.hvr().unwrap().decision().policy, Policy::BankOnly4);
    let thread = spawn(&mut k, a, SpawnKind::Thread);
    assert_eq!(k.hvr().unwrap().decision().policy, Policy::Random);
    assert_eq!(colors(&k, b).len(), 32);
    exit(&mut k, thread);
    assert_eq!(k.hvr().unwrap().decision().policy, Policy::BankOnly4);
    let what: Vec<What> = k.hvr_events().iter().map(|e| e.what).collect();
    let expected = [
        What::Arrived,
        What::Arrived,
        What::Threads(2),
        What::Threads(1),
    ];
    assert_eq!(what, expected);
    k.validate().unwrap();
}

#[test]
fn colors_that_are_used_up_are_borrowed_or_widen_the_program() {
    for mode in [Mode::Hint, Mode::Hard] {
        let config = hvr::Config {
            mode,
            ..hvr::Config::PAPER
        };
        let mut k = kernel(config);
        let a = start(&mut k, 1, Some(Class::Llct));
        start(&mut k, 2, Some(Class::Llch));
        // Four of 32 colours hold 4096 pages.
        for page in 0..6000 {
            touch(&mut k, a, page);
        }
        let widened = |k: &Kernel| k.hvr_events().iter().any(|e| e.what == What::Widened);
        assert_eq!(widened(&k), mode == Mode::Hard, "{mode:?}");
        let fallbacks = k.counters().color_fallbacks;
        assert_eq!(fallbacks > 0, mode == Mode::Hint, "{mode:?}: {fallbacks}");
        k.validate().unwrap();
    }
}

#[test]
fn calls_that_make_no_sense_are_refused_and_change_nothing() {
    let mut k = kernel(hvr::Config::PAPER);
    let mut actions = Actions::new();
    let a = start(&mut k, 1, None);
    let again = k.manage(a, CORE, Known::Nothing, &mut actions).unwrap_err();
    assert!(again.to_string().contains("is managed by HVR"), "{again}");
    let want = ColorAsk::Count(2);
    let own = k.reserve(a, CORE, &want, &mut actions).unwrap_err();
    assert!(own.to_string().contains("is managed by HVR"), "{own}");
    let b = k.start(2).unwrap();
    k.reserve(b, CORE, &want, &mut actions).unwrap();
    let both = k.manage(b, CORE, Known::Nothing, &mut actions).unwrap_err();
    assert!(both.to_string().contains("has reserved colors"), "{both}");
    let nobody = k.manage(TaskId(77), CORE, Known::Nothing, &mut actions);
    assert!(matches!(nobody, Err(KernelError::NoSuchTask(_))));
    let zero = SysMonConfig {
        time_scale: 0,
        ..SysMonConfig::default()
    };
    let zero = k.monitor(zero).unwrap_err();
    assert!(zero.to_string().contains("time_scale = 0"), "{zero}");
    assert_eq!(k.hvr().unwrap().mix().programs(), 1);
    assert_eq!(k.next_sample(), None);
    k.validate().unwrap();
}

/// Thresholds for programs of some hundred pages.
fn small() -> hvr::Config {
    let mut config = hvr::Config::PAPER;
    config.monitor.thresholds.ccf_pages = 20;
    config.monitor.thresholds.llch_pages = 100;
    config
}

/// Runs SysMon for some windows while each program touches what it touches between two of
/// its steps.
fn run(k: &mut Kernel, windows: usize, mut touches: impl FnMut(&mut Kernel, u64)) {
    let mut steps = 0;
    let of_job2 = |k: &Kernel| {
        let all = k.observations().iter();
        all.filter(|o| matches!(o.observed, Observed::Window(_)))
            .count()
    };
    while of_job2(k) < windows {
        let now = k.next_sample().expect("somebody is watched");
        k.sample(CORE, now, &mut Actions::new());
        touches(k, steps);
        steps += 1;
    }
}

#[test]
fn what_a_program_is_shows_in_its_access_bits() {
    // All of ten pages; all of 200 pages, each time; and 2500 pages, each of them every 25th
    // time, so that a hundred are hot.
    type Touches = fn(u64) -> Vec<u64>;
    let cases: [(Class, Touches); 4] = [
        (Class::Ccf, |_| (0..10).collect()),
        (Class::Llct, |_| (0..200).collect()),
        (Class::Llch, |step| {
            (0..2600)
                .filter(|p| (p * 7 + step).is_multiple_of(25))
                .collect()
        }),
        (Class::Llcm, |step| {
            (0..1500)
                .filter(|p| (p * 7 + step).is_multiple_of(25))
                .collect()
        }),
    ];
    for (class, touches) in cases {
        let mut config = small();
        // A count of eight is a little, in a window of 200 passes of such a program.
        config.monitor.bounds[0] = 5;
        // Most of the pages that they have are never used again.
        config.monitor.watched = Watched::Used;
        let mut k = kernel(config);
        k.monitor(SysMonConfig::default()).unwrap();
        let a = start(&mut k, 1, None);
        for page in 0..3000 {
            touch(&mut k, a, page);
        }
        run(&mut k, 4, |k, step| {
            for page in touches(step) {
                touch(k, a, page);
            }
        });
        let event = k.hvr_events().last().unwrap();
        assert_eq!(event.what, What::Class(class), "{:?}", k.observations());
        assert_eq!(event.programs[0].1, Some(class));
        // 10 us of a window, 10 ns a page: 200 passes are 8 ms of 3 s.
        let times: Vec<u64> = k.observations().iter().map(|o| o.time.0 / MICRO).collect();
        assert_eq!(&times[..2], [3_000_040, 3_000_040 + 200 * 40], "{times:?}");
        k.validate().unwrap();
    }
}

#[test]
fn windows_come_less_often_once_they_agree_and_scaled_times_are_shorter() {
    let mut k = kernel(small());
    let scale = SysMonConfig {
        time_scale: 10,
        ..SysMonConfig::default()
    };
    k.monitor(scale).unwrap();
    let a = start(&mut k, 1, None);
    touch(&mut k, a, 0);
    run(&mut k, 6, |k, _| {
        for page in 0..10 {
            touch(k, a, page);
        }
    });
    let all = k.observations().iter();
    let windows = all.filter(|o| matches!(o.observed, Observed::Window(_)));
    let ends: Vec<u64> = windows.map(|o| o.time.0 / MICRO).collect();
    let steps: Vec<u64> = ends.windows(2).map(|w| (w[1] - w[0]) / 100_000).collect();
    // In tenths of a second: three windows until the class is known, then 3 + 3 and 6 + 6 tenths.
    assert_eq!(steps, [3, 3, 3, 6, 12], "{ends:?}");
}

#[test]
fn windows_that_are_longer_than_the_time_between_them_take_turns() {
    let mut k = kernel(small());
    // 30 us from one to the next; one of JOB1 takes 40 us.
    k.monitor(SysMonConfig {
        time_scale: 100_000,
        ..SysMonConfig::default()
    })
    .unwrap();
    let a = start(&mut k, 1, None);
    for page in 0..3000 {
        touch(&mut k, a, page);
    }
    run(&mut k, 3, |_, _| {});
    let kinds = k.observations().iter();
    let hot: Vec<bool> = kinds
        .map(|o| matches!(o.observed, Observed::Hot(_)))
        .collect();
    assert_eq!(hot[..6], [true, false, true, false, true, false]);
}

#[test]
fn hot_pages_that_speak_against_a_class_bring_the_next_window_forward() {
    let mut k = kernel(small());
    k.monitor(SysMonConfig::default()).unwrap();
    let a = start(&mut k, 1, None);
    touch(&mut k, a, 0);
    let touch_all = |pages: u64| {
        move |k: &mut Kernel, _| {
            for page in 0..pages {
                touch(k, a, page);
            }
        }
    };
    run(&mut k, 6, touch_all(10));
    // The next would come after 18 s. Two of JOB1 see the pages, and JOB2 comes 3 s later.
    run(&mut k, 7, touch_all(200));
    let all = k.observations().iter();
    let windows = all.filter(|o| matches!(o.observed, Observed::Window(_)));
    let ends: Vec<u64> = windows.map(|o| o.time.0 / MICRO).collect();
    let steps: Vec<u64> = ends.windows(2).map(|w| (w[1] - w[0]) / 1_000_000).collect();
    assert_eq!(steps, [3, 3, 3, 6, 12, 8], "{ends:?}");
}

#[test]
fn a_program_that_ends_in_a_window_leaves_no_job() {
    let mut k = kernel(small());
    k.monitor(SysMonConfig::default()).unwrap();
    let a = start(&mut k, 1, None);
    let b = start(&mut k, 2, None);
    for page in 0..50 {
        touch(&mut k, a, page);
        touch(&mut k, b, page);
    }
    for _ in 0..20 {
        let now = k.next_sample().unwrap();
        k.sample(CORE, now, &mut Actions::new());
    }
    exit(&mut k, a);
    run(&mut k, 3, |k, _| {
        for page in 0..50 {
            touch(k, b, page);
        }
    });
    assert!(k.observations().iter().skip(2).all(|o| o.program == 2));
    exit(&mut k, b);
    assert_eq!(k.next_sample(), None);
    k.validate().unwrap();
}

#[test]
fn a_program_that_sleeps_or_has_no_pages_is_not_classified() {
    let mut k = kernel(small());
    k.monitor(SysMonConfig::default()).unwrap();
    start(&mut k, 1, None);
    run(&mut k, 4, |_, _| {});
    assert_eq!(k.hvr_events().len(), 1);
    assert!(k.hvr().unwrap().iter().all(|(_, p)| p.class().is_none()));
}

#[test]
fn rules_follow_what_sysmon_finds() {
    let mut k = kernel(small());
    k.monitor(SysMonConfig::default()).unwrap();
    let thrashing = start(&mut k, 1, None);
    let fitting = start(&mut k, 2, None);
    run(&mut k, 8, |k, _| {
        for page in 0..200 {
            touch(k, thrashing, page);
        }
        for page in 0..10 {
            touch(k, fitting, page);
        }
    });
    let decision = k.hvr().unwrap().decision();
    assert_eq!(
        (decision.policy, decision.rule),
        (Policy::CurveVp, Rule::One)
    );
    assert_eq!(colors(&k, thrashing).len(), 4);
    // What is used lies where it should be.
    assert_eq!(misplaced(&k, thrashing, 0..200), 0);
    assert_eq!(misplaced(&k, fitting, 0..10), 0);
    k.validate().unwrap();
}

/// Draws (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

#[test]
fn random_programs_keep_the_books_right() {
    for seed in 1..=6 {
        let mut random = Random(seed * 0x9e37_79b9);
        let mut k = kernel(small());
        let scale = SysMonConfig {
            time_scale: 10_000,
            max_pages: 64,
            seed,
        };
        k.monitor(scale).unwrap();
        let mut tasks: Vec<TaskId> = Vec::new();
        let mut now = Picos(0);
        for step in 0..3000u64 {
            now.0 += random.below(40) * MICRO;
            k.at(now);
            let at = random.below(tasks.len().max(1) as u64) as usize;
            let known = [None, Some(Class::Llct), Some(Class::Llch), Some(Class::Ccf)];
            match random.below(40) {
                0 if tasks.len() < 12 => {
                    let known = known[random.below(4) as usize];
                    tasks.push(start(&mut k, step as u16, known));
                }
                1 if !tasks.is_empty() && tasks.len() < 12 => {
                    let kind = [SpawnKind::Fork, SpawnKind::Thread][random.below(2) as usize];
                    let child = spawn(&mut k, tasks[at], kind);
                    tasks.push(child);
                }
                2 if !tasks.is_empty() => exit(&mut k, tasks.swap_remove(at)),
                3 if !tasks.is_empty() => {
                    let exec = SysOp::Exec;
                    k.syscall(tasks[at], CORE, &exec, &mut Actions::new())
                        .unwrap();
                }
                4..12 if k.next_sample().is_some_and(|due| due <= now) => {
                    k.sample(CORE, now, &mut Actions::new());
                }
                _ if tasks.is_empty() => {}
                _ => {
                    let page = random.below(120);
                    let (frame, _, _) = touch(&mut k, tasks[at], page);
                    let set = colors(&k, tasks[at]);
                    let counters = k.counters();
                    let may_stay = counters.follow_failed > 0 || counters.color_fallbacks > 0;
                    assert!(may_stay || set.contains(color(frame)), "step {step}");
                }
            }
            if step % 16 == 0 {
                k.validate().unwrap();
                k.hvr().unwrap().validate().unwrap();
            }
        }
        assert!(k.counters().followed > 0, "seed {seed}");
        while let Some(task) = tasks.pop() {
            exit(&mut k, task);
        }
        assert_eq!(k.hvr().unwrap().mix().programs(), 0);
        k.validate().unwrap();
    }
}
