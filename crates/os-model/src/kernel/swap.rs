//! Pages that leave memory because the colours that bind a process are used up,
//! and come back when they are touched.
//!
//! Victims are pages of the same partition that lie in its colours (of processes
//! without a partition: in unreserved ones), so that each makes room where it is
//! needed. First come clean pages of files that nobody maps, oldest first; then a
//! clock goes over the mapped pages, in the order of their addresses: one that was
//! touched since it came past last loses its access bit and stays, the next is
//! dropped if it is a clean page of a file and written to swap space if it is
//! anonymous. Pages with other users (copy-on-write, shared memory, files mapped
//! twice) stay; so do the two pages that each process faulted in last, since one
//! reference may need both.
//!
//! A file counts as clean if it was never written to and never mapped shared: there
//! is no disk to write it back to.
//!
//! Deviations from a real kernel: one page per shortage instead of a batch in
//! advance; the core that caused it waits for the write; a page that comes back
//! leaves its slot at once, so that a clean one is written again.

use std::collections::HashMap;

use piebald_policy::rainbow::Owner as Whose;
use piebald_units::{ColorSet, Pfn, Picos, Vpn};

use super::{
    Action, Actions, Kernel, KernelError, Path, SwapConfig, colors::whose, fault::Site,
    mapping::Caller,
};
use crate::space::{Entry, ObjectPage};

/// Unmapped pages of files that are looked at for one victim.
const FILES_PER_SEARCH: usize = 1024;

/// Swap space: which slots are in use, and where each clock stands.
#[derive(Clone, Default)]
pub(crate) struct Swap {
    config: SwapConfig,
    /// Processes that share a slot's page; by slot, as far as slots were used.
    users: Vec<u32>,
    free: Vec<u32>,
    hands: HashMap<Whose, Hand>,
}

/// Where a clock stands: the next page that it looks at.
#[derive(Clone, Copy, Default)]
struct Hand {
    process: usize,
    vpn: Vpn,
}

impl Swap {
    pub(super) fn new(config: SwapConfig) -> Self {
        Self {
            config,
            ..Self::default()
        }
    }

    /// A free slot, with one user.
    pub(super) fn take(&mut self) -> Option<u32> {
        if let Some(slot) = self.free.pop() {
            self.users[slot as usize] = 1;
            return Some(slot);
        }
        let slot = u32::try_from(self.users.len()).ok()?;
        (slot < self.config.pages).then(|| {
            self.users.push(1);
            slot
        })
    }

    /// Slots are only numbers from here on: where they lie is another's matter.
    pub(super) fn no_limit(&mut self) {
        self.config.pages = u32::MAX;
    }

    /// One user more: a fork.
    pub(super) fn share(&mut self, slot: u32) {
        self.users[slot as usize] += 1;
    }

    /// One user less.
    pub(super) fn put(&mut self, slot: u32) {
        let users = &mut self.users[slot as usize];
        *users -= 1;
        if *users == 0 {
            self.free.push(slot);
        }
    }

    /// A partition is gone.
    pub(super) fn forget(&mut self, of: Whose) {
        self.hands.remove(&of);
    }

    /// Users of each slot.
    pub(super) fn users(&self) -> &[u32] {
        &self.users
    }

    /// Slots in use.
    pub(super) fn used(&self) -> u64 {
        (self.users.len() - self.free.len()) as u64
    }
}

/// A page that may leave memory.
enum Victim {
    /// A clean page of a file that a process maps.
    File(usize, Vpn, u32, ObjectPage),
    /// A page of a process's own.
    Anon(usize, Vpn, u32),
}

/// Why nothing could leave memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stuck {
    /// No page may go.
    NoVictim,
    /// Swap space is full.
    SwapFull,
}

impl Kernel {
    /// 4 KiB pages of swap space that are in use.
    pub fn swap_used(&self) -> u64 {
        match self.paging() {
            Some(state) => state.swap_used.into(),
            None => self.swap.used(),
        }
    }

