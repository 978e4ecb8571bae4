//! Studies: every program alone, and all together, under every policy.
//!
//! A study is a list of independent runs: for each policy and repetition one run
//! of every program alone and one of all together. They use all cores of the
//! computer that simulates; results do not depend on how many there are. A
//! repetition draws what a real machine would not hold still: the history of
//! free memory, when each program starts, and where in its life a single-threaded
//! recording is met. All policies and phases of a repetition share its draws, so
//! that differences between them are paired.

use piebald_experiment::{Frames, MAX_REFS};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use piebald_os_model::kernel::ColorLimit;
use piebald_policy::hvr::utility::UtilityError;
use piebald_report::{Role, Study};
use piebald_sim::{
    Case, CaseError, ColorSetup, CurveRequest, MapRequest, Model, Outcome, ProgramSetup, Progress,
    SimError, Stay, Threads, Watch, mix,
};
use piebald_store::NOT_KEPT;
use piebald_units::{ColorSet, CoreSet, Picos};
use piebald_workload::{Program, Reader};

use crate::{
    advise,
    assemble::{MAP_BUCKETS, Results, assemble},
    boot::boot,
    colors,
    divided::{self, Counted},
    drawn::{Repetition, share_of},
    jobs::{Focus, Job, Phase, group_of, groups, jobs, members, narrow_last_level, timed},
    meter::{Meter, Shown},
    prepare::Prepared,
    runs::{self, Left},
    scenario::{BeforeEntry, BeforeInput, Scenario},
    sysmon::{self, Unwatched},
};

/// Programs start within this time of one another.
const START_SPREAD_PS: u64 = 100_000_000;

/// What a study needs from outside.
#[derive(Clone, Copy, Default)]
pub struct Hooks<'a> {
    /// Set to end early; what is done is kept and marked as partial.
    pub stop: Option<&'a AtomicBool>,
    /// Called with references done and references planned, which is an estimate until all runs
    /// have ended: only then are both equal.
    pub progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
    /// Runs the study's runs, if it is to be the same that runs others before and after it: it
    /// keeps states of aged memory, and may have a store.
    pub model: Option<&'a Model>,
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
    /// Runs are looked for and not run, and one is not there.
    #[error("policy \"{policy}\": {NOT_KEPT}")]
    NotKept {
        /// Under this policy.
        policy: String,
    },
    /// A program is sure to use up its colours. Nothing was run.
    #[error(
        "policy \"{policy}\": program \"{program}\": {} colors {} would be used up: it needs {needed} \
         frames (4 KiB) before its measured part ends, and {}; {}",
        if limit.reserved { "its" } else { "the unreserved" }, limit.colors, limit.held, limit.instead
    )]
    Colors {
        /// Under this policy.
        policy: String,
        /// The program.
        program: String,
        /// Frames that it needs.
        needed: u64,
        /// The colours, and who has their frames when they are used up.
        limit: Box<ColorLimit>,
    },
    /// There can be no advice here.
    #[error("advise: {problem}")]
    Advise {
        /// What stands against it, and what is allowed.
        problem: String,
    },
    /// SysMon could not watch a program.
    #[error("sysmon: program \"{program}\": {problem}")]
    SysMon {
        /// The program.
        program: String,
        /// Why.
        problem: String,
    },
    /// It was stopped before anything was complete.
    #[error("stopped before the first repetition was complete: nothing to report")]
    Nothing,
}

impl StudyError {
    /// Does it say that a run is not there, where none is made?
    pub(crate) const fn is_looked_for(&self) -> bool {
        matches!(self, Self::NotKept { .. })
    }
}

/// A scenario with its inputs.
pub struct Lab<'a> {
    scenario: &'a Scenario,
    inputs: &'a [Prepared],
    hooks: Hooks<'a>,
    model: &'a Model,
    meter: Meter<'a>,
    /// Runs that policies divide by.
    counted: Counted,
}

