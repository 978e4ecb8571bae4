//! The runs that a study consists of.

use piebald_experiment::{Alone, MissCurves, Together};
use piebald_hw::{Machine, Options, spec::MachineSpec};
use piebald_report::Role;
use piebald_sim::Course;
use piebald_units::Bytes;

use crate::{divided, prepare::Prepared, runs::Listed, scenario::Scenario};

/// One run of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Job {
    pub(crate) policy: usize,
    pub(crate) repetition: u32,
    pub(crate) phase: Phase,
    /// The program that is measured in one of its regions. Without it, all programs are
    /// measured that no regions stand for.
    pub(crate) focus: Option<Focus>,
}

impl Listed for Job {
    fn policy(&self) -> usize {
        self.policy
    }

    fn repetition(&self) -> u32 {
        self.repetition
    }
}

/// A region of a program, by their places in the scenario and among the regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Focus {
    pub(crate) program: usize,
    pub(crate) region: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// One program alone.
    Alone(usize),
    /// All programs, or this target with the polluters.
    Together(Option<usize>),
    /// A program alone with `ways` of the last level.
    Curve(usize, u16),
    /// All alone that a program's regions stand for.
    Whole(usize),
    /// A program alone under the first policy, its misses counted for a policy that divides by them.
    Misses(usize),
}

/// All runs of a study, repetition by repetition, so that a stop leaves whole
/// repetitions.
pub(crate) fn jobs(scenario: &Scenario, inputs: &[Prepared]) -> Vec<Job> {
    let mut jobs = Vec::new();
    let programs = scenario.programs.len();
    for repetition in 0..scenario.repetitions {
        for policy in 0..scenario.policies.len() {
            let mut push = |phase, focus| {
                jobs.push(Job {
                    policy,
                    repetition,
                    phase,
                    focus,
                });
            };
            for p in (0..programs).filter(|p| runs_alone(scenario, *p)) {
                foci(inputs, p).for_each(|f| push(Phase::Alone(p), f));
            }
            for job in divided::jobs_of(scenario, policy, repetition) {
                push(job.phase, job.focus);
            }
            for group in groups(scenario) {
                let measured = (0..programs).filter(|p| group_of(scenario, *p) == Some(group));
                let (mut region_runs, mut plain) = (Vec::new(), false);
                for p in measured {
                    match inputs[p].parts {
                        Some(_) => region_runs.extend(foci(inputs, p)),
                        None => plain = true,
                    }
                }
                let plain = plain.then_some(None);
                let runs = plain.into_iter().chain(region_runs);
                runs.for_each(|f| push(Phase::Together(group), f));
            }
            if repetition == 0 && policy == 0 {
                for ways in curve_ways(scenario) {
                    for p in 0..programs {
                        foci(inputs, p).for_each(|f| push(Phase::Curve(p, ways), f));
                    }
                }
            }
        }
    }
    let checks = checks(scenario, inputs, &jobs);
    // The longest runs come first, lest the others wait for them.
    jobs.splice(0..0, checks);
    jobs
}

/// Whether a program, by its place in the scenario, is measured alone and together with others.
pub fn runs_of(scenario: &Scenario, program: usize) -> (bool, bool) {
    (
        runs_alone(scenario, program),
        group_of(scenario, program).is_some(),
    )
}

/// Whether a program runs alone, too.
pub(crate) fn runs_alone(scenario: &Scenario, program: usize) -> bool {
    match scenario.alone {
        Alone::All => true,
        Alone::Targets => scenario.programs[program].role == Role::Target,
        Alone::None => false,
    }
}

/// How a program is measured in a phase: in each of its regions, or as it is.
pub(crate) fn foci(inputs: &[Prepared], program: usize) -> impl Iterator<Item = Option<Focus>> {
    let regions = inputs[program].parts.as_ref().map(|p| p.entries.len());
    let of = move |region| regions.map(|_| Focus { program, region });
    (0..regions.unwrap_or(1)).map(of)
}

/// Runs of whole programs that were asked for, or that are cheap beside the others.
fn checks(scenario: &Scenario, inputs: &[Prepared], others: &[Job]) -> Vec<Job> {
    let planned: u64 = others
        .iter()
        .map(|j| planned_refs(scenario, j, inputs))
        .sum();
    let wanted = |p: &usize| {
        let parts = inputs[*p].parts.as_ref();
        parts.is_some_and(|parts| parts.check.unwrap_or(parts.refs <= planned))
    };
    let check = |p| Job {
        policy: 0,
        repetition: 0,
        phase: Phase::Whole(p),
        focus: None,
    };
    (0..inputs.len()).filter(wanted).map(check).collect()
}

/// The runs of several programs.
pub(crate) fn groups(scenario: &Scenario) -> impl Iterator<Item = Option<usize>> + '_ {
    let programs = scenario.programs.len();
    let polluters = programs > targets(scenario).count();
    let all = scenario.together == Together::All && programs > 1;
    let each = scenario.together == Together::EachTarget && polluters;
    let whole = all.then_some(None).into_iter();
    whole.chain(targets(scenario).filter(move |_| each).map(Some))
}

fn targets(scenario: &Scenario) -> impl Iterator<Item = usize> + '_ {
    let role = |i: &usize| scenario.programs[*i].role == Role::Target;
    (0..scenario.programs.len()).filter(role)
}

