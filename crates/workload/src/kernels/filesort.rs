//! SRM-buffer's program for many cores (its section 4.7): sorts the records of a
//! file by a blocked mergesort and saves them.
//!
//! Records of 32 B; the key is the first word. One iteration sorts one file: each
//! block is read, sorted bottom-up between two arrays of a block (as in
//! `mergesort`), and its run written back; then all runs are merged at once, a
//! share of a block's buffer for each run and one for the output, into a second
//! file. The paper says "blocked" and gives the sizes of file, record and block;
//! that runs are kept in the file rather than in memory, and that they are merged
//! at once, is this project's reading: the working set is then two blocks
//! throughout, as the paper's slowdown by the size of a block needs.
//!
//! Blocks: `take` 10 instructions per record and pass (load and store of 32 B,
//! one block for each run, as both sides of a branch); `key` 4 (the next key of
//! the run that advanced); `sift` 8 per level of the merge's heap (two entries of
//! 16 B are loaded and one stored); `out` 10 per record (load and store of 32 B).
//! No address depends on a load, but for `out`, which waits for the heap's top.

use super::{Kernel, WrongResult};
use crate::memory::{Array, Block, File, Shape, Tape};
use crate::random::mix;
use crate::spec::{Param, Spec, Unit, Values};

const SIZE: usize = 0;
const BLOCK: usize = 1;
const CALL: usize = 2;
const RECORD: u64 = 32;

static SPEC: Spec = Spec {
    name: "filesort",
    about: "blocked mergesort of a file of 32 B records (SRM-buffer)",
    params: &[
        bytes("size", "the file", 32 << 20, 128 << 20),
        bytes(
            "block",
            "records sorted in memory at once",
            512 << 10,
            64 << 20,
        ),
        bytes(
            "call",
            "most bytes of a read or write call",
            64 << 10,
            1 << 20,
        ),
    ],
};

const fn bytes(key: &'static str, about: &'static str, default: u64, max: u64) -> Param {
    Param {
        key,
        unit: Unit::Bytes,
        default,
        min: 4096,
        max,
        pow2: false,
        about,
    }
}

/// Blocked mergesort of a file.
pub(super) struct FileSort;

type Record = [u64; 4];

struct Code {
    take: [Block; 2],
    key: Block,
    sift: Block,
    out: Block,
}

impl Code {
    fn new(tape: &mut Tape<'_>) -> Self {
        let take = [0, 0].map(|_| tape.block(Shape::new(10).load(2, 32).store(3, 32)));
        Self {
            take,
            key: tape.block(Shape::new(4).load(1, 8)),
            sift: tape.block(Shape::new(8).load(1, 16).load(2, 16).store(6, 16)),
            out: tape.block(Shape::new(10).load(1, 16).load(2, 32).after(0).store(3, 32)),
        }
    }
}

/// The files, what they hold, and the two blocks in memory.
struct Sorter {
    code: Code,
    input: File,
    output: File,
    /// What the input holds; the kernel has it, the program has not.
    disk: Vec<Record>,
    source: Array<Record>,
    target: Array<Record>,
    heap: Array<[u64; 2]>,
    call: u64,
}

impl Kernel for FileSort {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn check(&self, values: &Values) -> Result<(), String> {
        let [size, block] = [SIZE, BLOCK].map(|p| values.get(p));
        let runs = size.div_ceil(block.max(1));
        match block <= size && (runs + 1) * RECORD <= block && block % RECORD == 0 {
            true => Ok(()),
            false => Err(format!(
                "block = {block} B of a file of {size} B; allowed: whole records of {RECORD} B, \
                 at most the file, and room for a record of each of the {runs} runs"
            )),
        }
    }

    fn run(&self, values: &Values, seed: u64, tape: &mut Tape<'_>) -> Result<(), WrongResult> {
        let n = (values.get(SIZE) / RECORD) as usize;
        let block = (values.get(BLOCK) / RECORD) as usize;
        let mut sorter = Sorter {
            code: Code::new(tape),
            input: tape.open("builtin/filesort/records", n as u64 * RECORD),
            output: tape.open("builtin/filesort/sorted", n as u64 * RECORD),
            disk: vec![[0; 4]; n],
            source: tape.map(vec![[0; 4]; block], RECORD),
            target: tape.map(vec![[0; 4]; block], RECORD),
            heap: tape.map(vec![[0; 2]; n.div_ceil(block)], 16),
            call: values.get(CALL),
        };
        tape.ready();
        let mut round = 0;
        while tape.again() {
            let sum = sorter.draw(mix(seed, round));
            for first in (0..n).step_by(block) {
                sorter.sort_block(tape, first, block.min(n - first));
            }
            let sorted = sorter.merge_runs(tape, block);
            check(&sorted, sum)?;
            round += 1;
        }
        Ok(())
    }
}

impl Sorter {
    /// New records in the file; returns the sum of their keys.
    fn draw(&mut self, seed: u64) -> u64 {
        let mut sum = 0u64;
        for (i, record) in self.disk.iter_mut().enumerate() {
            let key = mix(seed, i as u64);
            sum = sum.wrapping_add(key);
            *record = [key, 0, 0, !key];
        }
        sum
    }

