//! STREAM triad (McCalpin): `a[i] = b[i] + s * c[i]` over three arrays.
//!
//! One iteration is one pass over the thread's part. With several threads the
//! arrays are one heap, each thread initialises and processes its own contiguous
//! part (OpenMP's static schedule with parallel first touch). Deviation: no
//! barrier between passes, so threads may drift apart; the kernel is there to
//! saturate bandwidth, and a barrier would only add idle time.
//!
//! Block `triad`, 6 instructions per element: load c, multiply, load b and add,
//! store a, advance, branch. No address depends on a load. Scalar code, as
//! compilers make at -O2 for arrays that may overlap.

use super::kit::{part, spawn_others};
use super::{Init, Kernel, WrongResult};
use crate::memory::{Array, Block, Shape, Tape};
use crate::spec::{Param, Spec, Unit, Values};

const SIZE: usize = 0;
const THREADS: usize = 1;
const SCALE: f64 = 3.0;

static SPEC: Spec = Spec {
    name: "triad",
    about: "STREAM triad a = b + s*c; misses all the way, bound by bandwidth",
    params: &[
        Param {
            key: "size",
            unit: Unit::Bytes,
            default: 64 << 20,
            min: 4096,
            max: 1 << 30,
            pow2: false,
            about: "the three arrays together",
        },
        Param::threads(),
    ],
};

/// STREAM triad.
pub(super) struct Triad;

struct Arrays {
    a: Array<f64>,
    b: Array<f64>,
    c: Array<f64>,
}

struct Code {
    init: Init,
    triad: Block,
}

impl Kernel for Triad {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn threads(&self, values: &Values) -> u32 {
        values.get(THREADS) as u32
    }

    fn run(&self, values: &Values, _seed: u64, tape: &mut Tape<'_>) -> Result<(), WrongResult> {
        let n = (values.get(SIZE) / 24) as usize;
        let threads = values.get(THREADS) as usize;
        let code = Code {
            init: Init::new(tape, 8),
            triad: tape.block(Shape::new(6).load(0, 8).load(2, 8).store(3, 8)),
        };
        let mut arrays = Arrays {
            a: tape.map(vec![0.0; n], 8),
            b: tape.map(vec![0.0; n], 8),
            c: tape.map(vec![0.0; n], 8),
        };
        spawn_others(tape, threads);
        for t in 0..threads {
            if t > 0 {
                tape.switch(t as u32);
            }
            arrays.thread(&code, tape, part(n, t, threads));
        }
        arrays.check()
    }
}

impl Arrays {
    fn thread(&mut self, code: &Code, tape: &mut Tape<'_>, part: core::ops::Range<usize>) {
        code.init.fill(tape, &mut self.a, part.clone(), |_| 0.0);
        code.init
            .fill(tape, &mut self.b, part.clone(), |i| i as f64);
        code.init
            .fill(tape, &mut self.c, part.clone(), |i| 2.0 * i as f64);
        tape.ready();
        while tape.again() {
            for i in part.clone() {
                tape.enter(code.triad);
                let c = self.c.get(tape, 0, i);
                let b = self.b.get(tape, 1, i);
                self.a.set(tape, 2, i, b + SCALE * c);
            }
        }
    }

    /// `i + 3 * 2i = 7i`, exact in a double below 2^53.
    fn check(&self) -> Result<(), WrongResult> {
        for (i, &a) in self.a.raw().iter().enumerate() {
            if a != 7.0 * i as f64 {
                return Err(WrongResult(format!("a[{i}] = {a}, expected {}", 7 * i)));
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
    fn a_wrong_element_is_found() {
        let check = |a: Vec<f64>| {
            with_tape(|tape| Arrays {
                a: tape.map(a, 8),
                b: tape.map(Vec::new(), 8),
                c: tape.map(Vec::new(), 8),
            })
            .check()
        };
        assert!(check(vec![0.0, 7.0, 14.0]).is_ok());
        assert!(check(vec![0.0, 7.0, 13.0]).is_err());
    }
}
