//! Executions that are replayed together against executions one by one, on
//! programs that loop: what is replayed together must be long and varied.

use piebald_units::op::{MemRef, Next, OpSource};

use super::{
    replay::{flat, plain},
    support::*,
};
use crate::recording::{model::*, *};

/// A block whose registers move in every way there is: few or many sources, few
/// or many written, exchanged ones.
fn busy_block(r: &mut Random, addr: u64) -> BlockDef {
    let instrs = 1 + r.below(9) as u16;
    let accesses = (0..r.below(u64::from(instrs) + 1) as u16)
        .map(|k| AccessDef {
            address: sources(r, k),
            kind: [AccessKind::Load, AccessKind::Store, AccessKind::Update][r.below(3) as usize],
            ..access(k, AccessKind::Load)
        })
        .collect::<Vec<_>>();
    let most = [1, 4, 7, 8, 16][r.below(5) as usize];
    let first = r.below(16);
    let outs = (0..r.below(most + 1)).map(|k| RegOut {
        reg: ((first + k) % 16) as u8,
        value: sources(r, accesses.len() as u16),
    });
    BlockDef {
        outs: outs.collect(),
        ..block(addr, instrs, accesses)
    }
}

/// Registers, none to three of them, and now and then loads before access `before`.
fn sources(r: &mut Random, before: u16) -> Sources {
    let regs = match r.below(12) {
        0 => 0,
        1 => 1 << r.below(16) | 1 << r.below(16) | 1 << r.below(16),
        2..5 => 1 << r.below(16) | 1 << r.below(16),
        _ => 1 << r.below(16),
    };
    let loads = match r.below(4) {
        0 => r.next() & ((1 << before) - 1),
        _ => 0,
    };
    Sources { regs, loads }
}

/// Loops of several blocks each, run again and again: addresses that stride, stay,
/// follow one another or jump; now and then an execution that is cut short.
fn looping(r: &mut Random, dict: &[BlockDef], executions: usize) -> Vec<Raw> {
    let loops: Vec<Vec<u32>> = (0..4)
        .map(|_| {
            let len = 1 + r.below(11);
            (0..len)
                .map(|_| r.below(dict.len() as u64) as u32)
                .collect()
        })
        .collect();
    let mut raw = Vec::new();
    let (mut previous, mut done) = (0x1000u64, 0);
    while done < executions {
        let body = &loops[r.below(4) as usize];
        let noise = [2, 10, 1000, 100_000][r.below(4) as usize];
        for i in 0..1 + r.below(60) {
            for &id in body {
                raw.push(Raw::block(id));
                let whole = dict[id as usize].accesses.len();
                let made = match r.one_in(noise) {
                    true => r.below(whole as u64 + 1) as usize,
                    false => whole,
                };
                for k in 0..made {
                    let home = u64::from(id) << 30 | (k as u64) << 24;
                    let addr = match (u64::from(id) + k as u64) % 4 {
                        _ if r.one_in(noise * 2) => r.next(),
                        0 => home + i * 64,
                        1 => home,
                        2 => previous.wrapping_add(200),
                        _ => home.wrapping_sub(i * 4096),
                    };
                    raw.push(Raw::access(k as u16, addr));
                    previous = addr;
                }
                done += 1;
            }
        }
    }
    raw
}

/// What a source gives, whatever the size of the buffer: references, and where and
/// which events lie among them. Instructions that are told early are counted on.
#[derive(Debug, PartialEq)]
struct Told {
    refs: Vec<MemRef>,
    events: Vec<(usize, u64, String)>,
    instrs: u64,
}

fn told(recording: &Recording, options: ReplayOptions, room: usize) -> Told {
    let mut source = recording.source(0, options).unwrap();
    let mut out = vec![MemRef::default(); room];
    let mut told = Told {
        refs: Vec::new(),
        events: Vec::new(),
        instrs: 0,
    };
    loop {
        let filled = source.fill(&mut out);
        let gaps = out[..filled.refs].iter().map(|r| u64::from(r.gap));
        told.instrs += gaps.sum::<u64>() + u64::from(filled.tail);
        told.refs.extend_from_slice(&out[..filled.refs]);
        match filled.next {
            Next::More => {}
            Next::End => return told,
            Next::Broken => panic!("{:?}", source.failure()),
            other => told
                .events
                .push((told.refs.len(), told.instrs, format!("{other:?}"))),
        }
    }
}

