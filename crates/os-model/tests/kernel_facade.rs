//! The facade, call by call: worked examples of what each costs and changes.

use piebald_os_model::{
    frames::{Age, Flavour, Stock, StockConfig},
    kernel::{
        Action, Actions, FaultKind, Kernel, KernelConfig, KernelError, Move, Moved, Owner, Path,
        SysWork, Thp, direct_address,
    },
};
use piebald_policy::contract::Mode;
use piebald_units::{
    CoreId, FileId, PageSize, Pfn, TaskId, VirtAddr, Vpn,
    memory::{PageTables, PhysRef},
    op::{Access, Backing, MemRef, RefKind, SpawnKind, SysOp},
};

const CORE: CoreId = CoreId(0);

fn kernel_with(config: KernelConfig) -> Kernel {
    let frames = Stock::new(&StockConfig::new(1 << 16, 2, Flavour::V2_6_30)).unwrap();
    Kernel::new(config, Box::new(frames)).unwrap()
}

fn kernel() -> Kernel {
    kernel_with(KernelConfig::new(2))
}

fn access(addr: u64, kind: RefKind) -> MemRef {
    MemRef {
        addr: VirtAddr(addr),
        size: 8,
        kind,
        ..MemRef::default()
    }
}

fn store(addr: u64) -> MemRef {
    access(addr, RefKind::Store)
}

fn load(addr: u64) -> MemRef {
    access(addr, RefKind::Load)
}

/// Performs references; returns them by physical address, and the faults.
fn go(k: &mut Kernel, t: TaskId, refs: &[MemRef]) -> (Vec<PhysRef>, Vec<FaultKind>) {
    let (mut out, mut acts, mut kinds) = (Vec::new(), Actions::new(), Vec::new());
    let mut rest = refs;
    while !rest.is_empty() {
        let r = k.translate(t, rest, &mut out).unwrap();
        rest = &rest[r.consumed..];
        if let Some(f) = r.fault {
            kinds.push(k.fault(t, CORE, f, &mut acts).unwrap().kind);
        }
    }
    (out, kinds)
}

fn start(k: &mut Kernel) -> TaskId {
    k.start(0).unwrap()
}

fn sys(k: &mut Kernel, t: TaskId, op: SysOp) -> Vec<Action> {
    let mut acts = Actions::new();
    k.syscall(t, CORE, &op, &mut acts).unwrap();
    acts.as_slice().to_vec()
}

fn spawn(k: &mut Kernel, t: TaskId, kind: SpawnKind) -> TaskId {
    let op = SysOp::Spawn { thread: 1, kind };
    match k.syscall(t, CORE, &op, &mut Actions::new()).unwrap() {
        SysWork::Spawned { task, thread: 1 } => task,
        other => panic!("{other:?}"),
    }
}

fn map(addr: u64, len: u64, backing: Backing, shared: bool) -> SysOp {
    SysOp::Map {
        addr: VirtAddr(addr),
        len,
        backing,
        access: Access::default(),
        shared,
    }
}

#[test]
fn fork_shares_pages_until_one_side_stores() {
    let mut k = kernel();
    let free = k.free_frames();
    let parent = start(&mut k);
    let (_, faults) = go(&mut k, parent, &[store(0x1000), store(0x2000)]);
    assert_eq!(faults, [FaultKind::Anon; 2]);
    let child = spawn(&mut k, parent, SpawnKind::Fork);
    k.validate().unwrap();
    assert_eq!(go(&mut k, child, &[load(0x1000)]).1, []);
    assert_eq!(
        go(&mut k, child, &[store(0x1000)]).1,
        [FaultKind::CopyOnWrite]
    );
    assert_eq!(go(&mut k, parent, &[store(0x1000)]).1, [FaultKind::Reuse]);
    assert_eq!(
        go(&mut k, parent, &[store(0x2000)]).1,
        [FaultKind::CopyOnWrite]
    );
    assert_eq!(go(&mut k, child, &[store(0x2000)]).1, [FaultKind::Reuse]);
    k.exit(parent, CORE, &mut Actions::new()).unwrap();
    k.exit(child, CORE, &mut Actions::new()).unwrap();
    k.validate().unwrap();
    assert_eq!(k.free_frames(), free);
}

