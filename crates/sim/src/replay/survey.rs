//! What a trace consists of: counted while it passes.

use super::cache::Use;
use super::index::{PageIndex, PageKey};
use super::input::Batch;
use piebald_policy::contract::replacement::PageRef;

/// Different pages that are told apart exactly: 2^25, at most 1 GiB of table.
const EXACT_PAGES: usize = 1 << 25;

/// Counts different pages: exactly up to a bound, then by those whose hash is below a
/// threshold that falls as the table fills (adaptive sampling, Flajolet 1990), with a
/// standard error of about 0.02 % at the default bound.
#[derive(Clone)]
pub struct DistinctPages {
    seen: PageIndex,
    bound: usize,
    /// A page is looked at if its hash has this many leading zeros.
    depth: u32,
}

impl Default for DistinctPages {
    fn default() -> Self {
        Self::with_bound(EXACT_PAGES)
    }
}

impl DistinctPages {
    /// Exact up to `bound` pages, at least 8.
    pub fn with_bound(bound: usize) -> Self {
        Self {
            seen: PageIndex::with_room(1 << 12),
            bound: bound.max(8),
            depth: 0,
        }
    }

    /// Another hash than the table's, whose places would crowd otherwise.
    fn depth_of(key: PageKey) -> u32 {
        PageKey(key.hash() ^ 0x9e37_79b9_7f4a_7c15)
            .hash()
            .leading_zeros()
    }

    /// Counts a page.
    #[inline]
    pub fn add(&mut self, key: PageKey) {
        if self.depth > 0 && Self::depth_of(key) < self.depth {
            return;
        }
        self.seen.replace(key, PageRef(0));
        if self.seen.len() > self.bound {
            self.thin();
        }
    }

    fn thin(&mut self) {
        while self.seen.len() > self.bound {
            self.depth += 1;
            let depth = self.depth;
            self.seen.retain(|key| Self::depth_of(key) >= depth);
        }
    }

    /// Whether [`count`](Self::count) is exact.
    pub fn is_exact(&self) -> bool {
        self.depth == 0
    }

    /// The share of the pages that pass, 0 to 1.
    pub fn share(&self, passes: impl Fn(PageKey) -> bool) -> f64 {
        let passing = self.seen.keys().filter(|key| passes(*key)).count();
        passing as f64 / self.seen.len().max(1) as f64
    }

    /// Different pages so far.
    pub fn count(&self) -> u64 {
        (self.seen.len() as u64) << self.depth
    }
}

/// Counts of a trace.
#[derive(Clone, Default)]
pub struct Survey {
    /// References: pages of all requests.
    pub references: u64,
    /// Those of reads.
    pub reads: u64,
    /// Those of writes.
    pub writes: u64,
    /// References to the page after the one before.
    pub sequential: u64,
    /// Different pages.
    pub pages: DistinctPages,
    last: Option<PageKey>,
}

impl Survey {
    /// Counts a part of the stream, the parts in order.
    pub fn run(&mut self, batch: &Batch) {
        let mut sequential = 0;
        for reference in &batch.references {
            match reference.what {
                Use::Read => self.reads += 1,
                Use::Write => self.writes += 1,
                Use::Delete => continue,
            }
            self.references += 1;
            let follows = self
                .last
                .is_some_and(|last| last.0.checked_add(1) == Some(reference.key.0));
            sequential += u64::from(follows);
            self.last = Some(reference.key);
            self.pages.add(reference.key);
        }
        self.sequential += batch.following.unwrap_or(sequential);
    }

    /// References to the page after the one before, 0 to 1.
    pub fn sequential_share(&self) -> f64 {
        match self.references {
            0 => 0.0,
            n => self.sequential as f64 / n as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_pages_are_exact_up_to_the_bound_and_close_above() {
        let mut pages = DistinctPages::with_bound(10_000);
        for _ in 0..2 {
            for key in 0..10_000 {
                pages.add(PageKey(key * 8));
            }
        }
        assert_eq!((pages.count(), pages.is_exact()), (10_000, true));
        for key in 10_000..640_000 {
            pages.add(PageKey(key * 8));
        }
        assert!(!pages.is_exact());
        // Between 5000 and 10000 pages are kept: a standard error below 1.5 %.
        let error = pages.count() as f64 / 640_000.0 - 1.0;
        assert!(error.abs() < 0.06, "{error}");
    }
}
