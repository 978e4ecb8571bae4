//! Sets of hardware threads.

use core::{fmt, str::FromStr};

use crate::{
    CoreId,
    color_set::{parse_ranges, print_ranges},
    number::ParseError,
};

/// Number of hardware threads that a modelled machine can have.
pub const MAX_CORES: usize = 64;

/// A set of hardware threads. Reads and prints `0-3,8`.
///
/// The empty set prints as `none`, which is refused when read: whatever is
/// given cores must run somewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CoreSet(u64);

impl CoreSet {
    /// The set without cores.
    pub const EMPTY: Self = Self(0);

    /// A set of one; empty if the id is 64 or more.
    pub const fn one(core: CoreId) -> Self {
        match 1u64.checked_shl(core.0 as u32) {
            Some(bit) => Self(bit),
            None => Self(0),
        }
    }

    /// The first `n` cores; all 64 if `n` is larger.
    pub const fn first(n: u32) -> Self {
        match 1u64.checked_shl(n) {
            Some(bit) => Self(bit - 1),
            None => Self(u64::MAX),
        }
    }

    /// The set that a bitmap describes.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The set as a bitmap.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Is the core in the set?
    pub const fn contains(self, core: CoreId) -> bool {
        Self::one(core).0 & self.0 != 0
    }

    /// Both sets together.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Number of cores in the set.
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// True if no core is in the set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The cores, in rising order.
    pub fn iter(self) -> impl Iterator<Item = CoreId> {
        (0..MAX_CORES as u16)
            .map(CoreId)
            .filter(move |c| self.contains(*c))
    }
}

impl FromStr for CoreSet {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut bits = 0u64;
        let range = "cores 0-63, as in 0-3,8";
        parse_ranges(text, MAX_CORES as u32 - 1, range, |low, high| {
            for c in low..=high {
                bits |= 1 << c;
            }
        })?;
        Ok(Self(bits))
    }
}

impl fmt::Display for CoreSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print_ranges(f, self.iter().map(|c| u32::from(c.0)))
    }
}
