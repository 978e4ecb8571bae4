//! Single frames, which are nearly all that hosts ask for and return: out of the
//! smallest spare block, and back among blocks that are free already.
//!
//! These paths do the same as the general ones (`take`, `give`) and leave to them
//! what is rare: a whole pageblock, colours that the smallest spare block has not,
//! a map that takes more than a shift. Bitmaps are noted in functions of their own.
//! So the paths need few of the lent parts, and those stay in registers: what
//! bounds them is how many instructions they take.

use piebald_units::{Color, ColorSet, Order, Pfn};

use super::{
    Buddy, PAGEBLOCK_ORDER, Store,
    books::Books,
    give::{FEW, Joined},
    migrate::MigrateType,
    spare::Spare,
    table,
    take::bump,
    work::{Work, free_of, kind_number, size},
};
use crate::contract::{FrameRequest, FreeError, Grant, Purpose};

/// The state of a free movable single frame.
const FREE_SINGLE: u8 = table::free(0, MigrateType::Movable as u8);

/// What became of a single frame that comes back.
enum Given {
    /// It is free.
    Back,
    /// It is counted as free, and has yet to be merged and listed.
    Counted {
        /// The frame.
        at: u32,
        /// Its index.
        index: u16,
        /// The entry of its pageblock.
        pageblock: u32,
    },
    /// Nothing: it is no granted single frame, or the map is not simple.
    Not,
}

impl Work<'_> {
    /// The common case: one movable frame out of the smallest spare block, if
    /// that serves the request.
    #[inline(always)]
    pub(super) fn quick(&mut self, r: &FrameRequest<'_>) -> Option<Grant> {
        if r.order.0 != 0
            || !matches!(r.purpose, Purpose::Anon | Purpose::File)
            || self.books.measures_next()
        {
            return None;
        }
        let (from, spare) = self.books.spares.smallest()?;
        let at = match (r.wish, r.allowed) {
            (None, None) => self.break_low(from, spare),
            (None, Some(set)) => {
                let want = self.index_of(self.color_in_word(spare, from, set)?);
                self.break_towards(from, spare, want)
            }
            (Some(color), set) => {
                let want = self.wanted(spare, from, color, set)?;
                self.break_towards(from, spare, want)
            }
        };
        let splits = &mut self.books.counters.splits;
        *splits = splits.wrapping_add(u64::from(from));
        self.take_one(at);
        bump(&mut self.books.counters.grants);
        Some(Grant {
            frame: self.frame(at),
            order: r.order,
            fallback: false,
        })
    }

    /// Takes the first frame of the smallest spare block, and keeps the rest in
    /// the places of smaller orders, which are empty.
    #[inline]
    fn break_low(&mut self, from: u8, spare: Spare) -> u32 {
        self.books.spares.break_smallest(from);
        let mut half = 1;
        for o in 0..from {
            let upper = Spare {
                at: spare.at.wrapping_add(half),
                index: spare.index ^ self.books.level(o).step,
            };
            self.set_state(upper.at, FREE_SINGLE | o);
            self.books.spares.set(o, upper);
            half <<= 1;
        }
        spare.at
    }

    /// The same for the frame of that block with a wanted index.
    #[inline]
    fn break_towards(&mut self, from: u8, spare: Spare, want: u16) -> u32 {
        self.books.spares.break_smallest(from);
        let mut kept = spare;
        for o in (0..from).rev() {
            let level = self.books.level(o);
            let mut other = Spare {
                at: kept.at.wrapping_add(size(o)),
                index: kept.index ^ level.step,
            };
            if (kept.index ^ want) >> (level.rank & 15) != 0 {
                core::mem::swap(&mut kept, &mut other);
            }
            self.set_state(other.at, FREE_SINGLE | o);
            self.books.spares.set(o, other);
        }
        kept.at
    }

    /// The index of a wished colour, if it is allowed and a spare block has it.
    #[inline]
    fn wanted(&self, spare: Spare, order: u8, color: Color, set: Option<&ColorSet>) -> Option<u16> {
        let want = self.index_of(color);
        let has = u32::from(color.0) < self.books.colors
            && (spare.index ^ want) >> (self.books.rank(order) & 15) == 0
            && set.is_none_or(|s| s.contains(color));
        has.then_some(want)
    }

    /// Grants one unlisted frame.
    #[inline]
    fn take_one(&mut self, at: u32) {
        self.count_taken(at, 0);
        self.set_state(at, table::granted(0));
        self.books.current = at >> PAGEBLOCK_ORDER;
    }

    /// Counts a granted single frame as free, and lists or keeps it if its buddy is
    /// not free and its list is not empty.
    #[inline(always)]
    fn give_single(&mut self, frame: Pfn) -> Given {
        let (Some(at), Some(index)) = (self.books.at(frame), self.books.simple_index(frame)) else {
            return Given::Not;
        };
        if self.state(at) != table::granted(0) {
            return Given::Not;
        }
        let pageblock = self.count_given(at, 0);
        bump(&mut self.books.counters.frees);
        if !self.merges(at) {
            if self.is_kept(0, pageblock) {
                self.keep_single(at, index);
                return Given::Back;
            }
            let kind = kind_number(pageblock);
            let id = Books::list(kind, self.books.level(0), index);
            let end = self.end_for(at, 0, pageblock);
            let list = self.parts.lists.get_mut(id);
            if let Some(list) = list.filter(|l| !l.is_empty()) {
                list.push(self.parts.links, at, end);
                self.books.count_block(0, true);
                self.set_state(at, table::free(0, kind));
                return Given::Back;
            }
        }
        Given::Counted {
            at,
            index,
            pageblock,
        }
    }

    /// Keeps a single frame as the spare of its order, of which there is none.
    #[inline]
    pub(super) fn keep_single(&mut self, at: u32, index: u16) {
        self.set_state(at, FREE_SINGLE);
        self.books.spares.fill(0, at, index);
    }

    /// Is a block that comes back a single frame that is wanted before any other,
    /// and is there room to keep it?
    #[inline]
    pub(super) fn is_kept(&self, order: u8, pageblock: u32) -> bool {
        free_of(pageblock) <= FEW
            && order == 0
            && kind_number(pageblock) == MigrateType::Movable as u8
            && self.books.spares.get(0).is_none()
    }
}

