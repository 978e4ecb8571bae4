//! What events become in a replay.

use piebald_units::{
    VirtAddr,
    op::{Access, Backing, MemRef, Next, OpSource, SpawnKind, SysOp},
};

use super::support::*;
use crate::recording::{model::*, *};

const REGULAR: u32 = 0o100_644;
const FIFO: u32 = 0o010_600;

fn file(ino: u64, mode: u32) -> FileIdent {
    FileIdent {
        dev: 8,
        ino,
        size: 100,
        mode,
    }
}

fn file_call(number: u32, args: [u64; 6], ret: i64, file: FileIdent, position: u64) -> EventKind {
    EventKind::Call {
        number,
        args,
        ret: Some(ret),
        path: None,
        file: Some(file),
        position: Some(position),
    }
}

fn map(addr: u64, len: u64, backing: Backing, write: bool, shared: bool) -> SysOp {
    SysOp::Map {
        addr: VirtAddr(addr),
        len,
        backing,
        access: Access { write, exec: false },
        shared,
    }
}

/// Threads as (process, thread, pid, tid, events); each event after one block.
fn events_only(threads: &[([u32; 4], Vec<Event>)]) -> Recording {
    let dict = [block(0x1000, 3, vec![])];
    let raws: Vec<Vec<Raw>> = threads
        .iter()
        .map(|t| vec![Raw::block(0); t.1.len()])
        .collect();
    let parts: Vec<Part<'_>> = threads
        .iter()
        .zip(&raws)
        .map(|((ids, events), raw)| Part {
            ids: *ids,
            raw,
            events: events.iter().cloned().enumerate().collect(),
        })
        .collect();
    Recording::from_bytes(recording(&dict, &parts), "events").unwrap()
}

/// What follows, without the references; the end too.
fn ops(recording: &Recording, thread: u32) -> Vec<Next> {
    let mut source = recording.source(thread, ReplayOptions::default()).unwrap();
    let mut out = [MemRef::default(); 64];
    let mut all = Vec::new();
    loop {
        let filled = source.fill(&mut out);
        assert_ne!(filled.next, Next::Broken, "{:?}", source.failure());
        match filled.next {
            Next::More => {}
            next => all.push(next),
        }
        if filled.next == Next::End {
            return all;
        }
    }
}

fn sys(ops: &[Next]) -> Vec<SysOp> {
    ops.iter()
        .filter_map(|n| match n {
            Next::Sys(op) => Some(*op),
            _ => None,
        })
        .collect()
}

