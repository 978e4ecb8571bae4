//! Programs reserve colours when they start, change them while they run, and have
//! their pages moved.

use piebald_os_model::kernel::{Kernel, KernelError};
use piebald_policy::rainbow::{PartitionId, Refusal};
use piebald_units::{ColorAsk, CoreId, TaskId, memory::MemoryPort};

use super::{Engine, ProgramState};
use crate::{
    setup::{MemoryUse, Recolor, SimError},
    work::Timed,
};

/// Where a program's changes of colours stand.
#[derive(Default)]
pub(super) struct ColorState {
    /// Changes that are done.
    done: usize,
    /// What the last of them asked for: a new instance begins with it.
    current: Option<ColorAsk>,
    /// Pages to move at each tick, as long as some are left.
    per_tick: Option<u32>,
    /// A tick has come, and its pages have not moved yet.
    due: bool,
    /// Holds the colours of a program that starts late.
    holder: Option<TaskId>,
}

impl ProgramState {
    /// References until the main thread's next change of colours.
    pub(super) fn until_change(&self) -> u64 {
        let change = self.setup.colors.changes.get(self.colors.done);
        match (change, self.warm) {
            (Some(change), Some(warm)) => (warm.refs + change.at).saturating_sub(self.refs),
            _ => u64::MAX,
        }
    }

    /// Is there something about colours that a task of the program has to do before it
    /// goes on?
    pub(super) fn has_color_work(&self, task: TaskId) -> bool {
        self.colors.due || (task == self.main && self.until_change() == 0)
    }

    /// A timer tick has come.
    pub(super) fn color_tick(&mut self) {
        self.colors.due = self.colors.per_tick.is_some();
    }
}

/// The partition that has exactly the colours that are named.
fn owner_of(kernel: &Kernel, want: &ColorAsk) -> Option<PartitionId> {
    let ColorAsk::Exactly(set) = want else {
        return None;
    };
    let mut all = kernel.partitions()?.iter();
    all.find(|(_, p)| p.colors() == set).map(|(id, _)| id)
}

