//! The machine model behind the lanes, and the regions that count.

use std::collections::BTreeMap;

use piebald_hw::{Counters, Machine, Options};
use piebald_units::{
    Asid, CoreId, Hertz, PAGE_SHIFT, PageSize, PhysAddr, Picos, VirtAddr,
    memory::{MemoryPort, PageTables, PhysRef, Walk},
    op::RefKind,
};

use super::{
    args::Args,
    held::{LastLevel, Sampling},
    lanes::Sink,
    mark::{Mark, Op},
    published::{EVENTS, Published},
    results::{Dump, LevelCounts, VcpuCounts},
    word::{Kind, Word},
};

/// Lines of a page, and so sets that a page falls into.
const LINES_OF_PAGE: usize = 1 << (PAGE_SHIFT - LINE_SHIFT);
/// Bytes of a line, as a power of two.
const LINE_SHIFT: u32 = 6;

/// References are by physical address: there is nothing to translate.
struct Physical;

impl PageTables for Physical {
    fn asid(&self) -> Asid {
        Asid(0)
    }

    fn walk(&self, _: VirtAddr) -> Walk {
        Walk {
            entries: Default::default(),
            levels: 0,
            page: PageSize::Huge,
        }
    }
}

/// What a processor has done since the model was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Done {
    counters: Counters,
    time: Picos,
    nt_loads: u64,
    nt_stores: u64,
    locked: u64,
    shared_writes: u64,
}

impl Done {
    /// Changes a sum by what has happened between two points in time.
    fn add(&mut self, from: &Self, to: &Self) {
        self.counters = self.counters + (to.counters - from.counters);
        self.time.0 += to.time.0 - from.time.0;
        self.nt_loads += to.nt_loads - from.nt_loads;
        self.nt_stores += to.nt_stores - from.nt_stores;
        self.locked += to.locked - from.locked;
        self.shared_writes += to.shared_writes - from.shared_writes;
    }

    fn counts(&self, levels: usize) -> VcpuCounts {
        let c = &self.counters;
        let level = |k: usize| LevelCounts {
            accesses: c.level[k].accesses,
            misses: c.level[k].misses,
        };
        VcpuCounts {
            instructions: c.instructions,
            references: c.references,
            time_ps: self.time.0,
            levels: (0..levels).map(level).collect(),
            memory_reads: c.memory_reads,
            prefetch_reads: c.prefetch_reads,
            memory_writes: c.memory_writes,
            row_hits: c.row_hits,
            row_closed: c.row_closed,
            row_conflicts: c.row_conflicts,
            transfers: c.transfers,
            upgrades: c.upgrades,
            nt_loads: self.nt_loads,
            nt_stores: self.nt_stores,
            locked: self.locked,
            shared_writes: self.shared_writes,
        }
    }
}

/// A region: what it counted while it was open before, and where it was opened last.
#[derive(Clone, Debug)]
struct Region {
    sum: Vec<Done>,
    since: Option<Vec<Done>>,
}

/// One virtual processor.
#[derive(Clone, Copy, Debug, Default)]
struct Vcpu {
    /// Its time in this quantum.
    now: Picos,
    /// All its time.
    time: Picos,
    nt_loads: u64,
    nt_stores: u64,
    /// Stores of locked instructions.
    locked: u64,
    /// Stores to lines that another processor had written last.
    shared_writes: u64,
    /// Line that it stored to last by a non-temporal instruction.
    combining: Option<u64>,
}

/// The modelled machine as the guest's processors use it.
pub struct Watcher {
    machine: Machine,
    /// Clock of its cores.
    clock: Hertz,
    /// Where the guest reads its counters.
    published: Option<Published>,
    /// Time at which the quantum began.
    now: Picos,
    vcpus: Vec<Vcpu>,
    /// Of each line the processor that wrote it last, counted from 1; 0 or beyond the end: nobody.
    writers: Vec<u8>,
    batch: Vec<PhysRef>,
    regions: BTreeMap<u16, Region>,
    dumps: Vec<Dump>,
    held: Sampling,
    /// The last levels that are sampled, as the machine counts them.
    groups: Vec<usize>,
    /// Ranges of their sets.
    ranges: usize,
    /// References that went through the model.
    pub references: u64,
}

