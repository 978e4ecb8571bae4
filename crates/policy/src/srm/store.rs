//! The memory that the zone lives in, lent by the host.

use core::borrow::{Borrow, BorrowMut};

use piebald_units::ColorSet;

use super::ConfigError;
use crate::color_map::ColorMap;

/// No frame: the end of a list. Frames have 28 bits, so it fits beside the mark of a
/// cold page.
pub(super) const NIL: u32 = u32::MAX >> 1;
/// Instead of the frame before: the frame is not in the zone.
const OUT: u32 = u32::MAX;
/// Beside the frame after: the page is cold, not free.
const COLD: u32 = 1 << 31;

/// What a frame of the zone holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Holds {
    /// Nothing.
    Free,
    /// A page from the cold end of the host's replacement order, still usable until
    /// the frame is taken.
    Cold,
}

/// The neighbours of a frame in its list and what it holds. 8 B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    before: u32,
    after: u32,
}

impl Link {
    /// A frame that is not in the zone.
    pub const OUT: Self = Self {
        before: OUT,
        after: OUT,
    };

    pub(super) const fn new(before: u32, after: u32, holds: Holds) -> Self {
        Self {
            before,
            after: match holds {
                Holds::Free => after,
                Holds::Cold => after | COLD,
            },
        }
    }

    /// `None` outside the zone.
    pub(super) const fn holds(self) -> Option<Holds> {
        match (self.before == OUT, self.after & COLD) {
            (true, _) => None,
            (false, 0) => Some(Holds::Free),
            (false, _) => Some(Holds::Cold),
        }
    }

    pub(super) const fn before(self) -> u32 {
        self.before
    }

    pub(super) const fn after(self) -> u32 {
        self.after & !COLD
    }

    pub(super) const fn set_before(&mut self, to: u32) {
        self.before = to;
    }

    pub(super) const fn set_after(&mut self, to: u32) {
        self.after = self.after & COLD | to;
    }
}

impl Default for Link {
    fn default() -> Self {
        Self::OUT
    }
}

/// The pages of one colour, the next to be taken first: free ones, then cold ones in
/// the order in which they came. 32 B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List {
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) len: u32,
    /// Free pages among them.
    pub(super) free: u32,
    /// The ticket of the sequence that marks the list; 0 for none.
    pub(super) holder: u64,
    /// The block at which a sequence took a page here last.
    pub(super) used: u64,
}

impl List {
    /// A list without pages and mark.
    pub const EMPTY: Self = Self {
        first: NIL,
        last: NIL,
        len: 0,
        free: 0,
        holder: 0,
        used: 0,
    };
}

impl Default for List {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// Sets of colours by the state of their lists, so that no search walks lists. 2080 B.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sets {
    /// Lists with pages.
    pub(super) some: ColorSet,
    /// Lists with more than T_l pages.
    pub(super) long: ColorSet,
    /// Lists with free pages.
    pub(super) free: ColorSet,
    /// Lists in use by a sequence.
    pub(super) marked: ColorSet,
}

impl Sets {
    /// No colour in any.
    pub const EMPTY: Self = Self {
        some: ColorSet::EMPTY,
        long: ColorSet::EMPTY,
        free: ColorSet::EMPTY,
        marked: ColorSet::EMPTY,
    };

    pub(super) fn clear(&mut self) {
        for set in [
            &mut self.some,
            &mut self.long,
            &mut self.free,
            &mut self.marked,
        ] {
            set.clear();
        }
    }
}

impl Default for Sets {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// How long the slices of a [`Store`] must be: 8 B for each frame, 32 B for each
/// colour, and one [`Sets`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// [`Link`]s of 8 B: one for each frame that may come into the zone, holes included.
    pub frames: usize,
    /// [`List`]s of 32 B: one for each colour.
    pub colors: usize,
}

impl Sizes {
    /// The sizes for so many frames of a map's colours.
    pub fn of(map: &ColorMap, frames: u64) -> Self {
        Self {
            frames: usize::try_from(frames).unwrap_or(usize::MAX),
            colors: map.colors() as usize,
        }
    }

    pub(super) fn check(&self, lent: &Parts<'_>) -> Result<(), ConfigError> {
        let slices = [
            ("frames", lent.links.len(), self.frames),
            ("colors", lent.lists.len(), self.colors),
        ];
        for (name, lent, needed) in slices {
            if lent < needed {
                return Err(ConfigError::Store { name, lent, needed });
            }
        }
        Ok(())
    }
}

/// All that a [`Store`] lends, to look at.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    /// The colours.
    pub map: &'a ColorMap,
    /// One per frame.
    pub links: &'a [Link],
    /// One per colour.
    pub lists: &'a [List],
    /// The colours by the state of their lists.
    pub sets: &'a Sets,
}

/// All that a [`Store`] lends, to change.
pub struct PartsMut<'a> {
    /// The colours.
    pub map: &'a ColorMap,
    /// One per frame.
    pub links: &'a mut [Link],
    /// One per colour.
    pub lists: &'a mut [List],
    /// The colours by the state of their lists.
    pub sets: &'a mut Sets,
}

/// Memory for the zone, at least as long as [`Sizes`] says. It may hold anything when
/// it is lent; then no one else writes it, and its lengths and the map stay.
pub trait Store {
    /// To look at.
    fn parts(&self) -> Parts<'_>;
    /// To change.
    fn parts_mut(&mut self) -> PartsMut<'_>;
}

/// A store of vectors, boxed or lent slices: whatever can be seen as slices.
#[derive(Clone, Debug)]
pub struct Slices<M, F, L, X> {
    /// The colours: a [`ColorMap`], a reference, a box.
    pub map: M,
    /// See [`Sizes::frames`].
    pub links: F,
    /// See [`Sizes::colors`].
    pub lists: L,
    /// [`Sets`], a reference, a box.
    pub sets: X,
}

impl<M, F, L, X> Slices<M, F, L, X>
where
    M: Borrow<ColorMap>,
    F: FromIterator<Link>,
    L: FromIterator<List>,
    X: From<Sets>,
{
    /// A store for so many frames that collects its memory, as vectors and boxed
    /// slices do.
    pub fn collect(map: M, frames: u64) -> Self {
        let sizes = Sizes::of(map.borrow(), frames);
        Self {
            map,
            links: core::iter::repeat_n(Link::OUT, sizes.frames).collect(),
            lists: core::iter::repeat_n(List::EMPTY, sizes.colors).collect(),
            sets: Sets::EMPTY.into(),
        }
    }
}

impl<M, F, L, X> Store for Slices<M, F, L, X>
where
    M: Borrow<ColorMap>,
    F: AsRef<[Link]> + AsMut<[Link]>,
    L: AsRef<[List]> + AsMut<[List]>,
    X: BorrowMut<Sets>,
{
    #[inline]
    fn parts(&self) -> Parts<'_> {
        Parts {
            map: self.map.borrow(),
            links: self.links.as_ref(),
            lists: self.lists.as_ref(),
            sets: self.sets.borrow(),
        }
    }

    #[inline]
    fn parts_mut(&mut self) -> PartsMut<'_> {
        PartsMut {
            map: self.map.borrow(),
            links: self.links.as_mut(),
            lists: self.lists.as_mut(),
            sets: self.sets.borrow_mut(),
        }
    }
}
