//! Values of one quantity over repetitions, and what they support.
//!
//! Intervals are two-sided 95 % Student-t intervals of the mean. Values of
//! different samples belong together by position: value *i* comes from
//! repetition *i*, which redraws the same accidents for every phase and policy.

use std::sync::OnceLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::json::{nullable, nullable_vec};

/// Values of one quantity over the repetitions of a study.
///
/// A value that does not exist (a ratio of nothing to nothing) is held as NaN,
/// written to JSON as `null`, and makes the mean NaN too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Arithmetic mean of `values`; NaN if there are none.
    #[serde(with = "nullable")]
    #[schemars(with = "Option<f64>")]
    pub mean: f64,
    /// Half width of the 95 % interval of the mean, in the unit of the values;
    /// `None` with fewer than two values or any that is not finite.
    pub ci95: Option<f64>,
    /// One value per repetition, in order.
    #[serde(with = "nullable_vec")]
    #[schemars(with = "Vec<Option<f64>>")]
    pub values: Vec<f64>,
}

impl Sample {
    /// Mean and interval of `values`, one per repetition.
    pub fn new(values: Vec<f64>) -> Self {
        let mean = mean(&values);
        let n = values.len() as f64;
        let ci95 = variance(&values, mean)
            .map(|v| t_quantile_975(n - 1.0) * (v / n).sqrt())
            .filter(|half| half.is_finite());
        Self { mean, ci95, values }
    }

    /// Number of repetitions.
    pub fn n(&self) -> usize {
        self.values.len()
    }

    /// True if there is a mean to show.
    pub fn is_known(&self) -> bool {
        !self.values.is_empty() && self.mean.is_finite()
    }

    /// Ends of the 95 % interval, low and high; `None` without an interval.
    pub fn interval(&self) -> Option<(f64, f64)> {
        let half = self
            .ci95
            .filter(|h| h.is_finite() && self.mean.is_finite())?;
        Some((self.mean - half, self.mean + half))
    }

    /// Is the mean's sign sure at 95 %? `None` without an interval.
    ///
    /// An interval of width 0 around a mean other than 0 excludes 0.
    pub fn excludes_zero(&self) -> Option<bool> {
        let (low, high) = self.interval()?;
        Some(low > 0.0 || high < 0.0)
    }

    /// The sample of `f(value)`.
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        Self::new(self.values.iter().map(|v| f(*v)).collect())
    }

    /// The same quantity in another unit: mean, interval and values times
    /// `factor`.
    pub fn scaled(&self, factor: f64) -> Self {
        Self {
            mean: self.mean * factor,
            ci95: self.ci95.map(|h| h * factor.abs()),
            values: self.values.iter().map(|v| v * factor).collect(),
        }
    }

    /// Combines two samples repetition by repetition; `None` if they have
    /// different numbers of repetitions.
    pub fn paired(&self, other: &Self, f: impl Fn(f64, f64) -> f64) -> Option<Self> {
        if self.n() != other.n() {
            return None;
        }
        let pairs = self.values.iter().zip(&other.values);
        Some(Self::new(pairs.map(|(a, b)| f(*a, *b)).collect()))
    }

    /// `self / other`, repetition by repetition; `None` if they have different
    /// numbers of repetitions. A division by zero gives an unknown value.
    pub fn ratio(&self, other: &Self) -> Option<Self> {
        self.paired(other, |a, b| if b == 0.0 { f64::NAN } else { a / b })
    }

    /// Slowdown: `together / self - 1`, repetition by repetition, where `self`
    /// holds times alone.
    pub fn slowdown(&self, together: &Self) -> Option<Self> {
        Some(together.ratio(self)?.map(|r| r - 1.0))
    }

    /// `self - other`. Paired where the numbers of repetitions agree; else the
    /// difference of the means with Welch's interval and no values, which then
    /// says nothing about single repetitions.
    pub fn difference(&self, other: &Self) -> Self {
        self.paired(other, |a, b| a - b)
            .unwrap_or_else(|| self.welch(other))
    }

    fn welch(&self, other: &Self) -> Self {
        let share = |s: &Self| Some((variance(&s.values, s.mean)? / s.n() as f64, s.n() as f64));
        let ci95 = share(self).zip(share(other)).map(|((a, na), (b, nb))| {
            let (sum, parts) = (a + b, a * a / (na - 1.0) + b * b / (nb - 1.0));
            // Two samples without any spread: the difference is exact.
            if sum == 0.0 {
                0.0
            } else {
                t_quantile_975(sum * sum / parts) * sum.sqrt()
            }
        });
        Self {
            mean: self.mean - other.mean,
            ci95: ci95.filter(|half| half.is_finite()),
            values: Vec::new(),
        }
    }
}

impl From<Vec<f64>> for Sample {
    fn from(values: Vec<f64>) -> Self {
        Self::new(values)
    }
}

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self::new(values.into_iter().collect())
    }
}

fn mean(values: &[f64]) -> f64 {
    // Sum of no values over 0 is NaN, which is what an empty sample's mean is.
    values.iter().sum::<f64>() / values.len() as f64
}

