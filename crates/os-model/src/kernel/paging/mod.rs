//! One memory for files and programs: the page cache, anonymous memory and page
//! tables over one frame allocator, one replacement policy and one disk.
//!
//! [`Kernel::page_with`] puts a [`Paging`] under the kernel. From then on
//!
//! * a page of a file, of shared memory or of a process's own lies in a frame only as
//!   long as the file side keeps it: it is granted when the page comes, and free when
//!   it leaves;
//! * a page that is missing is read from the disk: [`Kernel::fault`] answers
//!   [`FaultKind::Blocked`], [`Kernel::syscall`] and [`Kernel::resume`] answer
//!   [`SysWork::Blocked`], and the task waits until [`Kernel::advance`] names it;
//! * access bits reach the replacement policy when it looks for victims.
//!
//! Vocabulary. An anonymous page is known by a number, its *id*, because several
//! processes can share it after a fork: a process has it either mapped or noted as
//! `swapped` (not mapped; in memory or on disk). A *hold* keeps a page in memory, and
//! its frame from being given away, while a task is between getting the page and
//! mapping or copying it.
//!
//! The kernel's own frames (page tables, task data) come from the same allocator. The
//! pool of pages leaves a [reserve](PagingConfig::reserve) for them; when they have eaten
//! into it, pages leave until it is whole before another one comes.
//!
//! With [`Kernel::color_files`], SRM-buffer's coloured zone lies between the order of
//! replacement and free memory, and chooses the frame of every page.
//!
//! Deviations from Linux: only one pool, without zones; a mapped page that is written
//! to the disk is unmapped, not write-protected (one fault more if it is used again);
//! 2 MiB pages are off; a file that a program reads or maps beyond its known end grows.

mod ground;
mod missing;
mod task;
mod transfer;
mod validate;
mod zone;

use serde::{Deserialize, Serialize};
use std::collections::HashMap;

use piebald_policy::contract::replacement::PageRef;
use piebald_units::{CoreId, FileId, Picos, TaskId, Vpn};

pub use self::zone::ZoneState;
use self::{ground::Ground, task::TaskPages, zone::Zone};
use super::{Actions, FaultKind, Kernel, KernelError, SysWork, Thp, fault::Site, mapping::Caller};
use crate::{
    file::{Content, FileError, Paging, Removal, Request, Stats, Woken},
    io::IoStats,
    space::{Entry, ObjectPage},
};

/// The space of [`Request::Anon`] in which all ids are.
const SPACE: u32 = 0;

/// Pages that leave at once when the kernel finds no frame for itself: Linux's
/// `SWAP_CLUSTER_MAX`.
const SHRINK_BATCH: u32 = 32;

/// What a kernel with paging can be set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagingConfig {
    /// Free frames that pages leave to the kernel itself, at least 16.
    pub reserve: u32,
}

impl PagingConfig {
    /// Linux's `min` watermark for so many frames: the square root of 16 times the
    /// memory in KiB, 128 to 65536 KiB.
    pub fn for_frames(frames: u64) -> Self {
        let kib = frames.saturating_mul(64).isqrt().clamp(128, 65_536);
        Self {
            reserve: (kib / 4) as u32,
        }
    }
}

/// The pages that have frames, and who maps them.
#[derive(Clone)]
pub(crate) struct Pool {
    /// Out while it is being called.
    paging: Handle,
    now: Picos,
    reserve: u64,
    /// By number of the page.
    pages: Vec<Slot>,
    /// The page that lies in a frame, by frame.
    by_frame: Vec<Option<PageRef>>,
    /// Frames between the pages in use and free memory, if files are coloured. Out while
    /// the kernel is asked for frames.
    zone: Option<Box<Zone>>,
    /// The frame kept for the page that comes next.
    kept: Option<u32>,
    /// Ids of the pages of shared anonymous objects.
    shared: HashMap<ObjectPage, u32>,
    /// By task id.
    tasks: Vec<TaskPages>,
    /// Tasks whose calls ended while another called.
    woken: Vec<Woken>,
    /// Why a page got no frame.
    trouble: Option<KernelError>,
    /// Work done where nobody could be charged with it.
    unpaid: Actions,
}

