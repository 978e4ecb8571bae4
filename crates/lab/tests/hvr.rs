//! Scenarios whose programs HVR manages: what is refused, and a small one that runs.

use crate::kit;
use piebald_experiment::Frames;
use std::path::Path;

use piebald_lab::scenario::Scenario;
use piebald_policy::hvr::{Class, Framework, Policy};
use piebald_report::{TableStyle, to_html, to_json, to_table};
use piebald_units::Picos;

const GOOD: &str = r#"schema = 1
repetitions = 1
budget_refs = "2M"
warmup_refs = "1k"
alone = "targets"
[machine]
preset = "i7-860"
[output]
set_map = 0
[course]
until_us = 900
every_us = 100
[[program]]
name = "walk"
builtin = "chase:1MiB"
cores = "0"
class = "llch"
[[program]]
name = "sweep"
builtin = "triad:8MiB"
cores = "2"
role = "polluter"
class = "llct"
arrives_us = 200
leaves_us = 700
[[policy]]
name = "hvr"
frames = "hvr"
memory = "fresh"
color_map = ["O 14", "O 15", "C 16", "B 21", "B 22"]
hvr = { framework = "hvr", mode = "hard", time_scale = 1000, reuse_passes = 30 }
"#;

fn parse(text: &str) -> Result<Scenario, String> {
    Scenario::parse(text, Path::new("folder/s.toml")).map_err(|e| e.to_string())
}

#[test]
fn what_a_scenario_says_of_hvr_is_what_runs() {
    let scenario = parse(GOOD).expect("a scenario");
    let policy = &scenario.policies[0];
    assert_eq!(policy.frames, Frames::Hvr);
    let hvr = policy.hvr.expect("its choices");
    assert_eq!(hvr.config.framework, Framework::Hvr);
    assert_eq!(hvr.config.monitor.thresholds.reuse_passes, 30);
    assert_eq!(hvr.sysmon.expect("watched").time_scale, 1000);
    assert!(!hvr.remember, "as in the paper");
    let remembers = GOOD.replace("mode = \"hard\"", "remember = true");
    let policy = &parse(&remembers).expect("a scenario").policies[0];
    assert!(policy.hvr.expect("its choices").remember);
    let sweep = &scenario.programs[1].stay;
    assert_eq!(sweep.class, Some(Class::Llct));
    assert_eq!(sweep.arrives, Some(Picos(200_000_000)));
    let fixed = GOOD.replace("framework = \"hvr\"", "framework = \"c-vp\"");
    let fixed = parse(&fixed).expect("a scenario").policies[0].hvr;
    let framework = fixed.map(|h| h.config.framework);
    assert_eq!(framework, Some(Framework::Fixed(Policy::CVp)));
    // The machine's own colours: bits 13 and 14 index the second level as well.
    let own = GOOD.replace("color_map", "# color_map");
    parse(&own).expect("a map of the machine's");
}

#[test]
fn what_cannot_be_is_refused_with_its_place() {
    let cases = [
        ("class = \"llct\"", "class = \"huge\"", "program[1].class"),
        (
            "leaves_us = 700",
            "leaves_us = 200",
            "later than it arrives",
        ),
        ("leaves_us = 700", "leaves_us = -1", "1 to 60000000"),
        ("until_us = 900", "until_us = 0.0", "course.until_us"),
        (
            "mode = \"hard\"",
            "watch = false, remember = true",
            "remember = true: allowed: false where watch = false",
        ),
        ("every_us = 100", "every_us = 1000", "up to until_us"),
        (
            "every_us = 100",
            "every_us = 100\nwarmup_us = 900",
            "course.warmup_us = 900: allowed: less than until_us",
        ),
        (
            "arrives_us = 200\nleaves_us = 700",
            "arrives_us = 901",
            "arrives_us = 901: allowed: less than course.until_us, 900",
        ),
        (
            "every_us = 100",
            "every_us = 100\nwarmup_us = 800",
            "leaves_us = 700: allowed: more than course.warmup_us, 800",
        ),
        ("every_us = 100", "after_setup = 1", "course.after_setup"),
        (
            "time_scale = 1000",
            "time_scale = 0",
            "policy[0].hvr.time_scale = 0",
        ),
        (
            "framework = \"hvr\"",
            "framework = \"best\"",
            "\"bank-only-4\"",
        ),
        ("mode = \"hard\"", "mood = 1", "`mood`"),
        // No bit of banks alone.
        ("\"B 21\", \"B 22\"", "\"C 21\", \"C 22\"", "policy[0].hvr"),
        (
            "frames = \"hvr\"",
            "frames = \"stock\"",
            "only with frames = \"hvr\"",
        ),
        (
            "[course]\nuntil_us = 900\nevery_us = 100\n",
            "",
            "only with a table [course]",
        ),
    ];
    for (old, new, part) in cases {
        assert!(GOOD.contains(old), "{old}");
        let error = parse(&GOOD.replacen(old, new, 1)).expect_err(new);
        assert!(error.starts_with("folder/s.toml:"), "{error}");
        assert!(error.contains(part), "{new}: {error}");
        let mut lines = error.lines();
        assert!(
            lines.all(|line| line.starts_with("folder/s.toml:")),
            "{error}"
        );
    }
}

