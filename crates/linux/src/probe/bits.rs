//! Which address bits above the page would make colours, if the caches' index were linear.

use piebald_hw::{presets::derive::CacheFacts, spec::Holds};
use piebald_units::PAGE_SHIFT;

/// An address bit that may pick the set of the last level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Number of the bit, 12 or above.
    pub bit: u32,
    /// It indexes the second level too, if that is not the last: colours by it would split the
    /// private second level as well, and a program with few colours would lose most of it.
    pub in_level_two: bool,
}

/// The last level: the data or unified cache that is farthest from the core.
pub fn last_level(caches: &[CacheFacts]) -> Option<&CacheFacts> {
    let data = caches.iter().filter(|c| c.holds != Holds::Instruction);
    data.max_by_key(|cache| cache.level)
}

/// The second level, unless it is the last.
pub fn level_two(caches: &[CacheFacts]) -> Option<&CacheFacts> {
    let last = last_level(caches)?.level;
    let mut data = caches.iter().filter(|c| c.holds != Holds::Instruction);
    data.find(|cache| cache.level == 2 && last > 2)
}

/// Capacity of a cache. What no cache can have is the largest number.
pub fn bytes_of(cache: &CacheFacts) -> u64 {
    cache
        .sets
        .saturating_mul(cache.ways)
        .saturating_mul(cache.line)
}

/// A last level in which a hash of the address chooses the set: its sets are no power of two, so
/// they are not numbered by address bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the last level (L{level}) has {sets} sets, which is no power of two: a hash of many address \
     bits chooses among them, and single bits make no colors that could be timed; allowed: a power \
     of two"
)]
pub struct Hashed {
    /// Its level.
    pub level: u64,
    /// Its sets.
    pub sets: u64,
}

/// First bit above the index of a cache with a linear index. A second level whose sets are no
/// power of two counts as the next smaller one.
fn end_of_index(cache: &CacheFacts) -> u32 {
    cache.sets.max(1).ilog2() + cache.line.max(1).ilog2()
}

/// The candidates, by rising bit; none if the last level has no index bit above the page.
///
/// # Errors
/// [`Hashed`] if the last level cannot have a linear index.
pub fn candidates(caches: &[CacheFacts]) -> Result<Vec<Candidate>, Hashed> {
    let last = last_level(caches);
    if let Some(cache) = last.filter(|cache| !cache.sets.is_power_of_two()) {
        return Err(Hashed {
            level: cache.level,
            sets: cache.sets,
        });
    }
    let end = last.map_or(0, end_of_index);
    let shared = level_two(caches).map_or(0, end_of_index);
    let bits = PAGE_SHIFT..end.max(PAGE_SHIFT);
    let of = |bit| Candidate {
        bit,
        in_level_two: bit < shared,
    };
    Ok(bits.map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(level: u64, holds: Holds, ways: u64, sets: u64) -> CacheFacts {
        CacheFacts {
            level,
            holds,
            line: 64,
            ways,
            sets,
            shared_with: "0".into(),
        }
    }

    #[test]
    fn the_w3540_has_the_bits_of_the_thesis() {
        // 256 KiB with 8 ways, 8 MiB with 16: bits 12-14 and 12-18, so 15-18 leave the L2 whole.
        let caches = [
            cache(1, Holds::Data, 8, 64),
            cache(1, Holds::Instruction, 4, 128),
            cache(2, Holds::Unified, 8, 512),
            cache(3, Holds::Unified, 16, 8192),
        ];
        let found = candidates(&caches).expect("linear");
        let bits: Vec<_> = found.iter().map(|c| (c.bit, c.in_level_two)).collect();
        let expected: Vec<_> = (12..19).map(|bit| (bit, bit < 15)).collect();
        assert_eq!(bits, expected);
    }

    #[test]
    fn a_second_level_that_is_the_last_shares_no_bits() {
        let caches = [
            cache(1, Holds::Data, 8, 64),
            cache(2, Holds::Unified, 16, 2048),
        ];
        assert_eq!(level_two(&caches), None);
        let found = candidates(&caches).expect("linear");
        assert_eq!(found.len(), 5);
        assert!(found.iter().all(|c| !c.in_level_two));
    }

    #[test]
    fn a_last_level_whose_sets_are_no_power_of_two_has_none_that_could_be_timed() {
        for sets in [0, 12_288, 49_152, 491_520] {
            let caches = [
                cache(2, Holds::Unified, 16, 2048),
                cache(3, Holds::Unified, 16, sets),
            ];
            let hashed = Hashed { level: 3, sets };
            assert_eq!(candidates(&caches), Err(hashed));
            assert!(
                hashed
                    .to_string()
                    .contains(&format!("(L3) has {sets} sets"))
            );
        }
        // What is told of other levels does not matter.
        let caches = [
            cache(1, Holds::Data, 12, 48),
            cache(2, Holds::Unified, 20, 1280),
            cache(3, Holds::Unified, 16, 8192),
        ];
        let found = candidates(&caches).expect("linear");
        assert_eq!(found.last().map(|c| c.bit), Some(18));
    }

    #[test]
    fn sizes_do_not_overflow() {
        let mut vast = cache(3, Holds::Unified, 1 << 20, 1 << 32);
        vast.line = 1 << 20;
        assert_eq!(bytes_of(&vast), u64::MAX);
        assert_eq!(bytes_of(&cache(3, Holds::Unified, 16, 8192)), 8 << 20);
        let found = candidates(&[vast]).expect("linear");
        assert_eq!(found.last().map(|c| c.bit), Some(51));
    }

    #[test]
    fn caches_within_a_page_have_none() {
        assert_eq!(candidates(&[cache(1, Holds::Data, 8, 64)]), Ok(vec![]));
        assert_eq!(candidates(&[]), Ok(vec![]));
    }
}
