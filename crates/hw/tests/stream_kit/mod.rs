//! Streams through a whole machine, several cores at once, scheduled as the
//! simulator does it: the core with the lowest clock goes on until it is 50 ns
//! past the next one.
#![allow(dead_code)]

use piebald_hw::{Machine, Options, spec::MachineSpec};
use piebald_units::{
    Asid, CoreId, PageSize, Pfn, PhysAddr, Picos, VirtAddr,
    memory::{Load, MemoryPort, PageTables, PhysRef, Span, Walk},
    op::RefKind,
};

/// Identity map with tables at the top of 4 GiB.
struct Identity;

impl PageTables for Identity {
    fn asid(&self) -> Asid {
        Asid(1)
    }

    fn walk(&self, addr: VirtAddr) -> Walk {
        let entry =
            |level: u64, shift: u32| PhysAddr((15 << 28) + (level << 24) + (addr.0 >> shift) * 8);
        Walk {
            entries: [entry(3, 39), entry(2, 30), entry(1, 21), entry(0, 12)],
            levels: 4,
            page: PageSize::Base,
        }
    }
}

/// Bytes between arrays, and between the arrays of two threads: no power of two,
/// so that equal elements of two arrays do not fall into one bank by design.
const ARRAY: u64 = (32 << 20) + 0x2_b000;
const THREAD: u64 = (128 << 20) + 0xd_2000;

/// What a thread does for each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// `c[i] = a[i]`, 16 bytes in 4 instructions.
    WideCopy,
    /// `b[i] = s * c[i]`, 16 bytes in 5 instructions.
    WideScale,
    /// `c[i] = a[i] + b[i]`, 16 bytes in 5 instructions.
    WideAdd,
    /// `a[i] = b[i] + s * c[i]` of 8 bytes in 6 instructions.
    Triad,
    /// The same, 16 bytes in 6 instructions.
    WideTriad,
    /// Sum of 8-byte elements in 3 instructions.
    Read,
    /// Sum of 16-byte elements in 3 instructions.
    WideRead,
    /// Stores of 8 bytes in 3 instructions.
    Write,
    /// 8-byte copy in 4 instructions.
    Copy,
}

impl Kernel {
    const fn width(self) -> u64 {
        match self {
            Self::Triad | Self::Read | Self::Write | Self::Copy => 8,
            _ => 16,
        }
    }

    /// Bytes that one element asks for.
    const fn bytes(self) -> u64 {
        match self {
            Self::Triad => 24,
            Self::WideTriad | Self::WideAdd => 48,
            Self::Read | Self::Write => 8,
            Self::WideRead | Self::Copy => 16,
            Self::WideCopy | Self::WideScale => 32,
        }
    }

    /// References of element `i`.
    fn element(self, base: u64, i: u64, out: &mut Vec<PhysRef>) {
        let at = |array: u64| base + array * ARRAY + i * self.width();
        let mut push = |kind, array: u64, gap| {
            let addr = at(array);
            out.push(PhysRef {
                vaddr: VirtAddr(addr),
                frame: (addr >> 12) as u32,
                site: 1 + array as u32,
                gap,
                dep: 0,
                size: self.width() as u8,
                kind,
            });
        };
        match self {
            Self::Triad | Self::WideTriad => {
                push(RefKind::Load, 0, 1);
                push(RefKind::Load, 1, 1);
                push(RefKind::Store, 2, 4);
            }
            Self::Read | Self::WideRead => push(RefKind::Load, 0, 3),
            Self::Write => push(RefKind::Store, 0, 3),
            Self::WideAdd => {
                push(RefKind::Load, 0, 1);
                push(RefKind::Load, 1, 1);
                push(RefKind::Store, 2, 3);
            }
            Self::WideScale => {
                push(RefKind::Load, 0, 1);
                push(RefKind::Store, 1, 4);
            }
            Self::Copy | Self::WideCopy => {
                push(RefKind::Load, 0, 1);
                push(RefKind::Store, 1, 3);
            }
        }
    }
}

/// Rates in GB/s (10^9 bytes).
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Bytes that the program asked for.
    pub asked: f64,
    /// Bytes that crossed the memory pins.
    pub pins: f64,
}

/// Lets `cores` cores run a kernel over `elements` elements each, after a
/// quarter of it as warm-up. Caches are empty before it, so that little of what is stored
/// leaves them: see [`steady`].
pub fn bandwidth(
    spec: &MachineSpec,
    features: &str,
    kernel: Kernel,
    cores: usize,
    elements: u64,
) -> Rates {
    measure(spec, features, kernel, (cores, elements), |_, _, _| ())
}

/// As [`bandwidth`], with caches that are full of what the kernel has read and stored before.
pub fn steady(spec: &MachineSpec, kernel: Kernel, cores: usize, elements: u64) -> Rates {
    measure(
        spec,
        "all",
        kernel,
        (cores, elements),
        |machine, threads, spec| fill_caches(machine, threads, (spec, kernel)),
    )
}

