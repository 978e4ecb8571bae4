//! SciMark2's FFT: in place, radix 2, complex, forward and then inverse.
//!
//! N complex numbers are 16 N bytes. A transform is a bit reversal and log2 N
//! passes of N/2 butterflies; within a pass the loop over groups is the inner
//! one, so that late passes go through memory with a growing stride. One
//! iteration is a forward and an inverse transform, which must restore the
//! input.
//!
//! Blocks: `reverse` 6 and `carry` 4 instructions (no access), `swap` 12 (4 loads,
//! 4 stores), `first` 14 and `butterfly` 20 (4 loads, 4 stores each; the first
//! group's factor is 1), `twiddle` 10 (no access), `scale` 4 (load, store). No
//! address depends on a load.

use core::f64::consts::PI;

use super::{Init, Kernel, WrongResult};
use crate::memory::{Array, Block, Shape, Tape};
use crate::random::Random;
use crate::spec::{Param, Spec, Values};

const N: usize = 0;
/// Largest difference from the first input, of numbers below 1. A pair of
/// transforms adds about 1e-15, so this leaves room for a million iterations.
const TOLERANCE: f64 = 1e-9;

static SPEC: Spec = Spec {
    name: "fft",
    about: "SciMark2 FFT, forward and inverse, in place; strides grow per pass",
    params: &[Param {
        pow2: true,
        ..Param::count("n", "complex numbers, 16 B each", 1 << 17, 16, 1 << 24)
    }],
};

/// SciMark2's FFT.
pub(super) struct Fft;

struct Code {
    reverse: Block,
    carry: Block,
    swap: Block,
    first: Block,
    butterfly: Block,
    twiddle: Block,
    scale: Block,
}

impl Code {
    fn new(tape: &mut Tape<'_>) -> Self {
        let pairs = |instrs, loads: [u16; 4], stores: [u16; 4]| {
            let shape = loads.iter().fold(Shape::new(instrs), |s, &i| s.load(i, 8));
            stores.iter().fold(shape, |s, &i| s.store(i, 8))
        };
        Self {
            reverse: tape.block(Shape::new(6)),
            carry: tape.block(Shape::new(4)),
            swap: tape.block(pairs(12, [2, 3, 4, 5], [6, 7, 8, 9])),
            first: tape.block(pairs(14, [2, 3, 4, 5], [8, 9, 10, 11])),
            butterfly: tape.block(pairs(20, [2, 3, 10, 11], [14, 15, 16, 17])),
            twiddle: tape.block(Shape::new(10)),
            scale: tape.block(Shape::new(4).load(0, 8).store(2, 8)),
        }
    }
}

impl Kernel for Fft {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn run(&self, values: &Values, seed: u64, tape: &mut Tape<'_>) -> Result<(), WrongResult> {
        let n = values.get(N) as usize;
        let init = Init::new(tape, 8);
        let code = Code::new(tape);
        let mut random = Random::new(seed);
        let input: Vec<f64> = (0..2 * n).map(|_| random.signed_unit()).collect();
        let mut data = tape.map(vec![0.0; 2 * n], 8);
        init.fill(tape, &mut data, 0..2 * n, |i| input[i]);
        tape.ready();
        let mut spectrum_checked = false;
        while tape.again() {
            transform(&code, tape, &mut data, -1.0);
            if !spectrum_checked {
                check_bin(&input, data.raw())?;
                spectrum_checked = true;
            }
            transform(&code, tape, &mut data, 1.0);
            normalize(&code, tape, &mut data);
            check_restored(&input, data.raw())?;
        }
        Ok(())
    }
}

fn transform(code: &Code, tape: &mut Tape<'_>, data: &mut Array<f64>, direction: f64) {
    let n = data.len() / 2;
    reverse_bits(code, tape, data);
    let mut half = 1;
    while half < n {
        pass(code, tape, data, half, direction);
        half *= 2;
    }
}

/// One pass over groups of `2 * half` numbers.
fn pass(code: &Code, tape: &mut Tape<'_>, data: &mut Array<f64>, half: usize, direction: f64) {
    let n = data.len() / 2;
    let angle = direction * PI / half as f64;
    for k in 0..half {
        let block = match k {
            0 => code.first,
            _ => {
                tape.enter(code.twiddle);
                code.butterfly
            }
        };
        // The original rotates the factor by a recurrence, whose error grows
        // with N; the references are the same.
        let (sin, cos) = (angle * k as f64).sin_cos();
        for group in (0..n).step_by(2 * half) {
            butterfly(block, tape, data, [group + k, group + k + half], [cos, sin]);
        }
    }
}

