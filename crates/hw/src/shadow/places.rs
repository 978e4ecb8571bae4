//! Where a line sits in its color's part of the last level.
//!
//! Index functions and colors are XORs of address bits, so that all of this is linear
//! algebra over GF(2): a set is a color and a *place*, the set's number among those of
//! its color. Two sets of different colors have the same place if a page that moves
//! from one color to the other takes its line from the one to the other.

use piebald_units::{LINE_SHIFT, PAGE_SHIFT};

use crate::{
    cache::{Cache, Line},
    error::SpecError,
};

/// Bits of a line's number.
const LINE_BITS: u32 = Line::BITS;
/// Bits of it that a page's offset decides.
const IN_PAGE: u32 = PAGE_SHIFT - LINE_SHIFT;
/// Most masks: 2^12 colors, as everywhere.
const MAX_MASKS: usize = 12;

/// The place of every set that is looked at.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// By set; [`UNSEEN`] if it is not looked at.
    place: Vec<u32>,
    /// The color that each bit of a set's number stands for.
    of_bits: Vec<u32>,
    /// Places of a color, and how many of them are looked at.
    pub(super) all: u32,
    pub(super) seen: u32,
    /// 2^masks.
    pub(super) colors: u32,
}

/// Place of a set that is not looked at.
const UNSEEN: u32 = u32::MAX;

/// Images of a set of bits under index function and color: (set, color).
type Image = (u32, u32);

impl Places {
    /// For these colors, masks over frame numbers; of each group of `1 << sample_shift`
    /// neighbouring places one is looked at, drawn anew for each group.
    pub(super) fn new(cache: &Cache, colors: &[u64], sample_shift: u32) -> Result<Self, SpecError> {
        if colors.len() > MAX_MASKS {
            let allowed = format!("at most {MAX_MASKS} masks");
            return Err(SpecError::new("shadow.colors", colors.len(), allowed));
        }
        let images = images(cache, colors);
        let of_bits = colors_of_sets(cache, &images).ok_or_else(|| no_colors(colors))?;
        let moves = moves(&images, colors.len()).ok_or_else(|| no_colors(colors))?;
        let sets = cache.sets() as u32;
        let all = sets >> colors.len();
        // One place says nothing about how much places differ.
        let most = all.trailing_zeros().saturating_sub(1);
        if sample_shift > most {
            let allowed = format!("0 to {most}: a color has {all} sets, of which two are needed");
            return Err(SpecError::new("shadow.sample_shift", sample_shift, allowed));
        }
        let home = |set: u32| set ^ combine(moves.iter().copied(), parities(set, &of_bits));
        let mut place = vec![UNSEEN; sets as usize];
        let homes = (0..sets).filter(|set| home(*set) == *set);
        for (next, set) in (0u32..).zip(homes) {
            let group = next >> sample_shift;
            let drawn = draw(group) & ((1 << sample_shift) - 1);
            if next & ((1 << sample_shift) - 1) == drawn {
                place[set as usize] = group;
            }
        }
        for set in 0..sets {
            place[set as usize] = place[home(set) as usize];
        }
        Ok(Self {
            place,
            of_bits,
            all,
            seen: all >> sample_shift,
            colors: 1 << colors.len(),
        })
    }

    /// The place of a set, if it is looked at.
    #[inline]
    pub(super) fn of(&self, set: usize) -> Option<usize> {
        let place = self.place[set];
        (place != UNSEEN).then_some(place as usize)
    }

    /// The color of a set.
    pub(super) fn color(&self, set: usize) -> u32 {
        parities(set as u32, &self.of_bits)
    }
}

/// What each bit of a line's number does to set and color.
fn images(cache: &Cache, colors: &[u64]) -> Vec<Image> {
    let of = |bit: u32| {
        let frame = (1u64 << bit) >> IN_PAGE;
        let color = colors
            .iter()
            .enumerate()
            .fold(0, |all, (i, mask)| all | u32::from(mask & frame != 0) << i);
        let set = cache.set_of(1 << bit) % cache.linear_sets();
        (set as u32, color)
    };
    (0..LINE_BITS).map(of).collect()
}

