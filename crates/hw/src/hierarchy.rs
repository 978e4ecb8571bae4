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

use crate::{
    cache::{Evicted, Line, Meta, Slot, State},
    spec::Inclusion,
    topology::Topology,
};

/// Where a line was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// In the own path: 0 = first level.
    Level(u8),
    /// Modified in an inner cache of another core of the group.
    SameGroup,
    /// In another group of the socket.
    SameSocket,
    /// In another socket.
    OtherSocket,
    /// Nowhere.
    Memory,
}

/// What a miss found, and whether the data may still be on its way there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) source: Source,
    pub(crate) pending: bool,
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

/// The caches of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Hierarchy {
    pub(crate) topology: Topology,
    /// Physical cores that have run.
    active: u64,
    /// Program that each core runs, for the owners of lines.
    owner: Vec<u8>,
    coherent: bool,
    moesi: bool,
    /// Dirty lines on their way to memory, to be taken by the caller.
    pub(crate) writebacks: Vec<Line>,
    /// Rises whenever a cache loses or shares a line for another core's sake.
    pub(crate) disturbed: u64,
}

impl Hierarchy {
    pub(crate) fn new(topology: Topology, coherent: bool, moesi: bool) -> Self {
        let cores = topology.paths.len();
        Self {
            topology,
            active: 0,
            owner: vec![0; cores],
            coherent,
            moesi,
            writebacks: Vec::with_capacity(64),
            disturbed: 0,
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
        self.topology.levels.len()
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

    /// A store hit a line that is not held exclusively: everyone else loses it.
    /// Returns the farthest place that had to be told.
    pub(crate) fn upgrade(&mut self, core: usize, line: Line) -> Source {
        if !self.coherent {
            return Source::Level(0);
        }
        let last = self.levels() - 1;
        let group = self.invalidate_group_mates(core, line);
        let elsewhere = self.probe_other_groups(core, line, true);
        let cache = self.cache_at(core, last);
        if let Some(slot) = self.topology.caches[cache].find_physical(line) {
            let meta = self.topology.caches[cache].meta(slot);
            let raised = meta.with_state(meta.state().left_alone());
            self.topology.caches[cache].set_meta(slot, raised);
            let bit = self.topology.paths[core].bit;
            self.topology.caches[cache].set_sharers(slot, bit);
        }
        match (elsewhere, group) {
            (Some(probe), _) => probe.source,
            (None, true) => Source::SameGroup,
            (None, false) => Source::Level(last as u8),
        }
    }

    /// The first level missed (or a prefetcher asks): finds the line, fills the
    /// path, and settles coherence.
    pub(crate) fn miss(&mut self, core: usize, want: Want) -> Found {
        if want.into == 0 {
            self.settle_alias(core, want);
        }
        for k in 1..self.levels() {
            let cache = self.cache_at(core, k);
            let set = self.topology.caches[cache].set_of(want.line);
            if let Some(slot) = self.topology.caches[cache].find(set, want.line) {
                return self.hit_outer(core, k, cache, slot, want);
            }
        }
        self.miss_everywhere(core, want)
    }

    fn hit_outer(&mut self, core: usize, k: usize, cache: usize, slot: Slot, want: Want) -> Found {
        let level_private = self.topology.levels[k].private;
        let meta = self.topology.caches[cache].meta(slot);
        let pending = meta.pending();
        let mut source = Source::Level(k as u8);
        let mut state = inner_state(meta.state());
        let mut mates_dirty = false;
        if self.coherent && !level_private {
            let mates = self.mates_with_copy(core, k, cache, slot);
            let probe = self.probe_cores(core, mates, want.line, want.write);
            if probe.dirty {
                source = Source::SameGroup;
                mates_dirty = !self.moesi || want.write;
            }
            if probe.held && !want.write {
                state = State::Shared;
            }
        }
        if self.coherent && want.write && !meta.state().alone() {
            if level_private {
                self.invalidate_group_mates(core, want.line);
            }
            if let Some(probe) = self.probe_other_groups(core, want.line, true) {
                source = probe.source;
            }
            state = State::Exclusive;
        }
        if self.topology.levels[k].inclusion == Inclusion::Exclusive && want.into < k as u8 {
            let gone = self.topology.caches[cache].remove(slot);
            let dirty = gone.meta.dirty() || mates_dirty;
            state = match (dirty, state) {
                (true, State::Shared) => State::Owned,
                (true, _) => State::Modified,
                (false, state) => state,
            };
        } else {
            let bit = self.topology.paths[core].bit;
            let held = &mut self.topology.caches[cache];
            held.touch(slot);
            let mut now = if want.prefetch { meta } else { meta.settled() };
            if mates_dirty {
                now = now.with_state(State::Modified);
            }
            if want.write {
                now = now.with_state(now.state().left_alone());
            }
            held.set_meta(slot, now);
            // Without coherence the others keep their copies when one writes.
            let sharers = if want.write && self.coherent {
                bit
            } else {
                held.sharers(slot) | bit
            };
            held.set_sharers(slot, sharers);
        }
        self.fill_inwards(core, k, want, state);
        Found { source, pending }
    }

    fn miss_everywhere(&mut self, core: usize, want: Want) -> Found {
        let last = self.levels() - 1;
        let mut source = Source::Memory;
        let mut state = State::Exclusive;
        if self.coherent {
            // An inclusive last level that misses proves that no core of the group
            // holds the line.
            if self.topology.levels[last].inclusion != Inclusion::Inclusive {
                let mates = self.group_mates(core);
                let probe = self.probe_cores(core, mates, want.line, want.write);
                if probe.held {
                    source = Source::SameGroup;
                    state = State::Shared;
                    if probe.dirty && !want.write && !self.moesi {
                        self.writebacks.push(want.line);
                    }
                }
            }
            if let Some(probe) = self.probe_other_groups(core, want.line, want.write) {
                source = probe.source;
                state = State::Shared;
                if probe.dirty && !want.write && !self.moesi {
                    self.writebacks.push(want.line);
                }
            }
            if want.write {
                state = State::Exclusive;
            }
        }
        self.fill_inwards(core, last + 1, want, state);
        Found {
            source,
            pending: false,
        }
    }

    /// Puts the line in the levels inside `from`, outermost first.
    fn fill_inwards(&mut self, core: usize, from: usize, want: Want, state: State) {
        let last = self.levels() - 1;
        for k in (usize::from(want.into)..from).rev() {
            // A level for victims takes what is prefetched into it: else the
            // line, which may just have left an exclusive level, had no place.
            let aimed_at = want.prefetch && k == usize::from(want.into);
            if k > 0 && !aimed_at && !self.topology.levels[k].filled_on_miss() {
                continue;
            }
            let inclusive = self.topology.levels[k].inclusion == Inclusion::Inclusive;
            if k > 0 && want.transient && !inclusive {
                continue;
            }
            let state = match k {
                0 if want.write => State::Modified,
                _ => state,
            };
            let mut meta = Meta::new(state).with_pending();
            if want.prefetch {
                meta = meta.with_prefetched();
            }
            if want.transient {
                meta = meta.with_transient();
            }
            let cache = match k {
                0 => self.first(core, want.fetch),
                _ => self.cache_at(core, k),
            };
            let index_line = if k == 0 { want.index_line } else { want.line };
            let set = self.topology.caches[cache].set_of(index_line);
            let (bit, owner) = match k == last {
                true => (self.topology.paths[core].bit, self.owner[core]),
                false => (0, self.owner[core]),
            };
            let evicted = self.topology.caches[cache].insert(set, want.line, meta, bit, owner);
            if let Some(gone) = evicted {
                self.evict(core, k, gone);
            }
        }
    }

    /// A line has left level `k` of the core's path.
    fn evict(&mut self, core: usize, k: usize, gone: Evicted) {
        let mut gone = gone;
        if k > 0 && self.topology.levels[k].inclusion == Inclusion::Inclusive {
            gone = self.recall(core, k, gone);
        }
        let dirty = gone.meta.dirty();
        if k + 1 == self.levels() {
            if dirty {
                self.writebacks.push(gone.line);
            }
            return;
        }
        let takes_clean = !self.topology.levels[k + 1].filled_on_miss();
        if !dirty && (!takes_clean || gone.meta.transient()) {
            return;
        }
        let cache = self.cache_at(core, k + 1);
        let set = self.topology.caches[cache].set_of(gone.line);
        if let Some(slot) = self.topology.caches[cache].find(set, gone.line) {
            let held = &mut self.topology.caches[cache];
            if takes_clean {
                held.touch(slot);
            }
            if dirty {
                let meta = held.meta(slot).with_state(gone.meta.state());
                held.set_meta(slot, meta);
            }
            return;
        }
        let meta = Meta::new(gone.meta.state());
        let (bit, owner) = (self.topology.paths[core].bit, gone.owner);
        let evicted = self.topology.caches[cache].insert(set, gone.line, meta, bit, owner);
        if let Some(next) = evicted {
            self.evict(core, k + 1, next);
        }
    }

    /// Takes the victim of an inclusive level out of the caches inside it.
    fn recall(&mut self, core: usize, k: usize, gone: Evicted) -> Evicted {
        let mut holders = match self.topology.levels[k].private {
            true => 1 << core,
            false => self.cores_behind(core, k) & self.active,
        };
        let mut gone = gone;
        let last = k + 1 == self.levels();
        while holders != 0 {
            let other = holders.trailing_zeros() as usize;
            holders &= holders - 1;
            if last && gone.sharers & self.topology.paths[other].bit == 0 {
                continue;
            }
            for inner in (0..k).rev() {
                let cache = self.cache_at(other, inner);
                // Owned stays owned: copies beyond this level may live on.
                if let Some(taken) = self.take(cache, gone.line)
                    && taken.meta.dirty()
                {
                    gone.meta = gone.meta.with_state(taken.meta.state());
                }
            }
            let fetch = self.first(other, true);
            if fetch != self.first(other, false) {
                self.take(fetch, gone.line);
            }
        }
        gone
    }

    fn take(&mut self, cache: usize, line: Line) -> Option<Evicted> {
        let cache = &mut self.topology.caches[cache];
        let slot = cache.find_physical(line)?;
        self.disturbed += 1;
        Some(cache.remove(slot))
    }

    /// Cores whose path goes through the same instance of level `k`.
    fn cores_behind(&self, core: usize, k: usize) -> u64 {
        let group = self.topology.groups[usize::from(self.topology.paths[core].group)];
        if k + 1 == self.levels() {
            return group;
        }
        let instance = self.topology.paths[core].data[k];
        (0..self.topology.paths.len())
            .filter(|c| group >> c & 1 == 1 && self.topology.paths[*c].data[k] == instance)
            .fold(0, |set, c| set | 1 << c)
    }

    fn group_mates(&self, core: usize) -> u64 {
        let group = self.topology.groups[usize::from(self.topology.paths[core].group)];
        group & self.active & !(1 << core)
    }

    /// Other cores behind this cache that may hold the line further in.
    fn mates_with_copy(&self, core: usize, k: usize, cache: usize, slot: Slot) -> u64 {
        let mates = self.group_mates(core);
        let exact =
            k + 1 == self.levels() && self.topology.levels[k].inclusion == Inclusion::Inclusive;
        if !exact || mates == 0 {
            return mates;
        }
        let sharers = self.topology.caches[cache].sharers(slot);
        let mut rest = mates;
        let mut with_copy = 0;
        while rest != 0 {
            let other = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            if sharers & self.topology.paths[other].bit != 0 {
                with_copy |= 1 << other;
            }
        }
        with_copy
    }

    fn invalidate_group_mates(&mut self, core: usize, line: Line) -> bool {
        let mates = self.group_mates(core);
        self.probe_cores(core, mates, line, true).held
    }

    /// Asks the caches of `cores` that are not on the asking core's own path.
    fn probe_cores(&mut self, asking: usize, cores: u64, line: Line, write: bool) -> Probe {
        let own = self.topology.paths[asking];
        let mut result = Probe::nothing();
        let mut rest = cores;
        while rest != 0 {
            let other = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let path = self.topology.paths[other];
            for k in 0..self.levels() {
                if path.data[k] != own.data[k] {
                    self.probe_cache(usize::from(path.data[k]), line, write, &mut result);
                }
            }
            // A reader must hear of it too: a line that an instruction cache
            // holds comes back to the data path when it leaves for a victim
            // cache, and must not be exclusive elsewhere then.
            if path.fetch != path.data[0] {
                self.probe_cache(usize::from(path.fetch), line, write, &mut result);
            }
        }
        result
    }

    fn probe_cache(&mut self, cache: usize, line: Line, write: bool, result: &mut Probe) {
        let held = &mut self.topology.caches[cache];
        let Some(slot) = held.find_physical(line) else {
            return;
        };
        let meta = held.meta(slot);
        result.held = true;
        result.dirty |= meta.dirty();
        self.disturbed += 1;
        if write {
            held.remove(slot);
            return;
        }
        let state = match meta.dirty() && self.moesi {
            true => State::Owned,
            false => State::Shared,
        };
        held.set_meta(slot, meta.with_state(state));
    }

    /// Asks every other group; `None` if nobody there holds the line.
    fn probe_other_groups(&mut self, core: usize, line: Line, write: bool) -> Option<Probe> {
        let own = self.topology.groups[usize::from(self.topology.paths[core].group)];
        let others = self.active & !own;
        if others == 0 {
            return None;
        }
        let socket = self.topology.paths[core].socket;
        let mut near = 0;
        let mut rest = others;
        while rest != 0 {
            let other = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            if self.topology.paths[other].socket == socket {
                near |= 1 << other;
            }
        }
        let close = self.probe_cores(core, near, line, write);
        let far = self.probe_cores(core, others & !near, line, write);
        let source = match (far.held && (write || !close.held), close.held) {
            (true, _) => Source::OtherSocket,
            (false, true) => Source::SameSocket,
            (false, false) => return None,
        };
        Some(Probe {
            held: true,
            dirty: close.dirty || far.dirty,
            source,
        })
    }

    /// A virtually indexed first level may hold the line under another index:
    /// it leaves there, dirty data going outwards.
    fn settle_alias(&mut self, core: usize, want: Want) {
        let first = self.first(core, want.fetch);
        if !self.topology.caches[first].aliases() {
            return;
        }
        if let Some(gone) = self.take(first, want.line) {
            self.evict(core, 0, gone);
        }
    }

    /// Share of each owner in groups of sets of the last level:
    /// `cells[bucket][owner]` = lines.
    pub(crate) fn occupancy(&self, group: usize, buckets: usize, owners: usize) -> Vec<Vec<u32>> {
        let last = self.levels() - 1;
        let first_core = self.topology.groups[group].trailing_zeros() as usize;
        let cache = &self.topology.caches[self.cache_at(first_core, last)];
        let mut cells = vec![vec![0; owners]; buckets];
        let sets = cache.sets();
        cache.for_each_owner(|set, owner| {
            let bucket = set * buckets / sets;
            if let Some(cell) = cells[bucket].get_mut(usize::from(owner)) {
                *cell += 1;
            }
        });
        cells
    }

    /// Checks the rules of inclusion and coherence over every line held.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let last = self.levels() - 1;
        for core in 0..self.topology.paths.len() {
            for k in 0..last {
                let cache = &self.topology.caches[self.cache_at(core, k)];
                for (line, _, _) in cache.lines() {
                    self.check_inclusion(core, k, line)?;
                }
            }
            let cache = &self.topology.caches[self.cache_at(core, 0)];
            for (line, meta, _) in cache.lines() {
                if self.coherent && meta.state().alone() {
                    self.check_alone(core, line, meta.state())?;
                }
            }
        }
        Ok(())
    }

    fn check_inclusion(&self, core: usize, k: usize, line: Line) -> Result<(), String> {
        for outer in k + 1..self.levels() {
            if self.topology.levels[outer].inclusion != Inclusion::Inclusive {
                continue;
            }
            let cache = &self.topology.caches[self.cache_at(core, outer)];
            let Some(slot) = cache.find_physical(line) else {
                return Err(format!(
                    "line {line:#x} of core {core} is missing from level {outer}"
                ));
            };
            let bit = self.topology.paths[core].bit;
            if outer + 1 == self.levels() && cache.sharers(slot) & bit == 0 {
                return Err(format!(
                    "line {line:#x}: core {core} is not among its sharers"
                ));
            }
        }
        Ok(())
    }

    fn check_alone(&self, core: usize, line: Line, state: State) -> Result<(), String> {
        let own = self.topology.paths[core];
        for (other, path) in self.topology.paths.iter().enumerate() {
            for k in 0..self.levels() {
                if other == core || path.data[k] == own.data[k] {
                    continue;
                }
                let cache = &self.topology.caches[usize::from(path.data[k])];
                if cache.find_physical(line).is_some() {
                    return Err(format!(
                        "line {line:#x} is {state:?} in core {core} and also held by core {other}"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// What probing other caches found.
#[derive(Clone, Copy, Debug)]
struct Probe {
    held: bool,
    dirty: bool,
    source: Source,
}

impl Probe {
    const fn nothing() -> Self {
        Self {
            held: false,
            dirty: false,
            source: Source::SameGroup,
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
