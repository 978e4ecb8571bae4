//! From what the plugin counted to the record of a study.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
};
use std::time::Instant;

use piebald_experiment::{self as experiment, Policy, Program};
use piebald_qemu::system::results::{Results, VcpuCounts};
use piebald_report::{
    Extra, LevelMpki, MachineSummary, Metrics, PolicyResult, ProgramResult, Role, Sample, Study,
};
use piebald_store::Store;

use crate::{
    boot::{BootError, Tools},
    held,
    kept::keep,
    scenario::{Scenario, command, srm, vcpu},
};

/// Number of the region that targets count in.
const REGION: u16 = 1;

/// Told before each boot, by the thread that makes it: its number from 0, and what it is.
pub type Progress<'a> = &'a (dyn Fn(u32, &str) + Sync);

/// What the caller wants to know and to decide meanwhile.
#[derive(Default)]
pub struct Hooks<'a> {
    /// Set: no further boot is begun.
    pub stop: Option<&'a AtomicBool>,
    /// Where it has got to.
    pub progress: Option<Progress<'a>>,
    /// Guests at a time; 0 counts as 1. Each keeps one processor busy.
    pub at_once: u16,
    /// Boots that are there are not made again, and what is made is kept.
    pub store: Option<&'a Store>,
}

impl Hooks<'_> {
    fn stops(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Relaxed))
    }

    fn tell(&self, number: u32, what: &str) {
        if let Some(progress) = self.progress {
            progress(number, what);
        }
    }
}

/// What one boot gave.
struct Seen {
    vcpus: Vec<VcpuCounts>,
}

/// The boots of one policy: of each repetition alone and together.
#[derive(Default)]
struct Boots {
    alone: Vec<Seen>,
    together: Vec<Seen>,
}

/// What a boot gave: the target's counts, and all results.
type Booted = Result<(Vec<VcpuCounts>, Results), BootError>;

/// Boots a policy, together or alone, in a repetition.
type Boot<'a> = &'a (dyn Fn(&Policy, bool, u32) -> Booted + Sync);

/// A boot of the plan.
#[derive(Clone, Copy)]
struct Planned {
    repetition: u32,
    /// Number of the policy.
    policy: usize,
    together: bool,
}

/// Boots that [`run`] makes.
pub fn boots(scenario: &Scenario) -> u32 {
    let phases = scenario.phases().len() as u32;
    phases * scenario.repetitions() * scenario.policies().len() as u32
}

/// Runs everything.
///
/// A policy whose boot fails is not booted again, the others go on, and the study says what
/// failed and that it is not complete; so does an interrupted one.
///
/// # Errors
/// The first failure, if no boot gave anything.
pub fn run(scenario: &Scenario, tools: &Tools, hooks: &Hooks<'_>) -> Result<Study, BootError> {
    let sums = hooks.store.map(|_| tools.sums(scenario)).transpose()?;
    let boot = |policy: &Policy, together, repetition| {
        let packed = tools.pack(scenario, policy, together, repetition)?;
        // What gives no counts is not kept.
        let make = || {
            let results = packed.boot()?;
            region(&results)?;
            Ok(results)
        };
        let results = match hooks.store.zip(sums.as_ref()) {
            None => make()?,
            Some((store, sums)) => keep(store, &packed.identity(sums)?, hooks.stop, make)?,
        };
        Ok((region(&results)?, results))
    };
    run_with(scenario, hooks, &boot)
}

