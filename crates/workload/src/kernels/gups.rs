//! GUPS, the HPC Challenge RandomAccess benchmark: `T[r mod n] ^= r` for the
//! numbers of a primitive polynomial over GF(2).
//!
//! One iteration is `n` updates for a table of `n` words, shared out over the
//! threads (HPCC makes 4n and leaves the number of sequences to the
//! implementation; here each thread runs one, from its own start). Updates
//! commute, so that the order between threads does not change the result.
//!
//! Block `update`, 8 instructions: four for the next number, one to mask, the
//! update, advance, branch. No address depends on a load.

use super::kit::{part, spawn_others};
use super::{Init, Kernel, WrongResult};
use crate::memory::{Array, Shape, Tape};
use crate::random::mix;
use crate::spec::{Param, Spec, Unit, Values};

const SIZE: usize = 0;
const THREADS: usize = 1;
/// x^63 + x^2 + x + 1, the generator of HPCC's RandomAccess.
const POLY: u64 = 7;

static SPEC: Spec = Spec {
    name: "gups",
    about: "HPCC RandomAccess: independent updates of random words",
    params: &[
        Param {
            key: "size",
            unit: Unit::Bytes,
            default: 64 << 20,
            min: 4096,
            max: 1 << 30,
            pow2: true,
            about: "the table of 8 B words",
        },
        Param::threads(),
    ],
};

/// RandomAccess.
pub(super) struct Gups;

/// The numbers of one thread.
#[derive(Clone)]
struct Sequence(u64);

impl Sequence {
    /// Any start but 0 will do: the sequence then visits all 2^64 - 1 states it
    /// can reach.
    const fn new(seed: u64, thread: usize) -> Self {
        Self(mix(seed, thread as u64) | 1)
    }

    #[inline]
    const fn next(&mut self) -> u64 {
        self.0 = self.0 << 1 ^ ((self.0 as i64 >> 63) as u64 & POLY);
        self.0
    }
}

impl Kernel for Gups {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn threads(&self, values: &Values) -> u32 {
        values.get(THREADS) as u32
    }

    fn run(&self, values: &Values, seed: u64, tape: &mut Tape<'_>) -> Result<(), WrongResult> {
        let n = (values.get(SIZE) / 8) as usize;
        let threads = values.get(THREADS) as usize;
        let init = Init::new(tape, 8);
        let update = tape.block(Shape::new(8).update(5, 8));
        // All words are set before any thread runs: threads are written to the
        // tape one after the other, and must not undo one another's updates.
        let mut table: Array<u64> = tape.map((0..n as u64).collect(), 8);
        let mut done = vec![0u64; threads];
        spawn_others(tape, threads);
        for (t, done) in done.iter_mut().enumerate() {
            if t > 0 {
                tape.switch(t as u32);
            }
            init.touch(tape, &table, part(n, t, threads));
            tape.ready();
            let mut sequence = Sequence::new(seed, t);
            while tape.again() {
                for _ in part(n, t, threads) {
                    let r = sequence.next();
                    tape.enter(update);
                    table.update(tape, 0, r as usize & (n - 1), |word| word ^ r);
                }
                *done += part(n, t, threads).len() as u64;
            }
        }
        check(&table, seed, &done)
    }
}

/// Applying the same updates again restores `T[i] = i`.
fn check(table: &Array<u64>, seed: u64, done: &[u64]) -> Result<(), WrongResult> {
    let mut words = table.raw().to_vec();
    let n = words.len();
    for (t, &updates) in done.iter().enumerate() {
        let mut sequence = Sequence::new(seed, t);
        for _ in 0..updates {
            let r = sequence.next();
            words[r as usize & (n - 1)] ^= r;
        }
    }
    match words.iter().enumerate().find(|&(i, &w)| w != i as u64) {
        None => Ok(()),
        Some((i, w)) => Err(WrongResult(format!("word {i} does not return, but is {w}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::kit::testing::with_tape;
    use super::*;

    #[test]
    fn a_lost_update_is_found() {
        let mut table = with_tape(|tape| tape.map((0..64).collect(), 8));
        let mut sequence = Sequence::new(1, 0);
        for _ in 0..100 {
            let r = sequence.next();
            table.raw_mut()[r as usize & 63] ^= r;
        }
        assert_eq!(check(&table, 1, &[100]), Ok(()));
        assert!(check(&table, 1, &[99]).is_err());
    }

    #[test]
    fn the_sequence_is_that_of_the_polynomial() {
        // HPCC: ran = (ran << 1) ^ (ran < 0 ? 7 : 0).
        let mut s = Sequence(1 << 62);
        assert_eq!([s.next(), s.next(), s.next()], [1 << 63, 7, 14]);
    }
}
