//! One request of a trace, and the pages it touches.

use std::num::NonZeroU64;

use piebald_units::{Bytes, Picos};

/// Nanoseconds since the format's own origin: the start of tracing, the Unix epoch, or 1601. Only
/// differences mean something. 2^64 ns are 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Time since `earlier`: zero if that is later, and [`Picos::MAX`] beyond 213 days.
    pub const fn since(self, earlier: Self) -> Picos {
        match Picos::from_ns(self.0.saturating_sub(earlier.0)) {
            Some(time) => time,
            None => Picos::MAX,
        }
    }
}

/// What a request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Op {
    /// Data is read.
    Read,
    /// Data is written.
    Write,
    /// The range is mapped into memory to be read there; which of its pages are touched, and when,
    /// is not known.
    Map,
    /// The range leaves its file: all of it when the file is removed, the end of it when it is cut,
    /// a part of it where a hole is made.
    Delete,
}

impl Op {
    /// Whether data flows to the program: a read or a mapping.
    pub const fn reads(self) -> bool {
        matches!(self, Self::Read | Self::Map)
    }

    /// The word that users see.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Map => "map",
            Self::Delete => "delete",
        }
    }
}

/// A file of the trace: index into [`Files`](super::Files).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct FileKey(pub u32);

/// When an opaque block is used next, where the trace says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NextUse {
    /// The format does not say.
    Unknown,
    /// Never again.
    Never,
    /// In the request of this number, counted from 1.
    At(NonZeroU64),
}

/// What a request is about. [`Traits::target`](super::Traits::target) says which of the three a
/// format gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Sectors of a disk.
    Device {
        /// Number of the disk, in the format's own numbering; see
        /// [`Devices`](super::Devices) where disks have names.
        device: u32,
        /// First sector of 512 B; the last one lies below 2^54.
        sector: u64,
        /// Number of sectors, at least 1.
        sectors: u64,
    },
    /// Bytes of a file.
    File {
        /// Which file.
        file: FileKey,
        /// First byte.
        offset: u64,
        /// Number of bytes, at least 1. The end is at most 2^63, except that a
        /// [`Delete`](Op::Delete) may have `u64::MAX - offset`: to the end, whatever that is.
        length: u64,
    },
    /// A block or an object known only by a number, which says nothing about where it lies.
    Id {
        /// The number.
        id: u64,
        /// Size in bytes; `None` if the format does not say.
        bytes: Option<u32>,
        /// When it is used next.
        next: NextUse,
    },
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When it was made, in formats that say so.
    pub time: Option<Nanos>,
    /// Process that made it; 0 in formats that do not say.
    pub task: u32,
    /// What it does.
    pub op: Op,
    /// To what.
    pub target: Target,
}

/// The address space in which pages are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// Pages of a disk.
    Device(u32),
    /// Pages of a file.
    File(FileKey),
    /// Opaque blocks: neighbours in number need not be neighbours in place.
    Ids,
}

/// Size of the pages that requests are split into: a power of two from 512 B to 1 GiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageShift(u32);

impl PageShift {
    /// Pages of 4 KiB.
    pub const PAGE_4K: Self = Self(12);

    /// From a size in bytes; `None` unless it is a power of two from 512 B to 1 GiB.
    pub const fn from_bytes(size: Bytes) -> Option<Self> {
        match size.0.is_power_of_two() && size.0 >= 512 && size.0 <= 1 << 30 {
            true => Some(Self(size.0.trailing_zeros())),
            false => None,
        }
    }

    /// The size.
    pub const fn bytes(self) -> Bytes {
        Bytes(1 << self.0)
    }
}

impl Default for PageShift {
    fn default() -> Self {
        Self::PAGE_4K
    }
}

/// Consecutive pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSpan {
    /// Where they are numbered.
    pub space: Space,
    /// The first page.
    pub first: u64,
    /// How many.
    pub count: u64,
}

impl PageSpan {
    /// The page behind the last.
    pub const fn end(&self) -> u64 {
        self.first.saturating_add(self.count)
    }

    /// Each page, in rising order. An opaque block may have the largest number there is, which has
    /// no page behind it.
    pub fn iter(&self) -> impl Iterator<Item = u64> + use<> {
        let first = self.first;
        (0..self.count).map(move |n| first.wrapping_add(n))
    }

    /// The last page; the first, if there is none.
    pub const fn last(&self) -> u64 {
        self.first.saturating_add(self.count.saturating_sub(1))
    }
}

