//! Lines into columns.

use std::ops::Range;

/// What stands between columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Separator {
    /// This byte, with or without blanks around it.
    Byte(u8),
    /// Blanks and tabs, however many.
    Blanks,
}

impl Separator {
    /// The one that a line most likely has. Between tabs there may be commas; a tab beside a comma only sets
    /// columns below one another.
    pub fn of(line: &[u8]) -> Self {
        let has = |byte: &u8| line.contains(byte);
        let is_beside = |at: usize, n: usize| line.get(at.wrapping_add(n)) == Some(&b',');
        let mut tabs = memchr::memchr_iter(b'\t', line);
        if tabs.any(|at| !is_beside(at, 1) && !is_beside(at, usize::MAX)) && !line.contains(&b';') {
            return Self::Byte(b'\t');
        }
        b",\t;"
            .iter()
            .find(|b| has(b))
            .map_or(Self::Blanks, |b| Self::Byte(*b))
    }

    /// In words, for messages.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Byte(b'\t') => "tabs",
            Self::Byte(b';') => "semicolons",
            Self::Byte(_) => "commas",
            Self::Blanks => "blanks",
        }
    }

    /// Puts the place of every column into `cells`, without blanks around it. A column between
    /// double quotes may hold separators; the quotes are taken away, and two quotes inside stay two.
    pub fn split(self, line: &[u8], cells: &mut Vec<Range<usize>>) {
        cells.clear();
        let Self::Byte(separator) = self else {
            let mut start = 0;
            for cell in line.split(|b| matches!(b, b' ' | b'\t')) {
                let end = start + cell.len();
                if start < end {
                    cells.push(start..end);
                }
                start = end + 1;
            }
            return;
        };
        let mut start = 0;
        loop {
            let (cell, end) = cell(line, start, separator);
            cells.push(cell);
            if end == line.len() {
                return;
            }
            start = end + 1;
        }
    }
}

/// The column that begins at `start`, and where the separator behind it stands.
fn cell(line: &[u8], start: usize, separator: u8) -> (Range<usize>, usize) {
    if let Some(found) = quoted(line, start, separator) {
        return found;
    }
    let rest = &line[start..];
    let end = memchr::memchr(separator, rest).map_or(line.len(), |n| start + n);
    let cell = &line[start..end];
    let first = start + (cell.len() - cell.trim_ascii_start().len());
    (first..first + cell.trim_ascii().len(), end)
}

fn quoted(line: &[u8], start: usize, separator: u8) -> Option<(Range<usize>, usize)> {
    let is_blank = |b: &&u8| **b == b' ' || (**b == b'\t' && separator != b'\t');
    let first = start + line[start..].iter().take_while(is_blank).count();
    if line.get(first) != Some(&b'"') {
        return None;
    }
    let mut at = first + 1;
    loop {
        at += memchr::memchr(b'"', line.get(at..)?)?;
        if line.get(at + 1) != Some(&b'"') {
            break;
        }
        at += 2;
    }
    let end = at + 1 + line[at + 1..].iter().take_while(is_blank).count();
    let ends = line.get(end).is_none_or(|b| *b == separator);
    ends.then_some((first + 1..at, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(separator: Separator, line: &str) -> Vec<&str> {
        let mut cells = vec![0..1, 2..3];
        separator.split(line.as_bytes(), &mut cells);
        cells.into_iter().map(|cell| &line[cell]).collect()
    }

    #[test]
    fn columns_stand_between_separators() {
        let comma = Separator::Byte(b',');
        assert_eq!(cells(comma, "a, b\t,,c "), ["a", "b", "", "c"]);
        assert_eq!(cells(comma, ""), [""]);
        assert_eq!(cells(comma, "a,"), ["a", ""]);
        let tab = Separator::Byte(b'\t');
        assert_eq!(cells(tab, "a b\t\t c"), ["a b", "", "c"]);
        assert_eq!(cells(Separator::Blanks, "  a \t b,c "), ["a", "b,c"]);
        assert_eq!(cells(Separator::Blanks, ""), [""; 0]);
    }

    #[test]
    fn quotes_keep_separators_in_their_column() {
        let comma = Separator::Byte(b',');
        assert_eq!(cells(comma, "\"a,b\", \"c\" ,d"), ["a,b", "c", "d"]);
        assert_eq!(cells(comma, "\"a\"\"b\",\"\""), ["a\"\"b", ""]);
        // What only looks like quotes.
        assert_eq!(cells(comma, "\"a,b"), ["\"a", "b"]);
        assert_eq!(cells(comma, "\"a\"b,c"), ["\"a\"b", "c"]);
        assert_eq!(cells(comma, "\"a\"\""), ["\"a\"\""]);
    }

    #[test]
    fn the_first_line_tells_the_separator() {
        assert_eq!(Separator::of(b"a\tb;c,d").words(), "commas");
        assert_eq!(Separator::of(b"a\tb;c d").words(), "tabs");
        assert_eq!(Separator::of(b"a b;c").words(), "semicolons");
        assert_eq!(Separator::of(b"a b").words(), "blanks");
    }
}