/// The file side, if it is not being called.
struct Handle(Option<Box<dyn Paging>>);

impl Clone for Handle {
    fn clone(&self) -> Self {
        Self(self.0.as_ref().map(|paging| paging.fork()))
    }
}

/// A page that has a frame, or a number that has none.
#[derive(Clone, Default)]
struct Slot {
    frame: Option<u32>,
    content: Option<Content>,
    /// Processes and where they map it.
    maps: Vec<(usize, Vpn)>,
    holds: u32,
    /// It was read from the disk.
    is_read: bool,
    /// Some process has mapped it since it came.
    was_mapped: bool,
}

/// A page that stays until it is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    page: PageRef,
    pub(super) frame: u32,
}

impl Pool {
    fn slot(&self, page: PageRef) -> Option<&Slot> {
        self.pages.get(page.index())
    }

    fn task(&mut self, task: TaskId) -> &mut TaskPages {
        let at = task.0 as usize;
        if self.tasks.len() <= at {
            self.tasks.resize_with(at + 1, TaskPages::default);
        }
        &mut self.tasks[at]
    }

    fn page_in(&self, frame: u32) -> Option<PageRef> {
        self.by_frame.get(frame as usize).copied().flatten()
    }

    /// The page's slot if it lies in that frame still.
    fn slot_in(&mut self, held: Held) -> Option<&mut Slot> {
        let slot = self.pages.get_mut(held.page.index())?;
        (slot.frame == Some(held.frame)).then_some(slot)
    }

    fn unmapped(&mut self, frame: u32, process: usize, vpn: Vpn) {
        if let Some(page) = self.page_in(frame) {
            let maps = &mut self.pages[page.index()].maps;
            maps.retain(|m| *m != (process, vpn));
        }
    }

    fn mapped(&mut self, frame: u32, process: usize, vpn: Vpn) {
        if let Some(page) = self.page_in(frame) {
            let slot = &mut self.pages[page.index()];
            slot.maps.push((process, vpn));
            slot.was_mapped = true;
        }
    }

    /// The id of the private page in a frame.
    fn id_in(&self, frame: u32) -> Option<u32> {
        match self.slot(self.page_in(frame)?)?.content? {
            Content::Anon { page, .. } => Some(page as u32),
            Content::File { .. } => None,
        }
    }
}

/// What a kernel with paging knows of its pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PagingState {
    /// Pages in memory.
    pub resident: u32,
    /// Most that there can be.
    pub capacity: u32,
    /// Swap slots in use.
    pub swap_used: u32,
    /// What the page cache counted.
    pub stats: Stats,
    /// What the request queue counted.
    pub io: IoStats,
    /// How the coloured zone stands, if there is one.
    pub zone: Option<ZoneState>,
}

impl Kernel {
    /// Puts files, swap space and a replacement policy under the kernel. Before any
    /// program starts.
    ///
    /// # Errors
    /// Programs have started, 2 MiB pages are on, or memory is too small.
    pub fn page_with(
        &mut self,
        paging: Box<dyn Paging>,
        config: PagingConfig,
    ) -> Result<(), KernelError> {
        let bad = |field, value, allowed| {
            Err(KernelError::Config {
                field,
                value,
                allowed,
            })
        };
        if self.config.thp != Thp::Never {
            return bad("thp", 1, "never, if memory is paged");
        }
        if !self.tasks.is_empty() {
            let tasks = self.tasks.len() as u64;
            return bad("tasks", tasks, "0: paging begins before programs do");
        }
        let most = self.free_frames() / 2;
        let reserve = u64::from(config.reserve);
        if !(16..=most.max(16)).contains(&reserve) {
            return bad("reserve", reserve, "16 to half of the free frames");
        }
        self.swap.no_limit();
        self.pool = Some(Box::new(Pool {
            pages: vec![Slot::default(); paging.slots() as usize],
            now: paging.now(),
            paging: Handle(Some(paging)),
            reserve,
            by_frame: Vec::new(),
            zone: None,
            kept: None,
            shared: HashMap::new(),
            tasks: Vec::new(),
            woken: Vec::new(),
            trouble: None,
            unpaid: Actions::new(),
        }));
        Ok(())
    }

