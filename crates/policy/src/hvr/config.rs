//! What can be chosen, with the paper's choices as defaults; *ours* marks what the paper
//! leaves open.

use core::fmt;

use piebald_units::Picos;

use super::{
    class::Thresholds,
    profile::MAX_AVERAGED,
    sampler::MAX_PASSES,
    scheme::{Policy, SchemeError},
};
use crate::contract::Mode;

/// Which page's re-use time is taken in a window (section 4.3: "randomly selected at the
/// beginning of each sampling", "not biased").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Watched {
    /// One of those used in the first pass that used any: the first at or after a random
    /// place. The hot pages of a program that has many cold ones, which makes its re-use
    /// times short.
    Used,
    /// Any page that the program has, as the text says. Most pages of a large program that
    /// is no stream are never used in a window: see [`NeverReused`].
    #[default]
    Mapped,
}

/// The re-use time of a watched page that was used once at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NeverReused {
    /// As many passes as the window has: it is at least about that \[ours\].
    #[default]
    WholeWindow,
    /// The window tells nothing about re-use. Programs are then classified without it
    /// until there is some.
    Nothing,
}

/// What a window says in which no page was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Unseen {
    /// Nothing: the program slept. So where every use of a page is seen.
    #[default]
    Slept,
    /// That it has no hot page. So where pages are not seen whose translations the
    /// processor has, and the host knows that the program ran.
    Ran,
}

/// The parameters of SysMon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonitorConfig {
    /// Passes of a window of JOB2, 1 to 250. Published: 200 (section 4.3).
    pub passes: u8,
    /// Where the ranges L, M, H and VH begin, in passes; rising, from 2 up to `passes`.
    /// Published: 10, 64, 100, 150.
    pub bounds: [u8; 4],
    /// Weights of VL, L, M, H and VH in tenths. Published: 1, 5, 10, 15, 20.
    pub weights: [u8; 5],
    /// See [`Watched`].
    pub watched: Watched,
    /// See [`NeverReused`].
    pub never_reused: NeverReused,
    /// See [`Unseen`]; the paper has no program without a hot page. [`Unseen::Slept`]
    /// \[ours\].
    pub unseen: Unseen,
    /// Windows that are averaged, 1 to 8. Published: 3 (Figure 7).
    pub averaged: u8,
    /// Windows in a row that must agree on another class than the program has, 1 to 100.
    /// 2 \[ours; the paper has the average only\].
    pub confirm: u8,
    /// The tests of Figure 7.
    pub thresholds: Thresholds,
    /// Time between windows of JOB1, and of JOB2 at first. Published: 3 s.
    pub interval: Picos,
    /// By how much the first step of JOB2's interval grows once a program is classified;
    /// the second grows by twice as much, and so on. "An increasing step" (section 8);
    /// 3 s \[ours\].
    pub step: Picos,
    /// JOB2's longest interval, at least `interval`. 60 s \[ours\].
    pub max_interval: Picos,
    /// Length of a window of JOB1, without the walk. Published: "10 us (at most)".
    pub hot_window: Picos,
    /// What the walk adds for each page that it looks at: the program runs on meanwhile,
    /// else no program could use 15,813 pages in 10 us. 10 ns: 4.46 ms for mcf (section 8),
    /// which has 1.8 GB or more.
    pub walk: Picos,
}

/// A second.
const SECOND: u64 = 1_000_000_000_000;

impl MonitorConfig {
    /// The published values.
    pub const PAPER: Self = Self {
        passes: 200,
        bounds: [10, 64, 100, 150],
        weights: [1, 5, 10, 15, 20],
        watched: Watched::Mapped,
        never_reused: NeverReused::WholeWindow,
        unseen: Unseen::Slept,
        averaged: 3,
        confirm: 2,
        thresholds: Thresholds::PAPER,
        interval: Picos(3 * SECOND),
        step: Picos(3 * SECOND),
        max_interval: Picos(60 * SECOND),
        hot_window: Picos(10_000_000),
        walk: Picos(10_000),
    };

    /// How long a window of JOB1 lasts for a program of so many pages: what a model of
    /// this machine should let it run between clearing the bits and counting them.
    pub const fn hot_window_of(&self, pages: u32) -> Picos {
        let walk = self.walk.0.saturating_mul(pages as u64);
        Picos(self.hot_window.0.saturating_add(walk))
    }

