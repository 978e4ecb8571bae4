//! SRM-buffer's first adverse case (its section 4.5): blocks of a file, read in
//! random order without a pause.
//!
//! One iteration is one read of `chunk` bytes at a block drawn uniformly, with
//! replacement. The program does not look at what it reads, and has hardly a
//! reference for a read: give `iterations`. What is checked is that each block is
//! drawn about as often as any other.
//!
//! Block `draw`, 24 instructions: the state of the generator is loaded and stored.

use super::{Kernel, WrongResult};
use crate::memory::{Array, Shape, Tape};
use crate::random::Random;
use crate::spec::{Param, Spec, Unit, Values};

const SIZE: usize = 0;
const CHUNK: usize = 1;

static SPEC: Spec = Spec {
    name: "randread",
    about: "reads blocks of a file in random order (SRM-buffer); give iterations",
    params: &[
        Param {
            key: "size",
            unit: Unit::Bytes,
            default: 512 << 20,
            min: 4096,
            max: 1 << 40,
            pow2: false,
            about: "the file, rounded down to whole blocks",
        },
        Param {
            key: "chunk",
            unit: Unit::Bytes,
            default: 4096,
            min: 512,
            max: 1 << 20,
            pow2: true,
            about: "bytes of a block and of a read call",
        },
    ],
};

/// Random reads.
pub(super) struct RandRead;

impl Kernel for RandRead {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn check(&self, values: &Values) -> Result<(), String> {
        let (size, chunk) = (values.get(SIZE), values.get(CHUNK));
        match chunk <= size {
            true => Ok(()),
            false => Err(format!(
                "chunk = {chunk} B of a file of {size} B; allowed: at most the file"
            )),
        }
    }

    fn run(&self, values: &Values, seed: u64, tape: &mut Tape<'_>) -> Result<(), WrongResult> {
        let chunk = values.get(CHUNK);
        let blocks = values.get(SIZE) / chunk;
        let draw = tape.block(Shape::new(24).load(1, 8).store(12, 8));
        let mut state: Array<u64> = tape.map(vec![0; 1], 8);
        let buffer: Array<u64> = tape.map(vec![0; (chunk / 8) as usize], 8);
        let file = tape.open("builtin/randread", blocks * chunk);
        let mut random = Random::new(seed);
        let mut halves = [0u64; 2];
        tape.ready();
        while tape.again() {
            tape.enter(draw);
            let drawn = state.get(tape, 0, 0) + 1;
            state.set(tape, 1, 0, drawn);
            let block = random.below(blocks);
            halves[usize::from(block >= blocks.div_ceil(2))] += 1;
            tape.read(&file, block * chunk, chunk, buffer.addr(0));
        }
        check(halves, blocks, state.raw()[0])
    }
}

/// As many blocks as reads, and both halves of the file within six standard
/// deviations of their share.
fn check(halves: [u64; 2], blocks: u64, reads: u64) -> Result<(), WrongResult> {
    if halves[0] + halves[1] != reads {
        return Err(WrongResult(format!("{halves:?} blocks in {reads} reads")));
    }
    let share = blocks.div_ceil(2) as f64 / blocks as f64;
    let (mean, variance) = (reads as f64 * share, reads as f64 * share * (1.0 - share));
    match (halves[0] as f64 - mean).abs() <= 6.0 * variance.sqrt() {
        true => Ok(()),
        false => Err(WrongResult(format!(
            "{} of {reads} reads in the first half, expected {mean}",
            halves[0]
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_reads_and_lopsided_ones_are_found() {
        assert_eq!(check([5010, 4990], 64, 10_000), Ok(()));
        assert!(check([5010, 4989], 64, 10_000).is_err());
        assert!(check([5400, 4600], 64, 10_000).is_err());
        assert_eq!(check([9, 0], 1, 9), Ok(()));
    }
}
