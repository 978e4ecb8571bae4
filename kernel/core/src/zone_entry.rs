//! The functions for SRM-buffer's zone that the C side calls; `core.h` has their C form, and
//! [`entry`](crate::entry) says what holds for all of them.

use piebald_units::{Color, Pfn};

use crate::{
    entry::{Core, EAGAIN, EINVAL, ENOMEM, host, line},
    host::{Fault, Found, Host, Key, Seat, Short, ZoneAsk, ZoneColor, ZoneCounters},
};

/// T_l where nobody sets it, in pages, for so many frames of memory.
#[unsafe(no_mangle)]
pub extern "C" fn pb_zone_default(memory: u64) -> u32 {
    Host::zone_default(memory)
}

/// Bytes that a zone needs; 0 without a map.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_zone_bytes(core: *mut Core) -> usize {
    // SAFETY: the caller's promise.
    unsafe { host(core).zone_bytes() }
}

/// A status of the C side; an error leaves its words.
///
/// # Safety
/// `why` has `why_len` bytes.
unsafe fn status(result: Result<(), Fault>, why: *mut u8, why_len: usize) -> i32 {
    match result {
        Ok(()) => 0,
        Err(fault) => {
            // SAFETY: the caller's promise.
            unsafe { line(why, why_len) }.say(&fault);
            EINVAL
        }
    }
}

/// Makes a zone for a machine with so many frames of memory. Answers 0, or less and a reason.
///
/// # Safety
/// `at` has [`pb_zone_bytes`] zero bytes aligned to 8, which stay until [`pb_zone_end`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_zone_begin(
    core: *mut Core,
    at: *mut u8,
    threshold: u32,
    memory: u64,
    why: *mut u8,
    why_len: usize,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        let begun = host(core).zone_begin(at, threshold, memory);
        status(begun, why, why_len)
    }
}

/// Ends the zone. Answers 0, or less if it has pages.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_zone_end(core: *mut Core) -> i32 {
    // SAFETY: the caller's promise.
    match unsafe { host(core).zone_end() } {
        Ok(()) => 0,
        Err(_) => EINVAL,
    }
}

/// Checks a T_l, and sets it if there is a zone. Answers 0, or less and a reason.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_zone_threshold(
    core: *mut Core,
    threshold: u32,
    memory: u64,
    why: *mut u8,
    why_len: usize,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        let set = host(core).zone_threshold(threshold, memory);
        status(set, why, why_len)
    }
}

/// A frame out of the zone for a process, or with a null seat for one without colours. Answers
/// 0, -EAGAIN if it is to be refilled first, -ENOMEM if it has none.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_zone_take(
    core: *mut Core,
    seat: *const Seat,
    ask: *const ZoneAsk,
    found: *mut Found,
) -> i32 {
    // SAFETY: the caller's promise.
    let taken = unsafe { host(core).zone_take(seat.as_ref(), &*ask) };
    match taken {
        Ok(frame) => {
            // SAFETY: the caller's promise.
            unsafe { found.write(frame) };
            0
        }
        Err(Short::Refill) => EAGAIN,
        Err(Short::Empty) => ENOMEM,
    }
}

/// The frame that a request got last could not be used.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_zone_declined(core: *mut Core, ask: *const ZoneAsk) {
    // SAFETY: the caller's promise.
    unsafe { host(core).zone_declined(&*ask) };
}

/// Moves up to `most` free frames from the pool into the zone. Answers how many.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_zone_fill(core: *mut Core, most: u32) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { host(core).zone_fill(most) }
}

/// Does the zone want pages?
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_zone_wants(core: *mut Core) -> bool {
    // SAFETY: the caller's promise.
    unsafe { host(core).zone_wants() }
}

/// How many pages it wants at least, of whatever colours.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_zone_missing(core: *mut Core) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { host(core).zone_missing() }
}

/// A frame comes into the zone, free or with a cold page. Answers 0, or less if it cannot.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_zone_add(core: *mut Core, pfn: u64, cold: bool) -> i32 {
    // SAFETY: the caller's promise.
    match unsafe { host(core).zone_add(Pfn(pfn), cold) } {
        Ok(()) => 0,
        Err(_) => EINVAL,
    }
}

/// The frame that the zone can spare best. Answers 0, or less if it has none.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_zone_spare(core: *mut Core, found: *mut Found) -> i32 {
    // SAFETY: the caller's promise.
    match unsafe { host(core).zone_spare() } {
        Some(frame) => {
            // SAFETY: the caller's promise.
            unsafe { found.write(frame) };
            0
        }
        None => ENOMEM,
    }
}

/// A process has a child.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_zone_fork(core: *mut Core, parent: *const Key, child: *const Key) {
    // SAFETY: the caller's promise.
    unsafe { host(core).zone_fork(*parent, *child) };
}

/// A process ends.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_zone_exit(core: *mut Core, process: *const Key) {
    // SAFETY: the caller's promise.
    unsafe { host(core).zone_exit(*process) };
}

/// Pages and free frames in the zone.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_zone_pages(core: *mut Core) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { host(core).zone_pages() }
}

/// How a colour stands in the zone.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_zone_color(core: *mut Core, color: u32, out: *mut ZoneColor) {
    // SAFETY: the caller's promise.
    unsafe { out.write(host(core).zone_color(Color(color as u16))) };
}

/// What the zone did.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_zone_counters(core: *mut Core, out: *mut ZoneCounters) {
    // SAFETY: the caller's promise.
    unsafe { out.write(host(core).zone_counters()) };
}
