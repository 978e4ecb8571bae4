//! Studies: every program alone, and all together, under every policy.
//!
//! A study is a list of independent runs: for each policy and repetition one run
//! of every program alone and one of all together. They use all cores of the
//! computer that simulates; results do not depend on how many there are. A
//! repetition draws what a real machine would not hold still: the history of
//! free memory, when each program starts, and where in its life a single-threaded
//! recording is met. All policies and phases of a repetition share its draws, so
//! that differences between them are paired.

use std::{
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    time::Instant,
};

use piebald_report::{
    LevelMpki, MachineSummary, Metrics, MissCurve, PolicyResult, ProgramResult, Role, Sample,
    SetMap, Study,
};
use piebald_sim::{
    MapRequest, Outcome, ProgramSetup, Progress, Region, Setup, SimError,
    rooms::{
        hw::{Machine, Options, spec::MachineSpec},
        os_model::{
            frames::{
                Age, BinHopping, BinHoppingConfig, Flavour, RandomFrames, Stock, StockConfig,
            },
            kernel::{ColorRule, Kernel, KernelConfig, Thp},
        },
        policy::contract::FrameAllocator,
    },
};
use piebald_units::Picos;
use rayon::prelude::*;

use crate::{
    describe::machine_lines,
    jobs::{
        Job, Phase, curve_ways, group_of, groups, jobs, last_level, members, mix,
        narrow_last_level, planned_refs,
    },
    prepare::Prepared,
    scenario::{Frames, MemoryState, Policy, ProgramEntry, Scenario},
};

/// Free memory of an aged machine, in 1/1000: enough for every program, little
/// enough that large blocks are rare.
const AGED_FREE_PERMILLE: u32 = 400;
/// Programs start within this time of one another.
const START_SPREAD_PS: u64 = 100_000_000;
/// How far a thread may run ahead inside its private caches (design: 1 us).
pub(crate) const QUANTUM: Picos = Picos(1_000_000);
/// How far requests to shared levels may be out of order: about one memory
/// latency, so that a core is not switched away from for every reference.
pub(crate) const SKEW: Picos = Picos(50_000);
/// Groups of sets that a set map shows.
const MAP_BUCKETS: usize = 64;

/// What a study needs from outside.
#[derive(Clone, Copy, Default)]
pub struct Hooks<'a> {
    /// Set to end early; what is done is kept and marked as partial.
    pub stop: Option<&'a AtomicBool>,
    /// Called with references done and references planned.
    pub progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
}

/// Why a study failed.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A run failed.
    #[error("policy \"{policy}\": {error}")]
    Run {
        /// Under this policy.
        policy: String,
        /// Why.
        error: SimError,
    },
    /// The modelled kernel or its allocator could not be built.
    #[error("policy \"{policy}\": {problem}")]
    Kernel {
        /// For this policy.
        policy: String,
        /// Why.
        problem: String,
    },
    /// It was stopped before anything was complete.
    #[error("stopped before the first repetition was complete: nothing to report")]
    Nothing,
}

/// A scenario with its inputs.
pub struct Lab<'a> {
    scenario: &'a Scenario,
    inputs: &'a [Prepared],
    hooks: Hooks<'a>,
    done: AtomicU64,
    planned: u64,
}

/// Runs a study.
///
/// # Errors
/// The first run that failed. A stop is no error once a repetition is complete:
/// the study is then marked as partial.
pub fn study(
    scenario: &Scenario,
    inputs: &[Prepared],
    hooks: Hooks<'_>,
) -> Result<Study, StudyError> {
    let start = Instant::now();
    let jobs = jobs(scenario);
    let lab = Lab {
        scenario,
        inputs,
        hooks,
        done: AtomicU64::new(0),
        planned: jobs.iter().map(|j| planned_refs(scenario, j, inputs)).sum(),
    };
    // Runs are taken in the list's order, whoever takes them, so that a stop
    // leaves whole repetitions.
    let next = AtomicUsize::new(0);
    let take = |_| {
        let at = next.fetch_add(1, Ordering::Relaxed);
        Ok((at, lab.run_unless_stopped(jobs[at])?))
    };
    let runs = (0..jobs.len()).into_par_iter().with_max_len(1).map(take);
    let mut results = runs.collect::<Result<Vec<_>, StudyError>>()?;
    results.sort_by_key(|(at, _)| *at);
    let results: Vec<Option<Outcome>> = results.into_iter().map(|(_, o)| o).collect();
    let complete = results.iter().all(Option::is_some);
    let mut study = lab.assemble(&jobs, &results)?;
    study.complete = complete;
    study.simulated_refs = results.iter().flatten().map(|o| o.refs).sum();
    study.host_seconds = start.elapsed().as_secs_f64();
    Ok(study)
}

