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

use super::store::{List, NIL};

/// Next and previous block of a list, by table index.
pub(super) type Links = [u32; 2];
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
    // What differs from a free block of type 0 is the type.
    let kind = byte ^ free(order, 0);
    if kind & !(3 << 4) == 0 {
        Some(kind >> 4)
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
    if let Some(link) = links.get_mut(at as usize) {
        // The mask spares a check of the bounds.
        if let Some(link) = link.get_mut(which & 1) {
            *link = to;
        }
    }
}

/// The end of a list that a block goes to. As a number it is also the place of
/// the link that leads away from that end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Head = 0,
    Tail = 1,
}

impl List {
    /// Adds a block at one end. True if the list was empty.
    ///
    /// Which end it is follows from how full a pageblock is, and no processor
    /// can predict that: so the end is a number here, not a branch.
    #[inline]
    pub(super) fn push(&mut self, links: &mut [Links], at: u32, end: End) -> bool {
        if self.is_empty() {
            self.ends = [at; 2];
            return true;
        }
        let (inward, outward) = (end as usize & 1, end as usize & 1 ^ 1);
        if let Some(slot) = self.ends.get_mut(inward) {
            let neighbour = core::mem::replace(slot, at);
            set(links, at, inward, neighbour);
            set(links, neighbour, outward, at);
        }
        false
    }

    /// Takes a block that is on the list out of it. True if the list is empty
    /// now.
    #[inline]
    pub(super) fn unlink(&mut self, links: &mut [Links], at: u32) -> bool {
        let [head, tail] = self.ends;
        let Some([next, prev]) = links.get(at as usize).copied() else {
            return false;
        };
        if head != at && tail != at {
            set(links, prev, 0, next);
            set(links, next, 1, prev);
            return false;
        }
        self.ends = match (head == at, tail == at) {
            (true, true) => [NIL; 2],
            (true, false) => [next, tail],
            _ => [head, prev],
        };
        head == tail
    }
    /// Moves the head of a list of two or more to its tail.
    #[inline]
    pub(super) fn rotate(&mut self, links: &mut [Links]) {
        let [head, tail] = self.ends;
        let [next, _] = links_of(links, head);
        set(links, head, 1, tail);
        set(links, tail, 0, head);
        self.ends = [next, head];
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::{collections::VecDeque, vec, vec::Vec};

    use super::*;

    /// The blocks of a list, from one end to the other.
    fn walk(from: u32, to: u32, links: &[Links], step: fn(&[Links], u32) -> u32) -> Vec<u32> {
        let (mut found, mut at) = (vec![from], from);
        while at != to {
            at = step(links, at);
            found.push(at);
            assert!(found.len() <= links.len(), "a loop");
        }
        found
    }

    #[test]
    fn a_list_keeps_its_order_whatever_is_added_taken_out_or_moved() {
        let mut links = vec![[7; 2]; 16];
        let (mut list, mut expected) = (List::EMPTY, VecDeque::new());
        let mut seed = 1u32;
        for step in 0..20_000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (at, what) = (seed >> 20 & 15, seed >> 28);
            if let Some(i) = expected.iter().position(|e| *e == at) {
                expected.remove(i);
                assert_eq!(
                    list.unlink(&mut links, at),
                    expected.is_empty(),
                    "step {step}"
                );
            } else if what < 8 {
                assert_eq!(list.push(&mut links, at, End::Head), expected.is_empty());
                expected.push_front(at);
            } else {
                assert_eq!(list.push(&mut links, at, End::Tail), expected.is_empty());
                expected.push_back(at);
            }
            if expected.len() > 1 && what & 3 == 0 {
                list.rotate(&mut links);
                expected.rotate_left(1);
            }
            let Some((head, tail)) = expected.front().zip(expected.back()) else {
                assert!(list.is_empty(), "step {step}");
                continue;
            };
            assert_eq!(list.ends, [*head, *tail], "step {step}");
            assert_eq!(expected, walk(*head, *tail, &links, next), "step {step}");
            let mut backward = walk(*tail, *head, &links, prev);
            backward.reverse();
            assert_eq!(expected, backward, "step {step}");
        }
    }
}
