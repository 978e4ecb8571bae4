//! Writes: into the buffer, and from there to the medium.

use piebald_units::{Picos, block::BlockDir};

use super::{Dirty, Zoned};
use crate::disk::spec::Scheduling;
use crate::disk::timing::{Hit, Timing};

impl Zoned {
    pub(super) fn write(&mut self, lba: u64, end: u64, now: Picos) -> Timing {
        self.stop_ahead(now);
        self.destage_until(now);
        let blocks = end - lba;
        let room = u64::from(self.rules.write_segments) * self.buffer.segment_size();
        if !self.rules.write_back || blocks > room {
            return self.write_through(lba, end, now);
        }
        let free = self.make_room(lba, blocks, now);
        let overhead = self.overhead(BlockDir::Write, free <= now);
        let wait = free.since(now);
        let start = now + wait + overhead;
        let done = start + self.bus_time(blocks);
        self.buffer.write(lba, end);
        self.add_dirty(lba, end, start, done);
        Timing {
            start: now,
            done,
            overhead,
            wait,
            hit: Hit::Buffered,
            ..Timing::default()
        }
    }

    pub(super) fn write_through(&mut self, lba: u64, end: u64, now: Picos) -> Timing {
        let overhead = self.overhead(BlockDir::Write, false);
        // What is older goes first: it may hold the same blocks.
        self.destage_until(Picos::MAX);
        self.buffer.write(lba, end);
        let access = self.access(lba, end - lba, now + overhead, true);
        let done = access.end.max(access.first + self.bus_time(end - lba));
        self.read_timing(now, overhead, &access, done, Hit::Miss)
    }

    pub(super) fn add_dirty(&mut self, lba: u64, end: u64, ready: Picos, filled: Picos) {
        match self.dirty.back_mut() {
            Some(last) if last.end == lba => {
                last.end = end;
                last.filled = filled;
            }
            _ => self.dirty.push_back(Dirty {
                lba,
                end,
                ready,
                filled,
            }),
        }
    }

    /// When the buffer has room for a write: a segment for a new run, and blocks.
    pub(super) fn make_room(&mut self, lba: u64, blocks: u64, now: Picos) -> Picos {
        let segments = self.rules.write_segments as usize;
        let room = segments as u64 * self.buffer.segment_size();
        let mut at = now;
        loop {
            let leaving = self.leaving.filter(|l| l.1 > at);
            let held: u64 = self.dirty.iter().map(|d| d.end - d.lba).sum();
            let held = held + leaving.map_or(0, |l| l.0);
            let appends = self.dirty.back().is_some_and(|d| d.end == lba);
            let runs = self.dirty.len() + usize::from(leaving.is_some());
            if held + blocks <= room && (appends || runs < segments) {
                return at;
            }
            match leaving {
                Some((_, end)) => at = end,
                None => self.destage_next(),
            }
        }
    }

    /// Puts buffered writes on the platters as far as they begin before `time`.
    pub(super) fn destage_until(&mut self, time: Picos) {
        while let Some(first) = self.dirty.front() {
            if first.ready.max(self.free) >= time {
                return;
            }
            self.destage_next();
        }
    }

    /// Buffered writes of blocks that are about to be read go out first.
    pub(super) fn flush(&mut self, lba: u64, end: u64) {
        if self.dirty.iter().any(|d| d.lba < end && lba < d.end) {
            self.destage_until(Picos::MAX);
        }
    }

    /// Puts the next run of buffered writes on the platters.
    pub(super) fn destage_next(&mut self) {
        let at = self.next_dirty();
        let Some(run) = self.dirty.remove(at) else {
            return;
        };
        let blocks = run.end - run.lba;
        // The first sector passes no earlier than lets the last be there in time.
        let place = self.map.place(run.lba);
        let lead = self.mechanics.pass(place, blocks);
        let travel = self.mechanics.travel(self.spot, place.into(), true);
        let start = run.ready.max(self.free);
        let filled = Picos(run.filled.0.saturating_sub(lead.0 + travel.0));
        let access = self.access(run.lba, blocks, start.max(filled), true);
        self.leaving = Some((blocks, access.end));
        self.counters.destages += 1;
        self.counters.destage += access.end.since(start);
    }

    pub(super) fn next_dirty(&self) -> usize {
        if self.order == Scheduling::Fcfs {
            return 0;
        }
        let cost = |d: &Dirty| self.reach(d.lba, d.ready, true);
        let near = self.dirty.iter().enumerate().min_by_key(|(_, d)| cost(d));
        near.map_or(0, |(at, _)| at)
    }
}
