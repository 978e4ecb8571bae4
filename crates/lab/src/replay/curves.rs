//! Miss-ratio curves: LRU's exact one, and those of all policies, from full runs where these
//! cost no more than samples, else from samples that are held against full runs.

use piebald_os_model::replace::PolicySpec;
use piebald_os_model::replace::registry::{Setup, needs_neighbours};
use piebald_report::{MissRatioCheck, MissRatioCurve, MissRatioPoint};
use piebald_sim::replay::{
    Batch, DistinctPages, HitCounts, Instance, InstanceError, LruCurve, Reference, Sampler, Survey,
    cache_instance, sampled_points,
};
use rayon::prelude::*;

use super::{CurveRequest, ReplayError};

/// Independent samples of each curve.
const SAMPLES: u32 = 4;
/// Pages that a sample should have: enough for an error of the order of 1 %.
const SAMPLE_PAGES: f64 = 16_384.0;
/// Pages of an extent that is in a sample or not, as a power of two: the longest sequence of
/// DULO.
const EXTENT_SHIFT: u32 = 7;
/// Extents that a sample should have. Pages of an extent are used together, so that fewer
/// extents than pages say as much, but not 128 times fewer.
const SAMPLE_EXTENTS: f64 = 2_048.0;
/// Smallest memory of a miniature, in pages: below it a policy is not itself.
const LEAST_PAGES: u64 = 16;
/// Points of an exact curve of LRU, if there are more sizes than that.
const EXACT_POINTS: usize = 256;
/// Points of the other curves: half of them at equal ratios up to an eighth of the pages, half at
/// equal distances up to all of them, where most curves fall.
const POINTS: usize = 24;
/// Parts into which the sizes are cut by those at which a sampled curve is held against a full
/// run; the largest size is one of these.
const CHECK_PARTS: usize = 4;
/// Sizes of full runs that a sampled curve needs.
const LEAST_CHECKS: usize = 2;
/// A sampled curve that is farther off there, in miss ratio, is not shown.
const MOST_ERROR: f64 = 0.02;

/// A policy at a size: a miniature, or the whole.
struct Point {
    curve: usize,
    size: u64,
    instance: Box<dyn Instance>,
}

/// One sample, and the miniatures that see it.
struct Sample {
    sampler: Sampler,
    picked: Batch,
    miniatures: Vec<Point>,
}

/// How a policy's curve is made.
struct Curve {
    policy: PolicySpec,
    /// Share of the pages in a sample; 1 = every reference of the trace.
    rate: f64,
    sizes: Vec<u64>,
}

/// Curves being made.
pub(super) struct Curves {
    lru: LruCurve,
    lru_sizes: Vec<u64>,
    curves: Vec<Curve>,
    samples: Vec<Sample>,
    whole: Vec<Point>,
    /// Which share of the pages samples have.
    shares: Vec<(Sampler, f64)>,
}

impl Curves {
    /// Curves of LRU and of the policies. `addressed`: pages that follow one another lie next to
    /// one another on disk.
    pub(super) fn new(
        asked: CurveRequest,
        policies: &[PolicySpec],
        survey: &Survey,
        asked_sizes: &[u64],
        addressed: bool,
    ) -> Result<Self, ReplayError> {
        let footprint = survey.pages.count().max(1);
        check(asked.rate)?;
        let mut made = Self {
            lru: LruCurve::default(),
            lru_sizes: spread(1, footprint, EXACT_POINTS),
            curves: Vec::new(),
            samples: Vec::new(),
            whole: Vec::new(),
            shares: Vec::new(),
        };
        // Its exact curve is there without any sample.
        let lru = PolicySpec::plain("lru");
        for policy in policies.iter().filter(|p| **p != lru) {
            made.add(asked, policy, &survey.pages, addressed)?;
        }
        made.lru_sizes.extend(asked_sizes);
        let sizes = made.curves.iter().flat_map(|c| &c.sizes);
        made.lru_sizes.extend(sizes);
        made.lru_sizes.sort_unstable();
        made.lru_sizes.dedup();
        Ok(made)
    }

