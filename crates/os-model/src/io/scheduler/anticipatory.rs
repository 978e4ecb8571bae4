//! The anticipatory scheduler, the default of 2.6.11, as far as it matters for
//! synchronous readers.
//!
//! What is modelled:
//! * requests go out in ascending order, from the lowest again at the end (one-way
//!   elevator); a request whose deadline has passed goes first;
//! * reads and writes alternate by time: reads for up to `read_batch` while writes
//!   wait, then writes for up to `write_batch`;
//! * after a read of a task that has no other read waiting, the disk stays idle for
//!   up to `antic_expire`, although others wait, and serves the task's next read at
//!   once. This is not done for a task whose reads usually come later than that, nor
//!   if the best waiting request is nearer than the task's reads usually are;
//! * a read of another task that begins close behind the last one also ends the wait.
//!
//! Both habits of a task are moving averages that a new sample enters with 1/8; a
//! task of which nothing is known is waited for.
//!
//! Not modelled: seeks backwards (the original allows short ones), habits of tasks
//! that have ended, batches that adapt to how long writes take.

use std::collections::BTreeMap;

use piebald_units::{Lba, Picos, TaskId, block::BlockDir};

use super::{
    super::{
        config::IoConfig,
        pool::{DIRS, Id, Pool},
    },
    Choice, Served,
};

/// A new sample enters a moving average with one part in so many. \[M\]
const MEAN_PARTS: u64 = 8;
/// A think time counts at most as so many waits, so that one pause is forgotten. \[M\]
const LONGEST_PAUSE_WAITS: u64 = 4;

#[derive(Clone, Debug)]
pub(in crate::io) struct Anticipatory {
    read_batch: Picos,
    write_batch: Picos,
    wait: Picos,
    near_sectors: u64,
    dir: BlockDir,
    /// Set when the other direction waits.
    batch_end: Option<Picos>,
    head: Lba,
    awaited: Option<Awaited>,
    habits: BTreeMap<TaskId, Habit>,
    held: u64,
    came: u64,
}

/// The disk is kept idle for the next read of a task.
#[derive(Clone, Copy, Debug)]
struct Awaited {
    task: TaskId,
    until: Picos,
    /// A waiting request was held back for it.
    held: bool,
}

/// What is known of a task.
#[derive(Clone, Copy, Debug, Default)]
struct Habit {
    /// When its last read was done, unless it asked for another since.
    done: Option<Picos>,
    last_end: Option<Lba>,
    think: Option<u64>,
    seek: Option<u64>,
}

fn enter(mean: &mut Option<u64>, sample: u64) {
    *mean = Some(match *mean {
        None => sample,
        Some(m) => (m / MEAN_PARTS * (MEAN_PARTS - 1)).saturating_add(sample / MEAN_PARTS),
    });
}

impl Anticipatory {
    pub fn new(config: &IoConfig) -> Self {
        Self {
            read_batch: config.read_batch,
            write_batch: config.write_batch,
            wait: config.antic_expire,
            near_sectors: config.antic_near_sectors,
            dir: BlockDir::Read,
            batch_end: None,
            head: Lba(0),
            awaited: None,
            habits: BTreeMap::new(),
            held: 0,
            came: 0,
        }
    }

    pub fn counts(&self) -> (u64, u64) {
        (self.held, self.came)
    }

    pub fn choose<T: Copy>(&mut self, pool: &Pool<T>, now: Picos) -> Choice {
        self.turn(pool, now);
        let Some(id) = self.best(pool, now) else {
            return Choice::Nothing;
        };
        if let Some(until) = self.worth_waiting(pool, id, now) {
            return Choice::Wait(until);
        }
        self.awaited = None;
        if let Some(request) = pool.get(id) {
            self.head = request.end();
        }
        Choice::Dispatch(id)
    }

    /// Turns to the other direction if this one has nothing or had its time.
    fn turn<T: Copy>(&mut self, pool: &Pool<T>, now: Picos) {
        let [reads, writes] = DIRS.map(|dir| pool.len(dir) > 0);
        let (own, other, next) = match self.dir {
            BlockDir::Read => (reads, writes, BlockDir::Write),
            BlockDir::Write => (writes, reads, BlockDir::Read),
        };
        let waits_for_read = self.awaited.is_some_and(|a| now < a.until);
        let over = self.batch_end.is_some_and(|end| end <= now);
        if other && (over || !own && !waits_for_read) {
            self.dir = next;
            self.batch_end = own.then(|| now + self.batch());
        } else if !other {
            self.batch_end = None;
        } else if self.batch_end.is_none() {
            self.batch_end = Some(now + self.batch());
        }
    }

    fn batch(&self) -> Picos {
        match self.dir {
            BlockDir::Read => self.read_batch,
            BlockDir::Write => self.write_batch,
        }
    }

    fn best<T: Copy>(&self, pool: &Pool<T>, now: Picos) -> Option<Id> {
        let dir = match pool.len(self.dir) {
            // Only while a read is awaited: the writes that could go instead.
            0 => *DIRS.iter().find(|&&d| pool.len(d) > 0)?,
            _ => self.dir,
        };
        let earliest = pool.earliest(dir)?;
        if pool.get(earliest).is_some_and(|r| r.deadline <= now) {
            return Some(earliest);
        }
        pool.at_or_above(dir, self.head)
            .or_else(|| pool.lowest(dir))
    }

    /// Until when to leave the disk idle instead of serving `best`.
    fn worth_waiting<T: Copy>(&mut self, pool: &Pool<T>, best: Id, now: Picos) -> Option<Picos> {
        let awaited = self.awaited.as_mut()?;
        let request = pool.get(best)?;
        let distance = request.lba.0.abs_diff(self.head.0);
        let usual = self.habits.get(&awaited.task).and_then(|h| h.seek);
        let nearer = usual.is_some_and(|seek| distance < seek);
        let mut waiting = pool.requests();
        let own = waiting.any(|r| r.dir == BlockDir::Read && r.task == awaited.task);
        if awaited.until <= now || request.deadline <= now || nearer || own {
            return None;
        }
        if !awaited.held {
            awaited.held = true;
            self.held += 1;
        }
        Some(awaited.until)
    }

    pub fn submitted(&mut self, task: TaskId, read: bool, lba: Lba, now: Picos) {
        if !read {
            return;
        }
        let habit = self.habits.entry(task).or_default();
        if let Some(done) = habit.done.take() {
            let longest = self.wait.0.saturating_mul(LONGEST_PAUSE_WAITS);
            enter(&mut habit.think, now.since(done).0.min(longest));
        }
        if let Some(end) = habit.last_end {
            enter(&mut habit.seek, lba.0.abs_diff(end.0));
        }
        habit.last_end = Some(lba);
        let near = lba
            .0
            .checked_sub(self.head.0)
            .is_some_and(|d| d <= self.near_sectors);
        if let Some(awaited) = self.awaited
            && (awaited.task == task || near)
        {
            self.came += u64::from(awaited.held);
            self.awaited = None;
        }
    }

    pub fn served(&mut self, served: Served, now: Picos) {
        if !served.read {
            return;
        }
        let habit = self.habits.entry(served.task).or_default();
        habit.done = Some(now);
        habit.last_end = Some(served.end);
        if habit.think.is_none_or(|think| think <= self.wait.0) {
            self.awaited = Some(Awaited {
                task: served.task,
                until: now + self.wait,
                held: false,
            });
        }
    }
}
