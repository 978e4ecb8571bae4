//! Lists of processors as Linux writes them.

use std::{collections::BTreeSet, fmt, str::FromStr};

/// Numbers of processors, as in `0-3,8`: at most 65535. Unlike the hardware threads of a
/// machine these may be any, of which a machine takes 64.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuList(BTreeSet<u32>);

/// Why a text is no list of processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is not a list of processors such as 0-3,8, with numbers up to 65535")]
pub struct NoCpuList;

impl CpuList {
    /// The numbers, rising.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// The lowest number.
    pub fn first(&self) -> Option<u32> {
        self.0.first().copied()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a number is among them.
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.contains(&cpu)
    }

    /// Those that are in both lists.
    pub(super) fn within(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    /// Those that are not in the other list.
    pub(super) fn without(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).copied().collect())
    }
}

impl FromIterator<u32> for CpuList {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl FromStr for CpuList {
    type Err = NoCpuList;

    fn from_str(text: &str) -> Result<Self, NoCpuList> {
        let number = |text: &str| text.trim().parse::<u16>().map_err(|_| NoCpuList);
        let mut cpus = BTreeSet::new();
        for part in text.trim().split(',') {
            let (low, high) = part.split_once('-').unwrap_or((part, part));
            let (low, high) = (number(low)?, number(high)?);
            if high < low {
                return Err(NoCpuList);
            }
            cpus.extend(u32::from(low)..=u32::from(high));
        }
        Ok(Self(cpus))
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.iter().peekable();
        let mut comma = "";
        while let Some(low) = rest.next() {
            let mut high = low;
            while let Some(next) = rest.next_if(|next| *next == high + 1) {
                high = next;
            }
            match high == low {
                true => write!(f, "{comma}{low}")?,
                false => write!(f, "{comma}{low}-{high}")?,
            }
            comma = ",";
        }
        Ok(())
    }
}