#[test]
fn a_fault_is_handler_zeroing_entry_and_struct_page() {
    let mut k = kernel();
    let t = start(&mut k);
    let mut out = Vec::new();
    let r = k.translate(t, &[store(0x5123)], &mut out).unwrap();
    let mut acts = Actions::new();
    let work = k.fault(t, CORE, r.fault.unwrap(), &mut acts).unwrap();
    assert_eq!((work.kind, work.size), (FaultKind::Anon, PageSize::Base));
    let list = acts.as_slice();
    let cost = k.config().costs.of(Path::Fault);
    assert_eq!(list[0], Action::Instrs(cost.instrs));
    let fetched = |a: &Action| match a {
        Action::Touch {
            lines,
            kind: RefKind::Fetch,
            ..
        } => *lines,
        _ => 0,
    };
    assert_eq!(list.iter().map(fetched).sum::<u16>(), cost.text_lines);
    assert!(list.contains(&Action::Zero {
        frame: work.frame,
        frames: 1
    }));
    // The entry that the kernel stores to is the one that the walker reads.
    let walk = k.space(t).unwrap().walk(VirtAddr(0x5123));
    assert_eq!(walk.levels, 4);
    let leaf = walk.entries[3].0;
    let at_leaf = |a: &Action| {
        matches!(a, Action::Touch { frame, offset, kind: RefKind::Store, .. }
            if (frame.0 << 12) + u64::from(*offset) == leaf)
    };
    assert_eq!(list.iter().filter(|a| at_leaf(a)).count(), 1);
    assert!(matches!(
        list.last(),
        Some(Action::Touch {
            kind: RefKind::Update,
            ..
        })
    ));
    assert_eq!(k.owner_of(work.frame), Owner::Program(0));
}

#[test]
fn touches_expand_to_lines_of_the_direct_map() {
    let touch = Action::Touch {
        frame: Pfn(7),
        offset: 128,
        lines: 3,
        kind: RefKind::Load,
        site: 5,
    };
    let mut refs = Vec::new();
    touch.refs(&mut refs);
    let got: Vec<_> = refs.iter().map(|r| r.paddr().0).collect();
    assert_eq!(got, [0x7080, 0x70c0, 0x7100]);
    let k = kernel();
    let walk = k.kernel_space().walk(refs[0].vaddr);
    assert_eq!((walk.levels, walk.page), (3, PageSize::Huge));
    assert_eq!(k.kernel_space().walk(VirtAddr(0x1000)).levels, 0);
    let beyond = direct_address(Pfn(1 << 30), 0);
    assert_eq!(k.kernel_space().walk(beyond).levels, 0);
    Action::Instrs(4).refs(&mut refs);
    assert_eq!(refs.len(), 3);
}

#[test]
fn a_reference_over_a_page_end_becomes_two_and_dependences_count_both() {
    let mut k = kernel();
    let t = start(&mut k);
    let cross = MemRef {
        gap: 9,
        dep: 1,
        site: 4,
        ..load(0x1ffc)
    };
    let after = |dep| MemRef {
        dep,
        ..load(0x1010)
    };
    let refs = [
        load(0x1000),
        cross,
        after(1),
        after(3),
        after(0),
        load(0x1000),
        after(5),
    ];
    let (out, _) = go(&mut k, t, &refs);
    let parts: Vec<_> = out[1..3]
        .iter()
        .map(|r| (r.vaddr.0, r.size, r.gap, r.dep))
        .collect();
    // The second part depends on the load before the first part too.
    assert_eq!(parts, [(0x1ffc, 4, 9, 1), (0x2000, 4, 0, 2)]);
    let deps: Vec<_> = out[3..].iter().map(|r| r.dep).collect();
    // One load back lies the split load's second part; three back the first load
    // of all, now past two parts; five back from the last again the split load,
    // of which the second part is meant.
    assert_eq!(deps, [1, 4, 0, 0, 5]);
}

#[test]
fn translation_stops_before_a_crossing_reference_whose_second_page_is_missing() {
    let mut k = kernel();
    let t = start(&mut k);
    go(&mut k, t, &[store(0x1000)]);
    let mut out = Vec::new();
    let r = k
        .translate(t, &[store(0x1008), store(0x1ffc), store(0x1010)], &mut out)
        .unwrap();
    assert_eq!((r.consumed, out.len()), (1, 1));
    assert_eq!(r.fault.unwrap().addr, VirtAddr(0x2000));
}

#[test]
fn untouched_memory_reads_one_zero_page_until_it_is_stored_to() {
    let mut k = kernel();
    let t = start(&mut k);
    let (out, faults) = go(&mut k, t, &[load(0x1000), load(0x2000)]);
    assert_eq!(faults, [FaultKind::ZeroPage; 2]);
    assert!(
        out.iter()
            .all(|r| Pfn(u64::from(r.frame)) == k.zero_frame())
    );
    assert_eq!(go(&mut k, t, &[store(0x1000)]).1, [FaultKind::Anon]);
    let resident = k.space(t).unwrap().resident();
    assert_eq!((resident.anon, resident.zero), (1, 1));
    assert_eq!(k.counters().implicit_pages, 2);
}

