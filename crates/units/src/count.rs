//! Plain counts.

use core::{fmt, str::FromStr};

use crate::number::{ParseError, Unit, parse_scaled, print_scaled};

/// A number of things, such as references. Reads and prints `50M`, `1.5G`,
/// `800k`, `12345`: decimal multiples, since these are not bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Count(pub u64);

const UNITS: &[Unit] = &[
    ("", 1),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
];

impl FromStr for Count {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let range = "a whole number up to 2^64-1";
        parse_scaled(text, UNITS, "none, k, M, G, T", range).map(Self)
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print_scaled(f, self.0, UNITS)
    }
}
