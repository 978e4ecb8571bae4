//! Colours that a study is sure to use up are told before its first run.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::kit::parse;
use piebald_lab::{Hooks, StudyError, prepare, study};

/// A colour of 192 MiB has 12 MiB, of which 40 % are free in aged memory.
fn text(program: &str, memory: &str) -> String {
    format!(
        "schema = 1\nrepetitions = 1\nbudget_refs = \"100k\"\nwarmup_refs = \"10k\"\n\
         [machine]\npreset = \"w3540\"\nmemory = \"192MiB\"\n[output]\nset_map = 0\n\
         [[program]]\nname = \"large\"\n{program}\ncores = \"0\"\ncolors = \"3\"\n\
         [[policy]]\nname = \"stock\"\nmemory = \"fresh\"\n\
         [[policy]]\nname = \"colors\"\nframes = \"rainbow\"\nmemory = \"{memory}\"\n"
    )
}

/// How a study ends, and how many references it has made.
fn outcome(text: &str) -> (Result<piebald_report::Study, StudyError>, u64) {
    let scenario = parse(text).expect("a scenario");
    let inputs = prepare(&scenario, &|_, _| Err("nothing is recorded".to_owned()));
    let inputs = inputs.expect("inputs");
    let refs = AtomicU64::new(0);
    let progress = |done: u64, _: u64| {
        refs.fetch_max(done, Ordering::Relaxed);
    };
    let hooks = Hooks {
        progress: Some(&progress),
        ..Hooks::default()
    };
    let result = study(&scenario, &inputs, hooks);
    (result, refs.load(Ordering::Relaxed))
}

#[test]
fn a_program_that_needs_more_than_its_color_has_is_refused_before_anything_runs() {
    // Three arrays of 5 MiB in all are more than the 4.8 MiB that are free, and less than the 12 MiB
    // of fresh memory.
    for (builtin, memory, needed) in [
        ("builtin = \"triad:16MiB\"", "fresh", 4096),
        ("builtin = \"triad:8MiB\"", "aged", 2048),
    ] {
        let (result, refs) = outcome(&text(builtin, memory));
        let error = result.expect_err("a limit");
        assert_eq!(refs, 0, "nothing is run");
        let StudyError::Colors { needed: found, .. } = &error else {
            panic!("{error}");
        };
        assert!((needed..needed + needed / 16).contains(found), "{found}");
        let said = error.to_string();
        let mut parts = vec![
            "policy \"colors\": program \"large\": its colors 3 would be used up".to_owned(),
            format!("it needs {found} frames"),
            "of their 3072 frames".to_owned(),
            "on_limit = \"swap\"".to_owned(),
        ];
        if memory == "aged" {
            parts.push("in use before the run".to_owned());
        }
        for part in parts {
            assert!(said.contains(&part), "{part}: {said}");
        }
    }
}

#[test]
fn what_fits_or_may_leave_memory_is_run() {
    let fits = text("builtin = \"triad:8MiB\"", "fresh");
    let swaps = text("builtin = \"triad:16MiB\"\non_limit = \"swap\"", "fresh");
    let borrows = text("builtin = \"triad:16MiB\"\nmode = \"hint\"", "fresh");
    for text in [fits, swaps, borrows] {
        let (result, refs) = outcome(&text);
        let study = result.unwrap_or_else(|e| panic!("{e}:\n{text}"));
        assert!(study.complete && refs > 100_000, "{refs}");
        assert!(
            !study.warnings.join("\n").contains("used up"),
            "{:?}",
            study.warnings
        );
    }
}

#[test]
fn a_part_of_a_large_program_is_judged_by_what_it_touches() {
    // The scan is far larger than its colour, but the study ends long before it has read that much.
    let small = text("builtin = \"scan:64MiB\"", "fresh");
    let scenario = parse(&small).expect("a scenario");
    let stop = AtomicBool::new(true);
    let inputs = prepare(&scenario, &|_, _| Err(String::new())).expect("inputs");
    let hooks = Hooks {
        stop: Some(&stop),
        ..Hooks::default()
    };
    let stopped = study(&scenario, &inputs, hooks).expect_err("stopped at once");
    assert!(matches!(stopped, StudyError::Nothing), "{stopped}");
    let (result, _) = outcome(&small);
    let error = result.err().map(|e| e.to_string()).unwrap_or_default();
    // 110,000 references of 8 B are 215 pages of 4 KiB.
    assert_eq!(error, "", "a scan reads its first megabyte");
}
