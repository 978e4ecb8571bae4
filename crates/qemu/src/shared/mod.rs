//! The memory that all processes of a recording share.
//!
//! It is an anonymous memory file of the driver, which processes of the
//! recording open through `/proc/<driver>/fd/<n>`, once in each image: it needs no
//! disk, leaves nothing behind, and survives any process of the recording. Later
//! mappings are made from the first one, which needs no descriptor and no path: the
//! program may have none left, or have changed its root directory or its user.
//!
//! * The [`Header`] numbers processes, threads and events, so that the numbers
//!   are unique over fork and exec, and carries what has gone wrong.
//! * A [`Slot`] holds what one thread (or the dictionary of one process) has
//!   gathered and not yet written to the spool. Because it lies here rather
//!   than in the process, nothing is lost when a signal ends the process: the
//!   driver writes what it finds. A slot belongs to one process; a forked child
//!   gives up its parent's slots and takes its own.
//! * `handover`: how a record gets from a slot to the driver; `tally`: what is counted.
//!
//! Nothing here is a lock: slots are claimed by a bit each and then have one writer.

use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::*};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::emulator::Emulator;

mod handover;
mod slot;
mod tally;

pub use handover::Piece;
pub use slot::*;
pub use tally::{Areas, NR_LIMITS, Tally};

const MAGIC: u64 = 0x3254_4853_4442_4c50;
const HEADER_BYTES: usize = 64 << 10;
const _: () = assert!(size_of::<Header>() <= HEADER_BYTES);
/// Slots that can be claimed: threads that are alive at once, and as many
/// processes.
pub const MAX_SLOTS: u32 = 8192;
const MAX_PATH: usize = 4096;
const NR_NOTICES: usize = 64;
const NOTICE_BYTES: usize = 512;
const NR_ENDS: usize = 256;

/// What all processes share.
#[repr(C)]
pub struct Header {
    magic: u64,
    /// First error that stopped the recording, as an errno; 0 = none.
    failure: AtomicI32,
    /// Why the recording goes on no longer: [`AT_LIMIT`], [`EARLY`]; 0 = it does.
    pub stopped: AtomicU32,
    /// Recording is between the two marks of the region (or has no region).
    pub open: AtomicU32,
    /// Programs that could not be followed.
    pub escapes: AtomicU32,
    /// Entries that did not fit and were dropped.
    pub dropped: AtomicU64,
    /// Forks that have begun and whose child has not yet taken a slot.
    pub forking: AtomicU32,
    /// Next place in the order of events.
    pub seq: AtomicU64,
    /// Number of the next process.
    pub processes: AtomicU32,
    /// Number of the next thread.
    pub threads: AtomicU32,
    /// References that were seen while the region was open.
    pub counted: AtomicU64,
    /// References to pass over at first.
    pub skip: u64,
    /// References to keep after those; `u64::MAX` = all.
    pub limit: u64,
    /// Region: number of the opening mark; `u32::MAX` = no region.
    pub region_from: u32,
    /// Region: number of the closing mark.
    pub region_to: u32,
    /// End the program when the limit is reached.
    pub stop_at_limit: AtomicU32,
    /// References that are kept.
    pub kept: AtomicU64,
    /// The region was ever open.
    pub opened: AtomicU32,
    /// Nobody takes records any more.
    closed: AtomicU32,
    /// Grows with each piece of a record; the driver sleeps on it.
    announced: AtomicU32,
    /// By slot, a bit: it has a piece for the driver.
    full: [AtomicU64; MAX_SLOTS as usize / 64],
    /// By slot, a bit: it is somebody's, so that a free one is found without mapping others.
    taken: [AtomicU64; MAX_SLOTS as usize / 64],
    /// Process id of the driver.
    driver: u32,
    /// Slots that there are.
    nr_possible: u32,
    tally: Tally,
    slots: AtomicU32,
    notices: AtomicU32,
    ends: AtomicU32,
    end: [AtomicU64; NR_ENDS],
    /// Interface version that the plugin declares.
    api: i32,
    qemu: [u8; MAX_PATH],
    plugin: [u8; MAX_PATH],
    notice: [[u8; NOTICE_BYTES]; NR_NOTICES],
}

/// The limit is reached: nothing that comes later is wanted.
pub const AT_LIMIT: u32 = 1;
/// The driver was told to end; what the processes still hold is wanted.
pub const EARLY: u32 = 2;