impl Watcher {
    /// An empty machine whose first cores are the guest's processors.
    ///
    /// # Errors
    /// A machine that cannot be built or has too few cores.
    pub fn new(args: &Args, vcpus: usize) -> Result<Self, String> {
        let options = Options {
            features: args.features,
            ..Options::default()
        };
        let mut machine = Machine::new(&args.machine, &options)
            .map_err(|e| format!("machine {}: {e}", args.machine.name))?;
        let cores = machine.hardware_threads();
        if vcpus > cores {
            let name = &args.machine.name;
            return Err(format!(
                "{vcpus} virtual processors; allowed: 1 to {cores}, the machine {name} has no more"
            ));
        }
        for vcpu in 0..vcpus {
            machine.set_running(CoreId(vcpu as u16), Some(vcpu as u8));
        }
        let published = args.counters.as_deref();
        let published = published.map(|path| Published::open(path, &args.machine.name, vcpus));
        let group = |vcpu: u16| machine.group_of(CoreId(vcpu));
        let mut groups: Vec<usize> = (0..vcpus as u16).map(group).collect();
        groups.sort_unstable();
        groups.dedup();
        let lines = machine.last_level_lines();
        let last = args.machine.cache.iter().max_by_key(|c| c.level);
        let sets = last.map_or(lines, |c| lines / c.ways.max(1) as usize);
        let level = |of: &usize| LastLevel {
            vcpus: (0..vcpus as u16).filter(|v| group(*v) == *of).collect(),
            sets: sets as u32,
            lines: lines as u32,
            samples: Vec::new(),
        };
        let held = Sampling::new(groups.iter().map(level).collect());
        Ok(Self {
            held,
            groups,
            ranges: (sets / LINES_OF_PAGE).max(1),
            machine,
            clock: args.machine.core.clock,
            published: published.transpose()?,
            now: Picos(0),
            vcpus: vec![Vcpu::default(); vcpus],
            writers: Vec::new(),
            batch: Vec::new(),
            regions: BTreeMap::new(),
            dumps: Vec::new(),
            references: 0,
        })
    }

    /// Names of the cache levels.
    pub fn levels(&self) -> &[String] {
        self.machine.level_names()
    }

    /// What marks have asked for so far.
    pub fn dumps(&self) -> &[Dump] {
        &self.dumps
    }

    /// What the last levels held, one entry for each that a processor uses.
    pub fn last_levels(&self) -> &[LastLevel] {
        self.held.levels()
    }

    /// What every region has counted so far.
    pub fn regions(&self) -> Vec<Dump> {
        let regions = self.regions.keys();
        regions.filter_map(|r| self.read(*r)).collect()
    }

    fn read(&self, region: u16) -> Option<Dump> {
        let found = self.regions.get(&region)?;
        let levels = self.levels().len();
        let counts = |(vcpu, sum): (usize, &Done)| {
            let mut sum = *sum;
            if let Some(since) = &found.since {
                sum.add(&since[vcpu], &self.done(vcpu));
            }
            sum.counts(levels)
        };
        Some(Dump {
            region,
            vcpus: found.sum.iter().enumerate().map(counts).collect(),
        })
    }

    fn done(&self, vcpu: usize) -> Done {
        let state = &self.vcpus[vcpu];
        Done {
            counters: self.machine.counters(CoreId(vcpu as u16)),
            time: state.time,
            nt_loads: state.nt_loads,
            nt_stores: state.nt_stores,
            locked: state.locked,
            shared_writes: state.shared_writes,
        }
    }

    fn all_done(&self) -> Vec<Done> {
        (0..self.vcpus.len()).map(|v| self.done(v)).collect()
    }

    /// Writes all counts to where the guest can read them.
    pub fn publish(&self) {
        if let Some(published) = &self.published {
            published.write((0..self.vcpus.len()).map(|v| self.events(v)));
        }
    }

    /// What a processor has counted since the model was built, in the order of [`EVENTS`].
    fn events(&self, vcpu: usize) -> [u64; EVENTS.len()] {
        let Done {
            counters: c,
            time,
            locked,
            shared_writes,
            ..
        } = self.done(vcpu);
        let misses = |level: usize| c.level[level].misses;
        let last = self.levels().len().saturating_sub(1);
        let cycles = u128::from(time.0) * u128::from(self.clock.0) / 1_000_000_000_000;
        [
            c.instructions,
            cycles as u64,
            c.references,
            misses(1.min(last)),
            c.level[last].accesses,
            misses(last),
            c.memory_reads,
            c.memory_writes,
            c.row_hits,
            c.row_conflicts,
            locked,
            shared_writes,
        ]
    }