    /// Makes one page of the caller's partition leave memory.
    pub(super) fn reclaim(&mut self, c: Caller, actions: &mut Actions) -> Result<(), Stuck> {
        let process = self.process(c.process);
        let of = whose(process.partition);
        let set = self.allowed(process).and_then(|a| a.set().cloned());
        let Some(set) = set else {
            return Err(Stuck::NoVictim);
        };
        if self.drop_cached(c, &set, actions) {
            return Ok(());
        }
        match self.victim(of, &set, actions) {
            None => Err(Stuck::NoVictim),
            Some(Victim::Anon(process, vpn, frame)) => {
                self.swap_out(Caller { process, ..c }, vpn, frame, actions)
            }
            Some(Victim::File(process, vpn, frame, page)) => {
                self.charge_entry(process, vpn, frame, actions);
                self.unmap_page(process, vpn, c.core);
                self.forget_page(process, vpn, actions);
                self.put_frame(frame, c.core);
                self.objects.remove_page(page);
                self.put_frame(frame, c.core);
                self.count_drop(process);
                Ok(())
            }
        }
    }

    fn count_drop(&mut self, process: usize) {
        self.counters.file_drops += 1;
        self.usage_mut(process).file_drops += 1;
    }

    pub(super) fn is_in(&self, set: &ColorSet, frame: u32) -> bool {
        let frame = Pfn(u64::from(frame));
        self.colors
            .as_ref()
            .is_some_and(|c| set.contains(c.map.color(frame)))
    }

    /// Drops a clean page of a file that nobody maps.
    fn drop_cached(&mut self, c: Caller, set: &ColorSet, actions: &mut Actions) -> bool {
        for _ in 0..FILES_PER_SEARCH.min(self.objects.nr_queued()) {
            actions.instrs(self.config.costs.per_scan_instrs);
            let Some((page, frame)) = self.objects.oldest_clean() else {
                return false;
            };
            if self.meta.refs(frame) == 1 && self.is_in(set, frame) {
                self.objects.remove_page(page);
                self.put_frame(frame, c.core);
                self.count_drop(c.process);
                return true;
            }
            self.objects.requeue(page, frame);
        }
        false
    }

    /// Turns the clock until it finds a page that may go. Two whole rounds suffice:
    /// the first clears all access bits.
    fn victim(&mut self, of: Whose, set: &ColorSet, actions: &mut Actions) -> Option<Victim> {
        let members = self.members(of);
        let hand = self.swap.hands.get(&of).copied().unwrap_or_default();
        let mut place = members.iter().position(|m| *m >= hand.process).unwrap_or(0);
        let mut vpn = match members.get(place) {
            Some(m) if *m == hand.process => hand.vpn,
            _ => Vpn(0),
        };
        let (mut rounds, mut looked) = (0, 0u32);
        let found = loop {
            let number = *members.get(place)?;
            let Some((at, e, level)) = self.process(number).space.tables.next(vpn) else {
                vpn = Vpn(0);
                place += 1;
                if place == members.len() {
                    place = 0;
                    rounds += 1;
                }
                match rounds {
                    3 => break None,
                    _ => continue,
                }
            };
            vpn = Vpn(at.0 + 1);
            looked = looked.saturating_add(1);
            let Some(victim) = self.eligible(number, at, e, level, set) else {
                continue;
            };
            if e.has(Entry::ACCESSED) {
                let space = &mut self.process_mut(number).space;
                space.tables.update(at, e.without(Entry::ACCESSED));
                space.epoch = space.epoch.wrapping_add(1);
                continue;
            }
            break Some(victim);
        };
        actions.instrs(self.config.costs.per_scan_instrs.saturating_mul(looked));
        let process = members.get(place).copied().unwrap_or(0);
        self.swap.hands.insert(of, Hand { process, vpn });
        found
    }

    /// The page as a victim, if nothing but its access bit speaks against it.
    fn eligible(
        &self,
        process: usize,
        vpn: Vpn,
        e: Entry,
        level: u8,
        set: &ColorSet,
    ) -> Option<Victim> {
        let p = self.process(process);
        let frame = e.frame();
        let stays = level != 0 || e.has(Entry::ZERO) || p.recent.contains(&vpn);
        if stays || !self.is_in(set, frame) {
            return None;
        }
        if !e.has(Entry::CACHED) {
            return (self.meta.refs(frame) == 1).then_some(Victim::Anon(process, vpn, frame));
        }
        let area = p.space.areas.find(vpn).filter(|a| !a.shared)?;
        let page = area.page_behind(vpn)?;
        let is_cached = self.objects.get(page) == Some(frame) && self.meta.refs(frame) == 2;
        (is_cached && self.objects.is_clean(page.object))
            .then_some(Victim::File(process, vpn, frame, page))
    }

