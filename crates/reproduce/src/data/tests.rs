//! Papers that are data: what is run, what is read from it, and what is refused.

use std::sync::Arc;

use piebald_guest::AllHosts;
use piebald_lab::scenario::Scenario;
use piebald_report::{Target, Verdict};
use piebald_store::Store;

use super::*;
use crate::{Source, experiments, status};

pub(super) const GRID_TEXT: &str = r#"
schema = 1
[axis]
size = [2, 8, 14]
llc = [{ name = "plain" }, { name = "small", over.machine.memory = "1536MiB" }]
[default]
schema = 2
repetitions = 2
budget_refs = "3000"
warmup_refs = "1000"
machine = { preset = "w3540", memory = "3GiB", prefetch = false }
[experiment.share]
each = "llc"
title = "{llc} {{x}}"
together = "each-target"
alone = "targets"
program = [
    { name = "sort", builtin = "mergesort:64KiB", cores = "0" },
    { name = "scan", builtin = "scan:1MiB", cores = "1", role = "polluter" },
]
policy = [
    { name = "stock" },
    { each = "size", when = "size < 14", name = "{size}", frames = "rainbow", colors = { sort = "0-{size - 1}" } },
]
[experiment.fixed]
keeps = ["seed", "repetitions", "budget_refs"]
seed = 5
budget_refs = "2000"
program = [{ name = "sort", builtin = "mergesort:64KiB", cores = "0" }]
[form.quick.axis]
size = [2, 8]
[form.quick.default]
repetitions = 3
"#;

pub(super) const ROWS_TEXT: &str = r#"
schema = 1
title = "t"
[let]
time = 'time_ps[program = "sort", llc = "plain"]'
slower = '100 * (time[run = "together", policy = size] / time[run = "alone", policy = "stock"] - 1)'
[[row]]
id = "X-1"
title = "one"
kind = "headline"
experiment = "share"
value = [
    { each = ["size"], when = "size < 14", name = "{size}", unit = "%", is = "slower" },
    { name = "paper", paper = 3, unit = "%", is = "slower[size = 2]", rule = "headline" },
]
statement = [{ text = "two ({slower[size = 2]:.2})", holds = 'slower[size = 2].mean > -100' }]
[[row]]
id = "X-2"
title = "two"
kind = "given"
value = [{ name = "cited", paper = "much" }]
[[row]]
id = "X-3"
title = "three"
kind = "shape"
experiment = "fixed"
statement = [{ text = "it runs", holds = 'ran && !fails_with("x") && !counts("pages swapped out")' }]
"#;

pub(super) fn paper_of(
    grid: &str,
    rows: &str,
    programs: Option<&str>,
) -> Result<DataPaper, String> {
    let made = DataPaper::new(("x", Path::new("p")), [grid, rows], programs, Known::new());
    let made = made.and_then(|paper| paper.on(&AllHosts).checked());
    made.map_err(|e| e.to_string())
}

pub(super) fn hooks<'a>(store: Option<&'a Arc<Store>>) -> Hooks<'a> {
    Hooks {
        stop: None,
        progress: None,
        record: &|wanted, _| Err(format!("no {} of {}", wanted.program.name, wanted.refs)),
        store,
    }
}

pub(super) fn options(quick: bool) -> Options {
    Options {
        quick,
        seed: 7,
        ..Options::default()
    }
}

pub(super) fn rows(paper: &DataPaper, options: &Options) -> Vec<Target> {
    let found = paper.reproduce(options, hooks(None));
    found.unwrap_or_else(|e| panic!("{e}")).targets
}

