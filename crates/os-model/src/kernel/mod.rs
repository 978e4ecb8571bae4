//! The kernel: processes, tasks, frames and what calls on them cost.
//!
//! [`Kernel`] is the facade that a host drives. It owns the frame allocator,
//! the address spaces and the books; it has no clock. Whatever costs time is
//! handed back as [`Actions`], in the order in which the core that caused it
//! performs them.
//!
//! * [`Kernel::translate`] and [`Kernel::fault`]: references become physical;
//! * [`Kernel::syscall`], [`Kernel::exit`], [`Kernel::tick`],
//!   [`Kernel::switch`]: what programs ask for and what time brings;
//! * [`Kernel::migrate`], [`Kernel::scan_accessed`], [`Kernel::owner_of`]: what
//!   policies need.
//!
//! * [`Kernel::reserve`], [`Kernel::resize`], [`Kernel::attach`],
//!   [`Kernel::recolor`]: colours that processes have for themselves.
//!
//! * [`Kernel::manage`], [`Kernel::monitor`], [`Kernel::sample`]: programs that HVR watches,
//!   classifies and gives colours to.
//!
//! * [`Kernel::page_with`], [`Kernel::advance`], [`Kernel::resume`]: files, swap space and
//!   replacement, over one memory.
//!
//! Without paging there is no disk (a file page that is not in memory appears, counted,
//! at no cost beyond its fault; a swapped page takes a fixed time), and no reclaim for
//! any reason but used-up colours (other memory that runs out is an error). Waiting is
//! not here ([`sched`](crate::sched)).

mod action;
mod boot;
mod charge;
mod colors;
mod config;
mod error;
mod fault;
mod fork;
mod frame_meta;
mod grant;
mod hvr;
mod mapping;
mod migrate;
mod objects;
mod paging;
mod recolor;
mod swap;
mod syscall;
mod translate;
mod usage;
mod validate;

use piebald_policy::{contract::FrameCounters, hvr::ProgramId, rainbow::PartitionId};
use piebald_units::{
    Asid, Bytes, CoreId, FileId, MAX_CORES, Order, Pfn, TaskId, Vpn, memory::PhysRef, op::MemRef,
};
use serde::{Deserialize, Serialize};

pub use action::{Action, Actions, DIRECT_MAP, direct_address};
pub use boot::KernelSpace;
pub use colors::Partitions;
pub use config::{ColorConfig, Costs, KernelConfig, OnLimit, Path, PathCost, SwapConfig, Thp};
pub use error::{ColorHolders, ColorLimit, KernelBroken, KernelError, OutOfMemory};
pub use fault::{FaultKind, FaultWork};
pub use frame_meta::{MAX_PROGRAM, Owner};
pub use hvr::{HvrEvent, HvrManager, Known, Observation, Observed, SysMonConfig, What};
pub use migrate::{Move, Moved};
pub use paging::{PagingConfig, PagingState, ZoneState};
pub use recolor::Recolored;
pub use syscall::{ReadPart, SysWork};
pub use translate::{Fault, Translated};
pub use usage::{PageReads, Usage};

use crate::{
    frames::{Age, AgeError, Aged, OwnedFrames, age},
    space::{AddressSpace, Entry, Object, Scan},
};
use boot::BootMemory;
use colors::{Colors, Turns};
use frame_meta::FrameMeta;
use grant::Who;
use objects::Objects;
use paging::Pool;
use swap::Swap;
use translate::TranslationCache;

/// Frames of a task's kernel stack and task struct: 16 KiB, single frames as
/// with `VMAP_STACK` (4.9 and later; 2.6.30 takes one block of 8 KiB).
const TASK_FRAMES: usize = 4;

/// A page that no process has.
const NO_PAGE: Vpn = Vpn(u64::MAX);

