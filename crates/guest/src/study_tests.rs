//! Counters in, figures out.

use std::path::Path;

use piebald_qemu::system::results::LevelCounts;

use super::*;

fn scenario() -> Scenario {
    let text = r#"
        schema = 1
        repetitions = 2
        [machine]
        preset = "w3540"
        [[program]]
        name = "sort"
        command = ["mergesort", "1000", "1"]
        vcpu = 1
        [[program]]
        name = "scan"
        command = ["scan", "/data/text", "9"]
        vcpu = 0
        role = "polluter"
        [[policy]]
        name = "stock"
    "#;
    Scenario::parse(text, Path::new("guest.toml")).expect("is good")
}

fn counts(instructions: u64, time_ps: u64, misses: u64) -> VcpuCounts {
    let level = LevelCounts {
        accesses: 10 * misses,
        misses,
    };
    VcpuCounts {
        instructions,
        references: instructions / 3,
        time_ps,
        levels: vec![level; 3],
        memory_reads: misses,
        row_hits: misses / 4,
        row_closed: 0,
        row_conflicts: misses - misses / 4,
        ..VcpuCounts::default()
    }
}

fn seen(of_sort: VcpuCounts) -> Seen {
    Seen {
        vcpus: vec![counts(500, 1000, 4), of_sort],
        runs: Vec::new(),
        outcome: outcome(),
    }
}

pub(crate) fn outcome() -> Outcome {
    Outcome {
        results: results(),
        frames: Default::default(),
    }
}

pub(crate) fn results() -> Results {
    Results {
        schema: 1,
        machine: "w3540".into(),
        features: Vec::new(),
        levels: Vec::new(),
        quantum: 1000,
        memory: 1 << 30,
        complete: true,
        work: Default::default(),
        dumps: Vec::new(),
        regions: Vec::new(),
        last_levels: Vec::new(),
    }
}

#[test]
fn figures_are_those_of_the_programs_own_processor() {
    let scenario = scenario();
    let boot = |planned: &Planned| {
        let (time_ps, misses) = if planned.together {
            (1_500_000_000, 9000)
        } else {
            (1_000_000_000, 40)
        };
        Ok(seen(counts(1_000_000, time_ps, misses)))
    };
    let study = run_with(&scenario, Hooks::default(), &boot).expect("runs");
    assert!(study.complete && !study.machine.lines.is_empty());
    let [sort, scan] = &study.policies[0].programs[..] else {
        panic!("two programs");
    };
    assert_eq!(sort.slowdown.as_ref().map(|s| s.mean), Some(0.5));
    let together = sort.together.as_ref().expect("was run together");
    assert_eq!(together.mpki.len(), 3);
    assert_eq!(together.mpki[2].level, "L3");
    assert_eq!(together.mpki[2].mpki.mean, 9.0);
    assert_eq!(together.extra[0].value.mean, 9000.0);
    assert_eq!(sort.alone.extra[0].value.mean, 40.0);
    assert_eq!(together.row_hit_rate.as_ref().map(|r| r.mean), Some(0.25));
    // 1 M instructions in 1 ms at 2.93 GHz.
    assert!((sort.alone.ipc.mean - 1e6 / 2.93e6).abs() < 1e-9);
    assert!(scan.slowdown.is_none(), "its work is not fixed");
    assert!(!scan.alone.time_ps.is_known());
    let unknown = [&together.pages, &together.huge_pages, &together.faults];
    assert!(unknown.iter().all(|u| u.n() == 0), "only a kernel can tell");
    let scanned = scan.together.as_ref().expect("was there");
    assert_eq!(scanned.instructions.mean, 500.0);
}

