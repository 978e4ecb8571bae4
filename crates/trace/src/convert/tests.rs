//! Tests of conversion: what goes in comes out on replay.

use std::path::{Path, PathBuf};

use super::*;
use crate::recording::{Recording, ReplayOptions};
use piebald_units::op::{Next, RefKind, SpawnKind, SysOp};

fn samples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/mem");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("test data")
        .map(|e| e.expect("an entry").path())
        .filter(|p| {
            p.file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with("chase."))
        })
        .filter(|p| p.extension().is_some_and(|e| e != "s"))
        .collect();
    files.sort();
    assert!(files.len() >= 7, "{files:?}");
    files
}

/// One step of a program as tests compare it; the gap of a reference counts all instructions
/// since the last reference or event.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Ref(u64, u8, RefKind, u64, u16),
    Event(u64, Next),
}

fn steps(source: &mut dyn OpSource) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut refs = [MemRef::default(); 97];
    let mut gap = 0;
    loop {
        let filled = source.fill(&mut refs);
        for r in &refs[..filled.refs] {
            gap += u64::from(r.gap);
            steps.push(Step::Ref(
                r.addr.0,
                r.size,
                r.kind,
                std::mem::take(&mut gap),
                r.dep,
            ));
        }
        gap += u64::from(filled.tail);
        if filled.next != Next::More {
            steps.push(Step::Event(std::mem::take(&mut gap), filled.next));
        }
        if matches!(filled.next, Next::Exit(_) | Next::End | Next::Broken) {
            assert_eq!(source.failure(), None);
            return steps;
        }
    }
}

fn foreign(path: &Path, fetches: Fetches) -> Vec<Step> {
    let options = Options {
        fetches,
        prefetches: false,
    };
    let trace = ForeignTrace::at(&[path], None, options).expect("a trace");
    steps(&mut trace.open(0).expect("thread 0"))
}

fn converted(path: &Path) -> (Recording, Converted) {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out.pbr");
    let summary = convert(&[path], None, &out).expect("converts");
    let recording = Recording::open(&out).expect("opens");
    recording.verify().expect("whole");
    (recording, summary)
}

fn replayed(recording: &Recording, fetches: bool) -> Vec<Step> {
    let options = ReplayOptions {
        fetches,
        ..ReplayOptions::default()
    };
    steps(&mut recording.source(0, options).expect("thread 0"))
}

/// Writes a trace and gives its references and those of the recording made of it.
fn both_ways(text: &[u8]) -> (Vec<Step>, Vec<Step>, Converted) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("made.trace");
    std::fs::write(&path, text).expect("written");
    let (recording, summary) = converted(&path);
    (
        foreign(&path, Fetches::None),
        replayed(&recording, false),
        summary,
    )
}

#[test]
fn references_events_and_dependences_of_all_samples_come_back() {
    for path in samples() {
        let (recording, summary) = converted(&path);
        let expected = foreign(&path, Fetches::None);
        assert!(expected.len() > 18, "{}", path.display());
        assert_eq!(replayed(&recording, false), expected, "{}", path.display());
        assert_eq!(summary.counts.instructions, 62);
        assert_eq!(summary.counts.references, 18);
        assert!(recording.header().complete);
    }
}

#[test]
fn dependences_of_champsim_samples_are_there_to_be_kept() {
    let path = samples()
        .into_iter()
        .find(|p| p.ends_with("chase.champsim"));
    let (recording, summary) = converted(&path.expect("a ChampSim sample"));
    let dependent = |s: &&Step| matches!(s, Step::Ref(_, _, _, _, dep) if *dep > 0);
    assert!(replayed(&recording, false).iter().filter(dependent).count() > 5);
    assert!(
        !summary.loses.iter().any(|l| l.contains("dependences")),
        "{summary:?}"
    );
}

/// Lines that are fetched, without repetitions.
fn lines(steps: &[Step]) -> Vec<u64> {
    let fetched = steps.iter().filter_map(|s| match s {
        Step::Ref(addr, _, RefKind::Fetch, ..) => Some(addr >> 6),
        _ => None,
    });
    let mut lines: Vec<u64> = fetched.collect();
    lines.dedup();
    lines
}

#[test]
fn the_same_lines_are_fetched_in_the_same_order() {
    for path in samples() {
        let (recording, _) = converted(&path);
        let expected = lines(&foreign(&path, Fetches::Lines));
        assert!(expected.len() > 1);
        assert_eq!(
            lines(&replayed(&recording, true)),
            expected,
            "{}",
            path.display()
        );
    }
}

#[test]
fn traces_without_instructions_keep_their_gaps_and_fetch_nothing() {
    let text = b"l 0x10 0\ns 0x20 70000\nl 0x3fe 4000000000\nl 0x3fe 3\n";
    let (expected, found, summary) = both_ways(text);
    assert_eq!(found, expected);
    assert_eq!(found[1], Step::Ref(0x20, 4, RefKind::Store, 70001, 0));
    assert_eq!(summary.counts.instructions, 1 + 70001 + 4_000_000_001 + 4);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("made.trace");
    std::fs::write(&path, text).expect("written");
    assert_eq!(lines(&replayed(&converted(&path).0, true)), [] as [u64; 0]);
}

