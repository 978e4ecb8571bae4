//! Taking blocks back: checks, merging, and runs of single frames.

use piebald_units::{Order, Pfn};

use super::{
    MAX_ORDER, PAGEBLOCK_ORDER,
    table::{self, End, State},
    take::bump,
    work::{Work, block_of, kind_number, size},
};
use crate::contract::FreeError;

/// A frame of a pageblock with at most so many free ones, an eighth, is wanted
/// again before any other.
pub(super) const FEW: u32 = 1 << (PAGEBLOCK_ORDER - 3);

/// What became of a buddy.
pub(super) enum Joined {
    /// It is not free.
    Not,
    /// It is merged.
    Done,
    /// It is merged, and was the last on its list, of that migrate type.
    Last(u8),
}

impl Work<'_> {
    #[inline(always)]
    pub(super) fn free(&mut self, frame: Pfn, order: Order) -> Result<(), FreeError> {
        let at = self.check(frame, order)?;
        let pageblock = self.count_given(at, order.0);
        self.release(at, order.0, pageblock, false);
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
    #[inline(always)]
    fn check(&self, frame: Pfn, order: Order) -> Result<u32, FreeError> {
        let at = self.books.at(frame).ok_or(FreeError::Foreign)?;
        if self.state(at) == table::granted(order.0) && order.0 <= MAX_ORDER {
            return Ok(at);
        }
        Err(why_not(self.parts.states, at))
    }

    /// Keeps an unlisted free block, or merges it with its buddies and lists the
    /// result, at the tail if it is `fresh` memory. `pageblock` is the entry of
    /// its first pageblock.
    #[inline(always)]
    pub(super) fn release(&mut self, at: u32, order: u8, pageblock: u32, fresh: bool) {
        let index = self.index(at);
        if self.is_kept(order, pageblock) && !self.merges(at) {
            return self.keep_single(at, index);
        }
        self.merge(at, order, pageblock, index, fresh);
    }

    /// Is the buddy of a single frame free?
    #[inline]
    pub(super) fn merges(&self, at: u32) -> bool {
        table::free_kind(self.state(at ^ 1), 0).is_some()
    }

    /// Merges an unlisted free block with its buddies and lists the result.
    /// `index` is that of any frame of the block, since that tells lists as well.
    #[inline(always)]
    pub(super) fn merge(&mut self, first: u32, order: u8, entry: u32, index: u16, fresh: bool) {
        let (mut at, mut o) = (first, order);
        self.set_state(first, table::INNER);
        while o < MAX_ORDER {
            let buddy = at ^ size(o);
            match self.join(buddy, o, index) {
                Joined::Not => break,
                Joined::Done => {}
                Joined::Last(kind) => self.unmark_buddy(buddy, o, kind, index),
            }
            at &= buddy;
            o = o.wrapping_add(1);
        }
        self.count_merges(o.wrapping_sub(order));
        let pageblock = match o > PAGEBLOCK_ORDER {
            true => self.pageblock(at),
            false => entry,
        };
        let end = match fresh {
            true => End::Tail,
            false => self.end_for(at, o, pageblock),
        };
        self.insert_at(end, at, o, kind_number(pageblock), index);
    }

    /// Takes a block off its list to merge it with its buddy, if it is free.
    /// `index` is that of any frame of the buddy.
    ///
    /// The first frames of both are inside from now on; the state of the result is
    /// written when it is listed.
    #[inline(always)]
    pub(super) fn join(&mut self, block: u32, order: u8, index: u16) -> Joined {
        let Some(kind) = table::free_kind(self.state(block), order) else {
            return Joined::Not;
        };
        self.set_state(block, table::INNER);
        if self.books.spares.remove(order, block) {
            return Joined::Done;
        }
        let step = self.books.level(order).step;
        match self.delist(block, order, kind, index ^ step) {
            true => Joined::Last(kind),
            false => Joined::Done,
        }
    }

    /// Notes that a block that was joined was the last on its list; `index` as
    /// for [`Work::join`].
    pub(super) fn unmark_buddy(&mut self, block: u32, order: u8, kind: u8, index: u16) {
        let step = self.books.level(order).step;
        self.unmark(block, order, kind, index ^ step);
    }

    #[inline]
    pub(super) fn count_merges(&mut self, n: u8) {
        let merges = &mut self.books.counters.merges;
        *merges = merges.wrapping_add(u64::from(n));
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
