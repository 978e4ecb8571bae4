//! What a hardware thread did: read once, at the end of a region.

use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

/// References that reached a level, and those that it did not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelCount {
    /// Demand references (loads, stores, fetches; no prefetches).
    pub accesses: u64,
    /// Those that missed.
    pub misses: u64,
}

macro_rules! counters {
    ($($(#[$doc:meta])* $field:ident),* $(,)?) => {
        /// Counters of one hardware thread. Subtraction gives a
        /// region, addition joins the threads of a program.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct Counters {
            $($(#[$doc])* pub $field: u64,)*
            /// First-level instruction cache.
            pub fetch: LevelCount,
            /// Data path by level, level 1 first. Beyond level 1 instruction
            /// fetches count here as well.
            pub level: [LevelCount; 3],
        }

        impl Sub for Counters {
            type Output = Self;

            fn sub(self, earlier: Self) -> Self {
                let count = |a: LevelCount, b: LevelCount| LevelCount {
                    accesses: a.accesses - b.accesses,
                    misses: a.misses - b.misses,
                };
                Self {
                    $($field: self.$field - earlier.$field,)*
                    fetch: count(self.fetch, earlier.fetch),
                    level: [0, 1, 2].map(|k| count(self.level[k], earlier.level[k])),
                }
            }
        }

        impl Add for Counters {
            type Output = Self;

            fn add(self, other: Self) -> Self {
                let count = |a: LevelCount, b: LevelCount| LevelCount {
                    accesses: a.accesses + b.accesses,
                    misses: a.misses + b.misses,
                };
                Self {
                    $($field: self.$field + other.$field,)*
                    fetch: count(self.fetch, other.fetch),
                    level: [0, 1, 2].map(|k| count(self.level[k], other.level[k])),
                }
            }
        }
    };
}

counters! {
    /// Instructions retired.
    instructions,
    /// Data references; one that crosses a line counts once.
    references,
    /// Lines that came out of another core's cache.
    transfers,
    /// Stores that first had to take the line away from others.
    upgrades,
    /// Lines read from memory by demands.
    memory_reads,
    /// Lines read from memory by prefetches.
    prefetch_reads,
    /// Lines written to memory because this thread's misses evicted them.
    memory_writes,
    /// Memory reads of both kinds that found their row open.
    row_hits,
    /// ... that found the bank closed.
    row_closed,
    /// ... that found another row open.
    row_conflicts,
    /// Translations that missed the first level.
    tlb_misses,
    /// Page walks.
    walks,
    /// Prefetches issued.
    prefetches,
    /// Prefetched lines that a demand used.
    useful_prefetches,
}

impl Counters {
    /// Bytes that crossed the memory pins on behalf of this thread.
    pub const fn memory_bytes(&self) -> u64 {
        64 * (self.memory_reads + self.prefetch_reads + self.memory_writes)
    }

    /// Memory reads of both kinds.
    pub const fn row_accesses(&self) -> u64 {
        self.row_hits + self.row_closed + self.row_conflicts
    }
}
