//! Colour maps from what is known of a machine's caches and memory.

use super::{
    BitClass, ColorMap, MAX_BITS, MapError,
    gf2::{Basis, bit, shared},
};
use piebald_units::PAGE_SHIFT;

/// Most index functions of one cache or of memory: set bits, slice bits, bank
/// bits.
const MAX_FUNCTIONS: usize = 32;

type Functions = Basis<MAX_FUNCTIONS>;

/// Most functions that a page's number alone decides, of one cache or of memory.
const MAX_OF_FRAMES: usize = 16;

type Frames = Basis<MAX_OF_FRAMES>;
/// Those of the L2 and of the colour bits together.
type Taken = Basis<{ MAX_OF_FRAMES + MAX_BITS }>;

/// How a physically indexed cache finds a line's set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexedCache<'a> {
    /// Line size in bytes, a power of two, 16 to 4096.
    pub line: u64,
    /// Sets of one slice, a power of two, 1 to 2^24: selected by the address bits
    /// above the line offset.
    pub sets: u64,
    /// Masks over the physical *address* whose parities are the bits of the
    /// slice number; empty for a cache in one piece. At most 8.
    pub slices: &'a [u64],
}

/// What decides about colours in a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry<'a> {
    /// The shared last-level cache; `None` colours by memory alone.
    pub llc: Option<IndexedCache<'a>>,
    /// The private second-level cache, if there is one.
    pub l2: Option<IndexedCache<'a>>,
    /// Masks over the physical *address* whose parities select channel, rank and
    /// bank; a plain bank bit has one bit. At most 16. Interleaves that are not
    /// a power of two are no colours and have no place here.
    pub banks: &'a [u64],
}

/// What becomes of colour bits that also index a private L2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PrivateL2 {
    /// Left out, so that every colour set keeps the whole L2 (Rainbow, section
    /// 4.3.2).
    #[default]
    Exclude,
    /// Kept, as SRM-buffer and HVR do: more colours, and each has a part of L2.
    Keep,
}

impl ColorMap {
    /// The colours that a machine's last-level cache and memory have.
    ///
    /// For each of the two, a page's colour is what the page's address fixes of
    /// its index functions, whatever the offset in the page: those XORs of the
    /// functions that involve no bit below 12. A channel bit `6 ^ 16` alone is no
    /// colour, since both channels occur in every page; a slice bit `6 ^ 17` of a
    /// cache with set bit 6 is one (bit 17).
    ///
    /// With [`PrivateL2::Exclude`] no XOR of the map's bits is a function of the
    /// L2 set alone. Colour bits come sorted by their lowest frame bit, classified
    /// as C, B or O. A machine may have none: the map then has one colour.
    ///
    /// # Errors
    /// Names the field that is out of range, or says that there are more than 12
    /// colour bits, or more than 16 in one cache or in memory.
    pub fn from_geometry(g: &Geometry<'_>, l2: PrivateL2) -> Result<Self, MapError> {
        let mut map = Self::PLAIN;
        fill(&mut map, g, l2)?;
        Ok(map)
    }

    /// The same in place, where a stack is too small to return a map by value.
    ///
    /// # Errors
    /// As for [`ColorMap::from_geometry`]; the map is [`ColorMap::PLAIN`] then.
    pub fn set_from_geometry(&mut self, g: &Geometry<'_>, l2: PrivateL2) -> Result<(), MapError> {
        *self = Self::PLAIN;
        fill(self, g, l2).inspect_err(|_| *self = Self::PLAIN)
    }
}

/// Makes `map`, which is still plain, the map of a geometry.
#[inline(never)]
fn fill(map: &mut ColorMap, g: &Geometry<'_>, l2: PrivateL2) -> Result<(), MapError> {
    let mut chosen = [(0u64, BitClass::Unknown); MAX_BITS];
    let found = choose(g, l2, &mut chosen)?;
    map.set_masks(chosen.get(..found).unwrap_or(&[]))?;
    map.derive();
    Ok(())
}

/// Fills `chosen` with independent frame masks and answers how many.
#[inline(never)]
fn choose(
    g: &Geometry<'_>,
    l2: PrivateL2,
    chosen: &mut [(u64, BitClass); MAX_BITS],
) -> Result<usize, MapError> {
    let mut cache = Frames::EMPTY;
    let mut banks = Frames::EMPTY;
    // What is spanned by the colour bits so far and by the L2's own.
    let mut taken = Taken::EMPTY;
    if let Some(llc) = &g.llc {
        cache_functions("llc", llc, &mut cache)?;
    }
    bank_functions(g.banks, &mut banks)?;
    if let (PrivateL2::Exclude, Some(l2)) = (l2, &g.l2) {
        exclude(l2, &mut taken)?;
    }
    let mut found = 0;
    take_shared(&cache, &banks, &mut taken, chosen, &mut found)?;
    take(&cache, BitClass::Cache, &mut taken, chosen, &mut found)?;
    take(&banks, BitClass::Bank, &mut taken, chosen, &mut found)?;
    sort(chosen.get_mut(..found).unwrap_or(&mut []));
    Ok(found)
}

