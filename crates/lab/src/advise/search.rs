//! The smallest share of a program that costs no more than a limit.
//!
//! Two timed runs, in all colors and in few, and the miss curve give an estimate for all
//! shares: between two measured shares time is taken to be linear in the lines read from
//! memory. The estimate is then tried, and with it one color less; each run corrects it.

use std::collections::BTreeMap;

/// Runs beyond the first two.
pub(super) const MAX_RUNS: usize = 4;

/// Lines read from memory in `k + 1` colors, by `k`, and times measured so far by the
/// number of colors, in one unit.
#[derive(Clone, Debug)]
pub(super) struct Times {
    reads: Vec<f64>,
    measured: BTreeMap<u32, f64>,
}

impl Times {
    pub(super) const fn new(reads: Vec<f64>, measured: BTreeMap<u32, f64>) -> Self {
        Self { reads, measured }
    }

    pub(super) const fn measured(&self) -> &BTreeMap<u32, f64> {
        &self.measured
    }

    /// Time in so many colors: measured, or estimated from the next measured shares below
    /// and above. Fewer colors than any that was measured take as long as those.
    pub(super) fn at(&self, colors: u32) -> f64 {
        let below = self.measured.range(..=colors).next_back();
        let above = self.measured.range(colors..).next();
        let (Some((low, slow)), Some((high, fast))) = (below, above) else {
            return below.or(above).map_or(f64::NAN, |(_, time)| *time);
        };
        if low == high {
            return *slow;
        }
        let reads = |k: u32| self.reads.get(k as usize - 1).copied().unwrap_or(f64::NAN);
        let spread = reads(*low) - reads(*high);
        // Without misses to tell them apart, what is not known to be fast is slow.
        let share = match spread > 0.0 {
            true => ((reads(colors) - reads(*high)) / spread).clamp(0.0, 1.0),
            false => 1.0,
        };
        fast + share * (slow - fast)
    }

    /// Are as many lines read in `high` colors as in `low`?
    fn is_flat(&self, low: u32, high: u32) -> bool {
        let reads = |k: u32| self.reads.get(k as usize - 1);
        reads(low) <= reads(high)
    }

    /// The fewest colors from which on no estimate is above the limit.
    fn fewest(&self, limit: f64) -> u32 {
        let mut fewest = self.reads.len() as u32;
        while fewest > 1 && self.at(fewest - 1) <= limit {
            fewest -= 1;
        }
        fewest
    }
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// The fewest colors that were measured to keep within the limit.
    pub(super) colors: u32,
    /// Nothing lies between them and the next that were measured to be too slow, or there
    /// are no fewer that hold the program.
    pub(super) exact: bool,
}

/// Looks for the smallest share within `limit`, where `times` holds the time in all
/// colors, which is within, and in the fewest that hold the program.
///
/// # Errors
/// The first that `measure` gives.
pub(super) fn smallest<E>(
    times: &mut Times,
    limit: f64,
    mut measure: impl FnMut(u32) -> Result<f64, E>,
) -> Result<Found, E> {
    let mut last = None;
    for run in 0..MAX_RUNS {
        let (bad, good) = around(times, limit);
        if good - bad <= 1 {
            break;
        }
        let next = match last {
            // One less than what was enough, one more than what was not.
            Some(last) if run == 1 && last == good => good - 1,
            Some(last) if run == 1 && last == bad => bad + 1,
            // Where the curve says nothing, half way.
            Some(_) if times.is_flat(bad, good) => (bad + good) / 2,
            _ => times.fewest(limit).clamp(bad + 1, good - 1),
        };
        last = Some(next);
        let time = measure(next)?;
        times.measured.insert(next, time);
    }
    let (bad, good) = around(times, limit);
    Ok(Found {
        colors: good,
        exact: good - bad <= 1,
    })
}