    /// Makes a run of the records `first..first + n` of the file.
    fn sort_block(&mut self, tape: &mut Tape<'_>, first: usize, n: usize) {
        let at = first as u64 * RECORD;
        for (offset, len) in calls(n as u64 * RECORD, self.call) {
            let to = self.source.addr((offset / RECORD) as usize);
            tape.read(&self.input, at + offset, len, to);
        }
        self.source.raw_mut()[..n].copy_from_slice(&self.disk[first..first + n]);
        let mut width = 1;
        while width < n {
            for low in (0..n).step_by(2 * width) {
                let middle = (low + width).min(n);
                self.merge(tape, [low, middle, (middle + width).min(n)]);
            }
            core::mem::swap(&mut self.source, &mut self.target);
            width *= 2;
        }
        for (offset, len) in calls(n as u64 * RECORD, self.call) {
            let from = self.source.addr((offset / RECORD) as usize);
            tape.write(&mut self.input, at + offset, len, from);
        }
        self.disk[first..first + n].copy_from_slice(&self.source.raw()[..n]);
    }

    fn merge(&mut self, tape: &mut Tape<'_>, [low, middle, high]: [usize; 3]) {
        let (mut next, end) = ([low, middle], [middle, high]);
        for out in low..high {
            let both = next[0] < end[0] && next[1] < end[1];
            let run = match both {
                true => usize::from(self.source.raw()[next[1]][0] < self.source.raw()[next[0]][0]),
                false => usize::from(next[0] == end[0]),
            };
            tape.enter(self.code.take[run]);
            let record = self.source.get(tape, 0, next[run]);
            self.target.set(tape, 1, out, record);
            next[run] += 1;
            if both && next[run] < end[run] {
                tape.enter(self.code.key);
                self.source.touch(tape, 0, next[run], 0);
            }
        }
    }

    /// Merges the runs of the file into the second file; returns what that holds.
    fn merge_runs(&mut self, tape: &mut Tape<'_>, block: usize) -> Vec<Record> {
        let n = self.disk.len();
        let runs = n.div_ceil(block);
        let share = block / (runs + 1);
        let mut sorted = Vec::with_capacity(n);
        let mut next: Vec<usize> = (0..runs).map(|r| r * block).collect();
        let mut heap = std::collections::BinaryHeap::new();
        for (run, &at) in next.iter().enumerate() {
            self.refill(tape, run, at, share, block);
            heap.push(core::cmp::Reverse((self.disk[at][0], run)));
        }
        let room = runs * share;
        while let Some(core::cmp::Reverse((_, run))) = heap.pop() {
            let record = self.disk[next[run]];
            let (slot, out) = ((next[run] - run * block) % share, sorted.len() % share);
            tape.enter(self.code.out);
            self.heap.touch(tape, 0, 0, 0);
            self.source.touch(tape, 1, run * share + slot, 0);
            self.source.touch(tape, 2, room + out, 0);
            self.source.raw_mut()[room + out] = record;
            sorted.push(record);
            next[run] += 1;
            if next[run] < ((run + 1) * block).min(n) {
                if (next[run] - run * block).is_multiple_of(share) {
                    self.refill(tape, run, next[run], share, block);
                }
                heap.push(core::cmp::Reverse((self.disk[next[run]][0], run)));
            }
            self.sift(tape, heap.len());
            if out + 1 == share || sorted.len() == n {
                let len = (out + 1) as u64 * RECORD;
                let at = sorted.len() as u64 * RECORD - len;
                let from = self.source.addr(room);
                tape.write(&mut self.output, at, len, from);
            }
        }
        sorted
    }

    /// Reads the next share of a run.
    fn refill(&mut self, tape: &mut Tape<'_>, run: usize, at: usize, share: usize, block: usize) {
        let end = ((run + 1) * block).min(self.disk.len());
        let len = share.min(end - at) as u64 * RECORD;
        let to = self.source.addr(run * share);
        tape.read(&self.input, at as u64 * RECORD, len, to);
    }

    /// The way of a new entry from the top of a heap of `len` entries to a leaf:
    /// as a replacement in a heap of keys that are all alike likely goes.
    fn sift(&mut self, tape: &mut Tape<'_>, len: usize) {
        let mut at = 0;
        while 2 * at + 2 < len {
            tape.enter(self.code.sift);
            self.heap.touch(tape, 0, 2 * at + 1, 0);
            self.heap.touch(tape, 1, 2 * at + 2, 0);
            self.heap.touch(tape, 2, at, 0);
            at = 2 * at + 1 + (len + at) % 2;
        }
    }
}

/// `len` bytes as calls of at most `most`: (offset, bytes).
fn calls(len: u64, most: u64) -> impl Iterator<Item = (u64, u64)> {
    let most = most / RECORD * RECORD;
    (0..len)
        .step_by(most as usize)
        .map(move |offset| (offset, most.min(len - offset)))
}

/// In order, each payload with its key, and the same keys as before.
fn check(records: &[Record], sum: u64) -> Result<(), WrongResult> {
    if let Some(i) = (1..records.len()).find(|&i| records[i - 1][0] > records[i][0]) {
        return Err(WrongResult(format!("record {i} is out of order")));
    }
    if let Some(i) = records.iter().position(|r| r[3] != !r[0]) {
        return Err(WrongResult(format!("record {i} lost its payload")));
    }
    match records.iter().fold(0u64, |s, r| s.wrapping_add(r[0])) == sum {
        true => Ok(()),
        false => Err(WrongResult("the sum of the keys changed".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disorder_and_loss_are_found() {
        let record = |key: u64| [key, 0, 0, !key];
        assert_eq!(check(&[record(1), record(2), record(3)], 6), Ok(()));
        assert!(check(&[record(2), record(1), record(3)], 6).is_err());
        assert!(check(&[record(1), record(2)], 6).is_err());
        assert!(check(&[record(1), record(2), [3, 0, 0, 0]], 6).is_err());
    }

    #[test]
    fn calls_cover_what_is_read() {
        assert_eq!(
            calls(160, 64).collect::<Vec<_>>(),
            [(0, 64), (64, 64), (128, 32)]
        );
    }
}
