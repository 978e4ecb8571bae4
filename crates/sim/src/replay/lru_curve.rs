//! The exact miss ratio of LRU at every size, in one pass (Mattson et al., 1970).
//!
//! LRU with `n` pages of memory misses exactly at references whose *stack distance*,
//! the number of other pages used since the page's last use, is `n` or more. Each
//! page's last use is a mark in the row of all references; a distance is the number of
//! marks after the page's own. When the row is full, marks move together.
//!
//! A page that is deleted leaves a hole where it lay: its mark stays, nobody's. The next page that is
//! moved or brought to the top from below fills the topmost hole, and what lay above moves down
//! that far only. So a memory has as many free places as there are holes among its marks.

use std::collections::BTreeSet;

use piebald_policy::contract::replacement::PageRef;

use super::cache::{Reference, Use};
use super::index::{PageIndex, PageKey};
use super::marks::Marks;

/// References whose index places are read ahead, as in the cache.
const AHEAD: usize = 32;

/// Smallest row of marks.
const MIN_ROOM: usize = 1 << 21;

/// Collects stack distances.
///
/// Memory: 32 to 64 B per different page.
pub struct LruCurve {
    last_use: PageIndex,
    marks: Marks,
    next: usize,
    /// Marks of deleted pages.
    holes: BTreeSet<usize>,
    /// Index: stack distance. Value: references with it.
    distances: Vec<u64>,
    references: u64,
}

impl Default for LruCurve {
    fn default() -> Self {
        Self {
            last_use: PageIndex::with_room(1 << 16),
            marks: Marks::new(MIN_ROOM),
            next: 0,
            holes: BTreeSet::new(),
            distances: Vec::new(),
            references: 0,
        }
    }
}

impl LruCurve {
    /// Uses and deletes pages in order.
    pub fn run(&mut self, references: &[Reference]) {
        for group in references.chunks(AHEAD) {
            let mut warm = 0;
            for reference in group {
                warm ^= self.last_use.warm(reference.key);
            }
            std::hint::black_box(warm);
            for reference in group {
                match reference.what {
                    Use::Delete => self.delete(reference.key),
                    _ => self.step(reference.key),
                }
            }
        }
    }

    #[inline]
    fn step(&mut self, key: PageKey) {
        if self.next == self.marks.room() {
            self.compact();
        }
        self.references += 1;
        let last = self.last_use.replace(key, PageRef(self.next as u32));
        let last = last.map(PageRef::index);
        if let Some(last) = last {
            self.count(self.marks.after(last));
        }
        match self.holes.last().copied() {
            Some(hole) if last.is_none_or(|last| last < hole) => {
                self.holes.remove(&hole);
                self.marks.clear(hole);
                self.holes.extend(last);
            }
            _ => {
                if let Some(last) = last {
                    self.marks.clear(last);
                }
            }
        }
        self.marks.set(self.next);
        self.next += 1;
    }

    fn delete(&mut self, key: PageKey) {
        if let Some(last) = self.last_use.get(key) {
            self.last_use.remove(key);
            self.holes.insert(last.index());
        }
    }

    #[inline]
    fn count(&mut self, distance: usize) {
        if distance >= self.distances.len() {
            self.distances.resize((distance + 1).next_power_of_two(), 0);
        }
        self.distances[distance] += 1;
    }

    /// Moves all marks to the row's beginning, in a row at least four times as long.
    fn compact(&mut self) {
        let pages = self.last_use.len() + self.holes.len();
        let ranks = self.marks.ranks();
        let old = std::mem::replace(&mut self.marks, Marks::new(MIN_ROOM.max(pages * 4)));
        self.last_use
            .renumber(|at| PageRef(old.rank(&ranks, at.index())));
        let holes = std::mem::take(&mut self.holes).into_iter();
        self.holes = holes.map(|at| old.rank(&ranks, at) as usize).collect();
        for at in 0..pages {
            self.marks.set(at);
        }
        self.next = pages;
    }

    /// References so far.
    pub fn references(&self) -> u64 {
        self.references
    }