#[test]
fn values_are_those_of_the_studies_that_the_experiments_are() {
    let paper = paper_of(GRID_TEXT, ROWS_TEXT, None).expect("a paper");
    assert_eq!(paper.ids(), ["X-1", "X-2", "X-3"]);
    let found = rows(&paper, &options(true));
    let one = &found[0];
    assert_eq!(one.values.len(), 3, "{one:?}");
    assert_eq!(one.predicates[0].holds, Some(true));
    // The same by a study of the file that is written down, and by hand.
    let source = Source::Folder(Box::new(
        paper_of(GRID_TEXT, ROWS_TEXT, None).expect("a paper"),
    ));
    let written = experiments(&source, &options(true), hooks(None), "X-1");
    let written = written.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(written.len(), 2);
    assert!(
        written[0].text.contains("title = \"plain {x}\""),
        "{}",
        written[0].text
    );
    let scenario = Scenario::parse(&written[0].text, Path::new("p")).expect("a scenario");
    let inputs = piebald_lab::prepare(&scenario, &|_, _| Err(String::new())).expect("inputs");
    let study = piebald_lab::study(&scenario, &inputs, piebald_lab::Hooks::default());
    let study = study.unwrap_or_else(|e| panic!("{e}"));
    for (value, policy) in one.values.iter().zip(["2", "8"]) {
        let of = |name: &str| {
            let found = study.policies.iter().find(|p| p.name == name);
            let programs = &found.expect("the policy").programs;
            programs
                .iter()
                .find(|p| p.name == "sort")
                .expect("the sort")
        };
        let alone = &of("stock").alone.time_ps.values;
        let together = &of(policy).together.as_ref().expect("met").time_ps.values;
        let pairs = together.iter().zip(alone);
        let by_hand = pairs.map(|(t, a)| 100.0 * (t / a - 1.0)).sum::<f64>() / alone.len() as f64;
        let measured = value.measured.expect("a number");
        assert!(
            (measured - by_hand).abs() < 1e-9,
            "{policy}: {measured} {by_hand}"
        );
        assert_eq!(alone.len(), 3);
    }
    assert_eq!(
        (found[1].verdict, found[1].values[0].measured),
        (Verdict::Given, None)
    );
    assert_eq!(found[2].verdict, Verdict::Match, "{:?}", found[2]);
}

#[test]
fn options_choose_lengths_seeds_and_repetitions_but_what_an_experiment_keeps() {
    let paper = paper_of(GRID_TEXT, ROWS_TEXT, None).expect("a paper");
    let asked = Options {
        repetitions: Some(4),
        budget_refs: Some(600),
        only: vec!["X-1".to_owned(), "X-3".to_owned()],
        ..options(false)
    };
    let (written, _) = paper.experiments(&asked, hooks(None)).expect("experiments");
    let table = |text: &str| toml::from_str::<toml::Table>(text).expect("a file");
    let [plain, small, fixed] = [0, 1, 2].map(|i: usize| table(&written[i].text));
    let word = |table: &toml::Table, key: &str| table[key].to_string().replace('"', "");
    for (file, memory) in [(&plain, "3GiB"), (&small, "1536MiB")] {
        let machine = file["machine"].as_table().expect("a machine");
        assert_eq!(word(machine, "memory"), memory);
        assert_eq!(word(file, "seed"), "7");
        assert_eq!(word(file, "repetitions"), "4");
        // The warm-up keeps its share.
        assert_eq!(
            (word(file, "budget_refs"), word(file, "warmup_refs")),
            ("600".into(), "200".into())
        );
        let policies = file["policy"].as_array().expect("policies");
        assert_eq!(policies.len(), 3, "the axis without what `when` leaves out");
    }
    assert_eq!(
        (word(&fixed, "seed"), word(&fixed, "repetitions")),
        ("5".into(), "2".into())
    );
    assert_eq!(word(&fixed, "budget_refs"), "2000");
}

