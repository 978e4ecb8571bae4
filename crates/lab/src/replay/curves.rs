//! Miss-ratio curves: LRU's exact one, and those of all policies from samples.

use piebald_report::{MissRatioCurve, MissRatioPoint};
use piebald_sim::replay::{
    Batch, Instance, LruCurve, Reference, Sampler, Survey, cache_instance, sampled_points,
};
use piebald_sim::rooms::os_model::replace::PolicySpec;
use rayon::prelude::*;

use super::{CurveRequest, ReplayError};

/// Independent samples of each curve.
const SAMPLES: u32 = 4;
/// Pages that a sample should have: enough for an error of the order of 1 %.
const SAMPLE_PAGES: f64 = 16_384.0;
/// Smallest memory of a miniature, in pages: below it a policy is not itself.
const LEAST_PAGES: u64 = 16;
/// Points of an exact curve, if there are more sizes than that.
const EXACT_POINTS: usize = 256;
/// Points of a sampled curve.
const SAMPLED_POINTS: usize = 24;

/// A miniature of one policy at one size.
struct Miniature {
    curve: usize,
    point: usize,
    instance: Box<dyn Instance>,
}

/// One sample, and the miniatures that see it.
struct Sample {
    sampler: Sampler,
    picked: Batch,
    miniatures: Vec<Miniature>,
}

/// Curves being made.
pub(super) struct Curves {
    exact: LruCurve,
    exact_sizes: Vec<u64>,
    policies: Vec<String>,
    sizes: Vec<u64>,
    rate: f64,
    samples: Vec<Sample>,
}

impl Curves {
    /// Curves of LRU, exact, and of the policies, sampled.
    pub(super) fn new(
        asked: CurveRequest,
        policies: &[PolicySpec],
        survey: &Survey,
        asked_sizes: &[u64],
    ) -> Result<Self, ReplayError> {
        let footprint = survey.pages.count().max(1);
        let rate = asked
            .rate
            .unwrap_or_else(|| (SAMPLE_PAGES / footprint as f64).clamp(0.001, 0.25));
        let least = (LEAST_PAGES as f64 / rate).ceil() as u64;
        let sizes = spread(least.min(footprint), footprint, SAMPLED_POINTS);
        let mut exact_sizes = spread(1, footprint, EXACT_POINTS);
        exact_sizes.extend(asked_sizes.iter().chain(&sizes));
        exact_sizes.sort_unstable();
        exact_sizes.dedup();
        // LRU is sampled too: its distance from the exact curve shows what a sample is worth.
        let lru = PolicySpec::plain("lru");
        let mut of = vec![lru.clone()];
        of.extend(
            policies
                .iter()
                .filter(|p| **p != lru && p.name() != "min")
                .cloned(),
        );
        let mut samples = Vec::new();
        for nth in 0..SAMPLES {
            let sampler = Sampler::new(rate, nth).ok_or_else(|| ReplayError::Choice {
                what: "sampling rate",
                value: rate.to_string(),
                problem: format!("allowed: above 0, up to 1/{SAMPLES}"),
            })?;
            let mut miniatures = Vec::new();
            for (curve, policy) in of.iter().enumerate() {
                for (point, &size) in sizes.iter().enumerate() {
                    let pages = (size as f64 * rate).round().max(1.0) as u32;
                    let made = cache_instance(policy, pages, 0, false);
                    miniatures.push(Miniature {
                        curve,
                        point,
                        instance: made.map_err(|e| ReplayError::Instance {
                            policy: policy.to_string(),
                            pages: u64::from(pages),
                            error: Box::new(e),
                        })?,
                    });
                }
            }
            samples.push(Sample {
                sampler,
                picked: Batch::default(),
                miniatures,
            });
        }
        Ok(Self {
            exact: LruCurve::default(),
            exact_sizes,
            policies: of.iter().map(ToString::to_string).collect(),
            sizes,
            rate,
            samples,
        })
    }

