//! The model may become faster, not different: counters, clocks and occupancy
//! of many runs are folded into one number per machine and compared with what
//! the first, slow version gave. A change that is meant to change results
//! makes the numbers anew (`scripts/golden.py make hw`) and says why.
//!
//! Changed since then: a page walk begins when the address is known, not when
//! the instruction is dispatched. A reference reaches shared levels when it leaves
//! the core, not when it is dispatched: the horizon of a batch is held against that.
//! A fetch that is not simulated leaves no cache, so that no horizon stops it. Row
//! hits go before conflicts that wait. Non-caching loads do not start the second level's
//! prefetchers, which would bring what is to be read past the caches into them.

use std::{io::Write, path::Path};

use crate::digest_kit::{
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

/// Requires that a digest is the one that is kept. `PIEBALD_DIGESTS` names a file to which it
/// is written as well, for a new list.
fn hold(name: &str, found: &str) {
    if let Some(path) = std::env::var_os("PIEBALD_DIGESTS") {
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.create(true).append(true).open(path).expect("opens");
        // One write, as the tests run side by side.
        file.write_all(format!("{name} {found}\n").as_bytes())
            .expect("written");
    }
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/golden/hw.json");
    let text = std::fs::read_to_string(&list).expect("testdata/golden/hw.json");
    let list: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(list["digests"][name].as_str(), Some(found), "{name}");
}

#[test]
fn an_lru_machine_gives_what_it_always_gave() {
    hold("lru", &digest(&peers(), 60_000, 4000));
}

#[test]
fn two_threads_a_core_with_prefetchers_give_what_they_always_gave() {
    hold("smt", &digest(&smt(), 10_000, 8000));
}

#[test]
fn sixteen_cores_with_exclusive_caches_give_what_they_always_gave() {
    hold("opteron", &digest(&opteron(), 10_000, 8000));
}

#[test]
fn dies_on_a_bus_give_what_they_always_gave() {
    hold("front-side-bus", &digest(&front_side_bus(), 10_000, 8000));
}

#[test]
fn hashed_slices_give_what_they_always_gave() {
    hold("sliced", &digest(&sliced(), 10_000, 8000));
}

#[test]
fn a_single_level_gives_what_it_always_gave() {
    hold("one-level", &digest(&one_level(), 10_000, 4000));
}

/// Every pair of promises of the second and the last level, under every policy.
#[test]
fn every_promise_and_policy_gives_what_it_always_gave() {
    let promises = [
        ("non-inclusive", Inclusion::NonInclusive),
        ("inclusive", Inclusion::Inclusive),
        ("exclusive", Inclusion::Exclusive),
        ("victim", Inclusion::Victim),
    ];
    let policies = [
        Replacement::Lru,
        Replacement::TreePlru,
        Replacement::Nru,
        Replacement::Rrip,
        Replacement::Random,
    ];
    for (name, second) in promises {
        let mut all = Digest::new();
        for (_, last) in promises {
            for policy in policies {
                let spec = promising(second, last, policy);
                for features in features() {
                    let mut machine = machine(&spec, features);
                    all.add(run_mixed(&mut machine, 11, 1500).0);
                }
            }
        }
        hold(&format!("second-level-{name}"), &format!("{:016x}", all.0));
    }
}
