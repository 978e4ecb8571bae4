//! Replay against a slow, plain one over the raw entries.

use std::collections::BTreeMap;

use piebald_units::op::{MemRef, Next, OpSource, RefKind};

use super::support::*;
use crate::recording::{model::*, *};

/// Address, size, kind, gap and dependence of a reference.
pub(super) type Plain = (u64, u8, RefKind, u32, u16);

/// Everything a source gives: references, then instructions after the last.
fn drain(source: &mut RecordedThread, room: usize) -> (Vec<MemRef>, u64) {
    let mut refs = Vec::new();
    let mut tail = 0;
    let mut out = vec![MemRef::default(); room];
    loop {
        let filled = source.fill(&mut out);
        refs.extend_from_slice(&out[..filled.refs]);
        tail = if filled.refs > 0 { 0 } else { tail } + u64::from(filled.tail);
        match filled.next {
            Next::More => {}
            Next::End => return (refs, tail),
            other => panic!("{other:?}: {:?}", source.failure()),
        }
    }
}

/// The plain replay of one chunk: its references, and the instructions after the
/// last.
pub(super) fn plain(dict: &[BlockDef], raw: &[Raw]) -> (Vec<Plain>, u64) {
    let mut out: Vec<Plain> = Vec::new();
    let mut regs: BTreeMap<u8, u32> = BTreeMap::new();
    let mut loads = 0u32;
    let (mut retired, mut counted) = (0u64, 0u64);
    let mut at = 0;
    while at < raw.len() {
        let Entry::Block(id) = raw[at].entry() else {
            panic!("no block");
        };
        let def = &dict[id as usize];
        let mut own: Vec<(u16, u32)> = Vec::new();
        // Youngest load: of this execution if one of those named was made, else
        // of the registers at entry.
        let source = |sources: &Sources, own: &[(u16, u32)]| {
            let is_load = |k: u16| def.accesses[usize::from(k)].kind != AccessKind::Store;
            let mut named = own
                .iter()
                .filter(|(k, _)| *k < 64 && sources.loads >> k & 1 == 1 && is_load(*k));
            match named.next_back() {
                Some(&(_, number)) => number,
                None => (0..16)
                    .filter(|r| sources.regs >> r & 1 == 1)
                    .filter_map(|r| regs.get(&r).copied())
                    .max()
                    .unwrap_or(0),
            }
        };
        at += 1;
        while let Some(Entry::Access(k, addr)) = raw.get(at).map(|r| r.entry()) {
            let access = &def.accesses[usize::from(k)];
            let number = source(&access.address, &own);
            let back = if number == 0 { 0 } else { loads + 1 - number };
            let kind = match access.kind {
                AccessKind::Load => RefKind::Load,
                AccessKind::Store => RefKind::Store,
                AccessKind::Update => RefKind::Update,
            };
            let upto = counted.max(retired + u64::from(access.insn) + 1);
            let full = ((addr << 16) as i64 >> 16) as u64;
            let gap = (upto - counted) as u32;
            out.push((
                full,
                access.size,
                kind,
                gap,
                if back < 65535 { back as u16 } else { 0 },
            ));
            counted = upto;
            if access.kind != AccessKind::Store {
                loads += 1;
                own.push((k, loads));
            }
            at += 1;
        }
        let values: Vec<(u8, u32)> = def
            .outs
            .iter()
            .map(|o| (o.reg, source(&o.value, &own)))
            .collect();
        regs.extend(values);
        retired += u64::from(def.instrs);
    }
    (out, retired - counted)
}

pub(super) fn flat(refs: &[MemRef]) -> Vec<Plain> {
    refs.iter()
        .map(|r| (r.addr.0, r.size, r.kind, r.gap, r.dep))
        .collect()
}

