//! What it costs to simulate chosen regions of a recording instead of all of it.
//!
//! The whole recording (or its first part) and each region are run alone on a machine, with the
//! stock allocator on fresh memory. A region's figures, weighted by the instructions that it
//! stands for, are compared with those of the whole.
//!
//! A region is entered with what it would have found: the mappings of that moment, every page
//! that the program touched before and still has (one reference each, in the order of first
//! touch), then one interval of references that warm caches, translation and predictors. None of
//! that is measured. Without the pages, first touches that happened long before would be charged
//! to each region again.

mod entered;

use std::{collections::HashMap, sync::Arc};

use piebald_sim::{
    Outcome, ProgramSetup, Setup, SimError,
    rooms::{
        hw::{Features, Machine, Options, SpecError, spec::MachineSpec},
        os_model::{
            frames::{Flavour, Stock, StockConfig},
            kernel::{ColorRule, Kernel, KernelConfig, Thp},
        },
        trace::recording::{
            ChunkEntry, ProgramThread, ReadError, Recording, ReplayOptions, ThreadVectors,
            regions::{Region, RegionOptions, Regions, choose},
        },
        workload::{Program, ProgramError, Recorded},
    },
};
use piebald_units::{
    CoreSet, PAGE_SHIFT, Picos, VirtAddr,
    op::{MemRef, Next, OpSource, RefKind},
};
use rayon::prelude::*;
use serde::Serialize;

use self::entered::Entered;

/// More references than any recording has.
const NO_LIMIT: u64 = u64::MAX >> 2;

/// Why regions could not be chosen or checked.
#[derive(Debug, thiserror::Error)]
pub enum RegionError {
    /// The recording is damaged.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Only a program of one thread can be entered in its middle.
    #[error(
        "{name}: {threads} threads; allowed: recordings of one thread (a region of one thread \
         would lack the others)"
    )]
    Threads {
        /// The recording.
        name: String,
        /// How many it has.
        threads: usize,
    },
    /// There is nothing to choose from.
    #[error(
        "{name}: {instrs} instructions within {refs} references, less than one interval of \
         {interval}; allowed: a shorter interval or a larger budget"
    )]
    TooShort {
        /// The recording.
        name: String,
        /// Instructions that may be used.
        instrs: u64,
        /// References that may be used.
        refs: u64,
        /// Instructions of an interval.
        interval: u64,
    },
    /// The recording cannot be replayed.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The machine cannot be built.
    #[error("machine: {0}")]
    Machine(#[from] SpecError),
    /// The modelled kernel could not be built.
    #[error("kernel: {0}")]
    Kernel(String),
    /// A run failed.
    #[error(transparent)]
    Run(#[from] SimError),
}

/// The part of a single-threaded recording that regions are chosen from.
#[derive(Clone, Debug)]
pub struct Plan {
    thread: ProgramThread,
    /// Instructions of the part, from the first.
    pub instrs: u64,
    /// Instructions of an interval.
    pub interval: u64,
    /// What was chosen.
    pub regions: Regions,
}

/// Chooses regions of a single-threaded recording's first `budget_refs` references (rounded up
/// to a whole chunk, then down to whole intervals), or of all of it.
///
/// # Errors
/// The recording is damaged, has several threads, or is shorter than an interval.
pub fn plan(
    recording: &Recording,
    interval: u64,
    budget_refs: Option<u64>,
    options: &RegionOptions,
) -> Result<Plan, RegionError> {
    let threads = recording.threads()?;
    let [thread] = threads.as_slice() else {
        return Err(RegionError::Threads {
            name: recording.name().to_owned(),
            threads: threads.len(),
        });
    };
    let thread = thread.clone();
    let (limit, refs) = limit(recording, &thread, budget_refs);
    let mut vectors = recording.block_vectors(interval)?;
    let mut own = vectors.pop().unwrap_or(ThreadVectors {
        thread: thread.thread,
        intervals: Vec::new(),
    });
    own.intervals
        .retain(|v| v.start.saturating_add(v.instrs) <= limit);
    let Some(last) = own
        .intervals
        .last()
        .filter(|v| v.start + v.instrs >= interval)
    else {
        return Err(RegionError::TooShort {
            name: recording.name().to_owned(),
            instrs: limit,
            refs,
            interval,
        });
    };
    Ok(Plan {
        instrs: last.start + last.instrs,
        interval,
        regions: choose(&own, options),
        thread,
    })
}

/// The chunks of a thread of the program, with the instruction of the thread that each begins at.
fn chunks<'a>(
    recording: &'a Recording,
    thread: &'a ProgramThread,
) -> impl Iterator<Item = (usize, u64, &'a ChunkEntry)> {
    let mut before = 0;
    thread.segments.iter().flat_map(move |segment| {
        let all = recording.index().chunks.iter().enumerate();
        let own: Vec<(usize, u64, &ChunkEntry)> = all
            .filter(|(_, c)| c.thread == *segment)
            .map(|(i, c)| (i, before + c.first_instr, c))
            .collect();
        before += own.iter().map(|(_, _, c)| c.instrs).sum::<u64>();
        own
    })
}

