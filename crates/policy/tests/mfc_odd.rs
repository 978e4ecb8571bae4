//! What can be wrong with machines, parameters, readers, files and hosts; and many
//! threads at once.

use crate::mfc_kit;
use std::thread;

use crate::mfc_kit::{
    FILE, KIB, MIB, Plan, Random, SECOND, VecMfc, VecStore, ask, holders, opteron, pairs, pinned,
    plain, read, short, uses,
};
use piebald_policy::{
    contract::reads::{
        Load::Caching, Load::NonCaching, ObjectId, ReadOutcome, ReadPlacement, Reader, Stay,
    },
    mfc::{Config, ConfigError, DomainId, Level, Mfc, MinRead, Sizes, TopologyError, Why},
};
use piebald_units::{Bytes, CoreId, CoreSet, FileId, Picos};

fn refused(plan: &Plan, cores: CoreSet) -> String {
    let mut topology = plan.topology();
    topology.cores = cores;
    let error = Sizes::of(&topology, &Config::PAPER, 8).expect_err("a machine that does not fit");
    error.to_string()
}

fn spoilt(spoil: impl FnOnce(&mut Plan)) -> String {
    let mut plan = pairs();
    let cores = plan.topology().cores;
    spoil(&mut plan);
    refused(&plan, cores)
}

#[test]
fn machines_that_make_no_sense_are_refused_by_name() {
    let pairs = pairs();
    assert_eq!(
        refused(&pairs, CoreSet::first(9)),
        "topology: cpu8 is in no domain; allowed: one"
    );
    assert_eq!(
        refused(&pairs, CoreSet::first(7)),
        "topology: cpu7 is in a domain and not among the cores"
    );
    assert_eq!(
        spoilt(|p| p.domains[1].cores = CoreSet::from_bits(0b110)),
        "topology: cpu1 is in two domains; allowed: one"
    );
    assert_eq!(
        spoilt(|p| p.domains[3].cores = CoreSet::EMPTY),
        "topology: domain 3 has no cores; allowed: 1 and more"
    );
    assert_eq!(
        spoilt(|p| p.domains.clear()),
        "topology: 0 cache domains; allowed: 1 to 64"
    );
    assert_eq!(
        spoilt(|p| p.domains[2].own = [Level::default(); 2]),
        "topology: domain 2 has no cache; allowed: 1 B and more"
    );
    assert_eq!(
        spoilt(|p| p.domains[2].own[0].lines = 0),
        "topology: a cache of domain 2 has 0 lines; allowed: 1 and more"
    );
    assert_eq!(
        spoilt(|p| p.domains[0].shared = Some(0)),
        "topology: domain 0 names shared cache 0, which does not exist"
    );
    assert_eq!(
        spoilt(|p| p.domains[0].node = 2),
        "topology: domain 0 is on a node that does not exist"
    );
    assert_eq!(
        spoilt(|p| p.hops.truncate(3)),
        "topology: 3 entries of hops; needed: nodes x nodes = 4, nodes >= 1"
    );
    assert_eq!(
        spoilt(|p| p.nodes = 0),
        "topology: 4 entries of hops; needed: nodes x nodes = 0, nodes >= 1"
    );
    assert_eq!(
        spoilt(|p| p.hops[1] = 4),
        "topology: 4 hops; allowed: 0 to 3"
    );
    assert_eq!(
        spoilt(|p| p.hops[3] = 1),
        "topology: node 1 is some hops from itself; allowed: 0"
    );
}

#[test]
fn parameters_out_of_range_are_refused_by_name() {
    let refused = |spoil: fn(&mut Config)| {
        let mut config = Config::PAPER;
        spoil(&mut config);
        let error = Sizes::of(&pairs().topology(), &config, 8).expect_err("no such value");
        error.to_string()
    };
    assert_eq!(
        refused(|c| c.chunk = Bytes(0)),
        "chunk is 0; allowed: 1 and more"
    );
    assert_eq!(
        refused(|c| c.lfu_factor = 0),
        "lfu_factor is 0; allowed: 1 and more"
    );
    assert_eq!(
        refused(|c| c.period = Picos(0)),
        "period is 0; allowed: 1 and more"
    );
    assert_eq!(
        refused(|c| c.age_step = 0),
        "age_step is 0; allowed: 1 and more"
    );
    assert_eq!(
        refused(|c| c.decay_shift = 32),
        "decay_shift is 32; allowed: 1 to 31"
    );
    assert_eq!(
        refused(|c| c.on_chip_bytes_per_us = 1808),
        "on_chip_bytes_per_us is 1808; allowed: above off_chip_bytes_per_us (1808)"
    );
}

