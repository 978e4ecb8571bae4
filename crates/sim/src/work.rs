//! Kernel work that waits to be carried out on a hardware thread.
//!
//! Work is a queue, not a call: a page that is zeroed or copied takes
//! microseconds, and other threads' requests of that time must reach the shared
//! caches and memory in between.

use std::collections::VecDeque;

use piebald_hw::Machine;
use piebald_os_model::kernel::{Action, Actions, Kernel, direct_address};
use piebald_units::{
    CoreId, PAGE_SIZE, Pfn, Picos,
    memory::{Load, MemoryPort, PhysRef},
    op::RefKind,
};

/// Bytes that the kernel's copy and clear loops move with one modelled load or store.
const CHUNK: u16 = 64;
/// Instruction sites of these loops.
const LOOP_SITE: u32 = 0xffff_ff00;

/// What a hardware thread still has to do for the kernel.
#[derive(Default)]
pub(crate) struct Work {
    actions: VecDeque<Task>,
    refs: Vec<PhysRef>,
    at: usize,
    /// The references go to the kernel's own data, not to a program's pages.
    own: bool,
    /// When the work that is timed began.
    began: Option<Picos>,
    /// How long timed work took that is done.
    took: Took,
}

/// What work is timed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timed {
    /// A program's pages move to other colours.
    Recoloring,
    /// Access bits are read.
    Sampling,
    /// A page that a program touches moves to its colours, or loses its mark.
    Following,
}

/// Time that timed work took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Took {
    pub(crate) recoloring: Picos,
    pub(crate) sampling: Picos,
    pub(crate) following: Picos,
}

/// An entry of the queue.
#[derive(Clone, Copy)]
enum Task {
    Do(Action),
    /// From here to the next end, the time is noted.
    Begin,
    End(Timed),
}

/// Owner of the kernel's lines in maps of the sets.
const KERNEL: u8 = 0;

