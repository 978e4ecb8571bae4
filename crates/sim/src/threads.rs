//! How threads move between cores, and what that costs.

use piebald_hw::spec::MachineSpec;
use piebald_units::{CoreId, CoreSet, Picos};

use crate::{draws::step, reads::Reads};

/// Distances that have a cost of their own: 0 to 3 hops. What is farther costs as 3.
pub const NR_HOPS: usize = 4;

/// How threads move between cores. The default is that of a machine where moving is free:
/// threads stay where they are, except that an idle core takes one that waits.
#[derive(Clone, Debug, Default)]
pub struct Threads {
    /// At timer ticks a waiting thread goes to another core if run queues differ by two or
    /// more.
    pub balance: bool,
    /// What it takes until a thread runs on another core, by hops between the chips: the core
    /// that takes it on is busy for so long, instead of with a switch. Cache misses come on top. 0 = a
    /// switch like any other.
    pub migration: [Picos; NR_HOPS],
    /// Readers are moved to the files.
    pub reads: Option<Reads>,
    /// Seed of a draw: on which of the least loaded cores that it may use each thread starts.
    /// `None` = on the first of them.
    pub first: Option<u64>,
}

impl Threads {
    /// Where a thread of a program would like to start.
    pub(crate) fn first_core(&self, program: usize, thread: u32, cores: CoreSet) -> CoreId {
        let Some(seed) = self.first else {
            return CoreId(0);
        };
        let parts = [program as u64, u64::from(thread)];
        let drawn = parts.into_iter().fold(seed, step);
        let nth = drawn % u64::from(cores.len()).max(1);
        cores.iter().nth(nth as usize).unwrap_or(CoreId(0))
    }
}

/// Where hardware threads are, and what moving between them costs.
pub(crate) struct Distances {
    cores: usize,
    per_socket: usize,
    /// Cost from chip to chip, row by row.
    cost: Vec<Picos>,
    sockets: usize,
}

/// Hops between two chips of a machine.
pub(crate) fn hops(spec: &MachineSpec, from: usize, to: usize) -> u16 {
    let listed = spec.links.hops.get(from).and_then(|row| row.get(to));
    listed.copied().unwrap_or(u16::from(from != to))
}

impl Distances {
    /// `None` if moving is free.
    pub(crate) fn new(spec: &MachineSpec, migration: &[Picos; NR_HOPS]) -> Option<Self> {
        if migration.iter().all(|cost| *cost == Picos(0)) {
            return None;
        }
        let sockets = usize::from(spec.core.sockets);
        let per_socket = usize::from(spec.core.per_socket);
        let ways = (0..sockets).flat_map(|a| (0..sockets).map(move |b| (a, b)));
        let cost = |(a, b)| migration[usize::from(hops(spec, a, b)).min(NR_HOPS - 1)];
        Some(Self {
            cores: sockets * per_socket,
            per_socket,
            cost: ways.map(cost).collect(),
            sockets,
        })
    }

    /// What it takes a thread to come from one hardware thread to another.
    pub(crate) fn cost(&self, from: CoreId, to: CoreId) -> Picos {
        let socket = |core: CoreId| usize::from(core.0) % self.cores / self.per_socket;
        match from == to {
            true => Picos(0),
            false => self.cost[socket(from) * self.sockets + socket(to)],
        }
    }
}

#[cfg(test)]
mod tests {
    use piebald_hw::presets;

    use super::*;

    #[test]
    fn moving_costs_by_the_hops_between_chips() {
        let spec = presets::load("opteron4x4").expect("a preset");
        let costs = [9, 10, 11, 12].map(Picos);
        let way = |a, b| {
            let distances = Distances::new(&spec, &costs).expect("not free");
            distances.cost(CoreId(a), CoreId(b)).0
        };
        // Core 5 is on chip 1, two hops from chip 2 and one from chips 0 and 3.
        let found = [way(5, 5), way(5, 7), way(5, 0), way(5, 15), way(5, 8)];
        assert_eq!(found, [0, 9, 10, 10, 11]);
        assert!(Distances::new(&spec, &[Picos(0); 4]).is_none());
    }

    #[test]
    fn siblings_are_on_one_chip() {
        let mut spec = presets::load("opteron4x4").expect("a preset");
        spec.core.smt = 2;
        let distances = Distances::new(&spec, &[1, 2, 3, 4].map(Picos)).expect("not free");
        assert_eq!(distances.cost(CoreId(3), CoreId(19)), Picos(1));
        assert_eq!(distances.cost(CoreId(3), CoreId(20)), Picos(2));
    }

    #[test]
    fn first_cores_are_drawn_from_those_that_are_allowed() {
        let cores = CoreSet::from_bits(0b1011_0000);
        let threads = |first| Threads {
            first,
            ..Threads::default()
        };
        assert_eq!(threads(None).first_core(0, 3, cores), CoreId(0));
        let drawn = |seed| -> Vec<u16> {
            let threads = threads(Some(seed));
            (0..64).map(|t| threads.first_core(0, t, cores).0).collect()
        };
        assert_eq!(drawn(5), drawn(5));
        assert_ne!(drawn(5), drawn(6));
        for core in 0..16 {
            let allowed = cores.contains(CoreId(core));
            assert_eq!(drawn(5).contains(&core), allowed, "{core}");
        }
        assert_eq!(threads(Some(5)).first_core(0, 0, CoreSet::EMPTY), CoreId(0));
    }
}
