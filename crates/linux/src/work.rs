//! Work that is there to be measured: what a kernel does for programs, and programs that use a cache.

use std::{
    fs::{self, File},
    hint::black_box,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    process::Command,
};

use piebald_units::PAGE_SIZE;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use crate::sys;

/// Words of a cache line of 64 B.
const LINE_WORDS: usize = 8;
/// Bytes of a call that reads or writes.
const CALL: usize = 64 << 10;
/// Rounds of [`Work::Sweep`] over the same pages.
const ROUNDS: u32 = 4;

/// What a process does, and nothing else. Memory is in pages of the usual size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Work {
    /// Touches each page of so many bytes of new memory.
    Faults(u64),
    /// Writes a new file of so many bytes, reads it, and removes it.
    File(PathBuf, u64),
    /// Starts `true` so often, one after the other.
    Programs(u32),
    /// Goes from line to line of so many bytes, each once in an order that is drawn, so many steps in all.
    Walk {
        /// Memory, in bytes.
        bytes: u64,
        /// Lines that are read.
        steps: u64,
    },
    /// Reads each line of so many bytes, over and over and in new memory every few rounds, until it is killed.
    Sweep(u64),
    /// Does nothing until its standard input ends.
    Wait,
}

impl Work {
    /// Does it.
    ///
    /// # Errors
    /// A file or a program that cannot be made, or fails, and memory that is not there.
    pub fn run(&self) -> io::Result<()> {
        match self {
            Self::Faults(bytes) => {
                black_box(touched(*bytes)?);
                Ok(())
            }
            Self::File(path, bytes) => {
                // Somebody else's file of that name stays as it is.
                let made = File::create_new(path)?;
                let done = file(made, path, *bytes);
                let removed = fs::remove_file(path);
                done.and(removed)
            }
            Self::Programs(count) => programs(*count),
            Self::Walk { bytes, steps } => {
                black_box(walk(*bytes, *steps)?);
                Ok(())
            }
            Self::Sweep(bytes) => loop {
                let memory = touched(*bytes)?;
                for _ in 0..ROUNDS {
                    let lines = memory.iter().step_by(LINE_WORDS);
                    black_box(lines.fold(0u64, |sum, word| sum.wrapping_add(*word)));
                }
            },
            Self::Wait => io::stdin().read_to_end(&mut Vec::new()).map(drop),
        }
    }
}

/// New memory, each page written to.
fn touched(bytes: u64) -> io::Result<Vec<u64>> {
    let words = bytes as usize / size_of::<u64>();
    let room = Vec::<u64>::new().try_reserve_exact(words);
    room.map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    let mut memory = vec![0u64; words];
    sys::refuse_huge_pages(&mut memory);
    for word in memory.iter_mut().step_by(PAGE_SIZE as usize / 8) {
        *word = 1;
    }
    Ok(memory)
}

fn file(mut made: File, path: &Path, bytes: u64) -> io::Result<()> {
    let mut buffer = vec![1u8; CALL];
    for _ in 0..bytes.div_ceil(CALL as u64) {
        made.write_all(&buffer)?;
    }
    let mut read = File::open(path)?;
    while read.read(&mut buffer)? > 0 {}
    Ok(())
}

fn programs(count: u32) -> io::Result<()> {
    for _ in 0..count {
        let status = Command::new("true").status()?;
        if !status.success() {
            return Err(io::Error::other(format!("true ended with {status}")));
        }
    }
    Ok(())
}

/// The line on which it ends.
fn walk(bytes: u64, steps: u64) -> io::Result<u64> {
    let mut memory = touched(bytes)?;
    let lines = memory.len() / LINE_WORDS;
    if lines == 0 {
        return Ok(0);
    }
    // One cycle through all lines (Sattolo): each holds the number of the next.
    for line in 0..lines {
        memory[line * LINE_WORDS] = line as u64;
    }
    let mut draws = StdRng::seed_from_u64(1);
    for line in (1..lines).rev() {
        let other = draws.random_range(0..line);
        memory.swap(line * LINE_WORDS, other * LINE_WORDS);
    }
    let mut at = 0;
    for _ in 0..steps {
        at = memory[at as usize * LINE_WORDS];
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_comes_back_after_all_lines_and_not_before() {
        let lines = 64;
        let bytes = lines * 64;
        let walked = |bytes, steps| walk(bytes, steps).expect("there is room");
        assert_eq!(walked(bytes, lines), 0);
        for steps in 1..lines {
            assert_ne!(walked(bytes, steps), 0, "{steps}");
        }
        assert_eq!(walked(0, 10), 0);
    }

    #[test]
    fn a_file_is_gone_afterwards_and_one_of_others_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("new");
        assert!(Work::File(path.clone(), 200_000).run().is_ok());
        assert!(!path.exists());
        fs::write(&path, "mine").expect("written");
        assert!(Work::File(path.clone(), 200_000).run().is_err());
        assert_eq!(fs::read(&path).expect("is there"), b"mine");
    }

    #[test]
    fn memory_and_programs_end() {
        assert!(Work::Faults(1 << 20).run().is_ok());
        assert!(Work::Programs(2).run().is_ok());
        let memory = touched(1 << 16).expect("there is room");
        assert_eq!(memory.iter().sum::<u64>(), 16);
        let none = touched(1 << 62).map_err(|e| e.kind());
        assert_eq!(none, Err(io::ErrorKind::OutOfMemory));
    }
}
