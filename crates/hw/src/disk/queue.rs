//! The disk as the I/O scheduler sees it: commands outstanding, and which is
//! done next.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, VecDeque},
};

use piebald_units::{
    DiskBlock, Lba, Picos,
    block::{BlockPort, BlockReq, ReqId, SECTORS_SHIFT},
};

use super::average::Average;
use super::cost::RunCost;
use super::flash::Flash;
use super::spec::{DiskSpec, QueueSpec, Scheduling};
use super::timing::{DiskCounters, Timing};
use super::zoned::Zoned;
use crate::SpecError;

/// What serves a command.
#[derive(Clone, Debug)]
enum Model {
    Zoned(Box<Zoned>, RunCost),
    Average(Average),
    Flash(Flash),
}

/// A command that waits for the drive.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    id: ReqId,
    req: BlockReq,
    arrived: Picos,
}

/// A disk with its queue of commands.
///
/// Platters and averages serve one command at a time; the drive chooses the next
/// among those it holds when one is done. Flash serves as many at a time as its
/// queue is deep, in order of arrival.
///
/// A request that does not lie on the disk is cut: its first sector is moved to
/// the last of the disk, its length to what is left, at least 1. The counters
/// tell how many were.
#[derive(Clone, Debug)]
pub struct Disk {
    model: Model,
    spec: DiskSpec,
    waiting: VecDeque<Waiting>,
    /// Started and not yet retired, by time of completion and number.
    started: BTreeMap<(Picos, u64), Timing>,
    /// When the last command is done, for models that serve one at a time.
    busy_until: Picos,
    /// When each command that a flash disk holds is done.
    slots: BinaryHeap<Reverse<Picos>>,
    next_id: u64,
    cut: u64,
}

impl Disk {
    /// Builds a disk.
    ///
    /// # Errors
    /// The first value of the description that is not allowed or contradicts
    /// others.
    pub fn new(spec: &DiskSpec) -> Result<Self, SpecError> {
        super::check::disk(spec)?;
        let model = match (&spec.zoned, spec.average, spec.flash) {
            (Some(zoned), _, _) => {
                let model = Zoned::new(spec, zoned)?;
                let cost = RunCost::of(&model, zoned);
                Model::Zoned(Box::new(model), cost)
            }
            (_, Some(average), _) => Model::Average(Average::new(average)),
            (_, _, Some(flash)) => Model::Flash(Flash::new(flash)),
            // The check has refused a description without any of them.
            _ => return Err(SpecError::new("tables", "none", "one of them")),
        };
        Ok(Self {
            model,
            spec: spec.clone(),
            waiting: VecDeque::new(),
            started: BTreeMap::new(),
            busy_until: Picos(0),
            slots: BinaryHeap::new(),
            next_id: 0,
            cut: 0,
        })
    }

    /// The description that it was built from.
    pub fn spec(&self) -> &DiskSpec {
        &self.spec
    }

    /// Sectors of the disk.
    pub fn capacity_sectors(&self) -> u64 {
        self.spec.capacity
    }

    /// The platters, for those who look inside; `None` for other disks.
    pub fn zoned(&self) -> Option<&Zoned> {
        match &self.model {
            Model::Zoned(zoned, _) => Some(zoned),
            _ => None,
        }
    }

    /// Sums over all requests started so far.
    pub fn counters(&self) -> DiskCounters {
        let counters = match &self.model {
            Model::Zoned(m, _) => m.counters,
            Model::Average(m) => m.counters,
            Model::Flash(m) => m.counters,
        };
        DiskCounters {
            cut: self.cut,
            ..counters
        }
    }

    /// Place of a block on the line that sequences are formed on (DULO section
    /// 4.2.2), in sectors: spare and slipped sectors are counted, and every
    /// track ends with a dummy, so that blocks on both sides of a track's end
    /// are not neighbours. The block itself on disks without platters; the last
    /// block's place for blocks beyond the disk.
    pub fn physical_block(&self, lba: Lba) -> u64 {
        match &self.model {
            Model::Zoned(zoned, _) => zoned.map().line(lba.0.min(self.spec.capacity - 1)),
            Model::Average(_) | Model::Flash(_) => lba.0,
        }
    }

    /// Mean time to fetch a run of so many sectors after a random seek, with no
    /// other command and nothing in the buffer.
    pub fn run_cost(&self, sectors: u64) -> Picos {
        match &self.model {
            Model::Zoned(_, cost) => cost.time(sectors),
            Model::Average(average) => average.read_cost(sectors),
            Model::Flash(flash) => flash.read_cost(sectors),
        }
    }

    /// What a request cost that has been started and not retired.
    pub fn timing(&self, id: ReqId) -> Option<&Timing> {
        let found = self.started.iter().find(|((_, known), _)| *known == id.0);
        found.map(|(_, timing)| timing)
    }

    /// Requests that are submitted and not retired.
    pub fn outstanding(&self) -> usize {
        self.waiting.len() + self.started.len()
    }

    /// Serves one command at once, past the queue; for those who keep one of
    /// their own and have nothing outstanding here. Commands come in rising
    /// time, each after the one before is done unless the disk is flash.
    pub fn service(&mut self, req: BlockReq, now: Picos) -> Timing {
        let req = self.cut(req);
        let timing = self.model.service(req, now);
        self.busy_until = timing.done;
        timing
    }

