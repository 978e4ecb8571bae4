//! `mfc_access`: the decision for one read (Figure 2 and sections 4.2 to 4.5).

use piebald_units::{CoreId, CoreSet};

use super::{
    Why,
    books::{Make, Placing},
    config::{Competitive, Elsewhere, Here, Uses},
    room::{DomainId, Event, Room, domains},
    sync::{Relaxed, add},
    table::{Claim, Key},
};
use crate::contract::reads::{Load, Read, Reader};

/// A verdict and its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The verdict.
    pub read: Read,
    /// The reason.
    pub why: Why,
}

/// What is read.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// The file, chunk or object, if it can be known.
    pub key: Option<Key>,
    /// Its size.
    pub bytes: u64,
    /// Bytes of the call's buffer that a thread that is moved takes along.
    pub buffer: u64,
}

/// The reader, and the file that it is about to read.
#[derive(Clone, Copy)]
struct Asked {
    core: CoreId,
    /// Cores that are online and allowed.
    cores: u64,
    here: DomainId,
    file: u32,
    bytes: u32,
    /// What it takes along of the call's buffer, in bytes.
    buffer: u32,
}

/// The holder that would serve a read.
#[derive(Clone, Copy)]
struct Holder {
    id: DomainId,
    load: u32,
}

/// The answer in terms of domains.
#[derive(Clone, Copy)]
struct Decision {
    to: DomainId,
    /// The holder that it was copied or brought from.
    from: Option<DomainId>,
    load: Load,
    why: Why,
}

impl Decision {
    const fn caching(to: DomainId, why: Why) -> Self {
        Self {
            to,
            from: None,
            load: Load::Caching,
            why,
        }
    }

    fn copy(to: DomainId, from: Option<Holder>, why: Why) -> Self {
        Self {
            from: from.map(|h| h.id),
            ..Self::caching(to, why)
        }
    }
}

pub(super) const fn stay(core: CoreId, load: Load, why: Why) -> Verdict {
    let read = Read {
        load,
        ..Read::stay(core)
    };
    Verdict { read, why }
}

