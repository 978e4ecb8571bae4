//! A file that is read from end to end and added up, as grep, wc and checksums
//! go through files.
//!
//! One iteration is one pass over the file, in `read` calls of one chunk into the
//! same buffer, each followed by a loop over the buffer. Word w of the file
//! holds w, so that the sum is known in closed form. Block `add`, `instrs` instructions
//! per 32 B, of which one loads; the default, 4, is load, add, advance, branch. No address
//! depends on a load.

use super::{Kernel, WrongResult};
use crate::memory::{Array, Shape, Tape};
use crate::spec::{Param, Spec, Unit, Values};

const SIZE: usize = 0;
const CHUNK: usize = 1;
const INSTRS: usize = 2;

static SPEC: Spec = Spec {
    name: "scan",
    about: "reads a file from end to end and adds it up",
    params: &[
        Param {
            key: "size",
            unit: Unit::Bytes,
            default: 100 << 20,
            min: 4096,
            max: 1 << 40,
            pow2: false,
            about: "the file, rounded down to 32 B",
        },
        Param {
            key: "chunk",
            unit: Unit::Bytes,
            default: 32 << 10,
            min: 4096,
            max: 1 << 30,
            pow2: true,
            about: "bytes per read call, and size of the buffer",
        },
        Param::count("instrs", "instructions for 32 B", 4, 1, 4096),
    ],
};

/// File scan.
pub(super) struct Scan;

/// What one load brings.
type Piece = [u64; 4];
const PIECE: u64 = 32;

impl Kernel for Scan {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn run(&self, values: &Values, _seed: u64, tape: &mut Tape<'_>) -> Result<(), WrongResult> {
        let size = values.get(SIZE) / PIECE * PIECE;
        let chunk = values.get(CHUNK);
        let add = tape.block(Shape::new(values.get(INSTRS) as u16).load(0, PIECE as u8));
        let mut buffer: Array<Piece> = tape.map(vec![[0; 4]; (chunk / PIECE) as usize], PIECE);
        let file = tape.open("builtin/scan/file", size);
        tape.ready();
        while tape.again() {
            let (mut offset, mut sum) = (0, 0u64);
            while offset < size && !tape.full() {
                let len = chunk.min(size - offset);
                let pieces = (len / PIECE) as usize;
                for (i, piece) in buffer.raw_mut()[..pieces].iter_mut().enumerate() {
                    let first = offset / 8 + 4 * i as u64;
                    *piece = [first, first + 1, first + 2, first + 3];
                }
                tape.read(&file, offset, len, buffer.addr(0));
                for i in 0..pieces {
                    tape.enter(add);
                    let piece = buffer.get(tape, 0, i);
                    sum = piece.iter().fold(sum, |s, &w| s.wrapping_add(w));
                }
                offset += len;
            }
            check(sum, offset / 8)?;
        }
        Ok(())
    }
}

/// 0 + 1 + ... + (words - 1), modulo 2^64.
fn check(sum: u64, words: u64) -> Result<(), WrongResult> {
    let words = u128::from(words);
    let expected = (words * words.saturating_sub(1) / 2) as u64;
    match sum == expected {
        true => Ok(()),
        false => Err(WrongResult(format!("sum {sum}, expected {expected}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_sum_is_found() {
        assert_eq!(check(6, 4), Ok(()));
        assert_eq!(check(0, 0), Ok(()));
        assert!(check(7, 4).is_err());
    }
}
