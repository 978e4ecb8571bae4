//! What each domain's cache is believed to hold: room, files, and the least popular of
//! them.
//!
//! Everything that changes here changes under the domain's lock: the entries, their
//! number, their bytes, and the domain's bit in the holders of the files. One lock at
//! a time; nobody waits for one.

use super::{
    room::{DomainId, Event, Room, domains},
    store::{Books, Entry, Facts},
    sync::{Acquire, Relaxed, Release},
};
use piebald_units::CoreId;

/// Some of the files that entries name have other sizes now, or none.
pub(super) const RECHECK: u32 = 1;
/// The domain went: it holds nothing.
pub(super) const EMPTY: u32 = 2;

/// How room may be made for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Make {
    /// Not at all: there must be some.
    Nothing,
    /// By removing files whose uses times the factor are less than this.
    Less { than: u64, factor: u32 },
}

/// A file that is to be placed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placing {
    pub file: u32,
    pub bytes: u32,
    /// Where the thread is that wants it, for statistics.
    pub core: CoreId,
}

/// A domain whose lock is taken.
#[derive(Clone, Copy)]
pub(super) struct Held<'a> {
    pub room: Room<'a>,
    pub id: DomainId,
    facts: &'a Facts,
    books: &'a Books,
    entries: &'a [Entry],
}

/// Bytes of files for which a domain's own levels have no room.
fn spill(facts: &Facts, files: u64) -> u64 {
    files.saturating_sub(facts.own)
}

impl<'a> Room<'a> {
    /// Bytes of files that take the capacity of a domain: its own, and what the others at
    /// its shared cache put there (section 4.6, the third property).
    pub fn file_bytes(&self, domain: DomainId) -> u64 {
        let Some(state) = self.domain(domain) else {
            return 0;
        };
        let files = state.books.files.load(Relaxed);
        let shared = self.parts.shared.get(usize::from(state.facts.group));
        let spilled = shared.map_or(0, |s| s.spilled.load(Relaxed));
        let others = spilled.saturating_sub(spill(&state.facts, files));
        files.saturating_add(others)
    }

    /// `M_avail` (equation 2).
    pub fn available(&self, domain: DomainId) -> u64 {
        let Some(state) = self.domain(domain) else {
            return 0;
        };
        let others = state.books.others.load(Relaxed);
        let taken = self.file_bytes(domain).max(others);
        state.facts.capacity.saturating_sub(taken)
    }

    /// Works on a domain under its lock, which is brought up to date before; `None` if
    /// another thread has it.
    pub fn locked<R>(&self, id: DomainId, work: impl FnOnce(&Held<'a>) -> R) -> Option<R> {
        let state = self.domain(id)?;
        if !state.books.lock.take() {
            return None;
        }
        let held = Held {
            room: *self,
            id,
            facts: &state.facts,
            books: &state.books,
            entries: self.entries(id),
        };
        held.settle();
        let result = work(&held);
        state.books.lock.give();
        Some(result)
    }

    /// Has a domain settle what is stale, now or by whoever has its lock next.
    pub fn settle(&self, id: DomainId, what: u32) {
        if let Some(books) = self.books(id) {
            books.stale.fetch_or(what, Release);
            self.locked(id, |_| ());
        }
    }

    /// A file's size may have changed.
    pub fn note_size(&self, file: u32, bytes: u32) {
        let Some(record) = self.file(file) else {
            return;
        };
        if record.bytes.load(Relaxed) == bytes {
            return;
        }
        record.bytes.store(bytes, Relaxed);
        self.tell_holders(file);
    }

    /// A file changed its size or is gone.
    pub fn tell_holders(&self, file: u32) {
        let holders = self.file(file).map_or(0, |r| r.holders.load(Relaxed));
        for domain in domains(holders) {
            self.settle(domain, RECHECK);
        }
    }

    /// A file has fewer uses on a domain now: the bound must not be above. (A file that
    /// comes to the domain in this moment may leave it too high until uses are halved
    /// next; a less popular file stays that long.)
    pub fn lower_bound(&self, id: DomainId, file: u32, used: u32) {
        let holders = self.file(file).map_or(0, |r| r.holders.load(Relaxed));
        if let Some(books) = self.books(id).filter(|_| holders & id.bit() != 0) {
            books.least.fetch_min(used, Release);
        }
    }

    /// Believes that a domain holds a file; false if it cannot be placed there.
    pub fn place_on(&self, id: DomainId, placing: Placing, make: Make) -> bool {
        match self.locked(id, |held| held.place(placing, make)) {
            Some(placed) => placed,
            None => {
                self.note(placing.core, Event::Contended);
                false
            }
        }
    }

    /// No longer believes that a domain holds a file.
    pub fn remove(&self, id: DomainId, file: u32) {
        self.locked(id, |held| held.remove(file));
    }
}

impl Held<'_> {
    fn len(&self) -> usize {
        self.books.held.load(Relaxed) as usize
    }

    fn in_use(&self) -> &[Entry] {
        self.entries.get(..self.len()).unwrap_or(&[])
    }

    fn used(&self, entry: &Entry) -> u32 {
        self.room.used(self.id, entry.file.load(Relaxed))
    }

    /// Changes the bytes of the entries, and what of them goes to the shared cache.
    fn set_files(&self, files: u64) {
        let before = self.books.files.load(Relaxed);
        self.books.files.store(files, Relaxed);
        let change = spill(self.facts, files).wrapping_sub(spill(self.facts, before));
        let shared = self.room.parts.shared.get(usize::from(self.facts.group));
        if let Some(shared) = shared.filter(|_| change != 0) {
            shared.spilled.fetch_add(change, Relaxed);
        }
    }

