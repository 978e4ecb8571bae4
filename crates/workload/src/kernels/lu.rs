//! SciMark2's LU: right-looking factorisation with partial pivoting of a dense
//! matrix, which is copied first.
//!
//! Two matrices of 8 N^2 bytes (the original and the factors) and an array of
//! row pointers; pivoting swaps pointers, not rows. One iteration copies and
//! factorises. Deviation: rows lie in one block per matrix, where the original
//! allocates each row (16 B of allocator header between rows).
//!
//! Blocks: `copy_row` 8 instructions (2 row pointers), `copy` 4 (load, store),
//! `pivot` 6 (row pointer, element), `chosen` 8 (row pointer, element, store of
//! the pivot index), `swap` 6 (2 loads, 2 stores of pointers), `reciprocal` 6 (row
//! pointer, element), `scale` 5 (row pointer, element, store), `row` 8 (2 row
//! pointers, element), `inner` 6 (2 loads, 1 store). Elements wait for the load
//! of their row's pointer; row pointers wait for nothing.

use super::{Init, Kernel, WrongResult};
use crate::memory::{Array, Block, Shape, Tape};
use crate::random::Random;
use crate::spec::{Param, Spec, Values};

const N: usize = 0;
const TARGET_ROW: u8 = 1;
const PIVOT_ROW: u8 = 2;

static SPEC: Spec = Spec {
    name: "lu",
    about: "SciMark2 LU with partial pivoting; copies the matrix first",
    params: &[Param::count(
        "n",
        "rows and columns; two matrices of 8 n^2 bytes",
        500,
        16,
        2000,
    )],
};

/// SciMark2's LU.
pub(super) struct Lu;

struct Code {
    copy_row: Block,
    copy: Block,
    pivot: Block,
    chosen: Block,
    swap: Block,
    reciprocal: Block,
    scale: Block,
    row: Block,
    inner: Block,
}

impl Code {
    fn new(tape: &mut Tape<'_>) -> Self {
        let element = |instrs| Shape::new(instrs).load(0, 8).load(1, 8).after(0);
        let row = Shape::new(8).load(0, 8).load(1, 8).load(3, 8).after(0);
        Self {
            copy_row: tape.block(
                Shape::new(8)
                    .load(2, 8)
                    .load(3, 8)
                    .keep(PIVOT_ROW, 0)
                    .keep(TARGET_ROW, 1),
            ),
            copy: tape.block(
                Shape::new(4)
                    .load(0, 8)
                    .via(PIVOT_ROW)
                    .store(1, 8)
                    .via(TARGET_ROW),
            ),
            pivot: tape.block(element(6)),
            chosen: tape.block(element(8).store(5, 4)),
            swap: tape.block(Shape::new(6).load(0, 8).load(1, 8).store(2, 8).store(3, 8)),
            reciprocal: tape.block(element(6)),
            scale: tape.block(element(5).store(3, 8).after(0)),
            row: tape.block(row.keep(TARGET_ROW, 0).keep(PIVOT_ROW, 1)),
            inner: tape.block(
                Shape::new(6)
                    .load(0, 8)
                    .via(PIVOT_ROW)
                    .load(2, 8)
                    .via(TARGET_ROW)
                    .store(3, 8)
                    .via(TARGET_ROW),
            ),
        }
    }
}

struct Matrices {
    n: usize,
    original: Array<f64>,
    /// Pointers to the rows of `original`.
    original_rows: Array<u32>,
    factors: Array<f64>,
    /// Pointers to the rows of `factors`; swaps stay from one iteration to the
    /// next, as in the original.
    rows: Array<u32>,
    pivots: Array<u32>,
}

impl Kernel for Lu {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn run(&self, values: &Values, seed: u64, tape: &mut Tape<'_>) -> Result<(), WrongResult> {
        let n = values.get(N) as usize;
        let init = Init::new(tape, 8);
        let code = Code::new(tape);
        let mut random = Random::new(seed);
        let mut m = Matrices {
            n,
            original: tape.map(vec![0.0; n * n], 8),
            original_rows: tape.map(vec![0; n], 8),
            factors: tape.map(vec![0.0; n * n], 8),
            rows: tape.map(vec![0; n], 8),
            pivots: tape.map(vec![0; n], 4),
        };
        init.fill(tape, &mut m.original_rows, 0..n, |i| i as u32);
        init.fill(tape, &mut m.rows, 0..n, |i| i as u32);
        init.fill(tape, &mut m.original, 0..n * n, |_| random.signed_unit());
        tape.ready();
        while tape.again() {
            m.copy(&code, tape);
            let order = m.factorise(&code, tape);
            m.check(&order, &mut random)?;
        }
        Ok(())
    }
}

impl Matrices {
    /// Index of an element of the factors.
    fn at(&self, row: u32, column: usize) -> usize {
        row as usize * self.n + column
    }

