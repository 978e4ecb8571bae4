//! Which pages of a very large program are looked at (section 8: "random sampling can be
//! adopted").

/// A random sample of a program's pages: one of each of so many equal parts, so that no
/// region of the program is left out. All pages if they are few enough.
///
/// The host numbers the pages that the program has mapped now, 0 and up, and walks
/// through the *slots* of the sample instead of through them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    pages: u32,
    slots: u32,
    seed: u64,
}

impl Sample {
    /// At most `limit` of `pages` pages; the same ones for the same `seed`. 2^32 pages are
    /// 16 TiB.
    pub const fn draw(pages: u32, limit: u32, seed: u64) -> Self {
        let slots = if pages < limit { pages } else { limit };
        Self { pages, slots, seed }
    }

    /// Number of slots.
    pub const fn slots(&self) -> u32 {
        self.slots
    }

    /// Number of pages that they stand for.
    pub const fn pages(&self) -> u32 {
        self.pages
    }

    /// The page of a slot; they rise. `None` for a slot that the sample does not have.
    pub const fn page(&self, slot: u32) -> Option<u32> {
        if slot >= self.slots {
            return None;
        }
        let begin = self.part(slot);
        let len = self.part(slot.saturating_add(1)).saturating_sub(begin);
        match mix(mix(self.seed) ^ slot as u64).checked_rem(len) {
            Some(into) => Some(begin.saturating_add(into) as u32),
            None => None,
        }
    }

    /// The first page of a part.
    const fn part(&self, slot: u32) -> u64 {
        let scaled = (slot as u64).saturating_mul(self.pages as u64);
        match scaled.checked_div(self.slots as u64) {
            Some(page) => page,
            None => 0,
        }
    }

    /// What a number of pages in the sample means for the program, to the nearest.
    pub const fn scale(&self, count: u32) -> u32 {
        let half = self.slots as u64 / 2;
        let pages = (count as u64)
            .saturating_mul(self.pages as u64)
            .saturating_add(half);
        match pages.checked_div(self.slots as u64) {
            Some(n) if n < u32::MAX as u64 => n as u32,
            Some(_) => u32::MAX,
            None => 0,
        }
    }
}

/// Spreads a seed over 64 bits (the last steps of SplitMix64).
const fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
