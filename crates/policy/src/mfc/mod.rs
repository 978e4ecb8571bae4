//! MFC: which core performs a read, and whether the copy may stay in its cache.
//!
//! Source: S. Boyd-Wickizer, M. F. Kaashoek, R. Morris, N. Zeldovich, "A Software
//! Approach to Unifying Multicore Caches", 2011: software cache unification (SCU), and
//! MFC, the multicore-aware file cache that applies it to files.
//!
//! The idea: a thread that reads everything on one core fills and refills that core's
//! cache, while those of the others lie idle or hold the same data. MFC moves the
//! *thread* to the core whose cache holds the file, or should; the copy to the program's
//! buffer fills that cache, and the thread goes on there. So a file is on one core, all
//! caches together are one, and what does not fit is read past them with non-caching
//! loads.
//!
//! Vocabulary: a *domain* is what the paper calls a core: the cores that share what
//! counts as one cache ([`Topology`]). `f.cores` are the *holders* of a file, `f.use[c]`
//! its *uses* on a domain. A file is *small* if loading it costs less than moving a
//! thread. It is *placed* when MFC begins to believe that a domain holds it. MFC sees no
//! cache; all of this is belief, and hardware may have done otherwise.
//!
//! # A read, by the lines of Figure 2
//!
//! 1. (3, 4) A small file is read where the thread is.
//! 2. (6-10) There is room on the thread's core: the file is placed there. If another
//!    core holds it, only a *frequent user* gets a copy ([`Here`]).
//! 3. (12-16) There is room on another core: the file is placed on the one with most,
//!    and the thread goes there. If a core holds it, only when that is busy
//!    ([`Elsewhere`]).
//! 4. (18-29) No core holds it: if the least popular file anywhere has fewer uses than
//!    this one has in sum, it gives way; else the file is read past the caches.
//! 5. (31-40) Some core holds it: if the one with least to do is busy, the thread's core is
//!    idle, and holds a file with less than half the uses, a copy takes its place.
//! 6. (section 4.5) If moving threads from here for the file has cost as much as loading
//!    it, the file comes to the thread ([`Competitive`]).
//! 7. (42, 43) Else the thread goes to the file.
//!
//! Uses are halved every period (45-47). Room is what a core's caches have minus the
//! larger of the files on it and the levels that misses show to be full (section 4.6).
//! Files larger than a core's caches are cut into chunks, each a file (section 4.7).
//! Writes are not handled (section 4.8).
//!
//! # Where the source leaves something open, and where this differs
//!
//! * *Figure and text.* [`Config::FIGURE_2`] is the figure as printed;
//!   [`Config::PAPER`] has the conditions that only the text names. For lines 12 to 16 it
//!   names none, but "at most one copy" (section 3): read as the condition of section
//!   4.4.
//! * *Uses of a file that comes.* By the figure, a file that has just come to a core has
//!   one use there, fewer than any, and is the next to go; with equally popular files
//!   nearly every read of one that is not held displaces one that is. So uses follow the
//!   file ([`Uses`]).
//! * Line 24 makes one file give way, which may be smaller than the one that comes. Here as
//!   many as it takes, all less popular; if these are not enough, none, and the domain
//!   with the next popular file is tried.
//! * `runqueue_len` does not count the reader itself, or its own core would never be idle.
//! * A shared cache has room for what domains have no room for on their own levels; what
//!   others put there is missing to each (section 4.6 says only that this is taken into
//!   account).
//! * What migration costs (section 4.5) is also asked for each target: a core too far for
//!   the size of the file is no target. Of equal ones the nearest is taken.
//! * The working set of that cost is 4 KB whatever a call fills. A call that fills 256 KB
//!   leaves as many dirty lines behind, which follow the thread; [`CallBuffer::Counted`]
//!   adds them.
//! * When a thread goes from one holder to another for less load, no rule brings the file.
//! * The file that comes by rule 6 leaves the core that the thread would have gone to. If
//!   what is less popular on the thread's core does not make room, the thread moves.
//! * Files are known by a table of sets of eight records. A file that finds no record is
//!   read where the thread is, past the cache if there is no room.
//! * The paper takes spin locks where lists change. Here nobody waits: who finds a domain
//!   taken does not place the file there, and the next read tries again.
//!
//! # Odd situations
//!
//! * A pinned reader stays; domains that it may not go to do not exist for it. Line 18
//!   then reads: no core that it can reach.
//! * A core that goes offline: when it was its domain's last, the domain holds nothing.
//!   A reader on a core that is offline or unknown stays, and nothing is counted.
//! * A file that changes its size stays where it is; what is too much gives way when
//!   another file comes. One that comes to be cut, or no longer is, is a new file. One
//!   that vanishes leaves its room at once, or if another thread is at the domain, as
//!   soon as someone looks there.
//! * A reader that is not moved as the verdict said: [`ReadPlacement::after`] gives up the
//!   belief that the file is there.
//!
//! # Cost
//!
//! A read of a held file looks at a set of the table, at its holders, and at the room of
//! the reader's domain. One of a file that no core holds looks at each domain's room and
//! bound, and at the entries of those whose bound is below the file's uses, twice at
//! most; a new file at eight records. Sizes of files that other domains hold cost one
//! lock each. No call allocates, recurses or waits. Memory: [`Sizes`].
//!
//! # Concurrency
//!
//! *Shared*: every call takes `&self`, and any number may run at once. The only state that
//! threads share when nothing changes its place are the uses of a file on a domain, as in
//! the paper (section 5).
//!
//! Locks: one per set of the table and one per domain, never two at a time, none waited
//! for. A domain's lock guards its list of files, their bytes and its bit in their
//! holders; a set's, which files its records are. `tests/mfc_loom.rs` runs pairs of calls
//! in every order in a model of memory.

