//! What the allocator keeps beside the lent memory.

use piebald_units::{Color, ColorSet, Order, Pfn};

use super::{
    BuddyCounters, MAX_ORDER, NR_KINDS, NR_ORDERS, PAGEBLOCK_ORDER, spare::Spares, store,
    work::size,
};
use crate::color_map::ColorMap;

/// Number of places where searches go on. Tasks with different colours would
/// otherwise send each other to the same few.
const NR_CURSORS: usize = 8;
/// Length of arrays by order, and by migrate type. Powers of two, so that a
/// masked index needs no check.
const ORDERS: usize = NR_ORDERS.next_power_of_two();
const KINDS: usize = NR_KINDS.next_power_of_two();

/// What is known of the blocks of an order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    /// Colours in a block of which all lie in one run of a word: those of the
    /// lowest; 0 if they do not.
    pub(super) pattern: u64,
    /// First list of the order, by migrate type.
    pub(super) first: [u32; KINDS],
    /// How the index changes with this bit of the frame number.
    pub(super) step: u16,
    /// The colour bits by which another block's pattern is shifted.
    pub(super) place: u16,
    pub(super) rank: u8,
}

impl Level {
    pub(super) const ZERO: Self = Self {
        pattern: 0,
        first: [0; KINDS],
        step: 0,
        place: 0,
        rank: 0,
    };
}

/// What the allocator keeps beside the lent memory.
#[derive(Clone, Debug)]
pub(super) struct Books {
    /// Frame number of table index 0, a multiple of 1024.
    pub(super) origin: u64,
    pub(super) frames: u32,
    /// Length of one bitmap in words; more than 1: the first is a summary.
    pub(super) stride: u32,
    /// Number of colours.
    pub(super) colors: u32,
    /// Colour and index are the same number.
    pub(super) same: bool,
    /// The index as a rotation and a mask, if the map is that simple.
    pub(super) shift: Option<(u8, u16)>,
    pub(super) levels: [Level; ORDERS],
    /// Orders that have a free block, as bits, by migrate type.
    pub(super) orders: [u16; KINDS],
    /// What is left of the block that is being used up.
    pub(super) spares: Spares,
    /// Where the search for a colour starts, for different sets of colours.
    pub(super) cursors: [Color; NR_CURSORS],
    /// A pageblock with more free frames is sparse.
    pub(super) sparse: u32,
    /// Pageblocks that have frames but no free ones.
    pub(super) full: u32,
    /// The pageblock that the last grant came from.
    pub(super) current: u32,
    /// Free frames.
    pub(super) free: u64,
    /// Frames that the allocator has.
    pub(super) owned: u64,
    /// Free blocks of each order that are on lists.
    pub(super) blocks: [u32; ORDERS],
    pub(super) counters: BuddyCounters,
}

impl Books {
    pub(super) const EMPTY: Self = Self {
        origin: 0,
        frames: 0,
        stride: 1,
        colors: 1,
        same: true,
        shift: None,
        levels: [Level::ZERO; ORDERS],
        orders: [0; KINDS],
        spares: Spares::EMPTY,
        cursors: [Color(0); NR_CURSORS],
        sparse: size(PAGEBLOCK_ORDER),
        full: 0,
        current: u32::MAX,
        free: 0,
        owned: 0,
        blocks: [0; ORDERS],
        counters: BuddyCounters::ZERO,
    };

    /// What follows from the colours and the table.
    pub(super) fn set_up(&mut self, map: &ColorMap, frames: u32, origin: Pfn) {
        self.origin = origin.0;
        self.frames = frames;
        self.stride = store::stride(map) as u32;
        self.colors = map.colors();
        self.same = map.is_same();
        self.shift = map.index_shift();
        let mut next = 0u32;
        for (level, order) in self.levels.iter_mut().zip(0..=MAX_ORDER) {
            let (pattern, place) = map.block_run(Order(order)).unwrap_or((0, 0));
            *level = Level {
                pattern,
                first: [next; KINDS],
                step: map.index(Pfn(1 << order)),
                place,
                rank: map.rank(Order(order)) as u8,
            };
            next = next.wrapping_add(map.lists(Order(order)));
        }
        for level in &mut self.levels {
            for (first, kind) in level.first.iter_mut().zip(0u32..) {
                *first = first.wrapping_add(next.wrapping_mul(kind));
            }
        }
    }

    /// Free blocks of each order.
    pub(super) fn free_blocks(&self) -> [u32; NR_ORDERS] {
        let mut blocks = [0; NR_ORDERS];
        for ((n, listed), order) in blocks.iter_mut().zip(self.blocks).zip(0u8..) {
            let spare = self.spares.orders_from(0) >> order & 1;
            *n = listed.wrapping_add(u32::from(spare));
        }
        blocks
    }

    /// Will the next grant be followed by a measurement? Every 64th is.
    #[inline]
    pub(super) const fn measures_next(&self) -> bool {
        self.counters.grants & 63 == 63
    }

