//! Linear algebra over GF(2), as far as colour maps need it: vectors are the
//! bits of a word, addition is XOR.

use super::MAX_BITS;

/// The bit `n` of a word; 0 beyond the word.
pub(super) const fn bit(n: u32) -> u64 {
    match 1u64.checked_shl(n) {
        Some(bit) => bit,
        None => 0,
    }
}

/// The lowest bit of a vector; 0 for the zero vector.
const fn lowest(v: u64) -> u64 {
    v & v.wrapping_neg()
}

/// The set bits of a word, from low to high.
#[derive(Clone)]
pub(super) struct Bits(pub(super) u64);

impl Iterator for Bits {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        if self.0 == 0 {
            return None;
        }
        let at = self.0.trailing_zeros();
        self.0 &= self.0.wrapping_sub(1);
        Some(at)
    }
}

/// A basis of a space of at most `N` dimensions, fully reduced: the lowest bit
/// of each row occurs in no other row.
///
/// A consequence that this module lives on: a sum of rows has no bit below
/// *b* exactly if each of its rows has none. So the functions of frame numbers
/// alone within a space of functions of addresses are spanned by the rows whose
/// lowest bit lies above the page offset.
#[derive(Clone)]
pub(super) struct Basis<const N: usize> {
    rows: [u64; N],
    len: usize,
}

impl<const N: usize> Basis<N> {
    pub(super) const EMPTY: Self = Self {
        rows: [0; N],
        len: 0,
    };

    /// The rows, in the order of their insertion.
    pub(super) fn rows(&self) -> &[u64] {
        self.rows.get(..self.len).unwrap_or(&[])
    }

    pub(super) const fn is_full(&self) -> bool {
        self.len >= N
    }

    /// What is left of a vector modulo the space; 0 exactly if it lies within.
    pub(super) fn reduce(&self, vector: u64) -> u64 {
        self.rows().iter().fold(
            vector,
            |v, row| {
                if v & lowest(*row) == 0 { v } else { v ^ row }
            },
        )
    }

    /// Enlarges the space by a vector. False, and nothing changes, if the
    /// vector lies within already or `N` rows are there.
    pub(super) fn insert(&mut self, vector: u64) -> bool {
        let v = self.reduce(vector);
        if v == 0 || self.is_full() {
            return false;
        }
        for row in self.rows.iter_mut().take(self.len) {
            if *row & lowest(v) != 0 {
                *row ^= v;
            }
        }
        if let Some(row) = self.rows.get_mut(self.len) {
            *row = v;
        }
        self.len = self.len.saturating_add(1);
        true
    }
}

/// A basis of the vectors that two spaces share. `N` bounds either.
pub(super) fn shared<const N: usize>(a: &Basis<N>, b: &Basis<N>) -> Basis<N> {
    // Each vector of `b` beside what is left of it modulo `a`. Sums of vectors
    // whose remainders cancel lie in both spaces.
    let mut remainders = [(0u64, 0u64); N];
    let mut common = Basis::EMPTY;
    let mut len = 0usize;
    for row in b.rows() {
        let (mut rest, mut vector) = (a.reduce(*row), *row);
        for (r, v) in remainders.iter().take(len) {
            if rest & lowest(*r) != 0 {
                (rest, vector) = (rest ^ r, vector ^ v);
            }
        }
        if rest == 0 {
            common.insert(vector);
        } else if let Some(slot) = remainders.get_mut(len) {
            *slot = (rest, vector);
            len = len.saturating_add(1);
        }
    }
    common
}

/// Most shifts that [`Linear`] evaluates one by one.
const MAX_TERMS: usize = 6;

/// Input bits that keep their distance to the output bits that they feed.
#[derive(Clone, Copy, Default)]
struct Term {
    rotate: u8,
    mask: u16,
}

/// A linear function from words to at most 12 bits.
///
/// Output bit *i* is the parity of `word & masks[i]`. Input bits with the same
/// distance to their output bit are taken together in one shift; a plain
/// "colour is bits 15-18" is one shift and one AND. A function with more than
/// six distances (a hashed last-level cache) is evaluated mask by mask.
#[derive(Clone)]
pub(super) struct Linear {
    masks: [u64; MAX_BITS],
    len: u8,
    terms: [Term; MAX_TERMS],
    nr_terms: u8,
    /// The terms do not suffice.
    hashed: bool,
}

impl Linear {
    pub(super) const ZERO: Self = Self {
        masks: [0; MAX_BITS],
        len: 0,
        terms: [Term { rotate: 0, mask: 0 }; MAX_TERMS],
        nr_terms: 0,
        hashed: false,
    };

