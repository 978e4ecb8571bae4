//! Boots of real guests. They need QEMU system mode and what `piebald guest check` names,
//! and take minutes: `cargo test --release -p piebald-guest --test boots -- --ignored`.

use std::{path::Path, sync::Arc};

use piebald_guest::Scenario;
use piebald_lab::host::{Ground, Hosted};
use piebald_report::{Metrics, Study};
use piebald_store::Store;

/// 6 MiB that are merged again and again, beside a file that never fits.
const SCENARIO: &str = r#"
schema = 1
seed = 3
[machine]
preset = "w3540"
[guest]
memory = "512MiB"
[[file]]
name = "text"
size = "24MiB"
[[program]]
name = "mergesort"
command = ["mergesort", "786432", "1"]
vcpu = 0
measure = "marks"
[[program]]
name = "grep"
command = ["grep", "-c", "marmalade", "/data/text"]
vcpu = 1
role = "polluter"
[[policy]]
name = "stock"
"#;

fn study(scenario: &Scenario) -> Study {
    scenario.run(&Ground::default()).expect("runs")
}

fn phases(study: &Study) -> (&Metrics, &Metrics) {
    let target = &study.policies[0].programs[0];
    (&target.alone, target.together.as_ref().expect("together"))
}

fn differs(a: f64, b: f64) -> f64 {
    (a - b).abs() / a.abs().max(b.abs())
}

#[test]
#[ignore = "boots four guests: ./test.sh --long guest-boots"]
fn grep_takes_the_shared_cache_from_a_sort_and_two_runs_agree() {
    let scenario = Scenario::parse(SCENARIO, Path::new("guest.toml")).expect("is good");
    let (first, second) = (study(&scenario), study(&scenario));
    assert!(first.complete && second.complete);
    for study in [&first, &second] {
        let (alone, together) = phases(study);
        let weaker: Vec<_> = study
            .warnings
            .iter()
            .filter(|w| !w.contains("one repetition"))
            .collect();
        assert!(weaker.is_empty(), "{weaker:?}");
        let (few, many) = (alone.mpki[2].mpki.mean, together.mpki[2].mpki.mean);
        assert!(few < 0.3 && many > 3.0, "{few} alone, {many} together");
        // 20 passes over 6 MiB leave the private levels, whoever runs beside.
        let lines = 20.0 * 6.0 * 16384.0;
        for phase in [alone, together] {
            let misses = phase.mpki[1].mpki.mean * phase.instructions.mean / 1e3;
            assert!(differs(misses, lines) < 0.05, "{misses} for {lines} lines");
        }
        let grep = study.policies[0].programs[1]
            .together
            .as_ref()
            .expect("together");
        let (sorts, greps) = (together.instructions.mean, grep.instructions.mean);
        assert!(
            differs(sorts, greps) < 0.02,
            "{sorts} beside {greps} instructions"
        );
    }
    let misses = |study: &Study| phases(study).1.mpki[2].mpki.mean;
    let difference = differs(misses(&first), misses(&second));
    assert!(difference < 0.01, "{difference}");
}

#[test]
#[ignore = "boots two guests: ./test.sh --long guest-boots"]
fn what_was_booted_is_not_booted_again() {
    let text = SCENARIO.replace("\"786432\", \"1\"", "\"65536\", \"1\"");
    let path = Path::new("guest.toml");
    let folder = tempfile::tempdir().expect("a folder");
    let study = |text: &str| {
        let store = Arc::new(Store::open(folder.path(), "e").expect("a store"));
        let scenario = Scenario::parse(text, path).expect("is good");
        // Programs are compiled and files are made each time.
        let study = scenario.run(&Ground {
            store: Some(&store),
            ..Ground::default()
        });
        (study, store.tally().found, store.tally().kept)
    };
    let (first, found, kept) = study(&text);
    assert_eq!((found, kept), (0, 2));
    let (second, found, kept) = study(&text);
    assert_eq!((found, kept), (2, 0));
    let metrics = |study: Result<Study, _>| {
        let study = study.expect("runs");
        let (alone, together) = phases(&study);
        (alone.clone(), together.clone())
    };
    assert_eq!(metrics(first), metrics(second));
    // Other files, of the same names and sizes: nothing is there, and nothing that fails is kept.
    let other = text.replace("seed = 3", "seed = 4").replace("65536", "1");
    let (none, found, kept) = study(&other);
    assert!(none.is_err());
    assert_eq!((found, kept), (0, 0));
}

#[test]
#[ignore = "boots two guests: ./test.sh --long guest-boots"]
fn a_program_that_fails_in_the_guest_is_told() {
    let text = SCENARIO.replace("786432", "1");
    let scenario = Scenario::parse(&text, Path::new("guest.toml")).expect("is good");
    let error = scenario.run(&Ground::default());
    let error = error.expect_err("mergesort refuses");
    let error = error.to_string();
    assert!(error.contains("a program failed, 104"), "{error}");
    assert!(error.contains("mergesort INTS TIMES"), "{error}");
}

/// A client of a shell that answers as long as it can read a directory of this computer.
const CLIENT: &str = r#"
schema = 1
[machine]
preset = "w3540"
[guest]
memory = "512MiB"
scratch = "16MiB"
[[tree]]
from = "tree"
to = "/scratch/tree"
[[tree]]
from = "tree"
to = "/srv/tree"
[[program]]
name = "client"
command = ["session", "/scratch/tree", "ok> ", "again", "2", "3", "sh", "-c",
    "while cat answer /srv/tree/answer && printf 'ok> ' && read -r x; do :; done"]
vcpu = 0
measure = "marks"
[[program]]
name = "other"
command = ["session", "/scratch/tree", "ok> ", "again", "2", "3", "sh", "-c",
    "printf 'ok> '; while read -r x; do printf 'ok> '; done"]
vcpu = 1
role = "polluter"
[[policy]]
name = "stock"
"#;

#[test]
#[ignore = "boots four guests: ./test.sh --long guest-boots"]
fn a_client_is_answered_from_directories_of_this_computer() {
    let folder = tempfile::tempdir().expect("a folder");
    let tree = folder.path().join("tree");
    std::fs::create_dir(&tree).expect("made");
    let scenario = Scenario::parse(CLIENT, &folder.path().join("guest.toml")).expect("is good");
    std::fs::write(tree.join("answer"), "yes\n").expect("written");
    let answered = study(&scenario);
    assert!(answered.complete, "{:?}", answered.warnings);
    let (alone, together) = phases(&answered);
    assert!(alone.instructions.mean > 0.0 && together.instructions.mean > 0.0);
    std::fs::remove_file(tree.join("answer")).expect("removed");
    let error = scenario.run(&Ground::default());
    let error = error.expect_err("nothing to read");
    let error = error.to_string();
    assert!(error.contains("session: sh: no answer"), "{error}");
}
