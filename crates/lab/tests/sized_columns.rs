//! Objects of different sizes in texts of columns: whole replays beside lists that are searched from
//! end to end.

use std::{collections::HashMap, fmt::Write as _, path::Path};

use piebald_experiment::{DiskStart, MemorySize};
use piebald_lab::{
    Hooks,
    replay::{DeviceChoice, LayoutChoice, Load, Part, ReplayRequest, replay},
};
use piebald_report::Replay;
use piebald_sim::replay::{InputSetup, Pace};
use piebald_trace::block::Options;

struct Draws(u64);

impl Draws {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1);
        (self.0 >> 33) % n
    }
}

/// A request for an object: its name and its size.
type Request = (u64, u64);

/// Objects of 1 B to 60 kB, small names often; sizes that stay, or change now and then.
fn requests(seed: u64, changes: bool) -> Vec<Request> {
    let mut draws = Draws(seed);
    let one = |_| {
        let id = draws.below(40) * draws.below(40) / 20;
        let version = if changes { draws.below(2) } else { 0 };
        (id, 1 + (id * id * 7919 + version * 4096) % 60_000)
    };
    (0..5_000).map(one).collect()
}

/// The same as a text: time, process, name, kind, size.
fn text(requests: &[Request]) -> String {
    let mut text = String::from("time;pid;key;kind;bytes\n");
    for (at, (id, size)) in requests.iter().enumerate() {
        let _ = writeln!(text, "{at};{};obj-{id};GET;{size}", 100 + at % 3);
    }
    text
}

/// What is counted.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    hits: u64,
    misses: u64,
    requested: u64,
    missed: u64,
    too_large: u64,
}

/// The rules of docs/replay.md, said once: what is asked for comes in at the end of a list if it fits,
/// after as many from the front have left as it needs. What has grown makes others leave, or itself if it is
/// at the front. LRU moves a hit to the end.
fn oracle(requests: &[Request], capacity: u64, is_lru: bool) -> Counts {
    let mut list: Vec<Request> = Vec::new();
    let mut counts = Counts::default();
    for &(id, size) in requests {
        counts.requested += size;
        let place = list.iter().position(|(known, _)| *known == id);
        match place {
            Some(at) => {
                counts.hits += 1;
                list[at].1 = size;
                if is_lru {
                    let hit = list.remove(at);
                    list.push(hit);
                }
                if size > capacity {
                    list.retain(|(known, _)| *known != id);
                }
            }
            None => {
                counts.misses += 1;
                counts.missed += size;
                if size > capacity {
                    counts.too_large += 1;
                    continue;
                }
            }
        }
        let held = |list: &[Request]| list.iter().map(|(_, size)| size).sum::<u64>();
        let coming = if place.is_some() { 0 } else { size };
        while held(&list) + coming > capacity {
            list.remove(0);
        }
        if place.is_none() {
            list.push((id, size));
        }
    }
    counts
}

fn run(path: &Path, columns: &str, capacities: &[u64], ignore_sizes: bool) -> Replay {
    let specs = |names: &[&str]| -> Vec<_> {
        let parse = |n: &&str| n.parse().expect("a policy");
        names.iter().map(parse).collect()
    };
    let request = ReplayRequest {
        input: InputSetup {
            paths: vec![path.to_owned()],
            options: Options {
                columns: Some(columns.parse().expect("columns")),
                ..Options::default()
            },
            ..InputSetup::default()
        },
        object_policies: specs(&["lru", "fifo"]),
        policies: specs(&["lru", "fifo"]),
        ignore_sizes,
        sizes: capacities
            .iter()
            .map(|bytes| -> MemorySize { format!("{bytes}B").parse().expect("a size") })
            .collect(),
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
    };
    replay(&request, Hooks::default()).unwrap_or_else(|e| panic!("{e}"))
}

const NAMED: &str = "time=time:s,process=pid,id=key:text,op=kind:GET/PUT,size=bytes:B";

#[test]
fn counts_and_bytes_are_those_of_lists_that_are_searched() {
    let folder = tempfile::tempdir().expect("a folder");
    let capacities = [1, 30_000, 250_000, 1_000_000];
    for (seed, changes) in [(1, false), (2, true), (3, false), (4, true)] {
        let requests = requests(seed, changes);
        let path = folder.path().join("t.csv");
        std::fs::write(&path, text(&requests)).expect("written");
        let found = run(&path, NAMED, &capacities, false);
        assert_eq!(found.runs.len(), 8);
        for run in &found.runs {
            let bytes = run.bytes.as_ref().expect("bytes are counted");
            let counts = Counts {
                hits: run.hits,
                misses: run.misses,
                requested: bytes.requested,
                missed: bytes.missed,
                too_large: bytes.too_large,
            };
            let expected = oracle(&requests, run.size_pages, run.policy == "lru");
            let of = (seed, &run.policy, run.size_pages);
            assert_eq!(counts, expected, "{of:?}");
        }
        // Each object once, with its largest size.
        let mut largest: HashMap<u64, u64> = HashMap::new();
        for (id, size) in &requests {
            let known = largest.entry(*id).or_default();
            *known = (*size).max(*known);
        }
        assert_eq!(found.traces[0].object_bytes, Some(largest.values().sum()));
        assert_eq!(found.traces[0].unique_pages, largest.len() as u64);
    }
}

#[test]
fn units_and_numbers_change_no_count() {
    let folder = tempfile::tempdir().expect("a folder");
    let requests = requests(5, false);
    let (mut bytes, mut kib) = (String::new(), String::new());
    for (id, size) in &requests {
        let _ = writeln!(bytes, "{id} {}", size * 1024);
        let _ = writeln!(kib, "{id:x},{size:x}");
    }
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    };
    let capacities = [40 << 20, 300 << 20];
    let plain = run(&file("a", &bytes), "id=1,size=2", &capacities, false);
    let scaled = run(
        &file("b", &kib),
        "id=1:hex,size=2:KiB:hex",
        &capacities,
        false,
    );
    assert_eq!(plain.runs, scaled.runs);
    for run in &plain.runs {
        let large: Vec<Request> = requests
            .iter()
            .map(|(id, size)| (*id, size * 1024))
            .collect();
        let expected = oracle(&large, run.size_pages, run.policy == "lru");
        let missed = run.bytes.as_ref().map(|b| b.missed);
        assert_eq!((run.hits, missed), (expected.hits, Some(expected.missed)));
    }
    // Each object as a page: the sizes are as good as 4096 B.
    let ignored = run(&folder.path().join("a"), "id=1,size=2", &[64 * 4096], true);
    let pages: Vec<Request> = requests.iter().map(|(id, _)| (*id, 4096)).collect();
    for run in &ignored.runs {
        let expected = oracle(&pages, 64 * 4096, run.policy == "lru");
        assert_eq!(run.hits, expected.hits, "{}", run.policy);
    }
}
