//! Programs that come and go by the clock, and what the kernel's HVR does at its times.

use std::collections::VecDeque;

use piebald_hw::Counters;
use piebald_os_model::kernel::{HvrEvent, KernelError, Known};
use piebald_units::{CoreId, Picos, TaskId};

use super::Engine;
use crate::{
    setup::{Course, ProgramSetup, Setup, SimError},
    snapshot::TimeSample,
    work::Timed,
};

/// Least time between two looks at a run.
const MICROSECOND: Picos = Picos(1_000_000);

/// What happens at given times of a run, whatever programs do.
pub(super) struct Agenda {
    /// Programs that come, and programs that go, by time.
    arrivals: VecDeque<(Picos, usize)>,
    departures: VecDeque<(Picos, usize)>,
    course: Option<Course>,
    /// When its times begin; `None` = not yet.
    begin: Option<Picos>,
    /// When the run is looked at next.
    next_look: Picos,
    /// Programs' measured parts have begun by time.
    warm: bool,
    timeline: Vec<TimeSample>,
    /// What programs had done at the last look.
    before: Vec<(u64, Counters)>,
    /// How long its pages' moves had taken.
    moved: Vec<Picos>,
}

impl Agenda {
    pub(super) fn new(setup: &Setup<'_>, programs: &[ProgramSetup]) -> Result<Self, SimError> {
        if let Some(course) = setup.course.filter(|c| c.every < MICROSECOND) {
            return Err(SimError::Course(course.every));
        }
        let all = |when: fn(&ProgramSetup) -> Option<Picos>| {
            let timed = programs.iter().enumerate();
            let timed = timed.filter_map(|(at, p)| Some((when(p)?, at)));
            let mut timed: Vec<(Picos, usize)> = timed.collect();
            timed.sort();
            VecDeque::from(timed)
        };
        Ok(Self {
            arrivals: all(|p| p.stay.arrives),
            departures: all(|p| p.stay.leaves),
            course: setup.course,
            begin: match setup.course.is_some_and(|c| c.after_setup) {
                true => None,
                false => Some(Picos(0)),
            },
            warm: false,
            next_look: setup.course.map_or(Picos::MAX, |c| c.every),
            timeline: Vec::new(),
            before: vec![(0, Counters::default()); programs.len()],
            moved: vec![Picos(0); programs.len()],
        })
    }

    fn next(&self) -> Option<Picos> {
        let first = |list: &VecDeque<(Picos, usize)>| list.front().map(|(at, _)| *at);
        let look = self.course.map(|_| self.next_look);
        let all = [first(&self.arrivals), first(&self.departures), look];
        let all = all.into_iter().chain([self.next_warm()]);
        self.begin.and_then(|_| all.flatten().min())
    }

    /// When measured parts begin by time, if they have not.
    fn next_warm(&self) -> Option<Picos> {
        self.course.and_then(|c| c.warmup).filter(|_| !self.warm)
    }

    /// The times of the run begin.
    pub(super) fn begin(&mut self, at: Picos) {
        self.begin = Some(at);
        self.next_look = self.next_look.checked_add(at).unwrap_or(Picos::MAX);
        let timed = self.arrivals.iter_mut().chain(&mut self.departures);
        timed.for_each(|(when, _)| *when += at);
        if let Some(course) = &mut self.course {
            course.until += at;
            course.warmup = course.warmup.map(|warmup| warmup + at);
        }
    }

    /// Measured parts begin and end by time.
    pub(super) fn measures(&self) -> bool {
        self.course.is_some_and(|c| c.warmup.is_some())
    }

    /// When they end, if they do by time.
    pub(super) fn end(&self) -> Option<Picos> {
        // The last look ended the run.
        let course = self.course.filter(|_| self.measures())?;
        Some(self.next_look.since(course.every))
    }

    /// Events by the times of the run; what was before is at 0.
    pub(super) fn since_begin(&self, events: &[HvrEvent]) -> Vec<HvrEvent> {
        let begin = self.begin.unwrap_or(Picos(0));
        let mut events = events.to_vec();
        for event in &mut events {
            event.time = event.time.since(begin);
        }
        events
    }

    pub(super) fn take_timeline(&mut self) -> Vec<TimeSample> {
        std::mem::take(&mut self.timeline)
    }
}

/// The first of a list, if it is due.
fn due(list: &mut VecDeque<(Picos, usize)>, at: Picos) -> Option<usize> {
    let (_, program) = *list.front().filter(|(when, _)| *when <= at)?;
    list.pop_front();
    Some(program)
}