/// Runs a study.
///
/// # Errors
/// The first run that failed if none of any policy is left. A stop is no error once a repetition is complete:
/// the study is then marked as partial.
pub(crate) fn study(
    scenario: &Scenario,
    inputs: &[Prepared],
    hooks: Hooks<'_>,
) -> Result<Study, StudyError> {
    match scenario.advise {
        Some(request) => advise::study(scenario, inputs, hooks, request),
        None => run_all(scenario, inputs, hooks),
    }
}

/// Runs a study as it stands.
pub(crate) fn run_all(
    scenario: &Scenario,
    inputs: &[Prepared],
    hooks: Hooks<'_>,
) -> Result<Study, StudyError> {
    let start = Instant::now();
    let jobs = jobs(scenario, inputs);
    // Runs are taken repetition by repetition: there are at most as many states at once.
    let own = Model::keeping(rayon::current_num_threads() + 1);
    let lab = Lab::new(scenario, inputs, hooks, (&jobs, &own));
    let run = |at, job: &Job| lab.run_unless_stopped(at, *job);
    let policies = scenario.policies.len();
    let ran = runs::in_order(&jobs, policies, StudyError::is_looked_for, run);
    let complete = ran.is_complete();
    let (left, outcomes) = ran.left(&jobs, scenario.repetitions)?;
    let (scenario, jobs, results) = &without_failed(scenario, &left, jobs, outcomes);
    let mut study = assemble(&Results {
        scenario,
        inputs,
        jobs,
        outcomes: results,
        repetitions: &left.repetitions,
    })?;
    study.warnings.extend(left.warnings);
    let seen = sysmon::watch(
        scenario,
        inputs,
        (hooks.stop, hooks.model.unwrap_or(&own)),
        study.policies.first(),
    );
    let seen = seen.map_err(|why| match why {
        Unwatched::NotKept => StudyError::NotKept {
            policy: scenario.policies[0].name.clone(),
        },
        Unwatched::Failed { program, problem } => StudyError::SysMon { program, problem },
    })?;
    study.complete = complete && seen.is_some();
    let (seen, others) = seen.unwrap_or_default();
    study.sysmon = seen;
    study.warnings.extend(others);
    study.simulated_refs = results.iter().flatten().map(|o| o.refs).sum();
    study.host_seconds = start.elapsed().as_secs_f64();
    Ok(study)
}

/// The study without policies of which no repetition is left.
fn without_failed(
    scenario: &Scenario,
    left: &Left,
    jobs: Vec<Job>,
    outcomes: Vec<Option<Outcome>>,
) -> (Scenario, Vec<Job>, Vec<Option<Outcome>>) {
    let policies = left.policies.iter().map(|p| scenario.policies[*p].clone());
    let scenario = Scenario {
        policies: policies.collect(),
        ..scenario.clone()
    };
    let place = |job: Job| {
        let policy = left.policies.iter().position(|p| *p == job.policy)?;
        Some(Job { policy, ..job })
    };
    let pairs = jobs.into_iter().zip(outcomes);
    let (jobs, outcomes) = pairs.filter_map(|(job, o)| Some((place(job)?, o))).unzip();
    (scenario, jobs, outcomes)
}

impl<'a> Lab<'a> {
    /// For these runs, on this model unless the hooks have one.
    pub(crate) fn new(
        scenario: &'a Scenario,
        inputs: &'a [Prepared],
        hooks: Hooks<'a>,
        (jobs, model): (&'a [Job], &'a Model),
    ) -> Self {
        Self {
            scenario,
            inputs,
            hooks,
            model: hooks.model.unwrap_or(model),
            meter: Meter::new(scenario, inputs, jobs),
            counted: Counted::default(),
        }
    }

