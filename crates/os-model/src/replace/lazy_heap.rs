//! A heap whose entries are not removed when they go out of date.
//!
//! A page gets a new entry whenever its key changes; the policy says of an entry
//! whether it still holds. Entries that do not are skipped, taken off when they
//! reach the top, and swept out when they outnumber the others. A change costs one
//! push, and a push of a key that does not belong near the top is O(1) on average.

use std::collections::BinaryHeap;

/// Entries beyond twice the live ones that are tolerated before a sweep.
const SLACK: usize = 64;

/// The greatest key is on top; ties go to the greater page number.
#[derive(Clone, Debug, Default)]
pub(super) struct LazyHeap<K: Ord + Copy> {
    heap: BinaryHeap<(K, u32)>,
}

impl<K: Ord + Copy> LazyHeap<K> {
    pub(super) fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
        }
    }

    /// Adds an entry. `live` is the number of pages that have one that holds.
    #[inline]
    pub(super) fn push(&mut self, key: K, page: u32, live: u32, holds: impl Fn(K, u32) -> bool) {
        self.heap.push((key, page));
        if self.heap.len() > 2 * live as usize + SLACK {
            self.sweep(holds);
        }
    }

    #[cold]
    fn sweep(&mut self, holds: impl Fn(K, u32) -> bool) {
        let mut entries = std::mem::take(&mut self.heap).into_vec();
        entries.retain(|(key, page)| holds(*key, *page));
        entries.sort_unstable();
        entries.dedup();
        self.heap = BinaryHeap::from(entries);
    }

    /// The page on top. Takes entries off that do not hold.
    #[inline]
    pub(super) fn top(&mut self, holds: impl Fn(K, u32) -> bool) -> Option<u32> {
        while let Some(&(key, page)) = self.heap.peek() {
            if holds(key, page) {
                return Some(page);
            }
            self.heap.pop();
        }
        None
    }

    /// Pages from the top down; changes nothing. The first k cost O(k log k), if
    /// all entries hold.
    pub(super) fn order(&self, holds: impl Fn(K, u32) -> bool) -> impl Iterator<Item = u32> {
        let entries = self.heap.as_slice();
        // Parents are never below their children, so the next one down is always
        // among the children of those that were taken.
        let mut open: BinaryHeap<((K, u32), usize)> = BinaryHeap::new();
        open.extend(entries.first().map(|top| (*top, 0)));
        let mut last = None;
        std::iter::from_fn(move || {
            loop {
                let (entry, at) = open.pop()?;
                let children = [2 * at + 1, 2 * at + 2];
                open.extend(
                    children
                        .iter()
                        .filter_map(|c| entries.get(*c).map(|e| (*e, *c))),
                );
                let (key, page) = entry;
                if last != Some(entry) && holds(key, page) {
                    last = Some(entry);
                    return Some(page);
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_do_not_hold_are_skipped_and_doubles_come_once() {
        let mut heap = LazyHeap::new();
        for (key, page) in [(5, 1), (9, 2), (7, 3), (9, 2), (8, 1), (1, 4)] {
            heap.push(key, page, 4, |_, _| true);
        }
        let holds = |key: i32, page: u32| page != 2 && (key, page) != (5, 1);
        assert_eq!(heap.order(holds).collect::<Vec<_>>(), [1, 3, 4]);
        let all: Vec<u32> = heap.order(|_, _| true).collect();
        assert_eq!(all, [2, 1, 3, 1, 4]);
        assert_eq!(heap.top(holds), Some(1));
        assert_eq!(heap.top(|_, _| false), None);
    }

    #[test]
    fn a_sweep_bounds_the_entries_by_the_live_ones() {
        let mut heap = LazyHeap::new();
        for key in 0..10_000u64 {
            heap.push(key, 3, 1, |k, _| k + 1 >= key);
        }
        assert!(heap.heap.len() <= 2 + SLACK);
        assert_eq!(heap.top(|k, _| k == 9_999), Some(3));
    }
}
