//! The mergesort of SRM-buffer's evaluation (its section 5): records of 64 B,
//! non-recursive, two-way, bottom-up, between two arrays.
//!
//! One iteration fills the source array with new random records and sorts it in
//! ceil(log2 n) passes of n moves. The record's first 8 B are its key.
//!
//! Blocks: `fill` 8 instructions (two stores of 32 B); `heads` 12 per pair of
//! runs (loads both first keys); `take` 10 per record (two loads and two stores
//! of 32 B, compare, branch), one block each for the left and the right run, as
//! both sides of a branch; `key` 4 (loads the next key of the run that
//! advanced, unless it is used up). No address depends on a load: which run
//! advances is a predicted branch.

use super::{Kernel, WrongResult};
use crate::memory::{Array, Block, Shape, Tape};
use crate::random::mix;
use crate::spec::{Param, Spec, Unit, Values};

const SIZE: usize = 0;
const RECORD: u64 = 64;

static SPEC: Spec = Spec {
    name: "mergesort",
    about: "bottom-up two-way mergesort of 64 B records (SRM-buffer)",
    params: &[Param {
        key: "size",
        unit: Unit::Bytes,
        default: 3 << 19,
        min: 4096,
        max: 256 << 20,
        pow2: false,
        about: "one array of records; the working set is twice that",
    }],
};

/// Mergesort.
pub(super) struct MergeSort;

/// Key, then payload.
type Record = [u64; 8];

struct Code {
    fill: Block,
    heads: Block,
    take: [Block; 2],
    key: [Block; 2],
}

impl Code {
    fn new(tape: &mut Tape<'_>) -> Self {
        let take = || {
            Shape::new(10)
                .load(2, 32)
                .store(3, 32)
                .load(4, 32)
                .store(5, 32)
        };
        Self {
            fill: tape.block(Shape::new(8).store(4, 32).store(5, 32)),
            heads: tape.block(Shape::new(12).load(8, 8).load(9, 8)),
            take: [tape.block(take()), tape.block(take())],
            key: [0, 0].map(|_| tape.block(Shape::new(4).load(1, 8))),
        }
    }
}

impl Kernel for MergeSort {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn run(&self, values: &Values, seed: u64, tape: &mut Tape<'_>) -> Result<(), WrongResult> {
        let n = (values.get(SIZE) / RECORD) as usize;
        let code = Code::new(tape);
        let mut source: Array<Record> = tape.map(vec![[0; 8]; n], RECORD);
        let mut target: Array<Record> = tape.map(vec![[0; 8]; n], RECORD);
        tape.ready();
        let mut round = 0;
        while tape.again() {
            let sum = fill(&code, tape, &mut source, mix(seed, round));
            sort(&code, tape, &mut source, &mut target);
            check(&source, sum)?;
            round += 1;
        }
        Ok(())
    }
}

/// Writes random records; returns the sum of their keys.
fn fill(code: &Code, tape: &mut Tape<'_>, a: &mut Array<Record>, seed: u64) -> u64 {
    let mut sum = 0u64;
    for i in 0..a.len() {
        let key = mix(seed, i as u64);
        sum = sum.wrapping_add(key);
        tape.enter(code.fill);
        a.touch(tape, 0, i, 0);
        a.touch(tape, 1, i, 32);
        a.raw_mut()[i] = [key, 0, 0, 0, 0, 0, 0, !key];
    }
    sum
}

/// Sorts `source`; which of the two arrays is which changes with every pass.
fn sort(code: &Code, tape: &mut Tape<'_>, source: &mut Array<Record>, target: &mut Array<Record>) {
    let n = source.len();
    let mut width = 1;
    while width < n {
        let mut low = 0;
        while low < n {
            let middle = (low + width).min(n);
            let high = (middle + width).min(n);
            merge(code, tape, source, target, [low, middle, high]);
            low = high;
        }
        core::mem::swap(source, target);
        width *= 2;
    }
}

/// Merges the runs `low..middle` and `middle..high`; the second may be empty.
fn merge(
    code: &Code,
    tape: &mut Tape<'_>,
    source: &Array<Record>,
    target: &mut Array<Record>,
    [low, middle, high]: [usize; 3],
) {
    let mut next = [low, middle];
    let end = [middle, high];
    if middle < high {
        tape.enter(code.heads);
        source.touch(tape, 0, low, 0);
        source.touch(tape, 1, middle, 0);
    }
    for out in low..high {
        let both = next[0] < end[0] && next[1] < end[1];
        let run = match both {
            true => usize::from(source.raw()[next[1]][0] < source.raw()[next[0]][0]),
            false => usize::from(next[0] == end[0]),
        };
        move_record(code.take[run], tape, source, target, next[run], out);
        next[run] += 1;
        if both && next[run] < end[run] {
            tape.enter(code.key[run]);
            source.touch(tape, 0, next[run], 0);
        }
    }
}

fn move_record(
    take: Block,
    tape: &mut Tape<'_>,
    source: &Array<Record>,
    target: &mut Array<Record>,
    from: usize,
    to: usize,
) {
    tape.enter(take);
    source.touch(tape, 0, from, 0);
    target.touch(tape, 1, to, 0);
    source.touch(tape, 2, from, 32);
    target.touch(tape, 3, to, 32);
    target.raw_mut()[to] = source.raw()[from];
}

/// In order, each payload with its key, and the same keys as before.
fn check(a: &Array<Record>, sum: u64) -> Result<(), WrongResult> {
    let records = a.raw();
    if let Some(i) = (1..records.len()).find(|&i| records[i - 1][0] > records[i][0]) {
        return Err(WrongResult(format!("record {i} is out of order")));
    }
    if let Some(i) = records.iter().position(|r| r[7] != !r[0]) {
        return Err(WrongResult(format!("record {i} lost its payload")));
    }
    match records.iter().fold(0u64, |s, r| s.wrapping_add(r[0])) == sum {
        true => Ok(()),
        false => Err(WrongResult("the sum of the keys changed".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::kit::testing::with_tape;
    use super::*;

    #[test]
    fn disorder_and_loss_are_found() {
        let record = |key: u64| [key, 0, 0, 0, 0, 0, 0, !key];
        let check = |records: Vec<Record>| {
            let a = with_tape(|tape| tape.map(records, RECORD));
            check(&a, 6)
        };
        assert_eq!(check(vec![record(1), record(2), record(3)]), Ok(()));
        assert!(check(vec![record(2), record(1), record(3)]).is_err());
        assert!(check(vec![record(1), record(2), record(2)]).is_err());
        let mut bad = record(3);
        bad[7] = 0;
        assert!(check(vec![record(1), record(2), bad]).is_err());
    }
}
