//! MFC in a model of memory: every order in which two threads may interleave, and see
//! what the other wrote, up to a number of
//! interruptions.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p piebald-policy --test mfc_loom`, which
//! `./test.sh model` runs in a target directory of its own. Without the flag there is
//! nothing here.
#![cfg(loom)]

mod mfc_kit;
mod random;

use std::sync::Arc;

use loom::thread;
use mfc_kit::{FILE, KIB, Plan, VecMfc, level, plain, read};
use piebald_policy::{
    contract::reads::{ReadOutcome, ReadPlacement},
    mfc::{Config, DomainId, Why},
};
use piebald_units::{Bytes, CoreId, FileId, Picos};

/// How often a thread is interrupted at most, unless `LOOM_MAX_PREEMPTIONS` says it.
const PREEMPTIONS: usize = 3;

/// Two cores, each with room for one file of 256 KB.
fn machine() -> Plan {
    plain(2, 300 * KIB)
}

/// Two cores whose files go to one cache that they share.
fn shared() -> Plan {
    let mut plan = plain(2, 64 * KIB);
    plan.shared = vec![level(600 * KIB)];
    plan.domains.iter_mut().for_each(|d| d.shared = Some(0));
    plan
}

/// Runs two threads in every order on what `make` makes, and counts from scratch what
/// they leave.
fn both(make: fn() -> VecMfc, one: fn(&VecMfc), other: fn(&VecMfc), after: fn(&VecMfc)) {
    let mut builder = loom::model::Builder::new();
    // The default suits algorithms that are one loop; a read takes some hundred steps.
    builder.max_branches = 50_000;
    builder.preemption_bound = builder.preemption_bound.or(Some(PREEMPTIONS));
    builder.check(move || {
        let mfc = Arc::new(make());
        let second = {
            let mfc = mfc.clone();
            thread::spawn(move || other(&mfc))
        };
        one(&mfc);
        second.join().unwrap();
        mfc.validate().expect("consistent books");
        after(&mfc);
    });
}

fn empty() -> VecMfc {
    machine().mfc(Config::PAPER, 8)
}

/// File 1 on core 0 and file 2 on core 1, two uses each.
fn full() -> VecMfc {
    let mfc = empty();
    for (core, file) in [(0, 1), (1, 2), (0, 1), (1, 2)] {
        mfc.decide(&read(core, file, FILE));
    }
    mfc
}

fn holders(mfc: &VecMfc, file: u64) -> u64 {
    mfc.holders(FileId(file), Bytes(FILE), 0)
}

fn uses(mfc: &VecMfc, file: u64) -> u32 {
    let on = |d| mfc.uses(FileId(file), Bytes(FILE), 0, DomainId(d));
    on(0) + on(1)
}

#[test]
fn two_readers_of_one_new_file_make_one_record_of_it() {
    both(
        empty,
        |mfc| {
            mfc.decide(&read(0, 1, FILE));
        },
        |mfc| {
            mfc.decide(&read(1, 1, FILE));
        },
        // Who comes too late for the set or the core reads past the caches.
        |mfc| assert!((1..=2).contains(&uses(mfc, 1))),
    );
}

#[test]
fn no_use_of_a_cached_file_is_lost() {
    both(
        full,
        |mfc| {
            let verdict = mfc.decide(&read(0, 1, FILE));
            assert_eq!((verdict.why, verdict.read.core), (Why::Held, CoreId(0)));
        },
        |mfc| {
            let verdict = mfc.decide(&read(1, 1, FILE));
            assert_eq!((verdict.why, verdict.read.core), (Why::Held, CoreId(0)));
        },
        |mfc| assert_eq!((uses(mfc, 1), holders(mfc, 1)), (4, 1)),
    );
}

#[test]
fn two_files_that_want_the_same_place_do_not_both_get_it() {
    both(
        || {
            let mfc = full();
            for file in [3, 4] {
                for _ in 0..3 {
                    mfc.decide(&read(0, file, FILE));
                }
            }
            assert_eq!(holders(&mfc, 3) | holders(&mfc, 4), 0);
            mfc
        },
        |mfc| {
            mfc.decide(&read(0, 3, FILE));
        },
        |mfc| {
            mfc.decide(&read(0, 4, FILE));
        },
        |mfc| {
            let held: u32 = (1..=4).map(|f| holders(mfc, f).count_ones()).sum();
            assert_eq!(held, 2);
        },
    );
}

#[test]
fn a_file_can_vanish_while_its_core_takes_another() {
    both(
        || {
            let mfc = full();
            for _ in 0..3 {
                mfc.decide(&read(0, 3, FILE));
            }
            mfc
        },
        |mfc| {
            mfc.decide(&read(0, 3, FILE));
        },
        |mfc| {
            mfc.forget(FileId(1), Bytes(FILE));
            mfc.forget(FileId(2), Bytes(FILE));
        },
        |mfc| {
            // What was found under a lock goes with the next use of it.
            for core in [0, 1] {
                mfc.set_online(CoreId(core), false);
            }
            mfc.validate().expect("consistent books");
            assert_eq!(mfc.available(DomainId(0)), Bytes(300 * KIB));
            assert_eq!(mfc.available(DomainId(1)), Bytes(300 * KIB));
        },
    );
}

#[test]
fn a_core_can_go_while_a_file_comes() {
    both(
        empty,
        |mfc| {
            mfc.decide(&read(0, 1, FILE));
        },
        |mfc| mfc.set_online(CoreId(0), false),
        |mfc| {
            // Whatever came last, the core starts empty.
            mfc.set_online(CoreId(0), true);
            mfc.set_online(CoreId(0), false);
            assert_eq!(holders(mfc, 1) & 1, 0);
        },
    );
}

#[test]
fn bytes_in_a_shared_cache_are_counted_once() {
    both(
        || shared().mfc(Config::PAPER, 8),
        |mfc| {
            mfc.decide(&read(0, 1, FILE));
        },
        |mfc| {
            mfc.decide(&read(1, 2, FILE));
        },
        |_| (),
    );
}

#[test]
fn ageing_beside_reading_loses_no_file() {
    both(
        || {
            let mfc = full();
            mfc.tick(CoreId(0), Picos(1));
            mfc
        },
        |mfc| {
            mfc.tick(CoreId(0), Picos(2 * mfc_kit::SECOND));
        },
        |mfc| {
            let request = read(0, 1, FILE);
            let read = mfc.before(&request, Picos(0));
            let ran_on = read.core;
            let outcome = ReadOutcome {
                request,
                read,
                ran_on,
            };
            mfc.after(&outcome, Picos(2 * mfc_kit::SECOND));
        },
        |mfc| {
            // 2 uses and one more, halved: before or after it came, or not at all if it
            // came in between twice.
            assert!((3..=5).contains(&(uses(mfc, 1) + 2)), "{}", uses(mfc, 1));
            assert_eq!(holders(mfc, 1), 1);
        },
    );
}
