//! PostgreSQL's sequential scan with a hash aggregate (SRM-buffer's seq-scan):
//! sums and counts per group over rows of 128 B, read through the bulk-read
//! ring.
//!
//! One iteration is one scan of the table. Block `row`, 200 instructions: group
//! key and measure of the row, the key of the group's entry (64 B), and updates
//! of its sum and count. The entry waits for the group key.

use super::ring::{PAGE, Ring};
use super::{Init, Kernel, WrongResult};
use crate::memory::{Array, Block, Shape, Tape};
use crate::random::{mix, scale};
use crate::spec::{Param, Spec, Unit, Values};

const SIZE: usize = 0;
const GROUPS: usize = 1;
const ROW: u64 = 128;
const ENTRY: u64 = 64;
/// Places of the columns in a row, in words; the measure is on the second line.
const KEY: usize = 1;
const MEASURE: usize = 8;

static SPEC: Spec = Spec {
    name: "seqscan",
    about: "PostgreSQL sequential scan with hash aggregate through a 256KiB ring",
    params: &[
        Param {
            key: "size",
            unit: Unit::Bytes,
            default: 4 << 30,
            min: PAGE,
            max: 1 << 40,
            pow2: false,
            about: "table, rows of 128 B",
        },
        Param::count(
            "groups",
            "groups of the aggregate, 64 B each",
            1000,
            1,
            1 << 24,
        ),
    ],
};

/// Sequential scan with aggregate.
pub(super) struct SeqScan;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Group {
    sum: u64,
    count: u64,
}

impl Kernel for SeqScan {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn run(&self, values: &Values, seed: u64, tape: &mut Tape<'_>) -> Result<(), WrongResult> {
        let pages = values.get(SIZE) / PAGE;
        let groups = values.get(GROUPS);
        let init = Init::new(tape, 8);
        let row = Shape::new(200)
            .load(60, 8)
            .load(90, 8)
            .load(150, 8)
            .after(0);
        let row = tape.block(row.update(170, 8).after(0).update(180, 8).after(0));
        let mut ring = Ring::new(tape);
        let mut table: Array<Group> = tape.map(vec![Group::default(); groups as usize], ENTRY);
        let mut expected = vec![Group::default(); groups as usize];
        let file = tape.open("builtin/seqscan/table", pages * PAGE);
        init.touch(tape, &table, 0..groups as usize);
        tape.ready();
        let columns = |r: u64| (scale(mix(seed, r), groups), mix(seed ^ 1, r) & 0xffff);
        while tape.again() {
            let mut page = 0;
            while page < pages && !tape.full() {
                let words = |r| [(KEY, columns(r).0), (MEASURE, columns(r).1)];
                let first = ring.read(tape, &file, page, ROW, words);
                for r in 0..(PAGE / ROW) as usize {
                    aggregate(row, tape, &ring, first + r * ROW as usize / 8, &mut table);
                }
                page += 1;
            }
            for r in 0..page * PAGE / ROW {
                let (group, measure) = columns(r);
                let group = &mut expected[group as usize];
                group.sum += measure;
                group.count += 1;
            }
            check(table.raw(), &expected)?;
        }
        Ok(())
    }
}

fn aggregate(row: Block, tape: &mut Tape<'_>, ring: &Ring, start: usize, table: &mut Array<Group>) {
    tape.enter(row);
    let group = ring.get(tape, 0, start + KEY) as usize;
    let measure = ring.get(tape, 1, start + MEASURE);
    table.touch(tape, 2, group, 0);
    table.touch(tape, 3, group, 8);
    table.touch(tape, 4, group, 16);
    let entry = &mut table.raw_mut()[group];
    entry.sum += measure;
    entry.count += 1;
}

fn check(table: &[Group], expected: &[Group]) -> Result<(), WrongResult> {
    match (0..table.len()).find(|&g| table[g] != expected[g]) {
        None => Ok(()),
        Some(g) => Err(WrongResult(format!(
            "group {g} is {:?}, expected {:?}",
            table[g], expected[g]
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_group_is_found() {
        let right = [Group { sum: 3, count: 1 }, Group { sum: 4, count: 2 }];
        let wrong = [right[0], Group { sum: 4, count: 1 }];
        assert_eq!(check(&right, &right), Ok(()));
        assert!(check(&wrong, &right).is_err());
    }
}
