//! One read of a file, with or without what it needs in the caches (MFC's section 6.6.1).
//!
//! Set-up reads the file three times, by calls of `chunk` bytes into one buffer, so that both are in
//! the caches as far as they fit. One iteration reads `others` other files of the same
//! size, which push it out, and then the file once more. A reference comes right before
//! this read and one right after it: with `warmup_refs = 1` and `budget_refs = 1` the read
//! is all that is measured. The others are read into the same buffer, which is in the
//! caches then, or with `apart` into one of their own. The program does not look at what it reads,
//! so that there is no result to check.
//!
//! Block `mark`, 2 instructions: the reference before and after the read.

use super::{Kernel, WrongResult};
use crate::memory::{Array, Block, File, Shape, Tape};
use crate::spec::{Param, Spec, Unit, Values};

const SIZE: usize = 0;
const CHUNK: usize = 1;
const OTHERS: usize = 2;
const APART: usize = 3;
const LINE: u64 = 64;
/// Reads of the file in set-up: the first one brings in the buffer, too.
const BEFORE: u64 = 3;

static SPEC: Spec = Spec {
    name: "reread",
    about: "reads a file once more, after others or none (MFC)",
    params: &[
        bytes("size", "bytes of a file", 256 << 10),
        bytes("chunk", "bytes of a read call, at most a file", 64 << 10),
        Param::count("others", "files that are read in between", 0, 0, 4096),
        Param::count("apart", "1: the others have a buffer of their own", 0, 0, 1),
    ],
};

const fn bytes(key: &'static str, about: &'static str, default: u64) -> Param {
    Param {
        key,
        unit: Unit::Bytes,
        default,
        min: LINE,
        max: 16 << 20,
        pow2: false,
        about,
    }
}

/// One read of a file.
pub(super) struct Reread;

impl Kernel for Reread {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn check(&self, values: &Values) -> Result<(), String> {
        let [size, chunk] = [SIZE, CHUNK].map(|p| values.get(p));
        if chunk > size || chunk % LINE != 0 || size % LINE != 0 {
            return Err(format!(
                "chunk = {chunk} B of files of {size} B; allowed: both multiples of {LINE} B, a chunk \
                 at most a file"
            ));
        }
        Ok(())
    }

    fn run(&self, values: &Values, _: u64, tape: &mut Tape<'_>) -> Result<(), WrongResult> {
        let [size, chunk, others] = [SIZE, CHUNK, OTHERS].map(|p| values.get(p));
        let mark = tape.block(Shape::new(2).load(0, 8));
        let state: Array<u64> = tape.map(vec![0; 8], 8);
        let mut buffer = || -> Array<u64> { tape.map(vec![0; (chunk / 8) as usize], 8) };
        let (own, other) = (buffer(), buffer());
        let apart = values.get(APART) == 1;
        let for_others = if apart { &other } else { &own };
        let names = (0..=others).map(|f| format!("builtin/reread/{f}"));
        let open: Vec<File> = names.map(|name| tape.open(&name, size)).collect();
        let Some((file, rest)) = open.split_first() else {
            return Err(WrongResult("no file is open".to_owned()));
        };
        for _ in 0..BEFORE {
            read(tape, file, size, &own);
        }
        tape.ready();
        while tape.again() {
            for file in rest {
                read(tape, file, size, for_others);
            }
            passes(tape, mark, &state);
            read(tape, file, size, &own);
            passes(tape, mark, &state);
        }
        Ok(())
    }
}

/// A reference that tells where the program is.
fn passes(tape: &mut Tape<'_>, mark: Block, state: &Array<u64>) {
    tape.enter(mark);
    state.get(tape, 0, 0);
}

/// Reads a whole file, call by call.
fn read(tape: &mut Tape<'_>, file: &File, size: u64, to: &Array<u64>) {
    let chunk = 8 * to.len() as u64;
    for offset in (0..size).step_by(chunk as usize) {
        tape.read(file, offset, chunk.min(size - offset), to.addr(0));
    }
}
