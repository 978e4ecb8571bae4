//! Lookups in large files: the case of MFC's section 4.7, whose files exceed a
//! core's cache and are split into chunks that are placed one by one.
//!
//! A file holds records of 64 B, sorted by key; record r of file f has key
//! `(f << 32) + 2 r`. One iteration draws a chunk, uniformly or by Zipf's law over all
//! chunks of all files, and a record of it; reads the chunk with one `pread`; and
//! searches it by halves. The paper has no such benchmark (its files all have
//! 256 KB): sizes are of this project, but for the chunk, which is half an L2
//! cache as the paper has it. A lookup leaves a dozen references: give `iterations`.
//!
//! Blocks: `choose`, 40 instructions (the state of the generator, the entry of the
//! chunk in a table); `probe`, 10 (the key in the middle; it waits for nothing, as which
//! half is taken is a predicted branch); `found`, 20 (two loads of the record).

use super::draw::Draw;
use super::kit::spawn_others;
use super::{Kernel, WrongResult};
use crate::memory::{Array, Block, File, Shape, Tape};
use crate::random::{Random, mix};
use crate::spec::{Param, Spec, Unit, Values};

const FILES: usize = 0;
const SIZE: usize = 1;
const CHUNK: usize = 2;
const THREADS: usize = 3;
const ZIPF: usize = 4;
const RECORD: u64 = 64;

static SPEC: Spec = Spec {
    name: "lookup",
    about: "looks up records in chunks of large sorted files; give iterations",
    params: &[
        Param::count("files", "files, all of one size", 2, 1, 256),
        bytes("size", "bytes of a file", 4 << 20),
        bytes(
            "chunk",
            "bytes read for a lookup, at most a file",
            256 << 10,
        ),
        Param::count("threads", "threads, each with its own buffer", 1, 1, 64),
        Param::count("zipf", "1: the kth chunk is drawn 1/k as often", 0, 0, 1),
    ],
};

const fn bytes(key: &'static str, about: &'static str, default: u64) -> Param {
    Param {
        key,
        unit: Unit::Bytes,
        default,
        min: 4096,
        max: 64 << 20,
        pow2: true,
        about,
    }
}

/// Lookups in large files.
pub(super) struct Lookup;

type Record = [u64; 8];

struct Code {
    choose: Block,
    probe: Block,
    found: Block,
}

/// A thread's buffer, and how it draws.
struct Searcher {
    state: Array<u64>,
    buffer: Array<Record>,
    random: Random,
}

impl Kernel for Lookup {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn threads(&self, values: &Values) -> u32 {
        values.get(THREADS) as u32
    }

    fn check(&self, values: &Values) -> Result<(), String> {
        let (size, chunk) = (values.get(SIZE), values.get(CHUNK));
        match chunk <= size {
            true => Ok(()),
            false => Err(format!(
                "chunk = {chunk} B of files of {size} B; allowed: 4096 B to a file"
            )),
        }
    }

    fn run(&self, values: &Values, seed: u64, tape: &mut Tape<'_>) -> Result<(), WrongResult> {
        let [files, size, chunk] = [FILES, SIZE, CHUNK].map(|p| values.get(p));
        let threads = values.get(THREADS) as usize;
        let per_file = size / chunk;
        let code = Code {
            choose: tape.block(Shape::new(40).update(2, 8).load(20, 16)),
            probe: tape.block(Shape::new(10).load(2, 8)),
            found: tape.block(Shape::new(20).load(2, 32).load(3, 32)),
        };
        let draw = Draw::new(files * per_file, values.get(ZIPF) == 1);
        let names = (0..files).map(|f| format!("builtin/lookup/{f}"));
        let open: Vec<File> = names.map(|name| tape.open(&name, size)).collect();
        let table: Array<[u64; 2]> = tape.map(vec![[0; 2]; (files * per_file) as usize], 16);
        let searcher = |t| Searcher {
            state: tape.map(vec![0; 8], 8),
            buffer: tape.map(vec![[0; 8]; (chunk / RECORD) as usize], RECORD),
            random: Random::new(mix(seed, t)),
        };
        let mut searchers: Vec<Searcher> = (0..threads as u64).map(searcher).collect();
        spawn_others(tape, threads);
        for (t, s) in searchers.iter_mut().enumerate() {
            if t > 0 {
                tape.switch(t as u32);
            }
            tape.ready();
            while tape.again() {
                tape.enter(code.choose);
                s.state.update(tape, 0, 0, |n| n + 1);
                let drawn = draw.next(&mut s.random);
                table.get(tape, 1, drawn as usize);
                let (file, part) = (drawn / per_file, drawn % per_file);
                let first = part * chunk / RECORD;
                tape.read(&open[file as usize], part * chunk, chunk, s.buffer.addr(0));
                s.fill(file, first);
                let wanted = first + s.random.below(chunk / RECORD);
                s.search(&code, tape, key(file, wanted))?;
            }
        }
        Ok(())
    }
}

/// Key of record `r` of file `f`.
const fn key(f: u64, r: u64) -> u64 {
    (f << 32) + 2 * r
}

impl Searcher {
    /// What the kernel puts into the buffer.
    fn fill(&mut self, file: u64, first: u64) {
        for (r, record) in self.buffer.raw_mut().iter_mut().enumerate() {
            let key = key(file, first + r as u64);
            *record = [key, 0, 0, 0, 0, 0, 0, !key];
        }
    }

    fn search(&mut self, code: &Code, tape: &mut Tape<'_>, key: u64) -> Result<(), WrongResult> {
        let (mut low, mut high) = (0, self.buffer.len());
        while high - low > 1 {
            let middle = low.midpoint(high);
            tape.enter(code.probe);
            match self.buffer.get(tape, 0, middle)[0] <= key {
                true => low = middle,
                false => high = middle,
            }
        }
        tape.enter(code.found);
        self.buffer.touch(tape, 0, low, 0);
        self.buffer.touch(tape, 1, low, 32);
        check(&self.buffer.raw()[low], key)
    }
}

fn check(found: &Record, key: u64) -> Result<(), WrongResult> {
    match found[0] == key && found[7] == !key {
        true => Ok(()),
        false => Err(WrongResult(format!(
            "key {key:#x} found the record of {:#x}",
            found[0]
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_record_is_found() {
        let key = key(1, 5);
        assert_eq!(check(&[key, 0, 0, 0, 0, 0, 0, !key], key), Ok(()));
        assert!(check(&[key + 2, 0, 0, 0, 0, 0, 0, !(key + 2)], key).is_err());
        assert!(check(&[key, 0, 0, 0, 0, 0, 0, 0], key).is_err());
    }
}
