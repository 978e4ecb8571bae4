//! What is answered to a call that makes no sense, and what `validate` may find.

use core::fmt;

use super::ProgramId;

/// The program has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone(
    /// The one that was named.
    pub ProgramId,
);

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has left", self.0)
    }
}

impl core::error::Error for Gone {}

/// Why a program was not taken in or changed. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A program of no thread.
    NoThreads,
    /// The task is a program already.
    Known(ProgramId),
    /// Every slot holds a program.
    NoSlot {
        /// Number of slots that the host lent.
        slots: usize,
    },
    /// The program has left.
    Gone(ProgramId),
}

impl From<Gone> for Refusal {
    fn from(gone: Gone) -> Self {
        Self::Gone(gone.0)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoThreads => f.write_str("threads = 0; allowed: 1 and more"),
            Self::Known(id) => write!(f, "the task is {id} already"),
            Self::NoSlot { slots } => write!(f, "all {slots} slots for programs are in use"),
            Self::Gone(id) => Gone(*id).fmt(f),
        }
    }
}

impl core::error::Error for Refusal {}

/// An inconsistency that `validate` found: a defect of the manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// What does not hold.
    pub rule: &'static str,
    /// The slot that shows it, or `None` for the manager as a whole.
    pub slot: Option<usize>,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.slot {
            Some(slot) => write!(f, "{} (program slot {slot})", self.rule),
            None => f.write_str(self.rule),
        }
    }
}

impl core::error::Error for Broken {}
