//! DULO under a host that takes pages out of the order before it evicts them, as one with a
//! coloured zone does, in a memory below capacity.

use std::collections::VecDeque;

use crate::dulo_kit::{Host, Kind, Random, simple, sizes};
use piebald_policy::{
    contract::replacement::{Gone, PageRef, Replacement, State},
    dulo::Config,
};

/// Victims of runs that are read once and of single blocks that come back, in a memory
/// below capacity. `kept` of them are always out of the order before they leave.
fn victims_below_capacity(max_sequence: u16, kept: Option<usize>) -> (Vec<u64>, usize) {
    let config = Config {
        max_sequence,
        ..sizes(4, 8, 32)
    };
    let mut host = Host::new(simple(Kind::Clock, 96, config));
    let (mut random, mut waiting) = (Random(7), VecDeque::new());
    for round in 0..400u64 {
        let run = (0..8).map(|n| 100_000 + round * 8 + n);
        let singles: Vec<u64> = (0..2).map(|_| 2 * random.below(24)).collect();
        for name in run.chain(singles) {
            let is_here = |page| host.policy.state(page) == State::Resident;
            if !host.number(name).is_some_and(is_here) && host.policy.resident() >= 48 {
                match kept {
                    None => {
                        host.evict();
                    }
                    Some(kept) => {
                        while waiting.len() <= kept {
                            let mut first = [PageRef(0)];
                            assert_eq!(host.policy.propose(&mut first), 1);
                            host.policy.detach(first[0]);
                            waiting.push_back(first[0]);
                        }
                        let page = waiting.pop_front().unwrap();
                        host.victims.push(host.name(page));
                        host.forget(page, Gone::Evicted);
                    }
                }
                host.policy.validate().unwrap();
            }
            let is_held = |page: &PageRef| host.policy.state(*page) == State::Detached;
            if let Some(page) = host.number(name).filter(is_held) {
                waiting.retain(|other| *other != page);
                host.policy.reattach(page);
            }
            host.access(name);
        }
    }
    let singles = host.victims.iter().filter(|name| **name < 100_000).count();
    (host.victims, singles)
}

#[test]
fn a_host_that_takes_pages_out_before_it_evicts_them_gets_the_same_victims() {
    let (_, of_the_base) = victims_below_capacity(1, None);
    let (evicted, singles) = victims_below_capacity(128, None);
    assert!(singles < of_the_base / 2, "{singles}, {of_the_base}");
    let (detached, _) = victims_below_capacity(128, Some(0));
    let differs = detached.iter().zip(&evicted).position(|(a, b)| a != b);
    assert_eq!((differs, detached.len()), (None, evicted.len()));
    // With some of them out of the order all the time there are other victims, but
    // still runs.
    let (_, singles) = victims_below_capacity(128, Some(6));
    assert!(singles < of_the_base / 2, "{singles}, {of_the_base}");
}
