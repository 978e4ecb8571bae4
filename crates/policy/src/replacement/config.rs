//! How many pages a policy knows, and what is wrong with a configuration.

use core::fmt;

/// Most numbers that a policy can tell apart (2^31: 8 TiB of pages).
pub const MAX_SLOTS: u32 = 1 << 31;

/// The configuration of a policy that has no other thresholds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Pages that fit in memory, at least 1.
    pub capacity: u32,
    /// Pages that may be in memory beyond the capacity for a moment, while the host
    /// makes room for one that comes in. Default 1.
    pub spare: u32,
}

impl Config {
    /// A memory of so many pages.
    pub const fn new(capacity: u32) -> Self {
        Self { capacity, spare: 1 }
    }

    /// Numbers needed; the store has a link and a mark for each.
    ///
    /// # Errors
    /// If the capacity is 0, or more than 2^31 numbers are needed.
    pub const fn slots(&self) -> Result<u32, NewError> {
        self.slots_with(0)
    }

    /// Numbers needed if there are ghosts too.
    pub(super) const fn slots_with(&self, ghosts: u32) -> Result<u32, NewError> {
        if self.capacity == 0 {
            return Err(NewError::Capacity);
        }
        // Three numbers of 32 bits cannot overflow 64.
        let needed = (self.capacity as u64)
            .wrapping_add(self.spare as u64)
            .wrapping_add(ghosts as u64);
        if needed > MAX_SLOTS as u64 {
            return Err(NewError::Slots(needed));
        }
        Ok(needed as u32)
    }
}

/// Why a policy cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewError {
    /// The capacity is 0 pages.
    Capacity,
    /// So many numbers are needed, more than [`MAX_SLOTS`].
    Slots(u64),
    /// A threshold is out of its range.
    Threshold {
        /// The field of the configuration.
        name: &'static str,
        /// Its value.
        value: u32,
        /// The smallest allowed value.
        min: u32,
        /// The largest allowed value.
        max: u32,
    },
    /// The slice of links is too short.
    Links {
        /// Its length.
        lent: usize,
        /// The length that is needed.
        needed: u32,
    },
    /// The slice of marks is too short.
    Marks {
        /// Its length.
        lent: usize,
        /// The length that is needed.
        needed: u32,
    },
}

impl fmt::Display for NewError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Capacity => write!(f, "capacity is 0 pages: at least 1 is needed"),
            Self::Slots(needed) => {
                write!(
                    f,
                    "{needed} numbers are needed: at most {MAX_SLOTS} are allowed"
                )
            }
            Self::Threshold {
                name,
                value,
                min,
                max,
            } => write!(f, "{name} is {value}: allowed are {min} to {max}"),
            Self::Links { lent, needed } => {
                write!(f, "{lent} links are lent: at least {needed} are needed")
            }
            Self::Marks { lent, needed } => {
                write!(f, "{lent} marks are lent: at least {needed} are needed")
            }
        }
    }
}

impl core::error::Error for NewError {}

/// A threshold within its range.
pub(super) const fn within(
    name: &'static str,
    value: u32,
    min: u32,
    max: u32,
) -> Result<(), NewError> {
    if value < min || value > max {
        return Err(NewError::Threshold {
            name,
            value,
            min,
            max,
        });
    }
    Ok(())
}

/// So many percent of a number of pages, rounded down.
pub(super) const fn percent(pages: u32, percent: u32) -> u32 {
    ((pages as u64).wrapping_mul(percent as u64) / 100) as u32
}
