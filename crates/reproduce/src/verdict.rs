//! The rules by which results are judged.
//!
//! * A constant (C) matches if it is exact.
//! * A shape (S) matches if every stated predicate holds.
//! * A headline number (H) matches with the right sign, a 95 % interval that excludes
//!   zero, and a mean within 25 % of the paper's, or within 5 points where the paper's
//!   effect is above 15 points. It is near with the right sign, the interval, and a
//!   factor of two. "No change" is judged by a bound within which the whole interval
//!   has to lie.
//! * A bound (O) matches if the whole interval keeps it.
//!
//! A row's verdict is that of its worst value. A headline row whose numbers match, but not
//! all of its statements hold, is near. Rows that were used for calibration, and
//! numbers that the paper only cites, are given, whatever they come to.

use piebald_report::{Predicate, Sample, Verdict};

/// Relative error within which a headline number matches.
pub const WITHIN: f64 = 0.25;
/// Points within which it matches if the paper's effect is above [`LARGE_EFFECT`].
pub const WITHIN_POINTS: f64 = 5.0;
/// In points.
pub const LARGE_EFFECT: f64 = 15.0;
/// Factor within which a headline number is near.
pub const NEAR: f64 = 2.0;

/// Judges a headline number in percent or points.
pub fn headline(paper: f64, measured: &Sample) -> Verdict {
    let right_sign = measured.mean * paper > 0.0;
    if !right_sign || measured.excludes_zero() != Some(true) {
        return Verdict::Miss;
    }
    let error = (measured.mean - paper).abs();
    let points = paper.abs() > LARGE_EFFECT && error <= WITHIN_POINTS;
    if error <= WITHIN * paper.abs() || points {
        return Verdict::Match;
    }
    let ratio = measured.mean / paper;
    match (1.0 / NEAR..=NEAR).contains(&ratio) {
        true => Verdict::Near,
        false => Verdict::Miss,
    }
}

/// Judges something exact.
pub const fn exact(holds: bool) -> Verdict {
    if holds { Verdict::Match } else { Verdict::Miss }
}

/// Judges an amount that the paper prints as a headline number: a property rather than an
/// effect, so that no interval has to exclude zero. `is_share`: in percent of a whole, so that
/// points count as they do for effects.
pub fn amount(paper: f64, measured: f64, is_share: bool) -> Verdict {
    let error = (measured - paper).abs();
    let points = is_share && paper.abs() > LARGE_EFFECT && error <= WITHIN_POINTS;
    if error <= WITHIN * paper.abs() || points {
        return Verdict::Match;
    }
    match (1.0 / NEAR..=NEAR).contains(&(measured / paper)) {
        true => Verdict::Near,
        false => Verdict::Miss,
    }
}

/// Judges a bound from above: the whole interval keeps it.
pub fn at_most(bound: f64, measured: &Sample) -> Verdict {
    match measured.interval() {
        Some((_, high)) if high <= bound => Verdict::Match,
        _ => Verdict::Miss,
    }
}

/// Judges a headline number of which the paper gives a range, `low` included and `high` not,
/// by the mean and the end of the range that is nearest. A range without 0 needs a sign that is sure.
pub fn range(low: f64, high: f64, measured: &Sample) -> Verdict {
    if !measured.is_known() {
        return Verdict::Miss;
    }
    let has_zero = low <= 0.0 && high > 0.0;
    let sure = has_zero || measured.excludes_zero() == Some(true);
    let mean = measured.mean;
    // Ends below 0 are farther out by a factor, as those above are.
    let lowest = if low > 0.0 { low / NEAR } else { low * NEAR };
    let highest = if high > 0.0 { high * NEAR } else { high / NEAR };
    match (mean >= low, mean < high) {
        (true, true) if sure => Verdict::Match,
        (true, true) => Verdict::Miss,
        (false, _) if sure && mean >= lowest => Verdict::Near,
        (_, false) if (has_zero || high > 0.0 || sure) && mean <= highest => Verdict::Near,
        _ => Verdict::Miss,
    }
}

/// Judges "no change": the whole interval lies within `bound` of zero.
pub fn no_change(bound: f64, measured: &Sample) -> Verdict {
    let within = |limit: f64| {
        let (low, high) = measured.interval()?;
        Some(low >= -limit && high <= limit)
    };
    match (within(bound), within(bound * NEAR)) {
        (Some(true), _) => Verdict::Match,
        (_, Some(true)) => Verdict::Near,
        _ => Verdict::Miss,
    }
}

/// Judges a shape.
pub fn shape(predicates: &[Predicate]) -> Verdict {
    if predicates.iter().any(|p| p.holds == Some(false)) {
        return Verdict::Miss;
    }
    match predicates.iter().all(|p| p.holds.is_some()) && !predicates.is_empty() {
        true => Verdict::Match,
        false => Verdict::NotRun,
    }
}

/// A headline row's verdict by its numbers, given what is stated beside them.
pub fn with_statements(numbers: Verdict, predicates: &[Predicate]) -> Verdict {
    match predicates.iter().any(|p| p.holds == Some(false)) {
        true => numbers.max(Verdict::Near),
        false => numbers,
    }
}

