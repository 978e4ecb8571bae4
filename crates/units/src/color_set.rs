//! Sets of page colours.

use core::{fmt, str::FromStr};

use crate::{Color, number::ParseError};

/// Number of colours that a set can hold: 2^12.
pub const MAX_COLORS: usize = 4096;

const WORDS: usize = MAX_COLORS / 64;

/// A set of page colours: a two-level bitmap of 520 bytes, so pass it by
/// reference where the stack is small.
///
/// Reads and prints `0-3,8`; the empty set prints as `none` and `none` is read
/// as the empty set.
#[derive(Clone, PartialEq, Eq)]
pub struct ColorSet {
    /// Bit `w` is set exactly if `words[w]` is not zero.
    summary: u64,
    words: [u64; WORDS],
}

impl ColorSet {
    /// The set without colours.
    pub const EMPTY: Self = Self {
        summary: 0,
        words: [0; WORDS],
    };

    /// The set of the first `n` colours; `n` above 4096 gives all 4096.
    pub fn first(n: u32) -> Self {
        let mut set = Self::EMPTY;
        for c in 0..n.min(MAX_COLORS as u32) {
            set.insert(Color(c as u16));
        }
        set
    }

    /// Adds a colour. Returns false, and changes nothing, if it is 4096 or more.
    pub fn insert(&mut self, color: Color) -> bool {
        let Some(word) = self.words.get_mut(usize::from(color.0) / 64) else {
            return false;
        };
        *word |= 1 << (color.0 % 64);
        self.summary |= 1 << (color.0 / 64);
        true
    }

    /// Removes a colour, if it is there.
    pub fn remove(&mut self, color: Color) {
        if let Some(word) = self.words.get_mut(usize::from(color.0) / 64) {
            *word &= !(1 << (color.0 % 64));
            if *word == 0 {
                self.summary &= !(1 << (color.0 / 64));
            }
        }
    }

    /// Is the colour in the set?
    pub fn contains(&self, color: Color) -> bool {
        self.words
            .get(usize::from(color.0) / 64)
            .is_some_and(|w| w >> (color.0 % 64) & 1 == 1)
    }

    /// True if no colour is in the set.
    pub const fn is_empty(&self) -> bool {
        self.summary == 0
    }

    /// Number of colours in the set.
    pub fn len(&self) -> u32 {
        let (mut later, mut len) = (self.summary, 0);
        while later != 0 {
            len += self.word(later.trailing_zeros() as usize).count_ones();
            later &= later.wrapping_sub(1);
        }
        len
    }

    /// The 64 colours starting at `64 * index` as a bitmap, 0 beyond the end.
    pub fn word(&self, index: usize) -> u64 {
        self.words.get(index).copied().unwrap_or(0)
    }

    /// Adds all colours of `mask`, a bitmap of the 64 colours from `64 * index`
    /// on. Words beyond the end hold nothing.
    pub fn insert_word(&mut self, index: usize, mask: u64) {
        self.set_word(index, self.word(index) | mask);
    }

    /// Replaces the 64 colours from `64 * index` on. Words beyond the end hold
    /// nothing.
    pub fn set_word(&mut self, index: usize, mask: u64) {
        if let Some(word) = self.words.get_mut(index) {
            *word = mask;
            let bit = 1 << (index % 64);
            self.summary = match mask {
                0 => self.summary & !bit,
                _ => self.summary | bit,
            };
        }
    }

    /// Removes every colour.
    pub fn clear(&mut self) {
        *self = Self::EMPTY;
    }

    /// Becomes the set of those colours of `other` that lie in its first `words`
    /// words of 64.
    pub fn copy_words(&mut self, other: &Self, words: usize) {
        for (i, (to, from)) in self.words.iter_mut().zip(&other.words).enumerate() {
            *to = if i < words { *from } else { 0 };
        }
        let kept = 1u64.checked_shl(words as u32).unwrap_or(0).wrapping_sub(1);
        self.summary = other.summary & kept;
    }

    /// Which words are not zero.
    pub const fn summary(&self) -> u64 {
        self.summary
    }

    /// The colours, in rising order.
    pub fn iter(&self) -> ColorSetIter<'_> {
        ColorSetIter {
            set: self,
            word: 0,
            rest: 0,
            later: self.summary,
        }
    }
}