#[test]
fn memory_calls_become_mappings() {
    let f = file(5, REGULAR);
    let id = file_id(&f);
    let kinds = vec![
        EventKind::Initial {
            addr: 0x40_0000,
            len: 0x2000,
            write: false,
            exec: true,
            file: Some((f.clone(), 0x1000)),
            name: "/bin/x".into(),
        },
        file_call(9, [0, 0x3000, 3, 2, 4, 0x7000], 0x10_0000, f.clone(), 0),
        call(9, [0, 0x1000, 3, 0x21, u64::MAX, 0], 0x20_0000),
        call(9, [0, 0x1000, 3, 0x22, u64::MAX, 0], -12),
        call(12, [0; 6], 0x60_0800),
        call(12, [0x60_3000, 0, 0, 0, 0, 0], 0x60_3000),
        call(12, [0x60_1001, 0, 0, 0, 0, 0], 0x60_1001),
        call(25, [0x10_0000, 0x3000, 0x5000, 1, 0, 0], 0x50_0000),
        call(28, [0x20_0000, 0x1000, 4, 0, 0, 0], 0),
        call(28, [0x20_0000, 0x1000, 1, 0, 0, 0], 0),
        call(11, [0x20_0000, 0x1000, 0, 0, 0, 0], 0),
    ];
    let events = kinds
        .into_iter()
        .enumerate()
        .map(|(i, k)| at(i as u64 + 1, k))
        .collect();
    let recording = events_only(&[([0, 0, 1, 1], events)]);
    let expected = [
        SysOp::Map {
            addr: VirtAddr(0x40_0000),
            len: 0x2000,
            backing: Backing::File {
                file: id,
                offset: 0x1000,
            },
            access: Access {
                write: false,
                exec: true,
            },
            shared: false,
        },
        map(
            0x10_0000,
            0x3000,
            Backing::File {
                file: id,
                offset: 0x7000,
            },
            true,
            false,
        ),
        map(0x20_0000, 0x1000, Backing::Anon, true, true),
        SysOp::Other { number: 9 },
        SysOp::Other { number: 12 },
        map(0x60_1000, 0x2000, Backing::Anon, true, false),
        SysOp::Unmap {
            addr: VirtAddr(0x60_2000),
            len: 0x1000,
        },
        SysOp::Remap {
            from: VirtAddr(0x10_0000),
            old_len: 0x3000,
            to: VirtAddr(0x50_0000),
            new_len: 0x5000,
        },
        SysOp::Discard {
            addr: VirtAddr(0x20_0000),
            len: 0x1000,
        },
        SysOp::Other { number: 28 },
        SysOp::Unmap {
            addr: VirtAddr(0x20_0000),
            len: 0x1000,
        },
    ];
    assert_eq!(sys(&ops(&recording, 0)), expected);
    let files = recording.files().unwrap();
    assert_eq!(
        (files.len(), files[0].file, files[0].path.as_deref()),
        (1, id, Some("/bin/x"))
    );

    // A start in the middle first brings the mappings of what was passed over.
    let options = ReplayOptions {
        start_at: 20,
        ..ReplayOptions::default()
    };
    let mut source = recording.source(0, options).unwrap();
    for op in [0, 1, 2, 5, 6, 7].map(|i| expected[i]) {
        let filled = source.fill(&mut [MemRef::default(); 64]);
        assert_eq!(
            (filled.refs, filled.tail, filled.next),
            (0, 0, Next::Sys(op))
        );
    }
    let filled = source.fill(&mut [MemRef::default(); 64]);
    assert_eq!(filled.next, Next::Sys(expected[8]));
}

#[test]
fn transfers_carry_file_offset_and_bytes() {
    let f = file(6, REGULAR);
    let id = file_id(&f);
    let args = [3, 0x7000, 500, 0x9000, 0, 0];
    let kinds = vec![
        file_call(0, args, 300, f.clone(), 4096),
        file_call(0, args, 0, f.clone(), 4396),
        file_call(17, args, 500, f.clone(), 0),
        file_call(1, args, 20, f.clone(), 10),
        file_call(18, args, 20, f.clone(), 10),
        file_call(20, args, 77, f.clone(), 30),
        file_call(40, args, 64, f.clone(), 128),
        file_call(0, args, 8, file(7, 0o020_600), 0),
        call(39, [0; 6], 12),
    ];
    let events = kinds
        .into_iter()
        .enumerate()
        .map(|(i, k)| at(i as u64, k))
        .collect();
    let recording = events_only(&[([0, 0, 1, 1], events)]);
    let buffer = VirtAddr(0x7000);
    let read = |offset, len, buffer| SysOp::Read {
        file: id,
        offset,
        len,
        buffer,
    };
    let write = |offset, len| SysOp::Write {
        file: id,
        offset,
        len,
        buffer,
    };
    assert_eq!(
        sys(&ops(&recording, 0)),
        [
            read(4096, 300, buffer),
            SysOp::Other { number: 0 },
            read(0x9000, 500, buffer),
            write(10, 20),
            write(0x9000, 20),
            write(30, 77),
            read(128, 64, VirtAddr(0)),
            SysOp::Other { number: 0 },
            SysOp::Other { number: 39 },
        ]
    );
}

