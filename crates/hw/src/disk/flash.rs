//! Flash as a network of queues: controller, units, link.
//!
//! A command passes the controller in order of arrival, its pages their units
//! (page p lies on unit p mod n), and all of it the link. Each station serves
//! one after the other; what is fixed in the latency delays nobody else. With
//! one command outstanding a request of one page takes
//! `command + fixed + unit + link`; the highest rate is that of the slowest
//! station.

use piebald_units::{
    Picos,
    block::{BlockDir, BlockReq},
};

use super::spec::{FlashDirection, FlashSpec};
use super::timing::{DiskCounters, Timing};

/// Bytes of a sector.
const SECTOR: u64 = 512;

/// A flash disk.
#[derive(Clone, Debug)]
pub struct Flash {
    spec: FlashSpec,
    /// When the controller is free.
    controller: Picos,
    /// When each unit is free.
    units: Vec<Picos>,
    /// When the link is free.
    link: Picos,
    pub(super) counters: DiskCounters,
}

impl Flash {
    /// Builds it, idle.
    pub fn new(spec: FlashSpec) -> Self {
        Self {
            spec,
            controller: Picos(0),
            units: vec![Picos(0); spec.units as usize],
            link: Picos(0),
            counters: DiskCounters::default(),
        }
    }

    fn direction(&self, dir: BlockDir) -> &FlashDirection {
        match dir {
            BlockDir::Read => &self.spec.read,
            BlockDir::Write => &self.spec.write,
        }
    }

    /// Serves one command; commands come in rising time and may overlap.
    pub fn service(&mut self, req: BlockReq, now: Picos) -> Timing {
        let d = *self.direction(req.dir);
        let begin = now.max(self.controller);
        self.controller = begin + d.command;
        let issued = self.controller + d.fixed;
        let ready = match d.unit.0 {
            0 => issued,
            unit => self.pages(req, issued, Picos(unit)),
        };
        let passing = link_time(d.bytes_per_second, u64::from(req.sectors));
        // Data streams: the link may start once the first page is there, and
        // must have passed all of it after the last.
        let page = link_time(d.bytes_per_second, self.page_of(req));
        let streamed = self.link.max(issued + d.unit) + passing;
        let done = streamed.max(ready + page);
        self.link = streamed.max(self.link);
        let timing = Timing {
            start: now,
            done,
            overhead: d.command + d.fixed,
            wait: begin.since(now),
            ..Timing::default()
        }
        .closed();
        self.counters.add(req.dir, req.sectors, &timing);
        timing
    }

    fn page_of(&self, req: BlockReq) -> u64 {
        u64::from(req.sectors.min(self.spec.page_sectors))
    }

    /// Reads the pages of a request; when the last is there.
    fn pages(&mut self, req: BlockReq, at: Picos, unit: Picos) -> Picos {
        let size = u64::from(self.spec.page_sectors);
        let first = req.lba.0 / size;
        let last = (req.lba.0 + u64::from(req.sectors) - 1) / size;
        let count = self.units.len() as u64;
        let mut ready = at;
        // More pages than units: every unit takes its share.
        for page in first..=last.min(first + count - 1) {
            let rounds = (last - page) / count + 1;
            let free = &mut self.units[(page % count) as usize];
            *free = at.max(*free) + Picos(unit.0.saturating_mul(rounds));
            ready = ready.max(*free);
        }
        ready
    }

    /// Mean time to fetch a run of so many sectors with nothing else going on.
    pub fn read_cost(&self, sectors: u64) -> Picos {
        let d = &self.spec.read;
        let passing = link_time(d.bytes_per_second, sectors);
        let rounds = sectors
            .div_ceil(u64::from(self.spec.page_sectors))
            .div_ceil(self.units.len() as u64);
        let page = sectors.min(u64::from(self.spec.page_sectors));
        let units = Picos(d.unit.0.saturating_mul(rounds));
        let last = units + link_time(d.bytes_per_second, page);
        d.command + d.fixed + last.max(d.unit + passing)
    }
}

fn link_time(bytes_per_second: u64, sectors: u64) -> Picos {
    let ps =
        u128::from(sectors) * u128::from(SECTOR) * 1_000_000_000_000 / u128::from(bytes_per_second);
    Picos(u64::try_from(ps).unwrap_or(u64::MAX))
}
