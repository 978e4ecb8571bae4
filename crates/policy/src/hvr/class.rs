//! The four kinds of program, and the test that tells them apart (sections 4.1 to 4.3).

use core::fmt;

/// How a program uses the last-level cache, from the most susceptible to the most
/// assaulting: the order is the priority of section 5.1, LLCT > LLCH > LLCM > CCF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Class {
    /// Core cache fitting: lives in its core's private caches.
    Ccf,
    /// LLC middle: loses nothing down to half of the cache, much below 3/8.
    Llcm,
    /// LLC high: loses with every eighth that it does not have.
    Llch,
    /// LLC thrashing: uses nothing twice before it is evicted, whatever it has.
    Llct,
}

impl Class {
    /// All, in rising order.
    pub const ALL: [Self; 4] = [Self::Ccf, Self::Llcm, Self::Llch, Self::Llct];

    /// The paper's abbreviation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ccf => "CCF",
            Self::Llcm => "LLCM",
            Self::Llch => "LLCH",
            Self::Llct => "LLCT",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A mean that is compared exactly: the sum is never divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Mean {
    /// Sum of the values.
    pub sum: u64,
    /// Number of the values.
    pub nr: u32,
}

impl Mean {
    /// Of no value.
    pub const NONE: Self = Self { sum: 0, nr: 0 };

    /// One value.
    pub const fn of(value: u64) -> Self {
        Self { sum: value, nr: 1 }
    }

    /// Is there a mean, and is it above `limit`?
    pub const fn is_above(self, limit: u64) -> bool {
        self.nr > 0 && self.sum > limit.saturating_mul(self.nr as u64)
    }

    /// Is there a mean, and is it at most `limit`?
    pub const fn is_at_most(self, limit: u64) -> bool {
        self.nr > 0 && self.sum <= limit.saturating_mul(self.nr as u64)
    }

    /// Is there a mean, and is it at least `limit`?
    pub const fn is_at_least(self, limit: u64) -> bool {
        self.nr > 0 && self.sum >= limit.saturating_mul(self.nr as u64)
    }

    /// Rounded down; `None` without values.
    pub const fn rounded(self) -> Option<u64> {
        self.sum.checked_div(self.nr as u64)
    }
}

/// The weighted page distribution (WPD): the sum of the weights of the pages that were
/// used, by how many of those there are. High for a program that comes back to its pages
/// often (section 4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Wpd {
    /// Sum of the weights, in tenths.
    pub tenths: u64,
    /// Pages that were used: `all_used_pages`.
    pub used: u32,
}

impl Wpd {
    /// Is it at most so many hundredths of a percent? A program without pages has none,
    /// and the answer is yes.
    pub const fn is_at_most_bp(self, limit_bp: u32) -> bool {
        self.tenths.saturating_mul(1000) <= (self.used as u64).saturating_mul(limit_bp as u64)
    }

    /// In hundredths of a percent, rounded down; `None` without pages. At most 20000 with
    /// the published weights.
    pub const fn bp(self) -> Option<u64> {
        self.tenths
            .saturating_mul(1000)
            .checked_div(self.used as u64)
    }
}

/// What is known of a program when it is classified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Facts {
    /// Hot pages of the last windows of JOB1.
    pub hot_pages: Mean,
    /// Re-use time of the last windows of JOB2, each in hundredths of a pass.
    pub reuse_centi: Mean,
    /// The WPD of the last window.
    pub wpd: Wpd,
}

/// What becomes of a program with many hot pages that it seldom comes back to: where the
/// "Yes" of the WPD test in Figure 7 leads cannot be read from the text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LowLocality {
    /// [`Class::Llct`]: such a program has no use for the cache, so that a small region
    /// costs it nothing, while its many pages push out others.
    #[default]
    Llct,
    /// [`Class::Ccf`]: it shares the large region, and does not lead to a partition.
    Ccf,
}

/// The thresholds of Figure 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// `rt_threshold`: re-use time in passes up to which a program with many pages
    /// thrashes. 20 (section 4.3). It depends on how much a program has and how fast it
    /// runs through it in a pass.
    pub reuse_passes: u32,
    /// `ccf_threshold`: hot pages up to which a program fits its core's caches. 100.
    pub ccf_pages: u32,
    /// `hot_freq_threshold`: WPD up to which locality is low, in hundredths of a percent.
    /// Published: 10 %. 1010: the least weight is 0.1, so that no WPD is below 10.00 %, and
    /// one page of code or stack that is used often lifts that of a stream above it.
    pub hot_freq_bp: u32,
    /// `llch_threshold`: hot pages from which on a program is LLCH. 1000.
    pub llch_pages: u32,
    /// Where low locality leads. Open in the paper; [`LowLocality::Llct`].
    pub low_locality: LowLocality,
}

impl Thresholds {
    /// The published values.
    pub const PAPER: Self = Self {
        reuse_passes: 20,
        ccf_pages: 100,
        hot_freq_bp: 1010,
        llch_pages: 1000,
        low_locality: LowLocality::Llct,
    };

    /// Figure 7. Without a re-use time the first test is not passed. Of no hot pages at
    /// all the answer is CCF.
    pub const fn classify(&self, facts: &Facts) -> Class {
        let reuse_limit = (self.reuse_passes as u64).saturating_mul(100);
        let hot = facts.hot_pages;
        let is_many = hot.is_above(self.ccf_pages as u64);
        if is_many && facts.reuse_centi.is_at_most(reuse_limit) {
            return Class::Llct;
        }
        if !is_many {
            return Class::Ccf;
        }
        if facts.wpd.is_at_most_bp(self.hot_freq_bp) {
            return match self.low_locality {
                LowLocality::Llct => Class::Llct,
                LowLocality::Ccf => Class::Ccf,
            };
        }
        match hot.is_at_least(self.llch_pages as u64) {
            true => Class::Llch,
            false => Class::Llcm,
        }
    }
}

impl Default for Thresholds {
    fn default() -> Self {
        Self::PAPER
    }
}