    /// What is done next happens at this time. Without paging, time does not matter.
    pub fn at(&mut self, now: Picos) -> &mut Self {
        self.set_hvr_time(now);
        if let Some(pool) = &mut self.pool {
            pool.now = pool.now.max(now);
        }
        self
    }

    /// Is memory paged?
    pub const fn is_paged(&self) -> bool {
        self.pool.is_some()
    }

    /// When something happens without a task: call [`advance`](Self::advance) then.
    pub fn next_event(&self) -> Option<Picos> {
        let pool = self.pool.as_ref()?;
        if !pool.woken.is_empty() {
            return Some(pool.now);
        }
        pool.paging.0.as_ref()?.next_event()
    }

    /// Carries out what happens up to `now`, and names the tasks that may go on: those
    /// that faulted fault again, those in a call are [resumed](Self::resume).
    ///
    /// # Errors
    /// No frame for a page.
    pub fn advance(
        &mut self,
        now: Picos,
        actions: &mut Actions,
    ) -> Result<Vec<Woken>, KernelError> {
        if self.pool.is_none() {
            return Ok(Vec::new());
        }
        self.at(now);
        let woken = self.with_paging(CoreId(0), actions, |paging, ground, now| {
            paging.advance(ground, now)
        })?;
        let mut all = std::mem::take(&mut self.pool_mut().woken);
        all.extend(woken);
        Ok(all)
    }

    /// Tasks that wait for memory try again. Answers whether there are any.
    ///
    /// # Errors
    /// A defect of the kernel: its times are out of order.
    pub fn nudge(&mut self) -> Result<bool, KernelError> {
        if self.pool.is_none() {
            return Ok(false);
        }
        let mut actions = Actions::new();
        self.with_paging(CoreId(0), &mut actions, |paging, _, now| paging.nudge(now))
    }

    /// Makes a file known and at least so many pages long. Without paging, files need
    /// not be known.
    ///
    /// # Errors
    /// It cannot be so long.
    pub fn ensure_file(&mut self, file: FileId, pages: u64) -> Result<(), KernelError> {
        let Some(pool) = &mut self.pool else {
            return Ok(());
        };
        let Some(paging) = pool.paging.0.as_mut() else {
            return Ok(());
        };
        Ok(paging.ensure_file(file, pages)?)
    }

    /// What is known of pages; `None` without paging.
    pub fn paging(&self) -> Option<PagingState> {
        let paging = self.pool.as_ref()?.paging.0.as_ref()?;
        Some(PagingState {
            resident: paging.resident(),
            capacity: paging.capacity(),
            swap_used: paging.swap_used(),
            stats: paging.stats(),
            io: paging.io_stats(),
            zone: self.zone(),
        })
    }

    fn pool_mut(&mut self) -> &mut Pool {
        self.pool.as_mut().expect("memory is paged")
    }

