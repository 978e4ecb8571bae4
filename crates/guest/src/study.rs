//! From what the plugin counted to the record of a study.

use std::{
    borrow::Cow,
    fmt,
    path::PathBuf,
    sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    time::Instant,
};

use piebald_experiment::{self as experiment, Document, Policy, Program};
use piebald_hw::spec::MachineSpec;
use piebald_lab::{
    Counted, guests,
    host::{Ground, Hosted, NoStudy, Show},
    machine_lines,
    runs::{self, Listed},
};
use piebald_qemu::system::results::{Results, VcpuCounts};
use piebald_report::{Extra, MachineSummary, Metrics, PolicyResult, ProgramResult, Role, Study};

use crate::{
    boot::{BootError, Outcome, Tools},
    held,
    kept::keep,
    scenario::{Scenario, command, srm, vcpu},
};

/// Number of the region that targets count in.
const REGION: u16 = 1;

/// A boot of the plan.
#[derive(Clone, Copy)]
struct Planned {
    repetition: u32,
    /// Number of the policy.
    policy: usize,
    together: bool,
}

impl Listed for Planned {
    fn policy(&self) -> usize {
        self.policy
    }

    fn repetition(&self) -> u32 {
        self.repetition
    }
}

/// What a boot gave.
struct Seen {
    /// The target's counts, by virtual processor.
    vcpus: Vec<VcpuCounts>,
    /// Those of each of its runs.
    runs: Vec<Vec<VcpuCounts>>,
    outcome: Outcome,
}

impl Seen {
    fn of(outcome: Outcome) -> Result<Self, BootError> {
        let vcpus = region(&outcome.results)?;
        let runs = runs_of(&outcome.results)?;
        Ok(Self {
            vcpus,
            runs,
            outcome,
        })
    }

    /// What the target's runs counted on a virtual processor.
    fn runs(&self, vcpu: u16) -> Vec<Counted> {
        let runs = self.runs.iter();
        runs.filter_map(|run| run.get(usize::from(vcpu)).map(counted))
            .collect()
    }
}

/// A boot that gave nothing.
struct Failed {
    what: String,
    error: BootError,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.error)
    }
}

/// Makes a boot of the plan.
type Boot<'a> = &'a (dyn Fn(&Planned) -> Result<Seen, BootError> + Sync);

/// What the caller wants to know and to decide meanwhile.
#[derive(Clone, Copy, Default)]
struct Hooks<'a> {
    /// Set: no further boot is begun.
    stop: Option<&'a AtomicBool>,
    /// Told before each boot, by the thread that makes it: what it is, its number from 0, and how many there are.
    progress: Option<&'a Show<'a>>,
    /// Guests at a time; 0 counts as 1. Each keeps one processor busy.
    at_once: usize,
}

impl Hooks<'_> {
    fn stops(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Relaxed))
    }
}

impl Hosted for Scenario {
    fn document(&self) -> &Document {
        &self.document
    }

    fn title(&self) -> String {
        Self::title(self)
    }

    fn machine(&self) -> &MachineSpec {
        &self.machine
    }

    fn policies(&self) -> Vec<&str> {
        let policies = Self::policies(self).iter();
        policies.map(|p| p.name.as_str()).collect()
    }

    fn programs(&self) -> Vec<Cow<'_, str>> {
        let programs = self.experiment.program.iter();
        programs.map(Program::name).collect()
    }

    fn runs_of(&self, program: usize) -> (bool, bool) {
        let is_target = Hosted::programs(self).get(program) == Some(&self.target().name());
        let phases = self.phases();
        (is_target && phases.contains(&false), phases.contains(&true))
    }

    fn repetitions(&self) -> u32 {
        Self::repetitions(self)
    }

    fn seed(&self) -> u64 {
        self.experiment.seed.get()
    }

    fn clock(&self) -> &'static str {
        "a guest's instructions and what their misses cost"
    }

    /// What guests need is looked for when they are packed.
    fn inputs(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Boots a guest for every repetition, policy and phase. A policy whose boot fails is not booted again.
    fn run(&self, ground: &Ground<'_>) -> Result<Study, NoStudy> {
        let stop = (ground.begin)().map_err(NoStudy::NotRun)?;
        self.boot_all(ground, stop).map_err(|error| {
            let says = error.to_string();
            match error {
                BootError::NoProgram(_) | BootError::NoPlugin(_) => NoStudy::Missing(says),
                BootError::Guest { .. } | BootError::Results(_) => NoStudy::Failed(says),
                // What could not be begun was not run.
                _ => NoStudy::NotRun(says),
            }
        })
    }
}