/// [`run`] with what boots a policy, together or alone, in a repetition, and gives the
/// target's counts and all results.
fn run_with(scenario: &Scenario, hooks: &Hooks<'_>, boot: Boot<'_>) -> Result<Study, BootError> {
    let begun = Instant::now();
    let mut study = empty(scenario);
    let mut all: Vec<Boots> = scenario
        .policies()
        .iter()
        .map(|_| Boots::default())
        .collect();
    let mut first_failure = None;
    let mut cpu_seconds = 0.0;
    let plan = planned(scenario);
    for (planned, booted) in plan.iter().zip(boot_all(scenario, &plan, hooks, boot)) {
        let Planned {
            repetition,
            policy,
            together,
        } = *planned;
        let (seen, policy) = (&mut all[policy], &scenario.policies()[policy]);
        let (vcpus, results) = match booted {
            None => {
                study.complete = false;
                continue;
            }
            Some(Err(error)) => {
                study.complete = false;
                let what = title(policy, together, repetition);
                study.warnings.push(format!("{what}: {error}"));
                first_failure.get_or_insert(error);
                continue;
            }
            Some(Ok(given)) => given,
        };
        weigh(&mut study, &results);
        // One of each policy: beside the others, if there are any.
        if repetition == 0 && together == scenario.phases().contains(&true) {
            let map = held::set_map(scenario, policy, together, &results);
            study.set_maps.extend(map);
        }
        cpu_seconds += results.work.cpu_seconds;
        let boots = if together {
            &mut seen.together
        } else {
            &mut seen.alone
        };
        boots.push(Seen { vcpus });
    }
    let nothing = all
        .iter()
        .all(|boots| boots.alone.is_empty() && boots.together.is_empty());
    if let Some(error) = first_failure.filter(|_| nothing) {
        return Err(error);
    }
    study.policies = scenario
        .policies()
        .iter()
        .zip(&all)
        .map(|(policy, boots)| policy_result(scenario, policy, boots))
        .collect();
    if cpu_seconds > 0.0 {
        study.notes.push(format!(
            "{:.1} million references per processor second while something was watched, \
             emulation included",
            study.simulated_refs as f64 / cpu_seconds / 1e6
        ));
    }
    study.host_seconds = begun.elapsed().as_secs_f64();
    Ok(study)
}

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

/// Makes the boots of a plan, in its order, so many at a time. None: it was not begun, as its policy had failed
/// before, or the user wanted an end, begun or not.
fn boot_all(
    scenario: &Scenario,
    plan: &[Planned],
    hooks: &Hooks<'_>,
    boot: Boot<'_>,
) -> Vec<Option<Booted>> {
    let (next, begun) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failed: Vec<AtomicBool> = (scenario.policies().iter())
        .map(|_| AtomicBool::new(false))
        .collect();
    let given: Vec<OnceLock<Booted>> = plan.iter().map(|_| OnceLock::new()).collect();
    let work = || {
        loop {
            let at = next.fetch_add(1, Relaxed);
            let Some(one) = plan.get(at) else { break };
            let (policy, has_failed) = (&scenario.policies()[one.policy], &failed[one.policy]);
            if hooks.stops() || has_failed.load(Relaxed) {
                continue;
            }
            let number = begun.fetch_add(1, Relaxed) as u32;
            hooks.tell(number, &title(policy, one.together, one.repetition));
            let booted = boot(policy, one.together, one.repetition);
            // An interrupt reaches QEMU as well, and is no failure.
            if booted.is_err() && hooks.stops() {
                continue;
            }
            has_failed.fetch_or(booted.is_err(), Relaxed);
            let _ = given[at].set(booted);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..usize::from(hooks.at_once).min(plan.len()) {
            scope.spawn(work);
        }
        work();
    });
    given.into_iter().map(OnceLock::into_inner).collect()
}

fn title(policy: &Policy, together: bool, repetition: u32) -> String {
    let phase = if together { "together" } else { "alone" };
    format!("{}, {phase}, repetition {}", policy.name, repetition + 1)
}

