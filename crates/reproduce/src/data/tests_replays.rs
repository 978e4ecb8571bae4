//! Papers whose experiments are replays.

use std::{fs, sync::Arc};

use piebald_report::Verdict;
use piebald_store::Store;

use super::{
    tests::{hooks, options, paper_of},
    *,
};
use crate::{Source, experiments};

const GRID_TEXT: &str = r#"
schema = 1
[axis]
at = [
    { name = "a, 1", input = "a", mib = 1, printed = 50 },
    { name = "a, 2", input = "a", mib = 2, printed = 60 },
    { name = "b, 1", input = "b", mib = 1, printed = 1.5 },
]
input = ["a", "b"]
length = [1, 64]
[default]
schema = 2
repetitions = 3
[experiment.a]
each = "at"
when = 'at.input == "a"'
memory.size = "{at.mib}MiB"
files = { device = "wd400bb", readahead = "2.6.11", scheduler = "deadline-2.6.11", layout = "inodes", start = "drawn" }
program = [{ name = "t", requests = ["{inputs}/{at.input}.fpt"], pace = "ordered", excerpt = { skip = "5%" } }]
policy = [{ name = "plain", replace = "lru" }, { name = "other", replace = "dulo" }]
[experiment.b]
like = "a"
when = 'at.input == "b"'
[experiment.counted]
each = "input"
replay = false
program = [{ name = "t", requests = ["{inputs}/{input}.fpt"] }]
[form.quick.default]
repetitions = 2
"#;

const ROWS_TEXT: &str = r#"
schema = 1
title = "t"
inputs_by = "make.sh"
[let]
time = "seconds[experiment = at.input]"
less = '100 * (1 - time[policy = "other"] / time[policy = "plain"])'
[[row]]
id = "Z-1"
title = "replayed"
kind = "headline"
experiment = ["a", "b"]
value = [
    { each = ["at"], name = "{at}", paper = { is = "rounded(0, at.printed)" }, is = "less", rule = "headline" },
    { name = "sum", is = 'sum(at where at.input == "a": pages_read[policy = "plain", experiment = at.input])' },
    { name = "long", is = 'longer_than(2)[policy = "plain", experiment = "b", at = "b, 1"]' },
    { name = "own", is = 'extra("blocks sequenced")[policy = "other", experiment = "b", at = "b, 1"]' },
]
statement = [{ each = ["at"], text = "{at} ({less:+.1})", holds = 'hits[policy = "plain", experiment = at.input].mean > 0 && repetitions > 1' }]
[[row]]
id = "Z-2"
title = "counted"
kind = "constant"
experiment = "counted"
value = [
    { each = ["input"], name = "{input}", paper = { is = 'if(input == "a", 2400, 800)' }, is = "accesses", rule = "exact" },
    { name = "files", paper = 1, is = 'files[input = "b"]', rule = "exact" },
    { name = "bytes", paper = 1638400, is = 'file_bytes[input = "b"]', rule = "exact" },
    { name = "share", paper = 99.75, is = '100 * sequential[input = "b"] / accesses[input = "b"]', rule = "exact" },
]
[[figure]]
rows = ["Z-1"]
experiment = ["a", "b"]
name = "f"
text = "t"
x = "x"
y = "y"
panel = { each = ["input"], title = "{input}" }
over = "length"
at = "length"
curve = [{ name = "shorter, {input}", is = 'shorter_than(length)[policy = "plain", experiment = input, at = first(at where at.input == input: at)]' }]
"#;

/// One file of 400 pages, read so often from its beginning to its end.
fn trace(folder: &Path, name: &str, times: u64) {
    let mut text =
        "# page trace of files: F id bytes path; R|W task file first_page pages (4 KiB pages).\n\
                    F 0 1638400 a\n"
            .to_owned();
    for page in (0..times).flat_map(|_| 0..400) {
        text += &format!("R 1 0 {page} 1\n");
    }
    fs::write(folder.join(format!("{name}.fpt")), text).expect("written");
}

fn refused(grid: (&str, &str), rows: (&str, &str)) -> String {
    let texts = [
        GRID_TEXT.replacen(grid.0, grid.1, 1),
        ROWS_TEXT.replacen(rows.0, rows.1, 1),
    ];
    paper_of(&texts[0], &texts[1], None)
        .err()
        .unwrap_or_default()
}

