//! Predictors that the encoder and the decoder run in lockstep.
//!
//! An address is predicted in three ways, from what its access site did before:
//!
//! 0. *stride*: the site's last address plus its stride. The stride is learned
//!    where the favourite was wrong, and changes only when the same step is seen
//!    at two such places in a row, so a jump to the next row of a matrix costs one
//!    miss, not two.
//! 1. *neighbour*: the thread's previous reference plus the distance that this
//!    site last had from it. Catches the fields of a structure once its first
//!    field is known.
//! 2. *register*: the last address computed from the same registers (as
//!    [`AccessDef::address`] tells) plus the distance that this site last had
//!    from that. Catches stack frames, whatever is accessed in between.
//!
//! Each site has a favourite: the predictor that was last exactly right. A block
//! is predicted from the last blocks before it, and failing that from what
//! followed the same block when that prediction failed before.
//!
//! What is learned where a prediction was right is what replay pays for with each
//! reference; so that is as little as the size of recordings permits. Learning
//! strides everywhere makes them 2 % smaller; learning the other two distances
//! only where the favourite was wrong makes them up to 11 % larger.
//!
//! The state starts afresh in each chunk, so that a chunk can be decoded alone.

use std::hint::select_unpredictable;

use super::model::AccessDef;

/// Low 48 bits: addresses live modulo 2^48.
pub(crate) const ADDR_MASK: u64 = (1 << 48) - 1;

/// The full address of 48 recorded bits. Predictors are right or wrong modulo 2^48;
/// what compares, makes it full first.
#[inline(always)]
pub(crate) const fn canonical(addr: u64) -> u64 {
    ((addr << 16) as i64 >> 16) as u64
}

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

/// Place of the candidate for a stride.
const CANDIDATE: usize = 3;

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
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Site {
    last: u64,
    /// By predictor: its distance from what it starts from. Then the candidate for
    /// a stride.
    distances: [u64; 4],
    pub(crate) favourite: u8,
    slot: u8,
}

impl Site {
    /// A site of this definition that has learned nothing.
    pub(crate) fn new(def: &AccessDef) -> Self {
        Self {
            slot: slot(def),
            ..Self::default()
        }
    }

    /// Forgets what was learned, keeps what the definition says.
    pub(crate) fn reset(&mut self) {
        *self = Self {
            slot: self.slot,
            ..Self::default()
        };
    }

    /// Address of the last execution, 0 if there was none.
    #[inline]
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// The favourite was wrong: learns the stride. [`Context::learn`] must follow.
    #[inline(always)]
    pub(crate) fn missed(&mut self, addr: u64) {
        let step = canonical(addr.wrapping_sub(self.last));
        if step == self.distances[CANDIDATE] {
            self.distances[0] = step;
        }
        self.distances[CANDIDATE] = step;
    }
}

/// What is known of the thread as a whole.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Context {
    previous: u64,
}

/// Last addresses, by [`slot`].
pub(crate) type Slots = [u64; NR_SLOTS];

impl Context {
    /// What predictor `which` (0 to 2) says, modulo 2^48.
    #[inline(always)]
    pub(crate) fn predict(&self, slots: &Slots, site: &Site, which: u8) -> u64 {
        // Chosen without a jump: which predictor is right differs from site to
        // site, and a processor guesses that badly.
        let slot = slots[usize::from(site.slot) % NR_SLOTS];
        let base = select_unpredictable(which == 0, site.last, slot);
        let base = select_unpredictable(which == 1, self.previous, base);
        base.wrapping_add(site.distances[usize::from(which) % 4])
    }

    /// Learns the address.
    #[inline(always)]
    pub(crate) fn learn(&mut self, slots: &mut Slots, site: &mut Site, addr: u64) {
        let slot = &mut slots[usize::from(site.slot) % NR_SLOTS];
        site.distances[1] = addr.wrapping_sub(self.previous);
        site.distances[2] = addr.wrapping_sub(*slot);
        site.last = addr;
        self.previous = addr;
        *slot = addr;
    }
}

/// No block has this id.
pub(crate) const NO_BLOCK: u32 = u32::MAX;

const HISTORY_BITS: u32 = 14;

const NR_HISTORIES: usize = 1 << HISTORY_BITS;

/// What followed a block where history was wrong: last time, and before that.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Followers([u32; 2]);

impl Followers {
    /// What followed last time (0) or before that (1).
    pub(crate) fn get(self, which: u8) -> u32 {
        self.0[usize::from(which & 1)]
    }

    /// Learns what followed.
    pub(crate) fn learn(&mut self, next: u32) {
        if self.0[0] != next {
            self.0 = [next, self.0[0]];
        }
    }
}

/// Predicts the next block.
pub(crate) struct Successors {
    /// Predicted block by a hash of the last blocks.
    table: Box<[u32; NR_HISTORIES]>,
    hash: u32,
}

impl Successors {
    pub(crate) fn new() -> Self {
        Self {
            table: Box::new([0; NR_HISTORIES]),
            hash: 0,
        }
    }

    pub(crate) fn reset(&mut self) {
        self.table.fill(0);
        self.hash = 0;
    }

    /// The block that history predicts.
    #[inline(always)]
    pub(crate) fn predict(&self) -> u32 {
        self.table[(self.hash >> (32 - HISTORY_BITS)) as usize]
    }

    /// History was wrong: learns which block came. [`Self::enter`] must follow.
    #[inline]
    pub(crate) fn missed(&mut self, next: u32) {
        self.table[(self.hash >> (32 - HISTORY_BITS)) as usize] = next;
    }

    /// A block is executed.
    #[inline(always)]
    pub(crate) fn enter(&mut self, next: u32) {
        // Each step shifts older blocks out of the hash: the last four or so count.
        self.hash = (self.hash << 8) ^ (next.wrapping_mul(0x9e37_79b1));
    }
}
