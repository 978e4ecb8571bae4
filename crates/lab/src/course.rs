//! The course of a run, for the record.

use piebald_os_model::kernel::{HvrEvent, Observed, What};
use piebald_policy::hvr::Class;
use piebald_report::{
    CourseCounts, CourseEvent, CourseInterval, CourseIpc, CourseProgram, CourseResult, Extra,
    Sample,
};
use piebald_sim::{Course, Outcome, TimeSample};

use piebald_units::Picos;

use crate::{
    assemble::Results,
    jobs::{Job, Phase, groups, members},
};

/// A quantity of a program, by its place in a run: its name, its unit, and what it is.
type Figure = (&'static str, &'static str, fn(&Outcome, usize) -> f64);

/// Of all runs that were looked at.
const OF_ALL: [Figure; 1] = [("times that it began again", "", |run, at| {
    run.programs[at].restarts.into()
})];

/// Of runs under a manager of programs. The last two are of all programs of a run together.
const OF_MANAGED: [Figure; 10] = [
    ("time held for CCF", "us", |run, at| {
        held_for(run, at, Some(Class::Ccf))
    }),
    ("time held for LLCM", "us", |run, at| {
        held_for(run, at, Some(Class::Llcm))
    }),
    ("time held for LLCH", "us", |run, at| {
        held_for(run, at, Some(Class::Llch))
    }),
    ("time held for LLCT", "us", |run, at| {
        held_for(run, at, Some(Class::Llct))
    }),
    ("time without a class", "us", |run, at| {
        held_for(run, at, None)
    }),
    ("looks for hot pages", "", |run, at| {
        looks(run, at, |seen| matches!(seen, Observed::Hot(_)))
    }),
    ("looks for re-use", "", |run, at| {
        looks(run, at, |seen| matches!(seen, Observed::Window(_)))
    }),
    ("pages at the first look", "", |run, at| {
        let mut mine = run.observations.iter();
        let first = mine.find(|look| number(at) == Some(look.program));
        first.map_or(f64::NAN, |look| look.pages.into())
    }),
    ("time of looks", "us", |run, _| {
        run.sample_time.0 as f64 * 1e-6
    }),
    ("pages moved to where they belong", "", |run, _| {
        run.kernel.followed as f64
    }),
];

/// Names of the quantities of a run that was looked at.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    OF_ALL.iter().chain(&OF_MANAGED).map(|(name, ..)| *name)
}

/// The number with which a program is started, by its place.
fn number(at: usize) -> Option<u16> {
    u16::try_from(at + 1).ok()
}

/// How long a manager held a program for this, in microseconds.
fn held_for(run: &Outcome, at: usize, class: Option<Class>) -> f64 {
    let end = run.timeline.last().map_or(Picos(0), |look| look.time);
    held(&run.hvr, end, (at, class)).0 as f64 * 1e-6
}

/// The same, from event to event and to the end.
fn held(events: &[HvrEvent], end: Picos, (at, class): (usize, Option<Class>)) -> Picos {
    let ends = events.iter().skip(1).map(|event| event.time).chain([end]);
    let times = events.iter().zip(ends).filter(|(event, _)| {
        let mut programs = event.programs.iter();
        programs.any(|(other, held, _)| Some(*other) == number(at) && *held == class)
    });
    let times = times.map(|(event, until)| until.min(end).since(event.time));
    times.fold(Picos(0), |sum, time| sum + time)
}

/// How often a program was looked at in a way.
fn looks(run: &Outcome, at: usize, is: fn(&Observed) -> bool) -> f64 {
    let mine = run.observations.iter().filter(|look| {
        let is_own = number(at) == Some(look.program);
        is_own && is(&look.observed)
    });
    mine.count() as f64
}