impl Lab<'_> {
    /// The outcome of a run, or none if the study was stopped before its end.
    fn run_unless_stopped(&self, job: Job) -> Result<Option<Outcome>, StudyError> {
        // Ageing memory alone takes seconds: nothing is begun after a stop.
        if self.hooks.stop.is_some_and(|s| s.load(Ordering::Relaxed)) {
            return Ok(None);
        }
        match self.run(job) {
            Err(StudyError::Run {
                error: SimError::Stopped,
                ..
            }) => Ok(None),
            other => other.map(Some),
        }
    }

    fn run(&self, job: Job) -> Result<Outcome, StudyError> {
        let policy = &self.scenario.policies[job.policy];
        let draw = mix(&[self.scenario.seed, u64::from(job.repetition)]);
        let kernel = self.kernel(policy, draw)?;
        let chosen = members(self.scenario, job.phase);
        let alone = chosen.len() == 1;
        let programs = chosen
            .iter()
            .map(|p| ProgramSetup {
                measured: alone
                    || group_of(self.scenario, *p).map(Phase::Together) == Some(job.phase),
                ..self.program(*p, draw, alone)
            })
            .collect();
        let mut machine = self.scenario.machine.clone();
        if let Phase::Curve(_, ways) = job.phase {
            narrow_last_level(&mut machine, ways);
        }
        let report = |p: Progress| {
            let done = self.done.fetch_add(p.refs, Ordering::Relaxed) + p.refs;
            if let Some(progress) = self.hooks.progress {
                progress(done.min(self.planned), self.planned);
            }
        };
        let first = groups(self.scenario).next().map(Phase::Together);
        let target = chosen.iter().position(|p| self.is_target(*p));
        let map = MapRequest {
            program: target.unwrap_or(0),
            samples: self.scenario.set_map,
            buckets: MAP_BUCKETS,
        };
        let wants_map =
            Some(job.phase) == first && job.repetition == 0 && self.scenario.set_map > 0;
        piebald_sim::run(Setup {
            machine: &machine,
            options: Options {
                features: self.scenario.features,
                seed: mix(&[draw, 1]),
                disabled_controllers: self.scenario.disabled_controllers.clone(),
            },
            kernel,
            programs,
            map: wants_map.then_some(map),
            quantum: QUANTUM,
            skew: SKEW,
            stop: self.hooks.stop,
            progress: Some(&report),
        })
        .map_err(|error| StudyError::Run {
            policy: policy.name.clone(),
            error,
        })
    }

    fn is_target(&self, program: usize) -> bool {
        self.scenario.programs[program].role == Role::Target
    }

    fn program(&self, at: usize, draw: u64, alone: bool) -> ProgramSetup {
        let entry = &self.scenario.programs[at];
        let input = &self.inputs[at];
        let start = mix(&[draw, 2, at as u64]) % START_SPREAD_PS;
        // A target is always met at its beginning, so that its measured part is
        // the same in every study; a polluter is met anywhere.
        let skip = match entry.role {
            Role::Target => 0,
            Role::Polluter => mix(&[draw, 3, at as u64]) % (input.spread + 1),
        };
        ProgramSetup {
            name: entry.name.clone(),
            input: input.program.clone(),
            cores: entry.cores,
            colors: ColorRule::default(),
            start: Picos(if alone { 0 } else { start }),
            waits: entry.role == Role::Target,
            measured: true,
            skip,
            marks_ready: input.marks_ready,
            warmup: input.warmup,
            budget: input.budget,
        }
    }

    fn kernel(&self, policy: &Policy, draw: u64) -> Result<Kernel, StudyError> {
        let fail = |problem: String| StudyError::Kernel {
            policy: policy.name.clone(),
            problem,
        };
        let spec = &self.scenario.machine;
        let frames = spec.memory.size.0 >> 12;
        let threads = spec.core.sockets * spec.core.per_socket * spec.core.smt;
        let allocator: Box<dyn FrameAllocator> = match policy.frames {
            Frames::Stock => {
                let config = StockConfig::new(frames, threads, Flavour::default());
                Box::new(Stock::new(&config).map_err(|e| fail(e.to_string()))?)
            }
            Frames::Random => Box::new(
                RandomFrames::new(frames, mix(&[draw, 4])).map_err(|e| fail(e.to_string()))?,
            ),
            Frames::BinHopping => {
                let config = BinHoppingConfig {
                    frames,
                    bins: page_colors(spec).min(1024),
                    shift: 0,
                };
                Box::new(BinHopping::new(&config).map_err(|e| fail(e.to_string()))?)
            }
        };
        let mut config = KernelConfig::new(threads);
        config.thp = if policy.thp { Thp::Always } else { Thp::Never };
        let mut kernel = Kernel::new(config, allocator).map_err(|e| fail(e.to_string()))?;
        if policy.memory == MemoryState::Aged {
            let age = Age::new(mix(&[draw, 5]), AGED_FREE_PERMILLE, threads);
            kernel.age(&age).map_err(|e| fail(e.to_string()))?;
        }
        Ok(kernel)
    }

    fn assemble(&self, jobs: &[Job], results: &[Option<Outcome>]) -> Result<Study, StudyError> {
        let scenario = self.scenario;
        let find = |policy: usize, repetition: u32, phase: Phase| {
            let job = Job {
                policy,
                repetition,
                phase,
            };
            let at = jobs.iter().position(|j| *j == job)?;
            results[at].as_ref()
        };
        let whole: Vec<u32> = (0..scenario.repetitions)
            .filter(|r| {
                let mine = jobs.iter().zip(results).filter(|(j, _)| j.repetition == *r);
                mine.into_iter().all(|(_, o)| o.is_some())
            })
            .collect();
        if whole.is_empty() {
            return Err(StudyError::Nothing);
        }
        let mut policies = Vec::new();
        for (p, policy) in scenario.policies.iter().enumerate() {
            let mut programs = Vec::new();
            for (i, entry) in scenario.programs.iter().enumerate() {
                let regions = |phase: Phase, at: usize| -> Vec<Region> {
                    let runs = whole.iter().filter_map(|r| find(p, *r, phase));
                    runs.map(|o| o.programs[at].region).collect()
                };
                let alone = self.metrics(&regions(Phase::Alone(i), 0));
                let beside = group_of(scenario, i).map(|group| {
                    let phase = Phase::Together(group);
                    let place = members(scenario, phase).iter().position(|m| *m == i);
                    self.metrics(&regions(phase, place.unwrap_or(0)))
                });
                programs.push(self.program_result(entry, i, alone, beside));
            }
            policies.push(PolicyResult {
                name: policy.name.clone(),
                description: policy.description(),
                programs,
            });
        }
        let first = groups(scenario).next().map(Phase::Together);
        let maps = (0..scenario.policies.len())
            .filter_map(|p| self.set_map(p, first?, find(p, 0, first?)?))
            .collect();
        let curves = (0..scenario.programs.len())
            .filter_map(|i| self.curve(i, &find))
            .collect();
        let mut warnings: Vec<String> = self
            .inputs
            .iter()
            .flat_map(|i| i.warnings.clone())
            .collect();
        if scenario.repetitions == 1 {
            warnings.push("one repetition: no interval can be given".to_owned());
        }
        Ok(Study {
            title: scenario.title.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: MachineSummary {
                name: scenario.machine.name.clone(),
                title: scenario.machine.title.clone(),
                lines: machine_lines(&scenario.machine),
            },
            features: scenario
                .features
                .on()
                .into_iter()
                .map(str::to_owned)
                .collect(),
            missing: missing(scenario),
            seed: scenario.seed,
            repetitions: scenario.repetitions,
            budget_refs: scenario.budget_refs,
            warmup_refs: scenario.warmup_refs,
            scenario: Some(scenario.text.clone()),
            warnings,
            policies,
            curves,
            set_maps: maps,
            ..Study::default()
        })
    }

    fn program_result(
        &self,
        entry: &ProgramEntry,
        at: usize,
        alone: Metrics,
        together: Option<Metrics>,
    ) -> ProgramResult {
        let slowdown = together
            .as_ref()
            .and_then(|t| alone.time_ps.slowdown(&t.time_ps));
        ProgramResult {
            name: entry.name.clone(),
            role: entry.role,
            cores: entry.cores.to_string(),
            colors: None,
            input: self.inputs[at].input.clone(),
            beside: group_of(self.scenario, at).map(|group| {
                let met = members(self.scenario, Phase::Together(group));
                let others = met.into_iter().filter(|m| *m != at);
                others
                    .map(|m| self.scenario.programs[m].name.clone())
                    .collect()
            }),
            alone,
            together,
            slowdown,
        }
    }

    fn metrics(&self, regions: &[Region]) -> Metrics {
        let spec = &self.scenario.machine;
        let of = |f: &dyn Fn(&Region) -> f64| -> Sample { regions.iter().map(f).collect() };
        let per_kilo = |n: u64, r: &Region| 1000.0 * n as f64 / r.counters.instructions as f64;
        let hertz = spec.core.clock.0 as f64;
        let names = level_names(spec);
        let mpki = names
            .into_iter()
            .enumerate()
            .map(|(k, level)| LevelMpki {
                level,
                mpki: of(&|r| per_kilo(r.counters.level[k].misses, r)),
            })
            .collect();
        Metrics {
            time_ps: of(&|r| r.time.0 as f64),
            instructions: of(&|r| r.counters.instructions as f64),
            refs: of(&|r| r.refs as f64),
            ipc: of(&|r| r.counters.instructions as f64 / (r.time.0 as f64 * 1e-12 * hertz)),
            mpki,
            row_hit_rate: Some(of(&|r| {
                r.counters.row_hits as f64 / r.counters.row_accesses() as f64
            })),
            dram_bytes_per_s: of(&|r| r.counters.memory_bytes() as f64 / (r.time.0 as f64 * 1e-12)),
            tlb_mpki: (self.scenario.features.tlb && spec.tlb.is_some())
                .then(|| of(&|r| per_kilo(r.counters.walks, r))),
            pages: of(&|r| r.pages as f64),
            huge_pages: of(&|r| r.huge_pages as f64),
            faults: of(&|r| r.faults as f64),
            extra: Vec::new(),
        }
    }

    fn curve<'o>(
        &self,
        program: usize,
        find: &dyn Fn(usize, u32, Phase) -> Option<&'o Outcome>,
    ) -> Option<MissCurve> {
        if self.scenario.miss_curve == 0 {
            return None;
        }
        let cache = last_level(&self.scenario.machine);
        let depth = level_names(&self.scenario.machine).len() - 1;
        let misses = |o: &Outcome| {
            let c = &o.programs[0].region.counters;
            1000.0 * c.level[depth].misses as f64 / c.instructions as f64
        };
        let mut points = Vec::new();
        for ways in curve_ways(self.scenario) {
            let outcome = find(0, 0, Phase::Curve(program, ways))?;
            let size = cache.size.0 / u64::from(cache.ways) * u64::from(ways);
            points.push((size, misses(outcome)));
        }
        points.push((cache.size.0, misses(find(0, 0, Phase::Alone(program))?)));
        Some(MissCurve {
            program: self.scenario.programs[program].name.clone(),
            cache: cache.name.clone(),
            points,
        })
    }

    fn set_map(&self, policy: usize, phase: Phase, outcome: &Outcome) -> Option<SetMap> {
        if outcome.map.is_empty() {
            return None;
        }
        let spec = &self.scenario.machine;
        let cache = last_level(spec);
        let sets = cache.size.0 / 64 / u64::from(cache.ways);
        let capacity = (sets * u64::from(cache.ways)) as f64 / MAP_BUCKETS as f64;
        let mut owners = vec!["empty".to_owned(), "kernel".to_owned()];
        let programs = members(self.scenario, phase);
        owners.extend(
            programs
                .iter()
                .map(|p| self.scenario.programs[*p].name.clone()),
        );
        let mut shares = Vec::new();
        for sample in &outcome.map {
            for lines in &sample.lines {
                let held: u32 = lines.iter().sum();
                let empty = (capacity - f64::from(held)).max(0.0);
                let share = |lines: f64| (255.0 * lines / capacity).round() as u8;
                shares.push(share(empty));
                shares.extend(lines.iter().map(|n| share(f64::from(*n))));
            }
        }
        Some(SetMap {
            policy: self.scenario.policies[policy].name.clone(),
            cache: cache.name.clone(),
            nr_sets: sets as u32,
            nr_groups: MAP_BUCKETS as u32,
            owners,
            times_ps: outcome.map.iter().map(|s| s.time.0).collect(),
            shares,
        })
    }
}

/// What the model of this version leaves out.
fn missing(scenario: &Scenario) -> Vec<String> {
    let mut missing = vec![
        "disks: a file page that is not in memory costs a fault, no disk time".to_owned(),
        "reclaim and swap: memory that runs out ends the run".to_owned(),
    ];
    let off = piebald_sim::rooms::hw::Features::NAMES
        .into_iter()
        .filter(|n| !scenario.features.on().contains(n));
    missing.extend(off.map(|n| format!("{n}: switched off in this study")));
    missing
}

/// Names of the data path's levels.
fn level_names(spec: &MachineSpec) -> Vec<String> {
    match Machine::new(spec, &Options::default()) {
        Ok(machine) => machine.level_names().to_vec(),
        Err(_) => Vec::new(),
    }
}

/// Page colours of the last level: set bits above the page offset.
fn page_colors(spec: &MachineSpec) -> u16 {
    let cache = last_level(spec);
    let sets = cache.size.0 / 64 / u64::from(cache.ways);
    (sets / 64).clamp(1, 4096) as u16
}