#[test]
fn marks_exits_and_tails_come_in_place() {
    let dict = [block(
        0x1000,
        5,
        vec![access(1, AccessKind::Load), access(3, AccessKind::Load)],
    )];
    let raw = [
        Raw::block(0),
        Raw::access(0, 0x100),
        Raw::access(1, 0x200),
        Raw::block(0),
        Raw::access(0, 0x300),
        Raw::access(1, 0x400),
    ];
    let events = vec![
        (0, start(1, 1, 1)),
        (3, at(2, EventKind::Mark(7))),
        (5, at(3, EventKind::Mark(8))),
        (6, at(4, EventKind::Exit { status: 3 })),
    ];
    let part = Part {
        ids: [0, 0, 1, 1],
        raw: &raw,
        events,
    };
    let recording = Recording::from_bytes(recording(&dict, &[part]), "marks").unwrap();
    for room in [1, 64] {
        let mut source = recording.source(0, ReplayOptions::default()).unwrap();
        let mut out = vec![MemRef::default(); room];
        let mut seen = Vec::new();
        let mut gaps = Vec::new();
        loop {
            let filled = source.fill(&mut out);
            gaps.extend(out[..filled.refs].iter().map(|r| r.gap));
            if filled.next != Next::More {
                seen.push((gaps.len(), filled.tail, filled.next));
            }
            if filled.next == Next::End {
                break;
            }
        }
        assert_eq!(gaps, [2, 2, 2, 2], "room {room}");
        let expected = [
            (2, 1, Next::Mark(7)),
            (3, 0, Next::Mark(8)),
            (4, 1, Next::Exit(3)),
            (4, 0, Next::End),
        ];
        assert_eq!(seen, expected, "room {room}");
    }
}

#[test]
fn a_forked_child_that_executes_is_one_thread() {
    let initial = |addr| EventKind::Initial {
        addr,
        len: 4096,
        write: true,
        exec: false,
        file: None,
        name: String::new(),
    };
    let argv = vec!["child".to_string()];
    let recording = events_only(&[
        (
            [0, 0, 10, 10],
            vec![
                start(1, 10, 10),
                at(2, initial(0x1000)),
                lasting(3, 4, call(57, [0; 6], 11)),
                lasting(20, 30, call(61, [11, 0, 0, 0, 0, 0], 11)),
                at(31, EventKind::Exit { status: 0 }),
            ],
        ),
        (
            [1, 1, 11, 11],
            vec![
                start(5, 11, 11),
                at(6, EventKind::Exec { argv: argv.clone() }),
            ],
        ),
        (
            [2, 2, 11, 11],
            vec![
                at(
                    7,
                    EventKind::Start {
                        pid: 11,
                        tid: 11,
                        argv: argv.clone(),
                    },
                ),
                at(8, initial(0x9000)),
                at(25, EventKind::Exit { status: 4 }),
            ],
        ),
    ]);
    let threads = recording.threads().unwrap();
    assert_eq!(threads.len(), 2);
    assert_eq!((threads[0].thread, threads[0].parent), (0, None));
    assert_eq!(
        (threads[1].thread, threads[1].parent, &threads[1].segments),
        (1, Some(0), &vec![1, 2])
    );
    assert_eq!((&threads[1].argv, threads[1].instrs), (&argv, 15));
    assert_eq!(
        ops(&recording, 0),
        [
            Next::Sys(map(0x1000, 4096, Backing::Anon, true, false)),
            Next::Sys(SysOp::Spawn {
                thread: 1,
                kind: SpawnKind::Fork
            }),
            Next::Sys(SysOp::Await { event: 25 }),
            Next::Sys(SysOp::Other { number: 61 }),
            Next::Exit(0),
            Next::End,
        ]
    );
    assert_eq!(
        ops(&recording, 1),
        [
            Next::Sys(SysOp::Exec),
            Next::Sys(map(0x9000, 4096, Backing::Anon, true, false)),
            Next::Sys(SysOp::Post { event: 25 }),
            Next::Exit(4),
            Next::End,
        ]
    );
    let error = recording.source(2, ReplayOptions::default()).err().unwrap();
    assert_eq!(error.to_string(), "events: no thread 2; it has 0, 1");
}

