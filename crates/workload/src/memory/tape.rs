//! The tape that a built-in program writes while it runs.

use piebald_trace::recording::model::{BlockDef, EventKind, FileIdent, Raw};
use piebald_units::PAGE_SIZE;

use super::{Array, Shape};

/// First address of the code of a built-in program.
const TEXT: u64 = 0x40_1000;
/// Bytes reserved for code.
const TEXT_BYTES: u64 = 1 << 20;
/// Mappings end here and grow downwards.
const MMAP_TOP: u64 = 0x7fff_f000_0000;
/// Entries that are handed to the sink at once.
const BATCH: usize = 1 << 14;
/// Process id of every built-in program; thread `t` has thread id `PID + t`.
const PID: u32 = 1000;

/// Linux x86-64 call numbers, `PROT_READ | PROT_WRITE`,
/// `MAP_PRIVATE | MAP_ANONYMOUS`, and the flags that glibc gives a new thread.
mod linux {
    pub const CLOSE: u32 = 3;
    pub const MMAP: u32 = 9;
    pub const PREAD64: u32 = 17;
    pub const PWRITE64: u32 = 18;
    pub const CLONE: u32 = 56;
    pub const UNLINK: u32 = 87;
    pub const OPENAT: u32 = 257;
    pub const PROT_RW: u64 = 3;
    pub const MAP_ANON: u64 = 0x22;
    pub const AT_FDCWD: u64 = -100_i64 as u64;
    pub const CLONE_THREAD: u64 = 0x3d_0f00;
    pub const S_IFREG_0644: u32 = 0o100_644;
}

/// Markers that every built-in program leaves.
pub mod mark {
    /// The thread's data is set up; the measured part begins.
    pub const READY: u32 = 1;
    /// One iteration of the thread is complete.
    pub const ITERATION: u32 = 2;
}

/// What the sink could not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EmitError(pub String);

/// Where a tape goes: an encoder, or a counter in tests.
///
/// Call order: `event` with [`EventKind::Start`] opens a thread; `define` gives
/// blocks the numbers 0, 1, 2, ... before they appear in `stream`.
pub trait Sink {
    /// Adds a block to the dictionary; returns its number.
    ///
    /// # Errors
    /// If the recording cannot hold it.
    fn define(&mut self, block: BlockDef) -> Result<u32, EmitError>;

    /// Appends to a thread's stream.
    ///
    /// # Errors
    /// If the recording cannot hold it.
    fn stream(&mut self, thread: u32, entries: &[Raw]) -> Result<(), EmitError>;

    /// Appends an event to a thread's stream.
    ///
    /// # Errors
    /// If the recording cannot hold it.
    fn event(&mut self, thread: u32, event: EventKind) -> Result<(), EmitError>;
}

/// When a thread's tape ends. Set-up does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// At most this many references per thread; the tape ends before the block
    /// that would exceed it.
    pub refs: u64,
    /// At most this many iterations per thread; 0 = no such limit.
    pub iterations: u64,
}

/// A defined block.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    id: u32,
    accesses: u16,
}

/// A file of a built-in program, open or closed.
#[derive(Clone, Debug)]
pub struct File {
    fd: u64,
    path: String,
    ident: FileIdent,
}

impl File {
    /// Its length in bytes, with what was written past its end.
    pub const fn size(&self) -> u64 {
        self.ident.size
    }
}

/// The tape: gives out addresses, code and files, and carries references to the
/// sink. One thread of the program is written at a time.
pub struct Tape<'s> {
    sink: &'s mut dyn Sink,
    limits: Limits,
    buffer: Vec<Raw>,
    thread: u32,
    left: u64,
    emitting: bool,
    iterations: u64,
    emitted: u64,
    text_end: u64,
    mmap_end: u64,
    files: u64,
    failure: Option<EmitError>,
    #[cfg(debug_assertions)]
    expected: (u16, u16),
}

impl<'s> Tape<'s> {
    /// Starts thread 0 of a program called `name`.
    pub fn new(sink: &'s mut dyn Sink, name: &str, limits: Limits) -> Self {
        let mut tape = Self {
            sink,
            limits,
            buffer: Vec::with_capacity(BATCH),
            thread: 0,
            left: u64::MAX,
            emitting: true,
            iterations: 0,
            emitted: 0,
            text_end: TEXT,
            mmap_end: MMAP_TOP,
            files: 0,
            failure: None,
            #[cfg(debug_assertions)]
            expected: (0, 0),
        };
        tape.event(EventKind::Start {
            pid: PID,
            tid: PID,
            argv: vec![name.to_owned()],
        });
        tape.event(EventKind::Initial {
            addr: TEXT & !(PAGE_SIZE - 1),
            len: TEXT_BYTES,
            write: false,
            exec: true,
            file: None,
            name: name.to_owned(),
        });
        tape
    }

