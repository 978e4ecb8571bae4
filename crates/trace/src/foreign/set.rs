//! Counts distinct numbers, exactly up to a bound.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use super::summary::Distinct;

/// Entries of the filter before the set; most references repeat a recent line.
const RECENT: usize = 1024;

/// Multiplication by an odd constant: the numbers are no attacker's, and a collision only costs
/// time.
#[derive(Default)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.write_u64(u64::from(b));
        }
    }

    fn write_u64(&mut self, n: u64) {
        let mixed = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ mixed >> 32;
    }
}

pub(crate) struct Bounded {
    seen: HashSet<u64, BuildHasherDefault<Mix>>,
    recent: Box<[u64]>,
    bound: usize,
    full: bool,
}

impl Bounded {
    pub fn new(bound: usize) -> Self {
        Self {
            seen: HashSet::default(),
            // Page and line numbers are below 2^58, so this is no number.
            recent: vec![u64::MAX; RECENT].into_boxed_slice(),
            bound,
            full: false,
        }
    }

    pub fn insert(&mut self, n: u64) {
        let recent = &mut self.recent[n as usize % RECENT];
        if self.full || *recent == n {
            return;
        }
        *recent = n;
        if self.seen.len() < self.bound {
            self.seen.insert(n);
        } else if !self.seen.contains(&n) {
            self.full = true;
        }
    }

    pub fn count(&self) -> Distinct {
        let n = self.seen.len() as u64;
        if self.full {
            Distinct::MoreThan(n)
        } else {
            Distinct::Exactly(n)
        }
    }
}
