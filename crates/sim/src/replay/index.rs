//! Which page has which number: the host's side of the replacement contract.

use piebald_policy::contract::replacement::PageRef;

/// What stands in a place of the table that holds no page.
const EMPTY: u32 = u32::MAX;

/// A page's key, unique over a replay: what it belongs to and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageKey(pub u64);

impl PageKey {
    /// 64 bits in which keys that differ little differ much: two rounds of
    /// multiplying and folding. One-to-one, so that it can also choose samples.
    #[inline]
    pub const fn hash(self) -> u64 {
        let x = self.0 ^ (self.0 >> 32);
        let x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
        let x = x ^ (x >> 32);
        let x = x.wrapping_mul(0xd6e8_feb8_6659_fd93);
        x ^ (x >> 32)
    }
}

#[derive(Clone, Copy)]
struct Entry {
    key: u64,
    number: u32,
}

const NOTHING: Entry = Entry {
    key: 0,
    number: EMPTY,
};

/// Numbers of pages by key: open addressing with linear probing, at most half full,
/// 16 B a place. Removal shifts followers back, so that nothing piles up.
#[derive(Clone)]
pub(crate) struct PageIndex {
    places: Vec<Entry>,
    shift: u32,
    count: usize,
}

impl PageIndex {
    /// Room for `pages` pages; grows if there are more.
    pub(crate) fn with_room(pages: usize) -> Self {
        let places = pages.max(8).saturating_mul(2).next_power_of_two();
        Self {
            places: vec![NOTHING; places],
            shift: 64 - places.trailing_zeros(),
            count: 0,
        }
    }

    /// Where the search for a key begins. The same key has the same home until the
    /// table grows.
    #[inline]
    fn home(&self, key: PageKey) -> usize {
        (key.hash() >> self.shift) as usize
    }

    /// Reads the place where the search for a key begins, so that the search itself
    /// finds it in a cache: many such reads overlap, searches do not.
    #[inline]
    pub(crate) fn warm(&self, key: PageKey) -> u32 {
        self.places[self.home(key)].number
    }

    /// The page's number.
    #[inline]
    pub(crate) fn get(&self, key: PageKey) -> Option<PageRef> {
        let mask = self.places.len() - 1;
        let mut at = self.home(key);
        loop {
            let entry = self.places[at];
            if entry.number == EMPTY {
                return None;
            }
            if entry.key == key.0 {
                return Some(PageRef(entry.number));
            }
            at = (at + 1) & mask;
        }
    }

    /// Enters a page that is not there.
    pub(crate) fn insert(&mut self, key: PageKey, number: PageRef) {
        debug_assert!(self.get(key).is_none());
        if (self.count + 1) * 2 > self.places.len() {
            self.grow();
        }
        self.put(Entry {
            key: key.0,
            number: number.0,
        });
        self.count += 1;
    }

    /// Enters a page or changes its number; gives the number that it had.
    #[inline]
    pub(crate) fn replace(&mut self, key: PageKey, number: PageRef) -> Option<PageRef> {
        let mask = self.places.len() - 1;
        let mut at = self.home(key);
        loop {
            let entry = &mut self.places[at];
            if entry.number == EMPTY {
                break;
            }
            if entry.key == key.0 {
                return Some(PageRef(std::mem::replace(&mut entry.number, number.0)));
            }
            at = (at + 1) & mask;
        }
        self.insert(key, number);
        None
    }

    /// Changes every number.
    pub(crate) fn renumber(&mut self, mut to: impl FnMut(PageRef) -> PageRef) {
        for entry in &mut self.places {
            if entry.number != EMPTY {
                entry.number = to(PageRef(entry.number)).0;
            }
        }
    }

    #[inline]
    fn put(&mut self, entry: Entry) {
        let mask = self.places.len() - 1;
        let mut at = self.home(PageKey(entry.key));
        while self.places[at].number != EMPTY {
            at = (at + 1) & mask;
        }
        self.places[at] = entry;
    }

    /// Takes a page out, if it is there.
    pub(crate) fn remove(&mut self, key: PageKey) {
        let mask = self.places.len() - 1;
        let mut hole = self.home(key);
        loop {
            let entry = self.places[hole];
            if entry.number == EMPTY {
                return;
            }
            if entry.key == key.0 {
                break;
            }
            hole = (hole + 1) & mask;
        }
        self.count -= 1;
        let mut at = hole;
        loop {
            at = (at + 1) & mask;
            let entry = self.places[at];
            if entry.number == EMPTY {
                break;
            }
            // Does the entry's search pass the hole before it gets here?
            let home = self.home(PageKey(entry.key));
            if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                self.places[hole] = entry;
                hole = at;
            }
        }
        self.places[hole] = NOTHING;
    }

    /// The pages in the table, in no order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = PageKey> {
        let pages = self.places.iter().filter(|entry| entry.number != EMPTY);
        pages.map(|entry| PageKey(entry.key))
    }

    /// Keeps the pages that pass.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(PageKey) -> bool) {
        let empty = vec![NOTHING; self.places.len()];
        let old = std::mem::replace(&mut self.places, empty);
        self.count = 0;
        for entry in old {
            if entry.number != EMPTY && keep(PageKey(entry.key)) {
                self.put(entry);
                self.count += 1;
            }
        }
    }

    fn grow(&mut self) {
        let doubled = vec![NOTHING; self.places.len() * 2];
        let old = std::mem::replace(&mut self.places, doubled);
        self.shift -= 1;
        for entry in old {
            if entry.number != EMPTY {
                self.put(entry);
            }
        }
    }

    /// Pages in the table.
    pub(crate) fn len(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Small key space, so that probes are long and removals hit clusters.
    #[test]
    fn agrees_with_a_hash_map_over_random_operations() {
        let mut index = PageIndex::with_room(4);
        let mut truth = HashMap::new();
        let mut state = 1_u64;
        for step in 0..200_000_u32 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let key = PageKey((state >> 40) % 3_000);
            match state >> 62 {
                0 => {
                    index.remove(key);
                    truth.remove(&key);
                }
                _ if truth.contains_key(&key) => {}
                _ => {
                    index.insert(key, PageRef(step));
                    truth.insert(key, PageRef(step));
                }
            }
            assert_eq!(index.get(key), truth.get(&key).copied());
            assert_eq!(index.len(), truth.len());
        }
        for key in 0..3_000 {
            let key = PageKey(key);
            assert_eq!(index.get(key), truth.get(&key).copied());
        }
    }
}
