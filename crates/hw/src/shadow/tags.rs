//! The tags of a partition of one size, and what the level's rules do to them.

use crate::{
    cache::{Cache, Info, Line, Meta, State},
    hierarchy::Want,
    spec::{CacheSpec, Inclusion},
};

/// Rules of the last level, as far as lookups of one core mind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    inclusive: bool,
    exclusive: bool,
    filled_on_miss: bool,
}

/// What a lookup does beside finding or missing the line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effect {
    /// A hit moves the line inwards.
    leaves: bool,
    /// A miss puts it here.
    fills: bool,
}

impl Rules {
    pub(super) const fn of(spec: &CacheSpec) -> Self {
        Self {
            inclusive: matches!(spec.inclusion, Inclusion::Inclusive),
            exclusive: spec.inclusion.moves_hits(),
            filled_on_miss: spec.inclusion.filled_on_miss(),
        }
    }

    /// Of a lookup in the last level, which is `level`.
    pub(super) fn effect(self, want: &Want, level: usize) -> Effect {
        let goes_further = usize::from(want.into) < level;
        let passed_by = want.transient && !self.inclusive;
        Effect {
            leaves: self.exclusive && goes_further,
            fills: !goes_further || (self.filled_on_miss && !passed_by),
        }
    }
}

/// A line that the level before gives away.
#[derive(Clone, Copy, Debug)]
pub(super) struct Victim {
    pub(super) line: Line,
    pub(super) dirty: bool,
    /// This level takes clean ones as well.
    pub(super) clean_too: bool,
}

/// Sets of some colors.
#[derive(Clone, Debug)]
pub(super) struct Tags {
    cache: Cache,
    /// Dirty lines that had to leave.
    pub(super) writebacks: u64,
}

impl Tags {
    pub(super) fn new(spec: &CacheSpec, sets: usize, seed: u64) -> Self {
        Self {
            cache: Cache::of_sets(spec.replacement, sets, usize::from(spec.ways), seed),
            writebacks: 0,
        }
    }

    /// Looks a line up; whether it was there.
    #[inline]
    pub(super) fn access(&mut self, set: usize, line: Line, effect: Effect) -> bool {
        if let Some(slot) = self.cache.find(set, line) {
            match effect.leaves {
                true => _ = self.cache.remove(slot),
                false => self.cache.touch(slot),
            }
            return true;
        }
        if effect.fills {
            self.fill(set, line, State::Exclusive);
        }
        false
    }

    pub(super) fn take_in(&mut self, set: usize, victim: Victim, rules: Rules) {
        let Victim { line, dirty, .. } = victim;
        let state = match dirty {
            true => State::Modified,
            false => State::Exclusive,
        };
        match self.cache.find(set, line) {
            Some(slot) => {
                if victim.clean_too {
                    self.cache.touch(slot);
                }
                if dirty {
                    let now = self.cache.meta(slot).with_state(state);
                    self.cache.set_meta(slot, now);
                }
            }
            // A level that holds all lines of those before it has written this one to
            // memory when it lost it.
            None if rules.inclusive => self.writebacks += u64::from(dirty),
            None => self.fill(set, line, state),
        }
    }

    fn fill(&mut self, set: usize, line: Line, state: State) {
        let info = Info::new(Meta::new(state), 0, 0);
        let gone = self.cache.insert(set, line, info);
        self.writebacks += u64::from(gone.is_some_and(|g| g.info.meta().dirty()));
    }
}
