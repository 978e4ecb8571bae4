//! Rows and figures of several experiments, and experiments that are like others.

use piebald_report::Verdict;

use super::{
    tests::{GRID_TEXT, ROWS_TEXT, hooks, options, paper_of, rows},
    *,
};

#[test]
fn a_row_may_be_about_several_experiments_and_one_experiment_like_another() {
    let grid = GRID_TEXT.replace(
        "[form.quick.axis]",
        "[experiment.longer]\nlike = \"fixed\"\nbudget_refs = \"5000\"\n[form.quick.axis]",
    );
    let lines = ROWS_TEXT.to_owned()
        + r#"
[[row]]
id = "X-4"
title = "four"
kind = "headline"
experiment = ["fixed", "longer"]
value = [
    { name = "fixed", is = "references" },
    { name = "longer", is = 'references[experiment = "longer"]' },
    { name = "twice and a half", paper = 2.5, is = 'references[experiment = "longer"] / references[experiment = "fixed"]', rule = "factor" },
]
[[row]]
id = "X-5"
title = "five"
kind = "headline"
missing = "nobody counts it"
[[figure]]
rows = ["X-4"]
experiment = ["fixed", "longer"]
name = "f"
text = "t"
x = "x"
y = "y"
panel = { title = "" }
over = "size"
at = "size"
curve = [
    { name = "all", is = "references" },
    { name = "some", when = "size > 2", is = 'references[experiment = "longer"]' },
]
"#;
    let paper = paper_of(&grid, &lines, None).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(paper.of_experiments(), ["X-1", "X-3", "X-4"]);
    let asked = Options {
        only: ["X-4", "X-5"].map(str::to_owned).to_vec(),
        ..options(true)
    };
    let found = paper.reproduce(&asked, hooks(None)).expect("rows");
    let [four, five] = &found.targets[..] else {
        panic!("{:?}", found.targets);
    };
    let measured: Vec<f64> = four.values.iter().filter_map(|v| v.measured).collect();
    assert!((measured[0] - 2000.0).abs() < 64.0, "{measured:?}");
    assert!((measured[1] - 5000.0).abs() < 64.0, "{measured:?}");
    assert_eq!(four.verdict, Verdict::Match, "{four:?}");
    assert_eq!(
        (five.verdict, five.why.as_deref()),
        (Verdict::NotRun, Some("nobody counts it"))
    );
    let curves = &found.figures[0].panels[0].curves;
    let points: Vec<usize> = curves.iter().map(|c| c.points.len()).collect();
    assert_eq!(points, [2, 1]);
    assert!((curves[1].points[0].y - 5000.0).abs() < 64.0);
    let refused = |old: &str, new: &str| {
        let text = lines.replacen(old, new, 1);
        assert_ne!(text, lines, "{old}");
        paper_of(&grid, &text, None).err().unwrap_or_default()
    };
    let found = refused("rows = [\"X-4\"]", "rows = [\"X-1\"]");
    assert!(
        found.contains("figure \"f\": rows: \"X-1\" runs none of fixed, longer"),
        "{found}"
    );
    let found = refused(
        "is = \"references\" },\n    { name = \"some\"",
        "is = \"refs\" },\n    { name = \"some\"",
    );
    assert!(
        found.contains("figure \"f\": \"refs\" is the name of nothing"),
        "{found}"
    );
    // What ended early is no number.
    let short = grid.replace(
        "[experiment.longer]\nlike = \"fixed\"",
        "[experiment.longer]\nlike = \"fixed\"\nprogram = [{ name = \"sort\", builtin = \"mergesort:64KiB,iterations=1\" }]\nkeeps = [\"seed\", \"budget_refs\"]",
    );
    let short = short.replace("budget_refs = \"5000\"", "budget_refs = \"50M\"");
    let paper = paper_of(&short, &lines, None).unwrap_or_else(|e| panic!("{e}"));
    let found = paper.reproduce(&asked, hooks(None)).expect("rows");
    let why = found.targets[0].why.as_deref().unwrap_or_default();
    assert!(
        why.contains("ended before its measured part was over"),
        "{why}"
    );
    assert_eq!(found.targets[0].verdict, Verdict::NotRun);
}

