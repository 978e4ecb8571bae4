//! The request queue of one disk.

use std::collections::VecDeque;

use piebald_units::{
    DiskBlock, Lba, Picos, TaskId,
    block::{BlockDir, BlockPort, ReqId, SECTORS_SHIFT},
};

use super::{
    config::{IoConfig, IoConfigError, IoStats},
    pool::{Entered, Pool, Request, side},
    runs::RunLengths,
    scheduler::{Choice, Elevator, Served},
};

/// Pages that follow one another on the disk.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a, T> {
    /// First sector.
    pub lba: Lba,
    /// One token per page, at least one.
    pub units: &'a [T],
    /// Read or write.
    pub dir: BlockDir,
    /// Who asks.
    pub task: TaskId,
}

/// A page that the disk has read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done<T> {
    /// Its token.
    pub unit: T,
    /// What was done.
    pub dir: BlockDir,
}

/// A run that found no free request.
#[derive(Clone, Debug)]
struct Later<T> {
    lba: Lba,
    units: Vec<T>,
    task: TaskId,
}

/// The request queue in front of a disk. See the [module](super).
///
/// Call order: [`submit`](Self::submit) in rising time; whenever
/// [`next_event`](Self::next_event) is due, [`poll`](Self::poll).
#[derive(Clone, Debug)]
pub struct Queue<D, T> {
    port: D,
    config: IoConfig,
    pool: Pool<T>,
    elevator: Elevator,
    backlog: [VecDeque<Later<T>>; 2],
    at_disk: Vec<(ReqId, Request<T>)>,
    /// Nothing is dispatched before this time.
    plugged: Option<Picos>,
    /// The scheduler wants to be asked again then.
    held: Option<Picos>,
    congested: [bool; 2],
    stats: IoStats,
    runs: RunLengths,
}

impl<D: BlockPort, T: Copy> Queue<D, T> {
    /// An empty queue.
    ///
    /// # Errors
    /// A field of the configuration is out of range.
    pub fn new(config: IoConfig, port: D) -> Result<Self, IoConfigError> {
        config.check()?;
        Ok(Self {
            pool: Pool::new(config.max_sectors, config.front_merges),
            elevator: Elevator::new(&config),
            port,
            config,
            backlog: Default::default(),
            at_disk: Vec::new(),
            plugged: None,
            held: None,
            congested: [false; 2],
            stats: IoStats::default(),
            runs: RunLengths::default(),
        })
    }

    /// Hands a run in at `now`. Runs longer than the largest request are split.
    pub fn submit(&mut self, run: Run<'_, T>, now: Picos) {
        let most = (self.config.max_sectors >> SECTORS_SHIFT) as usize;
        let mut lba = run.lba;
        for units in run.units.chunks(most) {
            self.plug(now);
            let read = run.dir == BlockDir::Read;
            self.elevator.submitted(run.task, read, lba, now);
            self.enter(Run { lba, units, ..run }, now);
            self.take_from_backlog(run.dir, now);
            lba = Lba(lba.0.saturating_add((units.len() as u64) << SECTORS_SHIFT));
        }
        if self.waiting() >= self.config.unplug_requests as usize {
            self.plugged = None;
        }
        self.dispatch(now);
    }

    /// The first request after a quiet time waits for company.
    fn plug(&mut self, now: Picos) {
        if self.pool.is_empty() && self.config.unplug_delay > Picos(0) {
            self.plugged = Some(now + self.config.unplug_delay);
        }
    }

    fn waiting(&self) -> usize {
        self.pool.len(BlockDir::Read) + self.pool.len(BlockDir::Write)
    }

    fn enter(&mut self, run: Run<'_, T>, now: Picos) {
        let deadline = now
            + match run.dir {
                BlockDir::Read => self.config.read_expire,
                BlockDir::Write => self.config.write_expire,
            };
        match self.pool.merge(run.lba, run.units, run.dir, deadline) {
            Some(entered) => self.merged(entered),
            None if self.pool.len(run.dir) < self.config.requests as usize => {
                self.pool
                    .add(run.lba, run.units, run.dir, run.task, deadline);
            }
            None => {
                self.stats.backlogged += 1;
                self.backlog[side(run.dir)].push_back(Later {
                    lba: run.lba,
                    units: run.units.to_vec(),
                    task: run.task,
                });
            }
        }
        self.note_congestion(run.dir);
    }

    fn merged(&mut self, entered: Entered) {
        let joined = match entered {
            Entered::Back(joined) => {
                self.stats.back_merges += 1;
                joined
            }
            Entered::Front(joined) => {
                self.stats.front_merges += 1;
                joined
            }
        };
        if let Some(joined) = joined {
            self.stats.joins += 1;
            self.elevator
                .joined(joined.gone, self.pool.after(joined.into));
        }
    }

    fn note_congestion(&mut self, dir: BlockDir) {
        let waiting = self.pool.len(dir) + self.backlog[side(dir)].len();
        let congested = &mut self.congested[side(dir)];
        if waiting >= self.config.congestion_on as usize {
            *congested = true;
        } else if waiting < self.config.congestion_off as usize {
            *congested = false;
        }
    }

    /// So many requests wait that nobody should read ahead or write behind.
    pub fn congested(&self, dir: BlockDir) -> bool {
        self.congested[side(dir)]
    }

