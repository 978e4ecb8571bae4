//! All caches of a machine together: lookups, fills, victims and coherence.
//!
//! Vocabulary. A *path* is the caches that a core sees, first level first. A
//! *group* is the cores behind one instance of the last level. Coherence is
//! write-invalidate MESI, or MOESI where the machine says so. Copies are found by
//! probing tags, not through a directory: only cores that have ever run are
//! probed, and inside a group with an inclusive last level only those whose
//! sharer bit is set, so that a program alone pays nothing for it.
//!
//! Nothing here knows time. Each operation says from where a line came and
//! queues the lines that went to memory.

mod check;
mod coherence;
mod express;
mod fill;
mod senders;

pub(crate) use express::Express;
pub use fill::{LevelFill, SetFill};

use senders::Senders;

use crate::{
    cache::{Evicted, Info, Line, Meta, Slot, State},
    shadow::Shadow,
    spec::{Inclusion, LinkSpec, Protocol},
    topology::{Level, MAX_LEVELS, Topology},
};

/// Where a line was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// In the own path: 0 = first level.
    Level(u8),
    /// In an inner cache of another core of the group, which sends it.
    SameGroup,
    /// In another group of the socket.
    SameSocket,
    /// In another socket.
    OtherSocket,
    /// In memory, and in no cache that would send it.
    Memory,
}

/// What a miss found, and whether the data may still be on its way there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) source: Source,
    pub(crate) pending: bool,
    /// A demand is the first to use what a prefetch brought there.
    pub(crate) prefetched: bool,
    /// Socket of the other core's cache that sends the line.
    pub(crate) from: Option<u16>,
    /// The line was there, but others had to lose it first.
    pub(crate) upgraded: bool,
}

/// A dirty line on its way to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WriteBack {
    pub(crate) line: Line,
    /// It passes from a cache of this socket to another group, and memory takes it over.
    pub(crate) passes: Option<u16>,
}

impl WriteBack {
    const fn leaving(line: Line) -> Self {
        Self { line, passes: None }
    }
}

/// A line that some path wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    /// Physical line.
    pub(crate) line: Line,
    /// Line number that indexes the first level (virtual if it is so indexed).
    pub(crate) index_line: Line,
    /// For writing.
    pub(crate) write: bool,
    /// By the instruction path.
    pub(crate) fetch: bool,
    /// By a non-caching load.
    pub(crate) transient: bool,
    /// Innermost level to fill: 0 for demands, more for prefetches into outer levels.
    pub(crate) into: u8,
    /// By a prefetcher.
    pub(crate) prefetch: bool,
}

/// A level's promises, in the form in which misses ask for them.
#[derive(Clone, Copy, Debug, Default)]
struct Rules {
    inclusive: bool,
    exclusive: bool,
    /// Though exclusive, it keeps what several cores use.
    keeps_shared: bool,
    private: bool,
    filled_on_miss: bool,
    /// The next level takes clean victims as well.
    gives_clean: bool,
}

impl Rules {
    fn of(levels: &[Level]) -> [Self; MAX_LEVELS] {
        std::array::from_fn(|k| {
            levels.get(k).map_or_else(Self::default, |level| Self {
                inclusive: level.inclusion == Inclusion::Inclusive,
                exclusive: level.inclusion.moves_hits(),
                keeps_shared: level.inclusion == Inclusion::MostlyExclusive,
                private: level.private,
                filled_on_miss: level.inclusion.filled_on_miss(),
                gives_clean: levels
                    .get(k + 1)
                    .is_some_and(|n| !n.inclusion.filled_on_miss()),
            })
        })
    }

    /// Does anyone care that this line left the level?
    #[inline]
    const fn matters(self, gone: Evicted) -> bool {
        self.inclusive || self.gives_clean || gone.info.meta().dirty()
    }
}

/// The caches of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Hierarchy {
    pub(crate) topology: Topology,
    /// Physical cores that have run.
    active: u64,
    /// Program that each core runs, for the owners of lines.
    owner: Vec<u8>,
    /// Of each level, for the way of a line in and out.
    rules: [Rules; MAX_LEVELS],
    levels: usize,
    /// Its levels allow the express way.
    express: bool,
    coherent: bool,
    moesi: bool,
    senders: Senders,
    /// Dirty lines on their way to memory, to be taken by the caller.
    pub(crate) writebacks: Vec<WriteBack>,
    /// Rises whenever a cache loses or shares a line for another core's sake.
    pub(crate) disturbed: u64,
    /// Sees what reaches the last level from some cores.
    pub(crate) shadow: Option<Box<Shadow>>,
}

