//! The machine as the operating system drives it: [`MemoryPort`].
//!
//! Hardware threads are numbered so that thread `t` runs on physical core
//! `t % cores`: siblings are `cores` apart, as Linux numbers them on the
//! modelled parts.

mod beyond;
mod port;
mod run;
mod watch;

use piebald_units::{Bytes, CoreId, CoreSet, LINE_SHIFT};

use crate::{
    cache::Line,
    counters::Counters,
    error::SpecError,
    features::Features,
    hierarchy::{Hierarchy, SetFill},
    lane::Lane,
    memory::Memory,
    prefetch::Prefetcher,
    shadow::ShadowRequest,
    spec::{CoreSpec, MachineSpec},
    tlb::Tlb,
    topology::{Level, MAX_LEVELS, Topology},
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
    /// Least size of memory that an error offers instead of one that the machine cannot have. Sizes below it can be
    /// built.
    pub least_memory: Bytes,
    /// Watch what reaches the last level, for the misses of all partition sizes.
    /// Changes no result.
    pub shadow: Option<ShadowRequest>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            features: Features::ALL,
            seed: 1,
            disabled_controllers: Vec::new(),
            least_memory: Bytes(0),
            shadow: None,
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
    /// Some prefetcher watches the first level, the second level.
    watches_l1: bool,
    watches_l2: bool,
    /// Some prefetcher waits for the first use of what it brought into the first level.
    watches_first_use: bool,
    fills: Slots,
    shared_fills: Slots,
    /// The way in, which lines pass one after the other.
    port: Lane,
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
    /// Of the last level.
    last: Q8,
    fetch: Q8,
    same_group: Q8,
    same_socket: Option<Q8>,
    other_socket: Option<Q8>,
    second_tlb: Q8,
    /// Time that a line is on the way into a core, by the level that it goes into and the one
    /// that it comes from; what is beyond the last level has the last place.
    port: [[Q8; MAX_LEVELS + 1]; MAX_LEVELS],
}

/// A modelled machine.
#[derive(Clone)]
pub struct Machine {
    hierarchy: Hierarchy,
    memory: Memory,
    threads: Vec<Thread>,
    cores: Vec<Core>,
    in_flight: Box<[InFlight; IN_FLIGHT]>,
    latency: Latencies,
    features: Features,
    levels: Vec<String>,
    fetch_name: String,
    split_first: bool,
    line_instrs: u32,
}

/// Cycles of a line over those of an instruction.
fn line_instrs(core: &CoreSpec) -> u32 {
    let cycles = f64::from(1 << LINE_SHIFT) / f64::from(core.string_bytes);
    ((cycles / core.base_cpi).round() as u32).max(2)
}

