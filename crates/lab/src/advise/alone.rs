//! One program: its curve, its times, and the smallest share within the limit.

use piebald_experiment::{Alone, Goal, MissCurves, PolicyColors};
use piebald_hw::MissCurve;
use piebald_os_model::kernel::{KernelError, OnLimit};
use piebald_policy::hvr::{Borders, Class, Timed};
use piebald_sim::{CurveRequest, Model, Outcome, Progress, SimError};
use piebald_units::{ColorAsk, ColorSet};

use super::{
    Question, alone, owners,
    search::{self, Times},
};
use crate::{
    scenario::Scenario,
    study::{Hooks, Lab, StudyError},
};

/// What is known of a program.
pub(super) struct Found {
    pub(super) program: usize,
    pub(super) curve: MissCurve,
    /// Of the run in all colors.
    pub(super) instructions: u64,
    /// Read from memory in that run, by demands and prefetches.
    pub(super) lines: u64,
    /// 4 KiB pages that it had at the end of it.
    pub(super) pages: u64,
    /// Fewest colors that hold its memory.
    pub(super) fewest: u32,
    /// As after the first two runs.
    pub(super) estimate: Times,
    /// With all runs.
    pub(super) times: Times,
    /// The smallest share, of a program for which it was looked for.
    pub(super) share: Option<search::Found>,
    /// References of all its runs.
    pub(super) refs: u64,
}

impl Found {
    /// Slowdown by the first two runs, as a ratio.
    pub(super) fn estimated(&self, colors: u32) -> f64 {
        self.estimate.at(colors) / self.whole() - 1.0
    }

    /// Slowdown by all runs, as a ratio: what splits are chosen by.
    pub(super) fn slowdown(&self, colors: u32) -> f64 {
        self.times.at(colors) / self.whole() - 1.0
    }

    /// Slowdown that was measured.
    pub(super) fn measured(&self, colors: u32) -> Option<f64> {
        let time = self.times.measured().get(&colors)?;
        Some(time / self.whole() - 1.0)
    }

    /// Its kind, by the times with an eighth and with half of the cache; `None` if there are
    /// fewer than eight colors. The first is that of the fewest colors that hold it, if an eighth
    /// does not.
    pub(super) fn class(&self) -> Option<Class> {
        let all = self.curve.points.len() as u32;
        let share = |of: u32| (all >= of).then(|| self.times.at(all / of) as u64);
        Borders::OURS.classify(&Timed {
            time: [share(8)?, share(2)?, self.whole() as u64],
            instructions: self.instructions,
            lines: self.lines,
        })
    }

    /// Time in all colors.
    fn whole(&self) -> f64 {
        self.times.at(self.curve.points.len() as u32)
    }

    /// What each number of colors costs by a goal; what does not hold the program cannot
    /// be paid.
    pub(super) fn costs(&self, goal: Goal) -> Vec<f64> {
        let points = self.curve.points.iter();
        points
            .map(|point| match goal {
                _ if point.colors < self.fewest => f64::INFINITY,
                Goal::Slowdowns => self.slowdown(point.colors),
                // In the time that all programs have, each has as many as by its speed.
                Goal::Misses => point.misses as f64 / self.whole(),
            })
            .collect()
    }
}

/// Finds out what is to be known of a program; `show` counts references.
pub(super) fn program(
    question: &Question<'_>,
    program: usize,
    hooks: Hooks<'_>,
    show: &(dyn Fn(u64) + Sync),
) -> Result<Found, StudyError> {
    let runs = Runs {
        question,
        program,
        hooks: Hooks {
            progress: None,
            ..hooks
        },
        show,
    };
    let all = question.map.colors();
    let request = CurveRequest {
        program: 0,
        colors: (0..question.map.bits() as u8)
            .map(|i| question.map.mask(i))
            .collect(),
        sample_shift: question.sample_shift,
    };
    let whole = runs.run(all, Some(request))?;
    let region = &whole.programs[0].region;
    let Some(curve) = whole.programs[0].miss_curve.clone() else {
        return Err(StudyError::Nothing);
    };
    let mut refs = whole.refs;
    let mut times = [(all, region.time.0 as f64)].to_vec();
    let mut fewest = 1;
    while fewest < all {
        match runs.run(fewest, None) {
            Ok(outcome) => {
                refs += outcome.refs;
                times.push((fewest, time_of(&outcome)));
                break;
            }
            Err(error) if is_out_of_memory(&error) => fewest = (2 * fewest).min(all),
            Err(error) => return Err(error),
        }
    }
    let reads = curve.points.iter();
    let reads = reads.map(|p| (p.misses + p.prefetch_misses) as f64);
    let estimate = Times::new(reads.collect(), times.into_iter().collect());
    let mut times = estimate.clone();
    let limit = region.time.0 as f64 * (1.0 + question.request.within.0.ratio());
    let share = match question.is_target(program) {
        true => Some(search::smallest(&mut times, limit, |colors| {
            let outcome = runs.run(colors, None)?;
            refs += outcome.refs;
            Ok::<f64, StudyError>(time_of(&outcome))
        })?),
        false => None,
    };
    Ok(Found {
        program,
        curve,
        instructions: region.counters.instructions,
        lines: region.counters.memory_reads + region.counters.prefetch_reads,
        pages: region.pages,
        fewest,
        estimate,
        times,
        share,
        refs,
    })
}

fn time_of(outcome: &Outcome) -> f64 {
    outcome.programs[0].region.time.0 as f64
}

const fn is_out_of_memory(error: &StudyError) -> bool {
    matches!(
        error,
        StudyError::Run {
            error: SimError::Kernel {
                error: KernelError::OutOfMemory(_) | KernelError::ColorLimit(_),
                ..
            },
            ..
        }
    )
}

/// Runs of one program alone.
struct Runs<'a> {
    question: &'a Question<'a>,
    program: usize,
    hooks: Hooks<'a>,
    show: &'a (dyn Fn(u64) + Sync),
}

impl Runs<'_> {
    /// In the first so many colors, which bind.
    fn run(&self, colors: u32, curve: Option<CurveRequest>) -> Result<Outcome, StudyError> {
        let question = self.question;
        let mut policy = question.base.clone();
        policy.colors = owners(question.scenario);
        let asked = ColorAsk::Exactly(ColorSet::first(colors));
        let name = question.scenario.programs[self.program].name.clone();
        policy.colors.insert(name, PolicyColors::Asks(asked, None));
        let mut scenario = Scenario {
            policies: vec![policy],
            alone: Alone::All,
            set_map: 0,
            miss_curve: MissCurves::Timed(0),
            ..question.scenario.clone()
        };
        for program in &mut scenario.programs {
            program.colors = None;
            program.on_limit = OnLimit::Fail;
        }
        let job = alone(self.program);
        let jobs = [job];
        let own = Model::keeping(1);
        let lab = Lab::new(&scenario, question.inputs, self.hooks, (&jobs, &own));
        let report = |p: Progress| (self.show)(p.refs);
        match lab.simulate(job, &report, curve) {
            Err(StudyError::Run {
                error: SimError::Stopped,
                ..
            }) => Err(StudyError::Nothing),
            Err(StudyError::Run {
                error: SimError::Machine(error),
                ..
            }) => Err(StudyError::Advise {
                problem: error.to_string(),
            }),
            other => other,
        }
    }
}