#[test]
fn memory_that_is_too_short_is_refused_by_name() {
    let plan = pairs();
    let sizes = Sizes::of(&plan.topology(), &Config::PAPER, 16).unwrap();
    let mut store = VecStore::collect(&sizes);
    store.cells.pop();
    let error = Mfc::new(store, &plan.topology(), Config::PAPER).unwrap_err();
    assert_eq!(error.to_string(), "cells lent: 63; needed: 64");
    let mut store = VecStore::collect(&sizes);
    store.files.clear();
    let error = Mfc::new(store, &plan.topology(), Config::PAPER).unwrap_err();
    assert_eq!(
        error,
        ConfigError::Store {
            name: "files",
            lent: 0,
            needed: 8
        }
    );
    assert_eq!(
        TopologyError::Domains(65).to_string(),
        "65 cache domains; allowed: 1 to 64"
    );
}

#[test]
fn lent_memory_may_hold_anything_at_first() {
    let plan = plain(2, MIB);
    let mfc = plan.mfc(Config::PAPER, 64);
    for file in 0..6 {
        ask(&mfc, 0, file);
    }
    let used = mfc.into_store();
    let again = Mfc::new(used, &plan.topology(), Config::PAPER).unwrap();
    assert_eq!(again.available(DomainId(0)), Bytes(MIB));
    assert_eq!(ask(&again, 1, 1), (1, Caching, Why::RoomHere));
}

#[test]
fn extreme_parameters_decide_something() {
    let config = Config {
        min_read: MinRead::BreakEven,
        migration: [Picos(u64::MAX); 4],
        working_set: Bytes(u64::MAX),
        ..Config::PAPER
    };
    // No file is worth moving for.
    let mfc = plain(2, MIB).mfc(config, 8);
    assert_eq!(ask(&mfc, 0, 1), (0, Caching, Why::Small));
    let config = Config {
        min_read: MinRead::Fixed(Bytes(0)),
        on_chip_bytes_per_us: u32::MAX,
        off_chip_bytes_per_us: u32::MAX - 1,
        chunk: Bytes(u64::MAX),
        busy: u32::MAX,
        ..Config::PAPER
    };
    let mfc = plain(2, MIB).mfc(config, 8);
    for size in [0, 1, FILE, MIB, u64::MAX] {
        for offset in [0, 1, u64::MAX] {
            let mut request = read(0, 1, size);
            request.offset = offset;
            mfc.decide(&request);
            mfc.validate().unwrap();
        }
    }
}

#[test]
fn a_pinned_reader_stays() {
    let mfc = plain(2, MIB).mfc(Config::PAPER, 64);
    ask(&mfc, 1, 9);
    // Room here: it gets a copy of what it cannot go to.
    let stuck = mfc.decide(&pinned(0, 0b01, 9, FILE));
    assert_eq!(short(stuck), (0, Caching, Why::RoomHere));
    for file in 1..3 {
        ask(&mfc, 0, file);
    }
    // None left, as popular as the others: past the caches, though another core had room.
    let stuck = mfc.decide(&pinned(0, 0b01, 4, FILE));
    assert_eq!(short(stuck), (0, NonCaching, Why::Unpopular));
    // More popular: in place of one here.
    let stuck = mfc.decide(&pinned(0, 0b01, 4, FILE));
    assert_eq!(stuck.why, Why::Unpopular);
    let stuck = mfc.decide(&pinned(0, 0b01, 4, FILE));
    assert_eq!(short(stuck), (0, Caching, Why::Replaced));
    assert_eq!(holders(&mfc, 4), 0b01);
    // A set without its own core, or without any: it stays where it is rather than nowhere.
    for cores in [0, 1 << 40] {
        assert_eq!(mfc.decide(&pinned(0, cores, 9, FILE)).read.core, CoreId(0));
    }
    mfc.validate().unwrap();
}

#[test]
fn a_reader_goes_only_to_cores_that_it_may_use() {
    let mfc = pairs().mfc(Config::PAPER, 64);
    ask(&mfc, 0, 9);
    mfc.set_runnable(CoreId(1), 1);
    assert_eq!(
        mfc.decide(&pinned(4, 0b1_0010, 9, FILE)).read.core,
        CoreId(1)
    );
    assert_eq!(
        mfc.decide(&pinned(4, 0b1_0001, 9, FILE)).read.core,
        CoreId(0)
    );
}

