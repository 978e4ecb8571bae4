//! Numbers and names as people read them.
//!
//! A cell shows three significant digits; its interval uses the same decimals.
//! Where several cells stand in one row they share a unit, so that the eye can
//! compare them.

use crate::Sample;

/// What is shown for a number that does not exist.
pub(crate) const UNKNOWN: &str = "n/a";

/// The dimension of a quantity: which units it may be shown in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Picoseconds.
    Time,
    /// A number of things.
    Count,
    /// A share 0..=1, or a relative change, shown in percent.
    Share,
    /// The same with its sign.
    Change,
    /// Events per 1000 instructions.
    PerKilo,
    /// Bytes per second.
    Rate,
    /// Instructions per cycle.
    PerCycle,
    /// Anything else, in the unit it comes in.
    Other(String),
}

/// A unit and what to multiply base values with to get it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scale {
    pub factor: f64,
    pub unit: String,
}

const TIMES: &[(f64, &str)] = &[
    (1.0, "ps"),
    (1e3, "ns"),
    (1e6, "us"),
    (1e9, "ms"),
    (1e12, "s"),
];
const RATES: &[(f64, &str)] = &[(1.0, "B/s"), (1e3, "kB/s"), (1e6, "MB/s"), (1e9, "GB/s")];
const COUNTS: &[(f64, &str)] = &[(1.0, ""), (1e6, "million"), (1e9, "billion")];

impl Kind {
    /// The unit that shows values up to `largest` (by magnitude, in base units)
    /// in few digits.
    pub fn scale(&self, largest: f64) -> Scale {
        let pick = |units: &[(f64, &str)]| {
            let fits = units.iter().rev().find(|(size, _)| largest.abs() >= *size);
            let (size, unit) = *fits.unwrap_or(&units[0]);
            Scale {
                factor: 1.0 / size,
                unit: unit.to_owned(),
            }
        };
        let fixed = |factor, unit: &str| Scale {
            factor,
            unit: unit.to_owned(),
        };
        match self {
            Self::Time => pick(TIMES),
            Self::Rate => pick(RATES),
            Self::Count => pick(COUNTS),
            Self::Share | Self::Change => fixed(100.0, "%"),
            Self::PerKilo => fixed(1.0, "/1000 instr"),
            Self::PerCycle => fixed(1.0, "instr/cycle"),
            Self::Other(unit) => fixed(1.0, &clean(unit)),
        }
    }

    /// Name of the base unit that values are stored in, for machine-read output.
    pub fn base_unit(&self) -> &str {
        match self {
            Self::Time => "ps",
            Self::Rate => "B/s",
            Self::Count | Self::Share | Self::Change => "1",
            Self::PerKilo => "1/1000 instr",
            Self::PerCycle => "instr/cycle",
            Self::Other(unit) => unit,
        }
    }
}

/// Decimals that show three significant digits of `value`, at most 4.
fn decimals(value: f64) -> usize {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    // Rounding first: 9.996 is shown as 10.0 and needs one decimal, not two.
    let rounded: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    (2 - rounded.abs().log10().floor() as i64).clamp(0, 4) as usize
}

fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    // -0.00 is no sign that a reader should see.
    if text.starts_with('-') && text.bytes().all(|b| matches!(b, b'-' | b'0' | b'.')) {
        return text[1..].to_owned();
    }
    text
}

/// What so many references took, and how fast that was, which is not known of runs that a store had.
pub(crate) fn effort(refs: u64, seconds: f64, stored: u64) -> String {
    let took = number(seconds);
    match stored {
        0 => format!("{took} s ({} M/s)", number(refs as f64 / seconds / 1e6)),
        1 => format!("{took} s, but for 1 run that was made before"),
        n => format!("{took} s, but for {n} runs that were made before"),
    }
}

/// `value` with three significant digits, or `n/a`.
pub(crate) fn number(value: f64) -> String {
    if !value.is_finite() {
        return UNKNOWN.to_owned();
    }
    if value != 0.0 && !(5e-4..1e9).contains(&value.abs()) {
        return format!("{value:.2e}");
    }
    fixed(value, decimals(value))
}

