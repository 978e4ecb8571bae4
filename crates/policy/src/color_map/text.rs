//! Colour maps as text: one line per colour bit, listing the physical address
//! bits whose XOR it is, as tools that measure DRAM mappings print them.
//!
//! ```text
//! # bank bits of a machine, and one cache bit
//! B 14 18
//! B 15 19
//! C 16
//! ```
//!
//! Bits are decimal, 12 to 63, separated by blanks, commas or `^`. A line may
//! begin with the class of its bit: `B`, `C` or `O`. What follows `#` is a
//! comment; empty lines count for nothing.
//!
//! Lines with bits below 12 are functions that change within a page. Taken one
//! by one they are no colours; those XORs of them in which all low bits cancel
//! are, and come as further colour bits after the plain lines.

use core::fmt;

use piebald_units::PAGE_SHIFT;

use super::{
    BitClass, ColorMap, MAX_BITS,
    gf2::{Basis, Bits, bit},
};

/// Most lines: colour bits, and functions that only together make some.
const MAX_LINES: usize = 24;

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFault {
    /// A word that is no number of a bit.
    NotABit,
    /// A bit that occurs twice: it would cancel.
    Repeated,
    /// All bits lie below 12: every page has both values.
    InPage,
    /// The line is the XOR of earlier lines.
    Dependent,
    /// More lines than 24.
    TooManyLines,
    /// More than 12 colour bits in all.
    TooManyBits,
}

/// Why a text is no colour map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextError<'t> {
    /// Line, from 1.
    pub line: u32,
    /// The word or line at fault, as it stands in the text.
    pub word: &'t str,
    /// What is wrong with it.
    pub fault: TextFault,
}

impl fmt::Display for TextError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: \"{}\" ", self.line, self.word)?;
        f.write_str(match self.fault {
            TextFault::NotABit => "is no address bit; allowed: 0-63, and B, C or O before them",
            TextFault::Repeated => "occurs twice in the line; allowed: each bit once",
            TextFault::InPage => "has no bit above the page; allowed: some bit of 12-63",
            TextFault::Dependent => "is the XOR of earlier lines; allowed: independent lines",
            TextFault::TooManyLines => "is one line too many; allowed: at most 24",
            TextFault::TooManyBits => "makes more than 12 color bits; allowed: at most 12",
        })
    }
}

impl core::error::Error for TextError<'_> {}

/// A map that was read, and what it leaves out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FromText {
    /// The map.
    pub map: ColorMap,
    /// Functions that change within every page and make no colour.
    pub no_colors: u32,
}

impl ColorMap {
    /// Reads a map; the syntax is that of the module `text`: one line per colour
    /// bit with the address bits to XOR, such as `B 14 18`.
    ///
    /// # Errors
    /// Names the line, the word and what is allowed.
    pub fn from_text(text: &str) -> Result<FromText, TextError<'_>> {
        let mut read = FromText {
            map: Self::PLAIN,
            no_colors: 0,
        };
        read.no_colors = read.map.set_from_text(text)?;
        Ok(read)
    }

    /// The same in place, where a stack is too small to return a map by value.
    /// Answers how many functions make no colour.
    ///
    /// # Errors
    /// As for [`ColorMap::from_text`]; the map is [`ColorMap::PLAIN`] then.
    pub fn set_from_text<'t>(&mut self, text: &'t str) -> Result<u32, TextError<'t>> {
        *self = Self::PLAIN;
        fill(self, text).inspect_err(|_| *self = Self::PLAIN)
    }
}

/// Makes `map`, which is still plain, the map of a text; answers how many
/// functions are no colours.
#[inline(never)]
fn fill<'t>(map: &mut ColorMap, text: &'t str) -> Result<u32, TextError<'t>> {
    let mut chosen = [(0u64, BitClass::Unknown); MAX_BITS];
    let (found, no_colors) = read(text, &mut chosen)?;
    let masks = chosen.get(..found).unwrap_or(&[]);
    // The lines were checked one by one, so this does not fail.
    map.set_masks(masks).map_err(|_| TextError {
        line: 1,
        word: text,
        fault: TextFault::Dependent,
    })?;
    map.derive();
    Ok(no_colors)
}