impl Default for ColorSet {
    fn default() -> Self {
        Self::EMPTY
    }
}

/// Iterator over the colours of a set.
pub struct ColorSetIter<'a> {
    set: &'a ColorSet,
    /// The word it is at, what is left of that, and which later ones are not zero.
    word: u16,
    rest: u64,
    later: u64,
}

impl Iterator for ColorSetIter<'_> {
    type Item = Color;

    fn next(&mut self) -> Option<Color> {
        if self.rest == 0 {
            if self.later == 0 {
                return None;
            }
            self.word = self.later.trailing_zeros() as u16;
            self.later &= self.later.wrapping_sub(1);
            self.rest = self.set.word(self.word.into());
        }
        let bit = self.rest.trailing_zeros() as u16;
        self.rest &= self.rest.wrapping_sub(1);
        Some(Color(self.word * 64 + bit))
    }
}

pub(crate) const RANGE: &str = "colors 0-4095, as in 0-3,8";

/// Reads a list such as `0-3,8` and hands each range to `add`.
pub(crate) fn parse_ranges(
    text: &str,
    max: u32,
    range: &'static str,
    mut add: impl FnMut(u32, u32),
) -> Result<(), ParseError> {
    if text.trim().is_empty() {
        return Err(ParseError::Empty);
    }
    // Bytes, since splitting text by characters brings panicking code along.
    for part in text.as_bytes().split(|b| *b == b',') {
        let mut ends = part.splitn(2, |b| *b == b'-');
        let low = number(ends.next().unwrap_or_default(), max, range)?;
        let high = match ends.next() {
            Some(high) => number(high, max, range)?,
            None => low,
        };
        if high < low {
            return Err(ParseError::Backwards);
        }
        add(low, high);
    }
    Ok(())
}

/// Reads one number of a list.
fn number(text: &[u8], max: u32, range: &'static str) -> Result<u32, ParseError> {
    let digits = text.trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(ParseError::NotANumber);
    }
    digits
        .iter()
        .try_fold(0u32, |n, digit| {
            n.checked_mul(10)?.checked_add(u32::from(digit - b'0'))
        })
        .filter(|n| *n <= max)
        .ok_or(ParseError::OutOfRange(range))
}

/// Prints rising numbers as `0-3,8`, or `none`.
pub(crate) fn print_ranges(
    f: &mut fmt::Formatter<'_>,
    members: impl Iterator<Item = u32>,
) -> fmt::Result {
    let mut run: Option<(u32, u32)> = None;
    let mut first = true;
    let mut flush = |f: &mut fmt::Formatter<'_>, (low, high): (u32, u32)| {
        let comma = if first { "" } else { "," };
        first = false;
        match high - low {
            0 => write!(f, "{comma}{low}"),
            _ => write!(f, "{comma}{low}-{high}"),
        }
    };
    for n in members {
        run = match run {
            Some((low, high)) if n == high + 1 => Some((low, n)),
            Some(done) => {
                flush(f, done)?;
                Some((n, n))
            }
            None => Some((n, n)),
        };
    }
    match run {
        Some(done) => flush(f, done),
        None => f.write_str("none"),
    }
}

impl ColorSet {
    /// Adds the colors that a text names. In place: a set takes half a kibibyte, and a kernel's
    /// stack has no room for many.
    pub(crate) fn read(&mut self, text: &str) -> Result<(), ParseError> {
        if text.trim() == "none" {
            return Ok(());
        }
        parse_ranges(text, MAX_COLORS as u32 - 1, RANGE, |low, high| {
            for c in low..=high {
                self.insert(Color(c as u16));
            }
        })
    }
}

impl FromStr for ColorSet {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut set = Self::EMPTY;
        set.read(text)?;
        Ok(set)
    }
}

/// As it prints.
#[cfg(feature = "serde")]
impl serde::Serialize for ColorSet {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// As it is read.
#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for ColorSet {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Text;
        impl serde::de::Visitor<'_> for Text {
            type Value = ColorSet;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("colors, as in 0-3,8")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<ColorSet, E> {
                text.parse().map_err(E::custom)
            }
        }
        from.deserialize_str(Text)
    }
}

impl fmt::Display for ColorSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print_ranges(f, self.iter().map(|c| u32::from(c.0)))
    }
}

impl fmt::Debug for ColorSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ColorSet({self})")
    }
}
