//! MFC on a simulated machine: which caches it is told of, and what it is charged.

use piebald_hw::spec::{CacheSpec, Holds, Inclusion, MachineSpec};
use piebald_policy::{
    contract::reads::{Among, Read, ReadOutcome, ReadRequest},
    mfc::{
        Cell, Config, ConfigError, CoreState, Domain, DomainState, Entry, FileRecord, Level,
        MAX_LEVELS, MAX_OWN_LEVELS, Mfc, SetState, SharedState, Sizes, Slices, Switches, Topology,
    },
};
use piebald_units::{Bytes, CoreSet, FileId, Picos, VirtAddr};

use crate::threads::hops;

/// Memory of MFC in a run.
pub(crate) type Memory = Slices<
    Vec<DomainState>,
    Vec<SharedState>,
    Vec<CoreState>,
    Vec<FileRecord>,
    Vec<SetState>,
    Vec<Cell>,
    Vec<Entry>,
    Vec<u8>,
>;

/// Readers are moved to the files: MFC and what it takes.
///
/// The times are section 6.6.1's, Figure 11: they are charged to the core that asks, as MFC's
/// own instructions are not simulated.
#[derive(Clone, Debug)]
pub struct Reads {
    /// Parameters.
    pub config: Config,
    /// Switches, which stay as they are during a run.
    pub switches: Switches,
    /// Files and chunks that it can tell apart, 1 and more.
    pub files: u32,
    /// Time of a decision for which the file was looked up: none for one that is too small, as
    /// lines 3 and 4 of Figure 2 return before. Published: 0.495 us.
    pub access: Picos,
    /// Time of a decision that assigns a file to a core. Published: 4.101 us.
    pub assignment: Picos,
}

impl Default for Reads {
    fn default() -> Self {
        Self {
            config: Config::PAPER,
            switches: Switches::ALL,
            files: 4096,
            access: Picos(495_000),
            assignment: Picos(4_101_000),
        }
    }
}

impl Reads {
    /// MFC for a machine.
    ///
    /// # Errors
    /// Parameters that are out of range, or caches that it has no name for.
    pub(crate) fn build(&self, domains: &Domains) -> Result<Mfc<Memory>, ConfigError> {
        let topology = domains.topology();
        let sizes = Sizes::of(&topology, &self.config, self.files)?;
        let mfc = Mfc::new(Memory::collect(&sizes), &topology, self.config)?;
        mfc.set_switches(self.switches);
        Ok(mfc)
    }

    /// Can there be such a policy on such a machine?
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, spec: &MachineSpec) -> Result<(), ConfigError> {
        self.build(&Domains::of(spec)).map(|_| ())
    }
}

/// The caches of a machine as MFC sees them.
///
/// A cache counts beside the ones inside it if it holds what those evicted (exclusive and
/// victim caches). One that is filled on a miss holds the same lines as those inside, which then
/// do not count. So each core of `opteron4x4` is a domain with L1 and L2 and a part in its
/// chip's L3, and each chip of a machine with an inclusive L3 is one.
#[derive(Clone, Debug)]
pub struct Domains {
    cores: CoreSet,
    domains: Vec<Domain>,
    shared: Vec<Level>,
    nodes: u8,
    hops: Vec<u8>,
    /// Level of the machine's data path, 0 = first, whose misses are those of each level of
    /// a domain.
    pub(crate) level_of: [Option<usize>; MAX_LEVELS],
}

