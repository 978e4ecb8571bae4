//! Misses of programs alone with 1, 2 .. all parts of the last level: for curves, and for policies that
//! divide it by them (UVP).
//!
//! Each program runs alone under the first policy, at the place where it is met, and its misses are counted in
//! that one run. A policy that divides deals the parts out once, before programs meet.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use piebald_experiment::{Frames, MissCurves};
use piebald_policy::hvr::utility::UtilityError;
use piebald_sim::{CurveRequest, Outcome};
use piebald_units::ColorSet;

use crate::{
    colors::map_of,
    jobs::{Job, Phase, groups, members, runs_alone},
    scenario::Scenario,
    utility::{Utility, curve},
};

/// What a policy of a scenario divides; none if it divides nothing.
fn of_policy(scenario: &Scenario, policy: usize) -> Option<Utility> {
    let policy = &scenario.policies[policy];
    let map = (policy.frames == Frames::Uvp).then(|| map_of(&scenario.machine, policy));
    map?.ok().map(Utility::of)
}

/// Policies that divide, by their places.
fn dividing(scenario: &Scenario) -> impl Iterator<Item = usize> + '_ {
    let policies = scenario.policies.iter().enumerate();
    policies
        .filter(|(_, p)| p.frames == Frames::Uvp)
        .map(|(at, _)| at)
}

/// Is anything divided? A program alone has everything.
fn meets(scenario: &Scenario) -> bool {
    groups(scenario).any(|group| members(scenario, Phase::Together(group)).len() > 1)
}

/// The run alone in which a program's misses are counted for a policy: that under the first policy which
/// there is anyway, or one more.
pub(crate) fn job_of(scenario: &Scenario, policy: usize, repetition: u32, program: usize) -> Job {
    let map = &scenario.policies[policy].color_map;
    let same = |at: &usize| scenario.policies[*at].color_map == *map;
    let first = dividing(scenario).find(same).unwrap_or(policy);
    let is_there = runs_alone(scenario, program) && dividing(scenario).next() == Some(first);
    Job {
        policy: if is_there { 0 } else { first },
        repetition,
        phase: if is_there {
            Phase::Alone(program)
        } else {
            Phase::Misses(program)
        },
        focus: None,
    }
}

/// Runs that a policy needs beside those that there are anyway.
pub(crate) fn jobs_of(scenario: &Scenario, policy: usize, repetition: u32) -> Vec<Job> {
    if !dividing(scenario).any(|at| at == policy) {
        return Vec::new();
    }
    let mut jobs = Vec::new();
    for group in groups(scenario) {
        let met = members(scenario, Phase::Together(group));
        for program in met.iter().filter(|_| met.len() > 1) {
            let job = job_of(scenario, policy, repetition, *program);
            let is_new = job.policy == policy && !jobs.contains(&job);
            if is_new && matches!(job.phase, Phase::Misses(_)) {
                jobs.push(job);
            }
        }
    }
    jobs
}

/// The parts for which misses are counted in runs alone under the first policy: those of the first that divides, if
/// there is one; for curves alone those that the first policy's colors tell apart. None if nothing needs them.
pub(crate) fn counted_for(scenario: &Scenario) -> Option<Utility> {
    let is_asked = scenario.miss_curve == MissCurves::Counted;
    match dividing(scenario).next() {
        Some(first) if is_asked || meets(scenario) => of_policy(scenario, first),
        None if is_asked => {
            let map = map_of(&scenario.machine, scenario.policies.first()?);
            map.ok().map(Utility::of)
        }
        _ => None,
    }
}

/// What is counted in a run.
pub(crate) fn request(scenario: &Scenario, job: &Job) -> Option<CurveRequest> {
    let utility = match job.phase {
        Phase::Misses(_) => of_policy(scenario, job.policy),
        Phase::Alone(_) if job.policy == 0 && job.focus.is_none() => counted_for(scenario),
        _ => None,
    };
    utility.map(|utility| utility.request(&scenario.machine))
}

/// Runs in which misses are counted, each made once however many mixes need it.
#[derive(Default)]
pub(crate) struct Counted(Mutex<HashMap<Job, Slot>>);

/// The outcome of a run, once it is there. Who has the lock makes it.
type Slot = Arc<Mutex<Option<Outcome>>>;

impl Counted {
    /// The outcome of a run, from `make` unless it was made before.
    pub(crate) fn get<E>(
        &self,
        job: Job,
        make: impl FnOnce() -> Result<Outcome, E>,
    ) -> Result<Outcome, E> {
        let slot = {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(job).or_default().clone()
        };
        // An outcome is put there whole.
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outcome) = &*slot {
            return Ok(outcome.clone());
        }
        let outcome = make()?;
        *slot = Some(outcome.clone());
        Ok(outcome)
    }
}

/// The colors of the programs of a run under a policy; none if it divides nothing. `counted` gives the
/// run in which a program's misses were counted.
///
/// # Errors
/// What `counted` says; and, as `no`, why there is no division.
pub(crate) fn shares<E>(
    scenario: &Scenario,
    (job, chosen): (Job, &[usize]),
    counted: impl Fn(Job) -> Result<Outcome, E>,
    no: impl FnOnce(UtilityError) -> E,
) -> Result<Option<Vec<ColorSet>>, E> {
    let Some(utility) = of_policy(scenario, job.policy) else {
        return Ok(None);
    };
    if let [_] = chosen {
        return Ok(Some(vec![ColorSet::first(utility.colors())]));
    }
    let mut curves = Vec::new();
    for program in chosen {
        let alone = job_of(scenario, job.policy, job.repetition, *program);
        let outcome = counted(alone)?;
        curves.push(outcome.programs.first().map(curve).unwrap_or_default());
    }
    utility.divided(&curves).map(Some).map_err(no)
}