    /// Finds what sparse means now: more free frames than the mean of the
    /// pageblocks that have some but are not free as a whole.
    #[inline(never)]
    pub(super) fn measure(&mut self) {
        let [.., nines, tens, _, _, _, _, _] = self.blocks;
        let whole = nines.wrapping_add(tens.wrapping_mul(2));
        let some = (self.owned >> PAGEBLOCK_ORDER) as u32;
        let some = some.saturating_sub(whole).saturating_sub(self.full);
        let free = self
            .free
            .saturating_sub(u64::from(whole) << PAGEBLOCK_ORDER);
        self.sparse = (free as u32).checked_div(some).unwrap_or(0);
    }

    /// The frame number of a table index.
    #[inline]
    pub(super) fn frame(&self, at: u32) -> Pfn {
        Pfn(self.origin.wrapping_add(u64::from(at)))
    }

    /// The table index of a frame number.
    #[inline]
    pub(super) fn at(&self, frame: Pfn) -> Option<u32> {
        let at = frame.0.wrapping_sub(self.origin);
        (at < u64::from(self.frames)).then_some(at as u32)
    }

    /// The index of a frame, if the map is simple.
    #[inline]
    pub(super) fn simple_index(&self, frame: Pfn) -> Option<u16> {
        let (rotate, mask) = self.shift?;
        Some(frame.0.rotate_right(u32::from(rotate)) as u16 & mask)
    }

    /// Where a search within a set goes on.
    pub(super) fn cursor_of(&self, set: Option<&ColorSet>) -> Color {
        let cursor = self.cursors.get(cursor_slot(set));
        cursor.copied().unwrap_or_default()
    }

    pub(super) fn set_cursor(&mut self, set: Option<&ColorSet>, color: Color) {
        if let Some(cursor) = self.cursors.get_mut(cursor_slot(set)) {
            *cursor = color;
        }
    }

    /// The colour of a frame whose index is known.
    #[inline]
    pub(super) fn color(&self, map: &ColorMap, at: u32, index: u16) -> Color {
        match self.same {
            true => Color(index),
            false => map.color(self.frame(at)),
        }
    }

    #[inline]
    pub(super) fn level(&self, order: u8) -> &Level {
        const NONE: Level = Level::ZERO;
        self.levels.get(usize::from(order & 15)).unwrap_or(&NONE)
    }

    #[inline]
    pub(super) fn rank(&self, order: u8) -> u8 {
        self.level(order).rank
    }

    /// The list of the blocks of a level that hold an index.
    #[inline]
    pub(super) fn list(kind: u8, level: &Level, index: u16) -> usize {
        let within = u32::from(index).wrapping_shr(u32::from(level.rank));
        let first = level.first.get(usize::from(kind & 3)).copied().unwrap_or(0);
        first.wrapping_add(within) as usize
    }

    /// The first word of a bitmap.
    #[inline]
    pub(super) fn bitmap(&self, kind: u8, order: u8) -> usize {
        let row = u32::from(kind)
            .wrapping_mul(NR_ORDERS as u32)
            .wrapping_add(u32::from(order));
        row.wrapping_mul(self.stride) as usize
    }

    /// More than 64 colours: bitmaps have a summary.
    #[inline]
    pub(super) const fn is_wide(&self) -> bool {
        self.stride > 1
    }

    /// Words of a bitmap without its summary.
    #[inline]
    pub(super) const fn words(&self) -> u32 {
        match self.stride {
            1 => 1,
            n => n.wrapping_sub(1),
        }
    }

    /// Orders from `order` on that have a free block, as bits.
    #[inline]
    pub(super) fn orders_from(&self, kind: u8, order: u8) -> u16 {
        let orders = self.orders.get(usize::from(kind & 3)).copied().unwrap_or(0);
        orders & u16::MAX << (order & 15)
    }

    #[inline]
    pub(super) fn mark_order(&mut self, kind: u8, order: u8) {
        if let Some(orders) = self.orders.get_mut(usize::from(kind & 3)) {
            *orders |= 1 << (order & 15);
        }
    }

    #[inline]
    pub(super) fn unmark_order(&mut self, kind: u8, order: u8) {
        if let Some(orders) = self.orders.get_mut(usize::from(kind & 3)) {
            *orders &= !(1 << (order & 15));
        }
    }

    #[inline]
    pub(super) fn count_block(&mut self, order: u8, more: bool) {
        if let Some(n) = self.blocks.get_mut(usize::from(order & 15)) {
            *n = match more {
                true => n.wrapping_add(1),
                false => n.wrapping_sub(1),
            };
        }
    }
}

/// Which cursor a set uses: sets that begin with different colours mostly use
/// different ones.
fn cursor_slot(set: Option<&ColorSet>) -> usize {
    let lowest = set.map_or(0, |s| {
        let word = s.summary().trailing_zeros();
        word << 6 | s.word(word as usize).trailing_zeros()
    });
    // Multiplicative hashing: the golden ratio spreads neighbours.
    (lowest.wrapping_mul(0x9e37_79b9) >> 29) as usize
}
