//! The machine as the operating system drives it: [`MemoryPort`].
//!
//! Hardware threads are numbered so that thread `t` runs on physical core
//! `t % cores`: siblings are `cores` apart, as Linux numbers them on the
//! modelled parts.

use piebald_units::{
    Asid, CoreId, Pfn, Picos, VirtAddr,
    memory::{Load, MemoryPort, PageTables, PhysRef, Progress, Span},
    op::RefKind,
};

use crate::{
    cache::{Line, State},
    counters::Counters,
    dram::RowOutcome,
    error::SpecError,
    features::Features,
    hierarchy::{Found, Hierarchy, Source, Want},
    memory::Memory,
    prefetch::{Prefetcher, Wishes},
    spec::{Inclusion, MachineSpec, Protocol},
    tlb::{Lookup, Tlb},
    topology::Topology,
    window::{Q8, Slots, Window},
};

/// Entries of the table of fills in flight; a fill whose entry was overwritten
/// counts as done.
const IN_FLIGHT: usize = 2048;

/// What the caller may choose beyond the preset.
#[derive(Clone, Debug)]
pub struct Options {
    /// Parts of the model that are on.
    pub features: Features,
    /// Seed of random replacement.
    pub seed: u64,
    /// Memory controllers that are switched off.
    pub disabled_controllers: Vec<u16>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            features: Features::ALL,
            seed: 1,
            disabled_controllers: Vec::new(),
        }
    }
}

/// State of one hardware thread.
#[derive(Clone)]
struct Thread {
    window: Window,
    counters: Counters,
    /// Line of the last first-level data hit, and whether it may be stored to
    /// without asking: references to it skip the lookup.
    last: Line,
    last_writable: bool,
    last_fetch: Line,
    /// `Hierarchy::disturbed` when the two were set: they hold only while no
    /// cache lost or shared a line for another core's sake.
    calm_since: u64,
    running: bool,
}

/// State of one physical core.
#[derive(Clone)]
struct Core {
    tlb: Option<Tlb>,
    prefetch: Prefetcher,
    fills: Slots,
    shared_fills: Slots,
}

#[derive(Clone, Copy)]
struct InFlight {
    line: Line,
    ready: Q8,
}

/// Cycles to each kind of source, in 2^-8 ps.
#[derive(Clone, Debug)]
struct Latencies {
    level: [Q8; 3],
    fetch: Q8,
    same_group: Q8,
    same_socket: Option<Q8>,
    other_socket: Option<Q8>,
    second_tlb: Q8,
}

/// A modelled machine.
#[derive(Clone)]
pub struct Machine {
    hierarchy: Hierarchy,
    memory: Memory,
    threads: Vec<Thread>,
    cores: Vec<Core>,
    in_flight: Vec<InFlight>,
    latency: Latencies,
    features: Features,
    levels: Vec<String>,
    fetch_name: String,
    split_first: bool,
}

/// A line that no reference has.
const NO_LINE: Line = Line::MAX;

impl Machine {
    /// Builds an empty machine.
    ///
    /// # Errors
    /// The first field whose value cannot be built, and what is allowed.
    pub fn new(spec: &MachineSpec, options: &Options) -> Result<Self, SpecError> {
        let cycle = spec
            .core
            .clock
            .cycle_ps_q8()
            .ok_or_else(|| SpecError::new("core.clock", spec.core.clock, "more than 0 Hz"))?;
        check_core(spec)?;
        let topology = Topology::new(spec, options.seed)?;
        let features = options.features;
        let latency = Latencies::new(spec, &topology, cycle);
        let levels = topology.levels.iter().map(|l| l.name.clone()).collect();
        let fetch_name = topology.fetch_level.name.clone();
        let split_first = topology.paths[0].fetch != topology.paths[0].data[0];
        let cores = topology.paths.len();
        let tlb = match spec.tlb.filter(|_| features.tlb) {
            Some(tlb) => Some(Tlb::new(&tlb)?),
            None => None,
        };
        let prefetch = match features.prefetch {
            true => spec.prefetch,
            false => Default::default(),
        };
        let core = Core {
            tlb,
            prefetch: Prefetcher::new(prefetch),
            fills: Slots::new(spec.core.l1_fill_buffers),
            shared_fills: Slots::new(spec.core.shared_fill_buffers),
        };
        let thread = Thread {
            window: Window::new(&spec.core, cycle, features.window),
            counters: Counters::default(),
            last: NO_LINE,
            last_writable: false,
            last_fetch: NO_LINE,
            calm_since: 0,
            running: false,
        };
        let memory = Memory::new(spec, cycle, &options.disabled_controllers)?;
        let moesi = spec.links.protocol == Protocol::Moesi;
        Ok(Self {
            hierarchy: Hierarchy::new(topology, features.coherence, moesi),
            memory,
            threads: vec![thread; cores * usize::from(spec.core.smt)],
            cores: vec![core; cores],
            in_flight: vec![
                InFlight {
                    line: NO_LINE,
                    ready: 0
                };
                IN_FLIGHT
            ],
            latency,
            features,
            levels,
            fetch_name,
            split_first,
        })
    }

