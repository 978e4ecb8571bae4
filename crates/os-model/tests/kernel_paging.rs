//! Files, programs' memory and the kernel's own data over one memory.

use crate::paged;
use crate::paged::{Host, Op, plain, random, read, write};
use piebald_os_model::{
    file::FileConfig,
    frames::{Flavour, Stock, StockConfig},
    kernel::{Kernel, KernelConfig, KernelError, PagingConfig, Thp},
};
use piebald_units::{
    Picos, TaskId, VirtAddr,
    op::{Access, Backing, RefKind, SpawnKind, SysOp},
};

const POLICIES: [&str; 5] = ["lru", "clock", "dulo", "linux-2.6.30", "arc"];

fn stats(h: &Host) -> piebald_os_model::file::Stats {
    h.k.paging().unwrap().stats
}

#[test]
fn a_file_that_fits_is_read_once() {
    let mut h = Host::new("lru", 200, plain());
    let t = h.start();
    for _ in 0..3 {
        h.read(t, 7, 0, 100);
    }
    let reads = stats(&h).reads;
    assert_eq!((reads.references, reads.misses), (300, 100));
    assert_eq!(h.k.counters().file_fills, 100);
    h.check();
}

#[test]
fn a_loop_over_a_file_larger_than_memory_always_misses_under_lru() {
    let mut h = Host::new("lru", 100, plain());
    let t = h.start();
    let room = h.k.paging().unwrap().capacity;
    for _ in 0..4 {
        h.read(t, 7, 0, u64::from(room) + 1);
        h.check();
    }
    let reads = stats(&h).reads;
    assert_eq!(reads.misses, 4 * (u64::from(room) + 1));
}

#[test]
fn what_programs_take_is_missing_for_files() {
    // Two files of half the memory each fit, until a program has a page.
    let mut h = Host::new("lru", 300, plain());
    let t = h.start();
    h.read(t, 1, 0, 100);
    let free = h.k.free_frames();
    for page in 0..100 {
        h.store(t, 1000 + page);
    }
    // The page table has a few frames, too.
    assert!(h.k.free_frames() <= free - 100);
    h.read(t, 2, 0, 100);
    h.check();
    let before = stats(&h).reads.misses;
    h.read(t, 2, 0, 100);
    assert_eq!(stats(&h).reads.misses, before, "the last file is in memory");
    h.read(t, 1, 0, 1);
    assert_eq!(
        stats(&h).reads.misses,
        before + 1,
        "the first has lost its oldest page"
    );
    h.check();
}

#[test]
fn memory_twice_as_large_as_memory_swaps_and_goes_on() {
    for policy in POLICIES {
        let mut h = Host::new(policy, 120, plain());
        let t = h.start();
        for _ in 0..3 {
            for page in 0..240 {
                h.store(t, page);
            }
            h.check();
        }
        let state = h.k.paging().unwrap();
        assert!(state.stats.swap_outs >= 120, "{policy}: {:?}", state.stats);
        assert!(state.stats.swap_ins > 0, "{policy}");
        assert!(state.swap_used >= 120, "{policy}");
        h.exit(t);
        while h.event() {}
        h.check();
        let state = h.k.paging().unwrap();
        assert_eq!((state.resident, state.swap_used), (0, 0), "{policy}");
    }
}

#[test]
fn without_swap_space_a_program_that_is_too_large_waits_forever() {
    let mut h = Host::new("lru", 80, FileConfig::plain());
    let t = h.start();
    for page in 0.. {
        if !h.begin(t, Op::Touch(page << 12, RefKind::Store)) {
            assert!((60..80).contains(&page), "{page}");
            break;
        }
    }
    assert!(!h.event() && h.k.nudge().unwrap());
    h.check();
}

#[test]
fn access_bits_keep_mapped_pages() {
    // A program uses ten pages over and over while a file of many times the memory
    // is read: under LRU its pages stay, because they were used.
    let mut h = Host::new("lru", 100, plain());
    let t = h.start();
    let reader = h.start();
    for page in 0..10 {
        h.store(t, page);
    }
    for page in 0..1000 {
        h.read(reader, 1, page, 1);
        if page % 10 == 0 {
            (0..10).for_each(|page| h.load(t, page));
        }
    }
    assert_eq!(stats(&h).swap_ins, 0);
    assert!(stats(&h).evicted >= 900);
    h.check();
    // Without uses they go.
    h.read(reader, 1, 0, 1000);
    assert!(stats(&h).swap_outs >= 8, "{:?}", stats(&h));
}

