//! How full the sets are that a program uses: what tells a warm cache from a cold one.

use super::Hierarchy;
use crate::topology::MAX_LEVELS;
use serde::{Deserialize, Serialize};

/// What each set of some caches held at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetFill {
    /// Of each level: lines in each set, and those of the program among them. Sets of several
    /// caches of a level follow one another.
    levels: Vec<Vec<[u8; 2]>>,
    /// Of each level, the most lines that a set holds.
    ways: Vec<u8>,
}

/// How full the sets of one level were at two moments: those sets that held a line of the
/// program at either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelFill {
    /// Lines that these sets have room for.
    pub room: u64,
    /// Lines in them at the first moment, whoever brought them.
    pub start: u64,
    /// Lines in them at the second.
    pub end: u64,
    /// The program's own among the first.
    pub own_start: u64,
    /// The program's own among the second.
    pub own_end: u64,
}

impl SetFill {
    /// What changed until `end`, level by level, the first level first.
    ///
    /// Both must be of the same caches; sets that only one of them has are left out.
    pub fn until(&self, end: &Self) -> [LevelFill; MAX_LEVELS] {
        let mut out = [LevelFill::default(); MAX_LEVELS];
        let levels = self.levels.iter().zip(&end.levels).zip(&self.ways);
        for (sum, ((before, after), ways)) in out.iter_mut().zip(levels) {
            let used = before.iter().zip(after);
            for ([all, own], [all_after, own_after]) in used.filter(|(b, a)| b[1] > 0 || a[1] > 0) {
                sum.room += u64::from(*ways);
                sum.start += u64::from(*all);
                sum.end += u64::from(*all_after);
                sum.own_start += u64::from(*own);
                sum.own_end += u64::from(*own_after);
            }
        }
        out
    }
}

impl Hierarchy {
    /// What the sets of the data caches behind these physical cores hold, of all and of one
    /// owner.
    pub(crate) fn set_fill(&self, cores: &[usize], owner: u8) -> SetFill {
        let mut fill = SetFill::default();
        for level in 0..self.levels() {
            let mut caches: Vec<usize> = cores.iter().map(|c| self.cache_at(*c, level)).collect();
            caches.sort_unstable();
            caches.dedup();
            let (mut sets, mut ways) = (Vec::new(), 0);
            for cache in caches {
                let cache = &self.topology.caches[cache];
                ways = u8::try_from(cache.ways()).unwrap_or(u8::MAX);
                let first = sets.len();
                sets.resize(first + cache.sets(), [0u8; 2]);
                for (set, _, info) in cache.lines() {
                    let [all, own] = &mut sets[first + set];
                    *all = all.saturating_add(1);
                    *own = own.saturating_add(u8::from(info.owner() == owner));
                }
            }
            fill.levels.push(sets);
            fill.ways.push(ways);
        }
        fill
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sets: &[[u8; 2]]) -> SetFill {
        SetFill {
            levels: vec![sets.to_vec()],
            ways: vec![8],
        }
    }

    #[test]
    fn only_sets_that_the_program_uses_count() {
        let start = of(&[[8, 2], [5, 0], [3, 0]]);
        let end = of(&[[8, 3], [7, 0], [6, 1]]);
        let [first, second, _] = start.until(&end);
        let expected = LevelFill {
            room: 16,
            start: 11,
            end: 14,
            own_start: 2,
            own_end: 4,
        };
        assert_eq!((first, second), (expected, LevelFill::default()));
    }
}
