//! Replays of traces that number their blocks.

use super::*;

/// Places that numbered blocks are given on a disk follow one another as the trace's requests do: reading
/// ahead by them would be reading the future.
#[test]
fn readahead_knows_nothing_of_numbered_blocks() {
    let bench = Bench::new();
    let once: String = (1..=2000u64)
        .map(|n| format!("{}\n", n * 7919 % 1_000_003))
        .collect();
    let again = "5\n6\n7\n900\n5\n6\n7\n900\n".repeat(50);
    for (text, hits, sequential) in [(once, 0, 0.0), (again, 396, 200.0 / 400.0)] {
        let path = bench.file("t.ids", &text);
        let mut asked = request(vec![path], &["lru"], &["1MiB"]);
        asked.device = DeviceChoice::Preset("sata-7200".into());
        for readahead in ["none", "2.6.11", "6.x"] {
            asked.readahead = readahead.into();
            let found = run(&asked);
            assert_eq!(found.runs[0].hits, hits, "{readahead}");
            assert_eq!(found.traces[0].sequential_share, sequential);
            assert_eq!(found.conditions.readahead, "none");
            let told = found
                .conditions
                .notes
                .join("; ")
                .contains("nothing is read ahead");
            assert_eq!(told, readahead != "none", "{:?}", found.conditions.notes);
        }
    }
}

#[test]
fn names_have_no_sequential_share() {
    let bench = Bench::new();
    let path = bench.file("names.csv", "b\na\nc\nb\n");
    let mut asked = request(vec![path], &["lru"], &["16KiB"]);
    asked.input.options.columns = Some("id=1:text".parse().expect("columns"));
    let found = run(&asked);
    assert!(found.traces[0].sequential_share.is_nan());
}