#[test]
fn runs_are_what_came_between_two_writes_of_the_region() {
    let dump = |region, instructions, time_ps, misses| piebald_qemu::system::results::Dump {
        region,
        vcpus: vec![counts(7, 7, 7), counts(instructions, time_ps, misses)],
    };
    let mut outcome = outcome();
    let dumps = &mut outcome.results.dumps;
    *dumps = vec![
        dump(1, 1_000_000, 1_000_000_000, 5),
        dump(2, 9, 9, 9),
        dump(1, 2_000_000, 4_000_000_000, 6),
        dump(1, 3_000_000, 5_000_000_000, 90),
    ];
    let told = ["total", "sharing", "others", "dying", "pinned", "kernel"];
    let numbers = [100, 0, 7, 0, 0, 30];
    outcome.frames = told.map(str::to_owned).into_iter().zip(numbers).collect();
    assert!(check(&outcome, true).is_ok());
    let scenario = scenario();
    let boot = |_: &Planned| Seen::of(outcome.clone());
    let study = run_with(&scenario, Hooks::default(), &boot).expect("runs");
    let [sort, scan] = &study.policies[0].programs[..] else {
        panic!("two programs");
    };
    let extra = |name: &str| {
        let mut all = sort.alone.extra.iter();
        all.find(|extra| extra.name == name)
            .map(|extra| extra.value.mean)
    };
    assert_eq!(sort.alone.instructions.mean, 3e6);
    assert_eq!(extra("runs"), Some(3.0));
    assert_eq!(extra("time of the slowest run"), Some(3.0));
    assert_eq!(extra("last-level misses of the worst run"), Some(84.0));
    assert_eq!(extra("frames of its colors"), Some(100.0));
    assert_eq!(extra("frames of others in its colors"), Some(7.0));
    assert!(scan.alone.extra.is_empty());

    let mut torn = outcome.clone();
    torn.frames.remove("others");
    assert!(check(&torn, false).is_ok(), "it has no colors");
    let error = check(&torn, true).expect_err("it has").to_string();
    let says = "the guest did not tell \"others\" of the frames of the target's colors";
    assert_eq!(error, format!("the plugin's results: {says}"));

    outcome.results.dumps.push(dump(1, 10, 10, 10));
    assert!(check(&outcome, false).is_err(), "it is not kept");
    let error = Seen::of(outcome).err().expect("it was cleared").to_string();
    assert_eq!(
        error,
        "the plugin's results: region 1 was cleared between two runs"
    );
}

#[test]
fn every_policy_repetition_and_phase_is_a_boot() {
    let mut scenario = scenario();
    assert_eq!(planned(&scenario).len(), 4);
    scenario
        .experiment
        .policy
        .push(scenario.policies()[0].clone());
    assert_eq!(planned(&scenario).len(), 8);
    scenario.experiment.program.truncate(1);
    assert_eq!(planned(&scenario).len(), 4);
}

#[test]
fn a_region_that_was_not_written_is_an_error() {
    let mut results = results();
    let error = region(&results).expect_err("no dump").to_string();
    assert!(error.contains("region 1"), "{error}");
    let dump = |region, n| piebald_qemu::system::results::Dump {
        region,
        vcpus: vec![counts(n, 1, 0)],
    };
    results.dumps = vec![dump(1, 5), dump(1, 7), dump(2, 9)];
    let last = region(&results).expect("the last of region 1");
    assert_eq!(last[0].instructions, 7);
}

/// With a second policy.
fn two_policies() -> Scenario {
    let mut scenario = scenario();
    let mut other = scenario.policies()[0].clone();
    other.name = "other".into();
    scenario.experiment.policy.push(other);
    scenario
}

#[test]
fn a_policy_that_fails_takes_nothing_from_the_others() {
    let scenario = two_policies();
    for fails_in in [0, 1] {
        let asked = std::sync::Mutex::new(0);
        let boot = |planned: &Planned| {
            *asked.lock().expect("nobody panicked") += 1;
            let fails = planned.policy == 0 && planned.together && planned.repetition == fails_in;
            if fails {
                return Err(BootError::Results("it is gone".into()));
            }
            Ok(seen(counts(500, 1000, 4)))
        };
        let study = run_with(&scenario, Hooks::default(), &boot).expect("the other policy ran");
        assert!(!study.complete);
        let told = format!(
            "stock, together, repetition {}: the plugin's results: it is gone; {}",
            fails_in + 1,
            [
                "this policy is left out",
                "of this policy, the first of 2 repetitions is shown"
            ][fails_in as usize]
        );
        assert!(study.warnings.contains(&told), "{:?}", study.warnings);
        // Alone and together are of the same repetitions.
        let shown = study.policies.iter().map(|policy| {
            let sort = &policy.programs[0];
            let together = sort.together.as_ref().map_or(0, |t| t.instructions.n());
            (&*policy.name, sort.alone.instructions.n(), together)
        });
        let shown: Vec<(&str, usize, usize)> = shown.collect();
        let other = ("other", 2, 2);
        if fails_in == 0 {
            assert_eq!(shown, [other]);
            // Alone and together, and the other twice; the one that failed is not asked again.
            assert_eq!(asked.into_inner().expect("nobody panicked"), 6);
        } else {
            assert_eq!(shown, [("stock", 1, 1), other]);
        }
    }
}