mod access;
mod age;
mod books;
mod config;
mod host;
mod room;
mod store;
mod sync;
mod table;
mod topology;
mod validate;

use core::fmt;

use piebald_units::{Bytes, CoreId, FileId, Picos};

pub use access::Verdict;
pub use config::{CallBuffer, Competitive, Config, ConfigError, Elsewhere, Here, MinRead, Uses};
pub use host::{Counters, Misses, Second, Switches};
pub use room::DomainId;
pub use store::{
    Cell, CoreState, DomainState, Entry, FileRecord, Parts, PartsMut, SetState, SharedState, Sizes,
    Slices, Store,
};
pub use topology::{
    Domain, Level, MAX_DOMAINS, MAX_HOPS, MAX_LEVELS, MAX_OWN_LEVELS, Topology, TopologyError,
};
pub use validate::Broken;

use crate::contract::reads::{
    Among, Load, ObjectId, Read, ReadOutcome, ReadPlacement, ReadRequest, Reader,
};
use access::{Wanted, stay};
use room::{Event, Machine, Room};
use store::{NONE, facts};
use sync::{AtomicU32, AtomicU64, Relaxed};
use table::Key;

/// Why a verdict is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// MFC is switched off.
    Off,
    /// It is the second of two files, which MFC was told to leave alone (section 6.4).
    Second,
    /// The reader's core is offline, or unknown.
    Stranger,
    /// The file is small (lines 3 and 4).
    Small,
    /// No core's cache could hold it.
    TooLarge,
    /// There is no record left to know the file by.
    Untracked,
    /// Not cached yet; there is room where the reader is (lines 6 to 10).
    RoomHere,
    /// Not cached yet; there is room on another core (lines 12 to 16).
    RoomElsewhere,
    /// Not cached yet; a less popular file made room (lines 21 to 26).
    Replaced,
    /// Not cached, and nothing is less popular: read past the caches (lines 27 to 29).
    Unpopular,
    /// Cached on this core (lines 42 and 43).
    Held,
    /// A copy into spare room.
    CopiedToRoom,
    /// A copy in place of a much less popular file (lines 32 to 40).
    Copied,
    /// The file came to the reader, since moving readers had cost as much (section 4.5).
    Brought,
}

impl Why {
    /// All, in the order of the algorithm.
    pub const ALL: [Self; 14] = [
        Self::Off,
        Self::Second,
        Self::Stranger,
        Self::Small,
        Self::TooLarge,
        Self::Untracked,
        Self::RoomHere,
        Self::RoomElsewhere,
        Self::Replaced,
        Self::Unpopular,
        Self::Held,
        Self::CopiedToRoom,
        Self::Copied,
        Self::Brought,
    ];
    /// How many there are.
    const NR: usize = Self::ALL.len();

    /// The file was on no core that the reader can reach, and is from now on.
    const fn places_anew(self) -> bool {
        matches!(self, Self::RoomHere | Self::RoomElsewhere | Self::Replaced)
    }

    /// The file is on one core more from now on.
    const fn places(self) -> bool {
        self.places_anew() || matches!(self, Self::CopiedToRoom | Self::Copied | Self::Brought)
    }
}

/// MFC. See the [module](self).
#[derive(Debug)]
pub struct Mfc<S> {
    store: S,
    machine: Machine,
}

