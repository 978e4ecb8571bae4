//! The page cache: names to numbers, what each page is up to, and the policy.

use piebald_policy::contract::replacement::{
    Gone, Insert, PageRef, Replacement, State, Touch, Via,
};
use piebald_units::{Lba, Picos};

use super::{error::BrokenHost, key::Key, memory::Memory, table::FastMap};

/// What a page is up to. A page that is not [`RESIDENT`](flag::RESIDENT) is a ghost
/// or free.
pub(super) mod flag {
    pub const RESIDENT: u16 = 1;
    /// Being read.
    pub const LOCKED: u16 = 1 << 1;
    /// Differs from the disk.
    pub const DIRTY: u16 = 1 << 2;
    /// Being written.
    pub const WRITEBACK: u16 = 1 << 3;
    /// Whoever touches it asks for more readahead.
    pub const MARK: u16 = 1 << 4;
    /// Read ahead and not used yet.
    pub const UNUSED: u16 = 1 << 5;
    /// Deleted while it was read or written: leaves when that is over.
    pub const DOOMED: u16 = 1 << 6;
    /// Being written because it is to leave: outside of the policy's order, and gone
    /// when that is over, unless it is used before.
    pub const LAUNDERED: u16 = 1 << 7;
    /// In the zone of [`Memory`](super::Memory): outside of the policy's order, and
    /// the next to leave, unless it is used before.
    pub const COLD: u16 = 1 << 8;
    /// What keeps a page from being evicted.
    pub const BUSY: u16 = LOCKED | DIRTY | WRITEBACK | DOOMED;
}

/// A page by its number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Page {
    pub key: Key,
    pub lba: Lba,
    pub flags: u16,
    /// Calls that need the page and may not lose it.
    pub pins: u16,
}

impl Page {
    pub fn is(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Dirty, and neither being read nor being written.
    pub fn is_writable(&self) -> bool {
        self.is(flag::DIRTY) && !self.is(flag::LOCKED | flag::WRITEBACK | flag::DOOMED)
    }

    fn evictable(&self) -> bool {
        self.is(flag::RESIDENT) && !self.is(flag::BUSY) && self.pins == 0
    }

    /// Being written, and needed by nobody.
    fn is_leaving(&self) -> bool {
        let stays = flag::DIRTY | flag::LOCKED | flag::DOOMED;
        self.is(flag::WRITEBACK) && !self.is(stays) && self.pins == 0
    }

    fn unclean(&self) -> bool {
        self.is(flag::DIRTY | flag::WRITEBACK)
    }
}

/// A use through a mapping.
const MAPPED: Touch = Touch {
    via: Via::Mapping,
    next_use: None,
};

/// What the search for a victim found at the cold end.
#[derive(Debug, Default)]
pub(super) struct Cold {
    /// The coldest page that can go now.
    pub victim: Option<PageRef>,
    /// Dirty pages that are to be written and leave.
    pub dirty: Vec<PageRef>,
    /// Pages that are being written already.
    pub writing: Vec<PageRef>,
    /// Pages that were passed over because they were used through a mapping.
    pub young: Vec<PageRef>,
}

impl Cold {
    fn add(&mut self, p: &Page, page: PageRef) {
        if p.evictable() {
            self.victim = Some(page);
        } else if p.is_leaving() {
            self.writing.push(page);
        } else {
            self.dirty.push(page);
        }
    }

    fn finds_nothing(&self) -> bool {
        self.victim.is_none() && self.dirty.is_empty() && self.writing.is_empty()
    }
}

/// What left the cache, for the counters.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Departures {
    pub evicted: u64,
    pub deleted: u64,
    pub unused: u64,
}

/// The page cache.
#[derive(Clone, Debug)]
pub(super) struct Cache<P> {
    policy: P,
    numbers: FastMap<Key, PageRef>,
    pages: Vec<Page>,
    free: Vec<PageRef>,
    resident: u32,
    evictable: u32,
    /// Pages that are dirty or being written.
    unclean: u32,
    proposals: Vec<PageRef>,
    batch: usize,
    /// Victims until the cold end is looked at a batch ahead.
    ahead: usize,
    /// Pages in the zone.
    in_zone: u32,
    /// Pages that were in the zone and are in the order again.
    warmed: Vec<PageRef>,
    pub departures: Departures,
}