/// Instructions and references up to the end of the chunk that reaches the budget.
fn limit(recording: &Recording, thread: &ProgramThread, budget: Option<u64>) -> (u64, u64) {
    let (mut instrs, mut refs) = (0, 0);
    for (_, start, chunk) in chunks(recording, thread) {
        if budget.is_some_and(|b| refs >= b) {
            break;
        }
        instrs = start + chunk.instrs;
        refs += u64::from(chunk.refs);
    }
    (instrs, refs)
}

/// What a run or a weighted sum of runs came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Clock cycles per instruction, the kernel's work for the program included.
    pub cpi: f64,
    /// Demand misses of the last level in 1000 instructions.
    pub last_level_mpki: f64,
    /// References that were measured.
    pub refs: u64,
}

/// One region and what it gave.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RegionFigures {
    /// Number of its first instruction.
    pub start: u64,
    /// Its length in instructions.
    pub instrs: u64,
    /// Share of all instructions that it stands for.
    pub weight: f64,
    /// What it gave.
    pub figures: Figures,
}

/// The whole beside the weighted regions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Name of the machine.
    pub machine: String,
    /// Name of the last level.
    pub last_level: String,
    /// Everything, simulated.
    pub whole: Figures,
    /// The regions, weighted. References are summed: what was measured.
    pub weighted: Figures,
    /// `(weighted - whole) / whole` of the cycles per instruction.
    pub cpi_error: f64,
    /// The same of the misses; `None` if the whole has none.
    pub mpki_error: Option<f64>,
    /// References simulated for the regions, warm-up included, as a share of the whole's.
    pub simulated_share: f64,
    /// Each region, by rising start.
    pub regions: Vec<RegionFigures>,
}

/// Runs the whole part and its regions on a machine.
///
/// # Errors
/// The machine or kernel cannot be built, the recording is damaged, or a run fails.
pub fn check(
    recording: &Recording,
    plan: &Plan,
    machine: &MachineSpec,
) -> Result<Check, RegionError> {
    let lab = Lab {
        recording,
        plan,
        machine,
    };
    let jobs: Vec<Option<Region>> = std::iter::once(None)
        .chain(plan.regions.regions.iter().copied().map(Some))
        .collect();
    let mut runs = jobs
        .par_iter()
        .map(|job| match job {
            None => lab.whole(),
            Some(region) => lab.region(region),
        })
        .collect::<Result<Vec<_>, _>>()?
        .into_iter();
    let (whole, whole_refs) = runs.next().unwrap_or_default();
    let mut weighted = Figures::default();
    let (mut regions, mut simulated) = (Vec::new(), 0);
    for (region, (figures, refs)) in plan.regions.regions.iter().zip(runs) {
        weighted.cpi += region.weight * figures.cpi;
        weighted.last_level_mpki += region.weight * figures.last_level_mpki;
        weighted.refs += figures.refs;
        simulated += refs;
        regions.push(RegionFigures {
            start: region.start,
            instrs: region.instrs,
            weight: region.weight,
            figures,
        });
    }
    let names = Machine::new(machine, &Options::default())?;
    let names = names.level_names();
    let relative = |found: f64, whole: f64| (found - whole) / whole;
    Ok(Check {
        machine: machine.name.clone(),
        last_level: names.last().cloned().unwrap_or_default(),
        cpi_error: relative(weighted.cpi, whole.cpi),
        mpki_error: (whole.last_level_mpki > 0.0)
            .then(|| relative(weighted.last_level_mpki, whole.last_level_mpki)),
        simulated_share: simulated as f64 / whole_refs.max(1) as f64,
        whole,
        weighted,
        regions,
    })
}

struct Lab<'a> {
    recording: &'a Recording,
    plan: &'a Plan,
    machine: &'a MachineSpec,
}

