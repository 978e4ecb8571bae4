//! What the full and the quick form run (protocol).

use crate::Options;

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub quick: bool,
    pub repetitions: u32,
    /// References of each program before the measured ones, and those.
    pub warmup: u64,
    pub budget: u64,
}

impl Form {
    pub(super) fn new(options: &Options) -> Self {
        let refs = if options.quick { 2_000_000 } else { 4_000_000 };
        let budget = options.budget_refs.unwrap_or(refs).max(1);
        let repetitions = if options.quick { 1 } else { 3 };
        Self {
            quick: options.quick,
            repetitions: options.repetitions.unwrap_or(repetitions).max(1),
            warmup: budget,
            budget,
        }
    }

    /// The first of so many mixes that are run.
    pub(super) const fn mixes(&self, full: u64, quick: u64) -> u64 {
        if self.quick { quick } else { full }
    }
}
