//! Which set of a cache a line goes to.
//!
//! A cache is one slice or several. Inside a slice the lowest bits of the line's number
//! pick the set, so a slice has a power of two of sets. The slice is picked by parities
//! of address bits ([`CacheSpec::slice_hash`]), or in turn: the rest of the line's number
//! modulo the number of slices, which may be any. In turn, the set is the line's number
//! modulo the number of all sets, however these are cut into slices.
//!
//! Real parts whose slices are no power of two hash the address and reduce the result by
//! a table that is not published. Taking turns keeps capacity, associativity and the
//! index inside a slice, and spreads lines over the slices evenly, as they do; it does
//! not spread the lines of a page over all slices, which they do as well.

use piebald_units::{Bytes, LINE_SHIFT};

use super::{Line, MAX_LINES};
use crate::{
    error::SpecError,
    spec::{CacheSpec, Indexing, Replacement},
};

/// Sets of one cache at most.
const MAX_SETS: u64 = 1 << 24;
/// Slices of one cache at most.
const MAX_SLICES: u64 = 1024;

/// Index function of a cache.
#[derive(Clone, Debug)]
pub(super) struct Index {
    /// Sets of one slice, less 1.
    mask: u32,
    /// All sets.
    sets: u32,
    slices: Slices,
}

/// How the slice is picked.
#[derive(Clone, Debug)]
enum Slices {
    /// There is one.
    One,
    /// Masks over the line number, one for each bit of the slice's number.
    Hashed(Vec<u32>),
    /// In turn.
    InTurn,
}

impl Index {
    /// The index function of a cache. `field` names the cache in errors.
    pub(super) fn new(spec: &CacheSpec, field: &str) -> Result<Self, SpecError> {
        let check = Check { spec, field };
        let sets = check.sets()?;
        let in_slice = spec.sets_of_slice();
        let masks = check.masks(in_slice)?;
        let slices = match masks.is_empty() {
            false => Slices::Hashed(masks),
            true if sets.is_power_of_two() => Slices::One,
            true => Slices::InTurn,
        };
        // Taking turns among a power of two of slices is taking the next bits.
        let linear = match slices {
            Slices::One => sets,
            _ => in_slice,
        };
        Ok(Self {
            mask: linear as u32 - 1,
            sets: sets as u32,
            slices,
        })
    }

    /// For a cache of any number of sets whose callers know the set of each line.
    pub(super) fn unused(sets: usize) -> Self {
        Self {
            mask: (sets as u32).saturating_sub(1),
            sets: sets as u32,
            slices: Slices::One,
        }
    }

    /// All sets.
    #[inline]
    pub(super) fn sets(&self) -> usize {
        self.sets as usize
    }

    /// Set of a line.
    #[inline]
    pub(super) fn set_of(&self, line: Line) -> usize {
        match self.slices {
            Slices::One => (line & self.mask) as usize,
            _ => self.set_in_slices(line),
        }
    }

    #[inline(never)]
    fn set_in_slices(&self, line: Line) -> usize {
        let low = line & self.mask;
        let slice = match &self.slices {
            Slices::One => 0,
            Slices::InTurn => return (line % self.sets) as usize,
            Slices::Hashed(masks) => masks
                .iter()
                .enumerate()
                .fold(0, |s, (i, mask)| s | ((line & mask).count_ones() & 1) << i),
        };
        (low + slice * (self.mask + 1)) as usize
    }

    /// The mask that alone gives the set; none if there are slices.
    #[inline]
    pub(super) fn plain_mask(&self) -> Option<u32> {
        matches!(self.slices, Slices::One).then_some(self.mask)
    }

    /// Number of sets of which a line's is an XOR of address bits: all of them, unless
    /// slices take turns, where it is the sets of one slice.
    pub(super) fn linear_sets(&self) -> usize {
        match self.slices {
            Slices::InTurn => self.mask as usize + 1,
            _ => self.sets(),
        }
    }
}

struct Check<'a> {
    spec: &'a CacheSpec,
    field: &'a str,
}

