//! A drive with rotating platters: command by command, with the drive's own work
//! in between.
//!
//! [`Zoned::service`] takes one command after the other. What the drive does of
//! its own between commands (reading ahead, putting buffered writes on the
//! platters) is worked out when the next command arrives: it depends on nothing
//! but the time that has passed.
//!
//! Readings of the parameters, where the published names leave room:
//!
//! * a write is a "hit", with the shorter overhead, if the buffer takes it
//!   without waiting; the measured traces show the shorter ones for all writes;
//! * buffered writes start for the platters as soon as the arm is free, before
//!   anything else that the drive does of its own, and are not interrupted;
//! * sectors go to the host as they are read, at the slower of medium and bus;
//! * reading ahead stops at a sector's end when a command needs the arm;
//! * an access that finds the arm at rest takes at least `least_access`, which is
//!   no published parameter: the traces show it (see `docs/disks.md`).

use std::collections::VecDeque;

use piebald_units::{
    Picos,
    block::{BlockDir, BlockReq},
};

use super::buffer::{Buffer, Kind, SegmentId};
use super::geometry::{Geometry, Stretch};
use super::mechanics::{Access, Mechanics, Run, Spot};
use super::spec::{BufferSpec, DiskSpec, OverheadSpec, ReadAhead, Scheduling, ZonedSpec};
use super::timing::{DiskCounters, Hit, Timing};
use crate::SpecError;

/// Reading ahead that is under way or has come to its end.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    segment: SegmentId,
    /// Next block to read.
    next: u64,
    /// Block at which it ends.
    stop: u64,
    /// When the head is behind the last block read.
    at: Picos,
    /// First block of the track, if what lies before the request is read last.
    front: Option<u64>,
    /// Where `next` lies, if it has been looked up.
    place: Option<Stretch>,
}

/// Blocks of writes that are in the buffer alone.
#[derive(Clone, Copy, Debug)]
struct Dirty {
    lba: u64,
    end: u64,
    /// When the drive may move for it.
    ready: Picos,
    /// When its last block is in the buffer.
    filled: Picos,
}

/// A drive with rotating platters.
#[derive(Clone, Debug)]
pub struct Zoned {
    map: Geometry,
    mechanics: Mechanics,
    buffer: Buffer,
    rules: BufferSpec,
    overheads: OverheadSpec,
    bus: Picos,
    order: Scheduling,
    spot: Spot,
    /// When arm and head are free.
    free: Picos,
    ahead: Option<Ahead>,
    dirty: VecDeque<Dirty>,
    /// The writes that the arm is busy with hold their blocks until then.
    leaving: Option<(u64, Picos)>,
    last: BlockDir,
    pub(super) counters: DiskCounters,
}

impl Zoned {
    /// Builds a drive whose description has been checked. The arm starts over
    /// cylinder 0, and time 0 has the index mark under the heads.
    ///
    /// # Errors
    /// If zones, spares and capacity contradict one another.
    pub fn new(spec: &DiskSpec, zoned: &ZonedSpec) -> Result<Self, SpecError> {
        let b = zoned.buffer;
        Ok(Self {
            map: Geometry::new(spec, zoned)?,
            mechanics: Mechanics::new(&zoned.mechanics, zoned.cylinders),
            buffer: Buffer::new(b.segments, b.segment_sectors, b.write_segments),
            rules: b,
            overheads: zoned.overheads,
            bus: zoned.bus.sector,
            order: spec.queue.scheduling,
            spot: Spot::default(),
            free: Picos(0),
            ahead: None,
            dirty: VecDeque::new(),
            leaving: None,
            last: BlockDir::Read,
            counters: DiskCounters::default(),
        })
    }

    /// The map from blocks to places.
    pub fn map(&self) -> &Geometry {
        &self.map
    }

    /// Arm and spindle.
    pub fn mechanics(&self) -> &Mechanics {
        &self.mechanics
    }