/// The counts of the region, by virtual processor.
fn region(results: &Results) -> Result<Vec<VcpuCounts>, BootError> {
    let found = results.dumps.iter().rev().find(|d| d.region == REGION);
    let dump = found.ok_or_else(|| {
        BootError::Results(format!(
            "region {REGION} was not written: the target has no marks"
        ))
    })?;
    Ok(dump.vcpus.clone())
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
            lines: Vec::new(),
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

fn policy_result(scenario: &Scenario, policy: &Policy, boots: &Boots) -> PolicyResult {
    let description = match scenario.module(policy) {
        None => "the stock kernel".to_owned(),
        Some(_) => {
            let colors = scenario.experiment.program.iter().filter_map(|program| {
                let colors = scenario.colors_in_words(policy, program)?;
                Some(format!("{} {colors}", program.name()))
            });
            let colors = colors.collect::<Vec<_>>().join(", ");
            let colors = match colors.as_str() {
                "" => "",
                _ => &format!("; colors: {colors}"),
            };
            let zone = if srm(policy).is_some() {
                "; SRM-buffer"
            } else {
                ""
            };
            format!("with the module{zone}{colors}")
        }
    };
    let program = |program: &Program| program_result(scenario, policy, boots, program);
    PolicyResult {
        name: policy.name.clone(),
        description,
        programs: scenario.experiment.program.iter().map(program).collect(),
        course: None,
    }
}

fn program_result(
    scenario: &Scenario,
    policy: &Policy,
    boots: &Boots,
    program: &Program,
) -> ProgramResult {
    let of = |seen: &[Seen]| {
        let counts = seen
            .iter()
            .filter_map(|s| s.vcpus.get(usize::from(vcpu(program))));
        metrics(scenario, &counts.collect::<Vec<_>>())
    };
    let is_target = program.name() == scenario.target().name();
    let alone = match is_target {
        true => of(&boots.alone),
        false => Metrics::default(),
    };
    let together = (!boots.together.is_empty()).then(|| of(&boots.together));
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
        colors: scenario.colors_in_words(policy, program),
        input: command(program).join(" "),
        beside: None,
        alone,
        together,
        slowdown,
        regions: None,
    }
}

fn metrics(scenario: &Scenario, seen: &[&VcpuCounts]) -> Metrics {
    let sample =
        |of: &dyn Fn(&VcpuCounts) -> f64| Sample::new(seen.iter().map(|c| of(c)).collect());
    let ratio = |a: f64, b: f64| if b == 0.0 { f64::NAN } else { a / b };
    let hertz = scenario.machine.core.clock.0 as f64;
    let per_kilo = |n: u64, c: &VcpuCounts| ratio(1e3 * n as f64, c.instructions as f64);
    let names = level_names(scenario);
    let last = names.len().saturating_sub(1);
    let level = |(k, name): (usize, &String)| LevelMpki {
        level: name.clone(),
        mpki: sample(&|c| per_kilo(c.levels[k].misses, c)),
        accesses: sample(&|c| per_kilo(c.levels[k].accesses, c)),
    };
    Metrics {
        time_ps: sample(&|c| c.time_ps as f64),
        instructions: sample(&|c| c.instructions as f64),
        refs: sample(&|c| c.references as f64),
        ipc: sample(&|c| ratio(c.instructions as f64, c.time_ps as f64 * hertz * 1e-12)),
        mpki: names.iter().enumerate().map(level).collect(),
        row_hit_rate: Some(sample(&|c| {
            let all = c.row_hits + c.row_closed + c.row_conflicts;
            ratio(c.row_hits as f64, all as f64)
        })),
        dram_bytes_per_s: sample(&|c| {
            let lines = c.memory_reads + c.prefetch_reads + c.memory_writes;
            ratio(64e12 * lines as f64, c.time_ps as f64)
        }),
        extra: vec![Extra {
            name: format!("{} misses per million instructions", names[last]),
            unit: String::new(),
            value: sample(&|c| 1e3 * per_kilo(c.levels[last].misses, c)),
        }],
        ..Metrics::default()
    }
}

/// Names of the data levels, innermost first, as the model has them.
fn level_names(scenario: &Scenario) -> Vec<String> {
    let caches = &scenario.machine.cache;
    let data = caches
        .iter()
        .filter(|c| c.holds != piebald_hw::spec::Holds::Instruction);
    data.map(|c| c.name.clone()).collect()
}

#[cfg(test)]
#[path = "study_tests.rs"]
pub(crate) mod tests;
