//! Waiting requests: merged, sorted by sector, and in order of their deadlines.

use std::collections::BTreeSet;

use piebald_units::{
    Lba, Picos, TaskId,
    block::{BlockDir, BlockReq, SECTORS_SHIFT},
};

/// Number of a waiting request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Id(pub u32);

/// A waiting request.
#[derive(Clone, Debug)]
pub(super) struct Request<T> {
    pub lba: Lba,
    pub units: Vec<T>,
    pub dir: BlockDir,
    /// Whose run came first.
    pub task: TaskId,
    pub deadline: Picos,
    /// Number in order of arrival.
    pub seq: u64,
}

impl<T> Request<T> {
    pub fn sectors(&self) -> u32 {
        (self.units.len() as u32) << SECTORS_SHIFT
    }

    pub fn end(&self) -> Lba {
        Lba(self.lba.0.saturating_add(self.sectors().into()))
    }

    pub fn block_req(&self) -> BlockReq {
        BlockReq {
            lba: self.lba,
            sectors: self.sectors(),
            dir: self.dir,
        }
    }
}

/// How a run entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entered {
    Back(Option<Joined>),
    Front(Option<Joined>),
}

/// A merge closed the gap between two requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Joined {
    pub into: Id,
    pub gone: Id,
}

/// Requests of one direction.
#[derive(Clone, Debug, Default)]
struct Side {
    by_start: BTreeSet<(Lba, Id)>,
    by_end: BTreeSet<(Lba, Id)>,
    by_deadline: BTreeSet<(Picos, u64, Id)>,
}

/// All waiting requests.
#[derive(Clone, Debug)]
pub(super) struct Pool<T> {
    slab: Vec<Option<Request<T>>>,
    free: Vec<Id>,
    sides: [Side; 2],
    max_sectors: u32,
    front_merges: bool,
    arrivals: u64,
}

pub(super) const fn side(dir: BlockDir) -> usize {
    match dir {
        BlockDir::Read => 0,
        BlockDir::Write => 1,
    }
}

pub(super) const DIRS: [BlockDir; 2] = [BlockDir::Read, BlockDir::Write];

impl<T: Copy> Pool<T> {
    pub fn new(max_sectors: u32, front_merges: bool) -> Self {
        Self {
            slab: Vec::new(),
            free: Vec::new(),
            sides: Default::default(),
            max_sectors,
            front_merges,
            arrivals: 0,
        }
    }

    pub fn get(&self, id: Id) -> Option<&Request<T>> {
        self.slab.get(id.0 as usize)?.as_ref()
    }

    /// All waiting requests, in no order that means anything.
    pub fn requests(&self) -> impl Iterator<Item = &Request<T>> {
        self.slab.iter().flatten()
    }

    /// Waiting requests of a direction.
    pub fn len(&self, dir: BlockDir) -> usize {
        self.sides[side(dir)].by_start.len()
    }

    pub fn is_empty(&self) -> bool {
        DIRS.iter().all(|&dir| self.len(dir) == 0)
    }

    /// The request with the lowest sector.
    pub fn lowest(&self, dir: BlockDir) -> Option<Id> {
        self.sides[side(dir)].by_start.first().map(|e| e.1)
    }

    /// The request whose deadline comes first.
    pub fn earliest(&self, dir: BlockDir) -> Option<Id> {
        self.sides[side(dir)].by_deadline.first().map(|e| e.2)
    }

    /// The request that follows `id` in order of sectors.
    pub fn after(&self, id: Id) -> Option<Id> {
        let request = self.get(id)?;
        let above = (
            std::ops::Bound::Excluded((request.lba, id)),
            std::ops::Bound::Unbounded,
        );
        let mut rest = self.sides[side(request.dir)].by_start.range(above);
        rest.next().map(|e| e.1)
    }

    /// The first request that begins at `lba` or above.
    pub fn at_or_above(&self, dir: BlockDir, lba: Lba) -> Option<Id> {
        let mut rest = self.sides[side(dir)].by_start.range((lba, Id(0))..);
        rest.next().map(|e| e.1)
    }

    /// Tries to join a run to a waiting request.
    pub fn merge(
        &mut self,
        lba: Lba,
        units: &[T],
        dir: BlockDir,
        deadline: Picos,
    ) -> Option<Entered> {
        let sectors = (units.len() as u32) << SECTORS_SHIFT;
        if let Some(id) = self.ending_at(lba, dir, sectors) {
            self.change(id, deadline, |r| r.units.extend_from_slice(units));
            return Some(Entered::Back(self.join_behind(id)));
        }
        let end = Lba(lba.0.saturating_add(sectors.into()));
        let id = self.starting_at(end, dir, sectors)?;
        self.change(id, deadline, |r| {
            r.lba = lba;
            r.units.splice(0..0, units.iter().copied());
        });
        Some(Entered::Front(self.join_before(id)))
    }

