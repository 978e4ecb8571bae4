//! What the page cache counts.

use piebald_units::Picos;
use serde::{Deserialize, Serialize};

/// References to pages and what they found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uses {
    /// Pages asked for; a page once per call.
    pub references: u64,
    /// Found, and up to date.
    pub hits: u64,
    /// Found, but still being read: waited for, not read again.
    pub waited: u64,
    /// Not found.
    pub misses: u64,
}

impl Uses {
    fn plus(self, o: Self) -> Self {
        Self {
            references: self.references + o.references,
            hits: self.hits + o.hits,
            waited: self.waited + o.waited,
            misses: self.misses + o.misses,
        }
    }
}

/// Counters of a [`FileHost`](super::FileHost). `references = hits + waited +
/// misses` for every kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// By read calls.
    pub reads: Uses,
    /// By write calls. A miss that overwrites a whole page causes no read.
    pub writes: Uses,
    /// Through mappings of files.
    pub mapped: Uses,
    /// Of programs' memory. A miss is a first touch or a swap-in.
    pub anon: Uses,
    /// Pages that were read ahead.
    pub prefetched: u64,
    /// ... and used at least once afterwards.
    pub prefetched_used: u64,
    /// ... and left memory without having been used.
    pub prefetched_unused: u64,
    /// Pages that left because memory was needed.
    pub evicted: u64,
    /// Pages that were dropped with their file or program.
    pub deleted: u64,
    /// Dirty pages that the search for victims wrote out.
    pub victims_written: u64,
    /// Pages that write-back wrote.
    pub written_back: u64,
    /// Swapped pages that somebody asked for and that were read.
    pub swap_ins: u64,
    /// Their neighbours, read along with them.
    pub swap_readahead: u64,
    /// Pages written to the swap area.
    pub swap_outs: u64,
    /// Times that a call waited for memory.
    pub memory_waits: u64,
    /// Times that a writer waited because too much was dirty.
    pub throttled: u64,
    /// Time that tasks were blocked in calls, summed.
    pub blocked: Picos,
}

impl Stats {
    /// All kinds of references together.
    pub fn uses(&self) -> Uses {
        let file = self.reads.plus(self.writes).plus(self.mapped);
        file.plus(self.anon)
    }

    /// Share of references that found their page, up to date or on its way; `None`
    /// without references.
    pub fn hit_ratio(&self) -> Option<f64> {
        let uses = self.uses();
        (uses.references > 0).then(|| 1.0 - uses.misses as f64 / uses.references as f64)
    }
}
