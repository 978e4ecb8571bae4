//! Something that one thing at a time passes: a bus, a link in one direction, the way into a core.
//!
//! Requests do not come in the order in which their data moves: a line that is late at its bank
//! must not hold up one that is asked for later and is there sooner. A lane therefore remembers
//! when it is busy, and each passage takes the first gap that is wide enough.

use crate::window::Q8;

/// Passages that are remembered; the older half is forgotten when there are so many.
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
    /// In rising order, none inside another.
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

    /// Passes in the first gap from `ready` on that lasts as long as it `takes`; returns the end.
    #[inline]
    pub(crate) fn pass(&mut self, ready: Q8, takes: Q8) -> Q8 {
        if self.busy.len() == REMEMBERED {
            self.forget();
        }
        let from = ready.max(self.floor);
        if self.busy.last().is_some_and(|last| last.until > from) {
            return self.squeeze_in(from, takes);
        }
        let until = from + takes;
        self.busy.push(Busy { from, until });
        until
    }

    #[cold]
    fn forget(&mut self) {
        let half = REMEMBERED / 2;
        self.floor = self.busy[half - 1].until;
        self.busy.drain(..half);
    }

    /// Something later is remembered already.
    #[inline(never)]
    fn squeeze_in(&mut self, from: Q8, takes: Q8) -> Q8 {
        let mut from = from;
        let mut at = self.busy.partition_point(|b| b.until <= from);
        while let Some(next) = self.busy.get(at).filter(|b| b.from < from + takes) {
            from = next.until;
            at += 1;
        }
        let until = from + takes;
        self.busy.insert(at, Busy { from, until });
        until
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
            let free = |from: Q8| (from..from + takes).all(|t| !self.0.contains(&t));
            let from = (ready..).find(|from| free(*from)).unwrap_or(ready);
            self.0.extend(from..from + takes);
            from + takes
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
    fn passages_in_any_order_take_the_first_gap_that_fits() {
        for seed in 1..20 {
            let (mut lane, mut slow, mut rng) = (Lane::new(), Slow::default(), Rng(seed));
            let mut now = 0;
            for _ in 0..2000 {
                now += rng.below(12);
                let ready = now + rng.below(120);
                let takes = 1 + rng.below(9);
                assert_eq!(
                    lane.pass(ready, takes),
                    slow.pass(ready, takes),
                    "seed {seed}"
                );
                assert!(lane.busy.windows(2).all(|b| b[0].until <= b[1].from));
            }
        }
    }

    #[test]
    fn what_is_forgotten_counts_as_busy() {
        let mut lane = Lane::new();
        // Single picoseconds with gaps between them.
        for n in 0..REMEMBERED as Q8 {
            lane.pass(10 * n, 1);
        }
        // The next one makes room: the older half, up to 311, is forgotten.
        assert_eq!(lane.pass(0, 1), 312);
        assert_eq!(lane.pass(0, 20), 651);
    }
}
