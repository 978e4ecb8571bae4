//! The free memory that a run begins with.
//!
//! A program with few colours leaves frames of these free, and what lies between them in use. The kernel takes such
//! small pieces first. So the next run would get the same frames again, whatever its mode, and the two would differ by less than the modes do.

use std::{fs, path::Path};

use memmap2::{Advice, MmapMut};
use piebald_policy::color_map::ColorMap;
use piebald_units::{PAGE_SIZE, Pfn};

use crate::{
    group::Groups,
    probe::{available_bytes, frames_at},
    sys,
};

/// Least memory that is taken at once, in bytes.
const LEAST_BYTES: u64 = 16 << 20;
/// Parts of it that are looked at, at least.
const PARTS: u64 = 4;

/// Frames that nobody is to get during a run. They are free again when this goes.
pub(crate) struct Ground {
    _held: Vec<MmapMut>,
    /// What lies on top has all colours alike, as far as that was asked for.
    pub(crate) is_level: bool,
}

impl Ground {
    /// Takes memory on each processor and gives it back, so that what lies on top of the kernel's lists is what was given
    /// back here: twice as much as the largest run had. With a map, that has all colours alike: what has not is kept, and more is taken.
    ///
    /// Taken is no more than half of what is available beside the largest run, to the computer and to this process's control group. Where that does not reach, or this process may not
    /// know its frames, the run begins with what there is.
    pub(crate) fn level(root: &Path, map: Option<&ColorMap>, largest_bytes: u64) -> Self {
        let meminfo = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
        let room = Groups::find(root).ok().and_then(|groups| groups.room());
        let available = available_bytes(&meminfo)
            .into_iter()
            .chain(room)
            .min()
            .unwrap_or(0);
        let most = available.saturating_sub(largest_bytes) / 2;
        let parts = map.map_or(0, |map| PARTS * part_of(map) as u64 * PAGE_SIZE);
        let least = parts.max(LEAST_BYTES);
        let wanted = largest_bytes.saturating_mul(2).max(least);
        Self::by(most, wanted, &|memory| match map {
            None => Some(true),
            Some(map) => is_even(root, memory, map),
        })
    }

    /// Takes so many bytes at a time until some are even, on each processor, and gives these back. All that is kept is
    /// `most` bytes or less. `is_even` may not know.
    fn by(most: u64, wanted: u64, is_even: &dyn Fn(&MmapMut) -> Option<bool>) -> Self {
        let (mut left, mut held, mut is_level) = (most, Vec::new(), true);
        sys::on_each_processor(|| {
            loop {
                let memory = taken(wanted.min(left));
                let found = memory.as_ref().and_then(is_even);
                if let (Some(memory), Some(false)) = (memory, found) {
                    left = left.saturating_sub(memory.len() as u64);
                    held.push(memory);
                } else {
                    is_level &= found.is_some();
                    break;
                }
            }
        });
        Self {
            _held: held,
            is_level,
        }
    }
}

/// New pages of the usual size, each written to; none if there is no memory.
fn taken(bytes: u64) -> Option<MmapMut> {
    let bytes = (bytes / PAGE_SIZE * PAGE_SIZE) as usize;
    let mut memory = MmapMut::map_anon(bytes).ok().filter(|_| bytes > 0)?;
    // A kernel without huge pages refuses, which is as good. A child that has these pages too would seem to be as large.
    let _ = memory.advise(Advice::NoHugePage);
    memory.advise(Advice::DontFork).ok()?;
    memory
        .iter_mut()
        .step_by(PAGE_SIZE as usize)
        .for_each(|byte| *byte = 1);
    Some(memory)
}

/// Has each part of it all colours alike? None: it is less than a part, or its frames are not told.
fn is_even(root: &Path, memory: &MmapMut, map: &ColorMap) -> Option<bool> {
    let (pages, part) = (memory.len() / PAGE_SIZE as usize, part_of(map));
    let frames = frames_at(root, memory.as_ptr() as u64, pages);
    let frames = frames.ok().filter(|frames| frames.len() >= part)?;
    Some(frames.chunks_exact(part).all(|part| is_alike(part, map)))
}

