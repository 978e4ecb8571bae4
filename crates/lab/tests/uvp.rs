//! Policies that divide the last level by misses: what is refused, and what becomes of a small mix.

use std::sync::Arc;

use crate::kit::{inputs, parse, refused, run};
use piebald_lab::{Hooks, study};
use piebald_report::{Metrics, Study};
use piebald_sim::{EPOCH, Model};
use piebald_store::Store;

const GOOD: &str = r#"schema = 2
repetitions = 1
budget_refs = "30k"
warmup_refs = "30k"
draws = "names"
alone = "none"
machine = { preset = "w3540", memory = "3GiB" }
output = { set_map = 0 }
deal = { cores = "0-3" }
program = [
    { name = "chase", builtin = "chase:1MiB", enter = "50%" },
    { name = "small", builtin = "gups:64KiB", enter = "50%" },
    { name = "stream", builtin = "triad:4MiB", enter = "50%" },
]
policy = [
    { name = "stock", memory = "fresh" },
    { name = "uvp", memory = "fresh", frames = "uvp", color_map = ["O 14", "O 15", "C 16", "C 17", "C 18"] },
]
"#;

fn together<'s>(study: &'s Study, policy: &str, program: &str) -> &'s Metrics {
    let policy = study.policies.iter().find(|p| p.name == policy);
    let programs = policy.expect("the policy").programs.iter();
    let program = programs.into_iter().find(|p| p.name == program);
    program
        .and_then(|p| p.together.as_ref())
        .expect("it ran together")
}

fn owned(study: &Study, program: &str) -> f64 {
    let extra = &together(study, "uvp", program).extra;
    let colors = extra.iter().find(|e| e.name == "colors owned");
    colors.expect("UVP gives colors").value.mean
}

#[test]
fn what_cannot_be_divided_is_refused_with_its_place() {
    refused(
        GOOD,
        &[
            (
                "{ name = \"stock\", memory = \"fresh\" },",
                "{ name = \"first\", frames = \"uvp\" },",
                16,
                "policy[0].frames = \"uvp\": allowed: another policy as the first one",
            ),
            (
                "\"O 14\", \"O 15\", \"C 16\", \"C 17\", \"C 18\"",
                "\"O 15\"",
                17,
                "policy[1].frames: 3 programs run together; allowed: up to 2",
            ),
            (
                "\"O 14\", \"O 15\", \"C 16\", \"C 17\", \"C 18\"",
                "\"B 21\"",
                17,
                "policy[1].color_map: no bit of it selects a part of the last level",
            ),
            ("\"C 18\"", "\"C 25\"", 17, "policy[1].color_map"),
            (
                "{ name = \"chase\", builtin = \"chase:1MiB\", enter = \"50%\" }",
                "{ name = \"chase\", builtin = \"chase:1MiB\", cores = \"0\", colors = \"0-3\" }",
                11,
                "no policy has frames = \"rainbow\"",
            ),
            (
                "deal = { cores = \"0-3\" }",
                "deal = { cores = \"0-3\", alone = \"0-9\" }",
                9,
                "deal.alone = 0-9: allowed: cores of this machine, 0-3",
            ),
        ],
    );
    let timed = GOOD.replace("output", "course = { until_us = 900 }\noutput");
    let leaves = timed
        .replace("alone = \"none\"", "alone = \"targets\"")
        .replace(
            "\"triad:4MiB\", enter = \"50%\"",
            "\"triad:4MiB\", enter = \"50%\", leaves_us = 500",
        );
    let error = parse(&leaves).expect_err("it leaves");
    assert!(
        error.contains("leaves_us: allowed only without frames = \"uvp\""),
        "{error}"
    );
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../testdata/golden/refused/with"
    );
    let one = format!("{{ file = \"{folder}/one-color.toml\" }}");
    let without = GOOD.replace("{ preset = \"w3540\", memory = \"3GiB\" }", &one);
    let map = ", color_map = [\"O 14\", \"O 15\", \"C 16\", \"C 17\", \"C 18\"]";
    let without = without.replace(map, "").replace("\"0-3\"", "\"0-1\"");
    let stream = "    { name = \"stream\", builtin = \"triad:4MiB\", enter = \"50%\" },\n";
    let error = parse(&without.replace(stream, "")).expect_err("no colors");
    assert!(
        error.contains("policy[1].frames: needs page colors of the last level"),
        "{error}"
    );
}

#[test]
fn who_misses_less_with_more_gets_more_and_all_is_dealt_out() {
    let study = run(GOOD).expect("a study");
    let [chase, small, stream] = ["chase", "small", "stream"].map(|name| owned(&study, name));
    assert_eq!(chase + small + stream, 32.0, "{chase} {small} {stream}");
    assert!(chase > small && chase > stream, "{chase} {small} {stream}");
    // Nothing is counted under stock frames.
    let stock = &together(&study, "stock", "chase").extra;
    assert!(stock.iter().all(|e| e.name != "colors owned"));
    // Runs alone are no part of what was asked for.
    assert!(
        study.policies[0].programs[0]
            .alone
            .time_ps
            .values
            .is_empty()
    );
}

#[test]
fn runs_alone_that_there_are_anyway_are_those_that_are_divided_by() {
    let none = run(GOOD).expect("a study");
    let all = run(&GOOD.replace("alone = \"none\"", "alone = \"all\"")).expect("a study");
    for name in ["chase", "small", "stream"] {
        let [a, b] = [&none, &all].map(|s| together(s, "uvp", name).time_ps.values.clone());
        assert_eq!(a, b, "{name}");
        // Alone a program has everything.
        let alone = &all.policies[1].programs[0].alone.extra;
        let alone = alone.iter().find(|e| e.name == "colors owned");
        assert_eq!(alone.expect("UVP gives colors").value.mean, 32.0);
    }
    let counted = all.simulated_refs - none.simulated_refs;
    // Under stock frames as often as before; under UVP three runs more.
    assert!(counted > 3 * 60_000 && counted < 6 * 60_000, "{counted}");
}

#[test]
fn a_program_is_counted_once_for_all_mixes_that_a_store_has_seen() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || Arc::new(Store::open(folder.path(), EPOCH).expect("a store"));
    let run = |text: &str| {
        let store = open();
        let model = Model::keeping(2).with_store(Some(store.clone()));
        let scenario = parse(text).expect("a scenario");
        let hooks = Hooks {
            model: Some(&model),
            ..Hooks::default()
        };
        study(&scenario, &inputs(&scenario), hooks).expect("a study");
        (store.tally().found, store.tally().kept)
    };
    // Three programs alone and a mix under two policies.
    assert_eq!(run(GOOD), (0, 5));
    assert_eq!(run(GOOD), (5, 0));
    let stream = "    { name = \"stream\", builtin = \"triad:4MiB\", enter = \"50%\" },\n";
    assert_eq!(run(&GOOD.replace(stream, "")), (2, 2));
}
