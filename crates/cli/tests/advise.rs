//! `piebald study --advise` as a user meets it.

use std::{fs, path::Path, process::Command};

use serde_json::Value;

/// Without policies: stock frames only, until advice adds some.
const SCENARIO: &str = r#"schema = 1
repetitions = 1
budget_refs = "40k"
warmup_refs = "10k"
[machine]
preset = "w3540"
memory = "384MiB"
[output]
set_map = 0
[[program]]
name = "walk"
builtin = "chase:512KiB"
cores = "0"
[[program]]
name = "scan"
builtin = "scan:4MiB"
cores = "1"
role = "polluter"
"#;

/// Exit code and both outputs; whatever happens, it must not panic.
fn run(folder: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_piebald"));
    let output = command.args(args).current_dir(folder).output();
    let output = output.expect("starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(!err.contains("panicked"), "{err}");
    (output.status.code(), out, err)
}

fn folder(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("temporary folder");
    fs::write(folder.path().join("s.toml"), text).expect("written");
    folder
}

#[test]
fn advice_is_given_on_demand_and_stands_in_table_and_json() {
    let dir = folder(SCENARIO);
    let args = ["study", "s.toml", "-q", "--advise", "5%", "-o", "out"];
    let (code, out, err) = run(dir.path(), &args);
    assert_eq!(code, Some(0), "{err}");
    for text in [
        "Smallest share of L3 that costs at most 5.00 %, alone",
        "of 16",
        "advised split",
        "Slowdowns are against each program alone under stock.",
    ] {
        assert!(out.contains(text), "{text}: {out}");
    }
    // Lines are wrapped.
    let words = out.split_whitespace().collect::<Vec<_>>().join(" ");
    let kinds = "Kinds, as HVR has them: LLCT scan; CCF walk.";
    assert!(words.contains(kinds), "{out}");
    let json = fs::read_to_string(dir.path().join("out/study.json")).expect("written");
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let advice = &json["advice"];
    assert_eq!(advice["within"], 0.05);
    let walk = &advice["programs"][0];
    assert_eq!(walk["program"], "walk");
    // 512 KiB and a little: one or two colours of 512 KiB.
    let colors = walk["share"]["colors"].as_u64().expect("a number");
    assert!((1..=2).contains(&colors), "{walk}");
    assert_eq!(walk["class"], "CCF");
    assert_eq!(walk["share"]["memory_limit"], colors * (24 << 20));
    assert_eq!(walk["points"].as_array().map(Vec::len), Some(16));
    assert_eq!(advice["programs"][1]["share"], Value::Null);
    let csv = fs::read_to_string(dir.path().join("out/study.csv")).expect("written");
    assert!(
        csv.contains("advice,walk,target,alone,advised_colors,"),
        "{csv}"
    );
    let html = fs::read_to_string(dir.path().join("out/report.html")).expect("written");
    assert!(html.contains("<h2>Advice</h2>"));
}

#[test]
fn without_being_asked_for_there_is_none() {
    let dir = folder(SCENARIO);
    let (code, out, err) = run(dir.path(), &["study", "s.toml", "-q", "--json", "-"]);
    assert_eq!(code, Some(0), "{err}");
    let json: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(json["advice"], Value::Null);
    assert_eq!(json["policies"].as_array().map(Vec::len), Some(1));
}

#[test]
fn what_is_no_slowdown_is_refused() {
    let dir = folder(SCENARIO);
    for value in ["0%", "abc", "5", "-5%", "2000%", ""] {
        let argument = format!("--advise={value}");
        let (code, _, err) = run(dir.path(), &["study", "s.toml", &argument]);
        assert_eq!(code, Some(2), "{value}: {err}");
        assert!(
            err.contains("--advise") && err.contains("5%"),
            "{value}: {err}"
        );
    }
}

#[test]
fn programs_of_several_threads_are_refused() {
    let text = SCENARIO
        .replace("chase:512KiB", "triad:4MiB,threads=2")
        .replace("cores = \"0\"", "cores = \"0,2\"");
    let dir = folder(&text);
    let (code, _, err) = run(dir.path(), &["study", "s.toml", "-q", "--advise", "5%"]);
    assert_eq!(code, Some(2), "{err}");
    let problem = "advise: program \"walk\" has 2 threads; allowed: programs of one thread";
    assert!(err.contains(problem), "{err}");
}
