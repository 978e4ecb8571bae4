//! Lengths of runs: how sequential the disk sees the reads.
//!
//! The DULO paper (section 4.1.2) draws the share of requested blocks that lie in
//! sequences shorter than a threshold. A *run* here is a longest row of reads in
//! the order of dispatch, each of which begins where the one before ended. Writes
//! between them are not counted and end no run.

use std::collections::BTreeMap;

use piebald_units::{Lba, block::SECTORS_SHIFT};

/// A histogram over the lengths of runs, in pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunLengths {
    runs: BTreeMap<u64, u64>,
    open: Option<Open>,
}

/// The run that the next read may still continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Open {
    end: Lba,
    pages: u64,
}

impl RunLengths {
    /// A read of `pages` pages at `lba` was dispatched.
    pub fn read(&mut self, lba: Lba, pages: u64) {
        let end = Lba(lba.0.saturating_add(pages << SECTORS_SHIFT));
        let before = match self.open {
            Some(open) if open.end == lba => open.pages,
            _ => {
                self.close();
                0
            }
        };
        self.open = Some(Open {
            end,
            pages: before.saturating_add(pages),
        });
    }

    /// The run that is open counts from now on, and no read continues it.
    pub fn close(&mut self) {
        if let Some(open) = self.open.take() {
            *self.runs.entry(open.pages).or_default() += 1;
        }
    }

    /// `(length in pages, number of runs)` in rising length, the open run included.
    pub fn histogram(&self) -> Vec<(u64, u64)> {
        let mut closed = self.clone();
        closed.close();
        closed.runs.into_iter().collect()
    }

    /// Pages in all runs.
    pub fn pages(&self) -> u64 {
        self.histogram().iter().map(|(len, n)| len * n).sum()
    }

    /// Pages in runs that are shorter than `threshold` pages.
    pub fn pages_below(&self, threshold: u64) -> u64 {
        let histogram = self.histogram();
        let short = histogram.iter().take_while(|(len, _)| *len < threshold);
        short.map(|(len, n)| len * n).sum()
    }
}
