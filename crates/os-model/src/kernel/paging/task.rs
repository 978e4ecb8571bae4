//! What a task holds while it waits.

use piebald_units::{TaskId, Vpn};

use super::{
    super::{Actions, Kernel, mapping::Caller},
    Held,
    transfer::Ongoing,
};
use crate::file::Request;

/// What a task holds between waiting and going on.
#[derive(Clone, Default)]
pub(super) struct TaskPages {
    /// The page that its last request came to.
    pub got: Option<Held>,
    /// That request, if the task waited for it.
    pub asked: Option<Request>,
    /// What is being copied to a new private page.
    pub old: Option<Held>,
    /// The id of that new page.
    pub fresh: Option<u32>,
    /// The read or write that it is in.
    pub transfer: Option<Ongoing>,
    /// The page of the fault in which it waits.
    pub waits_at: Option<Vpn>,
    /// It waited since it asked last.
    pub is_blocked: bool,
}

impl Kernel {
    /// A fault is resolved: what the task still holds for it is given back. Another
    /// thread may have resolved it while this one waited.
    pub(super) fn settle_task(&mut self, c: Caller, actions: &mut Actions) {
        let mine = self.pool_mut().task(c.task);
        (mine.asked, mine.waits_at) = (None, None);
        let (got, old, fresh) = (mine.got.take(), mine.old.take(), mine.fresh.take());
        for held in [got, old].into_iter().flatten() {
            self.release(held, c.core);
        }
        if let Some(id) = fresh {
            self.put_id(id, c.core, actions);
        }
    }

    /// A task ends.
    pub(in super::super) fn end_task(&mut self, c: Caller, actions: &mut Actions) {
        if self.pool.is_none() {
            return;
        }
        self.settle_task(c, actions);
        let transfer = self.pool_mut().task(c.task).transfer.take();
        if let Some(held) = transfer.and_then(|t| t.held) {
            self.release(held, c.core);
        }
    }

    /// The id of the page that a task's copy goes to.
    pub(super) fn fresh_of(&self, task: TaskId) -> Option<u32> {
        let tasks = self.pool.as_ref().map(|pool| &pool.tasks);
        tasks?.get(task.0 as usize)?.fresh
    }
}
