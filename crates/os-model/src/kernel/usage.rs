//! What each program uses and what was done to its pages.

use super::{Kernel, Process};
use serde::{Deserialize, Serialize};

/// Pages of files that a program's read calls came to, if memory is paged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageReads {
    /// All of them.
    pub pages: u64,
    /// Of those, the ones that it waited for.
    pub waits: u64,
    /// Those that readahead had brought in, used for the first time and without a wait.
    pub ahead: u64,
}

/// A program's use of memory since the kernel started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// 4 KiB pages that its processes have mapped now, the zero page's apart; a
    /// frame that two of them share counts twice.
    pub pages: u64,
    /// Most that there were at once.
    pub peak_pages: u64,
    /// Pages written to swap space.
    pub swap_outs: u64,
    /// Pages read back.
    pub swap_ins: u64,
    /// Clean pages of files that were dropped to make room.
    pub file_drops: u64,
    /// Pages that recolouring moved.
    pub recolored: u64,
    /// Pages that it could not move.
    pub recolor_failed: u64,
    /// Pages of files that its reads and writes came to, if memory is paged.
    pub io_pages: u64,
    /// Of those, the ones that it waited for.
    pub io_waits: u64,
    /// What its reads alone came to.
    pub io_reads: PageReads,
    /// Page faults that waited.
    pub major_faults: u64,
}

impl PageReads {
    /// What was read since `start`.
    pub const fn since(self, start: Self) -> Self {
        Self {
            pages: self.pages - start.pages,
            waits: self.waits - start.waits,
            ahead: self.ahead - start.ahead,
        }
    }

    /// Share that was in memory when it was asked for; `None` without any.
    pub fn hit_ratio(&self) -> Option<f64> {
        (self.pages > 0).then(|| 1.0 - self.waits as f64 / self.pages as f64)
    }

    /// Share that was in memory because of an earlier use: what readahead had brought in counts
    /// as missed. `None` without any.
    pub fn kept_ratio(&self) -> Option<f64> {
        let missed = self.waits + self.ahead;
        (self.pages > 0).then(|| 1.0 - missed as f64 / self.pages as f64)
    }
}

impl Kernel {
    /// What a program uses. Nothing for one that never started.
    pub fn usage(&self, program: u16) -> Usage {
        let found = self.programs.get(usize::from(program));
        found.copied().unwrap_or_default()
    }

    /// The record of a process's program.
    pub(super) fn usage_mut(&mut self, process: usize) -> &mut Usage {
        let program = usize::from(self.process(process).program);
        if self.programs.len() <= program {
            self.programs.resize(program + 1, Usage::default());
        }
        &mut self.programs[program]
    }

    /// Books a process's resident pages, of which there were `before`.
    pub(super) fn count_pages(&mut self, process: usize, before: u64) {
        let after = self.process(process).space.resident.total();
        let usage = self.usage_mut(process);
        usage.pages = usage.pages + after - before;
        usage.peak_pages = usage.peak_pages.max(usage.pages);
    }

    /// Pages of all processes of a program, recounted from their records.
    pub(super) fn pages_of(&self, program: usize) -> u64 {
        let live = self.processes.iter().flatten();
        let mine = live.filter(|p: &&Process| usize::from(p.program) == program);
        mine.map(|p| p.space.resident.total()).sum()
    }
}
