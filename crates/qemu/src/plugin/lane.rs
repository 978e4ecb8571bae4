//! One thread's stream: the callbacks that fill it, and how it is written.
//!
//! The callbacks run for each block and each access, so all they do is store a
//! word and bump a pointer. Only the entry of a block looks whether the slot is
//! full: a margin behind that point holds whatever the block can still add.
//!
//! Lock order: [`process`](super::process) lock, then a lane's lock. A lane's
//! lock is held by its own thread in slow paths, and by the thread that ends the
//! process once QEMU has stopped all others.

use core::cell::UnsafeCell;
use core::ffi::{c_uint, c_void};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::io;
use std::sync::{Mutex, MutexGuard};

use piebald_trace::recording::ChunkEncoder;
use piebald_trace::recording::model::{Event, EventKind, Raw};

use super::process::{self, Process};
use super::{api, limits};
use crate::shared::{LIVE, REPLACED, Shared, Slot, SlotMap, THREAD};
use crate::spool;

/// Entries behind the point at which a slot counts as full. A block has at most
/// 512 instructions (`TCG_MAX_INSNS`) with two plain accesses each; all other
/// accesses check for themselves.
pub const MARGIN: usize = 2048;
/// Threads of one process that can be told apart.
const MAX_VCPUS: usize = 16384;

struct Hot(UnsafeCell<[*mut Slot; MAX_VCPUS]>);

// SAFETY: each entry is used by one thread (that of the virtual processor);
// other threads write it only while that thread does not run.
unsafe impl Sync for Hot {}

static HOT: Hot = Hot(UnsafeCell::new([core::ptr::null_mut(); MAX_VCPUS]));
static COLD: [Mutex<Option<Lane>>; MAX_VCPUS] = [const { Mutex::new(None) }; MAX_VCPUS];

/// A thread's slot and encoder.
pub struct Lane {
    slot: SlotMap,
    encoder: Option<ChunkEncoder>,
    record: Vec<u8>,
    /// The system call that the thread is in.
    pub call: Option<super::calls::Pending>,
}

fn hot(vcpu: c_uint) -> *mut Slot {
    let all = HOT.0.get().cast::<*mut Slot>();
    // SAFETY: bounded by the comparison; the entry belongs to this thread.
    unsafe {
        if (vcpu as usize) < MAX_VCPUS {
            *all.add(vcpu as usize)
        } else {
            core::ptr::null_mut()
        }
    }
}

fn set_hot(vcpu: c_uint, slot: *mut Slot) {
    if (vcpu as usize) < MAX_VCPUS {
        // SAFETY: bounded; see `Hot`.
        unsafe { *HOT.0.get().cast::<*mut Slot>().add(vcpu as usize) = slot };
    }
}

/// The cold part of a lane, locked.
pub fn lane(vcpu: c_uint) -> Option<MutexGuard<'static, Option<Lane>>> {
    let cold = COLD.get(vcpu as usize)?;
    Some(cold.lock().unwrap_or_else(|e| e.into_inner()))
}

/// Runs when a block is entered; `data` is its raw entry.
///
/// # Safety
/// Called by QEMU on the thread of this virtual processor.
pub unsafe extern "C" fn on_block(vcpu: c_uint, data: *mut c_void) {
    let mut slot = hot(vcpu);
    // SAFETY: a slot that is set stays mapped while its thread runs.
    if slot.is_null() || unsafe { (*slot).next >= (*slot).soft_end } {
        slot = make_room(vcpu);
        if slot.is_null() {
            return;
        }
    }
    // SAFETY: there is room, as was just checked.
    unsafe { push(slot, data as u64) }
}

/// Runs for an access that is one report; `data` is the raw entry without its
/// address.
///
/// # Safety
/// As [`on_block`]; a block was entered before.
pub unsafe extern "C" fn on_plain(vcpu: c_uint, _: api::MemInfo, addr: u64, data: *mut c_void) {
    let slot = hot(vcpu);
    if !slot.is_null() {
        // SAFETY: the margin has room for all plain accesses of a block.
        unsafe { push(slot, data as u64 | addr & ADDR) }
    }
}

