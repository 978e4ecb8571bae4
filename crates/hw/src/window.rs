//! Core timing: an instruction window (design decision 6).
//!
//! Instructions are dispatched at the core's base rate. A load starts when it is
//! dispatched, or when the load that its address depends on is done. Loads of one
//! window overlap; dispatch stops when an unfinished load is a whole window old,
//! when no fill buffer is free, or when the store buffer is full. Stores retire
//! into the store buffer and never delay dispatch otherwise. A late instruction
//! fetch stops dispatch until it is there.
//!
//! Time is counted in 2^-8 ps, so that the fraction of a cycle is not lost.

use piebald_units::{Picos, memory::PhysRef};

use crate::spec::CoreSpec;

/// Time in 2^-8 ps.
pub(crate) type Q8 = u64;

/// Loads whose completion is remembered for dependences.
const HISTORY: usize = 256;

/// Unfinished loads that the window tracks; no window has more loads.
const RING: usize = 512;

/// A fixed number of buffers, each busy until some time; 256 at most.
///
/// Buffers are alike, so only their times count: a ring in rising order. What is
/// taken next is always the front, and a new time nearly always belongs at the
/// back, so that nothing is searched.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    /// As many as an index of eight bits reaches.
    until: Box<[Q8; 256]>,
    front: u8,
    /// One less than there are buffers.
    last: u8,
}

impl Slots {
    pub(crate) fn new(n: u16) -> Self {
        Self {
            until: Box::new([0; 256]),
            front: 0,
            last: (n.clamp(1, 256) - 1) as u8,
        }
    }

    /// When the first buffer is free.
    #[inline]
    pub(crate) fn first_free(&self) -> Q8 {
        self.until[usize::from(self.front)]
    }

    /// Takes the buffer that is free first until then.
    #[inline]
    pub(crate) fn hold(&mut self, until: Q8) {
        self.front = self.front.wrapping_add(1);
        let mut place = self.front.wrapping_add(self.last);
        while place != self.front {
            let before = self.until[usize::from(place.wrapping_sub(1))];
            if before <= until {
                break;
            }
            self.until[usize::from(place)] = before;
            place = place.wrapping_sub(1);
        }
        self.until[usize::from(place)] = until;
    }
}

/// Timing state of one hardware thread.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// Dispatch time of the next instruction.
    pub(crate) now: Q8,
    /// When the reference that the last call stopped at leaves the core.
    waits_for: Q8,
    /// What the caller was told last, in ps.
    reported: u64,
    /// Base cost of an instruction, alone on the core and with an SMT sibling.
    costs: [Q8; 2],
    sizes: [u64; 2],
    /// Those that hold now, and the time of a whole window.
    cost: Q8,
    size: u64,
    reach: Q8,
    instr: u64,
    loads: u32,
    ready: Box<[Q8; HISTORY]>,
    ring: Box<[(u64, Q8); RING]>,
    head: usize,
    tail: usize,
    stores: Slots,
    overlap: bool,
}

impl Window {
    pub(crate) fn new(spec: &CoreSpec, cycle: Q8, overlap: bool) -> Self {
        let cost = |cpi: f64| ((cycle as f64 * cpi).round() as Q8).max(1);
        let crowded = spec.base_cpi.max(2.0 / f64::from(spec.width.max(1)));
        let mut window = Self {
            now: 0,
            waits_for: 0,
            reported: 0,
            costs: [cost(spec.base_cpi), cost(crowded)],
            sizes: [u64::from(spec.window), u64::from(spec.window / 2).max(1)],
            cost: 0,
            size: 0,
            reach: 0,
            instr: 0,
            loads: 0,
            ready: Box::new([0; HISTORY]),
            ring: Box::new([(0, 0); RING]),
            head: 0,
            tail: 0,
            stores: Slots::new(spec.store_buffer),
            overlap,
        };
        window.share(false);
        window
    }

    /// The SMT sibling runs or idles: the window and the issue slots are shared.
    pub(crate) fn share(&mut self, with_sibling: bool) {
        self.cost = self.costs[usize::from(with_sibling)];
        self.size = self.sizes[usize::from(with_sibling)];
        self.reach = self.size * self.cost;
    }

    /// Takes the caller's clock over, unless it is the one last reported: then
    /// nothing has happened in between, and the fraction is kept.
    pub(crate) fn set_now(&mut self, ps: u64) {
        if self.reported != ps {
            self.now = ps << 8;
        }
        self.waits_for = 0;
    }

    /// The next reference leaves the core only then, and that is too late for the
    /// caller: the clock to report.
    pub(crate) fn wait_for(&mut self, leaves: Q8) {
        self.waits_for = leaves;
    }

    /// The clock to tell the caller.
    pub(crate) fn report(&mut self) -> Picos {
        self.reported = self.now.max(self.waits_for) >> 8;
        Picos(self.reported)
    }

    /// A run of references that stay in the first level, which answers after
    /// `latency`; returns when the last of them started.
    #[inline]
    pub(crate) fn advance(&mut self, refs: &[PhysRef], latency: Q8) -> Q8 {
        let mut start = self.now;
        let mut done = 0;
        while done < refs.len() {
            done += self.stroll(&refs[done..], latency);
            start = self.now;
            if let Some(r) = refs.get(done) {
                self.dispatch(r.gap);
                start = self.now;
                if r.kind.reads() {
                    start = self.start(r.dep);
                    self.finish_first(start, latency);
                }
                done += 1;
            }
        }
        start
    }

