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
//! 2. Else any allowed colour, from the smallest block that holds one, so that
//!    what is left of broken blocks is used first; among the colours in them the
//!    next one upwards from the last that was handed out for such a set, because
//!    adjacent colours share blocks. A larger block is split; the half with the
//!    colour is split on, and the other half is kept for the next requests.
//! 3. Else a block of another migrate type: the largest, so that types mix in
//!    few pageblocks.
//! 4. Else, for a request that only hints, any colour: a counted fallback.
//!
//! Free blocks merge with their buddies as far as they can.
//!
//! # Keeping blocks whole
//!
//! A pageblock is *sparse* if it has more free frames than the mean of those
//! that have some but are not free as a whole; the others are *dense*. A block
//! that comes back is listed at the head if its pageblock is dense and at the
//! tail if it is sparse, and requests are served from the smallest order that
//! has a dense block at its head. Sparse heads are moved to the tail on the way,
//! a few at most, and a second colour is asked if the first had none. So dense
//! pageblocks fill up, sparse ones drain, and whole blocks come back after
//! churn; a list that is used last in, first out gets none back.
//!
//! A request for a block of order *k* > 0 with allowed colours is served from
//! blocks all of whose colours are allowed.
//!
//! # Deviations from the source
//!
//! * Rainbow searches the lists of a colour set one by one; here a bitmap does.
//! * It splits one level and leaves the rest to recursion (its `SPLIT_BUDDY`
//!   returns a block twice too large); here a loop splits down to the order.
//! * What is left of the block in use is kept off the lists, one block per order
//!   (`spare`).
//! * It hands out colours round robin; who wants that passes the next colour as
//!   the wish. Without a wish, adjacency decides.
//! * Blocks above the order of a page ignore colours there; here they obey.
//! * Lists have two ends and an order, for the sake of whole blocks.
//!
//! # Cost
//!
//! No call allocates, recurses or waits. `alloc` and `free` take at most 10
//! splits or merges, each with one list operation and, if a list becomes empty
//! or ceases to be, up to 64 words of bitmap. A search looks at 11 orders, twice,
//! with up to 8 heads and for more than 64 colours up to 65 words each. A request
//! with allowed colours for an order whose blocks hold several first spends up to
//! 10 passes over the words of the set. Taking from another migrate type may
//! relist one pageblock: at most 512 steps. `add_range` takes a step per block
//! and per pageblock, and up to 1022 at its ends; `remove_block` lists the up to
//! 9 blocks that are kept aside first; `validate` walks everything.
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
mod books;
mod core_lists;
mod give;
mod migrate;
mod range;
mod single;
mod spare;
mod store;
mod table;
mod take;
mod validate;
mod work;

use core::{fmt, ops::Range};

use piebald_units::{CoreId, Order, Pfn};

use crate::{
    color_map::ColorMap,
    contract::{AllocError, Broken, FrameAllocator, FrameCounters, FrameRequest, FreeError, Grant},
};

use books::Books;
pub use core_lists::{CoreCounters, CoreError, CoreLists, CoreMemory, CoreSlices, Ends, Put, Slot};
pub use migrate::MigrateType;
pub use range::RangeError;
pub use store::{List, Parts, PartsMut, Sizes, Slices, Store};
use work::Work;

/// Largest order, inclusive: blocks of 4 MiB.
const MAX_ORDER: u8 = Order::MAX.0;
/// Number of orders.
const NR_ORDERS: usize = MAX_ORDER as usize + 1;
/// Number of migrate types.
const NR_KINDS: usize = MigrateType::ALL.len();
/// log2 of the frames of a pageblock: 2 MiB.
const PAGEBLOCK_ORDER: u8 = 9;
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

/// A buddy allocator over lent memory. *Exclusive*: the host locks.
#[derive(Clone)]
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
    /// return it by value (about 900 B and the store).
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
    #[inline(always)]
    pub fn alloc(&mut self, request: &FrameRequest<'_>) -> Result<Grant, AllocError> {
        match self.work().quick(request) {
            Some(grant) => Ok(grant),
            None => self.alloc_block(request),
        }
    }

    // Apart, so that the common path keeps nothing that only this one needs.
    #[inline(never)]
    fn alloc_block(&mut self, request: &FrameRequest<'_>) -> Result<Grant, AllocError> {
        self.work().alloc(request)
    }

    /// Takes a block back and merges it with its buddies.
    ///
    /// # Errors
    /// See [`FreeError`]; the allocator is unchanged.
    #[inline]
    pub fn free(&mut self, frame: Pfn, order: Order) -> Result<(), FreeError> {
        if order.0 != 0 {
            return self.free_block(frame, order);
        }
        self.free_single(frame)
    }

    // Apart, so that the common paths keep nothing that only the others need.
    #[inline(never)]
    fn free_block(&mut self, frame: Pfn, order: Order) -> Result<(), FreeError> {
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

    /// The order of the largest free block; `None` if nothing is free.
    pub fn largest_order(&self) -> Option<Order> {
        let listed = |kind: MigrateType| self.books.orders_from(kind as u8, 0);
        let listed = MigrateType::ALL.map(listed).into_iter();
        let orders = listed.fold(self.books.spares.orders_from(0), |all, of| all | of);
        orders.checked_ilog2().map(|order| Order(order as u8))
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
    #[inline]
    fn alloc(&mut self, request: &FrameRequest<'_>) -> Result<Grant, AllocError> {
        Buddy::alloc(self, request)
    }

    #[inline]
    fn free(&mut self, frame: Pfn, order: Order, _: CoreId) -> Result<(), FreeError> {
        Buddy::free(self, frame, order)
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
