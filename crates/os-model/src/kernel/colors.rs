//! Partitions of colours: the system calls that reserve and change them, and what
//! they allow each request. All decisions are `piebald_policy::rainbow`'s.

use std::collections::HashMap;

use piebald_policy::{
    color_map::ColorMap,
    contract::{Asker, Cause, FrameRequest, Mode, Purpose},
    hvr,
    rainbow::{
        self, Allowed, Ask, JoinError, MAX_PARTITIONS, Owner as Whose, Partition, PartitionId,
        Refusal, Registry, Reservation, Resized, Turn,
    },
};
use piebald_units::{Color, ColorAsk, ColorSet, CoreId, Order, Pfn, TaskId};

use super::{
    Actions, ColorConfig, Kernel, KernelError, OnLimit, Path, Process, Under, boot::kernel_request,
    hvr::Vertical, mapping::Caller, recolor::Recoloring,
};
use crate::space::Entry;

/// The registry of partitions, as this host keeps it.
pub type Partitions = Registry<Vec<Partition>>;

/// What the kernel keeps for colours.
#[derive(Clone)]
pub(crate) struct Colors {
    pub map: ColorMap,
    pub registry: Partitions,
    /// Where the round of the kernel's own requests stands.
    pub turn: Turn,
    /// Recolouring that has begun and is not through.
    pub recoloring: HashMap<Whose, Recoloring>,
    /// Programs whose colours follow from what they are.
    pub vertical: Option<Box<Vertical>>,
}

/// Where a task's rounds through its colours stand: among its partition's, and among those
/// that HVR gives its program, some of which are drawn.
#[derive(Clone, Copy)]
pub(crate) struct Turns {
    own: Turn,
    lot: hvr::Turn,
    draw: u64,
}

impl Turns {
    /// Before the first page. Tasks draw different numbers.
    pub fn of(task: TaskId) -> Self {
        Self {
            own: Turn::START,
            lot: hvr::Turn::START,
            // Far apart, so that no task draws what another drew before.
            draw: u64::from(task.0) << 32,
        }
    }

    /// Notes the colour that was granted.
    pub fn took(&mut self, color: Color) {
        self.own.took(color);
        self.lot.took(color);
        self.draw = self.draw.wrapping_add(1);
    }

    /// The next random number (SplitMix64).
    const fn random(self) -> u64 {
        let z = self.draw.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

impl Colors {
    pub(super) fn new(config: &ColorConfig) -> Result<Self, KernelError> {
        let colors = config.map.colors();
        let slots = vec![Partition::EMPTY; (colors as usize).min(MAX_PARTITIONS)];
        let registry = Registry::new(slots, colors, config.rainbow);
        Ok(Self {
            map: config.map.clone(),
            registry: registry.map_err(KernelError::Rainbow)?,
            turn: Turn::START,
            recoloring: HashMap::new(),
            vertical: match config.hvr {
                Some(hvr) => Some(Box::new(Vertical::new(&config.map, hvr)?)),
                None => None,
            },
        })
    }
}

/// A request with the colours that a process may have.
pub(super) fn prepared<'a>(
    colors: Option<&'a Colors>,
    request: &FrameRequest<'a>,
    under: Under,
    turns: Turns,
) -> Result<FrameRequest<'a>, Refusal> {
    let Some(colors) = colors else {
        return Ok(*request);
    };
    if let (Some(id), Some(vertical)) = (under.managed, &colors.vertical) {
        let made = vertical
            .manager
            .prepare(request, id, turns.lot, turns.random());
        // A process that is managed has a program.
        return Ok(made.unwrap_or(*request));
    }
    let request = colors
        .registry
        .prepare(request, under.partition, turns.own)?;
    let mode = match under.on_limit {
        OnLimit::Borrow => Mode::Hint,
        _ => request.mode,
    };
    Ok(FrameRequest { mode, ..request })
}

/// A request for a page of a process, for the sake of its colours.
fn page_request() -> FrameRequest<'static> {
    FrameRequest {
        purpose: Purpose::Anon,
        asker: Asker::Task(TaskId(0)),
        cause: Cause::Fault,
        ..kernel_request(Order(0))
    }
}

/// Whose pages a process's are, as recolouring and swapping see them.
pub(super) const fn whose(partition: Option<PartitionId>) -> Whose {
    match partition {
        Some(id) => Whose::Partition(id),
        None => Whose::Unreserved,
    }
}

impl Kernel {
    /// The partitions, if the kernel has colours.
    pub fn partitions(&self) -> Option<&Partitions> {
        self.colors.as_ref().map(|c| &c.registry)
    }

