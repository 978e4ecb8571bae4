//! What the caches hold, recounted: occupancy and the rules.

use super::Hierarchy;
use crate::{
    cache::{Line, State},
    spec::Inclusion,
};

impl Hierarchy {
    /// Share of each owner in groups of sets of the last level:
    /// `cells[bucket][owner]` = lines.
    pub(crate) fn occupancy(&self, group: usize, buckets: usize, owners: usize) -> Vec<Vec<u32>> {
        let last = self.levels() - 1;
        let first_core = self.topology.groups[group].trailing_zeros() as usize;
        let cache = &self.topology.caches[self.cache_at(first_core, last)];
        let mut cells = vec![vec![0; owners]; buckets];
        let sets = cache.sets();
        for (set, _, info) in cache.lines() {
            let bucket = set * buckets / sets;
            if let Some(cell) = cells[bucket].get_mut(usize::from(info.owner())) {
                *cell += 1;
            }
        }
        cells
    }

    /// Dirty lines belong to one group, and no line is owned under MESI.
    fn check_owners(&self) -> Result<(), String> {
        let mut dirty: std::collections::HashMap<Line, (u16, usize)> = Default::default();
        for (core, path) in self.topology.paths.iter().enumerate() {
            for k in 0..self.levels() {
                let cache = &self.topology.caches[self.cache_at(core, k)];
                for (_, line, info) in cache.lines().filter(|l| l.2.meta().dirty()) {
                    if info.meta().state() == State::Owned && !self.moesi {
                        return Err(format!("line {line:#x} of core {core} is owned under MESI"));
                    }
                    let (group, first) = *dirty.entry(line).or_insert((path.group, core));
                    if group != path.group {
                        return Err(format!(
                            "line {line:#x} is dirty in the groups of cores {first} and {core}"
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks the rules of inclusion and coherence over every line held.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let last = self.levels() - 1;
        for core in 0..self.topology.paths.len() {
            for k in 0..last {
                let cache = &self.topology.caches[self.cache_at(core, k)];
                for (_, line, _) in cache.lines() {
                    self.check_inclusion(core, k, line)?;
                }
            }
            for k in 0..last.max(1) {
                let cache = &self.topology.caches[self.cache_at(core, k)];
                for (_, line, info) in cache.lines() {
                    if self.coherent
                        && self.topology.levels[k].private
                        && info.meta().state().alone()
                    {
                        self.check_alone(core, line, info.meta().state())?;
                    }
                }
            }
        }
        if self.coherent {
            self.check_owners()?;
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
            if outer + 1 == self.levels() && cache.info(slot).sharers() & bit == 0 {
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
