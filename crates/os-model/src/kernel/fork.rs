//! The beginning and the end of tasks and processes.

use piebald_units::{CoreId, Order, Pfn, TaskId, Vpn, op::SpawnKind};

use super::{
    Action, Actions, Kernel, KernelError, Path,
    fault::Site,
    mapping::{Caller, PageRange},
};
use crate::space::{Entry, HUGE_PAGES, VPN_MASK};

/// Every page of an address space.
const ALL: PageRange = PageRange {
    first: Vpn(0),
    end: Vpn(VPN_MASK + 1),
};

impl Kernel {
    /// `clone` and `fork`: returns the new task.
    pub(super) fn spawn(
        &mut self,
        c: Caller,
        kind: SpawnKind,
        actions: &mut Actions,
    ) -> Result<TaskId, KernelError> {
        match kind {
            SpawnKind::Thread => {
                self.charge(Path::Spawn, c.core, Some(c.task), actions);
                let who = self.who(c);
                let turns = self.turns_of(c.task);
                let made = self.new_task(who, c.process, turns)?;
                self.count_threads(c, actions);
                Ok(made)
            }
            SpawnKind::Fork => {
                self.charge(Path::Fork, c.core, Some(c.task), actions);
                self.fork(c, actions)
            }
        }
    }

    fn fork(&mut self, c: Caller, actions: &mut Actions) -> Result<TaskId, KernelError> {
        let who = self.who(c);
        let under = self.under(c.process);
        let child = self.new_process(who, under)?;
        let turns = self.turns_of(c.task);
        let made = self
            .copy_space(c, child, actions)
            .and_then(|()| self.new_task(who, child, turns));
        if made.is_err() {
            self.end_process(child);
        }
        self.counters.forks += 1;
        made
    }

    /// Shares all private pages copy-on-write. Pages of files and shared
    /// objects are left to faults of the child, as Linux does.
    fn copy_space(
        &mut self,
        c: Caller,
        child: usize,
        actions: &mut Actions,
    ) -> Result<(), KernelError> {
        let areas: Vec<_> = self.process(c.process).space.areas().copied().collect();
        for a in areas {
            self.add_area(child, a);
        }
        self.share_swapped(c.process, child);
        self.fork_turn(c.process, child);
        let pages = self.protect_private(c.process);
        for (vpn, entry, level) in &pages {
            self.charge_entry(c.process, *vpn, entry.frame(), actions);
            if !entry.has(Entry::ZERO) {
                let frames = if *level == 1 { HUGE_PAGES as usize } else { 1 };
                for f in (entry.frame()..).take(frames) {
                    self.meta.get(f);
                }
            }
            let site = Site {
                process: child,
                vpn: *vpn,
                task: c.task,
                core: c.core,
                write: false,
            };
            let copy = entry.without(Entry::ACCESSED);
            if let Err(e) = self.map(site, copy) {
                self.lose(*entry, *level, c.core);
                return Err(e);
            }
            self.share_mapping(child, *vpn, copy);
            self.charge_entry(child, *vpn, entry.frame(), actions);
        }
        if !pages.is_empty() {
            let asid = piebald_units::Asid(c.process as u32 + 1);
            actions.push(Action::ShootDown { asid, page: None });
        }
        actions.instrs(
            self.config
                .costs
                .per_page_instrs
                .saturating_mul(pages.len() as u32),
        );
        Ok(())
    }

    /// Makes the parent's private pages copy-on-write and lists them.
    fn protect_private(&mut self, process: usize) -> Vec<(Vpn, Entry, u8)> {
        let space = &mut self.process_mut(process).space;
        let mut pages = Vec::new();
        space
            .tables
            .visit(ALL.first, ALL.end, &mut |vpn, e, level| {
                if e.has(Entry::CACHED) {
                    return e;
                }
                let protected = e.without(Entry::WRITE).with(Entry::COW);
                pages.push((vpn, protected, level));
                protected
            });
        space.epoch = space.epoch.wrapping_add(1);
        pages
    }

    /// `execve`: the task goes on in a new, empty address space. The old one
    /// ends with its last task.
    pub(super) fn exec(&mut self, c: Caller, actions: &mut Actions) -> Result<(), KernelError> {
        self.charge(Path::Exec, c.core, Some(c.task), actions);
        // The partition stays, which is how a launcher gives a program its colours;
        // as the task only goes over, the registry counts it already.
        let under = self.under(c.process);
        let new = self.new_process(self.who(c), under)?;
        self.process_mut(new).tasks = 1;
        if let Some(Some(t)) = self.tasks.get_mut(c.task.0 as usize) {
            t.process = new;
            t.cache.reset();
        }
        self.leave(c, actions);
        Ok(())
    }

    /// The task ends; its process ends with its last task, and all frames that
    /// only it used are free.
    ///
    /// # Errors
    /// [`KernelError::NoSuchTask`].
    pub fn exit(
        &mut self,
        task: TaskId,
        core: CoreId,
        actions: &mut Actions,
    ) -> Result<(), KernelError> {
        let process = self.process_of(task)?;
        self.charge(Path::Exit, core, Some(task), actions);
        let c = Caller {
            task,
            core,
            process,
        };
        self.end_task(c, actions);
        let Some(t) = self.tasks.get_mut(task.0 as usize).and_then(Option::take) else {
            return Err(KernelError::NoSuchTask(task));
        };
        for f in t.frames {
            self.free_block(f, Order(0), core);
        }
        let under = self.under(process);
        self.leave(c, actions);
        self.leave_partition(under.partition);
        if let Some(id) = under.managed {
            self.leave_hvr(c, id, actions);
        }
        Ok(())
    }

    /// One task of a process less.
    fn leave(&mut self, c: Caller, actions: &mut Actions) {
        let p = self.process_mut(c.process);
        p.tasks -= 1;
        if p.tasks > 0 {
            return;
        }
        // Whole pages only: nothing is split, so nothing can fail.
        let dropped = self.unmap_range(c, ALL, actions);
        debug_assert!(dropped.is_ok());
        self.end_process(c.process);
    }

    /// Frees whatever a process still has.
    pub(super) fn end_process(&mut self, process: usize) {
        let core = CoreId(0);
        let c = Caller {
            task: TaskId(0),
            core,
            process,
        };
        let dropped = self.unmap_range(c, ALL, &mut Actions::new());
        debug_assert!(dropped.is_ok());
        self.end_sequence(process);
        let Some(p) = self.processes[process].take() else {
            return;
        };
        for f in p.space.table_frames() {
            self.free_block(Pfn(u64::from(f)), Order(0), core);
        }
    }
}
