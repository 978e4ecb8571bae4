//! The smallest host of a replacement policy: one reference after the other, pages
//! named by small numbers.

use piebald_policy::contract::replacement::{Insert, PageName, PageRef, Replacement, State, Touch};
use piebald_units::{DiskBlock, Picos};

const NONE: u32 = u32::MAX;

/// For each reference the number of the next one of the same key.
pub fn next_uses(refs: &[u32]) -> Vec<Option<u64>> {
    let keys = refs.iter().max().map_or(0, |k| *k as usize + 1);
    let mut next = vec![None; keys];
    let mut uses = vec![None; refs.len()];
    for (at, key) in refs.iter().enumerate().rev() {
        uses[at] = next[*key as usize].replace(at as u64);
    }
    uses
}

/// A policy and the numbers of its pages.
pub struct Cache<P> {
    pub policy: P,
    number: Vec<u32>,
    key_of: Vec<u32>,
    free: Vec<u32>,
    clock: u64,
}

impl<P: Replacement> Cache<P> {
    pub fn new(policy: P, keys: usize) -> Self {
        let slots = policy.slots();
        Self {
            policy,
            number: vec![NONE; keys],
            key_of: vec![NONE; slots as usize],
            free: (0..slots).rev().collect(),
            clock: 0,
        }
    }

    fn drain(&mut self) {
        while let Some(page) = self.policy.dropped() {
            self.number[self.key_of[page.index()] as usize] = NONE;
            self.free.push(page.0);
        }
    }

    /// A demand reference; was the page in memory?
    pub fn access(&mut self, key: u32, next_use: Option<u64>) -> bool {
        self.clock += 1;
        let now = Picos(self.clock);
        let known = self.number[key as usize];
        let page = (known != NONE).then_some(PageRef(known));
        if let Some(page) = page.filter(|p| self.policy.state(*p) == State::Resident) {
            let touch = Touch {
                next_use,
                ..Touch::default()
            };
            self.policy.hit(page, touch, now);
            return true;
        }
        let insert = Insert {
            name: PageName(key.into()),
            at: Some(DiskBlock(key.into())),
            next_use,
            ..Insert::default()
        };
        self.policy.miss(page, &insert, now);
        self.drain();
        if self.policy.resident() == self.policy.capacity() {
            self.policy.evict().expect("nothing is detached");
            self.drain();
        }
        let page = match self.number[key as usize] {
            NONE => self.free.pop().expect("slots suffice"),
            page => page,
        };
        self.number[key as usize] = page;
        self.key_of[page as usize] = key;
        self.policy.insert(PageRef(page), &insert, now);
        self.drain();
        false
    }

    /// Hits of a whole stream.
    pub fn hits(&mut self, refs: &[u32]) -> u64 {
        let next = next_uses(refs);
        let hit = |(key, next): (&u32, &Option<u64>)| u64::from(self.access(*key, *next));
        refs.iter().zip(&next).map(hit).sum()
    }
}