/// Runs for each piece of a joined access; `data` is the raw entry whose address
/// bits hold the access's size.
///
/// # Safety
/// As [`on_plain`].
pub unsafe extern "C" fn on_join(vcpu: c_uint, info: api::MemInfo, addr: u64, data: *mut c_void) {
    let slot = hot(vcpu);
    if slot.is_null() {
        return;
    }
    let tag = data as u64 & !ADDR;
    let size = data as u64 & ADDR;
    // SAFETY: the slot belongs to this thread.
    unsafe {
        let piece = super::access_bytes(info);
        let s = &mut *slot;
        if addr == s.join_next && tag == s.join_tag && addr < s.join_end {
            s.join_next = addr + piece;
            return;
        }
        s.join_tag = tag;
        s.join_next = addr.wrapping_add(piece);
        s.join_end = addr.wrapping_add(size);
        push_checked(slot, tag | addr & ADDR);
    }
}

/// Runs for accesses of which there may be any number.
///
/// # Safety
/// As [`on_plain`].
pub unsafe extern "C" fn on_piece(vcpu: c_uint, _: api::MemInfo, addr: u64, data: *mut c_void) {
    let slot = hot(vcpu);
    if !slot.is_null() {
        // SAFETY: the slot belongs to this thread.
        unsafe { push_checked(slot, data as u64 | addr & ADDR) }
    }
}

/// Runs for the load and the store of an update; `data` is the raw entry without
/// its address. Atomic instructions of threaded programs are one report.
///
/// # Safety
/// As [`on_plain`].
pub unsafe extern "C" fn on_update(vcpu: c_uint, info: api::MemInfo, addr: u64, data: *mut c_void) {
    let slot = hot(vcpu);
    if slot.is_null() {
        return;
    }
    // SAFETY: the slot belongs to this thread; `next` lies behind at least the
    // entry of the block.
    unsafe {
        let last = *(((*slot).next - 8) as *const u64);
        if !(super::is_store(info) && last & !ADDR == data as u64) {
            push_checked(slot, data as u64 | addr & ADDR);
        }
    }
}

/// Runs for the load and the store of an instruction that does both; `data` is
/// the raw entry of the load, whose address bits hold the index of the store.
///
/// # Safety
/// As [`on_plain`].
pub unsafe extern "C" fn on_load_store(
    vcpu: c_uint,
    info: api::MemInfo,
    addr: u64,
    data: *mut c_void,
) {
    let slot = hot(vcpu);
    if slot.is_null() {
        return;
    }
    let tag = if super::is_store(info) {
        (data as u64 & ADDR) << TAG
    } else {
        data as u64 & !ADDR
    };
    // SAFETY: the slot belongs to this thread.
    unsafe { push_checked(slot, tag | addr & ADDR) }
}

/// Runs for the two loads of one instruction, in turn; `data` is the raw entry
/// of the first load, whose address bits hold the index of the second.
///
/// # Safety
/// As [`on_plain`].
pub unsafe extern "C" fn on_alternate(vcpu: c_uint, _: api::MemInfo, addr: u64, data: *mut c_void) {
    let slot = hot(vcpu);
    if slot.is_null() {
        return;
    }
    let first = data as u64 & !ADDR;
    let second = (data as u64 & ADDR) << TAG;
    // SAFETY: the slot belongs to this thread; `next` lies behind at least the
    // entry of the block.
    unsafe {
        let last = *(((*slot).next - 8) as *const u64);
        let tag = if last & !ADDR == first { second } else { first };
        push_checked(slot, tag | addr & ADDR);
    }
}

const TAG: u32 = 48;
const ADDR: u64 = (1 << TAG) - 1;