/// Frames of a part: so many that random ones are alike, in all but one part in a million.
fn part_of(map: &ColorMap) -> usize {
    (64 * map.colors() as usize).max(1024)
}

/// Would an eighth of these frames, or fewer, have to be of other colours for all to be as frequent?
fn is_alike(frames: &[u64], map: &ColorMap) -> bool {
    let mut count = vec![0u64; map.colors() as usize];
    for frame in frames {
        count[usize::from(map.color(Pfn(*frame)).0)] += 1;
    }
    let share = frames.len() as u64 / u64::from(map.colors());
    let beyond: u64 = count.iter().map(|n| n.saturating_sub(share)).sum();
    beyond * 8 <= frames.len() as u64
}

#[cfg(test)]
mod tests {
    use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};

    use super::*;

    fn map(lines: &str) -> ColorMap {
        ColorMap::from_text(lines).expect("a map").map
    }

    #[test]
    fn random_frames_and_blocks_are_alike_and_pieces_of_few_colours_are_not() {
        let mut draws = SmallRng::seed_from_u64(7);
        for lines in ["12\n", "12\n13\n14\n15\n", "12 18\n13\n14\n15\n16\n17\n"] {
            let map = map(lines);
            let part = part_of(&map);
            for _ in 0..2000 {
                let random: Vec<u64> = (0..part).map(|_| draws.random_range(0..1 << 20)).collect();
                assert!(is_alike(&random, &map), "{lines:?}");
            }
            let block: Vec<u64> = (4096..).take(part).collect();
            assert!(is_alike(&block, &map), "{lines:?}");
            // A third of them have the first of the colours.
            let pieces = |at: usize, frame: u64| {
                if at.is_multiple_of(3) {
                    frame << 12
                } else {
                    frame
                }
            };
            let some: Vec<u64> = block
                .iter()
                .enumerate()
                .map(|(at, f)| pieces(at, *f))
                .collect();
            assert!(!is_alike(&some, &map), "{lines:?}");
        }
    }

    #[test]
    fn what_is_even_is_given_back_and_no_more_is_kept_than_may_be() {
        let kept = |most, is_even: &dyn Fn(&MmapMut) -> Option<bool>| {
            let ground = Ground::by(most, 40 * PAGE_SIZE, is_even);
            let pages = |memory: &MmapMut| memory.len() / PAGE_SIZE as usize;
            let sizes: Vec<usize> = ground._held.iter().map(pages).collect();
            (sizes, ground.is_level)
        };
        assert_eq!(kept(1 << 30, &|_| Some(true)), (vec![], true));
        // What is left at the end is taken as well.
        assert_eq!(
            kept(100 * PAGE_SIZE + 1, &|_| Some(false)),
            (vec![40, 40, 20], false)
        );
        assert_eq!(kept(0, &|_| Some(true)), (vec![], false));
        assert_eq!(kept(1 << 30, &|_| None), (vec![], false));
        let looks = std::cell::Cell::new(0);
        let third = |_: &MmapMut| {
            looks.set(looks.get() + 1);
            Some(looks.get() >= 3)
        };
        assert_eq!(kept(1 << 30, &third), (vec![40, 40], true));
    }

    #[test]
    fn a_process_that_may_not_know_its_frames_keeps_none_and_says_so() {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(root.path().join("proc/self")).expect("made");
        let write = |path: &str, text: &str| {
            std::fs::write(root.path().join(path), text).expect("written");
        };
        write("proc/meminfo", "MemTotal: 1 kB\nMemAvailable: 409600 kB\n");
        write("proc/self/pagemap", "");
        let map = map("12\n13\n14\n15\n");
        let ground = Ground::level(root.path(), Some(&map), 0);
        assert!(ground._held.is_empty() && !ground.is_level);
        assert!(Ground::level(root.path(), None, 0).is_level);
    }
}
