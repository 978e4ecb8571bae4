//! Words in, counts out, on a modelled W3540.

use super::*;
use crate::system::args;

fn watcher(vcpus: usize) -> Watcher {
    watcher_with(vcpus, &[])
}

fn watcher_with(vcpus: usize, more: &[&str]) -> Watcher {
    let words = ["machine=w3540", "output=none.json", "memory=1073741824"];
    let words = words.iter().chain(more).map(|w| (*w).to_owned());
    let args = args::read(&words.collect::<Vec<_>>()).expect("good arguments");
    Watcher::new(&args, vcpus).expect("the W3540 can be built")
}

fn word(kind: Kind, addr: u64) -> Word {
    Word::reference(kind, addr, 3, 2)
}

/// Loads of `lines` lines from `first` on.
fn scan(first: u64, lines: u64) -> Vec<Word> {
    let line = |i| word(Kind::Load, first + 64 * i);
    (0..lines).map(line).collect()
}

fn quantum(watcher: &mut Watcher, vcpu: usize, words: &[Word]) {
    watcher.begin();
    watcher.references(vcpu, words);
    watcher.end();
}

fn mark(watcher: &mut Watcher, op: Op) -> bool {
    watcher.mark(0, Mark { op, region: 1 }.code())
}

#[test]
fn a_scan_misses_each_line_once_and_then_what_does_not_fit() {
    let mut watcher = watcher(1);
    assert!(mark(&mut watcher, Op::Start));
    // 64 KiB: twice the first level, a quarter of the second.
    let lines = 1024;
    quantum(&mut watcher, 0, &scan(1 << 20, lines));
    quantum(&mut watcher, 0, &scan(1 << 20, lines));
    assert!(!mark(&mut watcher, Op::Stop), "no region is open any more");
    let counts = &watcher.regions()[0].vcpus[0];
    assert_eq!(counts.references, 2 * lines);
    assert_eq!(counts.instructions, 4 * lines);
    assert_eq!(counts.levels[0].misses, 2 * lines);
    assert_eq!(counts.levels[1].misses, lines);
    assert_eq!(counts.levels[2].misses, lines);
    assert_eq!(counts.memory_reads, lines);
    let rows = counts.row_hits + counts.row_closed + counts.row_conflicts;
    assert_eq!(rows, lines);
    assert!(counts.row_hits > lines * 9 / 10, "{counts:?}");
    assert_eq!(watcher.references, 2 * lines);
}

#[test]
fn processors_share_the_last_level_and_nothing_else() {
    let mut watcher = watcher(2);
    mark(&mut watcher, Op::Start);
    let lines = 100;
    quantum(&mut watcher, 0, &scan(1 << 20, lines));
    quantum(&mut watcher, 1, &scan(1 << 20, lines));
    let vcpus = &watcher.regions()[0].vcpus;
    let misses = |v: usize| [0, 1, 2].map(|k| vcpus[v].levels[k].misses);
    assert_eq!(misses(0), [lines; 3]);
    assert_eq!(misses(1), [lines, lines, 0]);
}

#[test]
fn regions_count_while_they_are_open() {
    let mut watcher = watcher(1);
    let dumped = |watcher: &Watcher| {
        let last = watcher.dumps().last().expect("was dumped");
        (last.region, last.vcpus[0].references)
    };
    quantum(&mut watcher, 0, &scan(0, 5));
    mark(&mut watcher, Op::Start);
    quantum(&mut watcher, 0, &scan(0, 7));
    mark(&mut watcher, Op::Start);
    mark(&mut watcher, Op::Dump);
    assert_eq!(dumped(&watcher), (1, 7), "a second start changes nothing");
    mark(&mut watcher, Op::Stop);
    quantum(&mut watcher, 0, &scan(0, 100));
    mark(&mut watcher, Op::Start);
    quantum(&mut watcher, 0, &scan(0, 11));
    mark(&mut watcher, Op::Dump);
    assert_eq!(
        dumped(&watcher),
        (1, 18),
        "what came between does not count"
    );
    mark(&mut watcher, Op::Clear);
    quantum(&mut watcher, 0, &scan(0, 3));
    mark(&mut watcher, Op::Stop);
    mark(&mut watcher, Op::Dump);
    assert_eq!(dumped(&watcher), (1, 3));
    assert_eq!(watcher.dumps().len(), 3);
}

