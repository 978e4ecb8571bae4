//! Queues, states and events.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use piebald_units::{CoreId, CoreSet, MAX_CORES, TaskId};

use super::{Blocked, EventKey, SchedBroken, SchedConfig, SchedError, Status, Wake};

pub(super) struct Entry {
    pub cores: CoreSet,
    pub status: Status,
    /// Where a policy has put it: it stays there, runnable or not, until a policy or the
    /// balance moves it.
    pub placed: Option<CoreId>,
}

#[derive(Default)]
pub(super) struct Core {
    pub running: Option<TaskId>,
    pub queue: VecDeque<TaskId>,
}

impl Core {
    pub fn load(&self) -> usize {
        self.queue.len() + usize::from(self.running.is_some())
    }
}

/// The scheduler.
pub struct Scheduler {
    pub(super) config: SchedConfig,
    pub(super) tasks: BTreeMap<TaskId, Entry>,
    pub(super) cores: Vec<Core>,
    /// Events that have happened.
    posted: HashSet<EventKey>,
    /// Tasks that wait for an event, in the order in which they came.
    waiting: HashMap<EventKey, Vec<TaskId>>,
}

impl Scheduler {
    /// No tasks; all cores idle.
    ///
    /// # Errors
    /// Names the field that is out of range.
    pub fn new(config: SchedConfig) -> Result<Self, SchedError> {
        let n = usize::from(config.cores);
        if n == 0 || n > MAX_CORES {
            return Err(SchedError::Config {
                field: "cores",
                value: n as u64,
                allowed: "1 to 64",
            });
        }
        if config.slice.0 == 0 {
            return Err(SchedError::Config {
                field: "slice",
                value: 0,
                allowed: "at least 1 ps",
            });
        }
        Ok(Self {
            config,
            tasks: BTreeMap::new(),
            cores: (0..n).map(|_| Core::default()).collect(),
            posted: HashSet::new(),
            waiting: HashMap::new(),
        })
    }

    /// The configuration.
    pub const fn config(&self) -> SchedConfig {
        self.config
    }

    /// Adds a task that may run on `cores`; it is runnable.
    ///
    /// # Errors
    /// Known already, or no such core.
    pub fn add(&mut self, task: TaskId, cores: CoreSet) -> Result<Wake, SchedError> {
        self.add_near(task, cores, CoreId(0))
    }

    /// As [`add`](Self::add); of cores that are equally loaded the task gets the first one from
    /// `first` upwards, and from core 0 on after the last.
    ///
    /// # Errors
    /// Known already, or no such core.
    pub fn add_near(
        &mut self,
        task: TaskId,
        cores: CoreSet,
        first: CoreId,
    ) -> Result<Wake, SchedError> {
        if self.tasks.contains_key(&task) {
            return Err(SchedError::AddedTwice(task));
        }
        let core = self.place(task, cores, first)?;
        let status = Status::Runnable(core);
        let entry = Entry {
            cores,
            status,
            placed: None,
        };
        self.tasks.insert(task, entry);
        self.core(core)?.queue.push_back(task);
        Ok(Wake { task, core })
    }

    /// The core that is to run a woken task: an idle one if there is, else the
    /// one with the shortest queue; the first one from `first` on, around.
    fn place(&self, task: TaskId, cores: CoreSet, first: CoreId) -> Result<CoreId, SchedError> {
        let load = |c: &CoreId| (self.cores[usize::from(c.0)].load(), *c < first);
        let last = self.config.cores - 1;
        let here = cores.iter().filter(|c| c.0 <= last);
        here.min_by_key(load)
            .ok_or(SchedError::NoCore { task, cores, last })
    }

    /// Pins a task anew. A running task moves at its next slice's end.
    ///
    /// # Errors
    /// No such task or core.
    pub fn set_cores(&mut self, task: TaskId, cores: CoreSet) -> Result<(), SchedError> {
        let target = self.place(task, cores, CoreId(0))?;
        let entry = self
            .tasks
            .get_mut(&task)
            .ok_or(SchedError::NoSuchTask(task))?;
        entry.cores = cores;
        entry.placed = None;
        if let Status::Runnable(old) = entry.status
            && !cores.contains(old)
        {
            entry.status = Status::Runnable(target);
            self.core(old)?.queue.retain(|t| *t != task);
            self.core(target)?.queue.push_back(task);
        }
        Ok(())
    }