impl Hierarchy {
    pub(crate) fn new(topology: Topology, coherent: bool, links: &LinkSpec) -> Self {
        let cores = topology.paths.len();
        Self {
            rules: Rules::of(&topology.levels),
            levels: topology.levels.len(),
            express: express::is_possible(&topology),
            topology,
            active: 0,
            owner: vec![0; cores],
            coherent,
            moesi: links.protocol == Protocol::Moesi,
            senders: Senders::of(links),
            writebacks: Vec::with_capacity(64),
            disturbed: 0,
            shadow: None,
        }
    }

    /// From now on shadow tags see what reaches the last level. The express way would
    /// go past them.
    pub(crate) fn watch(&mut self, shadow: Shadow) {
        self.express = false;
        self.shadow = Some(Box::new(shadow));
    }

    /// A line is looked up in the last level.
    #[inline]
    fn looked_up(&mut self, core: usize, want: &Want) {
        if let Some(shadow) = self.shadow.as_mut().filter(|s| s.watches(core)) {
            let last = self.levels - 1;
            let cache = &self.topology.caches[usize::from(self.topology.paths[core].data[last])];
            shadow.access(cache.set_of(want.line), last, want);
        }
    }

    /// From now on the core brings in lines for this owner.
    pub(crate) fn set_owner(&mut self, core: usize, owner: u8) {
        self.owner[core] = owner;
        self.active |= 1 << core;
    }

    pub(crate) fn activate(&mut self, core: usize) {
        self.active |= 1 << core;
    }

    fn levels(&self) -> usize {
        self.levels
    }

    fn cache_at(&self, core: usize, level: usize) -> usize {
        usize::from(self.topology.paths[core].data[level])
    }

    /// Cache of the first level for data or instructions.
    #[inline]
    pub(crate) fn first(&self, core: usize, fetch: bool) -> usize {
        let path = &self.topology.paths[core];
        usize::from(if fetch { path.fetch } else { path.data[0] })
    }

    /// Does some private cache of the core hold the line? Changes nothing.
    pub(crate) fn private_holds(&self, core: usize, line: Line, fetch: bool) -> bool {
        let first = &self.topology.caches[self.first(core, fetch)];
        if first.find_physical(line).is_some() {
            return true;
        }
        (1..self.levels())
            .take_while(|k| self.topology.levels[*k].private)
            .any(|k| {
                let cache = &self.topology.caches[self.cache_at(core, k)];
                cache.find_physical(line).is_some()
            })
    }

    /// The first level missed (or a prefetcher asks): finds the line, fills the
    /// path, and settles coherence.
    #[inline]
    pub(crate) fn miss(&mut self, core: usize, want: &Want) -> Found {
        let path = self.topology.paths[core];
        let first = if want.fetch { path.fetch } else { path.data[0] };
        if want.into == 0 && self.topology.caches[usize::from(first)].aliases() {
            self.settle_alias(core, want);
        }
        for k in 1..self.levels {
            let cache = usize::from(path.data[k]);
            let outer = &self.topology.caches[cache];
            if let Some(slot) = outer.find(outer.set_of(want.line), want.line) {
                return self.hit_outer(core, k, cache, slot, want);
            }
        }
        self.miss_everywhere(core, want)
    }

