//! What a repetition draws.

use piebald_experiment::Draws;
use piebald_sim::{draw, mix};
use piebald_units::{CoreId, CoreSet};

/// A number below `below` (0 if that is 0), at the same share of it for the same draw. Recordings of
/// one program differ by a few references each time; a remainder would be another place each time.
pub fn share_of(below: u64, draw: u64) -> u64 {
    ((u128::from(draw) * u128::from(below)) >> 64) as u64
}

/// What all draws of a repetition follow from.
#[derive(Clone, Copy, Debug)]
pub struct Repetition {
    pub(crate) seed: u64,
    draws: Draws,
}

impl Repetition {
    /// Of a study with this seed, whose draws follow from places or names.
    pub fn new((seed, draws): (u64, Draws), repetition: u32) -> Self {
        let repetition = u64::from(repetition);
        let seed = match draws {
            Draws::Places => mix(&[seed, repetition]),
            Draws::Names => seed.wrapping_add(repetition),
        };
        Self { seed, draws }
    }

    /// Of what has neither place nor name.
    pub(crate) fn of(self, what: u64) -> u64 {
        mix(&[self.seed, what])
    }

    /// Of the history of memory.
    pub(crate) fn memory(self) -> u64 {
        match self.draws {
            Draws::Places => self.of(5),
            Draws::Names => draw(self.seed, "memory", 0),
        }
    }

    /// Of the place where a program is met.
    pub(crate) fn place(self, at: usize, name: &str) -> u64 {
        match self.draws {
            Draws::Places => mix(&[self.seed, 3, at as u64]),
            Draws::Names => draw(self.seed, name, 1),
        }
    }

    /// When a program begins, within this time.
    pub(crate) fn start(self, at: usize, within: u64) -> u64 {
        match self.draws {
            Draws::Places => mix(&[self.seed, 2, at as u64]) % within,
            Draws::Names => 0,
        }
    }

    /// Of these hardware threads the one that the so-manieth program is dealt; each has another.
    pub(crate) fn dealt(self, cores: CoreSet, (name, number): (&str, u64), nth: usize) -> CoreSet {
        let mut left: Vec<CoreId> = cores.iter().collect();
        let mut chosen = CoreSet::EMPTY;
        // There are enough: checked where the file is read.
        for place in (0..=nth).take(cores.len() as usize) {
            let drawn = draw(self.seed, &format!("{name} place {place}"), number);
            let at = drawn % left.len() as u64;
            chosen = CoreSet::one(left.swap_remove(at as usize));
        }
        chosen
    }

    /// Of what HVR looks at.
    pub(crate) fn watching(self) -> u64 {
        match self.draws {
            Draws::Places => self.of(7),
            Draws::Names => self.seed,
        }
    }

    /// The seed of a built-in program.
    pub(crate) fn builtin(self) -> u64 {
        match self.draws {
            Draws::Places => self.of(8),
            Draws::Names => self.seed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_is_dealt_another_hardware_thread_and_another_name_deals_otherwise() {
        let all = CoreSet::first(8);
        let deal = |seed, name, number| -> Vec<u64> {
            let draw = Repetition::new((seed, Draws::Names), 0);
            let of = |nth| draw.dealt(all, (name, number), nth).bits();
            (0..8).map(of).collect()
        };
        let first = deal(1, "x", 0);
        assert_eq!(first.iter().sum::<u64>(), all.bits());
        assert_eq!(deal(1, "x", 0), first);
        for other in [deal(2, "x", 0), deal(1, "y", 0), deal(1, "x", 1)] {
            assert_eq!(other.iter().sum::<u64>(), all.bits());
            assert_ne!(other, first);
        }
    }

    #[test]
    fn a_place_moves_no_further_than_what_it_is_drawn_from() {
        for number in 0..1000 {
            let drawn = draw(42, "place", number);
            let places = [49_999_999u64, 50_000_000, 50_000_002].map(|n| share_of(n, drawn));
            assert!(places[0] <= places[2] && places[2] - places[0] <= 4);
            assert!(places[2] < 50_000_002);
        }
        assert_eq!((share_of(0, u64::MAX), share_of(1, u64::MAX)), (0, 0));
        assert_eq!(share_of(100, u64::MAX), 99);
    }
}
