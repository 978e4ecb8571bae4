//! Who has which part under a policy: zones of programs that are alike, and the lots that
//! a zone is dealt out in.

use super::{
    class::Class,
    config::{Config, OtherRegions},
    decide::{Decision, Mix, Rule},
    scheme::{Policy, Scheme},
};

/// Most lots of a zone.
pub(super) const MAX_LOTS: usize = 64;

/// Programs that are given parts of the same cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Zone {
    /// LLCT programs, and new ones in Curve-VP (rule 6).
    Small,
    /// CCF programs, where they are kept together (rule 6).
    Fitting,
    /// All others (rule 5).
    #[default]
    Large,
}

impl Zone {
    /// All.
    pub const ALL: [Self; 3] = [Self::Small, Self::Fitting, Self::Large];
}

/// Parts of equal shape: lot *i* has the cells of `base`, moved by *i* times `stride`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lots {
    base: u64,
    stride: u32,
    nr: u32,
}

impl Lots {
    /// One part with these cells.
    const fn one(base: u64) -> Self {
        Self {
            base,
            stride: 0,
            nr: 1,
        }
    }

    /// A part for each of the first `nr` cells.
    const fn each(nr: u32) -> Self {
        Self {
            base: 1,
            stride: 1,
            nr,
        }
    }

    pub(super) const fn nr(&self) -> u32 {
        self.nr
    }

    /// The cells of the lots in a bitmap.
    pub(super) fn cells(&self, lots: u64) -> u64 {
        let all = (0..self.nr).filter(|i| lots.wrapping_shr(*i) & 1 == 1);
        all.fold(0, |cells, i| {
            cells | self.base.wrapping_shl(i.saturating_mul(self.stride))
        })
    }
}

/// The zones of a mix under a decision. Zones that a layout lacks are part of the large
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) scheme: Scheme,
    small: Option<Lots>,
    fitting: Option<Lots>,
    large: Lots,
    /// New programs begin in the small zone.
    new_are_small: bool,
}

impl Layout {
    /// Everything is one lot of one zone.
    pub(super) const fn whole(scheme: Scheme) -> Self {
        Self {
            scheme,
            small: None,
            fitting: None,
            large: Lots::one(scheme.all()),
            new_are_small: false,
        }
    }

    pub(super) fn of(scheme: Scheme, decision: &Decision, mix: &Mix, config: &Config) -> Self {
        let whole = Self::whole(scheme);
        let each = Self {
            large: Lots::each(scheme.cells()),
            ..whole
        };
        match (decision.policy, decision.rule) {
            (Policy::Shared | Policy::Random, _) => whole,
            (Policy::CurveVp, _) => Self::curve(whole, decision, config),
            (_, Rule::One | Rule::Fitting) => Self::coalesced(whole, decision, config),
            (Policy::AVp | Policy::BVp, Rule::Three | Rule::Modest) => Self::modest(each, mix),
            _ => each,
        }
    }

    /// C-VP and A-VP with rules 5 and 6: a cell for LLCTs, one for CCFs if they are apart,
    /// the rest for all others together.
    fn coalesced(whole: Self, decision: &Decision, config: &Config) -> Self {
        let cells = whole.scheme.cells();
        let small = bit(u32::from(config.small_region), cells);
        let top = top(whole.scheme.all() & !small);
        let has_small = decision.rule == Rule::One;
        let taken = match (has_small, decision.segregate) {
            (true, true) => small | top,
            (true, false) => small,
            (false, _) => top,
        };
        // CCFs are apart in C-VP only, which has four cells or more: some are left.
        let rest = whole.scheme.all() & !taken;
        Self {
            small: has_small.then_some(Lots::one(small)),
            fitting: decision.segregate.then_some(Lots::one(top)),
            large: Lots::one(rest),
            ..whole
        }
    }

    /// Rule 3: a quota for each LLCM, one for all CCFs.
    fn modest(each: Self, mix: &Mix) -> Self {
        let cells = each.scheme.cells();
        if mix.of(Class::Ccf) == 0 {
            return each;
        }
        Self {
            fitting: Some(Lots::one(top(each.scheme.all()))),
            large: Lots::each(cells.saturating_sub(1)),
            ..each
        }
    }

    /// Figure 11: lots are sub-groups of banks, in each region or regions.
    fn curve(whole: Self, decision: &Decision, config: &Config) -> Self {
        let scheme = whole.scheme;
        let regions = scheme.regions();
        let all = u64::MAX.wrapping_shr(64u32.saturating_sub(regions));
        let small = bit(u32::from(config.small_region), regions);
        let partners = match config.other_regions {
            OtherRegions::Used => 0,
            OtherRegions::Left => bank_group(&scheme, u32::from(config.small_region)),
        };
        // A part that would leave nothing for the others is not taken.
        let rest = all & !small;
        let rest = non_zero(rest & !partners).unwrap_or(rest);
        let fitting = match decision.segregate {
            true => top(rest),
            false => 0,
        };
        let large = non_zero(rest & !fitting);
        let sub_groups = |base| Lots {
            base,
            stride: regions,
            nr: scheme.cells().checked_div(regions).unwrap_or(1),
        };
        let fitting = large.and(non_zero(fitting)).map(sub_groups);
        Self {
            small: Some(sub_groups(small)),
            fitting,
            large: sub_groups(large.unwrap_or(rest)),
            new_are_small: true,
            ..whole
        }
    }

    /// Where a program belongs.
    pub(super) const fn zone(&self, class: Option<Class>, threads: u32) -> Zone {
        if threads > 1 {
            return Zone::Large;
        }
        match class {
            Some(Class::Llct) if self.small.is_some() => Zone::Small,
            Some(Class::Ccf) if self.fitting.is_some() => Zone::Fitting,
            None if self.new_are_small => Zone::Small,
            _ => Zone::Large,
        }
    }

    /// The lots of a zone.
    pub(super) const fn lots(&self, zone: Zone) -> &Lots {
        match (zone, &self.small, &self.fitting) {
            (Zone::Small, Some(lots), _) | (Zone::Fitting, _, Some(lots)) => lots,
            _ => &self.large,
        }
    }
}

/// A bit below `nr`, a power of two; the number goes round.
const fn bit(n: u32, nr: u32) -> u64 {
    1u64.wrapping_shl(n & nr.wrapping_sub(1))
}

/// The highest bit of a bitmap.
const fn top(bits: u64) -> u64 {
    match bits.checked_ilog2() {
        Some(n) => 1u64.wrapping_shl(n),
        None => 0,
    }
}

const fn non_zero(bits: u64) -> Option<u64> {
    match bits {
        0 => None,
        _ => Some(bits),
    }
}

/// The regions that share their banks with one.
fn bank_group(scheme: &Scheme, region: u32) -> u64 {
    let mask = scheme.bank_group_mask();
    let regions = 0..scheme.regions();
    let group = regions.filter(|r| (r ^ region) & mask == 0);
    group.fold(0, |bits, r| bits | 1u64.wrapping_shl(r))
}
