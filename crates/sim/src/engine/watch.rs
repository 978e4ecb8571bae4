//! Telling the machine's shadow tags which pages are the watched program's.

use piebald_os_model::kernel::{Action, Owner};
use piebald_units::Pfn;

use super::Engine;

impl Engine<'_> {
    /// The pages that the kernel is about to clear or copy, in the order in which they
    /// were granted.
    pub(super) fn pages_of_actions(&mut self) {
        for at in 0..self.actions.as_slice().len() {
            let pages = match self.actions.as_slice()[at] {
                Action::Zero { frame, frames } => frame.0..frame.0 + u64::from(frames),
                Action::Copy { to, .. } => to.0..to.0 + 1,
                Action::DeviceFill { frame } | Action::SwapIn { frame, .. } => frame.0..frame.0 + 1,
                Action::CopyUser { from, to, .. } => {
                    self.page(from);
                    to.0..to.0 + 1
                }
                Action::Instrs(_)
                | Action::Touch { .. }
                | Action::SwapOut { .. }
                | Action::DeviceDrain { .. }
                | Action::Wait(_)
                | Action::ShootDown { .. } => continue,
            };
            pages.for_each(|frame| self.page(Pfn(frame)));
        }
    }

    /// The pages of a task's translated references, for those that the kernel gave it
    /// without touching them.
    pub(super) fn pages_of_task(&mut self, task: usize) {
        let Some(phys) = self.tasks[task]
            .as_mut()
            .map(|t| std::mem::take(&mut t.phys))
        else {
            return;
        };
        let mut last = None;
        for frame in phys.iter().map(|r| r.frame) {
            if last.replace(frame) != Some(frame) {
                self.page(Pfn(u64::from(frame)));
            }
        }
        if let Some(state) = self.tasks[task].as_mut() {
            state.phys = phys;
        }
    }

    fn page(&mut self, frame: Pfn) {
        let watched = self.setup.curve.as_ref().map(|c| c.program as u16 + 1);
        let (Owner::Program(owner) | Owner::File(owner)) = self.setup.kernel.owner_of(frame) else {
            return;
        };
        if Some(owner) == watched {
            self.machine.page_has_come(frame);
        }
    }
}
