//! Logs of a program that writes down what it does: `strace_logs/ops.c`, which `record.sh` ran under
//! strace with many options. Each log must lead to the program's own list, which comes from the kernel:
//! the offsets are those that it gave before each call.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use piebald_trace::block::{BlockTrace, Op, Options, Request, Target, fuzz};
use piebald_trace::block::{Format, Nanos};

use super::support::options;

/// One process (`one.list`) and several (`many.list`).
const ONE: [&str; 8] = [
    "plain",
    "bare",
    "stacks",
    "numbers",
    "comments",
    "undecoded",
    "verbose",
    "dumped",
];
const MANY: [&str; 9] = [
    "forked",
    "stderr-f",
    "stderr-f-bare",
    "all-f",
    "all-stderr-f",
    "relative",
    "relative-stderr",
    "succeeded",
    "quiet",
];

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/block/strace_logs")
        .join(name)
}

/// Runs whose processes have a file each.
const APART: [&str; 2] = ["apart", "apart-day"];

/// All requests, and the trace that they come from. The format is found out.
fn read(path: &Path, options: Options) -> (Vec<Request>, BlockTrace) {
    read_all(BlockTrace::open(path, options).unwrap_or_else(|e| panic!("{e}")))
}

fn read_all(mut trace: BlockTrace) -> (Vec<Request>, BlockTrace) {
    assert_eq!(trace.format(), Format::Strace, "{}", trace.name());
    let (mut all, mut batch) = (Vec::new(), Vec::new());
    while trace
        .next_batch(&mut batch)
        .unwrap_or_else(|e| panic!("{e}"))
    {
        all.extend_from_slice(&batch);
    }
    (all, trace)
}

/// Numbers things in order of their first appearance, whatever they are called.
#[derive(Default)]
struct Order<T>(HashMap<T, usize>);

impl<T: std::hash::Hash + Eq> Order<T> {
    fn number(&mut self, thing: T) -> usize {
        let next = self.0.len();
        *self.0.entry(thing).or_insert(next)
    }
}

/// Requests as the program writes them. Its messages and its list go to files as well, which it does
/// not write down. Without `-y` no log says in which directory it ran.
fn lines(log: &str) -> Vec<String> {
    lines_of(read(&file(&format!("{log}.log")), Options::default()))
}

fn lines_of((requests, trace): (Vec<Request>, BlockTrace)) -> Vec<String> {
    let mut tasks = Order::default();
    let mut lines = Vec::new();
    for request in requests {
        let Target::File {
            file,
            offset,
            length,
        } = request.target
        else {
            panic!("{request:?}");
        };
        let path = trace.files().get(file).expect("a file").path();
        let name = path.strip_prefix("/tmp/ops/").unwrap_or(&path);
        if matches!(name, "raw" | "list") {
            continue;
        }
        let what = format!("{} /tmp/ops/{name} {offset}", request.op.name());
        let task = tasks.number(request.task);
        lines.push(match request.op {
            Op::Delete => format!("{task} {what}"),
            _ => format!("{task} {what} {length}"),
        });
    }
    lines
}

/// The program's own list.
fn list(name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(file(&format!("{name}.list"))).expect("a list");
    let mut tasks = Order::default();
    let lines = text.lines().map(|line| {
        let (task, rest) = line.split_once(' ').expect(line);
        format!("{} {rest}", tasks.number(task.to_owned()))
    });
    lines.collect()
}

#[test]
fn logs_lead_to_what_the_program_did() {
    let (one, many) = (list("one"), list("many"));
    assert!(one.len() > 40 && many.len() > 30);
    for log in ONE {
        assert_eq!(lines(log), one, "{log}");
    }
    for log in MANY {
        assert_eq!(lines(log), many, "{log}");
    }
}

/// The files of a run, in the order of their names.
fn apart(run: &str) -> Vec<PathBuf> {
    let is_of = |name: &String| name.strip_prefix(run).is_some_and(|n| n.starts_with('.'));
    let mut names: Vec<String> = names().into_iter().filter(is_of).collect();
    names.sort();
    names.iter().map(|name| file(name)).collect()
}

#[test]
fn the_files_of_one_run_lead_to_what_all_processes_did() {
    let many = list("many");
    for run in APART {
        let mut paths = apart(run);
        assert_eq!(paths.len(), 4, "{run}");
        for _ in 0..2 {
            let opened = BlockTrace::open_runs(&paths, &Options::default());
            let mut traces = opened.unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(traces.len(), 1, "{run}");
            assert_eq!(lines_of(read_all(traces.remove(0))), many, "{run}");
            // In whatever order they are named.
            paths.reverse();
        }
    }
}

