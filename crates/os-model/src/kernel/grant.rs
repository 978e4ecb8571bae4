//! Asking the allocator for frames and giving them back.

use piebald_policy::contract::{AllocError, Asker, Cause, FrameRequest, Grant, Mode, Purpose};
use piebald_units::{Bytes, ColorSet, CoreId, Order, Pfn, TaskId, Vpn};

use super::{
    Actions, ColorHolders, ColorLimit, Kernel, KernelError, OnLimit, OutOfMemory, Owner,
    boot::kernel_request,
    colors::{Turns, prepared},
    mapping::Caller,
    swap::Stuck,
};

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

impl Ask {
    /// The same for an allocator, before colours are filled in.
    pub fn request(&self) -> FrameRequest<'static> {
        FrameRequest {
            order: self.order,
            purpose: self.purpose,
            asker: self.asker,
            cause: self.cause,
            core: self.core,
            page: self.page,
            allowed: None,
            wish: None,
            mode: Mode::Hint,
        }
    }
}

impl Kernel {
    /// A frame of the kernel's own.
    pub(super) fn kernel_frame(&mut self, who: Who) -> Result<Pfn, KernelError> {
        let mut request = FrameRequest {
            core: who.core,
            ..kernel_request(Order(0))
        };
        if let Some(colors) = &self.colors
            && let Ok(prepared) = colors.registry.prepare(&request, None, colors.turn)
        {
            request.wish = prepared.wish;
        }
        let mut granted = self.frames.alloc(&request);
        while granted.is_err() && self.shrink(who.core) {
            granted = self.frames.alloc(&request);
        }
        let grant = granted.map_err(|why| self.out_of_memory(who, &request, why))?;
        if let Some(colors) = &mut self.colors {
            colors.turn.took(colors.map.color(grant.frame));
        }
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

    /// Asks for frames for a task's page in the colours that its process may have,
    /// and records them with one user. If these are used up, pages leave memory
    /// where the process is set so.
    pub(super) fn grant(&mut self, ask: &Ask, actions: &mut Actions) -> Result<Grant, KernelError> {
        let process = self.process_of(ask.task)?;
        let c = Caller {
            task: ask.task,
            core: ask.core,
            process,
        };
        let grant = loop {
            let (why, bound) = match self.try_grant(c, ask)? {
                Ok(grant) => break grant,
                Err(short) => short,
            };
            let short = matches!(why, AllocError::OutOfMemory | AllocError::ColorsExhausted);
            if !bound || !short || ask.order != Order(0) {
                return Err(self.no_frame(c, ask, why));
            }
            let managed = self.process(process).managed;
            if managed.is_some_and(|id| self.widen(id)) {
                continue;
            }
            let stuck = match self.process(process).on_limit {
                OnLimit::Swap if !self.is_paged() => match self.reclaim(c, actions) {
                    Ok(()) => continue,
                    Err(stuck) => Some(stuck),
                },
                _ => None,
            };
            return Err(self.limit_reached(c, stuck));
        };
        self.counters.color_fallbacks += u64::from(grant.fallback);
        self.begin(process, ask, grant.frame);
        Ok(grant)
    }

    /// Records a frame with one user.
    fn begin(&mut self, process: usize, ask: &Ask, frame: Pfn) {
        let program = self.process(process).program;
        let owner = match ask.purpose {
            Purpose::File => Owner::File(program),
            _ => Owner::Program(program),
        };
        self.meta.begin(frame.0 as u32, ask.order.0, owner);
    }

    /// As [`grant`](Self::grant), but the frame is known.
    pub(super) fn grant_kept(&mut self, ask: &Ask, frame: u32) -> Result<Grant, KernelError> {
        let process = self.process_of(ask.task)?;
        let frame = Pfn(frame.into());
        let allowed = self.allowed(self.process(process));
        let set = allowed.and_then(|allowed| allowed.set().cloned());
        let fallback = set.is_some_and(|set| !self.is_in(&set, frame.0 as u32));
        self.counters.color_fallbacks += u64::from(fallback);
        self.begin(process, ask, frame);
        Ok(Grant {
            frame,
            order: ask.order,
            fallback,
        })
    }

    /// Asks once; without a frame, tells why, and whether colours bind the request. The
    /// frame is not recorded yet.
    pub(super) fn try_grant(
        &mut self,
        c: Caller,
        ask: &Ask,
    ) -> Result<Result<Grant, (AllocError, bool)>, KernelError> {
        let task = c.task;
        let request = ask.request();
        let (under, turns) = (self.under(c.process), self.turns_of(task));
        let colors = self.colors.as_ref();
        let request = prepared(colors, &request, under, turns).map_err(|why| {
            let call = "a page";
            KernelError::Colors { task, call, why }
        })?;
        let bound = request.allowed.is_some() && request.mode == Mode::Hard;
        let granted = self.frames.alloc(&request);
        if let (Ok(grant), Some(colors)) = (&granted, &self.colors)
            && let Some(Some(t)) = self.tasks.get_mut(task.0 as usize)
        {
            t.turns.took(colors.map.color(grant.frame));
        }
        Ok(granted.map_err(|why| (why, bound)))
    }

    fn no_frame(&self, c: Caller, ask: &Ask, why: AllocError) -> KernelError {
        let request = FrameRequest {
            purpose: ask.purpose,
            cause: ask.cause,
            ..kernel_request(ask.order)
        };
        self.out_of_memory(self.who(c), &request, why).into()
    }

    /// The colours that bind a process are used up, and nothing can leave memory.
    fn limit_reached(&self, c: Caller, stuck: Option<Stuck>) -> KernelError {
        let process = self.process(c.process);
        let set = self.allowed(process).and_then(|a| a.set().cloned());
        let set = set.unwrap_or_default();
        ColorLimit {
            task: c.task,
            program: process.program,
            reserved: process.partition.is_some(),
            colors: set.to_string(),
            held: self.holders_of(&set, process.program),
            instead: match stuck {
                None => {
                    "give it more colors or more memory, or let pages leave memory \
                     (on_limit = \"swap\")"
                }
                Some(Stuck::NoVictim) => "no page of them may leave memory",
                Some(Stuck::SwapFull) => "swap space is full",
            },
        }
        .into()
    }

    /// How many frames of these colours each kind of owner has; `program` is the one whose memory is
    /// its own.
    pub fn holders_of(&self, set: &ColorSet, program: u16) -> ColorHolders {
        self.holders(program, |frame| self.is_in(set, frame))
    }

    /// The same of all frames.
    pub fn holders_of_all(&self, program: u16) -> ColorHolders {
        self.holders(program, |_| true)
    }

    fn holders(&self, program: u16, counts: impl Fn(u32) -> bool) -> ColorHolders {
        let mut held = ColorHolders::default();
        for frame in (0..self.total_frames()).filter(|f| counts(*f as u32)) {
            held.frames += 1;
            *match self.meta.owner(Pfn(frame)) {
                Owner::Free => &mut held.free,
                Owner::Kernel => &mut held.kernel,
                Owner::Other => &mut held.aged,
                Owner::Program(p) if p == program => &mut held.own,
                Owner::Program(_) => &mut held.others,
                Owner::File(_) => &mut held.files,
            } += 1;
        }
        held
    }

    /// Where a task's rounds through its colours stand.
    pub(super) fn turns_of(&self, task: TaskId) -> Turns {
        let known = self.tasks.get(task.0 as usize).and_then(Option::as_ref);
        known.map_or(Turns::of(task), |t| t.turns)
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
            held: None,
        }
    }
}