#[test]
fn a_row_is_interrupted_goes_on_and_says_what_is_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = Source::Folder(Box::new(
        paper_of(GRID_TEXT, ROWS_TEXT, None).expect("a paper"),
    ));
    let state = || {
        let found = status(&source, &options(true), hooks(None), folder.path());
        let rows = found.unwrap_or_else(|e| panic!("{e}"));
        rows.into_iter()
            .map(|r| (r.state.name(), r.kept.count, r.never))
            .collect::<Vec<_>>()
    };
    // Three policies, three repetitions, alone and together, on two machines.
    assert_eq!(
        state(),
        [("missing", 0, 36), ("ready", 0, 0), ("missing", 0, 3)]
    );
    let store = Arc::new(Store::open(folder.path(), piebald_sim::EPOCH).expect("a store"));
    let Source::Folder(paper) = &source else {
        unreachable!()
    };
    let first = paper
        .reproduce(&options(true), hooks(Some(&store)))
        .expect("rows");
    assert_eq!(
        state(),
        [("ready", 36, 0), ("ready", 0, 0), ("ready", 3, 0)]
    );
    let again = paper
        .reproduce(&options(true), hooks(Some(&store)))
        .expect("rows");
    assert_eq!(first.targets, again.targets);
}

pub(super) const PROGRAMS_TEXT: &str = "[[program]]\nname = \"b\"\nstands_for = \"a large program\"\nclass = \"R\"\n\
     command = [\"x\"]\nskip = \"1M\"\nlimit = \"2M\"\nwhy = \"because\"\n";

#[test]
fn a_stand_in_that_is_not_recorded_leaves_its_row_with_the_reason() {
    let grid = GRID_TEXT.replace(
        "{ name = \"sort\", builtin = \"mergesort:64KiB\", cores = \"0\" }]",
        "{ each = \"program\", stand_in = \"{program}\", cores = \"0\" }]",
    );
    let lines = ROWS_TEXT.replace("title = \"t\"", "title = \"t\"\ninputs_by = \"make it\"");
    let lines = lines + "note = [{ text = \"{budget_refs} references\" }]\n";
    let paper = paper_of(&grid, &lines, Some(PROGRAMS_TEXT)).expect("a paper");
    let found = paper.reproduce(&options(false), hooks(None)).expect("rows");
    let third = &found.targets[2];
    assert_eq!(third.verdict, Verdict::NotRun);
    assert_eq!(
        third.why.as_deref(),
        Some("not recorded (make it makes what they need): b: no b of 8000")
    );
    let said = found.conditions.last().expect("a line");
    assert_eq!(
        said,
        "b (x) stands for a large program. NOT RUN: no b of 8000."
    );
    // Others are run.
    assert_ne!(found.targets[0].verdict, Verdict::NotRun);
    // Nobody records a program that no wanted row has.
    let only = Options {
        only: vec!["X-2".to_owned()],
        ..options(false)
    };
    let found = paper.reproduce(&only, hooks(None)).expect("rows");
    assert!(
        found
            .conditions
            .iter()
            .all(|line| !line.contains("NOT RUN"))
    );
}

