//! A buddy allocator that knows colours.
//!
//! Source: the Rainbow buddy (thesis, sections 2.5, 4.5 and 5.5), with colours
//! that are linear functions of the frame number (`color_map`).
//!
//! Vocabulary: a *block* of order *o* is 2^o frames, aligned to its size; its
//! *buddy* differs in bit *o* of the frame number; a *pageblock* is 512 frames,
//! the unit that carries a *migrate type*; a colour is *allowed* if the asker
//! owns it, and *wished* if it would be best among those; a *hard* request
//! fails rather than leave the allowed colours.
//!
//! For each order and migrate type there are 2^(C - rank) lists, one per set of
//! colours that a block can hold, linked by frame number through a table that
//! the host lends; and a bitmap over colours that says which of them some free
//! block holds. So choosing a list is an AND and a count of trailing zeros for
//! up to 64 colours; above, a summary says which words to look at.
//!
//! # What is handed out
//!
//! 1. The wished colour, if it is allowed and any free block of the request's
//!    type holds it.
//! 2. Else any allowed colour, from the smallest block that holds one: frames of
//!    blocks that are broken already come first, and among the colours in them
//!    the next one upwards from the last that was handed out, because adjacent
//!    colours share blocks. A larger block is split; the half with the colour is
//!    split on, the other half is listed.
//! 3. Else a block of another migrate type: the largest, so that types mix in
//!    few pageblocks.
//! 4. Else, for a request that only hints, any colour: a counted fallback.
//!
//! Free blocks merge with their buddies as far as they can. Each list is kept
//! loosely ordered by how many frames of the pageblock are free: a block goes to
//! the head if its pageblock is fuller than the head's, else to the tail, and
//! the better of the two ends is handed out. So full pageblocks fill up, sparse
//! ones drain, and whole blocks come back after churn.
//!
//! A request for a block of order *k* > 0 with allowed colours is served from
//! blocks all of whose colours are allowed.
//!
//! # Deviations from the source
//!
//! * Rainbow searches the lists of a colour set one by one; here a bitmap does.
//! * It splits one level and leaves the rest to recursion (its `SPLIT_BUDDY`
//!   returns a block twice too large); here a loop splits down to the order.
//! * It hands out colours round robin; who wants that passes the next colour as
//!   the wish. Without a wish, adjacency decides.
//! * Blocks above the order of a page ignore colours there; here they obey.
//! * Lists have two ends and an order, for the sake of whole blocks.
//!
//! # Cost
//!
//! No call allocates, recurses or waits. `alloc` and `free` take at most 11
//! splits or merges, each with one list operation and, if a list becomes empty
//! or ceases to be, 2^rank / 64 words of bitmap (at most 64). A request with
//! allowed colours above order 0 first spends up to 10 passes over the words of
//! the set. Taking from another migrate type may relist one pageblock: at most
//! 512 steps. `add_range` takes a step per block plus up to 1022 at its ends;
//! `validate` walks everything.
//!
//! Memory: 9 B per frame, 4 B per pageblock of 512, and list heads and bitmaps
//! that depend on the colours alone ([`Sizes`]).
//!
//! # Concurrency
//!
//! [`Buddy`] is *exclusive*: the host locks around each call. [`CoreLists`] is
//! *per core*: it has its own memory, and meets the buddy only where both are
//! passed to one call, which is where the host holds the lock.

mod bitmap;
mod core_lists;
mod give;
mod migrate;
mod range;
mod spare;
mod store;
mod table;
mod take;
mod validate;
mod work;

use core::{fmt, ops::Range};

use piebald_units::{Color, ColorSet, CoreId, Order, Pfn};

use crate::{
    color_map::ColorMap,
    contract::{AllocError, Broken, FrameAllocator, FrameCounters, FrameRequest, FreeError, Grant},
};

