//! Which caches a core sees, and which cores see a cache.

use crate::{
    cache::Cache,
    error::SpecError,
    spec::{CacheSpec, Holds, Inclusion, Indexing, MachineSpec},
};

/// Cache levels that a machine can have.
pub(crate) const MAX_LEVELS: usize = 3;

/// A line a microsecond and slower: no core has such caches.
const MAX_LINE_CYCLES: u32 = 1000;

/// One physical core's way to memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    /// Cache of each level for data; only the first `levels` count.
    pub(crate) data: [u16; MAX_LEVELS],
    /// First-level cache for instructions (the data cache if unified).
    pub(crate) fetch: u16,
    /// Last-level group: cores behind one instance of the last level.
    pub(crate) group: u16,
    /// This core's bit among the sharers of its group; cores 16 apart share one.
    pub(crate) bit: u16,
    /// Socket.
    pub(crate) socket: u16,
}

/// What is common to all instances of a level.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    pub(crate) name: String,
    pub(crate) latency: u32,
    /// Core cycles that a line takes from here into the first level; 0 = no limit.
    pub(crate) line_cycles: u32,
    pub(crate) inclusion: Inclusion,
    /// One core per instance.
    pub(crate) private: bool,
}

impl Inclusion {
    /// Is a line that comes from further out put here on its way in?
    #[inline]
    pub(crate) const fn filled_on_miss(self) -> bool {
        matches!(self, Self::NonInclusive | Self::Inclusive)
    }

    /// Does a hit take the line out, if no other core has had it?
    #[inline]
    pub(crate) const fn moves_hits(self) -> bool {
        matches!(self, Self::Exclusive | Self::MostlyExclusive)
    }
}

/// All caches of a machine and how they hang together.
#[derive(Clone, Debug)]
pub(crate) struct Topology {
    pub(crate) caches: Vec<Cache>,
    pub(crate) paths: Vec<Path>,
    pub(crate) levels: Vec<Level>,
    /// Latency and name of the first-level instruction cache.
    pub(crate) fetch_level: Level,
    /// Physical cores of each group as a bitmap.
    pub(crate) groups: Vec<u64>,
}

impl Topology {
    /// Builds the caches of a machine.
    pub(crate) fn new(spec: &MachineSpec, seed: u64) -> Result<Self, SpecError> {
        let cores = count_cores(spec)?;
        let chosen = choose_levels(&spec.cache)?;
        let mut built = Self {
            caches: Vec::new(),
            paths: vec![
                Path {
                    data: [0; MAX_LEVELS],
                    fetch: 0,
                    group: 0,
                    bit: 0,
                    socket: 0
                };
                cores
            ],
            levels: Vec::new(),
            fetch_level: level_of(&spec.cache[chosen.fetch], spec),
            groups: Vec::new(),
        };
        for (depth, at) in chosen.data.iter().enumerate() {
            let cache = &spec.cache[*at];
            check_sharing(spec, &chosen, depth)?;
            built.levels.push(level_of(cache, spec));
            let instances = built.add(cache, *at, cores, seed)?;
            for (core, instance) in instances.into_iter().enumerate() {
                built.paths[core].data[depth] = instance;
                built.paths[core].fetch = match depth {
                    0 => instance,
                    _ => built.paths[core].fetch,
                };
            }
        }
        if chosen.fetch != chosen.data[0] {
            let instances = built.add(&spec.cache[chosen.fetch], chosen.fetch, cores, seed)?;
            for (core, instance) in instances.into_iter().enumerate() {
                built.paths[core].fetch = instance;
            }
        }
        built.form_groups(spec);
        Ok(built)
    }

