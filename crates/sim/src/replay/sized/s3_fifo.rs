//! S3-FIFO (Yang et al., SOSP'23), as libCacheSim 0.3.5 (`S3FIFO.c`) has it for objects of
//! different sizes.
//!
//! *Small* has a tenth of the capacity and *main* the rest; *ghost* remembers objects of nine
//! tenths of the capacity. The shares are rounded down to whole bytes. Small may grow beyond its share: an object of
//! main leaves only if main is beyond its own, or small is empty. While memory fills for the
//! first time, new objects enter main once small has its share.
//!
//! An object that is as large as small or larger never comes in. libCacheSim makes room for one of
//! just that size, and then does not let it in; here nothing leaves for it.

use super::super::index::PageKey;
use super::policy::{Access, SizedPolicy};
use super::queue::{Entry, Queue};

/// Uses that move an object from small to main.
const MOVES_ON: u8 = 2;
/// Most uses that count in main.
const MOST_USES: u8 = 3;

/// S3-FIFO over bytes.
pub(super) struct S3Fifo {
    small: Queue,
    main: Queue,
    ghost: Queue,
    capacity: u64,
    small_share: u64,
    ghost_share: u64,
    /// The object of the last request was a ghost.
    was_ghost: bool,
    /// Memory does not fill for the first time.
    has_evicted: bool,
}

impl S3Fifo {
    pub fn new(capacity: u64) -> Self {
        let small_share = capacity / 10;
        Self {
            small: Queue::new(),
            main: Queue::new(),
            ghost: Queue::new(),
            capacity,
            small_share,
            // In two parts, since nine times the capacity may not fit.
            ghost_share: capacity / 10 * 9 + capacity % 10 * 9 / 10,
            was_ghost: false,
            has_evicted: false,
        }
    }

    /// Lets an object of small go, after those that move on.
    fn evict_small(&mut self) {
        while let Some(at) = self.small.oldest() {
            let entry = self.small.remove(at);
            if entry.uses < MOVES_ON {
                return self.remember(entry);
            }
            self.main.push(Entry { uses: 0, ..entry });
        }
    }

    /// Lets an object of main go, after those that get another turn.
    fn evict_main(&mut self) {
        while let Some(at) = self.main.oldest() {
            match self.main.uses(at) {
                0 => {
                    self.main.remove(at);
                    return;
                }
                uses => {
                    self.main.set_uses(at, uses.min(MOST_USES) - 1);
                    self.main.renew(at);
                }
            }
        }
    }

    fn remember(&mut self, entry: Entry) {
        if entry.bytes > self.ghost_share {
            return;
        }
        while self.ghost.bytes() + entry.bytes > self.ghost_share {
            let Some(oldest) = self.ghost.oldest() else {
                break;
            };
            self.ghost.remove(oldest);
        }
        self.ghost.push(entry);
    }
}

fn take_out(queue: &mut Queue, key: PageKey) -> bool {
    let found = queue.find(key);
    found.map(|at| queue.remove(at)).is_some()
}

impl SizedPolicy for S3Fifo {
    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn largest(&self) -> u64 {
        self.small_share.saturating_sub(1)
    }

    fn occupied(&self) -> u64 {
        self.small.bytes() + self.main.bytes()
    }

    fn hit(&mut self, access: &Access) -> bool {
        self.was_ghost = take_out(&mut self.ghost, access.key);
        for queue in [&mut self.small, &mut self.main] {
            if let Some(at) = queue.find(access.key) {
                queue.resize(at, access.bytes);
                queue.set_uses(at, queue.uses(at).saturating_add(1));
                return true;
            }
        }
        false
    }

    fn evict(&mut self, _now: u64) {
        self.has_evicted = true;
        match self.main.bytes() > self.capacity - self.small_share || self.small.is_empty() {
            true => self.evict_main(),
            false => self.evict_small(),
        }
    }

    fn insert(&mut self, access: &Access) {
        let fills_main = !self.has_evicted && self.small.bytes() >= self.small_share;
        let queue = match self.was_ghost || fills_main {
            true => &mut self.main,
            false => &mut self.small,
        };
        queue.push(Entry {
            key: access.key,
            bytes: access.bytes,
            uses: 0,
        });
    }

    fn remove(&mut self, key: PageKey) {
        for queue in [&mut self.small, &mut self.main, &mut self.ghost] {
            take_out(queue, key);
        }
    }

    fn validate(&self) -> Result<(), String> {
        for queue in [&self.small, &self.main, &self.ghost] {
            queue.validate()?;
        }
        let twice = |entry: &&Entry| {
            let others = [&self.main, &self.ghost];
            others.iter().any(|queue| queue.find(entry.key).is_some())
        };
        let ghost = |entry: &&Entry| self.ghost.find(entry.key).is_some();
        let double = self.small.iter().find(twice);
        if let Some(entry) = double.or(self.main.iter().find(ghost)) {
            return Err(format!("object {entry:?} is in two queues"));
        }
        match self.ghost.bytes() <= self.ghost_share {
            true => Ok(()),
            false => Err(format!("{} B of ghosts", self.ghost.bytes())),
        }
    }
}
