//! Whether the difference of two runs is told from chance.
//!
//! A replay of one trace gives the same again, but what is asked of it is what a policy does with such
//! requests, not with the place of a platter at one moment. So two runs are compared part by part: their
//! differences in 16 to 32 parts of the trace have a mean and an interval (batch means; Law 2015,
//! *Simulation Modeling and Analysis*, 9.5.3). What a disk's buffer or a cache keeps from one part to the next
//! makes parts alike, so the variance of the mean has their covariances in it (Newey and West 1987). A few
//! misses that happen to fall evenly over the parts seem to have no variance, but each could have been the
//! other run's as well: a difference of n has a standard deviation of its root at least (McNemar 1947). A
//! difference counts if its interval excludes zero, at 5 % for all
//! comparisons of a report together (Bonferroni), as the best of many is picked afterwards.

use super::{ReplayRun, findings::NOTABLE, grid::Grid};
use crate::{Sample, gate::sure_of, sample::t_quantile_975};

/// Parts that a claim needs: of five that all go one way this is chance in one case of 16.
const LEAST_PARTS: usize = 6;

/// What runs are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    Misses,
    Bytes,
    /// Requests to read that the disk got.
    Requests,
    Time,
}

impl Measure {
    /// Of a whole run.
    pub fn of(self, grid: &Grid<'_>, run: &ReplayRun) -> Option<f64> {
        match self {
            Self::Misses => run.miss_ratio(),
            Self::Bytes => run.byte_miss_ratio(),
            Self::Requests => Some(run.io.as_ref()?.read_requests as f64),
            Self::Time => grid.time(run),
        }
    }

    /// Of each part of a run; `None` where they were not kept.
    fn by_parts(self, run: &ReplayRun) -> Option<&[u64]> {
        let parts = run.parts.as_ref()?;
        let values = match self {
            Self::Misses => &parts.misses,
            Self::Bytes => &parts.bytes_missed,
            Self::Requests => &parts.requests,
            Self::Time => &parts.time_ps,
        };
        (!values.is_empty()).then_some(values)
    }

    /// What one reference or request adds to a measure that counts them; `None` of time.
    fn unit(self, run: &ReplayRun) -> Option<f64> {
        let parts = run.parts.as_ref()?;
        let sum = |values: &[u64]| values.iter().map(|n| *n as f64).sum::<f64>();
        match self {
            Self::Misses | Self::Requests => Some(1.0),
            Self::Bytes => Some(sum(&parts.bytes_missed) / sum(&parts.misses).max(1.0)),
            Self::Time => None,
        }
    }
}

/// Two policies, and the size at which they are compared; the second is the baseline.
pub(super) type Pair = (usize, usize, usize);

/// What may be said of the difference of two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Shown,
    /// It is 1 % of the baseline or less.
    Small,
    Chance,
}

impl Verdict {
    /// As a field of a table for programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Shown => "shown",
            Self::Small => "1 % or less",
            Self::Chance => "may be chance",
        }
    }
}

