//! What a replay may say of two runs that differ now and then.

use piebald_report::{
    ReplayParts, TableStyle, replay_to_csv, replay_to_html, replay_to_json, replay_to_table,
};

use super::replay::{pair, sentences};

/// Requests that are as many take no longer by themselves.
#[test]
fn what_goes_with_a_longer_time_must_account_for_it() {
    let mut replay = pair([300, 400], [12.0, 10.0]);
    for run in &mut replay.runs {
        run.io.as_mut().expect("a disk").read_requests = 100;
    }
    let text = sentences(&replay);
    assert!(text.contains("takes 20 % more time.\n"), "{text}");
}

/// `arc` has fewer misses than `lru` and takes more time, both in one part of six.
#[test]
fn an_order_that_may_be_chance_is_no_agreement_everywhere() {
    let agreement = "the one with fewer misses also takes less time";
    let mut replay = pair([300, 402], [10.2, 12.0]);
    let mut third = replay.runs[0].clone();
    third.policy = "arc".to_owned();
    third.misses = 280;
    third.io.as_mut().expect("a disk").elapsed_s = 11.2;
    let mut about = replay.policies[0].clone();
    about.name.clone_from(&third.policy);
    let parts = [
        ([50; 6], [1700; 6]),
        ([67; 6], [2000; 6]),
        (
            [30, 50, 50, 50, 50, 50],
            [2700, 1700, 1700, 1700, 1700, 1700],
        ),
    ];
    replay.policies.push(about);
    replay.runs.push(third);
    for (run, (misses, ms)) in replay.runs.iter_mut().zip(parts) {
        run.parts = Some(ReplayParts {
            misses: misses.to_vec(),
            requests: misses.to_vec(),
            time_ps: ms.map(|ms| ms * 1_000_000_000).to_vec(),
            ..ReplayParts::default()
        });
    }
    let text = sentences(&replay);
    let unsure = format!(
        "in time, beyond chance in both, {agreement}; in one pair of runs it takes more, which may be \
         chance."
    );
    assert!(text.contains(&unsure), "{text}");
    replay.policies.truncate(2);
    replay.runs.truncate(2);
    let text = sentences(&replay);
    assert!(text.contains(&format!("in time, {agreement}.")), "{text}");
}

/// Tables, page and CSV mark what the sentences do not claim, and no number is the best of those that are not
/// told from it.
#[test]
fn numbers_that_may_be_chance_are_marked_in_every_output() {
    let with = |times: [[u64; 6]; 2]| {
        let mut replay = pair([300, 270], [12.0, 10.8]);
        for (run, times) in replay.runs.iter_mut().zip(times) {
            let misses = times.map(|time| time * run.misses / times.iter().sum::<u64>());
            run.parts = Some(ReplayParts {
                misses: misses.to_vec(),
                requests: times.to_vec(),
                time_ps: times.map(|t| t * 1_000_000_000_000).to_vec(),
                ..ReplayParts::default()
            });
        }
        let csv = replay_to_csv(&replay).expect("CSV");
        let mut lines = csv.lines();
        let names: Vec<&str> = lines.next().expect("a head").split(',').collect();
        let last: Vec<&str> = lines.next_back().expect("a run").split(',').collect();
        let field = |name: &str| {
            let at = names.iter().position(|n| *n == name).expect("a field");
            last[at].to_owned()
        };
        let told = ["time_verdict", "misses_verdict"].map(field);
        let table = replay_to_table(&replay, &TableStyle::default());
        let html = replay_to_html(&replay).expect("HTML");
        let marked = [&table, &html].map(|text| text.contains("-10.0 (a)"));
        let explained = [&table, &html].map(|text| text.contains("(a): it may be chance"));
        assert_eq!(explained, marked);
        (told, marked, html.matches("class=\"best\"").count())
    };
    let told = |word: &str| [word; 2].map(str::to_owned);
    let sure = with([[20, 21, 20, 19, 21, 19], [18, 19, 18, 17, 19, 17]]);
    assert_eq!(sure, (told("shown"), [false; 2], 2));
    let chance = with([[20, 21, 20, 19, 21, 19], [22, 22, 22, 20, 4, 18]]);
    assert_eq!(chance, (told("may be chance"), [true; 2], 0));
}

/// The same totals, evenly over the trace and by one part of it.
#[test]
fn a_difference_that_one_part_makes_may_be_chance() {
    let with = |times: [[u64; 6]; 2]| {
        let mut replay = pair([300, 300], [12.0, 10.8]);
        for (run, times) in replay.runs.iter_mut().zip(times) {
            run.parts = Some(ReplayParts {
                misses: vec![50; 6],
                requests: times.to_vec(),
                time_ps: times.map(|t| t * 1_000_000_000_000).to_vec(),
                ..ReplayParts::default()
            });
        }
        let json = replay_to_json(&replay).expect("JSON");
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let findings = json["findings"].as_array().expect("findings").clone();
        let of = |question: &str| {
            let found = findings.iter().rfind(|f| f["question"] == question);
            found.cloned().expect("a finding")
        };
        (of("best"), of("time"))
    };
    let (best, time) = with([[20, 21, 20, 19, 21, 19], [18, 19, 18, 17, 19, 17]]);
    assert_eq!(
        (&best["shown"], &time["shown"]),
        (&true.into(), &true.into())
    );
    assert_eq!(
        (&best["policy"], &time["policy"]),
        (&"dulo".into(), &"dulo".into())
    );
    let effect = best["effect"].as_f64().expect("a change");
    assert!(best["n"] == 6 && (effect + 0.1).abs() < 1e-12, "{best}");
    let (best, time) = with([[20, 21, 20, 19, 21, 19], [22, 22, 22, 20, 4, 18]]);
    assert_eq!(
        (&best["shown"], &time["shown"]),
        (&false.into(), &false.into())
    );
    let claim = time["claim"].as_str().expect("a sentence");
    assert!(
        claim.contains("10 % less time at 4MiB (may be chance)"),
        "{claim}"
    );
    let claim = best["claim"].as_str().expect("a sentence");
    assert!(
        claim.ends_with("Least time: no difference beyond chance at 4MiB."),
        "{claim}"
    );
    let ends: Vec<f64> = serde_json::from_value(time["ci95"].clone()).expect("an interval");
    assert!(ends[0] < -0.1 && ends[1] > 0.0, "{ends:?}");
}
