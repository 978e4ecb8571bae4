//! Scenarios whose policies move readers to the files: the example, run once.

use crate::kit;
use std::path::Path;

use piebald_experiment::Draws;
use piebald_lab::{Repetition, scenario::Scenario};
use piebald_policy::mfc;
use piebald_report::{Metrics, Study};
use piebald_units::{Bytes, Picos, op::MemRef};

/// The values of a figure of the record, one for each repetition.
fn figure<'a>(metrics: &'a Metrics, name: &str) -> &'a [f64] {
    let extra = metrics.extra.iter().find(|e| e.name == name);
    extra.map_or(&[], |e| &e.value.values)
}

fn of<'a>(study: &'a Study, policy: &str, name: &str) -> &'a [f64] {
    let policy = study.policies.iter().find(|p| p.name == policy);
    let program = &policy.expect("a policy of the study").programs[0];
    figure(&program.alone, name)
}

#[test]
fn the_example_moves_its_reader_and_loads_less_from_memory() {
    let path = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../scenarios/mfc.toml"
    ));
    let mut scenario = Scenario::read(path).expect("a scenario");
    scenario.repetitions = 1;
    // Two references for each read. Three rounds over the files are enough to have them in caches.
    (scenario.warmup_refs, scenario.budget_refs) = (200, 100);
    let study = kit::run_scenario(&scenario).expect("runs");
    for name in [
        "read by calls",
        "read by calls in a second",
        "from memory for each byte read",
        "of these, by demands",
        "read past the caches",
        "threads moved for a read",
        "threads that changed their core",
    ] {
        for policy in ["linux", "mfc"] {
            println!("{policy:6} {name}: {:?}", of(&study, policy, name));
            assert_eq!(of(&study, policy, name).len(), 1, "{policy}: {name}");
        }
    }
    let both = |name| [of(&study, "linux", name), of(&study, "mfc", name)];
    // 50 reads of 256 KiB.
    let [linux, mfc] = both("read by calls");
    for bytes in linux.iter().chain(mfc) {
        assert!((bytes - 50.0 * 0.262144).abs() < 1.0, "{bytes} MB");
    }
    let [linux, mfc] = both("threads moved for a read");
    assert!(linux.iter().all(|n| *n == 0.0) && mfc.iter().all(|n| *n > 12.0));
    let [linux, mfc] = both("from memory for each byte read");
    assert!(
        linux.iter().zip(mfc).all(|(l, m)| m < l),
        "{linux:?} {mfc:?}"
    );
    // The cores' prefetchers bring lines of a file as well.
    let [demanded, _] = both("of these, by demands");
    assert!(
        linux.iter().zip(demanded).all(|(all, some)| some < all),
        "{linux:?} {demanded:?}"
    );
}

#[test]
fn figures_of_reads_are_shown_only_beside_a_policy_that_moves_threads() {
    let text = "schema = 1\nbudget_refs = \"40\"\nwarmup_refs = \"10\"\nrepetitions = 1\n\
        [machine]\npreset = \"w3540\"\nmemory = \"192MiB\"\n\
        [[program]]\nbuiltin = { name = \"readfiles\", files = 4, iterations = 60 }\n\
        cores = \"0\"\n[[policy]]\nname = \"a\"\nmemory = \"fresh\"\n";
    let study = kit::run(text).expect("runs");
    assert!(of(&study, "a", "read by calls").is_empty());
    let study = kit::run(&format!("{text}balance = true\n")).expect("runs");
    assert_eq!(of(&study, "a", "read by calls").len(), 1);
    assert_eq!(of(&study, "a", "threads that changed their core"), [0.0]);
}

/// A scenario whose policy has no keys yet.
const TEXT: &str = r#"schema = 1
[machine]
preset = "w3540"
[[program]]
builtin = "mergesort:1MiB"
cores = "0"
[[policy]]
name = "policy"
"#;

