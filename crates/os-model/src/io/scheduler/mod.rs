//! Which waiting request goes to the disk next.

mod anticipatory;
mod deadline;

use piebald_units::{Lba, Picos, TaskId};

use super::{
    config::{IoConfig, Scheduler},
    pool::{DIRS, Id, Pool},
};
use anticipatory::Anticipatory;
use deadline::Deadline;

/// What a scheduler says when the disk could take a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// This one.
    Dispatch(Id),
    /// None before that time, unless something changes.
    Wait(Picos),
    /// There is none.
    Nothing,
}

/// A completed request, as far as a scheduler looks at it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served {
    pub task: TaskId,
    pub read: bool,
    pub end: Lba,
}

/// The scheduler in use.
#[derive(Clone, Debug)]
pub(super) enum Elevator {
    Noop,
    Deadline(Deadline),
    Anticipatory(Anticipatory),
}

impl Elevator {
    pub fn new(config: &IoConfig) -> Self {
        match config.scheduler {
            Scheduler::Noop => Self::Noop,
            Scheduler::Deadline2_6_11 => Self::Deadline(Deadline::new(config, true)),
            Scheduler::Deadline => Self::Deadline(Deadline::new(config, false)),
            Scheduler::Anticipatory => Self::Anticipatory(Anticipatory::new(config)),
        }
    }

    /// Chooses. The caller carries a [`Choice::Dispatch`] out: the scheduler takes
    /// it as done.
    pub fn choose<T: Copy>(&mut self, pool: &Pool<T>, now: Picos) -> Choice {
        match self {
            Self::Noop => oldest(pool).map_or(Choice::Nothing, Choice::Dispatch),
            Self::Deadline(d) => d
                .choose(pool, now)
                .map_or(Choice::Nothing, Choice::Dispatch),
            Self::Anticipatory(a) => a.choose(pool, now),
        }
    }

    /// A request is about to be joined to another.
    pub fn joined(&mut self, gone: Id, next: Option<Id>) {
        if let Self::Deadline(d) = self {
            d.joined(gone, next);
        }
    }

    /// A task handed in a run that begins at `lba`.
    pub fn submitted(&mut self, task: TaskId, read: bool, lba: Lba, now: Picos) {
        if let Self::Anticipatory(a) = self {
            a.submitted(task, read, lba, now);
        }
    }

    /// The disk finished a request.
    pub fn served(&mut self, served: Served, now: Picos) {
        if let Self::Anticipatory(a) = self {
            a.served(served, now);
        }
    }

    /// `(times the disk was kept idle, times the awaited read came)`.
    pub fn anticipations(&self) -> (u64, u64) {
        match self {
            Self::Anticipatory(a) => a.counts(),
            _ => (0, 0),
        }
    }
}

/// The request that came first.
fn oldest<T: Copy>(pool: &Pool<T>) -> Option<Id> {
    let heads = DIRS.iter().filter_map(|&dir| pool.earliest(dir));
    heads.min_by_key(|&id| pool.get(id).map(|r| r.seq))
}
