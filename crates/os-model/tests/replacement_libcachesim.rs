//! Misses of policies beside those of libCacheSim on the same references: equal, or listed
//! here with the rule that differs. `bench/libcachesim` has the script that counted, and
//! writes both as a table.

use crate::recorded;
use std::collections::{BTreeMap, BTreeSet};

use crate::libcachesim::traces::{self, Trace};
use crate::replaying::Cache;
use piebald_os_model::replace::PolicySpec;
use piebald_os_model::replace::registry::{Setup, Visitor, build_spec};
use piebald_policy::contract::replacement::Replacement;

/// libCacheSim's counts.
const COUNTS: &str = "testdata/libcachesim/0.3.5.tsv";

/// Policies with equal counts, and their names in libCacheSim.
const EQUAL: &[(&str, &str)] = &[
    ("fifo", "FIFO"),
    ("lru", "LRU"),
    ("clock", "Clock"),
    ("sieve", "Sieve"),
    ("arc", "ARC"),
    ("s3-fifo", "S3FIFO"),
    ("2q:rule=libcachesim", "TwoQ"),
    ("lru-2:retained=0", "LRUK"),
    ("mq:life-time=10000", "MQ"),
    ("min", "Belady"),
];

/// Policies with other counts. A rule of libCacheSim that is said here to make the
/// difference does: with it a rerun over queues has libCacheSim's counts.
const DIFFERENT: &[(&str, &str)] = &[
    // The name of a page that is asked for leaves A1out before room is made.
    ("2q", "TwoQ"),
    // No history is kept of a page that left.
    ("lru-2", "LRUK"),
    // The life time is 10000 uses, whatever the size of memory.
    ("mq", "MQ"),
    // A hit on a block of Q that is not in S takes the lowest LIR block out of S although
    // the block does not become LIR; and S is bounded, to twice the memory, not the ghosts.
    ("lirs", "LIRS"),
    // Protected fills before probation is in use; uses in the window are not counted, but a
    // page that the window pushes out is; the sketch is a counting Bloom filter, halved after
    // 32 hits per page of the main part; a page that the rounded segments have no room for
    // leaves at a hit; below 100 pages the window has none and lets nothing in.
    ("w-tinylfu", "WTinyLFU"),
];

struct Counts {
    /// Misses by trace, policy and pages of memory.
    misses: BTreeMap<(String, String, u32), u64>,
    /// Digests by trace.
    digests: BTreeMap<String, u64>,
}

fn counts() -> Counts {
    let text = std::fs::read_to_string(recorded::workspace().join(COUNTS)).expect(COUNTS);
    let mut counts = Counts {
        misses: BTreeMap::new(),
        digests: BTreeMap::new(),
    };
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields[..] {
            ["trace", name, _, _, digest] => {
                let digest = u64::from_str_radix(digest, 16).expect(line);
                counts.digests.insert(name.to_owned(), digest);
            }
            ["misses", trace, policy, pages, misses] => {
                let key = (
                    trace.to_owned(),
                    policy.to_owned(),
                    pages.parse().expect(line),
                );
                counts.misses.insert(key, misses.parse().expect(line));
            }
            _ => panic!("{COUNTS}: \"{line}\" is neither a trace nor a count"),
        }
    }
    counts
}

struct Misses<'a>(&'a Trace);

impl Visitor for Misses<'_> {
    type Out = u64;

    fn visit<P: Replacement + 'static>(self, policy: P) -> u64 {
        let mut cache = Cache::new(policy, self.0.distinct() as usize);
        self.0.pages.len() as u64 - cache.hits(&self.0.pages)
    }
}

fn misses(policy: &str, trace: &Trace, pages: u32) -> u64 {
    let spec: PolicySpec = policy.parse().expect(policy);
    build_spec(&spec, &Setup::new(pages), None, Misses(trace)).expect(policy)
}

/// The counts of these policies that differ, as `policy on trace with pages: ours for theirs`.
fn differences(policies: &[(&str, &str)]) -> Vec<String> {
    let counts = counts();
    let mut found = Vec::new();
    for trace in traces::all() {
        let digest = counts.digests.get(trace.name);
        assert_eq!(
            digest,
            Some(&trace.digest()),
            "{}: another list",
            trace.name
        );
        for (ours, theirs) in policies {
            for pages in trace.sizes() {
                let key = (trace.name.to_owned(), (*theirs).to_owned(), pages);
                let expected = counts.misses[&key];
                let misses = misses(ours, &trace, pages);
                if misses != expected {
                    let name = trace.name;
                    found.push(format!(
                        "{ours} on {name} with {pages}: {misses} for {expected}"
                    ));
                }
            }
        }
    }
    found
}

#[test]
fn policies_that_are_listed_as_equal_miss_as_often_as_libcachesim() {
    let found = differences(EQUAL);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn policies_that_are_listed_as_different_are() {
    let found = differences(DIFFERENT);
    for (policy, _) in DIFFERENT {
        let start = format!("{policy} on ");
        assert!(
            found.iter().any(|f| f.starts_with(&start)),
            "{policy} is equal"
        );
    }
}

#[test]
fn every_policy_that_was_counted_is_compared() {
    let counted: BTreeSet<String> = counts().misses.into_keys().map(|(_, p, _)| p).collect();
    let listed = EQUAL.iter().chain(DIFFERENT);
    let compared: BTreeSet<String> = listed.map(|(_, theirs)| (*theirs).to_owned()).collect();
    assert_eq!(counted, compared);
}