    fn hit_outer(&mut self, core: usize, k: usize, cache: usize, slot: Slot, want: &Want) -> Found {
        if k + 1 == self.levels {
            self.looked_up(core, want);
        }
        let Rules {
            private: level_private,
            exclusive,
            keeps_shared,
            ..
        } = self.rules[k];
        let info = self.topology.caches[cache].info(slot);
        let meta = info.meta();
        let pending = meta.pending();
        let mut source = Source::Level(k as u8);
        let mut state = inner_state(meta.state());
        let bit = self.topology.paths[core].bit;
        let mut is_shared = info.sharers() & !bit != 0;
        let mut mates_dirty = false;
        if self.coherent && !level_private {
            let mates = self.mates_with_copy(core, k, info.sharers());
            let probe = self.probe_cores(core, mates, want.line, want.write);
            if probe.dirty {
                source = Source::SameGroup;
                // Under MESI the data comes here too; a writer is the only
                // one to have it.
                mates_dirty = !self.moesi && !want.write;
            }
            is_shared |= probe.held;
            if probe.held && !want.write {
                state = State::Shared;
            }
        }
        let upgraded = self.coherent && want.write && !meta.state().alone();
        if upgraded {
            if level_private {
                self.invalidate_group_mates(core, want.line);
            }
            if let Some(probe) = self.probe_other_groups(core, want.line, true) {
                source = probe.source;
            }
            state = State::Exclusive;
        }
        let mut transient = want.transient;
        let stays = keeps_shared && is_shared && !want.write;
        if exclusive && !stays && want.into < k as u8 {
            // The only copy moves: it must come back when it leaves, as publication
            // 25112 says of lines that PREFETCHNTA finds in the second level.
            transient = false;
            let gone = self.topology.caches[cache].remove(slot);
            if mates_dirty {
                self.writebacks.push(WriteBack::leaving(want.line));
            }
            state = match (gone.info.meta().dirty() && !mates_dirty, state) {
                // MESI has no owner: the data goes to memory as well.
                (true, State::Shared) if !self.moesi => {
                    self.writebacks.push(WriteBack::leaving(want.line));
                    State::Shared
                }
                (true, State::Shared) => State::Owned,
                (true, _) => State::Modified,
                (false, state) => state,
            };
        } else {
            let mut now = if want.prefetch { meta } else { meta.settled() };
            if mates_dirty {
                now = now.with_state(State::Modified);
            }
            if want.write && now.state() == State::Shared {
                now = now.with_state(State::Exclusive);
            }
            // Without coherence the others keep their copies when one writes.
            let sharers = match want.write && self.coherent {
                true => bit,
                false => info.sharers() | bit,
            };
            let held = &mut self.topology.caches[cache];
            held.touch(slot);
            held.set_info(slot, Info::new(now, sharers, info.owner()));
        }
        self.fill_inwards(core, k, want, Meta::new(state).with_transient(transient));
        Found {
            source,
            pending,
            prefetched: meta.prefetched() && !want.prefetch,
            from: None,
            upgraded,
        }
    }

    fn miss_everywhere(&mut self, core: usize, want: &Want) -> Found {
        self.looked_up(core, want);
        let last = self.levels() - 1;
        let mut source = Source::Memory;
        let mut from = None;
        let mut state = State::Exclusive;
        if self.coherent {
            // An inclusive last level that misses proves that no core of the group
            // holds the line.
            if self.topology.levels[last].inclusion != Inclusion::Inclusive {
                let probe = self.probe_group_mates(core, want.line, want.write);
                if probe.sends {
                    source = Source::SameGroup;
                    from = Some(probe.holder);
                }
                if probe.held {
                    state = State::Shared;
                    if probe.dirty && !want.write && !self.moesi {
                        self.writebacks.push(WriteBack::leaving(want.line));
                    }
                }
            }
            if let Some(probe) = self.probe_other_groups(core, want.line, want.write) {
                // A writer that has its data still waits until the others have lost theirs.
                if probe.sends || want.write && source != Source::Memory {
                    source = probe.source;
                }
                if probe.sends {
                    from = Some(probe.holder);
                }
                state = State::Shared;
                if probe.dirty && !want.write && !self.moesi {
                    self.writebacks.push(WriteBack {
                        line: want.line,
                        passes: Some(probe.holder),
                    });
                }
            }
            if want.write {
                state = State::Exclusive;
            }
        }
        let meta = Meta::new(state).with_transient(want.transient);
        self.fill_inwards(core, last + 1, want, meta);
        Found {
            source,
            pending: false,
            prefetched: false,
            from,
            upgraded: false,
        }
    }

    /// Puts the line in the levels inside `from`, outermost first. Data that is
    /// dirty already stays with the outermost of them.
    fn fill_inwards(&mut self, core: usize, from: usize, want: &Want, base: Meta) {
        let into = usize::from(want.into);
        let mut meta = base.with_pending();
        let path = self.topology.paths[core];
        let owner = self.owner[core];
        let mut k = from;
        while k > into.max(1) {
            k -= 1;
            let rules = self.rules[k];
            // A prefetch into a level of victims goes there, or it would go nowhere.
            let aimed_at = want.prefetch && k == into;
            let passed_by = want.transient && !rules.inclusive;
            if passed_by || !(aimed_at || rules.filled_on_miss) {
                continue;
            }
            let sharers = if k + 1 == self.levels { path.bit } else { 0 };
            let own = if aimed_at {
                meta.with_prefetched()
            } else {
                meta
            };
            let info = Info::new(own, sharers, owner);
            meta = meta.with_state(inner_state(meta.state()));
            self.fill(core, k, path.data[k], want.line, want.line, info);
        }
        if into == 0 {
            if want.write {
                meta = meta.with_state(State::Modified);
            }
            if want.prefetch {
                meta = meta.with_prefetched();
            }
            let sharers = if self.levels == 1 { path.bit } else { 0 };
            let info = Info::new(meta, sharers, owner);
            let first = if want.fetch { path.fetch } else { path.data[0] };
            self.fill(core, 0, first, want.index_line, want.line, info);
        }
    }