    /// Adds a block of code. A shape with a defect makes the whole tape fail.
    pub fn block(&mut self, shape: Shape) -> Block {
        let accesses = shape.nr_accesses();
        let addr = self.text_end;
        let bytes = u64::from(shape.bytes()).next_multiple_of(16);
        let defect = shape.defect().or_else(|| {
            (addr + bytes > TEXT + TEXT_BYTES).then(|| "code exceeds 1 MiB".to_owned())
        });
        self.text_end += bytes;
        let id = match defect {
            Some(text) => Err(EmitError(format!("block at {addr:#x}: {text}"))),
            None => self.sink.define(shape.at(addr)),
        };
        let id = id.unwrap_or_else(|e| {
            self.fail(e);
            0
        });
        Block { id, accesses }
    }

    /// Maps memory for `data` and gives it addresses `stride` bytes apart. No
    /// reference is made: the pages are untouched, as after `mmap`.
    pub fn map<T: Copy>(&mut self, data: Vec<T>, stride: u64) -> Array<T> {
        let base = self.map_bytes(data.len() as u64 * stride);
        Array::at(base, stride, data)
    }

    /// Maps `bytes` bytes, rounded up to pages; returns the first address.
    fn map_bytes(&mut self, bytes: u64) -> u64 {
        let len = bytes.max(1).next_multiple_of(PAGE_SIZE);
        self.mmap_end -= len;
        let addr = self.mmap_end;
        self.event(EventKind::Call {
            number: linux::MMAP,
            args: [0, len, linux::PROT_RW, linux::MAP_ANON, u64::MAX, 0],
            ret: Some(addr as i64),
            path: None,
            file: None,
            position: None,
        });
        addr
    }

    /// Opens a file of `size` bytes. Equal paths and sizes are the same file, also
    /// in other programs.
    pub fn open(&mut self, path: &str, size: u64) -> File {
        let mut file = File {
            fd: 0,
            path: path.to_owned(),
            ident: FileIdent {
                dev: 1,
                ino: inode(path, size),
                size,
                mode: linux::S_IFREG_0644,
            },
        };
        self.reopen(&mut file);
        file
    }

    /// Opens a file that is known already, under a new descriptor. Leaves nothing
    /// once the tape is full.
    pub fn reopen(&mut self, file: &mut File) {
        file.fd = 3 + self.files;
        self.files += 1;
        let args = [linux::AT_FDCWD, 0, 0, 0, 0, 0];
        self.call_on(file, linux::OPENAT, args, file.fd as i64, None);
    }

    /// Closes a file; its descriptor is not used again.
    pub fn close(&mut self, file: &File) {
        self.call_on(file, linux::CLOSE, [file.fd, 0, 0, 0, 0, 0], 0, None);
    }

    /// Deletes a file.
    pub fn remove(&mut self, file: &File) {
        self.call_on(file, linux::UNLINK, [0; 6], 0, None);
    }

    /// Writes `len` bytes of memory into a file at `offset` (`pwrite`), which may
    /// make it longer. The program keeps what the file holds, if it needs it.
    pub fn write(
        &mut self,
        file: &mut File,
        offset: u64,
        len: u64,
        buffer: piebald_units::VirtAddr,
    ) {
        file.ident.size = file.ident.size.max(offset.saturating_add(len));
        let args = [file.fd, buffer.0, len, offset, 0, 0];
        self.call_on(file, linux::PWRITE64, args, len as i64, Some(offset));
    }

    /// A call that is about a file.
    fn call_on(
        &mut self,
        file: &File,
        number: u32,
        args: [u64; 6],
        ret: i64,
        position: Option<u64>,
    ) {
        if !self.emitting {
            return;
        }
        let by_path = matches!(number, linux::OPENAT | linux::UNLINK);
        self.event(EventKind::Call {
            number,
            args,
            ret: Some(ret),
            path: by_path.then(|| file.path.clone()),
            file: Some(file.ident.clone()),
            position,
        });
    }

