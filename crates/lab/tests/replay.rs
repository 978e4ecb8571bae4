//! Replays of small traces written here: what must agree with what.

mod numbered;

use std::fmt::Write as _;
use std::path::PathBuf;

use piebald_experiment::DiskStart;
use piebald_lab::Hooks;
use piebald_lab::replay::{
    CurveRequest, DeviceChoice, LayoutChoice, Load, OBJECT_POLICIES, Part, ReplayError,
    ReplayRequest, replay,
};
use piebald_os_model::replace::PolicySpec;
use piebald_os_model::replace::registry::POLICIES;
use piebald_report::{Replay, ReplayRun};
use piebald_sim::replay::{Align, InputSetup, Pace};
use tempfile::TempDir;

struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path
    }
}

fn specs(names: &[&str]) -> Vec<PolicySpec> {
    let parse = |name: &&str| name.parse().expect("a policy");
    names.iter().map(parse).collect()
}

/// A request over traces with everything else small and plain.
fn request(paths: Vec<PathBuf>, policies: &[&str], sizes: &[&str]) -> ReplayRequest {
    ReplayRequest {
        input: InputSetup {
            paths,
            ..InputSetup::default()
        },
        object_policies: specs(policies),
        policies: specs(policies),
        ignore_sizes: false,
        sizes: sizes.iter().map(|s| s.parse().expect("a size")).collect(),
        device: DeviceChoice::None,
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
    }
}

fn run(request: &ReplayRequest) -> Replay {
    replay(request, Hooks::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn draw(state: &mut u64, below: u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1);
    (*state >> 33) % below
}

/// Block numbers: some often, some in loops, some once.
fn ids(n: u64) -> String {
    let mut text = String::new();
    let mut state = 5;
    for i in 0..n {
        let id = match i % 3 {
            0 => draw(&mut state, 30) * draw(&mut state, 30),
            1 => 1_000 + i % 400,
            _ => 2_000 + draw(&mut state, 5_000),
        };
        let _ = writeln!(text, "{id}");
    }
    text
}

/// Reads of a disk, in the form of SPC: runs and single blocks.
fn spc(n: u64, writes: bool) -> String {
    let mut text = String::new();
    let mut state = 9;
    for i in 0..n {
        let (page, pages) = match i % 4 {
            0 => (draw(&mut state, 20_000), 1),
            _ => ((i * 8) % 9_000, 8),
        };
        let op = if writes && i % 5 == 0 { 'W' } else { 'R' };
        let _ = writeln!(
            text,
            "0,{},{},{op},{}.{:06}",
            page * 8,
            pages * 4096,
            i / 1000,
            i % 1000
        );
    }
    text
}

fn of<'a>(replay: &'a Replay, policy: &str, pages: u64) -> &'a ReplayRun {
    let found = replay
        .runs
        .iter()
        .find(|r| r.policy == policy && r.size_pages == pages);
    found.unwrap_or_else(|| panic!("no run of {policy} with {pages} pages"))
}

#[test]
fn every_policy_replays_and_none_beats_the_bound() {
    let bench = Bench::new();
    let names: Vec<&str> = POLICIES.iter().map(|row| row.name).collect();
    let path = bench.file("t.ids", &ids(30_000));
    let replay = run(&request(vec![path], &names, &["256KiB", "1MiB", "100%"]));
    let unique = replay.traces[0].unique_pages;
    assert_eq!(replay.sizes, [64, 256, unique]);
    for run in &replay.runs {
        assert_eq!(run.references, 30_000, "{}", run.policy);
        assert_eq!(run.hits + run.misses, run.references, "{}", run.policy);
        let bound = of(&replay, "min", run.size_pages).misses;
        assert!(
            run.misses >= bound,
            "{} {} < {bound}",
            run.policy,
            run.misses
        );
        assert!(run.misses >= unique, "{}", run.policy);
        if run.size_pages == unique {
            assert_eq!(run.misses, unique, "{}: everything fits", run.policy);
        }
    }
}

/// Why a replay is refused.
fn replay_error(asked: &ReplayRequest) -> String {
    let error = replay(asked, Hooks::default()).expect_err("refused");
    error.to_string()
}

