//! Colors as they are asked for.

use core::{fmt, str::FromStr};

use crate::{ColorSet, MAX_COLORS};

/// Colors that a program asks for. One notation serves files, command lines and the kernel:
/// `0-3,8` (these), `count=4` (so many), `25%` or `12.5%` (a share of all).
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "each program has a few of these; they lie in no array"
)]
pub enum ColorAsk {
    /// So many, at least 1.
    Count(u32),
    /// A part of all colors in hundredths of a percent, 1 to 10000.
    Share(u32),
    /// Exactly these, at least one.
    Exactly(ColorSet),
}

/// Text that asks for no colors, and what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAsked {
    /// It is no number of colors.
    Count,
    /// It is no share.
    Share,
    /// It is no set.
    Set,
    /// It names no color.
    Empty,
}

impl fmt::Display for NotAsked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => f.write_str("a count of 1 or more"),
            Self::Share => f.write_str("a share such as \"25%\" or \"12.5%\", 0.01% to 100%"),
            Self::Set => write!(
                f,
                "a set of colors as in 0-3,8, at most {}, a count as in count=4, or a share as in 25%",
                MAX_COLORS - 1
            ),
            Self::Empty => f.write_str("at least one color, as in 0-3"),
        }
    }
}

impl core::error::Error for NotAsked {}

impl FromStr for ColorAsk {
    type Err = NotAsked;

    fn from_str(text: &str) -> Result<Self, NotAsked> {
        let text = text.trim();
        if let Some(count) = text.strip_prefix("count=") {
            let count = count.trim().parse().ok().filter(|n| *n > 0);
            return count.map(Self::Count).ok_or(NotAsked::Count);
        }
        if let Some(number) = text.strip_suffix('%') {
            return share(number.trim_end())
                .map(Self::Share)
                .ok_or(NotAsked::Share);
        }
        let mut asked = Self::Exactly(ColorSet::EMPTY);
        if let Self::Exactly(set) = &mut asked {
            set.read(text).map_err(|_| NotAsked::Set)?;
            if set.is_empty() {
                return Err(NotAsked::Empty);
            }
        }
        Ok(asked)
    }
}

/// A share as in `12.5`, in hundredths of a percent.
fn share(number: &str) -> Option<u32> {
    // By bytes: the search for a letter in text can panic, and kernels use this crate.
    let point = number.bytes().position(|b| b == b'.');
    let (whole, part) = match point {
        Some(at) => (number.get(..at)?, number.get(at + 1..)?),
        None => (number, ""),
    };
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > 2 {
        return None;
    }
    let tens = [10, 1].into_iter().zip(part.bytes());
    let hundredths: u32 = tens.map(|(ten, b)| ten * u32::from(b - b'0')).sum();
    let whole: u32 = whole.parse().ok()?;
    let basis_points = whole.checked_mul(100)?.checked_add(hundredths)?;
    (1..=10_000).contains(&basis_points).then_some(basis_points)
}

impl fmt::Display for ColorAsk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "count={count}"),
            Self::Share(part) if part % 100 == 0 => write!(f, "{}%", part / 100),
            Self::Share(part) if part % 10 == 0 => {
                write!(f, "{}.{}%", part / 100, part % 100 / 10)
            }
            Self::Share(part) => write!(f, "{}.{:02}%", part / 100, part % 100),
            Self::Exactly(set) => set.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::ToString;

    use super::*;

    #[test]
    fn what_is_read_is_printed_the_same() {
        for text in [
            "0-3,8", "5", "count=4", "25%", "12.5%", "0.01%", "99.99%", "100%",
        ] {
            let ask: ColorAsk = text.parse().expect(text);
            assert_eq!(ask.to_string(), text);
            assert_eq!(ask.to_string().parse(), Ok(ask), "{text}");
        }
        assert_eq!("12.50 %".parse(), Ok(ColorAsk::Share(1250)));
        assert_eq!(" count= 7".parse(), Ok(ColorAsk::Count(7)));
    }

    #[test]
    fn what_asks_for_nothing_is_refused() {
        for (text, why) in [
            ("none", NotAsked::Empty),
            ("count=0", NotAsked::Count),
            ("count=-1", NotAsked::Count),
            ("count=", NotAsked::Count),
            ("0%", NotAsked::Share),
            ("100.01%", NotAsked::Share),
            ("1.001%", NotAsked::Share),
            ("%", NotAsked::Share),
            ("-5%", NotAsked::Share),
            ("99999999999%", NotAsked::Share),
            ("red", NotAsked::Set),
            ("3-1", NotAsked::Set),
            ("", NotAsked::Set),
            ("0-99999", NotAsked::Set),
        ] {
            assert_eq!(text.parse::<ColorAsk>(), Err(why), "{text}");
        }
    }
}
