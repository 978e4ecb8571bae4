//! Scenarios whose policies move readers to the files: the example, run as it is.

mod kit;

use std::path::Path;

use piebald_lab::scenario::Scenario;
use piebald_report::{Metrics, Study};

/// The values of a figure of the record, one for each repetition.
fn figure<'a>(metrics: &'a Metrics, name: &str) -> &'a [f64] {
    let extra = metrics.extra.iter().find(|e| e.name == name);
    extra.map_or(&[], |e| &e.value.values)
}

fn of<'a>(study: &'a Study, policy: &str, name: &str) -> &'a [f64] {
    let policy = study.policies.iter().find(|p| p.name == policy);
    let program = &policy.expect("a policy of the study").programs[0];
    figure(&program.alone, name)
}

#[test]
fn the_example_moves_its_reader_and_loads_less_from_memory() {
    let path = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../scenarios/mfc.toml"
    ));
    let scenario = Scenario::read(path).expect("a scenario");
    let study = kit::run_scenario(&scenario).expect("runs");
    for name in [
        "read by calls",
        "read by calls in a second",
        "from memory for each byte read",
        "read past the caches",
        "threads moved for a read",
        "threads that changed their core",
    ] {
        for policy in ["linux", "mfc"] {
            println!("{policy:6} {name}: {:?}", of(&study, policy, name));
            assert_eq!(of(&study, policy, name).len(), 2, "{policy}: {name}");
        }
    }
    let both = |name| [of(&study, "linux", name), of(&study, "mfc", name)];
    // 200 reads of 256 KiB.
    let [linux, mfc] = both("read by calls");
    for bytes in linux.iter().chain(mfc) {
        assert!((bytes - 200.0 * 0.262144).abs() < 1.0, "{bytes} MB");
    }
    let [linux, mfc] = both("threads moved for a read");
    assert!(linux.iter().all(|n| *n == 0.0) && mfc.iter().all(|n| *n > 50.0));
    let [linux, mfc] = both("from memory for each byte read");
    assert!(
        linux.iter().zip(mfc).all(|(l, m)| m < l),
        "{linux:?} {mfc:?}"
    );
}

#[test]
fn figures_of_reads_are_shown_only_beside_a_policy_that_moves_threads() {
    let text = "schema = 1\nbudget_refs = \"40\"\nwarmup_refs = \"10\"\nrepetitions = 1\n\
        [machine]\npreset = \"w3540\"\nmemory = \"192MiB\"\n\
        [[program]]\nbuiltin = { name = \"readfiles\", files = 4, iterations = 60 }\n\
        cores = \"0\"\n[[policy]]\nname = \"a\"\nmemory = \"fresh\"\n";
    let study = kit::run(text).expect("runs");
    assert!(of(&study, "a", "read by calls").is_empty());
    let study = kit::run(&format!("{text}balance = true\n")).expect("runs");
    assert_eq!(of(&study, "a", "read by calls").len(), 1);
    assert_eq!(of(&study, "a", "threads that changed their core"), [0.0]);
}
