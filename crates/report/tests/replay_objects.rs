//! Replays of objects that take their bytes.

use piebald_report::{
    Replay, ReplayBytes, ReplayPolicy, ReplayRun, TableStyle, replay_from_json, replay_to_csv,
    replay_to_json, replay_to_table,
};

use crate::sample::without_device;

/// Objects that take their bytes, under one policy of each kind: misses and bytes missed of 1000.
fn of_objects(runs: [(&str, u64, u64); 4]) -> Replay {
    let mut replay = without_device();
    replay.curves.clear();
    replay.conditions.page_bytes = 1;
    replay.traces[0].object_bytes = Some(5 << 20);
    let policy = |(name, ..): (&str, u64, u64)| ReplayPolicy {
        name: name.to_owned(),
        ..ReplayPolicy::default()
    };
    let run = |(name, misses, missed): (&str, u64, u64)| ReplayRun {
        policy: name.to_owned(),
        size_pages: 1 << 20,
        references: 1000,
        hits: 1000 - misses,
        misses,
        bytes: Some(ReplayBytes {
            requested: 1000,
            missed,
            too_large: 3,
        }),
        ..ReplayRun::default()
    };
    replay.policies = runs.map(policy).to_vec();
    replay.runs = runs.map(run).to_vec();
    replay.sizes = vec![1 << 20];
    replay
}

#[test]
fn heuristics_and_bounds_are_named_and_are_not_the_best_policy() {
    let replay = of_objects([
        ("pfoo-l", 100, 150),
        ("belady-size", 300, 320),
        ("lru", 500, 400),
        ("sieve", 450, 600),
    ]);
    let text = replay_to_table(&replay, &TableStyle::default());
    for words in [
        "Fewest misses: sieve at 1MiB. Fewest bytes missed: lru at 1MiB.",
        "Against the offline bound (pfoo-l), the best policy that does not know the future misses 35 points more at 1MiB (sieve).",
        "policy",
        "bytes",
        "5MiB",
        "objects take their bytes",
        "too large to come in",
    ] {
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(words), "{words} is missing in\n{text}");
    }
    let row = |name: &str| text.find(name).unwrap_or_else(|| panic!("{name}:\n{text}"));
    assert!(row(" sieve ") < row(" lru "));
    assert!(row(" lru ") < row("belady-size (heuristic)"));
    assert!(row("belady-size (heuristic)") < row("pfoo-l (bound)"));
    let csv = replay_to_csv(&replay).expect("csv");
    let line = csv.lines().nth(4).expect("a line");
    assert!(line.ends_with(",complete,1000,600,0.6,3"), "{line}");
    let back = replay_from_json(&replay_to_json(&replay).expect("json")).expect("a replay");
    assert_eq!(back.runs, replay.runs);
    let plain = replay_to_csv(&without_device()).expect("csv");
    assert!(!plain.contains("byte_miss"), "{plain}");
}