/// The most colors that are too few, and the fewest above them that were measured to be
/// enough. Where the fewest that hold the program are enough, one less is too few.
fn around(times: &Times, limit: f64) -> (u32, u32) {
    let slow = |(_, time): &(&u32, &f64)| **time > limit;
    let bad = times.measured.iter().rev().find(slow).map(|(k, _)| *k);
    let all = times.reads.len() as u32;
    let above = bad.map_or(1, |bad| bad + 1);
    let good = times.measured.range(above..).next();
    let good = good.map_or(all, |(k, _)| *k);
    (bad.unwrap_or(good - 1), good)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u32 = 16;

    /// Searches where the times are `truth` and the reads, those of the model.
    fn search(
        reads: impl Fn(u32) -> f64,
        truth: impl Fn(u32) -> f64,
        within: f64,
    ) -> (Found, Vec<u32>) {
        let ends = [(1, truth(1)), (ALL, truth(ALL))];
        let mut times = Times::new((1..=ALL).map(reads).collect(), ends.into());
        let mut runs = Vec::new();
        let limit = truth(ALL) * (1.0 + within);
        let found = smallest(&mut times, limit, |k| {
            runs.push(k);
            Ok::<f64, ()>(truth(k))
        });
        (found.expect("no run fails"), runs)
    }

    #[test]
    fn a_right_estimate_takes_two_runs() {
        // Linear: 1600 more at one color than at none.
        let reads = |k: u32| f64::from(1600 - 100 * k);
        let truth = |k: u32| 1000.0 + reads(k);
        // Within 50 %: 500 reads, 11 colors.
        assert_eq!(
            search(reads, truth, 0.5),
            (
                Found {
                    colors: 11,
                    exact: true
                },
                vec![11, 10]
            )
        );
    }

    #[test]
    fn who_needs_nothing_gets_the_least_without_a_run() {
        let (found, runs) = search(|_| 5.0, |_| 100.0, 0.01);
        assert_eq!(
            (found, runs),
            (
                Found {
                    colors: 1,
                    exact: true
                },
                vec![]
            )
        );
    }

    #[test]
    fn who_needs_everything_gets_it_after_one_run() {
        let reads = |k: u32| f64::from(u32::from(k < ALL)) * 1000.0;
        let (found, runs) = search(reads, |k| 100.0 + reads(k), 0.05);
        assert_eq!(
            (found, runs),
            (
                Found {
                    colors: 16,
                    exact: true
                },
                vec![15]
            )
        );
    }

    #[test]
    fn a_wrong_estimate_is_corrected_within_four_runs() {
        // The cliff is elsewhere than the misses say, above or below.
        for believed in 2..=ALL {
            for cliff in 2..=ALL {
                let step = |at: u32, k: u32| if k < at { 1000.0 } else { 0.0 };
                let (found, runs) = search(|k| step(believed, k), |k| 100.0 + step(cliff, k), 0.05);
                assert!(runs.len() <= MAX_RUNS, "{runs:?}");
                assert!(found.colors >= cliff, "never too few: {found:?} {cliff}");
                assert_eq!(
                    found.colors == cliff && found.exact,
                    found.exact,
                    "{found:?}"
                );
                assert!(found.colors - cliff <= 3, "{runs:?} {cliff}");
                if believed == cliff || believed + 1 == cliff {
                    assert!(found.exact, "believed {believed}, is {cliff}: {runs:?}");
                }
            }
        }
    }

    #[test]
    fn estimates_lie_between_what_was_measured() {
        let reads = vec![100.0, 90.0, 95.0, 10.0, 0.0];
        let mut times = Times::new(reads, [(2, 50.0), (5, 5.0)].into());
        assert_eq!(times.at(1), 50.0);
        assert_eq!(times.at(2), 50.0);
        // More misses than at two colors: no slower than these.
        assert_eq!(times.at(3), 50.0);
        assert!((times.at(4) - 10.0).abs() < 1e-9);
        times.measured.insert(4, 30.0);
        assert_eq!(times.at(4), 30.0);
        // Nothing is known above; flat misses are taken for slow.
        let flat = Times::new(vec![1.0; 4], [(1, 9.0), (4, 3.0)].into());
        assert_eq!(flat.at(3), 9.0);
        assert_eq!(flat.fewest(3.0), 4);
    }
}