    /// Writes a page of a process to swap space; `c` is the core and task that do
    /// it, with the page's process.
    fn swap_out(
        &mut self,
        c: Caller,
        vpn: Vpn,
        frame: u32,
        actions: &mut Actions,
    ) -> Result<(), Stuck> {
        let Some(slot) = self.swap.take() else {
            return Err(Stuck::SwapFull);
        };
        self.charge(Path::SwapOut, c.core, Some(c.task), actions);
        self.charge_entry(c.process, vpn, frame, actions);
        self.unmap_page(c.process, vpn, c.core);
        self.forget_page(c.process, vpn, actions);
        actions.push(Action::SwapOut {
            frame: Pfn(u64::from(frame)),
            slot,
        });
        actions.push(Action::Wait(self.config.swap.write));
        self.put_frame(frame, c.core);
        self.process_mut(c.process).space.swapped.insert(vpn, slot);
        self.counters.swap_outs += 1;
        self.usage_mut(c.process).swap_outs += 1;
        Ok(())
    }

    /// Makes stale translations of a page that is gone disappear.
    fn forget_page(&mut self, process: usize, vpn: Vpn, actions: &mut Actions) {
        self.flush(process, &[(vpn, Entry::NONE, 0)], actions);
    }

    /// Reads a page back if it lies in swap space; false if it does not.
    pub(super) fn swap_in(&mut self, s: Site, actions: &mut Actions) -> Result<bool, KernelError> {
        let Some(slot) = self.process(s.process).space.swapped.get(&s.vpn).copied() else {
            return Ok(false);
        };
        let frame = self.user_frame(s, piebald_policy::contract::Cause::Fault, actions)?;
        self.charge(Path::SwapIn, s.core, Some(s.task), actions);
        actions.push(Action::SwapIn {
            frame: Pfn(u64::from(frame)),
            slot,
        });
        actions.push(Action::Wait(self.config.swap.read));
        let dirty = if s.write { Entry::DIRTY } else { 0 };
        let flags = Entry::WRITE | Entry::ACCESSED | dirty;
        self.map_or_put(s, Entry::new(frame, flags))?;
        self.process_mut(s.process).space.swapped.remove(&s.vpn);
        self.swap.put(slot);
        self.counters.swap_ins += 1;
        self.usage_mut(s.process).swap_ins += 1;
        Ok(true)
    }

    /// Gives up what a range of pages has in swap space.
    pub(super) fn drop_swapped(&mut self, c: Caller, first: Vpn, end: Vpn, actions: &mut Actions) {
        let swapped = &mut self.process_mut(c.process).space.swapped;
        if swapped.is_empty() {
            return;
        }
        let gone: Vec<(Vpn, u32)> = swapped.range(first..end).map(|(v, s)| (*v, *s)).collect();
        for (vpn, _) in &gone {
            swapped.remove(vpn);
        }
        for (_, slot) in gone {
            match self.is_paged() {
                true => self.put_id(slot, c.core, actions),
                false => self.swap.put(slot),
            }
        }
    }

    /// Moves what a range of pages has in swap space to other addresses.
    pub(super) fn move_swapped(&mut self, process: usize, first: Vpn, end: Vpn, to: Vpn) {
        let swapped = &mut self.process_mut(process).space.swapped;
        let moved: Vec<(Vpn, u32)> = swapped.range(first..end).map(|(v, s)| (*v, *s)).collect();
        for (vpn, _) in &moved {
            swapped.remove(vpn);
        }
        let shift = |v: Vpn| Vpn(v.0 - first.0 + to.0);
        swapped.extend(moved.into_iter().map(|(v, slot)| (shift(v), slot)));
    }

    /// A child shares its parent's pages in swap space.
    pub(super) fn share_swapped(&mut self, parent: usize, child: usize) {
        let swapped = self.process(parent).space.swapped.clone();
        for slot in swapped.values() {
            self.swap.share(*slot);
        }
        self.process_mut(child).space.swapped = swapped;
    }
}

/// Refuses swap space that would cost nothing or hold nothing.
pub(super) fn check(config: &SwapConfig) -> Result<(), KernelError> {
    let bad = |field, value, allowed| KernelError::Config {
        field,
        value,
        allowed,
    };
    let one = "at least 1 ps";
    match config {
        c if c.pages == 0 => Err(bad("swap.pages", 0, "1 to 4294967295")),
        c if c.read == Picos(0) => Err(bad("swap.read", 0, one)),
        c if c.write == Picos(0) => Err(bad("swap.write", 0, one)),
        _ => Ok(()),
    }
}
