//! What a person asks for: colours, shares, and the address bits that make colours.

use std::{fmt, str::FromStr};

use piebald_policy::{
    color_map::{ColorMap, MAX_BITS, TextFault},
    contract::Mode,
};
use piebald_units::{ColorSet, PAGE_SHIFT, ParseError};

/// A share of all colours, from 0.01 % to 100 %, in hundredths of a percent.
///
/// Reads and prints `25%` or `12.5%`; the sign may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(u32);

impl Share {
    /// Hundredths of a percent: 1 to 10,000.
    pub const fn basis_points(self) -> u32 {
        self.0
    }
}

impl FromStr for Share {
    type Err = AskError;

    fn from_str(text: &str) -> Result<Self, AskError> {
        let wrong = || AskError::Share(text.to_owned());
        let number = text.trim();
        let number = number.strip_suffix('%').unwrap_or(number);
        let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |s: &str, most: usize| {
            let fits = (1..=most).contains(&s.len()) && s.bytes().all(|b| b.is_ascii_digit());
            fits.then(|| s.parse::<u32>().ok()).flatten()
        };
        let whole = digits(whole, 3).ok_or_else(wrong)?;
        let tenths = if part.len() == 1 { 10 } else { 1 };
        let part = digits(part, 2).ok_or_else(wrong)? * tenths;
        match whole * 100 + part {
            share @ 1..=10_000 => Ok(Self(share)),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (self.0 / 100, self.0 % 100);
        match (part, part % 10) {
            (0, _) => write!(f, "{whole}%"),
            (_, 0) => write!(f, "{whole}.{}%", part / 10),
            _ => write!(f, "{whole}.{part:02}%"),
        }
    }
}

/// Which colours a process is to own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// These; at least one.
    Colors(Box<ColorSet>),
    /// So many, whichever are free.
    Share(Share),
}

impl Wanted {
    /// Reads colours such as `0-3,8`.
    ///
    /// # Errors
    /// If it is no set of colours, or an empty one.
    pub fn colors(text: &str) -> Result<Self, AskError> {
        let wrong = |problem: String| AskError::Colors {
            text: text.to_owned(),
            problem,
        };
        let set: ColorSet = text.parse().map_err(|e: ParseError| wrong(e.to_string()))?;
        match set.is_empty() {
            true => Err(wrong("names no color".to_owned())),
            false => Ok(Self::Colors(Box::new(set))),
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Colors(set) => set.fmt(f),
            Self::Share(share) => share.fmt(f),
        }
    }
}

/// What somebody asked for and cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// No set of colours.
    #[error("\"{text}\" {problem}; allowed: colors, as in 0-3,8")]
    Colors {
        /// What was written.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
    /// No share.
    #[error("\"{0}\" is no share; allowed: 0.01% to 100%")]
    Share(String),
}

/// Reads `hard` or `hint`.
pub fn parse_mode(text: &str) -> Option<Mode> {
    match text {
        "hard" => Some(Mode::Hard),
        "hint" => Some(Mode::Hint),
        _ => None,
    }
}

/// As the module spells a mode.
pub(crate) const fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Hard => "hard",
        Mode::Hint => "hint",
    }
}

/// The address bits that make colours, each colour bit the XOR of one or more of them.
///
/// Reads `15-18` (four colour bits), `12,13,16^20` (three, the last of which combines two
/// address bits) or any mix. Between 1 and 12 colour bits, independent of one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapBits {
    lines: Vec<Vec<u32>>,
}

/// Why a text names no colour bits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("map \"{text}\": {problem}; allowed: address bits from 12, as in 15-18 or 12,13,16^20")]
pub struct BitsError {
    text: String,
    problem: String,
}

impl MapBits {
    /// One colour bit for each of these address bits.
    ///
    /// # Errors
    /// If one is below 12 or above 63, or occurs twice, or there are none or more than 12.
    pub fn plain(bits: impl IntoIterator<Item = u32>) -> Result<Self, BitsError> {
        let words: Vec<String> = bits.into_iter().map(|bit| bit.to_string()).collect();
        words.join(",").parse()
    }

    /// Number of colours: 2 to the number of colour bits.
    pub fn colors(&self) -> u32 {
        1 << self.lines.len()
    }

    /// Which colour a frame has. None if the map cannot be had, which reading it rules out.
    pub(crate) fn color_map(&self) -> Option<ColorMap> {
        ColorMap::from_text(&self.as_lines())
            .ok()
            .map(|read| read.map)
    }

    /// The highest address bit.
    pub fn highest(&self) -> u32 {
        self.lines.iter().flatten().copied().max().unwrap_or(0)
    }

    /// As the module's file `map` has it: a line for each colour bit.
    pub fn as_lines(&self) -> String {
        self.joined(" ", "\n") + "\n"
    }

    /// As the module's parameter `map` has it.
    pub fn as_parameter(&self) -> String {
        self.joined(" ", ";")
    }

    fn joined(&self, between_bits: &str, between_lines: &str) -> String {
        let line = |bits: &Vec<u32>| {
            let bits: Vec<String> = bits.iter().map(u32::to_string).collect();
            bits.join(between_bits)
        };
        let lines: Vec<String> = self.lines.iter().map(line).collect();
        lines.join(between_lines)
    }

