//! What the module's files say, as values. Pure; the caller reads the files.

use piebald_policy::contract::Mode;
use piebald_units::ColorSet;

use crate::{ask::parse_mode, module::Counters};

/// What is wrong with a text: the line, from 1, what is there, and what could be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) line: usize,
    pub(crate) text: String,
    pub(crate) allowed: &'static str,
}

/// Applies `read` to each line.
fn lines<T>(
    text: &str,
    allowed: &'static str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, Fault> {
    let each = text.lines().zip(1..).map(|(line, number)| {
        read(line).ok_or_else(|| Fault {
            line: number,
            text: line.to_owned(),
            allowed,
        })
    });
    each.collect()
}

/// The only line of a text.
fn single<T>(
    text: &str,
    allowed: &'static str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<T, Fault> {
    let fault = || Fault {
        line: 1,
        text: text.lines().next().unwrap_or_default().to_owned(),
        allowed,
    };
    let mut all = lines(text, allowed, read)?;
    match (all.pop(), all.is_empty()) {
        (Some(value), true) => Ok(value),
        _ => Err(fault()),
    }
}

/// `0` or `1`.
pub(crate) fn switch(text: &str) -> Result<bool, Fault> {
    single(text, "0 or 1", |line| match line {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    })
}

/// A whole number.
pub(crate) fn number(text: &str) -> Result<u64, Fault> {
    single(text, "a whole number", |line| line.parse().ok())
}

/// Colours, or `none`.
pub(crate) fn colors(text: &str) -> Result<ColorSet, Fault> {
    single(text, "colors, as in 0-3,8, or none", |line| match line {
        // Before a map is set there are none.
        "" | "none" => Some(ColorSet::EMPTY),
        set => set.parse().ok(),
    })
}

/// `hard` or `hint`.
pub(crate) fn mode(text: &str) -> Result<Mode, Fault> {
    single(text, "hard or hint", parse_mode)
}

/// `COLOR FRAMES`, colours from 0 on without a gap.
pub(crate) fn free(text: &str) -> Result<Vec<u64>, Fault> {
    let allowed = "COLOR FRAMES, colors from 0 on";
    let pair = |line: &str| {
        let (color, frames) = line.split_once(' ')?;
        Some((color.parse::<usize>().ok()?, frames.parse::<u64>().ok()?))
    };
    let pairs = lines(text, allowed, pair)?;
    if let Some((at, (color, _))) = pairs.iter().enumerate().find(|(i, (c, _))| i != c) {
        return Err(Fault {
            line: at + 1,
            text: color.to_string(),
            allowed,
        });
    }
    Ok(pairs.into_iter().map(|(_, frames)| frames).collect())
}

/// `NAME NUMBER`.
pub(crate) fn counters(text: &str) -> Result<Counters, Fault> {
    let pair = |line: &str| {
        let (name, number) = line.split_once(' ')?;
        Some((name.to_owned(), number.parse().ok()?))
    };
    lines(text, "NAME NUMBER", pair).map(Counters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colors_and_modes_are_single_words() {
        assert_eq!(colors("0-3,8\n").map(|c| c.to_string()), Ok("0-3,8".into()));
        for text in ["none\n", "\n"] {
            assert!(colors(text).unwrap().is_empty(), "{text:?}");
        }
        for text in ["3-0\n", "0\n1\n", "red\n", ""] {
            assert_eq!(colors(text).map_err(|f| f.line), Err(1), "{text:?}");
        }
        assert_eq!(
            (mode("hard\n"), mode("hint")),
            (Ok(Mode::Hard), Ok(Mode::Hint))
        );
        assert!(mode("soft\n").is_err() && mode("").is_err());
    }

    #[test]
    fn a_wrong_line_is_named() {
        assert_eq!(free("0 5\n2 5\n").map_err(|f| f.line), Err(2));
        assert_eq!(free("0 5\n1 7\n"), Ok(vec![5, 7]));
        assert_eq!(counters("a 1\nb\n").map_err(|f| f.line), Err(2));
        for text in ["", "2\n", "0\n1\n"] {
            assert!(switch(text).is_err(), "{text:?}");
        }
        assert_eq!((switch("1\n"), number("17\n")), (Ok(true), Ok(17)));
    }
}
