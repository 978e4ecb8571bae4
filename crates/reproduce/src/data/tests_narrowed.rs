//! Axes whose values outcomes choose.

use std::sync::Arc;

use piebald_store::Store;

use super::tests::{hooks, options, paper_of};
use crate::{Source, experiments, status};

const GRID_TEXT: &str = r#"
schema = 1
[axis]
one = [{ name = "64", kib = 64 }, { name = "128", kib = 128 }, { name = "256", kib = 256 }, { name = "512", kib = 512 }]
[axis.larger]
of = "one"
after = ["all"]
when = 'pages[one = one, policy = "stock"].mean > pages[one = "64", policy = "stock"].mean'
by = "-one.kib"
take = 2
[axis.largest]
of = "one"
after = ["larger", "all"]
when = 'one == first(larger: larger)'
[default]
schema = 2
repetitions = 1
budget_refs = "2000"
warmup_refs = "500"
output.set_map = 0
machine = { preset = "w3540", memory = "3GiB" }
policy = [{ name = "stock", memory = "fresh" }]
[experiment.all]
each = "one"
program = [{ name = "p", builtin = "gups:{one.kib}KiB", cores = "0" }]
[experiment.again]
each = "larger"
program = [{ name = "p", builtin = "gups:{larger.kib}KiB", cores = "0" }]
policy = [{ name = "stock", frames = "random" }]
[experiment.last]
each = "largest"
program = [{ name = "p", builtin = "gups:{largest.kib}KiB", cores = "1" }]
"#;

const ROWS_TEXT: &str = r#"
schema = 1
title = "t"
[[row]]
id = "X-1"
title = "one"
kind = "given"
experiment = ["last", "again"]
value = [
    { each = ["larger"], name = "{larger}", is = 'pages[experiment = "again"]' },
    { each = ["largest"], name = "last {largest}", is = 'pages[experiment = "last"]' },
    { name = "cases", is = 'cases(larger: pages[experiment = "again"].mean)' },
]
"#;

#[test]
fn an_axis_has_the_values_that_outcomes_choose_in_their_order() {
    let paper = paper_of(GRID_TEXT, ROWS_TEXT, None).unwrap_or_else(|e| panic!("{e}"));
    let source = Source::Folder(Box::new(paper));
    let folder = tempfile::tempdir().expect("a folder");
    let state = || {
        let found = status(&source, &options(false), hooks(None), folder.path());
        let row = found.unwrap_or_else(|e| panic!("{e}")).remove(0);
        (row.state.name(), row.kept.count, row.never)
    };
    // What follows from outcomes is not known before these are there.
    assert_eq!(state(), ("missing", 0, 4));
    let written = experiments(&source, &options(false), hooks(None), "X-1");
    assert_eq!(
        written.expect("experiments").len(),
        8,
        "all that may be run"
    );
    let Source::Folder(paper) = &source else {
        unreachable!()
    };
    let store = || Arc::new(Store::open(folder.path(), piebald_sim::EPOCH).expect("a store"));
    let (first, again) = (store(), store());
    let run = |store| {
        let found = paper.reproduce(&options(false), hooks(Some(store)));
        found.unwrap_or_else(|e| panic!("{e}")).targets
    };
    let row = &run(&first)[0];
    let names: Vec<&str> = row.values.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names, ["512", "256", "last 512", "cases"], "{row:?}");
    let measured: Vec<f64> = row.values.iter().filter_map(|v| v.measured).collect();
    assert!(measured[0] > measured[1], "{measured:?}");
    assert_eq!(measured[3], (measured[0] + measured[1]) / 2.0);
    assert!(row.values[3].ci95.is_some(), "{row:?}");
    // Four that decide, two of the chosen, and the largest.
    assert_eq!(first.tally().kept, 7);
    run(&again);
    assert_eq!((again.tally().found, again.tally().kept), (7, 0));
    assert_eq!(state(), ("ready", 7, 0));
}

#[test]
fn an_axis_that_comes_after_nothing_is_chosen_at_once() {
    let grid = GRID_TEXT.replace("after = [\"all\"]", "after = []").replace(
        "when = 'pages[one = one, policy = \"stock\"].mean > pages[one = \"64\", policy = \"stock\"].mean'",
        "when = 'one.kib > 64'",
    );
    let grid = grid.replace("after = [\"larger\", \"all\"]", "after = [\"all\"]");
    let paper = paper_of(&grid, ROWS_TEXT, None).expect("a paper");
    // So only those are written down, which are all where outcomes choose.
    let of = |paper| {
        let source = Source::Folder(Box::new(paper));
        let written = experiments(&source, &options(false), hooks(None), "X-1");
        let names = written
            .expect("experiments")
            .into_iter()
            .map(|one| one.name);
        names
            .filter(|name| name.starts_with("again"))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(paper), ["again 512", "again 256"]);
    let paper = paper_of(GRID_TEXT, ROWS_TEXT, None).expect("a paper");
    assert_eq!(of(paper).len(), 4);
}

#[test]
fn an_axis_that_is_wrong_is_refused() {
    for (old, new, part) in [
        (
            "of = \"one\"\nafter = [\"all\"]",
            "of = \"two\"\nafter = [\"all\"]",
            "axis.larger.of = \"two\": allowed: ",
        ),
        (
            "after = [\"all\"]",
            "after = [\"none\"]",
            "axis.larger.after: \"none\": allowed: experiments",
        ),
        (
            "after = [\"all\"]",
            "after = [\"largest\"]",
            "the axis follows from itself",
        ),
        ("by = \"-one.kib\"", "by = \"one\"", "axis.larger: "),
        ("take = 2", "take = \"2\"", "axis.larger: "),
        (
            "of = \"one\"\nafter = [\"larger\", \"all\"]",
            "of = \"larger\"\nafter = []",
            "axis.largest.after = []: allowed: [\"larger\"]",
        ),
        (
            "by = \"-one.kib\"",
            "order = \"one\"",
            "unknown field `order`",
        ),
    ] {
        assert!(GRID_TEXT.contains(old), "{old}");
        let error = paper_of(&GRID_TEXT.replacen(old, new, 1), ROWS_TEXT, None);
        let error = error.err().unwrap_or_else(|| panic!("{new} is accepted"));
        assert!(error.contains(part), "{new}: {error}");
    }
}
