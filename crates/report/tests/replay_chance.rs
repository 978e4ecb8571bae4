//! What a replay may say of two runs that differ now and then.

use piebald_report::{ReplayParts, replay_to_json};

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
