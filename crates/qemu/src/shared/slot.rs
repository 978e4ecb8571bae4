//! A slot: what one thread, or the dictionary of one process, has gathered and
//! not yet written.

use core::sync::atomic::{AtomicU32, Ordering::*};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Most raw entries in one slot before it is written.
/// (`MAX_CHUNK_REFS` of the format: the longer a chunk, the better it is packed).
pub const RAW_ENTRIES: usize = 1 << 20;
/// Raw entries that a slot has memory for at first; most processes of a script
/// never need more.
const FIRST_ENTRIES: usize = 64 << 10;
/// Bytes for events (or dictionary entries) in one slot.
pub const JOURNAL_BYTES: usize = 56 << 10;
/// Bytes of a record that are handed to the driver at a time: most records of full chunks need two
/// to six such pieces.
pub(super) const OUT_BYTES: usize = 256 << 10;
/// Bytes for the system call that a thread is in.
pub const CALL_BYTES: usize = 6 << 10;
/// State of a slot: nobody's.
pub const FREE: u32 = 0;
/// State of a slot: in use.
pub const LIVE: u32 = 1;
/// State of a slot: its process has replaced its image.
pub const REPLACED: u32 = 2;

/// How a thread ended: together with the image of its process.
pub const WITH_IMAGE: u32 = 2;

/// What a slot holds is about to be written to the spool, or is appended to it.
pub const PREPARES: u32 = 2;
/// It is complete, and is appended now.
pub const APPENDS: u32 = 1;

/// What a slot holds.
pub const THREAD: u32 = 1;
/// What a slot holds.
pub const DICTIONARY: u32 = 2;

/// Head of a slot; the fields that callbacks touch come first.
#[repr(C)]
pub struct Slot {
    /// Where the next raw entry goes (address in the owner's memory).
    pub next: u64,
    /// At this address a new block makes the slot full.
    pub soft_end: u64,
    /// At this address nothing fits.
    pub hard_end: u64,
    /// Address at which the next piece of a joined access would lie.
    pub join_next: u64,
    /// End of the joined access.
    pub join_end: u64,
    /// Tag of the joined or alternating access.
    pub join_tag: u64,
    /// Raw entry of the block that is executing; 0 once the last access of its
    /// last instruction is reported.
    pub open: u64,
    /// Address of the first raw entry in the owner's memory.
    pub base: u64,
    /// Whose it is; see the constants.
    pub state: AtomicU32,
    /// Thread or dictionary.
    pub kind: u32,
    /// Linux process id of the owner.
    pub pid: u32,
    /// Linux thread id of the owner.
    pub tid: u32,
    /// Process number in the recording.
    pub process: u32,
    /// Thread number in the recording.
    pub thread: u32,
    /// What it holds is being written to the spool: [`PREPARES`], [`APPENDS`]; 0 = it is not.
    pub writing: AtomicU32,
    /// Bytes of the journal in use.
    pub journal_len: AtomicU32,
    /// Bytes of the call in use; 0 = not in a call.
    pub call_len: AtomicU32,
    /// Has the process of this dictionary been introduced in the spool?
    pub introduced: AtomicU32,
    /// The piece of a record that is handed over: see `handover`.
    pub(super) out_state: AtomicU32,
    /// Its bytes.
    pub(super) out_len: AtomicU32,
    /// Dictionary: process whose first `inherited` blocks it shares.
    pub parent: u32,
    /// Dictionary: number of those blocks; 0 = none.
    pub inherited: u32,
    /// Dictionary: number of blocks in the spool, those included.
    pub written: u32,
    /// The thread's last event said that it ended.
    pub ended: AtomicU32,
    /// Instructions of the thread that are in the spool.
    pub instrs: u64,
    /// References of the thread that are in the spool.
    pub refs: u64,
    /// Chunks of the thread that are in the spool, or are being written.
    pub chunks: u64,
    call: [u8; CALL_BYTES],
    journal: [u8; JOURNAL_BYTES],
}

const SLOT_HEAD: usize = 64 << 10;
/// Where the raw entries begin, behind head and piece.
const SLOT_ENTRIES: usize = SLOT_HEAD + OUT_BYTES;
pub(super) const SLOT_BYTES: usize = SLOT_ENTRIES + RAW_ENTRIES * 8;
const _: () = assert!(size_of::<Slot>() <= SLOT_HEAD);

/// A slot mapped into this process; unmapped when dropped.
pub struct SlotMap {
    at: *mut u8,
    index: u32,
}

// SAFETY: a slot has one writer at a time, which the owner of the map arranges.
unsafe impl Send for SlotMap {}
// SAFETY: as above.
unsafe impl Sync for SlotMap {}

