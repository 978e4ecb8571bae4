//! Patches, axes and hosts: what is laid over a file, and where errors say that it was written.

use std::path::Path;

use piebald_experiment::{Document, HostName, Text};

const BASE: &str = r#"schema = 2
budget_refs = "1M"
[machine]
preset = "w3540"
[[program]]
name = "sort"
cores = "0"
[[policy]]
name = "stock"
[on.model]
repetitions = 2
[[on.model.program]]
name = "sort"
builtin = "mergesort:64KiB"
[on.guest]
memory = { size = "512MiB" }
[[on.guest.program]]
name = "sort"
command = ["mergesort", "1000", "1"]
measure = "marks"
"#;

fn document(text: &str) -> Document {
    Document::new(Path::new("base.toml"), text)
}

fn refused(document: &Document) -> String {
    let refused = document.experiment().expect_err("is wrong");
    refused.to_string()
}

fn set(document: Document, pairs: &[&str]) -> Document {
    let pairs = pairs.iter();
    pairs.fold(document, |document, pair| {
        document.set(pair).unwrap_or_else(|e| panic!("{e}"))
    })
}

#[test]
fn what_a_file_says_for_a_host_is_laid_over_the_rest() {
    let model = document(BASE).on(HostName::Model);
    let model = model.experiment().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(model.repetitions.get(), 2);
    assert!(model.program[0].builtin.is_some());
    let text = BASE.replace("budget_refs = \"1M\"\n", "");
    let guest = document(&text).on(HostName::Guest);
    let guest = guest.experiment().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(guest.repetitions.get(), 3, "the model's");
    assert_eq!(guest.program.len(), 1);
    assert!(guest.program[0].command.is_some());
}

#[test]
fn an_empty_list_replaces_what_was_there() {
    let text = BASE.replace("[machine]", "[machine]\nslice_hash = [\"0x1b5f575440\"]");
    let hash = |document: &Document| {
        let read = document.clone().on(HostName::Model).experiment();
        let read = read.unwrap_or_else(|e| panic!("{e}"));
        read.machine.slice_hash.map_or(0, |masks| masks.len())
    };
    assert_eq!(hash(&document(&text)), 1);
    assert_eq!(hash(&set(document(&text), &["machine.slice_hash=[]"])), 0);
    let none = set(document(&text), &["program=[]"]);
    assert!(refused(&none).contains("program"), "{}", refused(&none));
}

#[test]
fn keys_of_another_host_are_refused_all_at_once_with_their_lines() {
    let text = BASE.replace("name = \"stock\"", "name = \"stock\"\nthp = true");
    let said = refused(&document(&text).on(HostName::Guest));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines,
        [
            "base.toml:2: budget_refs: is for the host model, not for guest; allowed: in a table \
             [on.model]",
            "base.toml:10: policy[0].thp: is for the host model, not for guest; allowed: in a \
             table [on.model]",
        ]
    );
}

#[test]
fn a_wrong_patch_is_told_where_it_was_written() {
    let text = BASE.replace("[on.guest]", "[on.gest]");
    let said = refused(&document(&text).on(HostName::Guest));
    assert!(
        said.contains("on.gest: no host; allowed: model, guest; did you mean guest?"),
        "{said}"
    );
    let text = BASE.replace("mergesort:64KiB\"", "mergesort:64KiB\"\nrole = \"victim\"");
    let said = refused(&document(&text).on(HostName::Model));
    assert!(
        said.starts_with("base.toml:15: program[0].role = \"victim\""),
        "{said}"
    );
    for (pair, error) in [
        (
            "program.sort.role=victim",
            "--set program.sort.role=victim: program[0].role = \"victim\": allowed: ",
        ),
        (
            "program[0].roles=target",
            "--set program[0].roles=target: program[0].roles: unknown field `roles`",
        ),
        (
            "program.grep.cores=\"1\"",
            "--set program.grep.cores=\"1\": program.grep.cores: no table of the list has name = \
             \"grep\"",
        ),
        (
            "program[7].cores=\"1\"",
            "--set program[7].cores=\"1\": program[7].cores: the list has 1 items",
        ),
    ] {
        let said = refused(&set(document(BASE).on(HostName::Model), &[pair]));
        assert!(said.starts_with(error), "{pair}: {said}");
    }
    for pair in ["budget_refs", "=1", ".a=1", "a..b=1", "program[x].cores=1"] {
        assert!(document(BASE).set(pair).is_err(), "{pair}");
    }
}

#[test]
fn values_of_a_command_line_are_toml_or_else_text() {
    let pairs = [
        "seed=7",
        "budget_refs=\"2M\"",
        "machine.preset=x5355",
        "program.sort={ cores = \"1\", role = \"target\" }",
        "policy=[{ name = \"colors\", frames = \"rainbow\" }]",
        "output.set_map=0",
    ];
    let document = set(document(BASE).on(HostName::Model), &pairs);
    let read = document.experiment().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((read.seed.get(), read.budget()), (7, 2_000_000));
    assert_eq!(read.machine.preset.as_deref(), Some("x5355"));
    let Text(cores) = read.program[0].cores;
    assert_eq!(cores.to_string(), "1");
    let names: Vec<&str> = read.policy.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["stock", "colors"], "lists of named tables grow");
    assert_eq!(read.output.set_map.get(), 0);
}

