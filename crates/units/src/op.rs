//! What a program does next.
//!
//! An [`OpSource`] is one thread of a program: a recording that is replayed, a
//! foreign trace, or a built-in workload. It yields references in batches and,
//! between batches, events in program order.

use crate::{FileId, VirtAddr};

/// What a reference does to memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RefKind {
    /// Reads data.
    #[default]
    Load = 0,
    /// Writes data.
    Store = 1,
    /// Reads and writes the same bytes in one instruction (`inc mem`, atomics).
    Update = 2,
    /// Fetches instructions; the size is that of the part of a block on one line.
    Fetch = 3,
    /// Reads data without leaving it in the outer caches (`prefetchnta` copy).
    LoadNt = 4,
}

impl RefKind {
    /// Does it wait for data?
    pub const fn reads(self) -> bool {
        !matches!(self, Self::Store | Self::Fetch)
    }

    /// Does it change memory?
    pub const fn writes(self) -> bool {
        matches!(self, Self::Store | Self::Update)
    }
}

/// One reference of a program, by virtual address. 24 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemRef {
    /// First byte.
    pub addr: VirtAddr,
    /// Which instruction made it: stable within a program, and equal for equal
    /// instruction addresses. Feeds stride prefetchers.
    pub site: u32,
    /// Instructions retired since the previous reference of this thread, this
    /// one's own instruction included if it is the first reference of it.
    pub gap: u32,
    /// The address depends on the load that lies this many loads (`Load`,
    /// `Update` or `LoadNt`) back in this thread; 0 = on no load, or on one that is 65535 or more
    /// back.
    pub dep: u16,
    /// Size in bytes, 1..=64. A reference may cross a line.
    pub size: u8,
    /// What it does.
    pub kind: RefKind,
}

/// Rights of a mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Access {
    /// May be written.
    pub write: bool,
    /// May be executed.
    pub exec: bool,
}

/// What lies behind a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Backing {
    /// Zero-filled memory.
    Anon,
    /// A file, from this byte offset (page aligned).
    File {
        /// Which file.
        file: FileId,
        /// Byte offset of the mapping's first byte.
        offset: u64,
    },
}

/// How a new thread comes to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpawnKind {
    /// Shares the address space.
    Thread,
    /// Gets a copy-on-write copy of it.
    Fork,
}

/// A system call, as far as memory, files and scheduling care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SysOp {
    /// A new mapping; replaces whatever lay there.
    Map {
        /// First byte, page aligned.
        addr: VirtAddr,
        /// Length in bytes, rounded up to pages by the host.
        len: u64,
        /// What lies behind it.
        backing: Backing,
        /// Rights.
        access: Access,
        /// Stores reach the other mappings of the same pages.
        shared: bool,
    },
    /// The mapping goes, and its private pages with it.
    Unmap {
        /// First byte, page aligned.
        addr: VirtAddr,
        /// Length in bytes.
        len: u64,
    },
    /// The pages move to another address (`mremap`).
    Remap {
        /// Old first byte.
        from: VirtAddr,
        /// Old length in bytes.
        old_len: u64,
        /// New first byte.
        to: VirtAddr,
        /// New length in bytes.
        new_len: u64,
    },
    /// The pages' content is no longer needed (`MADV_DONTNEED`, `MADV_FREE`).
    Discard {
        /// First byte, page aligned.
        addr: VirtAddr,
        /// Length in bytes.
        len: u64,
    },
    /// A thread or process starts.
    Spawn {
        /// Which thread of the program it is: the argument of the program's `open`.
        thread: u32,
        /// Thread or process.
        kind: SpawnKind,
    },
    /// The process starts another image in an empty address space.
    Exec,
    /// Something that others may wait for has happened. Numbers are unique
    /// within a program.
    Post {
        /// Its number.
        event: u64,
    },
    /// The thread goes on only after that event has happened.
    Await {
        /// Its number.
        event: u64,
    },
    /// Bytes of a file are copied to user memory.
    Read {
        /// Which file.
        file: FileId,
        /// Byte offset in the file.
        offset: u64,
        /// Bytes that were really read.
        len: u64,
        /// User buffer; 0 = the bytes stay in the kernel (`sendfile`).
        buffer: VirtAddr,
    },
    /// Bytes of user memory are copied to a file.
    Write {
        /// Which file.
        file: FileId,
        /// Byte offset in the file.
        offset: u64,
        /// Bytes that were really written.
        len: u64,
        /// User buffer.
        buffer: VirtAddr,
    },
    /// Any other call: it costs its entry and leaves its kernel footprint.
    Other {
        /// Linux x86-64 call number.
        number: u32,
    },
}

/// Why a batch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The buffer is full; call again.
    More,
    /// A system call follows the batch.
    Sys(SysOp),
    /// A marker of the program (region boundaries).
    Mark(u32),
    /// The thread ends with this status.
    Exit(i32),
    /// The input ends without an exit: it was cut (by a limit, or incomplete).
    End,
    /// The input cannot be read further; `OpSource::failure` says why.
    Broken,
}

/// What one call of [`OpSource::fill`] gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled {
    /// How many references were written to the front of the buffer.
    pub refs: usize,
    /// Instructions retired after the last of them and before `next`.
    pub tail: u32,
    /// What follows.
    pub next: Next,
}

/// One thread of a program.
pub trait OpSource: Send {
    /// Writes references to the front of `out` until it is full or an event
    /// follows. A buffer shorter than 64 may return `More` with 0 references
    /// only if it is empty.
    fn fill(&mut self, out: &mut [MemRef]) -> Filled;

    /// After [`Next::Broken`]: what is wrong, with the file and offset.
    fn failure(&self) -> Option<&str> {
        None
    }
}
