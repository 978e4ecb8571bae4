//! Block I/O: from pages that somebody wants to requests that a disk serves.
//!
//! ```text
//! run of pages -> merged into a waiting request, or a new one (Pool)
//!              -> held by the plug for a few requests or milliseconds (Queue)
//!              -> chosen by the scheduler
//!              -> BlockPort, at most `depth` at a time
//!              -> completion: the pages, each exactly once
//! ```
//!
//! Vocabulary: a *unit* is a page of 8 sectors that the caller names by a token of
//! its own; a *request* is a run of units that follow one another on the disk.
//!
//! # Deviations from Linux
//! * A submitter that finds no free request does not sleep: its run waits in a
//!   backlog, first come first served, and enters as requests become free. The
//!   limits on running ahead are the caller's ([`Queue::congested`]).
//! * Time passes only in the disk; merging, sorting and dispatching are free.

mod config;
mod pool;
mod queue;
mod runs;
mod scheduler;

pub use config::{IoConfig, IoConfigError, IoStats, Scheduler};
pub use queue::{Done, Queue, Run};
pub use runs::RunLengths;
