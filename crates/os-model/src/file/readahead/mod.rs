//! Readahead: which pages are read before anybody asks for them.
//!
//! One state machine per open file. It is told of every page that a call touches,
//! before the page is read or waited for, and answers with windows to read; the
//! host leaves out what is in the cache and what lies behind the end of the file.
//! The machine knows no clock and no disk.

use std::fmt::Debug;

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

    /// Linux 2.4.
    pub const fn linux_2_4() -> Self {
        Self::none()
    }

    /// Linux 2.6.11.
    pub const fn linux_2_6_11() -> Self {
        Self::none()
    }

    /// Linux 2.6.30.
    pub const fn linux_2_6_30() -> Self {
        Self::none()
    }

    /// Linux 6.x.
    pub const fn linux_6() -> Self {
        Self::none()
    }
}

/// The state machine of an open file, of whichever generation.
#[derive(Clone, Debug)]
pub(super) enum Stream {
    None,
}

impl Stream {
    pub fn new(config: &ReadaheadConfig) -> Self {
        match config.generation {
            Generation::None => Self::None,
        }
    }
}

impl Readahead for Stream {
    fn access(&mut self, _access: &Access, _cache: &dyn Lookup) -> Plan {
        match self {
            Self::None => NOTHING,
        }
    }
}
