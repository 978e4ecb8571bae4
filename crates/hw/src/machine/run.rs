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
    prefetch::Pair,
    topology::Path,
    window::Q8,
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
    /// No other core can hold what this one's path does not.
    pub(super) express: bool,
    /// Another hardware thread shares the first level.
    pub(super) smt: bool,
    /// Instruction fetches go through the caches.
    pub(super) fetches: bool,
    pub(super) coherent: bool,
}

/// No page number: the machine has no TLB to ask.
const ANY_PAGE: u64 = u64::MAX;

/// What ended a run of plain references.
#[derive(Clone, Copy)]
enum Stop {
    /// There are no more.
    End,
    /// The next one needs more than a look into the first level and its TLB.
    Other,
    /// The next one is not in the first level.
    Miss,
    /// The next one is held, but not all is well with it.
    Unsettled(Slot),
    /// The last one made prefetchers ask for lines.
    Wishes(Pair),
}

impl Run<'_> {
    /// References from the front of `refs`, until one would leave the private
    /// caches past the horizon; returns how many are done.
    pub(super) fn batch(&mut self, refs: &[PhysRef], horizon: Q8) -> usize {
        let mut done = 0;
        while done < refs.len() {
            let (plain, stop) = self.plain(&refs[done..]);
            let at = self.thread.window.advance(&refs[done..done + plain], self.latency.level[0]);
            done += plain;
            if let Stop::Wishes(wishes) = stop {
                self.prefetch_pair(wishes, at);
                continue;
            }
            let Some(r) = refs.get(done) else {
                break;
            };
            match stop {
                Stop::Miss => {
                    let line = line_of(r);
                    if self.is_late(r, horizon) {
                        break;
                    }
                    let start = self.dispatch(r);
                    let start = self.translate(r.vaddr, start, false);
                    self.first_level_miss(r.kind, line, self.index_line(r), start);
                    self.watch(r, start);
                }
                Stop::Unsettled(slot) => {
                    let start = self.dispatch(r);
                    let start = self.translate(r.vaddr, start, false);
                    self.unsettled_hit(r.kind, slot, line_of(r), start);
                    self.watch(r, start);
                }
                _ => {
                    if self.is_late(r, horizon) {
                        break;
                    }
                    self.one(r);
                }
            }
            done += 1;
        }
        self.thread.counters.instructions = self.thread.window.instructions();
        done
    }

    /// Passes over data that is in the first level or in the line of the reference
    /// before, on pages that the first TLB knows. Returns how many references these
    /// are, and why it went no further.
    ///
    /// None of them leaves the private caches, so that none minds the horizon, and
    /// none of them cares what time it is: the window follows in a second pass. Two
    /// short loops have room for their variables in registers, one long has not.
    #[inline(never)]
    fn plain(&mut self, refs: &[PhysRef]) -> (usize, Stop) {
        let disturbed = self.hierarchy.disturbed;
        let thread = &mut *self.thread;
        let core = &mut *self.core;
        let calm = thread.calm_since == disturbed;
        // Lines that a load, a store and a fetch know to be there.
        let (mut known, mut known_writable, mut fetched) = (NO_LINE, NO_LINE, NO_LINE);
        if calm {
            known = thread.last;
            fetched = thread.last_fetch;
            if thread.last_writable {
                known_writable = known;
            }
        }
        let mut page = match &core.tlb {
            Some(tlb) => tlb.last_page(self.asid),
            None => ANY_PAGE,
        };
        let cache = &mut self.hierarchy.topology.caches[usize::from(self.path.data[0])];
        let mut fetches = 0;
        let mut found = false;
        let mut stop = Stop::End;
        let mut done = 0;
        for r in refs {
            let line = line_of(r);
            if r.kind == RefKind::Fetch {
                // The rest of the line of the last fetch.
                if self.fetches && !fetched_before(core, self.asid, r, fetched) {
                    stop = Stop::Other;
                    break;
                }
                fetches += 1;
                done += 1;
                continue;
            }
            if (r.vaddr.0 & 63) + u64::from(r.size) > 64 {
                stop = Stop::Other;
                break;
            }
            let turns = page != r.vaddr.0 >> 12 && page != ANY_PAGE;
            if turns && !core.knows_page(self.asid, r.vaddr) {
                stop = Stop::Other;
                break;
            }
            let write = r.kind.writes();
            if line != (if write { known_writable } else { known }) {
                let index_line = match cache.aliases() {
                    true => (r.vaddr.0 >> 6) as Line & !63 | line & 63,
                    false => line,
                };
                let Some(slot) = cache.find_near(index_line, line) else {
                    stop = Stop::Miss;
                    break;
                };
                cache.touch(slot);
                let meta = cache.meta(slot);
                if !meta.is_settled() || (write && meta.state() != State::Modified) {
                    stop = Stop::Unsettled(slot);
                    break;
                }
                found = true;
                known = line;
                known_writable = if write { line } else { NO_LINE };
            }
            done += 1;
            if turns {
                page = r.vaddr.0 >> 12;
                core.turn_page(self.asid, r.vaddr);
            }
            if core.watches_l1 && r.kind == RefKind::Load {
                let wishes = core.prefetch.load(r.paddr().0, r.site);
                if !wishes.is_empty() {
                    stop = Stop::Wishes(wishes);
                    break;
                }
            }
        }
        if found {
            thread.last = known;
            thread.last_writable = known_writable != NO_LINE;
            if !calm {
                thread.calm_since = disturbed;
                thread.last_fetch = NO_LINE;
            }
        }
        let data = (done - fetches) as u64;
        thread.counters.references += data;
        thread.counters.level[0].accesses += data;
        (done, stop)
    }

    /// Does the reference leave the private caches past the horizon?
    ///
    /// A load whose address is not known yet leaves the core later than its
    /// dispatch; a chain of them, microseconds later.
    #[inline]
    fn is_late(&mut self, r: &PhysRef, horizon: Q8) -> bool {
        let leaves = match r.kind {
            RefKind::Fetch => self.thread.window.now,
            _ => self.thread.window.start(r.dep),
        };
        let late = leaves > horizon && !self.stays_private(r);
        if late {
            self.thread.window.wait_for(leaves);
        }
        late
    }

    /// Dispatches a data reference; returns when its address is known.
    #[inline]
    fn dispatch(&mut self, r: &PhysRef) -> Q8 {
        let thread = &mut *self.thread;
        thread.window.dispatch(r.gap);
        thread.counters.references += 1;
        thread.counters.level[0].accesses += 1;
        thread.window.start(r.dep)
    }

    /// One reference of any kind.
    #[inline(never)]
    fn one(&mut self, r: &PhysRef) {
        if r.kind == RefKind::Fetch {
            self.thread.window.dispatch(r.gap);
            self.fetch(r);
        } else {
            let start = self.dispatch(r);
            self.reference(r, start);
        }
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
    fn reference(&mut self, r: &PhysRef, start: Q8) {
        let line = line_of(r);
        let start = self.translate(r.vaddr, start, false);
        self.data_line(r.kind, line, self.index_line(r), start);
        // A reference past the end of its page was split by the operating system.
        let last_byte = (r.vaddr.0 & 63) + u64::from(r.size.max(1)) - 1;
        if last_byte >= 64 && line & 63 != 63 {
            self.crossing(r, line + 1, start);
        }
        self.watch(r, start);
    }

    /// Line number by which the first level finds its set.
    fn index_line(&self, r: &PhysRef) -> Line {
        let cache = &self.hierarchy.topology.caches[usize::from(self.path.data[0])];
        match cache.aliases() {
            true => (r.vaddr.0 >> 6) as Line & !63 | line_of(r) & 63,
            false => line_of(r),
        }
    }

    /// The first level's prefetchers see a load.
    #[inline]
    fn watch(&mut self, r: &PhysRef, start: Q8) {
        if self.core.watches_l1 && r.kind == RefKind::Load {
            let wishes = self.core.prefetch.load(r.paddr().0, r.site);
            if !wishes.is_empty() {
                self.prefetch_pair(wishes, start);
            }
        }
    }

    /// One line of a data reference. Returns nothing: time is in the window.
    fn data_line(&mut self, kind: RefKind, line: Line, index_line: Line, start: Q8) {
        let thread = &mut *self.thread;
        let calm = thread.calm_since == self.hierarchy.disturbed;
        if line == thread.last && calm && (!kind.writes() || thread.last_writable) {
            if kind != RefKind::Store {
                thread.window.finish_first(start, self.latency.level[0]);
            }
            return;
        }
        let cache = &mut self.hierarchy.topology.caches[usize::from(self.path.data[0])];
        let Some(slot) = cache.find(cache.set_of(index_line), line) else {
            self.first_level_miss(kind, line, index_line, start);
            return;
        };
        cache.touch(slot);
        self.unsettled_hit(kind, slot, line, start);
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
            (true, false) => window.finish_first(start, self.latency.level[0]),
            (true, true) => window.finish(ready),
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
        self.thread.counters.level[0].misses += 1;
        let done = match self.express && kind != RefKind::LoadNt {
            true => self.express(line, kind.writes(), start),
            false => None,
        };
        let done = match done {
            Some(done) => done,
            None => self.long_way(kind, line, index_line, start),
        };
        let window = &mut self.thread.window;
        match kind {
            RefKind::Store => window.store(done),
            _ => window.finish(done),
        }
    }

    #[inline(never)]
    fn long_way(&mut self, kind: RefKind, line: Line, index_line: Line, start: Q8) -> Q8 {
        let want = Want {
            line,
            index_line,
            write: kind.writes(),
            fetch: false,
            transient: kind == RefKind::LoadNt,
            into: 0,
            prefetch: false,
        };
        self.beyond_first(want, start)
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
            let index_line = self.index_line(r) & !63 | line & 63;
            self.data_line(RefKind::Store, line, index_line, start);
            return;
        }
        self.thread.counters.level[0].misses += 1;
        let done = self.read_through(line, start, false);
        self.thread.window.extend(done);
    }
}

/// Is the line the one fetched last, on the page fetched last?
#[inline]
fn fetched_before(core: &Core, asid: Asid, r: &PhysRef, last: Line) -> bool {
    let tlb = core.tlb.as_ref();
    line_of(r) == last && tlb.is_none_or(|tlb| tlb.same_page(asid, r.vaddr, true))
}

/// Physical line of a reference's first byte.
#[inline]
fn line_of(r: &PhysRef) -> Line {
    (r.paddr().0 >> 6) as Line
}