#[test]
fn the_exact_curve_is_lru_at_every_size_and_samples_are_near() {
    let bench = Bench::new();
    let path = bench.file("t.ids", &ids(30_000));
    let mut asked = request(vec![path], &["lru", "arc"], &["64KiB", "400KiB", "2MiB"]);
    asked.curves = Some(CurveRequest { rate: Some(0.25) });
    asked.policies.push("dulo".parse().expect("a policy"));
    let replay = run(&asked);
    let exact = replay
        .curves
        .iter()
        .find(|c| c.exact)
        .expect("the exact curve");
    for &pages in &replay.sizes {
        let point = exact.points.iter().find(|p| p.size_pages == pages);
        let misses = point.and_then(|p| p.misses).expect("every asked size");
        assert_eq!(misses, of(&replay, "lru", pages).misses, "{pages}");
    }
    let sampled: Vec<_> = replay.curves.iter().filter(|c| !c.exact).collect();
    let names: Vec<&str> = sampled.iter().map(|c| c.policy.as_str()).collect();
    assert_eq!(
        (names, &replay.curves_refused[..]),
        (vec!["arc", "dulo"], &[][..])
    );
    for curve in sampled {
        assert_eq!(curve.checks.len(), 4, "{}", curve.policy);
    }
}

/// The table of traces is about all that is in them, and says how far the runs came.
#[test]
fn an_interrupted_replay_says_how_much_was_counted() {
    let bench = Bench::new();
    let path = bench.file("t.ids", &ids(60_000));
    let asked = request(vec![path], &["lru"], &["10%"]);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let progress = |_: u64, _: u64| stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let hooks = Hooks {
        stop: Some(&stop),
        progress: Some(&progress),
        ..Hooks::default()
    };
    let partial = replay(&asked, hooks).expect("a part");
    let whole = run(&asked);
    assert!(!partial.complete && whole.complete);
    assert_eq!(partial.traces, whole.traces);
    let counted = partial.runs[0].references;
    assert!(0 < counted && counted < 60_000, "{counted}");
    let told = format!("the runs counted {counted} of 60000 references");
    let notes = partial.conditions.notes.join("\n");
    assert!(notes.contains(&told), "{notes}");
    assert!(
        !whole
            .conditions
            .notes
            .join("\n")
            .contains("the runs counted")
    );
}

/// Files that are read from end to end in turn, and single pages that are read at random between them:
/// what DULO keeps is what has no neighbours.
#[test]
fn a_policy_that_needs_neighbours_is_sampled_with_them() {
    let bench = Bench::new();
    let (mut text, mut state) = (String::new(), 3u64);
    let mut draw = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let mut line = |page: u64, pages: u64| {
        let _ = writeln!(text, "0,{},{},R,0.0", page * 8, pages * 4096);
    };
    for round in 0..160 {
        for piece in 0..64 {
            line(round % 40 * 512 + piece * 8, 8);
        }
        for _ in 0..200 {
            line(100_000 + 64 * draw(4_000), 1);
        }
    }
    let path = bench.file("t.spc", &text);
    let mut asked = request(vec![path], &["clock", "dulo"], &["32MiB"]);
    asked.curves = Some(CurveRequest { rate: Some(0.25) });
    let replay = run(&asked);
    assert_eq!(replay.curves_refused, [""; 0]);
    let curve = |policy: &str| {
        let found = replay.curves.iter().find(|c| c.policy == policy);
        found.expect("a curve")
    };
    let (clock, dulo) = (curve("clock"), curve("dulo"));
    assert!(!clock.exact && !dulo.exact);
    // Samples are held against full runs; the two policies are far apart there, and in the samples.
    let pairs = || clock.checks.iter().zip(&dulo.checks);
    let apart = |get: fn(&piebald_report::MissRatioCheck) -> f64| {
        let gaps = pairs().map(|(c, d)| get(c) - get(d));
        gaps.fold(f64::NEG_INFINITY, f64::max)
    };
    let (full, sampled) = (apart(|c| c.full), apart(|c| c.sampled));
    assert!(full > 0.08, "{full}");
    assert!((full - sampled).abs() < 0.03, "{full} {sampled}");
    for check in &dulo.checks {
        assert!((check.full - check.sampled).abs() < 0.02, "{check:?}");
    }
}