    /// Misses at each of the sizes, in pages, in any order.
    pub fn misses(&self, sizes: &[u64]) -> Vec<u64> {
        let mut hits_below = Vec::with_capacity(self.distances.len() + 1);
        let mut sum = 0;
        hits_below.push(0);
        for &count in &self.distances {
            sum += count;
            hits_below.push(sum);
        }
        let hits = |&size: &u64| hits_below[(size as usize).min(hits_below.len() - 1)];
        sizes.iter().map(|s| self.references - hits(s)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Misses of a list that is searched from its head; keys with `DELETED` are deleted.
    fn slow_misses(keys: &[u64], size: usize) -> u64 {
        let mut list: Vec<u64> = Vec::new();
        let mut misses = 0;
        for &key in keys {
            if key & DELETED != 0 {
                list.retain(|k| *k != key ^ DELETED);
                continue;
            }
            match list.iter().position(|&k| k == key) {
                Some(at) => {
                    list.remove(at);
                }
                None => {
                    misses += 1;
                    list.truncate(size - 1);
                }
            }
            list.insert(0, key);
        }
        misses
    }

    /// Numbers below a bound, by chance.
    fn draws(mut state: u64) -> impl FnMut(u64) -> u64 {
        move |below| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        }
    }

    const DELETED: u64 = 1 << 32;

    fn curve(keys: &[u64], room: usize) -> LruCurve {
        let mut curve = LruCurve {
            marks: Marks::new(room),
            ..LruCurve::default()
        };
        let references: Vec<_> = keys
            .iter()
            .map(|&k| Reference {
                key: PageKey(k & !DELETED),
                what: match k & DELETED {
                    0 => Use::Read,
                    _ => Use::Delete,
                },
            })
            .collect();
        curve.run(&references);
        curve
    }

    #[test]
    fn agrees_with_an_lru_list_at_every_size() {
        let mut draw = draws(3);
        let mut keys = Vec::new();
        for round in 0..40 {
            keys.extend((0..50).map(|_| draw(30) * draw(30)));
            keys.extend(round..round + 40);
        }
        let sizes: Vec<u64> = (1..=900).collect();
        let fast = curve(&keys, 1).misses(&sizes);
        for (&size, fast) in sizes.iter().zip(fast) {
            assert_eq!(fast, slow_misses(&keys, size as usize), "size {size}");
        }
    }

    #[test]
    fn deleted_pages_leave_places_that_others_fill() {
        let mut draw = draws(7);
        let mut keys = Vec::new();
        for round in 0..200 {
            keys.extend((0..20).map(|_| draw(12) * draw(12)));
            // Some that are there, some that are not, and a file as a whole.
            keys.extend((0..5).map(|_| (draw(12) * draw(12)) | DELETED));
            if round % 7 == 0 {
                keys.extend((40..80).map(|k| k | DELETED));
            }
            keys.extend(round..round + draw(30));
        }
        let sizes: Vec<u64> = (1..=400).collect();
        let fast = curve(&keys, 1).misses(&sizes);
        for (&size, fast) in sizes.iter().zip(fast) {
            assert_eq!(fast, slow_misses(&keys, size as usize), "size {size}");
        }
        // The smallest row is filled, with holes in it.
        let many: Vec<u64> = (0..300_000u64)
            .flat_map(|n| [n % 1000, (n * 7 % 1000) | DELETED, n % 13, n % 1013])
            .collect();
        let fast = curve(&many, 1).misses(&[3, 100, 700]);
        for (size, fast) in [3, 100, 700].into_iter().zip(fast) {
            assert_eq!(fast, slow_misses(&many, size), "size {size}");
        }
    }

    /// A loop over `n` pages hits always with `n` pages of memory and never with fewer,
    /// and fills the smallest row several times.
    #[test]
    fn a_loop_has_a_step_at_its_length() {
        let n = 300_000;
        let keys: Vec<u64> = (0..20 * n).map(|i| i % n).collect();
        let curve = curve(&keys, 1);
        assert_eq!(curve.misses(&[1, n - 1, n, 2 * n]), [20 * n, 20 * n, n, n]);
    }
}
