//! The way of most misses: a demand for data that nobody else can hold.
//!
//! Where every level outside the first is filled on a miss and gives only dirty
//! victims on, a miss of all levels leaves nothing to decide, and a hit in a
//! private second level little. What is done here is what
//! [`Hierarchy::miss`] would do, without asking.

use super::{Hierarchy, inner_state};
use crate::{
    cache::{Info, Line, Meta, State},
    spec::Inclusion,
    topology::{Path, Topology},
};

/// Where a demand on the express way ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Express {
    /// In the second level: what is known of the line there.
    Second(Meta),
    /// In memory.
    Memory,
    /// Nothing was done: the long way must be gone.
    No,
}

/// Can the machine's caches use the express way at all?
pub(super) fn is_possible(topology: &Topology) -> bool {
    let levels = &topology.levels;
    let filled = |k: usize| levels[k].inclusion.filled_on_miss();
    let one_index = |p: &Path| !topology.caches[usize::from(p.data[0])].aliases();
    levels.len() == 3
        && levels[1].private
        && levels[1].inclusion == Inclusion::NonInclusive
        && filled(2)
        && topology.paths.iter().all(one_index)
}

impl Hierarchy {
    /// Is a line that a core's path does not hold with no other core either?
    pub(crate) fn is_express(&self, core: usize) -> bool {
        let last = self.topology.levels[self.levels - 1].inclusion;
        let spoken_for = match last {
            // What its last level does not hold, no core of the group holds.
            Inclusion::Inclusive => self.group_of(core),
            _ => 1 << core,
        };
        self.express && (!self.coherent || self.active & !spoken_for == 0)
    }

    /// A demand for data missed the first level of a core for which
    /// [`is_express`](Self::is_express) holds.
    #[inline(always)]
    pub(crate) fn express(&mut self, core: usize, path: &Path, line: Line, write: bool) -> Express {
        let caches = &mut self.topology.caches;
        let owner = self.owner[core];
        let second = &mut caches[usize::from(path.data[1])];
        let second_set = second.set_of(line);
        if let Some(slot) = second.find(second_set, line) {
            let info = second.info(slot);
            let meta = info.meta();
            if write && self.coherent && !meta.state().alone() {
                return Express::No;
            }
            second.touch(slot);
            let mut now = meta.settled();
            if write && now.state() == State::Shared {
                now = now.with_state(State::Exclusive);
            }
            let sharers = match write && self.coherent {
                true => path.bit,
                false => info.sharers() | path.bit,
            };
            second.set_info(slot, Info::new(now, sharers, info.owner()));
            let state = if write {
                State::Modified
            } else {
                inner_state(meta.state())
            };
            let first = Info::new(Meta::new(state).with_pending(), 0, owner);
            self.fill(core, 0, path.data[0], line, line, first);
            return Express::Second(meta);
        }
        let third = &mut caches[usize::from(path.data[2])];
        let third_set = third.set_of(line);
        if third.find(third_set, line).is_some() {
            return Express::No;
        }
        let alone = Meta::new(State::Exclusive).with_pending();
        if let Some(gone) = third.insert(third_set, line, Info::new(alone, path.bit, owner))
            && self.rules[2].matters(gone)
        {
            self.evict(core, 2, gone);
        }
        let second = &mut self.topology.caches[usize::from(path.data[1])];
        if let Some(gone) = second.insert(second_set, line, Info::new(alone, 0, owner))
            && gone.info.meta().dirty()
        {
            self.evict(core, 1, gone);
        }
        let state = if write {
            State::Modified
        } else {
            State::Exclusive
        };
        let first = Info::new(Meta::new(state).with_pending(), 0, owner);
        self.fill(core, 0, path.data[0], line, line, first);
        Express::Memory
    }
}
