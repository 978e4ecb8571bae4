//! Free frames that one core takes and returns without the buddy's lock.
//!
//! *Per core.* The frames stand in a fixed array of slots that the host lends to
//! each core, linked into one list per colour; the buddy's table is not touched.
//! So [`CoreLists::take`] and [`CoreLists::put`] need no lock, and the host holds
//! its lock just for [`CoreLists::refill`] and [`CoreLists::give_back`], which
//! move a batch at once:
//!
//! ```text
//! take ── empty ──> lock; refill; unlock ──> take
//!                                  └─ 0 ───> lock; Buddy::alloc; unlock
//! put ─── full or high ──> lock; give_back; unlock
//! ```
//!
//! A refill takes whole small blocks where the smallest free block of an allowed
//! colour is one, so a batch often costs one operation on the buddy. Giving back
//! takes the coldest frames, sorts them, and returns aligned runs as blocks.
//!
//! One object serves every colour set: `take` chooses among the colours that the
//! request allows. A host that wants to keep sets apart makes one per set.
//!
//! To the buddy, the frames here are granted. A frame that is put back twice is
//! therefore noticed when the second copy is given back: the buddy refuses it,
//! and [`CoreCounters::refused`] counts it.

use core::{borrow::Borrow, fmt};

use piebald_units::{Color, ColorSet, Order, Pfn};

use super::{Buddy, MigrateType, Store, take::bump};
use crate::{
    color_map::ColorMap,
    contract::{AllocError, FrameRequest, Grant},
};

/// No slot.
const NO_SLOT: u16 = u16::MAX;
/// Frames given back to the buddy at a time, so that the sorted copy fits a
/// kernel's stack.
const CHUNK: usize = 64;

/// Place for one frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slot {
    /// Index in the buddy's table.
    frame: u32,
    /// Towards the tail of the list; for an empty slot, the next empty one.
    next: u16,
    /// Towards the head.
    prev: u16,
}

impl Slot {
    /// A place without a frame.
    pub const EMPTY: Self = Self {
        frame: 0,
        next: NO_SLOT,
        prev: NO_SLOT,
    };
}

/// Both ends of a colour's list: last in, first out at the head.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    head: u16,
    tail: u16,
}

impl Ends {
    /// An empty list.
    pub const EMPTY: Self = Self {
        head: NO_SLOT,
        tail: NO_SLOT,
    };
}

impl Default for Ends {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// Memory of one core's lists.
pub trait CoreMemory {
    /// The buddy's colours.
    fn map(&self) -> &ColorMap;
    /// Places for frames, 1 to 65535: 8 B each.
    fn slots(&mut self) -> &mut [Slot];
    /// One list per colour: 4 B each.
    fn ends(&mut self) -> &mut [Ends];
}

/// Memory of slices, vectors or arrays.
#[derive(Clone, Debug)]
pub struct CoreSlices<M, S, E> {
    /// The buddy's colours.
    pub map: M,
    /// See [`CoreMemory::slots`].
    pub slots: S,
    /// See [`CoreMemory::ends`].
    pub ends: E,
}

impl<M, S, E> CoreMemory for CoreSlices<M, S, E>
where
    M: Borrow<ColorMap>,
    S: AsMut<[Slot]>,
    E: AsMut<[Ends]>,
{
    fn map(&self) -> &ColorMap {
        self.map.borrow()
    }

    fn slots(&mut self) -> &mut [Slot] {
        self.slots.as_mut()
    }

    fn ends(&mut self) -> &mut [Ends] {
        self.ends.as_mut()
    }
}

/// Why a core's lists could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreError {
    /// The number of slots is 0 or above 65535.
    Slots(usize),
    /// Fewer lists than colours.
    Ends {
        /// Lists lent.
        len: usize,
        /// Colours of the map.
        needed: u32,
    },
    /// The batch is 0 or above the number of slots.
    Batch(u32),
}

