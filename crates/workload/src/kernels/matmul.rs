//! The product of two dense matrices by the textbook's three loops.
//!
//! Three matrices of 8 n^2 bytes; the inner loop runs along a row of A and a
//! column of B, so that each row of C goes through all of B with a stride of 8 n
//! bytes. SRM-buffer's *MM* is SciMark2's sparse product (`smm`): this program is
//! for the other reading of the name. One iteration is one product.
//!
//! Blocks: `begin` 8 instructions per element of C (none accesses memory), `inner` 6
//! (an element of A and one of B), `end` 4 (stores the sum). No address depends on
//! a load.

use super::{Init, Kernel, WrongResult};
use crate::memory::{Array, Block, Shape, Tape};
use crate::random::Random;
use crate::spec::{Param, Spec, Values};

const N: usize = 0;

static SPEC: Spec = Spec {
    name: "matmul",
    about: "dense matrix product by three loops",
    params: &[Param::count(
        "n",
        "rows and columns; three matrices of 8 n^2 bytes",
        350,
        16,
        1000,
    )],
};

/// Dense matrix product.
pub(super) struct MatMul;

struct Code {
    begin: Block,
    inner: Block,
    end: Block,
}

impl Kernel for MatMul {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn run(&self, values: &Values, seed: u64, tape: &mut Tape<'_>) -> Result<(), WrongResult> {
        let n = values.get(N) as usize;
        let init = Init::new(tape, 8);
        let code = Code {
            begin: tape.block(Shape::new(8)),
            inner: tape.block(Shape::new(6).load(0, 8).load(1, 8)),
            end: tape.block(Shape::new(4).store(0, 8)),
        };
        let mut random = Random::new(seed);
        let mut matrix = |tape: &mut Tape<'_>, zero: bool| {
            let mut m = tape.map(vec![0.0; n * n], 8);
            init.fill(tape, &mut m, 0..n * n, |_| match zero {
                true => 0.0,
                false => random.signed_unit(),
            });
            m
        };
        let a = matrix(tape, false);
        let b = matrix(tape, false);
        let mut c = matrix(tape, true);
        tape.ready();
        while tape.again() {
            c.raw_mut().fill(f64::NAN);
            multiply(&code, tape, [&a, &b], &mut c, n);
            let x: Vec<f64> = (0..n).map(|_| random.signed_unit()).collect();
            check([a.raw(), b.raw(), c.raw()], &x)?;
        }
        Ok(())
    }
}

fn multiply(
    code: &Code,
    tape: &mut Tape<'_>,
    [a, b]: [&Array<f64>; 2],
    c: &mut Array<f64>,
    n: usize,
) {
    for i in 0..n {
        for j in 0..n {
            tape.enter(code.begin);
            let mut sum = 0.0;
            for k in 0..n {
                tape.enter(code.inner);
                sum += a.get(tape, 0, i * n + k) * b.get(tape, 1, k * n + j);
            }
            tape.enter(code.end);
            c.set(tape, 0, i * n + j, sum);
        }
    }
}

/// `C x = A (B x)` for a random x (Freivalds).
fn check([a, b, c]: [&[f64]; 3], x: &[f64]) -> Result<(), WrongResult> {
    let n = x.len();
    let apply = |m: &[f64], x: &[f64]| -> Vec<f64> {
        m.chunks_exact(n)
            .map(|row| row.iter().zip(x).map(|(m, x)| m * x).sum())
            .collect()
    };
    let (left, right) = (apply(c, x), apply(a, &apply(b, x)));
    let off = left.iter().zip(&right).map(|(l, r)| (l - r).abs());
    match off.clone().position(|d| d.is_nan() || d > 1e-9 * n as f64) {
        None => Ok(()),
        Some(i) => Err(WrongResult(format!(
            "row {i} of the product is off by {}",
            (left[i] - right[i]).abs()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_element_is_found() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
        let right = [19.0, 22.0, 43.0, 50.0];
        assert_eq!(check([&a, &b, &right], &[1.0, -0.5]), Ok(()));
        let wrong = [19.0, 22.0, 43.0, 50.1];
        assert!(check([&a, &b, &wrong], &[1.0, -0.5]).is_err());
    }
}
