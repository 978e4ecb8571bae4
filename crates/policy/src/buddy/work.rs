//! One call's view of the allocator: the lent slices and the books, and the
//! steps from which allocation and freeing are made.

use piebald_units::{Color, ColorSet, Pfn};

use super::{
    Books, MAX_ORDER, PAGEBLOCK_ORDER,
    bitmap::{mark, unmark},
    migrate::MigrateType,
    store::{List, PartsMut},
    table::{self, End, State},
};

/// Fields of a pageblock's entry: free frames, frames that the allocator has,
/// migrate type.
const FREE: u32 = 0;
const OWNED: u32 = 10;
const KIND: u32 = 20;
const COUNT: u32 = (1 << 10) - 1;

/// Heads of a list that are looked at for one in a dense pageblock.
const TRIES: u32 = 8;

pub(super) const fn free_of(pageblock: u32) -> u32 {
    pageblock >> FREE & COUNT
}

pub(super) const fn owned_of(pageblock: u32) -> u32 {
    pageblock >> OWNED & COUNT
}

pub(super) const fn kind_of(pageblock: u32) -> MigrateType {
    MigrateType::numbered(kind_number(pageblock))
}

#[inline]
pub(super) const fn kind_number(pageblock: u32) -> u8 {
    (pageblock >> KIND) as u8 & 3
}

/// The number of frames of an order that is at most 10.
pub(super) const fn size(order: u8) -> u32 {
    1 << (order & 15)
}

/// The lent parts and the books, for the length of one call.
pub(super) struct Work<'a> {
    pub(super) parts: PartsMut<'a>,
    pub(super) books: &'a mut Books,
}

