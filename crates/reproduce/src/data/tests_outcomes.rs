//! Experiments whose keys follow from what others counted.

use std::sync::{Arc, atomic::AtomicBool};

use piebald_store::Store;

use super::tests::{hooks, options, paper_of};
use crate::{Hooks, Source, experiments, status};

/// How many references are made again follows from the pages of the first runs.
const GRID_TEXT: &str = r#"
schema = 1
[axis]
one = [{ name = "64", kib = 64 }, { name = "1024", kib = 1024 }]
[axis.known]
of = "one"
after = ["all"]
[axis.known.columns]
pages = { is = 'pages[one = one, policy = "stock"].mean', until = 1234 }
gains = { is = 'mpki_with("1/16") > 2 * mpki_with("1/1") + 1', until = false }
[default]
schema = 2
repetitions = 1
budget_refs = "40000"
warmup_refs = "80000"
output.set_map = 0
machine = { preset = "w3540", memory = "3GiB" }
policy = [{ name = "stock", memory = "fresh" }]
[experiment.all]
each = "one"
output.miss_curve = true
program = [{ name = "p", builtin = "gups:{one.kib}KiB", cores = "0" }]
[experiment.again]
each = "one"
after = ["known"]
budget_refs = { is = "100 * known.pages[known = one]" }
program = [{ name = "p", builtin = "gups:{one.kib}KiB", cores = "0" }]
"#;

const ROWS_TEXT: &str = r#"
schema = 1
title = "t"
[[row]]
id = "X-1"
title = "one"
kind = "given"
experiment = ["again", "all"]
value = [
    { each = ["one"], name = "again {one}", is = 'references' },
    { each = ["known"], name = "pages {known}", is = 'known.pages' },
    { each = ["known"], name = "gains {known}", is = 'if(known.gains, 1, 0)' },
]
"#;

fn source() -> Source {
    let paper = paper_of(GRID_TEXT, ROWS_TEXT, None).unwrap_or_else(|e| panic!("{e}"));
    Source::Folder(Box::new(paper))
}

#[test]
fn an_experiment_has_keys_that_outcomes_give() {
    let source = source();
    let folder = tempfile::tempdir().expect("a folder");
    let state = || {
        let found = status(&source, &options(false), hooks(None), folder.path());
        let row = found.unwrap_or_else(|e| panic!("{e}")).remove(0);
        (row.state.name(), row.kept.count, row.never)
    };
    assert_eq!(state(), ("missing", 0, 2));
    let store = Arc::new(Store::open(folder.path(), piebald_sim::EPOCH).expect("a store"));
    let Source::Folder(paper) = &source else {
        unreachable!()
    };
    let found = paper.reproduce(&options(false), hooks(Some(&store)));
    let row = found.unwrap_or_else(|e| panic!("{e}")).targets.remove(0);
    let of = |name: &str| {
        let value = row.values.iter().find(|v| v.name == name);
        value
            .and_then(|v| v.measured)
            .unwrap_or_else(|| panic!("{name}: {row:?}"))
    };
    for (one, least, gains) in [("64", 16.0, 0.0), ("1024", 256.0, 1.0)] {
        let pages = of(&format!("pages {one}"));
        assert!((least..least + 20.0).contains(&pages), "{one}: {pages}");
        assert_eq!(of(&format!("again {one}")), 100.0 * pages);
        assert_eq!(of(&format!("gains {one}")), gains, "{one}");
    }
    assert_eq!(state(), ("ready", 4, 0));
}

/// One whose own axis has such columns need not say so.
#[test]
fn an_axis_of_an_experiment_brings_its_columns() {
    let grid = GRID_TEXT
        .replace("each = \"one\"\nafter = [\"known\"]", "each = \"known\"")
        .replace("known.pages[known = one]", "known.pages")
        .replacen(
            "builtin = \"gups:{one.kib}KiB\"",
            "builtin = \"gups:{all.kib}KiB\"",
            1,
        )
        .replace("{one.kib}", "{known.kib}")
        .replace("{all.kib}", "{one.kib}");
    let rows = ROWS_TEXT.replace(
        "{ each = [\"one\"], name = \"again {one}\"",
        "{ each = [\"known\"], name = \"again {known}\"",
    );
    let paper = paper_of(&grid, &rows, None).unwrap_or_else(|e| panic!("{e}"));
    let row = paper.reproduce(&options(false), hooks(None));
    let row = row.unwrap_or_else(|e| panic!("{e}")).targets.remove(0);
    let of = |name: &str| row.values.iter().find(|v| v.name == name)?.measured;
    for one in ["64", "1024"] {
        let pages = of(&format!("pages {one}")).unwrap_or_else(|| panic!("{row:?}"));
        assert_eq!(of(&format!("again {one}")), Some(100.0 * pages), "{row:?}");
    }
}

