//! Pointer chase: one random cycle through all nodes, every load waits for the
//! one before.
//!
//! The cycle is Sattolo's (Sattolo: An algorithm to generate a random cyclic
//! permutation, 1986), so that no short cycle can hide in a cache. A node has 64
//! B and holds the next node's address in its first 8.
//!
//! One iteration goes once round. Block `step`, 3 instructions: load, count,
//! branch; the address is what the previous step loaded.

use super::{Init, Kernel, WrongResult};
use crate::memory::{Array, Block, Shape, Tape};
use crate::random::Random;
use crate::spec::{Param, Spec, Unit, Values};

const SIZE: usize = 0;
const NODE: u64 = 64;
const POINTER: u8 = 0;

static SPEC: Spec = Spec {
    name: "chase",
    about: "dependent loads round one random cycle of 64 B nodes; pure latency",
    params: &[Param {
        key: "size",
        unit: Unit::Bytes,
        default: 6 << 20,
        min: 4096,
        max: 8 << 30,
        pow2: false,
        about: "all nodes together",
    }],
};

/// Pointer chase.
pub(super) struct Chase;

impl Kernel for Chase {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn run(&self, values: &Values, seed: u64, tape: &mut Tape<'_>) -> Result<(), WrongResult> {
        let n = (values.get(SIZE) / NODE) as usize;
        let init = Init::new(tape, 8);
        let step = tape.block(Shape::new(3).load(0, 8).via(POINTER).keep(POINTER, 0));
        let cycle = sattolo(n, seed);
        let mut nodes = tape.map(vec![0u32; n], NODE);
        init.fill(tape, &mut nodes, 0..n, |i| cycle[i]);
        tape.ready();
        while tape.again() {
            go_round(&nodes, step, tape)?;
        }
        Ok(())
    }
}

/// The cycle is left exactly when it has closed, and must then have visited
/// every node.
fn go_round(nodes: &Array<u32>, step: Block, tape: &mut Tape<'_>) -> Result<(), WrongResult> {
    let mut at = 0;
    let mut steps = 0;
    loop {
        tape.enter(step);
        at = nodes.get(tape, 0, at as usize);
        steps += 1;
        if at == 0 {
            break;
        }
    }
    match steps == nodes.len() {
        true => Ok(()),
        false => Err(WrongResult(format!(
            "the cycle has {steps} steps, not {}",
            nodes.len()
        ))),
    }
}

/// A uniformly random permutation that is one cycle.
fn sattolo(n: usize, seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed);
    let mut next: Vec<u32> = (0..n as u32).collect();
    for i in (1..n).rev() {
        next.swap(i, random.below(i as u64) as usize);
    }
    next
}

#[cfg(test)]
mod tests {
    use super::super::kit::testing::with_tape;
    use super::*;

    #[test]
    fn a_short_cycle_is_found() {
        let round = |next: Vec<u32>| {
            with_tape(|tape| {
                let step = tape.block(Shape::new(1).load(0, 8));
                let nodes = tape.map(next, NODE);
                go_round(&nodes, step, tape)
            })
        };
        assert_eq!(round(vec![2, 0, 1]), Ok(()));
        assert!(round(vec![1, 0, 2]).is_err());
    }
}
