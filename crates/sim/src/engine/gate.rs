//! How programs of a run begin: at once, when the others are warm, or when all have done their
//! set-up.

use piebald_units::{Picos, TaskId};

use super::Engine;
use crate::setup::{ProgramSetup, Setup, SimError};

/// A part of a run that no references end.
const BY_TIME: u64 = u64::MAX >> 2;

/// What waits for the set-up of others.
#[derive(Default)]
pub(super) struct Gate {
    /// Tasks that have marked the end of theirs, with their programs.
    held: Vec<(usize, TaskId)>,
    /// Programs that have none, and have not started.
    later: Vec<usize>,
}

impl Gate {
    /// Shut if a run's times begin after set-up.
    pub(super) fn of(setup: &Setup<'_>) -> Option<Self> {
        let shut = setup.course.is_some_and(|c| c.after_setup);
        shut.then(Self::default)
    }
}

/// No references end a part of a run that is measured by time.
pub(super) fn warm_by_time(setup: &mut Setup<'_>, own: usize) {
    if setup.course.is_some_and(|c| c.warmup.is_some()) {
        for program in &mut setup.programs[..own] {
            (program.warmup, program.budget) = (BY_TIME, BY_TIME);
        }
    }
}

impl Engine<'_> {
    pub(super) fn start_all(&mut self, from: Picos) -> Result<(), SimError> {
        let all_wait = self.programs[..self.own].iter().all(|p| p.setup.waits);
        let gate = self.gate.is_some();
        let waits = |p: &ProgramSetup| match gate {
            true => !p.marks_ready,
            false => p.waits && !all_wait,
        };
        let there = |p: &usize| self.programs[*p].setup.stay.arrives.is_none();
        let (late, early): (Vec<usize>, Vec<usize>) = (0..self.own)
            .filter(there)
            .partition(|p| waits(&self.programs[*p].setup));
        for program in &late {
            self.hold(*program)?;
        }
        match &mut self.gate {
            Some(gate) => gate.later = late,
            None => self.late = late,
        }
        self.start_at(&early, from)?;
        match early.is_empty() {
            true => self.open_gate(from),
            false => Ok(()),
        }
    }

    /// Starts the programs that waited, once all others are warm.
    pub(super) fn start_late(&mut self, from: Picos) -> Result<(), SimError> {
        let late = std::mem::take(&mut self.late);
        let warm = |p: usize| {
            let state = &self.programs[p];
            state.warm.is_some() || late.contains(&p) || state.setup.stay.arrives.is_some()
        };
        if (0..self.own).all(warm) {
            return self.start_at(&late, from);
        }
        self.late = late;
        Ok(())
    }

    /// A task has marked the end of its set-up: it waits for the others' if it must.
    pub(super) fn at_gate(
        &mut self,
        core: usize,
        task: TaskId,
        program: usize,
    ) -> Result<(), SimError> {
        let Some(gate) = self.gate.as_mut().filter(|_| program < self.own) else {
            return Ok(());
        };
        gate.held.push((program, task));
        let at = self.cpus[core].now;
        self.sched.block(task)?;
        self.pick(core)?;
        // Who comes later has its set-up then.
        let done = |p: &super::ProgramState| p.ready || p.setup.stay.arrives.is_some();
        match self.programs[..self.own].iter().all(done) {
            true => self.open_gate(at),
            false => Ok(()),
        }
    }

    /// Everybody's set-up is over: all go on, each at its own offset from `at`, and the times of
    /// the run begin.
    fn open_gate(&mut self, at: Picos) -> Result<(), SimError> {
        let Some(gate) = self.gate.take() else {
            return Ok(());
        };
        self.agenda.begin(at);
        self.look_from_here();
        self.setup.kernel.at(at);
        for (program, task) in gate.held {
            let start = at + self.programs[program].setup.start;
            let core = usize::from(self.sched.wake(task)?.core.0);
            let cpu = &mut self.cpus[core];
            if cpu.task.is_none() {
                cpu.now = cpu.now.max(start);
            }
        }
        self.start_at(&gate.later, at)
    }
}