    /// Number of hardware threads.
    pub fn hardware_threads(&self) -> usize {
        self.threads.len()
    }

    /// Installed memory in bytes.
    pub const fn memory_bytes(&self) -> u64 {
        self.memory.size()
    }

    /// Which parts of the model are on.
    pub const fn features(&self) -> Features {
        self.features
    }

    /// Names of the data path's levels, level 1 first.
    pub fn level_names(&self) -> &[String] {
        &self.levels
    }

    /// Name of the first-level instruction cache, if it is separate.
    pub fn fetch_name(&self) -> Option<&str> {
        self.split_first.then_some(self.fetch_name.as_str())
    }

    /// Counters of a hardware thread since the machine was built.
    pub fn counters(&self, core: CoreId) -> Counters {
        self.threads[usize::from(core.0)].counters
    }

    /// Says which program runs on a hardware thread from now on: the owner of
    /// the lines that it brings in. `None` = the thread idles, and its SMT
    /// sibling has the core for itself.
    pub fn set_running(&mut self, core: CoreId, owner: Option<u8>) {
        let thread = usize::from(core.0);
        self.threads[thread].running = owner.is_some();
        self.threads[thread].last = NO_LINE;
        self.threads[thread].last_fetch = NO_LINE;
        let physical = thread % self.cores.len();
        if let Some(owner) = owner {
            self.hierarchy.set_owner(physical, owner);
        }
        let siblings: Vec<usize> = (physical..self.threads.len())
            .step_by(self.cores.len())
            .collect();
        let running = siblings
            .iter()
            .filter(|t| self.threads[**t].running)
            .count();
        for t in siblings {
            self.threads[t].window.share(running > 1);
        }
    }

    /// Last-level group of a hardware thread.
    pub fn group_of(&self, core: CoreId) -> usize {
        let physical = self.physical(usize::from(core.0));
        usize::from(self.hierarchy.topology.paths[physical].group)
    }

    /// Number of last-level groups.
    pub fn groups(&self) -> usize {
        self.hierarchy.topology.groups.len()
    }

    /// Lines of each owner in groups of consecutive sets of a last-level cache:
    /// `[bucket][owner]`; `buckets` should divide the number of sets.
    pub fn occupancy(&self, group: usize, buckets: usize, owners: usize) -> Vec<Vec<u32>> {
        self.hierarchy.occupancy(group, buckets, owners)
    }

    /// Lines that one set group of `occupancy` can hold in all.
    pub fn last_level_lines(&self) -> usize {
        let topology = &self.hierarchy.topology;
        let last = topology.levels.len() - 1;
        let cache = &topology.caches[usize::from(topology.paths[0].data[last])];
        cache.sets() * cache.ways()
    }

    /// Recounts inclusion and coherence over all lines held.
    ///
    /// # Errors
    /// The first rule that does not hold, in words.
    pub fn validate(&self) -> Result<(), String> {
        self.hierarchy.validate()
    }

    #[inline]
    fn physical(&self, thread: usize) -> usize {
        let cores = self.cores.len();
        if thread < cores {
            thread
        } else {
            thread % cores
        }
    }

    /// Translation time that an access pays before it can start.
    fn translate(
        &mut self,
        thread: usize,
        space: &dyn PageTables,
        addr: VirtAddr,
        fetch: bool,
    ) -> Q8 {
        let core = self.physical(thread);
        let asid = space.asid();
        let Some(tlb) = &mut self.cores[core].tlb else {
            return 0;
        };
        if tlb.same_page(asid, addr, fetch) {
            return 0;
        }
        match tlb.lookup(asid, addr, fetch) {
            Lookup::First => 0,
            Lookup::Second => {
                self.threads[thread].counters.tlb_misses += 1;
                self.latency.second_tlb
            }
            Lookup::Miss => {
                self.threads[thread].counters.tlb_misses += 1;
                self.walk(thread, space, addr, fetch)
            }
        }
    }

