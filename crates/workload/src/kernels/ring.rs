//! A table that is read through PostgreSQL's bulk-read ring.
//!
//! Scans of tables larger than a quarter of the buffer pool go through a ring of
//! 256 KiB (PostgreSQL's `GetAccessStrategy`, `BAS_BULKREAD`): each page of 8 KiB
//! is copied from the page cache into the next page of the same ring.

use piebald_units::VirtAddr;

use crate::memory::{Array, File, Tape};

/// Bytes of a page.
pub(super) const PAGE: u64 = 8192;
const PAGES: u64 = 32;
const WORD: u64 = 8;

/// The ring: words of real data.
pub(super) struct Ring {
    words: Array<u64>,
    next: u64,
}

impl Ring {
    pub(super) fn new(tape: &mut Tape<'_>) -> Self {
        let words = vec![0; (PAGES * PAGE / WORD) as usize];
        Self {
            words: tape.map(words, WORD),
            next: 0,
        }
    }

    /// Reads page `page` of a table of rows of `row_bytes`; `row` gives the words
    /// of a row that the program uses, as (index in the row, value). Returns the
    /// index of the page's first word in the ring.
    pub(super) fn read<const N: usize>(
        &mut self,
        tape: &mut Tape<'_>,
        file: &File,
        page: u64,
        row_bytes: u64,
        row: impl Fn(u64) -> [(usize, u64); N],
    ) -> usize {
        let slot = self.next;
        self.next = (self.next + 1) % PAGES;
        let first = (slot * PAGE / WORD) as usize;
        let rows = PAGE / row_bytes;
        for r in 0..rows {
            let start = first + (r * row_bytes / WORD) as usize;
            for (index, value) in row(page * rows + r) {
                self.words.raw_mut()[start + index] = value;
            }
        }
        let buffer: VirtAddr = self.words.addr(first);
        tape.read(file, page * PAGE, PAGE, buffer);
        first
    }

    /// Loads word `index` of the ring.
    #[inline]
    pub(super) fn get(&self, tape: &mut Tape<'_>, slot: u16, index: usize) -> u64 {
        self.words.get(tape, slot, index)
    }
}
