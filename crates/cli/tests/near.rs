//! Names that were mistyped are told the one that was probably meant.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

fn run(folder: &Path, words: &str) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_piebald"))
        .args(words.split_whitespace())
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("starts");
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!err.contains("panicked"), "{words}: {err}");
    (output.status.code().expect("no signal"), err)
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let rows: String = (0..50u64)
        .map(|i| format!("{},h,0,Read,{},8192,5\n", 1000 + i, i * 8192))
        .collect();
    fs::write(folder.path().join("t.csv"), rows).expect("written");
    folder
}

#[test]
fn names_on_the_command_line() {
    let folder = folder();
    for (words, meant) in [
        ("replya t.csv", "replay"),
        ("machine show skylake", "did you mean skylake-sp?"),
        ("machine disks sata7200", "did you mean sata-7200?"),
        ("replay t.csv --policy lrru", "did you mean lru?"),
        (
            "replay t.csv --policy lrru --device none",
            "did you mean lru?",
        ),
        ("replay t.csv --policy dulo:bnak=4MiB", "did you mean bank?"),
        ("replay t.csv --policy dulo:base=acr", "did you mean arc?"),
        ("replay t.csv --device sata7200", "did you mean sata-7200?"),
        ("replay t.csv --readahead 2.6.1", "did you mean 2.6.11?"),
        (
            "replay t.csv --scheduler mqdeadline",
            "did you mean mq-deadline?",
        ),
        ("replay t.csv --size 64MB", "did you mean 64MiB?"),
        ("replay t.csv --size 1.5g", "did you mean 1.5GiB?"),
        ("replay t.csv --page 4kb", "did you mean 4KiB?"),
        ("trace formats msrr", "did you mean msr?"),
        ("reproduce rainbwo", "did you mean rainbow?"),
    ] {
        let (code, err) = run(folder.path(), words);
        assert_eq!(code, 2, "{words}: {err}");
        assert!(err.contains(meant), "{words}: {err}");
    }
    let (_, err) = run(folder.path(), "replay t.csv --policy zzz");
    assert!(!err.contains("did you mean"), "nothing is like it: {err}");
}

const SCENARIO: &str = "schema = 1\nrepetitions = 1\nbudget_refs = \"2k\"\n[machine]\n\
    preset = \"w3540\"\nmemory = \"192MiB\"\nfeatures = \"all\"\n\
    [[program]]\nbuiltin = \"chase:64KiB\"\ncores = \"0\"\n\
    [[policy]]\nname = \"p\"\nframes = \"stock\"\n";

#[test]
fn keys_and_words_of_a_scenario() {
    let folder = folder();
    for (right, wrong, meant) in [
        ("budget_refs", "budget_ref", "did you mean budget_refs?"),
        (
            "preset = \"w3540\"",
            "preset = \"skylake\"",
            "did you mean skylake-sp?",
        ),
        ("\"stock\"", "\"stok\"", "did you mean stock?"),
        ("\"all\"", "\"windwo\"", "did you mean window?"),
        ("192MiB", "2GB", "did you mean 2GiB?"),
        ("chase:64KiB", "chaes:64KiB", "did you mean chase?"),
        ("chase:64KiB", "chase:64KB", "did you mean 64KiB?"),
        (
            "[[program]]",
            "[files]\nreplace = \"lrru\"\n[[program]]",
            "did you mean lru?",
        ),
    ] {
        assert!(SCENARIO.contains(right), "{right}");
        let text = SCENARIO.replacen(right, wrong, 1);
        fs::write(folder.path().join("s.toml"), text).expect("written");
        let (code, err) = run(folder.path(), "study -q s.toml");
        assert_eq!(code, 2, "{wrong}: {err}");
        assert!(err.contains(meant), "{wrong}: {err}");
    }
}

#[test]
fn the_list_of_presets_is_printed_once() {
    let folder = folder();
    let text = SCENARIO.replace("\"w3540\"", "\"pdp11\"");
    fs::write(folder.path().join("s.toml"), text).expect("written");
    for words in [
        "study -q s.toml",
        "machine show pdp11",
        "machine disks pdp11",
    ] {
        let (code, err) = run(folder.path(), words);
        assert_eq!(code, 2, "{words}: {err}");
        let known = if words.contains("disks") {
            "wd400bb"
        } else {
            "opteron4x4"
        };
        assert_eq!(err.matches(known).count(), 1, "{words}: {err}");
    }
}

#[test]
fn memory_that_does_not_fit_names_the_sizes_that_do_and_how_to_ask() {
    let folder = folder();
    let text = SCENARIO.replace("192MiB", "4GiB");
    fs::write(folder.path().join("s.toml"), text).expect("written");
    let (code, err) = run(folder.path(), "study -q s.toml");
    assert_eq!(code, 2, "{err}");
    for part in ["3GiB or 6GiB", "memory = \"3GiB\""] {
        assert!(err.contains(part), "{part}: {err}");
    }
    // The machine may have 48 MiB, a scenario may not ask for it.
    let small = SCENARIO.replace("192MiB", "64MiB");
    fs::write(folder.path().join("s.toml"), small).expect("written");
    let (code, err) = run(folder.path(), "study -q s.toml");
    assert_eq!(code, 2, "{err}");
    assert!(
        err.contains("allowed: 96MiB; the nearest is asked for by memory = \"96MiB\""),
        "{err}"
    );
    let asked = SCENARIO.replace("192MiB", "3GiB");
    fs::write(folder.path().join("s.toml"), asked).expect("written");
    let (code, err) = run(folder.path(), "study -q s.toml");
    assert_eq!(code, 0, "{err}");
}