impl Domains {
    /// The domains of a machine that can be built.
    pub fn of(spec: &MachineSpec) -> Self {
        let caches = spec.cache.iter();
        let data: Vec<&CacheSpec> = caches.filter(|c| c.holds != Holds::Instruction).collect();
        let last = data.len().saturating_sub(1);
        let adds = |k: usize| {
            use Inclusion::{Exclusive, MostlyExclusive, Victim};
            matches!(data[k].inclusion, Exclusive | Victim | MostlyExclusive)
        };
        let is_shared = last > 0 && adds(last) && data[last].shared_by > data[last - 1].shared_by;
        let outer = if is_shared { last - 1 } else { last };
        let mut inner = outer;
        while inner > 0 && adds(inner) {
            inner -= 1;
        }
        let per_domain = data.get(outer).map_or(1, |c| c.shared_by.max(1));
        let mut level_of = [None; MAX_LEVELS];
        let mut own = [Level::default(); MAX_OWN_LEVELS];
        for (k, cache) in (inner..).zip(data.get(inner..=outer).unwrap_or(&[])) {
            // The innermost of more levels than have a name go together.
            let at = (k + MAX_OWN_LEVELS)
                .saturating_sub(outer + 1)
                .min(k - inner);
            let instances = u64::from(per_domain / cache.shared_by.max(1)).max(1);
            own[at] = Level::of(Bytes(own[at].size.0 + cache.size.0 * instances));
            level_of[at] = Some(k);
        }
        if is_shared {
            level_of[MAX_OWN_LEVELS] = Some(last);
        }
        let core = &spec.core;
        let physical = core.sockets * core.per_socket;
        let threads = u32::from(physical * core.smt);
        let domain = |first: u16| Domain {
            cores: (0..core.smt)
                .flat_map(|sibling| {
                    (first..first + per_domain).map(move |c| c + sibling * physical)
                })
                .fold(CoreSet::EMPTY, |set, c| {
                    set.union(CoreSet::one(piebald_units::CoreId(c)))
                }),
            node: (first / core.per_socket.max(1)) as u8,
            own,
            shared: is_shared.then(|| (first / data[last].shared_by) as u8),
        };
        let sharers = if is_shared {
            data[last].shared_by
        } else {
            physical
        };
        let ways = (0..core.sockets).flat_map(|a| (0..core.sockets).map(move |b| (a, b)));
        let far = |(a, b)| hops(spec, usize::from(a), usize::from(b)).min(255) as u8;
        Self {
            cores: CoreSet::first(threads),
            domains: (0..physical)
                .step_by(per_domain.into())
                .map(domain)
                .collect(),
            shared: match is_shared {
                true => vec![Level::of(data[last].size); usize::from(physical / sharers)],
                false => Vec::new(),
            },
            nodes: core.sockets as u8,
            hops: ways.map(far).collect(),
            level_of,
        }
    }

    /// What MFC is given.
    pub fn topology(&self) -> Topology<'_> {
        Topology {
            cores: self.cores,
            domains: &self.domains,
            shared: &self.shared,
            nodes: self.nodes,
            hops: &self.hops,
        }
    }
}

/// A read call under way, whose parts are placed one by one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) file: FileId,
    /// Where the next part begins, and where the call ends.
    pub(crate) offset: u64,
    pub(crate) end: u64,
    /// Where the next part goes; address 0 = nowhere.
    pub(crate) buffer: VirtAddr,
    /// Which of the task's files it is.
    pub(crate) among: Among,
    /// No part has been copied.
    pub(crate) first: bool,
    pub(crate) stage: Stage,
}

/// How far the present part of a read is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stage {
    /// The policy is to be asked.
    Ask,
    /// It has answered; the time of its answer passes where the thread is.
    Go(ReadRequest, Read),
    /// The thread is where it shall read.
    Copy(ReadRequest, Read),
    /// The part is copied.
    Done(ReadOutcome),
}

#[cfg(test)]
mod tests {
    use piebald_hw::presets;
    use piebald_units::CoreId;

    use super::*;

    fn domains(preset: &str) -> Domains {
        Domains::of(&presets::load(preset).expect("a preset"))
    }

    #[test]
    fn the_papers_machine_has_sixteen_domains_on_four_chips() {
        let found = domains("opteron4x4");
        let topology = found.topology();
        assert_eq!(topology.domains.len(), 16);
        let (level, kib) = (|n| Level::of(Bytes(n)), Bytes::KIB);
        for (core, domain) in (0u16..).zip(topology.domains) {
            assert_eq!(domain.cores, CoreSet::one(CoreId(core)));
            assert_eq!(domain.own, [level(64 * kib), level(512 * kib)]);
            assert_eq!(
                (domain.node, domain.shared),
                ((core / 4) as u8, Some((core / 4) as u8))
            );
        }
        assert_eq!(topology.shared, [level(2048 * kib); 4]);
        assert_eq!(
            topology.hops,
            [0, 1, 1, 2, 1, 0, 2, 1, 1, 2, 0, 1, 2, 1, 1, 0]
        );
        assert_eq!(found.level_of, [Some(0), Some(1), Some(2)]);
    }

    #[test]
    fn cores_under_an_inclusive_cache_are_one_domain() {
        let found = domains("w3540");
        let [domain] = found.topology().domains else {
            panic!("{found:?}");
        };
        assert_eq!(domain.cores, found.topology().cores);
        assert_eq!(domain.own[0], Level::of(Bytes(8 * Bytes::MIB)));
        assert_eq!((domain.own[1], domain.shared), (Level::default(), None));
        assert_eq!(found.level_of, [Some(2), None, None]);
    }

    #[test]
    fn mfc_takes_every_preset() {
        for name in presets::names() {
            let spec = presets::load(name).expect("a preset");
            Reads::default()
                .check(&spec)
                .unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }
}
