//! What programs do besides references: system calls, marks, their end.

use piebald_os_model::{kernel::SysWork, sched::EventKey};
use piebald_units::{
    CoreId, Picos, TaskId,
    memory::MemoryPort,
    op::{Next, SysOp},
};
use piebald_workload::memory::mark;

use super::Engine;
use crate::{setup::SimError, task::TaskState};

impl Engine<'_> {
    /// Instructions without references, then an event of the program.
    pub(super) fn event(
        &mut self,
        core: usize,
        task: TaskId,
        tail: u32,
        next: Next,
    ) -> Result<(), SimError> {
        let id = CoreId(core as u16);
        let Some(state) = self.tasks[task.0 as usize].as_mut() else {
            return Ok(());
        };
        let program = state.program;
        let free = state.is_free();
        state.event_done();
        if !free {
            self.cpus[core].now = self.machine.retire(id, tail, self.cpus[core].now);
        }
        match next {
            Next::More => Ok(()),
            Next::Sys(op) if !free && self.begin_read(task, program, &op) => Ok(()),
            Next::Sys(op) => self.call(core, task, program, op, free),
            Next::Mark(mark::READY) => self.program_ready(core, task, program),
            Next::Mark(_) => Ok(()),
            Next::Exit(_) | Next::End => self.exit(core, task, program),
            Next::Broken => Err(SimError::Input {
                program: self.programs[program].setup.name.clone(),
                problem: self.task(task).map_or_else(String::new, TaskState::failure),
            }),
        }
    }

    /// A program says that its set-up is over: its warm-up starts here.
    fn program_ready(&mut self, core: usize, task: TaskId, program: usize) -> Result<(), SimError> {
        if let Some(state) = self.tasks[task.0 as usize].as_mut() {
            state.note_ready();
        }
        let state = &mut self.programs[program];
        if !state.ready {
            state.origin = state.refs;
            state.ready = true;
        }
        self.at_gate(core, task, program)
    }

    fn call(
        &mut self,
        core: usize,
        task: TaskId,
        program: usize,
        op: SysOp,
        free: bool,
    ) -> Result<(), SimError> {
        let id = CoreId(core as u16);
        self.actions.clear();
        let now = self.cpus[core].now;
        let kernel = self.setup.kernel.at(now);
        let work = kernel
            .syscall(task, id, &op, &mut self.actions)
            .map_err(|e| self.kernel_error(program, e))?;
        if !free {
            self.cpus[core].now = self.machine.drain(id, now);
            self.perform(core);
        }
        match work {
            SysWork::Spawned { task, thread } => {
                self.add_task(program, task, thread, 0)?;
                self.wake_idle(core)?;
            }
            SysWork::More | SysWork::Blocked => return self.in_call(core, task, work),
            SysWork::Done | SysWork::Schedule => {}
        }
        let key = |event| EventKey {
            program: self.programs[program].instance,
            event,
        };
        match op {
            SysOp::Post { event } => {
                let key = key(event);
                self.wakes.clear();
                self.sched.post(key, &mut self.wakes)?;
                self.programs[program].waiting -= self.wakes.len() as u32;
                self.wake_idle(core)?;
            }
            SysOp::Await { event } if !free && self.sched.await_event(task, key(event))? => {
                self.programs[program].waiting += 1;
                self.check_deadlock(program)?;
                self.pick(core)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Idle cores whose queue is no longer empty start at the clock of the core
    /// that filled it.
    pub(super) fn wake_idle(&mut self, from: usize) -> Result<(), SimError> {
        self.wake_idle_at(self.cpus[from].now, Some(from))
    }

    /// Idle cores whose queue is no longer empty start at `now`, but for one.
    pub(super) fn wake_idle_at(&mut self, now: Picos, but: Option<usize>) -> Result<(), SimError> {
        for core in 0..self.cpus.len() {
            if Some(core) != but && self.cpus[core].task.is_none() {
                let before = self.cpus[core].now;
                self.cpus[core].now = before.max(now);
                self.pick(core)?;
                if self.cpus[core].task.is_none() {
                    self.cpus[core].now = before;
                }
            }
        }
        Ok(())
    }

    pub(super) fn exit(
        &mut self,
        core: usize,
        task: TaskId,
        program: usize,
    ) -> Result<(), SimError> {
        let id = CoreId(core as u16);
        let last = self.programs[program].live == 1;
        let is_own = program < self.own;
        if last && is_own {
            self.ended(core, program)?;
            self.remember(program, task)
                .map_err(|e| self.kernel_error(program, e))?;
        }
        self.actions.clear();
        let kernel = self.setup.kernel.at(self.cpus[core].now);
        kernel
            .exit(task, id, &mut self.actions)
            .map_err(|e| self.kernel_error(program, e))?;
        self.perform(core);
        self.sched.exit(task)?;
        self.settle(core);
        self.cpus[core].task = None;
        self.tasks[task.0 as usize] = None;
        self.programs[program].live -= 1;
        self.check_deadlock(program)?;
        if last && !is_own {
            self.begin(self.cpus[core].now)?;
        } else if last && !self.programs[program].leaving && !self.is_over() {
            self.programs[program].restarts += 1;
            let prime = self.programs[program].setup.prime;
            self.start_program(program, prime)?;
            self.wake_idle(core)?;
        }
        if self.cpus[core].task.is_none() {
            self.pick(core)?;
        }
        Ok(())
    }
}
