//! Policies on recorded traces, found through `PIEBALD_TRACES` (default
//! `../shared/traces` beside the workspace): what the papers say of them.

mod replaying;

use std::collections::HashMap;
use std::io::Read;
use std::path::PathBuf;

use piebald_os_model::replace::registry::{Setup, Visitor, build};
use piebald_policy::contract::replacement::Replacement;
use replaying::Cache;

/// A directory of traces; without it, says which test is skipped, or fails in CI.
fn directory(name: &str, test: &str) -> Option<PathBuf> {
    let workspace = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let set = std::env::var_os("PIEBALD_TRACES").map(PathBuf::from);
    let root = workspace.join(set.unwrap_or_else(|| "../shared/traces".into()));
    let found = root.join(name);
    if found.is_dir() {
        return Some(found);
    }
    let message = format!(
        "skipped {test}: no {} (set PIEBALD_TRACES)",
        found.display()
    );
    let ci = std::env::var("CI").is_ok_and(|v| v == "true");
    assert!(!ci, "{message}");
    println!("{message}");
    None
}

/// Numbers keys densely in the order of their first use.
fn dense(keys: impl Iterator<Item = u64>) -> Vec<u32> {
    let mut numbers = HashMap::new();
    keys.map(|key| {
        let next = numbers.len() as u32;
        *numbers.entry(key).or_insert(next)
    })
    .collect()
}

/// A trace of one block number per line.
fn lirs_trace(directory: &std::path::Path, name: &str) -> Vec<u32> {
    let path = directory.join(format!("{name}.trace.gz"));
    let file = std::fs::File::open(&path).expect(name);
    let mut text = String::new();
    let mut unpacked = flate2::read::MultiGzDecoder::new(file);
    unpacked.read_to_string(&mut text).expect(name);
    dense(text.lines().filter_map(|line| line.trim().parse().ok()))
}

/// A trace of `first block, blocks, ignored, number` per line.
fn arc_trace(directory: &std::path::Path, name: &str) -> Vec<u32> {
    let path = directory.join(format!("{name}.lis.zst"));
    let file = std::fs::File::open(&path).expect(name);
    let text = zstd::decode_all(file).expect(name);
    let text = String::from_utf8(text).expect(name);
    let extents = text.lines().map(|line| {
        let mut fields = line
            .split_whitespace()
            .map(|f| f.parse::<u64>().expect(line));
        (fields.next().expect(line), fields.next().expect(line))
    });
    dense(extents.flat_map(|(first, blocks)| first..first + blocks))
}

struct Hits<'a>(&'a [u32]);

impl Visitor for Hits<'_> {
    type Out = u64;

    fn visit<P: Replacement + 'static>(self, policy: P) -> u64 {
        let keys = self.0.iter().max().map_or(0, |k| *k as usize + 1);
        let mut cache = Cache::new(policy, keys);
        let hits = cache.hits(self.0);
        cache.policy.validate().expect("the policy's books");
        hits
    }
}

/// Hits in percent.
fn percent(name: &str, capacity: u32, refs: &[u32]) -> f64 {
    let hits = build(name, &Setup::new(capacity), Hits(refs)).expect(name);
    100.0 * hits as f64 / refs.len() as f64
}

/// SIGMETRICS 2002, section 4: on loops LRU hits nothing until the loop fits, and
/// LIRS keeps part of it, close to the optimum.
#[test]
fn lirs_keeps_part_of_a_loop_where_lru_keeps_nothing() {
    let Some(traces) = directory("lirs", "lirs_keeps_part_of_a_loop_where_lru_keeps_nothing")
    else {
        return;
    };
    for (name, capacity) in [("loop", 100), ("loop", 500), ("cs", 500), ("gli", 500)] {
        let refs = lirs_trace(&traces, name);
        let [lru, lirs, min] =
            ["lru", "lirs", "min"].map(|policy| percent(policy, capacity, &refs));
        println!("{name}, {capacity} pages: LRU {lru:.1} LIRS {lirs:.1} MIN {min:.1}");
        assert!(lru < 2.0, "{name}: LRU {lru:.2}");
        assert!(lirs > 0.9 * min, "{name}: LIRS {lirs:.2} MIN {min:.2}");
    }
}

