//! Who starts whom, and who waits for whom.

use piebald_units::op::{Backing, Next, SpawnKind, SysOp};

use super::{event_support::*, support::*};
use crate::recording::{model::*, *};

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
    assert_eq!(error.to_string(), "events: no thread 2; its threads: 0, 1");
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