    /// The task that `core` runs now, if any; else the next of its queue begins
    /// to run; else the longest-waiting task of the longest other queue that
    /// may run here does. `None`: the core idles. A core that already runs a
    /// task goes on with it: call [`preempt`](Self::preempt) first to end its
    /// slice. A task that a policy [placed](Self::migrate) elsewhere is not taken.
    ///
    /// # Errors
    /// No such core.
    pub fn next_on(&mut self, core: CoreId) -> Result<Option<TaskId>, SchedError> {
        if let Some(task) = self.core(core)?.running {
            return Ok(Some(task));
        }
        let own = self.core(core)?.queue.pop_front();
        let Some(task) = own.or_else(|| self.pull(core)) else {
            return Ok(None);
        };
        self.set(task, Status::Running(core));
        self.core(core)?.running = Some(task);
        Ok(Some(task))
    }

    /// Takes a task that may run on `core`, and that no policy placed, from the longest
    /// other queue.
    fn pull(&mut self, core: CoreId) -> Option<TaskId> {
        let mut order: Vec<usize> = (0..self.cores.len()).collect();
        order.sort_by_key(|c| std::cmp::Reverse(self.cores[*c].queue.len()));
        order.into_iter().find_map(|c| {
            let queue = &mut self.cores[c].queue;
            let may = |e: &Entry| e.cores.contains(core) && e.placed.is_none();
            let may = |t: &TaskId| self.tasks.get(t).is_some_and(may);
            let at = queue.iter().position(may)?;
            queue.remove(at)
        })
    }

    /// Does another task wait for this core? Only then does a slice end.
    pub fn contended(&self, core: CoreId) -> bool {
        let queue = self.cores.get(usize::from(core.0)).map(|c| &c.queue);
        queue.is_some_and(|q| !q.is_empty())
    }

    /// The running task's slice is over: it goes to the end of the queue.
    ///
    /// # Errors
    /// No such core.
    pub fn preempt(&mut self, core: CoreId) -> Result<Option<TaskId>, SchedError> {
        let Some(task) = self.core(core)?.running.take() else {
            return Ok(None);
        };
        let cores = self.tasks[&task].cores;
        let target = if cores.contains(core) {
            core
        } else {
            self.place(task, cores, CoreId(0))?
        };
        self.set(task, Status::Runnable(target));
        self.core(target)?.queue.push_back(task);
        Ok(Some(task))
    }

    /// A running task waits for an event. False: it has happened already, and
    /// the task runs on.
    ///
    /// # Errors
    /// The task does not run.
    pub fn await_event(&mut self, task: TaskId, event: EventKey) -> Result<bool, SchedError> {
        self.running(task)?;
        if self.posted.contains(&event) {
            return Ok(false);
        }
        self.stop(task, Status::Blocked(Blocked::Event(event)))?;
        self.waiting.entry(event).or_default().push(task);
        Ok(true)
    }

    /// An event happens: all that wait for it become runnable, in the order in
    /// which they came; later waits do not block. The wakes are appended.
    ///
    /// # Errors
    /// A waiting task has no core.
    pub fn post(&mut self, event: EventKey, wakes: &mut Vec<Wake>) -> Result<(), SchedError> {
        self.posted.insert(event);
        for task in self.waiting.remove(&event).unwrap_or_default() {
            wakes.push(self.enqueue(task)?);
        }
        Ok(())
    }

    /// A running task waits for something that the host ends.
    ///
    /// # Errors
    /// The task does not run.
    pub fn block(&mut self, task: TaskId) -> Result<(), SchedError> {
        self.running(task)?;
        self.stop(task, Status::Blocked(Blocked::Host))
    }

    /// Ends a wait of [`block`](Self::block).
    ///
    /// # Errors
    /// The task does not wait for the host.
    pub fn wake(&mut self, task: TaskId) -> Result<Wake, SchedError> {
        match self.status(task)? {
            Status::Blocked(Blocked::Host) => self.enqueue(task),
            status => Err(SchedError::State {
                task,
                status,
                needs: "blocked on the host",
            }),
        }
    }

    /// A task ends, whatever it does at the moment.
    ///
    /// # Errors
    /// No such task.
    pub fn exit(&mut self, task: TaskId) -> Result<(), SchedError> {
        match self.status(task)? {
            Status::Runnable(core) => self.core(core)?.queue.retain(|t| *t != task),
            Status::Running(core) => self.core(core)?.running = None,
            Status::Blocked(Blocked::Event(e)) => {
                if let Some(w) = self.waiting.get_mut(&e) {
                    w.retain(|t| *t != task);
                }
            }
            Status::Blocked(Blocked::Host) | Status::Done => {}
        }
        self.set(task, Status::Done);
        Ok(())
    }

