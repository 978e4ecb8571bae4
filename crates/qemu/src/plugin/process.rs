//! The process: its number and its dictionary of blocks.
//!
//! Block ids are dense and never change, so a forked child goes on with its
//! parent's blocks and QEMU's translated code, in which the ids are. What one
//! process translates after the fork, the other does not know.

use core::sync::atomic::Ordering::{Relaxed, Release};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::sync::{RwLock, RwLockWriteGuard};

use piebald_trace::recording::model::BlockDef;
use piebald_trace::recording::{Base, encode_dictionary};

use super::decode::{BlockDecoder, Decoded};
use crate::image::{self, Image};
use crate::shared::{DICTIONARY, REPLACED, Shared, SlotMap};

static PROCESS: RwLock<Option<Process>> = RwLock::new(None);

/// A block that was translated before.
struct Known {
    code: Box<[u8]>,
    id: u32,
}

/// A process of the recording.
pub struct Process {
    number: u32,
    base: Option<Base>,
    image: Image,
    /// Absolute path of the image.
    exe: std::path::PathBuf,
    /// Blocks by id.
    pub blocks: Vec<BlockDef>,
    /// Ids of the blocks at an address, with their code.
    ids: HashMap<u64, Vec<Known>>,
    written: usize,
    slot: Option<SlotMap>,
    begun: bool,
    decoder: BlockDecoder,
}

fn write() -> RwLockWriteGuard<'static, Option<Process>> {
    PROCESS.write().unwrap_or_else(|e| e.into_inner())
}

/// Looks at the process, if it is recorded.
pub fn with<T>(look: impl FnOnce(&Process) -> T) -> Option<T> {
    let guard = PROCESS.read().unwrap_or_else(|e| e.into_inner());
    guard.as_ref().map(look)
}

/// Begins a process with a new image, which the command line names.
///
/// # Errors
/// The system's, when shared memory is short.
pub fn begin(shared: &Shared) -> io::Result<()> {
    use std::os::unix::ffi::OsStringExt;
    let line = std::fs::read("/proc/self/cmdline")?;
    let words = line.strip_suffix(&[0]).unwrap_or(&line).split(|&b| b == 0);
    let words: Vec<_> = words
        .map(|w| std::ffi::OsString::from_vec(w.to_vec()))
        .collect();
    let image = image::image_of(&words).ok_or(io::ErrorKind::InvalidInput)?;
    let exe = std::fs::canonicalize(&image.path).unwrap_or_else(|_| image.path.clone());
    let number = shared.processes.fetch_add(1, Relaxed);
    *write() = Some(Process {
        number,
        base: None,
        image,
        exe,
        blocks: Vec::new(),
        ids: HashMap::new(),
        written: 0,
        slot: Some(shared.claim(DICTIONARY, number, 0)?),
        begun: false,
        decoder: BlockDecoder::default(),
    });
    Ok(())
}

/// Number of the process, and whether this is its first thread.
pub fn begin_thread() -> (u32, bool) {
    let mut guard = write();
    guard.as_mut().map_or((0, false), |p| {
        let first = !core::mem::replace(&mut p.begun, true);
        (p.number, first)
    })
}

/// Arguments of the image.
pub fn argv() -> Vec<String> {
    let text = |p: &Process| {
        let args = p.image.argv.iter();
        args.map(|a| a.to_string_lossy().into_owned()).collect()
    };
    with(text).unwrap_or_default()
}

/// Path of the image, as QEMU was given it.
pub fn image_name() -> std::ffi::OsString {
    with(|p| p.image.path.clone().into_os_string()).unwrap_or_default()
}

/// Absolute path of the image.
pub fn exe() -> Option<std::path::PathBuf> {
    with(|p| p.exe.clone())
}

/// Decodes a block and gives its id.
pub fn translate(
    shared: &Shared,
    addr: u64,
    bytes: &[u8],
    lengths: &[u8],
) -> Option<(u32, Decoded)> {
    let mut guard = write();
    let p = guard.as_mut()?;
    let decoded = p.decoder.decode(addr, bytes, lengths);
    let known = p.ids.entry(addr).or_default();
    if let Some(k) = known.iter().find(|k| *k.code == *bytes) {
        return Some((k.id, decoded));
    }
    let id = p.blocks.len() as u32;
    known.push(Known {
        code: bytes.into(),
        id,
    });
    p.blocks.push(decoded.def.clone());
    if let Err(e) = p.keep(shared) {
        shared.fail(&e);
    }
    Some((id, decoded))
}

impl Process {
    /// Puts the newest block where it outlives the process.
    fn keep(&mut self, shared: &Shared) -> io::Result<()> {
        let Some((block, slot)) = self.blocks.last().zip(self.slot.as_ref()) else {
            return Ok(());
        };
        let bytes = postcard::to_stdvec(block).map_err(io::Error::other)?;
        if slot.write_journal(&bytes) {
            return Ok(());
        }
        self.write_dictionary(shared, For::Room)
    }