impl Results<'_> {
    /// What happened in the first run of several programs under a policy, or of the only one, if
    /// anything was looked at; and what programs did in these repetitions.
    pub(crate) fn course(&self, policy: usize, repetitions: &[u32]) -> Option<CourseResult> {
        let phase = match groups(self.scenario).next() {
            Some(group) => Phase::Together(group),
            None if self.scenario.course_alone => Phase::Alone(0),
            None => return None,
        };
        let job = Job {
            policy,
            repetition: 0,
            phase,
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
            counts: self.counts(job, &names, repetitions),
        })
    }

    /// What programs did in these repetitions of a run, if they were looked at.
    fn counts(&self, job: Job, names: &[&str], repetitions: &[u32]) -> Vec<CourseCounts> {
        let run = |repetition: &u32| {
            self.outcome(Job {
                repetition: *repetition,
                ..job
            })
        };
        let runs: Vec<&Outcome> = repetitions.iter().filter_map(run).collect();
        let looks = runs.iter().map(|run| run.timeline.len()).min().unwrap_or(0);
        if looks == 0 {
            return Vec::new();
        }
        let is_managed = runs.iter().all(|run| !run.hvr.is_empty());
        let figures = (OF_ALL.iter()).chain(OF_MANAGED.iter().filter(|_| is_managed));
        let of = |(at, name): (usize, &&str)| CourseCounts {
            program: (*name).to_owned(),
            intervals: (0..looks).map(|look| interval(&runs, look, at)).collect(),
            extra: (figures.clone())
                .map(|(name, unit, of)| Extra {
                    name: (*name).to_owned(),
                    unit: (*unit).to_owned(),
                    value: runs.iter().map(|run| of(run, at)).collect(),
                })
                .collect(),
        };
        names.iter().enumerate().map(of).collect()
    }

    fn watching(&self, outcome: &Outcome) -> Option<f64> {
        let end = outcome.timeline.last()?.time.0 as f64;
        let core = &self.scenario.machine.core;
        let threads = core.sockets * core.per_socket * core.smt;
        (!outcome.observations.is_empty())
            .then(|| outcome.sample_time.0 as f64 / end / f64::from(threads))
    }
}

/// What a program did in an interval.
fn interval(runs: &[&Outcome], look: usize, at: usize) -> CourseInterval {
    let of = |of: &dyn Fn(&TimeSample) -> f64| -> Sample {
        runs.iter().map(|run| of(&run.timeline[look])).collect()
    };
    CourseInterval {
        refs: of(&|look| look.programs[at].0 as f64),
        instructions: of(&|look| look.programs[at].1.instructions as f64),
        moving_us: of(&|look| look.moving[at].0 as f64 * 1e-6),
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
pub(crate) fn words(course: Course, alone: bool) -> String {
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
    let runs = if alone {
        "runs"
    } else {
        "runs of several programs"
    };
    format!("{runs} last {until} us{setup}{from}, not by references")
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

#[cfg(test)]
mod tests {
    use piebald_policy::hvr::{Policy, Rule};
    use piebald_units::ColorSet;

    use super::*;

    #[test]
    fn what_programs_are_held_for_counts_from_event_to_event_and_to_the_end() {
        let event = |time: u64, programs: &[(u16, Option<Class>)]| HvrEvent {
            time: Picos(time),
            program: 1,
            what: What::Arrived,
            policy: Policy::BankOnly4,
            rule: Rule::Start,
            programs: (programs.iter())
                .map(|(number, class)| (*number, *class, ColorSet::default()))
                .collect(),
        };
        let (right, wrong) = (Some(Class::Llch), Some(Class::Ccf));
        let events = [
            event(0, &[(1, None)]),
            event(10, &[(1, None), (2, wrong)]),
            event(30, &[(1, right), (2, wrong)]),
            // After the end.
            event(90, &[(1, wrong)]),
        ];
        let of = |at| {
            let classes = [wrong, Some(Class::Llcm), right, Some(Class::Llct), None];
            classes.map(|class| held(&events, Picos(50), (at, class)).0)
        };
        assert_eq!(of(0), [0, 0, 20, 0, 30]);
        assert_eq!(of(1), [40, 0, 0, 0, 0]);
    }
}