fn butterfly(
    block: Block,
    tape: &mut Tape<'_>,
    data: &mut Array<f64>,
    [low, high]: [usize; 2],
    [cos, sin]: [f64; 2],
) {
    tape.enter(block);
    let re = data.get(tape, 0, 2 * high);
    let im = data.get(tape, 1, 2 * high + 1);
    let (wre, wim) = (cos * re - sin * im, cos * im + sin * re);
    let re = data.get(tape, 2, 2 * low);
    let im = data.get(tape, 3, 2 * low + 1);
    data.set(tape, 4, 2 * high, re - wre);
    data.set(tape, 5, 2 * high + 1, im - wim);
    data.set(tape, 6, 2 * low, re + wre);
    data.set(tape, 7, 2 * low + 1, im + wim);
}

/// Gold and Rader's bit reversal.
fn reverse_bits(code: &Code, tape: &mut Tape<'_>, data: &mut Array<f64>) {
    let n = data.len() / 2;
    let mut j = 0;
    for i in 0..n - 1 {
        tape.enter(code.reverse);
        if i < j {
            tape.enter(code.swap);
            let low = [data.get(tape, 0, 2 * i), data.get(tape, 1, 2 * i + 1)];
            let high = [data.get(tape, 2, 2 * j), data.get(tape, 3, 2 * j + 1)];
            data.set(tape, 4, 2 * i, high[0]);
            data.set(tape, 5, 2 * i + 1, high[1]);
            data.set(tape, 6, 2 * j, low[0]);
            data.set(tape, 7, 2 * j + 1, low[1]);
        }
        let mut k = n / 2;
        while k <= j {
            tape.enter(code.carry);
            j -= k;
            k /= 2;
        }
        j += k;
    }
}

fn normalize(code: &Code, tape: &mut Tape<'_>, data: &mut Array<f64>) {
    let factor = 2.0 / data.len() as f64;
    for i in 0..data.len() {
        tape.enter(code.scale);
        let value = data.get(tape, 0, i);
        data.set(tape, 1, i, value * factor);
    }
}

/// One number of the spectrum against the definition.
fn check_bin(input: &[f64], spectrum: &[f64]) -> Result<(), WrongResult> {
    let n = input.len() / 2;
    let bin = n / 3;
    let (mut re, mut im) = (0.0, 0.0);
    for (j, x) in input.chunks_exact(2).enumerate() {
        let turn = (bin as u64 * j as u64 % n as u64) as f64 / n as f64;
        let (sin, cos) = (-2.0 * PI * turn).sin_cos();
        re += x[0] * cos - x[1] * sin;
        im += x[0] * sin + x[1] * cos;
    }
    let got = [spectrum[2 * bin], spectrum[2 * bin + 1]];
    let off = (got[0] - re).abs().max((got[1] - im).abs());
    match off < 1e-9 * n as f64 {
        true => Ok(()),
        false => Err(WrongResult(format!("spectrum at {bin} is off by {off}"))),
    }
}

fn check_restored(input: &[f64], data: &[f64]) -> Result<(), WrongResult> {
    let off = |(a, b): (&f64, &f64)| (a - b).abs();
    let worst = input.iter().zip(data).map(off).fold(0.0, f64::max);
    match worst < TOLERANCE {
        true => Ok(()),
        false => Err(WrongResult(format!("the inverse is off by {worst}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::kit::testing::with_tape;
    use super::*;

    #[test]
    fn a_wrong_number_is_found() {
        let input: Vec<f64> = (0..32).map(|i| f64::from(i * i % 7)).collect();
        let spectrum = with_tape(|tape| {
            let code = Code::new(tape);
            let mut data = tape.map(input.clone(), 8);
            transform(&code, tape, &mut data, -1.0);
            data.raw().to_vec()
        });
        assert_eq!(check_bin(&input, &spectrum), Ok(()));
        let mut off = spectrum.clone();
        off[2 * (16 / 3)] += 1e-6;
        assert!(check_bin(&input, &off).is_err());
        assert!(check_restored(&input, &spectrum).is_err());
    }
}
