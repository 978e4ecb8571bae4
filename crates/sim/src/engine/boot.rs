//! What a kernel has done before the programs of a run begin.

use piebald_units::{CoreId, Picos, TaskId};

use super::Engine;
use crate::work::Work;

impl Engine<'_> {
    /// Every hardware thread has taken a timer tick and switched tasks before: the kernel's own
    /// lines are in the caches.
    ///
    /// Otherwise the first tick of a run brings them in. A program alone pays for that in its
    /// measured part or not, by when it happens; beside others, their ticks have paid: it would
    /// miss less together than alone.
    pub(super) fn settle_kernel(&mut self) {
        for core in 0..self.cpus.len() {
            self.settle_on(core, None);
        }
    }

    /// The kernel has just made a task: what it knows of the task is in the caches of its core.
    pub(super) fn settle_task(&mut self, core: usize, task: TaskId) {
        self.settle_on(core, Some(task));
    }

    /// A tick and a switch on a hardware thread that took place in the past: nobody's clock moves,
    /// and nobody's counters.
    fn settle_on(&mut self, core: usize, task: Option<TaskId>) {
        let id = CoreId(core as u16);
        self.settle(core);
        self.actions.clear();
        self.setup.kernel.tick(id, task, &mut self.actions);
        self.setup.kernel.switch(id, task, &mut self.actions);
        let mut work = Work::default();
        work.push(&self.actions);
        let (kernel, now) = (&self.setup.kernel, self.cpus[core].now);
        work.go(&mut self.machine, kernel, (id, None), now, Picos::MAX);
        self.cpus[core].since = self.machine.counters(id);
    }
}
