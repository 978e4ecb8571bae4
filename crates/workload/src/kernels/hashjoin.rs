//! PostgreSQL's hash join as SRM-buffer runs it: a table of facts is joined with
//! a selection of a dimension.
//!
//! Dimension rows have 256 B, fact rows 128 B. Set-up is the build: scan the
//! dimension, copy the selected rows (10 %) into tuples of 280 B (a 16 B hash
//! header, an 8 B tuple header, the row) and chain them in a table of at least
//! as many 8 B buckets. One iteration is one scan of the facts, one probe per
//! row, which sums a column of both sides. Both scans go through the bulk-read
//! ring. Deviation: a query that is run again would build again; here the build
//! is done once, so that a bounded recording is about the probes.
//!
//! Blocks: `scan` 150 instructions per dimension row (the selected column),
//! `insert` 90 (key, bucket, header, row copied by 8 loads and 8 stores of 32 B,
//! bucket), `probe` 250 per fact row (key, bucket), `walk` 12 per tuple (its
//! hash), `matched` 90 (its key and payload, the fact's measure), `advance` 3 (the
//! next tuple). Instruction counts stand for the executor's work on a row; its
//! own data, which stays in the L1 cache, is left out. The bucket waits for the
//! key, a tuple for the bucket or for the tuple before it.

use std::collections::HashMap;

use super::ring::{PAGE, Ring};
use super::{Kernel, WrongResult};
use crate::memory::{Array, Block, Shape, Tape};
use crate::random::{mix, scale};
use crate::spec::{Param, Spec, Unit, Values};

const FACTS: usize = 0;
const DIMENSION: usize = 1;
const SELECTED: usize = 2;
const FACT_ROW: u64 = 128;
const DIMENSION_ROW: u64 = 256;
const TUPLE: u64 = 280;
const TUPLE_POINTER: u8 = 1;
/// Places of columns in a row, in words: key, selected column, fact's measure
/// (on the row's second line), dimension's payload.
const KEY: usize = 1;
const FILTER: usize = 3;
const MEASURE: usize = 8;
const PAYLOAD: usize = 4;
/// Offset of the row in a tuple.
const ROW_IN_TUPLE: u64 = 24;

static SPEC: Spec = Spec {
    name: "hashjoin",
    about: "PostgreSQL hash join: a probe per fact row, scans through a 256KiB ring",
    params: &[
        Param {
            key: "facts",
            unit: Unit::Bytes,
            default: 4 << 30,
            min: PAGE,
            max: 1 << 40,
            pow2: false,
            about: "fact table, rows of 128 B",
        },
        Param::count("dimension", "dimension rows of 256 B", 100_000, 32, 1 << 24),
        Param::count(
            "selected",
            "selected dimension rows, per mille",
            100,
            1,
            1000,
        ),
    ],
};

/// Hash join.
pub(super) struct HashJoin;

#[derive(Clone, Copy, Debug, Default)]
struct Tuple {
    key: u32,
    payload: u32,
    /// Index of the next tuple of the bucket plus 1.
    next: u32,
}

struct Code {
    scan: Block,
    insert: Block,
    probe: Block,
    walk: Block,
    matched: Block,
    advance: Block,
}

/// The generated tables.
#[derive(Clone, Copy)]
struct Tables {
    seed: u64,
    dimension: u64,
    selected: u64,
}

impl Tables {
    fn is_selected(&self, key: u64) -> bool {
        scale(mix(self.seed, key), 1000) < self.selected
    }

    fn payload(&self, key: u64) -> u64 {
        mix(self.seed ^ 1, key) & 0xffff
    }

    fn fact_key(&self, row: u64) -> u64 {
        scale(mix(self.seed ^ 2, row), self.dimension)
    }

    fn measure(&self, row: u64) -> u64 {
        mix(self.seed ^ 3, row) & 0xffff
    }
}

struct Table {
    /// Index of the first tuple plus 1.
    buckets: Array<u32>,
    tuples: Array<Tuple>,
    used: usize,
}

/// What the query returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Answer {
    rows: u64,
    sum: u64,
}

impl Code {
    fn new(tape: &mut Tape<'_>) -> Self {
        let insert = Shape::new(90).load(8, 8).load(30, 8).after(0).store(32, 16);
        let insert = (0..8).fold(insert, |s, i| s.load(40 + 2 * i, 32).store(41 + 2 * i, 32));
        let probe = Shape::new(250).load(60, 8).load(200, 8).after(0);
        let matched = Shape::new(90).load(10, 8).via(TUPLE_POINTER);
        let matched = matched.load(40, 8).via(TUPLE_POINTER).load(60, 8);
        let advance = Shape::new(3).load(0, 8).via(TUPLE_POINTER);
        Self {
            scan: tape.block(Shape::new(150).load(80, 8)),
            insert: tape.block(insert.store(80, 8).after(0)),
            probe: tape.block(probe.keep(TUPLE_POINTER, 1)),
            walk: tape.block(Shape::new(12).load(2, 4).via(TUPLE_POINTER)),
            matched: tape.block(matched),
            advance: tape.block(advance.keep(TUPLE_POINTER, 0)),
        }
    }
}

