//! From references to blocks: which straight runs there are, and what each execution touched.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::recording::model::{AccessDef, AccessKind, BlockDef, NR_REGS, Raw, RegOut, Sources};
use piebald_units::op::{MemRef, RefKind};

/// Most instructions of a block with a known address.
pub(super) const MAX_INSTRS: u32 = 256;
/// Definitions of a block after which it ends with its instruction: dependences name the first 64.
const MAX_ACCESSES: usize = 56;
/// References of one instruction that get a definition each. No instruction of x86-64 but the
/// repeated ones and large state saves has more.
const MAX_LITERAL: usize = 8;
/// References of one execution; far below what a chunk holds.
const MAX_EXECUTION: usize = 1 << 18;
/// Instructions without an address in one block.
const MAX_SILENT: u32 = 1 << 15;
/// Blocks that differ in dependences alone; further ones lose theirs, so that a trace in which
/// distances vary freely cannot make the dictionary as long as itself.
const MAX_VARIANTS: u32 = 64;
/// Longest instruction that a block admits, in bytes.
const LONGEST_INSTR: u32 = 16;

/// Multiplies and mixes: keys are 8-byte words of the project's own making.
#[derive(Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words
            .iter()
            .for_each(|w| self.write_u64(u64::from_le_bytes(*w)));
        rest.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }

    fn write_u64(&mut self, n: u64) {
        let mixed = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 29;
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }
}

type Table = HashMap<Box<[u64]>, u32, BuildHasherDefault<Mix>>;

/// The blocks of a process.
pub(super) struct Dictionary {
    blocks: Vec<BlockDef>,
    ids: Table,
    variants: Table,
    with_dependences: bool,
}

impl Dictionary {
    pub(super) fn new(with_dependences: bool) -> Self {
        Self {
            blocks: Vec::new(),
            ids: Table::default(),
            variants: Table::default(),
            with_dependences,
        }
    }

    pub(super) fn blocks(&self) -> &Vec<BlockDef> {
        &self.blocks
    }

    pub(super) fn with_dependences(&self) -> bool {
        self.with_dependences
    }

    /// The number of a block, and how many dependences it had to drop.
    fn intern(&mut self, block: &mut Shape, key: &mut Vec<u64>) -> (u32, u64) {
        block.key(key, true);
        if let Some(&id) = self.ids.get(key.as_slice()) {
            return (id, 0);
        }
        let dependent = block
            .accesses
            .iter()
            .filter(|a| a.address != Sources::default());
        let dependent = dependent.count() as u64;
        let mut lost = 0;
        if dependent > 0 {
            block.key(key, false);
            let seen = self.variants.entry(key.as_slice().into()).or_default();
            *seen += 1;
            if *seen > MAX_VARIANTS {
                lost = dependent;
                block
                    .accesses
                    .iter_mut()
                    .for_each(|a| a.address = Sources::default());
            }
            block.key(key, true);
        }
        if let Some(&id) = self.ids.get(key.as_slice()) {
            return (id, lost);
        }
        let id = self.blocks.len() as u32;
        self.ids.insert(key.as_slice().into(), id);
        self.blocks.push(block.definition(self.with_dependences));
        (id, lost)
    }
}

/// A block under construction.
#[derive(Default)]
struct Shape {
    addr: u64,
    /// Address behind its last instruction.
    end: u64,
    instrs: u32,
    accesses: Vec<AccessDef>,
}

impl Shape {
    fn bytes(&self) -> u32 {
        let bytes = self.end.wrapping_sub(self.addr);
        bytes.min(u64::from(self.instrs * LONGEST_INSTR)) as u32
    }

