//! How even the colours are that a set gets, or all that have none.
//!
//! Frames that the kernel has at hand are dealt as they come, which costs least and finds what was freed
//! last. What comes may be of few colours for long: what is free beside frames of others, or what somebody left who had
//! only these. So frames of a colour that is far ahead of the others wait.

use piebald_units::Color;

/// Colours that are counted; where a map has more, frames are dealt in turn.
pub const COUNTED: usize = 64;
/// Frames of a colour that may be dealt beyond as many as each has had: half of what a processor has at hand.
const AHEAD: i32 = 16;

/// Frames that were dealt, by colour.
#[derive(Clone, Copy, Debug)]
pub struct Even {
    /// By colour. They wrap; only their distance from `level` counts.
    dealt: [u32; COUNTED],
    /// Frames that each colour would have had if all were even, but for those of this round.
    level: u32,
    /// Frames of this round.
    begun: u32,
    /// Colours that there are.
    colors: u32,
    /// The colours are those of this version of the sets.
    version: u64,
}

impl Default for Even {
    fn default() -> Self {
        Self::NEW
    }
}

impl Even {
    /// Of no version.
    pub const NEW: Self = Self {
        dealt: [0; COUNTED],
        level: 0,
        begun: 0,
        colors: 0,
        version: u64::MAX,
    };

    /// Begins anew, with so many colours, for another version of the sets.
    pub fn begin(&mut self, version: u64, colors: u32) {
        *self = Self {
            colors,
            version,
            ..Self::NEW
        };
    }

    /// Is it of this version?
    pub const fn is_of(&self, version: u64) -> bool {
        self.version == version
    }

    /// May a frame of a colour be dealt as it comes?
    pub fn may(&self, color: Color) -> bool {
        let dealt = self.dealt.get(usize::from(color.0));
        dealt.is_some_and(|n| (n.wrapping_sub(self.level) as i32) < AHEAD)
    }

    /// One was dealt since those whose turn it was cannot be had: they are not waited for.
    pub fn passed_over(&mut self, color: Color) {
        let dealt = self.dealt.get(usize::from(color.0));
        if let Some(n) = dealt.filter(|n| n.wrapping_sub(self.level) as i32 > 0) {
            self.level = *n;
        }
    }

    /// One was dealt, however.
    pub fn took(&mut self, color: Color) {
        let Some(dealt) = self.dealt.get_mut(usize::from(color.0)) else {
            return;
        };
        *dealt = dealt.wrapping_add(1);
        self.begun = self.begun.wrapping_add(1);
        if self.begun >= self.colors {
            (self.begun, self.level) = (0, self.level.wrapping_add(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_gets_far_ahead() {
        let mut even = Even::NEW;
        assert!(!even.is_of(0));
        even.begin(7, 4);
        assert!(even.is_of(7) && !even.is_of(8));
        let alone = (0..100).take_while(|_| {
            let may = even.may(Color(2));
            even.took(Color(2));
            may
        });
        // 16 ahead of a level that rises with each fourth.
        assert_eq!(alone.count(), 21);
        // The others come up.
        for round in 0..60 {
            for color in [0, 1, 3] {
                assert!(even.may(Color(color)), "{round} {color}");
                even.took(Color(color));
            }
        }
        assert!(even.may(Color(2)));
        // But there are no more of 2.
        let mut rounds = 0;
        while even.may(Color(0)) {
            for color in [0, 1, 3] {
                even.took(Color(color));
            }
            rounds += 1;
        }
        assert!((1..100).contains(&rounds), "{rounds}");
        even.passed_over(Color(0));
        for _ in 0..15 {
            assert!(even.may(Color(0)));
            even.took(Color(0));
        }
        assert!(even.may(Color(2)));
        assert!(!even.may(Color(64)), "it is not counted");
        even.took(Color(64));
    }

    #[test]
    fn counts_may_wrap() {
        let mut even = Even {
            level: u32::MAX - 1,
            dealt: [u32::MAX - 1; COUNTED],
            colors: 1,
            ..Even::NEW
        };
        for _ in 0..100 {
            assert!(even.may(Color(5)));
            even.took(Color(5));
        }
        assert_eq!(even.level, 98);
    }
}
