//! Pages that leave memory because colours are used up, and come back.

use crate::colored;
use crate::colored::{
    CORE, FRAMES, OF_COLOR, exit, fill_up, kernel, kernel_with, load, map, read, spawn, start,
    store, touch,
};
use piebald_os_model::kernel::{
    Action, Actions, FaultKind, Kernel, KernelConfig, OnLimit, SwapConfig,
};
use piebald_policy::rainbow;
use piebald_units::{
    FileId, Picos, VirtAddr,
    op::{Backing, RefKind, SpawnKind, SysOp},
};

#[test]
fn pages_leave_memory_and_come_back_and_the_core_waits_for_the_device() {
    let swap = SwapConfig {
        read: Picos(5_000),
        write: Picos(7_000),
        ..SwapConfig::default()
    };
    let mut k = kernel_with(rainbow::Config::PAPER, swap);
    let t = start(&mut k, 1, "5", OnLimit::Swap);
    let waits = |k: &mut Kernel, page| {
        let mut actions = Actions::new();
        let (frame, kind) = touch(k, t, page, RefKind::Store, &mut actions).unwrap();
        assert_eq!(frame % 8, 5, "nothing is borrowed");
        let found: Vec<Action> = actions
            .as_slice()
            .iter()
            .filter(|a| {
                matches!(
                    a,
                    Action::Wait(_) | Action::SwapOut { .. } | Action::SwapIn { .. }
                )
            })
            .copied()
            .collect();
        (found, kind)
    };
    let mut first = None;
    for page in 0..OF_COLOR {
        let (found, _) = waits(&mut k, page);
        first = first.or((!found.is_empty()).then_some((page, found)));
    }
    let (page, found) = first.expect("the limit was reached");
    let [
        Action::SwapOut { frame, slot: 0 },
        Action::Wait(Picos(7_000)),
    ] = found[..]
    else {
        panic!("{found:?}");
    };
    assert_eq!(frame.0 % 8, 5);
    let outs = OF_COLOR - page;
    assert_eq!(k.counters().swap_outs, outs);
    assert_eq!((k.usage(1).swap_outs, k.swap_used()), (outs, outs));
    assert_eq!(k.usage(1).peak_pages, page);
    assert_eq!(k.space(t).unwrap().swapped(), outs);
    // The first round clears all access bits: the lowest pages go first.
    let (found, kind) = waits(&mut k, 0);
    assert_eq!(kind, Some(FaultKind::SwappedIn));
    let waited: Vec<_> = found
        .iter()
        .filter(|a| matches!(a, Action::Wait(_)))
        .collect();
    assert_eq!(
        waited,
        [&Action::Wait(Picos(7_000)), &Action::Wait(Picos(5_000))]
    );
    assert_eq!((k.counters().swap_ins, k.swap_used()), (1, outs));
    k.validate().unwrap();
    exit(&mut k, t);
    assert_eq!(k.swap_used(), 0);
    k.validate().unwrap();
}

#[test]
fn a_page_that_is_used_again_and_again_gets_its_second_chance() {
    let mut k = kernel();
    let t = start(&mut k, 1, "5", OnLimit::Swap);
    let mut ins = 0;
    for page in 0..4 * OF_COLOR {
        store(&mut k, t, 1 + page);
        let (_, kind) = load(&mut k, t, 0);
        ins += u64::from(kind == Some(FaultKind::SwappedIn));
    }
    assert!(k.counters().swap_outs > 3 * OF_COLOR);
    assert_eq!(ins, 0, "it was touched since the clock came past");
}

#[test]
fn swap_space_that_is_full_and_pages_that_may_not_go_are_errors() {
    let swap = SwapConfig {
        pages: 10,
        ..SwapConfig::default()
    };
    let mut k = kernel_with(rainbow::Config::PAPER, swap);
    let t = start(&mut k, 1, "5", OnLimit::Swap);
    let e = fill_up(&mut k, t, 0).to_string();
    assert!(e.contains("swap space is full"), "{e}");
    assert_eq!(k.swap_used(), 10);
    k.validate().unwrap();
    // There is no disk that a written page of a file could go to.
    let mut k = kernel();
    let t = start(&mut k, 1, "5", OnLimit::Swap);
    let write = |page: u64| SysOp::Write {
        file: FileId(1),
        offset: page << 12,
        len: 4096,
        buffer: VirtAddr(0),
    };
    let calls = (0..).map(|page| k.syscall(t, CORE, &write(page), &mut Actions::new()));
    let e = calls.filter_map(Result::err).next().unwrap().to_string();
    for text in [
        "of their 512 frames",
        "pages of files",
        "no page of them may leave memory",
    ] {
        assert!(e.contains(text), "{text}: {e}");
    }
    k.validate().unwrap();
}