impl Scenario {
    fn boot_all(&self, ground: &Ground<'_>, stop: Option<&AtomicBool>) -> Result<Study, BootError> {
        let tools = &Tools::prepare(self, ground.plugin)?;
        let sums = ground.store.map(|_| tools.sums(self)).transpose()?;
        let boot = |planned: &Planned| {
            let policy = &Self::policies(self)[planned.policy];
            let packed = tools.pack(self, policy, planned.together, planned.repetition)?;
            let has_colors = self.colors(policy, self.target()).is_some();
            // What gives no counts is not kept.
            let make = || {
                let outcome = packed.boot(stop)?;
                check(&outcome, has_colors)?;
                Ok(outcome)
            };
            let outcome = match ground.store.zip(sums.as_ref()) {
                None => make()?,
                Some((store, sums)) => keep(store, &packed.identity(sums)?, stop, make)?,
            };
            Seen::of(outcome)
        };
        let hooks = Hooks {
            stop,
            progress: ground.progress,
            at_once: self.at_once(ground),
        };
        run_with(self, hooks, &boot)
    }

    /// Each guest keeps one processor busy, and all of them may come to hold as much memory as they have.
    fn at_once(&self, ground: &Ground<'_>) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let fit = || (ground.memory / self.memory().max(1)) as usize;
        let guests = ground.guests.map(usize::from);
        guests.unwrap_or_else(|| cores().min(fit()))
    }
}

/// Runs everything with what makes a boot; the study says which policies failed, and that it is not complete,
/// as an interrupted one does.
///
/// # Errors
/// No repetition of any policy is whole: the first failure, or an interrupt.
fn run_with(scenario: &Scenario, hooks: Hooks<'_>, boot: Boot<'_>) -> Result<Study, BootError> {
    let started = Instant::now();
    let plan = planned(scenario);
    let begun = AtomicU32::new(0);
    let run = |_: usize, planned: &Planned| {
        if hooks.stops() {
            return Ok(None);
        }
        let what = title(scenario, planned);
        let number = begun.fetch_add(1, Relaxed);
        if let Some(show) = hooks.progress {
            show(&what, number.into(), plan.len() as u64);
        }
        match boot(planned) {
            // It was ended, and has not failed.
            Err(_) if hooks.stops() => Ok(None),
            Err(error) => Err(Failed { what, error }),
            Ok(seen) => Ok(Some(seen)),
        }
    };
    let at_once = hooks.at_once.clamp(1, plan.len().max(1));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(at_once).build();
    let pool = pool.map_err(BootError::Threads)?;
    let is_looked_for = |failed: &Failed| matches!(failed.error, BootError::NotKept);
    let policies = scenario.policies().len();
    let ran = pool.install(|| runs::in_order(&plan, policies, is_looked_for, run));
    let complete = ran.is_complete();
    let left = ran.left(&plan, scenario.repetitions());
    let (left, seen) = left.map_err(|failed| failed.error)?;
    let mut study = Study {
        complete,
        ..empty(scenario)
    };
    study.warnings.extend(left.warnings);
    seen.iter()
        .flatten()
        .for_each(|s| weigh(&mut study, &s.outcome.results));
    let booted = Booted {
        scenario,
        plan: &plan,
        seen: &seen,
    };
    for (policy, repetitions) in left.policies.into_iter().zip(left.repetitions) {
        let whole = (0..repetitions).filter(|r| booted.is_whole(policy, *r));
        let whole: Vec<u32> = whole.collect();
        if whole.is_empty() {
            let name = &scenario.policies()[policy].name;
            let says = "stopped before a repetition of it was complete; this policy is left out";
            study.warnings.push(format!("{name}: {says}"));
            continue;
        }
        study.policies.push(booted.policy(policy, &whole));
        study.set_maps.extend(booted.set_map(policy));
    }
    if study.policies.is_empty() {
        return Err(BootError::Stopped);
    }
    let works = seen
        .iter()
        .flatten()
        .map(|s| s.outcome.results.work.cpu_seconds);
    let cpu_seconds: f64 = works.sum();
    if cpu_seconds > 0.0 {
        study.notes.push(format!(
            "{:.1} million references per processor second while something was watched, \
             emulation included",
            study.simulated_refs as f64 / cpu_seconds / 1e6
        ));
    }
    study.host_seconds = started.elapsed().as_secs_f64();
    Ok(study)
}

/// All boots, repetition by repetition.
fn planned(scenario: &Scenario) -> Vec<Planned> {
    let mut plan = Vec::new();
    for repetition in 0..scenario.repetitions() {
        for policy in 0..scenario.policies().len() {
            let phases = scenario.phases().iter();
            plan.extend(phases.map(|&together| Planned {
                repetition,
                policy,
                together,
            }));
        }
    }
    plan
}

