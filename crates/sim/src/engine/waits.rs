//! Tasks that wait for files and pages, and what ends their waits.
//!
//! Disk, agenda and programs share one order of time: an event comes before any core goes on
//! whose clock has reached it, and no core is let past the next one.

use piebald_os_model::{
    kernel::SysWork,
    sched::{Blocked, Status},
};
use piebald_units::{CoreId, Picos, TaskId};

use super::Engine;
use crate::setup::SimError;

impl Engine<'_> {
    /// What comes next: an event, or a part of a core's work.
    pub(super) fn turn(&mut self) -> Result<(), SimError> {
        let event = self.next_event();
        match (self.next_core(), event) {
            (Some((core, _)), Some(at)) if at <= self.cpus[core].now => self.happen(at),
            (Some((core, horizon)), event) => {
                self.step(core, event.map_or(horizon, |at| horizon.min(at)))
            }
            (None, Some(at)) => self.happen(at),
            (None, None) if self.nudge()? => match self.next_event() {
                Some(at) => self.happen_once_more(at),
                None => Err(self.deadlock(0)),
            },
            // Not reached as long as waits are counted: see `check_deadlock`.
            (None, None) => Err(self.deadlock(0)),
        }
    }

    /// Who waits for memory tries again, with nobody else left to give any.
    fn happen_once_more(&mut self, at: Picos) -> Result<(), SimError> {
        self.happen(at)?;
        if self.next_core().is_some() || self.next_event().is_some() {
            return Ok(());
        }
        let waits = |p: &usize| self.programs[*p].host_waits > 0;
        let program = (0..self.programs.len()).find(waits).unwrap_or(0);
        Err(SimError::MemoryFull {
            program: self.programs[program].setup.name.clone(),
        })
    }

    /// Tasks that wait for memory look again.
    pub(super) fn nudge(&mut self) -> Result<bool, SimError> {
        let nudged = self.setup.kernel.nudge();
        nudged.map_err(|e| self.kernel_error(0, e))
    }

    /// The next moment at which something happens by the clock.
    fn next_event(&self) -> Option<Picos> {
        let (kernel, agenda) = (self.setup.kernel.next_event(), self.next_on_agenda());
        kernel.into_iter().chain(agenda).min()
    }

    /// The file side has something to do, or the agenda.
    fn happen(&mut self, at: Picos) -> Result<(), SimError> {
        if self.next_on_agenda().is_some_and(|due| due <= at) {
            self.keep_agenda(at)?;
        }
        if self.setup.kernel.next_event().is_none_or(|due| due > at) {
            return Ok(());
        }
        self.actions.clear();
        let woken = self.setup.kernel.advance(at, &mut self.actions);
        let woken = woken.map_err(|e| self.kernel_error(0, e))?;
        if !self.actions.as_slice().is_empty() {
            // The core that is least ahead takes the interrupt.
            let core = self.next_core().map_or(0, |(core, _)| core);
            self.cpus[core].now = self.cpus[core].now.max(at);
            self.perform(core);
        }
        for w in woken {
            self.wake(w.task, w.at.max(at))?;
        }
        self.wake_idle_at(at, None)
    }

    /// An error if all tasks of a program wait: events are a program's own, so
    /// that nobody else can post them, although others may run on for ever.
    pub(super) fn check_deadlock(&self, program: usize) -> Result<(), SimError> {
        let state = &self.programs[program];
        if state.live == 0 || state.waiting < state.live {
            return Ok(());
        }
        Err(self.deadlock(program))
    }

    fn deadlock(&self, program: usize) -> SimError {
        let is_mine = |task| self.task(task).is_some_and(|t| t.program == program);
        let event = self.sched.tasks().find_map(|(task, status)| match status {
            Status::Blocked(Blocked::Event(key)) if is_mine(task) => Some(key.event),
            _ => None,
        });
        SimError::Deadlock {
            program: self.programs[program].setup.name.clone(),
            event: event.unwrap_or(0),
        }
    }

    /// A task that has waited comes before the one that runs on its core, as it would
    /// under Linux, where who sleeps much is owed time. Otherwise a program that waits
    /// for every page would pay a slice for each.
    fn wake(&mut self, task: TaskId, at: Picos) -> Result<(), SimError> {
        let core = usize::from(self.sched.wake(task)?.core.0);
        self.cpus[core].woken = self.cpus[core].task.is_some();
        if let Some(state) = self.tasks[task.0 as usize].as_mut() {
            let program = &mut self.programs[state.program];
            program.blocked += at.since(state.blocked_at);
            program.host_waits -= 1;
        }
        Ok(())
    }

    /// A task waits; its core goes on with another.
    pub(super) fn block(&mut self, core: usize, task: TaskId) -> Result<(), SimError> {
        if let Some(state) = self.tasks[task.0 as usize].as_mut() {
            state.blocked_at = self.cpus[core].now;
            self.programs[state.program].host_waits += 1;
        }
        self.sched.block(task)?;
        self.pick(core)
    }

    /// A call is not over.
    pub(super) fn in_call(
        &mut self,
        core: usize,
        task: TaskId,
        work: SysWork,
    ) -> Result<(), SimError> {
        if let Some(state) = self.tasks[task.0 as usize].as_mut() {
            state.in_call = work != SysWork::Done;
        }
        match work {
            SysWork::Blocked => self.block(core, task),
            _ => Ok(()),
        }
    }

    /// Goes on with a task's call.
    pub(super) fn resume(&mut self, core: usize, task: TaskId) -> Result<(), SimError> {
        let Some(state) = self.task(task) else {
            return Ok(());
        };
        let (program, free) = (state.program, state.is_free());
        let id = CoreId(core as u16);
        self.actions.clear();
        let kernel = self.setup.kernel.at(self.cpus[core].now);
        let work = kernel
            .resume(task, id, &mut self.actions)
            .map_err(|e| self.kernel_error(program, e))?;
        if !free {
            self.perform(core);
        }
        self.in_call(core, task, work)
    }
}