#[test]
fn reads_that_mfc_places_have_its_parameters_or_the_published_ones() {
    let with = |keys: &str| kit::parse(&format!("{TEXT}{keys}\n"));
    let threads = |keys: &str| with(keys).expect("good").policies[0].threads.clone();
    let none = threads("");
    assert!(none.reads.is_none() && !none.balance);
    assert!(none.migration.iter().all(|t| t.0 == 0));
    let paper = [9_200_000, 10_500_000, 11_700_000, 12_900_000];
    let plain = threads("reads = \"mfc\"");
    assert_eq!(plain.migration.map(|t| t.0), paper);
    let reads = plain.reads.expect("placed");
    assert_eq!((reads.access.0, reads.assignment.0), (495_000, 4_101_000));
    assert_eq!(reads.config, mfc::Config::PAPER);
    assert_eq!(reads.switches, mfc::Switches::ALL);
    assert_eq!(threads("balance = true").migration.map(|t| t.0), paper);
    let own = threads(
        "reads = \"mfc\"\nmigration_us = [1, 2.5]\nmfc = { min_read = \"break-even\", copies = false, \
         second = \"ignore\", busy = 2, idle = 3, lfu_factor = 4, decay_ms = 0.5, \
         competitive = \"core\", chunk = \"64KiB\", files = 100, off_chip_bytes_per_us = 1000, \
         on_chip_bytes_per_us = 2000, access_us = 0, assignment_us = 1.5 }",
    );
    assert_eq!(
        own.migration.map(|t| t.0),
        [1_000_000, 2_500_000, 2_500_000, 2_500_000]
    );
    let reads = own.reads.expect("placed");
    let config = mfc::Config {
        min_read: mfc::MinRead::BreakEven,
        busy: 2,
        idle: 3,
        lfu_factor: 4,
        period: Picos(500_000_000),
        competitive: mfc::Competitive::PerCore,
        chunk: Bytes(64 << 10),
        off_chip_bytes_per_us: 1000,
        on_chip_bytes_per_us: 2000,
        migration: own.migration,
        ..mfc::Config::PAPER
    };
    assert_eq!(reads.config, config);
    assert_eq!(
        (reads.files, reads.access, reads.assignment),
        (100, Picos(0), Picos(1_500_000))
    );
    assert!(!reads.switches.copies && reads.switches.second == mfc::Second::Ignore);
    for (keys, parts) in [
        (
            "mfc = {}",
            "policy[0].mfc: allowed only with reads = \"mfc\"",
        ),
        (
            "migration_us = []",
            "policy[0].migration_us = []: allowed: 1 to 4 times",
        ),
        (
            "migration_us = [-1]",
            "policy[0].migration_us[0] = -1: allowed: 0 to",
        ),
        ("migration_us = [nan]", "policy[0].migration_us[0] = NaN"),
        (
            "reads = \"mfc\"\nmfc = { busy = -1 }",
            "policy[0].mfc.busy = -1: allowed: 0 to",
        ),
        (
            "reads = \"mfc\"\nmfc = { files = 0 }",
            "policy[0].mfc.files = 0: allowed: 1 to",
        ),
        (
            "reads = \"mfc\"\nmfc = { decay_ms = 0 }",
            "policy[0].mfc.decay_ms = 0: allowed: 0.001 to",
        ),
        (
            "reads = \"mfc\"\nmfc = { min_read = \"much\" }",
            "policy[0].mfc.min_read = \"much\"",
        ),
        (
            "reads = \"mfc\"\nmfc = { chunk = \"1KiB\" }",
            "policy[0].mfc.chunk = 1KiB: allowed: 4KiB to 1GiB",
        ),
        (
            "reads = \"mfc\"\nmfc = { second = \"x\" }",
            "policy[0].mfc.second = \"x\"",
        ),
        (
            "reads = \"mfc\"\nmfc = { competitive = \"x\" }",
            "\"file\", \"core\", \"off\"",
        ),
        (
            "reads = \"mfc\"\nmfc = { on_chip_bytes_per_us = 1000 }",
            "policy[0].mfc: on_chip_bytes_per_us is 1000; allowed: above",
        ),
        ("reads = \"mfc\"\nmfc = { period = 1 }", "period"),
    ] {
        let error = with(keys).expect_err(keys);
        assert!(error.contains(parts), "{keys}: {error}");
    }
}

/// Three threads that read files of 64 KiB: twenty references are ten reads.
const THREADS: &str = r#"schema = 2
repetitions = 2
warmup_refs = "8"
budget_refs = "20"
alone = "targets"
[machine]
preset = "w3540"
memory = "192MiB"
[output]
set_map = 0
[[program]]
builtin = { name = "readfiles", files = 8, size = "64KiB", chunk = "64KiB", threads = 3 }
cores = "0-3"
[[policy]]
name = "a"
memory = "fresh"
balance = true
"#;

#[test]
fn a_budget_may_be_that_of_each_thread() {
    let run = |text: &str| kit::run(text).expect("runs");
    let all = run(THREADS);
    let each = run(&format!("budget_of = \"thread\"\n{THREADS}"));
    let reads = |study: &Study| -> Vec<f64> {
        let read = of(study, "a", "read by calls");
        read.iter().map(|mb| (mb * 1e6 / 65536.0).round()).collect()
    };
    // The last references of a batch may come after those of the budget.
    for n in reads(&all) {
        assert!((9.0..=12.0).contains(&n), "{n} reads of all threads");
    }
    // One thread made all of its ten, and none has ended before.
    for n in reads(&each) {
        assert!((20.0..=33.0).contains(&n), "{n} reads of three threads");
    }
    assert!(each.warnings.is_empty(), "{:?}", each.warnings);
    assert!(each.notes[0].contains("of each thread") && all.notes.is_empty());
}

