//! What a request cost, and the sums over all requests.

use piebald_units::{Picos, block::BlockDir};

/// What the drive's buffer did for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Hit {
    /// Nothing: the medium was accessed.
    #[default]
    Miss,
    /// It held the first blocks of a read, or all of them came by the reading
    /// ahead that was under way.
    Partial,
    /// It held all blocks of a read.
    Full,
    /// It took a write.
    Buffered,
}

/// What a request cost. The parts add up to `done - start`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// When the drive began with it.
    pub start: Picos,
    /// When it was done as the host sees it.
    pub done: Picos,
    /// Command overhead.
    pub overhead: Picos,
    /// Wait for work of the drive's own: buffered writes on their way out.
    pub wait: Picos,
    /// Movement of the arm before the first sector.
    pub seek: Picos,
    /// Wait for the first sector.
    pub rotation: Picos,
    /// The rest: sectors on the medium and on the bus.
    pub transfer: Picos,
    /// What the buffer did.
    pub hit: Hit,
}

impl Timing {
    /// Fills `transfer` with what the other parts leave of the time.
    pub(super) fn closed(mut self) -> Self {
        let parts = self.overhead + self.wait + self.seek + self.rotation;
        self.transfer = self.done.since(self.start + parts);
        self
    }
}

/// Sums over all requests that a disk has served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounters {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Sectors read by the host.
    pub sectors_read: u64,
    /// Sectors written by the host.
    pub sectors_written: u64,
    /// Reads that the buffer served in full.
    pub full_hits: u64,
    /// Reads that it served in part, or that came by reading ahead.
    pub partial_hits: u64,
    /// Writes that the buffer took.
    pub buffered_writes: u64,
    /// Requests that were cut to the disk's size.
    pub cut: u64,
    /// Command overheads.
    pub overhead: Picos,
    /// Waits for the drive's own work.
    pub wait: Picos,
    /// Seeks of requests; those of buffered writes are in `destage`.
    pub seek: Picos,
    /// Rotational waits of requests.
    pub rotation: Picos,
    /// Transfers of requests.
    pub transfer: Picos,
    /// Time from start to done of all requests.
    pub service: Picos,
    /// Runs of buffered writes that were put on the medium.
    pub destages: u64,
    /// Time of arm and head that these took.
    pub destage: Picos,
    /// Sectors read ahead.
    pub read_ahead: u64,
}

impl DiskCounters {
    /// Adds a request of so many sectors.
    pub(super) fn add(&mut self, dir: BlockDir, sectors: u32, timing: &Timing) {
        match dir {
            BlockDir::Read => {
                self.reads += 1;
                self.sectors_read += u64::from(sectors);
            }
            BlockDir::Write => {
                self.writes += 1;
                self.sectors_written += u64::from(sectors);
            }
        }
        match timing.hit {
            Hit::Miss => {}
            Hit::Full => self.full_hits += 1,
            Hit::Partial => self.partial_hits += 1,
            Hit::Buffered => self.buffered_writes += 1,
        }
        self.overhead += timing.overhead;
        self.wait += timing.wait;
        self.seek += timing.seek;
        self.rotation += timing.rotation;
        self.transfer += timing.transfer;
        self.service += timing.done.since(timing.start);
    }
}