#[test]
fn an_end_leaves_the_repetitions_that_are_whole() {
    let scenario = two_policies();
    // Of two policies, twice alone and together: how many boots, and what is left of them.
    for (boots, left) in [
        (1, &[][..]),
        (3, &[("stock", 1)]),
        (7, &[("stock", 2), ("other", 1)]),
    ] {
        let stop = AtomicBool::new(false);
        let begun = std::sync::atomic::AtomicUsize::new(0);
        let boot = |_: &Planned| {
            if begun.fetch_add(1, Relaxed) == boots {
                stop.store(true, Relaxed);
                return Err(BootError::Results("killed as well".into()));
            }
            Ok(seen(counts(500, 1000, 4)))
        };
        let hooks = Hooks {
            stop: Some(&stop),
            ..Hooks::default()
        };
        let study = run_with(&scenario, hooks, &boot);
        if left.is_empty() {
            let error = study.expect_err("nothing is whole").to_string();
            assert!(error.contains("nothing to report"), "{error}");
            continue;
        }
        let study = study.expect("something is whole");
        assert!(!study.complete);
        let shown = study.policies.iter();
        let shown = shown.map(|p| (&*p.name, p.programs[0].alone.instructions.n()));
        assert_eq!(shown.collect::<Vec<_>>(), left);
        let told = study.warnings.iter().any(|w| {
            w == "other: stopped before a repetition of it was complete; this policy is left out"
        });
        assert_eq!(told, left.len() == 1, "{:?}", study.warnings);
    }
}

#[test]
fn guests_that_run_at_once_give_what_they_give_in_turn() {
    let scenario = two_policies();
    let told = std::sync::Mutex::new(Vec::new());
    let boot = |planned: &Planned| {
        // The later ones end first.
        let wait = 20 * u64::from(planned.policy == 0) + 10 * u64::from(!planned.together);
        std::thread::sleep(std::time::Duration::from_millis(wait));
        let misses = 8 * u64::from(planned.repetition)
            + 4 * u64::from(planned.together)
            + planned.policy as u64
            + 5;
        Ok(seen(counts(500, 1000 + misses, misses)))
    };
    let progress = |what: &str, number: u64, all: u64| {
        assert_eq!(all, 8);
        let mut told = told.lock().expect("nobody panicked");
        told.push((number, what.to_owned()));
    };
    let with = |at_once| {
        let hooks = Hooks {
            progress: Some(&progress),
            at_once,
            ..Hooks::default()
        };
        let mut study = run_with(&scenario, hooks, &boot).expect("all ran");
        assert!(study.complete);
        study.host_seconds = 0.0;
        study
    };
    let [one, three, many] = [0, 3, 100].map(with);
    assert_eq!(one, three);
    assert_eq!(one, many);
    let mut numbers: Vec<u64> = told.lock().expect("nobody panicked")[8..16]
        .iter()
        .map(|(number, _)| *number)
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..8).collect::<Vec<u64>>());
}

#[test]
fn if_nothing_runs_the_first_failure_is_the_error() {
    let scenario = scenario();
    let boot = |planned: &Planned| {
        let Planned {
            together,
            repetition,
            ..
        } = planned;
        Err(BootError::Results(format!("{together} {repetition}")))
    };
    let error = run_with(&scenario, Hooks::default(), &boot).expect_err("nothing ran");
    assert!(error.to_string().ends_with("false 0"), "{error}");
}
