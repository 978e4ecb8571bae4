//! Taking blocks back: checks, merging, and runs of single frames.

use piebald_units::{Order, Pfn};

use super::{
    MAX_ORDER, PAGEBLOCK_ORDER,
    migrate::MigrateType,
    table::{self, State},
    take::bump,
    work::{Work, block_of, free_of, kind_number, size},
};
use crate::contract::FreeError;

/// A frame of a pageblock with at most so many free ones, an eighth, is wanted
/// again before any other.
const FEW: u32 = 1 << (PAGEBLOCK_ORDER - 3);

impl Work<'_> {
    #[inline]
    pub(super) fn free(&mut self, frame: Pfn, order: Order) -> Result<(), FreeError> {
        let at = self.check(frame, order)?;
        // Twice the same, so that the common order is a constant in one of them.
        if order.0 == 0 {
            let pageblock = self.count_given(at, 0);
            self.release(at, 0, pageblock, false);
        } else {
            let pageblock = self.count_given(at, order.0);
            self.release(at, order.0, pageblock, false);
        }
        bump(&mut self.books.counters.frees);
        Ok(())
    }

    pub(super) fn detach(&mut self, frame: Pfn, order: Order) -> Result<(), FreeError> {
        let at = self.check(frame, order)?;
        self.forget(at, order.0);
        Ok(())
    }

    /// Makes an unlisted block foreign.
    pub(super) fn forget(&mut self, at: u32, order: u8) {
        self.count_lost(at, order);
        self.set_state(at, table::INNER);
    }

    /// The table index of a granted block, or why it is none.
    #[inline]
    fn check(&self, frame: Pfn, order: Order) -> Result<u32, FreeError> {
        let at = self.books.at(frame).ok_or(FreeError::Foreign)?;
        if self.state(at) == table::granted(order.0) && order.0 <= MAX_ORDER {
            return Ok(at);
        }
        Err(why_not(self.parts.states, at))
    }

    /// Merges an unlisted free block with its buddies and lists the result, at
    /// the tail if it is `fresh` memory. `pageblock` is the entry of its first
    /// pageblock.
    #[inline(always)]
    pub(super) fn release(&mut self, first: u32, order: u8, pageblock: u32, fresh: bool) {
        let (mut at, mut o, mut pageblock) = (first, order, pageblock);
        let mut index = self.index(at);
        while o < MAX_ORDER {
            let buddy = at ^ size(o);
            let Some(kind) = table::free_kind(self.state(buddy), o) else {
                break;
            };
            let step = self.books.level(o).step;
            if !self.books.spares.remove(o, buddy) {
                self.unlink(buddy, o, kind, index ^ step);
            }
            // The upper half is inside from now on; the lower half's state is
            // written when the block is listed.
            self.set_state(at.max(buddy), table::INNER);
            if buddy < at {
                (at, index) = (buddy, index ^ step);
            }
            o = o.wrapping_add(1);
        }
        let merges = u64::from(o.wrapping_sub(order));
        let counters = &mut self.books.counters;
        counters.merges = counters.merges.wrapping_add(merges);
        if o > PAGEBLOCK_ORDER {
            pageblock = self.pageblock(at);
        }
        let kind = kind_number(pageblock);
        let early = !fresh && (o >= PAGEBLOCK_ORDER || !self.is_sparse(at, pageblock));
        if o == 0
            && free_of(pageblock) <= FEW
            && kind == MigrateType::Movable as u8
            && self.books.spares.get(0).is_none()
        {
            self.set_state(at, table::free(0, kind));
            self.books.spares.fill(0, at, index);
            return;
        }
        self.insert_at(early, at, o, kind, index);
    }

    /// Takes back single frames in rising order, by table index; aligned runs
    /// are taken back as one block. Answers how many were refused: those that
    /// are not granted single frames.
    pub(super) fn free_singles(&mut self, frames: &[u32]) -> u32 {
        let mut refused = 0u32;
        let mut rest = frames;
        while let Some(first) = rest.first() {
            let order = run_order(rest, *first);
            let (run, after) = rest
                .split_at_checked(size(order) as usize)
                .unwrap_or((rest, &[]));
            refused = refused.wrapping_add(self.free_run(run, *first, order));
            rest = after;
        }
        refused
    }

    /// Takes back the frames of one run.
    fn free_run(&mut self, run: &[u32], first: u32, order: u8) -> u32 {
        let single = table::granted(0);
        let all = run.iter().all(|at| self.state(*at) == single);
        if !all {
            let refused = |at: &&u32| {
                let frame = self.frame(**at);
                self.free(frame, Order(0)).is_err()
            };
            return run.iter().filter(refused).count() as u32;
        }
        for at in run {
            self.set_state(*at, table::INNER);
        }
        let pageblock = self.count_given(first, order);
        self.release(first, order, pageblock, false);
        let counters = &mut self.books.counters;
        counters.frees = counters.frees.wrapping_add(u64::from(size(order)));
        0
    }
}

/// Why a block cannot be taken back.
#[cold]
fn why_not(states: &[u8], at: u32) -> FreeError {
    match block_of(states, at) {
        Some((_, State::Granted { .. })) => FreeError::OrderMismatch,
        Some(_) => FreeError::DoubleFree,
        None => FreeError::Foreign,
    }
}

/// The largest order such that rising numbers begin with that whole block.
fn run_order(frames: &[u32], first: u32) -> u8 {
    let whole = |order: &u8| {
        let last = size(*order).wrapping_sub(1);
        first & last == 0 && frames.get(last as usize) == Some(&first.wrapping_add(last))
    };
    (1..=MAX_ORDER).take_while(whole).last().unwrap_or(0)
}
