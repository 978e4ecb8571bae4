//! Files that people write: machines, disks, scenarios.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Nobody writes a longer one; a device has no end.
const MOST_BYTES: u64 = 16 << 20;
/// How recordings of Piebald begin.
const RECORDING: &[u8] = b"PBLDREC\0";
/// How texts in UTF-16 begin.
const UTF_16: [&[u8]; 2] = [&[0xff, 0xfe], &[0xfe, 0xff]];

/// Why a file is no text.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// The system does not give it.
    #[error("cannot be read: {0}")]
    Read(io::Error),
    /// It is too long.
    #[error("is longer than {} MiB; allowed: a file in TOML up to that", MOST_BYTES >> 20)]
    TooLong,
    /// It begins with the mark of a recording.
    #[error(
        "is a recording, not a text; allowed: TOML, such as a scenario that runs it as a program"
    )]
    Recording,
    /// It begins with the mark of another encoding.
    #[error("is a text in UTF-16; allowed: TOML in UTF-8")]
    Utf16,
    /// A byte that is no part of a text.
    #[error("is no text: line {line} has the byte {byte:#04x}; allowed: TOML in UTF-8")]
    NoText {
        /// Its line, from 1.
        line: usize,
        /// The byte.
        byte: u8,
    },
}

impl TextError {
    /// Is there no such file?
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Read(e) if e.kind() == io::ErrorKind::NotFound)
    }
}

/// Reads such a file.
///
/// # Errors
/// It cannot be read, has more than 16 MiB, or is not in UTF-8.
pub fn read_text(path: &Path) -> Result<String, TextError> {
    read_text_from(File::open(path).map_err(TextError::Read)?)
}

/// The same from what is open already.
///
/// # Errors
/// As [`read_text`].
pub fn read_text_from(from: impl Read) -> Result<String, TextError> {
    let mut bytes = Vec::new();
    from.take(MOST_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(TextError::Read)?;
    if bytes.starts_with(RECORDING) {
        return Err(TextError::Recording);
    }
    if UTF_16.iter().any(|mark| bytes.starts_with(mark)) {
        return Err(TextError::Utf16);
    }
    if bytes.len() as u64 > MOST_BYTES {
        return Err(TextError::TooLong);
    }
    let wrong = match std::str::from_utf8(&bytes) {
        Ok(text) => text.find('\0'),
        Err(error) => Some(error.valid_up_to()),
    };
    if let Some((before, behind)) = wrong.map(|at| bytes.split_at(at)) {
        return Err(TextError::NoText {
            line: 1 + before.iter().filter(|b| **b == b'\n').count(),
            byte: behind.first().copied().unwrap_or_default(),
        });
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(bytes: impl Read) -> String {
        read_text_from(bytes).unwrap_or_else(|e| e.to_string())
    }

    #[test]
    fn what_is_no_text_is_told_with_its_place() {
        assert!(says(&b"PBLDREC\0\x01\xe8"[..]).starts_with("is a recording, not a text"));
        assert_eq!(says(&b"a = \"\xc3\xa4\"\n"[..]), "a = \"\u{e4}\"\n");
        assert_eq!(
            says(&b"a\nb\n\xe4 = 1\n"[..]),
            "is no text: line 3 has the byte 0xe4; allowed: TOML in UTF-8"
        );
        let wide = says(&b"a\0\n\0"[..]);
        assert!(wide.contains("line 1 has the byte 0x00"), "{wide}");
        let cut = says(&b"a\n\xc3"[..]);
        assert!(cut.contains("line 2 has the byte 0xc3"), "{cut}");
        for wide in [&b"\xff\xfea\0"[..], b"\xfe\xff\0a"] {
            assert_eq!(says(wide), "is a text in UTF-16; allowed: TOML in UTF-8");
        }
        let endless = says(io::repeat(b'#'));
        assert!(endless.starts_with("is longer than 16 MiB"), "{endless}");
    }

    #[test]
    fn a_file_that_is_not_there_is_missing_and_a_folder_is_not() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let missing = |path: &Path| read_text(path).expect_err("no text").is_missing();
        assert!(missing(&folder.join("none.toml")));
        assert!(!missing(folder));
    }
}