    fn settle(&self) {
        if self.books.stale.load(Relaxed) == 0 {
            return;
        }
        let stale = self.books.stale.swap(0, Acquire);
        let mut at = 0;
        while let Some(entry) = self.in_use().get(at) {
            if stale & EMPTY != 0 || self.is_gone(entry) {
                self.remove_at(at);
                continue;
            }
            self.recount(entry);
            at = at.saturating_add(1);
        }
    }

    fn is_gone(&self, entry: &Entry) -> bool {
        self.room.key_of(entry.file.load(Relaxed)).is_none()
    }

    fn recount(&self, entry: &Entry) {
        let Some(record) = self.room.file(entry.file.load(Relaxed)) else {
            return;
        };
        let (was, is) = (entry.bytes.load(Relaxed), record.bytes.load(Relaxed));
        if was != is {
            entry.bytes.store(is, Relaxed);
            let files = self.books.files.load(Relaxed);
            let rest = files.saturating_sub(u64::from(was));
            self.set_files(rest.saturating_add(u64::from(is)));
        }
    }

    fn place(&self, placing: Placing, make: Make) -> bool {
        let Some(record) = self.room.file(placing.file) else {
            return false;
        };
        if record.holders.load(Relaxed) & self.id.bit() != 0 {
            return true;
        }
        let is_room = match make {
            Make::Nothing => self.room.available(self.id) > u64::from(placing.bytes),
            Make::Less { than, factor } => self.make_room(placing, than, factor),
        };
        is_room && self.push(placing)
    }

    /// Removes the least popular files until the new one takes no more than they did, or
    /// there is room for it. At least one (Figure 2, line 24), and none if those that
    /// may go are not enough.
    fn make_room(&self, placing: Placing, than: u64, factor: u32) -> bool {
        let bytes = u64::from(placing.bytes);
        let wanted = self.room.file_bytes(self.id).saturating_add(bytes);
        let needed = wanted.saturating_sub(self.facts.capacity).min(bytes);
        let may_go = |e: &&Entry| u64::from(self.used(e)).saturating_mul(factor.into()) < than;
        let candidates = self.in_use().iter().filter(may_go);
        let (nr, sum) = candidates.fold((0u32, 0u64), |(nr, sum), e| {
            let bytes = u64::from(e.bytes.load(Relaxed));
            (nr.saturating_add(1), sum.saturating_add(bytes))
        });
        if nr == 0 || sum < needed {
            return false;
        }
        let mut freed = 0u64;
        for _ in 0..nr {
            freed = freed.saturating_add(self.evict());
            self.room.note(placing.core, Event::Evicted);
            if freed >= needed {
                break;
            }
        }
        true
    }

    /// Removes the least popular file, of equals the one that came first; its bytes.
    fn evict(&self) -> u64 {
        let entries = self.in_use().iter().enumerate();
        let Some((at, entry)) = entries.min_by_key(|(_, e)| self.used(e)) else {
            return 0;
        };
        let bytes = entry.bytes.load(Relaxed);
        self.remove_at(at);
        bytes.into()
    }

    fn push(&self, placing: Placing) -> bool {
        let len = self.len();
        let Some((entry, record)) = self.entries.get(len).zip(self.room.file(placing.file)) else {
            return false;
        };
        entry.file.store(placing.file, Relaxed);
        entry.bytes.store(placing.bytes, Relaxed);
        self.books.held.store(len.saturating_add(1) as u32, Relaxed);
        record.holders.fetch_or(self.id.bit(), Relaxed);
        let files = self.books.files.load(Relaxed);
        self.set_files(files.saturating_add(u64::from(placing.bytes)));
        let used = self.room.used(self.id, placing.file);
        self.books.least.fetch_min(used, Relaxed);
        true
    }

    pub fn remove(&self, file: u32) {
        let mut entries = self.in_use().iter();
        if let Some(at) = entries.position(|e| e.file.load(Relaxed) == file) {
            self.remove_at(at);
        }
    }

    /// Those behind move up: the order is that in which they came.
    fn remove_at(&self, at: usize) {
        let Some((gone, behind)) = self.in_use().get(at..).and_then(<[Entry]>::split_first) else {
            return;
        };
        let (file, bytes) = (gone.file.load(Relaxed), gone.bytes.load(Relaxed));
        let mut to = gone;
        for from in behind {
            to.file.store(from.file.load(Relaxed), Relaxed);
            to.bytes.store(from.bytes.load(Relaxed), Relaxed);
            to = from;
        }
        self.books.held.fetch_sub(1, Relaxed);
        if let Some(record) = self.room.file(file) {
            record.holders.fetch_and(!self.id.bit(), Relaxed);
        }
        let files = self.books.files.load(Relaxed);
        self.set_files(files.saturating_sub(u64::from(bytes)));
    }

    /// The uses of the least popular file; `u32::MAX` if there is none. An ager that
    /// halves uses meanwhile sets the bound to 0 when it is done, which stays.
    pub fn least(&self) -> u32 {
        self.books.least.swap(u32::MAX, Acquire);
        let uses = self.in_use().iter().map(|e| self.used(e));
        let least = uses.min().unwrap_or(u32::MAX);
        self.books.least.fetch_min(least, Relaxed);
        least
    }
}
