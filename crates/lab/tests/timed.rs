//! Replays at a trace's own times, of traces whose stamps step back and of traces without any.

use std::{fmt::Write as _, path::PathBuf};

use piebald_experiment::DiskStart;
use piebald_lab::{
    Hooks,
    replay::{DeviceChoice, LayoutChoice, Load, Part, ReplayError, ReplayRequest, replay},
};
use piebald_report::Replay;
use piebald_sim::replay::{Align, InputSetup, Pace};

/// Requests of a disk: microseconds, page, pages.
type Request = (u64, u64, u64);

/// Requests whose stamps step back by up to 9 ms, from a fixed generator.
fn requests(n: u64) -> Vec<Request> {
    let mut state = 11u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
        (state >> 33) % below
    };
    let one = |i: u64| {
        let late = if i % 5 == 4 { draw(9_000) } else { 0 };
        (20_000 + i * 700 - late, draw(3_000), 1 + draw(4))
    };
    (0..n).map(one).collect()
}

/// In the form of MSR Cambridge, whose times are tenths of microseconds.
fn msr(requests: &[Request]) -> String {
    let mut text = String::new();
    for (us, page, pages) in requests {
        let time = 128_166_372_003_061_620 + us * 10;
        let (offset, size) = (page * 4096, pages * 4096);
        let _ = writeln!(text, "{time},hm,0,Read,{offset},{size},100");
    }
    text
}

fn request(paths: Vec<PathBuf>, pace: Pace) -> ReplayRequest {
    let specs = |names: &[&str]| -> Vec<_> {
        let parse = |n: &&str| n.parse().expect("a policy");
        names.iter().map(parse).collect()
    };
    ReplayRequest {
        input: InputSetup {
            paths,
            ..InputSetup::default()
        },
        object_policies: specs(&["lru"]),
        policies: specs(&["lru", "clock"]),
        ignore_sizes: false,
        sizes: vec!["2MiB".parse().expect("a size")],
        device: DeviceChoice::Preset("sata-7200".into()),
        readahead: "6.x".into(),
        scheduler: "mq-deadline".into(),
        layout: LayoutChoice::Auto,
        pace,
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

fn notes(replay: &Replay) -> String {
    replay.conditions.notes.join("\n")
}

#[test]
fn stamps_that_step_back_give_the_replay_of_the_sorted_trace_and_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    };
    let mut all = requests(3_000);
    let (mut latest, mut largest, mut earlier) = (0, 0, 0);
    for (us, ..) in &all {
        earlier += u64::from(*us < latest);
        largest = largest.max(latest.saturating_sub(*us));
        latest = latest.max(*us);
    }
    assert!(earlier > 100 && largest > 5_000, "{earlier} {largest}");
    let mixed = file("mixed.csv", &msr(&all));
    all.sort_by_key(|r| r.0);
    let sorted = file("sorted.csv", &msr(&all));
    // Each request is a task of its own if the paces differ, so that order matters in both.
    let [of_mixed, of_sorted] =
        [&mixed, &sorted].map(|path| run(&request(vec![path.clone()], Pace::Timed)));
    assert_eq!(of_mixed.runs, of_sorted.runs);
    assert_eq!(notes(&of_sorted), "");
    let told = format!(
        "mixed.csv: {earlier} of 3000 requests are earlier than one before them, by up to "
    );
    let said = notes(&of_mixed);
    assert!(said.contains(&told), "{said}");
    let step = piebald_units::Picos(largest * 1_000_000).to_string();
    assert!(
        said.contains(&format!("by up to {step}; they are sorted")),
        "{said}"
    );
    // In its own order the trace is another one, and the step is told all the same.
    let [serial, of_sorted] =
        [&mixed, &sorted].map(|path| run(&request(vec![path.clone()], Pace::Serial)));
    assert_ne!(serial.runs, of_sorted.runs);
    let said = notes(&serial);
    assert!(
        said.contains(&format!("by up to {step}; the order is the trace's")),
        "{said}"
    );
    let mut plain = request(vec![mixed], Pace::Serial);
    plain.device = DeviceChoice::None;
    assert!(notes(&run(&plain)).contains(&told));
}

#[test]
fn several_traces_are_sorted_before_they_are_merged() {
    let folder = tempfile::tempdir().expect("a folder");
    let all = requests(2_000);
    let mut paths = Vec::new();
    for half in 0..2 {
        let part = all.iter().skip(half).step_by(2).copied();
        let path = folder.path().join(format!("{half}.csv"));
        std::fs::write(&path, msr(&part.collect::<Vec<Request>>())).expect("written");
        paths.push(path);
    }
    let mut sorted = all;
    sorted.sort_by_key(|r| r.0);
    let whole = folder.path().join("whole.csv");
    std::fs::write(&whole, msr(&sorted)).expect("written");
    // One task for each trace: with calls that take no time the order alone counts.
    let of = |paths: Vec<PathBuf>| {
        let mut asked = request(paths, Pace::Timed);
        asked.device = DeviceChoice::Preset("sata-ssd".into());
        asked.readahead = "none".into();
        asked.sizes = vec!["64MiB".parse().expect("a size")];
        run(&asked)
    };
    let (halves, whole) = (of(paths), of(vec![whole]));
    let counts =
        |r: &Replay| -> Vec<_> { r.runs.iter().map(|r| (r.references, r.misses)).collect() };
    assert_eq!(counts(&halves), counts(&whole));
    assert_eq!(notes(&halves).matches("they are sorted").count(), 2);
}