fn measure(
    spec: &MachineSpec,
    features: &str,
    kernel: Kernel,
    (cores, elements): (usize, u64),
    prepare: impl Fn(&mut Machine, &mut [Thread], &MachineSpec),
) -> Rates {
    let options = Options {
        features: features.parse().expect("features"),
        ..Options::default()
    };
    let mut machine = Machine::new(spec, &options).unwrap_or_else(|e| panic!("{e}"));
    let total = elements + elements / 4;
    let mut threads: Vec<Thread> = (0..cores)
        .map(|core| Thread::new(core, spec, cores))
        .collect();
    for thread in &threads {
        machine.set_running(CoreId(thread.core), Some(1));
    }
    prepare(&mut machine, &mut threads, spec);
    while let Some((at, horizon)) = next(&threads, total) {
        threads[at].go(&mut machine, kernel, elements / 4, total, horizon);
    }
    // Each thread's rate while all of them ran: they finish nearly together.
    let mut rates = Rates {
        asked: 0.0,
        pins: 0.0,
    };
    for t in &threads {
        let ps = (t.now.0 - t.warm.0) as f64;
        let pins = machine.counters(CoreId(t.core)).memory_bytes() - t.warm_bytes;
        rates.asked += (elements * kernel.bytes()) as f64 / ps * 1e3;
        rates.pins += pins as f64 / ps * 1e3;
    }
    rates
}

/// Fills the caches with what the kernel has worked on before, a reference for each line: of what
/// it reads and stores from then on, each line drives one of those out.
fn fill_caches(
    machine: &mut Machine,
    threads: &mut [Thread],
    (spec, kernel): (&MachineSpec, Kernel),
) {
    let mut lines = cache_of_each(spec, threads.len()) / 64;
    let step = 64 / kernel.width();
    // Behind what is measured.
    let mut element = (16 << 20) / kernel.width();
    while lines > 0 {
        let mut arrays = 1;
        for thread in threads.iter_mut() {
            let mut refs = Vec::new();
            for n in 0..64 {
                kernel.element(thread.base, element + n * step, &mut refs);
            }
            arrays = refs.len() as u64 / 64;
            let core = CoreId(thread.core);
            thread.now = machine
                .run(core, &Identity, &refs, thread.now, Picos::MAX)
                .now;
        }
        element += 64 * step;
        lines = lines.saturating_sub(64 * arrays);
    }
    let start = threads.iter().map(|t| t.now.0).max().unwrap_or(0);
    for (at, thread) in threads.iter_mut().enumerate() {
        thread.now = Picos(start + 1_000_000 + at as u64 * 1000);
    }
}

/// Bytes of all levels that a thread has, if `threads` of them share what can be shared.
fn cache_of_each(spec: &MachineSpec, threads: usize) -> u64 {
    let all = usize::from(spec.core.sockets * spec.core.per_socket);
    let size = |c: &piebald_hw::spec::CacheSpec| {
        let cores = if threads <= usize::from(spec.core.per_socket) {
            threads
        } else {
            all
        };
        let instances = cores.div_ceil(usize::from(c.shared_by));
        c.size.0 * instances as u64 / threads as u64
    };
    spec.cache.iter().map(size).sum()
}

struct Thread {
    core: u16,
    base: u64,
    next: u64,
    refs: Vec<PhysRef>,
    done: usize,
    now: Picos,
    warm: Picos,
    warm_bytes: u64,
    warmed: bool,
}

impl Thread {
    /// Threads are spread over the sockets, and their arrays over memory.
    fn new(at: usize, spec: &MachineSpec, cores: usize) -> Self {
        let sockets = usize::from(spec.core.sockets);
        let per = usize::from(spec.core.per_socket);
        let core = match cores <= per {
            true => at,
            false => at % sockets * per + at / sockets,
        };
        Self {
            core: core as u16,
            base: at as u64 * THREAD,
            next: 0,
            refs: Vec::new(),
            done: 0,
            now: Picos(at as u64 * 1000),
            warm: Picos(0),
            warm_bytes: 0,
            warmed: false,
        }
    }

    fn finished(&self, total: u64) -> bool {
        self.next >= total && self.done == self.refs.len()
    }

    fn go(&mut self, machine: &mut Machine, kernel: Kernel, warm: u64, total: u64, horizon: Picos) {
        while self.now <= horizon && !self.finished(total) {
            if self.done == self.refs.len() {
                if self.next >= warm && !self.warmed {
                    self.warmed = true;
                    self.warm = self.now;
                    self.warm_bytes = machine.counters(CoreId(self.core)).memory_bytes();
                }
                self.refs.clear();
                self.done = 0;
                for _ in 0..20 {
                    kernel.element(self.base, self.next, &mut self.refs);
                    self.next += 1;
                }
            }
            let refs = &self.refs[self.done..];
            let progress = machine.run(CoreId(self.core), &Identity, refs, self.now, horizon);
            self.done += progress.done;
            self.now = progress.now;
        }
    }
}