    /// Reads `len` bytes of a file at `offset` into memory (`pread`). The caller
    /// puts the same bytes into the array, without references: the kernel makes
    /// the copy.
    pub fn read(&mut self, file: &File, offset: u64, len: u64, buffer: piebald_units::VirtAddr) {
        let args = [file.fd, buffer.0, len, offset, 0, 0];
        self.call_on(file, linux::PREAD64, args, len as i64, Some(offset));
    }

    /// Starts thread `thread` (1, 2, ...) from the thread being written; its
    /// own stream is written later, after [`switch`](Self::switch).
    pub fn spawn(&mut self, thread: u32) {
        self.event(EventKind::Call {
            number: linux::CLONE,
            args: [linux::CLONE_THREAD, 0, 0, 0, 0, 0],
            ret: Some(i64::from(PID + thread)),
            path: None,
            file: None,
            position: None,
        });
    }

    /// Ends the thread being written and goes on with another one.
    pub fn switch(&mut self, thread: u32) {
        self.end_thread();
        self.thread = thread;
        self.left = u64::MAX;
        self.emitting = self.failure.is_none();
        self.iterations = 0;
        self.event(EventKind::Start {
            pid: PID,
            tid: PID + thread,
            argv: Vec::new(),
        });
    }

    /// Set-up of the thread is complete: limits count from here.
    pub fn ready(&mut self) {
        self.event(EventKind::Mark(mark::READY));
        self.left = self.limits.refs;
    }

    /// Is there to be another iteration? To be asked before each one.
    pub fn again(&mut self) -> bool {
        if self.iterations > 0 && self.emitting {
            self.event(EventKind::Mark(mark::ITERATION));
        }
        if self.full() || (self.limits.iterations > 0 && self.iterations >= self.limits.iterations)
        {
            return false;
        }
        self.iterations += 1;
        true
    }

    /// True once the limit on references is reached: what the kernel still
    /// computes leaves no references.
    pub const fn full(&self) -> bool {
        !self.emitting
    }

    /// Executes a block; its accesses follow in order.
    #[inline]
    pub fn enter(&mut self, block: Block) {
        #[cfg(debug_assertions)]
        {
            debug_assert_eq!(self.expected.0, self.expected.1, "accesses are missing");
            self.expected = (0, block.accesses);
        }
        let refs = u64::from(block.accesses);
        if self.left < refs {
            self.emitting = false;
        }
        if !self.emitting {
            return;
        }
        self.left -= refs;
        self.emitted += refs;
        if self.buffer.len() + usize::from(block.accesses) >= BATCH {
            self.flush();
        }
        self.buffer.push(Raw::block(block.id));
    }

    /// Access `slot` of the block being executed touches `addr`.
    #[inline]
    pub(super) fn touch(&mut self, slot: u16, addr: u64) {
        #[cfg(debug_assertions)]
        {
            debug_assert_eq!(slot, self.expected.0, "accesses are out of order");
            debug_assert!(slot < self.expected.1, "too many accesses");
            self.expected.0 += 1;
        }
        if self.emitting {
            self.buffer.push(Raw::access(slot, addr));
        }
    }

    /// Ends the program; returns the number of references on the tape, set-up
    /// included, all threads together.
    ///
    /// # Errors
    /// What the sink refused first, or a defect of a block.
    pub fn finish(mut self) -> Result<u64, EmitError> {
        self.end_thread();
        match self.failure {
            Some(e) => Err(e),
            None => Ok(self.emitted),
        }
    }

    /// A thread that was cut by the limit on references has no exit.
    fn end_thread(&mut self) {
        match self.emitting {
            true => self.event(EventKind::Exit { status: 0 }),
            false => self.flush(),
        }
    }

    fn event(&mut self, event: EventKind) {
        self.flush();
        if let Err(e) = self.sink.event(self.thread, event) {
            self.fail(e);
        }
    }

    #[inline(never)]
    fn flush(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        if let Err(e) = self.sink.stream(self.thread, &self.buffer) {
            self.fail(e);
        }
        self.buffer.clear();
    }

    fn fail(&mut self, e: EmitError) {
        self.failure.get_or_insert(e);
        self.emitting = false;
        self.left = 0;
    }
}

/// FNV-1a of path and size: programs whose files differ in size do not share
/// them by accident.
fn inode(path: &str, size: u64) -> u64 {
    let bytes = path.bytes().chain(size.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
    })
}
