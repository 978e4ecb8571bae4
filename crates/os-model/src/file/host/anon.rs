//! Programs' memory and the swap area.

use piebald_policy::contract::replacement::{Fetch, PageRef, Replacement};
use piebald_units::{Lba, Picos, block::BlockPort};

use super::{
    super::{cache::flag, key::Key, memory::Memory, swap::SwapMap},
    FileHost,
    call::{Call, Progress},
    load::{Gathered, Incoming},
};

impl<P: Replacement, D: BlockPort> FileHost<P, D> {
    pub(super) fn anon_page<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        task: u32,
        call: &Call,
        write: bool,
        now: Picos,
    ) -> Progress {
        let key = call.key();
        let slot = self.swap.as_ref().and_then(|s| s.slot_of(key));
        match (self.cache.find(key), slot) {
            (Some(page), _) if self.cache.page(page).is(flag::LOCKED) => Progress::Page(page),
            (Some(page), _) => self.use_anon(page, call, write),
            (None, Some(slot)) => self.swap_in(mem, task, key, slot, now),
            (None, None) => self.first_touch(mem, task, key, now),
        }
    }

    /// A page of zeros; it has no copy anywhere, so it counts as dirty.
    fn first_touch<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        task: u32,
        key: Key,
        now: Picos,
    ) -> Progress {
        let page = Incoming {
            key,
            task,
            lba: None,
            fetch: Fetch::Demand,
            flags: flag::DIRTY,
        };
        match self.admit(mem, page, now) {
            Some(_) => Progress::Done,
            None => Progress::Memory,
        }
    }

    /// A page in memory is used. It keeps its slot, even if it differs from it now;
    /// but a fault gives the slot back when swap is half full.
    fn use_anon(&mut self, page: PageRef, call: &Call, write: bool) -> Progress {
        let writeback = self.cache.page(page).is(flag::WRITEBACK);
        let release = call.faults && !writeback && self.give_back(page, call.key());
        if (write || release) && !self.cache.page(page).is(flag::DIRTY) {
            self.cache.set(page, flag::DIRTY);
            self.cache.set_dirty(page, true);
        }
        Progress::Done
    }

    fn give_back(&mut self, page: PageRef, key: Key) -> bool {
        let Some(swap) = self.swap.as_mut().filter(|s| s.half_full()) else {
            return false;
        };
        if swap.slot_of(key).is_none() {
            return false;
        }
        swap.release(key);
        self.cache.place(page, Lba(0), None);
        true
    }

    /// Reads the group of slots around the page's own, and the page.
    fn swap_in<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        task: u32,
        key: Key,
        slot: u32,
        now: Picos,
    ) -> Progress {
        let group = self
            .swap
            .as_ref()
            .map(|s| s.group(slot))
            .unwrap_or_default();
        // The page first: if memory is short, its neighbours are not worth it. The
        // reads go out in the order of their slots.
        let mut admit = |host: &mut Self, key, slot, fetch| {
            let lba = Some(host.slot_lba(slot));
            let page = Incoming {
                key,
                task,
                lba,
                fetch,
                flags: flag::LOCKED,
            };
            host.admit(mem, page, now)
        };
        let Some(page) = admit(self, key, slot, Fetch::Demand) else {
            return Progress::Memory;
        };
        self.stats.swap_ins += 1;
        let mut pages = vec![(slot, page)];
        for (slot, other) in group {
            if self.cache.find(other).is_some() {
                continue;
            }
            let Some(other) = admit(self, other, slot, Fetch::Readahead) else {
                break;
            };
            self.stats.swap_readahead += 1;
            pages.push((slot, other));
        }
        pages.sort_unstable();
        let mut run = Gathered::default();
        for (slot, page) in pages {
            let lba = self.slot_lba(slot);
            self.gather(task, &mut run, page, lba, now);
        }
        self.submit_run(task, &mut run, now);
        Progress::Page(page)
    }

    fn slot_lba(&self, slot: u32) -> Lba {
        self.swap.as_ref().map_or(Lba(0), |s| s.lba(slot))
    }

    /// Where a page of a program can be written: its slot, or a new one. `None` if
    /// there is no swap area or it is full.
    pub(super) fn swap_place(&mut self, page: PageRef, key: Key) -> Option<Lba> {
        let swap = self.swap.as_mut()?;
        if let Some(slot) = swap.slot_of(key) {
            return Some(swap.lba(slot));
        }
        let slot = swap.alloc(key)?;
        let lba = swap.lba(slot);
        let at = self.queue.place(lba);
        self.cache.place(page, lba, Some(at));
        Some(lba)
    }

    /// The slots of some pages are free.
    pub(super) fn release_swap(&mut self, own: impl Fn(Key) -> bool) {
        let Some(swap) = &mut self.swap else { return };
        let keys: Vec<Key> = swap.owners().filter(|&k| own(k)).collect();
        keys.into_iter().for_each(|key| SwapMap::release(swap, key));
    }
}
