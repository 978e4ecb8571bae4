//! What all parts of this room look at: the machine, and the lent memory by number.

use piebald_units::{CoreId, CoreSet};

use super::{
    config::{Config, Costs},
    store::{Books, Cell, CoreState, DomainState, Entry, Facts, FileRecord, NONE, Parts},
    sync::{AtomicU32, AtomicU64, Relaxed, count},
};

/// A domain: its position in the topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainId(pub u8);

impl DomainId {
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }

    /// As a bit in a set of domains; none from 64 on.
    pub(super) const fn bit(self) -> u64 {
        match 1u64.checked_shl(self.0 as u32) {
            Some(bit) => bit,
            None => 0,
        }
    }
}

/// The domains of a set, in rising order.
pub(super) fn domains(set: u64) -> impl Iterator<Item = DomainId> {
    let mut left = set;
    core::iter::from_fn(move || {
        let next = left.trailing_zeros();
        left &= left.wrapping_sub(1);
        (next < u64::BITS).then_some(DomainId(next as u8))
    })
}

/// What happened, for statistics: the reasons for verdicts, then the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Verdict(super::Why),
    Moved,
    Astray,
    Evicted,
    Contended,
}

impl Event {
    pub const fn index(self) -> usize {
        match self {
            Self::Verdict(why) => why as usize,
            Self::Moved => super::Why::NR,
            Self::Astray => super::Why::NR + 1,
            Self::Evicted => super::Why::NR + 2,
            Self::Contended => super::Why::NR + 3,
        }
    }
}

/// The machine, the parameters, and what can be switched.
#[derive(Debug)]
pub(super) struct Machine {
    pub config: Config,
    pub costs: Costs,
    /// The largest file that is not cut.
    pub whole_up_to: u64,
    /// The largest capacity of a domain.
    pub largest: u64,
    pub nodes: u8,
    /// Records of files.
    pub files: u32,
    /// Sets of records.
    pub sets: u32,
    /// Entries of a domain.
    pub per_domain: u32,
    /// All domains, as a bitmap.
    pub domains: u64,
    /// Cores that are online, as a bitmap.
    pub online: AtomicU64,
    pub switches: AtomicU32,
}

/// The machine and the memory, for the time of a call.
#[derive(Clone, Copy)]
pub(super) struct Room<'a> {
    pub machine: &'a Machine,
    pub parts: Parts<'a>,
}

impl<'a> Room<'a> {
    pub fn domain(&self, domain: DomainId) -> Option<&'a DomainState> {
        self.parts.domains.get(domain.index())
    }

    pub fn facts(&self, domain: DomainId) -> Option<&'a Facts> {
        self.domain(domain).map(|d| &d.facts)
    }

    pub fn books(&self, domain: DomainId) -> Option<&'a Books> {
        self.domain(domain).map(|d| &d.books)
    }

    pub fn core(&self, core: CoreId) -> Option<&'a CoreState> {
        self.parts.cores.get(usize::from(core.0))
    }

    pub fn file(&self, file: u32) -> Option<&'a FileRecord> {
        self.parts.files.get(file as usize)
    }

    pub fn cell(&self, domain: DomainId, file: u32) -> Option<&'a Cell> {
        let row = domain.index().checked_mul(self.machine.files as usize)?;
        self.parts.cells.get(row.checked_add(file as usize)?)
    }

    /// `f.use[c]`.
    pub fn used(&self, domain: DomainId, file: u32) -> u32 {
        let cell = self.cell(domain, file);
        cell.map_or(0, |c| c.used.load(Relaxed))
    }

    /// The sum of `f.use[]`.
    pub fn used_everywhere(&self, file: u32) -> u64 {
        domains(self.machine.domains).fold(0u64, |sum, d| {
            sum.saturating_add(u64::from(self.used(d, file)))
        })
    }

    /// The places for files on a domain, used and not.
    pub fn entries(&self, domain: DomainId) -> &'a [Entry] {
        let each = self.machine.per_domain as usize;
        let start = domain.index().saturating_mul(each);
        let end = start.saturating_add(each);
        self.parts.entries.get(start..end).unwrap_or(&[])
    }

    pub fn domain_of(&self, core: CoreId) -> Option<DomainId> {
        let domain = self.core(core)?.domain;
        (domain != NONE).then_some(DomainId(domain))
    }

    pub fn online(&self) -> u64 {
        self.machine.online.load(Relaxed)
    }

    /// Threads that run or want to on a core.
    pub fn runnable(&self, core: CoreId) -> u32 {
        self.core(core).map_or(0, |c| c.runnable.load(Relaxed))
    }

    /// The core of a set with the fewest runnable threads; the lowest of equals.
    pub fn least_loaded(&self, cores: CoreSet) -> Option<CoreId> {
        domains(cores.bits())
            .map(|d| CoreId(u16::from(d.0)))
            .min_by_key(|c| self.runnable(*c))
    }

    pub fn hops(&self, from: DomainId, to: DomainId) -> u8 {
        let node = |d| self.facts(d).map(|f| usize::from(f.node));
        let (Some(from), Some(to)) = (node(from), node(to)) else {
            return u8::MAX;
        };
        let nodes = usize::from(self.machine.nodes);
        let at = from.saturating_mul(nodes).saturating_add(to);
        self.parts.hops.get(at).copied().unwrap_or(u8::MAX)
    }

    pub fn note(&self, core: CoreId, event: Event) {
        let counter = self.core(core).and_then(|c| c.events.get(event.index()));
        if let Some(counter) = counter {
            count(counter);
        }
    }
}
