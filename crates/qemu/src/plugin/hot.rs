//! The callbacks that QEMU's translated code makes.
//!
//! They run for each block and each access, so all they do is store a word and
//! bump a pointer. Only the entry of a block looks whether the slot is full: a
//! margin behind that point holds whatever the block can still add.
//!
//! # Reports that are none of the program's
//! When QEMU itself writes to the program's memory (the frame of a signal
//! handler), it reports that to the watch that was armed last. Up to version 7.2
//! the watch of an instruction that leaves its block (`ret`, `call`) is never
//! disarmed, so such reports come after the block, in its name or in that of
//! blocks that follow. The watch of a last instruction therefore knows its block
//! and how many reports there will be; others of them are dropped. From QEMU 9 on a watch
//! ends with its block; but there a repeated string instruction is one execution of a block,
//! with thousands of reports.

use core::cell::UnsafeCell;
use core::ffi::{c_uint, c_void};

use piebald_trace::recording::model::Raw;

use super::lane::{make_room, make_room_within};
use crate::api;
use crate::shared::Slot;

/// Entries behind the point at which a slot counts as full. A block has at most
/// 512 instructions (`TCG_MAX_INSNS`) with two plain accesses each; all other
/// accesses check for themselves.
pub const MARGIN: usize = 2048;
/// Threads of one process that can be told apart.
pub const MAX_VCPUS: usize = 4096;

struct Hot(UnsafeCell<[*mut Slot; MAX_VCPUS]>);

// SAFETY: each entry is used by one thread (that of the virtual processor);
// other threads write it only while that thread does not run.
unsafe impl Sync for Hot {}