/// With memory for every page only first uses miss, however many pages a sample happens to have.
#[test]
fn a_sampled_curve_ends_where_all_pages_fit() {
    let bench = Bench::new();
    let mut text = String::new();
    for page in (0..3).flat_map(|_| 0..20_000) {
        let _ = writeln!(text, "{page}");
    }
    let path = bench.file("t.ids", &text);
    let mut asked = request(vec![path.clone()], &["clock", "arc", "s3-fifo"], &["10%"]);
    asked.curves = Some(CurveRequest { rate: Some(0.02) });
    let replay = run(&asked);
    assert_eq!(replay.curves_refused, [""; 0]);
    assert_eq!(replay.curves.len(), 4);
    for curve in &replay.curves {
        let last = curve.points.last().expect("a point");
        assert_eq!(last.size_pages, 20_000);
        let off = (last.miss_ratio - 1.0 / 3.0).abs();
        // The share of the pages that a sample has is off by some percent.
        assert!(off < 0.02, "{}: {last:?}", curve.policy);
    }
    // A sample of too few pages for two sizes.
    asked.curves = Some(CurveRequest { rate: Some(0.001) });
    asked.input.paths = vec![bench.file("small.ids", &ids(9_000))];
    let error = replay_error(&asked);
    assert!(error.contains("too few of them for two sizes"), "{error}");
}

#[test]
fn curves_say_what_they_leave_out() {
    let bench = Bench::new();
    let path = bench.file("t.spc", &spc(4_000, false));
    let mut asked = request(vec![path], &["clock"], &["400KiB"]);
    asked.curves = Some(CurveRequest { rate: None });
    let notes = |asked: &ReplayRequest| run(asked).conditions.notes.join("\n");
    assert!(!notes(&asked).contains("curves"), "{}", notes(&asked));
    asked.warmup = 100;
    assert!(notes(&asked).contains("curves count all references"));
    asked.warmup = 0;
    asked.device = DeviceChoice::Preset("st39102lw".into());
    assert!(notes(&asked).contains("curves are of memory alone"));
}

/// Of a hundred pages 1 % is too little for some policies.
#[test]
fn shares_of_a_small_trace_that_are_too_small_are_passed_over_and_told() {
    let bench = Bench::new();
    let mut text = String::new();
    for page in (0..3).flat_map(|_| 0..100) {
        let _ = writeln!(text, "{page}");
    }
    let path = bench.file("t.ids", &text);
    let asked = request(
        vec![path.clone()],
        &["clock", "dulo"],
        &["1%", "10%", "25%"],
    );
    let found = run(&asked);
    assert_eq!(found.sizes, [10, 25]);
    let notes = found.conditions.notes.join("\n");
    assert!(
        notes.contains("nothing is run with 1 page, 1.00 % of 100: ") && notes.contains("dulo"),
        "{notes}"
    );
    // What was asked for in bytes, and where nothing else is left.
    for sizes in [&["4KiB", "25%"][..], &["1%"]] {
        let error = replay_error(&request(vec![path.clone()], &["clock", "dulo"], sizes));
        assert!(error.contains("dulo"), "{error}");
    }
}

#[test]
fn a_disk_below_changes_no_hit_of_a_trace_that_only_reads() {
    let bench = Bench::new();
    let path = bench.file("t.spc", &spc(4_000, false));
    // Not LIRS: its victim is the page that came last, which is still being read.
    let policies = ["lru", "clock", "arc", "2q", "s3-fifo", "sieve", "fifo"];
    let plain = request(vec![path], &policies, &["400KiB", "4MiB"]);
    let mut disk = plain.clone();
    disk.device = DeviceChoice::Preset("st39102lw".into());
    let (plain, disk) = (run(&plain), run(&disk));
    for run in &plain.runs {
        let below = of(&disk, &run.policy, run.size_pages);
        assert_eq!(
            (run.references, run.misses),
            (below.references, below.misses),
            "{} {}",
            run.policy,
            run.size_pages
        );
        let io = below.io.as_ref().expect("a disk");
        assert_eq!(io.pages_read, below.misses);
        assert!(io.elapsed_s > 0.0 && io.disk_busy_s <= io.elapsed_s * 1.001);
        let sequences: u64 = io.sequences.iter().map(|s| s.1).sum();
        assert_eq!(sequences, io.pages_read);
    }
}

