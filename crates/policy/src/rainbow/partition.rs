//! A partition, what is asked for it, and what became of it.

use core::fmt;

use piebald_units::{ColorAsk, ColorSet};

use super::Name;

/// A partition, as long as it exists: an id is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PartitionId {
    pub(super) slot: u16,
    pub(super) stamp: u64,
}

impl PartitionId {
    /// A number of its own among all partitions of a registry, not 0.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.stamp.wrapping_add(1)
    }
}

impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "partition {}", self.slot)
    }
}

/// A slot that the host lends: holds one partition, or none.
#[derive(Clone, Debug)]
pub struct Partition {
    pub(super) colors: ColorSet,
    pub(super) nr_colors: u32,
    /// 0 if the slot holds no partition.
    pub(super) tasks: u32,
    /// When the partition was made.
    pub(super) stamp: u64,
    /// When its colours changed last.
    pub(super) changed: u64,
    pub(super) name: Option<Name>,
}

impl Partition {
    /// A slot without a partition.
    pub const EMPTY: Self = Self {
        colors: ColorSet::EMPTY,
        nr_colors: 0,
        tasks: 0,
        stamp: 0,
        changed: 0,
        name: None,
    };

    /// Its colours, at least one.
    pub const fn colors(&self) -> &ColorSet {
        &self.colors
    }

    /// Number of its colours.
    pub const fn nr_colors(&self) -> u32 {
        self.nr_colors
    }

    /// Number of tasks in it, at least one.
    pub const fn tasks(&self) -> u32 {
        self.tasks
    }

    /// Its name.
    pub const fn name(&self) -> Option<&Name> {
        self.name.as_ref()
    }
}

/// How many colours, or which.
#[derive(Clone, Copy, Debug)]
pub enum Ask<'a> {
    /// So many.
    Count(u32),
    /// A part of all colours in hundredths of a percent, 1 to 10000, rounded as
    /// [`Config::rounding`](super::Config::rounding) says.
    Share(u32),
    /// Exactly these.
    Exactly(&'a ColorSet),
}

impl<'a> From<&'a ColorAsk> for Ask<'a> {
    fn from(asked: &'a ColorAsk) -> Self {
        match asked {
            ColorAsk::Count(n) => Self::Count(*n),
            ColorAsk::Share(basis_points) => Self::Share(*basis_points),
            ColorAsk::Exactly(set) => Self::Exactly(set),
        }
    }
}

impl Ask<'_> {
    /// A share in whole percent.
    pub const fn percent(percent: u32) -> Self {
        Self::Share(percent.saturating_mul(100))
    }
}

/// What a new partition is to be.
#[derive(Clone, Copy, Debug)]
pub struct Reservation<'a> {
    /// The partition that the asking task is in, if it is in one.
    pub current: Option<PartitionId>,
    /// Its colours.
    pub ask: Ask<'a>,
    /// Its name, which no other partition may have.
    pub name: Option<Name>,
    /// How many tasks are in it from the start: all threads of the asking process,
    /// at least 1 (Listing 5.3 lines 43 to 49).
    pub tasks: u32,
}

impl<'a> Reservation<'a> {
    /// A partition without a name for one task that is not coloured.
    pub const fn of(ask: Ask<'a>) -> Self {
        Self {
            current: None,
            ask,
            name: None,
            tasks: 1,
        }
    }
}

/// What became of a partition that a task left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// So many tasks are still in it.
    Tasks(u32),
    /// None: the partition is gone, and so many colours are unreserved again.
    Freed(u32),
}

/// How a partition changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resized {
    /// Colours that it gained.
    pub gained: u32,
    /// Colours that it gave back: pages in them have to move.
    pub lost: u32,
}

/// What the registry did since it was set up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Partitions made.
    pub reserved: u64,
    /// Of these, those whose colours were not one run.
    pub scattered: u64,
    /// Partitions whose last task left.
    pub freed: u64,
    /// Partitions whose colours changed.
    pub resized: u64,
    /// Colours gained by resizing.
    pub gained: u64,
    /// Colours given back by resizing.
    pub lost: u64,
    /// Reservations and changes that were refused.
    pub refused: u64,
    /// Tasks that joined a partition which existed.
    pub joined: u64,
    /// Tasks that left one.
    pub left: u64,
}

impl Counters {
    pub(super) const ZERO: Self = Self {
        reserved: 0,
        scattered: 0,
        freed: 0,
        resized: 0,
        gained: 0,
        lost: 0,
        refused: 0,
        joined: 0,
        left: 0,
    };
}

/// Adds to a counter, which stays at its end.
pub(super) fn count(counter: &mut u64, n: u64) {
    *counter = counter.saturating_add(n);
}