/// The color that each bit of a set's number stands for; none if lines of one set can
/// have different colors.
fn colors_of_sets(cache: &Cache, images: &[Image]) -> Option<Vec<u32>> {
    let bits = cache.linear_sets().trailing_zeros() as usize;
    let (basis, clean) = reduce(images.iter().copied(), bits);
    clean.then_some(())?;
    basis.into_iter().map(|row| row.map(|(_, c)| c)).collect()
}

/// For each bit of a color, the change of set of a page whose color changes in this bit
/// alone; none if the colors are not independent.
fn moves(images: &[Image], bits: usize) -> Option<Vec<u32>> {
    let frames = images[IN_PAGE as usize..].iter();
    let (basis, _) = reduce(frames.map(|(set, color)| (*color, *set)), bits);
    basis.into_iter().map(|row| row.map(|(_, s)| s)).collect()
}

/// Gauss and Jordan: for each of the low `bits` of the first parts, the second part of a
/// combination whose first part is this bit alone, where there is one; and whether
/// combinations whose first part vanishes have no second part either.
fn reduce(rows: impl Iterator<Item = Image>, bits: usize) -> (Vec<Option<Image>>, bool) {
    let mut basis: Vec<Option<Image>> = vec![None; bits];
    let mut clean = true;
    for mut row in rows {
        for (bit, known) in basis.iter().enumerate() {
            if row.0 >> bit & 1 == 1
                && let Some(known) = known
            {
                row = (row.0 ^ known.0, row.1 ^ known.1);
            }
        }
        if row.0 == 0 {
            clean &= row.1 == 0;
            continue;
        }
        let pivot = row.0.trailing_zeros() as usize;
        for known in basis.iter_mut().flatten() {
            if known.0 >> pivot & 1 == 1 {
                *known = (known.0 ^ row.0, known.1 ^ row.1);
            }
        }
        basis[pivot] = Some(row);
    }
    (basis, clean)
}

/// The color of a set, from those of its bits.
fn parities(set: u32, of_bits: &[u32]) -> u32 {
    combine(of_bits.iter().copied(), set)
}

/// XOR of the items whose bit is set.
fn combine(items: impl Iterator<Item = u32>, chosen: u32) -> u32 {
    let with_bits = items.enumerate().filter(|(i, _)| chosen >> i & 1 == 1);
    with_bits.fold(0, |all, (_, item)| all ^ item)
}

/// A number that depends on all bits of another (SplitMix64's finaliser).
fn draw(n: u32) -> u32 {
    let mut z = u64::from(n).wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ (z >> 31)) as u32
}

