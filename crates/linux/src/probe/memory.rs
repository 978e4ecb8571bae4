//! This computer's memory as something that can be timed.

use std::{
    fs::File,
    hint::black_box,
    io::{self, Read as _, Seek as _, SeekFrom},
    path::Path,
};

use piebald_units::PAGE_SIZE;

use super::Bench;
use crate::sys;

/// Words of 8 bytes in a line and in a page.
const LINE: usize = 8;
const PAGE: usize = PAGE_SIZE as usize / 8;
/// Lines of a page.
const LINES: usize = PAGE / LINE;
/// An odd number: `k * STRIDE mod LINES` visits each line once, never two neighbours in turn, so
/// that prefetchers that watch for strides of a line find none.
const STRIDE: usize = 29;

/// Pages of this process whose frames are known.
pub struct Memory {
    words: Vec<u64>,
    /// First word of the first page.
    start: usize,
    frames: Vec<u64>,
}

/// Why frames are not known.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The kernel does not tell.
    #[error(
        "proc/self/pagemap shows no frame numbers: root with CAP_SYS_ADMIN is needed to measure"
    )]
    Hidden,
    /// The file cannot be read.
    #[error("proc/self/pagemap: {0}")]
    Io(#[from] io::Error),
    /// Memory was swapped out or moved.
    #[error("{moved} of {pages} pages were moved meanwhile; nothing can be said of address bits")]
    Moved {
        /// Pages in other frames than before.
        moved: usize,
        /// All pages.
        pages: usize,
    },
}

impl Memory {
    /// Takes so many pages, each of the usual size.
    ///
    /// # Errors
    /// If their frames cannot be told.
    pub fn new(root: &Path, pages: usize) -> Result<Self, MemoryError> {
        let mut words = vec![0u64; (pages + 1) * PAGE];
        let start = words.as_ptr().align_offset(PAGE_SIZE as usize);
        sys::refuse_huge_pages(&mut words);
        for page in 0..pages {
            words[start + page * PAGE] = 1;
        }
        let mut memory = Self {
            words,
            start,
            frames: Vec::new(),
        };
        memory.frames = memory.look_up(root, pages)?;
        Ok(memory)
    }

    /// Are the pages still where they were?
    ///
    /// # Errors
    /// If more than one in a hundred is not.
    pub fn check(&self, root: &Path) -> Result<(), MemoryError> {
        let pages = self.frames.len();
        let now = self.look_up(root, pages)?;
        let moved = now.iter().zip(&self.frames).filter(|(a, b)| a != b).count();
        match moved * 100 > pages {
            true => Err(MemoryError::Moved { moved, pages }),
            false => Ok(()),
        }
    }

    fn look_up(&self, root: &Path, pages: usize) -> Result<Vec<u64>, MemoryError> {
        frames_at(root, self.words[self.start..].as_ptr() as u64, pages)
    }

    fn first_word(&self, page: usize) -> usize {
        self.start + page * PAGE
    }
}

/// Frames of so many pages of this process from an address on: bits 0-54 of each entry, if bit 63 says that there is one.
///
/// # Errors
/// If they cannot be told.
pub(crate) fn frames_at(root: &Path, address: u64, pages: usize) -> Result<Vec<u64>, MemoryError> {
    let mut file = File::open(root.join("proc/self/pagemap"))?;
    file.seek(SeekFrom::Start(address / PAGE_SIZE * 8))?;
    let mut entries = vec![0u8; pages * 8];
    file.read_exact(&mut entries).map_err(|e| match e.kind() {
        io::ErrorKind::UnexpectedEof => io::Error::new(
            e.kind(),
            "it ends before the entry of the last page that was looked up",
        ),
        _ => e,
    })?;
    let entries = entries.chunks_exact(8).map(|bytes| {
        let entry = bytes.iter().rev().fold(0u64, |n, b| n << 8 | u64::from(*b));
        let frame = entry & ((1 << 55) - 1);
        (entry >> 63 == 1 && frame != 0).then_some(frame)
    });
    entries
        .collect::<Option<Vec<u64>>>()
        .ok_or(MemoryError::Hidden)
}

impl Bench for Memory {
    fn frames(&self) -> &[u64] {
        &self.frames
    }

    fn visit(&mut self, pages: &[usize]) {
        let mut sum = 0u64;
        for page in pages {
            let first = self.first_word(*page);
            let lines = self.words[first..first + PAGE].iter().step_by(LINE);
            sum = lines.fold(sum, |sum, word| sum.wrapping_add(*word));
        }
        black_box(sum);
    }

    /// Makes each line name the next: page after page, lines out of order.
    fn prepare(&mut self, pages: &[usize]) {
        let starts: Vec<usize> = pages.iter().map(|page| self.first_word(*page)).collect();
        for (i, start) in starts.iter().enumerate() {
            let next_page = starts[(i + 1) % starts.len()];
            for k in 0..LINES {
                let at = start + (k * STRIDE % LINES) * LINE;
                let next = match k + 1 {
                    LINES => next_page,
                    k => start + (k * STRIDE % LINES) * LINE,
                };
                self.words[at] = next as u64;
            }
        }
    }

    fn walk(&mut self, pages: &[usize]) -> f64 {
        let Some(first) = pages.first() else {
            return 0.0;
        };
        let mut at = self.first_word(*first);
        let lines = pages.len() * LINES;
        let began = sys::thread_time_ns();
        for _ in 0..lines {
            at = self.words[at] as usize;
        }
        // Without this the walk is of no use, and may be left out.
        black_box(at);
        let took = sys::thread_time_ns() - began;
        took as f64 / lines as f64
    }
}