#[test]
fn two_copies_of_a_program_share_their_text_and_copy_their_data() {
    let mut k = kernel();
    let file = Backing::File {
        file: FileId(3),
        offset: 0,
    };
    let tasks = [start(&mut k), start(&mut k)];
    let mut frames = Vec::new();
    for t in tasks {
        sys(&mut k, t, map(0x40_0000, 0x8000, file, false));
        let (out, _) = go(
            &mut k,
            t,
            &[access(0x40_1000, RefKind::Fetch), store(0x40_2000)],
        );
        frames.push((out[0].frame, out[1].frame));
    }
    assert_eq!(frames[0].0, frames[1].0);
    assert_ne!(frames[0].1, frames[1].1);
    assert_eq!(k.owner_of(Pfn(u64::from(frames[0].0))), Owner::File(0));
    assert_eq!(k.counters().file_fills, 2);
    k.validate().unwrap();
}

#[test]
fn shared_memory_is_one_memory_across_fork_and_goes_with_its_last_user() {
    let mut k = kernel();
    let a = start(&mut k);
    sys(&mut k, a, map(0x10_0000, 0x4000, Backing::Anon, true));
    let b = spawn(&mut k, a, SpawnKind::Fork);
    let fa = go(&mut k, a, &[store(0x10_0000)]).0[0].frame;
    let fb = go(&mut k, b, &[store(0x10_0000)]).0[0].frame;
    assert_eq!(fa, fb);
    sys(
        &mut k,
        a,
        SysOp::Unmap {
            addr: VirtAddr(0x10_0000),
            len: 0x4000,
        },
    );
    assert_eq!(k.object_pages(), 1);
    k.exit(b, CORE, &mut Actions::new()).unwrap();
    assert_eq!(k.object_pages(), 0);
    k.validate().unwrap();
}

#[test]
fn a_large_aligned_area_gets_a_large_page_and_splits_when_it_must() {
    let mut k = kernel_with(KernelConfig {
        thp: Thp::Always,
        ..KernelConfig::new(2)
    });
    let free = k.free_frames();
    let t = start(&mut k);
    sys(&mut k, t, map(0x20_0000, 0x40_0000, Backing::Anon, false));
    let (out, faults) = go(&mut k, t, &[store(0x20_3000), store(0x3f_f000)]);
    assert_eq!(faults, [FaultKind::Anon]);
    assert_eq!(out[0].frame % 512, 3);
    assert_eq!(out[1].frame - out[0].frame, 512 - 4);
    let walk = k.space(t).unwrap().walk(VirtAddr(0x20_3000));
    assert_eq!((walk.levels, walk.page), (3, PageSize::Huge));
    sys(
        &mut k,
        t,
        SysOp::Unmap {
            addr: VirtAddr(0x20_0000),
            len: 0x1000,
        },
    );
    assert_eq!(k.counters().huge_splits, 1);
    // The frame stays with its block until the rest of the block goes too.
    k.validate().unwrap();
    let resident = k.space(t).unwrap().resident();
    assert_eq!((resident.anon, resident.huge), (511, 0));
    k.exit(t, CORE, &mut Actions::new()).unwrap();
    k.validate().unwrap();
    assert_eq!(k.free_frames(), free);
}

fn read(file: FileId, offset: u64, len: u64, buffer: VirtAddr) -> SysOp {
    SysOp::Read {
        file,
        offset,
        len,
        buffer,
    }
}

#[test]
fn reads_copy_from_the_cache_in_pieces_within_both_pages() {
    let mut k = kernel();
    let t = start(&mut k);
    let op = read(FileId(1), 4000, 5000, VirtAddr(0x1f00));
    let acts = sys(&mut k, t, op);
    let pieces: Vec<_> = acts
        .iter()
        .filter_map(|a| match a {
            Action::CopyUser {
                from_offset,
                to_offset,
                len,
                ..
            } => Some((*from_offset, *to_offset, *len)),
            _ => None,
        })
        .collect();
    assert_eq!(
        pieces,
        [
            (4000, 0xf00, 96),
            (0, 0xf60, 160),
            (160, 0, 3936),
            (0, 3936, 160),
            (160, 0, 648)
        ]
    );
    assert_eq!(pieces.iter().map(|p| u64::from(p.2)).sum::<u64>(), 5000);
    let filled = |a: &&Action| matches!(a, Action::DeviceFill { .. });
    assert_eq!(acts.iter().filter(filled).count(), 3);
    let buffer = VirtAddr(0);
    let acts = sys(&mut k, t, read(FileId(1), 0, 100, buffer));
    let copied = |a: &Action| matches!(a, Action::CopyUser { .. });
    assert!(!acts.iter().any(copied), "no buffer, no copy");
    assert_eq!(k.counters().file_fills, 3);
    for (len, fills) in [(4096, 0), (4095, 1)] {
        let op = SysOp::Write {
            file: FileId(len),
            offset: 0,
            len,
            buffer,
        };
        let acts = sys(&mut k, t, op);
        assert_eq!(acts.iter().filter(filled).count(), fills, "{len}");
    }
}