#[test]
fn points_without_a_place_lie_side_by_side_and_have_names() {
    let lines = ROWS_TEXT.to_owned()
        + r#"
[[figure]]
rows = ["X-3"]
experiment = "fixed"
name = "f"
text = "t"
x = ""
y = "y"
panel = { title = "" }
over = "llc"
curve = [{ name = "all", is = "references" }]
"#;
    let paper = paper_of(GRID_TEXT, &lines, None).unwrap_or_else(|e| panic!("{e}"));
    let asked = Options {
        only: vec!["X-3".to_owned()],
        ..options(true)
    };
    let found = paper.reproduce(&asked, hooks(None)).expect("rows");
    let figure = &found.figures[0];
    assert_eq!(figure.x_names, ["plain", "small"]);
    let places: Vec<f64> = figure.panels[0].curves[0]
        .points
        .iter()
        .map(|p| p.x)
        .collect();
    assert_eq!(places, [1.0, 2.0]);
}

#[test]
fn a_recording_that_was_made_by_hand_is_looked_for_among_the_inputs() {
    let grid = GRID_TEXT.replace(
        "{ name = \"sort\", builtin = \"mergesort:64KiB\", cores = \"0\" }]",
        "{ each = \"program\", stand_in = \"{program}\", cores = \"0\" }]",
    );
    let program = |what: &str| {
        format!(
            "[[program]]\nname = \"b\"\nstands_for = \"c\"\nclass = \"d\"\n{what}\nskip = \"0\"\n\
             limit = \"9000\"\nwhy = \"because\"\n"
        )
    };
    let why = |what: &str| {
        let paper = paper_of(&grid, ROWS_TEXT, Some(&program(what)));
        let asked = Options {
            only: vec!["X-3".to_owned()],
            inputs: PathBuf::from("/nowhere"),
            ..options(false)
        };
        let paper = paper.unwrap_or_else(|e| panic!("{e}"));
        let found = paper.reproduce(&asked, hooks(None)).expect("rows");
        found.targets[0].why.clone().unwrap_or_default()
    };
    assert_eq!(
        why("recording = \"b.pbr\""),
        "not recorded: b: /nowhere/b.pbr: not there"
    );
    assert_eq!(why("command = [\"x\"]"), "not recorded: b: no b of 8000");
    // One that is run to its end is recorded as far as it may be.
    let whole = why("command = [\"x\"]\nwhole = true");
    assert_eq!(whole, "not recorded: b: no b of 9000");
}

#[test]
fn colors_of_programs_lie_in_parts_of_the_last_level() {
    let row = r#"
[[row]]
id = "X-4"
title = "four"
kind = "given"
experiment = "share"
value = [
    { name = "its own", is = 'colors_in(1)[program = "sort", llc = "plain", run = "together", policy = 2]' },
    { name = "another's", is = 'colors_in(2)[program = "sort", llc = "plain", run = "together", policy = 2]' },
    { name = "all of it", is = 'sum(size: colors_in(size))[program = "sort", llc = "plain", run = "together", policy = 8]' },
]
"#;
    let paper = paper_of(GRID_TEXT, &(ROWS_TEXT.to_owned() + row), None).expect("a paper");
    let only = Options {
        only: vec!["X-4".to_owned()],
        ..options(false)
    };
    let found = rows(&paper, &only);
    let values = found[0].values.iter().map(|value| value.measured);
    // A color is a sixteenth of this machine's last level; of 2, 8 and 14 the policy "8" has one.
    let wanted = [1.0, 0.0, 1.0].map(Some);
    assert_eq!(values.collect::<Vec<_>>(), wanted);
}
