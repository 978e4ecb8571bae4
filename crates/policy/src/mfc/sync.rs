//! The atomics of this room: those of `core`, and under `--cfg loom` those of the
//! model checker, which tries every order in which threads may see them.

#[cfg(not(loom))]
pub(super) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub(super) use Ordering::{Acquire, Relaxed, Release};

/// Counts that would go on past this stay there: far from an overflow even if every
/// core of the largest machine adds at once.
const FULL: u32 = u32::MAX >> 1;

/// Adds to a counter that does not wrap; the value before.
pub(super) fn add(counter: &AtomicU32, by: u32) -> u32 {
    let seen = counter.load(Relaxed);
    if seen >= FULL {
        return seen;
    }
    counter.fetch_add(by.min(FULL), Relaxed)
}

/// Adds to a statistic.
pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}
