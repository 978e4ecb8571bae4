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
//! A policy may move a task that runs or waits for a core ([`Scheduler::migrate`]): it is
//! *placed* there from then on, wakes there, and no idle core takes it away.
//!
//! Deviations: one fixed slice instead of virtual run time or priorities. A task goes to
//! its shortest allowed queue when it wakes, an idle core takes a waiting task that is
//! allowed there and not placed elsewhere, and [`Scheduler::balance`], off by default, moves
//! a waiting task at a tick if queues differ by two or more, as Linux does between cores of
//! equal weight; domains, cache heat and the history of a task's load are not looked at.

mod moves;
mod queue;
mod state;

pub use queue::Scheduler;
pub use state::{Blocked, EventKey, SchedBroken, SchedConfig, SchedError, Status, Wake};
