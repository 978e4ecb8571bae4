//! Values in messages.

use std::borrow::Cow;

/// Longest part of an offending value that a message repeats, in bytes.
const MAX_SHOWN: usize = 32;

/// Quotes at most 32 bytes, printable on any terminal.
pub(crate) fn shorten(value: &[u8]) -> String {
    shorten_to(value, MAX_SHOWN)
}

/// The same with so many bytes.
pub(crate) fn shorten_to(value: &[u8], most: usize) -> String {
    let shown = value.get(..most).unwrap_or(value).escape_ascii();
    if value.len() > most {
        format!("\"{shown}...\" ({} bytes)", value.len())
    } else {
        format!("\"{shown}\"")
    }
}

/// A word as a shell takes it.
pub(crate) fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+:,@%=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// A name in one line: control characters as escapes, so that no name can move a terminal's cursor or
/// begin another line.
pub fn printable(name: &str) -> Cow<'_, str> {
    if !name.contains(char::is_control) {
        return Cow::Borrowed(name);
    }
    let escape = |c: char| {
        if c.is_control() {
            c.escape_default().to_string()
        } else {
            c.to_string()
        }
    };
    Cow::Owned(name.chars().map(escape).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_line_without_control_characters() {
        for (name, shown) in [
            ("data/x y.db", "data/x y.db"),
            ("a\nb", r"a\nb"),
            ("\u{1b}[2J\u{9b}K", r"\u{1b}[2J\u{9b}K"),
            ("über\t.csv", r"über\t.csv"),
        ] {
            assert_eq!(printable(name), shown);
        }
    }

    #[test]
    fn words_with_blanks_are_quoted() {
        for (word, quoted) in [
            ("a/b.csv", "a/b.csv"),
            ("d e/x y.csv", "'d e/x y.csv'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(word), quoted);
        }
    }
}
