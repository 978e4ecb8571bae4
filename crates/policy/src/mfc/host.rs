//! What a host tells MFC beside the reads: the load of cores, cache misses, cores and
//! files that come and go, switches; and what it can ask.

use piebald_units::{Bytes, CoreId, CoreSet, FileId, Picos};

use super::{
    Mfc, Why,
    books::EMPTY,
    room::{DomainId, Event, Room, domains},
    store::Store,
    sync::Relaxed,
    table::Key,
    topology::MAX_LEVELS,
};
use crate::contract::reads::ObjectId;

/// Cache misses of a core during a scheduling quantum, by level: those of
/// [`Domain::own`](super::Domain::own) in order, then the shared one. Misses on lines
/// that another core has modified are left out (section 5).
pub type Misses = [u32; MAX_LEVELS];

/// What happens to a read of the second of two files (section 6.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Second {
    /// It is treated as every other.
    #[default]
    Place,
    /// It stays where the reader is, and the file's uses are not counted.
    Ignore,
}

/// What can be switched while MFC runs (the paper's `/proc` and debug interface).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Switches {
    /// All of it. While it is off, reads stay where they are; counted
    /// is only that they did ([`Why::Off`]).
    pub on: bool,
    /// Files may be on several cores, and come to their readers. Off: "each file has a
    /// dedicated core, and threads always migrate to that core to read it" (section
    /// 6.6.2); copies that exist stay until they are displaced.
    pub copies: bool,
    /// See [`Second`].
    pub second: Second,
}

impl Switches {
    /// As the paper's MFC runs.
    pub const ALL: Self = Self {
        on: true,
        copies: true,
        second: Second::Place,
    };

    pub(super) const fn packed(self) -> u32 {
        let ignores = matches!(self.second, Second::Ignore);
        self.on as u32 | (self.copies as u32) << 1 | (ignores as u32) << 2
    }

    const fn unpacked(bits: u32) -> Self {
        Self {
            on: bits & 1 != 0,
            copies: bits & 2 != 0,
            second: match bits & 4 {
                0 => Second::Place,
                _ => Second::Ignore,
            },
        }
    }
}

impl Default for Switches {
    fn default() -> Self {
        Self::ALL
    }
}

/// What MFC did, summed over the cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    verdicts: [u64; Why::NR],
    /// Verdicts that move the reader to another core.
    pub moved: u64,
    /// Reads that were not done on a core of the domain that the verdict said.
    pub astray: u64,
    /// Files that were given up on a domain for a more popular one.
    pub evicted: u64,
    /// Files that were not placed because another thread was changing the domain.
    pub contended: u64,
}

impl Counters {
    /// Verdicts for this reason.
    pub fn verdicts(&self, why: Why) -> u64 {
        self.verdicts.get(why as usize).copied().unwrap_or(0)
    }

    /// All verdicts.
    pub fn reads(&self) -> u64 {
        self.verdicts.iter().fold(0, |a, b| a.wrapping_add(*b))
    }
}

impl<S: Store> Mfc<S> {
    /// A core's run queue has so many threads now, running ones included. To be called
    /// when it changes; a number that is late makes a decision worse and breaks nothing.
    pub fn set_runnable(&self, core: CoreId, threads: u32) {
        if let Some(core) = self.room().core(core) {
            core.runnable.store(threads, Relaxed);
        }
    }

    /// A scheduling quantum of a core ended (section 4.6). A host without counters never
    /// calls this; MFC then knows of files alone.
    pub fn quantum(&self, core: CoreId, misses: &Misses) {
        let room = self.room();
        if let Some(core) = room.core(core) {
            for (to, from) in core.misses.iter().zip(misses) {
                to.store(*from, Relaxed);
            }
        }
        if let Some(domain) = room.domain_of(core) {
            room.recount_others(domain);
        }
    }

    /// For a periodic timer of each core: halves uses when it is time, a bounded number
    /// at once. True if there is more to do now. Every [`after`] does the same, so a host
    /// needs this only for cores that do not read.
    ///
    /// [`after`]: crate::contract::reads::ReadPlacement::after
    pub fn tick(&self, core: CoreId, now: Picos) -> bool {
        self.room().tick(core, now)
    }

    /// A core came or went. When the last core of a domain goes, what its cache held is
    /// gone. Cores that the topology does not have are ignored.
    pub fn set_online(&self, core: CoreId, online: bool) {
        let room = self.room();
        let (bit, Some(domain)) = (CoreSet::one(core).bits(), room.domain_of(core)) else {
            return;
        };
        if online {
            self.machine.online.fetch_or(bit, Relaxed);
            return;
        }
        let left = self.machine.online.fetch_and(!bit, Relaxed) & !bit;
        if let Some(core) = room.core(core) {
            core.misses.iter().for_each(|m| m.store(0, Relaxed));
            core.runnable.store(0, Relaxed);
        }
        room.recount_others(domain);
        if room.facts(domain).is_some_and(|f| f.cores & left == 0) {
            room.settle(domain, EMPTY);
        }
    }

