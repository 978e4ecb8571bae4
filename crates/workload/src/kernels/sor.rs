//! SciMark2's SOR: successive over-relaxation of a 5-point stencil, in row
//! sweeps, with factor 1.25.
//!
//! An N x N grid of 8 B numbers and an array of row pointers. One iteration is
//! one sweep over the (N-2)^2 inner points. The border holds `i + 2j`, which is
//! harmonic, so the solution is known; every sweep must bring the error's energy
//! (the sum of its squared differences between neighbours) down.
//!
//! Blocks: `row` 10 instructions (3 row pointers), `point` 10 (5 loads, 1 store).
//! Points wait for the load of their row's pointer.

use super::{Init, Kernel, WrongResult};
use crate::memory::{Array, Block, Shape, Tape};
use crate::spec::{Param, Spec, Values};

const N: usize = 0;
const OMEGA: f64 = 1.25;
const ABOVE: u8 = 1;
const BELOW: u8 = 2;
const SELF: u8 = 3;

static SPEC: Spec = Spec {
    name: "sor",
    about: "SciMark2 successive over-relaxation, 5-point stencil",
    params: &[Param::count("n", "rows and columns", 1000, 16, 8192)],
};

/// SciMark2's SOR.
pub(super) struct Sor;

impl Kernel for Sor {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn run(&self, values: &Values, _seed: u64, tape: &mut Tape<'_>) -> Result<(), WrongResult> {
        let n = values.get(N) as usize;
        let init = Init::new(tape, 8);
        let row = Shape::new(10).load(1, 8).load(2, 8).load(3, 8);
        let row = tape.block(row.keep(ABOVE, 0).keep(BELOW, 1).keep(SELF, 2));
        let point = [(0, ABOVE), (1, BELOW), (3, SELF), (4, SELF), (5, SELF)]
            .iter()
            .fold(Shape::new(10), |s, &(insn, reg)| s.load(insn, 8).via(reg));
        let point = tape.block(point.store(8, 8).via(SELF));
        let mut rows: Array<u32> = tape.map(vec![0; n], 8);
        let mut grid = tape.map(vec![0.0; n * n], 8);
        init.fill(tape, &mut rows, 0..n, |i| i as u32);
        init.fill(tape, &mut grid, 0..n * n, |k| border(n, k));
        tape.ready();
        let mut before = energy(grid.raw(), n);
        while tape.again() {
            sweep([row, point], tape, &rows, &mut grid);
            let after = energy(grid.raw(), n);
            if after.is_nan() || after > before && after > 1e-12 * (n * n) as f64 {
                return Err(WrongResult(format!("energy grew from {before} to {after}")));
            }
            before = after;
        }
        Ok(())
    }
}

/// `i + 2j` on the border, 0 inside.
fn border(n: usize, k: usize) -> f64 {
    let (i, j) = (k / n, k % n);
    match i % (n - 1) == 0 || j % (n - 1) == 0 {
        true => solution(n, k),
        false => 0.0,
    }
}

fn solution(n: usize, k: usize) -> f64 {
    (k / n + 2 * (k % n)) as f64 / n as f64
}

fn sweep([row, point]: [Block; 2], tape: &mut Tape<'_>, rows: &Array<u32>, grid: &mut Array<f64>) {
    let n = rows.len();
    for i in 1..n - 1 {
        tape.enter(row);
        let above = rows.get(tape, 0, i - 1) as usize * n;
        let below = rows.get(tape, 1, i + 1) as usize * n;
        let this = rows.get(tape, 2, i) as usize * n;
        for j in 1..n - 1 {
            tape.enter(point);
            let around = grid.get(tape, 0, above + j)
                + grid.get(tape, 1, below + j)
                + grid.get(tape, 2, this + j - 1)
                + grid.get(tape, 3, this + j + 1);
            let old = grid.get(tape, 4, this + j);
            let new = OMEGA / 4.0 * around + (1.0 - OMEGA) * old;
            grid.set(tape, 5, this + j, new);
        }
    }
}

/// Energy of the difference from the solution.
fn energy(grid: &[f64], n: usize) -> f64 {
    let error = |k: usize| grid[k] - solution(n, k);
    (0..n * n)
        .map(|k| {
            let right = if k % n + 1 < n {
                error(k + 1) - error(k)
            } else {
                0.0
            };
            let down = if k / n + 1 < n {
                error(k + n) - error(k)
            } else {
                0.0
            };
            right * right + down * down
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn energy_is_zero_at_the_solution_only() {
        let exact: Vec<f64> = (0..64).map(|k| solution(8, k)).collect();
        assert!(energy(&exact, 8) < 1e-24);
        let start: Vec<f64> = (0..64).map(|k| border(8, k)).collect();
        assert!(energy(&start, 8) > 1.0);
    }
}
