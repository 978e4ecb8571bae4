//! Readahead: which pages are read before anybody asks for them.
//!
//! One state machine per open file. It is told of every page that a call touches,
//! before the page is read or waited for, and answers with windows to read; the
//! host leaves out what is in the cache and what lies behind the end of the file.
//! The machine knows no clock and no disk.

mod on_demand;
mod v2_4;
mod v2_6_11;

use std::fmt::Debug;

pub use on_demand::{OnDemand, Version};
pub use v2_4::V2_4;
pub use v2_6_11::V2_6_11;

/// What a call finds in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Nothing.
    Missing,
    /// The page, still being read.
    InFlight,
    /// The page, up to date.
    Ready,
}

/// A page that a call touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Which.
    pub page: u64,
    /// Pages of the call from this one on, at least 1.
    pub left: u64,
    /// It is the first page of the call.
    pub first: bool,
    /// The call ends within the first half page of the file.
    pub peek: bool,
    /// Bytes from the start of the call's first page to the call's end.
    pub bytes: u64,
    /// What is in the cache.
    pub seen: Seen,
    /// The page carries a mark, which this access takes off.
    pub marked: bool,
    /// The disk's queue of reads is congested.
    pub congested: bool,
    /// Length of the file in pages.
    pub file_pages: u64,
}

/// Pages to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first.
    pub start: u64,
    /// How many.
    pub pages: u64,
    /// The page that gets a mark: whoever touches it should come here again.
    pub mark: Option<u64>,
}

impl Window {
    /// A window without a mark.
    pub const fn plain(start: u64, pages: u64) -> Self {
        Self {
            start,
            pages,
            mark: None,
        }
    }

    /// Does it hold the page?
    pub const fn holds(self, page: u64) -> bool {
        self.start <= page && page - self.start < self.pages
    }
}

/// Up to two windows, to be read in this order.
pub type Plan = [Option<Window>; 2];

/// No window.
pub const NOTHING: Plan = [None; 2];

/// Is a page of the file in the cache, up to date or on its way?
pub trait Lookup {
    /// Answers.
    fn cached(&self, page: u64) -> bool;
}

impl<F: Fn(u64) -> bool> Lookup for F {
    fn cached(&self, page: u64) -> bool {
        self(page)
    }
}

/// The state machine of an open file.
pub trait Readahead: Debug {
    /// A call touches a page.
    fn access(&mut self, access: &Access, cache: &dyn Lookup) -> Plan;
}

/// The generations that are modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Generation {
    /// No readahead.
    None,
    /// 2.4 in AccuSim's form.
    V2_4,
    /// 2.6.11.
    V2_6_11,
    /// 2.6.23 and later.
    OnDemand(Version),
}

/// Configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadaheadConfig {
    /// Which rules.
    pub generation: Generation,
    /// Largest window: 32 pages, 128 KiB (`read_ahead_kb`), in all generations.
    pub max_pages: u32,
    /// Smallest window: 3 pages in 2.4, 4 in 2.6.11.
    pub min_pages: u32,
    /// A page that is missing when it is touched through a mapping is read with
    /// `max_pages` around it, as 2.6 does. \[M\]
    pub read_around: bool,
}

impl ReadaheadConfig {
    /// No readahead.
    pub const fn none() -> Self {
        Self {
            generation: Generation::None,
            max_pages: 32,
            min_pages: 0,
            read_around: false,
        }
    }

    const fn of(generation: Generation, min_pages: u32) -> Self {
        Self {
            generation,
            max_pages: 32,
            min_pages,
            read_around: !matches!(generation, Generation::V2_4),
        }
    }

    /// Linux 2.4: 3 to 32 pages.
    pub const fn linux_2_4() -> Self {
        Self::of(Generation::V2_4, 3)
    }

    /// Linux 2.6.11: 4 to 32 pages (`VM_MIN_READAHEAD`, `VM_MAX_READAHEAD`).
    pub const fn linux_2_6_11() -> Self {
        Self::of(Generation::V2_6_11, 4)
    }

