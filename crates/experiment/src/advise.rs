//! The table `[advise]`.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Text, value::Notation, words::words};

/// Advice on shares of the last level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Advise {
    /// How much slower than with all colors a program may be in its share.
    pub within: Text<Within>,
    /// What the split of the colors among programs makes least.
    #[serde(default)]
    pub goal: Goal,
}

impl Advise {
    /// Shares that cost at most this, and splits by estimated slowdowns.
    pub const fn of(within: Within) -> Self {
        Self {
            within: Text(within),
            goal: Goal::Slowdowns,
        }
    }
}

/// A slowdown that is taken for none, above 0 and at most [`Within::MAX_PERCENT`].
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Within(f64);

impl Within {
    /// Larger slowdowns are no question of shares any more.
    pub const MAX_PERCENT: f64 = 1000.0;

    /// As a ratio: 0.05 for 5 %.
    pub const fn ratio(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Within {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // 0.07 is 7 %, not 7.000000000000001 %.
        let percent = (self.0 * 1e12).round() / 1e10;
        write!(f, "{percent} %")
    }
}

/// A text that is no such slowdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is no slowdown in percent; allowed: more than 0% to 1000%, as in 5%")]
pub struct NotWithin;

impl FromStr for Within {
    type Err = NotWithin;

    fn from_str(text: &str) -> Result<Self, NotWithin> {
        let number = text.strip_suffix('%').ok_or(NotWithin)?.trim();
        let plain = |c: char| c.is_ascii_digit() || c == '.';
        if !number.chars().all(plain) {
            return Err(NotWithin);
        }
        let percent: f64 = number.parse().map_err(|_| NotWithin)?;
        match percent > 0.0 && percent <= Self::MAX_PERCENT {
            true => Ok(Self(percent / 100.0)),
            false => Err(NotWithin),
        }
    }
}

impl Notation for Within {
    const WHAT: &'static str = "more than \"0%\" to \"1000%\", as in \"5%\"";
}

words! {
    /// What a split of the colors among programs makes least.
    pub enum Goal {
        /// The sum of the programs' estimated slowdowns: a miss does not cost every program
        /// the same, and slowdowns are what is asked about.
        Slowdowns = "slowdowns",
        /// Misses of all programs together in the same time, as utility-based cache
        /// partitioning does (Qureshi and Patt, MICRO 2006).
        Misses = "misses",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slowdowns_are_read_in_percent_only() {
        for (text, ratio, shown) in [
            ("5%", 0.05, "5 %"),
            ("0.5 %", 0.005, "0.5 %"),
            ("7%", 0.07, "7 %"),
            ("1000%", 10.0, "1000 %"),
        ] {
            let within: Within = text.parse().expect(text);
            assert!((within.ratio() - ratio).abs() < 1e-12, "{text}");
            assert_eq!(within.to_string(), shown);
        }
        for text in [
            "0%", "-1%", "abc", "5", "0.05", "", "%", "1000.1%", "inf%", "NaN%", "1e1%", "+5%",
            ".%", "5%%",
        ] {
            assert_eq!(text.parse::<Within>(), Err(NotWithin), "{text}");
        }
    }
}
