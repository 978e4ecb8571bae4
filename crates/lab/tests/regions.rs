//! Studies in which regions stand for programs.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use piebald_lab::{Hooks, prepare, scenario::Scenario, study};
use piebald_report::{ProgramResult, RegionFigures, RegionSet, Study, from_json, to_json};

const HEAD: &str = "schema = 1\nrepetitions = 2\nbudget_refs = \"100k\"\nwarmup_refs = \"40k\"\n\
                    [machine]\npreset = \"w3540\"\nmemory = \"768MiB\"\n";
const SCAN: &str =
    "[[program]]\nname = \"scan\"\nbuiltin = \"scan:32MiB\"\ncores = \"1\"\nrole = \"polluter\"\n";

/// Sorts runs, then merges them: phases that differ, larger than the last level.
fn sort(regions: &str) -> String {
    format!(
        "[[program]]\nname = \"sort\"\nbuiltin = \"mergesort:6MiB\"\ncores = \"0\"\n\
         role = \"target\"\n{regions}\n"
    )
}

fn scenario(text: &str) -> Scenario {
    let text = format!("{HEAD}{text}");
    Scenario::parse(&text, Path::new("regions.toml")).unwrap_or_else(|e| panic!("{e}"))
}

fn no_recorder(words: &[String], _: u64) -> Result<PathBuf, String> {
    Err(format!("{words:?} is not to be recorded"))
}

fn run(scenario: &Scenario) -> Study {
    let inputs = prepare(scenario, &no_recorder).unwrap_or_else(|e| panic!("{e}"));
    let most = AtomicU64::new(0);
    let progress = |done: u64, planned: u64| {
        assert!(done <= planned);
        most.fetch_max(done, Ordering::Relaxed);
    };
    let hooks = Hooks {
        stop: None,
        progress: Some(&progress),
        ..Hooks::default()
    };
    let study = study(scenario, &inputs, hooks).unwrap_or_else(|e| panic!("{e}"));
    assert!(most.load(Ordering::Relaxed) > 0);
    study
}

fn program<'a>(study: &'a Study, name: &str) -> &'a ProgramResult {
    let programs = &study.policies[0].programs;
    programs.iter().find(|p| p.name == name).expect(name)
}