    /// Linux 2.6.30: up to 32 pages.
    pub const fn linux_2_6_30() -> Self {
        Self::of(Generation::OnDemand(Version::V2_6_30), 0)
    }

    /// Linux 2.6.32: up to 32 pages.
    pub const fn linux_2_6_32() -> Self {
        Self::of(Generation::OnDemand(Version::V2_6_32), 0)
    }

    /// Linux 6.x: up to 32 pages.
    pub const fn linux_6() -> Self {
        Self::of(Generation::OnDemand(Version::V6), 0)
    }

    /// With another largest window, as `read_ahead_kb` sets it.
    #[must_use]
    pub const fn with_max_pages(self, max_pages: u32) -> Self {
        Self { max_pages, ..self }
    }

    /// The rules in a few words, for people who read results.
    pub fn describe(&self) -> String {
        let name = match self.generation {
            Generation::None => return "no readahead".into(),
            Generation::V2_4 => "Linux 2.4",
            Generation::V2_6_11 => "Linux 2.6.11",
            Generation::OnDemand(Version::V2_6_30) => "Linux 2.6.30",
            Generation::OnDemand(Version::V2_6_32) => "Linux 2.6.32",
            Generation::OnDemand(Version::V6) => "Linux 6",
        };
        format!("readahead of {name}, at most {} pages", self.max_pages)
    }
}

/// The state machine of an open file, of whichever generation.
#[derive(Clone, Debug)]
pub(super) enum Stream {
    None,
    V2_4(V2_4),
    V2_6_11(V2_6_11),
    OnDemand(OnDemand),
}

impl Stream {
    pub fn new(config: &ReadaheadConfig) -> Self {
        match config.generation {
            Generation::None => Self::None,
            Generation::V2_4 => Self::V2_4(V2_4::new(config)),
            Generation::V2_6_11 => Self::V2_6_11(V2_6_11::new(config)),
            Generation::OnDemand(version) => Self::OnDemand(OnDemand::new(config, version)),
        }
    }
}

impl Readahead for Stream {
    fn access(&mut self, access: &Access, cache: &dyn Lookup) -> Plan {
        match self {
            Self::None => NOTHING,
            Self::V2_4(s) => s.access(access, cache),
            Self::V2_6_11(s) => s.access(access, cache),
            Self::OnDemand(s) => s.access(access, cache),
        }
    }
}

/// What the tests of the generations share.
#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, ops::Range};

    use super::*;

    pub fn window(start: u64, pages: u64) -> Window {
        Window::plain(start, pages)
    }

    /// A call of whole pages begins.
    pub fn touch(page: u64, pages: u64, seen: Seen) -> Access {
        Access {
            page,
            left: pages,
            first: true,
            peek: false,
            bytes: pages * 4096,
            seen,
            marked: false,
            congested: false,
            file_pages: 1000,
        }
    }

    pub fn nothing_cached() -> impl Lookup {
        |_: u64| false
    }

    /// Reads pages one by one, every read done before the next call; only page 0 is
    /// missing. Answers at which page which window began that reads something.
    pub fn scan(s: &mut impl Readahead, pages: Range<u64>, file_pages: u64) -> Vec<(u64, Window)> {
        let mut cached: BTreeSet<u64> = (0..pages.start).collect();
        let mut marks = BTreeSet::new();
        let mut windows = Vec::new();
        for page in pages {
            let access = Access {
                marked: marks.remove(&page),
                file_pages,
                ..touch(
                    page,
                    1,
                    if page == 0 {
                        Seen::Missing
                    } else {
                        Seen::Ready
                    },
                )
            };
            let known = cached.clone();
            for w in s
                .access(&access, &|p: u64| known.contains(&p))
                .into_iter()
                .flatten()
            {
                let new =
                    (w.start..(w.start + w.pages).min(file_pages)).filter(|p| !known.contains(p));
                let before = cached.len();
                cached.extend(new);
                marks.extend(w.mark);
                if cached.len() > before {
                    windows.push((page, w));
                }
            }
        }
        windows
    }
}
