//! Memory that comes and goes at run time.

use core::{fmt, ops::Range};

use piebald_units::{Order, Pfn};

use super::{
    MAX_ORDER, PAGEBLOCK_ORDER,
    migrate::MigrateType,
    table,
    work::{Work, block_of, owned_of, size},
};

/// Why a range was not added. The allocator is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeError {
    /// The range has no frame.
    Empty,
    /// This frame lies outside the table.
    Outside(Pfn),
    /// This frame is the allocator's already.
    Overlap(Pfn),
}

impl fmt::Display for RangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("range has no frame; allowed: start below end"),
            Self::Outside(frame) => write!(f, "{frame} lies outside the frame table"),
            Self::Overlap(frame) => write!(f, "{frame} belongs to the allocator already"),
        }
    }
}

impl core::error::Error for RangeError {}

impl Work<'_> {
    pub(super) fn add_range(&mut self, frames: Range<Pfn>) -> Result<(), RangeError> {
        if frames.is_empty() {
            return Err(RangeError::Empty);
        }
        let last = Pfn(frames.end.0.wrapping_sub(1));
        let first = self.books.at(frames.start);
        let first = first.ok_or(RangeError::Outside(frames.start))?;
        let last = self.books.at(last).ok_or(RangeError::Outside(last))?;
        self.check_unowned(first, last)?;
        let (mut at, end) = (first, last.wrapping_add(1));
        while let Some(fits) = end.wrapping_sub(at).checked_ilog2() {
            let order = fits.min(at.trailing_zeros()).min(u32::from(MAX_ORDER)) as u8;
            self.count_owned(at, order);
            let pageblock = self.count_given(at, order);
            self.release(at, order, pageblock, true);
            at = at.wrapping_add(size(order));
        }
        Ok(())
    }

    /// Requires that no frame from `first` to `last` is the allocator's. Looks at
    /// the counts of pageblocks, and at frames only in the two that the range may
    /// share with others.
    fn check_unowned(&self, first: u32, last: u32) -> Result<(), RangeError> {
        let inside = size(PAGEBLOCK_ORDER).wrapping_sub(1);
        let mut at = first;
        while at <= last {
            let end = (at | inside).min(last);
            if owned_of(self.pageblock(at)) > 0
                && let Some(f) = self.first_owned(at, end)
            {
                return Err(RangeError::Overlap(self.frame(f)));
            }
            at = end.wrapping_add(1);
        }
        Ok(())
    }

    /// The first frame from `first` to `last` that is the allocator's. A block that holds one of them begins before them,
    /// or there.
    fn first_owned(&self, first: u32, last: u32) -> Option<u32> {
        if block_of(self.parts.states, first).is_some() {
            return Some(first);
        }
        (first.wrapping_add(1)..=last).find(|f| self.state(*f) != table::INNER)
    }

    pub(super) fn remove_block(&mut self, order: Order) -> Option<Pfn> {
        if order.0 > MAX_ORDER {
            return None;
        }
        self.list_spares();
        let at = MigrateType::ALL
            .into_iter()
            .find_map(|kind| self.take_any(kind, order.0))?;
        self.forget(at, order.0);
        Some(self.frame(at))
    }
}
