//! The sets of colours that blocks contain: cosets, as words of 64 colours.

use piebald_units::{Color, ColorSet};

use super::{
    MAX_BITS,
    gf2::{Basis, Bits, bit},
};

/// The colours of one kind of block, as 64-bit words of a set.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// The colours below 64 of the block kind that contains colour 0.
    pattern: u64,
    /// What leads from one word of the set to the others; the first `nr_high`.
    high: [u16; 6],
    nr_high: u8,
    /// `pattern` is an unbroken run of ones, so moving it is a shift.
    run: bool,
    /// If it is, the bits of a colour, below 64, that say where another begins.
    place: u16,
}

impl Shape {
    pub(super) const POINT: Self = Self {
        pattern: 1,
        high: [0; 6],
        nr_high: 0,
        run: true,
        place: 63,
    };

    /// The space spanned by colours.
    pub(super) fn span(vectors: impl Iterator<Item = u16>) -> Self {
        // Word number first, so that reduced rows without one stay in a word.
        let swap = |v: u64| v >> 6 & 63 | (v & 63) << 6;
        let mut basis = Basis::<MAX_BITS>::EMPTY;
        for v in vectors {
            basis.insert(swap(u64::from(v)));
        }
        let mut shape = Self::POINT;
        for row in basis.rows().iter().map(|row| swap(*row)) {
            if row < 64 {
                shape.pattern |= translate(shape.pattern, row as u16);
            } else if let Some(slot) = shape.high.get_mut(usize::from(shape.nr_high)) {
                *slot = row as u16;
                shape.nr_high = shape.nr_high.saturating_add(1);
            }
        }
        shape.run = shape.pattern & shape.pattern.wrapping_add(1) == 0;
        shape.place = 63 & !(shape.pattern.count_ones().wrapping_sub(1) as u16);
        shape
    }

    /// If every coset is one unbroken run within one word: the pattern of the
    /// first, and which bits of a colour say where another begins.
    pub(super) fn as_run(&self) -> Option<(u64, u16)> {
        (self.run && self.nr_high == 0).then_some((self.pattern, self.place))
    }

    /// Calls `visit` with each word of the coset of `color`: at most 64 times.
    #[inline]
    pub(super) fn visit(&self, color: Color, mut visit: impl FnMut(usize, u64)) {
        let low = color.0 & 63;
        let mut mask = match self.run {
            true => self.pattern.wrapping_shl(u32::from(low & self.place)),
            false => translate(self.pattern, low),
        };
        let mut word = color.0 >> 6;
        visit(usize::from(word), mask);
        // Gray code: step n differs from the last in one vector.
        for n in 1..bit(u32::from(self.nr_high)) {
            let at = n.trailing_zeros() as usize;
            let step = self.high.get(at).copied().unwrap_or(0);
            word ^= step >> 6;
            if step & 63 != 0 {
                mask = translate(mask, step & 63);
            }
            visit(usize::from(word), mask);
        }
    }

    /// Keeps the elements of a set whose whole coset lies in it; the set has no
    /// more than `words` words.
    #[inline(never)]
    pub(super) fn erode(&self, words: usize, set: &mut ColorSet) {
        for word in 0..words {
            set.set_word(word, kept(self, set.word(word)));
        }
        for step in self.high.iter().take(usize::from(self.nr_high)) {
            fold_words(words, *step, set);
        }
    }
}

/// Moves bit *i* of a word to bit `i ^ x`, for x below 64.
const fn translate(mut word: u64, x: u16) -> u64 {
    /// The bits whose number has bit 0, 1, ... clear.
    const EVEN: [u64; 6] = [
        0x5555_5555_5555_5555,
        0x3333_3333_3333_3333,
        0x0f0f_0f0f_0f0f_0f0f,
        0x00ff_00ff_00ff_00ff,
        0x0000_ffff_0000_ffff,
        0x0000_0000_ffff_ffff,
    ];
    if x & 1 != 0 {
        word = (word & EVEN[0]) << 1 | word >> 1 & EVEN[0];
    }
    if x & 2 != 0 {
        word = (word & EVEN[1]) << 2 | word >> 2 & EVEN[1];
    }
    if x & 4 != 0 {
        word = (word & EVEN[2]) << 4 | word >> 4 & EVEN[2];
    }
    if x & 8 != 0 {
        word = (word & EVEN[3]) << 8 | word >> 8 & EVEN[3];
    }
    if x & 16 != 0 {
        word = (word & EVEN[4]) << 16 | word >> 16 & EVEN[4];
    }
    if x & 32 != 0 {
        word = (word & EVEN[5]) << 32 | word >> 32 & EVEN[5];
    }
    word
}

/// The bits of a word whose whole pattern is set.
fn kept(shape: &Shape, word: u64) -> u64 {
    // A bit stays if all its partners stay. In a run the partners at distance 1,
    // 2, 4 ... lead to all others; any other pattern is checked bit by bit.
    Bits(shape.pattern)
        .filter(|x| !shape.run || x.is_power_of_two())
        .fold(word, |w, x| w & translate(w, x as u16))
}

/// Keeps what is set in both words that `step` relates, for each pair.
fn fold_words(words: usize, step: u16, set: &mut ColorSet) {
    let across = usize::from(step >> 6);
    for word in 0..words {
        let other = word ^ across;
        if other > word {
            let both = set.word(word) & translate(set.word(other), step & 63);
            set.set_word(word, both);
            set.set_word(other, translate(both, step & 63));
        }
    }
}