/// # Safety
/// The slot belongs to this thread and has room.
unsafe fn push(slot: *mut Slot, entry: u64) {
    // SAFETY: the caller's word.
    unsafe {
        let next = (*slot).next;
        *(next as *mut u64) = entry;
        (*slot).next = next + 8;
    }
}

/// # Safety
/// The slot belongs to this thread.
unsafe fn push_checked(slot: *mut Slot, entry: u64) {
    // SAFETY: the caller's word; room is checked.
    unsafe {
        if (*slot).next < (*slot).hard_end {
            push(slot, entry);
        } else {
            super::dropped();
        }
    }
}

/// A slot with room for one more block: the thread's own after writing it, or a
/// new one if the thread has just begun. Null if the thread is not recorded.
#[cold]
fn make_room(vcpu: c_uint) -> *mut Slot {
    let Some(shared) = super::shared() else {
        return core::ptr::null_mut();
    };
    super::enter_thread(vcpu);
    let Some(mut cold) = lane(vcpu) else {
        super::dropped();
        return core::ptr::null_mut();
    };
    if let Some(lane) = cold.as_mut() {
        lane.flush(shared);
        return hot(vcpu);
    }
    if !shared.running() {
        return core::ptr::null_mut();
    }
    match begin(shared, vcpu) {
        Ok(lane) => {
            *cold = Some(lane);
            hot(vcpu)
        }
        Err(e) => {
            shared.fail(&e);
            core::ptr::null_mut()
        }
    }
}

fn begin(shared: &'static Shared, vcpu: c_uint) -> io::Result<Lane> {
    let (number, first) = process::begin_thread();
    let mut lane = Lane::claim(shared, number)?;
    set_hot(vcpu, lane.slot.raw_head());
    let argv = if first { process::argv() } else { Vec::new() };
    lane.event(shared, start(argv));
    if first {
        for kind in super::maps::initial() {
            lane.event(shared, kind);
        }
    }
    Ok(lane)
}

fn start(argv: Vec<String>) -> EventKind {
    EventKind::Start {
        pid: std::process::id(),
        // SAFETY: plain system call.
        tid: unsafe { libc::gettid() } as u32,
        argv,
    }
}

impl Lane {
    fn claim(shared: &Shared, process: u32) -> io::Result<Self> {
        let thread = shared.threads.fetch_add(1, Relaxed);
        Ok(Self {
            slot: shared.claim(THREAD, process, thread)?,
            encoder: None,
            record: Vec::new(),
            call: None,
        })
    }

    /// Adds an event that is a point in time, here and now.
    pub fn event(&mut self, shared: &'static Shared, kind: EventKind) {
        let seq = shared.next_seq();
        self.span(
            shared,
            Event {
                seq,
                seq_end: seq,
                kind,
            },
        );
    }

    /// Adds an event at this place of the stream.
    pub fn span(&mut self, shared: &'static Shared, event: Event) {
        self.span_at(shared, self.slot.position(), event);
    }

    fn span_at(&mut self, shared: &'static Shared, place: usize, event: Event) {
        if !shared.running() {
            return;
        }
        let Ok(bytes) = postcard::to_stdvec(&(place as u32, &event)) else {
            return;
        };
        if self.slot.write_journal(&bytes) {
            return;
        }
        self.flush(shared);
        let Ok(bytes) = postcard::to_stdvec(&(0u32, &event)) else {
            return;
        };
        if !self.slot.write_journal(&bytes) {
            // Larger than a journal (a very long argument list): at once.
            self.write(shared, &[], &[(0, event)]);
        }
    }

    /// Notes the call that the thread is in, for whoever finds the slot if the
    /// thread never comes back.
    pub fn note_call(&mut self, event: Option<&Event>) {
        let bytes = event.and_then(|e| postcard::to_stdvec(e).ok());
        self.slot.write_call(&bytes.unwrap_or_default());
    }

