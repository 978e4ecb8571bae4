//! What studies may be said to show: where nothing can happen, and where caches are cold.

use crate::kit::run;
use piebald_experiment::DiskStart;
use piebald_lab::{
    Hooks,
    replay::{DeviceChoice, LayoutChoice, Load, Part, ReplayRequest, replay},
};
use piebald_report::{Study, findings, headline};
use piebald_sim::replay::{InputSetup, Pace};

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

/// Of so many studies, and of so many replays, in which nothing can happen, at most these may claim a difference,
/// of both together.
const CONTROLS: u64 = 100;
const FALSE_CLAIMS: usize = 5;

#[test]
fn the_same_policy_in_both_arms_gives_no_claim_of_a_difference() {
    let claims = equal_arms(CONTROLS / 10);
    assert!(claims.is_empty(), "{claims:#?}");
}

#[test]
#[ignore = "takes minutes: ./test.sh --long controls"]
fn a_hundred_studies_and_a_hundred_replays_in_which_nothing_can_happen() {
    let (studies, replays) = (equal_arms(CONTROLS), noise());
    assert!(
        studies.len() + replays.len() <= FALSE_CLAIMS,
        "{studies:#?} {replays:#?}"
    );
}

/// What studies claim of one policy under two names. A study gives its policies the same draws, so that nothing
/// is left to chance; here the second has those of another seed.
fn equal_arms(studies: u64) -> Vec<String> {
    // Larger than the private caches, together smaller than the last level, and warm: no gate but
    // those of chance and size stands before a claim.
    let programs = [["sort", "mergesort:512KiB"], ["scan", "scan:2MiB"]];
    let text = text("w3540", ["10k", "150k"], &programs, "");
    let text = text.replace("768MiB", "192MiB");
    let (mut claims, mut refusals) = (Vec::new(), Vec::new());
    for seed in 0..studies {
        let of = |seed: u64| {
            let seeded = text.replace("schema = 1\n", &format!("schema = 1\nseed = {seed}\n"));
            run(&seeded).expect("runs")
        };
        let (mut study, mut other) = (of(seed), of(seed + 1_000_000));
        let mut arm = other.policies.remove(0);
        arm.name = "other".to_owned();
        study.policies.push(arm);
        for finding in findings(&study) {
            match finding.shown {
                true if finding.question != "slowdown" => claims.push(finding.claim),
                true => {}
                false => refusals.extend(finding.why),
            }
        }
    }
    // One that is 0 each time is no matter of chance, nor is it held back by any other gate.
    let by_chance = |why: &&String| {
        why.contains("cannot be told from chance") || *why == "it is 0 in every repetition"
    };
    let told = refusals.iter().filter(by_chance).count();
    assert!(
        told as u64 >= studies,
        "{told} of {}: {:?}",
        refusals.len(),
        refusals.first()
    );
    claims
}

/// A replay of reads of a disk, with the policies and a memory of so many pages.
fn replayed(path: &std::path::Path, policies: &[&str], pages: u64) -> piebald_report::Replay {
    let disk = DeviceChoice::Preset("sata-7200".into());
    replayed_on(disk, path, policies, &[pages])
}

/// The same on a device, at several sizes.
fn replayed_on(
    device: DeviceChoice,
    path: &std::path::Path,
    policies: &[&str],
    pages: &[u64],
) -> piebald_report::Replay {
    let specs = || -> Vec<_> {
        let parse = |n: &&str| n.parse().expect("a policy");
        policies.iter().map(parse).collect()
    };
    let request = ReplayRequest {
        input: InputSetup {
            paths: vec![path.to_owned()],
            ..InputSetup::default()
        },
        object_policies: specs(),
        policies: specs(),
        ignore_sizes: false,
        sizes: pages
            .iter()
            .map(|pages| format!("{}KiB", 4 * pages).parse().expect("a size"))
            .collect(),
        device,
        readahead: "none".into(),
        scheduler: "noop".into(),
        layout: LayoutChoice::Auto,
        pace: Pace::Serial,
        warmup: 0,
        curves: None,
        start: DiskStart::Zero,
        load: Load::Requests,
        part: Part::default(),
        seed: 42,
        available: None,
    };
    replay(&request, Hooks::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// What a replay claims of a difference between its policies.
fn differences(replay: &piebald_report::Replay) -> Vec<String> {
    let json = piebald_report::replay_to_json(replay).expect("JSON");
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let findings = json["findings"].as_array().expect("findings").iter();
    findings
        .filter(|finding| finding["shown"] == true)
        .map(|f| f["claim"].to_string())
        .collect()
}

/// Numbers below a bound.
fn draws(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
        (state >> 33) % below
    }
}

/// A trace that reads these pages.
fn requests(pages: &[u64]) -> String {
    let line = |(at, page): (usize, &u64)| format!("0,{},4096,R,{at}.0\n", page * 8);
    pages.iter().enumerate().map(line).collect()
}

#[test]
fn replays_in_which_only_noise_happens_claim_nothing() {
    let claims = noise();
    assert!(claims.len() <= FALSE_CLAIMS, "{claims:#?}");
}

/// What replays claim in which each request is for any page: no policy is better than another, and each run has
/// other luck.
fn noise() -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.spc");
    let mut draw = draws(11);
    let mut claims = Vec::new();
    for _ in 0..CONTROLS {
        let pages: Vec<u64> = (0..2_000).map(|_| draw(400)).collect();
        std::fs::write(&path, requests(&pages)).expect("written");
        let told = differences(&replayed(&path, &["fifo", "lru", "clock"], 200));
        if !told.is_empty() {
            claims.push(told);
        }
    }
    claims
}

/// The same of few requests, of which a handful miss more or less.
#[test]
fn short_replays_in_which_only_noise_happens_claim_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.spc");
    let policies = ["lru", "fifo", "clock", "sieve", "arc", "lirs", "2q"];
    let mut draw = draws(13);
    for length in [60, 100, 300] {
        let mut claims = Vec::new();
        for _ in 0..CONTROLS {
            let pages: Vec<u64> = (0..length).map(|_| draw(50)).collect();
            std::fs::write(&path, requests(&pages)).expect("written");
            let sizes = [10, 20, 40];
            let told = differences(&replayed_on(DeviceChoice::None, &path, &policies, &sizes));
            if !told.is_empty() {
                claims.push(told);
            }
        }
        assert!(claims.len() <= FALSE_CLAIMS, "{length}: {claims:#?}");
    }
}

#[test]
fn replays_in_which_no_policy_can_do_better_claim_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.spc");
    let policies = ["lru", "clock", "arc", "dulo", "lirs", "s3-fifo"];
    let mut draw = draws(5);
    let write = |pages: &[u64]| std::fs::write(&path, requests(pages)).expect("written");
    let mut claims = Vec::new();
    for control in 0..CONTROLS {
        // Half of them fit into memory, half never come back to a page.
        let pages: Vec<u64> = match control % 2 {
            0 => (0..300).map(|_| draw(90)).collect(),
            _ => (0..300).map(|at| 17 * at + draw(17)).collect(),
        };
        write(&pages);
        claims.extend(differences(&replayed(&path, &policies, 100)));
    }
    assert!(claims.len() <= FALSE_CLAIMS, "{claims:#?}");
    // Where something can happen it is told: a loop that is a little longer than memory.
    let round: Vec<u64> = (0..1_200).map(|at| at % 120).collect();
    write(&round);
    assert!(!differences(&replayed(&path, &policies, 100)).is_empty());
}
