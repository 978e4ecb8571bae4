//! A [`FileHost`] of any policy and disk, for a kernel that does not care which.

use piebald_policy::contract::replacement::Replacement;
use piebald_units::{FileId, Picos, TaskId, block::BlockPort};

use super::{
    error::{BrokenHost, FileError},
    host::{FileHost, Removal, Request, Step, Woken},
    memory::{Content, Memory},
    stats::Stats,
};
use crate::io::IoStats;

/// The file side as a kernel sees it that owns the frames. Times rise from call to
/// call, and no event may be passed over: see [`FileHost`].
pub trait Paging: Send + Sync {
    /// [`FileHost::call`].
    ///
    /// # Errors
    /// See there.
    fn call(
        &mut self,
        mem: &mut dyn Memory,
        task: TaskId,
        request: &Request,
        now: Picos,
    ) -> Result<Step, FileError>;

    /// [`FileHost::advance`].
    ///
    /// # Errors
    /// See there.
    fn advance(&mut self, mem: &mut dyn Memory, now: Picos) -> Result<Vec<Woken>, FileError>;

    /// [`FileHost::remove_in`].
    ///
    /// # Errors
    /// See there.
    fn remove(&mut self, mem: &mut dyn Memory, what: Removal, now: Picos) -> Result<(), FileError>;

    /// [`FileHost::shrink`].
    ///
    /// # Errors
    /// See there.
    fn shrink(&mut self, mem: &mut dyn Memory, pages: u32, now: Picos) -> Result<u32, FileError>;

    /// [`FileHost::nudge`].
    ///
    /// # Errors
    /// See there.
    fn nudge(&mut self, now: Picos) -> Result<bool, FileError>;

    /// Makes a file known and at least so many pages long.
    ///
    /// # Errors
    /// The file cannot be so long.
    fn ensure_file(&mut self, file: FileId, pages: u64) -> Result<(), FileError>;

    /// A task closes a file: readahead forgets what it knew.
    fn close(&mut self, task: TaskId, file: FileId);

    /// When something happens next without a call.
    fn next_event(&self) -> Option<Picos>;

    /// The time of the last call or event.
    fn now(&self) -> Picos;

    /// Pages in memory.
    fn resident(&self) -> u32;

    /// [`FileHost::in_zone`].
    fn in_zone(&self) -> u32;

    /// Most pages that there can be, by the policy's books.
    fn capacity(&self) -> u32;

    /// Numbers that pages have: all [`PageRef`]s are below.
    ///
    /// [`PageRef`]: piebald_policy::contract::replacement::PageRef
    fn slots(&self) -> u32;

    /// Swap slots in use.
    fn swap_used(&self) -> u32;

    /// Is the page in memory, or on its way there?
    fn holds(&self, content: Content) -> bool;

    /// What was counted.
    fn stats(&self) -> Stats;

    /// What the request queue counted.
    fn io_stats(&self) -> IoStats;

    /// Recounts everything.
    ///
    /// # Errors
    /// The first rule that does not hold.
    fn validate(&self) -> Result<(), BrokenHost>;

    /// Another one in the same state, which goes on by itself.
    fn fork(&self) -> Box<dyn Paging>;
}

/// What a [`FileHost`] needs to be a [`Paging`].
pub trait FilePaging: Clone + Send + Sync + 'static {}

impl<T: Clone + Send + Sync + 'static> FilePaging for T {}

impl<P: Replacement + FilePaging, D: BlockPort + FilePaging> Paging for FileHost<P, D> {
    fn call(
        &mut self,
        mem: &mut dyn Memory,
        task: TaskId,
        request: &Request,
        now: Picos,
    ) -> Result<Step, FileError> {
        Self::call(self, mem, task, request, now)
    }

    fn advance(&mut self, mem: &mut dyn Memory, now: Picos) -> Result<Vec<Woken>, FileError> {
        self.advance_in(mem, now)
    }

    fn remove(&mut self, mem: &mut dyn Memory, what: Removal, now: Picos) -> Result<(), FileError> {
        self.remove_in(mem, what, now)
    }

    fn shrink(&mut self, mem: &mut dyn Memory, pages: u32, now: Picos) -> Result<u32, FileError> {
        Self::shrink(self, mem, pages, now)
    }

    fn nudge(&mut self, now: Picos) -> Result<bool, FileError> {
        Self::nudge(self, now)
    }

    fn ensure_file(&mut self, file: FileId, pages: u64) -> Result<(), FileError> {
        Self::ensure_file(self, file, pages)
    }

    fn close(&mut self, task: TaskId, file: FileId) {
        Self::close(self, task, file);
    }

    fn next_event(&self) -> Option<Picos> {
        Self::next_event(self)
    }

    fn now(&self) -> Picos {
        Self::now(self)
    }

    fn resident(&self) -> u32 {
        Self::resident(self)
    }

    fn in_zone(&self) -> u32 {
        Self::in_zone(self)
    }

    fn capacity(&self) -> u32 {
        self.policy().capacity()
    }

    fn slots(&self) -> u32 {
        self.policy().slots()
    }

    fn swap_used(&self) -> u32 {
        Self::swap_used(self)
    }

    fn holds(&self, content: Content) -> bool {
        Self::holds(self, content)
    }

    fn stats(&self) -> Stats {
        Self::stats(self)
    }

    fn io_stats(&self) -> IoStats {
        Self::io_stats(self)
    }

    fn validate(&self) -> Result<(), BrokenHost> {
        Self::validate(self)
    }

    fn fork(&self) -> Box<dyn Paging> {
        Box::new(self.clone())
    }
}