/// Programs of a run, by their place in the scenario.
pub(crate) fn members(scenario: &Scenario, phase: Phase) -> Vec<usize> {
    let all = 0..scenario.programs.len();
    match phase {
        Phase::Alone(p) | Phase::Curve(p, _) | Phase::Whole(p) | Phase::Misses(p) => {
            vec![p]
        }
        Phase::Together(None) => all.collect(),
        Phase::Together(Some(target)) => all
            .filter(|p| *p == target || scenario.programs[*p].role == Role::Polluter)
            .collect(),
    }
}

/// What ends a run by time, if something does.
pub(crate) fn timed(scenario: &Scenario, phase: Phase) -> Option<Course> {
    let is_timed = match phase {
        Phase::Together(_) => true,
        Phase::Alone(_) => scenario.course_alone,
        Phase::Curve(..) | Phase::Whole(_) | Phase::Misses(_) => false,
    };
    scenario.course.filter(|_| is_timed)
}

/// The run of several programs in which a program is measured. A polluter that
/// meets each target by itself is measured in none of these runs: they would
/// give it as many different answers.
pub(crate) fn group_of(scenario: &Scenario, program: usize) -> Option<Option<usize>> {
    let role = scenario.programs[program].role;
    groups(scenario).find(|g| match g {
        None => true,
        Some(target) => *target == program && role == Role::Target,
    })
}

/// References that a program needs in a run at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) setup: u64,
    pub(crate) warmup: u64,
    pub(crate) measured: u64,
}

impl Planned {
    pub(crate) const fn total(self) -> u64 {
        self.setup + self.warmup + self.measured
    }
}

/// What a program of a run needs.
pub(crate) fn planned_of(
    scenario: &Scenario,
    job: &Job,
    inputs: &[Prepared],
    program: usize,
) -> Planned {
    let input = &inputs[program];
    let Some(parts) = &input.parts else {
        let times = scenario.budgets_of(input.program.threads());
        return Planned {
            setup: input.setup,
            warmup: input.warmup.saturating_mul(times),
            measured: input.budget.saturating_mul(times),
        };
    };
    if job.phase == Phase::Whole(program) {
        return Planned {
            setup: 0,
            warmup: 0,
            measured: parts.refs,
        };
    }
    let region = job.focus.filter(|f| f.program == program);
    let entry = &parts.entries[region.map_or(0, |f| f.region)];
    Planned {
        setup: 0,
        warmup: entry.warmup,
        measured: entry.budget,
    }
}

/// References that a run needs at least.
pub(crate) fn planned_refs(scenario: &Scenario, job: &Job, inputs: &[Prepared]) -> u64 {
    let of = |p| planned_of(scenario, job, inputs, p).total();
    members(scenario, job.phase).into_iter().map(of).sum()
}

/// Ways of the last level at which a curve is measured, all but the full cache.
pub(crate) fn curve_ways(scenario: &Scenario) -> Vec<u16> {
    let ways = scenario.machine.last_level().ways;
    let points = match scenario.miss_curve {
        // Never above the ways: the scenario was refused.
        MissCurves::Timed(points) => points as u16,
        MissCurves::Counted => 0,
    };
    let mut chosen: Vec<u16> = (1..points).map(|k| (ways * k / points).max(1)).collect();
    chosen.dedup();
    // A tree of pseudo-LRU bits, for one, has powers of two only.
    chosen.retain(|ways| {
        let mut machine = scenario.machine.clone();
        narrow_last_level(&mut machine, *ways);
        Machine::new(&machine, &Options::default()).is_ok()
    });
    chosen
}

/// Sizes in bytes of the last level at which a study's miss curves have points, rising; none without curves.
pub fn curve_sizes(scenario: &Scenario) -> Vec<u64> {
    let cache = scenario.machine.last_level();
    let part = |n: u32, of: u32| cache.size.0 * u64::from(n) / u64::from(of);
    match scenario.miss_curve {
        MissCurves::Timed(0) => Vec::new(),
        MissCurves::Timed(_) => {
            let ways = curve_ways(scenario).into_iter();
            let sizes = ways.map(|ways| part(ways.into(), cache.ways.into()));
            sizes.chain([cache.size.0]).collect()
        }
        MissCurves::Counted => {
            let parts = divided::counted_for(scenario).map_or(0, |utility| utility.parts());
            (1..=parts).map(|n| part(n, parts)).collect()
        }
    }
}

/// Leaves the last level `ways` ways: the same sets, less capacity.
pub(crate) fn narrow_last_level(spec: &mut MachineSpec, ways: u16) {
    let level = spec.last_level().level;
    for cache in spec.cache.iter_mut().filter(|c| c.level == level) {
        cache.size = Bytes(cache.size.0 / u64::from(cache.ways) * u64::from(ways));
        cache.ways = ways;
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use piebald_hw::presets;

    use super::*;

    #[test]
    fn curves_have_points_on_every_machine() {
        for preset in presets::names() {
            let ways = presets::load(preset).expect(preset).last_level().ways;
            for points in [2, 3, ways] {
                let text = format!(
                    "schema = 1\n[machine]\npreset = \"{preset}\"\n[output]\nmiss_curve = {points}\n\
                     [[program]]\nbuiltin = \"chase\"\ncores = \"0\"\n"
                );
                let scenario = Scenario::parse(&text, Path::new("s.toml")).expect(preset);
                let ways = curve_ways(&scenario);
                assert!(ways.is_sorted() && ways.len() < points as usize, "{ways:?}");
                assert!(points == 3 || !ways.is_empty(), "{preset} {points}");
            }
        }
    }
}
