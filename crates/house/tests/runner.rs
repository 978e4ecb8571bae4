//! `test.sh` itself: its limits, and what it says of stages that fail, skip or never end. It is run on a
//! copy with stages of a line each.

use std::{
    fs,
    process::{Command, Output},
};

use piebald_house::{read, root};

/// The stages that the copy has in place of those of `test.sh`: names, least limits in seconds, bodies of
/// their functions. Only the one that never ends has a short limit, so that no verdict depends on how busy
/// the machine is.
const STAGES: &[(&str, u64, &str)] = &[
    ("fine", 50, "true"),
    ("wrong", 50, "say error: so it is; false"),
    ("endless", 1, "sleep 1000"),
    ("absent", 50, "skip nothing is here"),
    ("advisories", 50, "skip no database"),
];

/// A folder with a copy of `test.sh` that has those stages, and no loop to wait for.
fn copy() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let script = read(&root().join("test.sh"));
    let (head, rest) = script
        .split_once("\nSTAGES=(\n")
        .expect("the list of stages");
    let (_, rest) = rest.split_once("\n)\n").expect("the list's end");
    let list: Vec<String> = STAGES
        .iter()
        .map(|(name, limit, _)| format!("    \"{name}:{limit}:{name}\""))
        .collect();
    let script = format!("{head}\nSTAGES=(\n{}\n)\n{rest}", list.join("\n"));
    assert!(script.contains("\nCALIBRATION=300000\n"));
    let (head, runner) = script.split_once("\n# --- the runner").expect("the runner");
    let functions: Vec<String> = STAGES
        .iter()
        .map(|(name, _, body)| format!("stage_{name}() {{ {body}; }}"))
        .collect();
    let script = format!("{head}\n{}\n# --- the runner{runner}", functions.join("\n"))
        .replace("\nCALIBRATION=300000\n", "\nCALIBRATION=3\n");
    for folder_name in ["scripts", "bench"] {
        fs::create_dir(folder.path().join(folder_name)).expect("a folder");
    }
    fs::copy(
        root().join("scripts/setup.sh"),
        folder.path().join("scripts/setup.sh"),
    )
    .expect("copied");
    fs::write(folder.path().join("test.sh"), script).expect("written");
    fs::write(
        folder.path().join("bench/ci.md"),
        "# Times\n\n<!-- recorded -->\n\n| stage | verdict | seconds | load at its start | when, commit, processors |\n|-|-|-|-|-|\n\
         | `fine` | passed | 40 | 2.0 | once |\n| `wrong` | failed | 900 | 1.0 | once |\n",
    )
    .expect("written");
    folder
}

fn run(folder: &tempfile::TempDir, ci: bool, words: &[&str]) -> (Output, String) {
    let output = Command::new("bash")
        .arg(folder.path().join("test.sh"))
        .args(words)
        .env("CI", if ci { "true" } else { "" })
        .output()
        .expect("bash runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    (output, text)
}

#[test]
fn a_limit_is_three_times_the_quiet_time_or_the_least() {
    let folder = copy();
    let (output, text) = run(&folder, false, &["--list"]);
    assert!(output.status.success(), "{text}");
    let limit = |name: &str| {
        let line = text.lines().find(|l| l.starts_with(&format!("{name} ")));
        let words: Vec<&str> = line.expect("a line").split_whitespace().collect();
        words[1].parse::<u64>().expect("seconds")
    };
    // 40 s at load 2 are 20 quiet ones; what failed says nothing of what a stage takes.
    assert_eq!(limit("fine"), 60, "{text}");
    assert_eq!(limit("wrong"), 50, "{text}");
    assert_eq!(limit("endless"), 1, "{text}");
}

#[test]
fn stages_that_fail_skip_or_never_end_are_told_apart() {
    let folder = copy();
    let (output, text) = run(&folder, false, &[]);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let row = |name: &str| {
        let told = text.lines().rfind(|l| l.starts_with(&format!("{name} ")));
        told.unwrap_or_else(|| panic!("no row of {name} in {text}"))
            .to_owned()
    };
    assert!(row("fine").contains(" passed "), "{text}");
    assert!(
        row("wrong").contains(" failed ") && row("wrong").contains("exit status 1"),
        "{text}"
    );
    assert!(
        row("endless").contains("stopped at its limit of "),
        "{text}"
    );
    assert!(
        row("absent").contains(" skipped ") && row("absent").contains("nothing is here"),
        "{text}"
    );
    assert!(text.contains("\n1 passed, 2 failed, 2 skipped"), "{text}");
    // What a failed stage said is repeated at the end.
    assert!(text.contains("--- wrong said:\nerror: so it is"), "{text}");

    let (output, text) = run(&folder, true, &["fine", "absent", "advisories"]);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("may not be skipped with CI=true: nothing is here"),
        "{text}"
    );
    assert!(text.contains("\n1 passed, 1 failed, 1 skipped"), "{text}");

    let (output, text) = run(&folder, false, &["fine"]);
    assert_eq!(
        (output.status.code(), text.contains("\n1 passed, 0 failed")),
        (Some(0), true),
        "{text}"
    );
}

#[test]
fn a_stage_or_an_option_that_does_not_exist_is_refused() {
    let folder = copy();
    for (words, what) in [
        (["nothing"], "unknown stage 'nothing'; allowed: fine wrong"),
        (["--nothing"], "unknown option --nothing"),
    ] {
        let (output, text) = run(&folder, false, &words);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(what), "{text}");
    }
}

#[test]
fn rows_that_are_recorded_take_the_place_of_those_of_the_same_stage() {
    let folder = copy();
    let (_, text) = run(&folder, false, &["--record", "fine", "absent"]);
    let table = read(&folder.path().join("bench/ci.md"));
    let rows = |name: &str| {
        table
            .lines()
            .filter(|l| l.starts_with(&format!("| `{name}` |")))
            .count()
    };
    assert_eq!(
        (rows("fine"), rows("absent"), rows("wrong")),
        (1, 1, 1),
        "{text}\n{table}"
    );
    assert!(!table.contains("| 40 |"), "{table}");
    assert!(table.contains("| `wrong` | failed | 900 |"), "{table}");
}