    fn obey(&mut self, mark: Mark) {
        let here = self.all_done();
        let nothing = vec![Done::default(); self.vcpus.len()];
        let region = self.regions.entry(mark.region).or_insert(Region {
            sum: nothing.clone(),
            since: None,
        });
        match mark.op {
            Op::Start => region.since = region.since.take().or(Some(here)),
            Op::Stop => {
                if let Some(since) = region.since.take() {
                    for (sum, (from, to)) in region.sum.iter_mut().zip(since.iter().zip(&here)) {
                        sum.add(from, to);
                    }
                }
            }
            Op::Clear => {
                region.sum = nothing;
                region.since = region.since.take().map(|_| here);
            }
            Op::Dump => self.dumps.extend(self.read(mark.region)),
            Op::Publish => {}
        }
    }

    /// Runs what has gathered of a processor's references.
    fn run_batch(&mut self, vcpu: usize) {
        if self.batch.is_empty() {
            return;
        }
        let now = self.vcpus[vcpu].now;
        let core = CoreId(vcpu as u16);
        let progress = self
            .machine
            .run(core, &Physical, &self.batch, now, Picos::MAX);
        self.references += progress.done as u64;
        self.batch.clear();
        self.elapse(vcpu, progress.now);
    }

    fn elapse(&mut self, vcpu: usize, to: Picos) {
        let state = &mut self.vcpus[vcpu];
        state.time.0 += to.0 - state.now.0;
        state.now = to;
    }

    /// Notes who writes a line.
    fn note_store(&mut self, vcpu: usize, addr: u64) {
        let (line, writer) = ((addr >> LINE_SHIFT) as usize, vcpu as u8 + 1);
        if line >= self.writers.len() {
            self.writers.resize((line + 1).next_power_of_two(), 0);
        }
        let last = core::mem::replace(&mut self.writers[line], writer);
        self.vcpus[vcpu].shared_writes += u64::from(last != 0 && last != writer);
    }

    /// A store past the caches: they lose the line, and it goes to memory when the
    /// processor turns to another one.
    fn store_around(&mut self, vcpu: usize, word: Word) {
        self.run_batch(vcpu);
        self.pass(vcpu, word.gap());
        self.note_store(vcpu, word.payload());
        let state = &mut self.vcpus[vcpu];
        state.nt_stores += 1;
        let line = word.payload() >> LINE_SHIFT;
        if state.combining != Some(line) {
            state.combining = Some(line);
            let addr = PhysAddr(line << LINE_SHIFT);
            self.machine
                .write_around(CoreId(vcpu as u16), addr, state.now);
        }
    }
}

impl Sink for Watcher {
    fn begin(&mut self) {
        for vcpu in &mut self.vcpus {
            vcpu.now = self.now;
        }
    }

    fn references(&mut self, vcpu: usize, words: &[Word]) {
        for word in words {
            let kind = match word.kind() {
                Kind::Store => {
                    self.note_store(vcpu, word.payload());
                    RefKind::Store
                }
                Kind::StoreLocked => {
                    self.vcpus[vcpu].locked += 1;
                    self.note_store(vcpu, word.payload());
                    RefKind::Store
                }
                Kind::StoreNt => {
                    self.store_around(vcpu, *word);
                    continue;
                }
                Kind::LoadNt => {
                    self.vcpus[vcpu].nt_loads += 1;
                    RefKind::LoadNt
                }
                _ => RefKind::Load,
            };
            let addr = word.payload();
            self.batch.push(PhysRef {
                vaddr: VirtAddr(addr),
                frame: (addr >> PAGE_SHIFT) as u32,
                gap: word.gap() as u32,
                size: word.bytes(),
                kind,
                ..PhysRef::default()
            });
        }
        self.run_batch(vcpu);
    }

    fn pass(&mut self, vcpu: usize, instructions: u64) {
        let now = self.vcpus[vcpu].now;
        let instructions = instructions.min(u32::MAX.into()) as u32;
        let to = self.machine.retire(CoreId(vcpu as u16), instructions, now);
        self.elapse(vcpu, to);
    }

    fn mark(&mut self, _: usize, code: u16) -> bool {
        if let Some(mark) = Mark::from_code(code)
            && mark.op != Op::Publish
        {
            self.obey(mark);
        }
        self.regions.values().any(|r| r.since.is_some())
    }

    fn end(&mut self) {
        let latest = self.vcpus.iter().map(|v| v.now).max();
        self.now = latest.unwrap_or(self.now);
        let (machine, vcpus) = (&self.machine, self.vcpus.len());
        let (groups, ranges) = (&self.groups, self.ranges);
        let lines = |place: usize| machine.occupancy(groups[place], ranges, vcpus);
        self.held.look(self.now, lines);
    }
}

#[cfg(test)]
#[path = "watcher_tests.rs"]
mod tests;