    /// Reads the page-table entries one after the other through the caches.
    fn walk(&mut self, thread: usize, space: &dyn PageTables, addr: VirtAddr, fetch: bool) -> Q8 {
        let core = self.physical(thread);
        let walk = space.walk(addr);
        let start = self.threads[thread].window.now;
        let mut at = start;
        self.threads[thread].counters.walks += 1;
        let levels = walk.levels.min(4);
        let asid = space.asid();
        let skip = match &mut self.cores[core].tlb {
            Some(tlb) => {
                tlb.insert(asid, addr, fetch, walk.page);
                tlb.skip_levels(asid, addr, levels)
            }
            None => 0,
        };
        for entry in &walk.entries[usize::from(skip)..usize::from(levels)] {
            let line = (entry.0 >> 6) as Line;
            at = self.read_through(thread, line, at, false);
        }
        at - start + self.latency.second_tlb
    }

    /// A read through the data path that no instruction makes; returns its end.
    fn read_through(&mut self, thread: usize, line: Line, at: Q8, transient: bool) -> Q8 {
        let core = self.physical(thread);
        let first = self.hierarchy.first(core, false);
        let cache = &mut self.hierarchy.topology.caches[first];
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
        self.beyond_first(thread, want, at)
    }

    /// A demand missed the first level at `at`: finds the line and returns when
    /// it is there.
    fn beyond_first(&mut self, thread: usize, want: Want, at: Q8) -> Q8 {
        let core = self.physical(thread);
        let at = at.max(self.cores[core].fills.first_free());
        let found = self.hierarchy.miss(core, want);
        let done = self.arrival(thread, core, want, found, at);
        self.cores[core].fills.hold(done);
        self.note_fill(want.line, done);
        self.write_back(thread, core, at);
        self.count_levels(thread, found.source);
        if !want.fetch && self.cores[core].prefetch.watches_l2() {
            let mut wishes = Wishes::default();
            let hit = found.source == Source::Level(1);
            self.cores[core]
                .prefetch
                .second_level(want.line, hit, &mut wishes);
            self.prefetch(thread, &wishes, at);
        }
        self.threads[thread].last = NO_LINE;
        if !self.split_first && !want.fetch {
            // The line of the last fetch may have had to leave.
            self.threads[thread].last_fetch = NO_LINE;
        }
        if self.threads.len() > self.cores.len() {
            // An SMT sibling shares the first level: its shortcut may be void.
            self.hierarchy.disturbed += 1;
        }
        done
    }

    fn count_levels(&mut self, thread: usize, source: Source) {
        let levels = self.levels.len();
        let counters = &mut self.threads[thread].counters;
        let found_at = match source {
            Source::Level(k) => usize::from(k),
            Source::SameGroup => levels - 1,
            _ => levels,
        };
        for k in 1..levels.min(found_at + 1) {
            counters.level[k].accesses += 1;
            counters.level[k].misses += u64::from(k < found_at);
        }
        if !matches!(source, Source::Level(_) | Source::Memory) {
            counters.transfers += 1;
        }
    }

    /// When a line that was found arrives, if the request leaves at `at`.
    fn arrival(&mut self, thread: usize, core: usize, want: Want, found: Found, at: Q8) -> Q8 {
        let last = self.levels.len() - 1;
        let done = match found.source {
            Source::Level(k) => at + self.latency.level[usize::from(k).min(2)],
            Source::SameGroup => at + self.latency.same_group,
            Source::SameSocket => match self.latency.same_socket.or(self.latency.other_socket) {
                Some(latency) => at + latency,
                None => return self.ask_memory(thread, core, want, at, last),
            },
            Source::OtherSocket => match self.latency.other_socket {
                Some(latency) => at + latency,
                None => return self.ask_memory(thread, core, want, at, last),
            },
            Source::Memory => return self.ask_memory(thread, core, want, at, last),
        };
        if !found.pending {
            return done;
        }
        let entry = self.in_flight[want.line as usize % IN_FLIGHT];
        if entry.line == want.line {
            done.max(entry.ready)
        } else {
            done
        }
    }