impl Kernel for HashJoin {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn run(&self, values: &Values, seed: u64, tape: &mut Tape<'_>) -> Result<(), WrongResult> {
        let tables = Tables {
            seed,
            dimension: values.get(DIMENSION),
            selected: values.get(SELECTED),
        };
        let pages = values.get(FACTS) / PAGE;
        let code = Code::new(tape);
        let mut ring = Ring::new(tape);
        let table = Table::build(&code, tape, &tables, &mut ring);
        let naive: HashMap<u64, u64> = (0..tables.dimension)
            .filter(|&key| tables.is_selected(key))
            .map(|key| (key, tables.payload(key)))
            .collect();
        let file = tape.open("builtin/hashjoin/facts", pages * PAGE);
        tape.ready();
        while tape.again() {
            let mut answer = Answer::default();
            let mut page = 0;
            while page < pages && !tape.full() {
                let row = |r| [(KEY, tables.fact_key(r)), (MEASURE, tables.measure(r))];
                let first = ring.read(tape, &file, page, FACT_ROW, row);
                for r in 0..(PAGE / FACT_ROW) as usize {
                    let start = first + r * FACT_ROW as usize / 8;
                    table.probe(&code, tape, &ring, start, &mut answer);
                }
                page += 1;
            }
            check(&tables, &naive, page * PAGE / FACT_ROW, answer)?;
        }
        Ok(())
    }
}

impl Table {
    fn build(code: &Code, tape: &mut Tape<'_>, tables: &Tables, ring: &mut Ring) -> Self {
        let selected = (0..tables.dimension).filter(|&k| tables.is_selected(k));
        let n = selected.count().max(1);
        let mut table = Self {
            buckets: tape.map(vec![0; n.next_power_of_two()], 8),
            tuples: tape.map(vec![Tuple::default(); n], TUPLE),
            used: 0,
        };
        let rows_per_page = PAGE / DIMENSION_ROW;
        let pages = tables.dimension.div_ceil(rows_per_page);
        let file = tape.open("builtin/hashjoin/dimension", pages * PAGE);
        for page in 0..pages {
            let row = |k| {
                let chosen = u64::from(tables.is_selected(k));
                [(KEY, k), (FILTER, chosen), (PAYLOAD, tables.payload(k))]
            };
            let first = ring.read(tape, &file, page, DIMENSION_ROW, row);
            let rows = rows_per_page.min(tables.dimension - page * rows_per_page);
            for r in 0..rows as usize {
                let start = first + r * DIMENSION_ROW as usize / 8;
                tape.enter(code.scan);
                if ring.get(tape, 0, start + FILTER) == 1 {
                    table.insert(code, tape, ring, start);
                }
            }
        }
        table
    }

    fn bucket(&self, key: u64) -> usize {
        (mix(0, key) & (self.buckets.len() as u64 - 1)) as usize
    }

    /// Copies the row at word `start` of the ring into a new tuple.
    fn insert(&mut self, code: &Code, tape: &mut Tape<'_>, ring: &Ring, start: usize) {
        let at = self.used;
        self.used += 1;
        tape.enter(code.insert);
        let key = ring.get(tape, 0, start + KEY);
        let bucket = self.bucket(key);
        let next = self.buckets.get(tape, 1, bucket);
        self.tuples.touch(tape, 2, at, 0);
        let mut payload = 0;
        for piece in 0..8u16 {
            let value = ring.get(tape, 3 + 2 * piece, start + 4 * usize::from(piece));
            if usize::from(piece) * 4 == PAYLOAD {
                payload = value as u32;
            }
            let offset = ROW_IN_TUPLE + 32 * u64::from(piece);
            self.tuples.touch(tape, 4 + 2 * piece, at, offset);
        }
        let key = key as u32;
        self.tuples.raw_mut()[at] = Tuple { key, payload, next };
        self.buckets.set(tape, 19, bucket, at as u32 + 1);
    }

    /// Looks up the fact row at word `start` of the ring.
    fn probe(
        &self,
        code: &Code,
        tape: &mut Tape<'_>,
        ring: &Ring,
        start: usize,
        answer: &mut Answer,
    ) {
        tape.enter(code.probe);
        let key = ring.get(tape, 0, start + KEY);
        let mut pointer = self.buckets.get(tape, 1, self.bucket(key));
        while let Some(at) = (pointer as usize).checked_sub(1) {
            tape.enter(code.walk);
            self.tuples.touch(tape, 0, at, 8);
            let tuple = self.tuples.raw()[at];
            if u64::from(tuple.key) == key {
                tape.enter(code.matched);
                self.tuples
                    .touch(tape, 0, at, ROW_IN_TUPLE + 8 * KEY as u64);
                self.tuples
                    .touch(tape, 1, at, ROW_IN_TUPLE + 8 * PAYLOAD as u64);
                let measure = ring.get(tape, 2, start + MEASURE);
                answer.rows += 1;
                answer.sum += measure * u64::from(tuple.payload);
            }
            tape.enter(code.advance);
            self.tuples.touch(tape, 0, at, 0);
            pointer = tuple.next;
        }
    }
}

/// The same query with the library's map over the first `rows` facts.
fn check(
    tables: &Tables,
    naive: &HashMap<u64, u64>,
    rows: u64,
    answer: Answer,
) -> Result<(), WrongResult> {
    let mut expected = Answer::default();
    for row in 0..rows {
        if let Some(payload) = naive.get(&tables.fact_key(row)) {
            expected.rows += 1;
            expected.sum += payload * tables.measure(row);
        }
    }
    match answer == expected {
        true => Ok(()),
        false => Err(WrongResult(format!("{answer:?}, expected {expected:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_answer_is_found() {
        let tables = Tables {
            seed: 3,
            dimension: 4,
            selected: 1000,
        };
        let naive: HashMap<u64, u64> = (0..4).map(|k| (k, 1)).collect();
        let sum = (0..10).map(|row| tables.measure(row)).sum();
        let right = Answer { rows: 10, sum };
        assert_eq!(check(&tables, &naive, 10, right), Ok(()));
        let wrong = Answer { rows: 9, ..right };
        assert!(check(&tables, &naive, 10, wrong).is_err());
    }
}