/// A looping program with marks at random places: its blocks, its stream, and the
/// file.
fn program(seed: u64) -> (Vec<BlockDef>, Vec<Raw>, Vec<u8>) {
    let mut r = Random(seed);
    let nr_blocks = 3 + r.below(30);
    let dict: Vec<BlockDef> = (0..nr_blocks)
        .map(|i| busy_block(&mut r, 0x40_0000 + i * 0x34))
        .collect();
    let raw = looping(&mut r, &dict, 3000);
    let mut place = 0;
    let mut events = vec![(0, start(0, 1, 1))];
    while place <= raw.len() {
        events.push((place, at(events.len() as u64, EventKind::Mark(seed as u32))));
        place += [1, 7, 400, 3000][r.below(4) as usize] + r.below(20) as usize;
    }
    let part = Part {
        ids: [0, 0, 1, 1],
        raw: &raw,
        events,
    };
    let bytes = recording(&dict, &[part]);
    (dict, raw, bytes)
}

fn open(bytes: Vec<u8>) -> Recording {
    Recording::from_bytes(bytes, "loops").unwrap()
}

#[test]
fn executions_together_equal_executions_one_by_one() {
    for seed in 0..40 {
        let (dict, raw, bytes) = program(seed);
        let recording = open(bytes);
        let mut r = Random(seed);
        for (dependences, fetches) in [(true, false), (true, true), (false, false), (false, true)] {
            let limit = |r: &mut Random| r.one_in(3).then(|| r.below(9000));
            let options = ReplayOptions {
                dependences,
                fetches,
                max_refs: limit(&mut r),
                max_instrs: limit(&mut r),
                start_at: r.below(4) / 3 * r.below(3000),
                ..ReplayOptions::default()
            };
            // With room for one reference, each execution is made alone.
            let alone = told(&recording, options, 1);
            for room in [2, 17, 300, 100_000] {
                let together = told(&recording, options, room);
                assert!(
                    together == alone,
                    "seed {seed}, room {room}, options {options:?}"
                );
            }
        }
        let all = told(&recording, ReplayOptions::default(), 4096);
        let (mut refs, tail) = plain(&dict, &raw);
        let sum = refs.iter().map(|r| u64::from(r.3)).sum::<u64>();
        assert_eq!(all.instrs, sum + tail, "seed {seed}");
        // An event tells instructions that would else be in the next gap.
        let mut found = flat(&all.refs);
        refs.iter_mut().chain(&mut found).for_each(|r| r.3 = 0);
        assert!(found == refs, "seed {seed}");
    }
}

#[test]
fn loops_come_back_exactly() {
    for seed in 0..20 {
        let (_, raw, bytes) = program(seed);
        assert!(open(bytes).raw_chunk(0).unwrap().0 == raw, "seed {seed}");
    }
}

#[test]
fn crafted_loops_do_no_harm() {
    let mut r = Random(6);
    for seed in 0..4 {
        let (_, _, bytes) = program(seed);
        let records = bytes.windows(8).position(|w| w == b"PBLDRCD\0").unwrap();
        for _ in 0..25 {
            let mut changed = bytes.clone();
            for _ in 0..1 + r.below(3) {
                let at = records + r.below((bytes.len() - records) as u64) as usize;
                changed[at] = r.next() as u8;
            }
            fuzz::crafted_recording(&changed);
        }
    }
}

#[test]
fn an_encoder_that_resumes_writes_what_one_that_goes_on_does() {
    let mut r = Random(4);
    let dict = random_dictionary(&mut r, 7);
    let parts = [(); 3].map(|()| random_raw(&mut r, &dict, 100));
    let mut going_on = ChunkEncoder::new(0, 0, 1, 1).unwrap();
    let mut totals = (0, 0);
    for raw in &parts {
        let (mut expected, mut found) = (Vec::new(), Vec::new());
        going_on.encode(&dict, raw, &[], &mut expected).unwrap();
        let mut resumed = ChunkEncoder::new(0, 0, 1, 1)
            .unwrap()
            .resume_at(totals.0, totals.1);
        resumed.encode(&dict, raw, &[], &mut found).unwrap();
        assert!(found == expected);
        totals = resumed.totals();
        assert_eq!(totals, going_on.totals());
    }
}