impl<S: Store> Mfc<S> {
    /// MFC on a machine whose caches hold no files, with all cores online and idle.
    ///
    /// # Errors
    /// If the machine, the configuration or the lent memory does not fit.
    pub fn new(mut store: S, topology: &Topology<'_>, config: Config) -> Result<Self, ConfigError> {
        let lent = store.parts().files.len();
        let files = u32::try_from(lent).unwrap_or(u32::MAX) & !(store::WAYS as u32).wrapping_sub(1);
        let sizes = Sizes::of(topology, &config, files)?;
        sizes.check(&store.parts())?;
        let machine = machine(topology, config, &sizes)?;
        clear(&mut store.parts_mut(), topology);
        Ok(Self { store, machine })
    }

    /// The lent memory, back.
    pub fn into_store(self) -> S {
        self.store
    }

    fn room(&self) -> Room<'_> {
        Room {
            machine: &self.machine,
            parts: self.store.parts(),
        }
    }

    /// The verdict on a read with its reason; [`ReadPlacement::before`] without.
    pub fn decide(&self, request: &ReadRequest) -> Verdict {
        let reader = request.reader;
        if let Some(why) = self.excused(request) {
            self.room().note(reader.core, Event::Verdict(why));
            return stay(reader.core, Load::Caching, why);
        }
        let part = self.part(request);
        let buffer = match self.machine.config.call_buffer {
            CallBuffer::Left => 0,
            CallBuffer::Counted => part.left.min(request.len.0),
        };
        let wanted = Wanted {
            key: part.key,
            bytes: part.bytes,
            buffer,
        };
        let mut verdict = self.room().access(reader, wanted);
        verdict.read.until = part.until;
        verdict
    }

    fn excused(&self, request: &ReadRequest) -> Option<Why> {
        let switches = self.switches();
        if !switches.on {
            return Some(Why::Off);
        }
        let is_ignored = switches.second == Second::Ignore && request.among == Among::Second;
        is_ignored.then_some(Why::Second)
    }

    /// The explicit call (section 5) for programs that map files: where should the thread
    /// go before it uses this part of the file? It loads the data itself, so there is no
    /// choice of loads.
    pub fn advise(&self, request: &ReadRequest) -> CoreId {
        self.decide(request).read.core
    }

    /// Where a thread should use something that is not a file (section 7). Its size is
    /// that of all of it; nothing is cut into chunks.
    pub fn place(&self, object: ObjectId, bytes: Bytes, reader: Reader) -> Read {
        if !self.switches().on {
            return Read::stay(reader.core);
        }
        let wanted = Wanted {
            key: Some(Key::object(object.0)),
            bytes: bytes.0,
            buffer: 0,
        };
        self.room().access(reader, wanted).read
    }

    /// The part of a file that is treated as one (section 4.7).
    fn part(&self, request: &ReadRequest) -> Part {
        let (size, offset) = (request.size.0, request.offset);
        let whole = Part {
            key: Some(Key::whole(request.file.0)),
            bytes: size,
            left: size.saturating_sub(offset),
            until: u64::MAX,
        };
        if offset >= size {
            return Part { bytes: 0, ..whole };
        }
        let chunk = self.machine.config.chunk.0;
        let number = offset.checked_div(chunk);
        let Some(number) = number.filter(|_| size > self.machine.whole_up_to) else {
            return whole;
        };
        let start = number.saturating_mul(chunk);
        let left = size.saturating_sub(start);
        Part {
            key: Key::chunk(request.file.0, number),
            bytes: left.min(chunk),
            left: start.saturating_add(left.min(chunk)).saturating_sub(offset),
            until: match left > chunk {
                true => start.saturating_add(chunk),
                false => u64::MAX,
            },
        }
    }

    /// The parameters.
    pub const fn config(&self) -> &Config {
        &self.machine.config
    }

    /// `M_avail` of a domain (equation 2); 0 for one that does not exist.
    pub fn available(&self, domain: DomainId) -> Bytes {
        Bytes(self.room().available(domain))
    }

    /// `f.cores`: domains that are believed to hold the part of a file at an offset, as
    /// a bitmap.
    pub fn holders(&self, file: FileId, size: Bytes, offset: u64) -> u64 {
        let room = self.room();
        let record = self.record(file, size, offset).and_then(|f| room.file(f));
        record.map_or(0, |r| r.holders.load(Relaxed))
    }

    /// `f.use[c]` of the part of a file at an offset.
    pub fn uses(&self, file: FileId, size: Bytes, offset: u64, domain: DomainId) -> u32 {
        let record = self.record(file, size, offset);
        record.map_or(0, |f| self.room().used(domain, f))
    }

    fn record(&self, file: FileId, size: Bytes, offset: u64) -> Option<u32> {
        let request = ReadRequest {
            reader: Reader::on(CoreId(0)),
            file,
            size,
            offset,
            len: Bytes(0),
            among: Among::First,
        };
        self.part(&request).key.and_then(|k| self.room().find(k))
    }

    /// The domain of a core, if it has one.
    pub fn domain_of(&self, core: CoreId) -> Option<DomainId> {
        self.room().domain_of(core)
    }

    /// Recounts everything from scratch and compares. Only while no other call runs.
    ///
    /// # Errors
    /// The first rule that does not hold.
    pub fn validate(&self) -> Result<(), Broken> {
        self.room().validate()
    }

    /// As [`validate`](Self::validate), and what holds only if no two calls ever ran at
    /// once: that the bounds by which the least popular file is found are none too high.
    ///
    /// # Errors
    /// The first rule that does not hold.
    pub fn validate_alone(&self) -> Result<(), Broken> {
        self.room().validate()?;
        self.room().validate_bounds()
    }
}