impl Request {
    /// The pages that the request touches, wholly or in part: bytes `a..b` touch pages
    /// `floor(a/size)..ceil(b/size)`, so a request that is as long as a page but not aligned
    /// touches two. An opaque block is one page, whatever its size. For a
    /// [`Delete`](Op::Delete) these are the pages that are gone: those that lie wholly in it, up to
    /// the largest number there is where it goes to the end.
    pub const fn pages(&self, page: PageShift) -> PageSpan {
        let (space, from, end) = match self.target {
            Target::Id { id, .. } => {
                return PageSpan {
                    space: Space::Ids,
                    first: id,
                    count: 1,
                };
            }
            Target::Device {
                device,
                sector,
                sectors,
            } => (
                Space::Device(device),
                sector.saturating_mul(512),
                sector.saturating_add(sectors).saturating_mul(512),
            ),
            Target::File {
                file,
                offset,
                length,
            } => (Space::File(file), offset, offset.saturating_add(length)),
        };
        let first = match self.op {
            Op::Delete => pages_up_to(from, page),
            _ => from >> page.0,
        };
        let behind = match self.op {
            Op::Delete if end < u64::MAX => end >> page.0,
            _ => pages_up_to(end, page),
        };
        PageSpan {
            space,
            first,
            count: behind.saturating_sub(first),
        }
    }

    /// Bytes asked for; `None` for an opaque block of unknown size. A deletion asks for none.
    pub const fn bytes(&self) -> Option<u64> {
        match (self.op, self.target) {
            (Op::Delete, _) => Some(0),
            (_, Target::Device { sectors, .. }) => Some(sectors.saturating_mul(512)),
            (_, Target::File { length, .. }) => Some(length),
            (_, Target::Id { bytes: Some(n), .. }) => Some(n as u64),
            (_, Target::Id { bytes: None, .. }) => None,
        }
    }
}

const fn pages_up_to(end: u64, page: PageShift) -> u64 {
    end.div_ceil(1 << page.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sectors(sector: u64, sectors: u64) -> Request {
        let target = Target::Device {
            device: 3,
            sector,
            sectors,
        };
        Request {
            time: None,
            task: 0,
            op: Op::Read,
            target,
        }
    }

    #[test]
    fn a_request_touches_the_pages_of_its_every_byte() {
        for shift in [9, 12, 13] {
            let page = PageShift::from_bytes(Bytes(1 << shift)).expect("a size");
            for start in 0..40 {
                for length in 1..40 {
                    let mut slow: Vec<u64> = (start * 512..(start + length) * 512)
                        .step_by(512)
                        .map(|byte| byte >> shift)
                        .collect();
                    slow.dedup();
                    let span = sectors(start, length).pages(page);
                    assert_eq!(span.iter().collect::<Vec<_>>(), slow, "{start}+{length}");
                }
            }
        }
    }

    #[test]
    fn the_last_sectors_do_not_overflow() {
        let span = sectors((1 << 54) - 1, 1).pages(PageShift::PAGE_4K);
        assert_eq!((span.first, span.count), ((1 << 51) - 1, 1));
    }

    #[test]
    fn a_cut_keeps_the_page_that_it_goes_through() {
        let cut = |offset| Request {
            time: None,
            task: 0,
            op: Op::Delete,
            target: Target::File {
                file: FileKey(0),
                offset,
                length: u64::MAX - offset,
            },
        };
        let first = |offset| cut(offset).pages(PageShift::PAGE_4K).first;
        assert_eq!([first(0), first(1), first(4096), first(4097)], [0, 1, 1, 2]);
        assert_eq!(cut(1).pages(PageShift::PAGE_4K).end(), 1 << 52);
        assert_eq!(cut(1).bytes(), Some(0));
    }

    #[test]
    fn a_hole_takes_the_pages_that_lie_wholly_in_it() {
        let hole = |offset, length| Request {
            time: None,
            task: 0,
            op: Op::Delete,
            target: Target::File {
                file: FileKey(0),
                offset,
                length,
            },
        };
        let pages = |offset, length| {
            let span = hole(offset, length).pages(PageShift::PAGE_4K);
            span.iter().collect::<Vec<_>>()
        };
        assert_eq!(pages(0, 8192), [0, 1]);
        assert_eq!(pages(1, 8192), [1]);
        assert!(pages(1, 8190).is_empty());
        assert!(pages(4096, 4095).is_empty());
        assert_eq!(pages(4000, 96 + 4096 + 1), [1]);
    }

    #[test]
    fn the_largest_number_of_a_block_is_one_as_any_other() {
        let block = Request {
            time: None,
            task: 0,
            op: Op::Read,
            target: Target::Id {
                id: u64::MAX,
                bytes: None,
                next: NextUse::Unknown,
            },
        };
        let span = block.pages(PageShift::PAGE_4K);
        assert_eq!(span.iter().collect::<Vec<_>>(), [u64::MAX]);
        assert_eq!(span.last(), u64::MAX);
    }

    #[test]
    fn page_sizes_are_powers_of_two_in_range() {
        for (size, valid) in [(512, true), (4096, true), (1 << 30, true)] {
            assert_eq!(PageShift::from_bytes(Bytes(size)).is_some(), valid);
        }
        for size in [0, 1, 256, 4095, 1 << 31, u64::MAX] {
            assert_eq!(PageShift::from_bytes(Bytes(size)), None, "{size}");
        }
    }

    #[test]
    fn time_differences_saturate() {
        assert_eq!(Nanos(5).since(Nanos(3)), Picos(2000));
        assert_eq!(Nanos(3).since(Nanos(5)), Picos(0));
        assert_eq!(Nanos(u64::MAX).since(Nanos(0)), Picos::MAX);
    }
}
