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
        let (refs, times) = match options.quick {
            true => (1_000_000, 2),
            false => (4_000_000, 1),
        };
        let budget = options.budget_refs.unwrap_or(refs).max(1);
        let repetitions = if options.quick { 1 } else { 3 };
        Self {
            quick: options.quick,
            repetitions: options.repetitions.unwrap_or(repetitions).max(1),
            warmup: budget.saturating_mul(times),
            budget,
        }
    }

    /// Programs are met in the first so-manieth of the part of their recordings that places are
    /// drawn from: what comes before has to be gone through.
    pub(super) const fn places(&self) -> u64 {
        if self.quick { 10 } else { 1 }
    }

    /// Share of the references of a row that a program makes which is that slow alone. In the quick
    /// form all make about as many as fit into the same time, else the slowest decides how long all
    /// others are simulated.
    pub(super) const fn share(&self, speed: f64) -> f64 {
        if self.quick { speed } else { 1.0 }
    }

    /// The first of so many mixes that are run.
    pub(super) const fn mixes(&self, full: u64, quick: u64) -> u64 {
        if self.quick { quick } else { full }
    }
}
