//! Searches for a list. Those on the common way look at words of sets; the others at
//! each colour once.

use piebald_units::{Color, ColorSet};

use super::{
    ask::How,
    store::{List, Parts},
};

/// The colours of a set of words, as seen by a requester.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    parts: Parts<'a>,
    allowed: Option<&'a ColorSet>,
}

/// A list that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub color: Color,
    pub how: How,
}

impl Found {
    pub const fn meant(color: Color) -> Self {
        let how = How::Meant;
        Self { color, how }
    }
}

impl<'a> View<'a> {
    pub fn new(parts: Parts<'a>, allowed: Option<&'a ColorSet>) -> Self {
        Self { parts, allowed }
    }

    pub fn permits(&self, color: Color) -> bool {
        let is_known = u32::from(color.0) < self.parts.map.colors();
        is_known && self.allowed.is_none_or(|set| set.contains(color))
    }

    /// The first permitted colour from `from` on, going round, whose bit is set.
    #[inline]
    fn next(&self, from: Color, word: impl Fn(usize) -> u64) -> Option<Color> {
        let words = self.parts.map.words();
        let seen = |i: usize| word(i) & self.allowed.map_or(u64::MAX, |set| set.word(i));
        let start = usize::from(from.0) / 64;
        let rest = seen(start) & u64::MAX << (from.0 % 64);
        if rest != 0 && start < words {
            return Some(color(start, rest));
        }
        // The first word once more at the end: now its lower part counts.
        let after = start.saturating_add(1)..words;
        let round = after.chain(0..start.saturating_add(1).min(words));
        round
            .map(|i| (i, seen(i)))
            .find(|(_, bits)| *bits != 0)
            .map(|(i, bits)| color(i, bits))
    }

    /// The next permitted colour with pages.
    #[inline]
    pub fn some(&self, from: Color) -> Option<Color> {
        self.next(from, |i| self.parts.sets.some.word(i))
    }

    /// The next permitted colour with free pages.
    pub fn free(&self, from: Color) -> Option<Color> {
        self.next(from, |i| self.parts.sets.free.word(i))
    }

    /// The next permitted colour with more than T_l pages.
    pub fn long(&self, from: Color) -> Option<Color> {
        self.next(from, |i| self.parts.sets.long.word(i))
    }

    /// The next permitted colour of the map.
    #[inline]
    pub fn any(&self, from: Color) -> Option<Color> {
        self.next(from, |_| self.known())
    }

    /// The next permitted colour of the map with no more than T_l pages.
    pub fn short(&self, from: Color) -> Option<Color> {
        self.next(from, |i| self.known() & !self.parts.sets.long.word(i))
    }

    /// The colours of the map: a power of two, so only a single word is not full.
    #[inline]
    fn known(&self) -> u64 {
        match self.parts.map.colors() {
            n @ 0..64 => (1u64 << n).wrapping_sub(1),
            _ => u64::MAX,
        }
    }

    /// The next permitted unmarked list with more than T_l pages, other than `own`
    /// (Figure 7, `update_color`).
    #[inline]
    pub fn ready(&self, from: Color, own: Option<Color>) -> Option<Color> {
        let sets = self.parts.sets;
        self.next(from, |i| {
            let own = match own {
                Some(own) if usize::from(own.0) / 64 == i => 1u64 << (own.0 % 64),
                _ => 0,
            };
            sets.long.word(i) & !sets.marked.word(i) & !own
        })
    }

    /// Each permitted colour with its list.
    fn lists(&self) -> impl Iterator<Item = (Color, &'a List)> {
        let colors = (0..self.parts.map.colors() as u16).map(Color);
        let permitted = |(color, _): &(Color, &List)| self.permits(*color);
        colors.zip(self.parts.lists).filter(permitted)
    }

    /// The list with more than T_l pages, other than `own`, whose mark has been idle for
    /// longest, if any has been for more than so many blocks.
    pub fn idle(&self, clock: u64, idle_after: u64, own: Option<Color>) -> Option<Color> {
        let long = &self.parts.sets.long;
        let is_idle = |(color, list): &(Color, &List)| {
            list.holder != 0
                && Some(*color) != own
                && long.contains(*color)
                && clock.saturating_sub(list.used) > idle_after
        };
        let idle = self.lists().filter(is_idle);
        idle.min_by_key(|(_, list)| list.used)
            .map(|(color, _)| color)
    }

    /// The longest list that has pages and that nobody else marks.
    pub fn longest(&self, ticket: u64) -> Option<Color> {
        let is_ours = |(_, list): &(Color, &List)| {
            list.len > 0 && (list.holder == 0 || list.holder == ticket)
        };
        let mut best: Option<(Color, u32)> = None;
        // The first of several: `max_by_key` would give the last.
        for (color, list) in self.lists().filter(is_ours) {
            if best.is_none_or(|(_, len)| list.len > len) {
                best = Some((color, list.len));
            }
        }
        best.map(|(color, _)| color)
    }

    /// The marked list with pages that no sequence came to for longest; one with more
    /// than T_l pages if there is one.
    pub fn least_used(&self) -> Option<Color> {
        let long = &self.parts.sets.long;
        let with_pages = self.lists().filter(|(_, list)| list.len > 0);
        with_pages
            .min_by_key(|(color, list)| (!long.contains(*color), list.used))
            .map(|(color, _)| color)
    }
}

/// The colour of the lowest bit of a word.
#[inline]
fn color(word: usize, bits: u64) -> Color {
    Color((word.wrapping_mul(64) as u16).wrapping_add(bits.trailing_zeros() as u16))
}