    fn ask_memory(&mut self, thread: usize, core: usize, want: Want, at: Q8, last: usize) -> Q8 {
        let socket = self.hierarchy.topology.paths[core].socket;
        let free = self.cores[core].shared_fills.first_free();
        let leaves = at.max(free) + self.latency.level[last];
        let fetched = self.memory.read(socket, want.line, leaves);
        self.cores[core].shared_fills.hold(fetched.ready);
        let counters = &mut self.threads[thread].counters;
        match want.prefetch {
            true => counters.prefetch_reads += 1,
            false => counters.memory_reads += 1,
        }
        match fetched.row {
            RowOutcome::Hit => counters.row_hits += 1,
            RowOutcome::Closed => counters.row_closed += 1,
            RowOutcome::Conflict => counters.row_conflicts += 1,
        }
        fetched.ready
    }

    fn note_fill(&mut self, line: Line, ready: Q8) {
        self.in_flight[line as usize % IN_FLIGHT] = InFlight { line, ready };
    }

    fn write_back(&mut self, thread: usize, core: usize, at: Q8) {
        let socket = self.hierarchy.topology.paths[core].socket;
        while let Some(line) = self.hierarchy.writebacks.pop() {
            self.memory.write(socket, line, at);
            self.threads[thread].counters.memory_writes += 1;
        }
    }

    /// Carries out prefetches for which a buffer is free.
    fn prefetch(&mut self, thread: usize, wishes: &Wishes, at: Q8) {
        let core = self.physical(thread);
        for wish in wishes.iter() {
            let level = usize::from(wish.into).min(self.levels.len() - 1);
            let path = self.hierarchy.topology.paths[core];
            let holds = |k: usize| {
                let cache = &self.hierarchy.topology.caches[usize::from(path.data[k])];
                cache.find_physical(wish.line).is_some()
            };
            let exclusive = self.hierarchy.topology.levels[level].inclusion == Inclusion::Exclusive;
            if holds(level)
                || (exclusive && holds(0))
                || self.cores[core].shared_fills.first_free() > at
                || u64::from(wish.line) << 6 >= self.memory.size()
            {
                continue;
            }
            let want = Want {
                line: wish.line,
                index_line: wish.line,
                write: false,
                fetch: false,
                transient: false,
                into: level as u8,
                prefetch: true,
            };
            let found = self.hierarchy.miss(core, want);
            let done = self.arrival(thread, core, want, found, at);
            self.note_fill(wish.line, done);
            self.write_back(thread, core, at);
            let state = &mut self.threads[thread];
            state.counters.prefetches += 1;
            state.last = NO_LINE;
            if self.threads.len() > self.cores.len() {
                self.hierarchy.disturbed += 1;
            }
        }
    }

    /// One line of a data reference. Returns nothing: time is in the window.
    #[inline]
    fn data_line(&mut self, thread: usize, r: &PhysRef, line: Line, start: Q8) {
        let core = self.physical(thread);
        let write = r.kind.writes();
        let reads = r.kind != RefKind::Store;
        let disturbed = self.hierarchy.disturbed;
        let state = &mut self.threads[thread];
        let calm = state.calm_since == disturbed;
        if line == state.last && calm && (!write || state.last_writable) {
            if reads {
                first_level_load(&mut state.window, start, self.latency.level[0]);
            }
            return;
        }
        let first = self.hierarchy.first(core, false);
        let cache = &mut self.hierarchy.topology.caches[first];
        let index_line = match cache.aliases() {
            true => (r.vaddr.0 >> 6) as Line & !63 | line & 63,
            false => line,
        };
        let Some(slot) = cache.find(cache.set_of(index_line), line) else {
            self.first_level_miss(thread, r, line, index_line, start);
            return;
        };
        cache.touch(slot);
        let meta = cache.meta(slot);
        let mut ready = start + self.latency.level[0];
        if meta.pending() || meta.prefetched() {
            let entry = self.in_flight[line as usize % IN_FLIGHT];
            let useful = u64::from(meta.prefetched());
            let cache = &mut self.hierarchy.topology.caches[first];
            self.threads[thread].counters.useful_prefetches += useful;
            if entry.line == line && entry.ready > ready {
                ready = entry.ready;
            } else {
                cache.set_meta(slot, meta.settled());
            }
        }
        let meta = self.hierarchy.topology.caches[first].meta(slot);
        if write && meta.state() != State::Modified {
            if meta.state() != State::Exclusive {
                ready = ready.max(self.upgrade(thread, core, line, start));
            }
            let cache = &mut self.hierarchy.topology.caches[first];
            cache.set_meta(slot, meta.with_state(State::Modified));
        }
        let waited = ready > start + self.latency.level[0];
        let state = &mut self.threads[thread];
        state.last = if waited { NO_LINE } else { line };
        state.last_writable = write;
        if state.calm_since != disturbed {
            state.calm_since = disturbed;
            state.last_fetch = NO_LINE;
        }
        match (reads, waited) {
            (true, false) => first_level_load(&mut state.window, start, self.latency.level[0]),
            (true, true) => finish_load(&mut state.window, ready),
            (false, true) => state.window.store(ready),
            (false, false) => {}
        }
    }