#[test]
fn a_core_that_goes_takes_its_files_along() {
    let mfc = plain(2, MIB).mfc(Config::PAPER, 64);
    ask(&mfc, 0, 9);
    mfc.set_online(CoreId(0), false);
    assert_eq!(
        (holders(&mfc, 9), mfc.available(DomainId(0))),
        (0, Bytes(MIB))
    );
    // Its uses were those of the file, and stay.
    assert_eq!(uses(&mfc, 9, 0), 1);
    assert_eq!(ask(&mfc, 1, 9), (1, Caching, Why::RoomHere));
    for file in 0..4 {
        assert_eq!(ask(&mfc, 1, file).0, 1, "nobody goes to a core that is off");
    }
    // Asked on a core that is off: a host's mistake, and nothing happens.
    assert_eq!(ask(&mfc, 0, 9), (0, Caching, Why::Stranger));
    mfc.set_online(CoreId(0), true);
    assert_eq!(ask(&mfc, 1, 5), (0, Caching, Why::RoomElsewhere));
}

#[test]
fn a_domain_stays_as_long_as_it_has_a_core() {
    let mfc = pairs().mfc(Config::PAPER, 64);
    ask(&mfc, 0, 9);
    mfc.set_online(CoreId(0), false);
    assert_eq!(ask(&mfc, 4, 9), (1, Caching, Why::Held));
    mfc.set_online(CoreId(1), false);
    assert_eq!(holders(&mfc, 9), 0);
}

#[test]
fn cores_that_do_not_exist_change_nothing() {
    let mfc = plain(2, MIB).mfc(Config::PAPER, 64);
    for core in [2, 63, 64, u16::MAX] {
        mfc.set_online(CoreId(core), false);
        mfc.set_online(CoreId(core), true);
        mfc.set_runnable(CoreId(core), 9);
        mfc.quantum(CoreId(core), &[u32::MAX; 3]);
        assert!(!mfc.tick(CoreId(core), Picos(1)));
        assert_eq!(ask(&mfc, core, 1), (core, Caching, Why::Stranger));
    }
    assert_eq!(ask(&mfc, 0, 1).2, Why::RoomHere);
    assert_eq!(mfc.available(DomainId(9)), Bytes(0));
    assert_eq!(uses(&mfc, 1, 200), 0);
}

#[test]
fn files_grow_and_shrink_where_they_are() {
    let mfc = plain(2, MIB).mfc(Config::PAPER, 64);
    ask(&mfc, 0, 1);
    // Seen at the next read.
    mfc.decide(&read(0, 1, 300 * KIB));
    assert_eq!(mfc.available(DomainId(0)), Bytes(724 * KIB));
    // Or told at once; larger than its place: other files give way when one comes.
    assert!(mfc.resize(FileId(1), Bytes(300 * KIB), Bytes(MIB)));
    assert_eq!(mfc.available(DomainId(0)), Bytes(0));
    assert!(mfc.resize(FileId(1), Bytes(MIB), Bytes(100 * KIB)));
    assert_eq!(mfc.available(DomainId(0)), Bytes(924 * KIB));
    // Smaller than a small one: not looked at any more, and forgotten when its place is
    // wanted.
    assert_eq!(mfc.decide(&read(0, 1, 10 * KIB)).why, Why::Small);
    mfc.validate().unwrap();
}

#[test]
fn files_that_come_to_be_cut_are_forgotten_as_a_whole() {
    let mfc = plain(2, MIB).mfc(Config::PAPER, 64);
    ask(&mfc, 0, 1);
    let large = Bytes(3 * MIB);
    assert!(mfc.resize(FileId(1), Bytes(FILE), large));
    assert_eq!(holders(&mfc, 1), 0);
    for offset in [0, FILE, 2 * FILE] {
        let mut request = read(0, 1, large.0);
        request.offset = offset;
        assert_eq!(mfc.decide(&request).read.load, Caching);
        assert_ne!(mfc.holders(FileId(1), large, offset), 0);
    }
    // Shorter by chunks: those that are left stay.
    let less = Bytes(MIB + FILE);
    assert!(mfc.resize(FileId(1), large, less));
    assert_ne!(mfc.holders(FileId(1), less, 2 * FILE), 0);
    assert!(mfc.resize(FileId(1), less, Bytes(FILE)));
    assert_eq!(mfc.available(DomainId(0)), Bytes(MIB));
    assert_eq!(mfc.available(DomainId(1)), Bytes(MIB));
    mfc.validate().unwrap();
}