fn no_colors(colors: &[u64]) -> SpecError {
    let masks: Vec<String> = colors.iter().map(|m| format!("{m:#x}")).collect();
    let allowed = "independent masks over frame numbers, each of them the parity of some bits of \
                   the last level's set number";
    SpecError::new("shadow.colors", format!("[{}]", masks.join(", ")), allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{presets, spec::CacheSpec};

    fn cache(change: impl FnOnce(&mut CacheSpec)) -> Cache {
        let mut spec = presets::load("w3540").expect("a preset").cache.remove(3);
        assert_eq!(spec.level, 3);
        change(&mut spec);
        Cache::new(&spec, "cache[3]", 1).expect("a cache")
    }

    #[test]
    fn a_plain_cache_has_the_color_above_the_place() {
        let cache = cache(|_| {});
        let masks = [1 << 3, 1 << 4, 1 << 5, 1 << 6];
        let places = Places::new(&cache, &masks, 0).expect("colors");
        assert_eq!((places.colors, places.all, places.seen), (16, 512, 512));
        for set in 0..8192 {
            assert_eq!(places.of(set), Some(set % 512));
            assert_eq!(places.color(set) as usize, set / 512);
        }
    }

    #[test]
    fn one_of_each_group_of_places_is_looked_at_and_not_always_the_same() {
        let cache = cache(|_| {});
        let masks = [1 << 3, 1 << 4, 1 << 5, 1 << 6];
        let places = Places::new(&cache, &masks, 3).expect("colors");
        assert_eq!((places.all, places.seen), (512, 64));
        let mut rests = [0; 8];
        for (group, sets) in (0..512).collect::<Vec<usize>>().chunks(8).enumerate() {
            let seen: Vec<_> = sets.iter().filter(|s| places.of(**s).is_some()).collect();
            assert_eq!(seen.len(), 1, "{group}");
            assert_eq!(places.of(*seen[0]), Some(group));
            rests[seen[0] % 8] += 1;
            for color in 1..16 {
                assert_eq!(places.of(seen[0] + 512 * color), Some(group));
            }
        }
        assert!(rests.iter().all(|n| (2..20).contains(n)), "{rests:?}");
    }

    #[test]
    fn a_page_that_changes_its_color_takes_its_lines_to_the_same_places() {
        // Two slice bits that also hash bits of the page offset and of the colors.
        let hash = ["0x2aaa8c0", "0x1555480"].map(str::to_owned);
        let cache = cache(|c| c.slice_hash = hash.to_vec());
        // Set bits 15 and 16, and a parity of both slices and offset bits, less these.
        let masks = [1 << 3, 1 << 4];
        let places = Places::new(&cache, &masks, 0).expect("colors");
        assert_eq!((places.colors, places.all), (4, 2048));
        for frame in (0..1u32 << 14).step_by(37) {
            for line in 0..64 {
                let place = |frame: u32| places.of(cache.set_of(frame << 6 | line));
                // Moved by the very bits that the colors are made of.
                for other in [frame ^ 8, frame ^ 16, frame ^ 24] {
                    assert_eq!(place(frame), place(other), "{frame} {line}");
                }
            }
        }
        let mut count = vec![0; 2048];
        (0..8192).for_each(|set| count[places.of(set).expect("seen")] += 1);
        assert!(count.iter().all(|n| *n == 4), "each place once per color");
    }

    #[test]
    fn slices_in_turn_have_each_place_in_each_of_their_colors() {
        // Five slices of 2048 sets: bits 12 to 16 of the address make colors, of which two are
        // taken, and a page that changes them stays in its slice.
        let cache = cache(|c| {
            c.slices = Some(5);
            (c.size.0, c.ways) = (5 * 2048 * 64, 1);
        });
        let masks = [1 << 3, 1 << 4];
        let places = Places::new(&cache, &masks, 0).expect("colors");
        assert_eq!((places.colors, places.all, places.seen), (4, 2560, 2560));
        for frame in (0..1u32 << 14).step_by(37) {
            for line in 0..64 {
                let set = |frame: u32| cache.set_of(frame << 6 | line);
                assert_eq!(places.color(set(frame)), frame >> 3 & 3);
                for other in [frame ^ 8, frame ^ 16, frame ^ 24] {
                    let (own, moved) = (places.of(set(frame)), places.of(set(other)));
                    assert_eq!(own, moved, "{frame} {line}");
                }
            }
        }
        let mut count = vec![0; 2560];
        (0..10240).for_each(|set| count[places.of(set).expect("seen")] += 1);
        assert!(count.iter().all(|n| *n == 4), "each place once per color");
        let sampled = Places::new(&cache, &masks, 4).expect("colors");
        assert_eq!((sampled.all, sampled.seen), (2560, 160));
        // Bit 17 picks a slice together with all bits above it.
        let error = Places::new(&cache, &[1 << 5], 0).expect_err("no color");
        assert_eq!(error.field, "shadow.colors");
    }

    #[test]
    fn what_is_no_color_of_the_cache_is_refused() {
        let cache = cache(|_| {});
        for masks in [&[1 << 7][..], &[1 << 3, 1 << 3], &[0], &[1; 13]] {
            let error = Places::new(&cache, masks, 0).expect_err("no colors");
            assert_eq!(error.field, "shadow.colors", "{masks:?}");
        }
        let masks = [1 << 3, 1 << 4, 1 << 5, 1 << 6];
        Places::new(&cache, &masks, 8).expect("two sets of each color");
        let error = Places::new(&cache, &masks, 9).expect_err("too few");
        assert_eq!(error.field, "shadow.sample_shift");
        assert!(error.allowed.starts_with("0 to 8"), "{error}");
    }
}
