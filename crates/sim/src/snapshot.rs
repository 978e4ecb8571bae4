//! What a program did up to some moment, and between two moments.

use piebald_hw::Counters;
use piebald_os_model::kernel::{PageReads, Usage};
use piebald_units::Picos;
use serde::{Deserialize, Serialize};

/// State of a program's counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Clock of the core that reached the moment.
    pub time: Picos,
    /// References that the program itself made.
    pub refs: u64,
    /// Counters of the hardware threads while they ran the program, kernel work
    /// on its behalf included.
    pub counters: Counters,
    /// Page faults.
    pub faults: u64,
    /// Time spent on pages that followed its colours.
    pub following: Picos,
    /// 4 KiB pages mapped, those of 2 MiB pages included.
    pub pages: u64,
    /// 2 MiB pages mapped.
    pub huge_pages: u64,
    /// What the disk was needed for.
    pub io: IoUse,
    /// What it read, and its threads' way through the cores.
    pub reads: ReadUse,
}

/// What a program did with files and pages, and how long it waited for them. All zero
/// without paging.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoUse {
    /// Pages of files that its reads and writes came to.
    pub pages: u64,
    /// Of those, the ones that it had to wait for.
    pub waits: u64,
    /// Its reads alone.
    pub reads: PageReads,
    /// Page faults that had to wait.
    pub major_faults: u64,
    /// Time that its threads waited, summed.
    pub blocked: Picos,
}

impl IoUse {
    pub(crate) const fn new(usage: &Usage, blocked: Picos) -> Self {
        Self {
            pages: usage.io_pages,
            waits: usage.io_waits,
            reads: usage.io_reads,
            major_faults: usage.major_faults,
            blocked,
        }
    }

    /// Share of the pages that were there when they were asked for; `None` without any.
    pub fn hit_ratio(&self) -> Option<f64> {
        (self.pages > 0).then(|| 1.0 - self.waits as f64 / self.pages as f64)
    }

    fn since(self, start: Self) -> Self {
        Self {
            pages: self.pages - start.pages,
            waits: self.waits - start.waits,
            reads: self.reads.since(start.reads),
            major_faults: self.major_faults - start.major_faults,
            blocked: self.blocked.since(start.blocked),
        }
    }
}

/// What a program read by calls, and how it moved between cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadUse {
    /// Read calls.
    pub calls: u64,
    /// Bytes that they returned.
    pub bytes: u64,
    /// Of these, the ones that were read past the caches.
    pub past: u64,
    /// Parts of read calls that a policy read past the caches.
    pub parts_past: u64,
    /// Times that a policy moved a thread to another core for a read.
    pub moves: u64,
    /// Times that a thread began to run on another core than its last, for whatever
    /// reason.
    pub migrations: u64,
}

impl ReadUse {
    const fn since(self, start: Self) -> Self {
        Self {
            calls: self.calls - start.calls,
            bytes: self.bytes - start.bytes,
            past: self.past - start.past,
            parts_past: self.parts_past - start.parts_past,
            moves: self.moves - start.moves,
            migrations: self.migrations - start.migrations,
        }
    }
}

/// What programs did since the look before, or the beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeSample {
    /// When, from the beginning of the run.
    pub time: Picos,
    /// Each program's references, and what hardware threads counted while they ran it, in the
    /// order of the programs. All zero while it is not there.
    pub programs: Vec<(u64, Counters)>,
    /// Time that each of them spent on the faults of its pages that moved to its colours, or
    /// that were marked and stayed; a move counts where it ends.
    pub moving: Vec<Picos>,
}

/// The measured part of a program's run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Region {
    /// Duration.
    pub time: Picos,
    /// References that the program itself made.
    pub refs: u64,
    /// What its hardware threads counted.
    pub counters: Counters,
    /// Page faults.
    pub faults: u64,
    /// Part of the time that its hardware threads spent on the faults of pages that moved to its
    /// colours for HVR, or that were marked and stayed.
    pub following: Picos,
    /// 4 KiB pages mapped at the end, those of 2 MiB pages included.
    pub pages: u64,
    /// 2 MiB pages mapped at the end.
    pub huge_pages: u64,
    /// What the disk was needed for.
    pub io: IoUse,
    /// What it read, and its threads' way through the cores.
    pub reads: ReadUse,
    /// The program ended before its references were used up.
    pub ended_early: bool,
}

impl Snapshot {
    /// What happened since `start`.
    pub(crate) fn since(&self, start: &Self, ended_early: bool) -> Region {
        Region {
            time: self.time.since(start.time),
            refs: self.refs - start.refs,
            counters: self.counters - start.counters,
            faults: self.faults - start.faults,
            following: self.following.since(start.following),
            pages: self.pages,
            huge_pages: self.huge_pages,
            io: self.io.since(start.io),
            reads: self.reads.since(start.reads),
            ended_early,
        }
    }
}
