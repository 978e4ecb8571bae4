//! Miss-ratio curves of any policy from a share of the pages (SHARDS, FAST'15;
//! miniature simulations, USENIX ATC'17).
//!
//! Of all pages, those whose hash falls into an interval of width *R* are a sample;
//! a cache of *R* times the size that sees only them misses about as often. Disjoint
//! intervals give independent samples, whose spread says how sure the mean is.
//!
//! For policies that decide by which pages lie next to one another, whole extents are in a
//! sample or not: aligned groups of pages of the same file or disk.

use super::cache::{HitCounts, Reference};
use super::index::PageKey;

/// Picks the pages of one sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampler {
    from: u64,
    to: u64,
    /// Pages of an extent, as a power of two.
    extent_shift: u32,
}

impl Sampler {
    /// Sample number `sample` of those of width `rate`, of extents of `1 << extent_shift` pages.
    ///
    /// Returns `None` unless 0 < `rate`, `(sample + 1) * rate` <= 1, and `extent_shift` < 64.
    pub fn new(rate: f64, sample: u32, extent_shift: u32) -> Option<Self> {
        let (from, to) = (f64::from(sample) * rate, f64::from(sample + 1) * rate);
        if rate.is_nan() || rate <= 0.0 || to > 1.0 || extent_shift >= u64::BITS {
            return None;
        }
        let scale = |x: f64| (x * 2.0_f64.powi(64)) as u64;
        Some(Self {
            from: scale(from),
            to: scale(to),
            extent_shift,
        })
    }

    /// Whether the sample has the page.
    #[inline]
    pub fn has(self, key: PageKey) -> bool {
        // Not the hash that the index uses, whose places would crowd otherwise.
        let extent = PageKey(key.0 >> self.extent_shift);
        let hash = PageKey(extent.hash() ^ 0x5851_f42d_4c95_7f2d).hash();
        (self.from..self.to).contains(&hash)
    }

    /// The references of the sample, in order.
    pub fn pick(self, references: &[Reference], into: &mut Vec<Reference>) {
        into.clear();
        into.extend(references.iter().filter(|r| self.has(r.key)));
    }
}

/// One size of a sampled curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampledPoint {
    /// Misses per reference: mean of the samples.
    pub miss_ratio: f64,
    /// Half of the 95 % interval; infinite with a single sample.
    pub half_width: f64,
}

/// Puts the samples of one size together.
///
/// A sample's misses are divided by the references that it should have seen, *R* times
/// all, not by those that it did see: which of the few hottest pages it holds changes
/// its references a lot and its misses hardly (SHARDS-adj, FAST'15 section 5.2).
pub fn sampled_points(samples: &[HitCounts], rate: f64, references: u64) -> Option<SampledPoint> {
    let expected = rate * references as f64;
    let n = samples.len();
    if n == 0 || expected <= 0.0 {
        return None;
    }
    let ratios: Vec<f64> = samples
        .iter()
        .map(|s| (s.misses as f64 / expected).min(1.0))
        .collect();
    let mean = ratios.iter().sum::<f64>() / n as f64;
    let squares: f64 = ratios.iter().map(|r| (r - mean).powi(2)).sum();
    let half_width = match n {
        1 => f64::INFINITY,
        _ => student_t95(n - 1) * (squares / (n - 1) as f64 / n as f64).sqrt(),
    };
    Some(SampledPoint {
        miss_ratio: mean,
        half_width,
    })
}

/// Two-sided 95 % quantile of Student's distribution.
fn student_t95(degrees: usize) -> f64 {
    const TABLE: [f64; 15] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131,
    ];
    TABLE.get(degrees.wrapping_sub(1)).copied().unwrap_or(2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_disjoint_and_of_their_size() {
        let samplers: Vec<_> = (0..10).filter_map(|k| Sampler::new(0.1, k, 0)).collect();
        assert_eq!(samplers.len(), 10);
        assert!(Sampler::new(0.1, 10, 0).is_none() && Sampler::new(0.0, 0, 0).is_none());
        assert!(Sampler::new(0.1, 0, 64).is_none());
        let mut sizes = [0; 10];
        for key in 0..100_000 {
            let of: Vec<_> = (0..10).filter(|&k| samplers[k].has(PageKey(key))).collect();
            assert_eq!(of.len(), 1, "key {key} is in {of:?}");
            sizes[of[0]] += 1;
        }
        // Standard deviation 95; five of them.
        assert!(
            sizes.iter().all(|n| (9_525..10_475).contains(n)),
            "{sizes:?}"
        );
    }

    #[test]
    fn extents_are_in_a_sample_as_a_whole() {
        let sampler = Sampler::new(0.25, 1, 7).expect("a sample");
        let has = |extent: u64| {
            (0..128)
                .filter(|p| sampler.has(PageKey(extent << 7 | p)))
                .count()
        };
        let counts: Vec<usize> = (0..10_000).map(has).collect();
        assert!(counts.iter().all(|n| [0, 128].contains(n)));
        let whole = counts.iter().filter(|n| **n > 0).count();
        // Standard deviation 43; five of them.
        assert!((2_285..2_715).contains(&whole), "{whole}");
    }

    #[test]
    fn an_interval_covers_the_spread_of_the_samples() {
        let sample = |misses| HitCounts {
            misses,
            ..HitCounts::default()
        };
        let point = sampled_points(&[sample(90), sample(110)], 0.1, 2_000).expect("samples");
        assert!((point.miss_ratio - 0.5).abs() < 1e-12);
        // Standard deviation 0.0707, of the mean 0.05, times 12.706.
        assert!((point.half_width - 0.6353).abs() < 1e-4);
        assert_eq!(sampled_points(&[], 0.1, 10), None);
    }
}
