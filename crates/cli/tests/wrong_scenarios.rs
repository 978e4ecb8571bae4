//! Wrong scenarios end in one clear error, by the collection in `wrong-scenarios.toml`.

use std::{
    ops::RangeInclusive,
    path::Path,
    process::{Command, Output, Stdio},
};

/// The collection.
#[derive(serde::Deserialize)]
struct Collection {
    /// A scenario that runs.
    good: String,
    case: Vec<Case>,
}

/// A change that makes the good scenario wrong.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    old: String,
    new: String,
    words: Vec<String>,
    /// Where it falls short now.
    today: Option<String>,
}

/// Words that mean nothing to whoever writes a scenario.
const RUST: [&str; 10] = [
    "u8", "u16", "u32", "u64", "i32", "i64", "i128", "f32", "f64", "usize",
];

fn collection() -> Collection {
    let collection: Collection =
        toml::from_str(include_str!("wrong-scenarios.toml")).expect("a collection");
    let mut names: Vec<&str> = collection.case.iter().map(|c| c.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), collection.case.len(), "names are unique");
    assert!(names.len() >= 100, "{} are left", names.len());
    collection
}

fn study(folder: &Path, text: &str) -> Output {
    std::fs::write(folder.join("s.toml"), text).expect("written");
    Command::new(env!("CARGO_BIN_EXE_piebald"))
        .args(["study", "-q", "s.toml", "-o", "out"])
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("piebald runs")
}

/// The lines of a change, from the first byte that differs.
fn changed(good: &str, text: &str, case: &Case) -> RangeInclusive<usize> {
    let pairs = || good.bytes().zip(text.bytes());
    let first = pairs().position(|(a, b)| a != b).unwrap_or(good.len());
    let line = |at: usize| {
        1 + text.as_bytes()[..at]
            .iter()
            .filter(|b| **b == b'\n')
            .count()
    };
    let end = good.find(&case.old).expect("is there") + case.new.len();
    line(first)..=line(end.max(first))
}

/// The line of the table that a line is in.
fn table_of(text: &str, line: usize) -> Option<usize> {
    let lines = text.lines().take(line).enumerate();
    let header = lines.filter(|(_, text)| text.starts_with('['));
    header.last().map(|(at, _)| at + 1)
}

/// What is wrong with the way in which a case is refused.
fn problems(good: &str, case: &Case, folder: &Path) -> Vec<String> {
    let text = good.replacen(&case.old, &case.new, 1);
    assert_ne!(text, good, "{}: changes something", case.name);
    let output = study(folder, &text);
    let said = String::from_utf8_lossy(&output.stderr);
    let mut problems = Vec::new();
    let mut check = |holds: bool, problem: String| {
        if !holds {
            problems.push(problem);
        }
    };
    check(
        output.status.code() == Some(2),
        format!("exit status {:?}", output.status.code()),
    );
    let place = said.strip_prefix("piebald: s.toml:").unwrap_or_default();
    let digits = place.split(|c: char| !c.is_ascii_digit()).next();
    let named: Option<usize> = digits.and_then(|digits| digits.parse().ok());
    let lines = changed(good, &text, case);
    let table = table_of(&text, *lines.start());
    let right = |line: usize| lines.contains(&line) || table == Some(line);
    check(named.is_some_and(right), format!("no line of {lines:?}"));
    check(said.trim_end().lines().count() == 1, "not one line".into());
    for word in &case.words {
        check(said.contains(word), format!("no {word:?}"));
    }
    let mut words = said.split(|c: char| !c.is_ascii_alphanumeric());
    check(
        !words.any(|word| RUST.contains(&word)),
        "a type of Rust".into(),
    );
    check(output.stdout.is_empty(), "standard output".into());
    check(!folder.join("out").exists(), "a folder of results".into());
    if !problems.is_empty() {
        problems.push(said.into_owned());
    }
    problems
}

#[test]
fn the_good_scenario_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = study(folder.path(), &collection().good);
    assert_eq!(output.status.code(), Some(0));
    assert!(folder.path().join("out/study.json").exists());
}

#[test]
fn each_wrong_scenario_gets_one_clear_error_and_leaves_nothing() {
    let Collection { good, case } = collection();
    let mut failures = Vec::new();
    for case in &case {
        let folder = tempfile::tempdir().expect("a folder");
        let problems = problems(&good, case, folder.path());
        match (&case.today, problems.is_empty()) {
            (None, true) | (Some(_), false) => {}
            (None, false) => failures.push(format!("{}: {}", case.name, problems.join("; "))),
            (Some(today), true) => failures.push(format!(
                "{}: is refused well now; remove `today = \"{today}\"`",
                case.name
            )),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