#[test]
fn a_program_may_draw_anew_in_each_repetition() {
    let read = |text: &str| {
        let scenario = kit::parse(text).expect("good");
        let inputs = kit::inputs(&scenario);
        let of = |repetition, draw| {
            let program = inputs[0].in_repetition(
                repetition,
                Repetition::new((draw, Draws::Places), repetition),
            );
            // What it says to be without being executed is what it does.
            let identity = program.identity().expect("a recording has one");
            let mut source = program.open(0).expect("it can be executed");
            let mut refs = vec![MemRef::default(); 4096];
            let filled = source.fill(&mut refs);
            (identity, refs[..filled.refs].to_vec())
        };
        assert_eq!(of(1, 5), of(1, 5));
        [of(0, 4), of(1, 5)]
    };
    let [first, second] = read(THREADS);
    assert_eq!(first, second);
    let redraw = THREADS.replace("cores =", "redraw = true\ncores =");
    let [first, second] = read(&redraw);
    assert_ne!(first, second);
    // The draws are those of the seed.
    assert_eq!(read(&redraw)[0], first);
    assert_ne!(
        read(&redraw.replace("schema = 2", "schema = 2\nseed = 7"))[0],
        first
    );
    let rates = |text: &str| {
        let study = kit::run(text).expect("runs");
        of(&study, "a", "read by calls in a second").to_vec()
    };
    assert_eq!(rates(&redraw), rates(&redraw));
    assert_ne!(rates(&redraw)[1], rates(THREADS)[1]);
}

#[test]
fn where_threads_start_and_when_ticks_come_may_be_said() {
    let with = |keys: &str| {
        let scenario = kit::parse(&format!("{THREADS}{keys}\n")).expect("good");
        let inputs = kit::inputs(&scenario);
        let study = kit::run_scenario(&scenario).expect("runs");
        assert_eq!(inputs[0].program.threads(), 3);
        of(&study, "a", "read by calls in a second").to_vec()
    };
    let plain = with("");
    assert_eq!(plain, with("first_cores = \"first\""));
    assert_ne!(plain, with("first_cores = \"random\""));
    assert_ne!(plain, with("tick_us = 50"));
}

#[test]
fn a_program_that_ends_too_early_is_told() {
    let short = |iterations: u32| {
        let text = THREADS.replace("threads = 3", &format!("iterations = {iterations}"));
        kit::run(&text).expect("runs").warnings
    };
    let [warning] = &short(10)[..] else {
        panic!("{:?}", short(10));
    };
    // 20 of 28 references: 12 after the 8 of the warm-up.
    assert!(
        warning
            .contains("readfiles: it ended before its measured part was over: 12 of 20 references"),
        "{warning}"
    );
    assert!(short(40).is_empty(), "{:?}", short(40));
    // Company beside a region of another program has no measured part.
    let text = THREADS.replace(", threads = 3 }", " }");
    let text = text.replace(
        "[[policy]]",
        "[[program]]\nbuiltin = \"mergesort:64KiB\"\ncores = \"1\"\n\
         regions = { max = 2 }\n[[policy]]",
    );
    let study = kit::run(&text.replace("\"20\"", "\"2000\"")).expect("runs");
    let early = study.warnings.iter().filter(|w| w.contains("ended before"));
    assert_eq!(early.count(), 0, "{:?}", study.warnings);
}

#[test]
fn regions_have_budgets_of_their_program() {
    let text = THREADS.replace(", threads = 3 }", " }\nregions = {}");
    assert!(kit::parse(&text).is_ok());
    let text = format!("budget_of = \"thread\"\n{text}");
    let error = kit::parse(&text).expect_err("refused");
    assert!(
        error.contains("program[0].regions: allowed only with budget_of"),
        "{error}"
    );
    let builtin = THREADS.lines().find(|line| line.starts_with("builtin"));
    let text = THREADS.replace(builtin.expect("a line"), "command = [\"true\"]");
    assert!(kit::parse(&text).is_ok());
    let error = kit::parse(&format!("budget_of = \"thread\"\n{text}")).expect_err("refused");
    assert!(
        error.contains("program[0].command: allowed only with budget_of"),
        "{error}"
    );
}
