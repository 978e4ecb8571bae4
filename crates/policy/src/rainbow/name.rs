//! Names of partitions.

use core::fmt;

/// Longest name in bytes, inclusive.
pub const MAX_NAME: usize = 31;

/// The name of a partition: 1 to 31 printable ASCII characters without spaces.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name {
    len: u8,
    /// Zero from `len` on, so that equal names are equal values.
    bytes: [u8; MAX_NAME],
}

/// Why a text is no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// It is empty.
    Empty,
    /// It has this many bytes.
    TooLong(usize),
    /// This byte, at this offset, is no printable ASCII character.
    Byte {
        /// The byte.
        byte: u8,
        /// Its offset from the start, in bytes.
        at: usize,
    },
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "the name is empty; allowed: 1 to {MAX_NAME} bytes"),
            Self::TooLong(n) => write!(f, "the name has {n} bytes; allowed: 1 to {MAX_NAME}"),
            Self::Byte { byte, at } => write!(
                f,
                "byte {at} of the name is {byte:#04x}; allowed: printable ASCII without spaces"
            ),
        }
    }
}

impl core::error::Error for NameError {}

impl Name {
    /// Makes a name of a text.
    ///
    /// # Errors
    /// If the text is empty, longer than 31 bytes, or has other characters than
    /// printable ASCII.
    pub fn new(text: &str) -> Result<Self, NameError> {
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        if text.len() > MAX_NAME {
            return Err(NameError::TooLong(text.len()));
        }
        let mut bytes = [0; MAX_NAME];
        for (at, (to, byte)) in bytes.iter_mut().zip(text.bytes()).enumerate() {
            if !byte.is_ascii_graphic() {
                return Err(NameError::Byte { byte, at });
            }
            *to = byte;
        }
        Ok(Self {
            len: text.len() as u8,
            bytes,
        })
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        let used = self.bytes.get(..usize::from(self.len));
        used.and_then(|b| core::str::from_utf8(b).ok())
            .unwrap_or_default()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name({self})")
    }
}
