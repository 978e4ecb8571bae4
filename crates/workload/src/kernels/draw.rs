//! Which of several files or chunks comes next.

use crate::random::Random;

/// Draws numbers `0..n`: all alike, or the `k`th (from 1) with a weight of 1/k,
/// as MFC's benchmarks draw files (its section 6.1: "the nth most common element
/// occurs 1/n times as often as the most frequent").
pub(super) enum Draw {
    /// All alike.
    Uniform(u64),
    /// Sums of the weights up to and with each number, in units of 2^-32.
    Zipf(Vec<u64>),
}

impl Draw {
    /// Of `n` numbers, at least 1.
    pub(super) fn new(n: u64, zipf: bool) -> Self {
        if !zipf {
            return Self::Uniform(n);
        }
        let mut sum = 0;
        Self::Zipf(
            (1..=n)
                .map(|k| {
                    sum += (1 << 32) / k;
                    sum
                })
                .collect(),
        )
    }

    /// The next number.
    pub(super) fn next(&self, random: &mut Random) -> u64 {
        match self {
            Self::Uniform(n) => random.below(*n),
            Self::Zipf(sums) => {
                let point = random.below(sums.last().copied().unwrap_or(1));
                sums.partition_point(|&s| s <= point) as u64
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kth_comes_one_kth_as_often_as_the_first() {
        let (draw, mut random) = (Draw::new(4, true), Random::new(7));
        let mut seen = [0u32; 4];
        for _ in 0..25_000 {
            seen[draw.next(&mut random) as usize] += 1;
        }
        for (k, (&n, weight)) in seen.iter().zip([12, 6, 4, 3]).enumerate() {
            assert!(n.abs_diff(1000 * weight) < 400, "{k}: {seen:?}");
        }
    }

    #[test]
    fn without_zipf_all_come_alike() {
        let (draw, mut random) = (Draw::new(4, false), Random::new(7));
        let mut seen = [0u32; 4];
        for _ in 0..4000 {
            seen[draw.next(&mut random) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| n.abs_diff(1000) < 120), "{seen:?}");
    }
}