const SWEEP: &str = r#"schema = 2
[machine]
preset = "w3540"
[[program]]
name = "sort"
builtin = "mergesort:64KiB"
cores = "0"
[sweep]
"program.sort.builtin" = ["mergesort:64KiB", "mergesort:1MiB"]
seed = [1, 2, 3]
"#;

/// The values of an axis would hide what is set, and its labels would be wrong.
#[test]
fn what_is_an_axis_cannot_be_set() {
    for (pair, key) in [
        ("seed=7", "seed"),
        ("program.sort.builtin=scan:64KiB", "program.sort.builtin"),
        ("program[0].builtin=scan:64KiB", "program[0].builtin"),
        ("on.model.seed=7", "on.model.seed"),
    ] {
        let set = document(SWEEP).set(pair).unwrap_or_else(|e| panic!("{e}"));
        let said = set.points().err().map(|e| e.to_string());
        let said = said.unwrap_or_else(|| panic!("{pair}"));
        assert!(
            said.contains(&format!("--set {pair}: {key}: is an axis of the file")),
            "{said}"
        );
    }
    let other = document(SWEEP).set("sweep.seed=[4]");
    let other = other
        .and_then(|d| d.points())
        .unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(other.len(), 2);
}

#[test]
fn axes_make_all_combinations() {
    let points = document(SWEEP).on(HostName::Model).points();
    let points = points.unwrap_or_else(|e| panic!("{e}"));
    let axes: Vec<String> = points
        .iter()
        .map(|p| p.axes.iter().map(|(k, v)| format!("{k}={v} ")).collect())
        .collect();
    assert_eq!(axes.len(), 6);
    assert_eq!(axes[1], "program.sort.builtin=mergesort:64KiB seed=2 ");
    let last = points[5].document.experiment();
    let last = last.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(last.seed.get(), 3);
    assert!(last.sweep.0.is_empty(), "a point has no axes");
    let builtin = last.program[0].builtin.as_ref().map(ToString::to_string);
    assert_eq!(builtin.as_deref(), Some("mergesort:1MiB"));
    assert_eq!(document(BASE).points().map(|p| p.len()), Ok(1));
}

#[test]
fn a_wrong_value_of_an_axis_is_told_with_its_line() {
    let text = SWEEP.replace("[1, 2, 3]", "[\n  1,\n  -2,\n]");
    let points = document(&text).on(HostName::Model).points();
    let points = points.unwrap_or_else(|e| panic!("{e}"));
    let said = refused(&points[1].document);
    assert!(
        said.starts_with("base.toml:12: seed = -2: allowed: "),
        "{said}"
    );
    for (wrong, error) in [
        (
            "seed = []",
            "base.toml:10: sweep.seed: allowed: a list of at least one value",
        ),
        (
            "seed = 1",
            "base.toml:10: sweep.seed: allowed: a list of at least one value",
        ),
        (
            "\"a..b\" = [1]",
            "base.toml:10: sweep.a..b: \"a..b\" is no key",
        ),
    ] {
        let text = SWEEP.replace("seed = [1, 2, 3]", wrong);
        let said = document(&text).points().err().map(|e| e.to_string());
        let said = said.unwrap_or_default();
        assert!(said.starts_with(error), "{wrong}: {said}");
    }
    for (wrong, error) in [
        (
            "schema = [1, 2]",
            "base.toml:10: sweep.schema: allowed: a key other than schema, sweep and on",
        ),
        (
            "sweep = [1]",
            "base.toml:10: sweep.sweep: allowed: a key other than",
        ),
        (
            "\"on.model.seed\" = [1]",
            "base.toml:10: sweep.on.model.seed: allowed: a key other than",
        ),
        (
            "seed = [1, 2, 1]",
            "base.toml:10: sweep.seed[2]: 1 is there already; allowed: each value once",
        ),
        (
            "budget_refs = [\"20k\", 20000]",
            "base.toml:8: sweep: budget_refs = 20k and 20000 ask for the same; allowed: each value once",
        ),
        (
            "\"program[0].builtin\" = [\"chase:64KiB\"]",
            "base.toml:10: sweep.program[0].builtin: is of the same value as the axis program.sort.builtin",
        ),
        (
            "\"program[0]\" = [{ cores = \"1\" }]",
            "base.toml:10: sweep.program[0]: is of the same value as the axis program.sort.builtin",
        ),
    ] {
        let text = SWEEP.replace("seed = [1, 2, 3]", wrong);
        let said = document(&text).points().err().map(|e| e.to_string());
        let said = said.unwrap_or_default();
        assert!(said.starts_with(error), "{wrong}: {said}");
    }
    let text = SWEEP.replace("seed = [1", "sed = [1");
    let points = document(&text).on(HostName::Model).points();
    let points = points.unwrap_or_else(|e| panic!("{e}"));
    let said = refused(&points[0].document);
    assert!(
        said.starts_with("base.toml:10: sed: unknown field `sed`"),
        "{said}"
    );
}

#[test]
fn an_old_key_is_answered_with_the_new_one() {
    let text = BASE.replace("cores = \"0\"", "vcpu = 0");
    let said = refused(&document(&text).on(HostName::Model));
    let error = "base.toml:7: program[0].vcpu: is now program[].cores, as in cores = \"0\"; \
                 `piebald scenario upgrade FILE` rewrites a file of schema 1";
    assert_eq!(said, error);
}
