//! The model may become faster, not different: counters, clocks and occupancy
//! of many runs are folded into one number per machine and compared with what
//! the first, slow version gave. A change that is meant to change results
//! replaces the constants and says why.
//!
//! Changed since then: a page walk begins when the address is known, not when
//! the instruction is dispatched. A reference reaches shared levels when it leaves
//! the core, not when it is dispatched: the horizon of a batch is held against that.
//! A fetch that is not simulated leaves no cache, so that no horizon stops it. Row
//! hits go before conflicts that wait. Non-caching loads do not start the second level's
//! prefetchers, which would bring what is to be read past the caches into them.

mod digest_kit;

use digest_kit::{
    Digest, front_side_bus, machine, one_level, opteron, peers, promising, run_mixed, run_stream,
    sliced, smt, stream,
};
use piebald_hw::{
    Features,
    spec::{Inclusion, MachineSpec, Replacement},
};

fn features() -> [Features; 3] {
    ["none", "window", "all"].map(|text| text.parse().expect("a name of features"))
}

/// The four streams and a random program, each under three sets of features.
fn digest(spec: &MachineSpec, refs: u64, steps: u32) -> String {
    let mut all = Digest::new();
    for features in features() {
        for name in ["hot", "zipf", "uniform", "strided"] {
            let mut machine = machine(spec, features);
            let end = run_stream(&mut machine, &stream(name, refs));
            all.add(end.0);
            all.add_machine(&machine);
            machine.validate().expect("the rules hold");
        }
        let mut machine = machine(spec, features);
        all.add(run_mixed(&mut machine, 7, steps).0);
    }
    format!("{:016x}", all.0)
}

#[test]
fn an_lru_machine_gives_what_it_always_gave() {
    assert_eq!(digest(&peers(), 60_000, 4000), "84f763f1cecd095b");
}

#[test]
fn two_threads_a_core_with_prefetchers_give_what_they_always_gave() {
    assert_eq!(digest(&smt(), 10_000, 8000), "c5cc2b10be772e83");
}

#[test]
fn sixteen_cores_with_exclusive_caches_give_what_they_always_gave() {
    assert_eq!(digest(&opteron(), 10_000, 8000), "acb65bf53d7adba1");
}

#[test]
fn dies_on_a_bus_give_what_they_always_gave() {
    assert_eq!(digest(&front_side_bus(), 10_000, 8000), "6de173c5cd2f6106");
}

#[test]
fn hashed_slices_give_what_they_always_gave() {
    assert_eq!(digest(&sliced(), 10_000, 8000), "b6c8f23c973bbbb6");
}

#[test]
fn a_single_level_gives_what_it_always_gave() {
    assert_eq!(digest(&one_level(), 10_000, 4000), "b35994e29fdac34c");
}

/// Every pair of promises of the second and the last level, under every policy.
#[test]
fn every_promise_and_policy_gives_what_it_always_gave() {
    let promises = [
        Inclusion::NonInclusive,
        Inclusion::Inclusive,
        Inclusion::Exclusive,
        Inclusion::Victim,
    ];
    let policies = [
        Replacement::Lru,
        Replacement::TreePlru,
        Replacement::Nru,
        Replacement::Rrip,
        Replacement::Random,
    ];
    let mut found = Vec::new();
    for second in promises {
        let mut all = Digest::new();
        for last in promises {
            for policy in policies {
                let spec = promising(second, last, policy);
                for features in features() {
                    let mut machine = machine(&spec, features);
                    all.add(run_mixed(&mut machine, 11, 1500).0);
                }
            }
        }
        found.push(format!("{:016x}", all.0));
    }
    assert_eq!(
        found,
        [
            "da904eb44a4aac53",
            "f438ff7b6563481f",
            "9511f843bfc976fd",
            "13de8f2df359da6b"
        ]
    );
}
