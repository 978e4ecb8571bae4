//! One hardware thread at work: references, from dispatch to the first level.
//!
//! Most references hit the first level, many of them the line of the one
//! before. [`Run`] therefore borrows everything that a reference may touch once
//! per batch, and the common cases come first: the same line again, then a hit
//! with nothing to wait for. What is left is kept out of their way.

use piebald_units::{
    Asid,
    memory::{PageTables, PhysRef},
    op::RefKind,
};

use super::{InFlight, Latencies, NO_LINE, Thread};
use crate::{
    cache::{Line, Slot, State},
    hierarchy::{Hierarchy, Source, Want},
    machine::{Core, IN_FLIGHT},
    memory::Memory,
    topology::Path,
    window::{Q8, Window},
};

/// One hardware thread, its core, and all that they share with others.
pub(super) struct Run<'a> {
    pub(super) thread: &'a mut Thread,
    pub(super) core: &'a mut Core,
    pub(super) hierarchy: &'a mut Hierarchy,
    pub(super) memory: &'a mut Memory,
    pub(super) in_flight: &'a mut [InFlight; IN_FLIGHT],
    pub(super) latency: &'a Latencies,
    pub(super) space: &'a dyn PageTables,
    pub(super) asid: Asid,
    /// Number of the physical core.
    pub(super) physical: usize,
    pub(super) path: Path,
    pub(super) levels: usize,
    /// Another hardware thread shares the first level.
    pub(super) smt: bool,
    /// Instruction fetches go through the caches.
    pub(super) fetches: bool,
    pub(super) coherent: bool,
}

