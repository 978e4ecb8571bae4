//! Pages go out: victims of reclaim, write-back by share and by age.

use piebald_policy::contract::replacement::{PageRef, Replacement};
use piebald_units::{
    Lba, Picos, TaskId,
    block::{BlockDir, BlockPort, SECTORS_SHIFT},
};

use super::{
    super::{cache::flag, config::VictimWrites, key::Key, memory::Memory},
    FileHost,
    call::Progress,
};
use crate::io::Run;

/// The task in whose name the kernel writes.
const KERNEL: TaskId = TaskId(u32::MAX);

impl<P: Replacement, D: BlockPort> FileHost<P, D> {
    /// A page was written to by a program.
    pub(super) fn dirtied<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        key: Key,
        now: Picos,
    ) -> Progress {
        let Some(page) = self.cache.find(key) else {
            return Progress::Done;
        };
        if !self.cache.page(page).is(flag::DIRTY) {
            self.cache.set(page, flag::DIRTY);
            self.cache.set_dirty(page, true);
            self.dirty.add(key, now);
            self.arm(now);
        }
        self.balance(mem, now)
    }

    /// Starts write-back above the background share, and stops writers above the
    /// foreground share.
    fn balance<M: Memory + ?Sized>(&mut self, mem: &mut M, now: Picos) -> Progress {
        let wb = self.config.write_back;
        if self.dirty.len() > self.share(wb.background_permille) {
            self.dirty.flushing = true;
            self.pump(mem, now);
        }
        match self.above_foreground() {
            true => Progress::Throttled,
            false => Progress::Done,
        }
    }

    fn share(&self, permille: u32) -> u64 {
        u64::from(self.cache.capacity()) * u64::from(permille) / 1000
    }

    /// So many pages are dirty or being written that writers wait.
    pub(super) fn above_foreground(&self) -> bool {
        let unclean = self.dirty.len() + self.dirty.under_way;
        // With memory so small that no page may be dirty, writers write through.
        let allowed = self.share(self.config.write_back.foreground_permille);
        unclean > allowed && self.dirty.under_way > 0
    }

    /// The timer runs while something is dirty, at whole multiples of its period.
    fn arm(&mut self, now: Picos) {
        if self.wake.is_none() {
            let period = self.config.write_back.wake.0;
            let next = (now.0 / period).saturating_add(1).saturating_mul(period);
            self.wake = Some(Picos(next));
        }
    }

    /// The timer: files that have been dirty for long are written.
    pub(super) fn wake_write_back<M: Memory + ?Sized>(&mut self, mem: &mut M, now: Picos) {
        self.wake = None;
        self.dirty.expire(self.config.write_back.expire, now);
        self.pump(mem, now);
        if self.dirty.len() > 0 {
            self.arm(now);
        }
    }

    /// Writes back until nothing is left to do or the queue is congested.
    pub(super) fn pump<M: Memory + ?Sized>(&mut self, mem: &mut M, now: Picos) {
        let background = self.share(self.config.write_back.background_permille);
        while !self.queue.congested(BlockDir::Write) {
            self.dirty.flushing &= self.dirty.len() > background;
            let cache = &self.cache;
            let free = |key| {
                cache
                    .find(key)
                    .is_some_and(|p| !cache.page(p).is(flag::WRITEBACK))
            };
            let Some(first) = self.dirty.next(free) else {
                break;
            };
            self.write_from(mem, first, now);
        }
    }

    /// Writes a dirty page and those that follow it in the file and on the disk.
    fn write_from<M: Memory + ?Sized>(&mut self, mem: &mut M, first: Key, now: Picos) {
        let most = (self.config.io.max_sectors >> SECTORS_SHIFT) as usize;
        let mut units = std::mem::take(&mut self.run);
        let (mut start, mut next, mut key) = (Lba(0), None, first);
        while units.len() < most
            && let Some(page) = self.cache.writable(key)
        {
            let lba = self.cache.page(page).lba;
            if next.is_some_and(|next| next != lba) {
                break;
            }
            if units.is_empty() {
                start = lba;
            }
            units.push(page);
            next = Some(Lba(lba.0.saturating_add(1 << SECTORS_SHIFT)));
            key = key.next();
        }
        self.stats.written_back += units.len() as u64;
        self.write_out(mem, start, &units, now);
        units.clear();
        self.run = units;
    }

    /// Writes a dirty page of a file with those before and behind it, unless that
    /// was done already.
    fn write_around<M: Memory + ?Sized>(&mut self, mem: &mut M, page: PageRef, now: Picos) {
        if !self.cache.page(page).is_writable() {
            return;
        }
        let most = self.config.io.max_sectors >> SECTORS_SHIFT;
        let (mut first, mut at) = (page, *self.cache.page(page));
        for _ in 1..most {
            let before = at.key.before().and_then(|key| self.cache.writable(key));
            let Some(before) = before else { break };
            let p = *self.cache.page(before);
            if Lba(p.lba.0.saturating_add(1 << SECTORS_SHIFT)) != at.lba {
                break;
            }
            (first, at) = (before, p);
        }
        self.write_from(mem, self.cache.page(first).key, now);
    }

    /// Hands pages that follow one another to the queue.
    pub(super) fn write_out<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        lba: Lba,
        units: &[PageRef],
        now: Picos,
    ) {
        for &page in units {
            mem.unmap(page);
            mem.drained(page);
            let key = self.cache.page(page).key;
            self.cache.edit(page, |p| {
                p.flags = p.flags & !flag::DIRTY | flag::WRITEBACK;
            });
            self.dirty.remove(key);
            self.dirty.under_way += u64::from(!key.is_anon());
        }
        let run = Run {
            lba,
            units,
            dir: BlockDir::Write,
            task: KERNEL,
        };
        self.queue.submit(run, now);
    }

    /// Writes dirty pages that reclaim met, unless the queue is congested. They leave
    /// when that is over.
    pub(super) fn write_victims<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        victims: &[PageRef],
        now: Picos,
    ) {
        for &page in victims {
            if self.queue.congested(BlockDir::Write) {
                break;
            }
            let p = *self.cache.page(page);
            if !p.key.is_anon() && self.config.write_back.victims == VictimWrites::Run {
                self.stats.victims_written += 1;
                self.write_around(mem, page, now);
                self.cache.launder(page);
                continue;
            }
            let lba = match p.key.is_anon() {
                false => p.lba,
                true => match self.swap_place(page, p.key) {
                    Some(lba) => lba,
                    None => continue,
                },
            };
            match p.key.is_anon() {
                true => self.stats.swap_outs += 1,
                false => self.stats.victims_written += 1,
            }
            self.write_out(mem, lba, &[page], now);
            self.cache.launder(page);
        }
    }
}
