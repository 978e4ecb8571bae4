//! What hosts ask and what policies answer.
//!
//! A host that needs a frame says who asks, why, and which colours are allowed
//! and wished; the allocator answers with a [`Grant`] or a small error. A host that
//! needs memory asks a [`replacement`] policy which pages should leave. A host that
//! reads a file for a program asks which core should do it ([`reads`]). Policies
//! return verdicts and change nothing outside themselves.

pub mod reads;
pub mod replacement;

use core::fmt;

use piebald_units::{Color, ColorSet, CoreId, FileId, Order, Pfn, TaskId, Vpn};

/// What the frame will hold; decides the migrate type and which colour rules
/// apply (Rainbow section 4: kernel and DMA pages take any colour).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Anonymous memory of a task.
    Anon,
    /// A page of the page cache.
    File,
    /// Kernel data that cannot move (page tables, stacks).
    Kernel,
    /// Kernel data that can be dropped (inode and dentry caches).
    Reclaimable,
    /// A device's buffer.
    Dma,
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anon => "anonymous memory",
            Self::File => "file memory",
            Self::Kernel => "kernel memory",
            Self::Reclaimable => "kernel caches",
            Self::Dma => "a device's buffer",
        })
    }
}

/// On whose behalf the frame is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Asker {
    /// A task, for its own address space.
    Task(TaskId),
    /// A task that reads or writes a file.
    File(TaskId, FileId),
    /// The kernel itself.
    Kernel,
}

/// What made the host ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// First touch of a page.
    Fault,
    /// A store to a shared copy-on-write page.
    CopyOnWrite,
    /// A page-cache miss that a task waits for.
    PageCache,
    /// A page-cache page read ahead.
    Readahead,
    /// The new home of a page that moves.
    Migration,
    /// The kernel's own needs.
    Kernel,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fault => "first use of a page",
            Self::CopyOnWrite => "store to a shared page",
            Self::PageCache => "page read from a file",
            Self::Readahead => "page read ahead",
            Self::Migration => "page that moves",
            Self::Kernel => "the kernel's own needs",
        })
    }
}

/// How binding the allowed colours are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Fail rather than leave the allowed colours.
    Hard,
    /// Prefer them; any other colour is a counted fallback.
    #[default]
    Hint,
}

/// A request for one block of frames.
#[derive(Clone, Copy, Debug)]
pub struct FrameRequest<'a> {
    /// Size of the block.
    pub order: Order,
    /// What it will hold.
    pub purpose: Purpose,
    /// Who asks.
    pub asker: Asker,
    /// Why.
    pub cause: Cause,
    /// The core that asks: selects the per-core list.
    pub core: CoreId,
    /// The page that will be mapped to it, if there is one.
    pub page: Option<Vpn>,
    /// Colours that the requester owns; `None` = every colour.
    pub allowed: Option<&'a ColorSet>,
    /// The colour that would be best among them.
    pub wish: Option<Color>,
    /// Whether the allowed colours bind.
    pub mode: Mode,
}

impl FrameRequest<'_> {
    /// A request of order 0 without colours for a page that a task touches.
    pub const fn fault(task: TaskId, core: CoreId, page: Vpn) -> FrameRequest<'static> {
        FrameRequest {
            order: Order(0),
            purpose: Purpose::Anon,
            asker: Asker::Task(task),
            cause: Cause::Fault,
            core,
            page: Some(page),
            allowed: None,
            wish: None,
            mode: Mode::Hint,
        }
    }
}

/// A granted block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// First frame.
    pub frame: Pfn,
    /// Size, as asked for.
    pub order: Order,
    /// The block lies outside the allowed colours (only in [`Mode::Hint`]).
    pub fallback: bool,
}

/// Why no block was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocError {
    /// No block of that order is free.
    OutOfMemory,
    /// Blocks are free, but none in the allowed colours ([`Mode::Hard`]).
    ColorsExhausted,
    /// The order is larger than the allocator's largest block.
    OrderTooLarge,
    /// This allocator has no colours, and the request binds to some.
    NoColors,
}

impl fmt::Display for AllocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutOfMemory => "no free block of that order",
            Self::ColorsExhausted => "no free block in the allowed colors",
            Self::OrderTooLarge => "order above the allocator's largest block",
            Self::NoColors => "hard colors asked of an allocator without colors",
        })
    }
}

impl core::error::Error for AllocError {}

/// Why a block was not taken back. The allocator is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeError {
    /// The block is free already.
    DoubleFree,
    /// The frame is not the allocator's.
    Foreign,
    /// The block was granted with another order, or the frame is not its first.
    OrderMismatch,
}

impl fmt::Display for FreeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DoubleFree => "block is free already",
            Self::Foreign => "frame does not belong to the allocator",
            Self::OrderMismatch => "block was granted with another order",
        })
    }
}

impl core::error::Error for FreeError {}

/// An inconsistency that `validate` found: a defect of the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// What does not hold.
    pub rule: &'static str,
    /// A frame that shows it.
    pub frame: Pfn,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.rule, self.frame)
    }
}

impl core::error::Error for Broken {}

/// Counters that every frame allocator keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounters {
    /// Blocks granted.
    pub grants: u64,
    /// Blocks taken back.
    pub frees: u64,
    /// Grants outside the allowed colours.
    pub fallbacks: u64,
    /// Requests that failed.
    pub failures: u64,
}

/// A frame allocator. *Exclusive*: the host locks.
pub trait FrameAllocator {
    /// Grants a block or says why not.
    ///
    /// # Errors
    /// See [`AllocError`]; the allocator is unchanged but for its counters.
    fn alloc(&mut self, request: &FrameRequest<'_>) -> Result<Grant, AllocError>;

    /// Takes a block back. `core` selects the per-core list.
    ///
    /// # Errors
    /// See [`FreeError`]; the allocator is unchanged.
    fn free(&mut self, frame: Pfn, order: Order, core: CoreId) -> Result<(), FreeError>;

    /// Frames that are free now, those on per-core lists included.
    fn free_frames(&self) -> u64;

    /// Frames that the allocator manages.
    fn total_frames(&self) -> u64;

    /// The counters.
    fn counters(&self) -> FrameCounters;

    /// Recounts everything from scratch and compares.
    ///
    /// # Errors
    /// The first rule that does not hold.
    fn validate(&self) -> Result<(), Broken>;
}
