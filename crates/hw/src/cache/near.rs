//! A first level as a loop over references sees it: all that a look-up touches, as
//! slices, so that the loop keeps it in registers.

use super::{Cache, Info, Line, Meta, Slot, lowest, matches};
use crate::replace::Order;

/// Words of a row: eight tags, eight infos.
const ROW: usize = 16;

/// A cache of at most eight ways, without slices, under one replacement policy.
pub(crate) struct Near<'a, O> {
    words: &'a mut [u32],
    set_mask: u32,
    order: O,
}

/// What a hit does to the replacement state.
pub(crate) trait Touch {
    /// Way `way`, below 8, of `set` was hit.
    fn touch(&mut self, set: usize, way: u32);
}

/// LRU permutations of all sets.
pub(crate) struct Lru<'a>(&'a mut [u64]);

/// Pseudo-LRU trees of all sets, and how each way turns them.
pub(crate) struct Tree<'a>(&'a mut [u64], &'a [(u64, u64); 64]);

impl Touch for Lru<'_> {
    #[inline(always)]
    fn touch(&mut self, set: usize, way: u32) {
        if let Some(perm) = self.0.get_mut(set) {
            crate::replace::to_front(perm, u64::from(way));
        }
    }
}

impl Touch for Tree<'_> {
    #[inline(always)]
    fn touch(&mut self, set: usize, way: u32) {
        let (path, turned) = self.1[way as usize % 64];
        if let Some(tree) = self.0.get_mut(set) {
            *tree = *tree & !path | turned;
        }
    }
}

/// A first level under the policies that first levels have.
pub(crate) enum First<'a> {
    Lru(Near<'a, Lru<'a>>),
    Tree(Near<'a, Tree<'a>>),
}

impl Cache {
    /// The cache for such a loop; `None` if it is of another kind.
    #[inline]
    pub(crate) fn near(&mut self) -> Option<First<'_>> {
        let set_mask = self.index.plain_mask()?;
        if self.row_shift != 4 || self.aliases() {
            return None;
        }
        let words = self.rows.words_mut();
        match &mut self.order {
            Order::Lru16(perms) => Some(First::Lru(Near {
                words,
                set_mask,
                order: Lru(perms),
            })),
            Order::Tree { trees, away } => Some(First::Tree(Near {
                words,
                set_mask,
                order: Tree(trees, away),
            })),
            _ => None,
        }
    }
}

impl<O: Touch> Near<'_, O> {
    /// Finds a line and counts it as used.
    #[inline(always)]
    pub(crate) fn hit(&mut self, line: Line) -> Option<(Slot, Meta)> {
        let set = (line & self.set_mask) as usize;
        let row: &[u32; ROW] = self.words.get(set * ROW..)?.first_chunk()?;
        let tags: &[u32; 8] = row.first_chunk()?;
        let way = lowest(matches::<8>(tags, line))?;
        let info = Info(row[8 + way as usize % 8]);
        self.order.touch(set, way);
        let slot = Slot {
            set: set as u32,
            way,
            at: (set * ROW) as u32 + way,
        };
        Some((slot, info.meta()))
    }
}