    /// References from the front of `refs` that wait for nothing; how many.
    #[inline(never)]
    fn stroll(&mut self, refs: &[PhysRef], latency: Q8) -> usize {
        let (mut now, mut instr, mut loads) = (self.now, self.instr, self.loads);
        let blocked_at = match self.head == self.tail {
            true => u64::MAX,
            false => self.ring[self.head % RING].0 + self.size,
        };
        let reach = if self.overlap { HISTORY as u16 } else { 1 };
        let cost = self.cost;
        let ready = &mut *self.ready;
        let mut done = 0;
        for r in refs {
            let instr_then = instr + u64::from(r.gap);
            if instr_then >= blocked_at {
                break;
            }
            let then = now + u64::from(r.gap) * cost;
            if r.kind.reads() {
                let source = loads.wrapping_sub(u32::from(r.dep)) as usize % HISTORY;
                if r.dep.wrapping_sub(1) < reach - 1 && ready[source] > then {
                    break;
                }
                ready[loads as usize % HISTORY] = then + latency;
                loads = loads.wrapping_add(1);
            }
            now = then;
            instr = instr_then;
            done += 1;
        }
        (self.now, self.instr, self.loads) = (now, instr, loads);
        done
    }

    /// Instructions dispatched since the window was built.
    #[inline]
    pub(crate) const fn instructions(&self) -> u64 {
        self.instr
    }

    /// A load that starts at `start` hits the first level.
    #[inline]
    pub(crate) fn finish_first(&mut self, start: Q8, latency: Q8) {
        match start == self.now {
            true => self.quick_load(latency),
            false => self.finish(start + latency),
        }
    }

    /// A load is done at `done`.
    #[inline]
    pub(crate) fn finish(&mut self, done: Q8) {
        match self.overlap {
            true => self.load(done),
            false => self.load_blocking(done),
        }
    }

    /// Dispatches `n` instructions.
    #[inline]
    pub(crate) fn dispatch(&mut self, n: u32) {
        if self.head != self.tail {
            self.dispatch_behind(u64::from(n));
            return;
        }
        self.now += u64::from(n) * self.cost;
        self.instr += u64::from(n);
    }

    /// As above, while loads are tracked that may block the window.
    #[inline(never)]
    fn dispatch_behind(&mut self, n: u64) {
        let last = self.instr + n;
        while self.head != self.tail {
            let (instr, done) = self.ring[self.head % RING];
            let blocked = instr + self.size;
            if blocked > last {
                break;
            }
            // Those behind the blocked instruction follow it at the base rate.
            let until = blocked.saturating_sub(self.instr);
            self.now = (self.now + until * self.cost).max(done);
            self.instr += until;
            self.head += 1;
        }
        self.now += (last - self.instr) * self.cost;
        self.instr = last;
    }

    /// When a load that depends on the load `dep` loads back can start.
    #[inline]
    pub(crate) fn start(&self, dep: u16) -> Q8 {
        if dep == 0 || usize::from(dep) >= HISTORY || !self.overlap {
            return self.now;
        }
        let at = self.loads.wrapping_sub(u32::from(dep)) as usize % HISTORY;
        self.now.max(self.ready[at])
    }

    /// A load will be done at `done`.
    #[inline]
    fn load(&mut self, done: Q8) {
        self.ready[self.loads as usize % HISTORY] = done;
        self.loads = self.loads.wrapping_add(1);
        // A load that is done before dispatch can be a window further never
        // blocks: it need not be tracked.
        if done > self.now + self.reach {
            self.track(done);
        }
    }

    /// A load that hit the first level without waiting: not in overlap mode's
    /// way, so it only leaves its completion behind.
    #[inline]
    fn quick_load(&mut self, latency: Q8) {
        self.ready[self.loads as usize % HISTORY] = self.now + latency;
        self.loads = self.loads.wrapping_add(1);
    }

    /// The last load crosses a line and is done only at `done`.
    pub(crate) fn extend(&mut self, done: Q8) {
        let at = self.loads.wrapping_sub(1) as usize % HISTORY;
        if done > self.ready[at] {
            self.ready[at] = done;
            self.track(done);
        }
    }

    fn track(&mut self, done: Q8) {
        if !self.overlap {
            self.now = self.now.max(done);
            return;
        }
        if self.tail - self.head == RING {
            self.now = self.now.max(self.ring[self.head % RING].1);
            self.head += 1;
        }
        self.ring[self.tail % RING] = (self.instr, done);
        self.tail += 1;
    }

    /// Without overlap every load that leaves the first level blocks.
    #[inline]
    fn load_blocking(&mut self, done: Q8) {
        self.ready[self.loads as usize % HISTORY] = done;
        self.loads = self.loads.wrapping_add(1);
        self.now = self.now.max(done);
    }

    /// A store missed and will be done at `done`: waits for a store buffer entry.
    pub(crate) fn store(&mut self, done: Q8) {
        self.now = self.now.max(self.stores.first_free());
        self.stores.hold(done);
    }

    /// Dispatch waits until `done`.
    #[inline]
    pub(crate) fn stall(&mut self, done: Q8) {
        self.now = self.now.max(done);
    }

    /// Waits for every load.
    pub(crate) fn drain(&mut self) {
        // Short loads are not tracked, but they are remembered.
        self.now = self.ready.iter().fold(self.now, |now, t| now.max(*t));
        while self.head != self.tail {
            self.now = self.now.max(self.ring[self.head % RING].1);
            self.head += 1;
        }
    }
}
