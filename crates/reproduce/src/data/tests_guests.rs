//! Papers with experiments in guests, and what such papers need: pairs of numbers, formulas that are numbers,
//! and files that are made.

use piebald_experiment::{Document, HostName};
use piebald_report::{Published, Verdict};

use super::{
    tests::{PROGRAMS_TEXT, hooks, options, paper_of, rows},
    *,
};
use crate::{Source, Written, experiments};

const GRID_TEXT: &str = r#"
schema = 1
[axis]
file = { numbers = 3 }
case = [
    { name = "short", word = ["1024", "1"], long = false },
    { name = "long", word = ["4096", "2"], long = true },
]
[default]
schema = 2
repetitions = 2
alone = "targets"
machine = { preset = "w3540" }
[experiment.real]
each = "case"
host = "guest"
data = "data-{count(file: 1)}"
guest = { module = "{module}", scratch = "16MiB" }
file = [{ each = "file", name = "{file}", size = "4KiB", seed = { is = "seed + 10 * file" } }]
program = [
    { name = "sort", command = ["mergesort", { each = "case.word", is = "word" }, { when = "case.long", is = "case" }], cores = "0" },
    { name = "cat", command = ["cat", "/data/0"], cores = "1", role = "polluter" },
]
policy = [{ name = "stock" }, { name = "SRM-buffer", files = "srm", color_map = ["15"] }]
[experiment.modelled]
each = "case"
budget_refs = "3000"
warmup_refs = "1000"
machine = { features = "coherence", clock = "instructions" }
program = [
    { name = "sort", builtin = "mergesort:64KiB", cores = "0" },
    { name = "cat", builtin = "scan:1MiB", cores = "1", role = "polluter" },
]
"#;

const ROWS_TEXT: &str = r#"
schema = 1
title = "t"
columns = ["modelled", "real"]
conditions = ["first", '{if(has("no such program"), "second", "")}']
[let]
misses = '1000 * mpki("L3")[program = "sort", run = "together", policy = "stock"]'
[[row]]
id = "X-1"
title = "one"
kind = "headline"
experiment = ["real", "modelled"]
[[row.part]]
each = ["case"]
value = [{ name = "{case}", paper = { is = 'misses[experiment = "modelled"].mean' }, is = 'misses[experiment = "real"]', rule = "amount(100)" }]
[[row]]
id = "X-2"
title = "two"
kind = "headline"
experiment = "modelled"
[[row.part]]
each = ["case"]
value = [
    { name = "{case}", paper = { is = "misses.mean" }, is = "misses", rule = "amount(100)" },
    { name = "{case}, nothing", paper = 99, is = "0 * misses", rule = "amount(100)" },
    { name = "{case}, something", paper = 101, is = "0 * misses", rule = "share(100)" },
]
"#;

