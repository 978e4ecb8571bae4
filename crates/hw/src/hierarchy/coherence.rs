//! Copies of other cores: found by probing, taken away or told to share.

use super::{Hierarchy, Source, bits};
use crate::{
    cache::{Line, State},
    spec::{Clean, Inclusion},
};

/// What probing other caches found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    pub(super) held: bool,
    pub(super) dirty: bool,
    pub(super) source: Source,
    /// Somebody sends the line; else it comes from memory.
    pub(super) sends: bool,
    /// Socket of the one that sends it if any does.
    pub(super) holder: u16,
}

impl Probe {
    const fn nothing() -> Self {
        Self {
            held: false,
            dirty: false,
            source: Source::SameGroup,
            sends: false,
            holder: 0,
        }
    }

    /// Does one of the caches that were probed send the line?
    const fn sends(self, clean: Clean) -> bool {
        self.dirty || self.held && matches!(clean, Clean::Cache)
    }
}

impl Hierarchy {
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
            let bit = self.topology.paths[core].bit;
            let info = self.topology.caches[cache].info(slot);
            let mut meta = info.meta();
            if meta.state() == State::Shared {
                meta = meta.with_state(State::Exclusive);
            }
            let info = info.with_meta(meta).with_sharers(bit);
            self.topology.caches[cache].set_info(slot, info);
        }
        match (elsewhere, group) {
            (Some(probe), _) => probe.source,
            (None, true) => Source::SameGroup,
            (None, false) => Source::Level(last as u8),
        }
    }

    /// A line was overwritten in memory: no cache holds it any more, and what was
    /// dirty is lost.
    pub(crate) fn discard(&mut self, line: Line) {
        let mut rest = self.active;
        while rest != 0 {
            let core = rest.trailing_zeros() as usize;
            let group = self.group_of(core) & self.active;
            rest &= !group;
            let last = self.levels() - 1;
            let held = self
                .take(self.topology.paths[core].data[last], line)
                .is_some();
            if !held && self.topology.levels[last].inclusion == Inclusion::Inclusive {
                continue;
            }
            for core in bits(group) {
                let path = self.topology.paths[core];
                for level in 0..last {
                    self.take(path.data[level], line);
                }
                self.take(path.fetch, line);
            }
        }
    }

    /// Cores behind the core's last level.
    pub(super) fn group_of(&self, core: usize) -> u64 {
        self.topology.groups[usize::from(self.topology.paths[core].group)]
    }

    /// Cores whose path goes through the same instance of level `k`.
    pub(super) fn cores_behind(&self, core: usize, k: usize) -> u64 {
        let group = self.group_of(core);
        let instance = self.topology.paths[core].data[k];
        (0..self.topology.paths.len())
            .filter(|c| group >> c & 1 == 1 && self.topology.paths[*c].data[k] == instance)
            .fold(0, |set, c| set | 1 << c)
    }

    pub(super) fn group_mates(&self, core: usize) -> u64 {
        self.group_of(core) & self.active & !(1 << core)
    }

    /// Other cores behind level `k` that may hold the line further in.
    pub(super) fn mates_with_copy(&self, core: usize, k: usize, sharers: u16) -> u64 {
        let mates = self.group_mates(core);
        let exact =
            k + 1 == self.levels() && self.topology.levels[k].inclusion == Inclusion::Inclusive;
        if !exact || mates == 0 {
            return mates;
        }
        bits(mates)
            .filter(|other| sharers & self.topology.paths[*other].bit != 0)
            .fold(0, |set, other| set | 1 << other)
    }

    pub(super) fn invalidate_group_mates(&mut self, core: usize, line: Line) -> bool {
        let mates = self.group_mates(core);
        self.probe_cores(core, mates, line, true).held
    }

    /// Asks the caches of `cores` that are not on the asking core's own path.
    pub(super) fn probe_cores(
        &mut self,
        asking: usize,
        cores: u64,
        line: Line,
        write: bool,
    ) -> Probe {
        let own = self.topology.paths[asking];
        let mut result = Probe::nothing();
        for other in bits(cores) {
            let path = self.topology.paths[other];
            let before = result;
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
            // The one that has it modified, or else the first.
            if (result.held, result.dirty) != (before.held, before.dirty) {
                result.holder = path.socket;
            }
        }
        result
    }

    /// Asks the other cores of the group for a line that the last level does not have.
    pub(super) fn probe_group_mates(&mut self, core: usize, line: Line, write: bool) -> Probe {
        let mates = self.group_mates(core);
        let probe = self.probe_cores(core, mates, line, write);
        Probe {
            sends: probe.sends(self.senders.same_group),
            ..probe
        }
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
    pub(super) fn probe_other_groups(
        &mut self,
        core: usize,
        line: Line,
        write: bool,
    ) -> Option<Probe> {
        let own = self.topology.groups[usize::from(self.topology.paths[core].group)];
        let others = self.active & !own;
        if others == 0 {
            return None;
        }
        let socket = self.topology.paths[core].socket;
        let near = bits(others)
            .filter(|other| self.topology.paths[*other].socket == socket)
            .fold(0, |set, other| set | 1 << other);
        let close = self.probe_cores(core, near, line, write);
        let far = self.probe_cores(core, others & !near, line, write);
        if !close.held && !far.held {
            return None;
        }
        let close_sends = close.sends(self.senders.same_socket);
        // A reader waits for the nearest that sends, a writer for the farthest that loses it.
        let far_away = if write { far.held } else { !close_sends };
        Some(Probe {
            held: true,
            dirty: close.dirty || far.dirty,
            source: if far_away {
                Source::OtherSocket
            } else {
                Source::SameSocket
            },
            sends: close_sends || far.sends(self.senders.other_socket),
            holder: if close_sends { socket } else { far.holder },
        })
    }
}