#[test]
fn replay_equals_the_plain_one_whatever_the_buffer() {
    for seed in 0..30 {
        let mut r = Random(seed);
        let dict = random_dictionary(&mut r, 2 + seed);
        let raw = random_raw(&mut r, &dict, 800);
        let recording = single(&dict, &raw, usize::MAX);
        let expected = plain(&dict, &raw);
        for room in [1, 3, 64, 5000] {
            let mut source = recording.source(0, ReplayOptions::default()).unwrap();
            let (refs, tail) = drain(&mut source, room);
            assert!(flat(&refs) == expected.0, "seed {seed}, room {room}");
            assert_eq!(tail, expected.1, "seed {seed}, room {room}");
        }
    }
}

#[test]
fn chunks_change_only_dependences_across_their_border() {
    let mut r = Random(5);
    let dict = random_dictionary(&mut r, 12);
    let raw = random_raw(&mut r, &dict, 900);
    let whole = single(&dict, &raw, usize::MAX);
    let cut = single(&dict, &raw, 300);
    assert!(cut.index().chunks.len() > 3);
    let options = ReplayOptions {
        dependences: false,
        ..ReplayOptions::default()
    };
    let read = |r: &Recording| drain(&mut r.source(0, options).unwrap(), 100);
    assert!(read(&whole) == read(&cut));
}

#[test]
fn start_at_equals_skipping() {
    for fetches in [false, true] {
        let mut r = Random(11);
        let dict = random_dictionary(&mut r, 15);
        let raw = random_raw(&mut r, &dict, 400);
        let recording = single(&dict, &raw, 250);
        let total = recording.threads().unwrap()[0].instrs;
        let options = ReplayOptions {
            fetches,
            ..ReplayOptions::default()
        };
        let (all, tail) = drain(&mut recording.source(0, options).unwrap(), 64);
        let sum = |refs: &[MemRef]| refs.iter().map(|r| u64::from(r.gap)).sum::<u64>();
        assert_eq!(sum(&all) + tail, total);
        for start_at in (0..=total).step_by(37) {
            let options = ReplayOptions {
                start_at,
                ..options
            };
            let (part, part_tail) = drain(&mut recording.source(0, options).unwrap(), 64);
            let expected = &all[all.len() - part.len()..];
            // The first gap leaves out what lies before the start.
            let mut part = part;
            if let Some(first) = part.first_mut() {
                let done = total - sum(expected) - tail + u64::from(expected[0].gap - first.gap);
                assert!(
                    done >= start_at && done < start_at + 12,
                    "{done} {start_at}"
                );
                first.gap = expected[0].gap;
                assert_eq!(part_tail, tail);
            }
            assert!(part == expected, "start at {start_at}");
        }
        let beyond = ReplayOptions {
            start_at: total + 1,
            ..options
        };
        let error = recording.source(0, beyond).err().unwrap().to_string();
        let expected = format!(
            "test: thread 0 has {total} instructions; cannot start at {}",
            total + 1
        );
        assert_eq!(error, expected);
    }
}

#[test]
fn limits_end_after_the_block_that_reaches_them() {
    let dict = [block(
        0x1000,
        5,
        vec![access(0, AccessKind::Load), access(3, AccessKind::Store)],
    )];
    let raw: Vec<Raw> = (0..50)
        .flat_map(|i| [Raw::block(0), Raw::access(0, i * 8), Raw::access(1, i * 8)])
        .collect();
    let recording = single(&dict, &raw, 60);
    let count = |max_refs, max_instrs| {
        let options = ReplayOptions {
            max_refs,
            max_instrs,
            ..ReplayOptions::default()
        };
        let mut source = recording.source(0, options).unwrap();
        let (refs, tail) = drain(&mut source, 7);
        // The end stays the end.
        assert_eq!(source.fill(&mut [MemRef::default(); 8]).next, Next::End);
        (refs.len(), tail)
    };
    assert_eq!(count(Some(33), None), (34, 1));
    assert_eq!(count(None, Some(101)), (42, 1));
    assert_eq!(count(Some(0), None), (0, 0));
    assert_eq!(count(None, None), (100, 1));
}

