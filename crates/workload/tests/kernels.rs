//! Reference counts against closed formulas, limits, addresses, determinism.
//! The results themselves are checked by every run.

mod common;

use common::Counter;
use piebald_trace::recording::model::EventKind;
use piebald_workload::list;

const PLENTY: u64 = u64::MAX;

#[test]
fn triad_makes_two_loads_and_one_store_per_element() {
    let c = Counter::of("triad:240KiB,iterations=3", 1, PLENTY);
    let n = 240 * 1024 / 24;
    assert_eq!(c.count("load", 8), 3 * 2 * n);
    assert_eq!(c.count("store", 8), 3 * n);
    assert_eq!(c.counts.len(), 2);
    assert_eq!(c.setup, 3 * n);
}

#[test]
fn threads_share_out_the_elements() {
    let one = Counter::of("triad:240KiB,iterations=1", 1, PLENTY);
    let four = Counter::of("triad:240KiB,threads=4,iterations=1", 1, PLENTY);
    assert_eq!(one.counts, four.counts);
    assert_eq!(one.maps, four.maps);
    let parts: Vec<u64> = four.measured.values().copied().collect();
    assert_eq!(parts, [7680; 4]);
    let spawned = four
        .events
        .iter()
        .filter(|(t, e)| *t == 0 && matches!(e, EventKind::Call { number: 56, .. }));
    assert_eq!(spawned.count(), 3);
}

#[test]
fn gups_makes_one_update_per_word_and_iteration() {
    let c = Counter::of("gups:64KiB,threads=2,iterations=5", 1, PLENTY);
    assert_eq!(c.count("update", 8), 5 * 8192);
    assert_eq!(c.counts.len(), 1);
}

#[test]
fn chase_loads_each_node_once_per_round() {
    let mut c = Counter {
        addrs: Some(Vec::new()),
        ..Counter::default()
    };
    piebald_workload::Builtin::parse("chase:64KiB,iterations=2")
        .unwrap()
        .run(1, PLENTY, &mut c)
        .unwrap();
    assert_eq!(c.count("load", 8), 2 * 1024);
    let addrs = c.addrs.unwrap();
    let mut first = addrs[..1024].to_vec();
    assert_eq!(first, addrs[1024..]);
    first.sort_unstable();
    assert!(first.windows(2).all(|w| w[1] - w[0] == 64));
}

#[test]
fn mergesort_moves_n_records_in_each_of_log_n_passes() {
    for (size, passes) in [("64KiB", 10), ("100KiB", 11)] {
        let n = if size == "64KiB" { 1024 } else { 1600 };
        let c = Counter::of(&format!("mergesort:{size},iterations=1"), 1, PLENTY);
        assert_eq!(c.count("load", 32), 2 * n * passes);
        assert_eq!(c.count("store", 32), 2 * n * passes + 2 * n);
        // Every key is loaded once per pass, but for those of a run that is
        // left over when the other is used up.
        assert!(c.count("load", 8) <= n * passes);
        assert!(c.count("load", 8) > n * passes * 3 / 4);
    }
}

/// Small parameters under which every kernel completes an iteration quickly.
fn small(name: &str) -> String {
    match name {
        _ => format!("{name}:64KiB"),
    }
}

#[test]
fn every_reference_lies_in_a_mapping() {
    for spec in list() {
        let c = Counter::of(&small(spec.name), 7, 300_000);
        assert_eq!(c.outside, 0, "{}", spec.name);
    }
}

#[test]
fn equal_seeds_give_equal_tapes() {
    for spec in list() {
        let text = small(spec.name);
        let a = Counter::of(&text, 7, 100_000);
        let b = Counter::of(&text, 7, 100_000);
        assert_eq!(a.hash, b.hash, "{text}");
        assert_eq!(a.events, b.events, "{text}");
    }
}

#[test]
fn random_programs_differ_between_seeds() {
    for name in ["gups", "chase", "mergesort"] {
        let a = Counter::of(&small(name), 7, 100_000);
        let b = Counter::of(&small(name), 8, 100_000);
        assert_ne!(a.hash, b.hash, "{name}");
    }
}

#[test]
fn the_limit_is_used_up_but_for_less_than_one_block() {
    for spec in list() {
        for refs in [1000, 77_777] {
            let c = Counter::of(&small(spec.name), 7, refs);
            let most = c.blocks.iter().map(|b| b.accesses.len()).max().unwrap() as u64;
            for (thread, &n) in &c.measured {
                assert!(
                    n <= refs && n + most > refs,
                    "{} thread {thread}: {n}",
                    spec.name
                );
            }
        }
    }
}

#[test]
fn a_cut_tape_has_no_exit_and_a_complete_one_has() {
    let exits = |text: &str| {
        let c = Counter::of(text, 7, 50_000);
        c.events
            .iter()
            .filter(|(_, e)| matches!(e, EventKind::Exit { status: 0 }))
            .count()
    };
    assert_eq!(exits("triad:64KiB,threads=2"), 0);
    assert_eq!(exits("triad:64KiB,threads=2,iterations=1"), 2);
}