impl Work<'_> {
    #[inline]
    pub(super) fn frame(&self, at: u32) -> Pfn {
        self.books.frame(at)
    }

    /// The state of a frame.
    #[inline]
    pub(super) fn state(&self, at: u32) -> u8 {
        table::byte(self.parts.states, at)
    }

    #[inline]
    pub(super) fn set_state(&mut self, at: u32, state: u8) {
        if let Some(slot) = self.parts.states.get_mut(at as usize) {
            *slot = state;
        }
    }

    /// The pageblock entry of a frame.
    #[inline]
    pub(super) fn pageblock(&self, at: u32) -> u32 {
        let i = at >> PAGEBLOCK_ORDER;
        self.parts.pageblocks.get(i as usize).copied().unwrap_or(0)
    }

    #[inline]
    pub(super) fn pageblock_mut(&mut self, at: u32) -> Option<&mut u32> {
        self.parts
            .pageblocks
            .get_mut((at >> PAGEBLOCK_ORDER) as usize)
    }

    pub(super) fn set_kind(&mut self, at: u32, kind: MigrateType) {
        if let Some(entry) = self.pageblock_mut(at) {
            *entry = *entry & !(3 << KIND) | (kind as u32) << KIND;
        }
    }

    /// Counts a block as granted.
    #[inline]
    pub(super) fn count_taken(&mut self, at: u32, order: u8) {
        self.books.free = self.books.free.wrapping_sub(u64::from(size(order)));
        self.each_pageblock(at, order, |entry, n, full| {
            *entry = entry.wrapping_sub(n << FREE);
            if free_of(*entry) == 0 {
                *full = full.wrapping_add(1);
            }
        });
    }

    /// Counts a block as free; answers the entry of its (first) pageblock.
    #[inline]
    pub(super) fn count_given(&mut self, at: u32, order: u8) -> u32 {
        self.books.free = self.books.free.wrapping_add(u64::from(size(order)));
        self.each_pageblock(at, order, |entry, n, full| {
            if free_of(*entry) == 0 {
                *full = full.wrapping_sub(1);
            }
            *entry = entry.wrapping_add(n << FREE);
        })
    }

    /// Counts a granted block as the allocator's.
    pub(super) fn count_owned(&mut self, at: u32, order: u8) {
        self.books.owned = self.books.owned.wrapping_add(u64::from(size(order)));
        self.each_pageblock(at, order, |entry, n, full| {
            *full = full.wrapping_add(u32::from(owned_of(*entry) == 0));
            *entry = entry.wrapping_add(n << OWNED);
        });
    }

    /// Counts a granted block as no longer the allocator's.
    pub(super) fn count_lost(&mut self, at: u32, order: u8) {
        self.books.owned = self.books.owned.wrapping_sub(u64::from(size(order)));
        self.each_pageblock(at, order, |entry, n, full| {
            *entry = entry.wrapping_sub(n << OWNED);
            *full = full.wrapping_sub(u32::from(owned_of(*entry) == 0));
        });
    }

    /// Changes the entries of the one or two pageblocks that a block lies in,
    /// and the number of those that have frames but no free ones. Answers what
    /// the first entry is now.
    #[inline(always)]
    fn each_pageblock(
        &mut self,
        at: u32,
        order: u8,
        change: impl Fn(&mut u32, u32, &mut u32),
    ) -> u32 {
        let part = size(order.min(PAGEBLOCK_ORDER));
        let first = (at >> PAGEBLOCK_ORDER) as usize;
        let mut now = 0;
        if let Some(entry) = self.parts.pageblocks.get_mut(first) {
            change(entry, part, &mut self.books.full);
            now = *entry;
        }
        if order > PAGEBLOCK_ORDER
            && let Some(entry) = self.parts.pageblocks.get_mut(first.wrapping_add(1))
        {
            change(entry, part, &mut self.books.full);
        }
        now
    }

    #[inline]
    fn list(&self, id: usize) -> List {
        self.parts.lists.get(id).copied().unwrap_or(List::EMPTY)
    }

    /// The index of a frame.
    #[inline]
    pub(super) fn index(&self, at: u32) -> u16 {
        let frame = self.frame(at);
        match self.books.simple_index(frame) {
            Some(index) => index,
            None => self.parts.map.index(frame),
        }
    }

    /// The index of a colour.
    #[inline]
    pub(super) fn index_of(&self, color: Color) -> u16 {
        match self.books.same {
            true => color.0,
            false => self.parts.map.index_of(color),
        }
    }

    /// The colour of a frame whose index is known.
    #[inline]
    pub(super) fn color(&self, at: u32, index: u16) -> Color {
        self.books.color(self.parts.map, at, index)
    }

    /// Lists a free block: at the head if its pageblock is dense, else at the
    /// tail.
    #[inline]
    pub(super) fn insert(&mut self, at: u32, order: u8, kind: u8, index: u16) {
        let end = self.end_for(at, order, self.pageblock(at));
        self.insert_at(end, at, order, kind, index);
    }

    /// The end of its list that a block belongs to.
    #[inline]
    pub(super) fn end_for(&self, at: u32, order: u8, pageblock: u32) -> End {
        match (order < PAGEBLOCK_ORDER) & self.is_sparse(at, pageblock) {
            true => End::Tail,
            false => End::Head,
        }
    }

    /// Does the block lie in a pageblock with more free frames than most that
    /// are in use, other than the one that is being used up? Its other blocks had
    /// better stay free.
    #[inline]
    pub(super) fn is_sparse(&self, at: u32, pageblock: u32) -> bool {
        (free_of(pageblock) > self.books.sparse) & (at >> PAGEBLOCK_ORDER != self.books.current)
    }

    /// Lists a block at one end.
    #[inline(always)]
    pub(super) fn insert_at(&mut self, end: End, at: u32, order: u8, kind: u8, index: u16) {
        if self.enlist(end, at, order, kind, index) {
            self.mark(at, order, kind, index);
        }
    }

    /// Takes a block out of its list. `index` is that of any frame of the block;
    /// the block's state is left to the caller.
    #[inline(always)]
    pub(super) fn unlink(&mut self, at: u32, order: u8, kind: u8, index: u16) {
        if self.delist(at, order, kind, index) {
            self.unmark(at, order, kind, index);
        }
    }

    /// [`Work::insert_at`] but for the bitmaps: true if the block is the first on
    /// its list.
    #[inline(always)]
    pub(super) fn enlist(&mut self, end: End, at: u32, order: u8, kind: u8, index: u16) -> bool {
        self.set_state(at, table::free(order, kind));
        let id = Books::list(kind, self.books.level(order), index);
        let Some(list) = self.parts.lists.get_mut(id) else {
            return false;
        };
        let first = list.push(self.parts.links, at, end);
        self.books.count_block(order, true);
        first
    }

    /// [`Work::unlink`] but for the bitmaps: true if the block was the last on its
    /// list.
    #[inline(always)]
    pub(super) fn delist(&mut self, at: u32, order: u8, kind: u8, index: u16) -> bool {
        let id = Books::list(kind, self.books.level(order), index);
        let Some(list) = self.parts.lists.get_mut(id) else {
            return false;
        };
        let last = list.unlink(self.parts.links, at);
        self.books.count_block(order, false);
        last
    }

    /// Notes that a block is the first on its list.
    #[inline]
    pub(super) fn mark(&mut self, at: u32, order: u8, kind: u8, index: u16) {
        let parts = &mut self.parts;
        mark(self.books, parts.map, parts.words, kind, order, at, index);
    }

    /// Notes that a block was the last on its list.
    #[inline]
    pub(super) fn unmark(&mut self, at: u32, order: u8, kind: u8, index: u16) {
        let parts = &mut self.parts;
        unmark(self.books, parts.map, parts.words, kind, order, at, index);
    }

    #[inline]
    pub(super) fn head_of(&self, id: usize) -> Option<u32> {
        let list = self.list(id);
        (!list.is_empty()).then_some(list.head())
    }

    /// Does a list have a block in a dense pageblock at its head? Sparse heads
    /// are moved to the tail first, a few at most.
    #[inline]
    pub(super) fn has_dense(&mut self, id: usize) -> bool {
        let list = self.list(id);
        !self.is_sparse(list.head(), self.pageblock(list.head()))
            || list.head() != list.tail() && self.find_dense(id)
    }

    #[inline(never)]
    fn find_dense(&mut self, id: usize) -> bool {
        let mut list = self.list(id);
        let mut found = false;
        for _ in 1..TRIES {
            list.rotate(self.parts.links);
            let head = list.head();
            if !self.is_sparse(head, self.pageblock(head)) {
                found = true;
                break;
            }
        }
        if let Some(slot) = self.parts.lists.get_mut(id) {
            *slot = list;
        }
        found
    }

    /// Does a free block of this order and type hold the colour?
    #[inline]
    pub(super) fn has_color(&self, kind: u8, order: u8, color: Color) -> bool {
        let word = u32::from(color.0 >> 6);
        if word >= self.books.words() {
            return false;
        }
        let first = self.books.bitmap(kind, order);
        let at = match self.books.is_wide() {
            true => first.wrapping_add(word as usize).wrapping_add(1),
            false => first,
        };
        self.word(at) >> (color.0 & 63) & 1 == 1
    }

    #[inline]
    fn word(&self, at: usize) -> u64 {
        self.parts.words.get(at).copied().unwrap_or(0)
    }

    /// A colour that is in the set (`None`: any) and in a free block of this
    /// order and type: the first from `start` upwards, or else the lowest. One
    /// AND for up to 64 colours; above, at most 65 words are looked at.
    #[inline]
    pub(super) fn pick(
        &self,
        kind: u8,
        order: u8,
        set: Option<&ColorSet>,
        start: Color,
    ) -> Option<Color> {
        let first = self.books.bitmap(kind, order);
        if self.books.is_wide() {
            return self.pick_wide(first, set, start);
        }
        let allowed = set.map_or(u64::MAX, |s| s.word(0));
        let both = self.word(first) & allowed;
        if both == 0 {
            return None;
        }
        let onward = both & u64::MAX << (start.0 & 63);
        let chosen = if onward == 0 { both } else { onward };
        Some(Color(chosen.trailing_zeros() as u16))
    }

    #[inline(never)]
    fn pick_wide(&self, first: usize, set: Option<&ColorSet>, start: Color) -> Option<Color> {
        let summary = self.word(first) & set.map_or(u64::MAX, ColorSet::summary);
        let at = start.0 >> 6 & 63;
        let both = |word: u16| {
            let free = self.word(first.wrapping_add(usize::from(word)).wrapping_add(1));
            free & set.map_or(u64::MAX, |s| s.word(usize::from(word)))
        };
        let found = |word: u16, bits: u64| {
            (bits != 0).then(|| Color(word << 6 | bits.trailing_zeros() as u16))
        };
        let low = u64::MAX << (start.0 & 63);
        let above = summary & (u64::MAX << at) & !(1 << at);
        // Words beyond the last colour are never in the summary.
        let here = summary >> at & 1 == 1;
        here.then(|| found(at, both(at) & low))
            .flatten()
            .or_else(|| first_in(above, |w| found(w, both(w))))
            .or_else(|| first_in(summary & !above, |w| found(w, both(w))))
    }
}

/// The block that a frame lies in, if it lies in one.
pub(super) fn block_of(states: &[u8], at: u32) -> Option<(u32, State)> {
    (0..=MAX_ORDER).find_map(|order| {
        let head = at & !size(order).wrapping_sub(1);
        let state = table::state(table::byte(states, head));
        let (State::Free { order: o, .. } | State::Granted { order: o }) = state else {
            return None;
        };
        (at.wrapping_sub(head) < size(o)).then_some((head, state))
    })
}

/// Calls `f` with the set bits of a summary until it finds something.
#[inline]
fn first_in<T>(mut summary: u64, f: impl Fn(u16) -> Option<T>) -> Option<T> {
    while summary != 0 {
        if let Some(found) = f(summary.trailing_zeros() as u16) {
            return Some(found);
        }
        summary &= summary.wrapping_sub(1);
    }
    None
}
