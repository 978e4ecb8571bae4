//! The policies of Table 1 as partitions of a machine's colours.
//!
//! A *scheme* takes some of the colour map's bits as its *key*; the colours with equal
//! keys are a *cell*, which is the smallest part that it gives away. The key's bits are
//! ordered so that numbers of cells read as in the paper: those of a cache region are C,
//! O, O from high to low (Figure 11: "000~111"), those of a sub-group lie above.

use core::fmt;

use piebald_units::{Color, ColorSet};

use crate::color_map::{BitClass, ColorMap, MAX_BITS};

/// Most bits of a key: 64 cells are a word.
pub const MAX_KEY: usize = 6;

/// What is partitioned (Table 1, sections 3.3 and 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Policy {
    /// Nothing: every program has every colour. What stock allocators do.
    Shared,
    /// The cache, by C-bits: 8 groups with three of them.
    CacheOnly,
    /// Banks, by two B-bits: 4 groups; the cache is whole.
    BankOnly4,
    /// Banks, by two B-bits and the highest O-bit: 8 groups, and 2 of the cache.
    BankOnly8,
    /// Both, by two O-bits: 4 groups of each.
    AVp,
    /// Both, by two O-bits and the highest B-bit: 8 groups of banks, 4 of the cache.
    BVp,
    /// Both, by two O-bits and the lowest C-bit: 4 groups of banks, 8 of the cache.
    CVp,
    /// One small region of the cache, the rest as another, and sub-groups of banks in
    /// both (Figure 11).
    CurveVp,
    /// Nothing, and pages are interleaved over all colours (rule 4).
    Random,
}

impl Policy {
    /// All, in the order of their declaration.
    pub const ALL: [Self; 9] = [
        Self::Shared,
        Self::CacheOnly,
        Self::BankOnly4,
        Self::BankOnly8,
        Self::AVp,
        Self::BVp,
        Self::CVp,
        Self::CurveVp,
        Self::Random,
    ];

    /// The paper's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::CacheOnly => "cache-only",
            Self::BankOnly4 => "bank-only (4)",
            Self::BankOnly8 => "bank-only (8)",
            Self::AVp => "A-VP",
            Self::BVp => "B-VP",
            Self::CVp => "C-VP",
            Self::CurveVp => "Curve-VP",
            Self::Random => "random",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A machine's colours do not make a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemeError {
    /// The policy.
    pub policy: Policy,
    /// The class of which it needs a bit and the colour map has none.
    pub lacks: BitClass,
}

impl fmt::Display for SchemeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = match self.lacks {
            BitClass::Bank => "B-bits (banks only)",
            BitClass::Cache => "C-bits (cache only)",
            BitClass::Both => "O-bits (cache and banks)",
            BitClass::Unknown => "C- or O-bits (cache)",
        };
        write!(
            f,
            "{}: the color map has 0 {class}; allowed: 1 and more",
            self.policy
        )
    }
}

impl core::error::Error for SchemeError {}

/// The colour bits of a class, by the lowest frame bit that each depends on.
pub(super) struct Rising {
    bits: [u8; MAX_BITS],
    len: usize,
}

impl Rising {
    pub(super) fn of(map: &ColorMap, class: BitClass) -> Self {
        let mut rising = Self {
            bits: [0; MAX_BITS],
            len: 0,
        };
        let rank = |bit: u8| map.mask(bit).trailing_zeros();
        for bit in (0..map.bits() as u8).filter(|bit| map.class(*bit) == class) {
            let Some(slot) = rising.bits.get_mut(rising.len) else {
                break;
            };
            *slot = bit;
            for at in (1..=rising.len).rev() {
                let Some([a, b]) = rising.bits.get_mut(at.wrapping_sub(1)..=at) else {
                    break;
                };
                if rank(*a) <= rank(*b) {
                    break;
                }
                core::mem::swap(a, b);
            }
            rising.len = rising.len.saturating_add(1);
        }
        rising
    }

    /// The `n` lowest, or all.
    pub(super) fn lowest(&self, n: usize) -> &[u8] {
        self.bits.get(..n.min(self.len)).unwrap_or(&[])
    }

    /// The highest, if there is one.
    fn highest(&self) -> &[u8] {
        let last = self.len.saturating_sub(1);
        self.bits.get(last..self.len).unwrap_or(&[])
    }
}

/// A policy on a machine: which bits of a colour tell its cells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheme {
    policy: Policy,
    key: [u8; MAX_KEY],
    len: u8,
    /// Bits of the key that name the cache region in Curve-VP: the first so many.
    region: u8,
    /// Of these, O-bits: the first so many.
    overlapped: u8,
}

impl Scheme {
    /// The policy without a key.
    const fn empty(policy: Policy) -> Self {
        Self {
            policy,
            key: [0; MAX_KEY],
            len: 0,
            region: 0,
            overlapped: 0,
        }
    }

