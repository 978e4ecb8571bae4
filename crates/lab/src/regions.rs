//! What it costs to simulate chosen regions of a recording instead of all of it.
//!
//! The whole recording (or its first part) and each region are run alone on a machine, with the
//! stock allocator on fresh memory. A region's figures, weighted by the instructions that it
//! stands for, are compared with those of the whole.
//!
//! A region is entered with what it would have found: the mappings of that moment and every page
//! that the program touched before and still has (in the order of first touch), both at no cost;
//! the lines that it used last, as many as the caches hold, the least recent first; and one
//! interval of its references, for translation and predictors and to put lines in their places.
//! None of that is measured. Without the pages, first touches that happened long before would be
//! charged to each region again. Without the lines, an interval would have to be long enough to
//! fill the last level, or each region would miss what the program had long loaded.
//!
//! A recording that itself begins in the middle of its program lacks what was touched before: all
//! pages of its first mappings that it ever touches are then taken to have been there.

mod enter;
mod entered;
mod lines;

use std::sync::Arc;

use piebald_hw::{Features, Machine, Options, SpecError, spec::MachineSpec};
use piebald_sim::{
    Boot, Case, CaseError, ColorSetup, FrameRule, Model, Outcome, ProgramSetup, SimError, Stay,
    Watch,
};
use piebald_trace::recording::{
    ChunkEntry, ProgramThread, ReadError, Recording, ReplayOptions, ThreadVectors, VectorBudget,
    regions::{RegionOptions, Regions, choose},
};
use piebald_units::{CoreSet, Picos};
use piebald_workload::{ProgramError, Recorded};
use rayon::prelude::*;
use serde::Serialize;

pub(crate) use self::enter::{Enter, Entry, midway, ready_at, setup_refs};

/// More references than any recording has.
pub(crate) const NO_LIMIT: u64 = u64::MAX >> 2;

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
    /// First instruction of the part.
    pub from: u64,
    /// Instructions of the part.
    pub instrs: u64,
    /// References up to the end of the part, whole chunks.
    pub refs: u64,
    /// Instructions of an interval.
    pub interval: u64,
    /// What was chosen.
    pub regions: Regions,
}

/// Which part of a recording regions shall stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Instructions that are passed over: intervals that begin before are left out.
    pub from: u64,
    /// References from the recording's first on, rounded up to a whole chunk; all if `None`.
    pub refs: Option<u64>,
}

/// The thread of a single-threaded recording.
///
/// # Errors
/// The recording is damaged or has several threads.
pub(crate) fn only_thread(recording: &Recording) -> Result<ProgramThread, RegionError> {
    let mut threads = recording.threads()?;
    match threads.len() {
        1 => Ok(threads.remove(0)),
        n => Err(RegionError::Threads {
            name: recording.name().to_owned(),
            threads: n,
        }),
    }
}

/// Instructions and references of the part of a recording that a span reaches, from the first.
///
/// # Errors
/// As [`only_thread`].
pub(crate) fn reach(recording: &Recording, span: Span) -> Result<(u64, u64), RegionError> {
    let thread = only_thread(recording)?;
    Ok(limit(recording, &thread, span.refs))
}

/// Chooses regions of a part of a single-threaded recording.
///
/// # Errors
/// The recording is damaged or has several threads, the part is shorter than an interval, or
/// the interval is so short that there are too many of them.
pub fn plan(
    recording: &Recording,
    interval: u64,
    span: Span,
    options: &RegionOptions,
) -> Result<Plan, RegionError> {
    let thread = only_thread(recording)?;
    let (instrs, refs) = limit(recording, &thread, span.refs);
    let budget = VectorBudget {
        instrs,
        ..VectorBudget::default()
    };
    let mut vectors = recording.block_vectors(interval, budget)?;
    let mut own = vectors.pop().unwrap_or(ThreadVectors {
        thread: thread.thread,
        intervals: Vec::new(),
    });
    own.intervals.retain(|v| v.start >= span.from);
    let ends = own.intervals.first().zip(own.intervals.last());
    let ends = ends.map(|(first, last)| (first.start, last.start + last.instrs));
    let Some((from, to)) = ends.filter(|(from, to)| to - from >= interval) else {
        return Err(RegionError::TooShort {
            name: recording.name().to_owned(),
            instrs: instrs.saturating_sub(span.from),
            refs,
            interval,
        });
    };
    Ok(Plan {
        from,
        instrs: to - from,
        refs,
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
    let enter = Enter {
        recording,
        plan,
        warmup: plan.interval,
        lines: cache_lines(machine),
        options: replay(),
    };
    let entries = enter.all("region")?.into_iter().map(Some);
    let jobs: Vec<Option<Entry>> = std::iter::once(None).chain(entries).collect();
    let mut runs = jobs
        .into_par_iter()
        .map(|job| match job {
            None => lab.whole(),
            Some(entry) => lab.run(entry),
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
            max_instrs: Some(self.plan.from + self.plan.instrs),
            ..replay()
        };
        let program = Recorded::new("whole", self.recording.clone(), options)?;
        self.run(Entry {
            program: Arc::new(program),
            prime: 0,
            warmup: 0,
            budget: NO_LIMIT,
        })
    }

    fn run(&self, entry: Entry) -> Result<(Figures, u64), RegionError> {
        let setup = ProgramSetup {
            name: entry.program.name().to_owned(),
            input: entry.program,
            cores: CoreSet::first(1),
            colors: ColorSetup::default(),
            waits: false,
            measured: true,
            stay: Stay::default(),
            start: Picos(0),
            skip: 0,
            prime: entry.prime,
            marks_ready: false,
            warmup: entry.warmup,
            budget: entry.budget,
            each: false,
        };
        let boot = Boot::new(FrameRule::Stock, None);
        let case = Case::new(self.machine, boot, vec![setup], 1);
        let outcome = Model::keeping(0).run(&case, Watch::default());
        let outcome = outcome.map_err(|error| match error {
            CaseError::Run(error) => RegionError::from(error),
            other => RegionError::Kernel(other.to_string()),
        })?;
        Ok((self.figures(&outcome), outcome.refs))
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

/// Lines that the caches on a core's path hold.
pub(crate) fn cache_lines(machine: &MachineSpec) -> usize {
    let bytes: u64 = machine.cache.iter().map(|c| c.size.0).sum();
    usize::try_from(bytes / 64).unwrap_or(usize::MAX)
}

fn replay() -> ReplayOptions {
    ReplayOptions {
        fetches: Features::ALL.fetch,
        ..ReplayOptions::default()
    }
}

#[cfg(test)]
#[path = "regions_tests.rs"]
mod tests;