/// Events that the kernel counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Faults resolved, of every kind.
    pub faults: u64,
    /// Anonymous pages that came into being (a 2 MiB page counts once).
    pub anon_faults: u64,
    /// Loads from untouched anonymous memory that got the zero page.
    pub zero_faults: u64,
    /// Faults that mapped a page of a file or shared object.
    pub file_faults: u64,
    /// Pages copied because a store hit a shared frame.
    pub cow_copies: u64,
    /// Copy-on-write pages that had one user left and were kept.
    pub cow_reuses: u64,
    /// 2 MiB pages mapped.
    pub huge_faults: u64,
    /// Faults that could have had a 2 MiB page, but no block was free.
    pub huge_fallbacks: u64,
    /// 2 MiB pages split into 4 KiB pages.
    pub huge_splits: u64,
    /// Pages mapped because a reference hit no area.
    pub implicit_pages: u64,
    /// Page-cache pages granted: what a disk would have had to read.
    pub file_fills: u64,
    /// Pages granted outside the program's colours.
    pub color_fallbacks: u64,
    /// Pages moved to another frame.
    pub migrations: u64,
    /// Of these, those that recolouring moved.
    pub recolored: u64,
    /// Pages that recolouring could not move.
    pub recolor_failed: u64,
    /// Pages that moved when they were touched (HVR).
    pub followed: u64,
    /// Pages that were to, and could not.
    pub follow_failed: u64,
    /// Pages written to swap space.
    pub swap_outs: u64,
    /// Pages read back from it.
    pub swap_ins: u64,
    /// Clean pages of files dropped because colours were used up.
    pub file_drops: u64,
    /// System calls.
    pub syscalls: u64,
    /// Processes made by fork.
    pub forks: u64,
}

/// A process: an address space and the tasks that run in it.
#[derive(Clone)]
struct Process {
    space: AddressSpace,
    program: u16,
    tasks: u32,
    /// Whose colours its pages get.
    partition: Option<PartitionId>,
    /// The program that HVR knows it as.
    managed: Option<ProgramId>,
    on_limit: OnLimit,
    /// The pages that faulted last: one reference may need both.
    recent: [Vpn; 2],
}

impl Process {
    fn note_fault(&mut self, vpn: Vpn) {
        if self.recent[1] != vpn {
            self.recent = [self.recent[1], vpn];
        }
    }
}

/// What a process inherits.
#[derive(Clone, Copy, Default)]
struct Under {
    partition: Option<PartitionId>,
    managed: Option<ProgramId>,
    on_limit: OnLimit,
}

#[derive(Clone)]
struct Task {
    process: usize,
    /// Stack and task struct.
    frames: [Pfn; TASK_FRAMES],
    cache: TranslationCache,
    /// Where its rounds through its colours stand.
    turns: Turns,
}

/// The modelled kernel. A clone goes on by itself from the same state: one that
/// was [aged](Kernel::age) costs a copy instead of a history.
#[derive(Clone)]
pub struct Kernel {
    config: KernelConfig,
    frames: Box<dyn OwnedFrames>,
    meta: FrameMeta,
    boot: BootMemory,
    /// By process number; the address space's id is the number plus one.
    processes: Vec<Option<Process>>,
    /// By task id.
    tasks: Vec<Option<Task>>,
    objects: Objects,
    counters: Counters,
    aged: Aged,
    colors: Option<Colors>,
    swap: Swap,
    /// By program number.
    programs: Vec<Usage>,
    /// Pages that come and go, if memory is paged.
    pool: Option<Box<Pool>>,
}

impl Kernel {
    /// Starts a kernel on an allocator and takes the kernel's own memory.
    ///
    /// # Errors
    /// [`KernelError::Config`] names the field; [`KernelError::BootMemory`] if
    /// memory does not even hold the kernel.
    pub fn new(
        config: KernelConfig,
        mut frames: Box<dyn OwnedFrames>,
    ) -> Result<Self, KernelError> {
        check(&config)?;
        let colors = config.colors.as_ref().map(Colors::new).transpose()?;
        let total = frames.total_frames();
        let boot = BootMemory::take(&mut *frames, &config).map_err(|why| {
            let total = Bytes(total << 12);
            KernelError::BootMemory { total, why }
        })?;
        let mut meta = FrameMeta::new(total);
        for (frame, order) in &boot.blocks {
            meta.set_owner(*frame, *order, Owner::Kernel);
        }
        Ok(Self {
            swap: Swap::new(config.swap),
            config,
            frames,
            meta,
            boot,
            processes: Vec::new(),
            tasks: Vec::new(),
            objects: Objects::default(),
            counters: Counters::default(),
            aged: Aged::default(),
            colors,
            programs: Vec::new(),
            pool: None,
        })
    }