    /// Writes what the slot holds to the spool, and empties it.
    pub fn flush(&mut self, shared: &'static Shared) {
        let events = parse_journal(self.slot.journal());
        // SAFETY: `Raw` is a transparent word; the slot is not written to while
        // its thread is here.
        let raw: &'static [Raw] = unsafe {
            let words = self.slot.raw();
            core::slice::from_raw_parts(words.as_ptr().cast(), words.len())
        };
        if (!raw.is_empty() || !events.is_empty()) && shared.running() {
            let cut = limits::cut(shared, raw, events);
            if !cut.raw.is_empty() || !cut.events.is_empty() {
                self.write(shared, cut.raw, &cut.events);
            }
            if cut.last {
                limits::reached(shared);
            }
        }
        self.slot.clear();
        self.slot.head().writing.store(0, Release);
    }

    /// Ends what was gathered up to here, in the middle of a block: writes it or,
    /// unless `keep`, forgets its references. What the block still does counts as
    /// an execution of its own.
    pub fn split(&mut self, shared: &'static Shared, keep: bool) {
        let is_block = |e: &&u64| Raw(**e).index() == Raw::NO_INDEX;
        let block = self.slot.raw().iter().rfind(is_block).copied();
        if !keep {
            let events = parse_journal(self.slot.journal());
            self.slot.clear();
            for (_, event) in events {
                self.span(shared, event);
            }
        }
        self.flush(shared);
        if let Some(block) = block {
            // SAFETY: the slot belongs to this thread and was just emptied.
            unsafe { push_checked(self.slot.raw_head(), block) };
        }
    }

    fn write(&mut self, shared: &'static Shared, raw: &[Raw], events: &[(usize, Event)]) {
        if let Err(e) = self.try_write(shared, raw, events) {
            shared.fail(&e);
        }
    }

    fn try_write(
        &mut self,
        shared: &Shared,
        raw: &[Raw],
        events: &[(usize, Event)],
    ) -> io::Result<()> {
        process::write_dictionary(shared)?;
        self.encode(shared, raw, events)?;
        self.slot.head().writing.store(1, Release);
        spool::append(shared.spool(), &self.record)
    }

    /// Encodes a chunk into `self.record`.
    fn encode(
        &mut self,
        shared: &Shared,
        raw: &[Raw],
        events: &[(usize, Event)],
    ) -> io::Result<()> {
        self.record.clear();
        let head = self.slot.head();
        if self.encoder.is_none() {
            let new = ChunkEncoder::new(head.process, head.thread, head.pid, head.tid);
            self.encoder = Some(new.map_err(io::Error::other)?);
        }
        let Some(encoder) = self.encoder.as_mut() else {
            return Ok(());
        };
        let record = &mut self.record;
        match process::with(|p: &Process| encoder.encode(&p.blocks, raw, events, record)) {
            Some(Err(e)) => {
                shared.notice(&format!("thread {}: {e}", head.thread));
                Err(io::Error::from_raw_os_error(libc::EPROTO))
            }
            Some(Ok(summary)) => {
                // SAFETY: the owner is the only writer.
                unsafe {
                    let head = self.slot.raw_head();
                    (*head).instrs += summary.instrs;
                    (*head).refs += u64::from(summary.refs);
                }
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn finish(mut self, shared: &'static Shared, status: Option<i32>) {
        if let Some(status) = status {
            if self.slot.head().ended.swap(1, AcqRel) == 0 {
                self.event(shared, EventKind::Exit { status });
            }
        }
        self.flush(shared);
        self.slot.release();
    }
}

/// The thread of this virtual processor ends.
pub fn end_thread(vcpu: c_uint, status: i32) {
    let Some(shared) = super::shared() else {
        return;
    };
    if let Some(lane) = lane(vcpu).and_then(|mut l| l.take()) {
        set_hot(vcpu, core::ptr::null_mut());
        lane.finish(shared, Some(status));
    }
}

/// The process ends: all threads that still have a lane end with it.
pub fn end_all(status: i32) {
    for vcpu in 0..MAX_VCPUS {
        let taken = COLD[vcpu].lock().unwrap_or_else(|e| e.into_inner()).take();
        if let (Some(mut lane), Some(shared)) = (taken, super::shared()) {
            if let Some(call) = lane.call.take() {
                lane.span(shared, call.unfinished());
            }
            lane.finish(shared, Some(status));
        }
    }
}

/// In a forked child: gives up all lanes of the parent and begins the stream of
/// the thread that forked.
pub fn after_fork(shared: &'static Shared, vcpu: c_uint, process: u32) {
    for (i, cold) in COLD.iter().enumerate() {
        // The parent's other threads do not exist here, so a lock that one of
        // them held would never be released. The lane is leaked with its
        // mapping: its memory may be half-written.
        // SAFETY: this is the only thread of the process.
        unsafe {
            core::ptr::write((&raw const *cold).cast_mut(), Mutex::new(None));
        }
        set_hot(i as c_uint, core::ptr::null_mut());
    }
    let Some(mut cold) = lane(vcpu) else {
        return;
    };
    match Lane::claim(shared, process) {
        Ok(mut lane) => {
            set_hot(vcpu, lane.slot.raw_head());
            lane.event(shared, start(Vec::new()));
            *cold = Some(lane);
        }
        Err(e) => shared.fail(&e),
    }
}

/// Before the image of the process is replaced: writes the thread's stream and
/// leaves the record of its last events in the slot, for the new image to append
/// ([`finish_replaced`]). [`exec_failed`] undoes it.
pub fn before_exec(shared: &'static Shared, vcpu: c_uint, events: Vec<Event>) {
    let Some(mut cold) = lane(vcpu) else {
        return;
    };
    let Some(lane) = cold.as_mut().filter(|_| shared.running()) else {
        return;
    };
    lane.flush(shared);
    let events: Vec<_> = events.into_iter().map(|e| (0, e)).collect();
    if let Err(e) = lane.encode(shared, &[], &events) {
        return shared.fail(&e);
    }
    if !lane.slot.write_journal(&lane.record) {
        // A very long argument list. A failing exec then leaves an `Exec` that
        // did not happen, followed by the call that says so.
        if let Err(e) = spool::append(shared.spool(), &lane.record) {
            shared.fail(&e);
        }
    }
    lane.slot.head().state.store(REPLACED, Release);
    mark_ended(vcpu);
}

/// The process's other threads end with its image: that is no loss.
fn mark_ended(but: c_uint) {
    for (vcpu, cold) in COLD.iter().enumerate() {
        if vcpu as c_uint != but
            && let Ok(guard) = cold.try_lock()
            && let Some(lane) = guard.as_ref()
        {
            lane.slot
                .head()
                .ended
                .store(crate::shared::WITH_IMAGE, Release);
        }
    }
}

/// The image was not replaced after all.
pub fn exec_failed(vcpu: c_uint) {
    if let Some(lane) = lane(vcpu).as_mut().and_then(|l| l.as_mut()) {
        lane.slot.clear();
        lane.slot.head().state.store(LIVE, Release);
    }
}

/// After the image was replaced: appends the records that the old image left in
/// its slots.
pub fn finish_replaced(shared: &Shared) {
    let pid = std::process::id();
    for index in 0..shared.nr_slots() {
        let Ok(slot) = shared.slot(index) else {
            continue;
        };
        if slot.head().pid != pid || slot.head().state.load(Acquire) != REPLACED {
            continue;
        }
        if shared.running() && !slot.journal().is_empty() {
            if let Err(e) = spool::append(shared.spool(), slot.journal()) {
                shared.fail(&e);
            }
        }
        slot.release();
    }
}

/// The events of a journal; whatever follows an unreadable one is dropped.
pub fn parse_journal(mut bytes: &[u8]) -> Vec<(usize, Event)> {
    let mut events = Vec::new();
    while !bytes.is_empty() {
        let Ok(((at, event), rest)) = postcard::take_from_bytes::<(u32, Event)>(bytes) else {
            break;
        };
        events.push((at as usize, event));
        bytes = rest;
    }
    events
}
