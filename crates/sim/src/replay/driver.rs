//! A trace's calls on the file side of the kernel, with a disk below.
//!
//! A trace says what was asked for, rarely when, and never what waited for what. So
//! the *pace* is a choice, which results name: one call after another in the trace's
//! order; each task's calls one after another with all tasks at once; or the trace's
//! times. A call never begins before its task's last one is done, at any pace.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use piebald_os_model::file::{FileError, FileHost, Span, Stats, Step};
use piebald_os_model::io::IoStats;
use piebald_policy::contract::replacement::Replacement;
use piebald_trace::block::Nanos;
use piebald_units::block::BlockPort;
use piebald_units::{FileId, PAGE_SIZE, Picos, TaskId};

use super::input::{Call, CallKind};
use super::parts::{Part, Parts};

/// When calls begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// One after another, in the trace's order: what pure cache simulators do.
    #[default]
    Serial,
    /// In the trace's order, but a call that waits stops its own task only: the next one
    /// begins as soon as the one before it in the trace has begun and its task's last one
    /// is done.
    Ordered,
    /// As soon as the task's last call is done, all tasks at once, but never more than
    /// [`WINDOW`] calls ahead of the oldest that is not done.
    Tasks,
    /// At the trace's time, but not before the task's last call is done.
    Timed,
}

/// Calls that are under way or wait for their task, at most. It bounds how far tasks
/// run apart: a trace from a machine says that they did run about together.
pub const WINDOW: usize = 1024;

const NS_PER_DAY: u64 = 86_400 * 1_000_000_000;
/// Simulated time ends some hours later: what is asked for then has time to be done.
const LATEST: Picos = Picos(Picos::MAX.0 - 1_000_000_000_000 * 3600 * 24);

/// Calls of one task, or of all of them at [`Pace::Serial`].
#[derive(Debug, Default)]
struct Line {
    calls: VecDeque<Call>,
    /// The part of the first call that is done, in pages, where it is carried out page
    /// by page.
    mapped: u64,
    /// When it may go on.
    clock: Picos,
    /// The host has its call.
    busy: bool,
    /// It is among those that are ready.
    queued: bool,
}

/// Why a replay ended early.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// The file side refused a call.
    #[error(transparent)]
    Host(#[from] FileError),
    /// No task can go on.
    #[error(
        "memory is too small: {waiting} calls wait for pages that cannot be had ({resident} pages are in memory, all of them being read or written)"
    )]
    Stuck {
        /// Calls under way.
        waiting: usize,
        /// Pages in memory.
        resident: u32,
    },
    /// Clients that cannot start.
    #[error(transparent)]
    Clients(#[from] super::clients::ClientError),
    /// A request comes later than simulated time can be.
    #[error(
        "a request is {} days after the first; allowed at the trace's times: up to {} days, or another --pace",
        time.0 / NS_PER_DAY, Picos::MAX.0 / 1000 / NS_PER_DAY
    )]
    Late {
        /// When it comes.
        time: Nanos,
    },
    /// More processes than can be told apart.
    #[error("more than 2^32 processes")]
    ManyTasks,
}

/// Counters at one time.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Of the page cache.
    pub stats: Stats,
    /// Of the request queue.
    pub io: IoStats,
    /// Sequences: length in pages, number.
    pub sequences: Vec<(u64, u64)>,
    /// Simulated time.
    pub at: Picos,
}

/// One policy at one size on one disk.
pub struct Driver<P, D> {
    host: FileHost<P, D>,
    pace: Pace,
    backlog: VecDeque<Call>,
    lines: HashMap<u64, Line>,
    tasks: HashMap<u64, TaskId>,
    /// Lines of the tasks that the host knows.
    line_of: HashMap<TaskId, u64>,
    ready: BinaryHeap<Reverse<(Picos, u64, u64)>>,
    /// Calls taken from the backlog that are not done.
    admitted: usize,
    /// Of these, calls that have not begun.
    waiting: usize,
    sequence: u64,
    now: Picos,
    last_done: Picos,
    /// When simulated time began.
    origin: Picos,
    warmup: u64,
    begin: Option<Snapshot>,
    /// By calls that are done.
    parts: Parts,
    calls: u64,
}