impl Run<'_> {
    /// References from the front of `refs`, until one would leave the private
    /// caches past the horizon; returns how many are done.
    pub(super) fn batch(&mut self, refs: &[PhysRef], horizon: Q8) -> usize {
        let mut done = 0;
        let mut instructions = 0;
        let mut data = 0;
        for r in refs {
            // A load whose address is not known yet leaves the core later than its
            // dispatch; a chain of them, microseconds later.
            let leaves = match r.kind {
                RefKind::Fetch => self.thread.window.now,
                _ => self.thread.window.start(r.dep),
            };
            if leaves > horizon && !self.stays_private(r) {
                self.thread.window.wait_for(leaves);
                break;
            }
            done += 1;
            instructions += u64::from(r.gap);
            self.thread.window.dispatch(r.gap);
            if r.kind == RefKind::Fetch {
                self.fetch(r);
            } else {
                data += 1;
                self.reference(r);
            }
        }
        let counters = &mut self.thread.counters;
        counters.instructions += instructions;
        counters.references += data;
        counters.level[0].accesses += data;
        done
    }

    /// Would the reference stay in the thread's private caches? Changes nothing.
    #[cold]
    fn stays_private(&self, r: &PhysRef) -> bool {
        let line = line_of(r);
        let fetch = r.kind == RefKind::Fetch;
        let known = if fetch {
            self.thread.last_fetch
        } else {
            self.thread.last
        };
        line == known || self.hierarchy.private_holds(self.physical, line, fetch)
    }

    /// One data reference; the window has been advanced to its dispatch.
    #[inline(always)]
    fn reference(&mut self, r: &PhysRef) {
        let line = line_of(r);
        let start = self.thread.window.start(r.dep);
        let start = self.translate(r.vaddr, start, false);
        self.data_line(r, r.kind, line, start);
        // A reference past the end of its page was split by the operating system.
        let last_byte = (r.vaddr.0 & 63) + u64::from(r.size.max(1)) - 1;
        if last_byte >= 64 && line & 63 != 63 {
            self.crossing(r, line + 1, start);
        }
        if self.core.watches_l1 && r.kind == RefKind::Load {
            self.first_level_prefetch(r, start);
        }
    }

    /// One line of a data reference. Returns nothing: time is in the window.
    #[inline(always)]
    fn data_line(&mut self, r: &PhysRef, kind: RefKind, line: Line, start: Q8) {
        let write = kind.writes();
        let disturbed = self.hierarchy.disturbed;
        let thread = &mut *self.thread;
        let calm = thread.calm_since == disturbed;
        if line == thread.last && calm && (!write || thread.last_writable) {
            if kind != RefKind::Store {
                first_level_load(&mut thread.window, start, self.latency.level[0]);
            }
            return;
        }
        let cache = &mut self.hierarchy.topology.caches[usize::from(self.path.data[0])];
        let index_line = match cache.aliases() {
            true => (r.vaddr.0 >> 6) as Line & !63 | line & 63,
            false => line,
        };
        let Some(slot) = cache.find(cache.set_of(index_line), line) else {
            self.first_level_miss(kind, line, index_line, start);
            return;
        };
        cache.touch(slot);
        let meta = cache.meta(slot);
        if !meta.is_settled() || (write && meta.state() != State::Modified) {
            self.unsettled_hit(kind, slot, line, start);
            return;
        }
        thread.last = line;
        thread.last_writable = write;
        if !calm {
            thread.calm_since = disturbed;
            thread.last_fetch = NO_LINE;
        }
        if kind != RefKind::Store {
            first_level_load(&mut thread.window, start, self.latency.level[0]);
        }
    }

    /// The first level holds the line, but its data may still be on its way, or
    /// the right to store to it is missing.
    #[inline(never)]
    fn unsettled_hit(&mut self, kind: RefKind, slot: Slot, line: Line, start: Q8) {
        let write = kind.writes();
        let disturbed = self.hierarchy.disturbed;
        let at_once = start + self.latency.level[0];
        let mut ready = at_once;
        let first = usize::from(self.path.data[0]);
        let cache = &mut self.hierarchy.topology.caches[first];
        let mut meta = cache.meta(slot);
        if !meta.is_settled() {
            self.thread.counters.useful_prefetches += u64::from(meta.prefetched());
            ready = self.has_come(line, ready);
            meta = match ready > at_once {
                true => meta.settled().with_pending(),
                false => meta.settled(),
            };
            let cache = &mut self.hierarchy.topology.caches[first];
            cache.set_meta(slot, meta);
        }
        if write && meta.state() != State::Modified {
            if meta.state() != State::Exclusive {
                ready = ready.max(self.upgrade(line, start));
            }
            let cache = &mut self.hierarchy.topology.caches[first];
            cache.set_meta(slot, meta.with_state(State::Modified));
        }
        let waited = ready > at_once;
        let thread = &mut *self.thread;
        thread.last = if waited { NO_LINE } else { line };
        thread.last_writable = write;
        if thread.calm_since != disturbed {
            thread.calm_since = disturbed;
            thread.last_fetch = NO_LINE;
        }
        let window = &mut thread.window;
        match (kind != RefKind::Store, waited) {
            (true, false) => first_level_load(window, start, self.latency.level[0]),
            (true, true) => finish_load(window, ready),
            (false, true) => window.store(ready),
            (false, false) => {}
        }
    }

    fn upgrade(&mut self, line: Line, start: Q8) -> Q8 {
        if !self.coherent {
            return start;
        }
        let told = self.hierarchy.upgrade(self.physical, line);
        self.thread.counters.upgrades += 1;
        let latency = self.latency;
        match told {
            Source::Level(k) => start + latency.level[usize::from(k).min(2)],
            Source::SameGroup => start + latency.same_group,
            Source::SameSocket => start + latency.same_socket.unwrap_or(latency.same_group),
            _ => start + latency.other_socket.unwrap_or(latency.same_group),
        }
    }

    #[inline(never)]
    fn first_level_miss(&mut self, kind: RefKind, line: Line, index_line: Line, start: Q8) {
        let want = Want {
            line,
            index_line,
            write: kind.writes(),
            fetch: false,
            transient: kind == RefKind::LoadNt,
            into: 0,
            prefetch: false,
        };
        self.thread.counters.level[0].misses += 1;
        let done = self.beyond_first(want, start);
        let window = &mut self.thread.window;
        match kind {
            RefKind::Store => window.store(done),
            _ => finish_load(window, done),
        }
    }

    #[inline(never)]
    fn store_line(&mut self, r: &PhysRef, line: Line, start: Q8) {
        self.data_line(r, RefKind::Store, line, start);
    }

    /// An instruction fetch; the window has been advanced to it.
    #[inline(never)]
    fn fetch(&mut self, r: &PhysRef) {
        if !self.fetches {
            return;
        }
        let start = self.translate(r.vaddr, self.thread.window.now, true);
        self.thread.window.stall(start);
        let line = line_of(r);
        let thread = &mut *self.thread;
        if thread.last_fetch == line && thread.calm_since == self.hierarchy.disturbed {
            return;
        }
        thread.last_fetch = line;
        thread.counters.fetch.accesses += 1;
        let cache = &mut self.hierarchy.topology.caches[usize::from(self.path.fetch)];
        let index_line = match cache.aliases() {
            true => (r.vaddr.0 >> 6) as Line & !63 | line & 63,
            false => line,
        };
        if let Some(slot) = cache.find(cache.set_of(index_line), line) {
            cache.touch(slot);
            return;
        }
        thread.counters.fetch.misses += 1;
        let want = Want {
            line,
            index_line,
            write: false,
            fetch: true,
            transient: false,
            into: 0,
            prefetch: false,
        };
        let done = self.beyond_first(want, start);
        // The front end has run ahead by about the first level's own latency.
        let late = done.saturating_sub(self.latency.fetch);
        self.thread.window.stall(late);
    }

    /// The second line of a reference that crosses a line. It must not count as
    /// a further load of the program, or dependences would point astray.
    #[cold]
    fn crossing(&mut self, r: &PhysRef, line: Line, start: Q8) {
        let write = r.kind.writes();
        let cache = &mut self.hierarchy.topology.caches[usize::from(self.path.data[0])];
        if let Some(slot) = cache.find_physical(line)
            && (!write || cache.meta(slot).state() == State::Modified)
        {
            cache.touch(slot);
            return;
        }
        if write {
            self.store_line(r, line, start);
            return;
        }
        self.thread.counters.level[0].misses += 1;
        let done = self.read_through(line, start, false);
        self.thread.window.extend(done);
    }
}

/// Physical line of a reference's first byte.
#[inline]
fn line_of(r: &PhysRef) -> Line {
    (r.paddr().0 >> 6) as Line
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

#[inline(never)]
fn finish_load(window: &mut Window, done: Q8) {
    if window.overlaps() {
        window.load(done);
    } else {
        window.load_blocking(done);
    }
}