#[test]
fn pages_that_two_processes_share_stay_in_memory() {
    let mut k = kernel();
    let t = start(&mut k, 1, "5", OnLimit::Swap);
    for page in 0..300 {
        store(&mut k, t, page);
    }
    let child = spawn(&mut k, t, SpawnKind::Fork);
    for page in 1000..1000 + 2 * OF_COLOR {
        store(&mut k, child, page);
    }
    assert!(k.counters().swap_outs > OF_COLOR);
    assert_eq!(k.space(t).unwrap().swapped(), 0);
    assert!((0..300).all(|page| load(&mut k, child, page).1.is_none()));
    k.validate().unwrap();
}

#[test]
fn both_sides_of_a_fork_read_their_own_copy_back() {
    let mut k = kernel();
    let t = start(&mut k, 1, "5", OnLimit::Swap);
    for page in 0..OF_COLOR {
        store(&mut k, t, page);
    }
    let used = k.swap_used();
    assert!(used > 0);
    let child = spawn(&mut k, t, SpawnKind::Fork);
    assert_eq!(k.swap_used(), used, "a slot is shared");
    k.validate().unwrap();
    exit(&mut k, child);
    let child = spawn(&mut k, t, SpawnKind::Fork);
    exit(&mut k, t);
    assert_eq!(k.swap_used(), used);
    let (_, kind) = load(&mut k, child, 0);
    assert_eq!(kind, Some(FaultKind::SwappedIn));
    k.validate().unwrap();
    exit(&mut k, child);
    assert_eq!(k.swap_used(), 0);
}

#[test]
fn clean_pages_of_files_are_dropped_first_and_written_ones_stay() {
    for written in [false, true] {
        let mut k = kernel();
        let t = start(&mut k, 1, "5", OnLimit::Swap);
        let mut calls = vec![read(1, 200)];
        if written {
            calls.push(SysOp::Write {
                file: FileId(1),
                offset: 0,
                len: 1,
                buffer: VirtAddr(0),
            });
        }
        for op in &calls {
            k.syscall(t, CORE, op, &mut Actions::new()).unwrap();
        }
        for page in 0..OF_COLOR - 150 {
            store(&mut k, t, page);
        }
        let c = k.counters();
        match written {
            false => assert!(c.file_drops > 0 && c.swap_outs == 0, "{c:?}"),
            true => assert!(c.file_drops == 0 && c.swap_outs > 0, "{c:?}"),
        }
        assert_eq!(k.usage(1).file_drops, c.file_drops);
        assert_eq!(k.object_pages(), 200 - c.file_drops);
        k.validate().unwrap();
    }
}

#[test]
fn mapped_pages_of_files_are_dropped_and_faulted_in_again() {
    let mut k = kernel();
    let t = start(&mut k, 1, "5", OnLimit::Swap);
    let file = Backing::File {
        file: FileId(3),
        offset: 0,
    };
    map(&mut k, t, 0, 100, file);
    for page in 0..100 {
        assert_eq!(load(&mut k, t, page).1, Some(FaultKind::NotCached));
    }
    for page in 100..OF_COLOR + 100 {
        store(&mut k, t, page);
    }
    assert_eq!(k.counters().file_drops, 100);
    assert_eq!(load(&mut k, t, 0).1, Some(FaultKind::NotCached));
    k.validate().unwrap();
}

#[test]
fn a_swap_device_that_costs_nothing_is_refused() {
    let zero = Picos(0);
    for (swap, text) in [
        (
            SwapConfig {
                pages: 0,
                ..SwapConfig::default()
            },
            "swap.pages = 0: must be 1 to 4294967295",
        ),
        (
            SwapConfig {
                read: zero,
                ..SwapConfig::default()
            },
            "swap.read = 0: must be at least 1 ps",
        ),
        (
            SwapConfig {
                write: zero,
                ..SwapConfig::default()
            },
            "swap.write = 0: must be at least 1 ps",
        ),
    ] {
        let config = KernelConfig {
            swap,
            ..colored::config(2, rainbow::Config::PAPER)
        };
        let e = Kernel::new(config, colored::frames(FRAMES, 2))
            .err()
            .unwrap();
        assert_eq!(e.to_string(), text);
    }
    let config = rainbow::Config {
        keep_unreserved: 8,
        ..rainbow::Config::PAPER
    };
    let e = Kernel::new(colored::config(2, config), colored::frames(FRAMES, 2)).err();
    let e = e.unwrap().to_string();
    assert_eq!(e, "colors.keep_unreserved = 8; allowed: 0 to 7");
}
