//! Axes that are drawn, what goes through the lists of their values, and tables of single cases.

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
way = ["stock", "random"]
[axis.mix]
draw = "words"
numbers = 4
from = [
    { axis = "one", when = 'one.class == "y"', count = 1 },
    { axis = "one", count = [1, 2] },
]
[default]
schema = 2
repetitions = 1
budget_refs = "2000"
warmup_refs = "500"
draws = "names"
output.set_map = 0
machine = { preset = "w3540", memory = "3GiB" }
policy = [{ each = "way", name = "{way}", frames = "{way}", memory = "fresh" }]
[experiment.alone]
each = "one"
deal = { cores = "0-3" }
program = [{ stand_in = "{one}", enter = "50%" }]
[experiment.mixes]
each = "mix"
title = "{mix.list} {mix}"
alone = "none"
deal = { cores = "0-3", name = "{mix.list}", number = "{mix.number}" }
program = [{ each = "mix.member", stand_in = "{member}", enter = "50%" }]
[form.quick.axis.mix]
take = [3, 0]
"#;

const ROWS_TEXT: &str = r#"
schema = 1
title = "t"
[let]
relative = 'time_ps[experiment = "alone", one = member, program = member, run = "alone"] / time_ps[program = member]'
[[row]]
id = "X-1"
title = "one"
kind = "given"
experiment = ["mixes", "alone"]
value = [
    { each = ["mix"], name = "mix {mix} of {mix.size}", is = 'sum(mix.member: relative)[policy = "stock"]' },
    { name = "lines", is = 'memory_reads[experiment = "alone", one = "a", program = "a", run = "alone", policy = "stock"]' },
]
[[row.table]]
title = "Speeds"
each = ["mix", "mix.member"]
when = 'member != "d"'
column = [
    { name = "mix", text = "{mix}" },
    { name = "program", text = "{member}" },
    { name = "place", text = "{member.place}" },
    { each = ["way"], name = "{way}", text = "{relative[policy = way].mean:.2}" },
]
[[figure]]
rows = ["X-1"]
experiment = "alone"
name = "f"
text = "t"
x = "x"
y = "y"
panel = { title = "" }
over = "one"
curve = [{ each = ["way"], name = "by {way}", when = 'one.class == "x"', is = 'time_ps[program = one, run = "alone", policy = way]' }]
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

