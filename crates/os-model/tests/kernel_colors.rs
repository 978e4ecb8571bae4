//! Colours that processes reserve: what each call allows, moves and costs.

use crate::colored;
use piebald_units::ColorAsk;
use std::collections::BTreeSet;

use crate::colored::{
    CORE, FRAMES, OF_COLOR, colors, exactly, exit, fill_up, kernel, kernel_with, load, map,
    reserve, resize, set, spawn, start, store,
};
use piebald_os_model::kernel::{
    Action, Actions, Kernel, KernelConfig, KernelError, OnLimit, Path, Recolored, SwapConfig, Thp,
};
use piebald_policy::rainbow::{self, Balance, Refusal, WhenFull};
use piebald_units::{
    FileId, Vpn,
    op::{Backing, SpawnKind, SysOp},
};

#[test]
fn own_colors_are_handed_out_in_turn_and_nobody_else_gets_them() {
    let mut k = kernel();
    let own = start(&mut k, 1, "1,3", OnLimit::Fail);
    let other = k.start(2).unwrap();
    assert_eq!(colors(&mut k, own, 0..6), [1, 3, 1, 3, 1, 3]);
    let others: BTreeSet<u32> = colors(&mut k, other, 0..60).into_iter().collect();
    assert_eq!(others, BTreeSet::from([0, 2, 4, 5, 6, 7]));
    assert_eq!(k.colors_of(own).unwrap(), Some(&set("1,3")));
    assert_eq!(k.colors_of(other).unwrap(), Some(&set("0,2,4-7")));
    assert_eq!(k.pages_by_color(1), [0, 3, 0, 3, 0, 0, 0, 0]);
    k.validate().unwrap();
}

#[test]
fn threads_children_and_new_images_keep_the_partition_and_the_last_exit_frees_it() {
    let mut k = kernel();
    let t = k.start(1).unwrap();
    let before = spawn(&mut k, t, SpawnKind::Thread);
    reserve(&mut k, t, &ColorAsk::Share(2500));
    let tasks = |k: &Kernel| {
        k.partitions()
            .unwrap()
            .iter()
            .map(|(_, p)| p.tasks())
            .next()
    };
    assert_eq!(tasks(&k), Some(2), "threads are in it from the start");
    let thread = spawn(&mut k, t, SpawnKind::Thread);
    let child = spawn(&mut k, t, SpawnKind::Fork);
    assert_eq!(tasks(&k), Some(4));
    k.syscall(child, CORE, &SysOp::Exec, &mut Actions::new())
        .unwrap();
    assert_eq!(tasks(&k), Some(4), "an exec brings no task");
    assert_eq!(k.colors_of(child).unwrap(), Some(&set("0-1")));
    assert_eq!(colors(&mut k, child, 0..4), [0, 1, 0, 1]);
    for task in [t, before, thread] {
        exit(&mut k, task);
        k.validate().unwrap();
    }
    assert_eq!(tasks(&k), Some(1));
    exit(&mut k, child);
    assert_eq!(tasks(&k), None);
    assert_eq!(k.partitions().unwrap().unreserved(), &set("0-7"));
    k.validate().unwrap();
}

#[test]
fn whoever_is_attached_shares_the_colors() {
    let mut k = kernel();
    let t = start(&mut k, 1, "2", OnLimit::Fail);
    let other = k.start(2).unwrap();
    let id = k.partition_of(t).unwrap().unwrap();
    k.attach(other, CORE, id, &mut Actions::new()).unwrap();
    assert_eq!(colors(&mut k, other, 0..3), [2, 2, 2]);
    exit(&mut k, t);
    assert_eq!(k.partition_of(other).unwrap(), Some(id));
    k.validate().unwrap();
    exit(&mut k, other);
    let late = k.start(3).unwrap();
    let gone = k.attach(late, CORE, id, &mut Actions::new()).unwrap_err();
    assert!(matches!(gone, KernelError::Join { .. }), "{gone}");
}

