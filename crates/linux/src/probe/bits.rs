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

/// First bit above the index of a cache with a linear index. Sets that are no power of two
/// (slices) are taken down to one.
fn end_of_index(cache: &CacheFacts) -> u32 {
    cache.sets.max(1).ilog2() + cache.line.max(1).ilog2()
}

/// The candidates, by rising bit; none if the last level has no index bit above the page.
pub fn candidates(caches: &[CacheFacts]) -> Vec<Candidate> {
    let end = last_level(caches).map_or(0, end_of_index);
    let shared = level_two(caches).map_or(0, end_of_index);
    let bits = PAGE_SHIFT..end.max(PAGE_SHIFT);
    bits.map(|bit| Candidate {
        bit,
        in_level_two: bit < shared,
    })
    .collect()
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
        let found = candidates(&caches);
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
        let found = candidates(&caches);
        assert_eq!(found.len(), 5);
        assert!(found.iter().all(|c| !c.in_level_two));
    }

    #[test]
    fn slices_that_are_no_power_of_two_are_taken_down_to_one() {
        let found = candidates(&[cache(3, Holds::Unified, 11, 49152)]);
        assert_eq!(found.last().map(|c| c.bit), Some(20));
    }

    #[test]
    fn sizes_do_not_overflow() {
        let mut vast = cache(3, Holds::Unified, 1 << 20, 1 << 32);
        vast.line = 1 << 20;
        assert_eq!(bytes_of(&vast), u64::MAX);
        assert_eq!(bytes_of(&cache(3, Holds::Unified, 16, 8192)), 8 << 20);
        assert_eq!(candidates(&[vast]).last().map(|c| c.bit), Some(51));
    }

    #[test]
    fn caches_within_a_page_have_none() {
        assert_eq!(candidates(&[cache(1, Holds::Data, 8, 64)]), []);
        assert_eq!(candidates(&[]), []);
    }
}