impl<P: Replacement> Cache<P> {
    /// `batch`: pages that reclaim writes at a time; at most a quarter of memory.
    pub fn new(policy: P, batch: u32) -> Self {
        let slots = policy.slots();
        let batch = batch.min(policy.capacity() / 4).max(1) as usize;
        Self {
            policy,
            numbers: FastMap::default(),
            pages: vec![Page::default(); slots as usize],
            free: (0..slots).rev().map(PageRef).collect(),
            resident: 0,
            evictable: 0,
            unclean: 0,
            proposals: Vec::new(),
            batch,
            ahead: 0,
            in_zone: 0,
            warmed: Vec::new(),
            departures: Departures::default(),
        }
    }

    pub fn policy(&self) -> &P {
        &self.policy
    }

    pub fn capacity(&self) -> u32 {
        self.policy.capacity()
    }

    /// Pages that could come in without one leaving.
    pub fn free(&self) -> u32 {
        self.capacity().saturating_sub(self.resident)
    }

    pub fn resident(&self) -> u32 {
        self.resident
    }

    /// Some page can go, and no dirty one or one that is being written is in its way.
    pub fn all_clean(&self) -> bool {
        self.unclean == 0 && self.evictable > 0
    }

    pub fn page(&self, page: PageRef) -> &Page {
        &self.pages[page.index()]
    }

    /// The number of a page in memory.
    pub fn find(&self, key: Key) -> Option<PageRef> {
        let page = *self.numbers.get(&key)?;
        self.page(page).is(flag::RESIDENT).then_some(page)
    }

    /// The number of a page that is dirty and can be written now.
    pub fn writable(&self, key: Key) -> Option<PageRef> {
        let page = self.find(key)?;
        self.page(page).is_writable().then_some(page)
    }

    /// Changes a page and keeps count of those that could be evicted.
    pub fn edit(&mut self, page: PageRef, change: impl FnOnce(&mut Page)) {
        let p = &mut self.pages[page.index()];
        let before = (p.evictable(), p.unclean());
        change(p);
        let after = (p.evictable(), p.unclean());
        let count = |sum: &mut u32, before: bool, after: bool| {
            *sum = *sum + u32::from(after) - u32::from(before);
        };
        count(&mut self.evictable, before.0, after.0);
        count(&mut self.unclean, before.1, after.1);
        if p.is(flag::COLD) && !after.0 {
            self.keep(page);
        }
    }

    pub fn set(&mut self, page: PageRef, flags: u16) {
        self.edit(page, |p| p.flags |= flags);
    }

    pub fn clear(&mut self, page: PageRef, flags: u16) {
        self.edit(page, |p| p.flags &= !flags);
    }

    pub fn pin(&mut self, page: PageRef) {
        self.edit(page, |p| p.pins += 1);
    }

    pub fn unpin(&mut self, page: PageRef) {
        self.edit(page, |p| p.pins -= 1);
    }

    /// The page was used; answers whether it was read ahead and is used now first.
    pub fn hit(&mut self, page: PageRef, touch: Touch, now: Picos) -> bool {
        self.policy.hit(page, touch, now);
        self.keep(page);
        let first = self.page(page).is(flag::UNUSED);
        self.clear(page, flag::UNUSED);
        first
    }

    pub fn set_dirty(&mut self, page: PageRef, dirty: bool) {
        self.policy.set_dirty(page, dirty);
    }

    pub fn place(&mut self, page: PageRef, lba: Lba, at: Option<piebald_units::DiskBlock>) {
        self.pages[page.index()].lba = lba;
        self.policy.place(page, at);
    }

    /// First half of bringing a page in: the policy learns that it comes. Only if
    /// there [is room](Self::free) or it can be made, since a page that was
    /// announced must come.
    pub fn announce(&mut self, key: Key, insert: &Insert, now: Picos) {
        let ghost = self.numbers.get(&key).copied();
        self.policy.miss(ghost, insert, now);
        self.drop_ghosts();
    }

    /// Second half, when there is a free page. `None` if the policy has no number
    /// left, which its contract excludes.
    pub fn insert(&mut self, page: Page, insert: &Insert, now: Picos) -> Option<PageRef> {
        let number = match self.numbers.get(&page.key) {
            Some(&ghost) => ghost,
            None => self.free.pop()?,
        };
        self.numbers.insert(page.key, number);
        self.edit(number, |p| {
            *p = page;
            p.flags |= flag::RESIDENT;
        });
        self.resident += 1;
        self.policy.insert(number, insert, now);
        self.drop_ghosts();
        Some(number)
    }