pub use core_lists::{CoreCounters, CoreError, CoreLists, CoreMemory, CoreSlices, Ends, Put, Slot};
pub use migrate::MigrateType;
pub use range::RangeError;
use spare::Spares;
pub use store::{List, Parts, PartsMut, Sizes, Slices, Store};
use work::{Work, size};

/// Largest order, inclusive: blocks of 4 MiB.
const MAX_ORDER: u8 = Order::MAX.0;
/// Number of orders.
const NR_ORDERS: usize = MAX_ORDER as usize + 1;
/// Number of migrate types.
const NR_KINDS: usize = MigrateType::ALL.len();
/// log2 of the frames of a pageblock: 2 MiB.
const PAGEBLOCK_ORDER: u8 = 9;
/// Number of places where searches go on. Tasks with different colours would
/// otherwise send each other to the same few.
const NR_CURSORS: usize = 8;
/// Largest table: 2^40 bytes of memory, holes included.
const MAX_FRAMES: u64 = 1 << 28;

/// Why an allocator could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewError {
    /// The number of frames is 0 or above 2^28.
    Frames(u64),
    /// The first frame is no multiple of 1024.
    Origin(u64),
    /// A lent slice is too short.
    Short {
        /// The field of the store.
        field: &'static str,
        /// Its length.
        len: usize,
        /// The length that is needed.
        needed: usize,
    },
}

impl fmt::Display for NewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frames(n) => write!(f, "frames = {n}; allowed: 1 to {MAX_FRAMES}"),
            Self::Origin(n) => write!(f, "origin = pfn {n:#x}; allowed: multiples of 0x400"),
            Self::Short { field, len, needed } => {
                write!(f, "{field} has length {len}; allowed: {needed} or more")
            }
        }
    }
}

impl core::error::Error for NewError {}

/// What the allocator did since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BuddyCounters {
    /// Blocks granted; frames for per-core lists count one by one.
    pub grants: u64,
    /// Blocks taken back.
    pub frees: u64,
    /// Grants outside the allowed colours.
    pub fallbacks: u64,
    /// Requests that failed.
    pub failures: u64,
    /// Wishes for a colour that no free block of the type held.
    pub missed_wishes: u64,
    /// Blocks split in two.
    pub splits: u64,
    /// Pairs of buddies merged.
    pub merges: u64,
    /// Blocks taken from another migrate type.
    pub steals: u64,
    /// Pageblocks that changed their migrate type.
    pub claims: u64,
}

impl BuddyCounters {
    const ZERO: Self = Self {
        grants: 0,
        frees: 0,
        fallbacks: 0,
        failures: 0,
        missed_wishes: 0,
        splits: 0,
        merges: 0,
        steals: 0,
        claims: 0,
    };
}

/// What is known of the blocks of an order.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// Colours in a block of which all lie in one run of a word: those of the
    /// lowest; 0 if they do not.
    pattern: u64,
    /// First list of the order, within a migrate type.
    first: u32,
    /// How the index changes with this bit of the frame number.
    step: u16,
    /// The colour bits by which another block's pattern is shifted.
    place: u16,
    rank: u8,
}

impl Level {
    const ZERO: Self = Self {
        pattern: 0,
        first: 0,
        step: 0,
        place: 0,
        rank: 0,
    };
}

/// What the allocator keeps beside the lent memory.
#[derive(Clone, Debug)]
struct Books {
    /// Frame number of table index 0, a multiple of 1024.
    origin: u64,
    frames: u32,
    /// Length of one bitmap in words; more than 1: the first is a summary.
    stride: u32,
    /// Lists of one migrate type.
    lists: u32,
    /// Number of colours.
    colors: u32,
    /// Colour and index are the same number.
    same: bool,
    /// The index as a rotation and a mask, if the map is that simple.
    shift: Option<(u8, u16)>,
    levels: [Level; NR_ORDERS],
    /// Orders that have a free block, as bits, by migrate type.
    orders: [u16; NR_KINDS],
    /// What is left of the block that is being used up.
    spares: Spares,
    /// Where the search for a colour starts, for different sets of colours.
    cursors: [Color; NR_CURSORS],
    /// A pageblock with more free frames is sparse.
    sparse: u32,
    /// Pageblocks that have frames but no free ones.
    full: u32,
    /// The pageblock that the last grant came from.
    current: u32,
    /// Free frames.
    free: u64,
    /// Frames that the allocator has.
    owned: u64,
    /// Free blocks of each order that are on lists.
    blocks: [u32; NR_ORDERS],
    counters: BuddyCounters,
}

