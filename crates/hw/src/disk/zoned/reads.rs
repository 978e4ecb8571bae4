//! Reads: from the buffer, from what is being read ahead, from the medium.

use piebald_units::{Picos, block::BlockDir};

use super::{Ahead, Zoned};
use crate::disk::buffer::{Kind, SegmentId};
use crate::disk::mechanics::{Access, Run};
use crate::disk::timing::{Hit, Timing};

impl Zoned {
    pub(super) fn read(&mut self, lba: u64, end: u64, now: Picos) -> Timing {
        if self.ahead.is_some_and(|a| self.may_bring(&a, lba)) {
            self.read_ahead_until(now);
        }
        self.destage_until(now);
        if let Some(timing) = self.read_behind_ahead(lba, end, now) {
            return timing;
        }
        match self.buffer.find(lba, self.rules.hits_on_writes) {
            Some((id, held)) if held >= end => self.read_held(id, end - lba, end, now),
            Some((id, held)) => self.read_rest(id, (lba, held, end), now),
            None => self.read_medium(lba, end, now),
        }
    }

    /// Whether reading ahead may have brought a block or will bring it.
    pub(super) fn may_bring(&self, ahead: &Ahead, lba: u64) -> bool {
        let (start, _) = self.buffer.span(ahead.segment);
        let first = ahead.front.map_or(start, |front| front.min(start));
        (first..ahead.stop).contains(&lba)
    }

    /// All blocks are in the buffer; the arm is not needed.
    pub(super) fn read_held(&mut self, id: SegmentId, blocks: u64, end: u64, now: Picos) -> Timing {
        let overhead = self.overhead(BlockDir::Read, true);
        self.taken(id, end);
        self.move_stop(id, end - blocks, end);
        Timing {
            start: now,
            done: now + overhead + self.bus_time(blocks),
            overhead,
            hit: Hit::Full,
            ..Timing::default()
        }
    }

    /// Reading ahead is under way and will bring the blocks.
    pub(super) fn read_behind_ahead(&mut self, lba: u64, end: u64, now: Picos) -> Option<Timing> {
        let ahead = self.ahead?;
        let held = self.buffer.span(ahead.segment).0;
        let running = ahead.next < ahead.stop && held <= lba && lba < ahead.stop;
        if !running || end <= ahead.next {
            return None;
        }
        let missing = end - lba.max(ahead.next);
        self.set_stop(ahead.stop.max(end));
        let overhead = self.overhead(BlockDir::Read, true);
        let first = self.read_ahead_to(end - missing + 1);
        let last = self.read_ahead_to(end);
        let streamed = (first + self.bus_time(missing)).max(last + self.bus);
        self.taken(ahead.segment, end);
        self.move_stop(ahead.segment, lba, end);
        Some(Timing {
            start: now,
            done: streamed.max(now + overhead + self.bus_time(end - lba)),
            overhead,
            hit: Hit::Partial,
            ..Timing::default()
        })
    }

    /// The buffer holds the blocks up to `held`; the rest comes from the medium.
    pub(super) fn read_rest(&mut self, id: SegmentId, run: (u64, u64, u64), now: Picos) -> Timing {
        let (lba, held, end) = run;
        self.flush(held, end);
        let overhead = self.overhead(BlockDir::Read, false);
        let access = self.access(held, end - held, now + overhead, false);
        self.buffer.extend(id, end);
        self.taken(id, end);
        self.start_ahead(id, lba, end, &access);
        let front = now + overhead + self.bus_time(end - lba);
        let rest = self.streamed(&access, end - held);
        self.read_timing(now, overhead, &access, front.max(rest), Hit::Partial)
    }

    pub(super) fn read_medium(&mut self, lba: u64, end: u64, now: Picos) -> Timing {
        self.flush(lba, end);
        let overhead = self.overhead(BlockDir::Read, false);
        let access = self.access(lba, end - lba, now + overhead, false);
        let start = match self.rules.read_on_arrival {
            true => self.arrival(lba, access.rotation),
            false => lba,
        };
        if let Some(id) = self.buffer.take(Kind::Read, start, end) {
            self.taken(id, end);
            self.start_ahead(id, lba, end, &access);
        }
        let done = self.streamed(&access, end - lba);
        self.read_timing(now, overhead, &access, done, Hit::Miss)
    }

    /// First block that passed under the head while `lba` was waited for: the
    /// head came to the track in front of it, or behind it and has seen the
    /// track from its start.
    pub(super) fn arrival(&self, lba: u64, rotation: Picos) -> u64 {
        let place = self.map.place(lba);
        let passed = self.mechanics.sectors_in(place, rotation);
        let start = self.map.track_start(lba);
        start.max(lba.saturating_sub(passed))
    }

    /// When the last of so many sectors has passed the bus, each after it has
    /// been read.
    pub(super) fn streamed(&self, access: &Access, sectors: u64) -> Picos {
        (access.first + self.bus_time(sectors)).max(access.end + self.bus)
    }

    pub(super) fn read_timing(
        &self,
        now: Picos,
        overhead: Picos,
        access: &Access,
        done: Picos,
        hit: Hit,
    ) -> Timing {
        let moved = access.begin.since(access.seek + access.rotation);
        Timing {
            start: now,
            done,
            overhead,
            wait: moved.since(now + overhead),
            seek: access.seek,
            rotation: access.rotation,
            hit,
            ..Timing::default()
        }
    }

    /// The host has taken what lies before `end`.
    pub(super) fn taken(&mut self, id: SegmentId, end: u64) {
        let keep = match self.rules.keep_requested {
            true => 0,
            false => end,
        };
        self.buffer.touch(id, keep);
    }

    /// Uses the arm at `at` or when it is free, and leaves it at the end.
    pub(super) fn access(&mut self, lba: u64, blocks: u64, at: Picos, write: bool) -> Access {
        self.stop_ahead(at);
        let run = Run {
            lba,
            blocks,
            write,
            busy_until: self.free,
        };
        let access = self.mechanics.run(&self.map, self.spot, at, run);
        self.spot = access.spot;
        self.free = access.end;
        access
    }
}