/// The worst of several verdicts; nothing is not run.
pub fn worst(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
    verdicts.into_iter().max().unwrap_or(Verdict::NotRun)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(mean: f64, half: f64) -> Sample {
        Sample {
            mean,
            ci95: Some(half),
            values: vec![mean; 3],
        }
    }

    #[test]
    fn a_headline_number_needs_sign_interval_and_size() {
        for (paper, mean, half, verdict) in [
            (40.0, 40.0, 1.0, Verdict::Match),
            (40.0, 49.9, 1.0, Verdict::Match),
            (40.0, 50.1, 1.0, Verdict::Near),
            (40.0, 80.0, 1.0, Verdict::Near),
            (40.0, 80.1, 1.0, Verdict::Miss),
            (40.0, 19.9, 1.0, Verdict::Miss),
            // 5 points are more than 25 % of 16, and do not count below 15.
            (16.0, 20.9, 1.0, Verdict::Match),
            (14.0, 18.9, 1.0, Verdict::Near),
            (-16.0, -20.9, 1.0, Verdict::Match),
            (-16.0, 16.0, 1.0, Verdict::Miss),
            (40.0, 40.0, 41.0, Verdict::Miss),
        ] {
            let got = headline(paper, &sample(mean, half));
            assert_eq!(got, verdict, "{paper} {mean} {half}");
        }
        assert_eq!(headline(40.0, &Sample::new(vec![40.0])), Verdict::Miss);
        assert_eq!(headline(0.0, &sample(0.0, 0.0)), Verdict::Miss);
    }

    #[test]
    fn a_range_is_judged_by_its_nearest_end() {
        let inf = f64::INFINITY;
        for (low, high, mean, half, verdict) in [
            (25.0, inf, 25.0, 1.0, Verdict::Match),
            (25.0, inf, 24.9, 1.0, Verdict::Near),
            (25.0, inf, 12.4, 1.0, Verdict::Miss),
            (25.0, inf, 30.0, 31.0, Verdict::Miss),
            (10.0, 25.0, 25.0, 1.0, Verdict::Near),
            (10.0, 25.0, 51.0, 1.0, Verdict::Miss),
            (10.0, 25.0, 5.0, 1.0, Verdict::Near),
            (-inf, 10.0, 0.1, 0.4, Verdict::Match),
            (-inf, 10.0, 10.0, 0.4, Verdict::Near),
            // A range below 0 is the mirror of one above, but for the ends.
            (-20.0, -10.0, -15.0, 1.0, Verdict::Match),
            (-20.0, -10.0, -15.0, 16.0, Verdict::Miss),
            (-20.0, -10.0, -21.0, 0.1, Verdict::Near),
            (-20.0, -10.0, -41.0, 0.1, Verdict::Miss),
            (-20.0, -10.0, -9.0, 0.1, Verdict::Near),
            (-20.0, -10.0, -4.0, 0.1, Verdict::Miss),
        ] {
            let got = range(low, high, &sample(mean, half));
            assert_eq!(got, verdict, "{low} {high} {mean} {half}");
        }
        assert_eq!(range(0.0, 1.0, &Sample::new(vec![])), Verdict::Miss);
    }

    #[test]
    fn no_change_needs_the_whole_interval_within_the_bound() {
        assert_eq!(no_change(5.0, &sample(1.0, 4.0)), Verdict::Match);
        assert_eq!(no_change(5.0, &sample(1.0, 4.1)), Verdict::Near);
        assert_eq!(no_change(5.0, &sample(9.0, 1.1)), Verdict::Miss);
        assert_eq!(no_change(5.0, &Sample::new(vec![0.0])), Verdict::Miss);
    }

    #[test]
    fn an_amount_needs_its_size_alone_and_a_bound_the_whole_interval() {
        for (paper, measured, share, verdict) in [
            (16.0, 20.9, true, Verdict::Match),
            (16.0, 20.9, false, Verdict::Near),
            (3.0, 3.7, true, Verdict::Match),
            (3.0, 6.1, true, Verdict::Miss),
            (3.0, f64::NAN, true, Verdict::Miss),
        ] {
            assert_eq!(
                amount(paper, measured, share),
                verdict,
                "{paper} {measured}"
            );
        }
        assert_eq!(at_most(1.7, &sample(1.5, 0.2)), Verdict::Match);
        assert_eq!(at_most(1.7, &sample(1.5, 0.3)), Verdict::Miss);
        assert_eq!(at_most(1.7, &Sample::new(vec![0.0])), Verdict::Miss);
    }

    #[test]
    fn a_shape_matches_only_if_all_was_run_and_holds() {
        let p = |holds| Predicate {
            text: String::new(),
            holds,
        };
        assert_eq!(shape(&[p(Some(true)), p(Some(true))]), Verdict::Match);
        assert_eq!(
            shape(&[p(Some(true)), p(Some(false)), p(None)]),
            Verdict::Miss
        );
        assert_eq!(shape(&[p(Some(true)), p(None)]), Verdict::NotRun);
        assert_eq!(shape(&[]), Verdict::NotRun);
    }

    #[test]
    fn a_statement_that_fails_spoils_a_match_and_mends_no_miss() {
        let p = |holds| Predicate {
            text: String::new(),
            holds: Some(holds),
        };
        let with = |numbers, holds| with_statements(numbers, &[p(true), p(holds)]);
        assert_eq!(with(Verdict::Match, true), Verdict::Match);
        assert_eq!(with(Verdict::Match, false), Verdict::Near);
        assert_eq!(with(Verdict::Miss, false), Verdict::Miss);
    }

    #[test]
    fn a_row_is_as_good_as_its_worst_value() {
        assert_eq!(worst([Verdict::Match, Verdict::Near]), Verdict::Near);
        assert_eq!(worst([Verdict::Miss, Verdict::Match]), Verdict::Miss);
        assert_eq!(worst([]), Verdict::NotRun);
    }
}
