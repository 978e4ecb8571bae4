//! Small real studies, from the scenario's text to the record of results.

use std::{
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use piebald_lab::{Hooks, StudyError, prepare, scenario::Scenario, study};
use piebald_report::{ProgramResult, Role, Study};

const MACHINE: &str = "[machine]\npreset = \"w3540\"\nmemory = \"768MiB\"\n";

/// Sorts and walks that fit the last level, beside a scan that does not.
const CHASE: &str = "[[program]]\nname = \"chase\"\nbuiltin = \"chase:4MiB\"\ncores = \"0\"\n";
const SORT: &str = "[[program]]\nname = \"sort\"\nbuiltin = \"mergesort:256KiB\"\ncores = \"2\"\n";
const SCAN: &str =
    "[[program]]\nname = \"scan\"\nbuiltin = \"scan:32MiB\"\ncores = \"1\"\nrole = \"polluter\"\n";

fn parse(head: &str, rest: &str) -> Result<Scenario, String> {
    let text = format!("schema = 1\n{head}\n{MACHINE}{rest}");
    Scenario::parse(&text, Path::new("small.toml")).map_err(|e| e.to_string())
}

fn scenario(head: &str, rest: &str) -> Scenario {
    parse(head, rest).unwrap_or_else(|e| panic!("{e}"))
}

fn no_recorder(words: &[String], _: u64) -> Result<PathBuf, String> {
    Err(format!("{words:?} is not to be recorded"))
}

fn run_with(scenario: &Scenario, hooks: Hooks<'_>) -> Result<Study, StudyError> {
    let inputs = prepare(scenario, &no_recorder).unwrap_or_else(|e| panic!("{e}"));
    study(scenario, &inputs, hooks)
}

fn run(scenario: &Scenario) -> Study {
    run_with(scenario, Hooks::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// A study in a pool of this many threads, without the time that it took.
fn run_on(threads: usize, scenario: &Scenario) -> Study {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let mut study = pool.expect("pool").install(|| run(scenario));
    assert!(study.host_seconds > 0.0);
    study.host_seconds = 0.0;
    study
}

fn program<'a>(study: &'a Study, policy: usize, name: &str) -> &'a ProgramResult {
    let programs = &study.policies[policy].programs;
    programs.iter().find(|p| p.name == name).expect(name)
}

#[test]
fn a_scan_slows_a_walk_through_the_last_level_down() {
    for features in ["none", "all"] {
        let head = "repetitions = 2\nbudget_refs = \"100k\"\nwarmup_refs = \"70k\"\n";
        let mut s = scenario(head, &format!("[output]\nset_map = 6\n{CHASE}{SCAN}"));
        s.features = features.parse().expect("features");
        let study = run(&s);
        assert!(
            study.complete && study.warnings.is_empty(),
            "{:?}",
            study.warnings
        );
        assert_eq!(study.features.is_empty(), features == "none");
        assert_eq!(study.missing.len(), if features == "none" { 7 } else { 2 });
        let chase = program(&study, 0, "chase");
        let together = chase.together.as_ref().expect("together");
        let slowdown = chase.slowdown.as_ref().expect("slowdown");
        assert_eq!(slowdown.n(), 2);
        assert!(slowdown.mean > 0.04, "{features}: {slowdown:?}");
        assert!(together.ipc.mean < chase.alone.ipc.mean);
        for metrics in [&chase.alone, together] {
            let names: Vec<&str> = metrics.mpki.iter().map(|m| m.level.as_str()).collect();
            assert_eq!(names, ["L1D", "L2", "L3"]);
            for refs in &metrics.refs.values {
                assert!((100_000.0..=100_512.0).contains(refs), "{refs}");
            }
            let inner = metrics.mpki[0].mpki.mean;
            assert!(
                inner >= metrics.mpki[2].mpki.mean && inner > 100.0,
                "{inner}"
            );
            assert!(metrics.pages.mean >= 1024.0, "4 MiB");
            assert_eq!(metrics.huge_pages.mean, 0.0);
            assert_eq!(metrics.tlb_mpki.is_some(), features == "all");
        }
        let l3 = |m: &piebald_report::Metrics| m.mpki[2].mpki.mean;
        assert!(l3(together) > l3(&chase.alone), "{features}");
        assert_eq!(program(&study, 0, "scan").role, Role::Polluter);
        assert!(study.simulated_refs > 2 * 4 * 170_000);
        check_map(&study);
    }
}

fn check_map(study: &Study) {
    let [map] = &study.set_maps[..] else {
        panic!("{} maps", study.set_maps.len());
    };
    assert_eq!((map.cache.as_str(), map.nr_sets), ("L3", 8192));
    assert_eq!(map.owners, ["empty", "kernel", "chase", "scan"]);
    assert!((6..=7).contains(&map.times_ps.len()), "{:?}", map.times_ps);
    assert!(map.times_ps.is_sorted());
    let programs: Vec<&str> = map.speeds.iter().map(|s| s.program.as_str()).collect();
    assert_eq!(programs, ["chase", "scan"]);
    for speed in &map.speeds {
        assert_eq!(speed.instr_per_ns.len(), map.times_ps.len() - 1);
        // No core ends more than four instructions in a cycle.
        let possible = |v: &f64| (1e-4..16.0).contains(v);
        assert!(speed.instr_per_ns.iter().all(possible), "{speed:?}");
    }
    for time in 0..map.times_ps.len() {
        for group in 0..map.nr_groups as usize {
            let share = |owner| map.share(time, group, owner).expect("share");
            let sum: f64 = (0..4).map(share).sum();
            // Each of the four is rounded to 1/255.
            assert!((sum - 1.0).abs() < 2.5 / 255.0, "{time} {group}: {sum}");
            assert!(share(2) > 0.0 || share(3) > 0.0);
        }
    }
}

#[test]
fn results_depend_on_the_seed_and_on_nothing_else() {
    let head = "repetitions = 2\nbudget_refs = \"20k\"\nwarmup_refs = \"5k\"\n";
    let policies =
        "[[policy]]\nname = \"stock\"\n[[policy]]\nname = \"random\"\nframes = \"random\"\n";
    let mut s = scenario(head, &format!("{SORT}{SCAN}{policies}"));
    let one = run_on(1, &s);
    assert_eq!(one, run_on(2, &s));
    assert_eq!(one, run_on(5, &s));
    s.seed += 1;
    let other = run_on(2, &s);
    let times = |study: &Study| {
        let sort = program(study, 1, "sort");
        sort.together
            .as_ref()
            .expect("together")
            .time_ps
            .values
            .clone()
    };
    assert_ne!(times(&one), times(&other));
    // Repetitions differ as well.
    assert_ne!(times(&one)[0], times(&one)[1]);
}

#[test]
fn each_target_meets_the_polluters_alone() {
    let head = "repetitions = 1\nbudget_refs = \"10k\"\nwarmup_refs = \"2k\"\n";
    let programs = format!(
        "{SORT}{SCAN}[[program]]\nname = \"small\"\nbuiltin = \"chase:16KiB\"\ncores = \"2\"\n"
    );
    let beside = |together: &str| {
        let study = run(&scenario(
            &format!("{head}together = \"{together}\""),
            &programs,
        ));
        assert!(study.warnings.iter().any(|w| w.contains("one repetition")));
        ["sort", "scan", "small"].map(|n| program(&study, 0, n).together.is_some())
    };
    assert_eq!(beside("each-target"), [true, false, true]);
    assert_eq!(beside("all"), [true, true, true]);
}

#[test]
fn a_program_without_company_has_no_slowdown() {
    for together in ["all", "each-target"] {
        let head = format!("repetitions = 1\nbudget_refs = \"5k\"\ntogether = \"{together}\"");
        let study = run(&scenario(&head, SORT));
        let sort = program(&study, 0, "sort");
        assert!(sort.together.is_none() && sort.slowdown.is_none());
        assert!(study.set_maps.is_empty());
    }
}

#[test]
fn every_policy_runs() {
    let head = "repetitions = 1\nbudget_refs = \"10k\"\nwarmup_refs = \"2k\"\n";
    let mut policies = String::new();
    for frames in ["stock", "random", "bin-hopping"] {
        for memory in ["fresh", "aged"] {
            for thp in [false, true] {
                policies += &format!(
                    "[[policy]]\nname = \"{frames} {memory} {thp}\"\nframes = \"{frames}\"\n\
                     memory = \"{memory}\"\nthp = {thp}\n"
                );
            }
        }
    }
    let study = run(&scenario(head, &format!("{CHASE}{policies}")));
    assert_eq!(study.policies.len(), 12);
    for (i, policy) in study.policies.iter().enumerate() {
        let chase = program(&study, i, "chase");
        assert!(chase.alone.time_ps.mean > 0.0, "{}", policy.name);
        let huge = chase.alone.huge_pages.mean;
        if policy.name == "stock fresh true" {
            assert!(huge >= 1.0, "{huge}");
        }
        if policy.name.ends_with("false") {
            assert_eq!(huge, 0.0, "{}", policy.name);
        }
        for word in policy.name.split(' ').take(2) {
            let word = word.replace('-', " ");
            assert!(policy.description.contains(&word), "{}", policy.description);
        }
    }
}

#[test]
fn larger_caches_miss_less() {
    let head = "repetitions = 1\nbudget_refs = \"70k\"\nwarmup_refs = \"70k\"\n";
    let study = run(&scenario(
        head,
        &format!("[output]\nmiss_curve = 4\n{CHASE}"),
    ));
    let [curve] = &study.curves[..] else {
        panic!("{} curves", study.curves.len());
    };
    assert_eq!(
        (curve.program.as_str(), curve.cache.as_str()),
        ("chase", "L3")
    );
    let sizes: Vec<u64> = curve.points.iter().map(|p| p.0 >> 20).collect();
    assert_eq!(sizes, [2, 4, 6, 8]);
    for pair in curve.points.windows(2) {
        assert!(pair[1].1 <= pair[0].1 * 1.02 + 1.0, "{:?}", curve.points);
    }
    assert!(
        curve.points[0].1 > 2.0 * curve.points[3].1,
        "{:?}",
        curve.points
    );
}

/// One run counts what each share of the last level would miss, whole colors, and is no other run for that.
#[test]
fn curves_are_counted_in_the_run_alone() {
    let head = "repetitions = 1\nbudget_refs = \"40k\"\nwarmup_refs = \"150k\"\n";
    let with = |curve: &str| {
        let output = format!("[output]\nset_map = 0\nmiss_curve = {curve}\n");
        run(&scenario(head, &format!("{output}{CHASE}{SCAN}")))
    };
    let (plain, counted) = (with("0"), with("true"));
    // Rates of nothing are no numbers, which equal none.
    let same = |study: &Study| format!("{:?}", study.policies);
    assert!(same(&plain) == same(&counted), "it is another run");
    assert!(plain.curves.is_empty());
    let names: Vec<&str> = counted.curves.iter().map(|c| c.program.as_str()).collect();
    assert_eq!(names, ["chase", "scan"]);
    for curve in &counted.curves {
        let parts = curve.points.len() as u64;
        let sizes: Vec<u64> = curve.points.iter().map(|p| p.0).collect();
        let equal: Vec<u64> = (1..=parts).map(|part| (8 << 20) * part / parts).collect();
        assert!(parts.is_power_of_two() && parts >= 16, "{parts}");
        assert_eq!((curve.cache.as_str(), sizes), ("L3", equal));
    }
    let chase = &counted.curves[0].points;
    // All of it is what the run itself had, but for the sample of sets.
    let (least, whole) = (chase[0].1, chase[chase.len() - 1].1);
    let mpki = &counted.policies[0].programs[0].alone.mpki;
    let own = mpki.last().expect("a level").mpki.values[0];
    let is_near = (whole - own).abs() < 0.02 * least;
    assert!(own < 0.02 * least && is_near, "{least} {whole} {own}");
}

#[test]
fn a_stop_keeps_whole_repetitions_and_marks_the_study() {
    let head = "repetitions = 12\nbudget_refs = \"40k\"\nwarmup_refs = \"10k\"\n";
    let s = scenario(head, &format!("[output]\nset_map = 0\n{SORT}{SCAN}"));
    let stop = AtomicBool::new(false);
    let after_some = |done: u64, planned: u64| {
        assert!(done <= planned);
        stop.store(done > planned * 6 / 10, Ordering::Relaxed);
    };
    let hooks = Hooks {
        stop: Some(&stop),
        progress: Some(&after_some),
        ..Hooks::default()
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build();
    let study = pool.expect("pool").install(|| run_with(&s, hooks));
    let study = study.expect("at least one repetition");
    assert!(!study.complete);
    assert_eq!(study.repetitions, 12);
    for name in ["sort", "scan"] {
        let p = program(&study, 0, name);
        let samples = [
            &p.alone.time_ps,
            &p.together.as_ref().expect("together").time_ps,
        ];
        for sample in samples {
            assert!((1..12).contains(&sample.n()), "{name}: {}", sample.n());
        }
        assert_eq!(samples[0].n(), samples[1].n());
    }
}

#[test]
fn progress_counts_set_up_and_company_and_is_full_at_the_end_only() {
    // The scan's set-up is longer than its budget, and it makes several references while the
    // walk makes one.
    let head = "repetitions = 3\nbudget_refs = \"60k\"\nwarmup_refs = \"10k\"\n";
    let s = scenario(head, &format!("[output]\nset_map = 0\n{CHASE}{SCAN}"));
    for threads in [1, 3] {
        let calls = Mutex::new(Vec::new());
        let note = |done: u64, planned: u64| calls.lock().expect("calls").push((done, planned));
        let hooks = Hooks {
            stop: None,
            progress: Some(&note),
            ..Hooks::default()
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let study = pool.expect("pool").install(|| run_with(&s, hooks));
        let all = study.expect("runs").simulated_refs;
        let calls = calls.into_inner().expect("calls");
        let share = |call: &(u64, u64)| call.0 as f64 / call.1 as f64;
        let last = calls.iter().map(|c| c.0).max();
        assert_eq!(last, Some(all));
        assert_eq!(calls.iter().filter(|c| c.0 == c.1).count(), 1, "full once");
        assert!(calls.contains(&(all, all)));
        if threads > 1 {
            continue;
        }
        // Calls come as work is done: most of them long before the end, and what is planned
        // is about what it comes to, long before as well.
        let late = calls.iter().filter(|c| share(c) > 0.9).count();
        assert!(5 * late < 2 * calls.len(), "{late} of {}", calls.len());
        let planned = |part: usize| calls[calls.len() * part / 4].1 as f64 / all as f64;
        assert!((0.5..1.3).contains(&planned(2)), "{}", planned(2));
        assert!((0.9..1.1).contains(&planned(3)), "{}", planned(3));
    }
}

#[test]
fn a_study_stopped_at_once_says_that_there_is_nothing() {
    // A thousand repetitions would take an hour: nothing of them may begin.
    let s = scenario(
        "repetitions = 1000\nbudget_refs = \"10k\"",
        &format!("{SORT}{SCAN}"),
    );
    let stop = AtomicBool::new(true);
    let hooks = Hooks {
        stop: Some(&stop),
        progress: None,
        ..Hooks::default()
    };
    let error = run_with(&s, hooks).expect_err("nothing");
    assert!(matches!(error, StudyError::Nothing), "{error}");
    assert!(error.to_string().contains("nothing to report"));
}

#[test]
fn what_cannot_be_prepared_names_its_table() {
    let refused = |program: &str| {
        let text = format!("[[program]]\nname = \"p\"\ncores = \"0\"\n{program}\n");
        let prepared = parse("", &text)
            .and_then(|s| prepare(&s, &no_recorder).map_err(|error| error.to_string()));
        match prepared {
            Ok(_) => panic!("{program}"),
            Err(error) => error,
        }
    };
    for (program, parts) in [
        ("builtin = \"chaise\"", vec!["\"chaise\"", "chase"]),
        ("builtin = \"chase:1XB\"", vec!["size = \"1XB\"", "allowed"]),
        ("builtin = \"chase:speed=1\"", vec!["\"speed\"", "size"]),
        ("builtin = {}", vec!["\"\" is unknown", "chase"]),
        (
            "builtin = { name = \"stream\", threads = 65 }",
            vec!["\"triad\"", "threads = \"65\"", "1 to 64"],
        ),
        ("recording = \"no-such.pbr\"", vec!["no-such.pbr"]),
        ("recording = \"/dev/null\"", vec!["/dev/null"]),
        (
            "command = [\"x\", \"y\"]",
            vec!["\"x\"", "not to be recorded"],
        ),
    ] {
        let error = refused(program);
        assert!(
            error.starts_with("small.toml:6: program[0]: \"p\": "),
            "{error}"
        );
        for part in parts {
            assert!(error.contains(part), "{program}: {error}");
        }
    }
}

#[test]
fn memory_that_runs_out_names_policy_and_program() {
    let mut s = scenario(
        "repetitions = 1\nbudget_refs = \"1M\"",
        "[[program]]\nname = \"big\"\nbuiltin = \"chase:80MiB\"\ncores = \"0\"\n",
    );
    s.machine.memory.size = "96MiB".parse().expect("size");
    let error = run_with(&s, Hooks::default())
        .expect_err("too small")
        .to_string();
    for part in ["\"stock\"", "\"big\"", "free"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_warm_up_longer_than_the_program_says_what_to_change() {
    let s = scenario(
        "repetitions = 1\nbudget_refs = \"1M\"\nwarmup_refs = \"900k\"",
        "[[program]]\nname = \"brief\"\nbuiltin = \"chase:16KiB,iterations=1\"\ncores = \"0\"\n",
    );
    let error = run_with(&s, Hooks::default())
        .expect_err("too short")
        .to_string();
    assert!(
        error.contains("\"brief\"") && error.contains("warmup_refs"),
        "{error}"
    );
}