    /// Adds an output bit; false if there are 12.
    pub(super) fn push(&mut self, mask: u64) -> bool {
        let Some(slot) = self.masks.get_mut(usize::from(self.len)) else {
            return false;
        };
        *slot = mask;
        for from in Bits(mask) {
            self.add_term(from);
        }
        self.len = self.len.saturating_add(1);
        true
    }

    /// Adds the term that takes input bit `from` to the next output bit.
    fn add_term(&mut self, from: u32) {
        let rotate = (from.wrapping_sub(u32::from(self.len)) & 63) as u8;
        let bit = bit(u32::from(self.len)) as u16;
        let used = usize::from(self.nr_terms);
        let known = self.terms.iter_mut().take(used);
        if let Some(term) = known.into_iter().find(|t| t.rotate == rotate) {
            term.mask |= bit;
        } else if let Some(term) = self.terms.get_mut(used) {
            *term = Term { rotate, mask: bit };
            self.nr_terms = self.nr_terms.saturating_add(1);
        } else {
            self.hashed = true;
        }
    }

    pub(super) fn masks(&self) -> &[u64] {
        self.masks.get(..usize::from(self.len)).unwrap_or(&[])
    }

    pub(super) fn mask(&self, i: u32) -> u64 {
        self.masks().get(i as usize).copied().unwrap_or(0)
    }

    #[inline]
    pub(super) fn eval(&self, word: u64) -> u16 {
        if self.hashed {
            return self.eval_hashed(word);
        }
        let terms = self.terms.iter().take(usize::from(self.nr_terms));
        terms.fold(0, |sum, t| {
            sum ^ word.rotate_right(u32::from(t.rotate)) as u16 & t.mask
        })
    }

    /// The function as one rotation to the right and one AND, if it is that
    /// simple.
    pub(super) fn as_shift(&self) -> Option<(u8, u16)> {
        match (self.hashed, self.nr_terms, self.terms) {
            (false, 0, _) => Some((0, 0)),
            (false, 1, [t, ..]) => Some((t.rotate, t.mask)),
            _ => None,
        }
    }

    fn eval_hashed(&self, word: u64) -> u16 {
        let masks = self.masks().iter().rev();
        masks.fold(0, |sum, mask| {
            sum << 1 | ((word & mask).count_ones() & 1) as u16
        })
    }

    /// The image of input bit `n`.
    pub(super) fn column(&self, n: u32) -> u16 {
        let masks = self.masks().iter().rev();
        masks.fold(0, |sum, mask| sum << 1 | (mask >> (n & 63) & 1) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_basis_refuses_what_lies_within_it() {
        let mut basis = Basis::<4>::EMPTY;
        assert!(basis.insert(0b0110) && basis.insert(0b0011));
        assert!(!basis.insert(0b0101), "the sum of the two");
        assert!(basis.insert(0b1000) && basis.insert(0b0001));
        assert!(!basis.insert(1 << 20), "four rows are all it holds");
        assert!((0..16).all(|v| basis.reduce(v) == 0));
        assert_ne!(basis.reduce(1 << 20), 0);
    }

    #[test]
    fn shared_vectors_are_those_in_both_spaces() {
        let span = |rows: &[u64]| {
            let mut basis = Basis::<8>::EMPTY;
            for row in rows {
                basis.insert(*row);
            }
            basis
        };
        let a = span(&[0b00011, 0b00100, 0b11000]);
        let b = span(&[0b00111, 0b01000, 0b10000, 0b00001]);
        let both = shared(&a, &b);
        for v in 0..32 {
            let expected = a.reduce(v) == 0 && b.reduce(v) == 0;
            assert_eq!(both.reduce(v) == 0, expected, "{v:05b}");
        }
    }

    #[test]
    fn both_ways_to_evaluate_agree() {
        let mut linear = Linear::ZERO;
        for mask in [0b101, 1 << 63 | 1, 0xffff_0000, 1 << 20, 7 << 40] {
            assert!(linear.push(mask));
        }
        assert!(linear.hashed);
        let mut plain = Linear::ZERO;
        for i in 0..4 {
            plain.push(0b1_0001 << i << 3);
        }
        assert!(!plain.hashed && plain.nr_terms == 2);
        for word in [0, 1, u64::MAX, 0x1234_5678_9abc_def0, 1 << 63, 0b1010 << 3] {
            assert_eq!(plain.eval(word), plain.eval_hashed(word), "{word:#x}");
            let by_columns = Bits(word).fold(0, |sum, n| sum ^ linear.column(n));
            assert_eq!(linear.eval(word), by_columns, "{word:#x}");
        }
    }
}