#[test]
fn what_is_wrong_is_told_with_file_and_place_before_anything_is_run() {
    let grids = [
        (
            "schema = 1",
            "schema = 2",
            "p/grid.toml: schema: 2: allowed: schema = 1",
        ),
        (
            "[axis]",
            "[axes]",
            "p/grid.toml: axes: allowed: schema, form, axis, default, experiment",
        ),
        (
            "[2, 8, 14]",
            "[]",
            "axis.size = []: allowed: a list of one value or more",
        ),
        (
            "[2, 8, 14]",
            "[2, 2]",
            "axis.size[1]: \"2\" is there already",
        ),
        (
            "[2, 8, 14]",
            "[2, [8]]",
            "axis.size[1] = [8]: allowed: a text, a number",
        ),
        (
            "size = [2, 8, 14]",
            "policy = [2]",
            "axis.policy: allowed: a name other than",
        ),
        (
            "{ name = \"plain\" }",
            "{ text = \"plain\" }",
            "axis.llc[0]: allowed: a table with a name",
        ),
        (
            "{ name = \"plain\" }",
            "{ name = \"plain\", only = \"long\" }",
            "axis.llc[0].only = \"long\": allowed: \"quick\" or \"full\"",
        ),
        (
            "{ name = \"plain\" }, ",
            "{ name = \"plain\", only = \"quick\" }, ",
            "llc = \"plain\": allowed: small",
        ),
        (
            "each = \"llc\"",
            "each = \"lcl\"",
            "experiment.share.each: \"lcl\" is no axis: allowed: llc, size",
        ),
        (
            "each = \"llc\"",
            "each = 3",
            "experiment.share.each = 3: allowed: a text",
        ),
        (
            "{ each = \"size\",",
            "{ each = \"sizes\",",
            "experiment.share.policy[1].each: \"sizes\" is no axis",
        ),
        (
            "size < 14",
            "size <",
            "experiment.share.policy[1].when: \"size <\": the end",
        ),
        (
            "when = \"size < 14\"",
            "when = 3",
            "experiment.share.policy[1].when = 3: allowed: a formula",
        ),
        (
            "size < 14",
            "size",
            "experiment.share.policy[1].each: a number: allowed: a statement",
        ),
        (
            "\"0-{size - 1}\"",
            "\"0-{siz}\"",
            "policy[1].colors.sort: \"siz\" is the name of nothing",
        ),
        (
            "\"{llc} {{x}}\"",
            "\"{llc\"",
            "experiment.share.title: \"{llc\": a `{` alone",
        ),
        (
            "over.machine.memory = \"1536MiB\"",
            "over.machine.memory = \"2XB\"",
            "p/grid.toml: experiment.share small: machine.memory",
        ),
        (
            "over.machine.memory",
            "over.program",
            "experiment.share small: program",
        ),
        (
            "cores = \"1\"",
            "core = \"1\"",
            "p/grid.toml: experiment.share plain: program[1].core: ",
        ),
        (
            "\"budget_refs\"]",
            "\"budget\"]",
            "experiment.fixed.keeps: \"budget\": allowed: seed",
        ),
        (
            "budget_refs = \"3000\"",
            "budget_refs = \"3Q\"",
            "default.budget_refs = \"3Q\": allowed: references",
        ),
        (
            "[form.quick.axis]",
            "[form.fast.axis]",
            "form.fast: allowed: form.quick",
        ),
        (
            "builtin = \"scan:1MiB\"",
            "stand_in = \"scan\"",
            "experiment.share.program[1].stand_in = \"scan\": allowed: none",
        ),
        ("schema = 1", "schema = 1\nx = = 3", "p/grid.toml: line 3: "),
        (
            "[experiment.share]",
            "[experiment.\"\"]",
            "experiment.: allowed: letters, digits",
        ),
        (
            "repetitions = 2",
            "repetitions = 2\nseed = 3",
            "seed = 3: the command line chooses it; allowed: with keeps",
        ),
        (
            "{ name = \"plain\" }",
            "{ name = \"plain\", over = \"x\" }",
            "axis.llc[0].over = \"x\": allowed: a table",
        ),
        (
            "{ name = \"plain\" }",
            "{ name = \"plain\", x = nan }",
            "axis.llc[0].x = nan: allowed: a text",
        ),
        (
            "colors = { sort = ",
            "colors = { each = \"size\", sort = ",
            "policy[1].colors: the key \"sort\" is made twice",
        ),
        (
            "size = [2, 8, 14]",
            "size = [2, 8, 14]\nexperiment = [1]",
            "axis.experiment: allowed: a name other than program, policy, run and experiment",
        ),
        (
            "keeps = [\"seed\"",
            "like = \"shared\"\nkeeps = [\"seed\"",
            "experiment.fixed.like = \"shared\": allowed: the name of an experiment",
        ),
        (
            "keeps = [\"seed\"",
            "like = \"fixed\"\nkeeps = [\"seed\"",
            "experiment.fixed.like = \"fixed\": allowed: the name of an experiment",
        ),
        (
            "each = \"llc\"",
            "each = [\"llc\", \"llc\"]",
            "experiment.share.each: \"llc\" is there twice",
        ),
    ];
    for (old, new, part) in grids {
        let text = GRID_TEXT.replacen(old, new, 1);
        assert_ne!(text, GRID_TEXT, "{old}");
        let found = paper_of(&text, ROWS_TEXT, None).err().unwrap_or_default();
        assert!(found.contains(part), "{old} -> {new}: {found}");
    }
    let rows = [
        (
            "schema = 1",
            "schema = 3",
            "p/rows.toml: line 2: schema = 3: allowed: 1",
        ),
        (
            "id = \"X-2\"",
            "id = \"x-1\"",
            "row[1].id = \"x-1\": is there already",
        ),
        (
            "id = \"X-2\"",
            "id = \"X 2\"",
            "row[1].id = \"X 2\": allowed: a word of letters",
        ),
        ("kind = \"given\"", "kind = \"gift\"", "gift"),
        (
            "experiment = \"fixed\"",
            "experiment = \"fix\"",
            "row X-3: experiment = \"fix\": no experiment",
        ),
        (
            "is = \"slower\"",
            "is = \"slow\"",
            "row X-1: value[0]: \"slow\" is the name of nothing",
        ),
        ("is = \"slower\"", "is = \"slower +\"", "p/rows.toml: line "),
        (
            "experiment = \"share\"",
            "experiment = [\"share\", \"shared\"]",
            "row X-1: experiment = \"shared\": no experiment",
        ),
        (
            "paper = 3, unit = \"%\", is = \"slower[size = 2]\", rule = \"headline\"",
            "paper = 1, unit = \"%\", is = \"slower[size = 2]\", rule = \"factor\"",
            "row X-1: paper = 1: allowed for a factor: a number above 0",
        ),
        (
            "experiment = \"share\"",
            "experiment = [3]",
            "allowed: a text, or a list of texts",
        ),
        (
            "slower[size = 2].mean > -100",
            "slower[size = 2, experiment = \"fixed\"].mean > -100",
            "experiment = \"fixed\": allowed: share",
        ),
        (
            "title = \"three\"",
            "title = \"three\"\nmissing = \"no time\"",
            "row X-3: missing: what is never run has neither an experiment",
        ),
        (
            "rule = \"headline\"",
            "rule = \"head\"",
            "\"head\": allowed: headline, factor, amount, amount(bound), share, share(bound), no_change(bound)",
        ),
        (
            "rule = \"headline\"",
            "rule = \"no_change\"",
            "\"no_change\": allowed: headline",
        ),
        (
            "paper = 3,",
            "",
            "row X-1: paper: the rule needs the paper's number",
        ),
        (
            "is = \"slower[size = 2]\", ",
            "",
            "row X-1: is: the rule needs what is measured",
        ),
        (
            "slower[size = 2].mean > -100",
            "slower[size = 2] > -100",
            "a sample is compared: allowed: its .mean",
        ),
        (
            "slower[size = 2].mean > -100",
            "slower[size = 2].mean",
            "row X-1: statement[0]: a number: allowed: a statement",
        ),
        (
            "slower[size = 2].mean > -100",
            "time_ps[llc = \"plain\"].mean > 0",
            "choose a policy: allowed: stock, 2, 8",
        ),
        (
            "slower[size = 2].mean > -100",
            "slower.mean > 0",
            "row X-1: statement[0]: choose a value for size",
        ),
        (
            "slower[size = 2].mean > -100",
            "slower[size = 3].mean > 0",
            "size = \"3\": allowed: 2, 8, 14",
        ),
        (
            "slower[size = 2].mean > -100",
            "mean(sizes: 1) > 0",
            "\"sizes\" is no axis: allowed: llc, size",
        ),
        (
            "slower[size = 2].mean > -100",
            "sam(size: 1) > 0",
            "\"sam\" of 1 formulas over an axis: allowed: mean",
        ),
        (
            "slower[size = 2].mean > -100",
            "slower[size = 2].middle > 0",
            ".middle of a sample: allowed: mean, low",
        ),
        (
            "slower[size = 2].mean > -100",
            "miss_rate(\"L4\").mean > 0",
            "miss_rate(\"L4\"): allowed: L1",
        ),
        (
            "slower[size = 2].mean > -100",
            "colors_in(16)[policy = 2, program = \"sort\", llc = \"plain\", run = \"together\"].mean > 0",
            "colors_in(16) under policy 2: allowed: parts of the last level, 0 to 15",
        ),
        (
            "slower[size = 2].mean > -100",
            "colors_in(0)[policy = \"stock\", program = \"sort\", llc = \"plain\", run = \"alone\"].mean > 0",
            "colors_in(0) under policy stock: allowed: policies whose colors select parts",
        ),
        (
            "slower[size = 2].mean > -100",
            "f(1, 2)",
            "\"f\" is nothing that takes 2 values",
        ),
        (
            "program = \"sort\"",
            "program = \"sor\"",
            "program = \"sor\": allowed: sort, scan",
        ),
        (
            ", llc = \"plain\"",
            "",
            "experiment share: choose a value for llc",
        ),
        (
            "policy = \"stock\"",
            "policy = \"stick\"",
            "policy = \"stick\": allowed: stock, 2, 8",
        ),
        (
            "time = 'time_ps",
            "slower2 = 'slower2'\ntime = 'slower2 + time_ps",
            "a formula that needs its own value",
        ),
        (
            "time = 'time_ps",
            "size = '3'\ntime = 'time_ps",
            "let.size: is the name of an axis",
        ),
        (
            "title = \"t\"",
            "title = \"t\"\nconditions = [\"{a}\"]",
            "conditions: \"a\" is the name of nothing",
        ),
        (
            "title = \"t\"",
            "title = \"t\"\nfigures = []",
            "unknown field `figures`",
        ),
        (
            "id = \"X-2\"",
            "id = \"../X\"",
            "row[1].id = \"../X\": allowed: a word of letters",
        ),
        (
            "paper = 3,",
            "paper = true,",
            "paper = true: allowed: a number, a text, or { is =",
        ),
        ("paper = 3,", "paper = \"{bad\",", "a `{` alone"),
        (
            "time = 'time_ps",
            "inf = '3'\ntime = 'time_ps",
            "let.inf: is the name of an axis or a number already",
        ),
        (
            "time = 'time_ps",
            "budget_refs = '3'\ntime = 'time_ps",
            "let.budget_refs: is the name",
        ),
        (
            "pages swapped out",
            "pages swaped out",
            "counts(\"pages swaped out\"): allowed: pages swapped out, ",
        ),
        (
            "run = \"together\"",
            "run = \"togther\"",
            "run = \"togther\": the program is not run so",
        ),
        (
            "[run = \"together\", policy = size]",
            "[policy = size]",
            "choose a run: allowed: \"alone\", \"together\"",
        ),
        (
            "slower[size = 2].mean > -100",
            "if(slower[size = 2].mean > -100, true, typo)",
            "\"typo\" is the name of nothing",
        ),
        (
            "slower[size = 2].mean > -100",
            "slower[size = 2].mean > -100 || typo",
            "\"typo\" is the name of nothing",
        ),
        (
            "kind = \"headline\"",
            "kind = \"shape\"",
            "row X-1: rule: the rows of this kind have none",
        ),
        (
            "rule = \"headline\"",
            "rule = \"range(2, 1)\"",
            "range(2, 1): allowed: the lower end first",
        ),
    ];
    for (old, new, part) in rows {
        let text = ROWS_TEXT.replacen(old, new, 1);
        assert_ne!(text, ROWS_TEXT, "{old}");
        let found = paper_of(GRID_TEXT, &text, None).err().unwrap_or_default();
        assert!(found.contains(part), "{old} -> {new}: {found}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let missing = DataPaper::read(folder.path(), &ModelAlone)
        .err()
        .expect("no files")
        .to_string();
    assert!(missing.contains("grid.toml: No such file"), "{missing}");
}
