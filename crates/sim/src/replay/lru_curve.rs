//! The exact miss ratio of LRU at every size, in one pass (Mattson et al., 1970).
//!
//! LRU with `n` pages of memory misses exactly at references whose *stack distance*,
//! the number of other pages used since the page's last use, is `n` or more. Each
//! page's last use is a mark in the row of all references; a distance is the number of
//! marks after the page's own. When the row is full, marks move together.

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
    /// Index: stack distance. Value: references with it.
    distances: Vec<u64>,
    first_uses: u64,
    references: u64,
}

impl Default for LruCurve {
    fn default() -> Self {
        Self {
            last_use: PageIndex::with_room(1 << 16),
            marks: Marks::new(MIN_ROOM),
            next: 0,
            distances: Vec::new(),
            first_uses: 0,
            references: 0,
        }
    }
}

impl LruCurve {
    /// Uses pages in order. Deleting is not followed: LRU with a given size keeps no
    /// page longer for it, but those of other files may be kept longer, so that with
    /// deletions the curve is an upper bound.
    pub fn run(&mut self, references: &[Reference]) {
        for group in references.chunks(AHEAD) {
            let mut warm = 0;
            for reference in group {
                warm ^= self.last_use.warm(reference.key);
            }
            std::hint::black_box(warm);
            for reference in group {
                if reference.what != Use::Delete {
                    self.step(reference.key);
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
        match self.last_use.replace(key, PageRef(self.next as u32)) {
            Some(last) => {
                let distance = self.marks.after(last.index());
                self.marks.clear(last.index());
                self.count(distance);
            }
            None => self.first_uses += 1,
        }
        self.marks.set(self.next);
        self.next += 1;
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
        let pages = self.last_use.len();
        let ranks = self.marks.ranks();
        let old = std::mem::replace(&mut self.marks, Marks::new(MIN_ROOM.max(pages * 4)));
        self.last_use
            .renumber(|at| PageRef(old.rank(&ranks, at.index())));
        for at in 0..pages {
            self.marks.set(at);
        }
        self.next = pages;
    }

    /// References so far.
    pub fn references(&self) -> u64 {
        self.references
    }

    /// Different pages so far: from this size on there are only first misses.
    pub fn unique_pages(&self) -> u64 {
        self.first_uses
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

    /// Misses of a list that is searched from its head.
    fn slow_misses(keys: &[u64], size: usize) -> u64 {
        let mut list: Vec<u64> = Vec::new();
        let mut misses = 0;
        for &key in keys {
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

    fn curve(keys: &[u64], room: usize) -> LruCurve {
        let mut curve = LruCurve {
            marks: Marks::new(room),
            ..LruCurve::default()
        };
        let references: Vec<_> = keys
            .iter()
            .map(|&k| Reference {
                key: PageKey(k),
                what: Use::Read,
            })
            .collect();
        curve.run(&references);
        curve
    }

    #[test]
    fn agrees_with_an_lru_list_at_every_size() {
        let mut state = 3_u64;
        let mut draw = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
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

    /// A loop over `n` pages hits always with `n` pages of memory and never with fewer,
    /// and fills the smallest row several times.
    #[test]
    fn a_loop_has_a_step_at_its_length() {
        let n = 300_000;
        let keys: Vec<u64> = (0..20 * n).map(|i| i % n).collect();
        let curve = curve(&keys, 1);
        assert_eq!(curve.unique_pages(), n);
        assert_eq!(curve.misses(&[1, n - 1, n, 2 * n]), [20 * n, 20 * n, n, n]);
    }
}
