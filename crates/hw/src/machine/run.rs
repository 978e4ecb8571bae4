//! One hardware thread at work: references, from dispatch to the first level.
//!
//! Most references hit the first level, many of them the line of the one
//! before. [`Run`] therefore borrows everything that a reference may touch once
//! per batch, and the common cases come first: the same line again, then a hit
//! with nothing to wait for. What is left is kept out of their way.

use piebald_units::{
    Asid, VirtAddr,
    memory::{PageTables, PhysRef},
    op::RefKind,
};

use super::{InFlight, Latencies, NO_LINE, Thread};
use crate::{
    cache::{First, Line, Near, Slot, State, Touch},
    hierarchy::{Hierarchy, Source, Want},
    machine::{Core, IN_FLIGHT},
    memory::Memory,
    prefetch::{Pair, Prefetcher},
    tlb::Tlb,
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

/// What a run of plain references takes for granted, and what it has found.
#[derive(Clone, Copy)]
struct Seen {
    /// Line that a load knows to be in the first level.
    line: Line,
    /// The same for a store, which wants to be alone with it.
    writable: Line,
    /// Line that a fetch knows to be there.
    fetched: Line,
    /// Nobody has disturbed the caches since `line` was found.
    calm: bool,
    /// `line` is news.
    found: bool,
    /// Fetches passed over.
    fetches: usize,
}

/// What a run of plain references met at its end.
#[derive(Clone, Copy)]
enum Met {
    /// A reference that needs more than the first level and its TLB, or nothing.
    Other,
    /// One that is held, but not all is well with it.
    Unsettled(Slot),
    /// One that is not in the first level.
    Miss,
    /// Prefetchers that ask for lines at the sight of the last one.
    Wishes(Pair),
}

/// Looks that a run of plain references takes besides the cache.
struct Looks<'a> {
    tlb: Option<&'a mut Tlb>,
    /// The first level's prefetchers, if there are any.
    watches: Option<&'a mut Prefetcher>,
    asid: Asid,
    /// Fetches are simulated.
    fetches: bool,
}

/// Passes over references that find their data in the line of the one before or
/// elsewhere in the first level, on a page that the first TLB knows; how many, and
/// what comes behind them.
///
/// None of these leaves the private caches, so that none minds the horizon, and
/// none cares what time it is: the window follows for a run of them at once.
#[inline(never)]
fn pass<O: Touch>(
    mut cache: Near<'_, O>,
    mut looks: Looks<'_>,
    refs: &[PhysRef],
    seen: &mut Seen,
) -> (usize, Met) {
    // Without a TLB all is one page.
    let (page_mask, mut last_page) = match &looks.tlb {
        Some(tlb) => (u64::MAX, tlb.last_page(looks.asid)),
        None => (0, 0),
    };
    let (mut known, mut writable) = (seen.line, seen.writable);
    let mut met = Met::Other;
    let mut done = 0;
    for r in refs {
        let line = line_of(r);
        let page = r.vaddr.0 >> 12 & page_mask;
        if r.kind == RefKind::Fetch {
            if !looks.passes_fetch(r, line == seen.fetched) {
                break;
            }
            seen.fetches += 1;
            done += 1;
            continue;
        }
        if (r.vaddr.0 & 63) + u64::from(r.size) > 64
            || page != last_page && !looks.knows_page(r.vaddr)
        {
            break;
        }
        let write = r.kind.writes();
        if line != (if write { writable } else { known }) {
            let Some((slot, meta)) = cache.hit(line) else {
                met = Met::Miss;
                break;
            };
            if !meta.is_settled() || (write && meta.state() != State::Modified) {
                met = Met::Unsettled(slot);
                break;
            }
            seen.found = true;
            known = line;
            writable = if write { line } else { NO_LINE };
        }
        done += 1;
        if page != last_page {
            looks.turn_page(r.vaddr);
            last_page = page;
        }
        if looks.watches.is_some() && r.kind == RefKind::Load {
            let wishes = looks.wishes(r);
            if !wishes.is_empty() {
                met = Met::Wishes(wishes);
                break;
            }
        }
    }
    (seen.line, seen.writable) = (known, writable);
    (done, met)
}

impl Looks<'_> {
    /// Is a fetch from the page fetched last nothing but its dispatch?
    #[inline]
    fn passes_fetch(&self, r: &PhysRef, same_line: bool) -> bool {
        let same_page = |tlb: &Tlb| tlb.same_page(self.asid, r.vaddr, true);
        !self.fetches || same_line && self.tlb.as_deref().is_none_or(same_page)
    }

    /// What the first level's prefetchers want at the sight of a load.
    #[cold]
    #[inline(never)]
    fn wishes(&mut self, r: &PhysRef) -> Pair {
        match &mut self.watches {
            Some(prefetcher) => prefetcher.load(r.paddr().0, r.site),
            None => Pair::NOTHING,
        }
    }

    /// Does the first TLB hold the page of a data reference? Changes nothing.
    #[cold]
    #[inline(never)]
    fn knows_page(&self, addr: VirtAddr) -> bool {
        let tlb = self.tlb.as_deref();
        tlb.is_none_or(|tlb| tlb.first_holds(self.asid, addr))
    }

    /// A data reference to another page, which the first TLB holds.
    #[cold]
    #[inline(never)]
    fn turn_page(&mut self, addr: VirtAddr) {
        if let Some(tlb) = &mut self.tlb {
            tlb.lookup(self.asid, addr, false);
        }
    }
}

