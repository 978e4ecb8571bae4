//! MFC's benchmark: draws a file, reads all of it, and perhaps works on it.
//!
//! One iteration is one file, drawn uniformly or by Zipf's law, and read by
//! `pread` in calls of `chunk` bytes (the default, one call, is what "reads it
//! entirely with pread" says; section 6.1). With `pair` it draws two files and
//! takes turns call by call, the first file first, into two buffers: the variant of
//! figure 8, of which the paper does not print the size of a call. Each thread
//! draws its own files and has its own buffers. The program has no end of its own
//! and hardly a reference for a read: give `iterations`.
//!
//! With `instrs` it also works on what it read, line by line: so many
//! instructions for 64 B, and loads of `width` bytes that cover the line. That is
//! how grep, wc and md5sum stand here, with the numbers that their recordings
//! show (`reproduce/mfc/grid.toml`); the default, 0, is the paper's read
//! benchmark, which does not look at what it reads. The bytes
//! of a call are worked on before the next call.
//!
//! Word w of file f holds `mix(f, w)`, so that the sum of all first words of the
//! loads is known. Blocks: `choose`, 40 instructions (the state of the generator
//! and the descriptor of the file, which waits for nothing: it is drawn); `line`,
//! as above.

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
const PAIR: usize = 5;
const INSTRS: usize = 6;
const WIDTH: usize = 7;
const LINE: u64 = 64;

static SPEC: Spec = Spec {
    name: "readfiles",
    about: "draws files and reads them whole (MFC's benchmark); give iterations",
    params: &[
        Param::count("files", "files, all of one size", 32, 1, 4096),
        bytes("size", "bytes of a file", 256 << 10),
        bytes("chunk", "bytes of a read call, at most a file", 256 << 10),
        Param::count("threads", "threads, each with its own buffers", 1, 1, 64),
        Param::count("zipf", "1: the kth file is drawn 1/k as often", 0, 0, 1),
        Param::count("pair", "1: two files at once, call by call", 0, 0, 1),
        Param::count("instrs", "instructions on each 64 B read", 0, 0, 4096),
        Param {
            pow2: true,
            ..Param::count("width", "bytes of a load, if there are any", 32, 1, 64)
        },
    ],
};

const fn bytes(key: &'static str, about: &'static str, default: u64) -> Param {
    Param {
        key,
        unit: Unit::Bytes,
        default,
        min: 64,
        max: 16 << 20,
        pow2: false,
        about,
    }
}

/// MFC's read benchmark.
pub(super) struct ReadFiles;

struct Code {
    choose: Block,
    /// With the number of its loads.
    line: Option<(Block, usize)>,
}

impl Code {
    fn new(tape: &mut Tape<'_>, instrs: u64, width: u64) -> Self {
        let choose = Shape::new(40).update(2, 8).load(20, 24);
        let loads = LINE / width;
        let line = (0..loads).fold(Shape::new(instrs as u16), |shape, i| {
            shape.load((i * instrs / loads) as u16, width as u8)
        });
        Self {
            choose: tape.block(choose),
            line: (instrs > 0).then(|| (tape.block(line), loads as usize)),
        }
    }
}

/// One of the files being read by a thread.
struct Reading {
    file: usize,
    buffer: Array<u64>,
    sum: u64,
}

impl Kernel for ReadFiles {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn threads(&self, values: &Values) -> u32 {
        values.get(THREADS) as u32
    }

    fn check(&self, values: &Values) -> Result<(), String> {
        let [size, chunk] = [SIZE, CHUNK].map(|p| values.get(p));
        let (instrs, loads) = (values.get(INSTRS), LINE / values.get(WIDTH));
        if chunk > size || chunk % LINE != 0 || size % LINE != 0 {
            return Err(format!(
                "chunk = {chunk} B of files of {size} B; allowed: both multiples of {LINE} B, a chunk \
                 at most a file"
            ));
        }
        if instrs > 0 && instrs < loads {
            return Err(format!(
                "instrs = {instrs} with {loads} loads of 64 B; allowed: 0, or one for each load"
            ));
        }
        Ok(())
    }