impl<P: Replacement, D: BlockPort> Driver<P, D> {
    /// Drives a host that knows every file of the trace by the number of its space.
    /// What the first `warmup` references did is left out of the counters.
    pub fn new(host: FileHost<P, D>, pace: Pace, warmup: u64) -> Self {
        Self {
            host,
            pace,
            backlog: VecDeque::new(),
            lines: HashMap::new(),
            tasks: HashMap::new(),
            line_of: HashMap::new(),
            ready: BinaryHeap::new(),
            admitted: 0,
            waiting: 0,
            sequence: 0,
            now: Picos(0),
            last_done: Picos(0),
            origin: Picos(0),
            warmup,
            begin: (warmup == 0).then(Snapshot::default),
            parts: Parts::default(),
            calls: 0,
        }
    }

    /// Lets simulated time begin later than 0, before the first call: the platters of a
    /// disk have turned until then.
    #[must_use]
    pub fn beginning(mut self, at: Picos) -> Self {
        self.now = at;
        self.last_done = at;
        self.origin = at;
        if let Some(begin) = &mut self.begin {
            begin.at = at;
        }
        self.parts.begin(self.totals());
        self
    }

    /// Takes further calls and carries them out as far as they say what comes next.
    ///
    /// # Errors
    /// See [`DriverError`].
    pub fn run(&mut self, calls: &[Call]) -> Result<(), DriverError> {
        self.backlog.extend(calls);
        self.go(false)
    }

    /// There are no more calls: carries out the rest.
    ///
    /// # Errors
    /// See [`DriverError`].
    pub fn finish(&mut self) -> Result<(), DriverError> {
        self.go(true)
    }

    fn go(&mut self, last: bool) -> Result<(), DriverError> {
        loop {
            while self.wants_more()
                && let Some(call) = self.backlog.pop_front()
            {
                self.admit(call)?;
            }
            // With fewer calls in sight, one that comes later might be due first.
            if self.wants_more() && !last {
                return Ok(());
            }
            if self.admitted == 0 {
                return Ok(());
            }
            let ready = self.ready.peek().map(|Reverse((at, ..))| *at);
            match (ready, self.host.next_event()) {
                (Some(at), event) if event.is_none_or(|event| at < event) => self.begin_next()?,
                (_, Some(event)) => self.advance(event)?,
                _ => {
                    return Err(DriverError::Stuck {
                        waiting: self.admitted,
                        resident: self.host.resident(),
                    });
                }
            }
        }
    }

    /// Does what comes next depend on calls that are not in sight?
    fn wants_more(&self) -> bool {
        match self.pace {
            Pace::Ordered => self.waiting == 0,
            _ => self.admitted < WINDOW,
        }
    }

    fn admit(&mut self, call: Call) -> Result<(), DriverError> {
        let late = |time: &Nanos| {
            let time = Picos::from_ns(time.0).and_then(|t| self.origin.0.checked_add(t.0));
            time.is_none_or(|t| t > LATEST.0)
        };
        if let Some(time) = call
            .time
            .filter(|time| self.pace == Pace::Timed && late(time))
        {
            return Err(DriverError::Late { time });
        }
        self.admitted += 1;
        self.waiting += 1;
        let key = match self.pace {
            Pace::Serial => 0,
            _ => call.task,
        };
        self.lines.entry(key).or_default().calls.push_back(call);
        self.queue(key);
        Ok(())
    }

    /// Lets a line take its turn, if it has a call and is neither waiting nor queued.
    fn queue(&mut self, key: u64) {
        let Some(line) = self.lines.get_mut(&key) else {
            return;
        };
        let Some(call) = line.calls.front() else {
            return;
        };
        if line.busy || line.queued {
            return;
        }
        line.queued = true;
        let mut at = line.clock.max(self.now);
        if self.pace == Pace::Timed
            && let Some(time) = call.time
        {
            let time = Picos::from_ns(time.0).unwrap_or(Picos::MAX);
            at = at.max(Picos(self.origin.0.saturating_add(time.0)));
        }
        self.sequence += 1;
        self.ready.push(Reverse((at, self.sequence, key)));
    }

    fn advance(&mut self, event: Picos) -> Result<(), DriverError> {
        self.now = self.now.max(event);
        for woken in self.host.advance(event)? {
            if let Some(&key) = self.line_of.get(&woken.task) {
                self.done(key, woken.at);
            }
        }
        Ok(())
    }