/// The thread with the lowest clock, and how far it may go.
fn next(threads: &[Thread], total: u64) -> Option<(usize, Picos)> {
    let mut waiting: Vec<usize> = (0..threads.len())
        .filter(|t| !threads[*t].finished(total))
        .collect();
    waiting.sort_by_key(|t| threads[*t].now);
    let first = *waiting.first()?;
    let second = waiting
        .get(1)
        .map_or(Picos(u64::MAX / 2), |t| threads[*t].now);
    Some((first, Picos(second.0 + 50_000)))
}

/// Load-to-use time in ns of a chase through the lines of 256 MiB, pages in
/// random order, all loads dependent. TLBs and prefetchers are off, as measured
/// figures are meant.
pub fn chase(spec: &MachineSpec, loads: u64) -> f64 {
    let options = Options {
        features: "window".parse().expect("features"),
        ..Options::default()
    };
    let mut machine = Machine::new(spec, &options).unwrap_or_else(|e| panic!("{e}"));
    let mut x = 0x2545_F491_4F6C_DD1D_u64;
    let refs: Vec<PhysRef> = (0..loads)
        .map(|_| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            let addr = ((x >> 20) % (256 << 20)) & !63;
            PhysRef {
                vaddr: VirtAddr(addr),
                frame: (addr >> 12) as u32,
                gap: 1,
                dep: 1,
                size: 8,
                ..PhysRef::default()
            }
        })
        .collect();
    let mut now = Picos(0);
    for batch in refs.chunks(256) {
        now = machine
            .run(CoreId(0), &Identity, batch, now, Picos::MAX)
            .now;
    }
    machine.drain(CoreId(0), now).0 as f64 / loads as f64 / 1000.0
}

/// GB/s of the matrix, 12 bytes an entry, in products of a sparse matrix and a vector by one core:
/// rows of 16 entries at random columns of a band of 4096, the row's own among them; a product
/// before the one that counts. All in compressed rows of 8-byte values and 4-byte columns.
pub fn sparse_product(spec: &MachineSpec, rows: u64) -> f64 {
    let mut machine = Machine::new(spec, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    machine.set_running(CoreId(0), Some(1));
    let mut now = Picos(0);
    let mut start = now;
    for product in 0..2 {
        start = now;
        let mut random = 0x2545_F491_4F6C_DD1D_u64;
        for row in 0..rows {
            let mut refs = Vec::with_capacity(50);
            for entry in row * 16..(row + 1) * 16 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let column = (row + (random >> 20) % 4096) % rows;
                refs.push(sparse(RefKind::Load, 0, entry * 8, 8, (1, 0)));
                refs.push(sparse(RefKind::Load, 2, entry * 4, 4, (1, 0)));
                // Where it is stands in the load before.
                refs.push(sparse(RefKind::Load, 3, column * 8, 8, (2, 1)));
            }
            refs.push(sparse(RefKind::Store, 4, row * 8, 8, (3, 0)));
            now = machine
                .run(CoreId(0), &Identity, &refs, now, Picos::MAX)
                .now;
        }
        now = machine.drain(CoreId(0), now);
        assert!(product == 0 || now > start);
    }
    (rows * 16 * 12) as f64 / (now.0 - start.0) as f64 * 1e3
}

/// A reference of [`sparse_product`] to one of its arrays.
fn sparse(kind: RefKind, array: u64, offset: u64, size: u8, (gap, dep): (u32, u16)) -> PhysRef {
    let addr = array * ARRAY + offset;
    PhysRef {
        vaddr: VirtAddr(addr),
        frame: (addr >> 12) as u32,
        site: 1 + array as u32,
        gap,
        dep,
        size,
        kind,
    }
}

/// GB/s of copying file pages to a buffer of 256 KiB that stays on the chip, as
/// `read()` does it; the file's pages are on the chip too, or in memory.
pub fn kernel_copy(spec: &MachineSpec, on_chip: bool) -> f64 {
    let mut machine = Machine::new(spec, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    machine.set_running(CoreId(0), Some(1));
    let (pages, rounds) = (64u64, 12u64);
    let mut now = Picos(0);
    let mut start = now;
    for round in 0..rounds {
        if round == 4 {
            start = now;
        }
        for page in 0..pages {
            let file = if on_chip { 0 } else { round * pages };
            let from = Pfn(1000 + file + page);
            let span = Span {
                offset: 0,
                len: 4096,
            };
            now = machine.copy(CoreId(0), from, Pfn(page), span, Load::Caching, now);
        }
    }
    now = machine.drain(CoreId(0), now);
    ((rounds - 4) * pages * 4096) as f64 / (now.0 - start.0) as f64 * 1e3
}
