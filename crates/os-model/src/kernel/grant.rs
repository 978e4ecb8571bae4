//! Asking the allocator for frames and giving them back.

use piebald_policy::contract::{AllocError, Asker, Cause, FrameRequest, Grant, Purpose};
use piebald_units::{Bytes, Color, CoreId, Order, Pfn, TaskId, Vpn};

use super::{Kernel, KernelError, OutOfMemory, Owner, Process, boot::kernel_request};

/// On whose behalf kernel memory is taken.
#[derive(Clone, Copy)]
pub(super) struct Who {
    pub task: TaskId,
    pub core: CoreId,
    pub program: u16,
}

/// What is the same in every request for a task's page.
#[derive(Clone, Copy)]
pub(super) struct Ask {
    pub task: TaskId,
    pub core: CoreId,
    pub order: Order,
    pub purpose: Purpose,
    pub asker: Asker,
    pub cause: Cause,
    pub page: Option<Vpn>,
}

impl Kernel {
    /// A frame of the kernel's own.
    pub(super) fn kernel_frame(&mut self, who: Who) -> Result<Pfn, KernelError> {
        let request = FrameRequest {
            core: who.core,
            ..kernel_request(Order(0))
        };
        let grant = self
            .frames
            .alloc(&request)
            .map_err(|why| self.out_of_memory(who, &request, why))?;
        self.meta.set_owner(grant.frame, Order(0), Owner::Kernel);
        Ok(grant.frame)
    }

    pub(super) fn free_block(&mut self, frame: Pfn, order: Order, core: CoreId) {
        self.meta.set_owner(frame, order, Owner::Free);
        let freed = self.frames.free(frame, order, core);
        debug_assert_eq!(freed, Ok(()), "the kernel frees what it was granted");
    }

    /// One user of a frame less.
    pub(super) fn put_frame(&mut self, frame: u32, core: CoreId) {
        if let Some((head, order)) = self.meta.put(frame) {
            self.free_block(Pfn(u64::from(head)), order, core);
        }
    }

    /// Asks for frames for a task's page, under its process's colour rule, and
    /// records them with one user.
    pub(super) fn grant(&mut self, ask: &Ask) -> Result<Grant, KernelError> {
        let process = self.process_of(ask.task)?;
        let Some(Some(p)) = self.processes.get_mut(process) else {
            return Err(KernelError::NoSuchTask(ask.task));
        };
        let wish = p.next_wish();
        let request = FrameRequest {
            order: ask.order,
            purpose: ask.purpose,
            asker: ask.asker,
            cause: ask.cause,
            core: ask.core,
            page: ask.page,
            allowed: p.rule.allowed.as_ref(),
            wish,
            mode: p.rule.mode,
        };
        let program = p.program;
        let granted = self.frames.alloc(&request);
        let Ask {
            order,
            purpose,
            cause,
            ..
        } = *ask;
        let grant = granted.map_err(|why| {
            let who = Who {
                task: ask.task,
                core: ask.core,
                program,
            };
            self.out_of_memory(
                who,
                &FrameRequest {
                    order,
                    purpose,
                    cause,
                    ..kernel_request(order)
                },
                why,
            )
        })?;
        let owner = match purpose {
            Purpose::File => Owner::File(program),
            _ => Owner::Program(program),
        };
        self.counters.color_fallbacks += u64::from(grant.fallback);
        self.meta.begin(grant.frame.0 as u32, ask.order.0, owner);
        Ok(grant)
    }

    pub(super) fn out_of_memory(
        &self,
        who: Who,
        request: &FrameRequest<'_>,
        why: AllocError,
    ) -> OutOfMemory {
        OutOfMemory {
            task: who.task,
            program: who.program,
            order: request.order,
            purpose: request.purpose,
            cause: request.cause,
            why,
            free: Bytes(self.frames.free_frames() << 12),
            total: Bytes(self.frames.total_frames() << 12),
        }
    }
}

impl Process {
    /// The next of the allowed colours, if the rule hands them out in turn.
    pub(super) fn next_wish(&mut self) -> Option<Color> {
        let allowed = self
            .rule
            .allowed
            .as_ref()
            .filter(|_| self.rule.round_robin)?;
        let after = |c: &Color| self.last_wish.is_none_or(|l| *c > l);
        self.last_wish = allowed.iter().find(after).or_else(|| allowed.iter().next());
        self.last_wish
    }
}
