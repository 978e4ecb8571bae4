//! A process's dictionary in the form that replay works from.

use piebald_units::op::RefKind;

use super::{
    model::{AccessDef, AccessKind, BlockDef, NR_REGS, RegOut, Sources},
    predict::Site,
};

/// A block, without what replay does not need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub struct Block {
    /// Virtual address of the first instruction.
    pub addr: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// Number of instructions.
    pub instrs: u16,
    /// Number of accesses.
    pub accesses: u16,
    pub(crate) site: u32,
    pub(crate) first_access: u32,
    pub(crate) first_out: u32,
    pub(crate) outs: u8,
    /// Accesses that are loads.
    pub(crate) loads: u16,
    /// Instructions after the one that makes the last access; all if none does.
    pub(crate) after: u16,
    /// Some access or written register depends on three registers or more, or
    /// registers are exchanged, or more than [`NR_MOVES`] are written: [`Cell::pair`]
    /// and `moves` cannot say that.
    pub(crate) tangled: bool,
    /// What a regular execution does to the table of loads, unless the block is
    /// tangled: the first `outs` of them, one after the other.
    pub(crate) moves: [Move; NR_MOVES],
}

/// Register number of none: the table of loads holds 0 for it, always.
pub(crate) const NO_REG: u8 = NR_REGS as u8;
/// Register number of the loads so far: stands for a load of this execution.
pub(crate) const LOADS: u8 = NO_REG + 1;

/// On what an address or a register's value depends, in full.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Origin {
    /// Bit k: access k of this execution. Only loads.
    pub(crate) loads: u64,
    /// Registers at block entry.
    pub(crate) regs: u16,
    /// The youngest of `loads`, counted in loads of the block from 1; 0 = none.
    pub(crate) youngest: u16,
}

impl Origin {
    /// The entries of the table of loads to look at if the execution is regular,
    /// unless there are more than two.
    fn pair(&self) -> Option<[u8; 2]> {
        if self.youngest != 0 {
            return Some([LOADS; 2]);
        }
        let mut named = (0..NR_REGS as u8).filter(|r| self.regs >> r & 1 == 1);
        let pair = [(); 2].map(|()| named.next().unwrap_or(NO_REG));
        named.next().is_none().then_some(pair)
    }
}

/// An access as irregular executions and those of a [`Block::tangled`] one need it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) origin: Origin,
    /// Index of its instruction.
    pub(crate) insn: u16,
    /// Loads of the block before it.
    pub(crate) loads_before: u16,
}

/// An access as regular executions need it, in one cache line: what it has learned
/// and what its definition says.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Cell {
    pub(crate) site: Site,
    /// Number of the instruction.
    pub(crate) number: u32,
    /// Instructions after the one of the previous access of the block (or from the
    /// block's start), its own included.
    pub(crate) gap: u32,
    /// The load that the youngest of `pair` has is this many loads back, but for
    /// the loads before the execution.
    pub(crate) back: u16,
    /// Entries of the table of loads.
    pub(crate) pair: [u8; 2],
    pub(crate) size: u8,
    pub(crate) kind: RefKind,
}

/// A register that a block writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out {
    pub(crate) origin: Origin,
    pub(crate) reg: u8,
}

/// Moves that a block has room for, so that it fills a cache line.
pub(crate) const NR_MOVES: usize = 7;

/// Entry `reg` of the table of loads becomes the younger of `pair` plus `ordinal`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) reg: u8,
    pub(crate) pair: [u8; 2],
    pub(crate) ordinal: u8,
}

/// The blocks of a process.
#[derive(Default)]
pub struct Dictionary {
    pub(crate) blocks: Vec<Block>,
    pub(crate) accesses: Vec<Access>,
    pub(crate) outs: Vec<Out>,
    /// As many as `accesses`, in the state of a chunk's start; sources work on
    /// copies.
    pub(crate) cells: Vec<Cell>,
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dictionary({} blocks)", self.blocks.len())
    }
}