/// What a driver asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Slots that there are, at most [`MAX_SLOTS`].
    pub slots: u32,
    /// QEMU and the plugin, for processes that replace their image.
    pub emulator: Emulator,
    /// References to pass over.
    pub skip: u64,
    /// References to keep.
    pub limit: Option<u64>,
    /// Opening and closing mark.
    pub region: Option<(u32, u32)>,
    /// End the program at the limit.
    pub stop_at_limit: bool,
}

/// A mapping of the header, and the way to the slots.
pub struct Shared {
    header: *mut Header,
    path: PathBuf,
}

// SAFETY: the header is reached through atomics, or is constant after setup.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// Creates the memory file; the descriptor must stay open while the
    /// recording runs.
    ///
    /// # Errors
    /// The system's, and paths of 4096 bytes or more.
    pub fn create(setup: &Setup) -> io::Result<(Self, OwnedFd)> {
        // SAFETY: plain system call with a constant name.
        let fd = unsafe { libc::memfd_create(c"piebald".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and owned here.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let slots = setup.slots.min(MAX_SLOTS);
        // SAFETY: the descriptor is open.
        if unsafe { libc::ftruncate(fd.as_raw_fd(), memory_bytes(slots) as i64) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let path = PathBuf::from(format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            fd.as_raw_fd()
        ));
        let header = slot::map_first(&fd, HEADER_BYTES)?.cast::<Header>();
        // SAFETY: the mapping is large enough, zeroed, and nobody else knows it
        // yet; all zeroes is a valid header.
        let h = unsafe { &mut *header };
        h.magic = MAGIC;
        h.driver = std::process::id();
        h.nr_possible = slots;
        h.skip = setup.skip;
        h.limit = setup.limit.unwrap_or(u64::MAX);
        (h.region_from, h.region_to) = setup.region.unwrap_or((u32::MAX, u32::MAX));
        h.open = AtomicU32::new(setup.region.is_none() as u32);
        h.opened = AtomicU32::new(setup.region.is_none() as u32);
        h.stop_at_limit = AtomicU32::new(setup.stop_at_limit as u32);
        put_path(&mut h.qemu, &setup.emulator.qemu)?;
        put_path(&mut h.plugin, &setup.emulator.plugin)?;
        h.api = setup.emulator.api;
        Ok((Self { header, path }, fd))
    }

    /// Opens what a driver created.
    ///
    /// # Errors
    /// The system's; `InvalidData` if it is not a recording of this version.
    pub fn open(path: &Path) -> io::Result<Self> {
        let fd = open_rw(path)?;
        let header = slot::map_first(&fd, HEADER_BYTES)?.cast::<Header>();
        let shared = Self {
            header,
            path: path.to_owned(),
        };
        if shared.magic != MAGIC {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(shared)
    }

    /// Path by which other processes open it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// QEMU and the plugin.
    pub fn emulator(&self) -> Emulator {
        Emulator {
            qemu: get_path(&self.qemu).to_owned(),
            plugin: get_path(&self.plugin).to_owned(),
            api: self.api,
        }
    }

    /// Does recording go on?
    pub fn running(&self) -> bool {
        self.failure.load(Relaxed) == 0 && self.stopped.load(Relaxed) == 0
    }

    /// Was the driver told to end? Slots are then the driver's to read: their
    /// owners neither empty them nor give them back.
    pub fn ended_early(&self) -> bool {
        self.stopped.load(SeqCst) == EARLY
    }

    /// May no record be begun any more? The driver reads the slots then, or the processes are
    /// about to be killed at the limit, which would tear it.
    pub fn no_more_records(&self) -> bool {
        match self.stopped.load(SeqCst) {
            EARLY => true,
            AT_LIMIT => self.stop_at_limit.load(Relaxed) != 0,
            _ => false,
        }
    }

    /// Slots whose owners are about to append a record, or doing so.
    pub fn writing(&self) -> impl Iterator<Item = SlotMap> + '_ {
        let all = (0..self.nr_slots()).filter_map(|i| self.slot(i).ok());
        all.filter(|s| {
            let head = s.head();
            head.state.load(Acquire) != FREE && head.writing.load(SeqCst) != 0
        })
    }

    /// Stops the recording because of an error; the first error counts. An error of a process that
    /// goes on when the recording is closed is none.
    pub fn fail(&self, error: &io::Error) {
        if self.closed.load(Acquire) != 0 {
            return;
        }
        let errno = error.raw_os_error().unwrap_or(libc::EIO);
        let _ = self.failure.compare_exchange(0, errno, AcqRel, Relaxed);
    }

    /// The error that stopped the recording, as an errno; 0 = none.
    pub fn failure(&self) -> i32 {
        self.failure.load(Acquire)
    }

    /// Next place in the order of events.
    pub fn next_seq(&self) -> u64 {
        self.seq.fetch_add(1, Relaxed)
    }

    /// Leaves a remark for the user; beyond 64 remarks they are only counted.
    pub fn notice(&self, text: &str) {
        let i = self.notices.fetch_add(1, AcqRel) as usize;
        if i >= NR_NOTICES {
            return;
        }
        let n = text.len().min(NOTICE_BYTES - 1);
        // SAFETY: index and length are within the array, and the counter gave
        // this row to this caller alone.
        unsafe {
            let row = (&raw mut (*self.header).notice[i]).cast::<u8>();
            core::ptr::copy_nonoverlapping(text.as_ptr(), row, n);
        }
    }

    /// The remarks, and how many more there were.
    pub fn notices(&self) -> (Vec<String>, usize) {
        let n = self.notices.load(Acquire) as usize;
        let text = |row: &[u8; NOTICE_BYTES]| {
            let end = row.iter().position(|&b| b == 0).unwrap_or(NOTICE_BYTES);
            String::from_utf8_lossy(&row[..end]).into_owned()
        };
        let kept = self.notice.iter().take(n).map(text).collect();
        (kept, n.saturating_sub(NR_NOTICES))
    }

    /// Notes how a process ended, as its parent saw it (`status` of `wait`).
    pub fn note_end(&self, pid: u32, status: u32) {
        let i = self.ends.fetch_add(1, AcqRel) as usize % NR_ENDS;
        self.end[i].store((pid as u64) << 32 | status as u64, Release);
    }

    /// How a process ended, if that was noted and not overwritten since.
    pub fn end_of(&self, pid: u32) -> Option<u32> {
        let found = self.end.iter().map(|e| e.load(Acquire));
        let mut found = found.filter(|e| e >> 32 == pid as u64);
        found.next_back().map(|e| e as u32)
    }

    /// Number of slots that were ever claimed.
    pub fn nr_slots(&self) -> u32 {
        self.slots.load(Acquire).min(self.nr_possible)
    }

    /// Claims a slot for the calling thread.
    ///
    /// # Errors
    /// `EAGAIN` if all are taken; the system's when memory is short.
    pub fn claim(&self, kind: u32, process: u32, thread: u32) -> io::Result<SlotMap> {
        for index in 0..self.nr_possible {
            let (word, bit) = (&self.taken[index as usize / 64], 1 << (index % 64));
            if word.load(Relaxed) & bit != 0 || word.fetch_or(bit, AcqRel) & bit != 0 {
                continue;
            }
            let slot = self.slot(index)?;
            slot.provide_first(kind)?;
            slot.reset(kind, process, thread);
            slot.head().state.store(LIVE, Release);
            self.slots.fetch_max(index + 1, AcqRel);
            return Ok(slot);
        }
        Err(io::Error::from_raw_os_error(libc::EAGAIN))
    }

    /// Lets others claim a slot.
    fn give_back(&self, index: u32) {
        self.taken[index as usize / 64].fetch_and(!(1 << (index % 64)), Release);
    }

    /// Maps a slot of whatever state.
    ///
    /// # Errors
    /// The system's.
    pub fn slot(&self, index: u32) -> io::Result<SlotMap> {
        SlotMap::map(self.header.cast(), index)
    }
}

/// Bytes of the memory file with so many slots. Most of them are never used.
pub const fn memory_bytes(slots: u32) -> u64 {
    (HEADER_BYTES + slots as usize * slot::SLOT_BYTES) as u64
}

impl core::ops::Deref for Shared {
    type Target = Header;

    fn deref(&self) -> &Header {
        // SAFETY: mapped for the life of the process; fields that change are
        // atomics, notices are read only after the writers ended.
        unsafe { &*self.header }
    }
}

fn open_rw(path: &Path) -> io::Result<OwnedFd> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_CLOEXEC);
    Ok(options.open(path)?.into())
}

fn put_path(to: &mut [u8; MAX_PATH], path: &Path) -> io::Result<()> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() >= MAX_PATH {
        return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    to[..bytes.len()].copy_from_slice(bytes);
    Ok(())
}

fn get_path(from: &[u8; MAX_PATH]) -> &Path {
    let end = from.iter().position(|&b| b == 0).unwrap_or(MAX_PATH);
    Path::new(OsStr::from_bytes(&from[..end]))
}
