//! Belady-size: the rule of the farthest next use with sizes, which is a heuristic. With objects of
//! different sizes the best choice is NP-hard to find, and this one can be far from it.
//!
//! The victim has the largest product of its size and of the requests up to its next use. That
//! product changes with every request, so the largest is looked for among 128 objects that are
//! drawn, as in libCacheSim 0.3.5 (`BeladySize.c`), or among all if there are no more. An object that is
//! not used again leaves at once, or does not come in at all. libCacheSim makes room for such an
//! object before it refuses it; here nothing leaves for it.

use piebald_policy::contract::replacement::PageRef;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::super::index::{PageIndex, PageKey};
use super::policy::{Access, SizedPolicy};

/// Objects that are looked at for a victim.
const LOOKED_AT: usize = 128;

#[derive(Clone, Copy, Debug)]
struct Object {
    key: PageKey,
    bytes: u64,
    next_use: u64,
}

/// Belady-size.
pub(super) struct BeladySize {
    objects: Vec<Object>,
    /// Where an object stands in `objects`.
    index: PageIndex,
    bytes: u64,
    capacity: u64,
    random: SmallRng,
}

impl BeladySize {
    pub fn new(capacity: u64, seed: u64) -> Self {
        Self {
            objects: Vec::new(),
            index: PageIndex::with_room(0),
            bytes: 0,
            capacity,
            random: SmallRng::seed_from_u64(seed),
        }
    }

    fn victim(&mut self, now: u64) -> Option<PageKey> {
        let score = |o: &Object| u128::from(o.bytes) * u128::from(o.next_use.saturating_sub(now));
        let all = self.objects.len();
        let object = match all <= LOOKED_AT {
            true => self.objects.iter().max_by_key(|o| score(o)),
            false => (0..LOOKED_AT)
                .map(|_| &self.objects[self.random.random_range(0..all)])
                .max_by_key(|o| score(o)),
        };
        object.map(|o| o.key)
    }
}

impl SizedPolicy for BeladySize {
    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn occupied(&self) -> u64 {
        self.bytes
    }

    fn hit(&mut self, access: &Access) -> bool {
        let Some(PageRef(at)) = self.index.get(access.key) else {
            return false;
        };
        match access.next_use {
            None => self.remove(access.key),
            Some(next_use) => {
                let object = &mut self.objects[at as usize];
                self.bytes = self.bytes - object.bytes + access.bytes;
                object.bytes = access.bytes;
                object.next_use = next_use;
            }
        }
        true
    }

    fn admits(&self, access: &Access) -> bool {
        access.next_use.is_some()
    }

    fn evict(&mut self, now: u64) {
        if let Some(key) = self.victim(now) {
            self.remove(key);
        }
    }

    fn insert(&mut self, access: &Access) {
        let Some(next_use) = access.next_use else {
            return;
        };
        let at = PageRef(self.objects.len() as u32);
        self.index.insert(access.key, at);
        self.objects.push(Object {
            key: access.key,
            bytes: access.bytes,
            next_use,
        });
        self.bytes += access.bytes;
    }

    fn remove(&mut self, key: PageKey) {
        let Some(PageRef(at)) = self.index.get(key) else {
            return;
        };
        self.index.remove(key);
        let object = self.objects.swap_remove(at as usize);
        self.bytes -= object.bytes;
        if let Some(moved) = self.objects.get(at as usize) {
            self.index.replace(moved.key, PageRef(at));
        }
    }

    fn validate(&self) -> Result<(), String> {
        for (at, object) in self.objects.iter().enumerate() {
            if self.index.get(object.key) != Some(PageRef(at as u32)) {
                return Err(format!("{object:?} is not found at {at}"));
            }
        }
        let bytes: u64 = self.objects.iter().map(|o| o.bytes).sum();
        let all = self.objects.len() == self.index.len();
        match all && bytes == self.bytes {
            true => Ok(()),
            false => Err(format!("{bytes} B in the cache, {} counted", self.bytes)),
        }
    }
}
