//! Advice on shares of the last level, and what stands against it.

use crate::kit::{parse, refused, run, run_scenario};
use piebald_lab::{StudyError, scenario::Scenario};
use piebald_report::{Advice, ProgramAdvice, to_csv, to_html, to_json, to_table};

/// A sort that fits nine colours of sixteen and is lost with fewer than eight, beside a
/// scan that fits nothing.
const TEXT: &str = r#"schema = 1
repetitions = 1
budget_refs = "150k"
warmup_refs = "900k"
[machine]
preset = "w3540"
memory = "768MiB"
[output]
set_map = 0
[advise]
within = "10%"
[[program]]
name = "sort"
builtin = "mergesort:2MiB"
cores = "0"
[[program]]
name = "scan"
builtin = "scan:24MiB"
cores = "1"
role = "polluter"
[[policy]]
name = "fresh"
frames = "rainbow"
memory = "fresh"
"#;

fn why_not(scenario: &Scenario) -> String {
    match run_scenario(scenario) {
        Err(error @ StudyError::Advise { .. }) => error.to_string(),
        Err(error) => panic!("another error: {error}"),
        Ok(_) => panic!("advice was given"),
    }
}

fn program<'a>(advice: &'a Advice, name: &str) -> &'a ProgramAdvice {
    let mut all = advice.programs.iter();
    all.find(|p| p.program == name).expect("is there")
}

#[test]
fn a_sort_gets_what_it_needs_and_a_scan_the_rest() {
    let study = run(TEXT).unwrap();
    let advice = study.advice.as_ref().expect("was asked for");
    assert_eq!((advice.colors, advice.cache_bytes), (16, 8 << 20));
    let sort = program(advice, "sort");
    assert_eq!(sort.points.len(), 16);
    // One share in eight fits an eighth of it; the whole fits.
    let mpki = |k: usize| sort.points[k - 1].mpki;
    assert!(mpki(1) > 50.0 && mpki(16) < 1.0, "{} {}", mpki(1), mpki(16));
    let share = sort.share.as_ref().expect("a target");
    // 4 MiB with the second array: eight colours, and a little beside it.
    assert!((8..=11).contains(&share.colors), "{share:?}");
    assert!(share.measured <= 0.10, "{share:?}");
    let below = share.below_measured.expect("fewer were tried");
    assert!(below > 0.10, "{share:?}");
    assert!(share.exact, "{share:?}");
    assert_eq!(
        share.memory_limit,
        (768 << 20) / 16 * u64::from(share.colors)
    );
    // Estimates end at what was measured.
    for k in [1, 16] {
        let point = &sort.points[k - 1];
        assert!((point.estimated - point.measured.expect("measured")).abs() < 1e-9);
    }
    // The scan's misses do not depend on its colours.
    let scan = program(advice, "scan");
    assert_eq!(scan.share, None);
    // The sort does with half of the cache, where its 4 MiB lie, or just not; the scan sweeps it.
    let classes = [sort, scan].map(|p| p.class.as_deref());
    assert!(
        matches!(classes, [Some("LLCM" | "LLCH"), Some("LLCT")]),
        "{classes:?}"
    );
    let half = sort.points[7].measured.unwrap_or(sort.points[7].estimated);
    assert_eq!(classes[0] == Some("LLCH"), half >= 0.10, "{half}");
    let (one, all) = (scan.points[0].mpki, scan.points[15].mpki);
    assert!((one / all - 1.0).abs() < 0.1, "{one} {all}");

    let mix = advice.mix.as_ref().expect("two programs");
    let names: Vec<&str> = mix.policies.iter().map(|p| p.policy.as_str()).collect();
    assert_eq!(names, ["fresh", "stock", "equal split", "advised split"]);
    assert_eq!(
        (mix.reference.as_str(), mix.goal.as_str()),
        ("stock", "slowdowns")
    );
    let split = mix
        .splits
        .iter()
        .find(|s| s.policy.as_deref() == Some("advised split"));
    let split = split.expect("was run");
    assert_eq!(split.colors.iter().sum::<u32>(), 16);
    assert!(split.colors[0] >= share.colors, "{split:?} {share:?}");
    let slowdown = |policy: usize, program: usize| {
        let slowdown = mix.policies[policy].slowdowns[program].as_ref();
        slowdown.expect("was run").mean
    };
    assert!(
        slowdown(3, 0) < 0.5 * slowdown(2, 0),
        "the sort is better off than with half of the colors: {} {}",
        slowdown(3, 0),
        slowdown(2, 0)
    );
    assert_eq!(
        mix.policies[3].colors[1].as_deref(),
        Some(split.sets[1].as_str())
    );

    let table = to_table(&study, &Default::default());
    for text in [
        "Smallest share of L3 that costs at most 10.0 %, alone",
        &format!("{} of 16", share.colors),
        "Colors split by least slowdowns",
        "equal split",
    ] {
        assert!(table.contains(text), "{text}: {table}");
    }
    let json = to_json(&study).unwrap();
    assert_eq!(
        piebald_report::from_json(&json).unwrap().advice,
        study.advice
    );
    let csv = to_csv(&study).unwrap();
    let line = format!(
        "advice,sort,target,alone,advised_colors,,{},,1,",
        share.colors
    );
    assert!(csv.contains(&line), "{line}: {csv}");
    let html = to_html(&study).unwrap();
    assert!(html.contains("Misses against the share of the cache"));
}

