//! Files by name: a table of sets, each of which any thread may search at any time,
//! and one thread at a time may change.

use super::{
    room::{Room, domains},
    store::{FileRecord, SetState, WAYS},
    sync::{Acquire, Relaxed, Release},
};

/// A record is free.
const FREE: u32 = 0;
/// A file that is not cut.
const WHOLE: u32 = 1;
/// Chunk 0 of a file that is.
const FIRST_CHUNK: u64 = 2;
/// A thing that is not a file. Chunks end below.
const OBJECT: u32 = 1 << 31;

/// A file, a chunk of one, or an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub id: u64,
    part: u32,
}

impl Key {
    pub const fn whole(file: u64) -> Self {
        Self {
            id: file,
            part: WHOLE,
        }
    }

    pub const fn object(id: u64) -> Self {
        Self { id, part: OBJECT }
    }

    /// `None` beyond 2^31 chunks.
    pub fn chunk(file: u64, number: u64) -> Option<Self> {
        let part = u32::try_from(number.checked_add(FIRST_CHUNK)?).ok()?;
        (part < OBJECT).then_some(Self { id: file, part })
    }

    fn is_of(self, record: &FileRecord) -> bool {
        record.part.load(Acquire) == self.part && record.id.load(Relaxed) == self.id
    }

    /// The bits of a key, well mixed (the finaliser of splitmix64).
    fn mixed(self) -> u64 {
        let part = u64::from(self.part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut z = self.id ^ part.rotate_left(32);
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

/// What was found out about the record of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// It has one.
    Found(u32),
    /// It has one now.
    New(u32),
    /// All records of its set belong to files that are on some core, or another thread
    /// is changing the set.
    None,
}

impl<'a> Room<'a> {
    /// The set of a key: its first record, and its lock.
    fn set_of(&self, key: Key) -> Option<(u32, &'a SetState)> {
        // High bits of the product: a number below the number of sets.
        let high = key.mixed() >> 32;
        let set = high.wrapping_mul(u64::from(self.machine.sets)) >> 32;
        let state = self.parts.sets.get(set as usize)?;
        Some((set.saturating_mul(WAYS as u64) as u32, state))
    }

    fn records(&self, first: u32) -> impl Iterator<Item = (u32, &'a FileRecord)> {
        let records = self.parts.files.get(first as usize..).unwrap_or(&[]);
        (first..).zip(records).take(WAYS)
    }

    fn find_in(&self, first: u32, key: Key) -> Option<u32> {
        let mut records = self.records(first);
        records.find(|(_, r)| key.is_of(r)).map(|(at, _)| at)
    }

    /// The record of a key, if it has one.
    pub fn find(&self, key: Key) -> Option<u32> {
        let (first, _) = self.set_of(key)?;
        self.find_in(first, key)
    }

    /// The record of a key; a free one, or that of the least used file that no core has,
    /// if it has none yet.
    pub fn find_or_claim(&self, key: Key, bytes: u32) -> Claim {
        let Some((first, set)) = self.set_of(key) else {
            return Claim::None;
        };
        if let Some(file) = self.find_in(first, key) {
            return Claim::Found(file);
        }
        if !set.lock.take() {
            return Claim::None;
        }
        let claim = match self.find_in(first, key) {
            Some(file) => Claim::Found(file),
            None => self.claim(first, key, bytes),
        };
        set.lock.give();
        claim
    }

    /// Under the set's lock.
    fn claim(&self, first: u32, key: Key, bytes: u32) -> Claim {
        let unheld = self
            .records(first)
            .filter(|(_, r)| r.holders.load(Relaxed) == 0);
        let heat = |(at, r): &(u32, &FileRecord)| match r.part.load(Relaxed) {
            FREE => (false, 0),
            _ => (true, self.used_everywhere(*at)),
        };
        let Some((file, record)) = unheld.min_by_key(heat) else {
            return Claim::None;
        };
        record.part.store(FREE, Relaxed);
        self.clear(file);
        record.bytes.store(bytes, Relaxed);
        record.id.store(key.id, Relaxed);
        record.part.store(key.part, Release);
        Claim::New(file)
    }

    /// A thread that still has the number of the file that was here may count a use
    /// for the new one or place it; both believe something that is not so, until
    /// uses decay, and nothing worse.
    fn clear(&self, file: u32) {
        for domain in domains(self.machine.domains) {
            if let Some(cell) = self.cell(domain, file) {
                cell.used.store(0, Relaxed);
                cell.moved.store(0, Relaxed);
            }
        }
        if let Some(record) = self.file(file) {
            record.paid_ns.store(0, Relaxed);
        }
    }

    /// Frees the record of a key. Its number, if domains may have to be told; `Err` if
    /// another thread is changing the set, and nothing was done.
    pub fn free(&self, key: Key) -> Result<Option<u32>, ()> {
        let Some((first, set)) = self.set_of(key) else {
            return Ok(None);
        };
        if self.find_in(first, key).is_none() {
            return Ok(None);
        }
        if !set.lock.take() {
            return Err(());
        }
        let found = self.find_in(first, key);
        if let Some(record) = found.and_then(|f| self.file(f)) {
            record.part.store(FREE, Release);
        }
        set.lock.give();
        Ok(found)
    }

    /// The key of a record, `None` if it is free.
    pub fn key_of(&self, file: u32) -> Option<Key> {
        let record = self.file(file)?;
        let part = record.part.load(Acquire);
        let id = record.id.load(Relaxed);
        (part != FREE).then_some(Key { id, part })
    }
}

impl Key {
    /// A chunk of a file, or all of it; not an object.
    pub fn is_part_of(self, file: u64) -> bool {
        self.id == file && self.part != OBJECT
    }
}