/// A buddy allocator over lent memory. *Exclusive*: the host locks.
pub struct Buddy<S> {
    store: S,
    books: Books,
}

impl<S: Store> Buddy<S> {
    /// An allocator without frames: [`Buddy::add_range`] gives it some. `origin`
    /// is the frame number that table index 0 stands for.
    ///
    /// # Errors
    /// Names the slice that is shorter than [`Sizes`] says, or the origin if it
    /// is no multiple of 1024.
    pub fn new(store: S, frames: u64, origin: Pfn) -> Result<Self, NewError> {
        let mut buddy = Self::over(store);
        buddy.set_up(frames, origin)?;
        Ok(buddy)
    }

    /// An allocator that has no table yet and knows no frame. With
    /// [`Buddy::set_up`], this makes one in place, where a stack is too small to
    /// return it by value (about 600 B and the store).
    pub const fn over(store: S) -> Self {
        Self {
            store,
            books: Books::EMPTY,
        }
    }

    /// Gives the allocator its table, and forgets whatever it had.
    ///
    /// # Errors
    /// As for [`Buddy::new`]; the allocator then has no table.
    pub fn set_up(&mut self, frames: u64, origin: Pfn) -> Result<(), NewError> {
        self.books = Books::EMPTY;
        let parts = self.store.parts_mut();
        let sizes = Sizes::of(parts.map, frames)?;
        if !origin.0.is_multiple_of(1 << MAX_ORDER) || origin.0.checked_add(frames).is_none() {
            return Err(NewError::Origin(origin.0));
        }
        let lens = [
            ("states", parts.states.len(), sizes.frames),
            ("links", parts.links.len(), sizes.frames),
            ("pageblocks", parts.pageblocks.len(), sizes.pageblocks),
            ("lists", parts.lists.len(), sizes.lists),
            ("words", parts.words.len(), sizes.words),
        ];
        for (field, len, needed) in lens {
            if len < needed {
                return Err(NewError::Short { field, len, needed });
            }
        }
        parts.lists.fill(List::EMPTY);
        parts.words.fill(0);
        self.books.set_up(parts.map, frames as u32, origin);
        Ok(())
    }