    /// Builds the instances of one cache; returns the instance of each core.
    fn add(
        &mut self,
        spec: &CacheSpec,
        at: usize,
        cores: usize,
        seed: u64,
    ) -> Result<Vec<u16>, SpecError> {
        let share = usize::from(spec.shared_by);
        let first = self.caches.len();
        for instance in 0..cores.div_ceil(share) {
            let own =
                seed.wrapping_add(((first + instance) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
            self.caches
                .push(Cache::new(spec, &format!("cache[{at}]"), own)?);
        }
        Ok((0..cores).map(|c| (first + c / share) as u16).collect())
    }

    fn form_groups(&mut self, spec: &MachineSpec) {
        let last = self.levels.len() - 1;
        let first_of_last = self.paths[0].data[last];
        for core in 0..self.paths.len() {
            let path = &mut self.paths[core];
            path.group = path.data[last] - first_of_last;
            path.socket = core as u16 / spec.core.per_socket;
            if self.groups.len() <= usize::from(path.group) {
                self.groups.push(0);
            }
            let group = &mut self.groups[usize::from(path.group)];
            path.bit = 1 << (group.count_ones() % 16);
            *group |= 1 << core;
        }
    }
}

fn level_of(cache: &CacheSpec, spec: &MachineSpec) -> Level {
    Level {
        name: cache.name.clone(),
        latency: cache.latency,
        line_cycles: cache.line_cycles,
        inclusion: cache.inclusion,
        private: cache.shared_by == 1 || spec.core.sockets * spec.core.per_socket == 1,
    }
}

fn count_cores(spec: &MachineSpec) -> Result<usize, SpecError> {
    let core = &spec.core;
    if core.sockets == 0 {
        return Err(SpecError::new("core.sockets", 0, "1 to 64"));
    }
    if core.per_socket == 0 {
        return Err(SpecError::new("core.per_socket", 0, "1 to 64"));
    }
    if !(1..=2).contains(&core.smt) {
        return Err(SpecError::new("core.smt", core.smt, "1 or 2"));
    }
    let cores = u64::from(core.sockets) * u64::from(core.per_socket);
    let threads = cores * u64::from(core.smt);
    if threads > piebald_units::MAX_CORES as u64 {
        let allowed = "at most 64 hardware threads in all (sockets x per_socket x smt)";
        return Err(SpecError::new("core.per_socket", core.per_socket, allowed));
    }
    Ok(cores as usize)
}

/// Positions in `spec.cache`: the data path level by level, and the first level
/// of the instruction path.
struct Chosen {
    data: Vec<usize>,
    fetch: usize,
}

fn choose_levels(caches: &[CacheSpec]) -> Result<Chosen, SpecError> {
    let mut data: Vec<usize> = Vec::new();
    let mut fetch = None;
    for (i, cache) in caches.iter().enumerate() {
        let field = |name: &str| format!("cache[{i}].{name}");
        if !(1..=MAX_LEVELS as u8).contains(&cache.level) {
            return Err(SpecError::new(field("level"), cache.level, "1 to 3"));
        }
        if cache.level == 1 && cache.line_cycles != 0 {
            let value = cache.line_cycles;
            let allowed = "0 at level 1: the levels behind it have such limits";
            return Err(SpecError::new(field("line_cycles"), value, allowed));
        }
        if cache.line_cycles > MAX_LINE_CYCLES {
            let allowed = format!("0 to {MAX_LINE_CYCLES}");
            return Err(SpecError::new(
                field("line_cycles"),
                cache.line_cycles,
                allowed,
            ));
        }
        if cache.level > 1 && cache.holds != Holds::Unified {
            let held = cache.holds.name();
            return Err(SpecError::new(
                field("holds"),
                held,
                "unified beyond level 1",
            ));
        }
        if cache.level == 1 && cache.inclusion != Inclusion::NonInclusive {
            let value = format!("{:?}", cache.inclusion).to_lowercase();
            return Err(SpecError::new(
                field("inclusion"),
                value,
                "non-inclusive at level 1",
            ));
        }
        if cache.level > 1 && cache.index == Indexing::Virtual {
            return Err(SpecError::new(
                field("index"),
                "virtual",
                "physical beyond level 1",
            ));
        }
        if cache.shared_by == 0 {
            return Err(SpecError::new(field("shared_by"), 0, "1 or more cores"));
        }
        if cache.holds == Holds::Instruction {
            if fetch.replace(i).is_some() {
                return Err(SpecError::new(
                    field("holds"),
                    "instruction",
                    "one such cache",
                ));
            }
            continue;
        }
        if usize::from(cache.level) != data.len() + 1 {
            let allowed = format!("{} (levels in rising order, one each)", data.len() + 1);
            return Err(SpecError::new(field("level"), cache.level, allowed));
        }
        // Results name the levels.
        if data.iter().any(|other| caches[*other].name == cache.name) {
            let allowed = "a name that no other level has";
            return Err(SpecError::new(field("name"), &cache.name, allowed));
        }
        data.push(i);
    }
    if data.is_empty() {
        return Err(SpecError::new(
            "cache",
            "[]",
            "at least one data or unified cache of level 1",
        ));
    }
    Ok(Chosen {
        fetch: fetch.unwrap_or(data[0]),
        data,
    })
}

fn check_sharing(spec: &MachineSpec, chosen: &Chosen, depth: usize) -> Result<(), SpecError> {
    let at = chosen.data[depth];
    let share = spec.cache[at].shared_by;
    let inner = match depth {
        0 => 1,
        _ => spec.cache[chosen.data[depth - 1]].shared_by,
    };
    if !spec.core.per_socket.is_multiple_of(share) || !share.is_multiple_of(inner) {
        let allowed = format!(
            "a multiple of {inner} (the level inside) that divides the {} cores of a socket",
            spec.core.per_socket
        );
        return Err(SpecError::new(
            format!("cache[{at}].shared_by"),
            share,
            allowed,
        ));
    }
    if depth == 0 && share != 1 {
        return Err(SpecError::new(
            format!("cache[{at}].shared_by"),
            share,
            "1 at level 1",
        ));
    }
    Ok(())
}