    /// # Errors
    /// The first parameter that is out of its range.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        within("passes", self.passes.into(), 1, MAX_PASSES.into())?;
        let mut above = 1u8;
        for bound in self.bounds {
            if bound <= above || bound > self.passes {
                return Err(ConfigError::Bounds {
                    bounds: self.bounds,
                    passes: self.passes,
                });
            }
            above = bound;
        }
        within("averaged", self.averaged.into(), 1, MAX_AVERAGED as u64)?;
        within("confirm", self.confirm.into(), 1, 100)?;
        within("interval", self.interval.0, 1, u64::MAX)?;
        let longest = self.max_interval.0;
        within("max_interval", longest, self.interval.0, u64::MAX)
    }
}

impl Default for MonitorConfig {
    fn default() -> Self {
        Self::PAPER
    }
}

/// Which of the paper's allocators decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Framework {
    /// The policy decision tree without coalescing: a quota for each program. The static
    /// vertical partitioning (SVP) that section 7.3 compares with.
    Static,
    /// The tree with rules 5 and 6, from bank-only partitioning on: "baseline HVR"
    /// (section 5.2).
    Coalescing,
    /// Curve-VP whatever the mix is (section 5.3).
    Curve,
    /// As `Coalescing`, with Curve-VP in place of C-VP and A-VP: "the final HVR framework"
    /// (section 5.4).
    #[default]
    Hvr,
    /// This policy whatever the mix is, a quota for each program, and no rule: what single
    /// policies are compared by (Figures 3, 4, 14 and 19).
    Fixed(Policy),
}

/// What bank-only partitioning is for more than [`Config::few`] programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BankGroups {
    /// Bank-Only (8), as Table 1 says for eight cores. Its third bit also halves the
    /// cache: the baseline of Figure 3.
    ByPrograms,
    /// Bank-Only (4) for any number. HVR "starts with bank-only partitioning", and "all
    /// running application(s) share the entire cache capacity initially" (section 5.2).
    #[default]
    Four,
}

/// What few programs have of which some are LLCM and none LLCT or LLCH. Rule 3 is for
/// eight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FewMiddle {
    /// Bank-only: with LLCH or LLCM and without LLCT "cache partitioning always hurts
    /// performance" (section 5.2), and HVR starts with it.
    #[default]
    BankOnly,
    /// A-VP: "a modest cache partitioning scheme such as A-VP and B-VP" (section 5.1).
    AVp,
}

/// What one program of several threads means for the single-threaded ones beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mixed {
    /// Rule 4 for all: the workload is multi-threaded. It is the tree's first question.
    #[default]
    Everyone,
    /// The tree decides by the others; it has all that programs like it share, page by
    /// page at random.
    Alone,
}

/// The rest of the bank group that the small region lies in (Figure 11: region 100 beside
/// 000).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OtherRegions {
    /// Part of the large region: "001~111", 7/8 of the cache. Thrashing programs share
    /// banks with others there.
    #[default]
    Used,
    /// Nobody's: "in Bank Group B, C and D" each program has its banks. 6/8 of the cache.
    Left,
}

/// Quotas that there are no programs for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Spare {
    /// Given to those that have fewest, until another program comes: the "balloon".
    #[default]
    Lent,
    /// Kept free.
    Kept,
}

/// How the pages of a program with several threads go round (section 6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Interleave {
    /// A random colour for each page.
    #[default]
    Random,
    /// One colour after another: the effect of M3.
    RoundRobin,
    /// Each core's pages in a cell of the policy that is its own, as if its thread were one of
    /// so many programs: the B- and C-VP that Figure 19 compares with \[ours: it does not say
    /// how threads are partitioned\].
    ByCore,
}

