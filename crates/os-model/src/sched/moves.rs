//! Moving tasks from core to core: for a policy, and for balance.

use piebald_units::{CoreId, TaskId};

use super::{SchedError, Scheduler, Status, Wake};

/// Queues that differ by so many tasks are uneven: moving one makes them more even.
const UNEVEN: usize = 2;

impl Scheduler {
    /// Tasks that run on a core or wait for it; 0 if it does not exist.
    pub fn load(&self, core: CoreId) -> usize {
        let core = self.cores.get(usize::from(core.0));
        core.map_or(0, |c| c.load())
    }

    /// Puts a running or runnable task at the end of another core's queue, at once, and
    /// keeps it there: it wakes there, and idle cores leave it alone. Returns the core that it
    /// was on. A task that is there already stays as it is, and counts as placed.
    ///
    /// # Errors
    /// No such task or core, the task waits or has ended, or it may not run there.
    pub fn migrate(&mut self, task: TaskId, to: CoreId) -> Result<CoreId, SchedError> {
        self.core(to)?;
        let entry = self
            .tasks
            .get_mut(&task)
            .ok_or(SchedError::NoSuchTask(task))?;
        let (cores, status) = (entry.cores, entry.status);
        if !cores.contains(to) {
            return Err(SchedError::Pinned {
                task,
                core: to,
                cores,
            });
        }
        let from = match status {
            Status::Running(core) | Status::Runnable(core) => core,
            Status::Blocked(_) | Status::Done => {
                return Err(SchedError::State {
                    task,
                    status,
                    needs: "running or runnable",
                });
            }
        };
        entry.placed = Some(to);
        if from != to {
            match status {
                Status::Running(_) => self.core(from)?.running = None,
                _ => self.core(from)?.queue.retain(|t| *t != task),
            }
            self.set(task, Status::Runnable(to));
            self.core(to)?.queue.push_back(task);
        }
        Ok(from)
    }

    /// A tick of a core: if more tasks run and wait there than on some other core, by two
    /// or more, one that waits goes to the least loaded core where it may run. Tasks that a
    /// policy placed go last; the one that goes is placed no longer. `None`: queues are even,
    /// nobody may go, or balance is off.
    ///
    /// # Errors
    /// No such core.
    pub fn balance(&mut self, core: CoreId) -> Result<Option<Wake>, SchedError> {
        let waits = !self.core(core)?.queue.is_empty();
        if !(self.config.balance && waits) {
            return Ok(None);
        }
        let Some((at, to)) = self.uneven(core) else {
            return Ok(None);
        };
        let Some(task) = self.core(core)?.queue.remove(at) else {
            return Ok(None);
        };
        if let Some(entry) = self.tasks.get_mut(&task) {
            entry.placed = None;
        }
        self.set(task, Status::Runnable(to));
        self.core(to)?.queue.push_back(task);
        Ok(Some(Wake { task, core: to }))
    }

    /// Who should leave a core's queue, by its place there, and for where.
    fn uneven(&self, core: CoreId) -> Option<(usize, CoreId)> {
        let here = &self.cores[usize::from(core.0)];
        let last = self.config.cores - 1;
        let goes = |task: &TaskId, placed: bool| {
            let entry = self.tasks.get(task)?;
            let others = entry.cores.iter().filter(|c| c.0 <= last && *c != core);
            let to = others.min_by_key(|c| self.load(*c))?;
            let uneven = self.load(to) + UNEVEN <= here.load();
            (uneven && entry.placed.is_some() == placed).then_some(to)
        };
        [false, true].into_iter().find_map(|placed| {
            let mut waiting = here.queue.iter().enumerate();
            waiting.find_map(|(at, task)| Some((at, goes(task, placed)?)))
        })
    }
}
