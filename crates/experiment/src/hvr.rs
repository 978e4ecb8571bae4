//! The table `hvr` of a policy.

use piebald_policy::{
    contract::Mode,
    hvr::{
        BankGroups, Class, Config, FewMiddle, Framework, Interleave, LowLocality, Mixed,
        OtherRegions, Policy as Scheme, Spare, Watched,
    },
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{KeyPath, Problem, Whole, Word, Words};

/// A number of 32 bits that is not 0.
type Number = Whole<1, 0xffff_ffff>;

/// How HVR manages programs; the defaults are the paper's choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Hvr {
    /// Which of the paper's allocators decides, or a single policy whatever the mix is.
    pub framework: Word<Framework>,
    /// Are programs watched whose class is not given?
    pub watch: bool,
    /// A program that ends and is started again is no new one.
    pub remember: bool,
    /// What times between windows of watching are divided by: seconds are too long for a
    /// simulation.
    pub time_scale: Number,
    /// Re-use time in passes up to which a program with many pages thrashes.
    pub reuse_passes: Number,
    /// Hot pages up to which a program fits its core's caches.
    pub ccf_pages: Number,
    /// Hot pages from which on a program is LLCH.
    pub llch_pages: Number,
    /// Weighted page density up to which locality is low, in hundredths of a percent.
    pub hot_freq_bp: Whole<1, 10_000>,
    /// Which page's re-use time is taken in a window of watching.
    pub watched: Word<Watched>,
    /// What a program of low locality is.
    pub low_locality: Word<LowLocality>,
    /// Most programs that count as a workload of few.
    pub few: Number,
    /// Programs from which on CCF ones that are more than half are kept apart.
    pub segregate_from: Number,
    /// What bank-only partitioning is for more than `few` programs.
    pub bank_groups: Word<BankGroups>,
    /// What few programs have of which some are LLCM and none LLCT or LLCH.
    pub few_middle: Word<FewMiddle>,
    /// What one program of several threads means for the others.
    pub mixed: Word<Mixed>,
    /// The rest of the bank group that the small region lies in.
    pub other_regions: Word<OtherRegions>,
    /// Quotas that there are no programs for.
    pub spare: Word<Spare>,
    /// How the pages of a program with several threads go round.
    pub interleave: Word<Interleave>,
    /// Do colors bind?
    pub mode: Word<Mode>,
}

impl Default for Hvr {
    fn default() -> Self {
        let paper = Config::PAPER;
        let thresholds = paper.monitor.thresholds;
        let number = |n: u32| Number::new(n.into());
        Self {
            framework: Word(paper.framework),
            watch: true,
            remember: false,
            time_scale: number(1),
            reuse_passes: number(thresholds.reuse_passes),
            ccf_pages: number(thresholds.ccf_pages),
            llch_pages: number(thresholds.llch_pages),
            hot_freq_bp: Whole::new(thresholds.hot_freq_bp as u64),
            watched: Word(paper.monitor.watched),
            low_locality: Word(thresholds.low_locality),
            few: number(paper.few),
            segregate_from: number(paper.segregate_from),
            bank_groups: Word(paper.bank_groups),
            few_middle: Word(paper.few_middle),
            mixed: Word(paper.mixed),
            other_regions: Word(paper.other_regions),
            spare: Word(paper.spare),
            interleave: Word(paper.interleave),
            mode: Word(paper.mode),
        }
    }
}

impl Hvr {
    /// The same as the policy takes it.
    pub fn config(&self) -> Config {
        let mut config = Config::PAPER;
        let thresholds = &mut config.monitor.thresholds;
        thresholds.reuse_passes = self.reuse_passes.get_u32();
        thresholds.ccf_pages = self.ccf_pages.get_u32();
        thresholds.llch_pages = self.llch_pages.get_u32();
        thresholds.hot_freq_bp = self.hot_freq_bp.get_u32();
        thresholds.low_locality = self.low_locality.0;
        config.monitor.watched = self.watched.0;
        config.framework = self.framework.0;
        config.few = self.few.get_u32();
        config.segregate_from = self.segregate_from.get_u32();
        config.bank_groups = self.bank_groups.0;
        config.few_middle = self.few_middle.0;
        config.mixed = self.mixed.0;
        config.other_regions = self.other_regions.0;
        config.spare = self.spare.0;
        config.interleave = self.interleave.0;
        config.mode = self.mode.0;
        config
    }

