//! Why a partition was not made, changed, joined or left.

use core::fmt;

use piebald_units::Color;

use super::PartitionId;

/// The partition does not exist (any more).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone(
    /// The one that was named.
    pub PartitionId,
);

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} does not exist any more", self.0)
    }
}

impl core::error::Error for Gone {}

/// Why colours were not reserved. Nothing has changed but a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No colour was asked for.
    NoColors,
    /// No task was to be in the partition.
    NoTasks,
    /// The task is in a partition already; that one can be resized.
    AlreadyColored(PartitionId),
    /// More colours than are left.
    TooMany {
        /// Colours that the request needs beyond those that it has.
        asked: u32,
        /// Colours that could be reserved.
        left: u32,
    },
    /// The machine has no such colour.
    NotAColor {
        /// The lowest such colour.
        color: Color,
        /// Number of colours that there are.
        colors: u32,
    },
    /// A named colour is reserved.
    Taken {
        /// The lowest such colour.
        color: Color,
        /// Who has it.
        by: PartitionId,
    },
    /// A share is 0 or above 100 %.
    Share {
        /// Its value in hundredths of a percent.
        basis_points: u32,
    },
    /// A share was rounded to no colour.
    ShareTooSmall {
        /// Its value in hundredths of a percent.
        basis_points: u32,
        /// Number of colours that there are.
        colors: u32,
    },
    /// Another partition has the name.
    NameTaken(PartitionId),
    /// Every slot holds a partition.
    NoSlot {
        /// Number of slots that the host lent and that can be used.
        slots: usize,
    },
    /// The partition does not exist.
    Gone(PartitionId),
}

impl From<Gone> for Refusal {
    fn from(gone: Gone) -> Self {
        Self::Gone(gone.0)
    }
}

/// Writes hundredths of a percent as `12.5 %`.
fn percent(f: &mut fmt::Formatter<'_>, basis_points: u32) -> fmt::Result {
    let (whole, part) = (basis_points / 100, basis_points % 100);
    match (part, part % 10) {
        (0, _) => write!(f, "{whole} %"),
        (_, 0) => write!(f, "{whole}.{} %", part / 10),
        _ => write!(f, "{whole}.{part:02} %"),
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoColors => f.write_str("0 colors asked for; allowed: 1 or more"),
            Self::NoTasks => f.write_str("0 tasks for a partition; allowed: 1 or more"),
            Self::AlreadyColored(id) => write!(f, "the task is in {id} already"),
            Self::TooMany { asked, left } => {
                write!(f, "{asked} more colors asked for; {left} can be reserved")
            }
            Self::NotAColor { color, colors } => {
                let max = colors.saturating_sub(1);
                write!(f, "{color} does not exist; allowed: 0 to {max}")
            }
            Self::Taken { color, by } => write!(f, "{color} belongs to {by}"),
            Self::Share { basis_points } => {
                f.write_str("a share of ")?;
                percent(f, *basis_points)?;
                f.write_str("; allowed: 0.01 % to 100 %")
            }
            Self::ShareTooSmall {
                basis_points,
                colors,
            } => {
                f.write_str("a share of ")?;
                percent(f, *basis_points)?;
                write!(f, " is less than one of {colors} colors")
            }
            Self::NameTaken(id) => write!(f, "{id} has that name"),
            Self::NoSlot { slots } => write!(f, "all {slots} slots for partitions are in use"),
            Self::Gone(id) => Gone(*id).fmt(f),
        }
    }
}

impl core::error::Error for Refusal {}

/// Why a task did not join a partition. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinError {
    /// The partition does not exist.
    Gone(PartitionId),
    /// It has 2^32 - 1 tasks.
    TooManyTasks(PartitionId),
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone(id) => Gone(*id).fmt(f),
            Self::TooManyTasks(id) => {
                write!(f, "{id} has {} tasks, which is the most", u32::MAX)
            }
        }
    }
}

impl core::error::Error for JoinError {}

/// An inconsistency that `validate` found: a defect of the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// What does not hold.
    pub rule: &'static str,
    /// The slot that shows it, or `None` for the registry as a whole.
    pub slot: Option<usize>,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.slot {
            Some(slot) => write!(f, "{} (partition slot {slot})", self.rule),
            None => f.write_str(self.rule),
        }
    }
}

impl core::error::Error for Broken {}
