//! What studies may be said to show: where nothing can happen, and where caches are cold.

#[path = "kit/mod.rs"]
mod kit;

use kit::run;
use piebald_report::{Study, findings, headline};

fn text(machine: &str, refs: [&str; 2], programs: &[[&str; 2]], policies: &str) -> String {
    let mut text = format!(
        "schema = 1\nrepetitions = 3\nbudget_refs = \"{}\"\nwarmup_refs = \"{}\"\n[machine]\npreset = \"{machine}\"\nmemory = \"768MiB\"\n[output]\nset_map = 0\n",
        refs[0], refs[1]
    );
    for (core, [name, builtin]) in programs.iter().enumerate() {
        text += &format!(
            "[[program]]\nname = \"{name}\"\nbuiltin = \"{builtin}\"\ncores = \"{core}\"\n"
        );
        if *name == "scan" {
            text += "role = \"polluter\"\n";
        }
    }
    text + policies
}

fn shown(study: &Study) -> Vec<String> {
    let shown = findings(study).into_iter().filter(|f| f.shown);
    shown.map(|f| f.claim).collect()
}

#[test]
fn programs_that_stay_in_their_private_caches_do_not_touch_one_another() {
    // The first tick of each falls into its measured part.
    let programs = [["sort", "mergesort:96KiB"], ["scan", "scan:96KiB"]];
    let study = run(&text("w3540", ["400k", "50k"], &programs, "")).expect("runs");
    for program in &study.policies[0].programs {
        let together = program.together.as_ref().expect("was run");
        for (alone, there) in program.alone.mpki.iter().zip(&together.mpki).skip(2) {
            assert_eq!(alone.mpki, there.mpki, "{}", program.name);
        }
    }
    assert!(shown(&study).is_empty(), "{:?}", headline(&study));
    let said = headline(&study).join("\n");
    let words = [
        "private caches",
        "can be told from chance",
        "hardly changes",
    ];
    assert!(words.iter().any(|w| said.contains(w)), "{said}");
}

#[test]
fn a_cache_that_is_still_filling_shows_nothing_and_the_advice_helps() {
    let programs = [["reader", "scan:6MiB"], ["scan", "scan:24MiB"]];
    let cold = run(&text("w3540", ["60k", "1k"], &programs, "")).expect("runs");
    assert!(shown(&cold).is_empty(), "{:?}", headline(&cold));
    let refused = findings(&cold)
        .into_iter()
        .find(|f| f.act.is_some())
        .expect("is told");
    let (why, act) = (
        refused.why.unwrap_or_default(),
        refused.act.unwrap_or_default(),
    );
    assert!(
        why.contains("L3 was ") && why.contains("% full when counting began"),
        "{why}"
    );
    let wanted = act.strip_prefix("set warmup_refs = ").expect("a number");
    let wanted = wanted.split(' ').next().expect("a number");
    let warm = run(&text("w3540", ["60k", wanted], &programs, "")).expect("runs");
    assert!(
        shown(&warm)[0].contains("reader runs"),
        "{:?}",
        headline(&warm)
    );
}

#[test]
fn the_same_policy_in_both_arms_gives_no_claim_of_a_difference() {
    let programs = [["sort", "mergesort:1MiB"], ["scan", "scan:12MiB"]];
    let policies = "[[policy]]\nname = \"one\"\n[[policy]]\nname = \"other\"\n";
    let mut claims = Vec::new();
    for seed in 0..20 {
        let text = text("w3540", ["30k", "100k"], &programs, policies);
        let study = run(&text.replace("schema = 1\n", &format!("schema = 1\nseed = {seed}\n")))
            .expect("runs");
        let about = findings(&study)
            .into_iter()
            .filter(|f| f.shown && f.question != "slowdown");
        claims.extend(about.map(|f| f.claim));
    }
    assert_eq!(claims, Vec::<String>::new());
}
