//! The disk of averages: every access that does not continue the last one costs
//! the same.
//!
//! It is the disk of DULO's Table 1: 9.5 ms per random access, nothing for
//! successors.

use piebald_units::{
    Picos,
    block::{BlockDir, BlockReq},
};

use super::spec::AverageSpec;
use super::timing::{DiskCounters, Hit, Timing};

/// A disk of averages.
#[derive(Clone, Debug)]
pub struct Average {
    spec: AverageSpec,
    /// The block behind the last access, of either direction.
    next: Option<u64>,
    pub(super) counters: DiskCounters,
}

impl Average {
    /// Builds it; the first access continues nothing.
    pub fn new(spec: AverageSpec) -> Self {
        Self {
            spec,
            next: None,
            counters: DiskCounters::default(),
        }
    }

    /// What an access costs before its first sector.
    pub fn positioning(&self, req: BlockReq) -> Picos {
        match self.next == Some(req.lba.0) {
            true => Picos(0),
            false => self.spec.access,
        }
    }

    /// Mean time to fetch a run of so many sectors.
    pub fn read_cost(&self, sectors: u64) -> Picos {
        self.spec.access + Picos(self.spec.sector.0.saturating_mul(sectors))
    }

    /// Serves one command; commands come one after the other. The mean access is
    /// reported as seek.
    pub fn service(&mut self, req: BlockReq, now: Picos) -> Timing {
        let seek = self.positioning(req);
        let sectors = u64::from(req.sectors);
        let transfer = Picos(self.spec.sector.0.saturating_mul(sectors));
        self.next = Some(req.lba.0 + sectors);
        let timing = Timing {
            start: now,
            done: now + seek + transfer,
            seek,
            hit: match (req.dir, seek.0) {
                (BlockDir::Read, 0) => Hit::Full,
                _ => Hit::Miss,
            },
            ..Timing::default()
        }
        .closed();
        self.counters.add(req.dir, req.sectors, &timing);
        timing
    }
}