impl fmt::Display for CoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slots(n) => write!(f, "slots has length {n}; allowed: 1 to 65535"),
            Self::Ends { len, needed } => {
                write!(f, "ends has length {len}; allowed: {needed} or more")
            }
            Self::Batch(n) => write!(f, "batch = {n}; allowed: 1 to the number of slots"),
        }
    }
}

impl core::error::Error for CoreError {}

/// What became of a frame that was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// Kept.
    Kept,
    /// Kept, and fewer than a batch of slots are left: time to give back.
    High,
    /// Not kept, since no slot is left: give back, and put it again.
    Full,
    /// Not kept: below the buddy's first frame, or 2^32 or more above it.
    Foreign,
}

/// What a core's lists did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreCounters {
    /// Frames taken.
    pub taken: u64,
    /// Frames put.
    pub put: u64,
    /// Frames brought by refills.
    pub refilled: u64,
    /// Frames given back.
    pub given_back: u64,
    /// Frames that the buddy refused: put twice, or never granted one by one.
    pub refused: u64,
}

/// Free frames of one core and one migrate type. *Per core*: not shared, no lock.
#[derive(Clone)]
pub struct CoreLists<C> {
    memory: C,
    origin: u64,
    kind: MigrateType,
    batch: u32,
    /// Colours whose list is not empty.
    ready: ColorSet,
    cursor: Color,
    /// First empty slot.
    empty: u16,
    held: u32,
    counters: CoreCounters,
}

impl<C: CoreMemory> CoreLists<C> {
    /// Empty lists. `origin` is [`Buddy::origin`]; `batch` is how many frames a
    /// refill brings at most.
    ///
    /// # Errors
    /// Names the field whose size is out of range.
    pub fn new(
        mut memory: C,
        origin: Pfn,
        kind: MigrateType,
        batch: u32,
    ) -> Result<Self, CoreError> {
        let nr_slots = memory.slots().len();
        if nr_slots == 0 || nr_slots > usize::from(NO_SLOT) {
            return Err(CoreError::Slots(nr_slots));
        }
        if batch == 0 || batch as usize > nr_slots {
            return Err(CoreError::Batch(batch));
        }
        let needed = memory.map().colors();
        let len = memory.ends().len();
        if len < needed as usize {
            return Err(CoreError::Ends { len, needed });
        }
        memory.ends().fill(Ends::EMPTY);
        for (slot, next) in memory.slots().iter_mut().zip(1u16..) {
            slot.next = next;
        }
        if let Some(last) = memory.slots().last_mut() {
            last.next = NO_SLOT;
        }
        Ok(Self {
            memory,
            origin: origin.0,
            kind,
            batch,
            ready: ColorSet::EMPTY,
            cursor: Color(0),
            empty: 0,
            held: 0,
            counters: CoreCounters::default(),
        })
    }

    /// Frames held.
    pub fn held(&self) -> u32 {
        self.held
    }

    /// What these lists did.
    pub fn counters(&self) -> CoreCounters {
        self.counters
    }

    /// Takes a frame of the wished colour, or without a wish of any allowed
    /// colour. Nothing if there is none here, or if the request is not for a
    /// single frame of these lists' migrate type.
    #[inline]
    pub fn take(&mut self, r: &FrameRequest<'_>) -> Option<Pfn> {
        if r.order != Order(0) || MigrateType::of(r.purpose) != self.kind {
            return None;
        }
        let color = match r.wish {
            Some(c) => Some(c).filter(|c| r.allowed.is_none_or(|s| s.contains(*c))),
            None => self.choose(r.allowed),
        }?;
        let at = self.pop(color, false)?;
        bump(&mut self.counters.taken);
        Some(Pfn(self.origin.wrapping_add(u64::from(at))))
    }

