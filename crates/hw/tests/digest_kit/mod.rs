//! Machines, address spaces and random programs that the machine tests share.
#![allow(dead_code)]

use piebald_hw::{
    Counters, Features, Machine, Options,
    spec::{CacheSpec, Holds, Inclusion, Indexing, MachineSpec, Protocol, Replacement, Spread},
};
use piebald_units::{
    Asid, Bytes, CoreId, PageSize, Pfn, PhysAddr, Picos, VirtAddr,
    memory::{Load, MemoryPort, PageTables, PhysRef, Span, Walk},
    op::RefKind,
};

/// Four cores behind one inclusive last level; the other machines change it.
const BASE: &str = r#"
name = "test"
title = "test"
[sources]
[core]
sockets = 1
per_socket = 4
clock = "2.93GHz"
base_cpi = 0.6
width = 4
window = 128
l1_fill_buffers = 10
shared_fill_buffers = 16
[[cache]]
name = "L1I"
level = 1
holds = "instruction"
size = "32KiB"
ways = 4
latency = 4
index = "virtual"
replacement = "tree-plru"
[[cache]]
name = "L1D"
level = 1
holds = "data"
size = "32KiB"
ways = 8
latency = 4
index = "virtual"
replacement = "tree-plru"
[[cache]]
name = "L2"
level = 2
size = "64KiB"
ways = 8
latency = 10
replacement = "tree-plru"
[[cache]]
name = "L3"
level = 3
size = "256KiB"
ways = 16
latency = 44
shared_by = 4
replacement = "nru"
inclusion = "inclusive"
[tlb]
l1 = { entries = 64, ways = 4 }
l1_huge = { entries = 32, ways = 4 }
l1i = { entries = 128, ways = 4 }
l2 = { entries = 512, ways = 4 }
l2_latency = 7
walk_cache = 32
[memory]
size = "1GiB"
fixed_latency = "18ns"
[memory.dram]
channels = 4
interleave = { modulo = "64B" }
ranks = 4
banks = 8
row_size = "8KiB"
[memory.dram.timing]
tck = "1875ps"
cl = 7
cwl = 6
bl = 8
rcd = 7
rp = 7
ras = 20
rc = 27
ccd = 4
rrd = 4
faw = 20
wr = 8
wtr = 4
rtp = 4
rfc = 59
refi = 4160
[links]
same_group_transfer = 75
same_socket_transfer = 90
other_socket_transfer = 200
hop_latency = 30
"#;

pub fn base() -> MachineSpec {
    toml::from_str(BASE).expect("the test machine parses")
}

fn kib(n: u64) -> Bytes {
    Bytes(n << 10)
}

/// Every replacement LRU, sizes of the comparison with other simulators.
pub fn peers() -> MachineSpec {
    let mut spec = base();
    let sizes = [kib(32), kib(32), kib(512), kib(2048)];
    for (cache, size) in spec.cache.iter_mut().zip(sizes) {
        cache.replacement = Replacement::Lru;
        cache.size = size;
    }
    spec.memory.size = Bytes(12 << 30);
    spec.memory.dram.channels = 3;
    spec
}

fn prefetching(spec: &mut MachineSpec) {
    spec.prefetch.dcu_next_line = true;
    spec.prefetch.dcu_ip_stride = true;
    spec.prefetch.l2_streamer = true;
    spec.prefetch.l2_adjacent_line = true;
}

/// Two hardware threads per core and all prefetchers.
pub fn smt() -> MachineSpec {
    let mut spec = base();
    spec.core.smt = 2;
    prefetching(&mut spec);
    spec
}

/// Four sockets, exclusive second and victim last level, MOESI, a virtually
/// indexed first level with aliases, one controller per socket.
pub fn opteron() -> MachineSpec {
    let mut spec = base();
    spec.core.sockets = 4;
    for first in &mut spec.cache[..2] {
        first.size = kib(64);
        first.ways = 2;
        first.replacement = Replacement::Lru;
    }
    spec.cache[2].ways = 16;
    spec.cache[2].inclusion = Inclusion::Exclusive;
    spec.cache[3].ways = 32;
    spec.cache[3].replacement = Replacement::TreePlru;
    spec.cache[3].inclusion = Inclusion::Victim;
    spec.prefetch.l2_streamer = true;
    spec.links.protocol = Protocol::Moesi;
    spec.links.hops = vec![
        vec![0, 1, 1, 2],
        vec![1, 0, 2, 1],
        vec![1, 2, 0, 1],
        vec![2, 1, 1, 0],
    ];
    spec.memory.controllers = 8;
    spec.memory.spread = Spread::Page;
    if let Some(tlb) = &mut spec.tlb {
        tlb.l1.ways = 64;
        tlb.l1_huge.ways = 32;
    }
    spec
}