    fn key(&self, key: &mut Vec<u64>, with_dependences: bool) {
        key.clear();
        key.push(self.addr);
        key.push(u64::from(self.bytes()) << 32 | u64::from(self.instrs));
        for a in &self.accesses {
            let dependent = with_dependences && a.address != Sources::default();
            key.push(
                u64::from(a.insn)
                    | u64::from(a.offset) << 16
                    | u64::from(a.size) << 32
                    | (a.kind as u64) << 40
                    | u64::from(dependent) << 48,
            );
            if dependent {
                key.extend([u64::from(a.address.regs), a.address.loads]);
            }
        }
    }

    fn definition(&self, with_dependences: bool) -> BlockDef {
        let outs = if with_dependences {
            shifts(&self.accesses)
        } else {
            Vec::new()
        };
        BlockDef {
            addr: self.addr,
            bytes: self.bytes(),
            // Never more than MAX_SILENT.
            instrs: self.instrs as u16,
            accesses: self.accesses.clone(),
            outs,
        }
    }
}

/// Register `r` holds the load that lies `r` loads back: what a block's loads do to that list.
fn shifts(accesses: &[AccessDef]) -> Vec<RegOut> {
    let loads: Vec<usize> = (0..accesses.len().min(64))
        .filter(|&k| accesses[k].kind != AccessKind::Store)
        .collect();
    if loads.is_empty() {
        return Vec::new();
    }
    let after = |r: usize| match loads.len().checked_sub(r + 1) {
        Some(own) => Sources {
            regs: 0,
            loads: 1 << loads[own],
        },
        None => Sources {
            regs: 1 << (r - loads.len()),
            loads: 0,
        },
    };
    (0..NR_REGS)
        .map(|r| RegOut {
            reg: r as u8,
            value: after(r),
        })
        .collect()
}

/// What could not be kept of the references.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dropped {
    pub(super) dependences: u64,
    pub(super) cut_addresses: u64,
    pub(super) added_instructions: u64,
}

/// Cuts one thread's references into executions of blocks.
pub(super) struct Cutter<'a> {
    dictionary: &'a mut Dictionary,
    /// Sizes of instructions are not known: one that lies a little further on follows.
    unsized_instrs: bool,
    shape: Shape,
    /// Address of the current instruction.
    pc: u64,
    /// First definition, and number of references so far, of the current instruction.
    first: usize,
    of_instr: usize,
    touched: Vec<(u16, u64)>,
    /// Definitions of the loads of this execution, in order.
    loads: Vec<u16>,
    key: Vec<u64>,
    /// Whole executions.
    pub(super) raw: Vec<Raw>,
    pub(super) dropped: Dropped,
}

impl<'a> Cutter<'a> {
    pub(super) fn new(dictionary: &'a mut Dictionary, unsized_instrs: bool) -> Self {
        Self {
            dictionary,
            unsized_instrs,
            shape: Shape::default(),
            pc: 0,
            first: 0,
            of_instr: 0,
            touched: Vec::new(),
            loads: Vec::new(),
            key: Vec::new(),
            raw: Vec::new(),
            dropped: Dropped::default(),
        }
    }

    pub(super) fn blocks(&self) -> &Vec<BlockDef> {
        &self.dictionary.blocks
    }

    pub(super) fn reference(&mut self, r: &MemRef) {
        match r.kind {
            RefKind::Fetch => self.fetch(r),
            _ => self.data(r),
        }
    }

    fn fetch(&mut self, r: &MemRef) {
        let (pc, size) = (r.addr.0, u64::from(r.size));
        if r.gap == 0 && self.shape.instrs > 0 {
            // The same instruction goes on in the next line.
            if pc == self.shape.end {
                self.shape.end = pc.wrapping_add(size);
            }
            return;
        }
        self.silent(r.gap.saturating_sub(1));
        let ahead = pc.wrapping_sub(self.pc);
        let follows = match self.unsized_instrs {
            true => (1..u64::from(LONGEST_INSTR)).contains(&ahead),
            false => pc == self.shape.end,
        };
        let known = self.shape.instrs > 0 && self.shape.end != self.shape.addr;
        let room = self.shape.instrs < MAX_INSTRS && self.shape.accesses.len() <= MAX_ACCESSES;
        if !(known && follows && room) {
            self.close();
            self.shape.addr = pc;
        }
        self.pc = pc;
        self.shape.end = pc.wrapping_add(size);
        self.shape.instrs += 1;
        self.first = self.shape.accesses.len();
        self.of_instr = 0;
    }