/// Lines at equal places of arrays a power of two apart must not meet.
const fn in_flight_index(line: Line) -> usize {
    (line ^ line >> 11 ^ line >> 22) as usize % IN_FLIGHT
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
        let prefetch = Prefetcher::new(prefetch);
        let core = Core {
            tlb,
            watches_l1: prefetch.watches_l1(),
            watches_l2: prefetch.watches_l2(),
            watches_first_use: prefetch.watches_first_use(),
            prefetch,
            fills: Slots::new(spec.core.l1_fill_buffers),
            shared_fills: Slots::new(spec.core.shared_fill_buffers),
            port: Lane::new(),
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
        let memory = Memory::new(spec, cycle, options)?;
        let mut machine = Self {
            hierarchy: Hierarchy::new(topology, features.coherence, &spec.links),
            memory,
            threads: vec![thread; cores * usize::from(spec.core.smt)],
            cores: vec![core; cores],
            in_flight: Box::new(
                [InFlight {
                    line: NO_LINE,
                    ready: 0,
                }; IN_FLIGHT],
            ),
            latency,
            features,
            levels,
            fetch_name,
            split_first,
            line_instrs: line_instrs(&spec.core),
        };
        if let Some(request) = &options.shadow {
            machine.watch(spec, request, options.seed)?;
        }
        Ok(machine)
    }

    /// Instructions that take as long as a string instruction takes for one line that it
    /// copies or clears in the first level; at least 2.
    pub fn line_instrs(&self) -> u32 {
        self.line_instrs
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

    /// What the sets of the data caches behind these hardware threads hold, of everybody and of
    /// one owner. It looks at every line of these caches.
    pub fn set_fill(&self, threads: CoreSet, owner: u8) -> SetFill {
        let mut cores: Vec<usize> = threads
            .iter()
            .map(|t| self.physical(usize::from(t.0)))
            .collect();
        cores.sort_unstable();
        cores.dedup();
        self.hierarchy.set_fill(&cores, owner)
    }

    /// Bytes of one cache of a level of the data path, level 1 being 0; 0 for a level that is
    /// not there.
    pub fn level_bytes(&self, level: usize) -> u64 {
        let topology = &self.hierarchy.topology;
        if level >= topology.levels.len() {
            return 0;
        }
        let cache = &topology.caches[usize::from(topology.paths[0].data[level])];
        ((cache.sets() * cache.ways()) as u64) << LINE_SHIFT
    }

    /// Whether some data cache of a level, level 1 being 0, is behind hardware threads of both
    /// sets.
    pub fn meet(&self, level: usize, one: CoreSet, other: CoreSet) -> bool {
        let paths = &self.hierarchy.topology.paths;
        let of = |thread: CoreId| paths[self.physical(usize::from(thread.0))].data.get(level);
        one.iter().any(|a| other.iter().any(|b| of(a) == of(b)))
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
            last,
            fetch: cycles(topology.fetch_level.latency),
            same_group: links.same_group_transfer.map_or(last, cycles),
            same_socket: links.same_socket_transfer.map(cycles),
            other_socket: links.other_socket_transfer.map(cycles),
            second_tlb: spec.tlb.map_or(0, |t| cycles(t.l2_latency)),
            port: ports(&topology.levels, cycle),
        }
    }
}

/// Time on the way into a core, `[into][from]`. A line that a prefetch leaves in an outer level
/// has the rest of its way before it, so that both together take as long as without prefetch.
fn ports(levels: &[Level], cycle: Q8) -> [[Q8; MAX_LEVELS + 1]; MAX_LEVELS] {
    let whole = |from: usize| levels[from.min(levels.len() - 1)].line_cycles;
    std::array::from_fn(|into| {
        std::array::from_fn(|from| {
            let rest = whole(from).saturating_sub(whole(into));
            Q8::from(rest) * cycle
        })
    })
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
    // Below, a run of some thousand references would take longer than the model's clock counts.
    if !(1_000_000..=100_000_000_000).contains(&core.clock.0) {
        return refuse("clock", &core.clock, "1MHz to 100GHz");
    }
    if !(core.base_cpi > 0.0 && core.base_cpi <= 100.0) {
        return refuse("base_cpi", &core.base_cpi, "more than 0, at most 100");
    }
    if !(1..=16).contains(&core.width) {
        return refuse("width", &core.width, "1 to 16");
    }
    if !(1..=1024).contains(&core.window) {
        return refuse("window", &core.window, "1 to 1024");
    }
    if !(1..=64).contains(&core.l1_fill_buffers) {
        return refuse("l1_fill_buffers", &core.l1_fill_buffers, "1 to 64");
    }
    if !(1..=128).contains(&core.shared_fill_buffers) {
        return refuse("shared_fill_buffers", &core.shared_fill_buffers, "1 to 128");
    }
    if !(1..=64).contains(&core.string_bytes) {
        return refuse("string_bytes", &core.string_bytes, "1 to 64");
    }
    if !(1..=256).contains(&core.store_buffer) {
        return refuse("store_buffer", &core.store_buffer, "1 to 256");
    }
    Ok(())
}