    /// Looks for the coldest page that can go, and for pages on the way to it that can
    /// go when they are written, at most a batch of dirty ones. Pages under I/O, those
    /// that memory keeps, and dirty ones for which `place` has no place, are passed
    /// over. So are pages that were used through a mapping, of which the policy learns
    /// now. If no other can go, the coldest of them does: looking took their access bits.
    /// A search is as long as bits were set since the last one.
    pub fn cold<M: Memory + ?Sized>(
        &mut self,
        place: impl Fn(Key) -> bool,
        mem: &mut M,
        now: Picos,
    ) -> Cold {
        let mut cold = Cold::default();
        let (batch, mut seen) = (self.batch, 0);
        // While something is unclean, a batch is looked at ahead, so that the writes are
        // over when it is the pages' turn.
        let look = match self.ahead {
            0 if self.unclean > 0 => batch,
            _ => 1,
        };
        self.visit_cold(|pages, page| {
            let p = &pages[page.index()];
            seen += 1;
            let writable = p.is_writable() && p.pins == 0 && place(p.key);
            // A clean page behind the victim is not asked about.
            let goes = p.evictable() && cold.victim.is_none() || p.is_leaving() || writable;
            if !goes || !mem.may_go(page) {
            } else if mem.young(page) {
                cold.young.push(page);
            } else {
                cold.add(p, page);
            }
            match cold.victim {
                Some(_) => seen < look,
                None => cold.dirty.len() < batch,
            }
        });
        if cold.finds_nothing() && !cold.young.is_empty() {
            let coldest = cold.young.remove(0);
            cold.add(&self.pages[coldest.index()], coldest);
        }
        self.ahead = match self.ahead {
            0 => batch / 2,
            left => left - 1,
        };
        for page in &cold.young {
            self.policy.hit(*page, MAPPED, now);
        }
        cold
    }

    /// The page is being written and leaves when that is over.
    pub fn launder(&mut self, page: PageRef) {
        self.policy.detach(page);
        self.set(page, flag::LAUNDERED);
    }

    /// The page stays after all, if it was to leave.
    pub fn keep(&mut self, page: PageRef) {
        let p = &mut self.pages[page.index()];
        if p.is(flag::COLD) {
            self.in_zone -= 1;
            self.warmed.push(page);
        }
        if p.is(flag::LAUNDERED | flag::COLD) {
            p.flags &= !(flag::LAUNDERED | flag::COLD);
            self.policy.reattach(page);
        }
    }

    /// The page leaves the order for the zone.
    pub fn chill(&mut self, page: PageRef) {
        self.policy.detach(page);
        self.pages[page.index()].flags |= flag::COLD;
        self.in_zone += 1;
    }

    /// A page of the zone was used through a mapping, and stays.
    pub fn used_in_zone(&mut self, page: PageRef, now: Picos) {
        self.policy.hit(page, MAPPED, now);
        self.keep(page);
    }

    /// Pages that memory believes to be in its zone.
    pub const fn in_zone(&self) -> u32 {
        self.in_zone + self.warmed.len() as u32
    }

    /// A page that has left the zone because it was used, each once.
    pub fn next_warmed(&mut self) -> Option<PageRef> {
        self.warmed.pop()
    }

    /// Shows pages, coldest first, until `go_on` says no.
    fn visit_cold(&mut self, mut go_on: impl FnMut(&[Page], PageRef) -> bool) {
        let (mut seen, mut want) = (0, 1);
        loop {
            self.proposals.resize(want, PageRef(0));
            let found = self.policy.propose(&mut self.proposals[..want]);
            self.proposals.truncate(found);
            for &page in &self.proposals[seen.min(found)..] {
                if !go_on(&self.pages, page) {
                    return;
                }
            }
            if found < want {
                return;
            }
            (seen, want) = (
                found,
                if want < self.batch {
                    self.batch
                } else {
                    want * 4
                },
            );
        }
    }