    /// Checks what must hold between calls.
    ///
    /// # Errors
    /// What is broken.
    pub fn validate(&self) -> Result<(), String> {
        if let Model::Zoned(zoned, _) = &self.model {
            zoned.validate()?;
        }
        let last = self.started.keys().next_back();
        if !self.waiting.is_empty() && last.is_none_or(|(done, _)| *done < self.busy_until) {
            return Err("commands wait for an idle disk".into());
        }
        let backwards = |t: &Timing| t.done < t.start;
        match self.started.values().any(backwards) {
            true => Err("a command is done before it starts".into()),
            false => Ok(()),
        }
    }

    fn cut(&mut self, req: BlockReq) -> BlockReq {
        let lba = req.lba.0.min(self.spec.capacity - 1);
        let left = u32::try_from(self.spec.capacity - lba).unwrap_or(u32::MAX);
        let sectors = req.sectors.clamp(1, left);
        self.cut += u64::from(lba != req.lba.0 || sectors != req.sectors);
        BlockReq {
            lba: Lba(lba),
            sectors,
            dir: req.dir,
        }
    }

    fn start(&mut self, waiting: Waiting, now: Picos) -> Picos {
        let timing = self.model.service(waiting.req, now);
        self.started.insert((timing.done, waiting.id.0), timing);
        timing.done
    }

    /// Flash takes a command at once if its queue has room, else when the first
    /// of those that it holds is done.
    fn take_flash(&mut self, waiting: Waiting) {
        let full = self.slots.len() >= self.spec.queue.depth as usize;
        let free = match full {
            true => self.slots.pop().map_or(Picos(0), |Reverse(done)| done),
            false => Picos(0),
        };
        let done = self.start(waiting, waiting.arrived.max(free));
        self.slots.push(Reverse(done));
    }

    /// Starts what a disk that serves one at a time starts until `now`.
    fn advance(&mut self, now: Picos) {
        while let Some(oldest) = self.waiting.front() {
            let at = self.busy_until.max(oldest.arrived);
            if at > now {
                return;
            }
            self.model.settle(at);
            let next = self.choose(at);
            let Some(waiting) = self.waiting.remove(next) else {
                return;
            };
            self.busy_until = self.start(waiting, at);
        }
    }

    /// Which of the held commands is next at `at`. The oldest has arrived by
    /// then.
    fn choose(&self, at: Picos) -> usize {
        let QueueSpec {
            depth,
            scheduling,
            patience,
        } = self.spec.queue;
        let waited = |w: &Waiting| at.since(w.arrived);
        let impatient = |w: &Waiting| patience.is_some_and(|p| waited(w) >= p);
        let old = self.waiting.front().is_some_and(impatient);
        if scheduling == Scheduling::Fcfs || old || self.waiting.len() == 1 {
            return 0;
        }
        let held = self.waiting.iter().take(depth as usize).enumerate();
        let here = held.filter(|(_, w)| w.arrived <= at);
        let near = here.min_by_key(|(_, w)| self.model.positioning(w.req, at));
        near.map_or(0, |(place, _)| place)
    }
}

impl Model {
    fn service(&mut self, req: BlockReq, now: Picos) -> Timing {
        match self {
            Model::Zoned(m, _) => m.service(req, now),
            Model::Average(m) => m.service(req, now),
            Model::Flash(m) => m.service(req, now),
        }
    }

    /// Lets the drive's own work come to `now`, so that a choice sees where the
    /// arm is.
    fn settle(&mut self, now: Picos) {
        if let Model::Zoned(m, _) = self {
            m.settle(now);
        }
    }

    fn positioning(&self, req: BlockReq, now: Picos) -> Picos {
        match self {
            Model::Zoned(m, _) => m.positioning(req, now),
            Model::Average(m) => m.positioning(req),
            Model::Flash(_) => Picos(0),
        }
    }
}

impl BlockPort for Disk {
    fn submit(&mut self, req: BlockReq, now: Picos) -> ReqId {
        let id = ReqId(self.next_id);
        self.next_id += 1;
        let waiting = Waiting {
            id,
            req: self.cut(req),
            arrived: now,
        };
        if let Model::Flash(_) = self.model {
            self.take_flash(waiting);
            return id;
        }
        // What became free before now has chosen without this request.
        self.advance(Picos(now.0.saturating_sub(1)));
        self.waiting.push_back(waiting);
        self.advance(now);
        id
    }

    /// Numbers follow one another for pages whose sectors follow one another on the
    /// medium; every spare, slipped or dummy sector between them leaves one out.
    fn place(&self, lba: Lba) -> DiskBlock {
        let between = self.physical_block(lba).saturating_sub(lba.0);
        DiskBlock((lba.0 >> SECTORS_SHIFT).saturating_add(between))
    }

    fn next_done(&self) -> Option<(ReqId, Picos)> {
        let first = self.started.keys().next();
        first.map(|(done, id)| (ReqId(*id), *done))
    }

    /// An id that is not started (or unknown) changes nothing.
    fn retire(&mut self, id: ReqId) {
        let mut keys = self.started.keys();
        let Some(key) = keys.find(|(_, known)| *known == id.0).copied() else {
            return;
        };
        self.started.remove(&key);
        self.advance(key.0);
    }
}