    fn copy(&mut self, code: &Code, tape: &mut Tape<'_>) {
        for i in 0..self.n {
            tape.enter(code.copy_row);
            let from = self.original_rows.get(tape, 0, i);
            let to = self.rows.get(tape, 1, i);
            for j in 0..self.n {
                tape.enter(code.copy);
                let value = self.original.get(tape, 0, self.at(from, j));
                let to = self.at(to, j);
                self.factors.set(tape, 1, to, value);
            }
        }
    }

    /// Returns which original row each row of the factors is.
    fn factorise(&mut self, code: &Code, tape: &mut Tape<'_>) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.n).collect();
        for j in 0..self.n {
            let chosen = self.choose_pivot(code, tape, j);
            if chosen != j {
                tape.enter(code.swap);
                let (low, high) = (self.rows.get(tape, 0, j), self.rows.get(tape, 1, chosen));
                self.rows.set(tape, 2, j, high);
                self.rows.set(tape, 3, chosen, low);
                order.swap(j, chosen);
            }
            if j + 1 < self.n {
                self.scale_column(code, tape, j);
                self.update_rest(code, tape, j);
            }
        }
        order
    }

    fn element(&self, block: Block, tape: &mut Tape<'_>, i: usize, j: usize) -> f64 {
        tape.enter(block);
        let row = self.rows.get(tape, 0, i);
        self.factors.get(tape, 1, self.at(row, j))
    }

    /// The row with the largest element of column `j`, from row `j` on.
    fn choose_pivot(&mut self, code: &Code, tape: &mut Tape<'_>, j: usize) -> usize {
        let mut chosen = j;
        let mut largest = self.element(code.pivot, tape, j, j).abs();
        for i in j + 1..self.n {
            let value = self.element(code.pivot, tape, i, j).abs();
            if value > largest {
                (chosen, largest) = (i, value);
            }
        }
        self.element(code.chosen, tape, chosen, j);
        self.pivots.set(tape, 2, j, chosen as u32);
        chosen
    }

    fn scale_column(&mut self, code: &Code, tape: &mut Tape<'_>, j: usize) {
        let factor = 1.0 / self.element(code.reciprocal, tape, j, j);
        for i in j + 1..self.n {
            let value = self.element(code.scale, tape, i, j);
            let at = self.at(self.rows.raw()[i], j);
            self.factors.set(tape, 2, at, value * factor);
        }
    }

    fn update_rest(&mut self, code: &Code, tape: &mut Tape<'_>, j: usize) {
        for i in j + 1..self.n {
            tape.enter(code.row);
            let target = self.rows.get(tape, 0, i);
            let pivot = self.rows.get(tape, 1, j);
            let factor = self.factors.get(tape, 2, self.at(target, j));
            for k in j + 1..self.n {
                tape.enter(code.inner);
                let above = self.factors.get(tape, 0, self.at(pivot, k));
                let at = self.at(target, k);
                let value = self.factors.get(tape, 1, at);
                self.factors.set(tape, 2, at, value - factor * above);
            }
        }
    }

    /// `P A x = L (U x)` for a random x (Freivalds): wrong factors pass only if
    /// x lies in a subspace, and the test costs n^2, not n^3.
    fn check(&self, order: &[usize], random: &mut Random) -> Result<(), WrongResult> {
        let n = self.n;
        let x: Vec<f64> = (0..n).map(|_| random.signed_unit()).collect();
        let row = |i: usize| {
            let start = self.rows.raw()[i] as usize * n;
            &self.factors.raw()[start..start + n]
        };
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let ux: Vec<f64> = (0..n).map(|i| dot(&row(i)[i..], &x[i..])).collect();
        for (i, &from) in order.iter().enumerate() {
            let lux = ux[i] + dot(&row(i)[..i], &ux[..i]);
            let pax = dot(&self.original.raw()[from * n..(from + 1) * n], &x);
            let off = (lux - pax).abs();
            if off.is_nan() || off > 1e-9 * n as f64 {
                return Err(WrongResult(format!("row {i} of L*U is off by {off}")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::kit::testing::with_tape;
    use super::*;

    #[test]
    fn a_wrong_factor_is_found() {
        let (mut m, order) = with_tape(|tape| {
            let code = Code::new(tape);
            let mut random = Random::new(5);
            let mut m = Matrices {
                n: 20,
                original: tape.map((0..400).map(|_| random.signed_unit()).collect(), 8),
                original_rows: tape.map((0..20).collect(), 8),
                factors: tape.map(vec![0.0; 400], 8),
                rows: tape.map((0..20).collect(), 8),
                pivots: tape.map(vec![0; 20], 4),
            };
            m.copy(&code, tape);
            let order = m.factorise(&code, tape);
            (m, order)
        });
        assert_eq!(m.check(&order, &mut Random::new(9)), Ok(()));
        m.factors.raw_mut()[137] += 1e-3;
        assert!(m.check(&order, &mut Random::new(9)).is_err());
    }
}