    pub(crate) const fn scenario(&self) -> &'a Scenario {
        self.scenario
    }

    pub(crate) const fn inputs(&self) -> &'a [Prepared] {
        self.inputs
    }

    pub(crate) const fn model(&self) -> &'a Model {
        self.model
    }

    /// What ends the study early.
    pub(crate) const fn stop(&self) -> Option<&'a AtomicBool> {
        self.hooks.stop
    }

    /// The outcome of a run, or none if the study was stopped before its end.
    fn run_unless_stopped(&self, at: usize, job: Job) -> Result<Option<Outcome>, StudyError> {
        // Ageing memory alone takes seconds: nothing is begun after a stop.
        if self.hooks.stop.is_some_and(|s| s.load(Ordering::Relaxed)) {
            return Ok(None);
        }
        match self.run(at, job) {
            Err(StudyError::Run {
                error: SimError::Stopped,
                ..
            }) => Ok(None),
            Err(error) => Err(error),
            Ok(outcome) => {
                self.show(self.meter.end(at, &outcome));
                Ok(Some(outcome))
            }
        }
    }

    fn show(&self, (done, planned): Shown) {
        if let Some(progress) = self.hooks.progress {
            progress(done, planned);
        }
    }

    fn run(&self, at: usize, job: Job) -> Result<Outcome, StudyError> {
        let report = |p: Progress| self.show(self.meter.add(at, p.refs));
        let simulate = || self.simulate(job, &report, None);
        match divided::request(self.scenario, &job) {
            Some(_) => self.counted.get(job, simulate),
            None => simulate(),
        }
    }

    /// The colors of programs under a policy that divides by their misses.
    fn shares(&self, job: Job, chosen: &[usize]) -> Result<Option<Vec<ColorSet>>, StudyError> {
        let counted = |alone: Job| {
            let simulate = || self.simulate(alone, &|_| {}, None);
            self.counted.get(alone, simulate)
        };
        let no = |error: UtilityError| self.failure(job, CaseError::Kernel(error.to_string()));
        divided::shares(self.scenario, (job, chosen), counted, no)
    }

    /// A run, with the misses of its first program at every number of colors if a request
    /// for them is given.
    pub(crate) fn simulate(
        &self,
        job: Job,
        report: &(dyn Fn(Progress) + Sync),
        curve: Option<CurveRequest>,
    ) -> Result<Outcome, StudyError> {
        let watch = Watch {
            stop: self.hooks.stop,
            progress: Some(report),
        };
        let outcome = self.model.run(&self.case(job, curve)?, watch);
        outcome.map_err(|error| self.failure(job, error))
    }

    /// What a run is made of.
    ///
    /// # Errors
    /// The policy cannot be had on the machine.
    pub(crate) fn case(&self, job: Job, curve: Option<CurveRequest>) -> Result<Case, StudyError> {
        let curve = curve.or_else(|| divided::request(self.scenario, &job));
        let job = match job.phase {
            Phase::Misses(_) => Job { policy: 0, ..job },
            _ => job,
        };
        let policy = &self.scenario.policies[job.policy];
        let draw = self.scenario.draw(job.repetition);
        let chosen = members(self.scenario, job.phase);
        let shares = self.shares(job, &chosen)?;
        let held = colors::held(self.scenario, &chosen, job.policy);
        let boot = boot(self.scenario, policy, draw, held);
        let boot = boot.map_err(|problem| self.failure(job, CaseError::Kernel(problem)))?;
        // A program that comes before as well is made once.
        let made = |input: &Prepared| input.in_repetition(job.repetition, draw);
        let made: Vec<Arc<dyn Program>> = self.inputs.iter().map(made).collect();
        let program = |p: &usize| self.program(*p, &job, (draw, &made[*p]));
        let programs = chosen.iter().map(program).collect();
        let programs: Result<Vec<ProgramSetup>, String> = programs;
        let mut programs =
            programs.map_err(|problem| self.failure(job, CaseError::Kernel(problem)))?;
        for (program, own) in programs.iter_mut().zip(shares.into_iter().flatten()) {
            program.colors = colors::lent(own);
        }
        let before = (self.scenario.before.iter()).map(|entry| self.before(entry, &job, &made));
        let mut machine = self.scenario.machine.clone();
        if let Phase::Curve(_, ways) = job.phase {
            narrow_last_level(&mut machine, ways);
        }
        let course = timed(self.scenario, job.phase);
        Ok(Case {
            features: self.scenario.features,
            disabled_controllers: self.scenario.disabled_controllers.clone(),
            threads: Threads {
                first: policy.first_drawn.then(|| draw.of(9)),
                ..policy.threads.clone()
            },
            before: before.collect(),
            map: self.map(job, &chosen),
            curve,
            fill: matches!(job.phase, Phase::Alone(_) | Phase::Together(_)),
            course,
            ..Case::new(&machine, boot, programs, draw.of(1))
        })
    }

    /// The hardware threads that a program may use in a repetition.
    fn cores(&self, at: usize, draw: Repetition, alone: bool) -> CoreSet {
        let programs = &self.scenario.programs;
        match self
            .scenario
            .deal
            .as_ref()
            .filter(|_| programs[at].is_dealt)
        {
            None => programs[at].cores,
            Some(deal) if alone => draw.dealt(deal.of_one(), ("alone", 0), 0),
            Some(deal) => {
                let before = programs[..at].iter().filter(|entry| entry.is_dealt);
                let number = deal.number.map_or(0, |number| number.0.0);
                draw.dealt(deal.cores.0, (&deal.name, number), before.count())
            }
        }
    }

    /// Why a run has no outcome.
    pub(crate) fn failure(&self, job: Job, error: CaseError) -> StudyError {
        let policy = self.scenario.policies[job.policy].name.clone();
        match error {
            CaseError::Run(error) => StudyError::Run { policy, error },
            CaseError::Kernel(problem) | CaseError::Failed(problem) => {
                StudyError::Kernel { policy, problem }
            }
            CaseError::NotKept => StudyError::NotKept { policy },
            differs @ CaseError::Differs(_) => StudyError::Kernel {
                policy,
                problem: differs.to_string(),
            },
        }
    }

    /// The set map that is taken from a run.
    fn map(&self, job: Job, chosen: &[usize]) -> Option<MapRequest> {
        // A map needs a measured part that ends by references.
        let by_time = timed(self.scenario, job.phase).is_some();
        if self.scenario.set_map == 0 || by_time {
            return None;
        }
        let target = chosen.iter().position(|p| match job.focus {
            Some(focus) => focus.program == *p,
            None => self.is_target(*p),
        });
        (map_job(self.scenario, self.inputs, job.policy) == Some(job)).then_some(MapRequest {
            program: target.unwrap_or(0),
            samples: self.scenario.set_map,
            buckets: MAP_BUCKETS,
        })
    }

    /// Within which time of a run programs start: the same for all policies, so that their runs are pairs.
    fn start_spread(&self) -> u64 {
        let ticks = self.scenario.policies.iter().filter_map(|p| p.tick);
        let tick = ticks.filter(|_| self.scenario.course.is_none()).max();
        tick.map_or(START_SPREAD_PS, |tick| tick.0)
    }

    fn is_target(&self, program: usize) -> bool {
        self.scenario.programs[program].role == Role::Target
    }

    fn is_measured(&self, at: usize, job: &Job) -> bool {
        match job.focus {
            Some(focus) => focus.program == at,
            None if members(self.scenario, job.phase).len() == 1 => true,
            None => {
                self.inputs[at].parts.is_none()
                    && group_of(self.scenario, at).map(Phase::Together) == Some(job.phase)
            }
        }
    }

    /// What runs before a run.
    fn before(&self, entry: &BeforeEntry, job: &Job, made: &[Arc<dyn Program>]) -> ProgramSetup {
        let input: Arc<dyn Program> = match &entry.input {
            BeforeInput::Run(at) | BeforeInput::Other(_, at) => {
                self.inputs[*at].before(job.repetition, &made[*at])
            }
            BeforeInput::Read(at) => Arc::new(Reader(made[*at].clone())),
        };
        let owns = self.scenario.policies[job.policy].frames == Frames::Rainbow;
        ProgramSetup {
            name: input.name().to_owned(),
            input,
            cores: CoreSet::first(1),
            colors: ColorSetup {
                reserve: entry.colors.clone().filter(|_| owns),
                on_limit: entry.on_limit,
                ..ColorSetup::default()
            },
            stay: Stay::default(),
            start: Picos(0),
            waits: false,
            measured: false,
            skip: 0,
            prime: 0,
            marks_ready: false,
            warmup: 0,
            budget: 0,
            each: false,
        }
    }

    /// A program of a run.
    ///
    /// # Errors
    /// It cannot be read to the place where it is met.
    fn program(
        &self,
        at: usize,
        job: &Job,
        (draw, made): (Repetition, &Arc<dyn Program>),
    ) -> Result<ProgramSetup, String> {
        let entry = &self.scenario.programs[at];
        let input = &self.inputs[at];
        let policy = &self.scenario.policies[job.policy];
        let start = draw.start(at, self.start_spread());
        let alone = members(self.scenario, job.phase).len() == 1;
        let by_time = timed(self.scenario, job.phase).is_some();
        // A target is met at its beginning unless its table says otherwise, so that its measured part
        // is the same in every study; a polluter is met anywhere.
        let place = draw.place(at, &entry.name);
        let mut prime = input.prime_in(job.repetition, draw)?;
        let skip = match (input.enter, entry.role) {
            (Some(refs), _) if input.stays => {
                prime += share_of(refs, place);
                0
            }
            (Some(0), _) | (None, Role::Target) => 0,
            (Some(refs), _) => 1 + place % refs,
            (None, Role::Polluter) => place % (input.spread + 1),
        };
        let stay = match alone {
            // It is there all the time.
            true => Stay {
                class: entry.stay.class,
                ..Stay::default()
            },
            false => entry.stay,
        };
        let hvr = policy.hvr.as_ref();
        let whole = ProgramSetup {
            name: entry.name.clone(),
            input: input.as_met(made),
            cores: self.cores(at, draw, alone),
            colors: colors::setup(self.scenario, at, job.policy),
            stay: Stay {
                remembered: hvr.is_some_and(|hvr| hvr.remember),
                ..stay
            },
            start: Picos(start),
            waits: entry.role == Role::Target && !by_time,
            measured: self.is_measured(at, job),
            skip,
            prime,
            marks_ready: input.marks_ready,
            warmup: input.warmup,
            budget: if by_time { MAX_REFS } else { input.budget },
            each: self.scenario.of_threads,
        };
        let Some(parts) = input
            .parts
            .as_ref()
            .filter(|_| job.phase != Phase::Whole(at))
        else {
            return Ok(whole);
        };
        let focus = job.focus.filter(|f| f.program == at);
        let region = focus.map_or_else(
            // Company is met in one of its regions, as likely as the program is there.
            || parts.drawn(mix(&[draw.seed, 6, at as u64]) as f64 / u64::MAX as f64),
            |f| f.region,
        );
        let part = &parts.entries[region];
        Ok(ProgramSetup {
            input: part.program.clone(),
            skip: 0,
            prime: part.prime,
            marks_ready: false,
            warmup: part.warmup,
            budget: part.budget,
            ..whole
        })
    }
}

/// The run that a policy's set map is taken from: the first target beside its company, in the
/// region of most weight if regions stand for it.
pub(crate) fn map_job(scenario: &Scenario, inputs: &[Prepared], policy: usize) -> Option<Job> {
    let phase = Phase::Together(groups(scenario).next()?);
    let members = members(scenario, phase);
    let target = members
        .into_iter()
        .find(|p| scenario.programs[*p].role == Role::Target)?;
    let focus = inputs[target].parts.as_ref().map(|parts| Focus {
        program: target,
        region: parts.heaviest(),
    });
    Some(Job {
        policy,
        repetition: 0,
        phase,
        focus,
    })
}
