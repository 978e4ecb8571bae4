//! Replacement state of a cache: which way of a set goes next.
//!
//! Each policy answers two questions in constant work per set: a way was used
//! (`touch`), and which way shall go (`victim`). Invalid ways are the cache's
//! business, except under LRU, where an invalidated way simply becomes the oldest.

use crate::spec::Replacement;

const NIBBLES: u64 = 0x1111_1111_1111_1111;

/// Replacement state of all sets of one cache.
#[derive(Clone, Debug)]
pub(crate) enum Order {
    /// LRU up to 16 ways: one 64-bit permutation per set, lowest nibble most
    /// recent, nothing above the ways. A touch is a dozen register operations, no
    /// scan.
    Lru16(Vec<u64>),
    /// LRU above 16 ways: time stamps.
    LruStamp { stamps: Vec<u64>, clock: u64 },
    /// Tree pseudo-LRU: bit n of a set's word is node n of the tree, root = 1;
    /// a set bit means "the older half is the right one".
    Tree {
        trees: Vec<u64>,
        /// For each way, the nodes on its path and how they point away from it.
        away: Box<[(u64, u64); 64]>,
    },
    /// Bit w: way w was used since the last time that all bits were set.
    Nru(Vec<u64>),
    /// Re-reference prediction values, 0 = soon .. 3 = distant, per way.
    Rrip(Vec<u8>),
    /// Xorshift state.
    Random(u64),
}

impl Order {
    /// State for `sets` empty sets of `ways` ways.
    pub(crate) fn new(kind: Replacement, sets: usize, ways: usize, seed: u64) -> Self {
        match kind {
            Replacement::Lru if ways <= 16 => {
                let identity = (0..ways as u64).fold(0, |p, w| p | w << (4 * w));
                Self::Lru16(vec![identity; sets])
            }
            Replacement::Lru => Self::LruStamp {
                stamps: vec![0; sets * ways],
                clock: 0,
            },
            Replacement::TreePlru => Self::Tree {
                trees: vec![0; sets],
                away: Box::new(std::array::from_fn(|way| match way < ways {
                    true => away_from(way, ways),
                    false => (0, 0),
                })),
            },
            Replacement::Nru => Self::Nru(vec![0; sets]),
            Replacement::Rrip => Self::Rrip(vec![3; sets * ways]),
            Replacement::Random => Self::Random(seed | 1),
        }
    }

    /// Way `way` of `set` was hit.
    #[inline]
    pub(crate) fn touch(&mut self, set: usize, way: usize, ways: usize) {
        match self {
            Self::Lru16(perms) => to_front(&mut perms[set], way as u64),
            Self::Tree { trees, away } => {
                let (path, turned) = away[way % 64];
                trees[set] = trees[set] & !path | turned;
            }
            _ => self.touch_other(set, way, ways),
        }
    }

    #[inline(never)]
    fn touch_other(&mut self, set: usize, way: usize, ways: usize) {
        match self {
            Self::Lru16(_) | Self::Tree { .. } => {}
            Self::LruStamp { stamps, clock } => {
                *clock += 1;
                stamps[set * ways + way] = *clock;
            }
            Self::Nru(used) => {
                used[set] |= 1 << way;
                if used[set].count_ones() as usize == ways {
                    used[set] = 1 << way;
                }
            }
            Self::Rrip(values) => values[set * ways + way] = 0,
            Self::Random(_) => {}
        }
    }

    /// A new line was put in `way`. Differs from a hit only under RRIP, which
    /// inserts with a long prediction (SRRIP-HP).
    #[inline]
    pub(crate) fn inserted(&mut self, set: usize, way: usize, ways: usize) {
        match self {
            Self::Rrip(values) => values[set * ways + way] = 2,
            _ => self.touch(set, way, ways),
        }
    }

    /// As [`replace`](Self::replace), for LRU up to 16 ways; `None` for all others.
    #[inline(always)]
    pub(crate) fn replace_lru(&mut self, set: usize, ways: usize) -> Option<usize> {
        let Self::Lru16(perms) = self else {
            return None;
        };
        // The oldest way is the last nibble: it becomes the first.
        let perm = &mut perms[set];
        let last = 4 * (ways as u32 - 1);
        let way = *perm >> last;
        *perm = (*perm ^ way << last) << 4 | way;
        Some(way as usize)
    }

    /// The way of a full set that goes next, with a new line put in its place.
    #[inline]
    pub(crate) fn replace(&mut self, set: usize, ways: usize) -> usize {
        if let Some(way) = self.replace_lru(set, ways) {
            return way;
        }
        let way = self.victim(set, ways);
        self.inserted(set, way, ways);
        way
    }

    /// Way `way` was invalidated.
    pub(crate) fn invalidated(&mut self, set: usize, way: usize, ways: usize) {
        match self {
            Self::Lru16(perms) => to_back(&mut perms[set], way as u64, ways),
            Self::LruStamp { stamps, .. } => stamps[set * ways + way] = 0,
            Self::Tree { .. } | Self::Random(_) => {}
            Self::Nru(used) => used[set] &= !(1 << way),
            Self::Rrip(values) => values[set * ways + way] = 3,
        }
    }

    /// Does `victim` find invalid ways by itself?
    pub(crate) const fn prefers_invalid(&self) -> bool {
        matches!(self, Self::Lru16(_) | Self::LruStamp { .. })
    }

