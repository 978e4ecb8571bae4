//! What is missing, unknown or wrong in a paper that is data decides nothing.

use piebald_lab::scenario::Scenario;
use piebald_report::Verdict;

use super::{
    tests::{GRID_TEXT, ROWS_TEXT, hooks, options, paper_of, rows},
    tests_formulas::Fixed,
    *,
};

#[test]
fn what_is_unknown_decides_nothing() {
    let axes = eval::Axes::from([("size".to_owned(), vec![Value::Number(4.0)])]);
    let unknown = "0 / 0".parse_formula();
    let lets = eval::Lets::from([
        ("nan".to_owned(), unknown),
        ("a1".to_owned(), "x + x".parse_formula()),
        (
            "a2".to_owned(),
            "a1 + a1 + a1 + a1 + a1 + a1 + a1 + a1 + a1 + a1".parse_formula(),
        ),
        (
            "a3".to_owned(),
            "a2 + a2 + a2 + a2 + a2 + a2 + a2 + a2 + a2 + a2".parse_formula(),
        ),
        (
            "a4".to_owned(),
            "a3 + a3 + a3 + a3 + a3 + a3 + a3 + a3 + a3 + a3".parse_formula(),
        ),
        (
            "a5".to_owned(),
            "a4 + a4 + a4 + a4 + a4 + a4 + a4 + a4 + a4 + a4".parse_formula(),
        ),
        (
            "a6".to_owned(),
            "a5 + a5 + a5 + a5 + a5 + a5 + a5 + a5 + a5 + a5".parse_formula(),
        ),
    ]);
    let known = Known::new();
    let names = Names {
        axes: &axes,
        known: &known,
        lets: vec![&lets],
        cells: &Fixed,
        hosts: None,
    };
    for text in [
        "span(size: nan) < 5",
        "rise(size: nan) <= 0",
        "!(nan > 5)",
        "nan != 5",
        "max(size: nan) == 3",
        "all(size where size > 99: true)",
        "any(size where size > 99: true)",
        "min(size where size > 99: size) < 3",
        "(x / 0 * 0).mean > 1",
        "in_range(0, 10, x / 0 * 0)",
    ] {
        let found = names.holds(&text.parse_formula(), &Chosen::new());
        assert!(
            matches!(found, Err(eval::Fault::Missing(_))),
            "{text}: {found:?}"
        );
    }
    let steps = names.value(
        &"a6 + a6 + a6 + a6 + a6 + a6 + a6 + a6 + a6 + a6".parse_formula(),
        &Chosen::new(),
    );
    assert!(matches!(steps, Err(eval::Fault::Wrong(says)) if says.contains("1000000 steps")));
}

/// Formulas of tests.
trait ParseFormula {
    fn parse_formula(&self) -> formula::Formula;
}

impl ParseFormula for str {
    fn parse_formula(&self) -> formula::Formula {
        formula::Formula::parse(self).expect(self)
    }
}

#[test]
fn a_run_that_was_not_there_or_was_interrupted_is_no_run_that_failed() {
    let not_run = "statement = [{ text = \"it did not run\", holds = '!ran' }]";
    let lines = ROWS_TEXT.replace(
        "statement = [{ text = \"it runs\", holds = 'ran && !fails_with(\"x\") && !counts(\"pages swapped out\")' }]",
        not_run,
    );
    assert!(lines.contains(not_run));
    let grid = GRID_TEXT.replace(
        "program = [{ name = \"sort\", builtin = \"mergesort:64KiB\", cores = \"0\" }]",
        "program = [{ name = \"sort\", recording = \"gone.pbr\", cores = \"0\" }]",
    );
    let paper = paper_of(&grid, &lines, None).expect("a paper");
    let third = &rows(&paper, &options(true))[2];
    assert_eq!(third.verdict, Verdict::NotRun, "{third:?}");
    assert!(
        third
            .why
            .as_deref()
            .is_some_and(|why| why.contains("gone.pbr")),
        "{third:?}"
    );
    // Stopped during its first run.
    let paper = paper_of(GRID_TEXT, &lines, None).expect("a paper");
    let stop = std::sync::atomic::AtomicBool::new(false);
    let show = |_: &str, _: u64, _: u64| stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let hooks = Hooks {
        stop: Some(&stop),
        progress: Some(&show),
        ..hooks(None)
    };
    let only = Options {
        only: vec!["X-3".to_owned()],
        ..options(true)
    };
    let found = paper.reproduce(&only, hooks).expect("rows");
    assert_eq!(found.targets[0].verdict, Verdict::NotRun, "{found:?}");
    assert_eq!(found.targets[0].why.as_deref(), Some("interrupted"));
}