    /// Serves one command; commands come in rising time, each after the one
    /// before is done. The run lies inside the disk.
    pub fn service(&mut self, req: BlockReq, now: Picos) -> Timing {
        let (lba, end) = (req.lba.0, req.lba.0 + u64::from(req.sectors));
        let timing = match req.dir {
            BlockDir::Read => self.read(lba, end, now),
            BlockDir::Write => self.write(lba, end, now),
        };
        self.last = req.dir;
        let timing = timing.closed();
        self.counters.add(req.dir, req.sectors, &timing);
        timing
    }

    /// Time of arm and platter before a command's first sector, if it were next:
    /// what [`Scheduling::Sptf`] sorts by. 0 if the buffer serves it.
    pub fn positioning(&self, req: BlockReq, now: Picos) -> Picos {
        let lba = req.lba.0;
        let write = req.dir == BlockDir::Write;
        if write && self.rules.write_back && self.rules.segments > 0 {
            return Picos(0);
        }
        let coming = |a: &Ahead| a.next <= lba && lba < a.stop;
        let held = self.buffer.find(lba, self.rules.hits_on_writes).is_some();
        if !write && (held || self.ahead.as_ref().is_some_and(coming)) {
            return Picos(0);
        }
        self.reach(lba, now, write).since(now)
    }

    /// When the first sector of a block would begin to pass, were it next.
    fn reach(&self, lba: u64, at: Picos, write: bool) -> Picos {
        let piece = self.map.piece(lba, 1);
        let access = match at > self.free {
            true => self.mechanics.piece_from_rest(self.spot, at, &piece, write),
            false => self.mechanics.piece(self.spot, self.free, &piece, write),
        };
        access.begin
    }

    fn bus_time(&self, sectors: u64) -> Picos {
        Picos(self.bus.0.saturating_mul(sectors))
    }

    fn overhead(&self, dir: BlockDir, hit: bool) -> Picos {
        let o = &self.overheads;
        match (dir, hit, self.last) {
            (BlockDir::Read, true, BlockDir::Read) => o.read_hit_after_read,
            (BlockDir::Read, true, BlockDir::Write) => o.read_hit_after_write,
            (BlockDir::Read, false, BlockDir::Read) => o.read_miss_after_read,
            (BlockDir::Read, false, BlockDir::Write) => o.read_miss_after_write,
            (BlockDir::Write, true, BlockDir::Read) => o.write_hit_after_read,
            (BlockDir::Write, true, BlockDir::Write) => o.write_hit_after_write,
            (BlockDir::Write, false, BlockDir::Read) => o.write_miss_after_read,
            (BlockDir::Write, false, BlockDir::Write) => o.write_miss_after_write,
        }
    }

    // --- reads ---