#[test]
fn readahead_turns_misses_of_sequential_reads_into_hits() {
    let bench = Bench::new();
    let path = bench.file("t.spc", &spc(4_000, true));
    let mut asked = request(vec![path], &["clock", "dulo"], &["4MiB"]);
    asked.device = DeviceChoice::Preset("st39102lw".into());
    let without = run(&asked);
    asked.readahead = "6.x".into();
    asked.scheduler = "mq-deadline".into();
    let with = run(&asked);
    let (a, b) = (&without.runs[0], &with.runs[0]);
    assert!(b.misses < a.misses, "{} {}", a.misses, b.misses);
    let io = b.io.as_ref().expect("a disk");
    assert!(io.prefetched > 0 && io.pages_written > 0);
    assert!(io.mean_sequence() > a.io.as_ref().expect("a disk").mean_sequence());
}

#[test]
fn threads_pace_and_repetition_change_no_result() {
    let bench = Bench::new();
    let path = bench.file("t.spc", &spc(3_000, true));
    let mut asked = request(vec![path], &["clock", "dulo", "arc"], &["1MiB", "25%"]);
    asked.device = DeviceChoice::Preset("sata-7200".into());
    asked.readahead = "2.6.11".into();
    asked.pace = Pace::Timed;
    let all = || {
        let mut replay = run(&asked);
        replay.host_seconds = 0.0;
        replay
    };
    let one = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .expect("a pool");
    let four = rayon::ThreadPoolBuilder::new()
        .num_threads(4)
        .build()
        .expect("a pool");
    assert_eq!(one.install(all), four.install(all));
}

#[test]
fn a_warm_up_is_left_out() {
    let bench = Bench::new();
    let path = bench.file("t.ids", &ids(10_000));
    let mut asked = request(vec![path], &["lru"], &["1MiB"]);
    let whole = run(&asked).runs[0].clone();
    asked.warmup = 4_000;
    let rest = run(&asked).runs[0].clone();
    assert_eq!(rest.references, 6_000);
    assert!(rest.misses < whole.misses);
    asked.device = DeviceChoice::Preset("sata-ssd".into());
    let disk = run(&asked).runs[0].clone();
    assert_eq!(
        (disk.references, disk.misses),
        (rest.references, rest.misses)
    );
}

#[test]
fn processes_at_once_keep_the_disk_busier() {
    let bench = Bench::new();
    let mut text = String::from("F 0 40960000 a\nF 1 40960000 b\nF 2 40960000 c\n");
    let mut state = 3;
    for i in 0..3_000 {
        let _ = writeln!(text, "R {} {} {} 1", i % 3, i % 3, draw(&mut state, 10_000));
    }
    let path = bench.file("t.fpt", &text);
    let mut asked = request(vec![path], &["clock"], &["8MiB"]);
    asked.device = DeviceChoice::Preset("sata-ssd".into());
    asked.scheduler = "mq-deadline".into();
    let serial = run(&asked).runs[0].clone();
    asked.pace = Pace::Tasks;
    let tasks = run(&asked).runs[0].clone();
    assert_eq!(serial.references, tasks.references);
    let elapsed = |run: &ReplayRun| run.io.as_ref().expect("a disk").elapsed_s;
    assert!(
        elapsed(&tasks) < elapsed(&serial) * 0.6,
        "{} {}",
        elapsed(&tasks),
        elapsed(&serial)
    );
}

#[test]
fn wrong_requests_name_the_option_the_value_and_what_is_allowed() {
    let bench = Bench::new();
    let path = bench.file("t.spc", &spc(100, false));
    let good = || request(vec![path.clone()], &["lru"], &["1MiB"]);
    type Spoil = Box<dyn Fn(&mut ReplayRequest)>;
    let cases: Vec<(Spoil, &str)> = vec![
        (
            Box::new(|r| r.policies = vec!["lru-42".parse().expect("a name")]),
            "lru-42",
        ),
        (
            Box::new(|r| r.policies = vec!["lru:bank=1MiB".parse().expect("a name")]),
            "bank",
        ),
        (
            Box::new(|r| r.policies = vec!["dulo:bank=x".parse().expect("a name")]),
            "\"x\"",
        ),
        (
            Box::new(|r| r.policies = vec!["dulo:base=min".parse().expect("a name")]),
            "min",
        ),
        (
            Box::new(|r| r.policies = vec!["dulo:cost=disk".parse().expect("a name")]),
            "disk",
        ),
        (
            Box::new(|r| r.sizes = vec!["1KiB".parse().expect("a size")]),
            "1KiB",
        ),
        (
            Box::new(|r| r.device = DeviceChoice::Preset("ibm350".into())),
            "ibm350",
        ),
        (Box::new(|r| r.readahead = "7.x".into()), "7.x"),
        (Box::new(|r| r.policies.clear()), "policy"),
        (Box::new(|r| r.input.paths.clear()), "trace"),
    ];
    for (spoil, word) in cases {
        let mut bad = good();
        spoil(&mut bad);
        let error = replay(&bad, Hooks::default()).expect_err(word);
        assert!(error.is_usage(), "{error}");
        assert!(error.to_string().contains(word), "{error} lacks {word}");
    }
    let mut scheduler = good();
    scheduler.device = DeviceChoice::Preset("sata-ssd".into());
    scheduler.scheduler = "bfq".into();
    let error = replay(&scheduler, Hooks::default())
        .expect_err("bfq")
        .to_string();
    assert!(
        error.contains("bfq") && error.contains("mq-deadline"),
        "{error}"
    );
}

