//! SciMark2's sparse matrix-vector product in compressed row form:
//! `y[r] = sum of val[i] * x[col[i]]`.
//!
//! With nr = nz / N elements per row, element i of row r is in column
//! `i * max(r / nr, 1)`: nr slow streams over x. Values take 8 nz, columns 4 nz,
//! row starts 4 N, x and y 8 N bytes each; DULO's case is n = 1048576,
//! nz = 8388608. Arrays are initialised one by one. One iteration is one
//! product.
//!
//! Blocks: `begin` 8 instructions per row (two row starts), `element` 6 (column,
//! value, x), `end` 4 (stores y). The element of x waits for its column index;
//! column and value wait for the row's start.

use super::{Init, Kernel, WrongResult};
use crate::memory::{Array, Block, Shape, Tape};
use crate::random::Random;
use crate::spec::{Param, Spec, Values};

const N: usize = 0;
const NZ: usize = 1;
const START: u8 = 1;

static SPEC: Spec = Spec {
    name: "smm",
    about: "SciMark2 sparse matrix-vector product with its column pattern",
    params: &[
        Param::count("n", "rows and columns", 25_000, 16, 1 << 24),
        Param::count("nz", "elements, at least n", 250_000, 16, 1 << 26),
    ],
};

/// SciMark2's sparse product.
pub(super) struct Smm;

struct Code {
    begin: Block,
    element: Block,
    end: Block,
}

struct Matrix {
    val: Array<f64>,
    col: Array<u32>,
    row: Array<u32>,
}

impl Kernel for Smm {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn check(&self, values: &Values) -> Result<(), String> {
        let (n, nz) = (values.get(N), values.get(NZ));
        match nz >= n {
            true => Ok(()),
            false => Err(format!("nz = {nz} with n = {n}; nz must be at least n")),
        }
    }

    fn run(&self, values: &Values, seed: u64, tape: &mut Tape<'_>) -> Result<(), WrongResult> {
        let n = values.get(N) as usize;
        let per_row = values.get(NZ) as usize / n;
        let nz = per_row * n;
        let words = Init::new(tape, 8);
        let halves = Init::new(tape, 4);
        let code = Code::new(tape);
        let mut m = Matrix {
            val: tape.map(vec![0.0; nz], 8),
            col: tape.map(vec![0; nz], 4),
            row: tape.map(vec![0; n + 1], 4),
        };
        let mut x = tape.map(vec![0.0; n], 8);
        let mut y = tape.map(vec![0.0; n], 8);
        let mut random = Random::new(seed);
        words.fill(tape, &mut x, 0..n, |_| random.signed_unit());
        words.fill(tape, &mut y, 0..n, |_| 0.0);
        words.fill(tape, &mut m.val, 0..nz, |_| random.signed_unit());
        let column = |i: usize| (i % per_row * (i / per_row / per_row).max(1)) as u32;
        halves.fill(tape, &mut m.col, 0..nz, column);
        halves.fill(tape, &mut m.row, 0..n + 1, |r| (r * per_row) as u32);
        tape.ready();
        while tape.again() {
            y.raw_mut().fill(f64::NAN);
            m.multiply(&code, tape, &x, &mut y);
            m.check(per_row, x.raw(), y.raw())?;
        }
        Ok(())
    }
}

impl Code {
    fn new(tape: &mut Tape<'_>) -> Self {
        let begin = Shape::new(8).load(1, 4).load(2, 4).keep(START, 0);
        let element = Shape::new(6).load(0, 4).via(START).load(1, 8).via(START);
        Self {
            begin: tape.block(begin),
            element: tape.block(element.load(2, 8).after(0)),
            end: tape.block(Shape::new(4).store(0, 8)),
        }
    }
}

impl Matrix {
    fn multiply(&self, code: &Code, tape: &mut Tape<'_>, x: &Array<f64>, y: &mut Array<f64>) {
        for r in 0..y.len() {
            tape.enter(code.begin);
            let start = self.row.get(tape, 0, r) as usize;
            let end = self.row.get(tape, 1, r + 1) as usize;
            let mut sum = 0.0;
            for i in start..end {
                tape.enter(code.element);
                let column = self.col.get(tape, 0, i) as usize;
                let value = self.val.get(tape, 1, i);
                sum += value * x.get(tape, 2, column);
            }
            tape.enter(code.end);
            y.set(tape, 0, r, sum);
        }
    }

    /// Against a product that takes the columns from the pattern instead of the
    /// arrays.
    fn check(&self, per_row: usize, x: &[f64], y: &[f64]) -> Result<(), WrongResult> {
        for (r, (row, &y)) in self.val.raw().chunks_exact(per_row).zip(y).enumerate() {
            let step = (r / per_row).max(1);
            let naive: f64 = row
                .iter()
                .zip(x.iter().step_by(step))
                .map(|(v, x)| v * x)
                .sum();
            if (y - naive).abs() > 1e-12 * per_row as f64 || y.is_nan() {
                return Err(WrongResult(format!("y[{r}] = {y}, expected {naive}")));
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
    fn a_wrong_sum_is_found() {
        let m = with_tape(|tape| Matrix {
            val: tape.map(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 8),
            col: tape.map(vec![0, 1, 0, 1, 0, 1], 4),
            row: tape.map(vec![0, 2, 4, 6], 4),
        });
        let x = [1.0, 10.0, 100.0];
        assert_eq!(m.check(2, &x, &[21.0, 43.0, 65.0]), Ok(()));
        assert!(m.check(2, &x, &[21.0, 43.0, 64.0]).is_err());
        assert!(m.check(2, &x, &[21.0, f64::NAN, 65.0]).is_err());
    }
}