impl<S: Store> Buddy<S> {
    /// [`Buddy::free`] for a single frame. The first step is compiled into the
    /// caller and ends most calls; it answers before anything is merged.
    #[inline(always)]
    pub(super) fn free_single(&mut self, frame: Pfn) -> Result<(), FreeError> {
        match self.work().give_single(frame) {
            Given::Back => {}
            Given::Counted {
                at,
                index,
                pageblock,
            } => self.merge_single(at, index, pageblock),
            Given::Not => return self.free_block(frame, Order(0)),
        }
        Ok(())
    }

    /// [`Work::merge`] for what begins as a single frame. It takes the lent parts
    /// anew for each step: holding all of them over the loop would take more
    /// registers than there are, and costs a tenth more instructions.
    #[inline(never)]
    fn merge_single(&mut self, first: u32, index: u16, pageblock: u32) {
        let (mut at, mut order) = (first, 0u8);
        self.work().set_state(first, table::INNER);
        while order < PAGEBLOCK_ORDER {
            let buddy = at ^ size(order);
            match self.work().join(buddy, order, index) {
                Joined::Not => break,
                Joined::Done => {}
                Joined::Last(kind) => self.unmark_buddy(buddy, order, kind, index),
            }
            at &= buddy;
            order = order.wrapping_add(1);
        }
        let mut work = self.work();
        work.count_merges(order);
        if order >= PAGEBLOCK_ORDER {
            return self.merge_pageblock(at, index, pageblock);
        }
        let kind = kind_number(pageblock);
        let end = work.end_for(at, order, pageblock);
        if work.enlist(end, at, order, kind, index) {
            self.mark(at, order, kind, index);
        }
    }

    #[cold]
    #[inline(never)]
    fn merge_pageblock(&mut self, at: u32, index: u16, pageblock: u32) {
        let mut work = self.work();
        work.merge(at, PAGEBLOCK_ORDER, pageblock, index, false);
    }

    #[inline(never)]
    fn unmark_buddy(&mut self, block: u32, order: u8, kind: u8, index: u16) {
        self.work().unmark_buddy(block, order, kind, index);
    }

    #[inline(never)]
    fn mark(&mut self, at: u32, order: u8, kind: u8, index: u16) {
        self.work().mark(at, order, kind, index);
    }
}