    /// Takes the next part of the trace.
    pub(super) fn run(&mut self, batch: &Batch) {
        let exact = &mut self.exact;
        let samples = &mut self.samples;
        rayon::join(
            || exact.run(&batch.references),
            || {
                samples
                    .par_iter_mut()
                    .for_each(|s| s.run(&batch.references))
            },
        );
    }

    /// The curves, LRU's exact one first.
    pub(super) fn finish(self) -> Vec<MissRatioCurve> {
        let references = self.exact.references();
        let exact = exact_curve(&self.exact, &self.exact_sizes);
        let mut curves = vec![exact];
        for (nth, policy) in self.policies.iter().enumerate() {
            let mut curve = MissRatioCurve {
                policy: policy.clone(),
                exact: false,
                sampling_rate: self.rate,
                samples: SAMPLES,
                references,
                points: Vec::new(),
                largest_error: None,
            };
            for (place, &size) in self.sizes.iter().enumerate() {
                let of = |m: &&Miniature| m.curve == nth && m.point == place;
                let counts: Vec<_> = self
                    .samples
                    .iter()
                    .flat_map(|s| s.miniatures.iter().find(of))
                    .map(|m| m.instance.outcome().counts)
                    .collect();
                let point = sampled_points(&counts, self.rate, references);
                curve.points.extend(point.map(|p| MissRatioPoint {
                    size_pages: size,
                    misses: None,
                    miss_ratio: p.miss_ratio,
                    ci95: Some([
                        (p.miss_ratio - p.half_width).max(0.0),
                        (p.miss_ratio + p.half_width).min(1.0),
                    ]),
                }));
            }
            if policy == "lru" {
                curve.largest_error = distance(&curve, &self.exact);
            }
            curves.push(curve);
        }
        curves
    }
}

impl Sample {
    fn run(&mut self, references: &[Reference]) {
        self.sampler.pick(references, &mut self.picked.references);
        for miniature in &mut self.miniatures {
            // A cache without a disk cannot fail.
            let _ = miniature.instance.run(&self.picked, &[]);
        }
    }
}

fn exact_curve(exact: &LruCurve, sizes: &[u64]) -> MissRatioCurve {
    let references = exact.references();
    let misses = exact.misses(sizes);
    let points = sizes
        .iter()
        .zip(misses)
        .map(|(&size_pages, misses)| MissRatioPoint {
            size_pages,
            misses: Some(misses),
            miss_ratio: misses as f64 / references.max(1) as f64,
            ci95: None,
        });
    MissRatioCurve {
        policy: "lru".to_owned(),
        exact: true,
        sampling_rate: 1.0,
        samples: 0,
        references,
        points: points.collect(),
        largest_error: None,
    }
}

/// The largest distance of a sampled curve from the exact one.
fn distance(curve: &MissRatioCurve, exact: &LruCurve) -> Option<f64> {
    let sizes: Vec<u64> = curve.points.iter().map(|p| p.size_pages).collect();
    let misses = exact.misses(&sizes);
    let references = exact.references().max(1) as f64;
    let distances = curve.points.iter().zip(misses);
    distances
        .map(|(p, misses)| (p.miss_ratio - misses as f64 / references).abs())
        .reduce(f64::max)
}

/// Up to `points` sizes from `from` to `to`, evenly spread on a logarithmic scale.
fn spread(from: u64, to: u64, points: usize) -> Vec<u64> {
    if to.saturating_sub(from) < points as u64 {
        return (from.max(1)..=to).collect();
    }
    let (low, high) = ((from.max(1) as f64).ln(), (to as f64).ln());
    let step = (high - low) / (points - 1) as f64;
    let mut sizes: Vec<u64> = (0..points)
        .map(|n| (low + step * n as f64).exp().round() as u64)
        .collect();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_spread_from_end_to_end() {
        assert_eq!(spread(1, 5, 10), [1, 2, 3, 4, 5]);
        let sizes = spread(16, 1_000_000, 24);
        assert_eq!((sizes[0], sizes[sizes.len() - 1]), (16, 1_000_000));
        assert!(sizes.windows(2).all(|w| w[0] < w[1]));
    }
}