static HOT: Hot = Hot(UnsafeCell::new([core::ptr::null_mut(); MAX_VCPUS]));
/// The slot of a virtual processor; null if it has none.
pub fn slot_of(vcpu: c_uint) -> *mut Slot {
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

/// Gives a virtual processor its slot. To be called on its thread, or while that
/// does not run.
pub fn set_slot(vcpu: c_uint, slot: *mut Slot) {
    if (vcpu as usize) < MAX_VCPUS {
        // SAFETY: bounded; see `Hot`.
        unsafe { *HOT.0.get().cast::<*mut Slot>().add(vcpu as usize) = slot };
    }
}

/// Runs when a block is entered; `data` is its raw entry.
///
/// # Safety
/// Called by QEMU on the thread of this virtual processor.
pub unsafe extern "C" fn on_block(vcpu: c_uint, data: *mut c_void) {
    let mut slot = slot_of(vcpu);
    // SAFETY: a slot that is set stays mapped while its thread runs.
    if slot.is_null() || unsafe { (*slot).next >= (*slot).soft_end } {
        slot = make_room(vcpu);
        if slot.is_null() {
            return;
        }
    }
    // SAFETY: there is room, as was just checked.
    unsafe {
        push(slot, data as u64);
        (*slot).open = data as u64;
    }
}

/// Runs for an access that is one report; `data` is the raw entry without its
/// address.
///
/// # Safety
/// As [`on_block`]; a block was entered before.
pub unsafe extern "C" fn on_plain(vcpu: c_uint, _: api::MemInfo, addr: u64, data: *mut c_void) {
    let slot = slot_of(vcpu);
    if !slot.is_null() {
        // SAFETY: the margin has room for all plain accesses of a block.
        unsafe { push(slot, data as u64 | addr & ADDR) }
    }
}

/// Runs for an access of a block's last instruction that is one report; `data` is
/// the raw entry with the block's id in place of the address.
///
/// # Safety
/// As [`on_plain`].
pub unsafe extern "C" fn on_last(vcpu: c_uint, _: api::MemInfo, addr: u64, data: *mut c_void) {
    let slot = slot_of(vcpu);
    if slot.is_null() {
        return;
    }
    // SAFETY: the slot belongs to this thread; room as in `on_plain`.
    unsafe {
        if (*slot).open == BLOCK | data as u64 & ADDR {
            (*slot).open = 0;
            push(slot, data as u64 & !ADDR | addr & ADDR);
        }
    }
}

/// Runs for the load and the store of a block's last instruction, if it does
/// both, once each; `data` is the raw entry of the load with [`last_pair`] in
/// place of the address.
///
/// # Safety
/// As [`on_plain`].
pub unsafe extern "C" fn on_last_load_store(
    vcpu: c_uint,
    info: api::MemInfo,
    addr: u64,
    data: *mut c_void,
) {
    let slot = slot_of(vcpu);
    let block = BLOCK | data as u64 >> INDEX & u64::from(u32::MAX);
    // SAFETY: the slot belongs to this thread.
    if slot.is_null() || unsafe { (*slot).open } != block {
        return;
    }
    let tag = if super::is_store(info) {
        // SAFETY: as above.
        unsafe { (*slot).open = 0 };
        (data as u64 & INDEX_MASK) << TAG
    } else {
        data as u64 & !ADDR
    };
    // SAFETY: as above.
    unsafe { push_checked(slot, tag | addr & ADDR) }
}

/// What tells [`on_last_load_store`] the index of the store and the block.
pub const fn last_pair(store: u16, block: u32) -> u64 {
    (block as u64) << INDEX | store as u64
}

/// Runs for each piece of a joined access; `data` is the raw entry whose address
/// bits hold the access's size.
///
/// # Safety
/// As [`on_plain`].
pub unsafe extern "C" fn on_join(vcpu: c_uint, info: api::MemInfo, addr: u64, data: *mut c_void) {
    let slot = slot_of(vcpu);
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

/// Runs for the loads of a block's last instruction if there may be any number.
///
/// # Safety
/// As [`on_plain`].
pub unsafe extern "C" fn on_last_piece(
    vcpu: c_uint,
    info: api::MemInfo,
    addr: u64,
    data: *mut c_void,
) {
    // What QEMU writes itself is not the instruction's.
    if !super::is_store(info) {
        // SAFETY: the caller's word.
        unsafe { on_piece(vcpu, info, addr, data) }
    }
}

/// Runs for accesses of which there may be any number.
///
/// # Safety
/// As [`on_plain`].
pub unsafe extern "C" fn on_piece(vcpu: c_uint, _: api::MemInfo, addr: u64, data: *mut c_void) {
    let slot = slot_of(vcpu);
    if !slot.is_null() {
        // SAFETY: the slot belongs to this thread.
        unsafe { push_checked(slot, data as u64 | addr & ADDR) }
    }
}

/// Runs for the accesses of a repeated string instruction that makes one at a time, as
/// [`on_plain`].
///
/// # Safety
/// As [`on_plain`].
pub unsafe extern "C" fn on_repeated(vcpu: c_uint, _: api::MemInfo, addr: u64, data: *mut c_void) {
    // SAFETY: there is room, or no slot.
    unsafe {
        let slot = slot_within(vcpu);
        if !slot.is_null() {
            push(slot, data as u64 | addr & ADDR);
        }
    }
}

/// Runs for the accesses of a repeated move, as [`on_load_store`].
///
/// # Safety
/// As [`on_plain`].
pub unsafe extern "C" fn on_repeated_load_store(
    vcpu: c_uint,
    info: api::MemInfo,
    addr: u64,
    data: *mut c_void,
) {
    // SAFETY: the caller's word.
    unsafe {
        slot_within(vcpu);
        on_load_store(vcpu, info, addr, data);
    }
}

/// Runs for the loads of a repeated comparison, as [`on_alternate`].
///
/// # Safety
/// As [`on_plain`].
pub unsafe extern "C" fn on_repeated_alternate(
    vcpu: c_uint,
    info: api::MemInfo,
    addr: u64,
    data: *mut c_void,
) {
    let slot = slot_of(vcpu);
    // SAFETY: the slot belongs to this thread; `next` lies behind at least the entry of the
    // block.
    unsafe {
        let first = data as u64 & !ADDR;
        // Not between the two loads: the second is told by the first before it.
        if !slot.is_null() && *(((*slot).next - 8) as *const u64) & !ADDR != first {
            slot_within(vcpu);
        }
        on_alternate(vcpu, info, addr, data);
    }
}

/// The slot, with room for what a report adds in the middle of a block; null if there is
/// none.
///
/// # Safety
/// As [`on_plain`].
unsafe fn slot_within(vcpu: c_uint) -> *mut Slot {
    let slot = slot_of(vcpu);
    // SAFETY: a slot that is set stays mapped while its thread runs.
    match slot.is_null() || unsafe { (*slot).next < (*slot).soft_end } {
        true => slot,
        false => make_room_within(vcpu),
    }
}

/// Runs before an instruction that accesses a whole area.
///
/// # Safety
/// As [`on_plain`].
pub unsafe extern "C" fn before_area(_: c_uint, _: *mut c_void) {
    super::count_areas(|areas| &areas.executed);
}

/// Runs for each piece of an area of at most 64 bytes, as [`on_join`].
///
/// # Safety
/// As [`on_plain`].
pub unsafe extern "C" fn on_small_area(
    vcpu: c_uint,
    info: api::MemInfo,
    addr: u64,
    data: *mut c_void,
) {
    super::count_areas(|areas| &areas.reports);
    // SAFETY: the caller's word.
    unsafe { on_join(vcpu, info, addr, data) }
}

/// Runs for each piece of a larger area, as [`on_piece`].
///
/// # Safety
/// As [`on_plain`].
pub unsafe extern "C" fn on_area(vcpu: c_uint, info: api::MemInfo, addr: u64, data: *mut c_void) {
    super::count_areas(|areas| &areas.reports);
    // SAFETY: the caller's word.
    unsafe { on_piece(vcpu, info, addr, data) }
}

/// Runs for the load and the store of an update; `data` is the raw entry without
/// its address. Atomic instructions of threaded programs are one report.
///
/// # Safety
/// As [`on_plain`].
pub unsafe extern "C" fn on_update(vcpu: c_uint, info: api::MemInfo, addr: u64, data: *mut c_void) {
    let slot = slot_of(vcpu);
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
    let slot = slot_of(vcpu);
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
pub unsafe extern "C" fn on_alternate(
    vcpu: c_uint,
    info: api::MemInfo,
    addr: u64,
    data: *mut c_void,
) {
    let slot = slot_of(vcpu);
    if slot.is_null() || super::is_store(info) {
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
/// A block's entry but for its id.
const BLOCK: u64 = Raw::block(0).0;
/// Bits of an access's index.
const INDEX: u32 = 16;
const INDEX_MASK: u64 = (1 << INDEX) - 1;

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

/// Adds an entry, or counts it as dropped if nothing fits.
///
/// # Safety
/// The slot belongs to this thread.
pub unsafe fn push_checked(slot: *mut Slot, entry: u64) {
    // SAFETY: the caller's word; room is checked.
    unsafe {
        if (*slot).next < (*slot).hard_end {
            push(slot, entry);
        } else {
            super::dropped();
        }
    }
}
