//! One hardware thread at work: translation, and what lies beyond the first level.

use piebald_units::VirtAddr;

use super::{InFlight, NO_LINE, run::Run};
use crate::{
    cache::Line,
    dram::RowOutcome,
    hierarchy::{Express, Found, Source, Want, WriteBack},
    machine::in_flight_index,
    prefetch::{Pair, Wishes},
    tlb::Lookup,
    topology::MAX_LEVELS,
    window::Q8,
};

impl Run<'_> {
    /// When an access whose address is known at `start` is translated.
    #[inline(always)]
    pub(super) fn translate(&mut self, addr: VirtAddr, start: Q8, fetch: bool) -> Q8 {
        match &self.core.tlb {
            Some(tlb) if !tlb.same_page(self.asid, addr, fetch) => self.look_up(addr, start, fetch),
            _ => start,
        }
    }

    #[inline(never)]
    fn look_up(&mut self, addr: VirtAddr, start: Q8, fetch: bool) -> Q8 {
        let Some(tlb) = &mut self.core.tlb else {
            return start;
        };
        match tlb.lookup(self.asid, addr, fetch) {
            Lookup::First => start,
            Lookup::Second => {
                self.thread.counters.tlb_misses += 1;
                start + self.latency.second_tlb
            }
            Lookup::Miss => {
                self.thread.counters.tlb_misses += 1;
                self.walk(addr, start, fetch)
            }
        }
    }

    /// Reads the page-table entries one after the other through the caches. A
    /// walk begins when the address is known, not when the instruction is
    /// dispatched: its reads would else wait for fills that come after it.
    pub(super) fn walk(&mut self, addr: VirtAddr, start: Q8, fetch: bool) -> Q8 {
        let walk = self.space.walk(addr);
        let mut at = start;
        self.thread.counters.walks += 1;
        let levels = walk.levels.min(4);
        let skip = match &mut self.core.tlb {
            Some(tlb) => {
                tlb.insert(self.asid, addr, fetch, walk.page);
                tlb.skip_levels(self.asid, addr, levels)
            }
            None => 0,
        };
        for entry in &walk.entries[usize::from(skip)..usize::from(levels)] {
            let line = (entry.0 >> 6) as Line;
            at = self.read_through(line, at, false);
        }
        at + self.latency.second_tlb
    }

    /// A read through the data path that no instruction makes; returns its end.
    pub(super) fn read_through(&mut self, line: Line, at: Q8, transient: bool) -> Q8 {
        let cache = &mut self.hierarchy.topology.caches[usize::from(self.path.data[0])];
        if let Some(slot) = cache.find_physical(line) {
            cache.touch(slot);
            return at + self.latency.level[0];
        }
        let want = Want {
            line,
            index_line: line,
            write: false,
            fetch: false,
            transient,
            into: 0,
            prefetch: false,
        };
        self.beyond_first(want, at)
    }

    /// A demand for data missed the first level at `start`, and nobody else can
    /// hold the line: as [`beyond_first`](Self::beyond_first), but `None` if that
    /// has to be asked after all.
    #[inline]
    pub(super) fn express(&mut self, line: Line, write: bool, start: Q8) -> Option<Q8> {
        let at = start.max(self.core.fills.first_free());
        let way = self
            .hierarchy
            .express(self.physical, &self.path, line, write);
        let [_, second, third] = &mut self.thread.counters.level;
        let done = match way {
            Express::No => return None,
            Express::Second(meta) => {
                second.accesses += 1;
                self.thread.counters.useful_prefetches += u64::from(meta.prefetched());
                let done = at + self.latency.level[1];
                let done = if meta.pending() {
                    done.max(self.has_come(line, at))
                } else {
                    done
                };
                self.through_port(Source::Level(1), 0, done)
            }
            Express::Memory => {
                second.accesses += 1;
                second.misses += 1;
                third.accesses += 1;
                third.misses += 1;
                self.thread.counters.memory_reads += 1;
                let done = self.ask_memory(line, at);
                self.through_port(Source::Memory, 0, done)
            }
        };
        self.core.fills.hold(done);
        self.note_fill(line, done);
        self.write_back(at);
        if self.core.watches_l2 {
            self.second_level_prefetch((line, line), way != Express::Memory, at);
        }
        self.settle();
        Some(done)
    }

    /// A demand missed the first level at `at`: finds the line and returns when
    /// it is there.
    pub(super) fn beyond_first(&mut self, want: Want, at: Q8) -> Q8 {
        let at = at.max(self.core.fills.first_free());
        let found = self.hierarchy.miss(self.physical, &want);
        let done = self.arrival(want, found, at);
        let done = self.through_port(found.source, 0, done);
        self.core.fills.hold(done);
        self.note_fill(want.line, done);
        self.write_back(at);
        self.count_levels(found.source);
        self.thread.counters.useful_prefetches += u64::from(found.prefetched);
        // Streams that pass the caches by must not be brought there by prefetchers.
        if self.core.watches_l2 && !want.fetch && !want.transient {
            let lines = (want.line, want.index_line);
            self.second_level_prefetch(lines, found.source == Source::Level(1), at);
        }
        if want.fetch {
            self.thread.last = NO_LINE;
            self.tell_sibling();
        } else {
            self.settle();
        }
        done
    }

    /// A first level took a line for data: what was known of it is void.
    #[inline]
    fn settle(&mut self) {
        self.thread.last = NO_LINE;
        if self.path.fetch == self.path.data[0] {
            // The line of the last fetch may have had to leave.
            self.thread.last_fetch = NO_LINE;
        }
        self.tell_sibling();
    }

    /// The sibling shares the first level: its shortcut may be void.
    #[inline]
    fn tell_sibling(&mut self) {
        self.hierarchy.disturbed += u64::from(self.smt);
    }

    /// The second level's prefetchers see a miss of the first: the line, and the one by which the
    /// first level finds its set.
    #[inline(never)]
    fn second_level_prefetch(&mut self, (line, index): (Line, Line), hit: bool, at: Q8) {
        let mut wishes = Wishes::default();
        let prefetch = &mut self.core.prefetch;
        prefetch.second_level(line, hit, &mut wishes);
        prefetch.demand(line, &mut wishes);
        self.prefetch(&wishes, Some(index), at);
    }

    /// A demand is the first to use a line that came into the first level by prefetch.
    #[inline(never)]
    pub(super) fn first_use(&mut self, (line, index): (Line, Line), at: Q8) {
        let mut wishes = Wishes::default();
        self.core.prefetch.demand(line, &mut wishes);
        self.prefetch(&wishes, Some(index), at);
    }

    /// When a line that could be there at `done` is, if it has to wait on the way in.
    #[inline]
    fn through_port(&mut self, source: Source, into: usize, done: Q8) -> Q8 {
        let from = match source {
            Source::Level(k) => usize::from(k).min(MAX_LEVELS),
            _ => MAX_LEVELS,
        };
        let takes = self.latency.port[into.min(MAX_LEVELS - 1)][from];
        match takes {
            0 => done,
            _ => self.core.port.pass(done.saturating_sub(takes), takes),
        }
    }

    #[inline]
    fn count_levels(&mut self, source: Source) {
        let counters = &mut self.thread.counters;
        let found_at = match source {
            Source::Level(k) => usize::from(k),
            Source::SameGroup => self.levels - 1,
            _ => self.levels,
        };
        let [_, second, third] = &mut counters.level;
        second.accesses += u64::from(self.levels > 1 && found_at >= 1);
        second.misses += u64::from(self.levels > 1 && found_at > 1);
        third.accesses += u64::from(self.levels > 2 && found_at >= 2);
        third.misses += u64::from(self.levels > 2 && found_at > 2);
        let from_a_cache = !matches!(source, Source::Level(_) | Source::Memory);
        counters.transfers += u64::from(from_a_cache);
    }

    /// When a line that was found arrives, if the request leaves at `at`.
    #[inline]
    fn arrival(&mut self, want: Want, found: Found, at: Q8) -> Q8 {
        let (latency, from_another) = match found.source {
            Source::Level(k) => (Some(self.latency.level[usize::from(k).min(2)]), false),
            Source::SameGroup => (Some(self.latency.same_group), true),
            Source::SameSocket => {
                let latency = self.latency.same_socket.or(self.latency.other_socket);
                (latency, true)
            }
            Source::OtherSocket => (self.latency.other_socket, true),
            Source::Memory => (None, false),
        };
        let Some(latency) = latency else {
            let counters = &mut self.thread.counters;
            match want.prefetch {
                true => counters.prefetch_reads += 1,
                false => counters.memory_reads += 1,
            }
            return self.ask_memory(want.line, at);
        };
        // Another core passes a line on only when it has come there itself.
        let leaves = match from_another {
            true => self.has_come(want.line, at),
            false => at,
        };
        let done = if self.memory.carries_transfers() {
            self.carried(want.line, found, leaves, latency)
        } else {
            leaves + latency
        };
        match found.pending {
            true => done.max(self.has_come(want.line, at)),
            false => done,
        }
    }

    /// When a line that some cache has arrives, if the request leaves at `leaves` and buses or
    /// links may be in its way.
    fn carried(&mut self, line: Line, found: Found, leaves: Q8, latency: Q8) -> Q8 {
        let to = self.path.socket;
        let in_group = matches!(found.source, Source::Level(_) | Source::SameGroup);
        match found.from {
            Some(from) => self
                .memory
                .transfer((from, to), !in_group, line, leaves, latency),
            None if found.upgraded => self.memory.upgrade(to, in_group, line, leaves, latency),
            None => leaves + latency,
        }
    }

    /// `at`, or when the last fill of the line that is known ends, if later.
    #[inline]
    pub(super) fn has_come(&self, line: Line, at: Q8) -> Q8 {
        let entry = self.in_flight[in_flight_index(line)];
        match entry.line == line {
            true => at.max(entry.ready),
            false => at,
        }
    }

    #[inline]
    fn ask_memory(&mut self, line: Line, at: Q8) -> Q8 {
        let free = self.core.shared_fills.first_free();
        let leaves = at.max(free) + self.latency.last;
        let fetched = self.memory.read(self.path.socket, line, leaves);
        self.core.shared_fills.hold(fetched.ready);
        let counters = &mut self.thread.counters;
        match fetched.row {
            RowOutcome::Hit => counters.row_hits += 1,
            RowOutcome::Closed => counters.row_closed += 1,
            RowOutcome::Conflict => counters.row_conflicts += 1,
        }
        fetched.ready
    }

    #[inline]
    fn note_fill(&mut self, line: Line, ready: Q8) {
        self.in_flight[in_flight_index(line)] = InFlight { line, ready };
    }

    #[inline]
    fn write_back(&mut self, at: Q8) {
        if !self.hierarchy.writebacks.is_empty() {
            self.write_lines(at);
        }
    }

    #[inline(never)]
    fn write_lines(&mut self, at: Q8) {
        while let Some(WriteBack { line, passes }) = self.hierarchy.writebacks.pop() {
            match passes {
                Some(from) => self.memory.take_over((from, self.path.socket), line, at),
                None => self.memory.write(self.path.socket, line, at),
            }
            self.thread.counters.memory_writes += 1;
        }
    }

    /// Carries out what the first level's prefetchers ask for.
    #[inline(never)]
    pub(super) fn prefetch_pair(&mut self, pair: Pair, at: Q8) {
        let mut wishes = Wishes::default();
        pair.iter().for_each(|line| wishes.push(line, 0));
        self.prefetch(&wishes, None, at);
    }

    /// Carries out prefetches for which a buffer is free. `index` finds the set of the line in whose
    /// page they all are, if the first level's index is virtual.
    #[inline(never)]
    fn prefetch(&mut self, wishes: &Wishes, index: Option<Line>, at: Q8) {
        for wish in wishes.iter() {
            let level = usize::from(wish.into).min(self.levels - 1);
            let caches = &self.hierarchy.topology.caches;
            let held = self.path.data[..=level]
                .iter()
                .any(|c| caches[usize::from(*c)].find_physical(wish.line).is_some());
            if held
                || self.core.shared_fills.first_free() > at
                || u64::from(wish.line) << 6 >= self.memory.size()
            {
                continue;
            }
            let want = Want {
                line: wish.line,
                index_line: index.map_or(wish.line, |index| index & !63 | wish.line & 63),
                write: false,
                fetch: false,
                transient: false,
                into: level as u8,
                prefetch: true,
            };
            let found = self.hierarchy.miss(self.physical, &want);
            let done = self.arrival(want, found, at);
            let done = self.through_port(found.source, level, done);
            self.note_fill(wish.line, done);
            self.write_back(at);
            if level == 0 && self.core.watches_l2 {
                // The second level sees what the first asks for, prefetch or not.
                let mut further = Wishes::default();
                let hit = found.source == Source::Level(1);
                let prefetch = &mut self.core.prefetch;
                prefetch.second_level(wish.line, hit, &mut further);
                self.prefetch(&further, None, at);
            }
            self.thread.counters.prefetches += 1;
            self.thread.last = NO_LINE;
            self.tell_sibling();
        }
    }
}
