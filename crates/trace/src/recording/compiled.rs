//! A process's dictionary in the form that replay works from.

use piebald_units::{
    VirtAddr,
    op::{MemRef, RefKind},
};

use super::{
    model::{AccessDef, AccessKind, BlockDef, NR_REGS, RegOut, Sources},
    predict::{BlockState, Site},
};

/// A block, without what replay does not need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

/// Register number of none: its entry in the table of loads is always 0.
const NO_REG: u8 = NR_REGS as u8;

/// On what an address or a register's value depends, ready to use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Origin {
    /// Bit k: access k of this execution. Only loads.
    pub(crate) loads: u64,
    /// Registers at block entry.
    pub(crate) regs: u16,
    /// The youngest of `loads`, counted in loads of the block from 1; 0 = none.
    pub(crate) youngest: u16,
    /// The first two of `regs`, or [`NO_REG`].
    pub(crate) pair: [u8; 2],
    /// There are more than two.
    pub(crate) many: bool,
}

/// An access, ready to use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    /// The reference but for its address. `gap`: instructions after the one of the
    /// previous access of the block (or from the block's start), its own included.
    /// `dep`: distance to a load of the same execution.
    pub(crate) template: MemRef,
    pub(crate) origin: Origin,
    /// Index of its instruction.
    pub(crate) insn: u16,
    /// Loads of the block before it.
    pub(crate) loads_before: u16,
}

/// A register that a block writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out {
    pub(crate) origin: Origin,
    pub(crate) reg: u8,
}

/// The blocks of a process.
#[derive(Default)]
pub struct Dictionary {
    pub(crate) blocks: Vec<Block>,
    pub(crate) accesses: Vec<Access>,
    pub(crate) outs: Vec<Out>,
    /// Predictor states at the start of a chunk; sources work on copies.
    pub(crate) block_states: Vec<BlockState>,
    pub(crate) sites: Vec<Site>,
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
            });
            dict.add_accesses(def, image);
            // A register that depends on what it depended on before keeps its entry.
            let kept = |o: &&RegOut| o.value.loads == 0 && o.value.regs == 1 << o.reg;
            let outs = def.outs.iter().filter(|o| !kept(o));
            dict.outs.extend(outs.map(|o| Out {
                reg: o.reg,
                origin: origin(def, &o.value),
            }));
            if let Some(block) = dict.blocks.last_mut() {
                block.outs = (dict.outs.len() - block.first_out as usize) as u8;
            }
            let first_site = dict.sites.len() as u32;
            dict.block_states.push(BlockState::new(first_site, def));
            dict.sites.extend(def.accesses.iter().map(Site::new));
        }
        Ok(dict)
    }

    fn add_accesses(&mut self, def: &BlockDef, image: u32) {
        let (mut before, mut loads_before) = (0, 0u16);
        for access in &def.accesses {
            let addr = def.addr.wrapping_add(access.offset.into());
            let origin = origin(def, &access.address);
            let dep = match origin.youngest {
                0 => 0,
                // A load later in the block cannot be meant.
                youngest => (loads_before + 1).saturating_sub(youngest),
            };
            self.accesses.push(Access {
                template: MemRef {
                    addr: VirtAddr(0),
                    site: site_number(image, addr),
                    gap: (access.insn + 1 - before).into(),
                    dep,
                    size: access.size,
                    kind: kind(access.kind),
                },
                origin,
                insn: access.insn,
                loads_before,
            });
            before = access.insn + 1;
            loads_before += u16::from(is_load(access));
        }
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
    let mut named = (0..NR_REGS as u8).filter(|r| sources.regs >> r & 1 == 1);
    let pair = [(); 2].map(|()| named.next().unwrap_or(NO_REG));
    Origin {
        loads,
        regs: sources.regs,
        youngest,
        pair,
        many: named.next().is_some(),
    }
}
