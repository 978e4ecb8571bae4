//! Programs that SysMon watches alone: what is refused, and what it sees.

use std::sync::Arc;

use crate::kit::{inputs, parse, refused, run};
use piebald_lab::{Hooks, StudyError, study};
use piebald_report::{Study, TableStyle, to_csv, to_html, to_table};
use piebald_sim::{EPOCH, Model};
use piebald_store::Store;

const GOOD: &str = r#"schema = 2
repetitions = 1
budget_refs = "30k"
warmup_refs = "30k"
alone = "none"
machine = { preset = "w3540", memory = "3GiB" }
sysmon = { refs = "1M", time_scale = 100000, translations = "dropped" }
program = [
    { name = "gups", builtin = "gups:1MiB", cores = "0" },
    { name = "two", builtin = "triad:1MiB,threads=2", cores = "0-1" },
]
"#;

#[test]
fn what_cannot_be_watched_is_refused_with_its_place() {
    refused(
        GOOD,
        &[
            (
                "refs = \"1M\"",
                "speed = \"alone\"",
                7,
                "sysmon.speed = \"alone\": allowed: \"one\" where not all programs run alone",
            ),
            ("refs = \"1M\"", "refs = 0", 7, "sysmon.refs"),
            (
                "time_scale = 100000",
                "time_scale = 0",
                7,
                "sysmon.time_scale",
            ),
            ("\"dropped\"", "\"lost\"", 7, "\"kept\", \"dropped\""),
            (
                "cores = \"0\" }",
                "cores = \"0\", walk_us = 0.5 }",
                9,
                "program[0].walk_us",
            ),
        ],
    );
    let together = "together = \"each-target\"\n";
    let error = parse(&(together.to_owned() + &GOOD.replace("sysmon", "#"))).expect_err("no run");
    assert!(error.contains("alone = \"none\""), "{error}");
}

fn seen(study: &Study) -> Option<f64> {
    study.sysmon.first()?.figure("hot pages")
}

#[test]
fn programs_of_one_thread_are_watched_and_nothing_need_be_run() {
    let study =
        run(&GOOD.replace("alone =", "together = \"each-target\"\nalone =")).expect("a study");
    assert!(study.complete);
    let names: Vec<&str> = study.sysmon.iter().map(|s| s.program.as_str()).collect();
    assert_eq!(names, ["gups"]);
    assert!(
        seen(&study).is_some_and(|pages| pages > 100.0),
        "{:?}",
        study.sysmon
    );
    let gups = &study.sysmon[0];
    assert!(gups.windows.len() >= 3 && gups.class.is_some() && gups.refs >= 1_000_000);
    let warnings = study.warnings.join("\n");
    assert!(warnings.contains("two: it has 2 threads"), "{warnings}");
    assert_eq!(study.simulated_refs, 0);
    // It is shown wherever a study is, and what was not run is not.
    let table = to_table(&study, &TableStyle::default());
    assert!(
        table.contains("Seen by SysMon") && !table.contains("Policy stock"),
        "{table}"
    );
    let csv = to_csv(&study).expect("CSV");
    assert!(
        csv.contains("\nsysmon,gups,,alone,hot pages,pages,"),
        "{csv}"
    );
    assert!(to_html(&study).expect("HTML").contains("Seen by SysMon"));
}

#[test]
fn slow_programs_come_through_fewer_pages() {
    let at = |speed: &str| {
        let text = GOOD.replace("{ refs =", &format!("{{ speed = \"{speed}\", refs ="));
        let text = text.replace("alone = \"none\"", "alone = \"all\"");
        // A window of 11 us, in which not all of 4096 pages can be used.
        let text = text.replace("gups:1MiB\", cores", "gups:16MiB\", walk_us = 1, cores");
        let study = run(&text.replace(
            "    { name = \"two\", builtin = \"triad:1MiB,threads=2\", cores = \"0-1\" },\n",
            "",
        ));
        let study = study.expect("a study");
        (
            seen(&study).expect("windows"),
            study.policies[0].programs[0].alone.ipc.mean,
        )
    };
    let [(one, ipc), (own, _)] = [at("one"), at("alone")];
    assert!(ipc < 0.9 && own < one, "{ipc}: {own} beside {one}");
}

#[test]
fn what_was_seen_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = GOOD.replace("alone =", "together = \"each-target\"\nalone =");
    let scenario = parse(&text).expect("a scenario");
    let inputs = inputs(&scenario);
    let run = |store: Store| {
        let model = Model::keeping(1).with_store(Some(Arc::new(store)));
        let hooks = Hooks {
            model: Some(&model),
            ..Hooks::default()
        };
        study(&scenario, &inputs, hooks)
    };
    let look = || Store::to_look(folder.path(), EPOCH);
    let before = run(look());
    assert!(
        matches!(before, Err(StudyError::NotKept { .. })),
        "{before:?}"
    );
    let made = run(Store::open(folder.path(), EPOCH).expect("a store")).expect("a study");
    let found = run(look()).expect("it is kept");
    assert_eq!(made.sysmon, found.sysmon);
}