    fn write_dictionary(&mut self, shared: &Shared, why: For) -> io::Result<()> {
        let new = self.written..self.blocks.len();
        if new.is_empty() {
            return Ok(());
        }
        let Some(slot) = &self.slot else {
            // Nothing is recorded of this process any more.
            return Ok(());
        };
        let begun = slot.begin_writing(shared);
        // A chunk that was begun is waited for, at the limit too, and is nothing without its blocks.
        if shared.ended_early() || !begun && why == For::Room {
            // The driver takes what the slot holds, if anybody does. A block that came now could
            // stand there for another.
            self.slot = None;
            return Ok(());
        }
        if !shared.running() && why == For::Room {
            slot.set_written(self.written as u32);
            slot.done_writing();
            return Ok(());
        }
        let mut record = Vec::new();
        let first = self.written as u32;
        encode_dictionary(
            self.number,
            self.base,
            first,
            &self.blocks[new],
            &mut record,
        )
        .map_err(io::Error::other)?;
        slot.hand_over(shared, &record)?;
        self.written = self.blocks.len();
        slot.set_written(self.written as u32);
        slot.done_writing();
        Ok(())
    }
}

/// Why blocks are written to the spool.
#[derive(Clone, Copy, PartialEq, Eq)]
enum For {
    /// Their slot is full.
    Room,
    /// A chunk that was begun needs them, or the process ends.
    Chunk,
}

/// Writes the blocks that are not yet in the spool, for a chunk that was begun.
///
/// # Errors
/// The system's.
pub fn write_dictionary(shared: &Shared) -> io::Result<()> {
    if with(|p| p.written == p.blocks.len()) != Some(false) {
        return Ok(());
    }
    write()
        .as_mut()
        .map_or(Ok(()), |p| p.write_dictionary(shared, For::Chunk))
}

/// The process is done: gives its dictionary's slot back.
pub fn end(shared: &Shared) {
    if let Err(e) = write_dictionary(shared) {
        shared.fail(&e);
    }
    if let Some(slot) = write().as_mut().and_then(|p| p.slot.take()) {
        slot.release(shared);
    }
}

/// The image is about to be replaced, or was not.
pub fn set_replaced(shared: &Shared, replaced: bool) {
    if let Err(e) = write_dictionary(shared) {
        shared.fail(&e);
    }
    let state = if replaced {
        REPLACED
    } else {
        crate::shared::LIVE
    };
    with(|p| {
        if let Some(slot) = &p.slot {
            slot.head().state.store(state, Release);
        }
    });
}

thread_local! {
    static HELD: RefCell<Option<RwLockWriteGuard<'static, Option<Process>>>> =
        const { RefCell::new(None) };
    static FORKED: Cell<bool> = const { Cell::new(false) };
}

/// Before a fork: no other thread may be inside the dictionary or have a record
/// half-written, or the child could never use them.
pub extern "C" fn before_fork() {
    FORKED.with(|f| f.set(false));
    HELD.with(|held| *held.borrow_mut() = Some(write()));
    if let Some(shared) = super::shared() {
        shared.forking.fetch_add(1, Relaxed);
    }
}

/// After a fork, in the parent.
pub extern "C" fn after_fork_in_parent() {
    HELD.with(|held| *held.borrow_mut() = None);
    FORKED.with(|f| f.set(true));
}

/// Did the call of this thread that has just failed try to fork?
pub fn fork_failed() -> bool {
    FORKED.with(|f| f.replace(false))
}

/// After a fork, in the child, which goes on as a process of its own.
pub extern "C" fn after_fork_in_child() {
    let Some(shared) = super::shared() else {
        return;
    };
    let number = shared.processes.fetch_add(1, Relaxed);
    super::refusals::begin_child();
    HELD.with(|held| {
        let mut held = held.borrow_mut();
        if let Some(p) = held.as_mut().and_then(|g| g.as_mut()) {
            p.adopt(shared, number);
        }
        *held = None;
    });
    super::lane::after_fork(shared, super::current_vcpu(), number);
    shared.forking.fetch_sub(1, Release);
}

impl Process {
    fn adopt(&mut self, shared: &Shared, number: u32) {
        self.base = Some(Base {
            process: self.number,
            blocks: self.blocks.len() as u32,
        });
        self.number = number;
        self.written = self.blocks.len();
        self.begun = true;
        // Dropping unmaps the parent's slot here and leaves it the parent's.
        self.slot = None;
        if !shared.running() {
            return;
        }
        match shared.claim(DICTIONARY, number, 0) {
            Ok(slot) => {
                slot.set_base(self.base.map(|b| (b.process, b.blocks)));
                self.slot = Some(slot);
            }
            Err(e) => shared.fail(&e),
        }
    }
}