impl Grid<'_> {
    /// The change from the second policy to the first in each part from the first one on in which they
    /// differ, as a share of the whole times the number of these parts, so that their mean is the change of
    /// the whole; the mean over several pairs, whose runs must have the same parts. `None` where parts were not
    /// kept or the baseline is nothing.
    pub fn by_parts(&self, pairs: &[Pair], measure: Measure) -> Option<Sample> {
        let mut sum: Vec<f64> = Vec::new();
        let mut deviation = 0.0;
        for &(policy, baseline, size) in pairs {
            let unit = measure.unit(self.whole(baseline, size)?).unwrap_or(0.0);
            let [own, base] = [policy, baseline].map(|p| measure.by_parts(self.whole(p, size)?));
            let (own, base) = (own?, base?);
            let whole: f64 = base.iter().map(|n| *n as f64).sum();
            let fits = own.len() == base.len() && (sum.is_empty() || sum.len() == own.len());
            if !fits || whole == 0.0 {
                return None;
            }
            sum.resize(own.len(), 0.0);
            let mut differing = 0.0;
            for (sum, (own, base)) in sum.iter_mut().zip(own.iter().zip(base)) {
                let change = *own as f64 - *base as f64;
                differing += change.abs();
                *sum += change / whole / pairs.len() as f64;
            }
            deviation += (unit * differing).sqrt() / whole / pairs.len() as f64;
        }
        // Until memory is full all policies do the same, which says nothing of them.
        let same = sum.iter().take_while(|change| **change == 0.0).count();
        let apart = &sum[if same == sum.len() { 0 } else { same }..];
        let scaled = apart.iter().map(|change| change * apart.len() as f64);
        (!sum.is_empty()).then(|| at_least(with_memory(Sample::new(scaled.collect())), deviation))
    }

    /// Whether the difference of two runs may be chance. Of runs without parts nobody knows; their numbers are
    /// told as they are. What a drive's buffer happens to hold may last for a whole trace, so a difference of
    /// time counts only if the disk gets more requests as well, or fewer.
    pub fn may_be_chance(&self, pair: Pair, measure: Measure) -> bool {
        let Some(change) = self.change_of(pair, measure) else {
            let (policy, baseline, size) = pair;
            let kept = |p| measure.by_parts(self.whole(p, size)?).map(|_| ());
            return kept(policy).and(kept(baseline)).is_some();
        };
        let same_way = |other: Sample| other.mean * change.mean > 0.0 && self.is_sure(&other);
        !self.is_sure(&change)
            || measure == Measure::Time
                && !self
                    .change_of(pair, Measure::Requests)
                    .is_some_and(same_way)
    }

    /// What may be said of the difference of two policies that somebody can choose; `None` if the runs cannot be
    /// compared, or are one, or their parts were not kept.
    pub fn verdict(&self, pair: Pair, measure: Measure) -> Option<Verdict> {
        let (policy, baseline, size) = pair;
        let both = [policy, baseline];
        let kept = |p: usize| measure.by_parts(self.whole(p, size)?).map(|_| ());
        if policy == baseline
            || both
                .iter()
                .any(|p| self.is_offline(*p) || kept(*p).is_none())
        {
            return None;
        }
        let [own, base] = both.map(|p| {
            measure
                .of(self, self.whole(p, size)?)
                .filter(|v| v.is_finite())
        });
        let (own, base) = (own?, base?);
        Some(if (own - base).abs() <= base * NOTABLE {
            Verdict::Small
        } else if self.may_be_chance(pair, measure) {
            Verdict::Chance
        } else {
            Verdict::Shown
        })
    }

    fn is_sure(&self, change: &Sample) -> bool {
        change.n() >= LEAST_PARTS && sure_of(change, self.comparisons())
    }

    /// The change by parts, as a share of the other run where the baseline is nothing.
    fn change_of(&self, (policy, baseline, size): Pair, measure: Measure) -> Option<Sample> {
        self.by_parts(&[(policy, baseline, size)], measure)
            .or_else(|| {
                let other = self.by_parts(&[(baseline, policy, size)], measure)?;
                Some(Sample {
                    mean: -other.mean,
                    ..other
                })
            })
    }

    /// Pairs of policies that somebody can choose, at all sizes and by all measures.
    fn comparisons(&self) -> usize {
        let policies = self.online().count();
        let pairs = policies * policies.saturating_sub(1) / 2;
        let further = [self.replay.has_device(), self.replay.has_bytes()];
        let measures = 1 + further.into_iter().filter(|has| *has).count();
        pairs * self.sizes.len() * measures
    }
}

/// The sample with an interval for values that depend on those before them: as many as the root of their
/// number, with weights that fall (Bartlett). It never becomes narrower.
fn with_memory(sample: Sample) -> Sample {
    let n = sample.n();
    let off: Vec<f64> = sample.values.iter().map(|v| v - sample.mean).collect();
    let covariance = |lag: usize| -> f64 { off.iter().zip(&off[lag..]).map(|(a, b)| a * b).sum() };
    let lags = (n as f64).sqrt().ceil() as usize;
    let own = covariance(0);
    if own == 0.0 || lags >= n {
        return sample;
    }
    let weighted = |lag: usize| (1.0 - lag as f64 / (lags + 1) as f64) * covariance(lag);
    let ratio = 1.0 + 2.0 * (1..=lags).map(weighted).sum::<f64>() / own;
    Sample {
        ci95: sample.ci95.map(|half| half * ratio.max(1.0).sqrt()),
        ..sample
    }
}