    /// Ages free memory; see [`age`]. What the history leaves allocated belongs
    /// to [`Owner::Other`]. Call it before programs start.
    ///
    /// # Errors
    /// Names the field of `config` that cannot be.
    pub fn age(&mut self, config: &Age) -> Result<(), AgeError> {
        let aged = age(&mut *self.frames, config)?;
        for (frame, order) in aged.blocks() {
            self.meta.set_owner(frame, order, Owner::Other);
        }
        self.aged.append(aged);
        Ok(())
    }

    /// Starts a program: a process with one task, an empty address space and no
    /// colours of its own.
    ///
    /// # Errors
    /// Out of memory, or a program number above [`MAX_PROGRAM`].
    pub fn start(&mut self, program: u16) -> Result<TaskId, KernelError> {
        if program > MAX_PROGRAM {
            return Err(KernelError::Config {
                field: "program",
                value: u64::from(program),
                allowed: "0 to 32000",
            });
        }
        // The task that is being made asks for its own memory.
        let task = TaskId(self.tasks.len() as u32);
        let core = CoreId(0);
        let who = Who {
            task,
            core,
            program,
        };
        let process = self.new_process(who, Under::default())?;
        self.new_task(who, process, Turns::of(task))
            .inspect_err(|_| self.end_process(process))
    }

    fn new_process(&mut self, who: Who, under: Under) -> Result<usize, KernelError> {
        let number = self.processes.len();
        let root = self.kernel_frame(who)?;
        self.processes.push(Some(Process {
            space: AddressSpace::new(Asid(number as u32 + 1), root.0 as u32),
            program: who.program,
            tasks: 0,
            partition: under.partition,
            managed: under.managed,
            on_limit: under.on_limit,
            recent: [NO_PAGE; 2],
        }));
        Ok(number)
    }

    /// What a child of a process inherits.
    fn under(&self, process: usize) -> Under {
        let p = self.process(process);
        Under {
            partition: p.partition,
            managed: p.managed,
            on_limit: p.on_limit,
        }
    }

    fn new_task(&mut self, who: Who, process: usize, turns: Turns) -> Result<TaskId, KernelError> {
        let mut frames = [Pfn(0); TASK_FRAMES];
        for i in 0..TASK_FRAMES {
            match self.kernel_frame(who) {
                Ok(f) => frames[i] = f,
                Err(e) => {
                    for f in &frames[..i] {
                        self.free_block(*f, Order(0), who.core);
                    }
                    return Err(e);
                }
            }
        }
        let id = TaskId(self.tasks.len() as u32);
        if let Err(e) = self.join(process, id) {
            for f in frames {
                self.free_block(f, Order(0), who.core);
            }
            return Err(e);
        }
        self.process_mut(process).tasks += 1;
        self.tasks.push(Some(Task {
            process,
            frames,
            cache: TranslationCache::new(),
            turns,
        }));
        Ok(id)
    }

    /// Translates `refs` in order and appends to `out`, setting access bits, up
    /// to the first reference that needs a fault. A reference that crosses a
    /// page's end becomes two: the second has gap 0, and dependences are
    /// renumbered to count both.
    ///
    /// # Errors
    /// [`KernelError::NoSuchTask`].
    pub fn translate(
        &mut self,
        task: TaskId,
        refs: &[MemRef],
        out: &mut Vec<PhysRef>,
    ) -> Result<Translated, KernelError> {
        let Some(Some(t)) = self.tasks.get_mut(task.0 as usize) else {
            return Err(KernelError::NoSuchTask(task));
        };
        let Some(Some(p)) = self.processes.get_mut(t.process) else {
            return Err(KernelError::NoSuchTask(task));
        };
        Ok(t.cache.batch(&mut p.space, refs, out))
    }

    /// The address space of a task, for the hardware walker.
    ///
    /// # Errors
    /// [`KernelError::NoSuchTask`].
    pub fn space(&self, task: TaskId) -> Result<&AddressSpace, KernelError> {
        Ok(&self.process(self.process_of(task)?).space)
    }

    /// The kernel's own address space, for [`Action::Touch`].
    pub fn kernel_space(&self) -> &KernelSpace {
        &self.boot.space
    }