    fn ending_at(&self, lba: Lba, dir: BlockDir, room_for: u32) -> Option<Id> {
        let ends = &self.sides[side(dir)].by_end;
        let here = ends.range((lba, Id(0))..=(lba, Id(u32::MAX)));
        here.map(|e| e.1).find(|&id| self.has_room(id, room_for))
    }

    fn starting_at(&self, lba: Lba, dir: BlockDir, room_for: u32) -> Option<Id> {
        if !self.front_merges {
            return None;
        }
        let starts = &self.sides[side(dir)].by_start;
        let here = starts.range((lba, Id(0))..=(lba, Id(u32::MAX)));
        here.map(|e| e.1).find(|&id| self.has_room(id, room_for))
    }

    fn has_room(&self, id: Id, sectors: u32) -> bool {
        self.get(id)
            .is_some_and(|r| r.sectors().saturating_add(sectors) <= self.max_sectors)
    }

    /// If a request begins where `id` now ends, they become one.
    fn join_behind(&mut self, id: Id) -> Option<Joined> {
        let (end, dir, sectors) = self.get(id).map(|r| (r.end(), r.dir, r.sectors()))?;
        let starts = &self.sides[side(dir)].by_start;
        let here = starts.range((end, Id(0))..=(end, Id(u32::MAX)));
        let fits = |other: &Id| *other != id && self.has_room(*other, sectors);
        let behind = here.map(|e| e.1).find(fits)?;
        self.absorb(id, behind);
        Some(Joined {
            into: id,
            gone: behind,
        })
    }

    fn join_before(&mut self, id: Id) -> Option<Joined> {
        let (start, dir, sectors) = self.get(id).map(|r| (r.lba, r.dir, r.sectors()))?;
        let before = self.ending_at(start, dir, sectors)?;
        if before == id {
            return None;
        }
        self.absorb(before, id);
        Some(Joined {
            into: before,
            gone: id,
        })
    }

    /// Appends `behind` to `id`; the merged request has the earlier deadline.
    fn absorb(&mut self, id: Id, behind: Id) {
        let Some(taken) = self.take(behind) else {
            return;
        };
        self.change(id, taken.deadline, |r| {
            r.units.extend_from_slice(&taken.units);
            r.seq = r.seq.min(taken.seq);
        });
    }

    /// A new request.
    pub fn add(
        &mut self,
        lba: Lba,
        units: &[T],
        dir: BlockDir,
        task: TaskId,
        deadline: Picos,
    ) -> Id {
        let request = Request {
            lba,
            units: units.to_vec(),
            dir,
            task,
            deadline,
            seq: self.arrivals,
        };
        self.arrivals += 1;
        let id = self.free.pop().unwrap_or_else(|| {
            self.slab.push(None);
            Id((self.slab.len() - 1) as u32)
        });
        self.slab[id.0 as usize] = Some(request);
        self.list(id);
        id
    }

    /// Takes a request out.
    pub fn take(&mut self, id: Id) -> Option<Request<T>> {
        self.unlist(id);
        let request = self.slab.get_mut(id.0 as usize)?.take()?;
        self.free.push(id);
        Some(request)
    }

    fn change(&mut self, id: Id, deadline: Picos, edit: impl FnOnce(&mut Request<T>)) {
        self.unlist(id);
        if let Some(Some(request)) = self.slab.get_mut(id.0 as usize) {
            edit(request);
            request.deadline = request.deadline.min(deadline);
        }
        self.list(id);
    }

    fn list(&mut self, id: Id) {
        let Some(Some(r)) = self.slab.get(id.0 as usize) else {
            return;
        };
        let side = &mut self.sides[side(r.dir)];
        side.by_start.insert((r.lba, id));
        side.by_end.insert((r.end(), id));
        side.by_deadline.insert((r.deadline, r.seq, id));
    }

    fn unlist(&mut self, id: Id) {
        let Some(Some(r)) = self.slab.get(id.0 as usize) else {
            return;
        };
        let side = &mut self.sides[side(r.dir)];
        side.by_start.remove(&(r.lba, id));
        side.by_end.remove(&(r.end(), id));
        side.by_deadline.remove(&(r.deadline, r.seq, id));
    }

    /// Recounts everything; the first rule that does not hold.
    pub fn validate(&self) -> Result<(), &'static str> {
        let waiting = self.slab.iter().flatten().count();
        let listed: usize = DIRS.iter().map(|&d| self.len(d)).sum();
        if waiting != listed || waiting + self.free.len() != self.slab.len() {
            return Err("every request is listed once or free");
        }
        for (i, request) in self.slab.iter().enumerate() {
            let Some(r) = request else { continue };
            let (id, side) = (Id(i as u32), &self.sides[side(r.dir)]);
            let listed = side.by_start.contains(&(r.lba, id))
                && side.by_end.contains(&(r.end(), id))
                && side.by_deadline.contains(&(r.deadline, r.seq, id));
            if !listed {
                return Err("a request is listed under its own start, end and deadline");
            }
            if r.sectors() > self.max_sectors || r.units.is_empty() {
                return Err("a request has 1 page to the largest size");
            }
        }
        Ok(())
    }
}