    fn read(&mut self, lba: u64, end: u64, now: Picos) -> Timing {
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
    fn may_bring(&self, ahead: &Ahead, lba: u64) -> bool {
        let (start, _) = self.buffer.span(ahead.segment);
        let first = ahead.front.map_or(start, |front| front.min(start));
        (first..ahead.stop).contains(&lba)
    }

    /// All blocks are in the buffer; the arm is not needed.
    fn read_held(&mut self, id: SegmentId, blocks: u64, end: u64, now: Picos) -> Timing {
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
    fn read_behind_ahead(&mut self, lba: u64, end: u64, now: Picos) -> Option<Timing> {
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
    fn read_rest(&mut self, id: SegmentId, run: (u64, u64, u64), now: Picos) -> Timing {
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

    fn read_medium(&mut self, lba: u64, end: u64, now: Picos) -> Timing {
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
    fn arrival(&self, lba: u64, rotation: Picos) -> u64 {
        let place = self.map.place(lba);
        let passed = self.mechanics.sectors_in(place, rotation);
        let start = self.map.track_start(lba);
        start.max(lba.saturating_sub(passed))
    }

    /// When the last of so many sectors has passed the bus, each after it has
    /// been read.
    fn streamed(&self, access: &Access, sectors: u64) -> Picos {
        (access.first + self.bus_time(sectors)).max(access.end + self.bus)
    }

    fn read_timing(
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
    fn taken(&mut self, id: SegmentId, end: u64) {
        let keep = match self.rules.keep_requested {
            true => 0,
            false => end,
        };
        self.buffer.touch(id, keep);
    }

    /// Uses the arm at `at` or when it is free, and leaves it at the end.
    fn access(&mut self, lba: u64, blocks: u64, at: Picos, write: bool) -> Access {
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

    // --- reading ahead ---

    fn start_ahead(&mut self, segment: SegmentId, lba: u64, end: u64, access: &Access) {
        if !self.dirty.is_empty() {
            return;
        }
        let stop = self.ahead_stop(lba, end, access.rest.as_ref());
        self.ahead = Some(Ahead {
            segment,
            next: end,
            stop,
            at: access.end,
            place: access.rest,
            front: match self.rules.read_ahead {
                ReadAhead::WholeTrack => Some(self.map.track_start(end - 1)),
                _ => None,
            },
        });
    }

    /// Where reading ahead ends after a request for `lba..end`; `rest` is what
    /// follows the request on its track, if known.
    fn ahead_stop(&self, lba: u64, end: u64, rest: Option<&Stretch>) -> u64 {
        let track_end = || rest.map_or_else(|| self.map.track_end(end - 1), |r| r.end);
        let track = match self.rules.read_ahead {
            ReadAhead::Off => end,
            ReadAhead::TrackEnd | ReadAhead::WholeTrack => track_end(),
            ReadAhead::NextTrackEnd => {
                let next = track_end().min(self.map.capacity() - 1);
                self.map.track_end(next)
            }
            ReadAhead::SegmentFull => u64::MAX,
        };
        let limit = end + u64::from(self.rules.read_ahead_limit);
        let full = match self.rules.keep_requested {
            true => lba + self.buffer.segment_size(),
            false => end + self.buffer.segment_size(),
        };
        let stop = track.min(limit).min(full).min(self.map.capacity());
        stop.max(end)
    }

    fn set_stop(&mut self, stop: u64) {
        if let Some(ahead) = &mut self.ahead {
            ahead.stop = stop;
        }
    }

    /// A hit lets reading ahead that still runs go on behind it; what has come
    /// to its end stays there.
    fn move_stop(&mut self, id: SegmentId, lba: u64, end: u64) {
        let Some(ahead) = self.ahead.filter(|a| a.segment == id) else {
            return;
        };
        if ahead.next < ahead.stop {
            let stop = self.ahead_stop(lba, end, None);
            self.set_stop(stop.max(ahead.stop));
        }
    }

    /// Where the next block to read ahead lies.
    fn ahead_place(&self, ahead: &Ahead) -> Stretch {
        ahead.place.unwrap_or_else(|| self.map.stretch(ahead.next))
    }

    /// Reads ahead as far as it gets by `time`, in whole sectors. Says whether a
    /// sector is under the head then.
    fn read_ahead_until(&mut self, time: Picos) -> bool {
        while let Some(ahead) = self.ahead.filter(|a| a.next < a.stop && a.at < time) {
            let stretch = self.ahead_place(&ahead);
            let piece = self.map.cut(&stretch, ahead.stop - ahead.next);
            let access = self.mechanics.piece(self.spot, ahead.at, &piece, false);
            if access.end <= time {
                self.note_ahead(&stretch, u64::from(piece.blocks), &access, access.end);
                continue;
            }
            let passed = time.since(access.begin);
            let sectors = self.mechanics.sectors_in(piece.place, passed);
            let end = access.begin + self.mechanics.pass(piece.place, sectors);
            let blocks = self.map.blocks_within(&stretch, sectors);
            if blocks > 0 {
                self.note_ahead(&stretch, blocks, &access, end);
            }
            return time > access.begin;
        }
        self.read_front_until(time);
        false
    }

    /// Reads the front of the track once its end is read, all of it or none.
    fn read_front_until(&mut self, time: Picos) {
        let Some(ahead) = self.ahead.filter(|a| a.next == a.stop && a.at < time) else {
            return;
        };
        let (start, _) = self.buffer.span(ahead.segment);
        let Some(front) = ahead.front.filter(|front| *front < start) else {
            return;
        };
        let piece = self.map.piece(front, start - front);
        let access = self.mechanics.piece(self.spot, ahead.at, &piece, false);
        // A request over several tracks starts before the last one's front.
        if access.end <= time && u64::from(piece.blocks) == start - front {
            self.buffer.prepend(ahead.segment, front);
            self.counters.read_ahead += start - front;
            self.free = self.free.max(access.end);
            self.ahead = None;
        }
    }

    /// Reads ahead until `end` is read, and says when that is.
    fn read_ahead_to(&mut self, end: u64) -> Picos {
        while let Some(ahead) = self.ahead.filter(|a| a.next < end) {
            let stretch = self.ahead_place(&ahead);
            let piece = self.map.cut(&stretch, end - ahead.next);
            let access = self.mechanics.piece(self.spot, ahead.at, &piece, false);
            self.note_ahead(&stretch, u64::from(piece.blocks), &access, access.end);
        }
        self.ahead.map_or(Picos(0), |a| a.at)
    }

    fn note_ahead(&mut self, from: &Stretch, blocks: u64, access: &Access, at: Picos) {
        let Some(ahead) = &mut self.ahead else { return };
        ahead.next += blocks;
        ahead.at = at;
        ahead.place = self.map.rest(from, blocks);
        self.buffer.extend(ahead.segment, ahead.next);
        self.counters.read_ahead += blocks;
        self.spot = access.spot;
        self.free = self.free.max(at);
    }

    /// Ends reading ahead at `time`: the arm is wanted elsewhere.
    fn stop_ahead(&mut self, time: Picos) {
        if self.read_ahead_until(time)
            && let Some(ahead) = self.ahead
        {
            // The sector under the head is read to its end.
            self.read_ahead_to(ahead.next + 1);
        }
        self.ahead = None;
    }

    // --- writes ---

    fn write(&mut self, lba: u64, end: u64, now: Picos) -> Timing {
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

    fn write_through(&mut self, lba: u64, end: u64, now: Picos) -> Timing {
        let overhead = self.overhead(BlockDir::Write, false);
        // What is older goes first: it may hold the same blocks.
        self.destage_until(Picos::MAX);
        self.buffer.write(lba, end);
        let access = self.access(lba, end - lba, now + overhead, true);
        let done = access.end.max(access.first + self.bus_time(end - lba));
        self.read_timing(now, overhead, &access, done, Hit::Miss)
    }

    fn add_dirty(&mut self, lba: u64, end: u64, ready: Picos, filled: Picos) {
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
    fn make_room(&mut self, lba: u64, blocks: u64, now: Picos) -> Picos {
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
    fn destage_until(&mut self, time: Picos) {
        while let Some(first) = self.dirty.front() {
            if first.ready.max(self.free) >= time {
                return;
            }
            self.destage_next();
        }
    }

    /// Buffered writes of blocks that are about to be read go out first.
    fn flush(&mut self, lba: u64, end: u64) {
        if self.dirty.iter().any(|d| d.lba < end && lba < d.end) {
            self.destage_until(Picos::MAX);
        }
    }

    /// Puts the next run of buffered writes on the platters.
    fn destage_next(&mut self) {
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

    fn next_dirty(&self) -> usize {
        if self.order == Scheduling::Fcfs {
            return 0;
        }
        let cost = |d: &Dirty| self.reach(d.lba, d.ready, true);
        let near = self.dirty.iter().enumerate().min_by_key(|(_, d)| cost(d));
        near.map_or(0, |(at, _)| at)
    }

    /// Checks what must hold between commands.
    ///
    /// # Errors
    /// What is broken.
    pub fn validate(&self) -> Result<(), String> {
        self.buffer.validate()?;
        let held: u64 = self.dirty.iter().map(|d| d.end - d.lba).sum();
        let room = u64::from(self.rules.write_segments) * self.buffer.segment_size();
        if held > room {
            return Err(format!("{held} blocks wait to be written, room for {room}"));
        }
        if let Some(a) = self.ahead.filter(|a| a.next > a.stop) {
            return Err(format!("read ahead to {} beyond {}", a.next, a.stop));
        }
        Ok(())
    }
}