impl Dictionary {
    /// The blocks; their ids are the indices.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Makes it from definitions that were checked. `image` is the same for
    /// processes that run the same image since they were forked.
    ///
    /// # Errors
    /// More than 2^32 accesses.
    pub(crate) fn compile(defs: &[BlockDef], image: u32) -> Result<Self, String> {
        let mut dict = Self::default();
        for def in defs {
            let too_many = |_| "more than 2^32 accesses".to_string();
            let last = def.accesses.last().map_or(0, |a| a.insn + 1);
            dict.blocks.push(Block {
                addr: def.addr,
                bytes: def.bytes,
                instrs: def.instrs,
                accesses: def.accesses.len() as u16,
                site: site_number(image, def.addr),
                first_access: u32::try_from(dict.accesses.len()).map_err(too_many)?,
                first_out: u32::try_from(dict.outs.len()).map_err(too_many)?,
                outs: 0,
                loads: def.accesses.iter().filter(|a| is_load(a)).count() as u16,
                after: def.instrs - last,
                tangled: false,
                moves: [Move::default(); NR_MOVES],
            });
            let simple = dict.add_accesses(def, image);
            let (outs, moves) = dict.add_outs(def);
            if let Some(block) = dict.blocks.last_mut() {
                block.outs = outs;
                block.tangled = !simple || moves.is_none();
                block.moves = moves.unwrap_or_default();
            }
        }
        Ok(dict)
    }

    /// False if a [`Cell`] cannot say on what the address depends.
    fn add_accesses(&mut self, def: &BlockDef, image: u32) -> bool {
        let (mut before, mut loads_before) = (0, 0u16);
        let mut simple = true;
        for access in &def.accesses {
            let addr = def.addr.wrapping_add(access.offset.into());
            let origin = origin(def, &access.address);
            simple &= origin.pair().is_some();
            // A load later in the block cannot be meant.
            let later = origin.youngest > loads_before;
            self.cells.push(Cell {
                site: Site::new(access),
                number: site_number(image, addr),
                gap: (access.insn + 1 - before).into(),
                back: (loads_before + 1).saturating_sub(origin.youngest),
                pair: match later {
                    true => [NO_REG; 2],
                    false => origin.pair().unwrap_or_default(),
                },
                size: access.size,
                kind: kind(access.kind),
            });
            self.accesses.push(Access {
                origin,
                insn: access.insn,
                loads_before,
            });
            before = access.insn + 1;
            loads_before += u16::from(is_load(access));
        }
        simple
    }

    /// How many registers are written; and moves, if these can say how.
    fn add_outs(&mut self, def: &BlockDef) -> (u8, Option<[Move; NR_MOVES]>) {
        // A register that depends on what it depended on before keeps its entry.
        let kept = |o: &&RegOut| o.value.loads == 0 && o.value.regs == 1 << o.reg;
        let mut outs: Vec<Out> = def
            .outs
            .iter()
            .filter(|o| !kept(o))
            .map(|o| Out {
                reg: o.reg,
                origin: origin(def, &o.value),
            })
            .collect();
        let first = self.outs.len();
        while !outs.is_empty() {
            // One that overwrites what no other reads.
            let next = (0..outs.len()).find(|&i| {
                let others = outs.iter().enumerate().filter(|&(j, _)| j != i);
                let bit = 1 << outs[i].reg;
                let mut reads = others.map(|(_, o)| match o.origin.youngest {
                    0 => o.origin.regs | 1 << o.reg,
                    _ => 1 << o.reg,
                });
                reads.all(|regs| regs & bit == 0)
            });
            match next.map(|i| outs.remove(i)) {
                Some(out) => self.outs.push(out),
                None => break,
            }
        }
        let sorted = outs.is_empty();
        self.outs.append(&mut outs);
        let outs = &self.outs[first..];
        let count = outs.len() as u8;
        if !sorted || outs.len() > NR_MOVES {
            return (count, None);
        }
        let mut moves = [Move::default(); NR_MOVES];
        for (m, out) in moves.iter_mut().zip(outs) {
            let Some(pair) = out.origin.pair() else {
                return (count, None);
            };
            *m = Move {
                reg: out.reg,
                pair,
                ordinal: out.origin.youngest as u8,
            };
        }
        (count, Some(moves))
    }
}

/// A number for an instruction: equal for equal addresses of one image.
fn site_number(image: u32, addr: u64) -> u32 {
    let mixed = (addr ^ u64::from(image) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed >> 32) as u32
}

const fn kind(kind: AccessKind) -> RefKind {
    match kind {
        AccessKind::Load => RefKind::Load,
        AccessKind::Store => RefKind::Store,
        AccessKind::Update => RefKind::Update,
    }
}

fn is_load(access: &AccessDef) -> bool {
    access.kind != AccessKind::Store
}

fn origin(def: &BlockDef, sources: &Sources) -> Origin {
    let mut loads = 0;
    let mut youngest = 0;
    let mut ordinal = 0;
    for (k, access) in def.accesses.iter().enumerate().take(64) {
        if is_load(access) {
            ordinal += 1;
            if sources.loads >> k & 1 == 1 {
                loads |= 1 << k;
                youngest = ordinal;
            }
        }
    }
    Origin {
        loads,
        regs: sources.regs,
        youngest,
    }
}