#[test]
fn a_budget_keeps_the_share_of_a_warm_up_that_is_named_and_of_none() {
    let asked = Options {
        budget_refs: Some(50_000),
        only: vec!["X-1".to_owned()],
        ..options(false)
    };
    let lengths = |grid: &str| {
        let paper = paper_of(grid, ROWS_TEXT, None).unwrap_or_else(|e| panic!("{e}"));
        let (written, _) = paper.experiments(&asked, hooks(None)).expect("experiments");
        let scenario = Scenario::parse(&written[0].text, Path::new("p")).expect("a scenario");
        (scenario.budget_refs, scenario.warmup_refs)
    };
    let without = |keys: [&str; 2]| {
        let lines = GRID_TEXT.lines();
        let kept = lines.filter(|line| {
            keys.iter()
                .all(|key| key.is_empty() || !line.starts_with(key))
        });
        let text = kept.collect::<Vec<_>>().join("\n");
        text.replace("[experiment.fixed]", "[experiment.fixed]\nrepetitions = 1")
    };
    assert_eq!(lengths(GRID_TEXT), (50_000, 16_666));
    // The language's own: 20 M, and a fifth of that before.
    assert_eq!(lengths(&without(["budget_refs = \"3", ""])), (50_000, 2));
    assert_eq!(
        lengths(&without(["budget_refs = \"3", "warmup_refs"])),
        (50_000, 10_000)
    );
}

#[test]
fn lengths_that_differ_are_told_as_ranges_and_seeds_that_are_kept_by_name() {
    let grid = GRID_TEXT.replace(
        "over.machine.memory = \"1536MiB\"",
        "over = { repetitions = 4, machine.memory = \"1536MiB\" }",
    );
    let paper = paper_of(&grid, ROWS_TEXT, None).unwrap_or_else(|e| panic!("{e}"));
    let found = paper.reproduce(&options(true), hooks(None)).expect("rows");
    assert_eq!(
        found.conditions,
        [
            "Runs of fixed: 2000 references after 1000 of warm-up, 3 repetitions, seed 5."
                .to_owned(),
            "Runs of share: 3000 references after 1000 of warm-up, 3 to 4 repetitions.".to_owned(),
        ]
    );
    // Their numbers are not combined.
    let lines = ROWS_TEXT.replace(
        "{ name = \"paper\", paper = 3, unit = \"%\", is = \"slower[size = 2]\", rule = \"headline\" }",
        "{ name = \"both\", paper = 3, is = 'both[llc = \"plain\"] - both[llc = \"small\"]', rule = \"headline\" }",
    );
    let lines = lines.replace(
        "[let]",
        "[let]\nboth = 'time_ps[run = \"alone\", policy = \"stock\", program = \"sort\"]'",
    );
    let paper = paper_of(&grid, &lines, None).unwrap_or_else(|e| panic!("{e}"));
    let first = &rows(&paper, &options(true))[0];
    assert_eq!(first.verdict, Verdict::NotRun, "{first:?}");
    assert_eq!(first.why.as_deref(), Some("3 repetitions beside 4"));
}

#[test]
fn rows_without_a_case_are_not_run_and_say_so() {
    let filtered = [
        (
            "is = \"slower[size = 2]\"",
            "when = \"false\", is = \"slower[size = 2]\"",
            "none of its numbers is judged",
        ),
        (
            "holds = 'ran",
            "when = \"1 > 2\", holds = 'ran",
            "nothing of it is judged: no value of its axes has a number or a statement",
        ),
    ];
    for ((old, new, why), row) in filtered.into_iter().zip([0, 2]) {
        let lines = ROWS_TEXT.replace(old, new);
        assert_ne!(lines, ROWS_TEXT);
        let paper = paper_of(GRID_TEXT, &lines, None).unwrap_or_else(|e| panic!("{e}"));
        let found = rows(&paper, &options(true));
        assert_eq!(found[row].verdict, Verdict::NotRun);
        assert_eq!(found[row].why.as_deref(), Some(why));
    }
}