    /// What a colour is, if the kernel has colours.
    pub fn color_map(&self) -> Option<&ColorMap> {
        self.colors.as_ref().map(|c| &c.map)
    }

    /// The partition that a task's process is in.
    ///
    /// # Errors
    /// [`KernelError::NoSuchTask`].
    pub fn partition_of(&self, task: TaskId) -> Result<Option<PartitionId>, KernelError> {
        Ok(self.process(self.process_of(task)?).partition)
    }

    /// The colours that pages of a task get: its own, or those that nobody has;
    /// `None` = every colour.
    ///
    /// # Errors
    /// [`KernelError::NoSuchTask`].
    pub fn colors_of(&self, task: TaskId) -> Result<Option<&ColorSet>, KernelError> {
        let process = self.process(self.process_of(task)?);
        Ok(match self.lot_of(process) {
            Some(set) => Some(set),
            None => self.allowed(process).and_then(Allowed::set),
        })
    }

    /// Sets what happens when the colours that bind a task's process are used up.
    /// It is no system call: a program's launcher or administrator decides it.
    ///
    /// # Errors
    /// [`KernelError::NoSuchTask`].
    pub fn set_on_limit(&mut self, task: TaskId, on_limit: OnLimit) -> Result<(), KernelError> {
        let process = self.process_of(task)?;
        self.process_mut(process).on_limit = on_limit;
        Ok(())
    }

    /// Reserves colours for a task's process, all its threads included
    /// (`sys_use_cache_colors` of the Rainbow thesis, section 5.4.2). Pages that it
    /// has stay where they are until [`Kernel::recolor`] moves them.
    ///
    /// # Errors
    /// No such task, a kernel without colours, or the registry's refusal.
    pub fn reserve(
        &mut self,
        task: TaskId,
        core: CoreId,
        want: &ColorAsk,
        actions: &mut Actions,
    ) -> Result<PartitionId, KernelError> {
        let c = self.color_call(task, core, "reserve", actions)?;
        self.check_unmanaged(c, "reserve")?;
        let (current, tasks) = {
            let p = self.process(c.process);
            (p.partition, p.tasks)
        };
        let colors = self.colors_mut(task, "reserve")?;
        let made = colors.registry.reserve(&Reservation {
            current,
            ask: Ask::from(want),
            name: None,
            tasks,
        });
        let id = made.map_err(|why| refused(task, "reserve", why))?;
        self.process_mut(c.process).partition = Some(id);
        Ok(id)
    }

    /// Gives a task's partition other colours. Pages outside them stay where they
    /// are until [`Kernel::recolor`] moves them.
    ///
    /// # Errors
    /// As [`Kernel::reserve`], or the task is in no partition.
    pub fn resize(
        &mut self,
        task: TaskId,
        core: CoreId,
        want: &ColorAsk,
        actions: &mut Actions,
    ) -> Result<Resized, KernelError> {
        let c = self.color_call(task, core, "resize", actions)?;
        let partition = self.process(c.process).partition;
        let colors = self.colors_mut(task, "resize")?;
        let Some(id) = partition else {
            return Err(KernelError::NoPartition {
                task,
                call: "resize",
            });
        };
        let resized = colors.registry.resize(id, &Ask::from(want));
        resized.map_err(|why| refused(task, "resize", why))
    }

    /// Lets a task's process, all its threads included, into a partition.
    ///
    /// # Errors
    /// As [`Kernel::reserve`]; [`Refusal::AlreadyColored`] if it is in one.
    pub fn attach(
        &mut self,
        task: TaskId,
        core: CoreId,
        to: PartitionId,
        actions: &mut Actions,
    ) -> Result<(), KernelError> {
        let c = self.color_call(task, core, "attach", actions)?;
        self.check_unmanaged(c, "attach")?;
        let (current, tasks) = {
            let p = self.process(c.process);
            (p.partition, p.tasks)
        };
        let colors = self.colors_mut(task, "attach")?;
        if let Some(id) = current {
            return Err(refused(task, "attach", Refusal::AlreadyColored(id)));
        }
        for done in 0..tasks {
            if let Err(why) = colors.registry.attach(to) {
                for _ in 0..done {
                    let left = colors.registry.release(to);
                    debug_assert!(left.is_ok(), "what was attached can leave");
                }
                return Err(KernelError::Join { task, why });
            }
        }
        self.process_mut(c.process).partition = Some(to);
        Ok(())
    }

    /// A system call about colours begins: what it costs by itself.
    fn color_call(
        &mut self,
        task: TaskId,
        core: CoreId,
        call: &'static str,
        actions: &mut Actions,
    ) -> Result<Caller, KernelError> {
        let process = self.process_of(task)?;
        self.counters.syscalls += 1;
        self.charge(Path::Syscall, core, Some(task), actions);
        self.colors_mut(task, call)?;
        self.charge(Path::Colors, core, Some(task), actions);
        Ok(Caller {
            task,
            core,
            process,
        })
    }

