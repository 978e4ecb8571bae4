//! Time goes on: completions, timers, and who wakes.

use std::cmp::Reverse;

use piebald_policy::contract::replacement::{Gone, PageRef, Replacement};
use piebald_units::{
    Picos,
    block::{BlockDir, BlockPort},
};

use super::{
    super::{
        cache::flag,
        error::FileError,
        memory::{Memory, Unbound},
    },
    FileHost, Woken,
};
use crate::io::Done;

impl<P: Replacement, D: BlockPort> FileHost<P, D> {
    /// When something happens next without a call: the disk completes a request, a
    /// timer ends, a call goes on. `None` if nothing will.
    pub fn next_event(&self) -> Option<Picos> {
        let going_on = self.going_on.peek().map(|Reverse((at, ..))| *at);
        let events = [self.queue.next_event(), going_on, self.wake];
        events.into_iter().flatten().min()
    }

    /// Carries out all events up to `now`, in the order of time, and names the
    /// tasks whose calls are done. To keep tasks in step, call it with the time of
    /// the [next event](Self::next_event), before any task that is ready later goes
    /// on.
    ///
    /// # Errors
    /// `now` is before the host's clock.
    pub fn advance(&mut self, now: Picos) -> Result<Vec<Woken>, FileError> {
        self.advance_in(&mut Unbound, now)
    }

    /// As [`advance`](Self::advance), with the pages in `mem`.
    ///
    /// # Errors
    /// `now` is before the host's clock.
    pub fn advance_in<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        now: Picos,
    ) -> Result<Vec<Woken>, FileError> {
        if now < self.clock {
            let clock = self.clock;
            return Err(FileError::TimeBackwards { now, clock });
        }
        let mut woken = Vec::new();
        while let Some(at) = self.next_event().filter(|&at| at <= now) {
            self.clock = self.clock.max(at);
            self.event(mem, self.clock, &mut woken);
        }
        self.clock = now;
        Ok(woken)
    }

    fn event<M: Memory + ?Sized>(&mut self, mem: &mut M, now: Picos, woken: &mut Vec<Woken>) {
        let mut done = std::mem::take(&mut self.done);
        self.queue.poll(now, &mut done);
        self.complete(mem, &done, now, woken);
        let completed = !done.is_empty();
        done.clear();
        self.done = done;
        if self.wake.is_some_and(|at| at <= now) {
            self.wake_write_back(mem, now);
        }
        while let Some(&Reverse((at, _, task))) = self.going_on.peek()
            && at <= now
        {
            self.going_on.pop();
            self.resume(mem, task, now, woken);
        }
        if completed {
            self.pump(mem, now);
            self.retry(mem, now, woken);
        }
    }

    /// All pages of the completed requests change state before anybody wakes.
    fn complete<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        done: &[Done<PageRef>],
        now: Picos,
        woken: &mut Vec<Woken>,
    ) {
        for d in done {
            match d.dir {
                BlockDir::Read => {
                    self.cache.clear(d.unit, flag::LOCKED);
                    mem.filled(d.unit);
                }
                BlockDir::Write => self.written(mem, d.unit),
            }
        }
        for d in done.iter().filter(|d| d.dir == BlockDir::Read) {
            let waiters = self.page_waiters.remove(&d.unit.0).unwrap_or_default();
            for task in waiters {
                self.resume(mem, task, now, woken);
            }
            self.bury(mem, d.unit);
        }
    }

    /// A page was written. If it was to leave and nobody needs it, it does.
    fn written<M: Memory + ?Sized>(&mut self, mem: &mut M, page: PageRef) {
        self.cache.clear(page, flag::WRITEBACK);
        let p = *self.cache.page(page);
        self.dirty.under_way -= u64::from(!p.key.is_anon());
        if !p.is(flag::DIRTY | flag::DOOMED) {
            self.cache.set_dirty(page, false);
        }
        if p.is(flag::DOOMED) {
            self.bury(mem, page);
        } else if p.is(flag::LAUNDERED) && !p.is(flag::DIRTY) && p.pins == 0 && mem.may_go(page) {
            self.evict(mem, page);
        } else {
            self.cache.keep(page);
        }
    }

    /// A page that was deleted while it was under I/O leaves.
    fn bury<M: Memory + ?Sized>(&mut self, mem: &mut M, page: PageRef) {
        let p = *self.cache.page(page);
        let free = !p.is(flag::LOCKED | flag::WRITEBACK) && p.pins == 0;
        if p.is(flag::RESIDENT) && p.is(flag::DOOMED) && free {
            self.cache.forget(page, Gone::Deleted);
            mem.left(page);
        }
    }

    /// A task's call goes on. The page that it waited for stays until it had it.
    fn resume<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        task: u32,
        now: Picos,
        woken: &mut Vec<Woken>,
    ) {
        let call = self.tasks[task as usize].call.as_mut();
        let held = call.and_then(|call| call.waits.take());
        if let Some(at) = self.go_on(mem, task, now) {
            let task = self.tasks[task as usize].id;
            woken.push(Woken { task, at });
        }
        if let Some(page) = held {
            self.cache.unpin(page);
        }
    }

    /// Calls that wait for memory or for writers to be let on try again.
    fn retry<M: Memory + ?Sized>(&mut self, mem: &mut M, now: Picos, woken: &mut Vec<Woken>) {
        for task in std::mem::take(&mut self.memory_waiters) {
            self.resume(mem, task, now, woken);
        }
        if !self.above_foreground() {
            for task in std::mem::take(&mut self.throttled) {
                self.resume(mem, task, now, woken);
            }
        }
    }
}