    fn add(
        &mut self,
        asked: CurveRequest,
        policy: &PolicySpec,
        pages: &DistinctPages,
        addressed: bool,
    ) -> Result<(), ReplayError> {
        let footprint = pages.count().max(1);
        let neighbours = addressed && needs_neighbours(policy.name());
        let extent_shift = if neighbours { EXTENT_SHIFT } else { 0 };
        let wanted = match neighbours {
            true => SAMPLE_EXTENTS * f64::from(1u32 << EXTENT_SHIFT),
            false => SAMPLE_PAGES,
        };
        let rate = asked.rate.unwrap_or(wanted / footprint as f64).max(0.001);
        // As much work as all samples together, or the future is needed, which no sample has.
        let whole = rate * f64::from(SAMPLES) >= 1.0 && asked.rate.is_none()
            || rate >= 1.0
            || policy.name() == super::plan::MIN;
        let rate = if whole { 1.0 } else { rate };
        let least = ((LEAST_PAGES as f64 / rate).ceil() as u64).min(footprint);
        let sizes = curve_sizes(least, footprint);
        let curve = self.curves.len();
        let point = |size: u64, pages: u64| -> Result<Point, InstanceError> {
            let setup = Setup::miniature(pages as u32, size as u32);
            let instance = cache_instance(policy, &setup, 0, addressed)?;
            Ok(Point {
                curve,
                size,
                instance,
            })
        };
        let refused = |pages: u64, error: InstanceError| ReplayError::Instance {
            policy: policy.to_string(),
            pages,
            error: Box::new(error),
        };
        if whole {
            // A curve of a policy that needs more memory than the first sizes begins where it can be.
            let points = sizes.iter().map(|&size| (size, point(size, size)));
            let sizes = points.skip_while(|(_, made)| made.is_err());
            let mut made = Vec::new();
            for (size, point) in sizes {
                made.push(size);
                self.whole.push(point.map_err(|e| refused(size, e))?);
            }
            if made.is_empty() {
                point(footprint, footprint).map_err(|e| refused(footprint, e))?;
            }
            self.curves.push(Curve {
                policy: policy.clone(),
                rate,
                sizes: made,
            });
            return Ok(());
        }
        let parts = 1..=CHECK_PARTS;
        let mut checked: Vec<u64> = parts
            .filter_map(|part| sizes.get((part * sizes.len() / CHECK_PARTS).min(sizes.len() - 1)))
            .copied()
            .collect();
        checked.dedup();
        if checked.len() < LEAST_CHECKS {
            return Err(ReplayError::Choice {
                what: "sampling rate",
                value: rate.to_string(),
                problem: format!(
                    "a sample of {footprint} pages has too few of them for two sizes; allowed: a \
                     higher rate, or 1 for full runs at every size"
                ),
            });
        }
        for size in checked {
            let point = point(size, size).map_err(|e| refused(size, e))?;
            self.whole.push(point);
        }
        for nth in 0..SAMPLES {
            let Some(sampler) = Sampler::new(rate, nth, extent_shift) else {
                continue;
            };
            // Of the pages that the sample has, not of those that it should have: at the end of a curve all
            // pages fit.
            let share = self.share(sampler, pages);
            let miniature = |size: &u64| {
                let pages = (*size as f64 * share).round().max(1.0) as u64;
                point(*size, pages).map_err(|e| refused(pages, e))
            };
            self.samples.push(Sample {
                sampler,
                picked: Batch::default(),
                miniatures: sizes.iter().map(miniature).collect::<Result<_, _>>()?,
            });
        }
        self.curves.push(Curve {
            policy: policy.clone(),
            rate,
            sizes,
        });
        Ok(())
    }

    /// The share of the pages that a sample has.
    fn share(&mut self, sampler: Sampler, pages: &DistinctPages) -> f64 {
        if let Some((_, share)) = self.shares.iter().find(|(of, _)| *of == sampler) {
            return *share;
        }
        let share = pages.share(|key| sampler.has(key));
        self.shares.push((sampler, share));
        share
    }

    /// Takes the next part of the trace. `next_use` as for an [`Instance`].
    pub(super) fn run(&mut self, batch: &Batch, next_use: &[u64]) {
        let (lru, samples, whole) = (&mut self.lru, &mut self.samples, &mut self.whole);
        let of_samples = || {
            samples
                .par_iter_mut()
                .for_each(|s| s.run(&batch.references));
        };
        let of_whole = || {
            whole.par_iter_mut().for_each(|point| {
                // A cache without a disk cannot fail.
                let _ = point.instance.run(batch, next_use);
            });
        };
        rayon::join(
            || lru.run(&batch.references),
            || rayon::join(of_samples, of_whole),
        );
    }

    /// The curves, LRU's first, and why others are not among them.
    pub(super) fn finish(self) -> (Vec<MissRatioCurve>, Vec<String>) {
        let mut curves = vec![lru_curve(&self.lru, &self.lru_sizes)];
        let mut refused = Vec::new();
        for nth in 0..self.curves.len() {
            let curve = match self.curves[nth].rate {
                1.0 => self.whole_curve(nth),
                _ => self.sampled_curve(nth),
            };
            match too_far(&curve) {
                None => curves.push(curve),
                Some(why) => refused.push(why),
            }
        }
        (curves, refused)
    }

    /// Counts of the full runs of a curve, by size.
    fn whole_points(&self, nth: usize) -> impl Iterator<Item = (u64, HitCounts)> {
        let of = self.whole.iter().filter(move |p| p.curve == nth);
        of.map(|p| (p.size, p.instance.outcome().counts))
    }