    /// The page leaves memory.
    pub fn forget(&mut self, page: PageRef, why: Gone) {
        let p = *self.page(page);
        match why {
            Gone::Evicted => self.departures.evicted += 1,
            Gone::Deleted => self.departures.deleted += 1,
        }
        self.departures.unused += u64::from(p.is(flag::UNUSED));
        self.in_zone -= u32::from(p.is(flag::COLD));
        self.warmed.retain(|warmed| *warmed != page);
        self.edit(page, |p| p.flags = 0);
        self.resident -= 1;
        self.policy.forget(page, why);
        self.drop_ghosts();
    }

    /// A page that no longer exists, in memory or remembered. One that is being read
    /// or written leaves when that is over. Answers its number and whether it left, if
    /// it was in memory.
    pub fn delete(&mut self, key: Key) -> Option<(PageRef, bool)> {
        let &page = self.numbers.get(&key)?;
        let p = *self.page(page);
        let pinned = p.is(flag::LOCKED | flag::WRITEBACK) || p.pins > 0;
        if p.is(flag::RESIDENT) && pinned {
            self.numbers.remove(&key);
            self.edit(page, |p| p.flags = p.flags & !flag::DIRTY | flag::DOOMED);
            Some((page, false))
        } else if p.is(flag::RESIDENT) {
            self.forget(page, Gone::Deleted);
            Some((page, true))
        } else {
            self.policy.forget(page, Gone::Deleted);
            self.drop_ghosts();
            None
        }
    }

    /// Numbers that the policy gave up stand for nothing any more.
    fn drop_ghosts(&mut self) {
        while let Some(page) = self.policy.dropped() {
            let key = self.page(page).key;
            if self.numbers.get(&key) == Some(&page) {
                self.numbers.remove(&key);
            }
            self.free.push(page);
        }
    }

    /// Pages in memory, by number.
    pub fn residents(&self) -> impl Iterator<Item = (PageRef, &Page)> {
        let all = self.pages.iter().enumerate();
        all.filter(|(_, p)| p.is(flag::RESIDENT))
            .map(|(i, p)| (PageRef(i as u32), p))
    }

    /// Names that are known, of ghosts too.
    pub fn names(&self) -> impl Iterator<Item = Key> {
        self.numbers.keys().copied()
    }

    pub fn validate(&self) -> Result<(), BrokenHost> {
        self.policy.validate()?;
        let rule = |holds: bool, text| match holds {
            true => Ok(()),
            false => Err(BrokenHost::Rule(text)),
        };
        let resident = self.residents().count() as u32;
        rule(resident == self.resident, "pages in memory are counted")?;
        rule(
            resident == self.policy.resident(),
            "policy and cache hold the same number of pages",
        )?;
        rule(
            resident <= self.capacity(),
            "memory holds no more than its capacity",
        )?;
        let evictable = self.pages.iter().filter(|p| p.evictable()).count() as u32;
        rule(
            evictable == self.evictable,
            "pages that could be evicted are counted",
        )?;
        let unclean = self.residents().filter(|(_, p)| p.unclean()).count() as u32;
        rule(unclean == self.unclean, "unclean pages are counted")?;
        let outside = |(page, p): (PageRef, &Page)| {
            let detached = self.policy.state(page) == State::Detached;
            let laundered = p.is(flag::LAUNDERED) && p.is(flag::WRITEBACK);
            let cold = p.is(flag::COLD) && p.evictable();
            detached == p.is(flag::LAUNDERED | flag::COLD) && (!detached || laundered != cold)
        };
        rule(
            self.residents().all(outside),
            "pages of the zone and those that leave when they are written are outside of the order",
        )?;
        let cold = self.residents().filter(|(_, p)| p.is(flag::COLD)).count() as u32;
        rule(cold == self.in_zone, "pages of the zone are counted")?;
        let named = |(page, p): (PageRef, &Page)| {
            p.is(flag::DOOMED) || self.numbers.get(&p.key) == Some(&page)
        };
        rule(
            self.residents().all(named),
            "a page in memory is found under its name",
        )?;
        let doomed = self.residents().filter(|(_, p)| p.is(flag::DOOMED)).count();
        rule(
            self.numbers.len() + doomed + self.free.len() == self.pages.len(),
            "every number is in use, doomed or free",
        )?;
        let known = self.numbers.values().all(|&page| {
            let ghost = !self.page(page).is(flag::RESIDENT);
            let state = self.policy.state(page);
            ghost == (state == State::Ghost) && state != State::Unknown
        });
        rule(
            known,
            "what is in memory here is in memory for the policy, the rest are ghosts",
        )
    }
}
