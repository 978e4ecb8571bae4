//! What kernel work does to the machine: the list that the host charges.
//!
//! The kernel never touches a clock or a cache. Every call that does work
//! appends [`Action`]s to the caller's [`Actions`]; the host performs them in
//! order on the core that did the work, through its memory port.

use piebald_units::{
    Asid, PAGE_SHIFT, Pfn, Picos, VirtAddr,
    memory::{Load, PhysRef},
    op::RefKind,
};

/// First byte of the kernel's map of all memory (x86-64, `page_offset_base`
/// without randomisation).
pub const DIRECT_MAP: u64 = 0xffff_8880_0000_0000;

/// Where the kernel sees a byte of a frame.
pub const fn direct_address(frame: Pfn, offset: u16) -> VirtAddr {
    VirtAddr(DIRECT_MAP + (frame.0 << PAGE_SHIFT) + offset as u64)
}

/// One piece of kernel work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Retire this many instructions: `MemoryPort::retire`.
    Instrs(u32),
    /// Reference `lines` consecutive 64 B lines of a frame: expand with
    /// [`Action::refs`] and give them to `MemoryPort::run` with the kernel's
    /// page tables ([`Kernel::kernel_space`](super::Kernel::kernel_space)).
    Touch {
        /// The frame.
        frame: Pfn,
        /// Byte offset of the first reference.
        offset: u16,
        /// Number of lines; all lie in the frame.
        lines: u16,
        /// Load, store, update or fetch.
        kind: RefKind,
        /// Which kernel code does it: a number from `0xffff_0000` up.
        site: u32,
    },
    /// Store zeroes to whole frames: `MemoryPort::fill` for each.
    Zero {
        /// First frame.
        frame: Pfn,
        /// Number of frames: 1, or 512 for a 2 MiB page.
        frames: u16,
    },
    /// Copy a whole frame: `MemoryPort::copy` with the full span.
    Copy {
        /// Source.
        from: Pfn,
        /// Destination.
        to: Pfn,
    },
    /// Copy bytes between a page-cache frame and a user frame. Both parts lie
    /// within their frame.
    CopyUser {
        /// Source frame.
        from: Pfn,
        /// Byte offset in it.
        from_offset: u16,
        /// Destination frame.
        to: Pfn,
        /// Byte offset in it.
        to_offset: u16,
        /// Bytes, 1 to 4096.
        len: u16,
        /// How the source is loaded. Stores are ordinary ones.
        load: Load,
    },
    /// A device has read a page into a frame: `MemoryPort::device_write`.
    DeviceFill {
        /// The frame.
        frame: Pfn,
    },
    /// A device writes a frame to swap space: `MemoryPort::device_read`.
    SwapOut {
        /// The frame.
        frame: Pfn,
        /// The page of swap space.
        slot: u32,
    },
    /// A device reads a frame, to write it to a file or to swap space:
    /// `MemoryPort::device_read`.
    DeviceDrain {
        /// The frame.
        frame: Pfn,
    },
    /// A device reads a page of swap space into a frame:
    /// `MemoryPort::device_write`.
    SwapIn {
        /// The frame.
        frame: Pfn,
        /// The page of swap space.
        slot: u32,
    },
    /// The core waits for a device.
    Wait(Picos),
    /// Drop TLB entries on every core: `MemoryPort::shoot_down`.
    ShootDown {
        /// Address space.
        asid: Asid,
        /// One page, or all of the space.
        page: Option<VirtAddr>,
    },
}

impl Action {
    /// Appends the references of a [`Action::Touch`]; other actions give none.
    /// Each reference has a gap of 0: instructions are charged by
    /// [`Action::Instrs`].
    pub fn refs(&self, out: &mut Vec<PhysRef>) {
        let Self::Touch {
            frame,
            offset,
            lines,
            kind,
            site,
        } = *self
        else {
            return;
        };
        let size = if kind == RefKind::Fetch { 64 } else { 8 };
        out.extend((0..lines).map(|i| PhysRef {
            vaddr: direct_address(frame, offset + i * 64),
            frame: frame.0 as u32,
            site,
            gap: 0,
            dep: 0,
            size,
            kind,
        }));
    }
}

/// A reusable list of actions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actions {
    list: Vec<Action>,
}

impl Actions {
    /// An empty list.
    pub const fn new() -> Self {
        Self { list: Vec::new() }
    }

    /// The actions, in order.
    pub fn as_slice(&self) -> &[Action] {
        &self.list
    }

    /// Empties the list and keeps its memory.
    pub fn clear(&mut self) {
        self.list.clear();
    }

    /// Moves everything from another list to the end of this one.
    pub fn append(&mut self, other: &mut Self) {
        self.list.append(&mut other.list);
    }

    pub(crate) fn push(&mut self, action: Action) {
        self.list.push(action);
    }

    pub(crate) fn instrs(&mut self, n: u32) {
        match self.list.last_mut() {
            _ if n == 0 => {}
            Some(Action::Instrs(old)) => *old = old.saturating_add(n),
            _ => self.push(Action::Instrs(n)),
        }
    }

    /// Adds references to `lines` consecutive lines of one frame.
    pub(crate) fn run(&mut self, at: Place, lines: u16, kind: RefKind, site: u32) {
        self.push(Action::Touch {
            frame: at.frame,
            offset: at.offset,
            lines,
            kind,
            site,
        });
    }

    /// Adds one reference. Neighbouring entries of a table lie on one line, so
    /// a reference to the last touched line, or to the one after it, extends
    /// the last action.
    pub(crate) fn touch(&mut self, at: Place, kind: RefKind, site: u32) {
        let line = at.offset & !63;
        for last in self.list.iter_mut().rev().take(2) {
            let Action::Touch {
                frame,
                offset,
                lines,
                kind: k,
                site: s,
            } = last
            else {
                continue;
            };
            let first = *offset & !63;
            if *frame != at.frame || *k != kind || *s != site || line < first {
                continue;
            }
            match (line - first) / 64 {
                n if n < *lines => return,
                n if n == *lines => {
                    *lines += 1;
                    return;
                }
                _ => {}
            }
        }
        self.push(Action::Touch {
            frame: at.frame,
            offset: at.offset,
            lines: 1,
            kind,
            site,
        });
    }
}

/// A byte of physical memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub frame: Pfn,
    pub offset: u16,
}
