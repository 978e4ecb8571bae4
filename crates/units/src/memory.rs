//! The port between the operating system and the machine's memory.

use crate::{Asid, CoreId, PageSize, Pfn, PhysAddr, Picos, VirtAddr, op::RefKind};

/// One reference by virtual and physical address. 24 bytes.
///
/// The virtual address feeds TLBs and virtually indexed caches; its low 12 bits
/// and `frame` make the physical address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhysRef {
    /// Virtual address of the first byte.
    pub vaddr: VirtAddr,
    /// Frame of the first byte. 32 bits reach 16 TiB.
    pub frame: u32,
    /// As in [`MemRef::site`](crate::op::MemRef::site).
    pub site: u32,
    /// As in [`MemRef::gap`](crate::op::MemRef::gap).
    pub gap: u32,
    /// As in [`MemRef::dep`](crate::op::MemRef::dep).
    pub dep: u16,
    /// Size in bytes. The part beyond the page's end is not accessed through
    /// this reference: the operating system splits references at page ends.
    pub size: u8,
    /// What it does.
    pub kind: RefKind,
}

impl PhysRef {
    /// Physical address of the first byte.
    pub const fn paddr(&self) -> PhysAddr {
        PhysAddr((self.frame as u64) << crate::PAGE_SHIFT | self.vaddr.page_offset())
    }
}

/// How far a batch got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// References that are done, from the front of the batch.
    pub done: usize,
    /// The core's clock after the last of them.
    pub now: Picos,
}

/// Result of a page walk: the addresses of the entries that the walker reads,
/// root first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Entry addresses; only the first `levels` count.
    pub entries: [PhysAddr; 4],
    /// 4 for a 4 KiB page, 3 for a 2 MiB page, fewer in tests.
    pub levels: u8,
    /// Size of the page found.
    pub page: PageSize,
}

/// An address space as the hardware walker sees it.
pub trait PageTables {
    /// Tag of the TLB entries.
    fn asid(&self) -> Asid;

    /// The entries that translate this address. Called only for addresses that
    /// are mapped; an unmapped one gives a walk of 0 levels.
    fn walk(&self, addr: VirtAddr) -> Walk;
}

/// Whether a copy's source may stay in the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Load {
    /// Ordinary loads.
    Caching,
    /// Loads that bypass the outer caches (MFC's non-caching read).
    NonCaching,
}

/// Part of a page: `offset..offset + len`, both in bytes, within one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub offset: u16,
    /// Number of bytes; `offset + len` is at most 4096.
    pub len: u16,
}

/// The machine's memory as the operating system drives it.
///
/// Each core has its own clock, owned by the caller and handed in as `now`.
pub trait MemoryPort {
    /// Performs `refs` in order on `core`, starting at `now`.
    ///
    /// Stops early, before a reference that leaves the core's private caches
    /// after `horizon`: shared levels must see requests of different cores nearly
    /// in order of time. A reference leaves the core when its address is known,
    /// which for a chain of dependent loads is later than the core's clock; the
    /// clock that is returned is then that of the reference, so that the caller
    /// lets others run until it is due. Hand that clock in again to go on.
    ///
    /// At least one reference is done if the first of `refs` leaves the core by
    /// `horizon`.
    fn run(
        &mut self,
        core: CoreId,
        space: &dyn PageTables,
        refs: &[PhysRef],
        now: Picos,
        horizon: Picos,
    ) -> Progress;

    /// Retires instructions that refer to no memory; returns the new clock.
    fn retire(&mut self, core: CoreId, instrs: u32, now: Picos) -> Picos;

    /// Copies part of a frame to the same offsets of another, line by line;
    /// returns the new clock.
    fn copy(
        &mut self,
        core: CoreId,
        from: Pfn,
        to: Pfn,
        span: Span,
        load: Load,
        now: Picos,
    ) -> Picos;

    /// Stores to part of a frame (zeroing a page, receiving data); returns the
    /// new clock.
    fn fill(&mut self, core: CoreId, frame: Pfn, span: Span, now: Picos) -> Picos;

    /// Waits until all of the core's outstanding loads are done (a system call,
    /// a context switch); returns the new clock.
    fn drain(&mut self, core: CoreId, now: Picos) -> Picos;

    /// A device has written a whole frame past the caches (direct memory access):
    /// no cache holds any of it any more, and the memory was busy from `now` on.
    /// No core waits for it.
    fn device_write(&mut self, frame: Pfn, now: Picos);

    /// A device reads a whole frame (direct memory access): the memory is busy from
    /// `now` on, and what caches hold stays there. No core waits for it.
    fn device_read(&mut self, frame: Pfn, now: Picos);

    /// Drops TLB entries of an address space on every core: one page, or all.
    fn shoot_down(&mut self, asid: Asid, page: Option<VirtAddr>);
}
