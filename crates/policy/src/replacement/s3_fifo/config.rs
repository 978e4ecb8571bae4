//! The thresholds of S3-FIFO, and which published form of it runs.

use crate::replacement::{
    NameLeaves, NewError,
    config::{self as room, percent, within},
};

/// Where the published forms of S3-FIFO differ; see the table of the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// As its authors' simulator has it today.
    LibCacheSim,
    /// As in the program of the paper's experiments.
    Artifact,
    /// The paper's algorithm 1 to the letter.
    Paper,
}

impl Rule {
    pub(super) const fn names(self) -> NameLeaves {
        match self {
            Self::LibCacheSim | Self::Artifact => NameLeaves::AtMiss,
            Self::Paper => NameLeaves::AtInsert,
        }
    }
}

/// The thresholds of [`S3Fifo`](super::S3Fifo).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The size of memory.
    pub room: room::Config,
    /// Small's share of the capacity, 0 to 100. Default 10 (section 4.1).
    pub small_percent: u32,
    /// A page of small moves to main if it was used more often than this, 0 to 2.
    /// Default 1 (algorithm 1, line 18).
    pub promote_above: u8,
    /// Names in ghost, as a share of the capacity, 0 to 1000. Default 90, main's share
    /// (section 4.1).
    pub ghost_percent: u32,
    /// Which published form. Default: the authors' simulator.
    pub rule: Rule,
}

impl Config {
    /// The authors' choice for a memory of so many pages.
    pub const fn new(capacity: u32) -> Self {
        Self {
            room: room::Config::new(capacity),
            small_percent: 10,
            promote_above: 1,
            ghost_percent: 90,
            rule: Rule::LibCacheSim,
        }
    }

    pub(super) fn small(&self) -> u32 {
        percent(self.room.capacity, self.small_percent).max(1)
    }

    pub(super) const fn ghosts(&self) -> u32 {
        percent(self.room.capacity, self.ghost_percent)
    }

    /// Numbers needed: pages and names.
    ///
    /// # Errors
    /// If a threshold is out of its range, or the size of memory is.
    pub fn slots(&self) -> Result<u32, NewError> {
        within("small_percent", self.small_percent, 0, 100)?;
        within("promote_above", self.promote_above.into(), 0, 2)?;
        within("ghost_percent", self.ghost_percent, 0, 1000)?;
        self.room.slots_with(self.ghosts())
    }
}