impl Check<'_> {
    fn error(&self, name: &str, value: impl ToString, allowed: impl Into<String>) -> SpecError {
        SpecError::new(format!("{}.{name}", self.field), value, allowed)
    }

    /// All sets, checked.
    fn sets(&self) -> Result<u64, SpecError> {
        let spec = self.spec;
        if !(1..=64).contains(&spec.ways) {
            return Err(self.error("ways", spec.ways, "1 to 64"));
        }
        self.slice_count()?;
        let sets = spec.sets();
        let masks = spec.slice_hash.len();
        if masks > 0 && sets.is_power_of_two() && masks as u32 >= sets.trailing_zeros() {
            return Err(self.error("slice_hash", masks, "fewer slice bits than set bits"));
        }
        let whole = (sets * u64::from(spec.ways)) << LINE_SHIFT == spec.size.0;
        let even =
            sets.is_multiple_of(spec.slice_count()) && spec.sets_of_slice().is_power_of_two();
        if !whole || !even || sets > MAX_SETS {
            return Err(self.error("size", spec.size, self.sizes(whole, sets)));
        }
        if spec.replacement == Replacement::TreePlru && !spec.ways.is_power_of_two() {
            return Err(self.error("ways", spec.ways, "a power of two for tree-plru"));
        }
        if spec.index == Indexing::Virtual && !sets.is_power_of_two() {
            let allowed = format!("physical for {sets} sets, which are no power of two");
            return Err(self.error("index", "virtual", allowed));
        }
        Ok(sets)
    }

    /// The sizes that are allowed, and how one that is not could be.
    fn sizes(&self, whole: bool, sets: u64) -> String {
        let slices = match self.spec.slices {
            Some(n) if n > 1 => format!("{n} slices x "),
            _ => String::new(),
        };
        let mut allowed =
            format!("{slices}ways x 64 B x a power of two of sets, at most 2^24 sets");
        let odd = sets >> sets.trailing_zeros().min(63);
        let could_be_sliced = (3..=MAX_SLICES).contains(&odd) && self.spec.slice_hash.is_empty();
        if whole && sets <= MAX_SETS && could_be_sliced {
            let each = sets / odd;
            allowed += &format!("; these are {sets} sets: slices = {odd} gives slices of {each}");
        }
        allowed
    }

    fn slice_count(&self) -> Result<(), SpecError> {
        let Some(n) = self.spec.slices else {
            return Ok(());
        };
        let masks = self.spec.slice_hash.len();
        if masks > 0 && u64::from(n) != self.spec.slice_count_of_hash() {
            let allowed =
                format!("1 << {masks}, as slice_hash has {masks} masks; or no slice_hash");
            return Err(self.error("slices", n, allowed));
        }
        if !(1..=MAX_SLICES).contains(&u64::from(n)) {
            return Err(self.error("slices", n, format!("1 to {MAX_SLICES}")));
        }
        Ok(())
    }

    /// The masks over line numbers.
    fn masks(&self, in_slice: u64) -> Result<Vec<u32>, SpecError> {
        let spec = self.spec;
        let mut masks = Vec::new();
        for (i, text) in spec.slice_hash.iter().enumerate() {
            masks.push(line_mask(text).ok_or_else(|| {
                let allowed = "a hexadecimal mask of address bits 6 to 37, as in 0x1b5f575440";
                self.error(&format!("slice_hash[{i}]"), text, allowed)
            })?);
        }
        if !masks.is_empty() && spec.index == Indexing::Virtual {
            return Err(self.error("index", "virtual", "physical for a hashed cache"));
        }
        if let Some(i) = dependent(&masks, in_slice as u32) {
            let allowed = format!(
                "a mask that tells slices apart by bits above {}, which the masks before it do \
                 not do: sets would stay empty",
                in_slice.trailing_zeros() + LINE_SHIFT - 1
            );
            let text = &spec.slice_hash[i];
            return Err(self.error(&format!("slice_hash[{i}]"), text, allowed));
        }
        Ok(masks)
    }
}

