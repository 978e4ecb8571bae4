//! The frame table: what each entry says, and lists that run through it.
//!
//! An entry packs state and links of a frame into 64 bits, so that a frame and
//! its buddies of orders 0 to 2 share a cache line:
//!
//! | bits | meaning |
//! |---|---|
//! | 0-27 | next block of the list |
//! | 28-55 | previous block of the list |
//! | 56-59 | order of the block |
//! | 60-61 | migrate type of the list |
//! | 62-63 | 0: not the first frame of a block (or foreign); 1: free; 2: granted |
//!
//! Lists have two ends. The outward link of an end is not kept up to date: who
//! takes a block from an end then touches no other entry. An end is known by
//! being named in its [`List`](super::List).

use super::store::List;

const LINK: u64 = (1 << 28) - 1;
const PREV: u32 = 28;
const STATE: u32 = 56;

/// What a frame is to the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Inside a block, or not the allocator's.
    Inner,
    /// First frame of a free block on the lists of a migrate type.
    Free { order: u8, kind: u8 },
    /// First frame of a granted block.
    Granted { order: u8 },
}

/// The state byte of a free block.
pub(super) const fn free_byte(order: u8, kind: u8) -> u8 {
    1 << 6 | (kind & 3) << 4 | order & 15
}

/// The state byte of a granted block.
pub(super) const fn granted_byte(order: u8) -> u8 {
    2 << 6 | order & 15
}

/// The entry of a free block that is on no list.
pub(super) const fn free_entry(order: u8, kind: u8) -> u64 {
    (free_byte(order, kind) as u64) << STATE
}

/// The migrate type of a free block of this order; nothing for other entries.
#[inline]
pub(super) const fn free_kind(entry: u64, order: u8) -> Option<u8> {
    let byte = state_byte(entry);
    if byte & !(3 << 4) == free_byte(order, 0) {
        Some(byte >> 4 & 3)
    } else {
        None
    }
}

/// The entry of a granted block.
pub(super) const fn granted(order: u8) -> u64 {
    (granted_byte(order) as u64) << STATE
}

#[inline]
pub(super) const fn state_byte(entry: u64) -> u8 {
    (entry >> STATE) as u8
}

#[inline]
pub(super) const fn state(entry: u64) -> State {
    let byte = state_byte(entry);
    let (order, kind) = (byte & 15, byte >> 4 & 3);
    match byte >> 6 {
        1 => State::Free { order, kind },
        2 => State::Granted { order },
        _ => State::Inner,
    }
}

#[inline]
pub(super) const fn next(entry: u64) -> u32 {
    (entry & LINK) as u32
}

#[inline]
pub(super) const fn prev(entry: u64) -> u32 {
    (entry >> PREV & LINK) as u32
}

#[inline]
const fn packed(byte: u8, next: u32, prev: u32) -> u64 {
    (byte as u64) << STATE | (prev as u64 & LINK) << PREV | next as u64 & LINK
}

/// The entry of a frame; a frame beyond the table is foreign.
#[inline]
pub(super) fn entry(frames: &[u64], at: u32) -> u64 {
    frames.get(at as usize).copied().unwrap_or(0)
}

#[inline]
pub(super) fn set(frames: &mut [u64], at: u32, entry: u64) {
    if let Some(slot) = frames.get_mut(at as usize) {
        *slot = entry;
    }
}

#[inline]
fn set_next(frames: &mut [u64], at: u32, to: u32) {
    if let Some(slot) = frames.get_mut(at as usize) {
        *slot = *slot & !LINK | u64::from(to) & LINK;
    }
}

#[inline]
fn set_prev(frames: &mut [u64], at: u32, to: u32) {
    if let Some(slot) = frames.get_mut(at as usize) {
        *slot = *slot & !(LINK << PREV) | (u64::from(to) & LINK) << PREV;
    }
}

impl List {
    /// Adds a block at the head, and writes its entry. True if the list was
    /// empty.
    #[inline]
    pub(super) fn push_head(&mut self, frames: &mut [u64], at: u32, byte: u8) -> bool {
        let was_empty = self.is_empty();
        set(frames, at, packed(byte, self.head, 0));
        if was_empty {
            self.tail = at;
        } else {
            set_prev(frames, self.head, at);
        }
        self.head = at;
        was_empty
    }

    /// Adds a block at the tail, and writes its entry. True if the list was
    /// empty.
    #[inline]
    pub(super) fn push_tail(&mut self, frames: &mut [u64], at: u32, byte: u8) -> bool {
        let was_empty = self.is_empty();
        set(frames, at, packed(byte, 0, self.tail));
        if was_empty {
            self.head = at;
        } else {
            set_next(frames, self.tail, at);
        }
        self.tail = at;
        was_empty
    }

    /// Takes a block that is on the list out of it; its entry is left to the
    /// caller. True if the list is empty now.
    #[inline]
    pub(super) fn unlink(&mut self, frames: &mut [u64], at: u32) -> bool {
        let this = entry(frames, at);
        if self.head == self.tail {
            *self = Self::EMPTY;
            return true;
        }
        if self.head == at {
            self.head = next(this);
        } else if self.tail == at {
            self.tail = prev(this);
        } else {
            set_next(frames, prev(this), next(this));
            set_prev(frames, next(this), prev(this));
        }
        false
    }
}