    /// A policy by the bits of a colour map. Where the map has fewer bits of a class than
    /// Table 1 takes, there are fewer cells; of each class that names the policy it needs
    /// one.
    ///
    /// # Errors
    /// If the map has no bit of a class that the policy needs.
    pub fn of(map: &ColorMap, policy: Policy) -> Result<Self, SchemeError> {
        let [b, c, o] = [BitClass::Bank, BitClass::Cache, BitClass::Both];
        let [banks, cache, both] = [b, c, o].map(|class| Rising::of(map, class));
        let needs = |class: BitClass, bits: &Rising| match bits.len {
            0 => Err(SchemeError {
                policy,
                lacks: class,
            }),
            _ => Ok(()),
        };
        let mut scheme = Self::empty(policy);
        match policy {
            Policy::Shared | Policy::Random => {}
            Policy::CacheOnly => {
                needs(c, &cache)?;
                scheme.push(cache.lowest(3));
            }
            // B-bits first, so that group and sub-group of Curve-VP are one number.
            Policy::BankOnly4 | Policy::BankOnly8 => {
                needs(b, &banks)?;
                scheme.push(banks.lowest(2));
                if policy == Policy::BankOnly8 {
                    scheme.push(both.highest());
                }
            }
            Policy::AVp => {
                needs(o, &both)?;
                scheme.push(both.lowest(2));
            }
            Policy::BVp => {
                needs(o, &both)?;
                needs(b, &banks)?;
                scheme.push(both.lowest(2));
                scheme.push(banks.highest());
            }
            Policy::CVp => {
                needs(o, &both)?;
                needs(c, &cache)?;
                scheme.push(both.lowest(2));
                scheme.push(cache.lowest(1));
            }
            Policy::CurveVp => scheme.curve(&banks, &cache, &both)?,
        }
        Ok(scheme)
    }

    /// Three bits of the cache, O-bits first, then up to two of the banks.
    fn curve(&mut self, banks: &Rising, cache: &Rising, both: &Rising) -> Result<(), SchemeError> {
        self.push(both.lowest(2));
        self.overlapped = self.len;
        self.push(cache.lowest(3usize.saturating_sub(usize::from(self.len))));
        self.region = self.len;
        self.push(banks.lowest(2));
        match self.region {
            0 => Err(SchemeError {
                policy: self.policy,
                lacks: BitClass::Unknown,
            }),
            _ => Ok(()),
        }
    }

    fn push(&mut self, bits: &[u8]) {
        for bit in bits {
            if let Some(slot) = self.key.get_mut(usize::from(self.len)) {
                *slot = *bit;
                self.len = self.len.saturating_add(1);
            }
        }
    }

    /// What it partitions.
    pub const fn policy(&self) -> Policy {
        self.policy
    }

    /// The colour bits that tell cells apart, from low to high.
    pub fn key(&self) -> &[u8] {
        self.key.get(..usize::from(self.len)).unwrap_or(&[])
    }

    /// Number of cells, 1 to 64.
    pub const fn cells(&self) -> u32 {
        1u32.wrapping_shl(self.len as u32)
    }

    /// Cache regions of Curve-VP, 2 to 8; of other policies 1.
    pub const fn regions(&self) -> u32 {
        1u32.wrapping_shl(self.region as u32)
    }

    /// Regions of Curve-VP with this bit pattern share their banks.
    pub(super) const fn bank_group_mask(&self) -> u32 {
        1u32.wrapping_shl(self.overlapped as u32).wrapping_sub(1)
    }

    /// All cells, as a bitmap.
    pub const fn all(&self) -> u64 {
        u64::MAX.wrapping_shr(64u32.saturating_sub(self.cells()))
    }

    /// The cell of a colour.
    pub fn cell(&self, color: Color) -> u32 {
        let bits = (0u32..).zip(self.key());
        bits.fold(0, |cell, (i, bit)| {
            let value = u32::from(color.0).wrapping_shr(u32::from(*bit)) & 1;
            cell | value.wrapping_shl(i)
        })
    }

    /// Is a colour in one of these cells?
    pub fn holds(&self, cells: u64, color: Color) -> bool {
        cells.wrapping_shr(self.cell(color)) & 1 == 1
    }

    /// Makes `out` the colours of these cells and says whether it was another set before.
    /// Visits each colour once.
    pub fn colors(&self, map: &ColorMap, cells: u64, out: &mut ColorSet) -> bool {
        let mut is_new = false;
        for word in 0..piebald_units::MAX_COLORS / 64 {
            let bits = self.word(map.colors(), cells, word);
            if out.word(word) != bits {
                is_new = true;
                out.set_word(word, bits);
            }
        }
        is_new
    }

    /// Colours of these cells among the 64 from `64 * word` on.
    pub(super) fn word(&self, colors: u32, cells: u64, word: usize) -> u64 {
        let first = (word as u32).saturating_mul(64);
        let end = colors.min(first.saturating_add(64));
        (first..end).fold(0, |bits, c| {
            let is_in = u64::from(self.holds(cells, Color(c as u16)));
            bits | is_in.wrapping_shl(c)
        })
    }
}