#[test]
fn what_outcomes_would_have_given_is_not_made_up() {
    let source = source();
    let stop = AtomicBool::new(true);
    let stopped = Hooks {
        stop: Some(&stop),
        ..hooks(None)
    };
    let Source::Folder(paper) = &source else {
        unreachable!()
    };
    let row = paper.reproduce(&options(false), stopped);
    let row = row.unwrap_or_else(|e| panic!("{e}")).targets.remove(0);
    assert!(row.values.iter().all(|v| v.measured.is_none()), "{row:?}");
    assert!(row.why.is_some_and(|why| why.contains("interrupted")));
    // Whatever follows from it is unknown as well, and so is what no experiment of the row asks for.
    for (grid, rows, part) in [
        (
            GRID_TEXT
                .replace(
                    "[default]",
                    "[axis.further]\nof = \"one\"\nafter = [\"known\"]\n\
                 columns.twice = { is = \"2 * known.pages[known = one]\", until = 1 }\n[default]",
                )
                .replace(
                    "after = [\"known\"]\nbudget_refs",
                    "after = [\"known\", \"further\"]\nbudget_refs",
                ),
            ROWS_TEXT.replace(
                "is = 'known.pages'",
                "is = 'further.twice[further = known]'",
            ),
            "interrupted",
        ),
        (
            GRID_TEXT.to_owned(),
            ROWS_TEXT.replace("experiment = [\"again\", \"all\"]", "experiment = \"all\""),
            "no experiment of the row comes after axis known",
        ),
    ] {
        let paper = paper_of(&grid, &rows, None).unwrap_or_else(|e| panic!("{e}"));
        let stop = AtomicBool::new(part == "interrupted");
        let stopped = Hooks {
            stop: Some(&stop),
            ..hooks(None)
        };
        let row = paper.reproduce(&options(false), stopped);
        let row = row.unwrap_or_else(|e| panic!("{e}")).targets.remove(0);
        let of = |name: &str| row.values.iter().find(|v| v.name.starts_with(name));
        assert!(of("pages").and_then(|v| v.measured).is_none(), "{row:?}");
        assert!(
            row.why.as_ref().is_some_and(|why| why.contains(part)),
            "{row:?}"
        );
    }
    // Nor is it written down.
    let written = experiments(&source, &options(false), hooks(None), "X-1");
    let names = written
        .expect("experiments")
        .into_iter()
        .map(|one| one.name);
    assert_eq!(names.collect::<Vec<_>>(), ["all 64", "all 1024"]);
}

#[test]
fn columns_and_what_asks_for_them_are_checked() {
    for (old, new, part) in [
        (
            "after = [\"known\"]",
            "after = [\"one\"]",
            "experiment.again.after: \"one\": allowed: axes whose values outcomes choose: known",
        ),
        (
            "after = [\"known\"]",
            "",
            "experiment.again.budget_refs: allowed with after = \"known\": outcomes give it",
        ),
        (
            "pages = { is",
            "kib = { is",
            "axis.known.columns.kib: one has such a column",
        ),
        (
            "until = 1234",
            "until = []",
            "columns.pages.until = []: allowed",
        ),
        (", until = 1234", "", "missing field `until`"),
        (
            "pages[one = one,",
            "sheets[one = one,",
            "\"sheets\" is the name of nothing",
        ),
        (
            "100 * known.pages",
            "100 * known.sheets",
            ".sheets of a value of an axis: allowed: ",
        ),
        (
            "mpki_with(\"1/16\")",
            "mpki_with(\"1/3\")",
            "mpki_with(\"1/3\"): allowed: 1/",
        ),
        (
            "mpki_with(\"1/16\")",
            "mpki_with(\"all\")",
            "mpki_with(\"all\"): allowed: 1/",
        ),
        (
            "output.miss_curve = true",
            "output.miss_curve = 0",
            "no curves are asked for: allowed: with output.miss_curve",
        ),
    ] {
        assert!(GRID_TEXT.contains(old), "{old}");
        let error = paper_of(&GRID_TEXT.replacen(old, new, 1), ROWS_TEXT, None);
        let error = error.err().unwrap_or_else(|| panic!("{new} is accepted"));
        assert!(error.contains(part), "{new}: {error}");
    }
}
