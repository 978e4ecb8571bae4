//! Hash maps with a fast hash for numbers.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

/// A map that is looked up often. Its order is never looked at.
pub(super) type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<FoldHasher>>;

/// Multiplies and folds: every bit of the product's halves depends on the number's.
/// Only for numbers that nobody chooses in order to collide.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FoldHasher(u64);

impl Hasher for FoldHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u32(&mut self, n: u32) {
        self.write_u64(n.into());
    }

    fn write_u64(&mut self, n: u64) {
        // 2^64 divided by the golden ratio.
        let product = u128::from(self.0 ^ n) * 0x9e37_79b9_7f4a_7c15;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}