#[test]
fn when_all_colors_are_reserved_everybody_or_only_the_others_get_all() {
    for (when_full, own_is_isolated) in [(WhenFull::Everyone, false), (WhenFull::Others, true)] {
        let config = rainbow::Config {
            when_full,
            ..rainbow::Config::PAPER
        };
        let mut k = kernel_with(config, SwapConfig::default());
        let own = start(&mut k, 1, "0-3", OnLimit::Fail);
        start(&mut k, 2, "4-7", OnLimit::Fail);
        let other = k.start(3).unwrap();
        let all = |found: Vec<u32>| found.into_iter().collect::<BTreeSet<_>>().len() == 8;
        assert!(all(colors(&mut k, other, 0..64)));
        assert_eq!(!all(colors(&mut k, own, 0..64)), own_is_isolated);
    }
}

#[test]
fn colors_that_are_used_up_are_an_error_that_says_whose_and_how_many() {
    let mut k = kernel();
    let t = start(&mut k, 7, "5", OnLimit::Fail);
    let e = fill_up(&mut k, t, 0);
    let KernelError::ColorLimit(limit) = &e else {
        panic!("{e}");
    };
    assert_eq!((limit.program, limit.colors.as_str()), (7, "5"));
    assert_eq!(limit.held.frames, OF_COLOR);
    assert_eq!(limit.held.own, k.usage(7).pages);
    // The rest is the kernel's.
    assert!((OF_COLOR / 2..OF_COLOR).contains(&limit.held.own), "{e}");
    let want = format!(
        "task 0 of program 7: its colors 5 are used up: of their 512 frames {} hold its own memory, \
         {} the kernel; give it more colors or more memory, or let pages leave memory (on_limit = \
         \"swap\")",
        limit.held.own,
        OF_COLOR - limit.held.own,
    );
    assert_eq!(e.to_string(), want);
    k.validate().unwrap();
    // Others are not bound by it, until theirs are used up too.
    let other = k.start(8).unwrap();
    let e = fill_up(&mut k, other, 0).to_string();
    assert!(
        e.contains("the unreserved colors 0-4,6-7 are used up"),
        "{e}"
    );
}

#[test]
fn a_program_that_may_borrow_gets_other_colors_and_they_are_counted() {
    let mut k = kernel();
    let t = start(&mut k, 1, "5", OnLimit::Borrow);
    colors(&mut k, t, 0..600);
    let held = k.pages_by_color(1);
    assert!(held[5] < 600 && held.iter().sum::<u32>() == 600, "{held:?}");
    assert_eq!(k.counters().color_fallbacks, 600 - u64::from(held[5]));
    k.validate().unwrap();
}

#[test]
fn a_partition_that_shrinks_moves_its_pages_a_bounded_number_at_a_time() {
    let mut k = kernel();
    let t = start(&mut k, 1, "0-3", OnLimit::Fail);
    colors(&mut k, t, 0..400);
    resize(&mut k, t, &exactly("2-4"));
    assert_eq!(k.pages_by_color(1), [100, 100, 100, 100, 0, 0, 0, 0]);
    let mut actions = Actions::new();
    let first = k.recolor(t, CORE, 64, &mut actions).unwrap();
    let want = Recolored {
        moved: 64,
        failed: 0,
        left: 136,
        done: false,
    };
    assert_eq!(first, want);
    let count = |of: fn(&Action) -> bool| actions.as_slice().iter().filter(|a| of(a)).count();
    assert_eq!(count(|a| matches!(a, Action::Copy { .. })), 64);
    assert_eq!(count(|a| matches!(a, Action::ShootDown { .. })), 64);
    k.validate().unwrap();
    let mut moved = 64;
    loop {
        let r = k.recolor(t, CORE, 64, &mut actions).unwrap();
        moved += r.moved;
        assert!(r.moved <= 64);
        if r.done {
            assert_eq!((r.left, r.failed), (0, 0));
            break;
        }
    }
    assert_eq!(moved, 200);
    let now = k.pages_by_color(1);
    assert_eq!((now[0], now[1], now.iter().sum::<u32>()), (0, 0, 400));
    // Each target was the colour with the fewest.
    assert!(now[2..5].iter().all(|n| (133..=134).contains(n)), "{now:?}");
    let c = k.counters();
    assert_eq!((c.recolored, c.recolor_failed, c.migrations), (200, 0, 200));
    assert_eq!((k.usage(1).recolored, k.usage(1).pages), (200, 400));
    k.validate().unwrap();
}

