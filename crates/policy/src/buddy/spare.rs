//! What is left of the block that is being used up.
//!
//! A split leaves one block of each smaller order, and most of them are wanted
//! next. So one free movable block per order below a pageblock is kept here
//! instead of on a list; it goes to its list when a newer one takes its place. A
//! single frame of a dense pageblock that comes back is kept here too, if there
//! is room.
//! To everyone else it is a free block like any other: it merges, it counts, and
//! requests for its colours find it.

use piebald_units::{Color, ColorSet, Order};

use super::{
    PAGEBLOCK_ORDER,
    migrate::MigrateType,
    store::NIL,
    table::{self, End},
    work::Work,
};

/// Length of arrays that a masked order indexes.
const NR_SLOTS: usize = 16;

/// A block that is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spare {
    pub(super) at: u32,
    /// The index of its first frame.
    pub(super) index: u16,
}

impl Spare {
    const NONE: Self = Self { at: NIL, index: 0 };

    #[inline]
    pub(super) const fn is_none(self) -> bool {
        self.at == NIL
    }
}

/// One block per order, or none.
#[derive(Clone, Debug)]
pub(super) struct Spares {
    /// Orders that have one, as bits.
    mask: u16,
    /// By order; those of a pageblock and above have none. The length is a power
    /// of two, so that a masked order needs no check.
    slots: [Spare; NR_SLOTS],
}

/// A spare block that serves a request.
#[derive(Clone, Copy)]
pub(super) struct Fit {
    pub(super) order: u8,
    pub(super) at: u32,
    /// The index to keep when it is split, and the colour.
    pub(super) want: u16,
    pub(super) color: Option<Color>,
}

impl Spares {
    pub(super) const EMPTY: Self = Self {
        mask: 0,
        slots: [Spare::NONE; NR_SLOTS],
    };

    /// Orders from `order` on that have one, as bits.
    #[inline]
    pub(super) const fn orders_from(&self, order: u8) -> u16 {
        self.mask & u16::MAX << (order & 15)
    }

    #[inline]
    pub(super) fn get(&self, order: u8) -> Spare {
        let spare = self.slots.get(usize::from(order & 15));
        spare.copied().unwrap_or(Spare::NONE)
    }

    /// The smallest block, with its order.
    #[inline]
    pub(super) fn smallest(&self) -> Option<(u8, Spare)> {
        if self.mask == 0 {
            return None;
        }
        let order = self.mask.trailing_zeros() as u8;
        Some((order, self.get(order)))
    }

    /// Removes the block that [`Spares::smallest`] named, and keeps its parts: one
    /// of each smaller order, which [`Spares::fill`] puts there.
    #[inline]
    pub(super) fn break_smallest(&mut self, order: u8) {
        if let Some(slot) = self.slots.get_mut(usize::from(order & 15)) {
            slot.at = NIL;
        }
        // The lowest bit goes, and all below it come.
        self.mask = self.mask.wrapping_sub(1);
    }

    #[inline]
    pub(super) fn set(&mut self, order: u8, spare: Spare) {
        if let Some(slot) = self.slots.get_mut(usize::from(order & 15)) {
            *slot = spare;
        }
    }

    /// Keeps a block where there is none of its order.
    #[inline]
    pub(super) fn fill(&mut self, order: u8, at: u32, index: u16) {
        self.set(order, Spare { at, index });
        self.mask |= 1 << (order & 15);
    }

    /// Removes a block, if it is kept here.
    #[inline]
    pub(super) fn remove(&mut self, order: u8, at: u32) -> bool {
        let kept = self.get(order).at == at;
        if kept {
            self.set(order, Spare::NONE);
            self.mask &= !(1 << (order & 15));
        }
        kept
    }

    /// Keeps a block of an order below a pageblock's, and answers the one whose
    /// place it takes.
    #[inline]
    fn keep(&mut self, order: u8, spare: Spare) -> Spare {
        let old = self.get(order);
        self.set(order, spare);
        self.mask |= 1 << (order & 15);
        old
    }
}

impl Work<'_> {
    /// Keeps or lists what is left of a split block.
    #[inline(always)]
    pub(super) fn put_by(&mut self, at: u32, order: u8, kind: MigrateType, index: u16) {
        if order >= PAGEBLOCK_ORDER || kind != MigrateType::Movable {
            return self.insert_at(End::Head, at, order, kind as u8, index);
        }
        self.set_state(at, table::free(order, kind as u8));
        let old = self.books.spares.keep(order, Spare { at, index });
        if old.at != NIL {
            self.insert_at(End::Head, old.at, order, kind as u8, old.index);
        }
    }

    /// The smallest spare block that a request for movable memory may be served
    /// from: one with the wished colour, or without a wish with any of the set.
    #[inline(always)]
    pub(super) fn spare_for(
        &self,
        order: u8,
        set: Option<&ColorSet>,
        wish: Option<Color>,
    ) -> Option<Fit> {
        let mut orders = self.books.spares.orders_from(order);
        while orders != 0 {
            let from = orders.trailing_zeros() as u8;
            orders &= orders.wrapping_sub(1);
            let spare = self.books.spares.get(from);
            let fit = |want, color| {
                Some(Fit {
                    order: from,
                    at: spare.at,
                    want,
                    color,
                })
            };
            match (wish, set) {
                (None, None) => return fit(spare.index, None),
                (Some(color), _) => {
                    let want = self.index_of(color);
                    if (spare.index ^ want) >> (self.books.rank(from) & 15) == 0 {
                        return fit(want, Some(color));
                    }
                }
                (None, Some(set)) => {
                    if let Some(color) = self.color_within(spare, from, set) {
                        return fit(self.index_of(color), Some(color));
                    }
                }
            }
        }
        None
    }

    /// A colour of a block that is in a set.
    fn color_within(&self, spare: Spare, order: u8, set: &ColorSet) -> Option<Color> {
        if self.books.level(order).pattern != 0 {
            return self.color_in_word(spare, order, set);
        }
        let color = self.color(spare.at, spare.index);
        let mut found = None;
        self.parts
            .map
            .visit_block(color, Order(order), |word, mask| {
                found = found.or_else(|| in_word(set, word as u16, mask));
            });
        found
    }

    /// The same for a block whose colours lie in one run of a word; nothing for
    /// others.
    #[inline]
    pub(super) fn color_in_word(&self, spare: Spare, order: u8, set: &ColorSet) -> Option<Color> {
        let level = self.books.level(order);
        let color = self.color(spare.at, spare.index);
        in_word(
            set,
            color.0 >> 6,
            level.pattern << (color.0 & level.place & 63),
        )
    }

    /// Lists all spare blocks.
    #[inline(never)]
    pub(super) fn list_spares(&mut self) {
        for order in 0..PAGEBLOCK_ORDER {
            let spare = self.books.spares.get(order);
            if self.books.spares.remove(order, spare.at) && spare.at != NIL {
                self.insert_at(
                    End::Head,
                    spare.at,
                    order,
                    MigrateType::Movable as u8,
                    spare.index,
                );
            }
        }
    }
}

/// The lowest colour of a set under a mask of one of its words.
#[inline]
fn in_word(set: &ColorSet, word: u16, mask: u64) -> Option<Color> {
    let both = set.word(usize::from(word)) & mask;
    (both != 0).then(|| Color(word << 6 | both.trailing_zeros() as u16))
}