/// Unbiased sample variance; `None` with fewer than two values.
fn variance(values: &[f64], mean: f64) -> Option<f64> {
    if values.len() < 2 || !mean.is_finite() {
        return None;
    }
    // The mean of equal values may differ from them in the last digit.
    if values.windows(2).all(|pair| pair[0] == pair[1]) {
        return Some(0.0);
    }
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    Some(squares / (values.len() - 1) as f64)
}

/// The 97.5 % quantile of Student's t, so that +- it covers 95 %. `freedom` is
/// at least 1, not necessarily whole (Welch); NaN below 0.
pub(crate) fn t_quantile_975(freedom: f64) -> f64 {
    /// Those of few repetitions, which are asked for again and again.
    static OF_FEW: [OnceLock<f64>; 64] = [const { OnceLock::new() }; 64];
    let is_whole = freedom >= 1.0 && freedom.fract() == 0.0;
    match OF_FEW.get(freedom as usize).filter(|_| is_whole) {
        Some(known) => *known.get_or_init(|| quantile_975(freedom)),
        None => quantile_975(freedom),
    }
}

fn quantile_975(freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::NAN, |t| t.inverse_cdf(0.975))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any printed t table, column 0.975 (two-sided 95 %).
    const TABLE: &[(f64, f64)] = &[
        (1.0, 12.706),
        (2.0, 4.303),
        (3.0, 3.182),
        (4.0, 2.776),
        (5.0, 2.571),
        (9.0, 2.262),
        (10.0, 2.228),
        (29.0, 2.045),
        (30.0, 2.042),
        (120.0, 1.980),
    ];

    #[test]
    fn quantiles_agree_with_the_printed_table() {
        for &(freedom, expected) in TABLE {
            let got = t_quantile_975(freedom);
            assert!(
                (got - expected).abs() < 6e-4,
                "{freedom}: {got} != {expected}"
            );
        }
    }

    #[test]
    fn interval_of_three_values_is_the_hand_computed_one() {
        let s = Sample::new(vec![10.0, 12.0, 14.0]);
        // s = 2, n = 3: 4.303 * 2 / sqrt(3) = 4.968
        assert_eq!(s.mean, 12.0);
        assert!((s.ci95.unwrap() - 4.968).abs() < 1e-3);
        assert_eq!(s.excludes_zero(), Some(true));
    }

    #[test]
    fn one_value_has_a_mean_and_no_interval() {
        let s = Sample::new(vec![7.0]);
        assert_eq!((s.mean, s.ci95, s.excludes_zero()), (7.0, None, None));
        assert!(s.is_known());
    }

    #[test]
    fn empty_and_infinite_samples_are_unknown_and_have_no_interval() {
        for values in [vec![], vec![f64::NAN, 1.0], vec![f64::INFINITY, 1.0]] {
            let s = Sample::new(values);
            assert!(!s.is_known());
            assert_eq!((s.ci95, s.interval()), (None, None));
        }
    }

    #[test]
    fn equal_values_give_an_interval_of_width_zero() {
        let s = Sample::new(vec![3.0; 4]);
        assert_eq!(s.ci95, Some(0.0));
        assert_eq!(s.excludes_zero(), Some(true));
        assert_eq!(Sample::new(vec![0.0; 4]).excludes_zero(), Some(false));
    }

    #[test]
    fn slowdown_is_paired_by_repetition() {
        let alone = Sample::new(vec![100.0, 200.0]);
        let together = Sample::new(vec![120.0, 240.0]);
        let slowdown = alone.slowdown(&together).unwrap();
        assert!((slowdown.mean - 0.2).abs() < 1e-12);
        assert!(slowdown.ci95.unwrap() < 1e-9, "pairs share their accident");
        assert!(alone.slowdown(&Sample::new(vec![1.0])).is_none());
    }

    #[test]
    fn division_by_zero_is_unknown_not_infinite() {
        let ratio = Sample::new(vec![1.0])
            .ratio(&Sample::new(vec![0.0]))
            .unwrap();
        assert!(ratio.mean.is_nan());
    }

    #[test]
    fn unequal_numbers_of_repetitions_fall_back_to_welch() {
        let a = Sample::new(vec![10.0, 12.0, 14.0]);
        let b = Sample::new(vec![1.0, 2.0]);
        let d = a.difference(&b);
        // Variances of the means 4/3 and 0.25; Satterthwaite gives 2.635 degrees.
        let freedom = (4.0f64 / 3.0 + 0.25).powi(2) / ((4.0f64 / 3.0).powi(2) / 2.0 + 0.0625);
        assert!((freedom - 2.635).abs() < 1e-3);
        let expected = t_quantile_975(freedom) * (4.0f64 / 3.0 + 0.25).sqrt();
        assert!((d.mean - 10.5).abs() < 1e-12);
        assert!((d.ci95.unwrap() - expected).abs() < 1e-9);
        assert!(d.values.is_empty());
    }
}