    /// A colour that is ready and allowed, from the last one upwards.
    #[inline]
    fn choose(&mut self, allowed: Option<&ColorSet>) -> Option<Color> {
        let summary = self.ready.summary() & allowed.map_or(u64::MAX, ColorSet::summary);
        let both = |word: u32| {
            let allowed = allowed.map_or(u64::MAX, |s| s.word(word as usize));
            self.ready.word(word as usize) & allowed
        };
        let word = u32::from(self.cursor.0 >> 6);
        let onward = both(word) & u64::MAX << (self.cursor.0 & 63);
        let (word, bits) = match onward {
            0 => first_word(summary.rotate_right(word), |n| {
                let word = n.wrapping_add(word) & 63;
                (word, both(word))
            })?,
            bits => (word, bits),
        };
        self.cursor = Color((word << 6 | bits.trailing_zeros()) as u16);
        Some(self.cursor)
    }

    /// Returns a frame to this core.
    #[inline]
    pub fn put(&mut self, frame: Pfn) -> Put {
        let at = frame.0.checked_sub(self.origin);
        let Some(at) = at.and_then(|at| u32::try_from(at).ok()) else {
            return Put::Foreign;
        };
        if !self.push(at) {
            return Put::Full;
        }
        bump(&mut self.counters.put);
        let slots = self.memory.slots().len() as u32;
        match slots.wrapping_sub(self.held) < self.batch {
            true => Put::High,
            false => Put::Kept,
        }
    }

    /// Brings up to a batch of frames of the allowed colours: of the wished one,
    /// or if the buddy has none of it, of any. Never falls back to other colours: if it brings
    /// nothing, [`Buddy::alloc`] decides what the request's mode allows. Answers
    /// how many frames came. The host holds the buddy's lock.
    pub fn refill<S: Store>(&mut self, buddy: &mut Buddy<S>, r: &FrameRequest<'_>) -> u32 {
        if r.order != Order(0) || MigrateType::of(r.purpose) != self.kind {
            return 0;
        }
        let room = (self.memory.slots().len() as u32).wrapping_sub(self.held);
        let limit = self.batch.min(room);
        let taken = buddy.work().take_singles(r, limit, |at| {
            self.push(at);
        });
        let counter = &mut self.counters.refilled;
        *counter = counter.wrapping_add(u64::from(taken));
        taken
    }

    /// Gives the coldest frames back, `count` at most; aligned runs go back as
    /// blocks. Answers how many left. The host holds the buddy's lock.
    pub fn give_back<S: Store>(&mut self, buddy: &mut Buddy<S>, count: u32) -> u32 {
        let mut left = count.min(self.held);
        let mut given = 0u32;
        while left > 0 {
            let mut frames = [0u32; CHUNK];
            let chunk = frames.get_mut(..CHUNK.min(left as usize));
            let chunk = chunk.unwrap_or_default();
            let mut found = 0u32;
            for slot in chunk.iter_mut() {
                let Some(at) = self.pop_coldest() else { break };
                *slot = at;
                found = found.wrapping_add(1);
            }
            if found == 0 {
                break;
            }
            let chunk = chunk.get_mut(..found as usize).unwrap_or_default();
            sort(chunk);
            let refused = buddy.work().free_singles(chunk);
            let counters = &mut self.counters;
            counters.refused = counters.refused.wrapping_add(u64::from(refused));
            given = given.wrapping_add(found);
            left = left.saturating_sub(found);
        }
        let counter = &mut self.counters.given_back;
        *counter = counter.wrapping_add(u64::from(given));
        given
    }

    /// The whole path for a host that holds the lock anyway: takes, refills,
    /// drops the wish, asks the buddy.
    ///
    /// # Errors
    /// Those of [`Buddy::alloc`].
    pub fn alloc<S: Store>(
        &mut self,
        buddy: &mut Buddy<S>,
        r: &FrameRequest<'_>,
    ) -> Result<Grant, AllocError> {
        let kept = |frame| Grant {
            frame,
            order: Order(0),
            fallback: false,
        };
        if let Some(frame) = self.take(r) {
            return Ok(kept(frame));
        }
        self.refill(buddy, r);
        if let Some(frame) = self.take(r) {
            return Ok(kept(frame));
        }
        let without = FrameRequest { wish: None, ..*r };
        match self.take(&without) {
            Some(frame) => Ok(kept(frame)),
            None => buddy.alloc(r),
        }
    }