fn title(scenario: &Scenario, planned: &Planned) -> String {
    let phase = if planned.together {
        "together"
    } else {
        "alone"
    };
    let policy = &scenario.policies()[planned.policy].name;
    format!("{policy}, {phase}, repetition {}", planned.repetition + 1)
}

/// Does it have all that a study is made of?
fn check(outcome: &Outcome, has_colors: bool) -> Result<(), BootError> {
    region(&outcome.results)?;
    runs_of(&outcome.results)?;
    match guests::missing_frames(&outcome.frames).filter(|_| has_colors) {
        None => Ok(()),
        Some(name) => Err(BootError::Results(format!(
            "the guest did not tell \"{name}\" of the frames of the target's colors"
        ))),
    }
}

/// The counts of the region, by virtual processor: what was written last.
fn region(results: &Results) -> Result<Vec<VcpuCounts>, BootError> {
    let found = results.dumps.iter().rev().find(|d| d.region == REGION);
    let dump = found.ok_or_else(|| {
        BootError::Results(format!(
            "region {REGION} was not written: the target has no marks"
        ))
    })?;
    Ok(dump.vcpus.clone())
}

/// The counts of each run: of a target that writes the region after each, what came since the one before.
fn runs_of(results: &Results) -> Result<Vec<Vec<VcpuCounts>>, BootError> {
    let mut before: Option<&Vec<VcpuCounts>> = None;
    let mut runs = Vec::new();
    for dump in results.dumps.iter().filter(|d| d.region == REGION) {
        let of_vcpu = |(at, now): (usize, &VcpuCounts)| match before.and_then(|b| b.get(at)) {
            None => Some(now.clone()),
            Some(before) => now.since(before),
        };
        let run: Option<Vec<VcpuCounts>> = dump.vcpus.iter().enumerate().map(of_vcpu).collect();
        let run = run.ok_or_else(|| {
            BootError::Results(format!("region {REGION} was cleared between two runs"))
        })?;
        runs.push(run);
        before = Some(&dump.vcpus);
    }
    Ok(runs)
}

/// Notes how much was simulated, and what weakens it.
fn weigh(study: &mut Study, results: &Results) {
    study.simulated_refs += results.work.references;
    let mut warn = |text: String| {
        if !study.warnings.contains(&text) {
            study.warnings.push(text);
        }
    };
    if results.work.forced > 0 {
        warn("some boots lost the interleaving of their processors for a while".into());
    }
    if !results.work.turns_end {
        warn(
            "this QEMU does not let turns of processors be ended: they interleave in the \
             proportion that it gives them"
                .into(),
        );
    }
    let instructions: u64 = results
        .dumps
        .iter()
        .flat_map(|d| &d.vcpus)
        .map(|v| v.instructions)
        .sum();
    if results.work.stood > instructions / 20 {
        warn(
            "processors stood still for more than 5 % of the instructions, as turns differed"
                .into(),
        );
    }
}

fn empty(scenario: &Scenario) -> Study {
    let mut warnings = Vec::new();
    if scenario.repetitions() == 1 {
        warnings.push("one repetition: no interval can be given".to_owned());
    }
    Study {
        title: scenario.title(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: MachineSummary {
            name: scenario.machine.name.clone(),
            title: scenario.machine.title.clone(),
            lines: machine_lines(&scenario.machine),
        },
        features: vec!["coherence".to_owned()],
        missing: [
            "instruction fetches, page walks and what devices write are not seen",
            "loads that leave the first level block: times are upper bounds",
        ]
        .map(str::to_owned)
        .to_vec(),
        notes: [
            "a real kernel under QEMU, watched by physical address; processors advance \
             by equal numbers of instructions, whatever their misses cost",
            "what the kernel does on a program's processor counts as the program's, \
             in misses and among the owners of sets",
        ]
        .map(str::to_owned)
        .to_vec(),
        warnings,
        seed: scenario.experiment.seed.get(),
        repetitions: scenario.repetitions(),
        scenario: Some(scenario.document.text.clone()),
        ..Study::default()
    }
}

/// The boots of a plan and what they gave.
struct Booted<'a> {
    scenario: &'a Scenario,
    plan: &'a [Planned],
    /// In the order of the plan.
    seen: &'a [Option<Seen>],
}

