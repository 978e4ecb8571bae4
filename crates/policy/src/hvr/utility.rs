//! Utility-based partitioning of the cache, from miss counts: the scheme that HVR is
//! compared with (UVP, sections 5.4 and 7.3). It knows nothing of classes and banks.
//!
//! Shares are of [`Groups`]: the parts of the cache that O- and C-bits tell apart, 32 on the
//! paper's machine. With equal shares of 4 or 8 programs these are the cells of A-VP and C-VP,
//! from which UVP starts; with other shares banks are divided as the O-bits have it, so that
//! neighbours may meet in a bank group: "it has no knowledge of Memory-Map" (section 5.4).

use core::fmt;

use piebald_units::{Color, ColorSet};

use super::scheme::Rising;
use crate::color_map::{BitClass, ColorMap};

/// Why there is no division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UtilityError {
    /// More programs than groups, or none.
    Programs {
        /// How many there are.
        programs: usize,
        /// Groups to divide.
        groups: u32,
    },
    /// A curve has fewer values than there are groups.
    Curve {
        /// The program.
        program: usize,
        /// Number of its values.
        len: usize,
        /// Groups to divide.
        groups: u32,
    },
    /// There are more or fewer shares, or counts, than programs.
    Shares {
        /// How many there are.
        len: usize,
        /// How many programs there are.
        programs: usize,
    },
}

impl fmt::Display for UtilityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Programs { programs, groups } => {
                write!(f, "programs = {programs}; allowed: 1 to {groups} groups")
            }
            Self::Curve {
                program,
                len,
                groups,
            } => write!(
                f,
                "the curve of program {program} has {len} values; allowed: {groups} and more"
            ),
            Self::Shares { len, programs } => {
                write!(f, "shares or counts = {len}; allowed: {programs}")
            }
        }
    }
}

impl core::error::Error for UtilityError {}

/// Divides `groups` of the cache among programs by the misses that they would have:
/// `curves[p][k - 1]` with *k* groups. Everyone has one; then the program whose misses
/// fall most per group, for as many more groups as make that largest, has those, and so
/// on (the look-ahead algorithm of utility-based cache partitioning, reference 28 of the
/// paper). Of equals the first. What nobody profits from goes round from the first on.
/// At most groups x programs x groups steps.
///
/// # Errors
/// If the lengths do not fit; `shares` is unchanged.
pub fn divide(curves: &[&[u64]], groups: u32, shares: &mut [u32]) -> Result<(), UtilityError> {
    check(curves.len(), groups, shares.len())?;
    for (program, curve) in curves.iter().enumerate() {
        let len = curve.len();
        if len < groups as usize {
            return Err(UtilityError::Curve {
                program,
                len,
                groups,
            });
        }
    }
    shares.fill(1);
    let mut left = groups.saturating_sub(curves.len() as u32);
    while left > 0 {
        let Some((program, more)) = best(curves, shares, left) else {
            break;
        };
        if let Some(share) = shares.get_mut(program) {
            *share = share.saturating_add(more);
        }
        left = left.saturating_sub(more);
    }
    while left > 0 {
        for share in shares.iter_mut().take(left as usize) {
            *share = share.saturating_add(1);
            left = left.saturating_sub(1);
        }
    }
    Ok(())
}

fn check(programs: usize, groups: u32, shares: usize) -> Result<(), UtilityError> {
    if programs == 0 || programs > groups as usize {
        return Err(UtilityError::Programs { programs, groups });
    }
    match shares == programs {
        true => Ok(()),
        false => Err(UtilityError::Shares {
            len: shares,
            programs,
        }),
    }
}

/// The program and the number of groups with the largest fall of misses per group;
/// `None` if no misses fall.
fn best(curves: &[&[u64]], shares: &[u32], left: u32) -> Option<(usize, u32)> {
    let mut best: Option<(usize, u32, u64)> = None;
    for (program, (curve, share)) in curves.iter().zip(shares).enumerate() {
        let at = |groups: u32| {
            let value = curve.get((groups as usize).saturating_sub(1));
            value.copied().unwrap_or(u64::MAX)
        };
        for more in 1..=left {
            let fall = at(*share).saturating_sub(at(share.saturating_add(more)));
            // fall / more > most / of, without dividing.
            let is_better = best.is_none_or(|(_, of, most)| {
                wide(fall, u64::from(of)) > wide(most, u64::from(more))
            });
            if fall > 0 && is_better {
                best = Some((program, more, fall));
            }
        }
    }
    best.map(|(program, more, _)| (program, more))
}

