//! Reproducible pseudo-random numbers.
//!
//! SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
//! Generators, OOPSLA 2014). Its output is a hash of a counter, so a generated
//! file of gigabytes needs no memory: row `i` is `mix(seed, i)`. A library
//! generator was not used because none promises the same numbers in every later
//! version, and recordings must not change with a dependency.

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The `index`th number of the sequence that belongs to `seed`.
#[inline]
pub(crate) const fn mix(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add(GOLDEN.wrapping_mul(index.wrapping_add(1)));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A sequence of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    seed: u64,
    index: u64,
}

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { seed, index: 0 }
    }

    #[inline]
    pub(crate) const fn next(&mut self) -> u64 {
        let z = mix(self.seed, self.index);
        self.index += 1;
        z
    }

    /// Uniform in `0..n`, up to a bias of n / 2^64.
    #[inline]
    pub(crate) const fn below(&mut self, n: u64) -> u64 {
        scale(self.next(), n)
    }

    /// Uniform in [-1, 1).
    pub(crate) const fn signed_unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// Maps a uniform 64-bit number to `0..n`.
#[inline]
pub(crate) const fn scale(z: u64, n: u64) -> u64 {
    ((z as u128 * n as u128) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_the_published_sequence() {
        // First outputs of the reference implementation for the seed 1234567.
        let mut r = Random::new(1_234_567);
        assert_eq!(r.next(), 6_457_827_717_110_365_317);
        assert_eq!(r.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn below_reaches_all_values_and_no_more() {
        let mut r = Random::new(1);
        let mut seen = [0u32; 5];
        for _ in 0..1000 {
            seen[r.below(5) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| n > 150), "{seen:?}");
    }
}
