//! Moving a page to another frame, on behalf of a policy.

use piebald_policy::contract::{Asker, Cause, FrameRequest, Mode, Purpose};
use piebald_units::{Color, ColorSet, CoreId, Order, Pfn, TaskId, Vpn};

use super::{
    Actions, Kernel, KernelError, Owner, Path,
    fault::{Site, copy},
    mapping::Caller,
};
use crate::space::{Entry, frame_in};

/// Where a page should go.
#[derive(Clone, Copy, Debug)]
pub struct Move<'a> {
    /// Colours allowed; `None` = all.
    pub allowed: Option<&'a ColorSet>,
    /// The best of them.
    pub wish: Option<Color>,
    /// Whether they bind.
    pub mode: Mode,
}

/// What became of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    /// The page has a new frame.
    Done {
        /// Old frame, free now.
        from: Pfn,
        /// New frame.
        to: Pfn,
        /// The new frame lies outside the allowed colours.
        fallback: bool,
    },
    /// No page there.
    NotMapped,
    /// The frame has other users (a shared or page-cache page, copy-on-write
    /// with another process, the zero page); it was left where it is.
    Shared,
}

impl Kernel {
    /// Moves a private page of a task to a frame that `target` describes:
    /// copies it, exchanges the entry and shoots the old translation down. A
    /// 2 MiB page is split first, and only this 4 KiB part moves.
    ///
    /// # Errors
    /// No such task, or no such frame; the page is then where it was.
    pub fn migrate(
        &mut self,
        task: TaskId,
        core: CoreId,
        vpn: Vpn,
        target: Move<'_>,
        actions: &mut Actions,
    ) -> Result<Moved, KernelError> {
        let caller = Caller {
            task,
            core,
            process: self.process_of(task)?,
        };
        self.move_page(caller, vpn, target, actions)
    }

    /// The same for a page of any process; the caller's task and core do it.
    pub(super) fn move_page(
        &mut self,
        c: Caller,
        vpn: Vpn,
        target: Move<'_>,
        actions: &mut Actions,
    ) -> Result<Moved, KernelError> {
        let Caller {
            task,
            core,
            process,
        } = c;
        let Some((entry, level)) = self.process(process).space.tables.lookup(vpn) else {
            return Ok(Moved::NotMapped);
        };
        let from = frame_in(entry, level, vpn);
        let is_object = entry.flags() & (Entry::CACHED | Entry::ZERO) != 0;
        if is_object || !self.is_only_user(from) {
            return Ok(Moved::Shared);
        }
        let (to, fallback) = self.destination(c, vpn, target)?;
        if level == 1
            && let Err(e) = self.split_huge(c, vpn)
        {
            self.put_frame(to, core);
            return Err(e);
        }
        let site = Site {
            task,
            core,
            process,
            vpn,
            write: true,
        };
        self.charge(Path::Migrate, core, Some(task), actions);
        self.shoot(site, actions);
        actions.push(copy(from, to));
        let flags = entry.without(Entry::HUGE | Entry::HINT).flags();
        self.replace(site, Entry::new(to, flags), 1);
        self.charge_entry(process, vpn, to, actions);
        self.put_frame(from, core);
        self.move_frame(from, to, core);
        self.counters.migrations += 1;
        Ok(Moved::Done {
            from: Pfn(u64::from(from)),
            to: Pfn(u64::from(to)),
            fallback,
        })
    }

    /// Has a mapped frame no other user than its page table (and the pool)?
    fn is_only_user(&self, frame: u32) -> bool {
        self.meta.refs(frame) == 1 + u32::from(self.is_paged())
    }

    fn destination(
        &mut self,
        c: Caller,
        vpn: Vpn,
        target: Move<'_>,
    ) -> Result<(u32, bool), KernelError> {
        let Caller { task, core, .. } = c;
        let who = self.who(c);
        let request = FrameRequest {
            order: Order(0),
            purpose: Purpose::Anon,
            asker: Asker::Task(task),
            cause: Cause::Migration,
            core,
            page: Some(vpn),
            allowed: target.allowed,
            wish: target.wish,
            mode: target.mode,
        };
        let grant = self
            .frames
            .alloc(&request)
            .map_err(|why| self.out_of_memory(who, &request, why))?;
        let frame = grant.frame.0 as u32;
        self.meta.begin(frame, 0, Owner::Program(who.program));
        self.counters.color_fallbacks += u64::from(grant.fallback);
        Ok((frame, grant.fallback))
    }
}
