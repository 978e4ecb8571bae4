//! The memory that the C side lends to the buddy.

use core::slice;

use piebald_policy::{
    buddy::{List, Parts, PartsMut, Store},
    color_map::ColorMap,
};

/// What is lent for the frames of one memory node: the colour map, and arrays of the C side by pointer
/// and length.
///
/// `states`, `links` and `pageblocks` are as long as the table of frames and lent for good;
/// `lists` and `words` depend on the map and are lent with it.
pub struct Lending {
    /// The colours.
    pub map: ColorMap,
    /// One byte per frame.
    pub states: *mut u8,
    /// Two links per frame.
    pub links: *mut [u32; 2],
    /// Number of frames.
    pub frames: usize,
    /// The first of them, a multiple of 1024.
    pub first: u64,
    /// One entry per 512 frames.
    pub pageblocks: *mut u32,
    /// Number of entries.
    pub nr_pageblocks: usize,
    /// Heads of lists.
    pub lists: *mut List,
    /// Number of heads.
    pub nr_lists: usize,
    /// Bitmaps.
    pub words: *mut u64,
    /// Number of words.
    pub nr_words: usize,
}

/// A store over a [`Lending`].
///
/// # Safety
/// Who makes one promises that the lending stays where it is, that its pointers are valid and
/// aligned for the lengths beside them, and that nobody else uses any of it during a call.
pub struct Lent(*mut Lending);

impl Lent {
    /// A store over a lending.
    ///
    /// # Safety
    /// See [`Lent`].
    pub const unsafe fn new(lending: *mut Lending) -> Self {
        Self(lending)
    }
}

/// A slice of lent memory; the empty one for the null pointer.
///
/// # Safety
/// As for [`slice::from_raw_parts_mut`], but for null.
unsafe fn lent<'a, T>(start: *mut T, len: usize) -> &'a mut [T] {
    if start.is_null() {
        return &mut [];
    }
    // SAFETY: the caller's promise.
    unsafe { slice::from_raw_parts_mut(start, len) }
}

impl Store for Lent {
    fn parts(&self) -> Parts<'_> {
        // SAFETY: the promise of `Lent`; the lifetimes are those of this borrow.
        unsafe {
            let all = &*self.0;
            Parts {
                map: &all.map,
                states: lent(all.states, all.frames),
                links: lent(all.links, all.frames),
                pageblocks: lent(all.pageblocks, all.nr_pageblocks),
                lists: lent(all.lists, all.nr_lists),
                words: lent(all.words, all.nr_words),
            }
        }
    }

    fn parts_mut(&mut self) -> PartsMut<'_> {
        // SAFETY: as above; the arrays are distinct, and the borrow is exclusive.
        unsafe {
            let all = &*self.0;
            PartsMut {
                map: &all.map,
                states: lent(all.states, all.frames),
                links: lent(all.links, all.frames),
                pageblocks: lent(all.pageblocks, all.nr_pageblocks),
                lists: lent(all.lists, all.nr_lists),
                words: lent(all.words, all.nr_words),
            }
        }
    }
}
