//! A cache without a disk below: hits and misses of one policy at one size.

use piebald_policy::contract::replacement::{
    Gone, Insert, PageName, PageRef, Replacement, State, Touch,
};
use piebald_units::{DiskBlock, Picos};

use super::index::{PageIndex, PageKey};
use super::parts::{Part, Parts};

/// One use of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Which page.
    pub key: PageKey,
    /// What is done to it.
    pub what: Use,
}

/// What is done to a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It is read.
    Read,
    /// It is written to: fetched like a read where it is missing, as pure cache
    /// simulators do.
    Write,
    /// Its file is gone.
    Delete,
}

/// Hits and misses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HitCounts {
    /// References that were counted.
    pub references: u64,
    /// To pages in memory.
    pub hits: u64,
    /// To others.
    pub misses: u64,
}

/// Bytes of the requests that were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByteCounts {
    /// Asked for.
    pub requested: u64,
    /// Asked for by requests that missed.
    pub missed: u64,
    /// Requests, not bytes: misses of objects that are too large to come in.
    pub too_large: u64,
}

/// References whose places in the index are read together before they are searched
/// for one by one: enough to hide the latency of memory, few enough to stay in the
/// first-level cache.
const AHEAD: usize = 32;

/// A policy with a host that keeps pages' numbers, and no disk: a miss costs nothing
/// but its count.
///
/// Memory: 16 B x 2..4 for the index and 8 B for the key per number, besides the
/// policy's own.
pub struct Cache<P> {
    policy: P,
    index: PageIndex,
    /// Key of each number in use.
    keys: Vec<PageKey>,
    /// Numbers below `keys.len()` that stand for no page.
    free: Vec<PageRef>,
    counts: HitCounts,
    parts: Parts,
    /// References so far, counted or not.
    clock: u64,
    warmup: u64,
    addressed: bool,
}

impl<P: Replacement> Cache<P> {
    /// An empty cache. The first `warmup` references are not counted. `addressed`:
    /// keys that follow one another lie next to one another on disk, as far as a
    /// policy wants to know.
    pub fn new(policy: P, warmup: u64, addressed: bool) -> Self {
        let room = policy.slots() as usize;
        Self {
            // A policy may have far more numbers than pages that ever come.
            index: PageIndex::with_room(room.min(1 << 16)),
            policy,
            keys: Vec::new(),
            free: Vec::new(),
            counts: HitCounts::default(),
            parts: Parts::default(),
            clock: 0,
            warmup,
            addressed,
        }
    }

    /// Uses pages in order. `next_use` gives, for each, the number of the reference
    /// that uses the page next (`u64::MAX` = none); only a policy that knows the
    /// future needs it, others get an empty slice.
    pub fn run(&mut self, references: &[Reference], next_use: &[u64]) {
        let mut begin = 0;
        // Parts end between groups.
        let most = self.parts.length().clamp(1, AHEAD as u64) as usize;
        for group in references.chunks(most) {
            let mut warm = 0;
            for reference in group {
                warm ^= self.index.warm(reference.key);
            }
            std::hint::black_box(warm);
            match next_use.get(begin..begin + group.len()) {
                Some(next) if !next.is_empty() => {
                    for (reference, &next) in group.iter().zip(next) {
                        let next = (next != u64::MAX).then_some(next);
                        self.step(*reference, next);
                    }
                }
                _ => {
                    for reference in group {
                        self.step(*reference, None);
                    }
                }
            }
            begin += group.len();
            if self.counts.references > 0 && self.parts.is_due(self.counts.references) {
                self.parts.end(self.totals());
            }
        }
    }

    fn totals(&self) -> Part {
        Part {
            length: self.counts.references,
            misses: self.counts.misses,
            ..Part::default()
        }
    }

    /// Misses by parts of what was counted.
    pub fn parts(&self) -> Vec<Part> {
        self.parts.up_to(self.totals())
    }

    #[inline]
    fn step(&mut self, reference: Reference, next_use: Option<u64>) {
        let known = self.index.get(reference.key);
        if reference.what == Use::Delete {
            self.delete(known);
            return;
        }
        let now = Picos(self.clock);
        let counted = u64::from(self.clock >= self.warmup);
        self.clock += 1;
        self.counts.references += counted;
        let touch = Touch {
            next_use,
            ..Touch::default()
        };
        if let Some(page) = known
            && self.policy.state(page) == State::Resident
        {
            self.counts.hits += counted;
            self.policy.hit(page, touch, now);
            return;
        }
        self.counts.misses += counted;
        self.fetch(reference.key, known, next_use, now);
    }

    fn fetch(&mut self, key: PageKey, ghost: Option<PageRef>, next_use: Option<u64>, now: Picos) {
        let insert = Insert {
            name: PageName(key.0),
            next_use,
            at: self.addressed.then_some(DiskBlock(key.0)),
            ..Insert::default()
        };
        self.policy.miss(ghost, &insert, now);
        while self.policy.resident() >= self.policy.capacity() {
            if self.policy.evict().is_none() {
                break;
            }
        }
        // The ghost itself may have made room for another.
        let ghost = ghost.filter(|&g| self.policy.state(g) == State::Ghost);
        self.release();
        let page = ghost.unwrap_or_else(|| self.number(key));
        self.policy.insert(page, &insert, now);
        self.release();
    }

    fn delete(&mut self, known: Option<PageRef>) {
        if let Some(page) = known {
            self.policy.forget(page, Gone::Deleted);
            self.release();
        }
    }

    /// A number for a page that has none.
    fn number(&mut self, key: PageKey) -> PageRef {
        let page = match self.free.pop() {
            Some(page) => {
                self.keys[page.index()] = key;
                page
            }
            None => {
                let page = PageRef(self.keys.len() as u32);
                self.keys.push(key);
                page
            }
        };
        self.index.insert(key, page);
        page
    }

    /// Takes back the numbers that the policy gave up.
    #[inline]
    fn release(&mut self) {
        while let Some(page) = self.policy.dropped() {
            self.index.remove(self.keys[page.index()]);
            self.free.push(page);
        }
    }

    /// Hits and misses so far.
    pub fn counts(&self) -> HitCounts {
        self.counts
    }

    /// The policy.
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// Compares the host's books with the policy's.
    ///
    /// # Errors
    /// What does not agree, in words.
    pub fn validate(&self) -> Result<(), String> {
        self.policy
            .validate()
            .map_err(|broken| broken.to_string())?;
        if self.index.len() + self.free.len() != self.keys.len() {
            return Err("numbers in use and free ones are not all".to_owned());
        }
        let known = (0..self.keys.len() as u32)
            .filter(|&n| self.policy.state(PageRef(n)) != State::Unknown);
        match known.count() == self.index.len() {
            true => Ok(()),
            false => Err("the policy knows other pages than the index".to_owned()),
        }
    }
}