impl Room<'_> {
    /// The verdict on a read.
    pub fn access(&self, reader: Reader, wanted: Wanted) -> Verdict {
        let verdict = self.decide(reader, wanted);
        self.note(reader.core, Event::Verdict(verdict.why));
        if verdict.read.core != reader.core {
            self.note(reader.core, Event::Moved);
        }
        verdict
    }

    fn decide(&self, reader: Reader, wanted: Wanted) -> Verdict {
        let Wanted { key, bytes, buffer } = wanted;
        let core = reader.core;
        let cores = self.online() & reader.allowed.bits();
        let here = self.domain_of(core);
        let Some(here) = here.filter(|_| CoreSet::one(core).bits() & self.online() != 0) else {
            return stay(core, Load::Caching, Why::Stranger);
        };
        if bytes < self.machine.costs.min_read {
            return stay(core, Load::Caching, Why::Small);
        }
        let Some(short) = u32::try_from(bytes)
            .ok()
            .filter(|_| bytes <= self.machine.largest)
        else {
            return stay(core, Load::NonCaching, Why::TooLarge);
        };
        let claim = key.map_or(Claim::None, |k| self.find_or_claim(k, short));
        let file = match claim {
            Claim::Found(file) => {
                self.note_size(file, short);
                file
            }
            Claim::New(file) => file,
            Claim::None => return self.untracked(core, here, bytes),
        };
        let asked = Asked {
            core,
            cores,
            here,
            file,
            bytes: short,
            buffer: u32::try_from(buffer).unwrap_or(u32::MAX),
        };
        self.verdict(&asked, self.choose(&asked))
    }

    /// A file that MFC has no record for is one of the unpopular ones.
    fn untracked(&self, core: CoreId, here: DomainId, bytes: u64) -> Verdict {
        let load = match self.available(here) > bytes {
            true => Load::Caching,
            false => Load::NonCaching,
        };
        let mut verdict = stay(core, load, Why::Untracked);
        verdict.read.looked_up = true;
        verdict
    }

    fn choose(&self, asked: &Asked) -> Decision {
        let holders = self.file(asked.file).map_or(0, |r| r.holders.load(Relaxed));
        let holder = self.least_busy(asked, holders);
        self.room_here(asked, holders, holder)
            .or_else(|| self.room_elsewhere(asked, holders, holder))
            .unwrap_or_else(|| match holder {
                None => self.nowhere(asked),
                Some(holder) => self.somewhere(asked, holders, holder),
            })
    }

    /// Carries a decision out on the books: the use, the migration and what it costs.
    fn verdict(&self, asked: &Asked, decision: Decision) -> Verdict {
        let Some(core) = self.target(asked, decision.to) else {
            return stay(asked.core, Load::Caching, Why::Stranger);
        };
        if decision.why.places_anew() {
            self.paid(asked.file, |paid| paid.store(0, Relaxed));
        }
        if self.machine.config.uses == Uses::Follow {
            self.follow(asked.file, &decision);
        }
        if let Some(cell) = self.cell(decision.to, asked.file) {
            add(&cell.used, 1);
        }
        if decision.to != asked.here {
            self.pay(asked, decision.to);
        }
        Verdict {
            read: Read {
                core,
                load: decision.load,
                until: u64::MAX,
                placed: decision.why.places(),
                looked_up: true,
            },
            why: decision.why,
        }
    }

    /// Uses follow a file that comes to a domain: see [`Uses::Follow`].
    fn follow(&self, file: u32, decision: &Decision) {
        let to = decision.to;
        match (decision.why, decision.from) {
            (Why::RoomHere | Why::RoomElsewhere | Why::Replaced, _) => {
                let holders = self.file(file).map_or(0, |r| r.holders.load(Relaxed));
                let others = self.machine.domains & !holders & !to.bit();
                domains(others).for_each(|from| self.carry(file, from, to, 0));
            }
            (Why::Brought, Some(from)) => self.carry(file, from, to, 0),
            (Why::CopiedToRoom | Why::Copied, Some(from)) => self.carry(file, from, to, 1),
            _ => {}
        }
    }

    /// Takes uses of a file from one domain to another: all that are left after a shift.
    fn carry(&self, file: u32, from: DomainId, to: DomainId, shift: u32) {
        let (Some(giver), Some(taker)) = (self.cell(from, file), self.cell(to, file)) else {
            return;
        };
        let seen = giver.used.load(Relaxed);
        let taken = seen.checked_shr(shift).unwrap_or(0);
        let left = seen.saturating_sub(taken);
        if taken == 0 {
            return;
        }
        // A use that is counted in this moment keeps them where they are.
        let given = giver.used.compare_exchange(seen, left, Relaxed, Relaxed);
        if given.is_ok() {
            add(&taker.used, taken);
            self.lower_bound(from, file, left);
        }
    }

    fn paid(&self, file: u32, work: impl FnOnce(&super::sync::AtomicU32)) {
        if let Some(record) = self.file(file) {
            work(&record.paid_ns);
        }
    }

    fn pay(&self, asked: &Asked, to: DomainId) {
        let hops = self.hops(asked.here, to);
        let cost = self.machine.costs.move_ns(hops, asked.buffer);
        self.paid(asked.file, |paid| {
            add(paid, cost);
        });
        if let Some(cell) = self.cell(asked.here, asked.file) {
            add(&cell.moved, 1);
        }
    }

    /// Cores of a domain that the reader could be moved to.
    fn open(&self, asked: &Asked, to: DomainId) -> CoreSet {
        let cores = self.facts(to).map_or(0, |f| f.cores);
        CoreSet::from_bits(cores & asked.cores)
    }

    /// Could and should the reader go there: is a core open to it, and does loading the
    /// file from memory cost more than going there? Where it is, it may stay even if
    /// that core is not among those that it may go to.
    fn in_reach(&self, asked: &Asked, to: DomainId) -> bool {
        if to == asked.here {
            return true;
        }
        let hops = self.hops(asked.here, to);
        let costs = &self.machine.costs;
        costs.pays(asked.bytes.into(), hops, asked.buffer) && !self.open(asked, to).is_empty()
    }

    fn reach(&self, asked: &Asked) -> u64 {
        let all = domains(self.machine.domains);
        all.filter(|d| self.in_reach(asked, *d))
            .fold(0, |set, d| set | d.bit())
    }

    fn target(&self, asked: &Asked, to: DomainId) -> Option<CoreId> {
        match to == asked.here {
            true => Some(asked.core),
            false => self.least_loaded(self.open(asked, to)),
        }
    }

    /// `runqueue_len`: threads beside the reader.
    fn load(&self, asked: &Asked, of: DomainId) -> u32 {
        if of == asked.here {
            return self.runnable(asked.core).saturating_sub(1);
        }
        let core = self.least_loaded(self.open(asked, of));
        core.map_or(u32::MAX, |c| self.runnable(c))
    }

    /// `core_with_min_runqueue_len(f.cores)`; of equals the reader's own, then the
    /// nearest.
    fn least_busy(&self, asked: &Asked, holders: u64) -> Option<Holder> {
        domains(holders)
            .filter(|d| self.in_reach(asked, *d))
            .map(|id| Holder {
                id,
                load: self.load(asked, id),
            })
            .min_by_key(|h| (h.load, h.id != asked.here, self.hops(asked.here, h.id)))
    }

    fn is_busy(&self, load: u32) -> bool {
        load > self.machine.config.busy
    }

    fn place(&self, asked: &Asked, on: DomainId, make: Make) -> bool {
        let placing = Placing {
            file: asked.file,
            bytes: asked.bytes,
            core: asked.core,
        };
        self.place_on(on, placing, make)
    }

    /// Lines 6 to 10, and the condition that only the text has.
    fn room_here(&self, asked: &Asked, holders: u64, holder: Option<Holder>) -> Option<Decision> {
        if self.available(asked.here) <= asked.bytes.into() {
            return None;
        }
        if holders & asked.here.bit() != 0 {
            return Some(Decision::caching(asked.here, Why::Held));
        }
        let why = match holder {
            None => Why::RoomHere,
            Some(holder) if self.may_copy() && self.wants_copy(asked, holder) => Why::CopiedToRoom,
            Some(_) => return None,
        };
        let placed = self.place(asked, asked.here, Make::Nothing);
        placed.then_some(Decision::copy(asked.here, holder, why))
    }

    fn wants_copy(&self, asked: &Asked, holder: Holder) -> bool {
        let often = match self.machine.config.here {
            Here::Always => return true,
            Here::Frequent(often) => often,
        };
        let moved = self.cell(asked.here, asked.file);
        let moved = moved.map_or(0, |c| c.moved.load(Relaxed));
        moved >= often || self.is_busy(holder.load) && !self.is_busy(self.load(asked, asked.here))
    }

    /// Lines 12 to 16.
    fn room_elsewhere(
        &self,
        asked: &Asked,
        holders: u64,
        holder: Option<Holder>,
    ) -> Option<Decision> {
        let is_copy = holder.is_some();
        let open = match (holder, self.machine.config.elsewhere) {
            (None, _) => self.reach(asked),
            (Some(_), _) if !self.may_copy() => return None,
            (Some(_), Elsewhere::Always) => self.reach(asked),
            (Some(holder), Elsewhere::WhenBusy) if self.is_busy(holder.load) => {
                self.not_busy(asked, self.reach(asked) & !holders)
            }
            (Some(_), Elsewhere::WhenBusy) => return None,
        };
        let most = domains(open).max_by_key(|d| {
            let near = core::cmp::Reverse(self.hops(asked.here, *d));
            // Of equals the lowest.
            (self.available(*d), near, core::cmp::Reverse(*d))
        })?;
        if self.available(most) <= asked.bytes.into() {
            return None;
        }
        if holders & most.bit() != 0 {
            return Some(Decision::caching(most, Why::Held));
        }
        let why = match is_copy {
            true => Why::CopiedToRoom,
            false => Why::RoomElsewhere,
        };
        let placed = self.place(asked, most, Make::Nothing);
        placed.then_some(Decision::copy(most, holder, why))
    }

    fn not_busy(&self, asked: &Asked, set: u64) -> u64 {
        domains(set)
            .filter(|d| !self.is_busy(self.load(asked, *d)))
            .fold(0, |set, d| set | d.bit())
    }

    /// Lines 18 to 29: no core that the reader can reach has the file.
    fn nowhere(&self, asked: &Asked) -> Decision {
        let than = self.used_everywhere(asked.file);
        match self.replace_least(asked, than) {
            Some(on) => Decision::caching(on, Why::Replaced),
            None => Decision {
                load: Load::NonCaching,
                ..Decision::caching(asked.here, Why::Unpopular)
            },
        }
    }

    /// `lookup_lfu_file()` and what follows: the domain with the least popular file makes
    /// room, if that is less popular than the file. If all that may go there is not
    /// enough, the next one.
    ///
    /// The bounds of the domains are never above the truth, so the least of them is the
    /// answer once it has been looked at; each turn looks at one.
    fn replace_least(&self, asked: &Asked, than: u64) -> Option<DomainId> {
        let mut open = self.reach(asked);
        let turns = open.count_ones().saturating_mul(2);
        for _ in 0..turns {
            let id = self.least_bound(asked, open, than)?;
            let looked = self.locked(id, |held| held.least());
            let is_least = looked.is_some() && self.least_bound(asked, open, than) == Some(id);
            match looked {
                Some(_) if !is_least => continue,
                Some(_) => {
                    if self.place(asked, id, Make::Less { than, factor: 1 }) {
                        return Some(id);
                    }
                }
                None => self.note(asked.core, Event::Contended),
            }
            open &= !id.bit();
        }
        None
    }

    /// The domain with the lowest bound below a number of uses; of equals the nearest.
    fn least_bound(&self, asked: &Asked, open: u64, than: u64) -> Option<DomainId> {
        let bound = |d: DomainId| self.books(d).map_or(u32::MAX, |b| b.least.load(Relaxed));
        domains(open)
            .map(|d| (bound(d), self.hops(asked.here, d), d))
            .min()
            .filter(|(bound, _, _)| u64::from(*bound) < than)
            .map(|(_, _, d)| d)
    }

    /// Lines 31 to 43: the reader goes to the file, or the file to the reader. If its core
    /// has the file and another holder less to do, it goes for that: no rule applies that
    /// would bring the file.
    fn somewhere(&self, asked: &Asked, holders: u64, holder: Holder) -> Decision {
        if holders & asked.here.bit() != 0 {
            return Decision::caching(holder.id, Why::Held);
        }
        if self.may_copy() && self.copied(asked, holder) {
            return Decision::copy(asked.here, Some(holder), Why::Copied);
        }
        if self.may_copy() && self.has_paid(asked, holder) && self.brought(asked, holder) {
            return Decision::copy(asked.here, Some(holder), Why::Brought);
        }
        Decision::caching(holder.id, Why::Held)
    }

    /// Lines 32 to 40: a copy displaces a file that is much less popular.
    fn copied(&self, asked: &Asked, holder: Holder) -> bool {
        let is_idle = self.load(asked, asked.here) < self.machine.config.idle;
        if !self.is_busy(holder.load) || !is_idle {
            return false;
        }
        let than = u64::from(self.used(holder.id, asked.file));
        let factor = self.machine.config.lfu_factor;
        self.place(asked, asked.here, Make::Less { than, factor })
    }

    /// The competitive rule: have the migrations cost more than loading the file would?
    fn has_paid(&self, asked: &Asked, holder: Holder) -> bool {
        let record = self.file(asked.file);
        let paid = match self.machine.config.competitive {
            Competitive::Off => return false,
            Competitive::PerFile => record.map_or(0, |r| r.paid_ns.load(Relaxed)).into(),
            Competitive::PerCore => {
                let moved = self.cell(asked.here, asked.file);
                let moved = moved.map_or(0, |c| c.moved.load(Relaxed));
                let hops = self.hops(asked.here, holder.id);
                let each = self.machine.costs.move_ns(hops, asked.buffer);
                u64::from(moved).saturating_mul(each.into())
            }
        };
        paid > self.machine.costs.load_ns(asked.bytes.into())
    }

    /// "MFC stops migrating and loads the file from off-chip memory" (section 4.5): the
    /// file moves to the reader's core, if there are files there that are less popular.
    fn brought(&self, asked: &Asked, holder: Holder) -> bool {
        let than = self.used_everywhere(asked.file);
        let is_placed = self.place(asked, asked.here, Make::Nothing)
            || self.place(asked, asked.here, Make::Less { than, factor: 1 });
        if is_placed {
            self.remove(holder.id, asked.file);
            self.paid(asked.file, |paid| paid.store(0, Relaxed));
            if let Some(cell) = self.cell(asked.here, asked.file) {
                cell.moved.store(0, Relaxed);
            }
        }
        is_placed
    }
}