    pub(super) fn colors_mut(
        &mut self,
        task: TaskId,
        call: &'static str,
    ) -> Result<&mut Colors, KernelError> {
        self.colors
            .as_mut()
            .ok_or(KernelError::NoColors { task, call })
    }

    /// One task more in a process's partition.
    pub(super) fn join(&mut self, process: usize, task: TaskId) -> Result<(), KernelError> {
        let partition = self.process(process).partition;
        if let (Some(id), Some(colors)) = (partition, self.colors.as_mut()) {
            let joined = colors.registry.attach(id);
            joined.map_err(|why: JoinError| KernelError::Join { task, why })?;
        }
        Ok(())
    }

    /// One task less; the last one frees the colours.
    pub(super) fn leave_partition(&mut self, partition: Option<PartitionId>) {
        let (Some(id), Some(colors)) = (partition, self.colors.as_mut()) else {
            return;
        };
        match colors.registry.release(id) {
            Ok(rainbow::Left::Tasks(_)) => {}
            Ok(rainbow::Left::Freed(_)) => {
                colors.recoloring.remove(&Whose::Partition(id));
                self.swap.forget(Whose::Partition(id));
            }
            Err(_) => debug_assert!(false, "a partition with a task exists"),
        }
    }

    /// What a process's pages may have; `None` without colours.
    pub(super) fn allowed(&self, process: &Process) -> Option<Allowed<'_>> {
        let colors = self.colors.as_ref()?;
        let page = page_request();
        colors.registry.allowed(&page, process.partition).ok()
    }

    /// Do colours bind what a process asks for?
    pub(super) fn is_bound(&self, process: usize) -> bool {
        let under = self.under(process);
        self.colors.as_ref().is_some_and(|colors| {
            let page = page_request();
            let made = prepared(Some(colors), &page, under, Turns::of(TaskId(0)));
            made.is_ok_and(|r| r.allowed.is_some() && r.mode == Mode::Hard)
        })
    }

    /// 2 MiB pages span colours: only a process that may have every colour, and
    /// owns none, gets them.
    pub(super) fn may_span_colors(&self, process: &Process) -> bool {
        let Some(allowed) = self.allowed(process) else {
            return true;
        };
        let all = self.colors.as_ref().map_or(0, |c| c.map.colors());
        let has_own = process.partition.is_some() || process.managed.is_some();
        !has_own && allowed.set().is_none_or(|set| set.len() == all)
    }

    /// Numbers of the processes whose pages belong together: those of a partition,
    /// or of none.
    pub(super) fn members(&self, of: Whose) -> Vec<usize> {
        let processes = self.processes.iter().enumerate();
        let mine = |p: &Process| whose(p.partition) == of;
        processes
            .filter(|(_, p)| p.as_ref().is_some_and(mine))
            .map(|(number, _)| number)
            .collect()
    }

    /// Distinct frames that processes have mapped, page by page.
    pub(super) fn frames_of(&self, processes: &[usize]) -> Vec<u32> {
        let mut frames = Vec::new();
        for number in processes {
            let tables = &self.process(*number).space.tables;
            let mut at = piebald_units::Vpn(0);
            while let Some((vpn, e, level)) = tables.next(at) {
                if !e.has(Entry::ZERO) {
                    frames.push(crate::space::frame_in(e, level, vpn));
                }
                at = piebald_units::Vpn(vpn.0 + 1);
            }
        }
        frames.sort_unstable();
        frames.dedup();
        frames
    }

    /// Frames of each colour that a program's processes have mapped, shared ones
    /// once; empty without colours. Walks all their tables.
    pub fn pages_by_color(&self, program: u16) -> Vec<u32> {
        let Some(colors) = &self.colors else {
            return Vec::new();
        };
        let processes = self.processes.iter().enumerate();
        let mine = |p: &Option<Process>| p.as_ref().is_some_and(|p| p.program == program);
        let mine: Vec<usize> = processes
            .filter(|(_, p)| mine(p))
            .map(|(number, _)| number)
            .collect();
        let mut counts = vec![0; colors.map.colors() as usize];
        for frame in self.frames_of(&mine) {
            let color = colors.map.color(Pfn(u64::from(frame)));
            counts[usize::from(color.0)] += 1;
        }
        counts
    }
}

const fn refused(task: TaskId, call: &'static str, why: Refusal) -> KernelError {
    KernelError::Colors { task, call, why }
}