#[test]
fn dependences_follow_registers_and_loads() {
    let sources = |regs, loads| Sources { regs, loads };
    let with = |mut a: AccessDef, address| {
        a.address = address;
        a
    };
    // mov rax,[rax]; mov rcx,[rax+8]; mov [rdx],rcx
    let chase = BlockDef {
        outs: vec![
            RegOut {
                reg: 0,
                value: sources(0, 0b01),
            },
            RegOut {
                reg: 1,
                value: sources(0, 0b10),
            },
        ],
        ..block(
            0x1000,
            3,
            vec![
                with(access(0, AccessKind::Load), sources(1, 0)),
                with(access(1, AccessKind::Load), sources(0, 1)),
                with(access(2, AccessKind::Store), sources(1 << 2, 0)),
            ],
        )
    };
    // add rcx,[rsp]; mov rdx,rcx; xor eax,eax
    let mix = BlockDef {
        outs: vec![
            RegOut {
                reg: 1,
                value: sources(1 << 1, 1),
            },
            RegOut {
                reg: 2,
                value: sources(1 << 1, 0),
            },
            RegOut {
                reg: 0,
                value: sources(0, 0),
            },
        ],
        ..block(
            0x2000,
            3,
            vec![with(access(0, AccessKind::Load), sources(1 << 4, 0))],
        )
    };
    let dict = [chase, mix];
    let run = [
        Raw::block(0),
        Raw::access(0, 0x100),
        Raw::access(1, 0x208),
        Raw::access(2, 0x300),
    ];
    let mut raw = run.to_vec();
    raw.extend(run);
    raw.extend([Raw::block(1), Raw::access(0, 0x400)]);
    raw.extend(run);
    let recording = single(&dict, &raw, usize::MAX);
    let (refs, _) = drain(
        &mut recording.source(0, ReplayOptions::default()).unwrap(),
        64,
    );
    let deps: Vec<u16> = refs.iter().map(|r| r.dep).collect();
    // Loads are numbered 1.. ; the second chase starts from load 1, two back. The
    // last store's rdx holds what rcx held before the mix: load 4, and loads 5, 6
    // and 7 came after it.
    assert_eq!(deps, [0, 1, 0, 2, 1, 0, 0, 0, 1, 4]);
    let gaps: Vec<u32> = refs.iter().map(|r| r.gap).collect();
    assert_eq!(gaps, [1, 1, 1, 1, 1, 1, 1, 3, 1, 1]);
}

#[test]
fn fetches_come_once_for_each_line() {
    // 40 bytes from the middle of a line: two lines; then a block on the second.
    let mut first = block(0x1020, 10, vec![access(0, AccessKind::Load)]);
    first.bytes = 40;
    let dict = [first, block(0x1048, 2, vec![access(1, AccessKind::Load)])];
    let raw = [
        Raw::block(0),
        Raw::access(0, 0x9000),
        Raw::block(1),
        Raw::access(0, 0x9100),
        Raw::block(1),
        Raw::access(0, 0x9200),
        Raw::block(0),
        Raw::access(0, 0x9300),
    ];
    let recording = single(&dict, &raw, usize::MAX);
    let options = ReplayOptions {
        fetches: true,
        ..ReplayOptions::default()
    };
    let (refs, tail) = drain(&mut recording.source(0, options).unwrap(), 2);
    let seen: Vec<_> = refs
        .iter()
        .map(|r| (r.kind == RefKind::Fetch, r.addr.0, r.size, r.gap))
        .collect();
    assert_eq!(
        seen,
        [
            (true, 0x1020, 32, 1),
            (true, 0x1040, 8, 0),
            (false, 0x9000, 8, 0),
            (false, 0x9100, 8, 11),
            (false, 0x9200, 8, 2),
            (true, 0x1020, 32, 1),
            (true, 0x1040, 8, 0),
            (false, 0x9300, 8, 0),
        ]
    );
    assert_eq!(tail, 9);
}