    #[inline]
    fn work(&mut self) -> Work<'_> {
        Work {
            parts: self.store.parts_mut(),
            books: &mut self.books,
        }
    }

    /// Grants a block or says why not.
    ///
    /// # Errors
    /// See [`AllocError`]; the allocator is unchanged but for its counters.
    #[inline]
    pub fn alloc(&mut self, request: &FrameRequest<'_>) -> Result<Grant, AllocError> {
        match self.work().quick(request) {
            Some(grant) => Ok(grant),
            None => self.work().alloc(request),
        }
    }

    /// Takes a block back and merges it with its buddies.
    ///
    /// # Errors
    /// See [`FreeError`]; the allocator is unchanged.
    #[inline]
    pub fn free(&mut self, frame: Pfn, order: Order) -> Result<(), FreeError> {
        self.work().free(frame, order)
    }

    /// Adds free memory, in the largest blocks that fit. It merges with what is
    /// there.
    ///
    /// # Errors
    /// See [`RangeError`]; the allocator is unchanged.
    pub fn add_range(&mut self, frames: Range<Pfn>) -> Result<(), RangeError> {
        self.work().add_range(frames)
    }

    /// Takes a free block out of the allocator for good, or until it is added
    /// again; from the smallest free block that holds it, of any colour.
    pub fn remove_block(&mut self, order: Order) -> Option<Pfn> {
        self.work().remove_block(order)
    }

    /// Lets go of a granted block: it is foreign from now on. With
    /// [`Buddy::alloc`], this takes a block of chosen colours out.
    ///
    /// # Errors
    /// As for [`Buddy::free`].
    pub fn detach(&mut self, frame: Pfn, order: Order) -> Result<(), FreeError> {
        self.work().detach(frame, order)
    }

    /// Recounts everything from scratch and compares: every block, list, link,
    /// bitmap and counter.
    ///
    /// # Errors
    /// The first rule that does not hold.
    pub fn validate(&self) -> Result<(), Broken> {
        validate::validate(&self.store.parts(), &self.books)
    }

    /// The colours.
    pub fn map(&self) -> &ColorMap {
        self.store.parts().map
    }

    /// The frame number that table index 0 stands for.
    pub fn origin(&self) -> Pfn {
        Pfn(self.books.origin)
    }

    /// Frames that are free now.
    pub fn free_frames(&self) -> u64 {
        self.books.free
    }

    /// Frames that the allocator has, free or granted.
    pub fn total_frames(&self) -> u64 {
        self.books.owned
    }

    /// Free blocks of each order.
    pub fn free_blocks(&self) -> [u32; 11] {
        self.books.free_blocks()
    }

    /// What the allocator did.
    pub fn counters(&self) -> BuddyCounters {
        self.books.counters
    }

    /// The migrate type of the pageblock that a frame lies in; fresh memory is
    /// movable.
    pub fn pageblock_type(&self, frame: Pfn) -> MigrateType {
        let pageblocks = self.store.parts().pageblocks;
        let entry = self.books.at(frame).and_then(|at| {
            let i = at >> PAGEBLOCK_ORDER;
            pageblocks.get(i as usize)
        });
        work::kind_of(entry.copied().unwrap_or(0))
    }
}

impl<S: Store> FrameAllocator for Buddy<S> {
    fn alloc(&mut self, request: &FrameRequest<'_>) -> Result<Grant, AllocError> {
        match self.work().quick(request) {
            Some(grant) => Ok(grant),
            None => self.work().alloc(request),
        }
    }

    fn free(&mut self, frame: Pfn, order: Order, _: CoreId) -> Result<(), FreeError> {
        self.work().free(frame, order)
    }

    fn free_frames(&self) -> u64 {
        self.books.free
    }

    fn total_frames(&self) -> u64 {
        self.books.owned
    }

    fn counters(&self) -> FrameCounters {
        let c = &self.books.counters;
        FrameCounters {
            grants: c.grants,
            frees: c.frees,
            fallbacks: c.fallbacks,
            failures: c.failures,
        }
    }

    fn validate(&self) -> Result<(), Broken> {
        Buddy::validate(self)
    }
}

impl Books {
    const EMPTY: Self = Self {
        origin: 0,
        frames: 0,
        stride: 1,
        lists: 0,
        colors: 1,
        same: true,
        shift: None,
        levels: [Level::ZERO; NR_ORDERS],
        orders: [0; NR_KINDS],
        spares: Spares::EMPTY,
        cursors: [Color(0); NR_CURSORS],
        sparse: size(PAGEBLOCK_ORDER),
        full: 0,
        current: u32::MAX,
        free: 0,
        owned: 0,
        blocks: [0; NR_ORDERS],
        counters: BuddyCounters::ZERO,
    };

    /// What follows from the colours and the table.
    fn set_up(&mut self, map: &ColorMap, frames: u32, origin: Pfn) {
        self.origin = origin.0;
        self.frames = frames;
        self.stride = store::stride(map) as u32;
        self.colors = map.colors();
        self.same = map.is_same();
        self.shift = map.index_shift();
        for (level, order) in self.levels.iter_mut().zip(0u8..) {
            let (pattern, place) = map.block_run(Order(order)).unwrap_or((0, 0));
            *level = Level {
                pattern,
                first: self.lists,
                step: map.index(Pfn(1 << order)),
                place,
                rank: map.rank(Order(order)) as u8,
            };
            self.lists = self.lists.wrapping_add(map.lists(Order(order)));
        }
    }

