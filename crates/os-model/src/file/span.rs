//! A range of bytes of a file.

use piebald_units::{PAGE_SHIFT, PAGE_SIZE};

/// Bytes of a file, or whole pages of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

impl Span {
    /// Whole pages; what lies beyond 2^64 bytes is cut off.
    pub const fn pages(first: u64, pages: u64) -> Self {
        Self {
            offset: first.saturating_mul(PAGE_SIZE),
            len: pages.saturating_mul(PAGE_SIZE),
        }
    }

    /// The first page.
    pub const fn first_page(self) -> u64 {
        self.offset >> PAGE_SHIFT
    }

    /// The end in bytes, exclusive.
    pub const fn end(self) -> u64 {
        self.offset.saturating_add(self.len)
    }

    /// The page behind the last one; the first page if the span is empty.
    pub const fn end_page(self) -> u64 {
        match self.len {
            0 => self.first_page(),
            _ => ((self.end() - 1) >> PAGE_SHIFT) + 1,
        }
    }

    /// Does it cover all of a page?
    pub const fn covers(self, page: u64) -> bool {
        self.offset <= page.saturating_mul(PAGE_SIZE)
            && self.end() >= page.saturating_add(1).saturating_mul(PAGE_SIZE)
    }

    /// Bytes from the start of its first page to its end.
    pub const fn bytes_from_page(self) -> u64 {
        (self.offset % PAGE_SIZE).saturating_add(self.len)
    }

    /// It begins at byte 0 and ends within the first half page: a look at a header,
    /// for which 2.4 reads nothing ahead.
    pub const fn is_peek(self) -> bool {
        self.offset == 0 && self.len <= PAGE_SIZE / 2
    }
}