/// What is treated as one file: its name, its size, what is left of it from the offset on,
/// and where the next one begins.
struct Part {
    key: Option<Key>,
    bytes: u64,
    left: u64,
    until: u64,
}

fn machine(topology: &Topology<'_>, config: Config, sizes: &Sizes) -> Result<Machine, ConfigError> {
    let capacities = topology.domains.iter().map(|d| facts(topology, d).capacity);
    let smallest = capacities.clone().min().unwrap_or(0);
    let whole_up_to = config.whole_up_to.map_or(smallest, |b| b.0);
    let nr = sizes.domains as u32;
    Ok(Machine {
        config,
        costs: config.costs()?,
        whole_up_to,
        largest: capacities.max().unwrap_or(0),
        nodes: topology.nodes,
        files: sizes.files as u32,
        sets: sizes.sets as u32,
        per_domain: sizes.entries.checked_div(sizes.domains).unwrap_or(0) as u32,
        domains: u64::MAX
            .checked_shr(u64::BITS.saturating_sub(nr))
            .unwrap_or(0),
        online: AtomicU64::new(topology.cores.bits()),
        switches: AtomicU32::new(Switches::ALL.packed()),
    })
}

/// Sets up the lent memory, whatever it held.
fn clear(parts: &mut PartsMut<'_>, topology: &Topology<'_>) {
    parts.domains.fill_with(Default::default);
    parts.shared.fill_with(Default::default);
    parts.cores.fill_with(Default::default);
    parts.files.fill_with(Default::default);
    parts.sets.fill_with(Default::default);
    parts.cells.fill_with(Default::default);
    parts.entries.fill_with(Default::default);
    for (to, from) in parts.hops.iter_mut().zip(topology.hops) {
        *to = *from;
    }
    for (core, state) in (0u16..).zip(parts.cores.iter_mut()) {
        let home = topology.domains.iter();
        let home = home
            .zip(0u8..)
            .find(|(d, _)| d.cores.contains(CoreId(core)));
        state.domain = home.map_or(NONE, |(_, at)| at);
    }
    for (state, domain) in parts.domains.iter_mut().zip(topology.domains) {
        state.facts = facts(topology, domain);
        // Nothing held: no file is less popular than any.
        state.books.least = AtomicU32::new(u32::MAX);
    }
}

impl<S: Store> ReadPlacement for Mfc<S> {
    fn before(&self, request: &ReadRequest, _now: Picos) -> Read {
        self.decide(request).read
    }

    fn after(&self, outcome: &ReadOutcome, now: Picos) {
        let room = self.room();
        let (wanted, was) = (outcome.read.core, outcome.ran_on);
        if wanted != was && room.domain_of(wanted) != room.domain_of(was) {
            room.note(was, Event::Astray);
            self.went_astray(outcome);
        }
        room.tick(was, now);
    }
}

impl<S: Store> Mfc<S> {
    /// The file was to be loaded on a core where the reader never came.
    fn went_astray(&self, outcome: &ReadOutcome) {
        let room = self.room();
        let file = self.part(&outcome.request).key.and_then(|k| room.find(k));
        let domain = room.domain_of(outcome.read.core);
        if let Some((file, domain)) = file.zip(domain).filter(|_| outcome.read.placed) {
            room.remove(domain, file);
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "switched off",
            Self::Second => "second file",
            Self::Stranger => "core offline or unknown",
            Self::Small => "small file",
            Self::TooLarge => "larger than any cache",
            Self::Untracked => "no record left",
            Self::RoomHere => "room on this core",
            Self::RoomElsewhere => "room on another core",
            Self::Replaced => "in place of a less popular file",
            Self::Unpopular => "unpopular",
            Self::Held => "held",
            Self::CopiedToRoom => "copied to spare room",
            Self::Copied => "copied in place of a less popular file",
            Self::Brought => "brought to the reader",
        })
    }
}