#[test]
fn a_trace_is_not_merged_with_itself_unless_that_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.csv");
    std::fs::write(&path, msr(&requests(100))).expect("written");
    let twice = || request(vec![path.clone(), path.clone()], Pace::Serial);
    let error = replay(&twice(), Hooks::default()).expect_err("twice");
    let text = error.to_string();
    assert!(
        error.is_usage() && text.contains("t.csv\": is given twice"),
        "{text}"
    );
    let once = run(&request(vec![path.clone()], Pace::Serial));
    for align in [Align::Start, Align::Turn] {
        let mut asked = twice();
        asked.input.align = align;
        let both = run(&asked);
        assert_eq!(both.runs[0].references, 2 * once.runs[0].references);
    }
}

#[test]
fn without_stamps_or_without_a_device_there_is_no_pace_to_follow() {
    let folder = tempfile::tempdir().expect("a folder");
    let bare = folder.path().join("bare.fpt");
    std::fs::write(&bare, "F 0 40960000 a\nR 1 0 5 1\nR 1 0 9 2\n").expect("written");
    let stamped = folder.path().join("stamped.csv");
    std::fs::write(&stamped, msr(&requests(10))).expect("written");
    let refused = |asked: &ReplayRequest, part: &str| {
        let error = replay(asked, Hooks::default()).expect_err(part);
        assert!(error.is_usage());
        let text = error.to_string();
        assert!(text.starts_with("pace \"") && text.contains(part), "{text}");
    };
    refused(
        &request(vec![bare.clone()], Pace::Timed),
        "bare.fpt has no times; allowed: serial",
    );
    let mut turns = request(vec![stamped.clone(), bare], Pace::Timed);
    turns.input.align = Align::Turn;
    refused(&turns, "bare.fpt has no times");
    for (pace, name) in [
        (Pace::Timed, "timed"),
        (Pace::Tasks, "tasks"),
        (Pace::Ordered, "ordered"),
    ] {
        let mut plain = request(vec![stamped.clone()], pace);
        plain.device = DeviceChoice::None;
        refused(
            &plain,
            &format!("\"{name}\": calls take no time without a device"),
        );
    }
    let error = replay(&request(vec![], Pace::Serial), Hooks::default()).expect_err("no trace");
    assert!(matches!(error, ReplayError::Nothing("trace")));
}

/// Requests of one moment, a pause of years between two, and a page beyond all that is counted.
#[test]
fn odd_times_and_places_are_replayed_or_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    };
    let line = |us: u64, page: u64| {
        format!(
            "0,{},4096,R,{}.{:06}\n",
            page * 8,
            us / 1_000_000,
            us % 1_000_000
        )
    };
    let at_once = file(
        "once.spc",
        (0..40).map(|page| line(500_000, page)).collect(),
    );
    let replay = run(&request(vec![at_once], Pace::Timed));
    assert_eq!(replay.runs[0].misses + replay.runs[0].hits, 40);
    // They are of one process, which waits all the time.
    let io = replay.runs[0].io.as_ref().expect("a disk");
    assert!(io.elapsed_s > 0.0 && io.waited_s == io.elapsed_s, "{io:?}");
    // Days, in microseconds: half a year is in simulated time, ten years are not.
    let gap = |days: u64| {
        let us = days * 86_400 * 1_000_000;
        let times = [0, us, us + 1];
        let path = file("gap.spc", times.iter().map(|us| line(*us, 3)).collect());
        request(vec![path], Pace::Timed)
    };
    let replay = run(&gap(180));
    let io = replay.runs[0].io.as_ref().expect("a disk");
    assert!((io.elapsed_s - 180.0 * 86_400.0).abs() < 1.0, "{io:?}");
    assert!(io.waited_s < 1.0, "{io:?}");
    let error = replay_error(&gap(3650));
    assert!(
        error.contains("a request is 3650 days after the first; allowed")
            && error.contains("up to 213 days"),
        "{error}"
    );
    let far = file("far.spc", [line(0, 1), line(1, (1 << 40) + 7)].concat());
    let error = replay_error(&request(vec![far], Pace::Timed));
    assert!(error.contains("page 1099511627783"), "{error}");
}

fn replay_error(request: &ReplayRequest) -> String {
    match replay(request, Hooks::default()) {
        Ok(_) => panic!("taken"),
        Err(error) => error.to_string(),
    }
}