    /// From lines as the module's file `map` has them; `None` if there are none.
    pub(crate) fn from_lines(text: &str) -> Result<Option<Self>, BitsError> {
        let lines: Vec<String> = text
            .lines()
            .map(|line| line.trim_start_matches(['B', 'C', 'O', ' ']))
            .filter(|line| !line.is_empty())
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join("^"))
            .collect();
        match lines.is_empty() {
            true => Ok(None),
            false => lines.join(",").parse().map(Some),
        }
    }
}

impl FromStr for MapBits {
    type Err = BitsError;

    fn from_str(text: &str) -> Result<Self, BitsError> {
        let wrong = |problem: String| BitsError {
            text: text.to_owned(),
            problem,
        };
        let mut lines = Vec::new();
        for word in text.split(',').map(str::trim) {
            read_word(word, &mut lines).map_err(wrong)?;
        }
        if lines.len() > MAX_BITS {
            let problem = format!("{} color bits; allowed: 1 to {MAX_BITS}", lines.len());
            return Err(wrong(problem));
        }
        let map = Self { lines };
        // Repeated bits and lines that depend on one another are the core's business.
        ColorMap::from_text(&map.as_lines()).map_err(|e| {
            let bits = e.word.replace(' ', "^");
            wrong(match e.fault {
                TextFault::Dependent => {
                    format!("{bits} is the XOR of color bits before it, or one of them")
                }
                TextFault::Repeated => format!("{bits} occurs twice in a color bit"),
                _ => e.to_string(),
            })
        })?;
        Ok(map)
    }
}

impl fmt::Display for MapBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.joined("^", ","))
    }
}

/// Adds what one word says: `15`, `15-18` or `16^20`.
fn read_word(word: &str, lines: &mut Vec<Vec<u32>>) -> Result<(), String> {
    let bit = |text: &str| match text.trim().parse::<u32>() {
        Ok(bit @ PAGE_SHIFT..=63) => Ok(bit),
        _ => Err(format!(
            "\"{}\" is no address bit of a page frame",
            text.trim()
        )),
    };
    let Some((low, high)) = word.split_once('-') else {
        lines.push(word.split('^').map(bit).collect::<Result<_, _>>()?);
        return Ok(());
    };
    let (low, high) = (bit(low)?, bit(high)?);
    if high < low {
        return Err(format!("{low}-{high} runs backwards"));
    }
    lines.extend((low..=high).map(|bit| vec![bit]));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_exact_and_bounded() {
        for (text, points, shown) in [
            ("25%", 2500, "25%"),
            ("12.5%", 1250, "12.5%"),
            ("0.01%", 1, "0.01%"),
            ("6.25", 625, "6.25%"),
            ("100%", 10_000, "100%"),
            (" 7.05% ", 705, "7.05%"),
        ] {
            let share: Share = text.parse().expect(text);
            assert_eq!(
                (share.basis_points(), share.to_string()),
                (points, shown.into())
            );
        }
        for text in [
            "", "%", "0%", "0.00%", "100.01%", "101%", "-5%", "1.234%", "a%", "+1%", "1.",
        ] {
            let error = text.parse::<Share>().expect_err(text);
            assert!(error.to_string().contains("0.01% to 100%"), "{error}");
        }
    }

    #[test]
    fn colors_are_a_set_that_is_not_empty() {
        assert_eq!(Wanted::colors("8,0-3").unwrap().to_string(), "0-3,8");
        for text in ["", "none", "3-1", "x", "4096"] {
            let error = Wanted::colors(text).expect_err(text);
            assert!(error.to_string().contains("as in 0-3,8"), "{error}");
        }
    }

    #[test]
    fn map_bits_are_ranges_single_bits_and_xors() {
        let map: MapBits = "15-17, 18^22".parse().unwrap();
        assert_eq!(
            (map.colors(), map.as_parameter()),
            (16, "15;16;17;18 22".into())
        );
        assert_eq!(map.as_lines(), "15\n16\n17\n18 22\n");
        assert_eq!(map.to_string(), "15,16,17,18^22");
        assert_eq!(MapBits::from_lines(&map.as_lines()), Ok(Some(map)));
        assert_eq!(MapBits::from_lines("\n"), Ok(None));
        assert_eq!(MapBits::plain([12, 13]).unwrap().to_string(), "12,13");
    }

    #[test]
    fn map_bits_that_make_no_colors_are_refused() {
        for (text, why) in [
            ("", "no address bit"),
            ("11", "\"11\" is no address bit"),
            ("64", "\"64\" is no address bit"),
            ("18-15", "runs backwards"),
            (
                "15,15",
                "15 is the XOR of color bits before it, or one of them",
            ),
            ("15^15", "15 occurs twice in a color bit"),
            ("12-24", "13 color bits"),
            ("0-4294967295", "\"0\" is no address bit"),
        ] {
            let error = text.parse::<MapBits>().expect_err(text).to_string();
            assert!(
                error.contains(why) && error.contains("allowed"),
                "{text}: {error}"
            );
        }
    }
}