fn names() -> Vec<String> {
    let folder = std::fs::read_dir(file("")).expect("a directory");
    let names = folder.map(|entry| entry.expect("a file").file_name().into_string());
    names.filter_map(Result::ok).collect()
}

#[test]
fn every_log_is_tried() {
    let logs = names().iter().filter(|n| n.ends_with(".log")).count();
    assert_eq!(logs, ONE.len() + MANY.len());
    let files: usize = APART.iter().map(|run| apart(run).len()).sum();
    let other = ["ops.c", "record.sh", "one.list", "many.list"].len();
    assert_eq!(names().len(), logs + files + other);
}

/// The times of all requests, in order.
fn times(log: &str) -> Vec<Nanos> {
    let (requests, trace) = read(&file(&format!("{log}.log")), Options::default());
    assert_eq!(trace.notes().backward, 0, "{log}");
    let times = requests.iter().map(|r| r.time.expect("a time"));
    times.collect()
}

#[test]
fn times_are_those_of_the_lines() {
    let text = |log: &str| std::fs::read_to_string(file(&format!("{log}.log"))).expect("a log");
    let nanos = |word: &str| (word.parse::<f64>().expect(word) * 1e6).round() as u64 * 1000;
    // The last request is the program's list, and the time is the second word of its line.
    let last = |log: &str| {
        let text = text(log);
        let line = text.lines().rfind(|l| l.contains("write(1<")).expect(log);
        line.split_whitespace().nth(1).expect(line).to_owned()
    };
    let epoch = times("all-f");
    assert_eq!(epoch.last(), Some(&Nanos(nanos(&last("all-f")))));
    // The steps of all lines so far.
    let text = text("relative");
    let end = text.rfind("write(1<").expect("the list");
    let steps = text[..end].lines();
    let words = steps.map(|l| l.split_whitespace().nth(1).expect(l));
    let sum: u64 = words.map(nanos).sum();
    assert_eq!(times("relative").last(), Some(&Nanos(sum)));
    // Hours, minutes and seconds, of the first process and of others.
    for log in ["all-stderr-f", "relative-stderr"] {
        let times = times(log);
        let first = times.first().expect("requests").0 / 1_000_000_000;
        assert!(0 < first && first < 86_400, "{log}: {first}");
        assert!(times.last().expect("requests").0 / 1_000_000_000 - first < 5);
    }
    let (untimed, _) = read(&file("forked.log"), Options::default());
    assert!(untimed.iter().all(|r| r.time.is_none()));
}

#[test]
fn files_of_one_process_get_it_from_their_name() {
    let folder = std::env::temp_dir().join(format!("piebald-strace-ff-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a directory");
    for (name, task) in [("log.4711", 4711), ("log", 0)] {
        let path = folder.join(name);
        std::fs::copy(file("plain.log"), &path).expect("a copy");
        let (requests, _) = read(&path, Options::default());
        assert!(requests.iter().all(|r| r.task == task), "{name}");
    }
    std::fs::remove_dir_all(&folder).expect("no directory");
}

/// SplitMix64 (Steele, Lea, Flood 2014).
fn random(state: &mut u64) -> usize {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ z >> 31) as usize
}

#[test]
fn lines_that_are_mixed_up_keep_the_readers_promises() {
    let mut state = 0x57ac_e000;
    for log in ONE.iter().chain(&MANY) {
        let text = std::fs::read(file(&format!("{log}.log"))).expect("a log");
        for _ in 0..20 {
            let mut lines: Vec<&[u8]> = text.split_inclusive(|b| *b == b'\n').collect();
            for _ in 0..random(&mut state) % 8 + 1 {
                let (from, to) = (random(&mut state), random(&mut state));
                let (from, to) = (from % lines.len(), to % lines.len());
                match random(&mut state) % 4 {
                    0 => drop(lines.remove(from)),
                    1 => lines.swap(from, to),
                    2 => lines.insert(to, lines[from]),
                    _ => lines[from] = &lines[from][..random(&mut state) % lines[from].len()],
                }
            }
            fuzz::read(&options(Format::Strace), &lines.concat());
        }
    }
}
