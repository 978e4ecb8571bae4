//! Built-in programs as the simulator sees them: replayed.

use piebald_trace::recording::ReplayOptions;
use piebald_units::op::{MemRef, Next, RefKind, SysOp};
use piebald_workload::memory::mark;
use piebald_workload::{Builtin, Library, Program, ProgramError, Recorded};

const REFS: u64 = 200_000;

fn program(text: &str, options: ReplayOptions) -> Recorded {
    let builtin = Builtin::parse(text).unwrap();
    let program = Library::new().program(&builtin, 5, REFS, options);
    program.unwrap_or_else(|e| panic!("{e}"))
}

/// Everything that one thread does.
#[derive(Default)]
struct Played {
    setup: Vec<MemRef>,
    measured: Vec<MemRef>,
    instrs: u64,
    calls: Vec<SysOp>,
    marks: Vec<u32>,
    end: Option<Next>,
}

fn play(program: &Recorded, thread: u32) -> Played {
    let mut source = program.open(thread).unwrap();
    let mut played = Played::default();
    let mut buffer = [MemRef::default(); 256];
    while played.end.is_none() {
        let filled = source.fill(&mut buffer);
        let refs = &buffer[..filled.refs];
        played.instrs += refs.iter().map(|r| u64::from(r.gap)).sum::<u64>();
        played.instrs += u64::from(filled.tail);
        match played.marks.contains(&mark::READY) {
            true => played.measured.extend_from_slice(refs),
            false => played.setup.extend_from_slice(refs),
        }
        match filled.next {
            Next::More => {}
            Next::Sys(call) => played.calls.push(call),
            Next::Mark(number) => played.marks.push(number),
            Next::Broken => panic!("{:?}", source.failure()),
            end => played.end = Some(end),
        }
    }
    played
}

#[test]
fn replay_gives_every_reference_and_instruction() {
    for text in ["triad:64KiB", "mergesort:64KiB", "phold:1000", "lu:40"] {
        let program = program(text, ReplayOptions::default());
        let counts = program.recording().header().counts;
        let played = play(&program, 0);
        let refs = played.setup.len() + played.measured.len();
        assert_eq!(refs as u64, counts.references, "{text}");
        assert_eq!(played.instrs, counts.instructions, "{text}");
        assert_eq!(played.end, Some(Next::End), "{text} was cut");
    }
}

#[test]
fn a_program_that_completes_its_iterations_exits() {
    let program = program("triad:64KiB,iterations=2", ReplayOptions::default());
    let played = play(&program, 0);
    assert_eq!(played.end, Some(Next::Exit(0)));
    assert_eq!(
        played.marks,
        [mark::READY, mark::ITERATION, mark::ITERATION]
    );
}

#[test]
fn each_step_of_a_chase_waits_for_the_one_before() {
    let program = program("chase:64KiB", ReplayOptions::default());
    let loads = play(&program, 0).measured;
    assert_eq!(loads.len() as u64, REFS);
    assert!(loads[1..].iter().all(|r| r.dep == 1));
    assert!(loads.iter().all(|r| r.kind == RefKind::Load && r.size == 8));
    // The mark at the end of a round takes the instructions after the load along.
    let gap = |i: usize| if i.is_multiple_of(1024) { 1 } else { 3 };
    assert!((0..loads.len()).all(|i| loads[i].gap == gap(i)));
}

#[test]
fn elements_of_x_wait_for_their_column_and_triad_for_nothing() {
    let smm = play(&program("smm:1000,nz=5000", ReplayOptions::default()), 0);
    let mut rows = smm.measured.chunks_exact(2 + 3 * 5 + 1);
    // Loads back from x: value, then column.
    let row = rows.nth(10).unwrap();
    let deps: Vec<u16> = row[2..17].iter().map(|r| r.dep).collect();
    let expected: Vec<u16> = (0..5).flat_map(|i| [2 + 3 * i, 3 + 3 * i, 2]).collect();
    assert_eq!(deps, expected);
    let triad = play(&program("triad:64KiB", ReplayOptions::default()), 0);
    assert!(triad.measured.iter().all(|r| r.dep == 0));
}

#[test]
fn memory_is_mapped_before_it_is_touched_and_code_can_be_fetched() {
    let options = ReplayOptions {
        fetches: true,
        ..ReplayOptions::default()
    };
    for text in [
        "triad:64KiB",
        "hashjoin:1MiB,dimension=1000",
        "smm:1000,nz=5000",
    ] {
        let played = play(&program(text, options), 0);
        let mapped = |r: &MemRef| {
            played.calls.iter().any(|call| match *call {
                SysOp::Map {
                    addr, len, access, ..
                } => {
                    let inside = addr.0 <= r.addr.0 && r.addr.0 + u64::from(r.size) <= addr.0 + len;
                    inside && access.exec == (r.kind == RefKind::Fetch)
                }
                _ => false,
            })
        };
        let all = played.setup.iter().chain(&played.measured);
        assert!(all.clone().all(mapped), "{text}");
        assert!(all.clone().any(|r| r.kind == RefKind::Fetch), "{text}");
    }
}

#[test]
fn reads_name_the_file_and_the_buffer() {
    let played = play(
        &program("scan:100KiB,iterations=1", ReplayOptions::default()),
        0,
    );
    let reads: Vec<(u64, u64)> = played
        .calls
        .iter()
        .filter_map(|call| match *call {
            SysOp::Read { offset, len, .. } => Some((offset, len)),
            _ => None,
        })
        .collect();
    assert_eq!(
        reads,
        [(0, 32768), (32768, 32768), (65536, 32768), (98304, 4096)]
    );
    let first = played.measured[0].addr;
    assert!(
        played
            .calls
            .iter()
            .any(|c| matches!(*c, SysOp::Read { buffer, .. } if buffer == first))
    );
}

#[test]
fn threads_are_spawned_by_the_first() {
    let program = program("triad:64KiB,threads=3", ReplayOptions::default());
    assert_eq!(program.threads(), 3);
    let spawned: Vec<u32> = play(&program, 0)
        .calls
        .iter()
        .filter_map(|call| match *call {
            SysOp::Spawn { thread, .. } => Some(thread),
            _ => None,
        })
        .collect();
    assert_eq!(spawned, [1, 2]);
    for thread in 1..3 {
        assert_eq!(play(&program, thread).marks[0], mark::READY);
    }
    let error = program.open(3).err().unwrap();
    assert!(matches!(
        error,
        ProgramError::NoThread {
            thread: 3,
            threads: 3,
            ..
        }
    ));
}