    fn upgrade(&mut self, thread: usize, core: usize, line: Line, start: Q8) -> Q8 {
        if !self.features.coherence {
            return start;
        }
        let told = self.hierarchy.upgrade(core, line);
        self.threads[thread].counters.upgrades += 1;
        match told {
            Source::Level(k) => start + self.latency.level[usize::from(k).min(2)],
            Source::SameGroup => start + self.latency.same_group,
            Source::SameSocket => {
                start + self.latency.same_socket.unwrap_or(self.latency.same_group)
            }
            _ => start + self.latency.other_socket.unwrap_or(self.latency.same_group),
        }
    }

    fn first_level_miss(
        &mut self,
        thread: usize,
        r: &PhysRef,
        line: Line,
        index_line: Line,
        start: Q8,
    ) {
        let write = r.kind.writes();
        let want = Want {
            line,
            index_line,
            write,
            fetch: false,
            transient: r.kind == RefKind::LoadNt,
            into: 0,
            prefetch: false,
        };
        self.threads[thread].counters.level[0].misses += 1;
        let done = self.beyond_first(thread, want, start);
        let window = &mut self.threads[thread].window;
        match r.kind {
            RefKind::Store => window.store(done),
            _ => finish_load(window, done),
        }
    }

    fn fetch_line(&mut self, thread: usize, r: &PhysRef, line: Line, start: Q8) {
        let state = &mut self.threads[thread];
        if state.last_fetch == line && state.calm_since == self.hierarchy.disturbed {
            return;
        }
        state.last_fetch = line;
        self.threads[thread].counters.fetch.accesses += 1;
        let core = self.physical(thread);
        let first = self.hierarchy.first(core, true);
        let cache = &mut self.hierarchy.topology.caches[first];
        let index_line = match cache.aliases() {
            true => (r.vaddr.0 >> 6) as Line & !63 | line & 63,
            false => line,
        };
        if let Some(slot) = cache.find(cache.set_of(index_line), line) {
            cache.touch(slot);
            return;
        }
        self.threads[thread].counters.fetch.misses += 1;
        let want = Want {
            line,
            index_line,
            write: false,
            fetch: true,
            transient: false,
            into: 0,
            prefetch: false,
        };
        let done = self.beyond_first(thread, want, start);
        // The front end has run ahead by about the first level's own latency.
        self.threads[thread]
            .window
            .stall(done.saturating_sub(self.latency.fetch));
    }

    /// One reference; the window has been advanced to its dispatch.
    #[inline]
    fn reference(&mut self, thread: usize, space: &dyn PageTables, r: &PhysRef) {
        let line = (r.paddr().0 >> 6) as Line;
        let last_byte = (r.paddr().0 & 63) + u64::from(r.size.max(1)) - 1;
        if r.kind == RefKind::Fetch {
            if !self.features.fetch {
                return;
            }
            let walk = self.translate(thread, space, r.vaddr, true);
            let start = self.threads[thread].window.now + walk;
            self.threads[thread].window.stall(start);
            self.fetch_line(thread, r, line, start);
            return;
        }
        let counters = &mut self.threads[thread].counters;
        counters.references += 1;
        counters.level[0].accesses += 1;
        let walk = match self.features.tlb {
            true => self.translate(thread, space, r.vaddr, false),
            false => 0,
        };
        let start = self.threads[thread].window.start(r.dep) + walk;
        self.data_line(thread, r, line, start);
        // A reference past the end of its page was split by the operating system.
        if last_byte >= 64 && line & 63 != 63 {
            let second = PhysRef {
                kind: RefKind::Store,
                ..*r
            };
            let second = if r.kind.writes() { &second } else { r };
            self.crossing(thread, second, line + 1, start);
        }
        let core = self.physical(thread);
        if self.cores[core].prefetch.watches_l1() && r.kind == RefKind::Load {
            let mut wishes = Wishes::default();
            let prefetch = &mut self.cores[core].prefetch;
            prefetch.load(r.paddr().0, r.site, &mut wishes);
            self.prefetch(thread, &wishes, start);
        }
    }