    /// Puts a line into one cache of level `k`.
    #[inline(always)]
    fn fill(
        &mut self,
        core: usize,
        k: usize,
        cache: u16,
        index_line: Line,
        line: Line,
        info: Info,
    ) {
        let cache = &mut self.topology.caches[usize::from(cache)];
        if let Some(gone) = cache.insert(cache.set_of(index_line), line, info)
            && self.rules[k].matters(gone)
        {
            self.evict(core, k, gone);
        }
    }

    /// A line has left level `k` of the core's path.
    #[inline(never)]
    fn evict(&mut self, core: usize, k: usize, gone: Evicted) {
        let mut gone = gone;
        if k > 0 && self.rules[k].inclusive {
            gone = self.recall(core, k, gone);
        }
        let meta = gone.info.meta();
        let dirty = meta.dirty();
        if k + 1 == self.levels() {
            if dirty {
                self.writebacks.push(WriteBack::leaving(gone.line));
            }
            return;
        }
        let takes_clean = self.rules[k].gives_clean;
        if !dirty && (!takes_clean || meta.transient()) {
            return;
        }
        let path = &self.topology.paths[core];
        let outer = &mut self.topology.caches[usize::from(path.data[k + 1])];
        let set = outer.set_of(gone.line);
        if k + 2 == self.levels
            && let Some(shadow) = self.shadow.as_mut().filter(|s| s.watches(core))
        {
            shadow.victim(set, gone.line, dirty, takes_clean);
        }
        if let Some(slot) = outer.find(set, gone.line) {
            if takes_clean {
                outer.touch(slot);
            }
            if dirty {
                let now = outer.meta(slot).with_state(meta.state());
                outer.set_meta(slot, now);
            }
            if self.rules[k + 1].keeps_shared {
                let info = outer.info(slot);
                let sharers = info.sharers() | path.bit;
                outer.set_info(slot, Info::new(info.meta(), sharers, info.owner()));
            }
            return;
        }
        let info = Info::new(Meta::new(meta.state()), path.bit, gone.info.owner());
        if let Some(next) = outer.insert(set, gone.line, info) {
            self.evict(core, k + 1, next);
        }
    }

    /// Takes the victim of an inclusive level out of the caches inside it.
    fn recall(&mut self, core: usize, k: usize, gone: Evicted) -> Evicted {
        let last = k + 1 == self.levels();
        let mut holders = match (self.rules[k].private, last) {
            (true, _) => 1 << core,
            (false, true) => self.group_of(core) & self.active,
            (false, false) => self.cores_behind(core, k) & self.active,
        };
        let mut gone = gone;
        while holders != 0 {
            let other = holders.trailing_zeros() as usize;
            holders &= holders - 1;
            let path = self.topology.paths[other];
            if last && gone.info.sharers() & path.bit == 0 {
                continue;
            }
            let mut inner = k;
            while inner > 0 {
                inner -= 1;
                if let Some(taken) = self.take(path.data[inner], gone.line)
                    && taken.info.meta().dirty()
                {
                    let meta = gone.info.meta().with_state(taken.info.meta().state());
                    gone.info = gone.info.with_meta(meta);
                }
            }
            if path.fetch != path.data[0] {
                self.take(path.fetch, gone.line);
            }
        }
        gone
    }

    #[inline(always)]
    fn take(&mut self, cache: u16, line: Line) -> Option<Evicted> {
        let cache = &mut self.topology.caches[usize::from(cache)];
        // A program without fetches leaves its instruction cache alone.
        if cache.is_empty() {
            return None;
        }
        let slot = cache.find_physical(line)?;
        self.disturbed += 1;
        Some(cache.remove(slot))
    }

    /// A virtually indexed first level may hold the line under another index:
    /// it leaves there, dirty data going outwards.
    #[inline(never)]
    fn settle_alias(&mut self, core: usize, want: &Want) {
        let first = self.first(core, want.fetch);
        if let Some(gone) = self.take(first as u16, want.line) {
            self.evict(core, 0, gone);
        }
    }
}

/// Rights that a copy further in may have: dirty data stays where it is.
const fn inner_state(outer: State) -> State {
    match outer {
        State::Shared | State::Owned => State::Shared,
        State::Exclusive | State::Modified => State::Exclusive,
    }
}

/// Numbers of the bits that are set, lowest first.
fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (set != 0).then(|| set.trailing_zeros() as usize);
        set &= set.wrapping_sub(1);
        lowest
    })
}
