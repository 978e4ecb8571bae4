//! From a colour back to frames: the next, the previous and the nearest.

use piebald_units::{Color, Pfn};

use super::{
    ColorMap,
    gf2::{Bits, bit},
};

impl ColorMap {
    /// The lowest frame at or above `from` that has a colour; `None` if the map
    /// lacks the colour or frame numbers end first. Exact, in at most 64 steps.
    pub fn next_frame(&self, from: Pfn, color: Color) -> Option<Pfn> {
        let want = self.wanted(color)?;
        if self.index(from) == want {
            return Some(from);
        }
        // The answer agrees with `from` above some clear bit, has that bit set,
        // and is least below it. The lower the bit, the lower the frame.
        Bits(!from.0).find_map(|n| {
            let first = from.0 >> n << n | bit(n);
            Some(Pfn(
                first | self.completion(n, self.index(Pfn(first)) ^ want)?
            ))
        })
    }

    /// The highest frame at or below `from` that has a colour; `None` if there is
    /// none or the map lacks the colour. Exact, in at most 64 steps.
    pub fn previous_frame(&self, from: Pfn, color: Color) -> Option<Pfn> {
        let want = self.wanted(color)?;
        if self.index(from) == want {
            return Some(from);
        }
        // As above, upside down: all ones below the bit, less the least change.
        Bits(from.0).find_map(|n| {
            let last = (from.0 >> n << n ^ bit(n)) | bit(n).wrapping_sub(1);
            Some(Pfn(last ^ self.completion(n, self.index(Pfn(last)) ^ want)?))
        })
    }

    /// The frame nearest to `from` that has a colour, the lower of two equally
    /// near; `None` if the map lacks the colour. Exact, in at most 128 steps.
    pub fn nearest_frame(&self, from: Pfn, color: Color) -> Option<Pfn> {
        let below = self.previous_frame(from, color);
        let above = self.next_frame(from, color);
        match (below, above) {
            (Some(b), Some(a)) => Some(match a.0.wrapping_sub(from.0) < from.0.wrapping_sub(b.0) {
                true => a,
                false => b,
            }),
            (one, other) => one.or(other),
        }
    }

    /// The index of a colour that the map has.
    fn wanted(&self, color: Color) -> Option<u16> {
        (u32::from(color.0) < self.colors()).then(|| self.index_of(color))
    }

    /// The least number below 2^n with this index. Any number differs from the
    /// one made of pivot bits by one whose top bit is no pivot, and is larger.
    fn completion(&self, n: u32, index: u16) -> Option<u64> {
        if u64::from(index) >> self.rank_below(n) != 0 {
            return None;
        }
        Some(Bits(u64::from(index)).fold(0, |sum, i| {
            let pivot = self.pivots.get(i as usize).copied().unwrap_or(0);
            sum | bit(u32::from(pivot))
        }))
    }
}