#[test]
fn unmapping_many_pages_drops_the_whole_space_from_the_tlb() {
    let mut k = kernel();
    let t = start(&mut k);
    for (pages, whole) in [(33u64, false), (34, true)] {
        let refs: Vec<_> = (0..pages).map(|i| store(0x10_0000 + (i << 12))).collect();
        go(&mut k, t, &refs);
        let acts = sys(
            &mut k,
            t,
            SysOp::Unmap {
                addr: VirtAddr(0x10_0000),
                len: pages << 12,
            },
        );
        let shots: Vec<_> = acts
            .iter()
            .filter_map(|a| match a {
                Action::ShootDown { page, .. } => Some(page.is_none()),
                _ => None,
            })
            .collect();
        assert_eq!(shots, if whole { vec![true] } else { vec![false; 33] });
    }
}

#[test]
fn a_moved_page_has_a_new_frame_and_a_shared_one_stays() {
    let mut k = kernel();
    let t = start(&mut k);
    let before = go(&mut k, t, &[store(0x1000)]).0[0].frame;
    let target = Move {
        allowed: None,
        wish: None,
        mode: Mode::Hint,
    };
    let mut acts = Actions::new();
    let moved = k.migrate(t, CORE, Vpn(1), target, &mut acts).unwrap();
    let Moved::Done {
        from,
        to,
        fallback: false,
    } = moved
    else {
        panic!("{moved:?}");
    };
    assert_eq!(from.0, u64::from(before));
    let shoot = acts
        .as_slice()
        .iter()
        .position(|a| matches!(a, Action::ShootDown { .. }));
    let copy = acts
        .as_slice()
        .iter()
        .position(|a| *a == Action::Copy { from, to });
    assert!(
        shoot.unwrap() < copy.unwrap(),
        "no store may hit the old frame after the copy"
    );
    assert_eq!(u64::from(go(&mut k, t, &[store(0x1000)]).0[0].frame), to.0);
    assert_eq!(
        k.migrate(t, CORE, Vpn(2), target, &mut acts).unwrap(),
        Moved::NotMapped
    );
    spawn(&mut k, t, SpawnKind::Fork);
    assert_eq!(
        k.migrate(t, CORE, Vpn(1), target, &mut acts).unwrap(),
        Moved::Shared
    );
    k.validate().unwrap();
}

#[test]
fn ageing_leaves_memory_to_nobody_in_particular_and_the_books_agree() {
    let mut k = kernel();
    k.age(&Age::new(4, 400, 2)).unwrap();
    k.validate().unwrap();
    let owners = (0..k.total_frames()).map(|f| k.owner_of(Pfn(f)));
    let (mut other, mut free) = (0, 0);
    for o in owners {
        other += u64::from(o == Owner::Other);
        free += u64::from(o == Owner::Free);
    }
    assert_eq!(free, k.free_frames());
    assert!(other > k.total_frames() / 2);
}

#[test]
fn wrong_calls_are_errors_that_name_the_argument() {
    let mut k = kernel();
    let t = start(&mut k);
    let mut call = |op| {
        k.syscall(t, CORE, &op, &mut Actions::new())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        call(SysOp::Unmap {
            addr: VirtAddr(0x1001),
            len: 5
        }),
        "task 0: unmap: addr = 0x1001: must be a multiple of 4096"
    );
    assert_eq!(
        call(map(0x1000, u64::MAX, Backing::Anon, false)),
        "task 0: map: len = 0xffffffffffffffff: must be short enough to end below 2^47"
    );
    let remap = SysOp::Remap {
        from: VirtAddr(0x4000),
        old_len: 0x4000,
        to: VirtAddr(0x6000),
        new_len: 0x4000,
    };
    assert_eq!(
        call(remap),
        "task 0: remap: to = 0x6000: must be the old address, or outside the old range"
    );
    let read = read(FileId(0), u64::MAX, 2, VirtAddr(0));
    assert!(call(read).contains("read: len"));
    let gone = TaskId(9);
    let e = k
        .syscall(gone, CORE, &SysOp::Exec, &mut Actions::new())
        .unwrap_err();
    assert_eq!(e, KernelError::NoSuchTask(gone));
    assert_eq!(
        k.start(40_000).unwrap_err().to_string(),
        "program = 40000: must be 0 to 32000"
    );
    k.validate().unwrap();
}

