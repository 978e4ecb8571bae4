//! Programs that SysMon watches, and what formulas make of what it sees.

use piebald_report::Verdict;

use super::tests::{options, paper_of, rows};

const GRID_TEXT: &str = r#"
schema = 1
[axis]
one = [{ name = "gups", class = "llch" }, { name = "chase", class = "llct" }]
seen = [{ name = "all", over.sysmon.translations = "dropped" }, { name = "some" }]
[axis.other]
of = "one"
after = []
[default]
schema = 2
repetitions = 1
machine.preset = "i7-860"
[experiment.watched]
each = ["one", "seen"]
alone = "none"
sysmon = { refs = "2M", time_scale = 100000 }
program = [{ name = "{one}", builtin = "{one}:1MiB", cores = "0" }]
"#;

const ROWS_TEXT: &str = r#"
schema = 1
title = "t"
[[row]]
id = "X-1"
title = "one"
kind = "shape"
experiment = "watched"
value = [{ each = ["seen"], name = "hot pages, {seen}", is = 'mean(one: sysmon("hot pages"))' }]
statement = [
    { text = "each page is seen, or none", holds = 'all(one: sysmon("hot pages")[seen = "all"] > 0 && sysmon("most hot pages")[seen = "some"] == 0)' },
    { text = "what is not seen is CCF", holds = 'all(one: sysmon_class[seen = "some"] == "ccf" && sysmon_class[seen = "all"] != "none")' },
    { text = "the paper's thresholds tell what SysMon told", holds = 'all(one: all(seen: classified(seen, hot, reuse, wpd) == sysmon_class))' },
    { text = "fitted thresholds tell one program right at least", holds = 'any(one: classified(fitted, hot, reuse, wpd) == one.class)[seen = "all"]' },
]
note = [{ text = "fitted: {fitted[seen = \"all\"]}" }]
[row.let]
hot = 'sysmon("hot pages of its class")'
reuse = 'sysmon("re-use time of its class")'
wpd = 'sysmon("WPD of its class")'
fitted = 'thresholds(other: hot[one = other], reuse[one = other], wpd[one = other], other.class, 0)'
"#;

#[test]
fn formulas_read_what_sysmon_sees_and_fit_its_thresholds() {
    let paper = paper_of(GRID_TEXT, ROWS_TEXT, None).unwrap_or_else(|e| panic!("{e}"));
    let found = rows(&paper, &options(false));
    let row = &found[0];
    assert_eq!(row.verdict, Verdict::Match, "{row:?}");
    let measured: Vec<f64> = row.values.iter().filter_map(|v| v.measured).collect();
    assert!(measured[0] > 0.0 && measured[1] == 0.0, "{measured:?}");
    let why = row.why.as_deref().unwrap_or_default();
    assert!(why.contains("fitted: re-use "), "{why}");
}

#[test]
fn what_cannot_be_read_of_sysmon_is_refused_with_what_can() {
    let refused = |grid: &str, old: &str, new: &str| {
        let text = ROWS_TEXT.replacen(old, new, 1);
        assert!(old.is_empty() || text != ROWS_TEXT, "{old}");
        paper_of(grid, &text, None).err().unwrap_or_default()
    };
    for (old, new, part) in [
        (
            "\"hot pages\"",
            "\"cold pages\"",
            "sysmon(\"cold pages\"): allowed: hot pages, fewest",
        ),
        (
            "classified(seen,",
            "classified(hot,",
            "thresholds: a number: allowed: what thresholds",
        ),
        (
            ", other.class, 0)",
            ", other.class)",
            "thresholds of 4 formulas over an axis: allowed: hot pages",
        ),
        (
            ", other.class, 0)",
            ", other.name, 0)",
            "thresholds: class = \"gups\": allowed: \"ccf\"",
        ),
    ] {
        let found = refused(GRID_TEXT, old, new);
        assert!(found.contains(part), "{new}: {found}");
    }
    let unwatched = GRID_TEXT.replace("sysmon = {", "deal = { cores = \"0\" }\n#");
    let unwatched = unwatched.replace(", cores = \"0\" }]", " }]");
    let unwatched = unwatched.replace("alone = \"none\"", "").replace(
        "{ name = \"all\", over.sysmon.translations = \"dropped\" }",
        "{ name = \"all\" }",
    );
    let found = refused(&unwatched, "", "");
    assert!(
        found.contains("nothing is watched: allowed: with a table [sysmon]"),
        "{found}"
    );
}