    /// Calls the file side with the kernel's frames lent to it.
    fn with_paging<R>(
        &mut self,
        core: CoreId,
        actions: &mut Actions,
        call: impl FnOnce(&mut dyn Paging, &mut Ground<'_>, Picos) -> Result<R, FileError>,
    ) -> Result<R, KernelError> {
        let pool = self.pool_mut();
        let mut paging = pool.paging.0.take().expect("nobody calls it from within");
        let now = pool.now.max(paging.now());
        pool.now = now;
        actions.append(&mut pool.unpaid);
        let mut ground = Ground {
            kernel: self,
            actions,
            core,
            only: None,
        };
        // A core's clock may be a little ahead of the events.
        let late = match paging.next_event() {
            Some(due) if due < now => paging.advance(&mut ground, now),
            _ => Ok(Vec::new()),
        };
        let result = late.and_then(|woken| {
            ground.kernel.pool_mut().woken.extend(woken);
            call(&mut *paging, &mut ground, now)
        });
        let pool = self.pool_mut();
        pool.paging.0 = Some(paging);
        match pool.trouble.take() {
            Some(trouble) => Err(trouble),
            None => Ok(result?),
        }
    }

    /// The page of a request, held; `None`: the task waits for it, and asks again when
    /// it is woken.
    fn page(
        &mut self,
        c: Caller,
        request: Request,
        actions: &mut Actions,
    ) -> Result<Option<Held>, KernelError> {
        let mine = self.pool_mut().task(c.task);
        let (got, asked) = (mine.got.take(), mine.asked.take());
        if let Some(held) = got {
            if asked == Some(request) && self.pool_mut().slot_in(held).is_some() {
                return Ok(Some(held));
            }
            self.release(held, c.core);
        }
        self.with_paging(c.core, actions, |paging, ground, now| {
            paging.call(ground, c.task, &request, now)
        })
        .map(|step| {
            let mine = self.pool_mut().task(c.task);
            match step {
                crate::file::Step::Ready(_) => mine.got.take(),
                crate::file::Step::Blocked => {
                    mine.asked = Some(request);
                    mine.is_blocked = true;
                    None
                }
            }
        })
    }

    /// Keeps the page in a frame.
    fn hold(&mut self, page: PageRef) -> Option<Held> {
        let slot = self.pool_mut().pages.get_mut(page.index())?;
        let frame = slot.frame?;
        slot.holds += 1;
        self.meta.get(frame);
        Some(Held { page, frame })
    }

    fn release(&mut self, held: Held, core: CoreId) {
        if let Some(slot) = self.pool_mut().slot_in(held) {
            slot.holds -= 1;
        }
        self.put_frame(held.frame, core);
    }

    /// One process less has the anonymous page of an id; without any it is no more.
    pub(super) fn put_id(&mut self, id: u32, core: CoreId, actions: &mut Actions) {
        self.swap.put(id);
        if self.swap.users()[id as usize] > 0 {
            return;
        }
        let what = Removal::Anon(SPACE, id.into());
        let removed = self.with_paging(core, actions, |paging, ground, now| {
            paging.remove(ground, what, now)
        });
        debug_assert!(removed.is_ok(), "a page that exists can be removed");
    }

    /// A process has given up the mapping of a page, whose entry was `entry`.
    pub(super) fn put_mapping(
        &mut self,
        process: usize,
        vpn: Vpn,
        entry: Entry,
        core: CoreId,
        actions: &mut Actions,
    ) {
        if entry.has(Entry::ZERO) {
            return;
        }
        let frame = entry.frame();
        let pool = self.pool_mut();
        pool.unmapped(frame, process, vpn);
        let id = pool.id_in(frame).filter(|_| !entry.has(Entry::CACHED));
        self.put_frame(frame, core);
        if let Some(id) = id {
            self.put_id(id, core, actions);
        }
    }

    /// A page that a process maps elsewhere now.
    pub(super) fn move_mapping(&mut self, process: usize, from: Vpn, to: Vpn, entry: Entry) {
        if let Some(pool) = &mut self.pool {
            pool.unmapped(entry.frame(), process, from);
            pool.mapped(entry.frame(), process, to);
        }
    }

    /// A child maps a page of its parent.
    pub(super) fn share_mapping(&mut self, child: usize, vpn: Vpn, entry: Entry) {
        let Some(pool) = &mut self.pool else { return };
        if entry.has(Entry::ZERO) {
            return;
        }
        pool.mapped(entry.frame(), child, vpn);
        if let Some(id) = pool.id_in(entry.frame()) {
            self.swap.share(id);
        }
    }

    /// The pages of a shared object are no more.
    pub(super) fn drop_shared(&mut self, object: crate::space::Object) {
        let Some(pool) = &mut self.pool else { return };
        let mut gone: Vec<(u64, u32)> = pool
            .shared
            .iter()
            .filter(|(page, _)| page.object == object)
            .map(|(page, id)| (page.index, *id))
            .collect();
        gone.sort_unstable();
        pool.shared.retain(|page, _| page.object != object);
        let mut actions = Actions::new();
        for (_, id) in gone {
            self.put_id(id, CoreId(0), &mut actions);
        }
        self.pool_mut().unpaid.append(&mut actions);
    }

    /// A file is no more.
    pub(super) fn drop_paged_file(&mut self, file: FileId) {
        self.end_file(file);
        let mut actions = Actions::new();
        let what = Removal::File(file);
        // A file that nobody has touched yet is not known.
        let _ = self.with_paging(CoreId(0), &mut actions, |paging, ground, now| {
            paging.remove(ground, what, now)
        });
        self.pool_mut().unpaid.append(&mut actions);
    }

    /// Makes room for the kernel's own data; false if nothing can go.
    pub(super) fn shrink(&mut self, core: CoreId) -> bool {
        let busy = self
            .pool
            .as_ref()
            .is_none_or(|pool| pool.paging.0.is_none());
        if busy {
            return false;
        }
        let mut actions = Actions::new();
        let gone = self.with_paging(core, &mut actions, |paging, ground, now| {
            paging.shrink(ground, SHRINK_BATCH, now)
        });
        self.pool_mut().unpaid.append(&mut actions);
        gone.is_ok_and(|pages| pages > 0)
    }

    /// Did the task wait since it asked last? It is charged for its fault or call once.
    pub(super) fn was_blocked(&mut self, task: TaskId) -> bool {
        self.pool
            .as_mut()
            .is_some_and(|pool| std::mem::take(&mut pool.task(task).is_blocked))
    }

    /// Resolves a fault; `None` if the task waits.
    pub(super) fn resolve_paged(
        &mut self,
        s: Site,
        actions: &mut Actions,
    ) -> Result<Option<FaultKind>, KernelError> {
        // A page of a buffer comes straight here.
        self.follow(s, actions)?;
        let kind = match self.process(s.process).space.tables.lookup(s.vpn) {
            Some((e, _)) if !s.write || e.has(Entry::WRITE) => Some(FaultKind::Spurious),
            Some((e, _)) => self.store_paged(s, e, actions)?,
            None => self.missing_paged(s, actions)?,
        };
        match kind {
            Some(_) => self.settle_task(s.caller(), actions),
            None => self.count_wait(s),
        }
        Ok(kind)
    }

    /// A fault counts once, however often it waits.
    fn count_wait(&mut self, s: Site) {
        let mine = self.pool_mut().task(s.task);
        if mine.waits_at.replace(s.vpn) != Some(s.vpn) {
            self.usage_mut(s.process).major_faults += 1;
        }
    }

    /// Goes on with a call that was [`SysWork::Blocked`] and whose task was woken, or that
    /// has [`SysWork::More`] to do. Without such a call: done.
    ///
    /// # Errors
    /// As for [`syscall`](Self::syscall).
    pub fn resume(
        &mut self,
        task: TaskId,
        core: CoreId,
        actions: &mut Actions,
    ) -> Result<SysWork, KernelError> {
        let process = self.process_of(task)?;
        let c = Caller {
            task,
            core,
            process,
        };
        match self.is_paged() {
            true => self.go_on(c, actions),
            false => Ok(SysWork::Done),
        }
    }

    /// A page has moved to another frame; its one mapping has followed.
    pub(super) fn move_frame(&mut self, from: u32, to: u32, core: CoreId) {
        let Some(pool) = &mut self.pool else { return };
        let Some(page) = pool.page_in(from) else {
            return;
        };
        pool.by_frame[from as usize] = None;
        if pool.by_frame.len() <= to as usize {
            pool.by_frame.resize(to as usize + 1, None);
        }
        pool.by_frame[to as usize] = Some(page);
        pool.pages[page.index()].frame = Some(to);
        if let Some(zone) = &mut pool.zone {
            zone.moved(from, to);
        }
        self.meta.get(to);
        self.put_frame(from, core);
    }
}
