//! Outcomes that are kept: whoever is killed goes on where it was, to the same numbers.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::Value;

const SCENARIO: &str = r#"
schema = 1
title = "kept"
repetitions = 4
budget_refs = "20k"
warmup_refs = "5k"

[machine]
preset = "w3540"
memory = "96MiB"

[[program]]
name = "updates"
builtin = "gups:256KiB"
cores = "0"

[[program]]
name = "stream"
builtin = "triad:1MiB"
cores = "1"
role = "polluter"

[[policy]]
name = "stock"

[[policy]]
name = "bins"
frames = "bin-hopping"
"#;

/// Two programs alone and both together, under two policies, four times.
const RUNS: usize = 2 * 3 * 4;
/// How often a study is killed, and a paper where that is asked for.
const KILLS: usize = 50;
/// How often a paper is killed in each run of the tests: its runs begin with 3 GiB of aged memory.
const FEW_KILLS: usize = 4;
/// After so many the store is emptied, so that there is more to do again.
const EMPTIED: usize = 8;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("s.toml"), SCENARIO).expect("written");
    folder
}

fn command(folder: &Path, store: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_piebald"));
    command
        .args([
            "study",
            "s.toml",
            "--threads",
            "2",
            "--quiet",
            "--json",
            "--store",
            store,
        ])
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder.join("cache"));
    command
}

/// What a study gives, without the seconds that it took.
fn study(folder: &Path, store: &str) -> Value {
    let done = command(folder, store).output().expect("it starts");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    let mut json: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    json["host_seconds"] = Value::Null;
    assert_eq!(json["complete"], true);
    json
}

/// Counts the files of a store that are whole entries.
fn entries(store: &Path) -> usize {
    let parts = std::fs::read_dir(store.join("v1")).into_iter().flatten();
    let files = parts.flat_map(|part| std::fs::read_dir(part.expect("a part").path()));
    let names = files.flatten().map(|file| file.expect("a file").path());
    names
        .filter(|path| path.extension().is_some_and(|e| e == "zst"))
        .count()
}

fn kill(mut child: Child) {
    // SIGKILL; it may have ended by itself.
    let _ = child.kill();
    child.wait().expect("it ended");
}

/// Kills a command again and again, once it has kept something more and then at some moment of what it does next.
/// `looked` sees what each left.
fn kill_again_and_again(
    kills: usize,
    store: &Path,
    mut begin: impl FnMut() -> Command,
    mut looked: impl FnMut(),
) {
    for round in 0..kills {
        let before = entries(store);
        let quiet = Stdio::null;
        let mut child = begin()
            .stdout(quiet())
            .stderr(quiet())
            .spawn()
            .expect("it starts");
        while entries(store) == before && child.try_wait().expect("its state").is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(round as u64 * 7 % 23));
        kill(child);
        looked();
        if round % EMPTIED == EMPTIED - 1 {
            std::fs::remove_dir_all(store).expect("removed");
        }
    }
}

#[test]
fn a_study_that_is_killed_again_and_again_ends_with_the_same_numbers() {
    let folder = folder();
    let store = folder.path().join("kept");
    let expected = study(folder.path(), "none");
    kill_again_and_again(KILLS, &store, || command(folder.path(), "kept"), || ());
    assert_eq!(study(folder.path(), "kept"), expected);
    assert_eq!(entries(&store), RUNS);
    // All of it is found, and it is the same.
    assert_eq!(study(folder.path(), "kept"), expected);
    assert_eq!(entries(&store), RUNS);
}

/// A row whose programs are built in, in runs of milliseconds.
fn row(folder: &Path, store: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_piebald"));
    command
        .args(["reproduce", "rainbow", "--quick", "--only", "R-B3"])
        .args(["--budget", "2k", "--repetitions", "3", "--threads", "2"])
        .args(["--quiet", "--output", "out", "--store", store])
        .current_dir(folder)
        .env("XDG_CACHE_HOME", folder.join("cache"));
    command
}

/// What a row gives, without what differs between two runs of the same.
fn row_results(folder: &Path, store: &str) -> Value {
    let done = row(folder, store).output().expect("it starts");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    let results = std::fs::read(folder.join("out/results.json")).expect("results");
    let mut json: Value = serde_json::from_slice(&results).expect("JSON");
    for key in ["host_seconds", "command"] {
        json[key] = Value::Null;
    }
    assert!(
        !json["targets"][0]["values"]
            .as_array()
            .expect("values")
            .is_empty()
    );
    json
}

#[test]
fn a_paper_that_is_killed_ends_with_the_same_numbers() {
    paper_is_killed(FEW_KILLS);
}

#[test]
#[ignore = "takes a minute: ./test.sh --long kills"]
fn a_paper_that_is_killed_again_and_again_ends_with_the_same_numbers() {
    paper_is_killed(KILLS);
}

fn paper_is_killed(kills: usize) {
    let folder = folder();
    let store = folder.path().join("kept");
    let expected = row_results(folder.path(), "none");
    let results = folder.path().join("out/results.json");
    std::fs::remove_file(&results).expect("removed");
    // A process that is killed leaves results that can be read, or no file.
    let whole = || {
        if let Ok(text) = std::fs::read(&results) {
            serde_json::from_slice::<Value>(&text).expect("whole results");
        }
    };
    kill_again_and_again(kills, &store, || row(folder.path(), "kept"), whole);
    assert_eq!(row_results(folder.path(), "kept"), expected);
    let runs = entries(&store);
    assert!(runs >= 4 * 3, "four partitions, three repetitions: {runs}");
    // All of it is found, and it is the same.
    assert_eq!(row_results(folder.path(), "kept"), expected);
    assert_eq!(entries(&store), runs);
}

#[test]
fn two_at_once_make_each_run_once_and_give_the_same() {
    let folder = folder();
    let expected = study(folder.path(), "none");
    let both = std::thread::scope(|scope| {
        let one = || scope.spawn(|| study(folder.path(), "cache"));
        [one(), one()].map(|study| study.join().expect("it is done"))
    });
    assert_eq!(both, [expected.clone(), expected]);
    assert_eq!(entries(&folder.path().join("cache/piebald/store")), RUNS);
}

#[test]
fn a_store_says_what_it_holds_and_makes_room() {
    let folder = folder();
    study(folder.path(), "kept");
    // What was found took no time, and nothing says how fast it was.
    let again = Command::new(env!("CARGO_BIN_EXE_piebald"))
        .args(["study", "s.toml", "--quiet", "--store", "kept"])
        .current_dir(folder.path())
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&again.stdout);
    let found = format!("s, but for {RUNS} runs that were made before");
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&found) && !words.contains("M/s"), "{said}");
    let store = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_piebald"));
        let done = command
            .args(["store", "--json", "--store", "kept"])
            .args(args)
            .current_dir(folder.path())
            .output()
            .expect("it starts");
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        serde_json::from_slice::<Value>(&done.stdout).expect("JSON")
    };
    assert_eq!(store(&[])["holds"]["runs"], RUNS);
    assert_eq!(store(&["--keep", "1GiB"])["removed"]["runs"], 0);
    assert_eq!(store(&["--keep", "0"])["removed"]["runs"], RUNS);
    assert_eq!(store(&[])["holds"]["bytes"], 0);
}

#[test]
fn a_place_where_nothing_can_be_kept_is_named() {
    let folder = folder();
    let done = command(folder.path(), "s.toml")
        .output()
        .expect("it starts");
    assert_eq!(done.status.code(), Some(2));
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("--store: s.toml/v1: "), "{said}");
}