impl SlotMap {
    /// Maps slot `index` of the memory file that begins at `first`, whatever its state.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn map(first: *mut u8, index: u32) -> io::Result<Self> {
        let offset = super::HEADER_BYTES + index as usize * SLOT_BYTES;
        let at = map_again(first, offset, SLOT_BYTES)?;
        Ok(Self { at, index })
    }

    /// Which one it is.
    pub(super) fn index(&self) -> u32 {
        self.index
    }

    /// The head, shared with the callbacks of the owning thread.
    pub fn head(&self) -> &Slot {
        // SAFETY: the mapping is large enough and lives as long as `self`.
        unsafe { &*self.at.cast::<Slot>() }
    }

    /// The head as a pointer, for the callbacks of the owning thread.
    pub fn raw_head(&self) -> *mut Slot {
        self.at.cast()
    }

    fn entries(&self) -> *mut u64 {
        // SAFETY: the entries follow the head inside the mapping.
        unsafe { self.at.add(SLOT_ENTRIES).cast() }
    }

    /// Makes a slot that was just claimed the calling thread's.
    pub(super) fn reset(&self, kind: u32, process: u32, thread: u32) {
        let base = self.entries() as u64;
        // SAFETY: the slot was just claimed: this is its only user.
        let head = unsafe { &mut *self.raw_head() };
        head.base = base;
        head.next = base;
        head.hard_end = base + 8 * FIRST_ENTRIES as u64;
        head.soft_end = head.hard_end - 8 * crate::plugin::MARGIN as u64;
        head.kind = kind;
        head.process = process;
        head.thread = thread;
        head.pid = std::process::id();
        // SAFETY: plain system call.
        head.tid = unsafe { libc::gettid() } as u32;
        (head.join_next, head.join_end, head.join_tag) = (0, 0, 0);
        head.open = 0;
        (head.parent, head.inherited, head.written) = (0, 0, 0);
        (head.instrs, head.refs, head.chunks) = (0, 0, 0);
        for flag in [
            &head.writing,
            &head.journal_len,
            &head.call_len,
            &head.introduced,
            &head.out_state,
            &head.out_len,
            &head.ended,
        ] {
            flag.store(0, Relaxed);
        }
    }

    /// The raw entries, as words. Whatever process looks: the count follows
    /// from the owner's addresses.
    pub fn raw(&self) -> &[u64] {
        let head = self.head();
        let n = (head.next.saturating_sub(head.base) / 8) as usize;
        // SAFETY: the entries lie in the mapping and their number is bounded.
        unsafe { core::slice::from_raw_parts(self.entries(), n.min(RAW_ENTRIES)) }
    }

    /// Gets memory for all entries that a slot can hold. `false` if it has it
    /// already or there is none.
    pub fn grow(&self) -> bool {
        let end = self.head().base + 8 * RAW_ENTRIES as u64;
        if self.head().hard_end == end || self.provide(SLOT_ENTRIES, 8 * RAW_ENTRIES).is_err() {
            return false;
        }
        // SAFETY: the owner is the only writer.
        unsafe {
            let head = self.raw_head();
            (*head).soft_end += end - (*head).hard_end;
            (*head).hard_end = end;
        }
        true
    }

    /// Gets the memory of a new slot: of the piece, only when there is one.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn provide_first(&self, kind: u32) -> io::Result<()> {
        self.provide(0, SLOT_HEAD)?;
        match kind {
            THREAD => self.provide(SLOT_ENTRIES, 8 * FIRST_ENTRIES),
            _ => Ok(()),
        }
    }

    /// Gets the memory of the piece.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn provide_out(&self) -> io::Result<()> {
        self.provide(SLOT_HEAD, OUT_BYTES)
    }

    /// Gets memory now: a store that finds none later would be fatal. Linux before 5.14 cannot say
    /// whether there is any, and gives it at the store.
    fn provide(&self, from: usize, len: usize) -> io::Result<()> {
        // SAFETY: the range lies in the mapping, and its content stays.
        let got =
            unsafe { libc::madvise(self.at.add(from).cast(), len, libc::MADV_POPULATE_WRITE) };
        match io::Error::last_os_error() {
            _ if got == 0 => Ok(()),
            e if e.raw_os_error() == Some(libc::EINVAL) => Ok(()),
            e => Err(e),
        }
    }

    /// The bytes of the piece.
    pub(super) fn out(&self) -> &[u8] {
        let len = (self.head().out_len.load(Acquire) as usize).min(OUT_BYTES);
        // SAFETY: the piece lies in the mapping.
        unsafe { core::slice::from_raw_parts(self.at.add(SLOT_HEAD), len) }
    }

    /// Writes the piece, at most [`OUT_BYTES`] of it.
    pub(super) fn write_out(&self, bytes: &[u8]) {
        let len = bytes.len().min(OUT_BYTES);
        // SAFETY: within the piece; the owner is the only writer.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at.add(SLOT_HEAD), len) };
        self.head().out_len.store(len as u32, Release);
    }

    /// Index of the next raw entry.
    pub fn position(&self) -> usize {
        self.raw().len()
    }

    /// The journal's bytes in use.
    pub fn journal(&self) -> &[u8] {
        let head = self.head();
        &head.journal[..(head.journal_len.load(Acquire) as usize).min(JOURNAL_BYTES)]
    }

    /// The bytes of the call that the thread is in.
    pub fn call(&self) -> &[u8] {
        let head = self.head();
        &head.call[..(head.call_len.load(Acquire) as usize).min(CALL_BYTES)]
    }

    /// Appends to the journal; `false` if it does not fit.
    pub fn write_journal(&self, bytes: &[u8]) -> bool {
        let len = self.journal().len();
        if bytes.len() > JOURNAL_BYTES - len {
            return false;
        }
        // SAFETY: within the array; the owner is the only writer.
        unsafe {
            let to = (&raw mut (*self.raw_head()).journal).cast::<u8>().add(len);
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
        let len = (len + bytes.len()) as u32;
        self.head().journal_len.store(len, Release);
        true
    }

    /// Sets the call that the thread is in (none if it does not fit).
    pub fn write_call(&self, bytes: &[u8]) {
        let len = if bytes.len() <= CALL_BYTES {
            bytes.len()
        } else {
            0
        };
        // SAFETY: within the array; the owner is the only writer.
        unsafe {
            let to = (&raw mut (*self.raw_head()).call).cast::<u8>();
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, len);
        }
        self.head().call_len.store(len as u32, Release);
    }

    /// Tells who ends the recording that what the slot holds is about to be written to the
    /// spool. `false` if it has ended: the driver takes what the slot holds, or, at the limit, nobody
    /// does. The owner ends it with [`done_writing`](Self::done_writing).
    pub fn begin_writing(&self, shared: &super::Shared) -> bool {
        // Either this sees that the recording ends, or who ends it sees this.
        self.head().writing.store(PREPARES, SeqCst);
        let may = !shared.no_more_records();
        if !may {
            self.head().writing.store(0, Release);
        }
        may
    }

    /// The record of one more chunk is complete, and is appended now.
    pub fn appends_chunk(&self) {
        // SAFETY: the owner is the only writer.
        unsafe { (*self.raw_head()).chunks += 1 };
        self.head().writing.store(APPENDS, Release);
    }

    /// What was begun is in the spool, or given up.
    pub fn done_writing(&self) {
        self.head().writing.store(0, Release);
    }

    /// Forgets raw entries and journal.
    pub fn clear(&self) {
        self.truncate(0);
    }

    /// Keeps the first `n` raw entries and forgets the journal.
    pub fn truncate(&self, n: usize) {
        let n = n.min(self.position());
        // SAFETY: the owner is the only writer.
        unsafe {
            let head = self.raw_head();
            (*head).next = (*head).base + 8 * n as u64;
        }
        self.head().journal_len.store(0, Release);
    }

    /// Dictionary: this many blocks are in the spool; the journal has no others.
    pub fn set_written(&self, blocks: u32) {
        self.clear();
        // SAFETY: the owner is the only writer.
        unsafe { (*self.raw_head()).written = blocks };
    }

    /// Dictionary: the parent's number and how many of its blocks are shared.
    pub fn set_base(&self, base: Option<(u32, u32)>) {
        let (parent, inherited) = base.unwrap_or((0, 0));
        // SAFETY: the owner is the only writer.
        unsafe {
            let head = self.raw_head();
            (*head).parent = parent;
            (*head).inherited = inherited;
            (*head).written = inherited;
        }
    }

    /// Gives the slot back.
    pub fn release(self, shared: &super::Shared) {
        self.head().call_len.store(0, Relaxed);
        self.head().state.store(FREE, Release);
        shared.give_back(self.index);
    }
}