#[test]
fn a_partition_that_grows_spreads_over_its_new_colors_if_it_is_to() {
    for (balance, moved) in [(Balance::MustMove, 0), (Balance::Spread, 200)] {
        let config = rainbow::Config {
            balance,
            ..rainbow::Config::PAPER
        };
        let mut k = kernel_with(config, SwapConfig::default());
        let t = start(&mut k, 1, "0-1", OnLimit::Fail);
        colors(&mut k, t, 0..400);
        resize(&mut k, t, &ColorAsk::Count(4));
        let all = k.recolor(t, CORE, u64::MAX, &mut Actions::new()).unwrap();
        assert_eq!((all.moved, all.left, all.done), (moved, 0, true));
        let now = k.pages_by_color(1);
        match balance {
            Balance::Spread => assert_eq!(now, [100, 100, 100, 100, 0, 0, 0, 0]),
            Balance::MustMove => assert_eq!(now, [200, 200, 0, 0, 0, 0, 0, 0]),
        }
        k.validate().unwrap();
    }
}

#[test]
fn pages_of_others_leave_colors_that_were_reserved_since() {
    let mut k = kernel();
    let other = k.start(2).unwrap();
    colors(&mut k, other, 0..400);
    start(&mut k, 1, "0-3", OnLimit::Fail);
    let r = k
        .recolor(other, CORE, u64::MAX, &mut Actions::new())
        .unwrap();
    assert_eq!((r.moved, r.failed, r.left), (200, 0, 0));
    assert_eq!(k.pages_by_color(2)[..4], [0, 0, 0, 0]);
    k.validate().unwrap();
}

#[test]
fn large_pages_of_others_are_split_and_moved() {
    let config = KernelConfig {
        thp: Thp::Always,
        ..colored::config(2, rainbow::Config::PAPER)
    };
    let mut k = Kernel::new(config, colored::frames(FRAMES, 2)).unwrap();
    let other = k.start(2).unwrap();
    map(&mut k, other, 0x100, 1024, Backing::Anon);
    store(&mut k, other, 0x100);
    assert_eq!(
        k.space(other).unwrap().resident().huge,
        1,
        "nobody owns colors"
    );
    start(&mut k, 1, "6-7", OnLimit::Fail);
    let r = k
        .recolor(other, CORE, u64::MAX, &mut Actions::new())
        .unwrap();
    assert_eq!((r.moved, r.done), (128, true));
    k.validate().unwrap();
    store(&mut k, other, 0x300);
    assert_eq!(
        k.space(other).unwrap().resident().huge,
        0,
        "they span colors"
    );
}

#[test]
fn pages_that_cannot_move_are_counted_and_stay() {
    let mut k = kernel();
    let t = start(&mut k, 1, "0-1", OnLimit::Fail);
    colors(&mut k, t, 0..10);
    let file = Backing::File {
        file: FileId(3),
        offset: 0,
    };
    map(&mut k, t, 20, 4, file);
    for page in 20..24 {
        load(&mut k, t, page);
    }
    let child = spawn(&mut k, t, SpawnKind::Fork);
    resize(&mut k, t, &exactly("2"));
    let r = k.recolor(t, CORE, u64::MAX, &mut Actions::new()).unwrap();
    // Ten pages in both processes, and four of the file in one.
    assert_eq!((r.moved, r.failed), (0, 24));
    k.validate().unwrap();
    exit(&mut k, child);
    // The new colour holds too few.
    resize(&mut k, t, &exactly("0-6"));
    colors(&mut k, t, 100..1200);
    resize(&mut k, t, &exactly("2"));
    let r = k.recolor(t, CORE, u64::MAX, &mut Actions::new()).unwrap();
    assert!(r.failed > 500 && r.moved > 200 && r.left > 500, "{r:?}");
    assert!(r.done);
    k.validate().unwrap();
}