fn set(program: &ProgramResult) -> &RegionSet {
    program.regions.as_ref().expect("regions")
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

#[test]
fn results_are_the_weighted_regions() {
    let study = run(&scenario(&format!(
        "[output]\nset_map = 5\n{}{SCAN}",
        sort("regions = { max = 4, check = true }")
    )));
    let sort = program(&study, "sort");
    let set = set(sort);
    assert!((2..=4).contains(&set.regions.len()), "{set:?}");
    let weights: f64 = set.regions.iter().map(|r| r.weight).sum();
    assert!((weights - 1.0).abs() < 1e-9);
    assert!(set.regions.is_sorted_by_key(|r| r.start));
    assert!(set.coverage > 0.0 && set.coverage < 0.2, "{}", set.coverage);
    for region in &set.regions {
        assert!(region.instructions >= set.interval, "{region:?}");
        assert!(region.refs > 1000 && region.warmup_refs > 0, "{region:?}");
    }
    let together = sort.together.as_ref().expect("together");
    for repetition in 0..2 {
        for beside in [false, true] {
            let metrics = if beside { together } else { &sort.alone };
            let figures = set.regions.iter().map(|r| match beside {
                true => (r.weight, r.together.as_ref().expect("together")),
                false => (r.weight, &r.alone),
            });
            // Weighted by instructions, the kernel's included, of which first touches of the
            // sort's second buffer make many in some regions.
            let within = |found: f64, of: &dyn Fn(&RegionFigures) -> f64| {
                let all: Vec<f64> = figures.clone().map(|(_, f)| of(f)).collect();
                let low = all.iter().copied().fold(f64::INFINITY, f64::min);
                let high = all.iter().copied().fold(0.0, f64::max);
                assert!(low < found && found < high, "{found} {all:?}");
                let plain: f64 = figures.clone().map(|(w, f)| w * of(f)).sum();
                assert!((found / plain - 1.0).abs() < 0.5, "{found} {plain}");
            };
            let found = 1.0 / metrics.ipc.values[repetition];
            within(found, &|f| f.cpi.values[repetition]);
            let found = metrics.mpki[2].mpki.values[repetition];
            within(found, &|f| f.last_level_mpki.values[repetition]);
            let cycles = metrics.time_ps.values[repetition] * 1e-12 * 2.93e9;
            let instrs = metrics.instructions.values[repetition];
            assert!((cycles / instrs * metrics.ipc.values[repetition] - 1.0).abs() < 0.01);
            let share = instrs / set.instructions as f64;
            assert!((0.99..3.0).contains(&share), "{share}");
        }
    }
    let slowdown = sort.slowdown.as_ref().expect("slowdown");
    assert!(slowdown.n() == 2 && slowdown.mean > 0.0, "{slowdown:?}");
    // Company is measured as it is, and is what it is without regions.
    let scan = program(&study, "scan");
    assert!(scan.regions.is_none() && scan.together.is_some());
    let place = study.set_maps[0].place.as_deref().unwrap_or_default();
    assert!(
        place.starts_with("region ") && place.ends_with(" of sort"),
        "{place}"
    );
    assert!(study.notes[0].contains("sort: ") && study.notes[0].contains("regions of"));
}

#[test]
fn the_error_is_that_of_a_run_of_everything() {
    let both = |regions: &str| {
        run(&scenario(&format!(
            "[output]\nset_map = 0\n{}",
            sort(regions)
        )))
    };
    let checked = both("regions = { max = 4, check = true }");
    let check = set(program(&checked, "sort")).check.as_ref();
    let check = check.expect("checked");
    assert_eq!(check.last_level, "L3");
    assert!(close(
        check.cpi_error,
        check.regions_cpi / check.whole_cpi - 1.0
    ));
    assert!(check.cpi_error.abs() < 0.15, "{check:?}");
    // Ten budgets are what a built-in program is recorded for.
    assert!(
        (950_000..1_400_000).contains(&check.whole_refs),
        "{check:?}"
    );
    let ipc = &program(&checked, "sort").alone.ipc.values[0];
    assert!(close(check.regions_cpi, 1.0 / ipc));
    assert!(checked.notes.iter().any(|n| n.contains("instead of")));
    let unchecked = both("regions = { max = 4, check = false }");
    assert!(set(program(&unchecked, "sort")).check.is_none());
    assert!(
        unchecked
            .notes
            .iter()
            .any(|n| n.contains("was not measured"))
    );
    assert!(unchecked.simulated_refs + 900_000 < checked.simulated_refs);
    // Checking changes nothing else.
    assert_eq!(
        program(&checked, "sort").alone,
        program(&unchecked, "sort").alone
    );
}

#[test]
fn regions_of_a_steady_program_give_what_the_program_gives() {
    let chase = |regions: &str| {
        let text = format!(
            "[output]\nset_map = 0\nmiss_curve = 2\n[[program]]\nname = \"chase\"\n\
             builtin = \"chase:512KiB\"\ncores = \"0\"\n{regions}\n{SCAN}"
        );
        run(&scenario(&text))
    };
    let (whole, parts) = (chase(""), chase("regions = \"auto\""));
    let (a, b) = (program(&whole, "chase"), program(&parts, "chase"));
    let near = |x: f64, y: f64| assert!((x / y - 1.0).abs() < 0.1, "{x} {y}");
    near(a.alone.ipc.mean, b.alone.ipc.mean);
    near(
        a.together.as_ref().expect("together").ipc.mean,
        b.together.as_ref().expect("together").ipc.mean,
    );
    near(a.alone.mpki[0].mpki.mean, b.alone.mpki[0].mpki.mean);
    near(a.alone.pages.mean, b.alone.pages.mean);
    assert_eq!(parts.curves[0].points.len(), whole.curves[0].points.len());
    assert_eq!(set(b).regions.len(), 1, "{:?}", b.regions);
}

#[test]
fn results_depend_on_the_seed_only_and_company_with_regions_runs_beside() {
    let text = format!(
        "[output]\nset_map = 0\n{}[[program]]\nname = \"small\"\nbuiltin = \"mergesort:256KiB\"\n\
         cores = \"2\"\nregions = 2\n",
        sort("regions = 3")
    );
    let s = scenario(&text);
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let mut study = pool.expect("pool").install(|| run(&s));
        study.host_seconds = 0.0;
        to_json(&study).expect("JSON")
    };
    let one = on(1);
    // As text: a number that does not exist equals itself there.
    assert!(one == on(3), "threads change the results");
    let one = from_json(&one).expect("a study");
    for name in ["sort", "small"] {
        let p = program(&one, name);
        assert!(p.slowdown.as_ref().is_some_and(|s| s.n() == 2), "{name}");
        for region in &set(p).regions {
            assert!(
                region.slowdown.as_ref().is_some_and(|s| s.n() == 2),
                "{name}"
            );
        }
    }
}

#[test]
fn programs_that_have_no_regions_are_refused_with_their_line() {
    let refused = |program: &str| {
        let s = scenario(&format!("[[program]]\ncores = \"0\"\n{program}\n"));
        match prepare(&s, &no_recorder) {
            Ok(_) => panic!("{program}"),
            Err(error) => error.to_string(),
        }
    };
    for (program, parts) in [
        (
            "builtin = \"triad:1MiB,threads=2\"\nregions = 4",
            ["2 threads", "allowed: recordings of one thread"],
        ),
        (
            "builtin = \"scan:1MiB,iterations=1\"\nregions = { interval = \"1G\" }",
            [
                "less than one interval of 1000000000",
                "allowed: a shorter interval",
            ],
        ),
    ] {
        let error = refused(program);
        assert!(error.starts_with("regions.toml:8: program[0]: "), "{error}");
        for part in parts {
            assert!(error.contains(part), "{error}");
        }
    }
}
