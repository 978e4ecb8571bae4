//! The course of a run, for the record.

use piebald_os_model::kernel::{HvrEvent, What};
use piebald_report::{CourseEvent, CourseIpc, CourseProgram, CourseResult};
use piebald_sim::{Course, Outcome};

use piebald_units::Picos;

use crate::{
    assemble::Results,
    jobs::{Job, Phase, groups, members},
};

impl Results<'_> {
    /// What happened in the first run of several programs under a policy, if anything was
    /// looked at.
    pub(crate) fn course(&self, policy: usize) -> Option<CourseResult> {
        let job = Job {
            policy,
            repetition: 0,
            phase: Phase::Together(groups(self.scenario).next()?),
            focus: None,
        };
        let outcome = self.outcome(job)?;
        if outcome.timeline.is_empty() && outcome.hvr.is_empty() {
            return None;
        }
        let run = members(self.scenario, job.phase);
        let names: Vec<&str> = run
            .iter()
            .map(|p| self.scenario.programs[*p].name.as_str())
            .collect();
        let hertz = self.scenario.machine.core.clock.0 as f64;
        Some(CourseResult {
            times_ps: outcome.timeline.iter().map(|look| look.time.0).collect(),
            ipc: ipc(outcome, &names, hertz),
            events: (outcome.hvr.iter())
                .map(|event| described(event, &names))
                .collect(),
            watching: self.watching(outcome),
        })
    }

    fn watching(&self, outcome: &Outcome) -> Option<f64> {
        let end = outcome.timeline.last()?.time.0 as f64;
        let core = &self.scenario.machine.core;
        let threads = core.sockets * core.per_socket * core.smt;
        (!outcome.observations.is_empty())
            .then(|| outcome.sample_time.0 as f64 / end / f64::from(threads))
    }
}

/// Instructions by the time of each interval, for programs that ran all of it or a part.
fn ipc(outcome: &Outcome, names: &[&str], hertz: f64) -> Vec<CourseIpc> {
    let of = |(at, name): (usize, &&str)| {
        let mut before = 0;
        let looks = outcome.timeline.iter().map(|look| {
            let cycles = (look.time.0 - before) as f64 * 1e-12 * hertz;
            before = look.time.0;
            match look.programs[at].1.instructions {
                0 => f64::NAN,
                instructions => instructions as f64 / cycles,
            }
        });
        CourseIpc {
            program: (*name).to_owned(),
            ipc: looks.collect(),
        }
    };
    names.iter().enumerate().map(of).collect()
}

/// When runs of several programs are measured.
pub(crate) fn words(course: Course) -> String {
    let us = |time: Picos| time.0 as f64 * 1e-6;
    let from = match course.warmup {
        Some(warmup) => format!(", every program is measured from {} us on", us(warmup)),
        None => String::new(),
    };
    let setup = match course.after_setup {
        true => " after the set-up of all programs",
        false => "",
    };
    let until = us(course.until);
    format!("runs of several programs last {until} us{setup}{from}, not by references")
}

fn described(event: &HvrEvent, names: &[&str]) -> CourseEvent {
    // Programs are started with their place plus one.
    let name = |number: u16| names.get(usize::from(number).wrapping_sub(1)).copied();
    let who = name(event.program).unwrap_or("a program");
    let what = match event.what {
        What::Arrived => format!("{who} begins"),
        What::Left => format!("{who} ends"),
        What::Class(class) => format!("{who} is {class}"),
        What::Threads(n) => format!("{who} has {n} threads"),
        What::Widened => format!("{who} has used up its colors"),
    };
    let programs = event.programs.iter().filter_map(|(number, class, colors)| {
        Some(CourseProgram {
            name: name(*number)?.to_owned(),
            class: class.map(|class| class.to_string()),
            colors: colors.to_string(),
            nr_colors: colors.len(),
        })
    });
    CourseEvent {
        time_ps: event.time.0,
        what,
        policy: event.policy.to_string(),
        programs: programs.collect(),
    }
}
