//! DULO's answers to the contract.

use piebald_units::{DiskBlock, Picos};

use super::{
    Dulo, Hits, Store,
    section::with,
    store::{HELD, NOWHERE},
};
use crate::contract::replacement::{
    Base, BrokenOrder, Effort, Gone, Insert, PageRef, Replacement, State, Touch, Via,
};

/// Writes pages to `out` from a position on, as far as it reaches; the position behind.
fn fill(out: &mut [PageRef], from: usize, pages: impl Iterator<Item = u32>) -> usize {
    let free = out.get_mut(from..).unwrap_or_default();
    let written = free.iter_mut().zip(pages).map(|(slot, page)| {
        *slot = PageRef(page);
    });
    from.saturating_add(written.count())
}

/// Moves what is in `from..to` up by so many places; what does not fit is lost.
fn shift(out: &mut [PageRef], from: usize, to: usize, by: usize) {
    for at in (from..to).rev() {
        let page = out.get(at).copied();
        let target = at.checked_add(by).and_then(|at| out.get_mut(at));
        if let (Some(target), Some(page)) = (target, page) {
            *target = page;
        }
    }
}

impl<B: Base, S: Store> Dulo<B, S> {
    fn by_wish(&self, wanted: bool) -> impl Iterator<Item = u32> {
        self.pages()
            .filter(move |page| self.base.wanted(PageRef(*page)) == wanted)
    }

    fn set_place(&mut self, page: PageRef, at: Option<DiskBlock>) {
        if let Some(place) = self.store.parts_mut().places.get_mut(page.index()) {
            *place = at.map_or(NOWHERE, |block| block.0);
        }
    }
}

impl<B: Base, S: Store> Replacement for Dulo<B, S> {
    #[inline]
    fn capacity(&self) -> u32 {
        self.base.capacity()
    }

    #[inline]
    fn slots(&self) -> u32 {
        self.base.slots()
    }

    fn miss(&mut self, ghost: Option<PageRef>, insert: &Insert, now: Picos) {
        self.base.miss(ghost, insert, now);
        if self.base.resident() >= self.base.capacity() {
            self.settle();
        }
    }

    fn insert(&mut self, page: PageRef, insert: &Insert, now: Picos) {
        let known = self.base.state(page);
        let may = !matches!(known, State::Resident | State::Detached);
        debug_assert!(may, "insert of a page that is in memory");
        if may {
            self.base.insert(page, insert, now);
            self.set_place(page, insert.at);
            self.refill_if_due();
        }
    }

    #[inline]
    fn hit(&mut self, page: PageRef, touch: Touch, now: Picos) {
        match self.config.hits {
            Hits::Restore if self.is_evicting(page) => self.restore(page),
            Hits::Promote if touch.via == Via::Call => {
                self.base.hit(page, touch, now);
                self.promote(page);
            }
            _ => self.base.hit(page, touch, now),
        }
    }

    /// The evicting section from the bottom, then the staging section by the base's
    /// own proposal; what is wanted after what is not.
    fn propose(&self, out: &mut [PageRef]) -> usize {
        let first = fill(out, 0, self.by_wish(false));
        let Some(free) = out.get_mut(first..).filter(|free| !free.is_empty()) else {
            return first;
        };
        let staged = self.base.propose(free);
        let unwanted = free
            .iter()
            .take(staged)
            .take_while(|page| !self.base.wanted(**page));
        let cut = first.saturating_add(unwanted.count());
        let end = first.saturating_add(staged);
        let room = out.len().saturating_sub(cut);
        let wanted = self.by_wish(true).take(room).count();
        shift(out, cut, end, wanted);
        fill(out, cut, self.by_wish(true));
        end.saturating_add(wanted).min(out.len())
    }

    fn detach(&mut self, page: PageRef) {
        let is_held = self.sequence(page) == HELD;
        let may = !is_held && self.state(page) == State::Resident;
        debug_assert!(may, "detach of a page that is not attached");
        if !may {
            return;
        }
        self.pass_over(page);
        match self.take_out(page.0) {
            Some(removed) => self.ended(removed),
            None => self.base.detach(page),
        }
        with(self.store.parts_mut().links, page.0, |l| l.sequence = HELD);
        self.held = self.held.saturating_add(1);
        self.refill_if_due();
    }

    fn reattach(&mut self, page: PageRef) {
        let is_held = self.sequence(page) == HELD;
        debug_assert!(is_held, "reattach of a page that is not detached");
        if is_held {
            self.leave(page);
            self.base.reattach(page);
            self.refill_if_due();
        }
    }

    fn forget(&mut self, page: PageRef, why: Gone) {
        let known = self.state(page);
        debug_assert!(known != State::Unknown, "forget of an unknown page");
        if why == Gone::Evicted && known == State::Resident {
            self.pass_over(page);
        }
        let removed = self.leave(page);
        self.base.forget(page, why);
        self.set_place(page, None);
        if let Some(removed) = removed
            && why == Gone::Evicted
        {
            self.evicted(removed);
        }
        self.refill_if_due();
        // Detached ones too: a host may take all that it evicts out of the order first.
        if why == Gone::Evicted && matches!(known, State::Resident | State::Detached) {
            self.refill_under_pressure();
        }
    }

    #[inline]
    fn dropped(&mut self) -> Option<PageRef> {
        self.base.dropped()
    }

    fn place(&mut self, page: PageRef, at: Option<DiskBlock>) {
        self.set_place(page, at);
        self.base.place(page, at);
    }

    fn set_dirty(&mut self, page: PageRef, dirty: bool) {
        self.base.set_dirty(page, dirty);
    }

    fn state(&self, page: PageRef) -> State {
        match self.is_evicting(page) {
            true => State::Resident,
            false => self.base.state(page),
        }
    }

    #[inline]
    fn resident(&self) -> u32 {
        self.base.resident()
    }

    fn effort(&self) -> Effort {
        let base = self.base.effort();
        Effort {
            scanned: base.scanned.wrapping_add(self.effort.scanned),
            moved: base.moved.wrapping_add(self.effort.moved),
        }
    }

    fn figures(&self, show: &mut dyn FnMut(&'static str, u64)) {
        let counters = self.counters();
        show("sequencings", counters.sequencings);
        show("blocks sequenced", counters.sequenced);
        show("merge comparisons", counters.comparisons);
        show("pages returned", counters.returned);
        show("pages promoted", counters.promoted);
        show("block table nodes", u64::from(self.table_nodes()));
    }

    fn validate(&self) -> Result<(), BrokenOrder> {
        self.check()
    }
}