#[test]
fn a_row_reads_replays_in_their_repetitions_and_what_is_only_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = Options {
        inputs: folder.path().to_owned(),
        ..options(true)
    };
    let paper = paper_of(GRID_TEXT, ROWS_TEXT, None).unwrap_or_else(|e| panic!("{e}"));
    let run = || paper.reproduce(&asked, hooks(None)).expect("rows");
    for target in run().targets {
        let why = target.why.unwrap_or_default();
        assert!(
            why.contains("a.fpt is not there; make.sh makes it"),
            "{why}"
        );
        assert_eq!(target.verdict, Verdict::NotRun);
    }
    trace(folder.path(), "a", 6);
    trace(folder.path(), "b", 2);
    let found = run();
    let [replayed, counted] = &found.targets[..] else {
        panic!("{:?}", found.targets);
    };
    assert_ne!(replayed.verdict, Verdict::NotRun, "{:?}", replayed.why);
    let papers: Vec<_> = replayed.values.iter().map(|v| v.paper.clone()).collect();
    assert_eq!(papers[2], piebald_report::Published::Number(2.0));
    let value = |name: &str| {
        let found = replayed.values.iter().find(|v| v.name == name);
        found.and_then(|v| v.measured).expect(name)
    };
    // With 1 MiB all 2400 references miss but those that are passed over, with 2 MiB each page once.
    assert!(
        (2600.0..=2800.0).contains(&value("sum")),
        "{}",
        value("sum")
    );
    assert!(value("long") > 90.0 && value("own") > 0.0);
    assert!(
        replayed.predicates[0].text.starts_with("a, 1 ("),
        "{:?}",
        replayed.predicates
    );
    assert_eq!(counted.verdict, Verdict::Match, "{counted:?}");
    let curves: Vec<&str> = found.figures[0]
        .panels
        .iter()
        .map(|p| p.curves[0].name.as_str())
        .collect();
    assert_eq!(curves, ["shorter, a", "shorter, b"]);
    assert!(
        found
            .conditions
            .contains(&"Runs of a: 2 repetitions, each with draws of its own.".to_owned())
    );
    assert!(found.simulated_refs > 0);
    // Fewer references are the first ones.
    let short = Options {
        budget_refs: Some(300),
        only: vec!["Z-1".to_owned()],
        ..asked.clone()
    };
    let short = paper.reproduce(&short, hooks(None)).expect("rows");
    assert!(short.simulated_refs < found.simulated_refs / 2);
    // A file for each repetition, which replays as it is.
    let source = Source::Folder(Box::new(paper));
    let files = experiments(&source, &asked, hooks(None), "Z-1").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(files.len(), 6);
    let seeds = files.iter().map(|file| file.text.contains("seed = 8"));
    assert_eq!(seeds.filter(|is| *is).count(), 3);
    let path = folder.path().join("r.toml");
    let request = piebald_lab::replay::asked(&piebald_experiment::Document::new(
        &path,
        files[1].text.clone(),
    ));
    assert_eq!(request.map(|r| r.seed).unwrap_or_default(), 8);
}

#[test]
fn inputs_that_lie_elsewhere_are_the_same_and_others_are_not() {
    let kept = tempfile::tempdir().expect("a folder");
    let paper = paper_of(GRID_TEXT, ROWS_TEXT, None).unwrap_or_else(|e| panic!("{e}"));
    let run = |times: u64| {
        let folder = tempfile::tempdir().expect("a folder");
        trace(folder.path(), "a", 6);
        trace(folder.path(), "b", times);
        let asked = Options {
            inputs: folder.path().to_owned(),
            ..options(true)
        };
        let store = Arc::new(Store::open(kept.path(), piebald_sim::EPOCH).expect("a store"));
        let found = paper.reproduce(&asked, hooks(Some(&store))).expect("rows");
        let values = found.targets.into_iter().flat_map(|target| target.values);
        let measured: Vec<_> = values.map(|value| (value.name, value.measured)).collect();
        (store.tally().kept, measured)
    };
    let (first, values) = run(2);
    // Three points in two repetitions, and two traces that are counted.
    assert_eq!(first, 8);
    assert_eq!(run(2), (0, values));
    assert_eq!(run(3).0, 3, "what reads the other trace");
}

#[test]
fn what_a_replay_does_not_count_is_refused() {
    let same = ("schema", "schema");
    for (grid, rows, part) in [
        (
            same,
            ("seconds[", "ipc["),
            "ipc of a replay: allowed: seconds",
        ),
        (
            same,
            ("longer_than(2)", "longer_than(x)"),
            "\"x\" is the name of nothing",
        ),
        (
            same,
            ("longer_than(2)", "longer_than(1.5)"),
            "a whole number of pages",
        ),
        (
            same,
            ("policy = \"other\"]", "policy = \"third\"]"),
            "allowed: plain, other",
        ),
        (
            same,
            ("is = \"accesses\"", "is = \"seconds\""),
            "allowed: accesses, file_bytes",
        ),
        (
            same,
            ("rounded(0,", "rounded(0.5,"),
            "allowed: 0 to 15 digits",
        ),
        (
            same,
            ("{ is = \"rounded(0, at.printed)\" }", "{ of = 1 }"),
            "is = \"formula\"",
        ),
        (
            ("repetitions = 3", "repetitions = 0"),
            same,
            "repetitions = 0: allowed: 1 to 1000",
        ),
        (
            (
                "requests = [\"{inputs}/{input}.fpt\"] }]",
                "touches = \"smm:iterations=1\" }]\nfiles.device = \"wd400bb\"",
            ),
            same,
            "only requests are counted",
        ),
        (
            ("replay = false", "replay = 0"),
            same,
            "replay = 0: allowed: true, false",
        ),
        (("\"{at.mib}MiB\"", "\"x\""), same, "memory.size"),
        (
            ("pace = \"ordered\"", "cores = \"0\""),
            same,
            "says nothing of requests",
        ),
        (("skip = \"5%\"", "skip = \"5\""), same, "excerpt.skip"),
        (
            ("when = 'at.input == \"a\"'", "when = 1"),
            same,
            "when = 1: allowed: a formula",
        ),
    ] {
        let found = refused(grid, rows);
        assert!(found.contains(part), "{part}: {found}");
    }
}