#[test]
fn a_program_that_comes_and_goes_shows_in_the_report() {
    let study = kit::run_scenario(&parse(GOOD).expect("a scenario")).expect("runs");
    assert_eq!(
        (study.until_us, study.measured_from_us),
        (Some(900.0), None)
    );
    let course = study.policies[0].course.as_ref().expect("a course");
    let what: Vec<&str> = course.events.iter().map(|e| e.what.as_str()).collect();
    assert_eq!(what, ["walk begins", "sweep begins", "sweep ends"]);
    let with_sweep = &course.events[1];
    assert_eq!(with_sweep.policy, "Curve-VP");
    assert_eq!(with_sweep.programs[1].class.as_deref(), Some("LLCT"));
    assert_eq!(with_sweep.programs[1].nr_colors, 4);
    assert_eq!(course.times_ps.len(), 9);
    let sweep = &course.ipc[1].ipc;
    assert!(sweep[0].is_nan() && sweep[8].is_nan(), "{sweep:?}");
    assert!(sweep[3..6].iter().all(|ipc| *ipc > 0.0), "{sweep:?}");
    assert!(course.ipc[0].ipc.iter().all(|ipc| *ipc > 0.0));
    let counts = &course.counts[1];
    let refs: Vec<f64> = counts.intervals.iter().map(|i| i.refs.mean).collect();
    assert_eq!((refs.len(), refs[0] + refs[8]), (9, 0.0));
    assert!(refs[3..6].iter().all(|refs| *refs > 0.0), "{refs:?}");
    let of = |name: &str| {
        let extra = counts.extra.iter().find(|extra| extra.name == name);
        extra.map_or(f64::NAN, |extra| extra.value.mean)
    };
    let there = of("time held for LLCT");
    assert!((there - 500.0).abs() < 20.0, "{there}");
    assert_eq!(of("time held for LLCH") + of("time without a class"), 0.0);
    assert!(of("pages moved to where they belong") > 0.0);
    let table = to_table(&study, &TableStyle::default());
    assert!(table.contains("sweep begins"), "{table}");
    let html = to_html(&study).expect("a page");
    assert!(html.contains("Programs over time") && html.contains("sweep is LLCT"));
    let again = piebald_report::from_json(&to_json(&study).expect("JSON")).expect("read");
    assert_eq!(
        again.policies[0].course.as_ref().map(|c| c.events.len()),
        Some(3)
    );
}

#[test]
fn programs_can_be_measured_by_time_after_their_set_up_and_not_alone() {
    let text = GOOD
        .replace("alone = \"targets\"", "alone = \"none\"")
        .replace(
            "until_us = 900\nevery_us = 100",
            "until_us = 300\nwarmup_us = 100\nafter_setup = true",
        );
    let text = text.replace("arrives_us = 200\nleaves_us = 700\n", "");
    let study = kit::run_scenario(&parse(&text).expect("a scenario")).expect("runs");
    for program in &study.policies[0].programs {
        assert!(!program.alone.refs.is_known(), "{}", program.name);
        assert_eq!(program.slowdown, None, "{}", program.name);
        let together = program.together.as_ref().expect("together");
        assert_eq!(together.time_ps.mean, 200e6, "{}", program.name);
        assert!(together.refs.mean > 0.0, "{}", program.name);
    }
    let course = study.policies[0].course.as_ref().expect("a course");
    assert_eq!(course.times_ps.last(), Some(&300_000_000));
    let said = "runs of several programs last 300 us after the set-up of all programs, every \
                program is measured from 100 us on, not by references";
    assert!(study.notes.iter().any(|n| n == said), "{:?}", study.notes);
    // Table and page have nothing to show of runs alone, and say so in words at most.
    let table = to_table(&study, &TableStyle::default());
    assert!(!table.contains("NaN"), "{table}");
    assert!(to_html(&study).is_ok());
    // Somebody has to run.
    let sweep = text.find("[[program]]\nname = \"sweep\"").expect("there");
    let policy = text.find("[[policy]]").expect("there");
    let lonely = format!("{}{}", &text[..sweep], &text[policy..]);
    let error = parse(&lonely).expect_err("nothing would run");
    let part = "alone = \"none\": allowed: \"all\" or \"targets\" where";
    assert!(error.contains(part), "{error}");
}