/// Percent with two decimals: what is not all of it is not shown as 100.00, and what is something not as 0.00.
pub(crate) fn percent(value: f64) -> String {
    let text = fixed(value, 2);
    match text.as_str() {
        "100.00" if value < 100.0 => ">99.99".to_owned(),
        "0.00" if value > 0.0 => "<0.01".to_owned(),
        _ => text,
    }
}

/// Names of one list, each shortened to `max` characters; those that would be the same get numbers.
pub(crate) fn apart<'a>(names: impl IntoIterator<Item = &'a str>, max: usize) -> Vec<String> {
    let mut known: Vec<String> = Vec::new();
    for name in names {
        let mut shown = short(name, max);
        let mut number = 1;
        while known.contains(&shown) {
            number += 1;
            let end = format!(" ({number})");
            shown = short(name, max.saturating_sub(end.len())) + &end;
        }
        known.push(shown);
    }
    known
}

/// `value` like [`number`], without zeros at its end: for sentences.
pub(crate) fn brief(value: f64) -> String {
    let text = number(value);
    match text.contains('.') && !text.contains('e') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A half width with `decimals`; one that would round to nothing reads `<0.01`.
fn half_width(half: f64, decimals: usize) -> String {
    let text = fixed(half, decimals);
    if half == 0.0 || text.bytes().any(|b| matches!(b, b'1'..=b'9')) {
        return text;
    }
    format!("<{}", fixed(10f64.powi(-(decimals as i32)), decimals))
}

/// Decimals for a mean that stands beside its interval: enough for the mean,
/// and, for a mean near zero, no more than the interval makes meaningful.
fn decimals_beside(mean: f64, half: Option<f64>, kind: &Kind) -> usize {
    let decimals = match half {
        Some(half) if half > mean.abs() => decimals(half).saturating_sub(1),
        _ => decimals(mean),
    };
    // Percentages above 1 are not read to their hundredths.
    let percent = matches!(kind, Kind::Change | Kind::Share) && mean.abs() >= 1.0;
    if percent { decimals.min(1) } else { decimals }
}

/// `mean ± half`, `mean` without an interval, or `n/a`; in the unit of `scale`.
pub(crate) fn cell(sample: &Sample, kind: &Kind, scale: &Scale) -> String {
    if !sample.is_known() {
        return UNKNOWN.to_owned();
    }
    let mean = sample.mean * scale.factor;
    let half = sample
        .ci95
        .filter(|h| h.is_finite())
        .map(|h| h * scale.factor);
    let sign = if *kind == Kind::Change && mean > 0.0 {
        "+"
    } else {
        ""
    };
    if mean != 0.0 && !(5e-4..1e9).contains(&mean.abs()) && half.is_none_or(|h| h <= mean.abs()) {
        let half = half.map(|h| format!(" ± {h:.0e}")).unwrap_or_default();
        return format!("{sign}{mean:.2e}{half}");
    }
    let decimals = decimals_beside(mean, half, kind);
    let half = half
        .map(|h| format!(" ± {}", half_width(h, decimals)))
        .unwrap_or_default();
    format!("{sign}{}{half}", fixed(mean, decimals))
}

/// `1 234 567` as `1,234,567`.
pub(crate) fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Text from outside without control characters: they would steer a terminal,
/// and XML does not allow them.
pub(crate) fn clean(text: &str) -> String {
    let unfit = |c: char| {
        c.is_control()
            || matches!(c, '\u{fffe}' | '\u{ffff}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars()
        .map(|c| if unfit(c) { '\u{fffd}' } else { c })
        .collect()
}

/// The text in at most `max` characters: its middle gives way to an ellipsis,
/// since paths differ at the end and names at the beginning.
pub(crate) fn short(text: &str, max: usize) -> String {
    let text = clean(text);
    let count = text.chars().count();
    if count <= max {
        return text;
    }
    let kept = max.saturating_sub(1);
    let (head, tail) = (kept.div_ceil(2), kept / 2);
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{start}…{end}")
}

/// `a`, `a and b`, `a, b and 3 others`.
pub(crate) fn join_names(names: &[&str]) -> String {
    let name = |n: &&str| short(n, 40);
    match names {
        [] => String::new(),
        [a] => name(a),
        [a, b] => format!("{} and {}", name(a), name(b)),
        [a, b, c] => format!("{}, {} and {}", name(a), name(b), name(c)),
        [a, b, rest @ ..] => format!("{}, {} and {} others", name(a), name(b), rest.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_store_had_took_no_time_that_is_known() {
        assert_eq!(effort(6_000_000, 2.0, 0), "2.00 s (3.00 M/s)");
        assert_eq!(
            effort(6, 0.5, 1),
            "0.500 s, but for 1 run that was made before"
        );
        assert_eq!(
            effort(6, 0.5, 9),
            "0.500 s, but for 9 runs that were made before"
        );
    }

    #[test]
    fn numbers_have_three_significant_digits() {
        let cases = [
            (0.0, "0"),
            (123.4, "123"),
            (1234.6, "1235"),
            (12.34, "12.3"),
            (9.996, "10.0"),
            (0.1234, "0.123"),
            (0.001234, "0.0012"),
            (-0.5, "-0.500"),
            (1.5e-7, "1.50e-7"),
            (f64::NAN, "n/a"),
            (f64::NEG_INFINITY, "n/a"),
        ];
        for (value, expected) in cases {
            assert_eq!(number(value), expected);
        }
        let cases = [
            (1.0, "1"),
            (0.5, "0.5"),
            (1.5e-7, "1.50e-7"),
            (100.0, "100"),
        ];
        for (value, expected) in cases {
            assert_eq!(brief(value), expected);
        }
    }

    #[test]
    fn interval_takes_the_decimals_of_its_mean_and_never_reads_as_certain() {
        let scale = Kind::PerCycle.scale(1.0);
        let show = |mean, ci95| {
            cell(
                &Sample {
                    mean,
                    ci95,
                    values: vec![mean; 3],
                },
                &Kind::PerCycle,
                &scale,
            )
        };
        assert_eq!(show(1.234, Some(0.1)), "1.23 ± 0.10");
        assert_eq!(show(1.234, Some(0.0001)), "1.23 ± <0.01");
        assert_eq!(show(1.234, Some(0.0)), "1.23 ± 0.00");
        assert_eq!(show(0.0123, Some(1.5)), "0.0 ± 1.5");
        assert_eq!(show(1.234, None), "1.23");
        assert_eq!(show(f64::NAN, Some(1.0)), "n/a");
        assert_eq!(show(1.0, Some(f64::INFINITY)), "1.00");
    }

    #[test]
    fn units_follow_the_largest_value() {
        let text = |mean, kind: &Kind| {
            let scale = kind.scale(mean);
            (cell(&Sample::new(vec![mean]), kind, &scale), scale.unit)
        };
        let pair = |text: &str, unit: &str| (text.to_owned(), unit.to_owned());
        assert_eq!(text(1.5e9, &Kind::Time), pair("1.50", "ms"));
        assert_eq!(text(2.5e10, &Kind::Rate), pair("25.0", "GB/s"));
        assert_eq!(text(4096.0, &Kind::Count), pair("4096", ""));
        assert_eq!(text(0.231, &Kind::Change), pair("+23.1", "%"));
        assert_eq!(text(f64::NAN, &Kind::Time), pair("n/a", "ps"));
    }

    #[test]
    fn control_characters_never_reach_a_terminal() {
        assert_eq!(clean("a\x1b[31mb\u{202e}"), "a\u{fffd}[31mb\u{fffd}");
        assert_eq!(short("abcdef", 4), "ab…f");
        assert_eq!(short("äöü", 3), "äöü");
        assert_eq!(short("äöü", 0), "…");
        assert_eq!(join_names(&["a", "b", "c", "d"]), "a, b and 2 others");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
