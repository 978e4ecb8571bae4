//! The host of a replacement policy and a disk: calls, events, counters.

mod anon;
mod call;
mod events;
mod flush;
mod load;
mod request;
mod validate;
mod zone;

use std::{cmp::Reverse, collections::BinaryHeap, ops::Range};

use piebald_policy::contract::replacement::{PageRef, Replacement};
use piebald_units::{FileId, Picos, TaskId, block::BlockPort};

use self::call::{Call, Kind};
use super::{
    cache::Cache,
    config::FileConfig,
    dirty::Dirty,
    error::FileError,
    key::Key,
    layout::{Extent, FileIndex, FileTable, LayoutError, MAX_FILE_PAGES, MAX_FILES},
    memory::{Memory, Unbound},
    readahead::Stream,
    span::Span,
    stats::Stats,
    swap::SwapMap,
    table::FastMap,
};
use crate::io::{Done, IoStats, Queue, RunLengths};

pub use request::{Removal, Request};

/// How a call went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Step {
    /// It is done, and the task may go on at that time.
    Ready(Picos),
    /// It waits; [`FileHost::advance`] will name the task.
    Blocked,
}

/// A call that was blocked is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Woken {
    /// Whose.
    pub task: TaskId,
    /// When the task may go on.
    pub at: Picos,
}

/// A task as the host knows it.
#[derive(Clone, Debug)]
struct Task {
    id: TaskId,
    call: Option<Call>,
    blocked: Picos,
}

/// Page cache, readahead, write-back, swap and block I/O over one disk.
///
/// See the [module](super) for how to drive it.
#[derive(Clone, Debug)]
pub struct FileHost<P, D> {
    config: FileConfig,
    cache: Cache<P>,
    files: FileTable,
    /// Readahead by file, then by task: an open file per pair.
    streams: Vec<Vec<(u32, Stream)>>,
    queue: Queue<D, PageRef>,
    dirty: Dirty,
    swap: Option<SwapMap>,
    tasks: Vec<Task>,
    task_numbers: FastMap<TaskId, u32>,
    /// Tasks that wait for a page, in the order in which they came.
    page_waiters: FastMap<u32, Vec<u32>>,
    memory_waiters: Vec<u32>,
    throttled: Vec<u32>,
    /// Calls that go on by themselves: time, order, task.
    going_on: BinaryHeap<Reverse<(Picos, u64, u32)>>,
    sequence: u64,
    /// When write-back looks at ages next.
    wake: Option<Picos>,
    clock: Picos,
    stats: Stats,
    done: Vec<Done<PageRef>>,
    run: Vec<PageRef>,
}

impl<P: Replacement, D: BlockPort> FileHost<P, D> {
    /// An empty cache over the files of a table. `policy` sets the size of memory
    /// ([`Replacement::capacity`]).
    ///
    /// # Errors
    /// A field of the configuration is out of range.
    pub fn new(
        config: FileConfig,
        files: FileTable,
        policy: P,
        disk: D,
    ) -> Result<Self, FileError> {
        config.check()?;
        let io = config.io.clone();
        Ok(Self {
            cache: Cache::new(policy, config.reclaim_batch),
            files,
            streams: Vec::new(),
            queue: Queue::new(io, disk).map_err(super::config::FileConfigError::from)?,
            dirty: Dirty::default(),
            swap: config.swap.map(SwapMap::new),
            tasks: Vec::new(),
            task_numbers: FastMap::default(),
            page_waiters: FastMap::default(),
            memory_waiters: Vec::new(),
            throttled: Vec::new(),
            going_on: BinaryHeap::new(),
            sequence: 0,
            wake: None,
            clock: Picos(0),
            stats: Stats::default(),
            done: Vec::new(),
            run: Vec::new(),
            config,
        })
    }

    /// Adds a file of so many pages, where the layout puts it.
    ///
    /// # Errors
    /// [`LayoutError`].
    pub fn add_file(&mut self, file: FileId, pages: u64) -> Result<FileIndex, LayoutError> {
        self.files.add(file, pages)
    }

    /// Adds a file with known extents.
    ///
    /// # Errors
    /// [`LayoutError`].
    pub fn add_extents(&mut self, file: FileId, at: &[Extent]) -> Result<FileIndex, LayoutError> {
        self.files.add_extents(file, at)
    }

    /// Reads a span of a file, cut off at its end.
    ///
    /// # Errors
    /// The file is not known, the task waits in another call, or an event is due
    /// before `now`.
    pub fn read(
        &mut self,
        task: TaskId,
        file: FileId,
        span: Span,
        now: Picos,
    ) -> Result<Step, FileError> {
        let index = self.known(file)?;
        let end = span.end_page().min(self.files.pages(index));
        let call = Call::new(Kind::Read, index.0, span.first_page(), end, span);
        self.start(&mut Unbound, task, call, now)
    }

