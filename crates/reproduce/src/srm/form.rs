//! What the full and the quick form run.

use super::{inputs::Tree, sources::Source};
use crate::Options;

/// How much is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub quick: bool,
    pub repetitions: u32,
    /// References before a program's measured part, at least.
    pub warmup_refs: u64,
    /// Measured references, at least.
    pub budget_refs: u64,
    /// Programs in memory are measured in complete iterations, at least two.
    pub complete_iterations: bool,
}

/// Full form (protocol).
const REFS: u64 = 20_000_000;
const REPETITIONS: u32 = 5;
/// Quick form (protocol).
const QUICK_REFS: u64 = 4_000_000;
const QUICK_REPETITIONS: u32 = 3;

impl Form {
    pub(super) fn new(options: &Options) -> Self {
        let (refs, repetitions) = match options.quick {
            true => (QUICK_REFS, QUICK_REPETITIONS),
            false => (REFS, REPETITIONS),
        };
        let budget = options.budget_refs.unwrap_or(refs).max(1);
        Self {
            quick: options.quick,
            repetitions: options.repetitions.unwrap_or(repetitions).max(1),
            warmup_refs: budget,
            budget_refs: budget,
            complete_iterations: !options.quick && options.budget_refs.is_none(),
        }
    }

    /// References of a built-in program that reads files, after its set-up.
    pub(super) const fn recorded(&self, source: &Source) -> u64 {
        match source {
            Source::Recorded(..) | Source::Backend(_) => 0,
            _ => 2 * (self.warmup_refs + self.budget_refs),
        }
    }

    /// MiB of the trees.
    pub(super) const fn tree(&self, tree: &Tree) -> u32 {
        match self.quick {
            true => tree.quick_megabytes,
            false => tree.megabytes,
        }
    }

    /// Cases of a row: the quick ones, or all.
    pub(super) fn of<T: Copy>(&self, all: &[T], quick: &[T]) -> Vec<T> {
        match self.quick {
            true => quick.to_vec(),
            false => all.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_run_what_the_protocol_says() {
        let full = Form::new(&Options::default());
        assert_eq!((full.repetitions, full.budget_refs), (5, 20_000_000));
        assert!(full.complete_iterations);
        let quick = Form::new(&Options {
            quick: true,
            ..Options::default()
        });
        assert_eq!((quick.repetitions, quick.warmup_refs), (3, 4_000_000));
        assert!(!quick.complete_iterations);
        assert_eq!(quick.of(&[1, 2, 3], &[2]), [2]);
        let cut = Form::new(&Options {
            budget_refs: Some(0),
            repetitions: Some(0),
            ..Options::default()
        });
        assert_eq!((cut.budget_refs, cut.repetitions), (1, 1));
    }
}