    /// Somebody waits: what is plugged goes out.
    pub fn unplug(&mut self, now: Picos) {
        self.plugged = None;
        self.dispatch(now);
    }

    fn dispatch(&mut self, now: Picos) {
        self.held = None;
        if self.plugged.is_some_and(|until| now < until) {
            return;
        }
        self.plugged = None;
        while self.at_disk.len() < self.config.depth as usize {
            match self.elevator.choose(&self.pool, now) {
                Choice::Dispatch(id) => match self.pool.take(id) {
                    Some(request) => self.send(request, now),
                    None => break,
                },
                Choice::Wait(until) => {
                    self.held = Some(until);
                    break;
                }
                Choice::Nothing => break,
            }
        }
    }

    fn send(&mut self, request: Request<T>, now: Picos) {
        let pages = request.units.len() as u64;
        match request.dir {
            BlockDir::Read => {
                self.stats.requests_read += 1;
                self.stats.pages_read += pages;
                self.runs.read(request.lba, pages);
            }
            BlockDir::Write => {
                self.stats.requests_written += 1;
                self.stats.pages_written += pages;
            }
        }
        let dir = request.dir;
        let id = self.port.submit(request.block_req(), now);
        self.at_disk.push((id, request));
        self.take_from_backlog(dir, now);
    }

    /// Runs that wait for a request enter while there are free ones.
    fn take_from_backlog(&mut self, dir: BlockDir, now: Picos) {
        while self.pool.len(dir) < self.config.requests as usize {
            let Some(later) = self.backlog[side(dir)].pop_front() else {
                break;
            };
            let run = Run {
                lba: later.lba,
                units: &later.units,
                dir,
                task: later.task,
            };
            self.enter(run, now);
        }
        self.note_congestion(dir);
    }

    /// When [`poll`](Self::poll) has something to do next; `None` if nothing is
    /// under way.
    pub fn next_event(&self) -> Option<Picos> {
        let done = self.port.next_done().map(|(_, at)| at);
        let idle = self.at_disk.len() < self.config.depth as usize;
        let timer = match (self.plugged, self.held) {
            (Some(plug), _) if !self.pool.is_empty() => Some(plug),
            (_, held) if idle => held,
            _ => None,
        };
        [done, timer].into_iter().flatten().min()
    }

    /// Carries out what is due at `now`: completed pages are appended to `done` in
    /// the order of completion, and the disk gets new requests.
    pub fn poll(&mut self, now: Picos, done: &mut Vec<Done<T>>) {
        while let Some((id, at)) = self.port.next_done() {
            if at > now {
                break;
            }
            self.port.retire(id);
            // A completion ends the plug as well: the driver asks for more.
            self.plugged = None;
            self.complete(id, at, done);
            self.dispatch(at);
        }
        self.dispatch(now);
    }

    fn complete(&mut self, id: ReqId, at: Picos, done: &mut Vec<Done<T>>) {
        let Some(at_disk) = self.at_disk.iter().position(|e| e.0 == id) else {
            debug_assert!(false, "the disk completed a request that it was not given");
            return;
        };
        let (_, request) = self.at_disk.remove(at_disk);
        let served = Served {
            task: request.task,
            read: request.dir == BlockDir::Read,
            end: request.end(),
        };
        self.elevator.served(served, at);
        let dir = request.dir;
        done.extend(request.units.iter().map(|&unit| Done { unit, dir }));
    }

    /// Where a page lies on the medium, by the disk's knowledge.
    pub fn place(&self, lba: Lba) -> DiskBlock {
        self.port.place(lba)
    }

    /// Nothing waits and nothing is at the disk.
    pub fn is_idle(&self) -> bool {
        self.pool.is_empty() && self.at_disk.is_empty()
    }

    /// What happened so far.
    pub fn stats(&self) -> IoStats {
        let (anticipations, anticipated) = self.elevator.anticipations();
        IoStats {
            anticipations,
            anticipated,
            ..self.stats
        }
    }

    /// How sequential the reads were, in the order of dispatch.
    pub fn runs(&self) -> &RunLengths {
        &self.runs
    }

    /// The disk.
    pub fn port(&self) -> &D {
        &self.port
    }

    /// Pages that wait or are at the disk.
    pub fn pages_under_way(&self) -> u64 {
        let backlog = self.backlog.iter().flatten().map(|l| l.units.len());
        let at_disk = self.at_disk.iter().map(|(_, r)| r.units.len());
        let waiting = self.pool.requests().map(|r| r.units.len());
        backlog.chain(at_disk).chain(waiting).sum::<usize>() as u64
    }

    /// Recounts everything from scratch.
    ///
    /// # Errors
    /// The first rule that does not hold.
    pub fn validate(&self) -> Result<(), &'static str> {
        self.pool.validate()?;
        if self.at_disk.len() > self.config.depth as usize {
            return Err("no more requests are at the disk than its depth");
        }
        let limit = self.config.requests as usize;
        for (dir, backlog) in super::pool::DIRS.iter().zip(&self.backlog) {
            if self.pool.len(*dir) > limit {
                return Err("no more requests wait than there are");
            }
            if !backlog.is_empty() && self.pool.len(*dir) < limit {
                return Err("a run waits for a request although one is free");
            }
        }
        Ok(())
    }
}