/// The parameters of HVR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// SysMon's.
    pub monitor: MonitorConfig,
    /// See [`Framework`].
    pub framework: Framework,
    /// Most programs that count as a 4-programmed workload, where A-VP and Bank-Only (4)
    /// have enough quotas, 1 and more. Published: 4 (Table 1).
    pub few: u32,
    /// Programs from which on CCF ones that are more than half are kept apart, 2 and
    /// more. Published: 8 (section 8: "e.g., 8-programmed workload").
    pub segregate_from: u32,
    /// See [`BankGroups`].
    pub bank_groups: BankGroups,
    /// See [`FewMiddle`].
    pub few_middle: FewMiddle,
    /// See [`Mixed`].
    pub mixed: Mixed,
    /// The cache region of thrashing and new programs, as a number of C-, then O-bits.
    /// Published: 000 (section 5.3).
    pub small_region: u8,
    /// See [`OtherRegions`].
    pub other_regions: OtherRegions,
    /// See [`Spare`].
    pub spare: Spare,
    /// See [`Interleave`].
    pub interleave: Interleave,
    /// How binding a program's colours are. The paper does not say what happens when they
    /// are used up; [`Mode::Hint`]: the allocator takes another, counted \[ours\].
    pub mode: Mode,
    /// Time to move one page. Published: about 3 us (section 8).
    pub move_cost: Picos,
}

impl Config {
    /// The published values.
    pub const PAPER: Self = Self {
        monitor: MonitorConfig::PAPER,
        framework: Framework::Hvr,
        few: 4,
        segregate_from: 8,
        bank_groups: BankGroups::Four,
        few_middle: FewMiddle::BankOnly,
        mixed: Mixed::Everyone,
        small_region: 0,
        other_regions: OtherRegions::Used,
        spare: Spare::Lent,
        interleave: Interleave::Random,
        mode: Mode::Hint,
        move_cost: Picos(3_000_000),
    };

    /// # Errors
    /// The first parameter that is out of its range.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.monitor.check()?;
        within("few", self.few.into(), 1, u32::MAX.into())?;
        let from = self.segregate_from.into();
        within("segregate_from", from, 2, u32::MAX.into())
    }

    /// May a policy be decided for?
    pub(super) fn may_decide(&self, policy: Policy) -> bool {
        match (self.framework, policy) {
            (Framework::Fixed(fixed), _) => fixed == policy,
            (_, Policy::Random) => true,
            (Framework::Static, _) => {
                matches!(policy, Policy::AVp | Policy::BVp | Policy::CVp)
            }
            (Framework::Curve, _) => policy == Policy::CurveVp,
            (_, Policy::BankOnly4 | Policy::BankOnly8 | Policy::AVp | Policy::BVp) => true,
            (Framework::Coalescing, _) => policy == Policy::CVp,
            (Framework::Hvr, _) => policy == Policy::CurveVp,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::PAPER
    }
}

/// Checks a number against a range with both ends.
pub(super) const fn within(
    field: &'static str,
    value: u64,
    min: u64,
    max: u64,
) -> Result<(), ConfigError> {
    match min <= value && value <= max {
        true => Ok(()),
        false => Err(ConfigError::Range {
            field,
            value,
            min,
            max,
        }),
    }
}

/// Why a sampler or a manager could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// A parameter is out of its range. Times are in picoseconds.
    Range {
        /// Its name.
        field: &'static str,
        /// Its value.
        value: u64,
        /// The least that is allowed.
        min: u64,
        /// The most that is allowed.
        max: u64,
    },
    /// The ranges of the page distribution do not rise, or go beyond the passes.
    Bounds {
        /// Their bounds.
        bounds: [u8; 4],
        /// Passes of a window.
        passes: u8,
    },
    /// The machine's colours do not make a policy that the framework may decide for.
    Scheme(SchemeError),
    /// The lent slots are none, or more than [`MAX_PROGRAMS`](super::MAX_PROGRAMS).
    Slots(usize),
}

impl From<SchemeError> for ConfigError {
    fn from(e: SchemeError) -> Self {
        Self::Scheme(e)
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range {
                field,
                value,
                min,
                max: u64::MAX,
            } => write!(f, "{field} = {value}; allowed: {min} and more"),
            Self::Range {
                field,
                value,
                min,
                max,
            } => write!(f, "{field} = {value}; allowed: {min} to {max}"),
            Self::Bounds {
                bounds: [l, m, h, vh],
                passes,
            } => write!(
                f,
                "bounds = {l}, {m}, {h}, {vh}; allowed: rising numbers from 2 to passes = {passes}"
            ),
            Self::Scheme(e) => e.fmt(f),
            Self::Slots(n) => write!(
                f,
                "programs lent: {n}; allowed: 1 to {}",
                super::MAX_PROGRAMS
            ),
        }
    }
}

impl core::error::Error for ConfigError {}