/// The same, where loops and probabilistic references mix, and where references are
/// temporally clustered: there LIRS is not far below LRU.
#[test]
fn lirs_wins_on_mixed_patterns_and_loses_little_on_clustered_ones() {
    let Some(traces) = directory("lirs", "lirs_wins_on_mixed_patterns") else {
        return;
    };
    for (name, capacity) in [
        ("multi1", 1000),
        ("multi2", 1000),
        ("cpp", 50),
        ("ps", 1000),
    ] {
        let refs = lirs_trace(&traces, name);
        let [lru, lirs, min] =
            ["lru", "lirs", "min"].map(|policy| percent(policy, capacity, &refs));
        println!("{name}, {capacity} pages: LRU {lru:.1} LIRS {lirs:.1} MIN {min:.1}");
        assert!(
            lirs > lru && lirs <= min,
            "{name}: LRU {lru:.2} LIRS {lirs:.2}"
        );
    }
    let refs = lirs_trace(&traces, "sprite");
    for capacity in [300, 700] {
        let [lru, lirs] = ["lru", "lirs"].map(|policy| percent(policy, capacity, &refs));
        println!("sprite, {capacity} pages: LRU {lru:.1} LIRS {lirs:.1}");
        assert!(lirs > lru - 3.0, "sprite: LRU {lru:.2} LIRS {lirs:.2}");
    }
}

/// Hit ratios in percent on the trace OLTP, from FAST 2003 (its table of OLTP) `[M]`: capacity,
/// policy, published value, and how far ours may be from it. ARC, LRU and MIN are
/// exact algorithms; LIRS and MQ have parameters that the table chose by trace.
const OLTP: &[(u32, &str, f64, f64)] = &[
    (1000, "lru", 32.83, 0.02),
    (1000, "arc", 38.93, 0.05),
    (1000, "min", 53.61, 0.02),
    (1000, "lirs", 34.80, 1.0),
    (1000, "mq", 37.86, 1.0),
    (5000, "lru", 53.65, 0.02),
    (5000, "arc", 55.25, 0.05),
    (5000, "min", 68.27, 0.02),
    (15000, "lru", 64.63, 0.02),
    (15000, "arc", 65.40, 0.05),
    (15000, "min", 75.13, 0.02),
];

#[test]
fn hit_ratios_on_oltp_are_those_of_the_arc_paper() {
    let Some(traces) = directory("arc", "hit_ratios_on_oltp_are_those_of_the_arc_paper") else {
        return;
    };
    let refs = arc_trace(&traces, "OLTP");
    assert_eq!(refs.len(), 914_145);
    let mut far = Vec::new();
    for (capacity, policy, published, margin) in OLTP {
        let ours = percent(policy, *capacity, &refs);
        println!("{policy} with {capacity} pages: {ours:.2}, published {published}");
        if (ours - published).abs() > *margin {
            far.push(format!(
                "{policy} with {capacity}: {ours:.2} for {published}"
            ));
        }
    }
    assert!(far.is_empty(), "{far:?}");
}

/// The table's LRU-2, 39.30 % with 1000 pages, was tuned offline. What it gains comes
/// from the correlated reference period: without one it barely beats LRU here.
#[test]
fn lru_2_gains_on_oltp_when_correlated_uses_count_once() {
    use piebald_os_model::replace::{LruK, LruKConfig};
    let Some(traces) = directory("arc", "lru_2_gains_on_oltp") else {
        return;
    };
    let refs = arc_trace(&traces, "OLTP");
    let [plain, correlated] = [0, 100].map(|correlated_uses| {
        let config = LruKConfig {
            correlated_uses,
            ..LruKConfig::new(1000)
        };
        let policy = LruK::new(config).expect("lru-2");
        let hits = Cache::new(policy, 1_000_000).hits(&refs);
        100.0 * hits as f64 / refs.len() as f64
    });
    println!("LRU-2 with 1000 pages: {plain:.2}, with a period of 100 uses {correlated:.2}");
    assert!(plain > 32.83 && correlated > plain + 3.0);
    assert!((correlated - 39.30).abs() < 1.5);
}