impl Work {
    /// Nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.actions.is_empty() && self.at == self.refs.len()
    }

    /// Adds work behind what is there.
    pub(crate) fn push(&mut self, actions: &Actions) {
        self.actions
            .extend(actions.as_slice().iter().map(|a| Task::Do(*a)));
    }

    /// The core waits when it has come so far.
    pub(crate) fn push_wait(&mut self, time: Picos) {
        self.actions.push_back(Task::Do(Action::Wait(time)));
    }

    /// Adds work whose time is noted.
    pub(crate) fn push_timed(&mut self, actions: &Actions, what: Timed) {
        self.actions.push_back(Task::Begin);
        self.push(actions);
        self.actions.push_back(Task::End(what));
    }

    /// Time that timed work took since this was asked last.
    pub(crate) fn take_time(&mut self) -> Took {
        std::mem::take(&mut self.took)
    }

    /// Goes on from `now` until everything is done or `horizon` has passed;
    /// returns the thread's new clock.
    ///
    /// What the kernel brings in for itself (text, page tables, `struct page`s) belongs
    /// to the kernel; pages that it clears or copies for the task that runs belong to
    /// `owner`, its program. Without a task all belongs to whoever ran last.
    pub(crate) fn go(
        &mut self,
        machine: &mut Machine,
        kernel: &Kernel,
        (core, owner): (CoreId, Option<u8>),
        now: Picos,
        horizon: Picos,
    ) -> Picos {
        let mut current = owner;
        let mut now = now;
        while now <= horizon {
            if self.at < self.refs.len() {
                let wanted = owner.map(|program| if self.own { KERNEL } else { program });
                if wanted != current {
                    machine.set_running(core, wanted);
                    current = wanted;
                }
                let refs = &self.refs[self.at..];
                let progress = machine.run(core, kernel.kernel_space(), refs, now, horizon);
                self.at += progress.done;
                now = progress.now;
                if progress.done == 0 {
                    // The machine counts fractions of a picosecond: its clock may
                    // be past the horizon although ours is not.
                    break;
                }
                continue;
            }
            self.refs.clear();
            self.at = 0;
            match self.actions.pop_front() {
                None => break,
                Some(Task::Do(action)) => now = self.begin(action, machine, core, now),
                Some(Task::Begin) => self.began = Some(now),
                Some(Task::End(what)) => {
                    let began = self.began.take().unwrap_or(now);
                    *match what {
                        Timed::Recoloring => &mut self.took.recoloring,
                        Timed::Sampling => &mut self.took.sampling,
                        Timed::Following => &mut self.took.following,
                    } += now.since(began);
                }
            }
        }
        if current != owner {
            machine.set_running(core, owner);
        }
        now
    }

    /// Begins one action: what refers to memory becomes references.
    fn begin(&mut self, action: Action, machine: &mut Machine, core: CoreId, now: Picos) -> Picos {
        self.own = matches!(action, Action::Touch { .. });
        match action {
            Action::Instrs(n) => return machine.retire(core, n, now),
            Action::Wait(time) => return machine.drain(core, now) + time,
            Action::DeviceFill { frame } | Action::SwapIn { frame, .. } => {
                machine.device_write(frame, now);
            }
            Action::SwapOut { frame, .. } | Action::DeviceDrain { frame } => {
                machine.device_read(frame, now)
            }
            Action::ShootDown { asid, page } => machine.shoot_down(asid, page),
            Action::Touch { .. } => action.refs(&mut self.refs),
            Action::Zero { frame, frames } => {
                self.sweep(machine.line_instrs(), None, (frame, 0), PAGE_SIZE as u16);
                if frames > 1 {
                    self.actions.push_front(Task::Do(Action::Zero {
                        frame: Pfn(frame.0 + 1),
                        frames: frames - 1,
                    }));
                }
            }
            Action::Copy { from, to } => {
                let source = (from, 0, RefKind::Load);
                self.sweep(
                    machine.line_instrs(),
                    Some(source),
                    (to, 0),
                    PAGE_SIZE as u16,
                );
            }
            Action::CopyUser {
                from,
                from_offset,
                to,
                to_offset,
                len,
                load,
            } => {
                let kind = match load {
                    Load::Caching => RefKind::Load,
                    Load::NonCaching => RefKind::LoadNt,
                };
                let source = (from, from_offset, kind);
                self.sweep(machine.line_instrs(), Some(source), (to, to_offset), len);
            }
        }
        now
    }

    /// Loads (of a copy) and stores of `len` bytes. The two sides need not be
    /// aligned alike. A line takes `line_instrs` instructions, those of a copy half
    /// before its load and half before its store.
    fn sweep(
        &mut self,
        line_instrs: u32,
        from: Option<(Pfn, u16, RefKind)>,
        to: (Pfn, u16),
        len: u16,
    ) {
        let sides = 1 + u32::from(from.is_some());
        let mut done = 0;
        while done < len {
            let size = CHUNK.min(len - done);
            let instrs = line_instrs * u32::from(size) / u32::from(CHUNK);
            let load = from.map(|(frame, offset, kind)| ((frame, offset), kind));
            for ((frame, offset), kind) in load.into_iter().chain([(to, RefKind::Store)]) {
                let at = offset + done;
                self.refs.push(PhysRef {
                    vaddr: direct_address(frame, at),
                    frame: frame.0 as u32,
                    site: LOOP_SITE + kind as u32,
                    gap: (instrs / sides).max(1),
                    dep: 0,
                    size: size as u8,
                    kind,
                });
            }
            done += size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(refs: &[PhysRef], kind: RefKind) -> u32 {
        let of = refs.iter().filter(|r| r.kind == kind);
        of.map(|r| u32::from(r.size)).sum()
    }

    #[test]
    fn a_copy_reads_and_writes_every_byte_once() {
        let mut work = Work::default();
        work.sweep(10, Some((Pfn(3), 10, RefKind::Load)), (Pfn(7), 200), 1000);
        let refs = &work.refs;
        // 15 lines of 10 instructions, and 40 bytes of 6, in two halves.
        let instrs: u32 = refs.iter().map(|r| r.gap).sum();
        assert_eq!(instrs, 15 * 10 + 6);
        assert_eq!(bytes(refs, RefKind::Load), 1000);
        assert_eq!(bytes(refs, RefKind::Store), 1000);
        assert_eq!(refs[0].paddr().0, 3 * 4096 + 10);
        let end = refs.last().map(|r| r.paddr().0 + u64::from(r.size));
        assert_eq!(end, Some(7 * 4096 + 1200));
    }

    #[test]
    fn a_cleared_page_is_stored_to_once_per_line() {
        let mut work = Work::default();
        work.sweep(7, None, (Pfn(5), 0), 4096);
        assert_eq!(work.refs.len(), 64);
        assert!(work.refs.iter().all(|r| r.gap == 7));
        assert_eq!(bytes(&work.refs, RefKind::Store), 4096);
    }
}
