//! Where files are mapped, to know what a mapping that grows (`mremap`) shows.

use std::collections::BTreeMap;
use std::ops::Range;

use super::super::super::request::FileKey;

/// Mappings have whole pages.
pub(super) const PAGE: u64 = 4096;

/// A range of addresses that shows a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    pub file: FileKey,
    /// What its first address shows, in bytes of the file.
    pub offset: u64,
    length: u64,
}

/// The mapped files of a process, by address.
#[derive(Clone, Debug, Default)]
pub(super) struct Maps(BTreeMap<u64, Mapping>);

/// Addresses of a mapping, in whole pages.
pub(super) fn pages(address: u64, length: u64) -> Range<u64> {
    let length = length.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
    address..address.saturating_add(length)
}

impl Maps {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The file that an address shows, and where in it that is.
    pub fn at(&self, address: u64) -> Option<(FileKey, u64)> {
        let (begin, mapping) = self.0.range(..=address).next_back()?;
        let into = address - begin;
        (into < mapping.length).then_some((mapping.file, mapping.offset.saturating_add(into)))
    }

    /// The addresses show the file from `offset` on.
    pub fn put(&mut self, addresses: Range<u64>, file: FileKey, offset: u64) {
        self.take(addresses.clone());
        if !addresses.is_empty() {
            let mapping = Mapping {
                file,
                offset,
                length: addresses.end - addresses.start,
            };
            self.0.insert(addresses.start, mapping);
        }
    }

    /// The addresses show no file.
    pub fn take(&mut self, addresses: Range<u64>) {
        let from = self.0.range(..addresses.start).next_back();
        let from = from.map_or(addresses.start, |(begin, _)| *begin);
        if addresses.is_empty() || from >= addresses.end {
            return;
        }
        let near = self.0.range(from..addresses.end);
        let hit: Vec<(u64, Mapping)> = near
            .map(|(begin, mapping)| (*begin, *mapping))
            .filter(|(begin, mapping)| begin + mapping.length > addresses.start)
            .collect();
        for (begin, mapping) in hit {
            self.0.remove(&begin);
            let end = begin + mapping.length;
            if begin < addresses.start {
                let length = addresses.start - begin;
                self.0.insert(begin, Mapping { length, ..mapping });
            }
            if end > addresses.end {
                let behind = Mapping {
                    offset: mapping.offset.saturating_add(addresses.end - begin),
                    length: end - addresses.end,
                    ..mapping
                };
                self.0.insert(addresses.end, behind);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SplitMix64 (Steele, Lea, Flood 2014).
    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    #[test]
    fn each_page_shows_what_was_put_there_last() {
        let (mut maps, mut state) = (Maps::default(), 7);
        let mut plain: Vec<Option<(FileKey, u64)>> = vec![None; 64];
        for _ in 0..4000 {
            let first = random(&mut state) % 60;
            let count = random(&mut state) % 5;
            let range = pages(first * PAGE, count * PAGE);
            let file = FileKey((random(&mut state) % 3) as u32);
            let offset = random(&mut state) % 9 * PAGE;
            let puts = random(&mut state).is_multiple_of(2);
            if puts {
                maps.put(range, file, offset);
            } else {
                maps.take(range);
            }
            for page in first..first + count {
                let shows = (file, offset + (page - first) * PAGE);
                plain[page as usize] = puts.then_some(shows);
            }
            for (page, shows) in plain.iter().enumerate() {
                assert_eq!(maps.at(page as u64 * PAGE), *shows, "page {page}");
            }
        }
        assert!(maps.len() <= 64);
    }
}
