//! What can go wrong.

use piebald_policy::contract::replacement::BrokenOrder;
use piebald_units::{FileId, Picos, TaskId};
use thiserror::Error;

use super::{config::FileConfigError, layout::LayoutError};

/// A call that the host refuses, or a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FileError {
    /// The file does not exist (any more).
    #[error("{0} is not known")]
    UnknownFile(FileId),
    /// The task's last call has not ended.
    #[error("{0} makes a call while it waits in another")]
    Busy(TaskId),
    /// Time went back.
    #[error("a call at {now} after an event at {clock}")]
    TimeBackwards {
        /// The time of the call.
        now: Picos,
        /// The host's clock.
        clock: Picos,
    },
    /// An event is due before the call.
    #[error("a call at {now} although an event is due at {due}")]
    EventDue {
        /// The time of the call.
        now: Picos,
        /// The time of the event.
        due: Picos,
    },
    /// A page number or length beyond 2^40.
    #[error("page {0} is beyond 2^40")]
    PageRange(u64),
    /// More than 2^23 tasks.
    #[error("more than 2^23 tasks")]
    TooManyTasks,
    /// The layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The configuration.
    #[error(transparent)]
    Config(#[from] FileConfigError),
}

/// An inconsistency that [`FileHost::validate`](super::FileHost::validate) found: a
/// defect of this crate or of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BrokenHost {
    /// In the page cache, swap or write-back.
    #[error("{0}")]
    Rule(&'static str),
    /// In the queue.
    #[error("block I/O: {0}")]
    Queue(&'static str),
    /// In the policy.
    #[error("policy: {0}")]
    Policy(#[from] BrokenOrder),
}
