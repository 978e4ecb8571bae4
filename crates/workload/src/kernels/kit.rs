//! What several kernels share.

use crate::memory::{Array, Block, Shape, Tape};

/// Sets up arrays element by element, in order, as a program's own
/// initialisation loop does (one after the other, so that the swap slots of each
/// array are sequential).
///
/// 4 instructions per element: compute, store, advance, branch.
pub(crate) struct Init {
    store: Block,
}

impl Init {
    /// For elements of which one store writes `size` bytes.
    pub(crate) fn new(tape: &mut Tape<'_>, size: u8) -> Self {
        Self {
            store: tape.block(Shape::new(4).store(1, size)),
        }
    }

    /// Sets the elements `range` of an array to `value(i)`.
    pub(crate) fn fill<T: Copy>(
        &self,
        tape: &mut Tape<'_>,
        array: &mut Array<T>,
        range: core::ops::Range<usize>,
        mut value: impl FnMut(usize) -> T,
    ) {
        for i in range {
            tape.enter(self.store);
            array.set(tape, 0, i, value(i));
        }
    }

    /// Leaves the same references for elements that have their values already.
    pub(crate) fn touch<T: Copy>(
        &self,
        tape: &mut Tape<'_>,
        array: &Array<T>,
        range: core::ops::Range<usize>,
    ) {
        for i in range {
            tape.enter(self.store);
            array.touch(tape, 0, i, 0);
        }
    }
}

/// The part of `0..n` that thread `t` of `threads` works on: contiguous, sizes
/// differ by at most 1.
pub(crate) fn part(n: usize, t: usize, threads: usize) -> core::ops::Range<usize> {
    n * t / threads..n * (t + 1) / threads
}

/// Starts threads 1.. from thread 0.
pub(crate) fn spawn_others(tape: &mut Tape<'_>, threads: usize) {
    for t in 1..threads {
        tape.spawn(t as u32);
    }
}

/// Tests of the kernels' checks need arrays, but not what lands on the tape.
#[cfg(test)]
pub(super) mod testing {
    use piebald_trace::recording::model::{BlockDef, EventKind, Raw};

    use crate::memory::{EmitError, Limits, Sink, Tape};

    struct Nowhere;

    impl Sink for Nowhere {
        fn define(&mut self, _: BlockDef) -> Result<u32, EmitError> {
            Ok(0)
        }

        fn stream(&mut self, _: u32, _: &[Raw]) -> Result<(), EmitError> {
            Ok(())
        }

        fn event(&mut self, _: u32, _: EventKind) -> Result<(), EmitError> {
            Ok(())
        }
    }

    /// Calls `f` with a tape that leads nowhere.
    pub(crate) fn with_tape<R>(f: impl FnOnce(&mut Tape<'_>) -> R) -> R {
        let limits = Limits {
            refs: u64::MAX,
            iterations: 0,
        };
        f(&mut Tape::new(&mut Nowhere, "test", limits))
    }
}
