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
