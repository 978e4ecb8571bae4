//! Predictors that the encoder and the decoder run in lockstep.
//!
//! An address is predicted in three ways, from what its access site did before:
//!
//! 0. *stride*: the site's last address plus its stride. The stride changes only
//!    when the same step is seen twice in a row, so a jump to the next row of a
//!    matrix costs one miss, not two.
//! 1. *neighbour*: the thread's previous reference plus the distance that this
//!    site last had from it. Catches the fields of a structure once its first
//!    field is known.
//! 2. *register*: the last address computed from the same registers (as
//!    [`AccessDef::address`] tells) plus the distance that this site last had
//!    from that. Catches stack frames, whatever is accessed in between.
//!
//! Each site has a favourite: the predictor that was last exactly right. A block
//! is predicted from the last blocks before it, and failing that from what
//! followed the same block before.
//!
//! The state starts afresh in each chunk, so that a chunk can be decoded alone.

use super::model::{AccessDef, BlockDef};

/// Low 48 bits: addresses live modulo 2^48.
pub(crate) const ADDR_MASK: u64 = (1 << 48) - 1;
/// Address token: the favourite was wrong, predictor `code` is right.
pub(crate) const EXACT: u8 = 0;
/// Address token: predictor `code - RESIDUAL` plus a residual.
pub(crate) const RESIDUAL: u8 = 3;
/// Address tokens keep the code in the high 3 bits, the run below.
pub(crate) const ADDR_RUN_BITS: u32 = 5;
/// Block tokens keep the code in the high 2 bits, the run below.
pub(crate) const BLOCK_RUN_BITS: u32 = 6;
/// Block token: what followed this block last time.
pub(crate) const LAST_SUCCESSOR: u8 = 0;
/// Block token: what followed it before something else did.
pub(crate) const OLDER_SUCCESSOR: u8 = 1;
/// Block token: the distance from this block's id follows.
pub(crate) const LITERAL: u8 = 2;

/// Number of slots for last addresses by source registers.
const NR_SLOTS: usize = 32;
/// Slot of addresses that depend on a load of the same block.
const LOAD_SLOT: u8 = 16;
/// Slot of addresses that depend on nothing.
const FIXED_SLOT: u8 = 17;
/// First of the slots for sets of several registers.
const MULTI_SLOT: u8 = 18;

/// Which last address an access is compared with.
fn slot(def: &AccessDef) -> u8 {
    let regs = def.address.regs;
    if def.address.loads != 0 {
        return LOAD_SLOT;
    }
    match regs.count_ones() {
        0 => FIXED_SLOT,
        1 => regs.trailing_zeros() as u8,
        _ => MULTI_SLOT + (u32::from(regs).wrapping_mul(0x9e37_79b1) >> 24) as u8 % 14,
    }
}

/// What is known of one access site.
#[derive(Clone, Copy, Default)]
pub(crate) struct Site {
    last: u64,
    from_previous: u64,
    from_slot: u64,
    stride: i32,
    candidate: i32,
    pub(crate) favourite: u8,
    slot: u8,
    /// The definition's size in bytes.
    pub(crate) size: u8,
    /// Flags of the page-touch index: what this access does to its page.
    pub(crate) touch: u8,
}

impl Site {
    /// A site of this definition that has learned nothing.
    pub(crate) fn new(def: &AccessDef) -> Self {
        Self {
            slot: slot(def),
            size: def.size,
            touch: super::pages::touch(def.kind),
            ..Self::default()
        }
    }

    /// Forgets what was learned, keeps what the definition says.
    pub(crate) fn reset(&mut self) {
        *self = Self {
            slot: self.slot,
            size: self.size,
            touch: self.touch,
            ..Self::default()
        };
    }

    /// Address of the last execution, 0 if there was none.
    #[inline]
    pub(crate) fn last(&self) -> u64 {
        self.last
    }
}