    /// The second line of a reference that crosses a line. It must not count as
    /// a further load of the program, or dependences would point astray.
    fn crossing(&mut self, thread: usize, r: &PhysRef, line: Line, start: Q8) {
        let core = self.physical(thread);
        let first = self.hierarchy.first(core, false);
        let cache = &mut self.hierarchy.topology.caches[first];
        if let Some(slot) = cache.find_physical(line)
            && (!r.kind.writes() || cache.meta(slot).state() == State::Modified)
        {
            cache.touch(slot);
            return;
        }
        if r.kind.writes() {
            self.data_line(thread, r, line, start);
            return;
        }
        self.threads[thread].counters.level[0].misses += 1;
        let done = self.read_through(thread, line, start, false);
        self.threads[thread].window.extend(done);
    }

    /// Would the reference stay in the thread's private caches? Changes nothing.
    fn stays_private(&self, thread: usize, r: &PhysRef) -> bool {
        let line = (r.paddr().0 >> 6) as Line;
        let fetch = r.kind == RefKind::Fetch;
        let state = &self.threads[thread];
        let known = if fetch { state.last_fetch } else { state.last };
        line == known
            || self
                .hierarchy
                .private_holds(self.physical(thread), line, fetch)
    }
}

/// A load that hits the first level and may have waited for its address.
#[inline]
fn first_level_load(window: &mut Window, start: Q8, latency: Q8) {
    if start == window.now {
        window.quick_load(latency);
    } else {
        finish_load(window, start + latency);
    }
}

#[inline]
fn finish_load(window: &mut Window, done: Q8) {
    if window.overlaps() {
        window.load(done);
    } else {
        window.load_blocking(done);
    }
}

impl Latencies {
    fn new(spec: &MachineSpec, topology: &Topology, cycle: Q8) -> Self {
        let cycles = |n: u32| Q8::from(n) * cycle;
        let mut level = [0; 3];
        for (k, l) in topology.levels.iter().enumerate() {
            level[k] = cycles(l.latency);
        }
        let last = level[topology.levels.len() - 1];
        let links = &spec.links;
        Self {
            level,
            fetch: cycles(topology.fetch_level.latency),
            same_group: links.same_group_transfer.map_or(last, cycles),
            same_socket: links.same_socket_transfer.map(cycles),
            other_socket: links.other_socket_transfer.map(cycles),
            second_tlb: spec.tlb.map_or(0, |t| cycles(t.l2_latency)),
        }
    }
}

fn check_core(spec: &MachineSpec) -> Result<(), SpecError> {
    let core = &spec.core;
    let refuse = |field: &str, value: &dyn ToString, allowed: &str| {
        Err(SpecError::new(
            format!("core.{field}"),
            value.to_string(),
            allowed,
        ))
    };
    if !(core.base_cpi > 0.0 && core.base_cpi <= 100.0) {
        return refuse("base_cpi", &core.base_cpi, "more than 0, at most 100");
    }
    if !(1..=16).contains(&core.width) {
        return refuse("width", &core.width, "1..=16");
    }
    if !(1..=1024).contains(&core.window) {
        return refuse("window", &core.window, "1..=1024");
    }
    if !(1..=64).contains(&core.l1_fill_buffers) {
        return refuse("l1_fill_buffers", &core.l1_fill_buffers, "1..=64");
    }
    if !(1..=128).contains(&core.shared_fill_buffers) {
        return refuse("shared_fill_buffers", &core.shared_fill_buffers, "1..=128");
    }
    if !(1..=256).contains(&core.store_buffer) {
        return refuse("store_buffer", &core.store_buffer, "1..=256");
    }
    Ok(())
}