fn written(paper: DataPaper, asked: &Options, id: &str) -> Vec<Written> {
    let source = Source::Folder(Box::new(paper));
    let found = experiments(&source, asked, hooks(None), id);
    found.unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn experiments_in_guests_are_written_down_with_what_they_need() {
    let folder = tempfile::tempdir().expect("a folder");
    let paper = paper_of(GRID_TEXT, ROWS_TEXT, None).unwrap_or_else(|e| panic!("{e}"));
    assert!(paper.has_guests().unwrap_or_else(|e| panic!("{e}")));
    let asked = Options {
        inputs: folder.path().to_owned(),
        module: Some("/x/piebald.ko".into()),
        ..options(false)
    };
    let found = written(paper, &asked, "X-1");
    let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(
        names,
        ["real short", "real long", "modelled short", "modelled long"]
    );
    let document = Document::new(Path::new("p"), found[1].text.as_str()).on(HostName::Guest);
    let read = document.experiment().unwrap_or_else(|e| panic!("{e}"));
    let seeds: Vec<u64> = read.file.iter().map(|file| file.seed.get()).collect();
    assert_eq!(seeds, [7, 17, 27]);
    let command = read.program[0].command.as_deref();
    assert_eq!(
        command,
        Some(&["mergesort", "4096", "2", "long"].map(str::to_owned)[..])
    );
    assert_eq!(
        read.guest.module.as_deref(),
        Some(Path::new("/x/piebald.ko"))
    );
    assert!(!found[0].text.contains("\"short\""), "{}", found[0].text);
    for name in ["data-3/0", "data-3/2", "scratch"] {
        assert!(folder.path().join(name).exists(), "{name}");
    }
    // Programs are made where recordings find them, if there are any.
    assert!(!folder.path().join("programs").exists());
    let recorded = paper_of(GRID_TEXT, ROWS_TEXT, Some(PROGRAMS_TEXT));
    written(recorded.unwrap_or_else(|e| panic!("{e}")), &asked, "X-1");
    assert!(folder.path().join("programs/mergesort").exists());
}

#[test]
fn a_guest_needs_a_module_and_other_rows_do_not() {
    let paper = || paper_of(GRID_TEXT, ROWS_TEXT, None).unwrap_or_else(|e| panic!("{e}"));
    let folder = tempfile::tempdir().expect("a folder");
    let only = |id: &str| Options {
        only: vec![id.to_owned()],
        inputs: folder.path().to_owned(),
        ..options(false)
    };
    let error = paper().reproduce(&only("X-1"), hooks(None));
    let error = error.expect_err("no module").to_string();
    assert!(
        error.contains("x: has experiments in guests: allowed with --guest"),
        "{error}"
    );
    let found = paper().reproduce(&only("X-2"), hooks(None));
    let found = found.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(found.columns, Some(["modelled", "real"].map(str::to_owned)));
    // The condition that comes to nothing is left out.
    assert_eq!(found.conditions[0], "first");
    assert!(
        found.conditions[1].starts_with("Runs of modelled: 3000 "),
        "{:?}",
        found.conditions
    );
    let row = &found.targets[0];
    assert_eq!(row.values.len(), 6);
    assert_eq!(row.verdict, Verdict::Miss, "0 beside 101 is something");
}

#[test]
fn amounts_that_are_nothing_are_alike() {
    let paper = ROWS_TEXT.replace("paper = 101", "paper = 99.5");
    let paper = paper_of(GRID_TEXT, &paper, None).unwrap_or_else(|e| panic!("{e}"));
    let only = Options {
        only: vec!["X-2".to_owned()],
        ..options(false)
    };
    assert_eq!(rows(&paper, &only)[0].verdict, Verdict::Match);
}

#[test]
fn of_a_pair_the_number_that_is_there_is_shown() {
    let grid = r#"
schema = 1
[default]
schema = 2
repetitions = 1
budget_refs = "3000"
machine = { preset = "w3540" }
[experiment.there]
program = [{ name = "sort", builtin = "mergesort:64KiB", cores = "0" }]
[experiment.lost]
program = [{ name = "sort", recording = "nowhere.pbr", cores = "0" }]
"#;
    let text = r#"
schema = 1
title = "t"
columns = ["a", "b"]
[let]
there = 'time_ps[experiment = "there"]'
lost = 'time_ps[experiment = "lost"]'
[[row]]
id = "X-1"
title = "one"
kind = "headline"
experiment = ["there", "lost"]
value = [
    { name = "first", paper = { is = "lost.mean" }, is = "there", rule = "amount(1)" },
    { name = "second", paper = { is = "there.mean" }, is = "lost", rule = "amount(1)" },
    { name = "first shown", paper = { is = "lost.mean" }, is = "there" },
    { name = "second shown", paper = { is = "there.mean" }, is = "lost" },
]
"#;
    let of = |text: &str| {
        let paper = paper_of(grid, text, None).unwrap_or_else(|e| panic!("{e}"));
        rows(&paper, &options(false)).remove(0)
    };
    let both = of(text);
    assert_eq!(both.verdict, Verdict::NotRun);
    assert!(
        both.why
            .as_deref()
            .is_some_and(|why| why.contains("nowhere.pbr")),
        "{both:?}"
    );
    let sides = both.values.iter().map(|value| {
        let has_first = matches!(value.paper, Published::Number(_));
        (value.name.as_str(), has_first, value.measured.is_some())
    });
    let sides: Vec<_> = sides.collect();
    assert_eq!(
        sides,
        [
            ("first", false, true),
            ("second", true, false),
            ("first shown", false, true),
            ("second shown", true, false),
        ]
    );
    // Where the paper's number is no measurement, what was not measured is left out.
    let single = of(&text.replace("columns = [\"a\", \"b\"]\n", ""));
    let names: Vec<&str> = single.values.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names, ["second"]);
}

