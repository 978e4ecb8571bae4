//! Text for people, in memory of the C side.

use core::fmt;

/// A buffer that text is written into; what does not fit is left out.
pub struct Line<'a> {
    bytes: &'a mut [u8],
    len: usize,
}

impl<'a> Line<'a> {
    /// An empty text, of at most as many bytes as the buffer has.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, len: 0 }
    }

    /// Bytes written.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Nothing is written.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Replaces the text by what `text` prints.
    pub fn say(&mut self, text: &dyn fmt::Display) {
        self.len = 0;
        // A text that is too long is cut, which is no error here.
        let _ = fmt::write(self, format_args!("{text}"));
    }
}

impl fmt::Write for Line<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.len..).unwrap_or_default();
        let mut written = 0usize;
        for (to, from) in room.iter_mut().zip(text.bytes()) {
            *to = from;
            written = written.wrapping_add(1);
        }
        self.len = self.len.wrapping_add(written);
        match written == text.len() {
            true => Ok(()),
            false => Err(fmt::Error),
        }
    }
}
