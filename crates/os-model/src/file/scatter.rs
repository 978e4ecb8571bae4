//! A random permutation of the pages of a disk, without a table.

/// Rounds of the Feistel network; four make it indistinguishable from random for
/// an observer who does not choose inputs (Luby and Rackoff 1988).
const ROUNDS: u64 = 4;

/// A permutation of `0..size`: a Feistel network over the smallest even number of
/// bits that holds `size`, applied again while the result is outside.
#[derive(Clone, Copy, Debug)]
pub(super) struct Permutation {
    seed: u64,
    size: u64,
    half_bits: u32,
}

impl Permutation {
    pub fn new(seed: u64, size: u64) -> Self {
        let bits = u64::BITS - size.saturating_sub(1).leading_zeros();
        Self {
            seed,
            size,
            half_bits: bits.div_ceil(2).max(1),
        }
    }

    /// The place of `n`, which is below the size.
    pub fn place(&self, n: u64) -> u64 {
        let mut at = n;
        loop {
            at = self.once(at);
            if at < self.size {
                return at;
            }
        }
    }

    fn once(&self, n: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (n >> self.half_bits & mask, n & mask);
        for round in 0..ROUNDS {
            let mixed = mix(self.seed ^ right.wrapping_add(round << 56));
            (left, right) = (right, left ^ (mixed & mask));
        }
        left << self.half_bits | right
    }
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood 2014).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_given_once() {
        for (seed, size) in [(1, 1), (2, 2), (3, 1000), (4, 4096), (5, 65_537)] {
            let p = Permutation::new(seed, size);
            let mut places: Vec<u64> = (0..size).map(|n| p.place(n)).collect();
            places.sort_unstable();
            assert!(
                places.iter().enumerate().all(|(i, &at)| at == i as u64),
                "{size}"
            );
        }
    }

    #[test]
    fn neighbours_are_rarely_adjacent_and_seeds_differ() {
        let size = 100_000;
        let (a, b) = (Permutation::new(1, size), Permutation::new(2, size));
        let adjacent = (1..size)
            .filter(|&n| a.place(n) == a.place(n - 1) + 1)
            .count();
        assert!(adjacent < 20, "{adjacent} of {size}; about 1 is expected");
        let same = (0..size).filter(|&n| a.place(n) == b.place(n)).count();
        assert!(same < 20, "{same} of {size}");
    }
}