    /// A line's call, or a page of it, is done.
    fn done(&mut self, key: u64, at: Picos) {
        let Some(line) = self.lines.get_mut(&key) else {
            return;
        };
        line.busy = false;
        line.clock = at;
        self.last_done = self.last_done.max(at);
        let whole = match line.calls.front() {
            Some(call) if call.kind == CallKind::Map => {
                line.mapped += 1;
                line.mapped >= call.pages
            }
            _ => true,
        };
        if whole {
            self.calls += 1;
            line.mapped = 0;
            line.calls.pop_front();
            self.admitted -= 1;
            if line.calls.is_empty() && self.pace != Pace::Serial {
                // A later call of the task begins after this one all the same, since
                // time does not go back.
                if at <= self.now {
                    self.lines.remove(&key);
                }
            }
        }
        self.queue(key);
        self.check_warmup();
        if whole && self.begin.is_some() && self.parts.is_due(self.calls) {
            self.parts.end(self.totals());
        }
    }

    fn check_warmup(&mut self) {
        if self.begin.is_none() && self.host.stats().uses().references >= self.warmup {
            self.begin = Some(self.counters());
            self.parts.begin(self.totals());
        }
    }

    fn totals(&self) -> Part {
        let stats = self.host.stats();
        Part {
            length: self.calls,
            misses: stats.uses().misses,
            bytes_missed: 0,
            requests: self.host.io_stats().requests_read,
            elapsed: self.last_done.0,
            waited: stats.blocked.0,
        }
    }

    /// Misses and times by parts of what was counted.
    pub fn parts(&self) -> Vec<Part> {
        match self.begin {
            Some(_) => self.parts.up_to(self.totals()),
            None => Vec::new(),
        }
    }

    fn begin_next(&mut self) -> Result<(), DriverError> {
        let Some(Reverse((at, _, key))) = self.ready.pop() else {
            return Ok(());
        };
        self.now = at;
        let Some(line) = self.lines.get_mut(&key) else {
            return Ok(());
        };
        line.queued = false;
        let Some(&call) = line.calls.front() else {
            return Ok(());
        };
        let mapped = line.mapped;
        line.busy = true;
        self.waiting -= usize::from(mapped == 0);
        match self.call(key, call, mapped, at)? {
            Step::Ready(at) => self.done(key, at),
            Step::Blocked => {}
        }
        Ok(())
    }

    fn call(&mut self, key: u64, call: Call, mapped: u64, now: Picos) -> Result<Step, DriverError> {
        let task = self.task(call.task)?;
        self.line_of.insert(task, key);
        let file = FileId(u64::from(call.space.0));
        if call.kind == CallKind::Delete {
            self.host.discard(file, call.first, now)?;
            return Ok(Step::Ready(now));
        }
        let span = Span {
            offset: call.first.saturating_mul(PAGE_SIZE),
            len: call.pages.saturating_mul(PAGE_SIZE),
        };
        Ok(match call.kind {
            CallKind::Read => self.host.read(task, file, span, now)?,
            CallKind::Write => self.host.write(task, file, span, now)?,
            CallKind::Map => self
                .host
                .touch_mapped(task, file, call.first + mapped, false, now)?,
            CallKind::Delete => Step::Ready(now),
        })
    }

    fn task(&mut self, task: u64) -> Result<TaskId, DriverError> {
        if let Some(&id) = self.tasks.get(&task) {
            return Ok(id);
        }
        let id = u32::try_from(self.tasks.len()).map_err(|_| DriverError::ManyTasks)?;
        self.tasks.insert(task, TaskId(id));
        Ok(TaskId(id))
    }

    /// All counters since the beginning.
    fn counters(&self) -> Snapshot {
        Snapshot {
            stats: self.host.stats(),
            io: self.host.io_stats(),
            sequences: self.host.runs().histogram(),
            at: self.last_done,
        }
    }

    /// Counters at the end of the warm-up and now; `None` before that end.
    pub fn measured(&self) -> Option<(Snapshot, Snapshot)> {
        let begin = self.begin.clone()?;
        Some((begin, self.counters()))
    }

    /// The file side.
    pub fn host(&self) -> &FileHost<P, D> {
        &self.host
    }
}