#[test]
fn a_machine_too_small_for_the_kernel_says_so() {
    let frames = Stock::new(&StockConfig::new(1024, 1, Flavour::V2_6_30)).unwrap();
    let e = Kernel::new(KernelConfig::new(1), Box::new(frames))
        .err()
        .unwrap();
    assert_eq!(
        e.to_string(),
        "memory of 4MiB is too small for the kernel's own data: no free block of that order"
    );
}

#[test]
fn a_heap_that_grows_in_pieces_gets_large_pages() {
    let mut k = kernel_with(KernelConfig {
        thp: Thp::Always,
        ..KernelConfig::new(2)
    });
    let t = start(&mut k);
    // brk in steps of 132 KiB from an unaligned start, as an allocator does.
    let heap = 0x5500_0123_4000u64 & !0xfff;
    for i in 0..40 {
        sys(
            &mut k,
            t,
            map(heap + i * 0x21000, 0x21000, Backing::Anon, false),
        );
    }
    assert_eq!(k.space(t).unwrap().areas().count(), 1);
    let aligned = (heap + 0x1f_ffff) & !0x1f_ffff;
    let refs: Vec<_> = (0..512).map(|i| store(aligned + (i << 12))).collect();
    assert_eq!(go(&mut k, t, &refs).1.len(), 1);
    assert_eq!(k.space(t).unwrap().resident().huge, 1);
    // Below the aligned range the area does not cover 2 MiB.
    assert_eq!(go(&mut k, t, &[store(heap)]).1, [FaultKind::Anon]);
    assert_eq!(k.space(t).unwrap().resident().huge, 1);
    k.validate().unwrap();
}

#[test]
fn threads_see_each_others_mappings_and_exec_leaves_them_behind() {
    let mut k = kernel();
    let a = start(&mut k);
    let b = spawn(&mut k, a, SpawnKind::Thread);
    let first = go(&mut k, a, &[store(0x1000)]).0[0].frame;
    assert_eq!(
        go(&mut k, b, &[store(0x1000)]),
        (go(&mut k, a, &[store(0x1000)]).0, vec![])
    );
    // A stale translation of the other thread would still hit.
    sys(
        &mut k,
        b,
        SysOp::Discard {
            addr: VirtAddr(0x1000),
            len: 0x1000,
        },
    );
    assert_eq!(go(&mut k, a, &[load(0x1000)]).1, [FaultKind::ZeroPage]);
    sys(&mut k, a, SysOp::Exec);
    assert_eq!(k.space(a).unwrap().areas().count(), 0);
    assert_eq!(k.space(b).unwrap().areas().count(), 1);
    assert_ne!(k.space(a).unwrap().asid(), k.space(b).unwrap().asid());
    k.exit(b, CORE, &mut Actions::new()).unwrap();
    k.validate().unwrap();
    assert_eq!(k.owner_of(Pfn(u64::from(first))), Owner::Free);
}

#[test]
fn ticks_and_switches_touch_the_core_they_happen_on() {
    let mut k = kernel();
    let t = start(&mut k);
    let lines = |core, task| {
        let mut acts = Actions::new();
        k.tick(core, task, &mut acts);
        k.switch(core, task, &mut acts);
        let mut refs = Vec::new();
        acts.as_slice().iter().for_each(|a| a.refs(&mut refs));
        refs.retain(|r| r.kind != RefKind::Fetch);
        refs.into_iter()
            .map(|r| r.paddr().0 >> 6)
            .collect::<std::collections::BTreeSet<_>>()
    };
    let (zero, one) = (lines(CoreId(0), None), lines(CoreId(1), None));
    assert!(!zero.is_empty() && zero.is_disjoint(&one));
    let with_task = lines(CoreId(0), Some(t));
    assert!(with_task.is_superset(&zero) && with_task.len() > zero.len());
    for line in with_task {
        assert_eq!(k.owner_of(Pfn(line >> 6)), Owner::Kernel);
    }
}