/// A mask over line numbers, from its written form over addresses.
fn line_mask(text: &str) -> Option<u32> {
    let mask = u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()?;
    let lines = mask >> LINE_SHIFT;
    let good = lines != 0 && lines << LINE_SHIFT == mask && lines <= MAX_LINES;
    good.then_some(lines as u32)
}

/// The first mask of a cache that tells no slices apart among addresses below `memory`,
/// though it may further up.
pub(crate) fn first_blind_mask(cache: &CacheSpec, memory: Bytes) -> Option<usize> {
    let reach = memory.0.checked_next_power_of_two().unwrap_or(0) >> LINE_SHIFT;
    let seen = |text: &String| Some(line_mask(text)? & reach.wrapping_sub(1) as u32);
    let masks: Option<Vec<u32>> = cache.slice_hash.iter().map(seen).collect();
    dependent(&masks?, (cache.sets_of_slice() as u32).max(1))
}

/// The first mask that is an XOR of those before it and of index bits of a slice of so
/// many sets.
fn dependent(masks: &[u32], in_slice: u32) -> Option<usize> {
    let mut basis: Vec<u32> = Vec::new();
    masks.iter().position(|mask| {
        let above = mask & !(in_slice - 1);
        // A basis of falling vectors with distinct highest bits.
        let rest = basis.iter().fold(above, |rest, v| rest.min(rest ^ v));
        if rest != 0 {
            basis.push(rest);
            basis.sort_unstable_by(|a, b| b.cmp(a));
        }
        rest == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;

    /// A last level with so many sets of one way, cut into slices.
    fn spec(sets: u64, slices: Option<u16>, hash: &[&str]) -> CacheSpec {
        let mut spec = presets::load("w3540").expect("a preset").cache.remove(3);
        (spec.size, spec.ways, spec.slices) = (Bytes(sets * 64), 1, slices);
        spec.slice_hash = hash.iter().map(|mask| (*mask).to_owned()).collect();
        spec
    }

    fn index(sets: u64, slices: Option<u16>, hash: &[&str]) -> Result<Index, String> {
        Index::new(&spec(sets, slices, hash), "cache[3]").map_err(|e| e.to_string())
    }

    /// Slice and set in it, from the definition: a slice has `sets / slices` consecutive
    /// lines of each stretch, and the next stretch lies in the next slice.
    fn in_turn(line: u64, sets: u64, slices: u64) -> (u64, u64) {
        let each = sets / slices;
        let (mut slice, mut rest) = (0, line);
        while rest >= each {
            rest -= each;
            slice = if slice + 1 == slices { 0 } else { slice + 1 };
        }
        (slice, rest)
    }

    #[test]
    fn each_line_has_one_set_and_sets_have_equally_many_lines() {
        for (each, slices) in [
            (16, 3),
            (8, 5),
            (1, 7),
            (64, 15),
            (4, 57),
            (2, 1023),
            (32, 20),
        ] {
            let sets = each * slices;
            let index = index(sets, Some(slices as u16), &[]).expect("an index");
            assert_eq!(index.sets() as u64, sets);
            let mut held = vec![0; sets as usize];
            for line in 0..6 * sets {
                let set = index.set_of(line as Line);
                let (slice, low) = in_turn(line, sets, slices);
                assert_eq!(
                    set as u64,
                    slice * each + low,
                    "{line} of {slices} x {each}"
                );
                held[set] += 1;
            }
            assert!(held.iter().all(|n| *n == 6), "{slices} x {each}");
            // Far up, where the rest of a division by repeated subtraction takes too long.
            for line in (Line::MAX - 5000..Line::MAX).step_by(7) {
                let far = u64::from(line) / each;
                let expected = far % slices * each + u64::from(line) % each;
                assert_eq!(index.set_of(line) as u64, expected);
            }
        }
    }

    #[test]
    fn a_power_of_two_of_slices_in_turn_is_one_linear_slice() {
        for slices in [None, Some(1), Some(2), Some(64)] {
            let index = index(4096, slices, &[]).expect("an index");
            assert_eq!(index.plain_mask(), Some(4095), "{slices:?}");
            assert_eq!(index.linear_sets(), 4096);
            assert_eq!(index.set_of(0xdead_beef), 0xeef);
        }
        assert_eq!(
            index(12, Some(3), &[]).expect("an index").plain_mask(),
            None
        );
    }

    #[test]
    fn hashed_slices_are_parities_of_address_bits() {
        let masks = ["0x1b5f575440", "0x2eb5faa880"];
        let index = index(4096, None, &masks).expect("an index");
        let mut held = vec![0; 4096];
        for line in 0..1u64 << 16 {
            let bit = |mask: u64| (0..38).filter(|b| (mask & line << 6) >> b & 1 == 1).count() % 2;
            let slice = bit(0x1b_5f57_5440) + 2 * bit(0x2e_b5fa_a880);
            let set = index.set_of(line as Line);
            assert_eq!(set, slice * 1024 + line as usize % 1024);
            held[set] += 1;
        }
        assert!(held.iter().all(|n| *n == 16));
        let counted = super::Index::new(&spec(4096, Some(4), &masks), "c").expect("as many");
        assert_eq!(counted.set_of(99_999), index.set_of(99_999));
    }

    #[test]
    fn masks_that_leave_sets_empty_are_refused() {
        // A slice of 2048 sets is indexed by address bits 6 to 16.
        let one = index(4096, None, &["0x1fc0"]).unwrap_err();
        assert!(
            one.starts_with("cache[3].slice_hash[0] = 0x1fc0: "),
            "{one}"
        );
        assert!(one.contains("above 16"), "{one}");
        let same = index(4096, None, &["0x100000", "0x100040"]).unwrap_err();
        assert!(same.contains("slice_hash[1] = 0x100040"), "{same}");
        let sum = ["0x100000", "0x200000", "0x300000"];
        assert!(
            index(4096, None, &sum)
                .unwrap_err()
                .contains("slice_hash[2]")
        );
        assert!(index(4096, None, &sum[..2]).is_ok());
    }

    #[test]
    fn shapes_that_are_none_say_what_is_allowed() {
        for (sets, slices, hash, says) in [
            (7168, None, &[][..], "slices = 7 gives slices of 1024"),
            (
                7168,
                Some(3),
                &[],
                "3 slices x ways x 64 B x a power of two",
            ),
            (7168, Some(5), &[], "slices = 7 gives"),
            (40960, Some(0), &[], "cache[3].slices = 0: 1 to 1024"),
            (2050, Some(1025), &[], "cache[3].slices = 1025: 1 to 1024"),
            (3 << 24, Some(3), &[], "at most 2^24 sets"),
            (4096, Some(3), &["0x20000"], "cache[3].slices = 3: 1 << 1"),
            (12, Some(2), &["0x20000"], "cache[3].size = 768B"),
            (
                4,
                None,
                &["0x20000", "0x40000"],
                "fewer slice bits than set bits",
            ),
        ] {
            let error = index(sets, slices, hash).map(|_| ()).unwrap_err();
            assert!(error.contains(says), "{sets} {slices:?}: {error}");
        }
        let mut odd = spec(96, Some(3), &[]);
        odd.index = Indexing::Virtual;
        let error = Index::new(&odd, "cache[0]").map(|_| ()).unwrap_err();
        assert_eq!(error.field, "cache[0].index");
        odd.index = Indexing::Physical;
        assert!(Index::new(&odd, "cache[0]").is_ok());
    }

    #[test]
    fn masks_above_the_memory_are_blind() {
        let hash = ["0x20000", "0x100000000"];
        let cache = spec(4096, None, &hash);
        let gib = |n: u64| Bytes(n * Bytes::GIB);
        assert_eq!(first_blind_mask(&cache, gib(8)), None);
        assert_eq!(first_blind_mask(&cache, gib(4)), Some(1));
        assert_eq!(first_blind_mask(&cache, Bytes(u64::MAX)), None);
        assert_eq!(first_blind_mask(&spec(4096, None, &[]), gib(4)), None);
    }
}
