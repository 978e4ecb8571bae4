//! Something that carries a limited amount at a time: a bus, a link in one direction, the way
//! into a core.
//!
//! Requests do not come in the order in which their data moves: a line that is late at its bank
//! must not hold up one that is asked for later and is there sooner. A lane therefore remembers
//! when it is busy, and what passes takes the time that is left from when it is ready, in parts
//! if need be. The first gap that takes it whole was rejected: gaps a little too short stayed
//! open, and links carried two thirds of what they can. A real one would let the early line go
//! first and the others behind it, with the same end of the last.

use crate::window::Q8;

/// Busy times that are remembered; the older half is forgotten when there are so many.
const REMEMBERED: usize = 64;

/// A time during which a lane is busy; the end is not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Busy {
    from: Q8,
    until: Q8,
}

/// When something is busy.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    /// In rising order, with a gap between any two.
    busy: Vec<Busy>,
    /// Nothing passes before this: what was remembered there is forgotten.
    floor: Q8,
}

impl Lane {
    pub(crate) fn new() -> Self {
        Self {
            busy: Vec::with_capacity(REMEMBERED),
            floor: 0,
        }
    }

    /// Passes from `ready` on, in what time the lane has left; returns the end.
    #[inline]
    pub(crate) fn pass(&mut self, ready: Q8, takes: Q8) -> Q8 {
        let from = ready.max(self.floor);
        match self.busy.last_mut() {
            Some(last) if from < last.until => self.pass_between(from, takes),
            Some(last) if from == last.until => {
                last.until += takes;
                last.until
            }
            _ => {
                if self.busy.len() == REMEMBERED {
                    self.forget();
                }
                let until = from + takes;
                self.busy.push(Busy { from, until });
                until
            }
        }
    }

    #[cold]
    fn forget(&mut self) {
        let half = REMEMBERED / 2;
        self.floor = self.busy[half - 1].until;
        self.busy.drain(..half);
    }

    /// Something later is remembered already. All gaps on the way are closed, so that one busy
    /// time is left of what was passed over.
    #[inline(never)]
    fn pass_between(&mut self, from: Q8, takes: Q8) -> Q8 {
        let first = self.busy.partition_point(|b| b.until < from);
        let (mut behind, mut free, mut left) = (first, from, takes);
        while let Some(next) = self.busy.get(behind) {
            let gap = next.from.saturating_sub(free);
            if gap > left {
                break;
            }
            if gap == left && gap > 0 {
                // It ends where the next begins.
                return self.join(first, behind + 1, from, next.from);
            }
            left -= gap;
            free = next.until;
            behind += 1;
        }
        self.join(first, behind, from, free + left)
    }

    /// Makes one busy time of those from `first` until `behind` and of what passes between `from`
    /// and `end`; returns that end.
    fn join(&mut self, first: usize, behind: usize, from: Q8, end: Q8) -> Q8 {
        if first == behind {
            self.busy.insert(first, Busy { from, until: end });
            if self.busy.len() > REMEMBERED {
                self.forget();
            }
            return end;
        }
        let until = self.busy[behind - 1].until.max(end);
        let joined = &mut self.busy[first];
        joined.from = joined.from.min(from);
        joined.until = until;
        self.busy.drain(first + 1..behind);
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every picosecond that is taken, forever.
    #[derive(Default)]
    struct Slow(std::collections::BTreeSet<Q8>);

    impl Slow {
        fn pass(&mut self, ready: Q8, takes: Q8) -> Q8 {
            let free = (ready..).filter(|t| !self.0.contains(t));
            let taken: Vec<Q8> = free.take(takes as usize).collect();
            self.0.extend(&taken);
            taken.last().map_or(ready, |last| last + 1)
        }
    }

    struct Rng(u64);

    impl Rng {
        fn below(&mut self, n: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 16) % n
        }
    }

    #[test]
    fn passages_in_any_order_take_the_time_that_is_left() {
        for seed in 1..20 {
            let (mut lane, mut slow, mut rng) = (Lane::new(), Slow::default(), Rng(seed));
            let mut now = 0;
            for step in 0..2000 {
                // More than it can carry, and less.
                now += rng.below(if step % 500 < 250 { 8 } else { 14 });
                let ready = now + rng.below(120);
                let takes = 1 + rng.below(9);
                assert_eq!(
                    lane.pass(ready, takes),
                    slow.pass(ready, takes),
                    "seed {seed}"
                );
                assert!(lane.busy.windows(2).all(|b| b[0].until < b[1].from));
            }
        }
    }

    #[test]
    fn what_follows_without_a_pause_is_one_busy_time() {
        let mut lane = Lane::new();
        for n in 0..1000 {
            assert_eq!(lane.pass(0, 7), 7 * (n + 1));
        }
        assert_eq!(lane.busy.len(), 1);
    }

    #[test]
    fn what_is_forgotten_counts_as_busy() {
        let mut lane = Lane::new();
        // Single picoseconds with gaps between them.
        for n in 0..REMEMBERED as Q8 {
            lane.pass(10 * n, 1);
        }
        assert_eq!(lane.pass(0, 1), 2);
        // One more makes room: the older half, up to 311, is forgotten.
        lane.pass(1000, 1);
        assert_eq!(lane.pass(0, 1), 312);
        // 8 of 9 were left before 320, and 9 in each ten behind it.
        assert_eq!(lane.pass(0, 20), 334);
    }
}