#[test]
fn a_file_that_vanishes_leaves_nothing() {
    let mfc = plain(2, MIB).mfc(Config::FIGURE_2, 64);
    for core in [0, 1] {
        ask(&mfc, core, 1);
    }
    assert!(mfc.forget(FileId(1), Bytes(FILE)));
    assert_eq!((holders(&mfc, 1), uses(&mfc, 1, 0)), (0, 0));
    assert_eq!(mfc.available(DomainId(1)), Bytes(MIB));
    assert!(mfc.forget(FileId(1), Bytes(u64::MAX)), "twice is as good");
    mfc.place(ObjectId(1), Bytes(FILE), Reader::on(CoreId(0)));
    assert!(mfc.forget_object(ObjectId(1)));
    assert_eq!(mfc.available(DomainId(0)), Bytes(MIB));
    // One of more chunks than there are records.
    let huge = Bytes(1 << 50);
    for n in 0..40 {
        let mut request = read(0, 2, huge.0);
        request.offset = n * FILE;
        mfc.decide(&request);
    }
    assert!(mfc.forget(FileId(2), huge));
    assert_eq!(mfc.available(DomainId(0)), Bytes(MIB));
    mfc.validate().unwrap();
}

#[test]
fn files_beyond_the_records_are_read_without_one() {
    let mfc = opteron().mfc(Config::PAPER, 8);
    for file in 0..8 {
        assert_eq!(ask(&mfc, 0, file).2, Why::RoomHere);
    }
    assert_eq!(
        ask(&mfc, 0, 8),
        (0, Caching, Why::Untracked),
        "there is room"
    );
    let full = [u32::MAX; 3];
    mfc.quantum(CoreId(0), &full);
    assert_eq!(ask(&mfc, 0, 8), (0, NonCaching, Why::Untracked));
    assert!(mfc.forget(FileId(3), Bytes(FILE)));
    assert_eq!(ask(&mfc, 1, 8).2, Why::RoomHere);
}

#[test]
fn the_record_of_the_least_used_file_that_no_core_has_goes_first() {
    let mfc = plain(1, MIB).mfc(Config::PAPER, 8);
    for file in 0..3 {
        for _ in 0..9 {
            ask(&mfc, 0, file);
        }
    }
    for file in 3..8 {
        for _ in 0..file {
            ask(&mfc, 0, file);
        }
    }
    ask(&mfc, 0, 100);
    assert_eq!(
        (uses(&mfc, 3, 0), uses(&mfc, 4, 0), uses(&mfc, 100, 0)),
        (0, 4, 1)
    );
}

#[test]
fn a_host_that_does_not_move_the_reader_is_believed() {
    let mfc = plain(2, MIB).mfc(Config::PAPER, 64);
    for file in 0..3 {
        ask(&mfc, 0, file);
    }
    let outcome = |file, ran_on| {
        let request = read(0, file, FILE);
        let read = mfc.before(&request, Picos(0));
        ReadOutcome {
            request,
            read,
            ran_on: CoreId(ran_on),
        }
    };
    // Placed on core 1, and read there.
    let done = outcome(3, 1);
    assert!(done.read.placed);
    mfc.after(&done, Picos(0));
    assert_eq!(holders(&mfc, 3), 0b10);
    // Placed there, and not read there.
    mfc.after(&outcome(4, 0), Picos(0));
    assert_eq!((holders(&mfc, 4), mfc.counters().astray), (0, 1));
    // Known to be there, and not read there: it still is there.
    mfc.after(&outcome(3, 0), Picos(0));
    assert_eq!((holders(&mfc, 3), mfc.counters().astray), (0b10, 2));
    mfc.validate().unwrap();
}

#[test]
fn after_ages_so_that_a_host_without_timer_does_too() {
    let mfc = plain(1, MIB).mfc(Config::PAPER, 8);
    for _ in 0..8 {
        ask(&mfc, 0, 1);
    }
    let request = read(0, 1, FILE);
    for second in 0..2 {
        let read = mfc.before(&request, Picos(second * SECOND));
        let ran_on = read.core;
        mfc.after(
            &ReadOutcome {
                request,
                read,
                ran_on,
            },
            Picos(second * SECOND),
        );
    }
    assert_eq!(uses(&mfc, 1, 0), 5);
}

#[test]
fn without_policy_everyone_stays() {
    let request = read(3, 1, 9 * MIB);
    let read = Stay.before(&request, Picos(0));
    assert_eq!(
        (read.core, read.load, read.until, read.placed),
        (CoreId(3), Caching, u64::MAX, false)
    );
}