impl MemoryPort for Machine {
    fn run(
        &mut self,
        core: CoreId,
        space: &dyn PageTables,
        refs: &[PhysRef],
        now: Picos,
        horizon: Picos,
    ) -> Progress {
        let thread = usize::from(core.0);
        self.hierarchy.activate(self.physical(thread));
        self.threads[thread].window.set_now(now.0);
        let horizon = horizon.0.min(u64::MAX >> 8) << 8;
        let mut done = refs.len();
        for (i, r) in refs.iter().enumerate() {
            if self.threads[thread].window.now > horizon && !self.stays_private(thread, r) {
                done = i;
                break;
            }
            let state = &mut self.threads[thread];
            state.window.dispatch(r.gap);
            state.counters.instructions += u64::from(r.gap);
            self.reference(thread, space, r);
        }
        Progress {
            done,
            now: Picos(self.threads[thread].window.now >> 8),
        }
    }

    fn retire(&mut self, core: CoreId, instrs: u32, now: Picos) -> Picos {
        let thread = &mut self.threads[usize::from(core.0)];
        thread.window.set_now(now.0);
        thread.window.dispatch(instrs);
        thread.counters.instructions += u64::from(instrs);
        Picos(thread.window.now >> 8)
    }

    fn copy(
        &mut self,
        core: CoreId,
        from: Pfn,
        to: Pfn,
        span: Span,
        load: Load,
        now: Picos,
    ) -> Picos {
        let kind = match load {
            Load::Caching => RefKind::Load,
            Load::NonCaching => RefKind::LoadNt,
        };
        self.sweep(core, span, now, |offset, each| {
            each(from, offset, kind);
            each(to, offset, RefKind::Store);
        })
    }

    fn fill(&mut self, core: CoreId, frame: Pfn, span: Span, now: Picos) -> Picos {
        self.sweep(core, span, now, |offset, each| {
            each(frame, offset, RefKind::Store)
        })
    }

    fn drain(&mut self, core: CoreId, now: Picos) -> Picos {
        let window = &mut self.threads[usize::from(core.0)].window;
        window.set_now(now.0);
        window.drain();
        Picos(window.now >> 8)
    }

    fn shoot_down(&mut self, asid: Asid, page: Option<VirtAddr>) {
        for core in &mut self.cores {
            if let Some(tlb) = &mut core.tlb {
                tlb.shoot_down(asid, page);
            }
        }
    }
}

/// The kernel's own address space: mapped by huge pages that never miss.
struct KernelSpace;

impl PageTables for KernelSpace {
    fn asid(&self) -> Asid {
        Asid(0xff_ffff)
    }

    fn walk(&self, _: VirtAddr) -> piebald_units::memory::Walk {
        piebald_units::memory::Walk {
            entries: Default::default(),
            levels: 0,
            page: piebald_units::PageSize::Huge,
        }
    }
}

/// Bytes that the kernel's copy and clear loops move with one instruction.
const SWEEP_BYTES: u16 = 64;

impl Machine {
    /// Runs over a span line by line; `step` names the references of one line.
    fn sweep(
        &mut self,
        core: CoreId,
        span: Span,
        now: Picos,
        mut step: impl FnMut(u16, &mut dyn FnMut(Pfn, u16, RefKind)),
    ) -> Picos {
        let end = u32::from(span.offset) + u32::from(span.len);
        let mut refs = [PhysRef::default(); 128];
        let mut n = 0;
        let mut offset = span.offset & !(SWEEP_BYTES - 1);
        while u32::from(offset) < end && offset < 4096 {
            step(offset, &mut |frame, offset, kind| {
                if n < refs.len() {
                    refs[n] = PhysRef {
                        vaddr: VirtAddr(u64::from(offset) | frame.0 << 12),
                        frame: frame.0 as u32,
                        gap: 2,
                        size: 64,
                        kind,
                        ..PhysRef::default()
                    };
                    n += 1;
                }
            });
            offset += SWEEP_BYTES;
        }
        // Kernel copies are not the program's references.
        let thread = usize::from(core.0);
        let before = self.threads[thread].counters.references;
        let progress = self.run(core, &KernelSpace, &refs[..n], now, Picos::MAX);
        self.threads[thread].counters.references = before;
        progress.now
    }
}
