//! Values in messages.

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

#[cfg(test)]
mod tests {
    use super::*;

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