impl Lab<'_> {
    /// The figures of the whole part, and the references that were simulated.
    fn whole(&self) -> Result<(Figures, u64), RegionError> {
        let options = ReplayOptions {
            max_instrs: Some(self.plan.instrs),
            ..replay()
        };
        let program = Recorded::new("whole", self.recording.clone(), options)?;
        self.run(Arc::new(program), 0, NO_LIMIT)
    }

    fn region(&self, region: &Region) -> Result<(Figures, u64), RegionError> {
        let warm = region.start.min(self.plan.interval);
        let start = region.start - warm;
        let touches = self.touched_before(start)?;
        let warmup = touches.len() as u64 + self.refs(start, warm)?;
        let budget = self.refs(region.start, region.instrs)?;
        let options = ReplayOptions {
            start_at: start,
            ..replay()
        };
        let inner = Recorded::new("region", self.recording.clone(), options)?;
        let program = Entered::new(inner, touches);
        // What was touched and is mapped no more is left out on the way: it shortens the warm-up.
        let left_out = program.left_out()?;
        self.run(Arc::new(program), warmup - left_out, budget)
    }

    /// References of so many instructions from `start` on.
    fn refs(&self, start: u64, instrs: u64) -> Result<u64, RegionError> {
        if instrs == 0 {
            return Ok(0);
        }
        let options = ReplayOptions {
            start_at: start,
            max_instrs: Some(instrs),
            mappings: false,
            dependences: false,
            ..ReplayOptions::default()
        };
        let mut source = self.recording.source(self.plan.thread.thread, options)?;
        let mut refs = vec![MemRef::default(); 4096];
        let mut total = 0;
        loop {
            let filled = source.fill(&mut refs);
            total += filled.refs as u64;
            match filled.next {
                Next::Exit(_) | Next::End => return Ok(total),
                Next::Broken => return Err(broken(&source)),
                _ => {}
            }
        }
    }

    /// One reference to each page that the image which runs at `start` touched before, in the
    /// order of first touches.
    fn touched_before(&self, start: u64) -> Result<Vec<(VirtAddr, RefKind)>, RegionError> {
        let mut at: HashMap<u64, usize> = HashMap::new();
        let mut touches: Vec<(VirtAddr, RefKind)> = Vec::new();
        let mut process = None;
        for (index, first, chunk) in chunks(self.recording, &self.plan.thread) {
            if first >= start {
                break;
            }
            if process.replace(chunk.process) != Some(chunk.process) {
                at.clear();
                touches.clear();
            }
            for touch in self.recording.pages_touched(index)? {
                let kind = match touch.store {
                    true => RefKind::Store,
                    false => RefKind::Load,
                };
                let place = *at.entry(touch.page.0).or_insert_with(|| {
                    touches.push((VirtAddr(touch.page.0 << PAGE_SHIFT), kind));
                    touches.len() - 1
                });
                if touch.store {
                    touches[place].1 = RefKind::Store;
                }
            }
        }
        Ok(touches)
    }

    fn run(
        &self,
        input: Arc<dyn Program>,
        warmup: u64,
        budget: u64,
    ) -> Result<(Figures, u64), RegionError> {
        let outcome = piebald_sim::run(Setup {
            machine: self.machine,
            options: Options {
                features: Features::ALL,
                seed: 1,
                disabled_controllers: Vec::new(),
            },
            kernel: self.kernel()?,
            programs: vec![ProgramSetup {
                name: input.name().to_owned(),
                input,
                cores: CoreSet::first(1),
                colors: ColorRule::default(),
                waits: false,
                measured: true,
                start: Picos(0),
                skip: 0,
                marks_ready: false,
                warmup,
                budget,
            }],
            map: None,
            quantum: crate::study::QUANTUM,
            skew: crate::study::SKEW,
            stop: None,
            progress: None,
        })?;
        Ok((self.figures(&outcome), outcome.refs))
    }

    fn kernel(&self) -> Result<Kernel, RegionError> {
        let core = &self.machine.core;
        let threads = core.sockets * core.per_socket * core.smt;
        let frames = self.machine.memory.size.0 >> PAGE_SHIFT;
        let stock = Stock::new(&StockConfig::new(frames, threads, Flavour::default()))
            .map_err(|e| RegionError::Kernel(e.to_string()))?;
        let mut config = KernelConfig::new(threads);
        config.thp = Thp::Never;
        Kernel::new(config, Box::new(stock)).map_err(|e| RegionError::Kernel(e.to_string()))
    }

    fn figures(&self, outcome: &Outcome) -> Figures {
        let Some(program) = outcome.programs.first() else {
            return Figures::default();
        };
        let region = &program.region;
        let instrs = region.counters.instructions.max(1) as f64;
        let deepest = self.machine.cache.iter().map(|c| c.level).max();
        let depth = usize::from(deepest.unwrap_or(1)).saturating_sub(1);
        let misses = region.counters.level.get(depth).map_or(0, |l| l.misses);
        Figures {
            cpi: region.time.0 as f64 * 1e-12 * self.machine.core.clock.0 as f64 / instrs,
            last_level_mpki: 1000.0 * misses as f64 / instrs,
            refs: region.refs,
        }
    }
}

fn replay() -> ReplayOptions {
    ReplayOptions {
        fetches: Features::ALL.fetch,
        ..ReplayOptions::default()
    }
}

fn broken(source: &dyn OpSource) -> RegionError {
    RegionError::Run(SimError::Input {
        program: "region".to_owned(),
        problem: source.failure().unwrap_or_default().to_owned(),
    })
}

#[cfg(test)]
#[path = "regions_tests.rs"]
mod tests;