    fn data(&mut self, r: &MemRef) {
        if r.gap > 0 {
            self.silent(r.gap);
        } else if self.shape.instrs == 0 || self.touched.len() >= MAX_EXECUTION {
            self.silent(1);
            self.dropped.added_instructions += 1;
        }
        let addr = r.addr.0;
        if (addr << 16) as i64 >> 16 != addr as i64 {
            self.dropped.cut_addresses += 1;
        }
        let index = self.definition(r);
        if r.kind != RefKind::Store {
            self.loads.push(index);
        }
        self.of_instr += 1;
        self.touched.push((index, addr));
    }

    /// The access of the block that a reference is an execution of.
    fn definition(&mut self, r: &MemRef) -> u16 {
        let literal = self.of_instr < MAX_LITERAL;
        let address = match (r.dep, literal) {
            (0, _) => Sources::default(),
            (dep, true) => self.sources(dep),
            (_, false) => {
                self.dropped.dependences += 1;
                Sources::default()
            }
        };
        let def = AccessDef {
            insn: (self.shape.instrs - 1) as u16,
            offset: self.pc.wrapping_sub(self.shape.addr) as u16,
            size: r.size,
            kind: match r.kind {
                RefKind::Store => AccessKind::Store,
                RefKind::Update => AccessKind::Update,
                RefKind::Load | RefKind::LoadNt | RefKind::Fetch => AccessKind::Load,
            },
            address,
        };
        if !literal {
            // Neighbours of the same access would be taken for pieces of one reference.
            let last = self.touched.last().map(|t| usize::from(t.0));
            let own = self.shape.accesses.iter().enumerate().skip(self.first);
            let mut same = own.filter(|(i, d)| Some(*i) != last && **d == def);
            if let Some((index, _)) = same.next() {
                return index as u16;
            }
        }
        self.shape.accesses.push(def);
        (self.shape.accesses.len() - 1) as u16
    }

    /// The load that lies `dep` loads back, as a block can name it.
    fn sources(&mut self, dep: u16) -> Sources {
        let dep = usize::from(dep);
        if let Some(at) = self.loads.len().checked_sub(dep)
            && self.loads[at] < 64
        {
            return Sources {
                regs: 0,
                loads: 1 << self.loads[at],
            };
        }
        let before = dep - self.loads.len().min(dep);
        if (1..=NR_REGS).contains(&before) && self.dictionary.with_dependences {
            return Sources {
                regs: 1 << (before - 1),
                loads: 0,
            };
        }
        self.dropped.dependences += 1;
        Sources::default()
    }

    /// Instructions whose addresses are not known: the current block ends, and the last of them
    /// is in the block that begins.
    pub(super) fn silent(&mut self, instrs: u32) {
        let mut left = instrs;
        while left > 0 {
            self.close();
            self.shape.instrs = left.min(MAX_SILENT);
            left -= self.shape.instrs;
        }
    }

    /// Ends the current execution, if there is one.
    pub(super) fn close(&mut self) {
        if self.shape.instrs == 0 {
            return;
        }
        let (id, lost) = self.dictionary.intern(&mut self.shape, &mut self.key);
        self.dropped.dependences += lost;
        self.raw.push(Raw::block(id));
        let touched = self.touched.drain(..);
        self.raw
            .extend(touched.map(|(index, addr)| Raw::access(index, addr)));
        self.loads.clear();
        let accesses = std::mem::take(&mut self.shape.accesses);
        self.shape = Shape {
            accesses,
            ..Shape::default()
        };
        self.shape.accesses.clear();
        (self.pc, self.first, self.of_instr) = (0, 0, 0);
    }
}