/// Two sockets of two dies; the second level is the last, and misses cross a bus.
pub fn front_side_bus() -> MachineSpec {
    let mut spec = base();
    spec.core.sockets = 2;
    spec.cache.pop();
    spec.cache[2].ways = 16;
    spec.cache[2].shared_by = 2;
    spec.cache[2].size = kib(128);
    spec.links.socket_bus_bytes_per_second = Some(Bytes(10_666_666_666));
    spec.links.same_socket_transfer = None;
    spec.links.other_socket_transfer = None;
    prefetching(&mut spec);
    spec
}

/// Hashed slices, RRIP, a victim last level, two threads per core.
pub fn sliced() -> MachineSpec {
    let mut spec = smt();
    spec.core.per_socket = 8;
    spec.cache[2].ways = 16;
    spec.cache[3].ways = 11;
    spec.cache[3].size = kib(352);
    spec.cache[3].shared_by = 8;
    spec.cache[3].replacement = Replacement::Rrip;
    spec.cache[3].inclusion = Inclusion::Victim;
    spec.cache[3].slice_hash = ["0x1b5f575440", "0x2eb5faa880"].map(String::from).to_vec();
    spec.memory.spread = Spread::Line;
    spec.memory.controllers = 2;
    spec
}

/// Two sockets, and the given promises of the second and the last level.
pub fn promising(second: Inclusion, last: Inclusion, kind: Replacement) -> MachineSpec {
    let mut spec = base();
    spec.core.sockets = 2;
    spec.core.smt = 2;
    for cache in &mut spec.cache {
        cache.replacement = kind;
    }
    spec.cache[2].inclusion = second;
    spec.cache[3].inclusion = last;
    if kind == Replacement::Lru {
        spec.cache[3].ways = 32;
    }
    spec.links.protocol = match last {
        Inclusion::Inclusive | Inclusion::Exclusive => Protocol::Mesi,
        _ => Protocol::Moesi,
    };
    spec
}

/// One level, unified.
pub fn one_level() -> MachineSpec {
    let mut spec = base();
    spec.cache = vec![CacheSpec {
        holds: Holds::Unified,
        index: Indexing::Physical,
        ..spec.cache[1].clone()
    }];
    spec
}

/// An identity map, except that odd spaces see frame pairs swapped, so that
/// virtual and physical index bits differ.
pub struct Space(pub u32);

impl Space {
    pub fn frame(&self, page: u64) -> u32 {
        (page ^ (u64::from(self.0 & 1) * 5)) as u32
    }
}

impl PageTables for Space {
    fn asid(&self) -> Asid {
        Asid(self.0)
    }

