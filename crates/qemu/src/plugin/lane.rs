//! One thread's stream: what is in its slot, and how it is written.
//!
//! Lock order: the process's lock, then a lane's lock. A lane's
//! lock is held by its own thread in slow paths, and by the thread that ends the
//! process once QEMU has stopped all others.

use core::ffi::c_uint;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::io;
use std::sync::{Mutex, MutexGuard};

use piebald_trace::recording::ChunkEncoder;
use piebald_trace::recording::model::{Event, EventKind, Raw};

use super::hot::{MAX_VCPUS, push_checked, set_slot, slot_of};
use super::limits;
use super::process::{self, Process};
use crate::shared::{LIVE, REPLACED, Shared, Slot, SlotMap, THREAD};

/// Boxed, so that the empty table is all zeroes: it takes no room in the library's file, and a forked
/// child, which empties it, touches little memory.
static COLD: [Mutex<Option<Box<Lane>>>; MAX_VCPUS] = [const { Mutex::new(None) }; MAX_VCPUS];

/// A thread's slot and encoder.
pub struct Lane {
    slot: SlotMap,
    encoder: Option<ChunkEncoder>,
    record: Vec<u8>,
    /// The system call that the thread is in.
    pub call: Option<super::calls::Pending>,
}

/// The cold part of a lane, locked.
pub fn lane(vcpu: c_uint) -> Option<MutexGuard<'static, Option<Box<Lane>>>> {
    let cold = COLD.get(vcpu as usize)?;
    Some(cold.lock().unwrap_or_else(|e| e.into_inner()))
}

/// A slot with room for one more block: the thread's own after writing it, or a
/// new one if the thread has just begun. Null if the thread is not recorded.
#[cold]
pub fn make_room(vcpu: c_uint) -> *mut Slot {
    let Some(shared) = super::shared() else {
        return core::ptr::null_mut();
    };
    super::enter_thread(vcpu);
    let Some(mut cold) = lane(vcpu) else {
        super::dropped();
        return core::ptr::null_mut();
    };
    if let Some(lane) = cold.as_mut() {
        if shared.ended_early() || !lane.slot.grow() && !lane.flush(shared) {
            set_slot(vcpu, core::ptr::null_mut());
        }
        return slot_of(vcpu);
    }
    if !shared.running() {
        return core::ptr::null_mut();
    }
    match begin(shared, vcpu) {
        Ok(lane) => {
            *cold = Some(Box::new(lane));
            slot_of(vcpu)
        }
        Err(e) => {
            shared.fail(&e);
            core::ptr::null_mut()
        }
    }
}

/// As [`make_room`], in the middle of a block that may have any number of entries. What it
/// still does counts as an execution of its own, unless the slot could grow.
#[cold]
pub fn make_room_within(vcpu: c_uint) -> *mut Slot {
    let (Some(shared), Some(mut cold)) = (super::shared(), lane(vcpu)) else {
        return core::ptr::null_mut();
    };
    let Some(lane) = cold.as_mut() else {
        return core::ptr::null_mut();
    };
    if shared.ended_early() || !lane.slot.grow() && !lane.split(shared, true) {
        set_slot(vcpu, core::ptr::null_mut());
    }
    slot_of(vcpu)
}