#[test]
fn the_latest_release_during_a_wait_ends_it() {
    let wait = |addr| call(202, [addr, 128, 0, 0, 0, 0], 0);
    let wake = |addr, woken| call(202, [addr, 129, 1, 0, 0, 0], woken);
    let recording = events_only(&[
        (
            [0, 0, 1, 1],
            vec![
                lasting(10, 20, wait(0x500)),
                lasting(21, 22, wait(0x500)),
                lasting(30, 40, wait(0x600)),
            ],
        ),
        (
            [0, 1, 1, 2],
            vec![
                at(9, wake(0x500, 1)),
                at(12, wake(0x500, 1)),
                at(14, wake(0x500, 1)),
                at(15, wake(0x500, 0)),
                at(16, wake(0x508, 1)),
                at(35, wake(0x600, 1)),
            ],
        ),
        // Another process: not its futex.
        ([1, 2, 3, 3], vec![at(17, wake(0x500, 1))]),
    ]);
    let waits: Vec<SysOp> = sys(&ops(&recording, 0));
    let other = SysOp::Other { number: 202 };
    assert_eq!(
        waits,
        [
            SysOp::Await { event: 14 },
            other,
            other,
            SysOp::Await { event: 35 },
            other
        ]
    );
    let posts = sys(&ops(&recording, 1));
    let post = |event| SysOp::Post { event };
    assert_eq!(
        posts,
        [other, other, other, post(14), other, other, other, post(35)]
    );
    assert_eq!(sys(&ops(&recording, 2)), [other]);
}

#[test]
fn pipes_requeues_and_ending_threads_release() {
    let pipe = file(77, FIFO);
    let args = [4, 0x7000, 10, 0, 0, 0];
    let clone_args = [0x0020_0100, 0, 0, 0x9990, 0, 0];
    let recording = events_only(&[
        (
            [0, 0, 1, 1],
            vec![
                at(1, call(56, clone_args, 2)),
                lasting(10, 20, file_call(0, args, 10, pipe.clone(), 0)),
                lasting(30, 40, call(202, [0x100, 128, 0, 0, 0, 0], 0)),
                lasting(50, 60, call(202, [0x9990, 0, 0, 0, 0, 0], 0)),
            ],
        ),
        (
            [0, 1, 1, 2],
            vec![
                start(2, 1, 2),
                at(15, file_call(1, args, 10, pipe, 0)),
                at(33, call(202, [0x100, 128 | 3, 1, 1, 0x200, 0], 1)),
                at(36, call(202, [0x200, 129, 1, 0, 0, 0], 1)),
                at(55, EventKind::Exit { status: 0 }),
            ],
        ),
    ]);
    let awaited: Vec<u64> = sys(&ops(&recording, 0))
        .into_iter()
        .filter_map(|op| match op {
            SysOp::Await { event } => Some(event),
            _ => None,
        })
        .collect();
    assert_eq!(awaited, [15, 36, 55]);
}

#[test]
fn every_await_has_its_post_in_another_thread() {
    for seed in 0..20 {
        let mut r = Random(seed);
        let mut seq = 0;
        let mut threads: Vec<([u32; 4], Vec<Event>)> = (0..4)
            .map(|t| ([t / 2, t, 1 + t / 2, 10 + t], Vec::new()))
            .collect();
        // A thread's events follow one another; those of several overlap.
        let mut free = [0u64; 4];
        for _ in 0..200 {
            let t = r.below(4) as usize;
            seq = (seq + 1).max(free[t] + 1);
            let end = seq + r.below(12);
            free[t] = end;
            let pipe = file(r.below(2), FIFO);
            let kind = match r.below(4) {
                0 => call(202, [0x10 * r.below(2), 128, 0, 0, 0, 0], 0),
                1 => call(202, [0x10 * r.below(2), 129, 0, 0, 0, 0], 1),
                2 => file_call(0, [0; 6], 1, pipe, 0),
                _ => file_call(1, [0; 6], 1, pipe, 0),
            };
            threads[t].1.push(lasting(seq, end, kind));
        }
        let recording = events_only(&threads);
        let mut queues: Vec<std::collections::VecDeque<SysOp>> =
            (0..4).map(|t| sys(&ops(&recording, t)).into()).collect();
        // Run them all as a host would: nobody may be left waiting.
        let mut posted = std::collections::HashSet::new();
        loop {
            let mut moved = false;
            for queue in &mut queues {
                while let Some(&op) = queue.front() {
                    match op {
                        SysOp::Await { event } if !posted.contains(&event) => break,
                        SysOp::Post { event } => assert!(posted.insert(event)),
                        _ => {}
                    }
                    queue.pop_front();
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        assert!(
            queues.iter().all(|q| q.is_empty()),
            "seed {seed}: {queues:?}"
        );
    }
}
