//! Which task runs where, and who waits for what.
//!
//! A [`Scheduler`] has one queue per core; tasks stay within their core set,
//! take turns by time slices, and wait for numbered events. It owns no clock:
//! the host says that a slice is over, that a task blocks, posts or ends, and
//! asks [`Scheduler::next_on`] who follows. Everything is deterministic: ties
//! go to the lowest core number, queues are first in first out.
//!
//! Vocabulary: a task is *runnable* (on a queue), *running* (on a core),
//! *blocked* (waits for an event or for something the host knows) or *done*. A
//! *deadlock* is a state in which no task runs or can run, none waits for the
//! host, and some are blocked.
//!
//! Deviations: one fixed slice instead of virtual run time or priorities, and
//! no load balancing beyond placing a task on its shortest allowed queue when
//! it wakes (an idle core takes a waiting task that is allowed there, so no
//! core idles while a task that may use it waits).

mod queue;
mod state;

pub use queue::Scheduler;
pub use state::{Blocked, EventKey, SchedBroken, SchedConfig, SchedError, Status, Wake};