    fn run(&self, values: &Values, seed: u64, tape: &mut Tape<'_>) -> Result<(), WrongResult> {
        let [files, size, chunk] = [FILES, SIZE, CHUNK].map(|p| values.get(p));
        let threads = values.get(THREADS) as usize;
        let code = Code::new(tape, values.get(INSTRS), values.get(WIDTH));
        let draw = Draw::new(files, values.get(ZIPF) == 1);
        let at_once = 1 + values.get(PAIR) as usize;
        let names = (0..files).map(|f| format!("builtin/readfiles/{f}"));
        let open: Vec<File> = names.map(|name| tape.open(&name, size)).collect();
        let table: Array<[u64; 3]> = tape.map(vec![[0; 3]; files as usize], 24);
        let mut state: Vec<Array<u64>> = (0..threads).map(|_| tape.map(vec![0; 8], 8)).collect();
        let buffer = |_| Reading {
            file: 0,
            buffer: tape.map(vec![0; (chunk / 8) as usize], 8),
            sum: 0,
        };
        let mut buffers: Vec<Reading> = (0..threads * at_once).map(buffer).collect();
        spawn_others(tape, threads);
        for (t, mine) in buffers.chunks_mut(at_once).enumerate() {
            if t > 0 {
                tape.switch(t as u32);
            }
            tape.ready();
            let mut random = Random::new(mix(seed, t as u64));
            while tape.again() {
                for reading in mine.iter_mut() {
                    reading.file = draw.next(&mut random) as usize;
                    tape.enter(code.choose);
                    state[t].update(tape, 0, 0, |s| s + 1);
                    table.get(tape, 1, reading.file);
                }
                read(&code, tape, &open, mine, size);
                check(mine, size, code.line.is_some())?;
            }
        }
        Ok(())
    }
}

/// Reads the files, in turns, and works on each call's bytes.
fn read(code: &Code, tape: &mut Tape<'_>, open: &[File], readings: &mut [Reading], size: u64) {
    for reading in readings.iter_mut() {
        reading.sum = 0;
    }
    let chunk = readings.first().map_or(1, |r| 8 * r.buffer.len() as u64);
    for offset in (0..size).step_by(chunk as usize) {
        for reading in readings.iter_mut() {
            let to = reading.buffer.addr(0);
            let len = chunk.min(size - offset);
            tape.read(&open[reading.file], offset, len, to);
            if let Some((line, loads)) = code.line {
                reading.fill(offset);
                reading.work(tape, line, loads, (len / 8) as usize);
            }
        }
    }
}

impl Reading {
    /// What the kernel puts into the buffer.
    fn fill(&mut self, offset: u64) {
        let (file, first) = (self.file as u64, offset / 8);
        for (w, word) in self.buffer.raw_mut().iter_mut().enumerate() {
            *word = mix(file, first + w as u64);
        }
    }

    fn work(&mut self, tape: &mut Tape<'_>, line: Block, loads: usize, words: usize) {
        let per_line = (LINE / 8) as usize;
        for first in (0..words).step_by(per_line) {
            tape.enter(line);
            for i in 0..loads {
                let byte = i as u64 * LINE / loads as u64;
                self.buffer.touch(tape, i as u16, first, byte);
            }
            let words = &self.buffer.raw()[first..first + per_line];
            self.sum = words.iter().fold(self.sum, |s, &w| s.wrapping_add(w));
        }
    }
}

/// Every word of the file was met once.
fn check(readings: &[Reading], size: u64, worked: bool) -> Result<(), WrongResult> {
    for reading in readings.iter().filter(|_| worked) {
        let words = (0..size / 8).map(|w| mix(reading.file as u64, w));
        let expected = words.fold(0u64, u64::wrapping_add);
        if reading.sum != expected {
            return Err(WrongResult(format!(
                "file {} adds up to {}, expected {expected}",
                reading.file, reading.sum
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::kit::testing::with_tape;
    use super::*;

    #[test]
    fn a_wrong_sum_is_found() {
        let mut reading = with_tape(|tape| Reading {
            file: 3,
            buffer: tape.map(vec![0; 8], 8),
            sum: 0,
        });
        reading.sum = (0..8).fold(0, |s, w| mix(3, w).wrapping_add(s));
        assert_eq!(check(core::slice::from_ref(&reading), 64, true), Ok(()));
        reading.sum ^= 1;
        assert!(check(core::slice::from_ref(&reading), 64, true).is_err());
    }
}
