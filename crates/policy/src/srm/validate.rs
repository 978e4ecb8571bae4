//! Recounts of everything that the zone keeps in two forms.

use piebald_units::{Color, Pfn};

use super::{
    Holds, Srm, Store,
    store::{List, NIL},
    zone::{Walk, link},
};
use crate::contract::Broken;

/// Counts over the lists.
#[derive(Default)]
struct Sum {
    pages: u32,
    free: u32,
    short: u32,
}

impl<S: Store> Srm<S> {
    pub(super) fn check(&self) -> Result<(), Broken> {
        let parts = self.store.parts();
        let mut sum = Sum::default();
        for (list, color) in parts.lists.iter().zip(0..parts.map.colors() as u16) {
            self.check_list(list, Color(color), &mut sum)?;
            self.check_sets(list, Color(color))?;
        }
        self.check_frames(&sum)
    }

    fn broken(&self, rule: &'static str, at: u32) -> Broken {
        Broken {
            rule,
            frame: Pfn(self.origin.0.wrapping_add(u64::from(at))),
        }
    }

    /// One list: links, colours, free pages first.
    fn check_list(&self, list: &List, color: Color, sum: &mut Sum) -> Result<(), Broken> {
        let parts = self.store.parts();
        let (mut before, mut len, mut free) = (NIL, 0u32, 0u32);
        for at in Walk::over(&parts, color) {
            let here = link(parts.links, at);
            let Some(holds) = here.holds() else {
                return Err(self.broken("a list runs through a frame outside the zone", at));
            };
            if here.before() != before {
                return Err(self.broken("links do not agree", at));
            }
            if parts.map.color(self.broken("", at).frame) != color {
                return Err(self.broken("a frame is in the list of another color", at));
            }
            if holds == Holds::Free && free != len {
                return Err(self.broken("a free page comes after a cold one", at));
            }
            free = free.saturating_add(u32::from(holds == Holds::Free));
            len = len.saturating_add(1);
            before = at;
        }
        let is_end = before == NIL || link(parts.links, before).after() == NIL;
        if before != list.last || len != list.len || free != list.free || !is_end {
            return Err(self.broken("a list was miscounted", before));
        }
        sum.pages = sum.pages.saturating_add(len);
        sum.free = sum.free.saturating_add(free);
        let is_short = len <= self.limits.threshold;
        sum.short = sum.short.saturating_add(u32::from(is_short));
        Ok(())
    }

    fn check_sets(&self, list: &List, color: Color) -> Result<(), Broken> {
        let sets = self.store.parts().sets;
        let facts = [
            (&sets.some, list.len > 0, "the set of lists with pages"),
            (
                &sets.long,
                list.len > self.limits.threshold,
                "the set of long lists",
            ),
            (
                &sets.free,
                list.free > 0,
                "the set of lists with free pages",
            ),
            (&sets.marked, list.holder != 0, "the set of marked lists"),
        ];
        for (set, is_in, rule) in facts {
            if set.contains(color) != is_in {
                return Err(self.broken(rule, list.first));
            }
        }
        if list.holder > self.ticket || list.used > self.clock {
            return Err(self.broken("a mark comes from the future", list.first));
        }
        Ok(())
    }

    /// The totals; and no frame says that it is in the zone but those in lists.
    fn check_frames(&self, sum: &Sum) -> Result<(), Broken> {
        let links = self.store.parts().links.iter();
        let inside = links
            .take(self.frames as usize)
            .filter(|l| l.holds().is_some());
        let books = &self.books;
        if inside.count() != sum.pages as usize {
            return Err(self.broken("a frame of the zone is in no list", 0));
        }
        if (books.pages, books.free, books.short) != (sum.pages, sum.free, sum.short) {
            return Err(self.broken("the zone was miscounted", 0));
        }
        if books.threshold != self.limits.threshold {
            return Err(self.broken("two thresholds", 0));
        }
        Ok(())
    }
}
