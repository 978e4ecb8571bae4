//! Programs that run before others, and where programs are met.

use crate::kit;
use piebald_report::{Metrics, Study};

const TEXT: &str = "schema = 2\nseed = 7\nrepetitions = 2\nbudget_refs = \"20k\"\n\
    warmup_refs = \"5k\"\nalone = \"all\"\n\
    [machine]\npreset = \"w3540\"\nmemory = \"192MiB\"\n\
    [output]\nset_map = 0\n\
    [files]\nswap = \"64MiB\"\n\
    [[program]]\nname = \"scan\"\nbuiltin = \"scan:256KiB\"\ncores = \"0\"\n\
    [[policy]]\nname = \"a\"\nmemory = \"fresh\"\n";

fn run(text: &str) -> Study {
    kit::run(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// What a program of the first policy did alone.
fn alone(study: &Study, program: usize) -> &Metrics {
    &study.policies[0].programs[program].alone
}

fn extra(metrics: &Metrics, name: &str) -> Vec<f64> {
    let extra = metrics.extra.iter().find(|e| e.name == name);
    extra.map_or_else(Vec::new, |e| e.value.values.clone())
}

/// Pages that the first program waited for.
fn from_disk(text: &str) -> f64 {
    extra(alone(&run(text), 0), "file pages read from the disk")
        .iter()
        .sum()
}

/// The scenario with lines of its program.
fn with(lines: &str) -> String {
    TEXT.replace("cores = \"0\"\n", &format!("cores = \"0\"\n{lines}\n"))
}

#[test]
fn files_are_in_memory_if_something_has_read_them_before() {
    let before = |lines: &str| from_disk(&format!("{TEXT}[[before]]\n{lines}\n"));
    assert!(from_disk(TEXT) > 0.0);
    assert_eq!(before("read = \"scan\""), 0.0);
    assert_eq!(before("run = \"scan\""), 0.0);
    assert_eq!(before("builtin = \"scan:256KiB,iterations=1\""), 0.0);
    // Another file than the program's.
    assert!(before("builtin = \"randread:256KiB,iterations=9\"") > 0.0);
}

#[test]
fn files_of_its_own_are_not_those_that_another_has_read() {
    let text = format!("{TEXT}[[before]]\nbuiltin = \"scan:256KiB,iterations=1\"\n");
    assert_eq!(from_disk(&text), 0.0);
    let own = with("own_files = true") + "[[before]]\nbuiltin = \"scan:256KiB,iterations=1\"\n";
    assert!(from_disk(&own) > 0.0);
    let read = with("own_files = true") + "[[before]]\nread = \"scan\"\n";
    assert_eq!(from_disk(&read), 0.0);
}

#[test]
fn colors_of_what_runs_before_are_where_its_files_lie() {
    let before = "[[before]]\nrun = \"scan\"\ncolors = { count = 1 }\nmode = \"hint\"\n";
    let text = TEXT.replace(
        "memory = \"fresh\"\n",
        "memory = \"fresh\"\nframes = \"rainbow\"\n",
    );
    let misses = |text: &str| {
        let study = run(text);
        assert!(study.complete, "{:?}", study.warnings);
        let level = alone(&study, 0).mpki.last().map(|l| l.mpki.mean);
        level.unwrap_or(f64::NAN)
    };
    // 64 pages in one of 16 colors of 8 MiB fit; 4 MiB in one do not, and do in all of them.
    let large = |text: &str| {
        text.replace("scan:256KiB", "scan:4MiB")
            .replace("20k", "400k")
    };
    let plain = misses(&large(&(text.clone() + "[[before]]\nrun = \"scan\"\n")));
    let one = misses(&large(&(text.clone() + before)));
    assert!(one > 2.0 * plain, "{one} {plain}");
    let refused = kit::parse(&format!("{TEXT}{before}")).expect_err("no owners");
    assert!(refused.contains("no policy has frames"), "{refused}");
}

#[test]
fn a_program_that_goes_on_at_its_end_has_its_whole_measured_part() {
    let ends = TEXT.replace("scan:256KiB", "scan:64KiB,iterations=4");
    let study = run(&ends);
    assert!(!study.cut.is_empty());
    let again = run(&ends.replace("cores = \"0\"\n", "cores = \"0\"\nagain = true\n"));
    assert!(again.cut.is_empty(), "{:?}", again.cut);
    assert_eq!(alone(&again, 0).refs.mean.round(), 20_000.0);
    let threads = TEXT.replace("scan:256KiB", "triad:1MiB,threads=2");
    let threads = kit::parse(&threads.replace("cores = \"0\"\n", "cores = \"0\"\nagain = true\n"));
    let nobody = |words: &[String], _: u64| Err(format!("{words:?}"));
    let refused = piebald_lab::prepare(&threads.expect("a scenario"), &nobody);
    let refused = refused.err().map(|e| e.to_string()).unwrap_or_default();
    assert!(
        refused.contains("again: allowed of one thread"),
        "{refused}"
    );
}

#[test]
fn a_built_in_program_that_is_met_later_has_made_its_set_up_at_no_cost() {
    let text = TEXT.replace("scan:256KiB", "fft:4096");
    let refs = |enter: &str| {
        let lines = format!("cores = \"0\"\n{enter}\n");
        let study = run(&text.replace("cores = \"0\"\n", &lines));
        (
            study.simulated_refs,
            alone(&study, 0).time_ps.values.clone(),
        )
    };
    let (whole, _) = refs("");
    let (late, times) = refs("enter = \"10k\"");
    // Two repetitions of 25,000 references, a few more until a run is over, and 8192 of set-up.
    assert!((50_000..60_000).contains(&late), "{late}");
    assert!(whole > late + 8_000, "{whole} {late}");
    // Each at another place.
    assert_ne!(times[0].to_bits(), times[1].to_bits());
    let (anywhere, _) = refs("enter = \"anywhere\"");
    assert!((50_000..60_000).contains(&anywhere), "{anywhere}");
    assert_eq!(refs("enter = \"start\"").0, whole);
}

#[test]
fn whole_iterations_are_at_least_two() {
    let study = run(&with("whole_iterations = true\nenter = \"iteration\""));
    // 256 KiB in loads of 32 B are 8192 references: three are more than 20,000.
    assert_eq!(alone(&study, 0).refs.mean.round(), 3.0 * 8192.0);
    let large = TEXT.replace("scan:256KiB", "scan:1MiB");
    let large = large.replace(
        "cores = \"0\"\n",
        "cores = \"0\"\nwhole_iterations = true\n",
    );
    assert_eq!(alone(&run(&large), 0).refs.mean.round(), 2.0 * 32_768.0);
}

#[test]
fn copies_count_as_references_if_they_shall() {
    // A scan's copies are as many as its loads.
    let refs = |text: &str| alone(&run(text), 0).refs.mean;
    let (all, half) = (refs(TEXT), refs(&with("count_copies = true")));
    assert!((all / half - 2.0).abs() < 0.1, "{all} {half}");
}

#[test]
fn a_kernel_may_know_less_memory_than_there_is() {
    let text = format!("{TEXT}files = \"srm:threshold=16\"\n[[before]]\nrun = \"scan\"\n");
    let share = |text: &str| {
        let shares = extra(alone(&run(text), 0), "colored zone after its last refill");
        assert_eq!(shares.len(), 2);
        shares[0]
    };
    let (whole, half) = (
        share(&text),
        share(&format!("{text}[memory]\nsize = \"96MiB\"\n")),
    );
    assert!((half / whole - 2.0).abs() < 0.1, "{half} {whole}");
    let refused = |size: &str| {
        let text = format!("{TEXT}[memory]\nsize = \"{size}\"\n");
        kit::parse(&text).expect_err(size)
    };
    for size in ["512MiB", "1MiB", "25%"] {
        let error = refused(size);
        assert!(
            error.contains("memory.size") && error.contains("64MiB to 192MiB"),
            "{error}"
        );
    }
}

#[test]
fn figures_of_the_zone_are_there_with_srm_buffer_only() {
    let srm = "[[policy]]\nname = \"b\"\nmemory = \"fresh\"\nfiles = \"srm:threshold=16\"\n";
    let study = run(&format!("{TEXT}{srm}[[before]]\nrun = \"scan\"\n"));
    let of = |policy: usize, name: &str| extra(&study.policies[policy].programs[0].alone, name);
    // 64 pages in sequences of 16.
    assert_eq!(of(1, "sequences of file pages"), [4.0, 4.0]);
    assert!(of(0, "sequences of file pages").is_empty());
    assert_eq!(of(1, "sequences that share a color's list"), [0.0, 0.0]);
    assert_eq!(of(1, "of pages read, not waited for"), [100.0, 100.0]);
}

#[test]
fn wrong_keys_are_refused_with_line_and_what_is_allowed() {
    let text = format!("{TEXT}[[before]]\nread = \"scan\"\n");
    kit::refused(
        &text,
        &[
            (
                "read = \"scan\"",
                "read = \"scna\"",
                22,
                "before[0].read = \"scna\": allowed: the name of a program: scan",
            ),
            ("read = \"scan\"", "", 21, "exactly one of run, read"),
            (
                "read = \"scan\"",
                "read = \"scan\"\nrun = \"scan\"",
                21,
                "exactly one of run, read",
            ),
            (
                "read = \"scan\"",
                "command = []",
                22,
                "before[0].command = []",
            ),
            (
                "read = \"scan\"",
                "read = \"scan\"\nmode = \"hint\"",
                23,
                "colors is missing",
            ),
            ("read = \"scan\"", "builtin = \"scna\"", 21, "scna"),
            (
                "cores = \"0\"",
                "cores = \"0\"\nenter = \"middle\"",
                18,
                "enter = \"middle\": allowed: ",
            ),
            (
                "cores = \"0\"",
                "cores = \"0\"\nenter = 0",
                18,
                "enter = 0: allowed: ",
            ),
            (
                "builtin = \"scan:256KiB\"",
                "recording = \"x.pbr\"\nenter = \"iteration\"",
                17,
                "only built-in programs",
            ),
            (
                "builtin = \"scan:256KiB\"",
                "recording = \"x.pbr\"\nwhole_iterations = true",
                17,
                "only built-in programs",
            ),
        ],
    );
}
