//! A cache of objects: hits, misses and bytes of one policy at one capacity.

use super::super::cache::{ByteCounts, HitCounts, Use};
use super::super::driver::DriverError;
use super::super::index::PageKey;
use super::super::input::Batch;
use super::super::instance::{Instance, InstanceOutcome};
use super::super::parts::{Part, Parts};
use super::policy::{Access, Outcome, SizedPolicy, SizedSetup, request};

/// The requests of a batch. A call for an object is one reference; one without a size counts
/// no byte.
pub(super) fn accesses(batch: &Batch) -> impl Iterator<Item = (PageKey, Use, u32)> {
    let pairs = batch.calls.iter().zip(&batch.references);
    pairs.map(|(call, reference)| (reference.key, reference.what, call.bytes.unwrap_or(0)))
}

/// A policy at work.
struct SizedCache<P> {
    policy: P,
    counts: HitCounts,
    bytes: ByteCounts,
    parts: Parts,
    warmup: u64,
    /// Requests so far, counted or not.
    clock: u64,
}

/// A policy as an instance of a replay.
pub(super) fn instance<P: SizedPolicy + 'static>(
    policy: P,
    setup: &SizedSetup,
) -> Box<dyn Instance> {
    Box::new(SizedCache {
        policy,
        counts: HitCounts::default(),
        bytes: ByteCounts::default(),
        parts: Parts::default(),
        warmup: setup.warmup,
        clock: 0,
    })
}

impl<P: SizedPolicy> SizedCache<P> {
    fn ask(&mut self, key: PageKey, bytes: u32, next_use: Option<u64>) {
        let access = Access {
            key,
            bytes: bytes.into(),
            now: self.clock,
            next_use,
        };
        let counted = self.clock >= self.warmup;
        self.clock += 1;
        let outcome = request(&mut self.policy, &access);
        if !counted {
            return;
        }
        self.counts.references += 1;
        self.bytes.requested += access.bytes;
        match outcome {
            Outcome::Hit => self.counts.hits += 1,
            Outcome::Miss | Outcome::TooLarge => {
                self.counts.misses += 1;
                self.bytes.missed += access.bytes;
                self.bytes.too_large += u64::from(outcome == Outcome::TooLarge);
            }
        }
        if self.parts.is_due(self.counts.references) {
            self.parts.end(self.totals());
        }
    }

    fn totals(&self) -> Part {
        Part {
            length: self.counts.references,
            misses: self.counts.misses,
            bytes_missed: self.bytes.missed,
            ..Part::default()
        }
    }
}

impl<P: SizedPolicy> Instance for SizedCache<P> {
    fn run(&mut self, batch: &Batch, next_use: &[u64]) -> Result<(), DriverError> {
        for (nth, (key, what, bytes)) in accesses(batch).enumerate() {
            let next_use = next_use.get(nth).copied().filter(|&next| next != u64::MAX);
            match what {
                Use::Delete => self.policy.remove(key),
                Use::Read | Use::Write => self.ask(key, bytes, next_use),
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), DriverError> {
        Ok(())
    }

    fn outcome(&self) -> InstanceOutcome {
        InstanceOutcome {
            counts: self.counts,
            bytes: Some(self.bytes),
            parts: self.parts.up_to(self.totals()),
            ..InstanceOutcome::default()
        }
    }

    fn validate(&self) -> Result<(), String> {
        let (occupied, capacity) = (self.policy.occupied(), self.policy.capacity());
        if occupied > capacity {
            return Err(format!("{occupied} B in a cache of {capacity} B"));
        }
        self.policy.validate()
    }
}
