//! Small machines that the tests of the whole model share: a clock of 1 GHz, so
//! that a cycle is 1 ns, and DRAM that answers every read in the same time.
#![allow(dead_code)]

use piebald_hw::{Features, Machine, Options, spec::MachineSpec};
use piebald_units::{
    Asid, CoreId, PageSize, PhysAddr, Picos, VirtAddr,
    memory::{MemoryPort, PageTables, PhysRef, Walk},
    op::RefKind,
};

/// Cycles of a read in [`Build`]'s DRAM: tRCD + CL + burst.
pub const DRAM: u64 = 10 + 10 + 4;
/// Cycles between the last cache and the DRAM, there and back.
pub const FIXED: u64 = 20;
pub const LINE: u64 = 64;
pub const CYCLE: u64 = 1000;

/// A machine file in parts.
pub struct Build {
    pub sockets: u16,
    pub per_socket: u16,
    pub smt: u16,
    pub base_cpi: f64,
    pub window: u32,
    pub fills: u16,
    pub shared_fills: u16,
    pub store_buffer: u16,
    pub caches: Vec<String>,
    pub controllers: u16,
    /// Further tables: `[links]`, `[tlb]`, `[prefetch]`.
    pub rest: String,
}

impl Default for Build {
    fn default() -> Self {
        Self {
            sockets: 1,
            per_socket: 1,
            smt: 1,
            base_cpi: 1.0,
            window: 128,
            fills: 64,
            shared_fills: 128,
            store_buffer: 256,
            caches: Vec::new(),
            controllers: 1,
            rest: String::new(),
        }
    }
}

/// A cache of `sets` sets; `extra` holds further keys, one per line.
pub fn cache(level: u8, sets: u64, ways: u64, latency: u32, extra: &str) -> String {
    let size = sets * ways * LINE;
    format!(
        "[[cache]]\nname = \"L{level}\"\nlevel = {level}\nsize = \"{size}B\"\nways = {ways}\n\
         latency = {latency}\n{extra}\n"
    )
}

impl Build {
    pub fn text(&self) -> String {
        let Self {
            sockets,
            per_socket,
            smt,
            base_cpi,
            window,
            fills,
            shared_fills,
            store_buffer,
            controllers,
            ..
        } = self;
        format!(
            r#"
name = "test"
title = "test machine"
sources = {{}}
[core]
sockets = {sockets}
per_socket = {per_socket}
smt = {smt}
clock = "1GHz"
base_cpi = {base_cpi:?}
width = 4
window = {window}
l1_fill_buffers = {fills}
shared_fill_buffers = {shared_fills}
store_buffer = {store_buffer}
{}
[memory]
size = "4GiB"
fixed_latency = "{FIXED}ns"
controllers = {controllers}
[memory.dram]
ranks = 2
banks = 256
row_size = "8KiB"
page_policy = "closed"
refresh = false
map = "row-column-rank-bank"
write_queue = {{ high = 64, low = 0 }}
[memory.dram.timing]
tck = "1ns"
cl = 10
cwl = 10
bl = 8
rcd = 10
rp = 1
ras = 10
rc = 11
ccd = 4
rrd = 1
faw = 1
wr = 1
wtr = 1
rtp = 1
rtrs = 0
rfc = 1
refi = 7800
{}
"#,
            self.caches.concat(),
            self.rest
        )
    }

    pub fn spec(&self) -> MachineSpec {
        // As a value, not as a machine file: caches of a few lines are no machine's.
        toml::from_str(&self.text()).unwrap_or_else(|e| panic!("{e}"))
    }

    /// A machine with these features.
    pub fn rig(&self, features: &str) -> Rig {
        Rig::new(&self.spec(), features)
    }
}

/// Identity map. Table entries lie in the top half GiB of 4 GiB, 8 bytes each.
#[derive(Clone, Copy)]
pub struct Identity {
    pub page: PageSize,
}

pub const TABLES: u64 = 7 << 29;

impl PageTables for Identity {
    fn asid(&self) -> Asid {
        Asid(1)
    }

    fn walk(&self, addr: VirtAddr) -> Walk {
        let entry =
            |level: u64, shift: u32| PhysAddr(TABLES + (level << 26) + (addr.0 >> shift) * 8);
        Walk {
            entries: [entry(3, 39), entry(2, 30), entry(1, 21), entry(0, 12)],
            levels: if self.page == PageSize::Huge { 3 } else { 4 },
            page: self.page,
        }
    }
}

/// One access of 8 bytes that follows the previous one after `gap` instructions.
pub fn access(kind: RefKind, addr: u64, gap: u32) -> PhysRef {
    PhysRef {
        vaddr: VirtAddr(addr),
        frame: (addr >> 12) as u32,
        gap,
        size: 8,
        kind,
        ..PhysRef::default()
    }
}

pub fn load(addr: u64) -> PhysRef {
    access(RefKind::Load, addr, 1)
}

pub fn store(addr: u64) -> PhysRef {
    access(RefKind::Store, addr, 1)
}

/// A machine and the clocks of its threads.
pub struct Rig {
    pub machine: Machine,
    pub now: Vec<Picos>,
    pub page: PageSize,
}

impl Rig {
    pub fn new(spec: &MachineSpec, features: &str) -> Self {
        let options = Options {
            features: features
                .parse::<Features>()
                .unwrap_or_else(|e| panic!("{e}")),
            ..Options::default()
        };
        Self::with(spec, &options)
    }

    pub fn with(spec: &MachineSpec, options: &Options) -> Self {
        let machine = Machine::new(spec, options).unwrap_or_else(|e| panic!("{e}"));
        let threads = machine.hardware_threads();
        Self {
            machine,
            now: vec![Picos(0); threads],
            page: PageSize::Base,
        }
    }

    /// Performs all references; returns how many picoseconds the clock moved.
    pub fn run(&mut self, core: usize, refs: &[PhysRef]) -> u64 {
        let before = self.now[core].0;
        let space = Identity { page: self.page };
        let id = CoreId(core as u16);
        let done = self
            .machine
            .run(id, &space, refs, self.now[core], Picos::MAX);
        assert_eq!(done.done, refs.len());
        self.now[core] = done.now;
        done.now.0 - before
    }

    /// As `run`, and waits for the loads; in cycles.
    pub fn cycles(&mut self, core: usize, refs: &[PhysRef]) -> u64 {
        let before = self.now[core].0;
        self.run(core, refs);
        self.now[core] = self.machine.drain(CoreId(core as u16), self.now[core]);
        (self.now[core].0 - before) / CYCLE
    }

    pub fn counters(&self, core: usize) -> piebald_hw::Counters {
        self.machine.counters(CoreId(core as u16))
    }

    /// All clocks move to a time at which nothing is in flight any more.
    pub fn settle(&mut self) {
        let quiet = self.now.iter().max().map_or(0, |t| t.0) + 1_000_000;
        self.now.fill(Picos(quiet));
    }
}

/// Small fast generator, so that a failing seed can be replayed anywhere.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 16) % n
    }
}