#[test]
fn calls_about_colors_cost_a_system_call() {
    let mut k = kernel();
    let t = k.start(1).unwrap();
    let mut actions = Actions::new();
    let before = k.counters().syscalls;
    k.reserve(t, CORE, &ColorAsk::Count(2), &mut actions)
        .unwrap();
    k.resize(t, CORE, &ColorAsk::Count(3), &mut actions)
        .unwrap();
    assert_eq!(k.counters().syscalls, before + 2);
    let instrs = actions.as_slice().iter().map(|a| match a {
        Action::Instrs(n) => u64::from(*n),
        _ => 0,
    });
    let costs = &k.config().costs;
    let one = costs.of(Path::Syscall).instrs + costs.of(Path::Colors).instrs;
    assert_eq!(instrs.sum::<u64>(), 2 * u64::from(one));
}

#[test]
fn what_cannot_be_is_refused_and_named() {
    let mut k = kernel();
    let t = k.start(1).unwrap();
    let mut acts = Actions::new();
    let e = k
        .resize(t, CORE, &ColorAsk::Count(1), &mut acts)
        .unwrap_err();
    assert_eq!(
        e.to_string(),
        "task 0: resize: its process has reserved no colors"
    );
    reserve(&mut k, t, &ColorAsk::Count(3));
    let id = k.partition_of(t).unwrap().unwrap();
    let e = k
        .reserve(t, CORE, &ColorAsk::Count(1), &mut acts)
        .unwrap_err();
    let why = Refusal::AlreadyColored(id);
    let call = "reserve";
    assert_eq!(e, KernelError::Colors { task: t, call, why });
    let e = k.attach(t, CORE, id, &mut acts).unwrap_err();
    assert!(
        matches!(e, KernelError::Colors { call: "attach", .. }),
        "{e}"
    );
    let other = k.start(2).unwrap();
    let e = k
        .reserve(other, CORE, &exactly("2-4"), &mut acts)
        .unwrap_err();
    assert_eq!(
        e.to_string(),
        "task 1: reserve: color 2 belongs to partition 0"
    );
    let e = k
        .reserve(other, CORE, &ColorAsk::Count(6), &mut acts)
        .unwrap_err();
    assert!(
        e.to_string()
            .contains("6 more colors asked for; 5 can be reserved"),
        "{e}"
    );
    reserve(&mut k, other, &ColorAsk::Count(5));
    let third = k.start(3).unwrap();
    let e = k.recolor(third, CORE, 1, &mut acts).unwrap_err();
    assert_eq!(
        e.to_string(),
        "task 2: recolor: every color is reserved: no color to move pages to"
    );
    k.validate().unwrap();

    let stock = KernelConfig::new(2);
    let mut k = Kernel::new(stock, colored::frames(1 << 14, 2)).unwrap();
    let t = k.start(1).unwrap();
    let e = k
        .reserve(t, CORE, &ColorAsk::Count(1), &mut acts)
        .unwrap_err();
    assert_eq!(
        e.to_string(),
        "task 0: reserve: this kernel has no page colors"
    );
    assert!(k.recolor(t, CORE, 1, &mut acts).is_err());
    assert_eq!(
        (k.colors_of(t).unwrap(), k.pages_by_color(1)),
        (None, vec![])
    );
    assert_eq!(k.space(t).unwrap().entry(Vpn(1)), None);
}