    fn whole_curve(&self, nth: usize) -> MissRatioCurve {
        let point = |(size_pages, counts): (u64, HitCounts)| MissRatioPoint {
            size_pages,
            misses: Some(counts.misses),
            miss_ratio: counts.misses as f64 / counts.references.max(1) as f64,
            ci95: None,
        };
        MissRatioCurve {
            policy: self.curves[nth].policy.to_string(),
            exact: true,
            sampling_rate: 1.0,
            references: self.lru.references(),
            points: self.whole_points(nth).map(point).collect(),
            ..MissRatioCurve::default()
        }
    }

    fn sampled_curve(&self, nth: usize) -> MissRatioCurve {
        let Curve {
            policy,
            rate,
            sizes,
        } = &self.curves[nth];
        let references = self.lru.references();
        let point = |&size: &u64| {
            let of = |p: &&Point| p.curve == nth && p.size == size;
            let samples = self.samples.iter();
            let counts: Vec<HitCounts> = samples
                .flat_map(|s| s.miniatures.iter().find(of))
                .map(|m| m.instance.outcome().counts)
                .collect();
            let p = sampled_points(&counts, *rate, references)?;
            Some(MissRatioPoint {
                size_pages: size,
                misses: None,
                miss_ratio: p.miss_ratio,
                ci95: Some([
                    (p.miss_ratio - p.half_width).max(0.0),
                    (p.miss_ratio + p.half_width).min(1.0),
                ]),
            })
        };
        let points: Vec<MissRatioPoint> = sizes.iter().filter_map(point).collect();
        let check = |(size_pages, counts): (u64, HitCounts)| {
            let at = points.iter().find(|p| p.size_pages == size_pages)?;
            Some(MissRatioCheck {
                size_pages,
                sampled: at.miss_ratio,
                full: counts.misses as f64 / counts.references.max(1) as f64,
            })
        };
        MissRatioCurve {
            policy: policy.to_string(),
            exact: false,
            sampling_rate: *rate,
            samples: SAMPLES,
            references,
            checks: self.whole_points(nth).filter_map(check).collect(),
            points,
        }
    }
}

/// Is the rate one that samples, or a full run, can have?
fn check(rate: Option<f64>) -> Result<(), ReplayError> {
    let most = 1.0 / f64::from(SAMPLES);
    match rate {
        Some(rate) if rate != 1.0 && !(rate > 0.0 && rate <= most) => Err(ReplayError::Choice {
            what: "sampling rate",
            value: rate.to_string(),
            problem: format!("allowed: above 0, up to {most}, or 1 for full runs at every size"),
        }),
        _ => Ok(()),
    }
}

/// Why a sampled curve is not shown, if it is too far from the full runs beside it.
fn too_far(curve: &MissRatioCurve) -> Option<String> {
    let off = |c: &&MissRatioCheck| (c.sampled - c.full).abs();
    let worst = curve
        .checks
        .iter()
        .max_by(|a, b| off(a).total_cmp(&off(b)))?;
    (off(&worst) > MOST_ERROR).then(|| {
        format!(
            "The curve of {} is not shown: with {} pages it says {:.2} % misses from {:.3} % of the \
             pages, and a full run has {:.2} %. Full runs at every size: --mrc-rate 1.",
            curve.policy,
            worst.size_pages,
            100.0 * worst.sampled,
            100.0 * curve.sampling_rate,
            100.0 * worst.full,
        )
    })
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

fn lru_curve(lru: &LruCurve, sizes: &[u64]) -> MissRatioCurve {
    let references = lru.references();
    let misses = lru.misses(sizes);
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
        references,
        points: points.collect(),
        ..MissRatioCurve::default()
    }
}

/// The sizes of a curve, from `least` to all pages of the trace, rising.
fn curve_sizes(least: u64, footprint: u64) -> Vec<u64> {
    let half = POINTS as u64 / 2;
    let mut sizes = spread(least, (footprint / 8).max(least), POINTS / 2);
    sizes.extend(
        (1..=half)
            .map(|n| footprint * n / half)
            .filter(|s| *s >= least),
    );
    sizes.sort_unstable();
    sizes.dedup();
    sizes
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
        let sizes = curve_sizes(16, 60_000);
        assert_eq!((sizes[0], sizes[sizes.len() - 1]), (16, 60_000));
        assert!(sizes.windows(2).all(|w| w[0] < w[1]) && sizes.contains(&55_000));
        assert_eq!(curve_sizes(3, 3), [3]);
    }

    #[test]
    fn a_curve_that_is_off_is_refused_with_both_figures() {
        let check = |sampled, full| MissRatioCheck {
            size_pages: 32_768,
            sampled,
            full,
        };
        let curve = |checks| MissRatioCurve {
            policy: "dulo".to_owned(),
            sampling_rate: 0.1,
            checks,
            ..MissRatioCurve::default()
        };
        assert_eq!(
            too_far(&curve(vec![check(0.50, 0.51), check(0.3, 0.3)])),
            None
        );
        let why = too_far(&curve(vec![check(0.5, 0.5), check(0.802, 0.679)]));
        let why = why.expect("refused");
        assert!(why.contains("80.20 %") && why.contains("67.90 %"), "{why}");
    }
}