#[test]
fn two_programs_that_read_one_file_read_it_once() {
    let mut h = Host::new("clock", 200, plain());
    let (a, b) = (h.start(), h.start());
    for page in 0..100 {
        let first = h.begin(a, Op::Call(read(3, page, 1, 0), false));
        let second = h.begin(b, Op::Call(read(3, page, 1, 0), false));
        assert!(!first && !second);
        h.settle();
    }
    let reads = stats(&h).reads;
    assert_eq!((reads.misses, reads.waited), (100, 100));
    h.check();
}

#[test]
fn a_mapped_file_is_the_page_cache_itself() {
    let mut h = Host::new("lru", 200, plain());
    let (a, b) = (h.start(), h.start());
    h.map_file(a, 0, 10, 5, true);
    h.map_file(b, 512, 10, 5, false);
    h.load(a, 3);
    h.load(b, 512 + 3);
    h.read(b, 5, 3, 1);
    assert_eq!(stats(&h).mapped.misses + stats(&h).reads.misses, 1);
    let frame = |h: &Host, t: TaskId, page| {
        h.k.space(t)
            .unwrap()
            .frame_of(piebald_units::Vpn(page))
            .unwrap()
    };
    assert_eq!(frame(&h, a, 3), frame(&h, b, 515));
    // A store through the private mapping copies, one through the shared does not.
    h.store(b, 515);
    assert_ne!(frame(&h, a, 3), frame(&h, b, 515));
    let before = frame(&h, a, 3);
    h.store(a, 3);
    assert_eq!(frame(&h, a, 3), before);
    h.check();
    // It is dirty, and is written back in time.
    assert_eq!(stats(&h).written_back, 0);
    h.sleep(Picos(60_000_000_000_000));
    assert_eq!(stats(&h).written_back, 1);
    h.check();
    h.load(a, 3);
    assert_eq!(frame(&h, a, 3), before, "it stayed in memory");
}

#[test]
fn a_private_copy_of_a_file_page_is_swapped_like_other_memory() {
    let mut h = Host::new("lru", 100, plain());
    let t = h.start();
    h.map_file(t, 0, 10, 5, false);
    (0..10).for_each(|page| h.store(t, page));
    h.read(t, 6, 0, 400);
    // All but the two that it faulted in last.
    assert_eq!(stats(&h).swap_outs, 8);
    let fills = h.k.counters().file_fills;
    (0..10).for_each(|page| h.load(t, page));
    assert_eq!(
        h.k.counters().file_fills,
        fills,
        "the copies came back, not the file"
    );
    h.check();
}

#[test]
fn after_a_fork_pages_are_shared_until_they_are_stored_to_in_memory_and_in_swap() {
    let mut h = Host::new("lru", 150, plain());
    let t = h.start();
    (0..50).for_each(|page| h.store(t, page));
    let spawn = SysOp::Spawn {
        thread: 1,
        kind: SpawnKind::Fork,
    };
    h.sys(t, spawn);
    let child = TaskId(t.0 + 1);
    h.check();
    let resident = |h: &Host| h.k.paging().unwrap().resident;
    assert_eq!(resident(&h), 50);
    (0..10).for_each(|page| h.store(child, page));
    assert_eq!(resident(&h), 60);
    h.check();
    // Everything goes out, and comes back for both; a page that both have is read once.
    h.read(t, 9, 0, 600);
    h.check();
    assert!(stats(&h).swap_outs >= 55, "{:?}", stats(&h));
    for page in 0..50 {
        h.load(t, page);
        h.load(child, page);
        h.check();
    }
    let frame = |t, page| h.k.space(t).unwrap().frame_of(piebald_units::Vpn(page));
    assert_ne!(frame(t, 5), frame(child, 5));
    assert_eq!(frame(t, 45), frame(child, 45));
    // The parent ends; what the child shares with it stays.
    h.exit(t);
    h.check();
    (0..50).for_each(|page| h.store(child, page));
    h.check();
    h.exit(child);
    while h.event() {}
    h.check();
}

