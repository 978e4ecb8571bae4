//! What a kernel has done before the programs of a run begin.

use piebald_units::{CoreId, CoreSet, Picos};

use super::Engine;
use crate::work::Work;

impl Engine<'_> {
    /// Every hardware thread that programs may use has taken a timer tick and switched tasks
    /// before: the kernel's own lines are in its caches. It took place in the past: nobody's clock moves.
    ///
    /// Otherwise the first tick of a run brings them in. A program alone pays for that in its
    /// measured part or not, by when it happens; beside others, their ticks have paid: it would
    /// miss less together than alone.
    pub(super) fn settle_kernel(&mut self) {
        let none = CoreSet::EMPTY;
        let used = self
            .programs
            .iter()
            .fold(none, |all, p| all.union(p.setup.cores));
        for core in used.iter().map(|core| usize::from(core.0)) {
            let id = CoreId(core as u16);
            self.actions.clear();
            self.setup.kernel.tick(id, None, &mut self.actions);
            self.setup.kernel.switch(id, None, &mut self.actions);
            let mut work = Work::default();
            work.push(&self.actions);
            let kernel = &self.setup.kernel;
            work.go(&mut self.machine, kernel, (id, None), Picos(0), Picos::MAX);
            self.cpus[core].since = self.machine.counters(id);
        }
    }
}