    /// Free blocks of each order.
    fn free_blocks(&self) -> [u32; NR_ORDERS] {
        let mut blocks = self.blocks;
        for (n, order) in blocks.iter_mut().zip(0u8..) {
            let spare = self.spares.orders_from(0) >> order & 1;
            *n = n.wrapping_add(u32::from(spare));
        }
        blocks
    }

    /// Finds what sparse means now: more free frames than the mean of the
    /// pageblocks that have some but are not free as a whole.
    fn measure(&mut self) {
        let [.., nines, tens] = self.blocks;
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
    fn frame(&self, at: u32) -> Pfn {
        Pfn(self.origin.wrapping_add(u64::from(at)))
    }

    /// The table index of a frame number.
    #[inline]
    fn at(&self, frame: Pfn) -> Option<u32> {
        let at = frame.0.wrapping_sub(self.origin);
        (at < u64::from(self.frames)).then_some(at as u32)
    }

    /// Where a search within a set goes on.
    fn cursor_of(&self, set: Option<&ColorSet>) -> Color {
        let cursor = self.cursors.get(cursor_slot(set));
        cursor.copied().unwrap_or_default()
    }

    fn set_cursor(&mut self, set: Option<&ColorSet>, color: Color) {
        if let Some(cursor) = self.cursors.get_mut(cursor_slot(set)) {
            *cursor = color;
        }
    }

    /// The colour of a frame whose index is known.
    #[inline]
    fn color(&self, map: &ColorMap, at: u32, index: u16) -> Color {
        match self.same {
            true => Color(index),
            false => map.color(self.frame(at)),
        }
    }

    #[inline]
    fn level(&self, order: u8) -> Level {
        self.levels
            .get(usize::from(order))
            .copied()
            .unwrap_or(Level::ZERO)
    }

    #[inline]
    fn rank(&self, order: u8) -> u8 {
        self.level(order).rank
    }

    /// The list of the blocks of a level that hold an index.
    #[inline]
    fn list(&self, kind: u8, level: &Level, index: u16) -> usize {
        let within = u32::from(index >> (level.rank & 15));
        let kind = self.lists.wrapping_mul(u32::from(kind));
        kind.wrapping_add(level.first).wrapping_add(within) as usize
    }

    /// The first word of a bitmap.
    #[inline]
    fn bitmap(&self, kind: u8, order: u8) -> usize {
        let row = u32::from(kind)
            .wrapping_mul(NR_ORDERS as u32)
            .wrapping_add(u32::from(order));
        row.wrapping_mul(self.stride) as usize
    }

    /// More than 64 colours: bitmaps have a summary.
    #[inline]
    const fn is_wide(&self) -> bool {
        self.stride > 1
    }

    /// Words of a bitmap without its summary.
    #[inline]
    const fn words(&self) -> u32 {
        match self.stride {
            1 => 1,
            n => n.wrapping_sub(1),
        }
    }

    /// Orders from `order` on that have a free block, as bits.
    #[inline]
    fn orders_from(&self, kind: u8, order: u8) -> u16 {
        let orders = self.orders.get(usize::from(kind)).copied().unwrap_or(0);
        orders & u16::MAX << (order & 15)
    }

    #[inline]
    fn mark_order(&mut self, kind: u8, order: u8) {
        if let Some(orders) = self.orders.get_mut(usize::from(kind)) {
            *orders |= 1 << (order & 15);
        }
    }

    #[inline]
    fn unmark_order(&mut self, kind: u8, order: u8) {
        if let Some(orders) = self.orders.get_mut(usize::from(kind)) {
            *orders &= !(1 << (order & 15));
        }
    }

    #[inline]
    fn count_block(&mut self, order: u8, more: bool) {
        if let Some(n) = self.blocks.get_mut(usize::from(order)) {
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
