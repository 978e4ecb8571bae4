//! Members that come and go, numbers that formulas give, and what is counted over time.

use super::{
    tests::{hooks, options, paper_of},
    *,
};

const GRID_TEXT: &str = r#"
schema = 1
[axis]
one = [
    { name = "a", class = "x" }, { name = "b", class = "x" }, { name = "c", class = "x" }, { name = "d", class = "y" },
]
interval = [0, 1, 2, 3, 4]
[axis.mix]
draw = "words"
numbers = 1
comings = { times = 5, first = 3, slots = 4 }
from = [{ axis = "one", count = 4 }]
[default]
schema = 2
repetitions = 2
draws = "names"
output.set_map = 0
machine = { preset = "w3540", memory = "3GiB" }
policy = [{ name = "stock", memory = "fresh" }]
[experiment.course]
each = "mix"
keeps = ["budget_refs"]
alone = "none"
warmup_refs = 1
budget_refs = { is = "100 * 1000" }
course = { until_us = { is = "5 * 12.5" }, every_us = 12.5 }
program = [{ each = "mix.member", stand_in = "{member}", cores = "{member.slot}", enter = "50%", arrives_us = { is = "12.5 * member.arrives", when = "member.arrives > 0" }, leaves_us = { is = "12.5 * member.leaves", when = "member.leaves < 5" } }]
[experiment.single]
repetitions = 1
warmup_refs = 1
budget_refs = 100000
course = { alone = true, until_us = 30, every_us = 6 }
program = [{ stand_in = "a", cores = "0", enter = "50%" }]
"#;

const ROWS_TEXT: &str = r#"
schema = 1
title = "t"
[[row]]
id = "X-1"
title = "one"
kind = "given"
experiment = ["course", "single"]
value = [
    { each = ["mix", "mix.member"], name = "{member} there", is = "sum(interval where there: references[program = member])" },
    { each = ["mix", "mix.member"], name = "{member} away", is = "if(any(interval: !there), sum(interval where !there: references[program = member]), 0)" },
    { each = ["mix"], name = "time", is = "time_ps[interval = 3, program = first(mix.member: member)]" },
    { each = ["mix"], name = "most", is = "at_max(interval: interval, work)" },
    { each = ["mix"], name = "most work", is = "max(interval: work).most" },
    { each = ["mix"], name = "least work", is = "max(interval: work).least" },
    { name = "alone", is = 'sum(interval: references[experiment = "single"])' },
    { name = "began again", is = 'extra("times that it began again")[experiment = "single"]' },
]
[row.let]
work = "sum(mix.member: references[program = member])"
there = "interval >= member.arrives && interval < member.leaves"
"#;

fn programs() -> String {
    let entry = |name: &str| {
        format!(
            "[[program]]\nname = \"{name}\"\nstands_for = \"\"\nclass = \"\"\n\
             builtin = \"gups:64KiB\"\nwhy = \"small enough to be run in a test\"\n"
        )
    };
    ["a", "b", "c", "d"].map(entry).concat()
}

fn paper(grid: &str, rows: &str) -> Result<DataPaper, String> {
    paper_of(grid, rows, Some(&programs()))
}