    fn walk(&self, addr: VirtAddr) -> Walk {
        let leaf = (512 << 20) + (addr.0 >> 12) * 8;
        let upper = (768 << 20) + (addr.0 >> 21) * 8;
        let huge = self.0 == 3;
        Walk {
            entries: [
                PhysAddr((896 << 20) + 8),
                PhysAddr(896 << 20),
                PhysAddr(upper),
                PhysAddr(leaf),
            ],
            levels: if huge { 3 } else { 4 },
            page: if huge { PageSize::Huge } else { PageSize::Base },
        }
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

/// Everything that a run leaves behind, folded into one number (FNV-1a).
pub struct Digest(pub u64);

impl Digest {
    pub fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub fn add(&mut self, value: u64) {
        for byte in value.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    pub fn add_counters(&mut self, c: &Counters) {
        let plain = [
            c.instructions,
            c.references,
            c.transfers,
            c.upgrades,
            c.memory_reads,
            c.prefetch_reads,
            c.memory_writes,
            c.row_hits,
            c.row_closed,
            c.row_conflicts,
            c.tlb_misses,
            c.walks,
            c.prefetches,
            c.useful_prefetches,
        ];
        let levels = [c.fetch, c.level[0], c.level[1], c.level[2]];
        for value in plain {
            self.add(value);
        }
        for level in levels {
            self.add(level.accesses);
            self.add(level.misses);
        }
    }

    pub fn add_machine(&mut self, machine: &Machine) {
        for thread in 0..machine.hardware_threads() {
            self.add_counters(&machine.counters(CoreId(thread as u16)));
        }
        for group in 0..machine.groups() {
            for cell in machine.occupancy(group, 8, 8).iter().flatten() {
                self.add(u64::from(*cell));
            }
        }
    }
}

pub fn machine(spec: &MachineSpec, features: Features) -> Machine {
    let options = Options {
        features,
        ..Options::default()
    };
    Machine::new(spec, &options).expect("the test machine is valid")
}

/// Byte addresses of the four streams of the comparison: hot, zipf, uniform, strided.
pub fn stream(name: &str, n: u64) -> Vec<u64> {
    let mut rng = Rng(0x2545_F491_4F6C_DD1D);
    let zipf = |rng: &mut Rng| {
        let unit = (rng.next() >> 11) as f64 / (1u64 << 53) as f64;
        let rank = (((1 << 20) as f64 + 1.0).powf(unit) - 1.0) as u64;
        rank.min((1 << 20) - 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) % (1 << 20)
    };
    (0..n)
        .map(|i| match name {
            "hot" if rng.below(10) == 0 => (16 << 20) + rng.below(64 << 20),
            "hot" => rng.below(16 << 10),
            "zipf" => zipf(&mut rng) * 64,
            "uniform" => rng.below(256 << 20),
            _ => i * 8 % (256 << 20),
        })
        .collect()
}

/// Runs one stream of loads on core 0 in batches; returns the last clock.
pub fn run_stream(machine: &mut Machine, addrs: &[u64]) -> Picos {
    machine.set_running(CoreId(0), Some(1));
    let refs: Vec<PhysRef> = addrs
        .iter()
        .map(|a| PhysRef {
            vaddr: VirtAddr(a & !7),
            frame: (a >> 12) as u32,
            gap: 3,
            size: 8,
            kind: RefKind::Load,
            ..PhysRef::default()
        })
        .collect();
    let mut now = Picos(0);
    for batch in refs.chunks(1024) {
        now = machine
            .run(CoreId(0), &Space(2), batch, now, Picos::MAX)
            .now;
    }
    now
}

/// One random reference of a program that sweeps, jumps and shares.
fn random_ref(rng: &mut Rng, space: &Space, at: &mut u64) -> PhysRef {
    let page = |rng: &mut Rng| match rng.below(8) {
        0 => rng.below(8),
        1..=4 => rng.below(64),
        _ => rng.below(512),
    };
    let vaddr = match rng.below(4) {
        0 => page(rng) << 12 | rng.below(4096),
        1 => (*at + 64) % (2 << 20),
        _ => (*at + rng.below(24)) % (2 << 20),
    };
    *at = vaddr;
    let kind = match rng.below(16) {
        0..=7 => RefKind::Load,
        8..=10 => RefKind::Store,
        11 => RefKind::Update,
        12..=14 => RefKind::Fetch,
        _ => RefKind::LoadNt,
    };
    PhysRef {
        vaddr: VirtAddr(vaddr),
        frame: space.frame(vaddr >> 12),
        site: rng.below(40) as u32 * 7,
        gap: rng.below(6) as u32,
        dep: [0, 0, 1, 2, 300][rng.below(5) as usize],
        size: [1, 4, 8, 8, 16, 64][rng.below(6) as usize],
        kind,
    }
}

/// Random programs on every hardware thread: references in batches with
/// horizons, copies, fills, drains, shoot-downs and changes of owner. The rules
/// of inclusion and coherence are recounted on the way.
pub fn run_mixed(machine: &mut Machine, seed: u64, steps: u32) -> Digest {
    let mut rng = Rng(seed | 1);
    let mut digest = Digest::new();
    let threads = machine.hardware_threads() as u64;
    let mut clocks = vec![Picos(0); threads as usize];
    let mut places = vec![0; threads as usize];
    for thread in 0..threads / 2 + 1 {
        machine.set_running(CoreId(thread as u16), Some(1 + (thread % 6) as u8));
    }
    for step in 0..steps {
        // Half of the time the core whose clock is behind, as the simulator does it.
        let t = match rng.below(2) {
            0 => rng.below(threads) as usize,
            _ => (0..clocks.len()).min_by_key(|t| clocks[*t]).unwrap_or(0),
        };
        let core = CoreId(t as u16);
        let now = clocks[t];
        let frame = |rng: &mut Rng| Pfn(rng.below(512));
        let span = Span {
            offset: rng.below(2048) as u16,
            len: rng.below(2049) as u16,
        };
        clocks[t] = match rng.below(64) {
            0 => {
                let load = [Load::Caching, Load::NonCaching][rng.below(2) as usize];
                machine.copy(core, frame(&mut rng), frame(&mut rng), span, load, now)
            }
            1 => machine.fill(core, frame(&mut rng), span, now),
            2 => machine.drain(core, now),
            3 => machine.retire(core, rng.below(5000) as u32, now),
            4 => {
                let page = (rng.below(2) == 0).then_some(VirtAddr(rng.below(512) << 12));
                machine.shoot_down(Asid(rng.below(4) as u32), page);
                now
            }
            5 => {
                let owner = (rng.below(3) != 0).then_some(rng.below(8) as u8);
                machine.set_running(core, owner);
                now
            }
            _ => {
                let space = Space(rng.below(4) as u32);
                let refs: Vec<PhysRef> = (0..rng.below(40))
                    .map(|_| random_ref(&mut rng, &space, &mut places[t]))
                    .collect();
                let horizon = now + Picos(rng.below(200_000));
                let progress = machine.run(core, &space, &refs, now, horizon);
                digest.add(progress.done as u64);
                progress.now
            }
        };
        digest.add(clocks[t].0);
        if step % (steps / 4) == 0 {
            machine.validate().expect("the rules hold on the way");
        }
    }
    machine.validate().expect("the rules hold at the end");
    digest.add_machine(machine);
    digest
}