    /// The program that a task belongs to.
    ///
    /// # Errors
    /// [`KernelError::NoSuchTask`].
    pub fn program_of(&self, task: TaskId) -> Result<u16, KernelError> {
        Ok(self.process(self.process_of(task)?).program)
    }

    /// Reads and, with `clear`, clears access bits of a task's address space;
    /// see [`AddressSpace::scan_accessed`]. Hardware TLBs keep their entries:
    /// shoot the space down to see every later touch.
    ///
    /// # Errors
    /// [`KernelError::NoSuchTask`].
    pub fn scan_accessed(
        &mut self,
        task: TaskId,
        pages: core::ops::Range<Vpn>,
        clear: bool,
        seen: impl FnMut(Vpn, Entry),
    ) -> Result<Scan, KernelError> {
        let process = self.process_of(task)?;
        let space = &mut self.process_mut(process).space;
        Ok(space.scan_accessed(pages.start, pages.end, clear, seen))
    }

    /// A timer tick on a core while `task` runs there.
    pub fn tick(&self, core: CoreId, task: Option<TaskId>, actions: &mut Actions) {
        self.charge(Path::Tick, core, task, actions);
    }

    /// A switch of `core` to `to`, of which the host's scheduler decided.
    pub fn switch(&self, core: CoreId, to: Option<TaskId>, actions: &mut Actions) {
        self.charge(Path::Switch, core, to, actions);
    }

    /// The configuration.
    pub const fn config(&self) -> &KernelConfig {
        &self.config
    }

    /// What was counted.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// The allocator's counters.
    pub fn frame_counters(&self) -> FrameCounters {
        self.frames.counters()
    }

    /// Frames that are free.
    pub fn free_frames(&self) -> u64 {
        self.frames.free_frames()
    }

    /// Frames that the machine has.
    pub fn total_frames(&self) -> u64 {
        self.frames.total_frames()
    }

    /// Who holds a frame.
    pub fn owner_of(&self, frame: Pfn) -> Owner {
        self.meta.owner(frame)
    }

    /// The page of zeroes that loads from untouched memory share.
    pub fn zero_frame(&self) -> Pfn {
        Pfn(u64::from(self.boot.zero_frame))
    }

    /// Pages of files and shared objects in memory, if it is not paged.
    pub fn object_pages(&self) -> u64 {
        self.objects.count()
    }

    /// Drops a file's pages from memory; pages that are mapped stay until they
    /// are unmapped.
    pub fn drop_file(&mut self, file: FileId) {
        if self.pool.is_some() {
            return self.drop_paged_file(file);
        }
        self.drop_object(Object::File(file));
    }

    pub(crate) fn drop_object(&mut self, object: Object) {
        if self.pool.is_some() {
            return self.drop_shared(object);
        }
        for frame in self.objects.remove(object) {
            self.put_frame(frame, CoreId(0));
        }
    }

    fn process_of(&self, task: TaskId) -> Result<usize, KernelError> {
        let t = self.tasks.get(task.0 as usize).and_then(Option::as_ref);
        t.map(|t| t.process).ok_or(KernelError::NoSuchTask(task))
    }

    fn process(&self, number: usize) -> &Process {
        self.processes[number]
            .as_ref()
            .expect("a live task has a process")
    }

    fn process_mut(&mut self, number: usize) -> &mut Process {
        self.processes[number]
            .as_mut()
            .expect("a live task has a process")
    }
}

fn check(config: &KernelConfig) -> Result<(), KernelError> {
    let bad = |field, value: u64, allowed| KernelError::Config {
        field,
        value,
        allowed,
    };
    if config.cores == 0 || usize::from(config.cores) > MAX_CORES {
        return Err(bad("cores", u64::from(config.cores), "1 to 64"));
    }
    if config.image_pages == 0 {
        return Err(bad("image_pages", 0, "at least 1"));
    }
    if !(8..=64).contains(&config.struct_page_bytes) {
        let v = u64::from(config.struct_page_bytes);
        return Err(bad("struct_page_bytes", v, "8 to 64"));
    }
    if config.tick.0 == 0 {
        return Err(bad("tick", 0, "at least 1 ps"));
    }
    swap::check(&config.swap)
}
