//! How far a study is.
//!
//! A run's references are known when it has ended: set-up and warm-up can be counted
//! before, but company goes on for as long as the slowest program takes. They are
//! estimated, better and better: from what must be made at least, then from how fast
//! each program was alone, at last from the same run of another repetition or policy.
//! A run that goes beyond its estimate waits there until it has ended, so that all is
//! done when everything has ended, and not before.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use piebald_report::Role;
use piebald_sim::Outcome;

use crate::{
    jobs::{Focus, Job, Phase, members, planned_of, planned_refs},
    prepare::Prepared,
    scenario::Scenario,
};

/// References done and planned.
pub(crate) type Shown = (u64, u64);

/// Counts the references of all runs.
pub(crate) struct Meter<'a> {
    scenario: &'a Scenario,
    inputs: &'a [Prepared],
    jobs: &'a [Job],
    state: Mutex<State>,
}

struct State {
    runs: Vec<Run>,
    /// Sums over the runs: of what counts as done, and of the estimates.
    done: u64,
    planned: u64,
    /// References in a picosecond of each program alone.
    speed: HashMap<usize, f64>,
    /// References of runs that have ended, whatever their policy and repetition.
    like: HashMap<(Phase, Option<Focus>), u64>,
}

#[derive(Clone, Copy)]
struct Run {
    estimate: u64,
    made: u64,
    ended: bool,
}

impl State {
    /// Changes a run and the sums with it.
    fn change(&mut self, at: usize, to: Run) {
        let run = &mut self.runs[at];
        self.done -= run.made.min(run.estimate);
        self.planned -= run.estimate;
        *run = to;
        self.done += run.made.min(run.estimate);
        self.planned += run.estimate;
    }
}

impl<'a> Meter<'a> {
    pub(crate) fn new(scenario: &'a Scenario, inputs: &'a [Prepared], jobs: &'a [Job]) -> Self {
        let run = |job| Run {
            estimate: planned_refs(scenario, job, inputs),
            made: 0,
            ended: false,
        };
        let runs: Vec<Run> = jobs.iter().map(run).collect();
        Self {
            scenario,
            inputs,
            jobs,
            state: Mutex::new(State {
                done: 0,
                planned: runs.iter().map(|r| r.estimate).sum(),
                runs,
                speed: HashMap::new(),
                like: HashMap::new(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A run has made some references more.
    pub(crate) fn add(&self, job: usize, refs: u64) -> Shown {
        let mut state = self.state();
        let run = state.runs[job];
        let made = run.made + refs;
        state.change(job, Run { made, ..run });
        // The last step is the end's.
        let short = u64::from(state.done == state.planned && !run.ended);
        (state.done - short, state.planned)
    }

    /// A run has ended.
    pub(crate) fn end(&self, at: usize, outcome: &Outcome) -> Shown {
        let job = &self.jobs[at];
        let mut state = self.state();
        let refs = outcome.refs;
        let ended = Run {
            estimate: refs,
            made: refs,
            ended: true,
        };
        state.change(at, ended);
        let first = state.like.insert((job.phase, job.focus), refs).is_none();
        if let (Phase::Alone(program), Some(of)) = (job.phase, outcome.programs.first()) {
            let speed = of.region.refs as f64 / of.region.time.0.max(1) as f64;
            state.speed.insert(program, speed);
        }
        // Later runs of the same kind would say almost the same.
        if first {
            self.estimate_others(&mut state);
        }
        (state.done, state.planned)
    }

    fn estimate_others(&self, state: &mut State) {
        for (at, job) in self.jobs.iter().enumerate() {
            let run = state.runs[at];
            if run.ended {
                continue;
            }
            let known = state.like.get(&(job.phase, job.focus)).copied();
            if let Some(estimate) = known.or_else(|| self.by_speed(job, &state.speed)) {
                state.change(at, Run { estimate, ..run });
            }
        }
    }

    /// What the programs of a run make if each is as fast as alone: targets begin when all
    /// others are warm, and all go on until the last that is measured is done.
    fn by_speed(&self, job: &Job, speed: &HashMap<usize, f64>) -> Option<u64> {
        let chosen = members(self.scenario, job.phase);
        if chosen.len() < 2 {
            return None;
        }
        let is_target = |p: usize| self.scenario.programs[p].role == Role::Target;
        let all_wait = chosen.iter().all(|p| is_target(*p));
        let (mut lead, mut rest) = (0.0f64, 0.0f64);
        for &p in &chosen {
            let plan = planned_of(self.scenario, job, self.inputs, p);
            let speed = speed.get(&p).filter(|s| **s > 0.0)?;
            let whole = plan.total() as f64 / speed;
            match all_wait || is_target(p) {
                true => rest = rest.max(whole),
                false => {
                    lead = lead.max((plan.total() - plan.measured) as f64 / speed);
                    rest = rest.max(plan.measured as f64 / speed);
                }
            }
        }
        let refs = chosen.iter().map(|p| {
            let waits = is_target(*p) && !all_wait;
            let time = if waits { rest } else { lead + rest };
            speed[p] * time
        });
        Some(refs.sum::<f64>() as u64)
    }
}
