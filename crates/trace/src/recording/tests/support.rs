//! Random programs, and short ways to write and read them.

use crate::recording::{model::*, *};

/// A small generator of random numbers (SplitMix64): tests print its seed.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub(super) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// An access of 8 bytes that depends on nothing.
pub(super) fn access(insn: u16, kind: AccessKind) -> AccessDef {
    AccessDef {
        insn,
        offset: insn * 4,
        size: 8,
        kind,
        address: Sources::default(),
    }
}

/// A block of instructions of 4 bytes each.
pub(super) fn block(addr: u64, instrs: u16, accesses: Vec<AccessDef>) -> BlockDef {
    BlockDef {
        addr,
        bytes: u32::from(instrs) * 4,
        instrs,
        accesses,
        outs: Vec::new(),
    }
}

pub(super) fn random_dictionary(r: &mut Random, blocks: u64) -> Vec<BlockDef> {
    (0..blocks)
        .map(|i| random_block(r, 0x40_0000 + i * 0x100))
        .collect()
}

fn random_block(r: &mut Random, addr: u64) -> BlockDef {
    let instrs = 1 + r.below(12) as u16;
    let mut insn = 0;
    let mut accesses = Vec::new();
    while r.below(3) > 0 && insn < instrs {
        accesses.push(AccessDef {
            insn,
            offset: insn * 4,
            size: [1, 4, 8, 16, 32, 64][r.below(6) as usize],
            kind: [AccessKind::Load, AccessKind::Store, AccessKind::Update][r.below(3) as usize],
            address: Sources {
                regs: 1 << r.below(16) | 1 << r.below(16),
                loads: r.next() & ((1 << accesses.len()) - 1) & r.next(),
            },
        });
        insn += r.below(3) as u16;
    }
    let outs = (0..r.below(4)).map(|k| RegOut {
        reg: (k * 5 % 16) as u8,
        value: Sources {
            regs: (r.next() & r.next()) as u16,
            loads: r.next() & ((1 << accesses.len()) - 1),
        },
    });
    BlockDef {
        outs: outs.collect(),
        ..block(addr, instrs, accesses)
    }
}

/// Raw entries of `executions` block executions: mostly regular, with missing,
/// repeated and disordered accesses among them. No two neighbours of the same
/// access that the encoder would join.
pub(super) fn random_raw(r: &mut Random, dict: &[BlockDef], executions: u64) -> Vec<Raw> {
    let mut raw = Vec::new();
    let mut id = 0;
    let mut base = 0x7f00_0000_0000u64;
    for _ in 0..executions {
        id = match r.below(8) {
            0 => r.below(dict.len() as u64) as usize,
            _ => (id + 1) % dict.len(),
        };
        raw.push(Raw::block(id as u32));
        let n = dict[id].accesses.len();
        let mut order: Vec<usize> = (0..n).collect();
        match r.below(12) {
            0 if n > 0 => drop(order.remove(r.below(n as u64) as usize)),
            1 if n > 0 => order.push(r.below(n as u64) as usize),
            2 => order.reverse(),
            3 => order.clear(),
            _ => {}
        }
        if r.one_in(20) {
            base = r.next() & ((1 << 48) - 1);
        }
        for k in order {
            let addr = match r.below(10) {
                0 => r.next(),
                1 => base.wrapping_add(r.below(1 << 20)),
                _ => base.wrapping_add(k as u64 * 0x1000),
            };
            // A distance above the largest size keeps neighbours apart.
            base = base.wrapping_add(64 + 8 * r.below(2));
            raw.push(Raw::access(k as u16, addr));
        }
    }
    raw
}

pub(super) fn call(number: u32, args: [u64; 6], ret: i64) -> EventKind {
    EventKind::Call {
        number,
        args,
        ret: Some(ret),
        path: None,
        file: None,
        position: None,
    }
}

pub(super) fn at(seq: u64, kind: EventKind) -> Event {
    Event {
        seq,
        seq_end: seq,
        kind,
    }
}

pub(super) fn lasting(seq: u64, seq_end: u64, kind: EventKind) -> Event {
    Event { seq, seq_end, kind }
}

pub(super) fn start(seq: u64, pid: u32, tid: u32) -> Event {
    let argv = Vec::new();
    at(seq, EventKind::Start { pid, tid, argv })
}

/// One chunk: process, thread, pid, tid, entries, events.
pub(super) struct Part<'a> {
    pub(super) ids: [u32; 4],
    pub(super) raw: &'a [Raw],
    pub(super) events: Vec<(usize, Event)>,
}

/// A recording of one process dictionary (process 0) and these chunks, each from
/// an encoder of its own unless the thread is the same.
pub(super) fn recording(dict: &[BlockDef], parts: &[Part<'_>]) -> Vec<u8> {
    let mut writer = MemoryWriter::new(FileHeader::new(vec!["test".into()]));
    let mut processes: Vec<u32> = parts.iter().map(|p| p.ids[0]).collect();
    processes.sort_unstable();
    processes.dedup();
    for p in processes {
        encode_dictionary(p, None, 0, dict, writer.records()).unwrap();
    }
    let mut encoders: Vec<(u32, ChunkEncoder)> = Vec::new();
    for part in parts {
        let [process, thread, pid, tid] = part.ids;
        let found = encoders.iter().position(|e| e.0 == thread);
        let at = found.unwrap_or_else(|| {
            let encoder = ChunkEncoder::new(process, thread, pid, tid).unwrap();
            encoders.push((thread, encoder));
            encoders.len() - 1
        });
        let encoder = &mut encoders[at].1;
        encoder
            .encode(dict, part.raw, &part.events, writer.records())
            .unwrap();
    }
    writer.finish().unwrap()
}

/// A recording of one thread, cut into chunks of `step` entries or a few more.
pub(super) fn single(dict: &[BlockDef], raw: &[Raw], step: usize) -> Recording {
    let mut parts = Vec::new();
    let mut from = 0;
    while from < raw.len() {
        let mut to = (from + step).min(raw.len());
        while to < raw.len() && raw[to].index() != Raw::NO_INDEX {
            to += 1;
        }
        parts.push(Part {
            ids: [0, 0, 1, 1],
            raw: &raw[from..to],
            events: Vec::new(),
        });
        from = to;
    }
    Recording::from_bytes(recording(dict, &parts), "test").unwrap()
}