impl Run<'_> {
    /// References from the front of `refs`, until one would leave the private
    /// caches past the horizon; returns how many are done.
    pub(super) fn batch(&mut self, refs: &[PhysRef], horizon: Q8) -> usize {
        let mut done = 0;
        while let Some(r) = refs.get(done) {
            let met = match self.misses_plainly(r) {
                true => Met::Miss,
                false => {
                    let (plain, met, start) = self.plain(&refs[done..]);
                    done += plain;
                    if let Met::Wishes(wishes) = met {
                        self.prefetch_pair(wishes, start);
                        continue;
                    }
                    met
                }
            };
            let Some(r) = refs.get(done) else {
                break;
            };
            // What is in the first level does not leave the private caches.
            if !matches!(met, Met::Unsettled(_)) && self.is_late(r, horizon) {
                break;
            }
            match met {
                Met::Miss => {
                    let start = self.dispatch(r);
                    let start = self.translate(r.vaddr, start, false);
                    self.first_level_miss(r.kind, line_of(r), self.index_line(r), start);
                    self.watch(r, start);
                }
                Met::Unsettled(slot) => {
                    let start = self.dispatch(r);
                    let start = self.translate(r.vaddr, start, false);
                    let lines = (line_of(r), self.index_line(r));
                    self.unsettled_hit(r.kind, slot, lines, start);
                    self.watch(r, start);
                }
                _ => self.one(r),
            }
            done += 1;
        }
        self.thread.counters.instructions = self.thread.window.instructions();
        done
    }

    /// Is this a data reference that misses the first level, and nothing else?
    /// Misses come in rows: this spares them the way in and out of the loop for hits.
    #[inline(always)]
    fn misses_plainly(&self, r: &PhysRef) -> bool {
        let cache = &self.hierarchy.topology.caches[usize::from(self.path.data[0])];
        let line = line_of(r);
        let tlb = self.core.tlb.as_ref();
        r.kind != RefKind::Fetch
            && tlb.is_none_or(|t| t.same_page(self.asid, r.vaddr, false))
            && (r.vaddr.0 & 63) + u64::from(r.size) <= 64
            && !cache.aliases()
            && cache.find(cache.set_of(line), line).is_none()
    }

    /// A run of plain references: how many, what comes behind them, and when the
    /// last of them started.
    fn plain(&mut self, refs: &[PhysRef]) -> (usize, Met, Q8) {
        let disturbed = self.hierarchy.disturbed;
        let thread = &mut *self.thread;
        let calm = thread.calm_since == disturbed;
        let if_calm = |line: Line| if calm { line } else { NO_LINE };
        let line = if_calm(thread.last);
        let mut seen = Seen {
            line,
            writable: if thread.last_writable { line } else { NO_LINE },
            fetched: if_calm(thread.last_fetch),
            calm,
            found: false,
            fetches: 0,
        };
        let looks = Looks {
            tlb: self.core.tlb.as_mut(),
            watches: self.core.watches_l1.then_some(&mut self.core.prefetch),
            asid: self.asid,
            fetches: self.fetches,
        };
        let cache = &mut self.hierarchy.topology.caches[usize::from(self.path.data[0])];
        let (done, met) = match cache.near() {
            Some(First::Lru(near)) => pass(near, looks, refs, &mut seen),
            Some(First::Tree(near)) => pass(near, looks, refs, &mut seen),
            None => (0, Met::Other),
        };
        if seen.found {
            thread.last = seen.line;
            thread.last_writable = seen.writable != NO_LINE;
            if !seen.calm {
                thread.calm_since = disturbed;
                thread.last_fetch = NO_LINE;
            }
        }
        let data = (done - seen.fetches) as u64;
        thread.counters.references += data;
        thread.counters.level[0].accesses += data;
        let start = thread.window.advance(&refs[..done], self.latency.level[0]);
        (done, met, start)
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
        self.unsettled_hit(kind, slot, (line, index_line), start);
    }

    /// The first level holds the line, but its data may still be on its way, or
    /// the right to store to it is missing.
    #[inline(never)]
    fn unsettled_hit(&mut self, kind: RefKind, slot: Slot, lines: (Line, Line), start: Q8) {
        let (line, _) = lines;
        let write = kind.writes();
        let disturbed = self.hierarchy.disturbed;
        let at_once = start + self.latency.level[0];
        let mut ready = at_once;
        let first = usize::from(self.path.data[0]);
        let cache = &mut self.hierarchy.topology.caches[first];
        let mut meta = cache.meta(slot);
        let first_use = meta.prefetched();
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
        if first_use && self.core.watches_first_use {
            self.first_use(lines, start);
        }
    }

    fn upgrade(&mut self, line: Line, start: Q8) -> Q8 {
        if !self.coherent {
            return start;
        }
        let told = self.hierarchy.upgrade(self.physical, line);
        self.thread.counters.upgrades += 1;
        let times = self.latency;
        let latency = match told {
            Source::Level(k) => times.level[usize::from(k).min(2)],
            Source::SameGroup => times.same_group,
            Source::SameSocket => times.same_socket.unwrap_or(times.same_group),
            _ => times.other_socket.unwrap_or(times.same_group),
        };
        let alone = matches!(told, Source::Level(_) | Source::SameGroup);
        match self.memory.carries_transfers() {
            true => self
                .memory
                .upgrade(self.path.socket, alone, line, start, latency),
            false => start + latency,
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

/// Physical line of a reference's first byte.
#[inline]
fn line_of(r: &PhysRef) -> Line {
    (r.paddr().0 >> 6) as Line
}