    /// State of a task.
    ///
    /// # Errors
    /// No such task.
    pub fn status(&self, task: TaskId) -> Result<Status, SchedError> {
        let e = self.tasks.get(&task).ok_or(SchedError::NoSuchTask(task))?;
        Ok(e.status)
    }

    /// The cores that a task may run on.
    ///
    /// # Errors
    /// No such task.
    pub fn cores_of(&self, task: TaskId) -> Result<CoreSet, SchedError> {
        let e = self.tasks.get(&task).ok_or(SchedError::NoSuchTask(task))?;
        Ok(e.cores)
    }

    /// All tasks with their states, by rising id.
    pub fn tasks(&self) -> impl Iterator<Item = (TaskId, Status)> {
        self.tasks.iter().map(|(t, e)| (*t, e.status))
    }

    /// Have all tasks ended?
    pub fn all_done(&self) -> bool {
        self.tasks.values().all(|e| e.status == Status::Done)
    }

    /// The tasks that can never go on, with what they wait for; empty as long
    /// as some task runs, can run, or waits for the host.
    pub fn deadlock(&self) -> Vec<(TaskId, EventKey)> {
        let mut stuck = Vec::new();
        for (task, e) in &self.tasks {
            match e.status {
                Status::Done => {}
                Status::Blocked(Blocked::Event(key)) => stuck.push((*task, key)),
                _ => return Vec::new(),
            }
        }
        stuck
    }

    fn enqueue(&mut self, task: TaskId) -> Result<Wake, SchedError> {
        let core = match self.tasks.get(&task).and_then(|e| e.placed) {
            Some(core) => core,
            None => self.place(task, self.cores_of(task)?, CoreId(0))?,
        };
        self.set(task, Status::Runnable(core));
        self.core(core)?.queue.push_back(task);
        Ok(Wake { task, core })
    }

    fn running(&self, task: TaskId) -> Result<CoreId, SchedError> {
        match self.status(task)? {
            Status::Running(core) => Ok(core),
            status => Err(SchedError::State {
                task,
                status,
                needs: "running",
            }),
        }
    }

    fn stop(&mut self, task: TaskId, status: Status) -> Result<(), SchedError> {
        let core = self.running(task)?;
        self.core(core)?.running = None;
        self.set(task, status);
        Ok(())
    }

    pub(super) fn set(&mut self, task: TaskId, status: Status) {
        if let Some(e) = self.tasks.get_mut(&task) {
            e.status = status;
        }
    }

    pub(super) fn core(&mut self, core: CoreId) -> Result<&mut Core, SchedError> {
        let last = self.config.cores - 1;
        let found = self.cores.get_mut(usize::from(core.0));
        found.ok_or(SchedError::BadCore { core, last })
    }

    /// Recounts queues, cores and waits against the tasks' states.
    ///
    /// # Errors
    /// The first rule that does not hold.
    pub fn validate(&self) -> Result<(), SchedBroken> {
        let mut seen: HashMap<TaskId, Status> = HashMap::new();
        let mut note = |task, status| match seen.insert(task, status) {
            None => Ok(()),
            Some(_) => Err(SchedBroken {
                rule: "task stands in two places",
                task,
            }),
        };
        for (core, c) in (0u16..).map(CoreId).zip(&self.cores) {
            for t in &c.queue {
                note(*t, Status::Runnable(core))?;
            }
            if let Some(t) = c.running {
                note(t, Status::Running(core))?;
            }
        }
        for (event, tasks) in &self.waiting {
            for t in tasks {
                note(*t, Status::Blocked(Blocked::Event(*event)))?;
            }
        }
        for (task, e) in &self.tasks {
            if e.placed.is_some_and(|core| !e.cores.contains(core)) {
                return Err(SchedBroken {
                    rule: "task placed where it may not run",
                    task: *task,
                });
            }
            let unlisted = matches!(e.status, Status::Done | Status::Blocked(Blocked::Host));
            let found = seen.remove(task);
            if found != (!unlisted).then_some(e.status) {
                return Err(SchedBroken {
                    rule: "state differs from the task's place",
                    task: *task,
                });
            }
        }
        match seen.keys().next() {
            Some(task) => Err(SchedBroken {
                rule: "unknown task on a list",
                task: *task,
            }),
            None => Ok(()),
        }
    }
}