/// A product that does not overflow.
const fn wide(a: u64, b: u64) -> u128 {
    (a as u128).wrapping_mul(b as u128)
}

/// One step by counters alone: the program with fewest misses since the last step gives
/// one group to the one with most, if that has more by `margin_bp` hundredths of a
/// percent. For hosts without curves. Returns who gave to whom.
///
/// # Errors
/// If the lengths do not fit; nothing has changed.
pub fn step(
    misses: &[u64],
    margin_bp: u32,
    shares: &mut [u32],
) -> Result<Option<(usize, usize)>, UtilityError> {
    if misses.len() != shares.len() {
        return Err(UtilityError::Shares {
            len: misses.len(),
            programs: shares.len(),
        });
    }
    let programs = || misses.iter().zip(shares.iter()).enumerate();
    let able = programs().filter(|(_, (_, share))| **share > 1);
    let giver = able
        .min_by_key(|(_, (n, _))| **n)
        .map(|(i, (n, _))| (i, *n));
    // The first of equals, as above.
    let taker = programs().rev().max_by_key(|(_, (n, _))| **n);
    let taker = taker.map(|(i, (n, _))| (i, *n));
    let (Some((from, few)), Some((to, many))) = (giver, taker) else {
        return Ok(None);
    };
    let least = wide(few, 10_000u64.saturating_add(u64::from(margin_bp)));
    if from == to || wide(many, 10_000) <= least {
        return Ok(None);
    }
    if let Some(share) = shares.get_mut(from) {
        *share = share.saturating_sub(1);
    }
    if let Some(share) = shares.get_mut(to) {
        *share = share.saturating_add(1);
    }
    Ok(Some((from, to)))
}

/// The cells of a program that has `shares[program]` of them, one program after another
/// from cell 0 on; 0 for a program that is not there or comes after cell 63.
pub fn cells(shares: &[u32], program: usize) -> u64 {
    let Some((own, before)) = shares.get(..=program).and_then(<[u32]>::split_last) else {
        return 0;
    };
    let first = before.iter().fold(0u32, |sum, n| sum.saturating_add(*n));
    let run = match 1u64.checked_shl(*own) {
        Some(end) => end.wrapping_sub(1),
        None => u64::MAX,
    };
    run.checked_shl(first).unwrap_or(0)
}

/// Most bits that tell groups apart: 64 groups are a word.
const MAX_GROUP_BITS: usize = 6;

/// The groups of a machine's cache, which are divided among programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Colour bits, from low to high in the group's number: C-bits from the highest down, then
    /// O-bits upwards. The highest C-bit is the first to be shared between two programs.
    key: [u8; MAX_GROUP_BITS],
    len: u8,
}

impl Groups {
    /// By the O-bits of a colour map and its lowest C-bits, six together at most. Without any
    /// there is one group.
    pub fn of(map: &ColorMap) -> Self {
        let both = Rising::of(map, BitClass::Both);
        let both = both.lowest(MAX_GROUP_BITS);
        let cache = Rising::of(map, BitClass::Cache);
        let cache = cache.lowest(MAX_GROUP_BITS.saturating_sub(both.len()));
        let mut groups = Self {
            key: [0; MAX_GROUP_BITS],
            len: 0,
        };
        let bits = cache.iter().rev().chain(both);
        for (slot, bit) in groups.key.iter_mut().zip(bits) {
            *slot = *bit;
            groups.len = groups.len.saturating_add(1);
        }
        groups
    }

    /// How many there are, 1 to 64.
    pub const fn nr(&self) -> u32 {
        1u32.wrapping_shl(self.len as u32)
    }

    /// Whether a colour bit tells groups apart.
    pub fn is_told_by(&self, bit: u8) -> bool {
        let mut key = self.key.iter().take(usize::from(self.len));
        key.any(|own| *own == bit)
    }

    /// The group that a colour's pages lie in.
    pub fn group(&self, color: Color) -> u32 {
        let key = self.key.iter().take(usize::from(self.len));
        (0u32..).zip(key).fold(0, |group, (i, bit)| {
            let value = u32::from(color.0).wrapping_shr(u32::from(*bit)) & 1;
            group | value.wrapping_shl(i)
        })
    }

    /// Makes `out` the colours of a program's [`cells`], here groups. Visits each colour of the
    /// map once.
    pub fn colors(&self, map: &ColorMap, shares: &[u32], program: usize, out: &mut ColorSet) {
        let own = cells(shares, program);
        out.clear();
        for color in (0..map.colors()).map(|c| Color(c as u16)) {
            if own.wrapping_shr(self.group(color)) & 1 == 1 {
                out.insert(color);
            }
        }
    }
}