#[test]
fn no_share_is_too_small_for_the_memory_of_its_program() {
    // A colour has 24 MiB, less what the kernel took; the scan's file has 32.
    let text = TEXT
        .replace("768MiB", "384MiB")
        .replace("scan:24MiB", "scan:32MiB")
        .replace("mergesort:2MiB", "mergesort:256KiB");
    let study = run(&text).unwrap();
    let advice = study.advice.as_ref().expect("advice");
    assert_eq!(program(advice, "sort").fewest, 1);
    assert_eq!(program(advice, "scan").fewest, 2);
    let mix = advice.mix.as_ref().expect("a mix");
    assert!(mix.splits.iter().all(|s| s.colors[1] >= 2), "{mix:?}");
}

#[test]
fn by_misses_the_split_is_another_goal_of_the_same_curves() {
    let text = TEXT.replace("within = \"10%\"", "within = \"10%\"\ngoal = \"misses\"");
    let study = run(&text).unwrap();
    let mix = study.advice.and_then(|a| a.mix).expect("a mix");
    assert_eq!(mix.goal, "misses");
    let run: Vec<_> = mix.splits.iter().filter(|s| s.policy.is_some()).collect();
    assert_eq!(run.len(), 2, "equal, by misses");
    assert_eq!(run[1].goal.as_deref(), Some("misses"));
    assert!(run[1].colors[0] >= 8, "{run:?}");
}

#[test]
fn advice_that_cannot_be_given_says_why() {
    let threads = TEXT
        .replace("mergesort:2MiB", "triad:4MiB,threads=2")
        .replace("cores = \"0\"\n", "cores = \"0,2\"\n");
    assert_eq!(
        why_not(&parse(&threads).expect("a scenario")),
        "advise: program \"sort\" has 2 threads; allowed: programs of one thread"
    );
    let regions = TEXT.replace("cores = \"0\"\n", "cores = \"0\"\nregions = 2\n");
    let error = why_not(&parse(&regions).expect("a scenario"));
    assert!(
        error.starts_with("advise: program \"sort\" has regions"),
        "{error}"
    );
    // A last level that has no more sets than the second has no colors beside it.
    let stock = TEXT.replace("\"rainbow\"", "\"stock\"");
    let mut colorless = parse(&stock).expect("a scenario");
    let last = colorless.machine.cache.iter_mut().find(|c| c.level == 3);
    last.expect("three levels").size = piebald_units::Bytes(512 * 16 * 64);
    let error = why_not(&colorless);
    assert!(
        error.starts_with("advise: shares need page colors: L3 has no page color"),
        "{error}"
    );
}

#[test]
fn programs_that_share_a_core_get_shares_and_no_split() {
    let text = TEXT.replace("cores = \"1\"", "cores = \"0-1\"");
    let study = run(&text).unwrap();
    let advice = study.advice.expect("advice");
    assert_eq!(advice.mix, None);
    assert!(program(&advice, "sort").share.is_some());
    let note = study
        .notes
        .iter()
        .any(|n| n == "no split of the colors: programs share cores");
    assert!(note, "{:?}", study.notes);
    assert_eq!(study.policies.len(), 1);
}

#[test]
fn wrong_keys_are_refused_with_line_value_and_range() {
    let cases = [
        (
            "10%",
            "0%",
            11,
            "advise.within = \"0%\": is no slowdown in percent; allowed: more than 0% to 1000%",
        ),
        (
            "10%",
            "abc",
            11,
            "advise.within = \"abc\": is no slowdown in percent; allowed",
        ),
        (
            "10%",
            "1001%",
            11,
            "advise.within = \"1001%\": is no slowdown in percent; allowed",
        ),
        (
            "\"10%\"",
            "\"10%\"\ngoal = \"speed\"",
            12,
            "advise.goal = \"speed\": allowed: \"slowdowns\", \"misses\"",
        ),
        ("within", "at_most", 11, "at_most"),
    ];
    refused(TEXT, &cases);
}
