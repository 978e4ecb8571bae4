//! Sizes in bytes.

use core::{fmt, str::FromStr};

use crate::number::{ParseError, Unit, parse_scaled, print_scaled};

/// A size in bytes. Reads and prints `64KiB`, `8MiB`, `1.5GiB`, `512B`.
///
/// Units are binary (`KiB` = 1024 B). A bare number is refused except `0`,
/// since a size without a unit is the field's classic mistake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

const UNITS: &[Unit] = &[
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];
const ALLOWED: &str = "B, KiB, MiB, GiB, TiB";
const RANGE: &str = "a whole number of bytes up to 2^64-1";

impl Bytes {
    /// 1024 B.
    pub const KIB: u64 = 1 << 10;
    /// 1024 KiB.
    pub const MIB: u64 = 1 << 20;
    /// 1024 MiB.
    pub const GIB: u64 = 1 << 30;

    /// Whole 4 KiB pages, rounded up.
    pub const fn pages_up(self) -> u64 {
        self.0.div_ceil(crate::PAGE_SIZE)
    }

    /// Sum, or `None` on overflow.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(v) => Some(Self(v)),
            None => None,
        }
    }
}

impl FromStr for Bytes {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        if text.trim() == "0" {
            return Ok(Self(0));
        }
        parse_scaled(text, UNITS, ALLOWED, RANGE).map(Self)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print_scaled(f, self.0, UNITS)
    }
}