#[test]
fn non_temporal_stores_go_around_the_caches_line_by_line() {
    let mut watcher = watcher(1);
    mark(&mut watcher, Op::Start);
    let line = 1 << 20;
    quantum(&mut watcher, 0, &scan(line, 1));
    let stores: Vec<Word> = (0..8).map(|i| word(Kind::StoreNt, line + 8 * i)).collect();
    quantum(&mut watcher, 0, &stores);
    let counts = watcher.regions()[0].vcpus[0].clone();
    assert_eq!((counts.nt_stores, counts.memory_writes), (8, 1));
    assert_eq!((counts.references, counts.instructions), (1, 18));
    quantum(&mut watcher, 0, &scan(line, 1));
    let counts = watcher.regions()[0].vcpus[0].clone();
    assert_eq!(counts.memory_reads, 2, "the caches have lost the line");
}

#[test]
fn locked_instructions_and_lines_that_change_hands_are_counted() {
    let mut watcher = watcher(3);
    mark(&mut watcher, Op::Start);
    let stores = |kind, at: u64| [word(kind, at), word(kind, at + 8)];
    quantum(&mut watcher, 0, &stores(Kind::Store, 1 << 20));
    quantum(&mut watcher, 0, &stores(Kind::StoreLocked, 1 << 20));
    // A processor that only reads a line is not the one that wrote it last.
    quantum(&mut watcher, 1, &scan(1 << 20, 1));
    quantum(&mut watcher, 2, &stores(Kind::StoreLocked, 1 << 20));
    quantum(&mut watcher, 2, &stores(Kind::Store, 1 << 21));
    quantum(&mut watcher, 0, &stores(Kind::StoreNt, 1 << 20));
    let vcpus = &watcher.regions()[0].vcpus;
    let counts = |v: usize| (vcpus[v].locked, vcpus[v].shared_writes);
    assert_eq!([counts(0), counts(1), counts(2)], [(2, 1), (0, 0), (2, 1)]);
    assert_eq!((vcpus[0].references, vcpus[2].references), (4, 4));
}

#[test]
fn processors_wait_for_one_another_at_the_end_of_a_quantum() {
    let mut watcher = watcher(2);
    mark(&mut watcher, Op::Start);
    watcher.begin();
    watcher.pass(0, 1000);
    watcher.pass(1, 10);
    watcher.end();
    watcher.begin();
    watcher.pass(1, 10);
    watcher.end();
    let vcpus = &watcher.regions()[0].vcpus;
    // Cycles of 341 ps, 0.6 for an instruction.
    let near = |ps: u64, instructions: f64| {
        let expected = instructions * 0.6 * 341.3;
        assert!(
            (ps as f64 - expected).abs() < 0.02 * expected,
            "{ps} for {expected}"
        );
    };
    near(vcpus[0].time_ps, 1000.0);
    near(vcpus[1].time_ps, 20.0);
    near(watcher.now.0, 1010.0);
}

#[test]
fn a_machine_with_too_few_cores_is_refused() {
    let words = ["machine=w3540", "output=none.json", "memory=1073741824"];
    let args = args::read(&words.map(str::to_owned)).expect("good arguments");
    let error = Watcher::new(&args, 5).err().expect("4 cores");
    assert!(error.contains("allowed: 1 to 4"), "{error}");
}

#[test]
fn what_is_published_is_what_was_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("counters");
    let mut watcher = watcher_with(2, &[&format!("counters={}", file.display())]);
    mark(&mut watcher, Op::Start);
    // 1 MiB: more than the second level, less than the last.
    let lines = 16384;
    quantum(&mut watcher, 1, &scan(1 << 20, lines));
    quantum(&mut watcher, 1, &scan(1 << 20, lines));
    assert!(mark(&mut watcher, Op::Publish), "the region is open still");
    watcher.publish();
    let bytes = std::fs::read(&file).expect("it is there");
    let word = |i: usize| {
        let bytes = &bytes[8 * i..8 * i + 8];
        u64::from_le_bytes(bytes.try_into().expect("a word"))
    };
    let of = |vcpu: usize, event: &str| {
        let at = EVENTS.iter().position(|e| *e == event).expect("an event");
        word(64 + 16 * vcpu + at)
    };
    assert!(
        (0..EVENTS.len()).all(|i| word(64 + i) == 0),
        "the other one"
    );
    assert_eq!(of(1, "instructions"), 4 * lines);
    assert_eq!(of(1, "references"), 2 * lines);
    assert_eq!(of(1, "l2-misses"), 2 * lines);
    assert_eq!(of(1, "llc-references"), 2 * lines);
    assert_eq!(of(1, "llc-misses"), lines);
    assert_eq!(of(1, "memory-reads"), lines);
    let counts = &watcher.regions()[0].vcpus[1];
    assert_eq!(of(1, "row-hits"), counts.row_hits);
    let cycles = of(1, "cycles") as f64;
    let expected = counts.time_ps as f64 * watcher.clock.0 as f64 / 1e12;
    assert!((cycles - expected).abs() <= 1.0, "{cycles} {expected}");
    // No region comes of it.
    assert_eq!(watcher.regions().len(), 1);
}