/// Fills `chosen`; answers how many colour bits there are and how many
/// functions make none.
#[inline(never)]
fn read<'t>(
    text: &'t str,
    chosen: &mut [(u64, BitClass); MAX_BITS],
) -> Result<(usize, u32), TextError<'t>> {
    let mut all = Basis::<MAX_LINES>::EMPTY;
    let mut mixed = Basis::<MAX_LINES>::EMPTY;
    let mut found = 0usize;
    let mut last = (0, "");
    for (line, number) in text.as_bytes().split(|b| *b == b'\n').zip(1u32..) {
        let line = line.split(|b| *b == b'#').next().unwrap_or(&[]);
        let whole = as_text(line.trim_ascii());
        let fail = |fault| TextError {
            line: number,
            word: whole,
            fault,
        };
        let Some((mask, class)) = read_line(line, number)? else {
            continue;
        };
        if mask >> PAGE_SHIFT == 0 {
            return Err(fail(TextFault::InPage));
        }
        if all.is_full() {
            return Err(fail(TextFault::TooManyLines));
        }
        if !all.insert(mask) {
            return Err(fail(TextFault::Dependent));
        }
        last = (number, whole);
        if mask.trailing_zeros() < PAGE_SHIFT {
            mixed.insert(mask);
        } else if !push(chosen, &mut found, (mask >> PAGE_SHIFT, class)) {
            return Err(fail(TextFault::TooManyBits));
        }
    }
    let mut no_colors = 0u32;
    for row in mixed.rows() {
        if row.trailing_zeros() < PAGE_SHIFT {
            no_colors = no_colors.saturating_add(1);
        } else if !push(chosen, &mut found, (row >> PAGE_SHIFT, BitClass::Unknown)) {
            return Err(TextError {
                line: last.0,
                word: last.1,
                fault: TextFault::TooManyBits,
            });
        }
    }
    Ok((found, no_colors))
}

fn push(
    chosen: &mut [(u64, BitClass); MAX_BITS],
    found: &mut usize,
    entry: (u64, BitClass),
) -> bool {
    let Some(slot) = chosen.get_mut(*found) else {
        return false;
    };
    *slot = entry;
    *found = found.saturating_add(1);
    true
}

/// The mask over addresses and the class of one line, or nothing if it is empty.
fn read_line(line: &[u8], number: u32) -> Result<Option<(u64, BitClass)>, TextError<'_>> {
    let separates = |b: &u8| b.is_ascii_whitespace() || *b == b',' || *b == b'^';
    let mut class = None;
    let mut mask = 0u64;
    for word in line.split(separates).filter(|w| !w.is_empty()) {
        let fail = |fault| TextError {
            line: number,
            word: as_text(word),
            fault,
        };
        if let (None, 0, Some(c)) = (class, mask, class_of(word)) {
            class = Some(c);
            continue;
        }
        let n = number_of(word).ok_or(fail(TextFault::NotABit))?;
        if mask & bit(n) != 0 {
            return Err(fail(TextFault::Repeated));
        }
        mask |= bit(n);
    }
    match (mask, class) {
        (0, None) => Ok(None),
        (0, Some(_)) => Err(TextError {
            line: number,
            word: as_text(line.trim_ascii()),
            fault: TextFault::NotABit,
        }),
        (mask, class) => Ok(Some((mask, class.unwrap_or_default()))),
    }
}

/// Cuts fall at ASCII bytes, so a part of a text is a text.
fn as_text(bytes: &[u8]) -> &str {
    core::str::from_utf8(bytes).unwrap_or("?")
}

fn class_of(word: &[u8]) -> Option<BitClass> {
    match word {
        b"B" => Some(BitClass::Bank),
        b"C" => Some(BitClass::Cache),
        b"O" => Some(BitClass::Both),
        _ => None,
    }
}

/// A decimal number below 64, of at most three digits.
fn number_of(word: &[u8]) -> Option<u32> {
    if word.len() > 3 || !word.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = word.iter().fold(0u32, |n, digit| {
        n.wrapping_mul(10)
            .wrapping_add(u32::from(digit.wrapping_sub(b'0')))
    });
    (value < 64).then_some(value)
}

impl fmt::Display for ColorMap {
    /// One line per colour bit, in the syntax that [`ColorMap::from_text`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for i in 0..self.bits() as u8 {
            let mut blank = "";
            let letter = match self.class(i) {
                BitClass::Unknown => "",
                BitClass::Bank => "B",
                BitClass::Cache => "C",
                BitClass::Both => "O",
            };
            if !letter.is_empty() {
                f.write_str(letter)?;
                blank = " ";
            }
            for n in Bits(self.mask(i)) {
                write!(f, "{blank}{}", n.wrapping_add(PAGE_SHIFT))?;
                blank = " ";
            }
            f.write_str("\n")?;
        }
        Ok(())
    }
}