impl Engine<'_> {
    /// Colours of a program that starts late are its own from the beginning: its company
    /// is not to fill them before.
    pub(super) fn hold(&mut self, program: usize) -> Result<(), SimError> {
        if self.programs[program].setup.colors.reserve.is_none() {
            return Ok(());
        }
        let holder = self.setup.kernel.start(program as u16 + 1);
        let held = holder.and_then(|task| {
            self.take_colors(program, task)?;
            Ok(task)
        });
        let task = held.map_err(|e| self.kernel_error(program, e))?;
        self.programs[program].colors.holder = Some(task);
        Ok(())
    }

    /// A new instance of a program gets its colours.
    pub(super) fn reserve(&mut self, program: usize, task: TaskId) -> Result<(), SimError> {
        let colors = &mut self.programs[program].colors;
        (colors.per_tick, colors.due) = (None, false);
        let holder = colors.holder.take();
        let taken = self.take_colors_from(program, task, holder);
        let taken = taken.and_then(|()| self.hand_over(program, task));
        taken.map_err(|e| self.kernel_error(program, e))
    }

    fn take_colors_from(
        &mut self,
        program: usize,
        task: TaskId,
        holder: Option<TaskId>,
    ) -> Result<(), KernelError> {
        let (core, kernel) = (CoreId(0), &mut self.setup.kernel);
        kernel.set_on_limit(task, self.programs[program].setup.colors.on_limit)?;
        let Some(holder) = holder else {
            return self.take_colors(program, task);
        };
        self.actions.clear();
        if let Some(id) = kernel.partition_of(holder)? {
            kernel.attach(task, core, id, &mut self.actions)?;
        }
        kernel.exit(holder, core, &mut self.actions)
    }

    /// Reserves what a program asks for, or joins who has it.
    fn take_colors(&mut self, program: usize, task: TaskId) -> Result<(), KernelError> {
        let state = &self.programs[program];
        let want = state.colors.current.as_ref();
        let Some(want) = want.or(state.setup.colors.reserve.as_ref()) else {
            return Ok(());
        };
        let (core, kernel, actions) = (CoreId(0), &mut self.setup.kernel, &mut self.actions);
        actions.clear();
        let shared = state.setup.colors.shared;
        match shared.then(|| owner_of(kernel, want)).flatten() {
            Some(id) => kernel.attach(task, core, id, actions),
            None => kernel.reserve(task, core, want, actions).map(|_| ()),
        }
    }

    /// The change of colours or the moving of pages that is due.
    pub(super) fn color_work(
        &mut self,
        core: usize,
        task: TaskId,
        program: usize,
    ) -> Result<(), SimError> {
        self.cpus[core].now = self.machine.drain(CoreId(core as u16), self.cpus[core].now);
        let state = &mut self.programs[program];
        if std::mem::take(&mut state.colors.due) {
            let pages = state.colors.per_tick.unwrap_or(1).max(1);
            return self.recolor(core, task, program, u64::from(pages));
        }
        let Some(change) = state.setup.colors.changes.get(state.colors.done) else {
            return Ok(());
        };
        let change = change.clone();
        state.colors.done += 1;
        state.colors.per_tick = match change.recolor {
            Recolor::PerTick(pages) => Some(pages),
            Recolor::No | Recolor::Now => None,
        };
        let id = CoreId(core as u16);
        let (kernel, actions) = (&mut self.setup.kernel, &mut self.actions);
        actions.clear();
        let done = match kernel.partition_of(task) {
            Ok(None) => {
                let made = kernel.reserve(task, id, &change.want, actions);
                made.map(|_| ())
            }
            Ok(Some(_)) => {
                let resized = kernel.resize(task, id, &change.want, actions);
                resized.map(|_| ())
            }
            Err(e) => Err(e),
        };
        done.map_err(|e| self.refused_change(program, e))?;
        self.perform(core);
        self.programs[program].colors.current = Some(change.want);
        match change.recolor {
            Recolor::Now => self.recolor(core, task, program, u64::MAX),
            Recolor::No | Recolor::PerTick(_) => Ok(()),
        }
    }

    /// Why a program did not get other colours, with the name of the program that has them.
    fn refused_change(&self, program: usize, error: KernelError) -> SimError {
        let KernelError::Colors {
            why: Refusal::Taken { color, by },
            ..
        } = error
        else {
            return self.kernel_error(program, error);
        };
        let has = |other: &&ProgramState| {
            other.live > 0
                && self
                    .setup
                    .kernel
                    .partition_of(other.main)
                    .is_ok_and(|p| p == Some(by))
        };
        match self.programs.iter().find(has) {
            None => self.kernel_error(program, error),
            Some(owner) => SimError::ColorTaken {
                program: self.programs[program].setup.name.clone(),
                change: self.programs[program].colors.done,
                color,
                by: owner.setup.name.clone(),
            },
        }
    }

    /// Moves pages of a program to the colours that it has now.
    fn recolor(
        &mut self,
        core: usize,
        task: TaskId,
        program: usize,
        pages: u64,
    ) -> Result<(), SimError> {
        self.actions.clear();
        let id = CoreId(core as u16);
        let kernel = &mut self.setup.kernel;
        let moved = kernel.recolor(task, id, pages, &mut self.actions);
        let moved = moved.map_err(|e| self.kernel_error(program, e))?;
        self.cpus[core]
            .work
            .push_timed(&self.actions, Timed::Recoloring);
        if moved.done {
            self.programs[program].colors.per_tick = None;
        }
        Ok(())
    }

    /// The memory of a program now.
    pub(super) fn memory_use(&self, program: usize) -> MemoryUse {
        let number = program as u16 + 1;
        let kernel = &self.setup.kernel;
        let mut tasks = (0u32..).zip(&self.tasks);
        let task = tasks.find(|(_, t)| t.as_ref().is_some_and(|t| t.program == program));
        let task = task.map(|(id, _)| TaskId(id));
        let colors = task.and_then(|t| kernel.colors_of(t).ok().flatten());
        let partition = task.and_then(|t| kernel.partition_of(t).ok().flatten());
        let own = kernel.partitions().zip(partition);
        let own = own.and_then(|(registry, id)| registry.get(id).ok());
        MemoryUse {
            own: own.map(|p| p.colors().clone()),
            colors: colors.cloned(),
            pages_by_color: kernel.pages_by_color(number),
            usage: kernel.usage(number),
            recolor_time: self.programs[program].recolor_time,
        }
    }
}