/// What is known of the thread as a whole.
#[derive(Clone, Default)]
pub(crate) struct Context {
    previous: u64,
    slots: [u64; NR_SLOTS],
}

impl Context {
    /// What predictor `which` says.
    #[inline]
    pub(crate) fn predict(&self, site: &Site, which: u8) -> u64 {
        let guess = match which {
            0 => site.last.wrapping_add(i64::from(site.stride) as u64),
            1 => self.previous.wrapping_add(site.from_previous),
            _ => self.slots[usize::from(site.slot) % NR_SLOTS].wrapping_add(site.from_slot),
        };
        guess & ADDR_MASK
    }

    /// Learns the address.
    #[inline]
    pub(crate) fn learn(&mut self, site: &mut Site, addr: u64) {
        let step = ((addr.wrapping_sub(site.last) << 16) as i64) >> 16;
        let step = if step as i32 as i64 == step {
            step as i32
        } else {
            0
        };
        if step == site.candidate {
            site.stride = step;
        }
        site.candidate = step;
        site.last = addr;
        site.from_previous = addr.wrapping_sub(self.previous);
        self.previous = addr;
        let slot = &mut self.slots[usize::from(site.slot) % NR_SLOTS];
        site.from_slot = addr.wrapping_sub(*slot);
        *slot = addr;
    }
}

/// What is known of one block.
#[derive(Clone, Copy, Default)]
pub(crate) struct BlockState {
    pub(crate) first_site: u32,
    pub(crate) accesses: u16,
    pub(crate) instrs: u16,
    successors: [u32; 2],
    /// Was executed in this chunk, so its sites were reset.
    pub(crate) seen: bool,
    /// Its definition was looked up.
    pub(crate) known: bool,
}

impl BlockState {
    /// The state of a block of this definition that has learned nothing.
    pub(crate) fn new(first_site: u32, def: &BlockDef) -> Self {
        Self {
            first_site,
            accesses: def.accesses.len() as u16,
            instrs: def.instrs,
            known: true,
            ..Self::default()
        }
    }

    /// Forgets what was learned.
    pub(crate) fn reset(&mut self) {
        self.successors = [0; 2];
        self.seen = false;
    }
}

/// No block has this id.
const NO_BLOCK: u32 = u32::MAX;

const HISTORY_BITS: u32 = 14;

/// Predicts the next block.
pub(crate) struct Successors {
    /// Predicted block by a hash of the last blocks.
    table: Box<[u32]>,
    hash: u32,
    /// Block that was executed last; [`NO_BLOCK`] at the start.
    pub(crate) current: u32,
}

impl Successors {
    pub(crate) fn new() -> Self {
        Self {
            table: vec![0; 1 << HISTORY_BITS].into_boxed_slice(),
            hash: 0,
            current: NO_BLOCK,
        }
    }

    pub(crate) fn reset(&mut self) {
        self.table.fill(0);
        self.hash = 0;
        self.current = NO_BLOCK;
    }

    /// The block that history predicts.
    #[inline]
    pub(crate) fn predict(&self) -> u32 {
        self.table[(self.hash >> (32 - HISTORY_BITS)) as usize]
    }

    /// What followed the current block: last time (0) or before that (1).
    #[inline]
    pub(crate) fn successor(&self, blocks: &[BlockState], which: u8) -> u32 {
        blocks
            .get(self.current as usize)
            .map_or(0, |b| b.successors[usize::from(which & 1)])
    }

    /// Learns which block came.
    #[inline]
    pub(crate) fn learn(&mut self, blocks: &mut [BlockState], next: u32) {
        self.table[(self.hash >> (32 - HISTORY_BITS)) as usize] = next;
        if let Some(b) = blocks.get_mut(self.current as usize)
            && b.successors[0] != next
        {
            b.successors = [next, b.successors[0]];
        }
        self.current = next;
        // Each step shifts older blocks out of the hash: the last four or so count.
        self.hash = (self.hash << 8) ^ (next.wrapping_mul(0x9e37_79b1));
    }
}