/// The sample with an interval as for a mean of this standard deviation, if its own is narrower.
fn at_least(sample: Sample, deviation: f64) -> Sample {
    let least = deviation * t_quantile_975(sample.n() as f64 - 1.0);
    Sample {
        ci95: sample.ci95.map(|half| half.max(least)),
        ..sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Replay, ReplayParts};

    fn run(policy: &str, misses: &[u64]) -> ReplayRun {
        ReplayRun {
            policy: policy.to_owned(),
            size_pages: 8,
            references: 1000,
            misses: misses.iter().sum(),
            parts: Some(ReplayParts {
                misses: misses.to_vec(),
                ..ReplayParts::default()
            }),
            ..ReplayRun::default()
        }
    }

    /// Values in runs of equal ones are fewer than they look.
    #[test]
    fn values_that_depend_on_one_another_have_a_wider_interval() {
        let half = |values: &[f64]| {
            let sample = Sample::new(values.to_vec());
            let plain = sample.ci95.expect("an interval");
            with_memory(sample).ci95.expect("an interval") / plain
        };
        let mixed: Vec<f64> = (0..32).map(|n| f64::from(n * 7 % 2)).collect();
        let (first, last) = (vec![0.0; 16], vec![1.0; 16]);
        assert_eq!(half(&mixed), 1.0);
        // Covariances of 32/4 values at distance 0 and 8 - 0.75 k at distance k, of which the nearest 6 count.
        let weighted: f64 = (1..=6)
            .map(|k| (1.0 - f64::from(k) / 7.0) * (8.0 - 0.75 * f64::from(k)) / 8.0)
            .sum();
        let expected = (1.0 + 2.0 * weighted).sqrt();
        assert!((half(&[first, last].concat()) - expected).abs() < 1e-12);
    }

    #[test]
    fn a_difference_in_all_parts_is_none_of_chance() {
        let replay = Replay {
            runs: vec![
                run("base", &[100, 120, 90, 110, 100, 80]),
                run("less", &[80, 100, 70, 80, 80, 60]),
                run("mixed", &[80, 140, 70, 130, 80, 70]),
                run("short", &[80, 140]),
                run("later", &[100, 120, 70, 90, 80, 60]),
                run("nothing", &[0; 6]),
                run("once", &[0, 0, 0, 0, 0, 10]),
                run("few", &[99, 119, 89, 109, 99, 79]),
                run("fewer", &[99, 120, 89, 110, 99, 80]),
                ReplayRun {
                    parts: None,
                    ..run("unknown", &[10])
                },
            ],
            ..Replay::default()
        };
        let grid = Grid::new(&replay);
        let chance = |policy| grid.may_be_chance((policy, 0, 0), Measure::Misses);
        assert_eq!([1, 2].map(chance), [false, true]);
        // 130 of 600.
        let change = grid.by_parts(&[(1, 0, 0)], Measure::Misses).expect("parts");
        assert!((change.mean + 13.0 / 60.0).abs() < 1e-12, "{change:?}");
        assert_eq!(change.n(), 6);
        // The parts in which both are the same because memory is not full yet.
        let later = grid.by_parts(&[(4, 0, 0)], Measure::Misses).expect("parts");
        assert_eq!(later.n(), 4);
        assert!((later.mean + 8.0 / 60.0).abs() < 1e-12, "{later:?}");
        // Against a run without misses, and of too few parts.
        let none = |policy, other| grid.may_be_chance((policy, other, 0), Measure::Misses);
        assert_eq!([none(0, 5), none(5, 0), none(6, 5)], [false, false, true]);
        // Five parts that all say the same; and one miss less in each of six, which has no variance.
        assert!(none(4, 0) && none(7, 0));
        let few = grid.by_parts(&[(7, 0, 0)], Measure::Misses).expect("parts");
        let half = few.ci95.expect("an interval");
        assert!(
            (half - 2.570_582 * 6f64.sqrt() / 600.0).abs() < 1e-8,
            "{half}"
        );
        let verdict = |policy, other| grid.verdict((policy, other, 0), Measure::Misses);
        let [shown, chance, small] = [Verdict::Shown, Verdict::Chance, Verdict::Small].map(Some);
        assert_eq!(
            [verdict(1, 0), verdict(2, 0), verdict(8, 0)],
            [shown, chance, small]
        );
        // Of one run, of runs without parts, and of times that nobody measured.
        assert_eq!([verdict(0, 0), verdict(9, 0)], [None; 2]);
        assert_eq!(grid.verdict((1, 0, 0), Measure::Time), None);
        // What has other parts, or none, is not compared.
        assert!(grid.by_parts(&[(3, 0, 0)], Measure::Misses).is_none());
        assert!(grid.by_parts(&[(1, 0, 0)], Measure::Time).is_none());
    }
}