#[test]
fn filtered_traces_are_marked_as_incomplete() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("made.trace");
    std::fs::write(&path, "3 9618752\n0 9618816 9618880\n").expect("written");
    let (recording, summary) = converted(&path);
    assert!(!recording.header().complete);
    assert!(recording.header().missing[0].contains("caches"));
    assert!(
        summary
            .assumes
            .iter()
            .any(|a| a.contains("filters them twice"))
    );
    assert_eq!(replayed(&recording, false), foreign(&path, Fetches::None));
}

#[test]
fn a_repeated_instruction_is_one_block_however_often_it_runs() {
    // 9 and then 3000 iterations, loads and stores of the same bytes included.
    let mut text = String::from("I  401000,3\n");
    for (round, n) in [9, 3000].into_iter().enumerate() {
        text.push_str("I  401010,2\n");
        for i in 0..n {
            text.push_str(&format!(
                " L {:x},1\n M {:x},8\n M {:x},8\n",
                0x5000 + i,
                0x7000,
                0x7000 + 4 * round
            ));
        }
    }
    let (expected, found, summary) = both_ways(text.as_bytes());
    assert_eq!(expected.len(), 3 * 3009 + 1);
    assert_eq!(found, expected);
    assert!(summary.distinct_blocks <= 3, "{summary:?}");
    let references: u64 = summary.counts.references;
    assert_eq!(references, 3 * 3009);
}

#[test]
fn a_reference_without_an_instruction_gets_one_and_that_is_said() {
    let (expected, found, summary) = both_ways(b" L 1000,8\nI  401000,3\n S 2000,4\n");
    assert_eq!(expected[0], Step::Ref(0x1000, 8, RefKind::Load, 0, 0));
    assert_eq!(found[0], Step::Ref(0x1000, 8, RefKind::Load, 1, 0));
    assert_eq!(found[1..], expected[1..]);
    assert!(
        summary.assumes[0].starts_with("1 instructions"),
        "{summary:?}"
    );
}

#[test]
fn an_address_above_48_bits_is_cut_and_that_is_said() {
    let (_, found, summary) = both_ways(b"I  401000,3\n S 1122334455667788,4\n");
    let cut = Step::Ref(0x3344_5566_7788, 4, RefKind::Store, 1, 0);
    assert_eq!(found[0], cut);
    assert_eq!(summary.loses, ["1 addresses cut to 48 bits"]);
}

#[test]
fn a_trace_longer_than_a_chunk_comes_back() {
    let mut text = String::new();
    for i in 0..450_000u64 {
        let pc = 0x40_1000 + i % 7 * 4;
        text.push_str(&format!(
            "I  {pc:x},4\n L {:x},8\n S {:x},8\n",
            i * 64,
            0x7000_0000 + i % 4096
        ));
    }
    let (expected, found, summary) = both_ways(text.as_bytes());
    assert!(found == expected);
    assert!(summary.counts.chunks >= 2, "{summary:?}");
}

#[test]
fn damage_is_told_with_its_place_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, out) = (
        folder.path().join("x.lackey"),
        folder.path().join("out.pbr"),
    );
    std::fs::write(&path, "I  401000,3\n L 1000,8\n Q 1000,8\n").expect("written");
    let error = convert(&[&path], Some(Format::Lackey), &out).expect_err("damaged");
    assert!(error.to_string().contains("byte 22, line 3"), "{error}");
    assert_eq!(
        std::fs::read_dir(folder.path()).expect("a folder").count(),
        1
    );
}

#[test]
fn a_trace_of_nothing_is_no_recording() {
    let dir = tempfile::tempdir().expect("a folder");
    let (path, out) = (dir.path().join("in"), dir.path().join("out.pbr"));
    // A marker is neither a reference nor an instruction.
    for (text, format) in [
        ("", Format::ChampSim),
        ("3 1000\n", Format::Din),
        ("==7== x\n", Format::Lackey),
    ] {
        std::fs::write(&path, text).expect("written");
        let error = convert(&[&path], Some(format), &out).expect_err("nothing");
        let said = error.to_string();
        assert!(
            said.contains("in: the trace holds no reference and no instruction"),
            "{said}"
        );
        assert_eq!(std::fs::read_dir(dir.path()).expect("a folder").count(), 1);
    }
}

#[test]
fn the_input_is_not_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.lackey");
    std::fs::write(&path, "I  401000,3\n").expect("written");
    let error = convert(&[&path], None, &path).expect_err("same file");
    assert!(matches!(error, ConvertError::SameFile { .. }));
    assert_eq!(std::fs::read(&path).expect("there"), b"I  401000,3\n");
}

#[test]
fn the_first_thread_starts_the_others() {
    let folder = tempfile::tempdir().expect("a folder");
    for n in 0..3 {
        let text = format!("I  401000,3\n L {:x},8\n", 0x1000 * (n + 1));
        std::fs::write(folder.path().join(format!("{n}.trace")), text).expect("written");
    }
    let (recording, summary) = converted(folder.path());
    let threads = recording.threads().expect("threads");
    let parents: Vec<Option<u32>> = threads.iter().map(|t| t.parent).collect();
    assert_eq!(parents, [None, Some(0), Some(0)]);
    let steps = replayed(&recording, false);
    for (step, thread) in steps.iter().zip([1, 2]) {
        let kind = SpawnKind::Thread;
        assert_eq!(
            *step,
            Step::Event(0, Next::Sys(SysOp::Spawn { thread, kind }))
        );
    }
    assert!(
        summary
            .assumes
            .iter()
            .any(|a| a.contains("first of 3 threads"))
    );
}