#[test]
fn shared_memory_is_swapped_once_for_all() {
    let mut h = Host::new("lru", 120, plain());
    let t = h.start();
    h.sys(
        t,
        SysOp::Map {
            addr: VirtAddr(0),
            len: 20 << 12,
            backing: Backing::Anon,
            access: Access {
                write: true,
                exec: false,
            },
            shared: true,
        },
    );
    (0..20).for_each(|page| h.store(t, page));
    h.sys(
        t,
        SysOp::Spawn {
            thread: 1,
            kind: SpawnKind::Fork,
        },
    );
    let child = TaskId(t.0 + 1);
    (0..20).for_each(|page| h.store(child, page));
    h.check();
    h.read(t, 9, 0, 600);
    let frame = |h: &Host, t, page| h.k.space(t).unwrap().frame_of(piebald_units::Vpn(page));
    assert_eq!(frame(&h, t, 3), None);
    let ins = stats(&h).swap_ins;
    h.load(t, 3);
    h.load(child, 3);
    assert_eq!(frame(&h, t, 3), frame(&h, child, 3));
    assert_eq!(stats(&h).swap_ins, ins + 1);
    h.check();
    h.exit(t);
    h.exit(child);
    while h.event() {}
    h.check();
    assert_eq!(h.k.paging().unwrap().swap_used, 0);
}

#[test]
fn a_read_fills_its_buffer_page_by_page() {
    let mut h = Host::new("lru", 200, plain());
    let t = h.start();
    h.sys(t, read(1, 0, 8, 0x10_0800));
    assert_eq!(h.k.counters().anon_faults, 9, "the buffer is not aligned");
    h.sys(t, write(2, 100, 8192, 0x10_0800));
    let s = stats(&h);
    assert_eq!(s.writes.references, 3);
    // The first and the last page are behind the end of the new file: not read.
    assert_eq!(s.reads.misses, 8);
    h.check();
    h.sleep(Picos(60_000_000_000_000));
    assert_eq!(stats(&h).written_back, 3);
}

#[test]
fn alone_with_enough_memory_a_program_faults_as_without_paging() {
    let run = |mut h: Host| {
        let t = h.start();
        h.map_file(t, 5000, 20, 1, false);
        for round in 0..3 {
            for page in 0..100u64 {
                match page % 3 {
                    0 => h.load(t, page),
                    _ => h.store(t, page),
                }
            }
            h.sys(t, read(2, 0, 30, 200 << 12));
            h.sys(t, write(3, 0, 20 << 12, 200 << 12));
            (0..20).for_each(|page| h.load(t, 5000 + page));
            if round == 1 {
                h.sys(
                    t,
                    SysOp::Unmap {
                        addr: VirtAddr(10 << 12),
                        len: 20 << 12,
                    },
                );
            }
        }
        h.check();
        let c = h.k.counters();
        let pages = h.k.usage(1).pages;
        (
            c.faults,
            c.anon_faults,
            c.zero_faults,
            c.file_faults,
            c.cow_copies,
            pages,
        )
    };
    let paged = run(Host::new("linux-2.6.30", 1000, plain()));
    assert_eq!(paged, run(Host::unpaged(1000)));
}

#[test]
fn paging_is_refused_where_it_cannot_be() {
    let make = |thp| {
        let stock = Stock::new(&StockConfig::new(1 << 14, 1, Flavour::V2_6_30)).unwrap();
        let config = KernelConfig {
            thp,
            ..KernelConfig::new(1)
        };
        Kernel::new(config, Box::new(stock)).unwrap()
    };
    let side = || paged::paging("lru", 1000, plain());
    let field = |refused: Result<(), KernelError>| match refused {
        Err(KernelError::Config { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    let fine = PagingConfig { reserve: 64 };
    assert_eq!(field(make(Thp::Always).page_with(side(), fine)), "thp");
    let mut started = make(Thp::Never);
    started.start(1).unwrap();
    assert_eq!(field(started.page_with(side(), fine)), "tasks");
    for reserve in [0, 15, 1 << 14] {
        let refused = make(Thp::Never).page_with(side(), PagingConfig { reserve });
        assert_eq!(field(refused), "reserve");
    }
    assert_eq!(make(Thp::Never).page_with(side(), fine), Ok(()));
}

#[test]
fn frames_are_conserved_under_random_programs() {
    let cases: u64 = std::env::var("PIEBALD_FUZZ_CASES").map_or(3, |n| n.parse().unwrap());
    for policy in POLICIES {
        for seed in 1..=cases {
            random::run(policy, seed, 1500, 1, |_| {});
        }
    }
}

#[test]
fn the_same_programs_come_to_the_same_end() {
    let run = || random::run("linux-2.6.30", 77, 3000, 1000, |_| {});
    assert_eq!(run(), run());
}