    /// The way of a full set that goes next. RRIP ages the set here.
    #[inline]
    pub(crate) fn victim(&mut self, set: usize, ways: usize) -> usize {
        match self {
            Self::Lru16(perms) => (perms[set] >> (4 * (ways - 1)) & 0xf) as usize,
            Self::LruStamp { stamps, .. } => {
                let row = &stamps[set * ways..(set + 1) * ways];
                (0..ways).min_by_key(|w| row[*w]).unwrap_or(0)
            }
            Self::Tree { trees, .. } => {
                let tree = trees[set];
                let mut node = 1;
                while node < ways {
                    node = 2 * node + (tree >> node & 1) as usize;
                }
                node - ways
            }
            Self::Nru(used) => ((!used[set]).trailing_zeros() as usize).min(ways - 1),
            Self::Rrip(values) => {
                let row = &mut values[set * ways..(set + 1) * ways];
                let oldest = row.iter().copied().max().unwrap_or(3);
                row.iter_mut().for_each(|v| *v += 3 - oldest);
                row.iter().position(|v| *v == 3).unwrap_or(0)
            }
            Self::Random(state) => {
                *state ^= *state << 13;
                *state ^= *state >> 7;
                *state ^= *state << 17;
                (((*state >> 32) * ways as u64) >> 32) as usize
            }
        }
    }
}

/// Bit offset of the lowest nibble of `perm` that equals `way`. The ways of a
/// set are a prefix of the word, so the lowest match is the right one even
/// though unused high nibbles read as way 0.
#[inline]
fn position(perm: u64, way: u64) -> u32 {
    let x = perm ^ (way * NIBBLES);
    let zero = x.wrapping_sub(NIBBLES) & !x & (NIBBLES << 3);
    zero.trailing_zeros() & !3
}

#[inline(always)]
pub(crate) fn to_front(perm: &mut u64, way: u64) {
    if *perm & 0xf == way {
        return;
    }
    let at = position(*perm, way);
    let above = u64::MAX << at << 4;
    let below = (1u64 << at) - 1;
    *perm = *perm & above | (*perm & below) << 4 | way;
}

fn to_back(perm: &mut u64, way: u64, ways: usize) {
    let at = position(*perm, way);
    let below = (1u64 << at) - 1;
    let last = 4 * (ways as u32 - 1);
    *perm = *perm & below | (*perm >> 4) & !below | way << last;
}

/// The tree's nodes on the path to `way`, and their values that point away from it.
fn away_from(way: usize, ways: usize) -> (u64, u64) {
    let (mut path, mut turned) = (0, 0);
    let mut node = way + ways;
    while node > 1 {
        let parent = node / 2;
        path |= 1 << parent;
        turned |= u64::from(node.is_multiple_of(2)) << parent;
        node = parent;
    }
    (path, turned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plain list, most recent first.
    struct List(Vec<usize>);

    impl List {
        fn touch(&mut self, way: usize) {
            self.0.retain(|w| *w != way);
            self.0.insert(0, way);
        }

        fn drop_to_back(&mut self, way: usize) {
            self.0.retain(|w| *w != way);
            self.0.push(way);
        }
    }

    #[test]
    fn lru_agrees_with_a_plain_list_for_every_number_of_ways() {
        for ways in 1..=40 {
            let mut order = Order::new(Replacement::Lru, 3, ways, 1);
            let mut list = List((0..ways).collect());
            for way in (0..ways).rev() {
                order.touch(1, way, ways);
                list.touch(way);
            }
            let mut x = 12345u64;
            for step in 0..2000 {
                x = x
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                let way = (x >> 33) as usize % ways;
                if step % 7 == 6 && ways <= 16 {
                    order.invalidated(1, way, ways);
                    list.drop_to_back(way);
                } else {
                    order.touch(1, way, ways);
                    list.touch(way);
                }
                assert_eq!(
                    order.victim(1, ways),
                    *list.0.last().unwrap(),
                    "{ways} ways"
                );
            }
        }
    }

    #[test]
    fn tree_plru_replays_the_textbook_example() {
        // Four ways touched 0, 1, 2, 3: the tree points at 0; touching 0 turns
        // the root to the right half, whose older way is 2.
        let mut order = Order::new(Replacement::TreePlru, 1, 4, 1);
        for way in 0..4 {
            order.touch(0, way, 4);
        }
        assert_eq!(order.victim(0, 4), 0);
        order.touch(0, 0, 4);
        assert_eq!(order.victim(0, 4), 2);
        order.touch(0, 2, 4);
        assert_eq!(order.victim(0, 4), 1);
    }

    #[test]
    fn nru_takes_the_first_unused_way_and_starts_over_when_all_are_used() {
        let mut order = Order::new(Replacement::Nru, 1, 4, 1);
        order.touch(0, 0, 4);
        order.touch(0, 1, 4);
        assert_eq!(order.victim(0, 4), 2);
        order.touch(0, 2, 4);
        order.touch(0, 3, 4);
        assert_eq!(order.victim(0, 4), 0);
    }

    #[test]
    fn srrip_ages_until_a_distant_way_appears_and_takes_the_first() {
        // ISCA 2010, figure 3: inserted at 2, promoted to 0 on a hit.
        let mut order = Order::new(Replacement::Rrip, 1, 4, 1);
        for way in 0..4 {
            order.inserted(0, way, 4);
        }
        order.touch(0, 0, 4);
        assert_eq!(order.victim(0, 4), 1);
        let Order::Rrip(values) = &order else {
            panic!()
        };
        assert_eq!(values[..], [1, 3, 3, 3]);
    }

    #[test]
    fn random_reaches_every_way_about_equally_often() {
        let mut order = Order::new(Replacement::Random, 1, 8, 42);
        let mut seen = [0u32; 8];
        for _ in 0..8000 {
            seen[order.victim(0, 8)] += 1;
        }
        assert!(seen.iter().all(|n| (850..1150).contains(n)), "{seen:?}");
    }
}
