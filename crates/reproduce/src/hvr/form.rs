//! What the full and the quick form run (protocol).

use crate::Options;

/// References in a microsecond alone of a program that makes all of its references in the quick
/// form: about the median.
const PACE: f64 = 1500.0;

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub quick: bool,
    pub repetitions: u32,
    /// References of each program before the measured ones, and those.
    pub warmup: u64,
    pub budget: u64,
    /// Mixes of a list at most, instead of the form's number.
    pub most: Option<u64>,
}

impl Form {
    pub(super) fn new(options: &Options) -> Self {
        let (refs, times) = match options.quick {
            true => (1_000_000, 2),
            false => (4_000_000, 1),
        };
        let budget = options.budget_refs.unwrap_or(refs).max(1);
        let repetitions = if options.quick { 1 } else { 3 };
        Self {
            quick: options.quick,
            repetitions: options.repetitions.unwrap_or(repetitions).max(1),
            warmup: budget.saturating_mul(times),
            budget,
            most: options.mixes,
        }
    }

    /// Programs are met in the first so-manieth of the part of their recordings that places are
    /// drawn from: what comes before has to be gone through.
    pub(super) const fn places(&self) -> u64 {
        if self.quick { 10 } else { 1 }
    }

    /// Share of the references of a row that a program makes with so many in a microsecond alone;
    /// `None` = it was not measured, and makes all. In the quick form it makes no more than take it as
    /// long alone as they take one of [`PACE`], else the slowest decides how long all others are simulated.
    pub(super) fn share(&self, pace: Option<f64>) -> f64 {
        match pace.filter(|_| self.quick) {
            Some(pace) => (pace / PACE).min(1.0),
            None => 1.0,
        }
    }

    /// The first of so many mixes that are run.
    pub(super) fn mixes(&self, full: u64, quick: u64) -> u64 {
        match self.most {
            Some(most) => most.min(full),
            None if self.quick => quick,
            None => full,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_mixes_takes_the_place_of_the_forms_up_to_the_whole_list() {
        for quick in [false, true] {
            let form = |mixes| {
                Form::new(&Options {
                    quick,
                    mixes,
                    ..Options::default()
                })
            };
            assert_eq!(form(Some(3)).mixes(10, 1), 3);
            assert_eq!(form(Some(60)).mixes(10, 1), 10);
            assert_eq!(form(None).mixes(10, 1), if quick { 1 } else { 10 });
            assert_eq!(form(Some(3)).budget, form(None).budget);
        }
    }

    #[test]
    fn only_slow_programs_make_fewer_references_and_only_in_the_quick_form() {
        let form = |quick| {
            Form::new(&Options {
                quick,
                ..Options::default()
            })
        };
        assert_eq!(form(true).share(Some(750.0)), 0.5);
        assert_eq!(form(true).share(Some(3000.0)), 1.0);
        assert_eq!(form(true).share(None), 1.0);
        assert_eq!(form(false).share(Some(750.0)), 1.0);
    }
}
