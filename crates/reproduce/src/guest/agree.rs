//! How far the two kernels agree.

use piebald_report::Verdict;

use crate::verdict;

/// Misses per million instructions below which there are none to speak of: a hundredth of what
/// a program has that streams through memory.
pub(super) const NO_MISSES: f64 = 100.0;
/// Percent, or points, below which there is no effect to speak of.
pub(super) const NO_EFFECT: f64 = 5.0;

/// What a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Misses per million instructions.
    Misses,
    /// Percent of something.
    Percent,
}

impl Kind {
    pub(super) const fn unit(self) -> &'static str {
        match self {
            Self::Misses => "/M instr",
            Self::Percent => "%",
        }
    }

    const fn nothing(self) -> f64 {
        match self {
            Self::Misses => NO_MISSES,
            Self::Percent => NO_EFFECT,
        }
    }
}

/// Judges a number of the real kernel by that of the modelled one.
pub(super) fn agree(kind: Kind, modelled: f64, real: f64) -> Verdict {
    if modelled.abs() < kind.nothing() && real.abs() < kind.nothing() {
        return Verdict::Match;
    }
    verdict::amount(modelled, real, kind == Kind::Percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agreement_is_within_a_quarter_or_of_two_nothings() {
        for (kind, modelled, real, verdict) in [
            (Kind::Misses, 1000.0, 1249.0, Verdict::Match),
            (Kind::Misses, 1000.0, 1251.0, Verdict::Near),
            (Kind::Misses, 1000.0, 2001.0, Verdict::Miss),
            (Kind::Misses, 1000.0, 400.0, Verdict::Miss),
            (Kind::Misses, 0.1, 99.0, Verdict::Match),
            (Kind::Misses, 0.1, 101.0, Verdict::Miss),
            (Kind::Percent, 16.0, 20.9, Verdict::Match),
            (Kind::Percent, -4.0, 4.0, Verdict::Match),
            (Kind::Percent, -10.0, 10.0, Verdict::Miss),
            (Kind::Percent, 0.0, 6.0, Verdict::Miss),
        ] {
            assert_eq!(agree(kind, modelled, real), verdict, "{modelled} {real}");
        }
    }
}
