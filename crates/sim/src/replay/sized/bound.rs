//! PFOO-L: a lower bound on misses (D. S. Berger, N. Beckmann, M. Harchol-Balter, *Practical bounds
//! on optimal caching with variable object sizes*, SIGMETRICS 2018, section 5).
//!
//! A hit needs its object in the cache from the last request for it up to this one. Such an
//! *interval* takes the object's size times its requests out of the cache's bytes times all
//! requests. PFOO-L requires only that the sum of what is taken fits, not that it fits at every
//! moment, and then the cheapest intervals are the best: no policy has more hits than they.
//!
//! The fewest missed requests and the fewest missed bytes are two bounds with two orders: by the
//! product of size and length, and by length alone (bytes that hit per bytes taken). No one policy
//! need reach both.
//!
//! Where sizes change, an interval takes the size that its first request says, and gives the size
//! of the last. An object that is larger than the cache has none. 16 B for each hit that is possible
//! and 40 B or so for each object.

use std::collections::HashMap;

use super::super::cache::{ByteCounts, HitCounts, Use};
use super::super::driver::DriverError;
use super::super::index::PageKey;
use super::super::input::Batch;
use super::super::instance::{Instance, InstanceOutcome};
use super::cache::accesses;
use super::policy::SizedSetup;

/// From one request for an object to the next.
#[derive(Clone, Copy, Debug)]
struct Interval {
    /// In requests.
    length: u64,
    /// Bytes that the object takes meanwhile; sizes in traces have 32 bits.
    held: u32,
    /// Bytes that the second request asks for.
    gained: u32,
}

impl Interval {
    fn cost(&self) -> u128 {
        u128::from(self.held) * u128::from(self.length)
    }
}

/// Both bounds at one capacity.
pub(super) struct PfooL {
    setup: SizedSetup,
    /// The last request for each object, and the size that it said.
    last: HashMap<PageKey, (u64, u32)>,
    intervals: Vec<Interval>,
    requests: u64,
    counts: HitCounts,
    bytes: ByteCounts,
}

impl PfooL {
    pub fn new(setup: &SizedSetup) -> Self {
        Self {
            setup: *setup,
            last: HashMap::new(),
            intervals: Vec::new(),
            requests: 0,
            counts: HitCounts::default(),
            bytes: ByteCounts::default(),
        }
    }

    fn take(&mut self, key: PageKey, bytes: u32) {
        let now = self.requests;
        self.requests += 1;
        let counted = now >= self.setup.warmup;
        let last = self.last.insert(key, (now, bytes));
        if !counted {
            return;
        }
        self.counts.references += 1;
        self.bytes.requested += u64::from(bytes);
        self.bytes.too_large += u64::from(u64::from(bytes) > self.setup.capacity);
        if let Some((then, held)) = last.filter(|l| u64::from(l.1) <= self.setup.capacity) {
            self.intervals.push(Interval {
                length: now - then,
                held,
                gained: bytes,
            });
        }
    }

    /// Bytes of the cache times requests between which something can be in it.
    fn room(&self) -> u128 {
        u128::from(self.setup.capacity) * u128::from(self.requests.saturating_sub(1))
    }
}

/// Most hits.
fn most_hits(intervals: &mut [Interval], mut room: u128) -> u64 {
    intervals.sort_unstable_by_key(Interval::cost);
    let fits = |interval: &&Interval| {
        let left = room.checked_sub(interval.cost());
        left.map(|left| room = left).is_some()
    };
    intervals.iter().take_while(fits).count() as u64
}

/// Most bytes that hit. A part of the first interval that does not fit counts too: without it the sum
/// would be no bound.
fn most_bytes(intervals: &mut Vec<Interval>, mut room: u128) -> u64 {
    // Most bytes per cost first. What gives nothing would be equal to all that costs nothing.
    intervals.retain(|interval| interval.gained > 0);
    intervals.sort_unstable_by(|a, b| {
        let (left, right) = (scaled(a.cost(), b.gained), scaled(b.cost(), a.gained));
        left.cmp(&right)
    });
    let mut sum = 0;
    for interval in intervals.iter() {
        let (cost, gain) = (interval.cost(), u64::from(interval.gained));
        let Some(left) = room.checked_sub(cost) else {
            let part = room.saturating_mul(u128::from(gain)) / cost;
            return sum + u64::try_from(part).unwrap_or(gain).min(gain);
        };
        room = left;
        sum += gain;
    }
    sum
}

fn scaled(cost: u128, gain: u32) -> u128 {
    cost.saturating_mul(u128::from(gain))
}

impl Instance for PfooL {
    fn run(&mut self, batch: &Batch, _next_use: &[u64]) -> Result<(), DriverError> {
        for (key, what, bytes) in accesses(batch) {
            match what {
                Use::Delete => {
                    self.last.remove(&key);
                }
                Use::Read | Use::Write => self.take(key, bytes),
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), DriverError> {
        let room = self.room();
        let mut intervals = std::mem::take(&mut self.intervals);
        self.counts.hits = most_hits(&mut intervals, room);
        self.counts.misses = self.counts.references - self.counts.hits;
        self.bytes.missed = self.bytes.requested - most_bytes(&mut intervals, room);
        Ok(())
    }

    fn outcome(&self) -> InstanceOutcome {
        InstanceOutcome {
            counts: self.counts,
            bytes: Some(self.bytes),
            ..InstanceOutcome::default()
        }
    }

    fn validate(&self) -> Result<(), String> {
        match self.counts.hits + self.counts.misses == self.counts.references {
            true => Ok(()),
            false => Err("hits and misses are not all references".to_owned()),
        }
    }
}