fn begin(shared: &'static Shared, vcpu: c_uint) -> io::Result<Lane> {
    let (number, first) = process::begin_thread();
    let mut lane = Lane::claim(shared, number)?;
    set_slot(vcpu, lane.slot.raw_head());
    let argv = if first { process::argv() } else { Vec::new() };
    lane.event(shared, start(argv));
    if first {
        let name = process::image_name();
        for kind in super::maps::initial(&name, super::guest_base(), super::guest::read) {
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
        if !self.flush(shared) {
            return;
        }
        let Ok(bytes) = postcard::to_stdvec(&(0u32, &event)) else {
            return;
        };
        if !self.slot.write_journal(&bytes) {
            // Larger than a journal (a very long argument list): at once.
            if self.slot.begin_writing(shared) {
                self.write(shared, &[], &[(0, event)]);
                self.slot.done_writing();
            }
        }
    }

    /// Notes the call that the thread is in, for whoever finds the slot if the
    /// thread never comes back.
    pub fn note_call(&mut self, event: Option<&Event>) {
        let bytes = event.and_then(|e| postcard::to_stdvec(e).ok());
        self.slot.write_call(&bytes.unwrap_or_default());
    }

    /// Writes what the slot holds to the spool, and empties it. `false` if the
    /// driver was told to end: what the slot holds stays for it. The program may end here.
    pub fn flush(&mut self, shared: &'static Shared) -> bool {
        let events = parse_journal(self.slot.journal());
        // SAFETY: `Raw` is a transparent word; the slot is not written to while
        // its thread is here.
        let raw: &'static [Raw] = unsafe {
            let words = self.slot.raw();
            core::slice::from_raw_parts(words.as_ptr().cast(), words.len())
        };
        let (mut begun, mut is_end, mut handed) = (false, false, true);
        if (!raw.is_empty() || !events.is_empty()) && shared.running() {
            // Before anything is counted: who ends the recording waits for what was.
            begun = self.slot.begin_writing(shared);
        }
        if begun {
            let cut = limits::cut(shared, raw, events);
            if !cut.raw.is_empty() || !cut.events.is_empty() {
                handed = self.write(shared, cut.raw, &cut.events);
            }
            is_end = cut.last && limits::reached(shared);
        }
        let left = !(begun && handed) && shared.ended_early();
        if !left {
            self.slot.clear();
        }
        self.slot.done_writing();
        // Not before: it waits for all who write.
        if is_end {
            limits::end_program(shared);
        }
        !left
    }

    /// Ends what was gathered up to here, in the middle of a block: writes it or,
    /// unless `keep`, forgets its references. What the block still does counts as
    /// an execution of its own. As [`flush`](Self::flush).
    pub fn split(&mut self, shared: &'static Shared, keep: bool) -> bool {
        let is_block = |e: &&u64| Raw(**e).index() == Raw::NO_INDEX;
        let block = self.slot.raw().iter().rfind(is_block).copied();
        if !keep {
            let events = parse_journal(self.slot.journal());
            self.slot.clear();
            for (_, event) in events {
                self.span(shared, event);
            }
        }
        let emptied = self.flush(shared);
        if let Some(block) = block.filter(|_| emptied) {
            // SAFETY: the slot belongs to this thread and was just emptied.
            unsafe { push_checked(self.slot.raw_head(), block) };
        }
        emptied
    }

    /// Between `begin_writing` and `done_writing` of the slot. `false` if it was not written.
    fn write(&mut self, shared: &'static Shared, raw: &[Raw], events: &[(usize, Event)]) -> bool {
        let written = self.try_write(shared, raw, events);
        if let Err(e) = &written {
            shared.fail(e);
        }
        written.is_ok()
    }

    fn try_write(
        &mut self,
        shared: &Shared,
        raw: &[Raw],
        events: &[(usize, Event)],
    ) -> io::Result<()> {
        process::write_dictionary(shared)?;
        self.encode(shared, raw, events)?;
        self.slot.appends_chunk();
        self.slot.hand_over(shared, &self.record)
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

    fn finish(mut self, shared: &'static Shared, status: i32) {
        if self.slot.head().ended.swap(1, AcqRel) == 0 {
            self.event(shared, EventKind::Exit { status });
        }
        if self.flush(shared) {
            self.slot.release(shared);
        }
    }
}

/// The thread of this virtual processor ends.
pub fn end_thread(vcpu: c_uint, status: i32) {
    let Some(shared) = super::shared() else {
        return;
    };
    if let Some(lane) = lane(vcpu).and_then(|mut l| l.take()) {
        set_slot(vcpu, core::ptr::null_mut());
        lane.finish(shared, status);
    }
}

/// The process ends: all threads that still have a lane end with it.
pub fn end_all(status: i32) {
    for cold in &COLD {
        let taken = cold.lock().unwrap_or_else(|e| e.into_inner()).take();
        if let (Some(mut lane), Some(shared)) = (taken, super::shared()) {
            if let Some(call) = lane.call.take() {
                lane.span(shared, call.unfinished());
            }
            lane.finish(shared, status);
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
        set_slot(i as c_uint, core::ptr::null_mut());
    }
    let Some(mut cold) = lane(vcpu) else {
        return;
    };
    match Lane::claim(shared, process) {
        Ok(mut lane) => {
            set_slot(vcpu, lane.slot.raw_head());
            lane.event(shared, start(Vec::new()));
            *cold = Some(Box::new(lane));
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
    if !lane.flush(shared) {
        return;
    }
    let events: Vec<_> = events.into_iter().map(|e| (0, e)).collect();
    if let Err(e) = lane.encode(shared, &[], &events) {
        return shared.fail(&e);
    }
    if !lane.slot.write_journal(&lane.record) {
        // A very long argument list. A failing exec then leaves an `Exec` that
        // did not happen, followed by the call that says so.
        if lane.slot.begin_writing(shared) {
            lane.slot.appends_chunk();
            if let Err(e) = lane.slot.hand_over(shared, &lane.record) {
                shared.fail(&e);
            }
            lane.slot.done_writing();
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
        if shared.running() && !slot.journal().is_empty() && slot.begin_writing(shared) {
            if let Err(e) = slot.hand_over(shared, slot.journal()) {
                shared.fail(&e);
            }
            slot.done_writing();
        } else if shared.ended_early() {
            // The driver appends it.
            continue;
        }
        slot.release(shared);
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