#[test]
fn a_memory_that_is_full_of_pages_under_way_is_an_error() {
    let bench = Bench::new();
    let path = bench.file("t.spc", &spc(100, false));
    let mut asked = request(vec![path], &["lru"], &["4KiB"]);
    asked.device = DeviceChoice::Preset("sata-ssd".into());
    asked.readahead = "6.x".into();
    // One page of memory: slow, but it ends, in a result or in a clear error.
    match replay(&asked, Hooks::default()) {
        Ok(replay) => assert_eq!(replay.runs[0].references, 100 / 4 + 75 * 8),
        Err(ReplayError::Driver { error, .. }) => assert!(error.to_string().contains("memory")),
        Err(e) => panic!("{e}"),
    }
}

/// Requests for objects as oracleGeneral: object and bytes.
fn objects(requests: &[(u64, u32)]) -> Vec<u8> {
    let record = |(at, &(object, size)): (usize, &(u64, u32))| {
        let next = requests[at + 1..].iter().position(|r| r.0 == object);
        let next = next.map_or(-1, |n| (at + n + 2) as i64);
        let mut bytes = (at as u32).to_le_bytes().to_vec();
        bytes.extend(object.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(next.to_le_bytes());
        bytes
    };
    requests.iter().enumerate().flat_map(record).collect()
}

/// Objects of 100 B to 3 MiB: a large one is used as often as two small ones, another twice.
fn mixed() -> Vec<(u64, u32)> {
    let (large, huge) = (1 << 20, 3 << 20);
    let mut requests = Vec::new();
    for round in 0..50 {
        requests.extend([(1, large), (2, 100), (3, 100)]);
        if round % 5 == 2 {
            requests.push((4, huge));
        }
    }
    requests
}

#[test]
fn objects_take_their_bytes_and_both_ratios_are_told() {
    let bench = Bench::new();
    let path = bench.folder.path().join("t.oracleGeneral");
    std::fs::write(&path, objects(&mixed())).expect("a trace");
    let names: Vec<&str> = OBJECT_POLICIES.iter().map(|row| row.name).collect();
    let sizes = ["1MiB", "50%", "100%"];
    let replay = run(&request(vec![path.clone()], &names, &sizes));
    let footprint = (4 << 20) + 200;
    assert_eq!(replay.traces[0].object_bytes, Some(footprint));
    assert_eq!(replay.sizes, [1 << 20, footprint / 2, footprint]);
    assert_eq!(replay.conditions.page_bytes, 1);
    let asked = 50 * ((1 << 20) + 200) + 10 * (3 << 20);
    for run in &replay.runs {
        let bytes = run
            .bytes
            .unwrap_or_else(|| panic!("{} has no bytes", run.policy));
        assert_eq!(
            (run.references, bytes.requested),
            (160, asked),
            "{}",
            run.policy
        );
        let bound = of(&replay, "pfoo-l", run.size_pages);
        let least = bound.bytes.expect("bytes").missed;
        assert!(
            run.misses >= bound.misses && bytes.missed >= least,
            "{}",
            run.policy
        );
    }
    // All fit: each object misses once.
    let lru = of(&replay, "lru", footprint);
    assert_eq!(
        (lru.misses, lru.bytes.expect("bytes").missed),
        (4, footprint)
    );
    // The large object alone fills 1 MiB: nothing else is there when it comes, and it is gone when it
    // comes again. The huge one never comes in.
    let lru = of(&replay, "lru", 1 << 20);
    assert_eq!((lru.hits, lru.bytes.expect("bytes").too_large), (0, 10));
    let note = &replay.conditions.notes[0];
    assert!(note.contains("100B to 3MiB"), "{note}");

    let warm = ReplayRequest {
        warmup: 100,
        ..request(vec![path], &["lru", "belady-size", "pfoo-l"], &["100%"])
    };
    for own in &run(&warm).runs {
        assert_eq!((own.references, own.misses), (60, 0), "{}", own.policy);
    }
}

#[test]
fn a_size_that_changes_is_told_and_counts() {
    let bench = Bench::new();
    let path = bench.folder.path().join("t.oracleGeneral");
    let requests = [(1, 10), (2, 10), (1, 95), (2, 10), (1, 10), (1, 10)];
    std::fs::write(&path, objects(&requests)).expect("a trace");
    let replay = run(&request(vec![path], &["lru"], &["100B"]));
    // Object 1 grows to 95 B and pushes object 2 out, which comes back in its place.
    assert_eq!(replay.runs[0].hits, 2);
    assert_eq!(replay.runs[0].bytes.expect("bytes").missed, 40);
    assert_eq!(replay.traces[0].object_bytes, Some(105));
    let notes = replay.conditions.notes.join("\n");
    assert!(notes.contains("2 requests say another size"), "{notes}");
}

/// The same with a request of each trace in turn.
fn turned(mut asked: ReplayRequest) -> ReplayRequest {
    asked.input.align = Align::Turn;
    asked
}

#[test]
fn what_has_no_meaning_for_objects_of_different_sizes_is_refused_with_the_reason() {
    let bench = Bench::new();
    let path = bench.folder.path().join("t.oracleGeneral");
    std::fs::write(&path, objects(&mixed())).expect("a trace");
    let blocks = bench.file("t.ids", &ids(100));
    let plain = request(vec![path.clone()], &["lru"], &["1MiB"]);
    let cases: [(ReplayRequest, &[&str]); 5] = [
        (
            request(vec![path.clone()], &["lru", "arc"], &["1MiB"]),
            &["\"arc\"", "no form", "belady-size", "--ignore-sizes"],
        ),
        (
            ReplayRequest {
                device: DeviceChoice::Preset("nvme".into()),
                ..plain.clone()
            },
            &["nvme", "no place on a disk", "--ignore-sizes"],
        ),
        (
            ReplayRequest {
                curves: Some(CurveRequest::default()),
                ..plain.clone()
            },
            &["--mrc", "--size", "--ignore-sizes"],
        ),
        (
            turned(request(vec![path, blocks.clone()], &["lru"], &["1MiB"])),
            &["t.ids", "100 requests without a size", "--ignore-sizes"],
        ),
        (
            request(vec![blocks], &["pfoo-l"], &["1MiB"]),
            &["pfoo-l", "min"],
        ),
    ];
    for (asked, words) in cases {
        let error = replay(&asked, Hooks::default()).expect_err("refused");
        assert!(error.is_usage());
        let text = error.to_string();
        for word in words {
            assert!(text.contains(word), "{word} is missing in {text}");
        }
    }
}

#[test]
fn sizes_are_ignored_only_if_that_is_said() {
    let bench = Bench::new();
    let path = bench.folder.path().join("t.oracleGeneral");
    std::fs::write(&path, objects(&mixed())).expect("a trace");
    let asked = ReplayRequest {
        ignore_sizes: true,
        ..request(vec![path], &["lru", "arc", "min"], &["8KiB"])
    };
    let replay = run(&asked);
    assert_eq!((replay.sizes[0], replay.conditions.page_bytes), (2, 4096));
    assert!(replay.runs.iter().all(|run| run.bytes.is_none()));
    let note = &replay.conditions.notes[0];
    assert!(
        note.contains("--ignore-sizes") && note.contains("100B to 3MiB"),
        "{note}"
    );

    let same = bench.folder.path().join("same.oracleGeneral");
    let requests: Vec<(u64, u32)> = (0..90).map(|n| (n * n % 7, 512)).collect();
    std::fs::write(&same, objects(&requests)).expect("a trace");
    let notes = run(&request(vec![same], &["arc"], &["8KiB"]))
        .conditions
        .notes;
    assert!(notes[0].contains("every object has 512B"), "{notes:?}");
}
