//! Programs that are block or file requests, and sizes of memory for them.

use std::{fmt, str::FromStr};

use piebald_units::{Bytes, ParseError};

use crate::{value::Notation, words::words};

words! {
    /// When requests are made.
    pub enum Pace {
        /// One after another, in the trace's order.
        Serial = "serial",
        /// In the trace's order, but a request that waits stops its own process only.
        Ordered = "ordered",
        /// Each process as fast as it can, all of them at once.
        Tasks = "tasks",
        /// At the trace's times, but not before the process's last request is done.
        Timed = "timed",
    }
}

words! {
    /// How the times of several traces belong together.
    pub enum Align {
        /// By their stamps, which count from a date or are of one tracing run.
        Stamps = "stamps",
        /// Each trace begins at the same moment.
        Start = "start",
        /// A request of each in turn, whatever their times.
        Turn = "turn",
    }
}

words! {
    /// Which stage of a request in the block layer is taken, where a trace tells several.
    pub enum Stage {
        /// When it is queued: what programs and the file system ask for.
        Queue = "queue",
        /// When it is issued to the disk: after merging.
        Issue = "issue",
    }
}

words! {
    /// Are objects of one name the same in several traces of one format?
    pub enum Objects {
        /// The same, as in parts of one log.
        Same = "same",
        /// Different, as in logs of different services.
        Apart = "apart",
    }
}

/// A size of memory as a person gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MemorySize {
    /// Such as `64MiB`.
    Bytes(Bytes),
    /// Such as `10%`: of all different pages of the traces.
    Share(f64),
}

/// Text that is no size of memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; or a share of the footprint such as 10%")]
pub struct NotMemory(String);

impl FromStr for MemorySize {
    type Err = NotMemory;

    fn from_str(text: &str) -> Result<Self, NotMemory> {
        if let Some(share) = text.trim().strip_suffix('%') {
            let share = share.trim().parse::<f64>().ok();
            let share = share.filter(|share| *share > 0.0 && *share <= 100.0);
            let no_share = || NotMemory("is no share; allowed: a size such as 64MiB".to_owned());
            return share.map(|s| Self::Share(s / 100.0)).ok_or_else(no_share);
        }
        let parsed = text.parse::<Bytes>();
        parsed.map(Self::Bytes).map_err(|e| match e {
            ParseError::UnknownUnit { .. } => NotMemory(e.to_string()),
            _ => NotMemory(format!("{e}; allowed: a size such as 64MiB")),
        })
    }
}

impl fmt::Display for MemorySize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => bytes.fmt(f),
            Self::Share(share) => write!(f, "{}%", share * 100.0),
        }
    }
}

impl Notation for MemorySize {
    const WHAT: &'static str = "a size such as \"64MiB\", or for requests a share such as \"10%\"";
}