#[test]
fn equal_instructions_have_equal_sites() {
    // A block inside another: its access is the same instruction.
    let outer = block(
        0x1000,
        4,
        vec![access(1, AccessKind::Load), access(2, AccessKind::Load)],
    );
    let inner = block(0x1008, 2, vec![access(0, AccessKind::Load)]);
    let raw = [
        Raw::block(0),
        Raw::access(0, 1 << 20),
        Raw::access(1, 2 << 20),
        Raw::block(1),
        Raw::access(0, 3 << 20),
    ];
    let recording = single(&[outer, inner], &raw, usize::MAX);
    let (refs, _) = drain(
        &mut recording.source(0, ReplayOptions::default()).unwrap(),
        64,
    );
    assert_eq!(refs[1].site, refs[2].site);
    assert_ne!(refs[0].site, refs[1].site);
}

#[test]
fn block_vectors_count_every_instruction() {
    let mut r = Random(21);
    let dict = random_dictionary(&mut r, 15);
    let raw = random_raw(&mut r, &dict, 700);
    let recording = single(&dict, &raw, 300);
    let vectors = recording.block_vectors(500, VectorBudget::default());
    let vectors = vectors.unwrap().remove(0);
    let mut oracle: Vec<BTreeMap<u64, u64>> = vec![BTreeMap::new()];
    let mut in_interval = 0;
    let mut sizes = Vec::new();
    for entry in &raw {
        if let Entry::Block(id) = entry.entry() {
            if in_interval >= 500 {
                oracle.push(BTreeMap::new());
                sizes.push(std::mem::take(&mut in_interval));
            }
            let instrs = u64::from(dict[id as usize].instrs);
            *oracle.last_mut().unwrap().entry(id.into()).or_default() += instrs;
            in_interval += instrs;
        }
    }
    sizes.push(in_interval);
    let found: Vec<BTreeMap<u64, u64>> = vectors
        .intervals
        .iter()
        .map(|v| v.blocks.iter().map(|(k, n)| (k.0, *n)).collect())
        .collect();
    assert_eq!(found, oracle);
    let mut start = 0;
    for (v, size) in vectors.intervals.iter().zip(sizes) {
        assert_eq!((v.start, v.instrs), (start, size));
        start += size;
    }
    assert_eq!(start, recording.threads().unwrap()[0].instrs);
}

#[test]
fn block_vectors_stay_within_their_budget() {
    let mut r = Random(22);
    let dict = random_dictionary(&mut r, 15);
    let raw = random_raw(&mut r, &dict, 700);
    let recording = single(&dict, &raw, 300);
    let within = |budget| {
        let made = recording.block_vectors(500, budget);
        made.map(|mut v| v.remove(0).intervals)
    };
    let all = within(VectorBudget::default()).unwrap();
    let counts = all.iter().map(|v| v.blocks.len()).sum();
    let exact = VectorBudget {
        intervals: all.len(),
        counts,
        ..VectorBudget::default()
    };
    assert_eq!(within(exact).unwrap(), all);
    let short = [
        VectorBudget {
            intervals: all.len() - 1,
            ..exact
        },
        VectorBudget {
            counts: counts - 1,
            ..exact
        },
    ];
    for (budget, allowed) in short.into_iter().zip([all.len() - 1, counts - 1]) {
        let error = within(budget).unwrap_err().to_string();
        let part = format!("intervals of 500 instructions give more than {allowed} ");
        assert!(error.contains(&part), "{error}");
    }
    // The first two intervals and a piece of the third, cut where a block ends.
    let cut = all[1].start + all[1].instrs + 100;
    let part = within(VectorBudget {
        instrs: cut,
        intervals: 3,
        ..exact
    });
    let part = part.unwrap();
    assert_eq!(part[..2], all[..2]);
    let end = part[2].start + part[2].instrs;
    let longest = dict.iter().map(|b| u64::from(b.instrs)).max().unwrap();
    assert!((cut..cut + longest).contains(&end), "{end} {cut}");
}