/// Puts the L2's functions among those that are taken.
#[inline(never)]
fn exclude(l2: &IndexedCache<'_>, taken: &mut Taken) -> Result<(), MapError> {
    let mut functions = Frames::EMPTY;
    cache_functions("l2", l2, &mut functions)?;
    for row in functions.rows() {
        taken.insert(*row);
    }
    Ok(())
}

#[inline(never)]
fn take_shared(
    cache: &Frames,
    banks: &Frames,
    taken: &mut Taken,
    chosen: &mut [(u64, BitClass); MAX_BITS],
    found: &mut usize,
) -> Result<(), MapError> {
    take(&shared(cache, banks), BitClass::Both, taken, chosen, found)
}

/// Adds those functions that say something new.
fn take(
    from: &Frames,
    class: BitClass,
    taken: &mut Taken,
    chosen: &mut [(u64, BitClass); MAX_BITS],
    found: &mut usize,
) -> Result<(), MapError> {
    for row in from.rows() {
        if taken.insert(*row) {
            let slot = chosen.get_mut(*found).ok_or(MapError::TooManyBits)?;
            *slot = (*row, class);
            *found = found.saturating_add(1);
        }
    }
    Ok(())
}

/// Insertion sort by the lowest frame bit; the masks differ in it or not at all.
fn sort(masks: &mut [(u64, BitClass)]) {
    for i in 1..masks.len() {
        for j in (1..=i).rev() {
            let Some([a, b]) = masks.get_mut(j.wrapping_sub(1)..=j) else {
                break;
            };
            if (a.0.trailing_zeros(), a.0) <= (b.0.trailing_zeros(), b.0) {
                break;
            }
            core::mem::swap(a, b);
        }
    }
}

/// The page colours that a cache's set and slice number have.
#[inline(never)]
fn cache_functions(
    name: &'static str,
    cache: &IndexedCache<'_>,
    out: &mut Frames,
) -> Result<(), MapError> {
    let geometry = |part, value, allowed| {
        let field = match (name, part) {
            ("l2", "line") => "l2.line",
            ("l2", "sets") => "l2.sets",
            ("l2", _) => "l2.slices",
            (_, "line") => "llc.line",
            (_, "sets") => "llc.sets",
            _ => "llc.slices",
        };
        Err(MapError::Geometry {
            field,
            value,
            allowed,
        })
    };
    if !cache.line.is_power_of_two() || !(16..=4096).contains(&cache.line) {
        return geometry("line", cache.line, "a power of two, 0x10 to 0x1000 bytes");
    }
    if !cache.sets.is_power_of_two() || cache.sets > 1 << 24 {
        return geometry("sets", cache.sets, "a power of two, 0x1 to 0x1000000");
    }
    if cache.slices.len() > 8 {
        let found = cache.slices.len() as u64;
        return geometry("slices", found, "at most 0x8 masks");
    }
    let mut functions = Functions::EMPTY;
    let first = cache.line.trailing_zeros();
    for n in first..first.wrapping_add(cache.sets.trailing_zeros()) {
        functions.insert(bit(n));
    }
    for mask in cache.slices {
        functions.insert(*mask);
    }
    of_frames(&functions, out)
}

/// The page colours that channel, rank and bank numbers have.
#[inline(never)]
fn bank_functions(banks: &[u64], out: &mut Frames) -> Result<(), MapError> {
    if banks.len() > 16 {
        return Err(MapError::Geometry {
            field: "banks",
            value: banks.len() as u64,
            allowed: "at most 0x10 masks",
        });
    }
    let mut functions = Functions::EMPTY;
    for mask in banks {
        functions.insert(*mask);
    }
    of_frames(&functions, out)
}

/// Keeps the XORs of address functions that involve no bit inside the page.
fn of_frames(functions: &Functions, out: &mut Frames) -> Result<(), MapError> {
    for row in functions.rows() {
        if row.trailing_zeros() >= PAGE_SHIFT && !out.insert(row >> PAGE_SHIFT) {
            return Err(MapError::TooManyBits);
        }
    }
    Ok(())
}
