//! Configuration of the queue: every threshold, and presets by kernel version.

use piebald_units::Picos;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Which request goes to the disk next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheduler {
    /// First come, first served, after merging.
    Noop,
    /// Deadline as in 2.6.11: one-way elevator from the lowest sector; a batch ends
    /// at the first request that does not continue the one before.
    Deadline2_6_11,
    /// Deadline since 2.6.16: batches of ascending requests that begin at the
    /// earliest deadline. Also what `mq-deadline` does with one hardware queue.
    Deadline,
    /// Anticipatory, the default of 2.6.11: batches by time, and after a read the
    /// disk waits a little for the next one of the same task.
    Anticipatory,
}

/// Configuration of a [`Queue`](super::Queue).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoConfig {
    /// Scheduler.
    pub scheduler: Scheduler,
    /// Largest request in sectors; at least 8. 255 in 2.6.11 (127.5 KiB, so 31
    /// pages), 1024 later, 2560 in 6.x.
    pub max_sectors: u32,
    /// Requests per direction that may wait (`BLKDEV_MAX_RQ`): 128.
    pub requests: u32,
    /// Waiting requests of a direction at which it counts as congested: 113.
    pub congestion_on: u32,
    /// ... and below which it no longer does: 103.
    pub congestion_off: u32,
    /// Waiting requests that end the plug (`unplug_thresh`): 4.
    pub unplug_requests: u32,
    /// Time after which the plug ends by itself: 3 ms. Zero: no plug.
    pub unplug_delay: Picos,
    /// May a run be joined to the front of a request? True in all versions.
    pub front_merges: bool,
    /// Requests at the disk at a time, at least 1. DULO's time: 1.
    pub depth: u32,
    /// Deadline of a read: 500 ms (deadline), 125 ms (anticipatory \[M\]).
    pub read_expire: Picos,
    /// Deadline of a write: 5 s (deadline), 250 ms (anticipatory \[M\]).
    pub write_expire: Picos,
    /// Requests in a batch: 16 (deadline).
    pub fifo_batch: u32,
    /// Times that reads may go first while writes wait: 2 (deadline).
    pub writes_starved: u32,
    /// How long reads may go on while writes wait: 500 ms (anticipatory \[M\]).
    pub read_batch: Picos,
    /// How long writes may go on while reads wait: 125 ms (anticipatory \[M\]).
    pub write_batch: Picos,
    /// How long the disk waits for the next read of a task: 6 ms (anticipatory).
    pub antic_expire: Picos,
    /// A read counts as near if it begins at most so many sectors behind the last
    /// one's end: 1024 (anticipatory \[M\]).
    pub antic_near_sectors: u64,
}

const MS: u64 = 1_000_000_000;

impl IoConfig {
    /// No plug, no sorting: what a cache simulator needs. Requests of up to 128 KiB.
    pub const fn noop() -> Self {
        Self {
            scheduler: Scheduler::Noop,
            max_sectors: 256,
            unplug_delay: Picos(0),
            ..Self::deadline_2_6_11()
        }
    }

    /// Linux 2.6.11 with the deadline scheduler (DULO's simulation).
    pub const fn deadline_2_6_11() -> Self {
        Self {
            scheduler: Scheduler::Deadline2_6_11,
            max_sectors: 255,
            requests: 128,
            congestion_on: 113,
            congestion_off: 103,
            unplug_requests: 4,
            unplug_delay: Picos(3 * MS),
            front_merges: true,
            depth: 1,
            read_expire: Picos(500 * MS),
            write_expire: Picos(5000 * MS),
            fifo_batch: 16,
            writes_starved: 2,
            read_batch: Picos(500 * MS),
            write_batch: Picos(125 * MS),
            antic_expire: Picos(6 * MS),
            antic_near_sectors: 1024,
        }
    }

    /// Linux 2.6.11 as it comes (DULO's kernel tests).
    pub const fn anticipatory_2_6_11() -> Self {
        Self {
            scheduler: Scheduler::Anticipatory,
            read_expire: Picos(125 * MS),
            write_expire: Picos(250 * MS),
            ..Self::deadline_2_6_11()
        }
    }

    /// Linux 2.6.30 with the deadline scheduler.
    pub const fn deadline_2_6_30() -> Self {
        Self {
            scheduler: Scheduler::Deadline,
            max_sectors: 1024,
            ..Self::deadline_2_6_11()
        }
    }

    /// Linux 6.x with `mq-deadline`: the plug belongs to the task and ends when it
    /// waits, so no timer and no count.
    pub const fn mq_deadline() -> Self {
        Self {
            scheduler: Scheduler::Deadline,
            max_sectors: 2560,
            unplug_delay: Picos(0),
            ..Self::deadline_2_6_11()
        }
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// The first field that is out of range.
    pub fn check(&self) -> Result<(), IoConfigError> {
        let at_least = |field, value: u32, low| match value >= low {
            true => Ok(()),
            false => Err(IoConfigError { field, value, low }),
        };
        at_least("max_sectors", self.max_sectors, 8)?;
        at_least("requests", self.requests, 1)?;
        at_least("congestion_on", self.congestion_on, self.congestion_off)?;
        at_least("unplug_requests", self.unplug_requests, 1)?;
        at_least("depth", self.depth, 1)?;
        at_least("fifo_batch", self.fifo_batch, 1)
    }
}

/// A field of [`IoConfig`] that is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("block I/O: {field} is {value}, must be at least {low}")]
pub struct IoConfigError {
    /// Its name.
    pub field: &'static str,
    /// Its value.
    pub value: u32,
    /// The smallest value allowed.
    pub low: u32,
}

/// What the queue did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoStats {
    /// Pages that were read.
    pub pages_read: u64,
    /// Pages that were written.
    pub pages_written: u64,
    /// Read requests that went to the disk.
    pub requests_read: u64,
    /// Write requests that went to the disk.
    pub requests_written: u64,
    /// Runs joined to the end of a waiting request.
    pub back_merges: u64,
    /// Runs joined to the front of one.
    pub front_merges: u64,
    /// Times that two waiting requests became one.
    pub joins: u64,
    /// Runs that found no free request.
    pub backlogged: u64,
    /// Times that the disk was kept idle for the next read of a task.
    pub anticipations: u64,
    /// ... and that it came in time.
    pub anticipated: u64,
}