    /// Writes a span of a file, which grows if the span ends behind it. Pages that
    /// are not overwritten as a whole are read first.
    ///
    /// # Errors
    /// As for [`read`](Self::read), and if the file cannot grow.
    pub fn write(
        &mut self,
        task: TaskId,
        file: FileId,
        span: Span,
        now: Picos,
    ) -> Result<Step, FileError> {
        let index = self.known(file)?;
        self.check_call(task, now)?;
        let old_pages = self.files.pages(index);
        self.files.grow(index, span.end_page())?;
        let kind = Kind::Write { old_pages };
        let call = Call::new(kind, index.0, span.first_page(), span.end_page(), span);
        self.start(&mut Unbound, task, call, now)
    }

    /// Touches a page of a file through a mapping. Behind the end of the file
    /// nothing happens.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn touch_mapped(
        &mut self,
        task: TaskId,
        file: FileId,
        page: u64,
        write: bool,
        now: Picos,
    ) -> Result<Step, FileError> {
        let index = self.known(file)?;
        let end = page.saturating_add(1).min(self.files.pages(index));
        let call = Call::new(
            Kind::Mapped { write },
            index.0,
            page,
            end,
            Span::pages(page, 1),
        );
        self.start(&mut Unbound, task, call, now)
    }

    /// Touches a page of a task's own memory.
    ///
    /// # Errors
    /// The page is beyond 2^40, the task waits in another call, or an event is due
    /// before `now`.
    pub fn touch_anon(
        &mut self,
        task: TaskId,
        page: u64,
        write: bool,
        now: Picos,
    ) -> Result<Step, FileError> {
        if page >= MAX_FILE_PAGES {
            return Err(FileError::PageRange(page));
        }
        let space = self.task_number(task)?;
        let span = Span::pages(page, 1);
        let call = Call::new(Kind::Anon { write }, space, page, page + 1, span);
        self.start(&mut Unbound, task, call, now)
    }

    /// Deletes a file: its pages leave memory unwritten. Calls that wait for them
    /// end as at the end of the file.
    ///
    /// # Errors
    /// The file is not known, or an event is due before `now`.
    pub fn delete(&mut self, file: FileId, now: Picos) -> Result<(), FileError> {
        self.check_time(now)?;
        self.remove(&mut Unbound, file, now)
    }

    /// Cuts a file off: pages from `pages` on leave memory unwritten. Calls that wait
    /// for them end as at the end of the file.
    ///
    /// # Errors
    /// The file is not known, or an event is due before `now`.
    pub fn truncate(&mut self, file: FileId, pages: u64, now: Picos) -> Result<(), FileError> {
        self.check_time(now)?;
        self.cut(&mut Unbound, file, pages, now)
    }

    /// What a file holds from page `from` on is gone: those pages leave memory
    /// unwritten and are read again if they are used again. The file keeps its
    /// length and its place. For traces, whose files are laid out beforehand at their
    /// longest.
    ///
    /// # Errors
    /// The file is not known, or an event is due before `now`.
    pub fn discard(&mut self, file: FileId, from: u64, now: Picos) -> Result<(), FileError> {
        self.check_time(now)?;
        let index = self.known(file)?;
        self.drop_file_pages(&mut Unbound, index, from, now);
        if from == 0
            && let Some(streams) = self.streams.get_mut(index.0 as usize)
        {
            streams.clear();
        }
        Ok(())
    }

    fn remove<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        file: FileId,
        now: Picos,
    ) -> Result<(), FileError> {
        let index = self.known(file)?;
        self.drop_file_pages(mem, index, 0, now);
        self.files.remove(file)?;
        if let Some(streams) = self.streams.get_mut(index.0 as usize) {
            streams.clear();
        }
        Ok(())
    }

    fn cut<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        file: FileId,
        pages: u64,
        now: Picos,
    ) -> Result<(), FileError> {
        let index = self.known(file)?;
        self.drop_file_pages(mem, index, pages, now);
        self.files.cut(index, pages);
        Ok(())
    }

    fn drop_file_pages<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        file: FileIndex,
        from: u64,
        now: Picos,
    ) {
        let end = self.files.pages(file);
        let own = |k: Key| !k.is_anon() && k.owner() == file.0 && k.page() >= from;
        let pages = self.keys(from..end, |page| Key::file(file, page), own);
        self.drop_pages(mem, pages, now);
    }

    /// A task ends: its memory and its swap slots are free.
    ///
    /// # Errors
    /// The task waits in a call, or an event is due before `now`.
    pub fn exit(&mut self, task: TaskId, now: Picos) -> Result<(), FileError> {
        self.check_call(task, now)?;
        let space = self.task_number(task)?;
        let own = |key: Key| key.is_anon() && key.owner() == space;
        let pages = self.keys(0..u64::MAX, |page| Key::anon(space, page), own);
        self.drop_pages(&mut Unbound, pages, now);
        self.release_swap(own);
        Ok(())
    }

    /// A task closes a file: readahead forgets what it knew.
    pub fn close(&mut self, task: TaskId, file: FileId) {
        let (Some(index), Some(&task)) = (self.files.index(file), self.task_numbers.get(&task))
        else {
            return;
        };
        if let Some(streams) = self.streams.get_mut(index.0 as usize) {
            streams.retain(|(of, _)| *of != task);
        }
    }

    /// Names of pages: all if there are few, else those of pages in memory.
    fn keys(
        &self,
        pages: Range<u64>,
        key: impl Fn(u64) -> Key,
        own: impl Fn(Key) -> bool,
    ) -> Vec<Key> {
        if pages.end.saturating_sub(pages.start) <= self.cache.capacity().into() {
            return pages.map(key).collect();
        }
        let mut known: Vec<Key> = self.cache.names().filter(|&k| own(k)).collect();
        known.sort_unstable();
        known
    }

    /// Forgets pages.
    fn drop_pages<M: Memory + ?Sized>(&mut self, mem: &mut M, keys: Vec<Key>, now: Picos) {
        self.clock = now;
        for key in keys {
            self.dirty.remove(key);
            match self.cache.delete(key) {
                Some((page, true)) => mem.left(page),
                Some((page, false)) => mem.unmap(page),
                None => {}
            }
        }
        self.try_again(now);
    }

    /// Who waits for memory may find some now.
    fn try_again(&mut self, now: Picos) {
        for task in std::mem::take(&mut self.memory_waiters) {
            self.again_at(task, now);
        }
    }

    fn known(&self, file: FileId) -> Result<FileIndex, FileError> {
        self.files.index(file).ok_or(FileError::UnknownFile(file))
    }

    fn task_number(&mut self, id: TaskId) -> Result<u32, FileError> {
        if let Some(&number) = self.task_numbers.get(&id) {
            return Ok(number);
        }
        let number = self.tasks.len() as u32;
        if u64::from(number) >= MAX_FILES {
            return Err(FileError::TooManyTasks);
        }
        self.tasks.push(Task {
            id,
            call: None,
            blocked: Picos(0),
        });
        self.task_numbers.insert(id, number);
        Ok(number)
    }

    fn check_time(&self, now: Picos) -> Result<(), FileError> {
        if now < self.clock {
            let clock = self.clock;
            return Err(FileError::TimeBackwards { now, clock });
        }
        match self.next_event() {
            Some(due) if due < now => Err(FileError::EventDue { now, due }),
            _ => Ok(()),
        }
    }

    fn check_call(&mut self, task: TaskId, now: Picos) -> Result<u32, FileError> {
        self.check_time(now)?;
        let number = self.task_number(task)?;
        match self.tasks[number as usize].call {
            Some(_) => Err(FileError::Busy(task)),
            None => Ok(number),
        }
    }

    fn start<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        task: TaskId,
        call: Call,
        now: Picos,
    ) -> Result<Step, FileError> {
        let number = self.check_call(task, now)?;
        self.clock = now;
        self.tasks[number as usize].call = Some(call);
        Ok(match self.go_on(mem, number, now) {
            Some(at) => Step::Ready(at),
            None => Step::Blocked,
        })
    }

    /// The time of the last call or event.
    pub fn now(&self) -> Picos {
        self.clock
    }

    /// What was counted so far.
    pub fn stats(&self) -> Stats {
        let left = self.cache.departures;
        Stats {
            evicted: left.evicted,
            deleted: left.deleted,
            prefetched_unused: left.unused,
            ..self.stats
        }
    }

    /// What the queue counted.
    pub fn io_stats(&self) -> IoStats {
        self.queue.stats()
    }

    /// How sequential the reads were, in the order of dispatch.
    pub fn runs(&self) -> &RunLengths {
        self.queue.runs()
    }

    /// Time that a task was blocked in calls.
    pub fn blocked_time(&self, task: TaskId) -> Picos {
        let number = self.task_numbers.get(&task);
        number.map_or(Picos(0), |&n| self.tasks[n as usize].blocked)
    }

    /// Tasks whose call has not ended, in the order of their first call.
    pub fn blocked_tasks(&self) -> impl Iterator<Item = TaskId> {
        let blocked = self.tasks.iter().filter(|t| t.call.is_some());
        blocked.map(|t| t.id)
    }

    /// Pages in memory.
    pub fn resident(&self) -> u32 {
        self.cache.resident()
    }

    /// Pages that the zone of the memory has, those included that were used since it was
    /// asked last.
    pub fn in_zone(&self) -> u32 {
        self.cache.in_zone()
    }

    /// Dirty pages of files, those being written not counted.
    pub fn dirty_pages(&self) -> u64 {
        self.dirty.len()
    }

    /// Swap slots in use.
    pub fn swap_used(&self) -> u32 {
        self.swap.as_ref().map_or(0, SwapMap::used)
    }

    /// The policy.
    pub fn policy(&self) -> &P {
        self.cache.policy()
    }

    /// The disk.
    pub fn disk(&self) -> &D {
        self.queue.port()
    }

    /// The files.
    pub fn files(&self) -> &FileTable {
        &self.files
    }

    /// The configuration.
    pub fn config(&self) -> &FileConfig {
        &self.config
    }
}