    pub(crate) fn check(&self, at: &KeyPath, problems: &mut Vec<Problem>) {
        if self.remember && !self.watch {
            let allowed = "false where watch = false: nothing is found then";
            problems.push(Problem::refuse(at.key("remember"), true, allowed));
        }
    }
}

impl Words for Framework {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("hvr", Self::Hvr, "The final framework (section 5.4)."),
        (
            "coalescing",
            Self::Coalescing,
            "The tree with rules 5 and 6 (section 5.2).",
        ),
        (
            "static",
            Self::Static,
            "The tree without coalescing (SVP, section 7.3).",
        ),
        (
            "curve",
            Self::Curve,
            "Curve-VP whatever the mix is (section 5.3).",
        ),
        (
            "shared",
            Self::Fixed(Scheme::Shared),
            "All programs share everything.",
        ),
        (
            "cache-only",
            Self::Fixed(Scheme::CacheOnly),
            "The cache is partitioned.",
        ),
        (
            "bank-only-4",
            Self::Fixed(Scheme::BankOnly4),
            "Banks are partitioned in 4.",
        ),
        (
            "bank-only-8",
            Self::Fixed(Scheme::BankOnly8),
            "Banks are partitioned in 8.",
        ),
        ("a-vp", Self::Fixed(Scheme::AVp), "A-VP."),
        ("b-vp", Self::Fixed(Scheme::BVp), "B-VP."),
        ("c-vp", Self::Fixed(Scheme::CVp), "C-VP."),
        (
            "curve-vp",
            Self::Fixed(Scheme::CurveVp),
            "Curve-VP without its framework.",
        ),
        (
            "random",
            Self::Fixed(Scheme::Random),
            "Random interleaving.",
        ),
    ];
}

impl Words for LowLocality {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("llct", Self::Llct, "It thrashes."),
        ("ccf", Self::Ccf, "It fits its core's caches."),
    ];
}

impl Words for BankGroups {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        (
            "8",
            Self::ByPrograms,
            "Eight, as Table 1 says; they halve the cache.",
        ),
        (
            "4",
            Self::Four,
            "Four: all programs have the whole cache (section 5.2).",
        ),
    ];
}

impl Words for FewMiddle {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        (
            "bank-only",
            Self::BankOnly,
            "Banks alone are partitioned (section 5.2).",
        ),
        (
            "a-vp",
            Self::AVp,
            "A-VP (the third finding of section 5.1).",
        ),
    ];
}

impl Words for Watched {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("mapped", Self::Mapped, "Any page that the program has."),
        (
            "used",
            Self::Used,
            "One of those used in the window's first pass.",
        ),
    ];
}

impl Words for Mixed {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("everyone", Self::Everyone, "Rule 4 for all."),
        ("alone", Self::Alone, "The tree decides by the others."),
    ];
}

impl Words for OtherRegions {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("used", Self::Used, "It is part of the large region."),
        ("left", Self::Left, "Nobody's."),
    ];
}

impl Words for Spare {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        (
            "lent",
            Self::Lent,
            "Given to those that have fewest, until another program comes.",
        ),
        ("kept", Self::Kept, "Kept free."),
    ];
}

impl Words for Interleave {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("random", Self::Random, "A random color for each page."),
        ("round-robin", Self::RoundRobin, "One color after another."),
        (
            "by-core",
            Self::ByCore,
            "Each core's pages in a cell of the policy that is its own.",
        ),
    ];
}

impl Words for Mode {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        (
            "hint",
            Self::Hint,
            "Pages of other colors are taken when its own are used up.",
        ),
        (
            "hard",
            Self::Hard,
            "A program gets no page of another color.",
        ),
    ];
}

impl Words for Class {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("ccf", Self::Ccf, "It fits its core's caches."),
        ("llcm", Self::Llcm, "Its need of the last level is medium."),
        ("llch", Self::Llch, "Its need of the last level is high."),
        ("llct", Self::Llct, "It thrashes the last level."),
    ];
}