/// Members of the mixes that are run.
fn members(grid: &str, quick: bool, mixes: Option<u64>) -> Vec<(String, Vec<String>)> {
    let root = grid::of_form(grid, quick).expect("a grid");
    let axes = axes::axes(&root, &[], mixes).expect("axes");
    let names = |value: &Value| match value {
        Value::Item(columns) => match columns.get("member") {
            Some(Value::List(list)) => list.iter().filter_map(|v| v.text().ok()).collect(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    let mix = |value: &Value| (value.text().unwrap_or_default(), names(value));
    axes["mix"].iter().map(mix).collect()
}

#[test]
fn a_command_line_may_shorten_lists_that_do_not_stay() {
    let of = |grid: &str| paper_of(grid, ROWS_TEXT, Some(&programs())).map(|paper| paper.mixes());
    assert_eq!(of(GRID_TEXT), Ok(Some(4)));
    let listed = GRID_TEXT
        .replacen("numbers = 4", "numbers = [3, 0, 7]", 1)
        .replace("take = [3, 0]", "take = [3]");
    assert_eq!(of(&listed), Ok(Some(3)));
    let stays = GRID_TEXT.replacen("numbers = 4", "numbers = 4\nkeeps = [\"mixes\"]", 1);
    assert_eq!(of(&stays), Ok(None));
}

#[test]
fn mixes_have_what_is_asked_for_by_turns_and_no_value_twice() {
    let all = members(GRID_TEXT, false, None);
    assert_eq!(all.len(), 4);
    for (at, (name, members)) in all.iter().enumerate() {
        assert_eq!(*name, at.to_string());
        assert_eq!(members.len(), 2 + at % 2, "{members:?}");
        assert_eq!(members[0], "d");
        let mut sorted = members.clone();
        sorted.sort();
        sorted.dedup();
        assert_eq!(sorted.len(), members.len());
    }
    // The quick form and --mixes have mixes of the same list.
    let quick = members(GRID_TEXT, true, None);
    assert_eq!(quick, [all[3].clone(), all[0].clone()]);
    assert_eq!(members(GRID_TEXT, true, Some(3)), all[..3]);
    assert_eq!(members(GRID_TEXT, false, Some(9)), all);
    // Some are run whatever is taken, and a list may be kept whole.
    let also = GRID_TEXT.replace("numbers = 4", "numbers = 4\nalso = [2, 0]");
    let with = |of: &[usize]| of.iter().map(|at| all[*at].clone()).collect::<Vec<_>>();
    assert_eq!(members(&also, true, None), with(&[3, 0, 2]));
    assert_eq!(members(&also, true, Some(1)), with(&[0, 2]));
    assert_eq!(members(&also, false, None), all);
    let kept = GRID_TEXT.replace("numbers = 4", "numbers = 4\nkeeps = [\"mixes\"]");
    assert_eq!(members(&kept, false, Some(1)), all);
    assert_eq!(members(&kept, true, Some(1)), quick);
    let other = GRID_TEXT.replace("draw = \"words\"", "draw = \"others\"");
    assert_ne!(members(&other, false, None), all);
    let these = GRID_TEXT.replace("numbers = 4", "numbers = [2, 3, 0]");
    assert_eq!(members(&these, false, None)[0], all[2]);
}

#[test]
fn speeds_of_mixes_are_against_programs_alone_and_tables_have_a_line_for_each() {
    let paper = paper(GRID_TEXT, ROWS_TEXT).unwrap_or_else(|e| panic!("{e}"));
    let found = paper.reproduce(&options(true), hooks(None)).expect("rows");
    let row = &found.targets[0];
    let names: Vec<&str> = row.values.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names, ["mix 3 of 3", "mix 0 of 2", "lines"]);
    // 64 KiB are read once from memory, if at all.
    assert!(row.values[2].measured.is_some_and(|lines| lines >= 0.0));
    let curves = &found.figures[0].panels[0].curves;
    let curves: Vec<_> = (curves.iter().map(|c| (c.name.as_str(), c.points.len()))).collect();
    assert_eq!(curves, [("by stock", 3), ("by random", 3)]);
    for value in &row.values[..2] {
        let speed = value.measured.unwrap_or(f64::NAN);
        assert!(speed > 0.5 && speed < 3.5, "{value:?}");
    }
    let [table] = &row.tables[..] else {
        panic!("{:?}", row.tables);
    };
    assert_eq!(
        table.columns,
        ["mix", "program", "place", "stock", "random"]
    );
    let mixes: Vec<&str> = table.rows.iter().map(|line| line[0].as_str()).collect();
    assert_eq!(mixes, ["3", "3", "0"]);
    for line in &table.rows {
        assert!(line[1] != "d" && line[3].parse::<f64>().is_ok(), "{line:?}");
    }
    // "d" is the first of each mix.
    let places: Vec<&str> = table.rows.iter().map(|line| line[2].as_str()).collect();
    assert_eq!(places, ["2", "3", "2"]);
}

#[test]
fn what_is_wrong_with_a_draw_or_a_table_is_told_with_its_place() {
    let refused = |old: &str, new: &str| {
        let grid = GRID_TEXT.replacen(old, new, 1);
        let rows = ROWS_TEXT.replacen(old, new, 1);
        assert!(grid != GRID_TEXT || rows != ROWS_TEXT, "{old}");
        paper(&grid, &rows).err().unwrap_or_default()
    };
    for (old, new, part) in [
        (
            "one.class == \"y\"",
            "has(\"sh\")",
            "has: not allowed in a draw",
        ),
        (
            "numbers = 4",
            "numbers = 4000",
            "axis.mix: numbers = 4000: allowed: up to 1000",
        ),
        (
            "numbers = 4",
            "numbers = 0",
            "axis.mix: numbers, take: allowed: one mix or more",
        ),
        (
            "numbers = 4",
            "number = 4",
            "axis.mix: unknown field `number`",
        ),
        (
            "take = [3, 0]",
            "take = [7]",
            "axis.mix: take: 7: allowed: mixes of the list",
        ),
        (
            "numbers = 4",
            "numbers = 4\nalso = [4]",
            "axis.mix: also: 4: allowed: mixes of the list",
        ),
        (
            "numbers = 4",
            "numbers = 4\nkeeps = [\"seed\"]",
            "axis.mix: unknown variant `seed`, expected `mixes`",
        ),
        (
            "count = 1 }",
            "count = 2 }",
            "from[0].count = 2: allowed: 1 values of one are left",
        ),
        (
            "axis = \"one\", when",
            "axis = \"two\", when",
            "axis.mix: from: \"two\" is no axis",
        ),
        (
            "each = \"mix.member\"",
            "each = \"mix.members\"",
            ".members of a value of an axis: allowed: ",
        ),
        (
            "each = \"mix.member\"",
            "each = \"mix.size\"",
            "\"mix.size\": a number: allowed: a list",
        ),
        (
            "[\"mix\", \"mix.member\"]",
            "[\"mix.member\"]",
            "choose a value for mix",
        ),
        (
            "text = \"{member}\"",
            "text = \"{mix.member}\"",
            "a list: allowed: what goes through it",
        ),
        (
            "text = \"{mix}\"",
            "text = \"{mxi}\"",
            "table \"Speeds\": \"mxi\" is the name of nothing",
        ),
    ] {
        let found = refused(old, new);
        assert!(found.contains(part), "{part}: {found}");
    }
}
