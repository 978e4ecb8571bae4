//! The page cache: names to numbers, what each page is up to, and the policy.

use piebald_policy::contract::replacement::{Gone, Insert, PageRef, Replacement, Touch};
use piebald_units::{Lba, Picos};

use super::{error::BrokenHost, key::Key, table::FastMap};

/// What a page is up to. A page that is not [`RESIDENT`](flag::RESIDENT) is a ghost
/// or free.
pub(super) mod flag {
    pub const RESIDENT: u8 = 1;
    /// Being read.
    pub const LOCKED: u8 = 1 << 1;
    /// Differs from the disk.
    pub const DIRTY: u8 = 1 << 2;
    /// Being written.
    pub const WRITEBACK: u8 = 1 << 3;
    /// Whoever touches it asks for more readahead.
    pub const MARK: u8 = 1 << 4;
    /// Read ahead and not used yet.
    pub const UNUSED: u8 = 1 << 5;
    /// Deleted while it was read or written: leaves when that is over.
    pub const DOOMED: u8 = 1 << 6;
    /// What keeps a page from being evicted.
    pub const BUSY: u8 = LOCKED | DIRTY | WRITEBACK | DOOMED;
}

/// A page by its number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Page {
    pub key: Key,
    pub lba: Lba,
    pub flags: u8,
    /// Calls that need the page and may not lose it.
    pub pins: u16,
}

impl Page {
    pub fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Dirty, and neither being read nor being written.
    pub fn is_writable(&self) -> bool {
        self.is(flag::DIRTY) && !self.is(flag::LOCKED | flag::WRITEBACK | flag::DOOMED)
    }

    fn evictable(&self) -> bool {
        self.is(flag::RESIDENT) && !self.is(flag::BUSY) && self.pins == 0
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
#[derive(Debug)]
pub(super) struct Cache<P> {
    policy: P,
    numbers: FastMap<Key, PageRef>,
    pages: Vec<Page>,
    free: Vec<PageRef>,
    resident: u32,
    evictable: u32,
    proposals: Vec<PageRef>,
    batch: usize,
    pub departures: Departures,
}

impl<P: Replacement> Cache<P> {
    pub fn new(policy: P, batch: u32) -> Self {
        let slots = policy.slots();
        Self {
            policy,
            numbers: FastMap::default(),
            pages: vec![Page::default(); slots as usize],
            free: (0..slots).rev().map(PageRef).collect(),
            resident: 0,
            evictable: 0,
            proposals: Vec::new(),
            batch: batch as usize,
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

    /// One page more could come in.
    pub fn has_room(&self) -> bool {
        self.free() > 0 || self.evictable > 0
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
        let before = p.evictable();
        change(p);
        match (before, p.evictable()) {
            (true, false) => self.evictable -= 1,
            (false, true) => self.evictable += 1,
            _ => {}
        }
    }

    pub fn set(&mut self, page: PageRef, flags: u8) {
        self.edit(page, |p| p.flags |= flags);
    }

    pub fn clear(&mut self, page: PageRef, flags: u8) {
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
    /// there [is room](Self::has_room) or can be made, since a page that was
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

    /// Evicts the coldest page that may go. Dirty pages that were passed over are
    /// appended to `dirty`, at most a batch of them.
    pub fn evict(&mut self, dirty: &mut Vec<PageRef>) -> bool {
        let mut victim = None;
        self.visit_cold(|pages, page| {
            let p = &pages[page.index()];
            if p.evictable() {
                victim = Some(page);
            }
            victim.is_none()
        });
        let passed = victim.is_none() || self.proposals.first() != victim.as_ref();
        if passed {
            self.collect_dirty(victim, dirty);
        }
        if let Some(page) = victim {
            self.forget(page, Gone::Evicted);
        }
        victim.is_some()
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

    /// Dirty pages among the last proposals, down to `end`.
    pub fn collect_dirty(&mut self, end: Option<PageRef>, dirty: &mut Vec<PageRef>) {
        for &page in self.proposals.iter().take_while(|p| Some(**p) != end) {
            let p = &self.pages[page.index()];
            let writable =
                p.is(flag::DIRTY) && !p.is(flag::LOCKED | flag::WRITEBACK | flag::DOOMED);
            if writable && p.pins == 0 && dirty.len() < self.batch && !dirty.contains(&page) {
                dirty.push(page);
            }
        }
    }

    /// The coldest dirty pages that can be written, at most a batch.
    pub fn coldest_dirty(&mut self, dirty: &mut Vec<PageRef>) {
        let mut left = self.batch;
        self.visit_cold(|pages, page| {
            left -= usize::from(pages[page.index()].is_writable());
            left > 0
        });
        self.collect_dirty(None, dirty);
    }

    /// The page leaves memory.
    pub fn forget(&mut self, page: PageRef, why: Gone) {
        let p = *self.page(page);
        match why {
            Gone::Evicted => self.departures.evicted += 1,
            Gone::Deleted => self.departures.deleted += 1,
        }
        self.departures.unused += u64::from(p.is(flag::UNUSED));
        self.edit(page, |p| p.flags = 0);
        self.resident -= 1;
        self.policy.forget(page, why);
        self.drop_ghosts();
    }

    /// A page that no longer exists, in memory or remembered. One that is being read
    /// or written leaves when that is over.
    pub fn delete(&mut self, key: Key) {
        let Some(&page) = self.numbers.get(&key) else {
            return;
        };
        let p = *self.page(page);
        let pinned = p.is(flag::LOCKED | flag::WRITEBACK) || p.pins > 0;
        if p.is(flag::RESIDENT) && pinned {
            self.numbers.remove(&key);
            self.edit(page, |p| p.flags = p.flags & !flag::DIRTY | flag::DOOMED);
        } else if p.is(flag::RESIDENT) {
            self.forget(page, Gone::Deleted);
        } else {
            self.policy.forget(page, Gone::Deleted);
            self.drop_ghosts();
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
            use piebald_policy::contract::replacement::State;
            ghost == (state == State::Ghost) && state != State::Unknown
        });
        rule(
            known,
            "what is in memory here is in memory for the policy, the rest are ghosts",
        )
    }
}