#[test]
fn a_program_that_ends_and_begins_again_is_known_if_the_scenario_says_so() {
    let class_at_its_second_start = |remember: &str| {
        let text = format!(
            r#"schema = 1
repetitions = 1
budget_refs = "12M"
warmup_refs = "1k"
alone = "none"
[machine]
preset = "i7-860"
[course]
until_us = 12000
every_us = 1000
[[program]]
name = "sort"
builtin = "mergesort:64KiB"
cores = "0"
[[program]]
name = "walk"
builtin = "chase:64KiB"
cores = "1"
role = "polluter"
class = "ccf"
[[policy]]
name = "hvr"
frames = "hvr"
memory = "fresh"
color_map = ["O 14", "O 15", "C 16", "B 21", "B 22"]
hvr = {{ time_scale = 10000{remember} }}
"#
        );
        let study = kit::run_scenario(&parse(&text).expect("a scenario")).expect("runs");
        let course = study.policies[0].course.as_ref().expect("a course");
        let mut starts = course.events.iter().filter(|e| e.what == "sort begins");
        let again = starts.nth(1).expect("it begins again");
        let sort = again.programs.iter().find(|p| p.name == "sort");
        sort.expect("it is there").class.clone()
    };
    assert_eq!(class_at_its_second_start(""), None);
    let known = class_at_its_second_start(", remember = true");
    assert_eq!(known.as_deref(), Some("CCF"));
}

#[test]
fn runs_of_one_program_end_by_time_if_the_scenario_says_so() {
    let text = r#"schema = 2
repetitions = 2
budget_refs = "8M"
warmup_refs = "1k"
[machine]
preset = "i7-860"
[output]
set_map = 0
[course]
until_us = 8000
alone = true
[[program]]
name = "walk"
builtin = "chase:64KiB"
cores = "0"
[[policy]]
name = "hvr"
frames = "hvr"
memory = "fresh"
color_map = ["O 14", "O 15", "C 16", "B 21", "B 22"]
hvr = { time_scale = 1000 }
"#;
    let study = kit::run_scenario(&parse(text).expect("a scenario")).expect("runs");
    let policy = &study.policies[0];
    let time = policy.programs[0].alone.time_ps.mean;
    assert!(time > 7900e6 && time <= 8000e6, "{time}");
    let said = "runs last 8000 us, not by references";
    assert!(study.notes.iter().any(|n| n == said), "{:?}", study.notes);
    let course = policy.course.as_ref().expect("a course");
    assert_eq!(course.times_ps.last(), Some(&8_000_000_000));
    let of = |name: &str| -> &[f64] {
        let extra = course.counts[0].extra.iter().find(|e| e.name == name);
        extra.map_or(&[], |extra| &extra.value.values)
    };
    // A look for hot pages after 3 ms, and 201 walks of few pages at 10 us.
    for name in ["looks for hot pages", "looks for re-use"] {
        assert!(
            of(name).len() == 2 && of(name).iter().all(|n| *n >= 1.0),
            "{name} {:?}",
            of(name)
        );
    }
    let (pages, time) = (of("pages at the first look"), of("time of looks"));
    assert!(pages[0] >= 16.0 && time[0] > 1.0, "{pages:?} {time:?}");
    assert_eq!(of("times that it began again"), [0.0; 2]);
    let by_references = text.replace("alone = true\n", "");
    let study = kit::run_scenario(&parse(&by_references).expect("a scenario")).expect("runs");
    assert_eq!(study.policies[0].course, None);
    let refs = study.policies[0].programs[0].alone.refs.mean;
    assert!((refs - 8e6).abs() < 1e5, "{refs}");
}
