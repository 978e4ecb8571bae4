//! What the scheduler says about tasks: states, waits, errors.

use piebald_units::{CoreId, CoreSet, Picos, TaskId};

/// Configuration of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedConfig {
    /// Cores of the machine, 1 to 64.
    pub cores: u16,
    /// How long a task runs while another waits for its core. Default 4 ms, one
    /// tick at 250 Hz. \[M\]
    pub slice: Picos,
    /// At a tick a waiting task goes to another core if the two queues differ by two or
    /// more: [`Scheduler::balance`](super::Scheduler::balance). Default off.
    pub balance: bool,
}

impl SchedConfig {
    /// The defaults for that many cores.
    pub const fn new(cores: u16) -> Self {
        Self {
            cores,
            slice: Picos(4_000_000_000),
            balance: false,
        }
    }
}

/// An event: its program and its number there. Numbers are unique within a
/// program only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventKey {
    /// The program's instance.
    pub program: u16,
    /// Its number, as in `SysOp::Post`.
    pub event: u64,
}

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// A post of this event.
    Event(EventKey),
    /// Something that the host ends with [`Scheduler::wake`](super::Scheduler::wake), such as a disk.
    Host,
}

/// State of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// On the queue of a core.
    Runnable(CoreId),
    /// On a core.
    Running(CoreId),
    /// Waiting.
    Blocked(Blocked),
    /// Ended.
    Done,
}

impl core::fmt::Display for Status {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Runnable(core) => write!(f, "runnable on {core}"),
            Self::Running(core) => write!(f, "running on {core}"),
            Self::Blocked(_) => f.write_str("blocked"),
            Self::Done => f.write_str("done"),
        }
    }
}

/// A task that became runnable, and on which core's queue it stands. If that
/// core is idle the host should let it run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// The task.
    pub task: TaskId,
    /// The core.
    pub core: CoreId,
}

/// A call that does not fit the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchedError {
    /// The scheduler does not know the task.
    #[error("{0} is not known to the scheduler")]
    NoSuchTask(TaskId),
    /// The task is known already.
    #[error("{0} was added twice")]
    AddedTwice(TaskId),
    /// None of the task's cores exists.
    #[error("{task} may run on cores {cores} only; the machine has cores 0-{last}")]
    NoCore {
        /// The task.
        task: TaskId,
        /// The cores allowed.
        cores: CoreSet,
        /// Highest core number.
        last: u16,
    },
    /// The task may not run on the core that it is to be moved to.
    #[error("{task} cannot be moved to {core}: it may run on cores {cores} only")]
    Pinned {
        /// The task.
        task: TaskId,
        /// The core.
        core: CoreId,
        /// The cores allowed.
        cores: CoreSet,
    },
    /// The core does not exist.
    #[error("{core} does not exist; the machine has cores 0-{last}")]
    BadCore {
        /// The core.
        core: CoreId,
        /// Highest core number.
        last: u16,
    },
    /// The task is not in the state that the call needs.
    #[error("{task} is {status}; the call needs it {needs}")]
    State {
        /// The task.
        task: TaskId,
        /// Its state.
        status: Status,
        /// The state needed.
        needs: &'static str,
    },
    /// A configuration field out of range.
    #[error("{field} = {value}: must be {allowed}")]
    Config {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// What is allowed.
        allowed: &'static str,
    },
}

/// An inconsistency that [`Scheduler::validate`](super::Scheduler::validate) found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rule} ({task})")]
pub struct SchedBroken {
    /// What does not hold.
    pub rule: &'static str,
    /// A task that shows it.
    pub task: TaskId,
}