impl Engine<'_> {
    /// When something of the agenda, or of HVR's jobs, is due.
    pub(super) fn next_on_agenda(&self) -> Option<Picos> {
        let jobs = self.setup.kernel.next_sample();
        self.agenda.next().into_iter().chain(jobs).min()
    }

    /// Does what is due.
    pub(super) fn keep_agenda(&mut self, at: Picos) -> Result<(), SimError> {
        while let Some(program) = due(&mut self.agenda.arrivals, at) {
            self.setup.kernel.at(at);
            self.start_at(&[program], at)?;
            if self.agenda.warm {
                self.warm_at(at, program);
            }
        }
        if self.agenda.next_warm().is_some_and(|due| due <= at) {
            self.agenda.warm = true;
            (0..self.own).for_each(|program| self.warm_at(at, program));
        }
        while let Some(program) = due(&mut self.agenda.departures, at) {
            self.programs[program].leaving = true;
        }
        if self.setup.kernel.next_sample().is_some_and(|due| due <= at) {
            self.sample(at);
        }
        if self.agenda.course.is_some() && self.agenda.next_look <= at {
            self.look(at);
        }
        Ok(())
    }

    /// Is the run over?
    pub(super) fn is_over(&self) -> bool {
        match self.agenda.course {
            Some(course) => self.agenda.next_look > course.until,
            None => self.measured >= self.programs.len(),
        }
    }

    /// HVR gets to know a new instance of a program, at no cost, as its start has none.
    pub(super) fn hand_over(&mut self, program: usize, task: TaskId) -> Result<(), KernelError> {
        let kernel = &mut self.setup.kernel;
        if kernel.hvr().is_none() || program >= self.own {
            return Ok(());
        }
        self.actions.clear();
        let state = &self.programs[program];
        let known = match (state.setup.stay.class, state.found) {
            (Some(class), _) => Known::Class(class),
            (None, Some(found)) => Known::Found(found),
            (None, None) => Known::Nothing,
        };
        kernel.manage(task, CoreId(0), known, &mut self.actions)?;
        // What is done to others' pages is not at no cost.
        let now = self
            .next_core()
            .map_or(Picos(0), |(core, _)| self.cpus[core].now);
        let core = self.free_core(now);
        self.cpus[core].work.push(&self.actions);
        Ok(())
    }

    /// What HVR has found of a program that ends is kept for its next start, if it shall be.
    pub(super) fn remember(&mut self, program: usize, task: TaskId) -> Result<(), KernelError> {
        let kernel = &self.setup.kernel;
        if self.programs[program].setup.stay.remembered
            && let Some(id) = kernel.managed(task)?
            && let Some(Ok(known)) = kernel.hvr().map(|hvr| hvr.program(id))
        {
            self.programs[program].found = Some(*known.profile());
        }
        Ok(())
    }

    /// Queues the move of a page that a program has touched.
    pub(super) fn perform_move(&mut self, core: usize) {
        if self.setup.curve.is_some() {
            self.pages_of_actions();
        }
        self.cpus[core]
            .work
            .push_timed(&self.actions, Timed::Following);
    }

    /// SysMon's jobs run where nothing else does, else on the core that is least ahead.
    fn sample(&mut self, at: Picos) {
        let core = self.free_core(at);
        self.actions.clear();
        let id = CoreId(core as u16);
        self.setup.kernel.sample(id, at, &mut self.actions);
        self.cpus[core]
            .work
            .push_timed(&self.actions, Timed::Sampling);
    }

    /// A hardware thread for work of the kernel's own, at that time.
    fn free_core(&mut self, at: Picos) -> usize {
        let idle = (0..self.cpus.len()).rev();
        let mut idle =
            idle.filter(|c| self.cpus[*c].task.is_none() && self.cpus[*c].work.is_empty());
        let busy = || self.next_core().map_or(0, |(core, _)| core);
        let core = idle.next().unwrap_or_else(busy);
        self.cpus[core].now = self.cpus[core].now.max(at);
        core
    }

    /// What programs have done until now is not part of the next look.
    pub(super) fn look_from_here(&mut self) {
        for core in 0..self.cpus.len() {
            self.settle(core);
        }
        let programs = self.programs[..self.own].iter();
        self.agenda.before = programs.clone().map(|p| (p.refs, p.counters)).collect();
        self.agenda.moved = programs.map(|p| p.follow_time).collect();
    }

    fn look(&mut self, at: Picos) {
        let before = std::mem::take(&mut self.agenda.before);
        let moved_before = std::mem::take(&mut self.agenda.moved);
        self.look_from_here();
        let since = self.agenda.before.iter().zip(&before);
        let moving = self.agenda.moved.iter().zip(moved_before);
        self.agenda.timeline.push(TimeSample {
            time: at.since(self.agenda.begin.unwrap_or(Picos(0))),
            programs: since.map(|(n, b)| (n.0 - b.0, n.1 - b.1)).collect(),
            moving: moving.map(|(now, before)| now.since(before)).collect(),
        });
        if let Some(course) = self.agenda.course {
            self.agenda.next_look += course.every;
        }
    }

    /// A program whose time is over ends.
    pub(super) fn depart(
        &mut self,
        core: usize,
        task: TaskId,
        program: usize,
    ) -> Result<(), SimError> {
        let state = &mut self.programs[program];
        if state.live > 1 {
            return Err(SimError::Leaves {
                program: state.setup.name.clone(),
                threads: state.live,
            });
        }
        if state.warm.is_none() && state.end.is_none() {
            // Nothing was measured, which its figures say.
            self.reached_mark(core, program, true);
        }
        self.exit(core, task, program)
    }
}