    fn color_of(&self, at: u32) -> Color {
        let frame = Pfn(self.origin.wrapping_add(u64::from(at)));
        self.memory.map().color(frame)
    }

    /// Puts a frame at the head of its colour's list; false if no slot is left.
    #[inline]
    fn push(&mut self, at: u32) -> bool {
        let color = self.color_of(at);
        let this = self.empty;
        let ends = self.memory.ends().get(usize::from(color.0)).copied();
        let ends = ends.unwrap_or(Ends::EMPTY);
        let Some(slot) = self.memory.slots().get_mut(usize::from(this)) else {
            return false;
        };
        self.empty = slot.next;
        *slot = Slot {
            frame: at,
            next: ends.head,
            prev: NO_SLOT,
        };
        if let Some(old) = self.memory.slots().get_mut(usize::from(ends.head)) {
            old.prev = this;
        }
        let tail = if ends.tail == NO_SLOT {
            this
        } else {
            ends.tail
        };
        self.set_ends(color, Ends { head: this, tail });
        if ends.head == NO_SLOT {
            self.ready.insert(color);
        }
        self.held = self.held.wrapping_add(1);
        true
    }

    fn set_ends(&mut self, color: Color, ends: Ends) {
        if let Some(slot) = self.memory.ends().get_mut(usize::from(color.0)) {
            *slot = ends;
        }
    }

    /// Takes the hottest or the coldest frame of a colour.
    #[inline]
    fn pop(&mut self, color: Color, coldest: bool) -> Option<u32> {
        let ends = *self.memory.ends().get(usize::from(color.0))?;
        let this = if coldest { ends.tail } else { ends.head };
        let empty = self.empty;
        let slot = self.memory.slots().get_mut(usize::from(this))?;
        let (frame, next, prev) = (slot.frame, slot.next, slot.prev);
        slot.next = empty;
        self.empty = this;
        self.held = self.held.wrapping_sub(1);
        if ends.head == ends.tail {
            self.set_ends(color, Ends::EMPTY);
            self.ready.remove(color);
        } else if coldest {
            self.set_ends(color, Ends { tail: prev, ..ends });
        } else {
            self.set_ends(color, Ends { head: next, ..ends });
        }
        Some(frame)
    }

    /// Takes the coldest frame of the next colour in turn.
    fn pop_coldest(&mut self) -> Option<u32> {
        self.cursor = Color(self.cursor.0.wrapping_add(1) & 0xfff);
        let color = self.choose(None)?;
        self.pop(color, true)
    }
}

/// The first set bit of a summary for which `f` answers a word that is not zero.
fn first_word(mut summary: u64, f: impl Fn(u32) -> (u32, u64)) -> Option<(u32, u64)> {
    while summary != 0 {
        let (word, bits) = f(summary.trailing_zeros());
        if bits != 0 {
            return Some((word, bits));
        }
        summary &= summary.wrapping_sub(1);
    }
    None
}

/// Shell sort: what `core` offers may panic or take a large stack frame.
fn sort(frames: &mut [u32]) {
    for gap in [23usize, 10, 4, 1] {
        for i in gap..frames.len() {
            let mut at = i;
            while let Some(before) = at.checked_sub(gap) {
                let (Some(a), Some(b)) = (frames.get(before).copied(), frames.get(at).copied())
                else {
                    break;
                };
                if a <= b {
                    break;
                }
                if let Some(slot) = frames.get_mut(before) {
                    *slot = b;
                }
                if let Some(slot) = frames.get_mut(at) {
                    *slot = a;
                }
                at = before;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorting_sorts() {
        let mut seed = 1u32;
        for n in 0..CHUNK {
            let mut frames = [0u32; CHUNK];
            for slot in &mut frames {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *slot = seed >> 20;
            }
            let mut expected = frames;
            let (Some(a), Some(b)) = (frames.get_mut(..n), expected.get_mut(..n)) else {
                continue;
            };
            sort(a);
            b.sort_unstable();
            assert_eq!(a, b);
        }
    }
}
