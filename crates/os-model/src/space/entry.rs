//! Page-table entries, in the bit positions of x86-64 where it has them.

use piebald_units::Pfn;

/// A page-table entry: a frame and flags, or nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry(pub(super) u64);

impl Entry {
    /// No page.
    pub const NONE: Self = Self(0);

    /// Present.
    pub const PRESENT: u64 = 1;
    /// Stores go through without a fault.
    pub const WRITE: u64 = 1 << 1;
    /// Touched since the bit was last cleared.
    pub const ACCESSED: u64 = 1 << 5;
    /// Stored to since it was mapped.
    pub const DIRTY: u64 = 1 << 6;
    /// A 2 MiB page.
    pub const HUGE: u64 = 1 << 7;
    /// The next touch goes through the kernel, which may move the page (the bit that Linux
    /// takes for pages without access).
    pub const HINT: u64 = 1 << 8;
    /// A store must first copy the page (a bit that x86-64 leaves to software).
    pub const COW: u64 = 1 << 9;
    /// Maps a frame of the page cache or of a shared object.
    pub const CACHED: u64 = 1 << 10;
    /// Maps the zero page.
    pub const ZERO: u64 = 1 << 11;

    const FLAGS: u64 = (1 << 12) - 1;

    /// A present entry with these flags.
    pub const fn new(frame: u32, flags: u64) -> Self {
        Self((frame as u64) << 12 | flags | Self::PRESENT)
    }

    /// First frame.
    pub const fn frame(self) -> u32 {
        (self.0 >> 12) as u32
    }

    /// First frame.
    pub const fn pfn(self) -> Pfn {
        Pfn(self.0 >> 12)
    }

    /// All flags.
    pub const fn flags(self) -> u64 {
        self.0 & Self::FLAGS
    }

    /// Are all these flags set?
    pub const fn has(self, flags: u64) -> bool {
        self.0 & flags == flags
    }

    /// Sets flags.
    #[must_use]
    pub const fn with(self, flags: u64) -> Self {
        Self(self.0 | flags)
    }

    /// Clears flags.
    #[must_use]
    pub const fn without(self, flags: u64) -> Self {
        Self(self.0 & !flags)
    }
}