#[test]
fn reasons_are_told_in_words() {
    let mut words: Vec<String> = Why::ALL.iter().map(Why::to_string).collect();
    words.sort();
    words.dedup();
    assert_eq!(words.len(), Why::ALL.len());
}

/// What one thread does on a machine of 16 cores with 30 files, some of them large.
fn mingle(mfc: &VecMfc, seed: u64, ops: u64) -> u64 {
    let mut random = Random(seed);
    let mut core = CoreId(random.below(16) as u16);
    let mut reads = 0;
    for n in 0..ops {
        let file = random.below(30);
        let size = if file < 3 {
            4 * MIB
        } else {
            200 * KIB + file * 8 * KIB
        };
        let now = Picos(n * SECOND / 50);
        match random.below(40) {
            0 => {
                mfc.forget(FileId(file), Bytes(size));
            }
            1 => mfc.set_online(CoreId(15), random.below(2) == 0),
            2 => mfc.quantum(core, &[random.below(2000) as u32; 3]),
            3 => mfc.set_runnable(core, random.below(4) as u32),
            4 => {
                mfc.resize(FileId(file), Bytes(size), Bytes(size + 4096));
            }
            _ => {
                let mut request = read(core.0, file, size);
                request.offset = random.below(size);
                let read = mfc.before(&request, now);
                core = read.core;
                let ran_on = core;
                mfc.after(
                    &ReadOutcome {
                        request,
                        read,
                        ran_on,
                    },
                    now,
                );
                reads += 1;
            }
        }
    }
    reads
}

#[test]
fn threads_that_mingle_leave_consistent_books() {
    let ops = mfc_kit::setting("PIEBALD_MFC_OPS", 4_000);
    for round in 0..20 {
        let mfc = opteron().mfc(Config::PAPER, 96);
        let reads: u64 = thread::scope(|scope| {
            let workers: Vec<_> = (0..4)
                .map(|n| {
                    let mfc = &mfc;
                    scope.spawn(move || mingle(mfc, round * 4 + n, ops))
                })
                .collect();
            workers.into_iter().map(|w| w.join().unwrap()).sum()
        });
        mfc.validate().unwrap();
        assert_eq!(mfc.counters().reads(), reads);
    }
}

/// Any numbers that a caller may pass: no panic, and consistent books.
#[test]
fn fuzz_any_call_is_answered() {
    let cases = mfc_kit::setting("PIEBALD_FUZZ_CASES", 2_000);
    let plans = [plain(2, MIB), pairs(), opteron()];
    let mut random = Random(11);
    let odd = |random: &mut Random| match random.below(5) {
        0 => 0,
        1 => u64::MAX - random.below(3),
        2 => 1 << random.below(64),
        _ => random.below(3 * MIB),
    };
    for case in 0..cases {
        let plan = &plans[(case % 3) as usize];
        let config = Config {
            min_read: MinRead::Fixed(Bytes(odd(&mut random))),
            chunk: Bytes(odd(&mut random).max(1)),
            whole_up_to: (random.below(2) == 0).then_some(Bytes(odd(&mut random))),
            lfu_factor: odd(&mut random).max(1) as u32 | 1,
            period: Picos(odd(&mut random).max(1)),
            ..Config::PAPER
        };
        let mfc = plan.mfc(config, 1 + random.below(40) as u32);
        for _ in 0..60 {
            let core = CoreId(random.below(18) as u16);
            let (file, size) = (FileId(random.below(6)), Bytes(odd(&mut random)));
            let now = Picos(odd(&mut random));
            match random.below(12) {
                0 => drop(mfc.forget(file, size)),
                1 => drop(mfc.resize(file, size, Bytes(odd(&mut random)))),
                2 => mfc.set_online(core, random.below(2) == 0),
                3 => mfc.quantum(core, &[odd(&mut random) as u32; 3]),
                4 => drop(mfc.tick(core, now)),
                5 => drop(mfc.place(ObjectId(file.0), size, Reader::on(core))),
                6 => mfc.set_runnable(core, odd(&mut random) as u32),
                _ => {
                    let mut request = pinned(core.0, odd(&mut random), file.0, size.0);
                    request.offset = odd(&mut random);
                    let read = mfc.before(&request, now);
                    let ran_on = CoreId(random.below(18) as u16);
                    mfc.after(
                        &ReadOutcome {
                            request,
                            read,
                            ran_on,
                        },
                        now,
                    );
                }
            }
            mfc.validate()
                .unwrap_or_else(|e| panic!("case {case}: {e}"));
        }
    }
}