impl Drop for SlotMap {
    fn drop(&mut self) {
        // SAFETY: this mapping is owned here and nobody keeps a pointer to it.
        unsafe { libc::munmap(self.at.cast(), SLOT_BYTES) };
    }
}

/// Maps the beginning of the memory file.
///
/// # Errors
/// The system's.
pub(super) fn map_first(fd: &OwnedFd, len: usize) -> io::Result<*mut u8> {
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address that the kernel chooses.
    let at = unsafe {
        libc::mmap(
            core::ptr::null_mut(),
            len,
            prot,
            libc::MAP_SHARED,
            fd.as_raw_fd(),
            0,
        )
    };
    mapped(at)
}

/// Maps a further part of the file whose beginning is mapped at `first`, without a descriptor:
/// `mremap` of no bytes makes a second mapping of a shared one, of any length. It has to begin
/// where that one does, so what lies before the part is unmapped again.
fn map_again(first: *mut u8, offset: usize, len: usize) -> io::Result<*mut u8> {
    // SAFETY: `first` is a shared mapping and stays as it is; the kernel chooses the new address.
    let at = unsafe { libc::mremap(first.cast(), 0, offset + len, libc::MREMAP_MAYMOVE) };
    let at = mapped(at)?;
    // SAFETY: the range belongs to the mapping that was just made.
    unsafe {
        libc::munmap(at.cast(), offset);
        Ok(at.add(offset))
    }
}

fn mapped(at: *mut libc::c_void) -> io::Result<*mut u8> {
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(at.cast())
}
