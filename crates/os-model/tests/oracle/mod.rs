//! Slow, obvious stand-ins for the allocators.

use std::collections::{BTreeMap, BTreeSet};

use rand::Rng;

/// Which frames are free and which blocks are granted: nothing else.
pub struct Sets {
    total: u64,
    free: BTreeSet<u64>,
    granted: BTreeMap<u64, u8>,
}

impl Sets {
    pub fn new(total: u64) -> Self {
        Self {
            total,
            free: (0..total).collect(),
            granted: BTreeMap::new(),
        }
    }

    pub fn grant(&mut self, frame: u64, order: u8) {
        assert_eq!(frame % (1 << order), 0, "grants are aligned");
        for f in frame..frame + (1 << order) {
            assert!(self.free.remove(&f), "frame {f} was granted twice");
        }
        self.granted.insert(frame, order);
    }

    pub fn release(&mut self, frame: u64) {
        let order = self.granted.remove(&frame).expect("a granted block");
        self.free.extend(frame..frame + (1 << order));
    }

    pub fn free(&self) -> u64 {
        self.free.len() as u64
    }

    pub fn has_block(&self, order: u8) -> bool {
        let size = 1u64 << order;
        (0..self.total / size).any(|b| {
            let first = b * size;
            self.free.range(first..first + size).count() as u64 == size
        })
    }

    pub fn pick(&self, rng: &mut impl Rng) -> Option<(u64, u8)> {
        let n = self.granted.len();
        let at = (n > 0).then(|| rng.random_range(0..n))?;
        self.granted.iter().nth(at).map(|(f, o)| (*f, *o))
    }

    pub fn granted(&self) -> Vec<(u64, u8)> {
        self.granted.iter().map(|(f, o)| (*f, *o)).collect()
    }
}

/// A buddy allocator on vectors: the last element is the list's head.
pub struct PlainBuddy {
    lists: Vec<Vec<u64>>,
}

impl PlainBuddy {
    /// `descending`: the highest block is used first.
    pub fn new(frames: u64, descending: bool) -> Self {
        let mut lists = vec![Vec::new(); 11];
        let mut at = 0;
        while at < frames {
            let order = (0..=10u32)
                .rev()
                .find(|o| at % (1 << o) == 0 && at + (1 << o) <= frames);
            let order = order.unwrap();
            lists[order as usize].push(at);
            at += 1 << order;
        }
        if !descending {
            for l in &mut lists {
                l.reverse();
            }
        }
        Self { lists }
    }

    pub fn alloc(&mut self, order: u8) -> Option<u64> {
        let from = (usize::from(order)..=10).find(|o| !self.lists[*o].is_empty())?;
        let frame = self.lists[from].pop()?;
        for o in (usize::from(order)..from).rev() {
            self.lists[o].push(frame + (1 << o));
        }
        Some(frame)
    }

    pub fn free(&mut self, frame: u64, order: u8) {
        let (mut frame, mut order) = (frame, usize::from(order));
        while order < 10 {
            let buddy = frame ^ (1 << order);
            let Some(at) = self.lists[order].iter().position(|f| *f == buddy) else {
                break;
            };
            self.lists[order].remove(at);
            frame = frame.min(buddy);
            order += 1;
        }
        self.lists[order].push(frame);
    }
}