#[test]
fn what_is_wrong_is_refused_with_its_place() {
    for (from, to, part) in [
        (
            "host = \"guest\"",
            "host = \"cloud\"",
            "experiment.real.host = \"cloud\": allowed: model, guest",
        ),
        (
            "host = \"guest\"",
            "host = 1",
            "experiment.real.host = 1: allowed: a text",
        ),
        (
            "data = \"data-{count(file: 1)}\"",
            "data = \"../x\"",
            "experiment.real.data = \"../x\": allowed: a folder's name",
        ),
        (
            "data = \"data-{count(file: 1)}\"",
            "data = 3",
            "experiment.real.data = 3: allowed: a text",
        ),
        (
            "numbers = 3",
            "numbers = 0",
            "axis.file.numbers = 0: allowed: 1 to 1000",
        ),
        (
            "numbers = 3",
            "numbers = 1001",
            "axis.file.numbers = 1001: allowed: 1 to 1000",
        ),
        (
            "seed + 10 * file",
            "1 / 0",
            ".seed = inf: allowed: a number that is finite",
        ),
        (
            "seed + 10 * file",
            "sead",
            "\"sead\" is the name of nothing",
        ),
        ("is = \"word\"", "is = \"case.word\"", "a list: allowed"),
        (
            "clock = \"instructions\"",
            "clock = \"never\"",
            "\"time\", \"instructions\"",
        ),
        // Keys of the model's alone.
        (
            "guest = {",
            "budget_refs = \"1M\"\nguest = {",
            "is for the host model, not for guest",
        ),
    ] {
        assert!(GRID_TEXT.contains(from), "{from}");
        let grid = GRID_TEXT.replace(from, to);
        let error = paper_of(&grid, ROWS_TEXT, None).map(|_| ()).expect_err(to);
        assert!(error.contains(part), "{to}: {error}");
    }
    for (from, to, part) in [
        (
            "columns = [\"modelled\", \"real\"]",
            "columns = [\"one\"]",
            "expected an array of length 2",
        ),
        (
            "rule = \"amount(100)\"",
            "rule = \"amount(1, 2)\"",
            "amount(bound)",
        ),
        ("mpki(\"L3\")", "mpki(\"L9\")", "allowed: L1D, L2, L3"),
        (
            "program = \"sort\"",
            "program = \"grep\"",
            "allowed: sort, cat",
        ),
    ] {
        assert!(ROWS_TEXT.contains(from), "{from}");
        let error = paper_of(GRID_TEXT, &ROWS_TEXT.replace(from, to), None);
        let error = error.map(|_| ()).expect_err(to);
        assert!(error.contains(part), "{to}: {error}");
    }
}

#[test]
fn times_on_different_clocks_are_neither_divided_nor_compared() {
    let lets = r#"
[let]
t = 'time_ps[program = "sort", policy = "stock"]'
real = 't[experiment = "real", run = "together"]'
real_alone = 't[experiment = "real", run = "alone"]'
modelled = 't[experiment = "modelled", run = "together"]'
modelled_alone = 't[experiment = "modelled", run = "alone"]'
ipc_of = 'ipc[program = "sort", policy = "stock", run = "alone"]'
"#;
    let refusal = |paper: &str, is: &str, rule: &str| {
        let rows = format!(
            "schema = 1\ntitle = \"t\"\n{lets}\n[[row]]\nid = \"X-1\"\ntitle = \"one\"\nkind = \"headline\"\n\
             experiment = [\"real\", \"modelled\"]\n[[row.part]]\neach = [\"case\"]\n\
             value = [{{ name = \"{{case}}\", paper = {paper}, is = '{is}'{rule} }}]\n"
        );
        paper_of(GRID_TEXT, &rows, None).map(|_| ()).err()
    };
    let rule = ", rule = \"share(100)\"";
    for is in [
        "real / modelled",
        "real - modelled",
        "(real + 5) / (2 * modelled)",
        "if(real < modelled, 1, 2)",
        r#"mean(case: if(case == "short", real, modelled))"#,
        r#"ipc_of[experiment = "real"] / ipc_of[experiment = "modelled"]"#,
    ] {
        let error = refusal("1", is, rule).unwrap_or_else(|| panic!("{is} is taken"));
        assert!(
            error.contains("different clocks") && error.contains("a guest's instructions"),
            "{is}: {error}"
        );
    }
    let compared = refusal("{ is = \"modelled.mean\" }", "real", rule).expect("it is compared");
    assert!(compared.contains("different clocks"), "{compared}");
    for (paper, is, rule) in [
        // Beside one another, and compared with nothing.
        ("{ is = \"modelled.mean\" }", "real", ""),
        (
            "{ is = \"modelled.mean / modelled_alone.mean\" }",
            "real / real_alone",
            rule,
        ),
        ("1", "real / real_alone - modelled / modelled_alone", rule),
        ("1", "(modelled - modelled_alone) / modelled_alone", rule),
        ("1", "real.mean * 0 + 1", rule),
        (
            "1",
            r#"instructions[experiment = "real", program = "sort", policy = "stock", run = "alone"] / mean(case: modelled / modelled_alone)"#,
            rule,
        ),
    ] {
        assert_eq!(refusal(paper, is, rule), None, "{is}");
    }
}