/// Of each member of each mix when it comes, when it goes, and its slot.
fn comers(grid: &str) -> Vec<Vec<(String, [u64; 3])>> {
    let root = grid::of_form(grid, false).expect("a grid");
    let axes = axes::axes(&root, &[], None).unwrap_or_else(|e| panic!("{e}"));
    let list = |value: &Value| match value {
        Value::Item(columns) => match columns.get("member") {
            Some(Value::List(list)) => list.iter().map(comer).collect(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    axes["mix"].iter().map(list).collect()
}

fn comer(value: &Value) -> (String, [u64; 3]) {
    let Value::Item(columns) = value else {
        panic!("{value:?}");
    };
    let number = |key: &str| match columns.get(key) {
        Some(Value::Number(n)) => *n as u64,
        other => panic!("{key}: {other:?}"),
    };
    let numbers = ["arrives", "leaves", "slot"].map(number);
    (value.text().unwrap_or_default(), numbers)
}

#[test]
fn members_come_one_by_one_and_who_is_there_has_a_slot_of_its_own() {
    let nine: Vec<String> = (0..9).map(|n| format!("\"{n}\"")).collect();
    let grid = format!(
        "schema = 1\n[axis]\none = [{}]\n[axis.mix]\ndraw = \"t\"\nnumbers = 200\n\
         comings = {{ times = 30, first = 6, slots = 8 }}\nfrom = [{{ axis = \"one\", count = 9 }}]\n",
        nine.join(", ")
    );
    let all = comers(&grid);
    assert_eq!(all.len(), 200);
    assert!(all.iter().any(|mix| mix != &all[0]));
    for mix in &all {
        assert_eq!(mix.len(), 9);
        let mut names: Vec<&str> = mix.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names.concat(), "012345678");
        let comes = mix.iter().map(|(_, [arrives, ..])| *arrives);
        let goes = mix.iter().map(|(_, [_, leaves, _])| *leaves);
        assert!(comes.clone().is_sorted());
        let gone: Vec<u64> = goes.filter(|leaves| *leaves < 30).collect();
        assert_eq!(gone.len(), 3);
        // Those that come later stay, and one of the others goes before the next comes.
        assert!(mix[6..].iter().all(|(_, [_, leaves, _])| *leaves == 30));
        let mut times: Vec<u64> = comes.chain(gone).collect();
        times.sort_unstable();
        times.dedup();
        assert_eq!(times.len(), 12, "{mix:?}");
        assert!(times[0] == 0 && times[11] < 30);
        assert_eq!(
            [6, 8, 10].map(|at| times[at]),
            [6, 7, 8].map(|n: usize| mix[n].1[0])
        );
        for at in 0..30 {
            let there = mix.iter().filter(|(_, [a, l, _])| *a <= at && *l > at);
            let mut slots: Vec<u64> = there.map(|(_, [.., slot])| *slot).collect();
            let count = slots.len();
            slots.sort_unstable();
            slots.dedup();
            assert!(slots.len() == count && (1..=8).contains(&count), "{mix:?}");
            assert!(slots.iter().all(|slot| *slot < 8));
        }
    }
}

#[test]
fn programs_make_references_in_the_intervals_in_which_they_are_there() {
    let paper = paper(GRID_TEXT, ROWS_TEXT).unwrap_or_else(|e| panic!("{e}"));
    let found = paper.reproduce(&options(false), hooks(None)).expect("rows");
    let values = &found.targets[0].values;
    let of = |name: &str| {
        let value = values.iter().find(|v| v.name == name);
        value
            .and_then(|v| v.measured)
            .unwrap_or_else(|| panic!("{name}: {:?}", found.targets[0]))
    };
    for name in ["a", "b", "c", "d"] {
        assert!(of(&format!("{name} there")) > 1000.0);
        assert_eq!(of(&format!("{name} away")), 0.0);
    }
    assert_eq!(of("time"), 12_500_000.0);
    let most = of("most");
    assert!(most.fract() == 0.0 && (0.0..5.0).contains(&most));
    assert!(of("most work") >= of("least work") && of("least work") > 0.0);
    // 30 us of a program alone.
    assert!(
        (5_000.0..100_000.0).contains(&of("alone")),
        "{}",
        of("alone")
    );
    assert_eq!(of("began again"), 0.0);
    // Numbers are written as numbers, and a key that does not hold is left out.
    let source = crate::Source::Folder(Box::new(
        self::paper(GRID_TEXT, ROWS_TEXT).expect("a paper"),
    ));
    let written = crate::experiments(&source, &options(false), hooks(None), "X-1");
    let text = &written.unwrap_or_else(|e| panic!("{e}"))[0].text;
    assert!(
        text.contains("budget_refs = 100000\n") && text.contains("until_us = 62.5"),
        "{text}"
    );
    assert_eq!(text.matches("arrives_us").count(), 3, "{text}");
    assert_eq!(text.matches("leaves_us").count(), 1, "{text}");
}

#[test]
fn a_number_that_is_not_measured_leaves_its_row_not_run() {
    let rows = ROWS_TEXT.replace("kind = \"given\"", "kind = \"bound\"").replace(
        "value = [\n",
        "value = [\n    { name = \"cost\", paper = \"< 1\", missing = \"nobody counts it\" },\n",
    );
    let paper = paper(GRID_TEXT, &rows).unwrap_or_else(|e| panic!("{e}"));
    let found = paper.reproduce(&options(false), hooks(None)).expect("rows");
    let row = &found.targets[0];
    assert_eq!(row.verdict, piebald_report::Verdict::NotRun);
    assert!(
        row.why
            .as_ref()
            .is_some_and(|why| why.contains("nobody counts it"))
    );
    assert_eq!(
        (row.values[0].name.as_str(), row.values[0].measured),
        ("cost", None)
    );
}

#[test]
fn what_is_wrong_with_a_course_or_a_formula_in_a_grid_is_told_with_its_place() {
    for (old, new, part) in [
        (
            "first = 3,",
            "first = 1,",
            "axis.mix: comings.first = 1: allowed: 1 to 4, at least half",
        ),
        (
            "first = 3,",
            "first = 0,",
            "comings.first = 0: allowed: 1 to 4",
        ),
        (
            "times = 5,",
            "times = 4,",
            "comings.times = 4: allowed: 5 to 1000",
        ),
        (
            "slots = 4 }",
            "slots = 3 }",
            "comings.slots = 3: allowed: one for each member",
        ),
        (
            "slots = 4 }",
            "slot = 4 }",
            "axis.mix: unknown field `slot`",
        ),
        (
            "{ name = \"d\", class = \"y\" }",
            "{ name = \"d\", slot = 1 }",
            "comings.slot: allowed: members without a column slot",
        ),
        (
            "\"100 * 1000\"",
            "\"100 / 0\"",
            "experiment.course.budget_refs = inf: allowed: a number that is finite",
        ),
        (
            "\"100 * 1000\"",
            "100",
            "experiment.course.budget_refs.is = 100: allowed: a formula, as a text",
        ),
        (
            "{ is = \"100 * 1000\" }",
            "{ is = \"1\", of = \"2\" }",
            "experiment.course.budget_refs.of: allowed: is, when",
        ),
        (
            "\"100 * 1000\"",
            "\"mxi\"",
            "experiment.course.budget_refs: \"mxi\" is the name of nothing",
        ),
        (
            "interval = 3,",
            "interval = 7,",
            "interval = \"7\": allowed: 0, 1, 2, 3, 4",
        ),
        (
            "every_us = 12.5",
            "every_us = 30",
            "interval = 2: allowed: 0 to 1",
        ),
        (
            "time_ps[interval = 3,",
            "ipc[interval = 3,",
            "ipc of an interval: allowed: references, ",
        ),
        (
            "work).most",
            "work).mots",
            ".mots of a sample: allowed: mean, low, high, half, least, most",
        ),
        (
            "course = { until_us = { is = \"5 * 12.5\" }, every_us = 12.5 }",
            "",
            "arrives_us and leaves_us: allowed only",
        ),
        (
            "course = { alone = true, until_us = 30, every_us = 6 }",
            "",
            "interval = 0: allowed with a table [course]",
        ),
        (
            "extra(\"times that",
            "extra(\"time that",
            "allowed: pages swapped out",
        ),
    ] {
        let (grid, rows) = (
            GRID_TEXT.replacen(old, new, 1),
            ROWS_TEXT.replacen(old, new, 1),
        );
        assert!(grid != GRID_TEXT || rows != ROWS_TEXT, "{old}");
        let found = paper(&grid, &rows).err().unwrap_or_default();
        assert!(found.contains(part), "{part}: {found}");
    }
}
