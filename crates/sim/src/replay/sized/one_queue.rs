//! Policies with a single queue: FIFO, LRU, CLOCK and SIEVE.

use super::super::index::PageKey;
use super::policy::{Access, SizedPolicy};
use super::queue::{At, Entry, Queue};

/// What such a policy does with its queue.
pub(super) trait Rule: Default + Send {
    /// An object was used.
    fn used(&mut self, queue: &mut Queue, at: At);

    /// The object that leaves next. Others may move for it.
    fn victim(&mut self, queue: &mut Queue) -> Option<At>;

    /// An object is about to leave, as a victim or otherwise.
    fn leaves(&mut self, _queue: &Queue, _at: At) {}
}

/// A cache with one queue. New objects are its newest.
pub(super) struct OneQueue<R> {
    queue: Queue,
    rule: R,
    capacity: u64,
}

impl<R: Rule> OneQueue<R> {
    pub fn new(capacity: u64) -> Self {
        Self {
            queue: Queue::new(),
            rule: R::default(),
            capacity,
        }
    }

    fn take_out(&mut self, at: At) {
        self.rule.leaves(&self.queue, at);
        self.queue.remove(at);
    }
}

impl<R: Rule> SizedPolicy for OneQueue<R> {
    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn occupied(&self) -> u64 {
        self.queue.bytes()
    }

    fn hit(&mut self, access: &Access) -> bool {
        let Some(at) = self.queue.find(access.key) else {
            return false;
        };
        self.queue.resize(at, access.bytes);
        self.rule.used(&mut self.queue, at);
        true
    }

    fn evict(&mut self, _now: u64) {
        if let Some(at) = self.rule.victim(&mut self.queue) {
            self.take_out(at);
        }
    }

    fn insert(&mut self, access: &Access) {
        self.queue.push(Entry {
            key: access.key,
            bytes: access.bytes,
            uses: 0,
        });
    }

    fn remove(&mut self, key: PageKey) {
        if let Some(at) = self.queue.find(key) {
            self.take_out(at);
        }
    }

    fn validate(&self) -> Result<(), String> {
        self.queue.validate()
    }
}

/// The oldest leaves.
#[derive(Default)]
pub(super) struct Fifo;

impl Rule for Fifo {
    fn used(&mut self, _queue: &mut Queue, _at: At) {}

    fn victim(&mut self, queue: &mut Queue) -> Option<At> {
        queue.oldest()
    }
}

/// What is used becomes the newest.
#[derive(Default)]
pub(super) struct Lru;

impl Rule for Lru {
    fn used(&mut self, queue: &mut Queue, at: At) {
        queue.renew(at);
    }

    fn victim(&mut self, queue: &mut Queue) -> Option<At> {
        queue.oldest()
    }
}

/// What was used becomes the newest when it would leave.
#[derive(Default)]
pub(super) struct Clock;

impl Rule for Clock {
    fn used(&mut self, queue: &mut Queue, at: At) {
        queue.set_uses(at, 1);
    }

    fn victim(&mut self, queue: &mut Queue) -> Option<At> {
        while let Some(at) = queue.oldest() {
            if queue.uses(at) == 0 {
                return Some(at);
            }
            queue.set_uses(at, 0);
            queue.renew(at);
        }
        None
    }
}

/// A hand goes from the oldest to the newest and round again. What was used stays, where it is.
#[derive(Default)]
pub(super) struct Sieve {
    /// `None`: at the oldest.
    hand: Option<At>,
}

impl Rule for Sieve {
    fn used(&mut self, queue: &mut Queue, at: At) {
        queue.set_uses(at, 1);
    }

    fn victim(&mut self, queue: &mut Queue) -> Option<At> {
        let mut at = self.hand.or(queue.oldest())?;
        while queue.uses(at) > 0 {
            queue.set_uses(at, 0);
            at = queue.newer(at).or(queue.oldest())?;
        }
        self.hand = Some(at);
        Some(at)
    }

    fn leaves(&mut self, queue: &Queue, at: At) {
        if self.hand == Some(at) {
            self.hand = queue.newer(at);
        }
    }
}
