//! The colored zone: a list of pages per colour, and the books about their lengths.

use super::store::{Holds, Link, List, NIL, Parts, PartsMut};
use piebald_units::Color;

/// What is counted over all lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Books {
    /// T_l.
    pub threshold: u32,
    /// Pages in the zone.
    pub pages: u32,
    /// Free ones among them.
    pub free: u32,
    /// Lists with no more than T_l pages.
    pub short: u32,
}

/// The link of a frame; one out of range is not in the zone.
#[inline]
pub(super) fn link(links: &[Link], at: u32) -> Link {
    links.get(at as usize).copied().unwrap_or(Link::OUT)
}

/// The list of a colour; one that the map does not have is empty.
#[inline]
pub(super) fn list(lists: &[List], color: Color) -> List {
    let list = lists.get(usize::from(color.0));
    list.copied().unwrap_or(List::EMPTY)
}

#[inline]
fn with(links: &mut [Link], at: u32, change: impl FnOnce(&mut Link)) {
    if let Some(link) = links.get_mut(at as usize) {
        change(link);
    }
}

impl Books {
    pub const fn empty(threshold: u32, colors: u32) -> Self {
        Self {
            threshold,
            pages: 0,
            free: 0,
            short: colors,
        }
    }

    /// Adds a frame that is in no list: free ones are taken next, cold ones after all
    /// that are there.
    pub fn push(&mut self, parts: &mut PartsMut<'_>, color: Color, at: u32, holds: Holds) {
        let Some(list) = parts.lists.get_mut(usize::from(color.0)) else {
            return;
        };
        let before = *list;
        let links = &mut *parts.links;
        match holds {
            Holds::Free => {
                with(links, before.first, |l| l.set_before(at));
                with(links, at, |l| *l = Link::new(NIL, before.first, holds));
                list.first = at;
                list.free = before.free.saturating_add(1);
                self.free = self.free.saturating_add(1);
            }
            Holds::Cold => {
                with(links, before.last, |l| l.set_after(at));
                with(links, at, |l| *l = Link::new(before.last, NIL, holds));
                list.last = at;
            }
        }
        if before.len == 0 {
            (list.first, list.last) = (at, at);
        }
        list.len = before.len.saturating_add(1);
        let now = *list;
        self.pages = self.pages.saturating_add(1);
        self.resized(parts, color, before, now);
    }

    /// Takes a frame out of its list; `None` if it is in none.
    pub fn unlink(&mut self, parts: &mut PartsMut<'_>, color: Color, at: u32) -> Option<Holds> {
        let old = link(parts.links, at);
        let holds = old.holds()?;
        let list = parts.lists.get_mut(usize::from(color.0))?;
        let was = *list;
        match old.before() {
            NIL => list.first = old.after(),
            before => with(parts.links, before, |l| l.set_after(old.after())),
        }
        match old.after() {
            NIL => list.last = old.before(),
            after => with(parts.links, after, |l| l.set_before(old.before())),
        }
        with(parts.links, at, |l| *l = Link::OUT);
        list.len = was.len.saturating_sub(1);
        self.pages = self.pages.saturating_sub(1);
        if holds == Holds::Free {
            list.free = was.free.saturating_sub(1);
            self.free = self.free.saturating_sub(1);
        }
        let now = *list;
        self.resized(parts, color, was, now);
        Some(holds)
    }

    /// Takes the first frame of a list.
    #[inline]
    pub fn pop(&mut self, parts: &mut PartsMut<'_>, color: Color) -> Option<(u32, Holds)> {
        let first = list(parts.lists, color).first;
        let holds = self.unlink(parts, color, first)?;
        Some((first, holds))
    }

    /// Keeps sets and counts after a list became a page longer or shorter.
    #[inline]
    fn resized(&mut self, parts: &mut PartsMut<'_>, color: Color, was: List, now: List) {
        // The longer of the two tells which bound was passed, mostly none.
        let longer = was.len.max(now.len);
        if longer == 1 {
            put(&mut parts.sets.some, color, now.len > 0);
        }
        if was.free.max(now.free) == 1 && was.free != now.free {
            put(&mut parts.sets.free, color, now.free > 0);
        }
        if longer.wrapping_sub(1) == self.threshold {
            self.became_long(parts, color, now.len > self.threshold);
        }
    }

    fn became_long(&mut self, parts: &mut PartsMut<'_>, color: Color, is_long: bool) {
        put(&mut parts.sets.long, color, is_long);
        self.short = match is_long {
            true => self.short.saturating_sub(1),
            false => self.short.saturating_add(1),
        };
    }

    /// Sorts the lists anew by another threshold.
    pub fn set_threshold(&mut self, parts: &mut PartsMut<'_>, threshold: u32) {
        self.threshold = threshold;
        self.short = 0;
        for (list, color) in parts.lists.iter().zip(0..parts.map.colors() as u16) {
            let is_long = list.len > threshold;
            put(&mut parts.sets.long, Color(color), is_long);
            self.short = self.short.saturating_add(u32::from(!is_long));
        }
    }
}

#[inline]
pub(super) fn put(set: &mut piebald_units::ColorSet, color: Color, is_in: bool) {
    match is_in {
        true => {
            set.insert(color);
        }
        false => set.remove(color),
    }
}

/// The frames of a list, the next to be taken first.
pub(super) struct Walk<'a> {
    links: &'a [Link],
    next: u32,
    /// Ends a walk over links that run in a ring.
    left: u32,
}

impl<'a> Walk<'a> {
    pub fn over(parts: &Parts<'a>, color: Color) -> Self {
        let list = list(parts.lists, color);
        Self {
            links: parts.links,
            next: list.first,
            left: list.len,
        }
    }
}

impl Iterator for Walk<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        let at = self.next;
        self.next = link(self.links, at).after();
        Some(at)
    }
}