impl Booted<'_> {
    fn seen(&self, policy: usize, repetition: u32, together: bool) -> Option<&Seen> {
        let is_it = |one: &Planned| {
            (one.policy, one.repetition, one.together) == (policy, repetition, together)
        };
        let at = self.plan.iter().position(is_it)?;
        self.seen[at].as_ref()
    }

    fn is_whole(&self, policy: usize, repetition: u32) -> bool {
        let mut phases = self.scenario.phases().iter();
        phases.all(|together| self.seen(policy, repetition, *together).is_some())
    }

    /// A boot of the first repetition shows which program held which sets: the one beside the others, if there is one.
    fn set_map(&self, at: usize) -> Option<piebald_report::SetMap> {
        let together = self.scenario.phases().contains(&true);
        let seen = self.seen(at, 0, together)?;
        let policy = &self.scenario.policies()[at];
        held::set_map(self.scenario, policy, together, &seen.outcome.results)
    }

    fn policy(&self, at: usize, whole: &[u32]) -> PolicyResult {
        let policy = &self.scenario.policies()[at];
        let programs = self.scenario.experiment.program.iter();
        let programs = programs.map(|program| self.program(at, program, whole));
        PolicyResult {
            name: policy.name.clone(),
            description: described(self.scenario, policy),
            programs: programs.collect(),
            course: None,
        }
    }

    fn program(&self, at: usize, program: &Program, whole: &[u32]) -> ProgramResult {
        let scenario = self.scenario;
        let phases = scenario.phases();
        let is_target = program.name() == scenario.target().name();
        let of = |together: bool| {
            let seen = || whole.iter().filter_map(|r| self.seen(at, *r, together));
            let counts = seen().filter_map(|s| s.vcpus.get(usize::from(vcpu(program))));
            let mut metrics = metrics(scenario, &counts.map(counted).collect::<Vec<Counted>>());
            if is_target {
                let runs = seen().map(|s| s.runs(vcpu(program)));
                let last = metrics.mpki.len().saturating_sub(1);
                metrics
                    .extra
                    .extend(guests::of_runs(&runs.collect::<Vec<_>>(), last));
                let frames = seen().map(|s| &s.outcome.frames);
                metrics
                    .extra
                    .extend(guests::of_frames(&frames.collect::<Vec<_>>()));
            }
            metrics
        };
        let alone = if is_target && phases.contains(&false) {
            of(false)
        } else {
            Metrics::default()
        };
        let together = phases.contains(&true).then(|| of(true));
        // The target does the same work in both; the others do as much as fits beside it.
        let slowdown = together
            .as_ref()
            .filter(|_| is_target)
            .and_then(|t| alone.time_ps.slowdown(&t.time_ps));
        ProgramResult {
            name: program.name().into_owned(),
            role: match program.role {
                experiment::Role::Target => Role::Target,
                experiment::Role::Polluter => Role::Polluter,
            },
            cores: vcpu(program).to_string(),
            colors: scenario.colors_in_words(&scenario.policies()[at], program),
            input: command(program).join(" "),
            beside: None,
            alone,
            together,
            slowdown,
            regions: None,
        }
    }
}

/// A policy in words.
fn described(scenario: &Scenario, policy: &Policy) -> String {
    if scenario.module(policy).is_none() {
        return "the stock kernel".to_owned();
    }
    let colors = scenario.experiment.program.iter().filter_map(|program| {
        let colors = scenario.colors_in_words(policy, program)?;
        Some(format!("{} {colors}", program.name()))
    });
    let colors = match colors.collect::<Vec<_>>().join(", ").as_str() {
        "" => String::new(),
        colors => format!("; colors: {colors}"),
    };
    let zone = srm(policy).map_or("", |_| "; SRM-buffer");
    format!("with the module{zone}{colors}")
}

/// What the plugin counted on a program's processor.
fn counted(counts: &VcpuCounts) -> Counted {
    let level = |k: usize| counts.levels.get(k).copied().unwrap_or_default();
    let levels = [0, 1, 2].map(level);
    let from_memory = counts.memory_reads + counts.prefetch_reads;
    Counted {
        time_ps: counts.time_ps as f64,
        instructions: counts.instructions as f64,
        refs: counts.references as f64,
        misses: levels.map(|l| l.misses as f64),
        accesses: levels.map(|l| l.accesses as f64),
        row_hits: counts.row_hits as f64,
        row_accesses: (counts.row_hits + counts.row_closed + counts.row_conflicts) as f64,
        memory_bytes: 64.0 * (from_memory + counts.memory_writes) as f64,
        memory_lines: from_memory as f64,
    }
}

fn metrics(scenario: &Scenario, counted: &[Counted]) -> Metrics {
    let metrics = Counted::metrics(counted, &scenario.machine);
    let last = metrics.mpki.last().map(|last| Extra {
        name: format!("{} misses per million instructions", last.level),
        unit: String::new(),
        value: last.mpki.scaled(1e3),
    });
    Metrics {
        extra: last.into_iter().collect(),
        ..metrics
    }
}

#[cfg(test)]
#[path = "study_tests.rs"]
pub(crate) mod tests;
