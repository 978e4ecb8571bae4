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

mod ahead;
mod reads;
mod writes;

use std::collections::VecDeque;

use piebald_units::{
    Picos,
    block::{BlockDir, BlockReq},
};

use super::buffer::{Buffer, SegmentId};
use super::geometry::{Geometry, Stretch};
use super::mechanics::{Mechanics, Spot};
use super::spec::{BufferSpec, DiskSpec, OverheadSpec, Scheduling, ZonedSpec};
use super::timing::{DiskCounters, Timing};
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
    pub(in crate::disk) counters: DiskCounters,
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

    /// Lets the drive's own work come to `now`.
    pub fn settle(&mut self, now: Picos) {
        self.read_ahead_until(now);
        self.destage_until(now);
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
