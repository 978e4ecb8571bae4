//! The frame table: what each frame is, and lists that run through the frames.
//!
//! States and links are apart: whether a buddy is free decides what freeing
//! does, and one byte per frame stays in a cache where links would not.
//!
//! | bits of a state | meaning |
//! |---|---|
//! | 0-3 | order of the block |
//! | 4-5 | migrate type of the list |
//! | 6-7 | 0: not the first frame of a block (or foreign); 1: free; 2: granted |
//!
//! Lists have two ends. The outward link of an end is not kept up to date: who
//! takes a block from an end then touches no other frame. An end is known by
//! being named in its [`List`].

use super::store::List;

/// Next and previous block of a list, by table index.
pub(super) type Links = [u32; 2];
const NEXT: usize = 0;
const PREV: usize = 1;

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

/// Inside a block, or not the allocator's.
pub(super) const INNER: u8 = 0;

/// The state of a free block.
pub(super) const fn free(order: u8, kind: u8) -> u8 {
    1 << 6 | (kind & 3) << 4 | order & 15
}

/// The state of a granted block.
pub(super) const fn granted(order: u8) -> u8 {
    2 << 6 | order & 15
}

#[inline]
pub(super) const fn state(byte: u8) -> State {
    let (order, kind) = (byte & 15, byte >> 4 & 3);
    match byte >> 6 {
        1 => State::Free { order, kind },
        2 => State::Granted { order },
        _ => State::Inner,
    }
}

/// The migrate type of a free block of this order; nothing for other states.
#[inline]
pub(super) const fn free_kind(byte: u8, order: u8) -> Option<u8> {
    if byte & !(3 << 4) == free(order, 0) {
        Some(byte >> 4 & 3)
    } else {
        None
    }
}

/// The state of a frame; a frame beyond the table is foreign.
#[inline]
pub(super) fn byte(states: &[u8], at: u32) -> u8 {
    states.get(at as usize).copied().unwrap_or(INNER)
}

/// The links of a frame.
#[inline]
fn links_of(links: &[Links], at: u32) -> Links {
    links.get(at as usize).copied().unwrap_or([0; 2])
}

/// The next block of a list; means nothing for its last.
pub(super) fn next(links: &[Links], at: u32) -> u32 {
    let [next, _] = links_of(links, at);
    next
}

/// The previous block of a list; means nothing for its first.
pub(super) fn prev(links: &[Links], at: u32) -> u32 {
    let [_, prev] = links_of(links, at);
    prev
}

#[inline]
fn set(links: &mut [Links], at: u32, which: usize, to: u32) {
    if let Some(link) = links.get_mut(at as usize).and_then(|l| l.get_mut(which)) {
        *link = to;
    }
}

impl List {
    /// Adds a block at the head. True if the list was empty.
    #[inline]
    pub(super) fn push_head(&mut self, links: &mut [Links], at: u32) -> bool {
        let was_empty = self.is_empty();
        if was_empty {
            self.tail = at;
        } else {
            set(links, at, NEXT, self.head);
            set(links, self.head, PREV, at);
        }
        self.head = at;
        was_empty
    }

    /// Adds a block at the tail. True if the list was empty.
    #[inline]
    pub(super) fn push_tail(&mut self, links: &mut [Links], at: u32) -> bool {
        let was_empty = self.is_empty();
        if was_empty {
            self.head = at;
        } else {
            set(links, at, PREV, self.tail);
            set(links, self.tail, NEXT, at);
        }
        self.tail = at;
        was_empty
    }

    /// Takes a block that is on the list out of it. True if the list is empty
    /// now.
    #[inline]
    pub(super) fn unlink(&mut self, links: &mut [Links], at: u32) -> bool {
        if self.head == self.tail {
            *self = Self::EMPTY;
            return true;
        }
        let [next, prev] = links_of(links, at);
        if self.head == at {
            self.head = next;
        } else if self.tail == at {
            self.tail = prev;
        } else {
            set(links, prev, NEXT, next);
            set(links, next, PREV, prev);
        }
        false
    }
}
