//! Time and frequency.

use core::{
    fmt,
    ops::{Add, AddAssign},
    str::FromStr,
};

use crate::number::{ParseError, Unit, parse_scaled, print_scaled};

/// Simulated time or a duration, in picoseconds. Reads and prints `9.2us`,
/// `340ps`, `1.5s`. 2^64 ps are 213 days.
///
/// Addition saturates: a clock that has reached the end of time stays there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Picos(pub u64);

const UNITS: &[Unit] = &[
    ("ps", 1),
    ("ns", 1_000),
    ("us", 1_000_000),
    ("ms", 1_000_000_000),
    ("s", 1_000_000_000_000),
];

impl Picos {
    /// The end of time.
    pub const MAX: Self = Self(u64::MAX);

    /// Nanoseconds, or `None` on overflow.
    pub const fn from_ns(ns: u64) -> Option<Self> {
        match ns.checked_mul(1_000) {
            Some(v) => Some(Self(v)),
            None => None,
        }
    }

    /// Difference, zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// Sum, or `None` on overflow.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(v) => Some(Self(v)),
            None => None,
        }
    }
}

impl Add for Picos {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Picos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl FromStr for Picos {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        if text.trim() == "0" {
            return Ok(Self(0));
        }
        let range = "a whole number of picoseconds up to 2^64-1";
        parse_scaled(text, UNITS, "ps, ns, us, ms, s", range).map(Self)
    }
}

impl fmt::Display for Picos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print_scaled(f, self.0, UNITS)
    }
}

/// A clock frequency. Reads and prints `2.93GHz`, `666.667MHz`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hertz(pub u64);

const HERTZ: &[Unit] = &[
    ("Hz", 1),
    ("kHz", 1_000),
    ("MHz", 1_000_000),
    ("GHz", 1_000_000_000),
];

impl Hertz {
    /// Length of a cycle in units of 2^-8 ps, rounded to nearest, or `None`
    /// for 0 Hz. The fraction keeps the error of a 3 GHz clock below 1e-5.
    pub const fn cycle_ps_q8(self) -> Option<u64> {
        if self.0 == 0 {
            return None;
        }
        let numerator = 1_000_000_000_000u128 << 8;
        Some(((numerator + self.0 as u128 / 2) / self.0 as u128) as u64)
    }
}

impl FromStr for Hertz {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let range = "a whole number of hertz up to 2^64-1";
        parse_scaled(text, HERTZ, "Hz, kHz, MHz, GHz", range).map(Self)
    }
}

impl fmt::Display for Hertz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print_scaled(f, self.0, HERTZ)
    }
}
