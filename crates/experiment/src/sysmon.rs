//! The table `[sysmon]`.

use piebald_policy::hvr::{LowLocality, MonitorConfig, Thresholds, Unseen, Watched};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Micros, Refs, Whole, Word, words::words};

/// A number of 32 bits that is not 0.
type Number = Whole<1, 0xffff_ffff>;

/// How long a walk of a page table may take: up to a second.
pub type Walk = Micros<1_000, 1_000_000_000>;

words! {
    /// What becomes of translations when access bits are cleared.
    pub enum Translations {
        /// They stay, as `pte_mkold()` leaves them: a page whose translation the processor has is not seen, and a
        /// window without a page says that the program has no hot page.
        Kept = "kept",
        /// They are dropped: each page that is used is seen, and a window without a page says nothing.
        Dropped = "dropped",
    }
}

words! {
    /// How long a walk of a program's page table takes.
    pub enum Walks {
        /// What its `walk_us` says; without it, by the pages that it has.
        Given = "given",
        /// By the pages that it has, whatever `walk_us` says.
        Pages = "pages",
    }
}

words! {
    /// How fast programs run while they are watched.
    pub enum WatchedSpeed {
        /// One instruction per cycle.
        One = "one",
        /// As many instructions per cycle as they have alone under the first policy.
        Alone = "alone",
    }
}

/// What SysMon sees of each program of one thread alone: it is watched by the access bits of its pages, without caches,
/// from its beginning or behind its set-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SysMon {
    /// References of each program that are watched. A program that has not had three windows of each kind by then goes on, up to
    /// a hundred times from its beginning.
    pub refs: Refs<1>,
    /// What times between windows of watching are divided by: seconds are too long for a recording.
    pub time_scale: Number,
    /// What becomes of translations when access bits are cleared.
    pub translations: Translations,
    /// How long a walk of a program's page table takes: the least length of a window.
    pub walks: Walks,
    /// How fast programs run meanwhile.
    pub speed: WatchedSpeed,
    /// Which page's re-use time is taken in a window.
    pub watched: Word<Watched>,
    /// Re-use time in passes up to which a program with many pages thrashes.
    pub reuse_passes: Number,
    /// Hot pages up to which a program fits its core's caches.
    pub ccf_pages: Number,
    /// Hot pages from which on a program is LLCH.
    pub llch_pages: Number,
    /// Weighted page density up to which locality is low, in hundredths of a percent.
    pub hot_freq_bp: Whole<1, 10_000>,
    /// What a program of low locality is.
    pub low_locality: Word<LowLocality>,
}

/// References that are watched if the file does not say.
const REFS: u64 = 20_000_000;
/// Three seconds become three milliseconds.
const TIME_SCALE: u64 = 1000;

impl Default for SysMon {
    fn default() -> Self {
        let paper = Thresholds::PAPER;
        let number = |n: u32| Number::new(n.into());
        Self {
            refs: Refs::new(REFS),
            time_scale: Number::new(TIME_SCALE),
            translations: Translations::default(),
            walks: Walks::default(),
            speed: WatchedSpeed::default(),
            watched: Word(MonitorConfig::PAPER.watched),
            reuse_passes: number(paper.reuse_passes),
            ccf_pages: number(paper.ccf_pages),
            llch_pages: number(paper.llch_pages),
            hot_freq_bp: Whole::new(u64::from(paper.hot_freq_bp)),
            low_locality: Word(paper.low_locality),
        }
    }
}

impl SysMon {
    /// SysMon's parameters. Programs run all the time.
    pub fn config(&self) -> MonitorConfig {
        MonitorConfig {
            watched: self.watched.0,
            unseen: match self.translations {
                Translations::Kept => Unseen::Ran,
                Translations::Dropped => Unseen::Slept,
            },
            thresholds: Thresholds {
                reuse_passes: self.reuse_passes.get_u32(),
                ccf_pages: self.ccf_pages.get_u32(),
                hot_freq_bp: self.hot_freq_bp.get_u32(),
                llch_pages: self.llch_pages.get_u32(),
                low_locality: self.low_locality.0,
            },
            ..MonitorConfig::PAPER
        }
    }
}
