//! The memory that a buddy allocator lives in, lent by the host as typed slices.

use core::borrow::Borrow;

use piebald_units::Order;

use super::{MAX_FRAMES, NR_KINDS, NR_ORDERS, NewError, PAGEBLOCK_ORDER};
use crate::color_map::ColorMap;

/// No frame: the end of a list.
pub(super) const NIL: u32 = u32::MAX;

/// A list of free blocks: its first and its last, by table index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List {
    pub(super) ends: [u32; 2],
}

impl List {
    /// A list without blocks.
    pub const EMPTY: Self = Self { ends: [NIL; 2] };

    #[inline]
    pub(super) const fn head(self) -> u32 {
        let [head, _] = self.ends;
        head
    }

    #[inline]
    pub(super) const fn tail(self) -> u32 {
        let [_, tail] = self.ends;
        tail
    }

    #[inline]
    pub(super) const fn is_empty(self) -> bool {
        self.head() == NIL
    }
}

impl Default for List {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// How long the slices of a [`Store`] must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Frames of the table, each with a state of 1 B and links of 8 B.
    pub frames: usize,
    /// `u32` per pageblock of 512 frames: 1/128 B per frame.
    pub pageblocks: usize,
    /// [`List`]s of 8 B: 3 migrate types x 2^(C - rank) per order. 1968 B for
    /// 16 colours on bits 15-18, 49 KB for 1024 colours on bits 12-21, at most
    /// 1.1 MB (4096 colours, none of them on bits 12-21).
    pub lists: usize,
    /// `u64`s of the bitmaps: 33 for up to 64 colours, 33 x (1 + colours / 64)
    /// above, at most 17160 B.
    pub words: usize,
}

impl Sizes {
    /// The sizes for a table of `frames` frames, holes included.
    ///
    /// # Errors
    /// If `frames` is 0 or more than 2^28 (2^40 bytes).
    pub fn of(map: &ColorMap, frames: u64) -> Result<Self, NewError> {
        if frames == 0 || frames > MAX_FRAMES {
            return Err(NewError::Frames(frames));
        }
        let frames = frames as usize;
        let per_kind: u32 = (0..NR_ORDERS as u8).map(|o| map.lists(Order(o))).sum();
        Ok(Self {
            frames,
            pageblocks: frames.div_ceil(1 << PAGEBLOCK_ORDER),
            lists: (per_kind as usize).saturating_mul(NR_KINDS),
            words: stride(map).saturating_mul(NR_KINDS.saturating_mul(NR_ORDERS)),
        })
    }
}

/// Words per order and migrate type: the sets of up to 64 colours are one word;
/// larger ones are preceded by a summary of which words are not zero.
pub(super) fn stride(map: &ColorMap) -> usize {
    match map.words() {
        1 => 1,
        n => n.saturating_add(1),
    }
}

/// All that a [`Store`] lends, to look at.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    /// The colours.
    pub map: &'a ColorMap,
    /// What each frame is.
    pub states: &'a [u8],
    /// Next and previous block of each free one.
    pub links: &'a [[u32; 2]],
    /// One entry per pageblock.
    pub pageblocks: &'a [u32],
    /// The heads of the lists.
    pub lists: &'a [List],
    /// The bitmaps.
    pub words: &'a [u64],
}

/// All that a [`Store`] lends, to change.
pub struct PartsMut<'a> {
    /// The colours.
    pub map: &'a ColorMap,
    /// What each frame is.
    pub states: &'a mut [u8],
    /// Next and previous block of each free one.
    pub links: &'a mut [[u32; 2]],
    /// One entry per pageblock.
    pub pageblocks: &'a mut [u32],
    /// The heads of the lists.
    pub lists: &'a mut [List],
    /// The bitmaps.
    pub words: &'a mut [u64],
}

/// Memory for a buddy allocator, at least as long as [`Sizes`] says.
///
/// `states` and `pageblocks` are zero when they are first lent: fresh zeroed
/// memory costs nothing, and the allocator touches only the first frames of
/// blocks that it gets, so that making it takes a time that does not depend on
/// holes. The other slices may hold anything.
/// Contents and lengths stay what the allocator left until the next call; no
/// one else writes them.
pub trait Store {
    /// To look at.
    fn parts(&self) -> Parts<'_>;
    /// To change.
    fn parts_mut(&mut self) -> PartsMut<'_>;
}

/// A store of slices, vectors or arrays: whatever can be seen as slices.
#[derive(Clone, Debug)]
pub struct Slices<M, S, F, P, L, W> {
    /// The colours: a [`ColorMap`], a reference, a box.
    pub map: M,
    /// See [`Sizes::frames`].
    pub states: S,
    /// See [`Sizes::frames`].
    pub links: F,
    /// See [`Sizes::pageblocks`].
    pub pageblocks: P,
    /// See [`Sizes::lists`].
    pub lists: L,
    /// See [`Sizes::words`].
    pub words: W,
}

impl<M, S, F, P, L, W> Store for Slices<M, S, F, P, L, W>
where
    M: Borrow<ColorMap>,
    S: AsRef<[u8]> + AsMut<[u8]>,
    F: AsRef<[[u32; 2]]> + AsMut<[[u32; 2]]>,
    P: AsRef<[u32]> + AsMut<[u32]>,
    L: AsRef<[List]> + AsMut<[List]>,
    W: AsRef<[u64]> + AsMut<[u64]>,
{
    #[inline]
    fn parts(&self) -> Parts<'_> {
        Parts {
            map: self.map.borrow(),
            states: self.states.as_ref(),
            links: self.links.as_ref(),
            pageblocks: self.pageblocks.as_ref(),
            lists: self.lists.as_ref(),
            words: self.words.as_ref(),
        }
    }

    #[inline]
    fn parts_mut(&mut self) -> PartsMut<'_> {
        PartsMut {
            map: self.map.borrow(),
            states: self.states.as_mut(),
            links: self.links.as_mut(),
            pageblocks: self.pageblocks.as_mut(),
            lists: self.lists.as_mut(),
            words: self.words.as_mut(),
        }
    }
}
