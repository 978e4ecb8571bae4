//! The deadline scheduler, in the form of 2.6.11 and in the later one.
//!
//! Requests are served in batches of ascending sectors. When a batch ends, reads go
//! first, unless writes waited while that happened `writes_starved` times; the new
//! batch begins with the request whose deadline has passed, else where the last batch
//! would have continued, if that had the same direction. If there is no such place,
//! 2.6.11 begins at the lowest sector, later versions at the earliest deadline. 2.6.11
//! also ends a batch at the first request that does not begin where the last ended.
//!
//! The place where a batch continues is fixed when a request is dispatched: what
//! comes in between afterwards waits for the next sweep.

use piebald_units::{Lba, Picos, block::BlockDir};

use super::super::{
    config::IoConfig,
    pool::{Id, Pool, side},
};

#[derive(Clone, Debug)]
pub(in crate::io) struct Deadline {
    one_way: bool,
    fifo_batch: u32,
    writes_starved: u32,
    /// Where the batch of a direction continues.
    next: [Option<Id>; 2],
    dir: BlockDir,
    batched: u32,
    starved: u32,
    last_end: Option<Lba>,
}

impl Deadline {
    pub fn new(config: &IoConfig, one_way: bool) -> Self {
        Self {
            one_way,
            fifo_batch: config.fifo_batch,
            writes_starved: config.writes_starved,
            next: [None; 2],
            dir: BlockDir::Read,
            batched: 0,
            starved: 0,
            last_end: None,
        }
    }

    pub fn choose<T: Copy>(&mut self, pool: &Pool<T>, now: Picos) -> Option<Id> {
        let id = match self.in_batch(pool) {
            Some(id) => id,
            None => self.begin(pool, now)?,
        };
        self.batched += 1;
        self.note(pool, id);
        Some(id)
    }

    fn in_batch<T: Copy>(&self, pool: &Pool<T>) -> Option<Id> {
        let next = self.next[side(self.dir)]?;
        let breaks = self.one_way && self.last_end != pool.get(next).map(|r| r.lba);
        (self.batched < self.fifo_batch && !breaks).then_some(next)
    }

    fn begin<T: Copy>(&mut self, pool: &Pool<T>, now: Picos) -> Option<Id> {
        self.dir = self.direction(pool)?;
        self.batched = 0;
        let earliest = pool.earliest(self.dir)?;
        let expired = pool.get(earliest).is_some_and(|r| r.deadline <= now);
        match self.next[side(self.dir)] {
            _ if expired => Some(earliest),
            Some(next) => Some(next),
            None if self.one_way => pool.lowest(self.dir),
            None => Some(earliest),
        }
    }

    fn direction<T: Copy>(&mut self, pool: &Pool<T>) -> Option<BlockDir> {
        let reads = pool.len(BlockDir::Read) > 0;
        let writes = pool.len(BlockDir::Write) > 0;
        if reads && !(writes && self.starved >= self.writes_starved) {
            self.starved += u32::from(writes);
            return Some(BlockDir::Read);
        }
        self.starved = 0;
        writes.then_some(BlockDir::Write)
    }

    fn note<T: Copy>(&mut self, pool: &Pool<T>, id: Id) {
        self.last_end = pool.get(id).map(|r| r.end());
        self.next = [None; 2];
        self.next[side(self.dir)] = pool.after(id);
    }

    pub fn joined(&mut self, gone: Id, next: Option<Id>) {
        for place in self.next.iter_mut().filter(|p| **p == Some(gone)) {
            *place = next;
        }
    }
}