    /// A file is gone. `size` is the largest that it had since it was read first. False
    /// if another thread was changing the table, and a part is still known; it does no
    /// harm, and the host may ask again.
    pub fn forget(&self, file: FileId, size: Bytes) -> bool {
        self.forget_from(file, Bytes(0), size)
    }

    /// A file grew or shrank. What it no longer has, and what is divided otherwise now,
    /// is forgotten. MFC sees a new size at the next read in any case; this is for hosts
    /// that want the room at once. False as for [`forget`](Self::forget).
    pub fn resize(&self, file: FileId, old: Bytes, new: Bytes) -> bool {
        let whole = self.machine.whole_up_to;
        match (old.0 > whole, new.0 > whole) {
            (false, false) => {
                self.resize_whole(file, new);
                true
            }
            (true, true) => self.forget_from(file, new, old),
            _ => self.forget_from(file, Bytes(0), old),
        }
    }

    fn resize_whole(&self, file: FileId, new: Bytes) {
        let room = self.room();
        let bytes = u32::try_from(new.0).unwrap_or(u32::MAX);
        if let Some(record) = room.find(Key::whole(file.0)) {
            room.note_size(record, bytes);
        }
    }

    /// An object is gone. False as for [`forget`](Self::forget).
    pub fn forget_object(&self, object: ObjectId) -> bool {
        self.room().forget_part(Key::object(object.0))
    }

    /// Forgets the parts of a file that begin at an offset or later.
    fn forget_from(&self, file: FileId, from: Bytes, size: Bytes) -> bool {
        let room = self.room();
        let chunk = self.machine.config.chunk.0;
        let number = |bytes: Bytes| bytes.0.checked_div(chunk).unwrap_or(0);
        let is_all = from.0 == 0;
        let mut done = !is_all || room.forget_part(Key::whole(file.0));
        if size.0 <= self.machine.whole_up_to {
            return done;
        }
        let chunks = number(from)..=number(size);
        if number(size) >= u64::from(self.machine.files) && is_all {
            return room.forget_all(file.0) && done;
        }
        for n in chunks.take(self.machine.files as usize) {
            done &= Key::chunk(file.0, n).is_none_or(|k| room.forget_part(k));
        }
        done
    }

    /// The switches.
    pub fn switches(&self) -> Switches {
        Switches::unpacked(self.machine.switches.load(Relaxed))
    }

    /// Sets the switches.
    pub fn set_switches(&self, switches: Switches) {
        self.machine.switches.store(switches.packed(), Relaxed);
    }

    /// What MFC did.
    pub fn counters(&self) -> Counters {
        let room = self.room();
        let sum = |event: Event| {
            let cores = room.parts.cores.iter();
            let counts = cores.filter_map(|c| c.events.get(event.index()));
            counts.fold(0u64, |sum, c| sum.wrapping_add(c.load(Relaxed)))
        };
        let mut counters = Counters {
            moved: sum(Event::Moved),
            astray: sum(Event::Astray),
            evicted: sum(Event::Evicted),
            contended: sum(Event::Contended),
            ..Counters::default()
        };
        for why in Why::ALL {
            if let Some(slot) = counters.verdicts.get_mut(why as usize) {
                *slot = sum(Event::Verdict(why));
            }
        }
        counters
    }
}

impl Room<'_> {
    pub fn switches(&self) -> Switches {
        Switches::unpacked(self.machine.switches.load(Relaxed))
    }

    /// May a file be on several cores?
    pub fn may_copy(&self) -> bool {
        self.switches().copies
    }

    /// `M_use` (equation 1), of all cores of a domain together.
    fn recount_others(&self, domain: DomainId) {
        let Some(state) = self.domain(domain) else {
            return;
        };
        let mut others = 0u64;
        for (at, level) in state.facts.levels.iter().enumerate() {
            let misses = domains(state.facts.cores).fold(0u64, |sum, core| {
                let core = self.core(CoreId(u16::from(core.0)));
                let misses = core.and_then(|c| c.misses.get(at));
                sum.saturating_add(misses.map_or(0, |m| m.load(Relaxed)).into())
            });
            if level.size.0 > 0 && misses >= u64::from(level.lines) {
                others = others.saturating_add(level.size.0);
            }
        }
        state.books.others.store(others, Relaxed);
    }

    /// Forgets a part of a file; false if another thread is changing its set.
    fn forget_part(&self, key: Key) -> bool {
        match self.free(key) {
            Ok(Some(file)) => {
                self.tell_holders(file);
                true
            }
            Ok(None) => true,
            Err(()) => false,
        }
    }

    /// Forgets a file of more chunks than there are records.
    fn forget_all(&self, file: u64) -> bool {
        let keys = (0..self.machine.files).filter_map(|f| self.key_of(f));
        let parts = keys.filter(|k| k.is_part_of(file));
        parts.filter(|k| !self.forget_part(*k)).count() == 0
    }
}
