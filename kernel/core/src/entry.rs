//! The functions that the C side calls; `core.h` has their C form.
//!
//! Pointers are those of `core.h`: the core from [`pb_core_set_up`], seats of at least
//! [`SEAT_BYTES`], texts with their length. Every call holds the module's lock.

use core::{ptr, slice};

use piebald_policy::{
    buddy::List,
    color_map::ColorMap,
    contract::AllocError,
    rainbow::{Partition, Refusal},
};
use piebald_units::{Color, Order, Pfn};

use crate::{
    host::{Counters, Fault, Given, Host, Needs, Pool, Reach, Seat},
    lent::Lending,
    line::Line,
};

/// Room for a seat on the C side.
pub const SEAT_BYTES: usize = 320;

const _: () = assert!(size_of::<Seat>() <= SEAT_BYTES && align_of::<Seat>() <= 8);
const _: () = assert!(align_of::<Lending>() <= align_of::<Pool>() && align_of::<Pool>() <= 64);

/// The host, as the C side holds it.
pub struct Core {
    host: Host,
}

/// Arrays that are lent for good, for the frames of one memory node.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct NodeMemory {
    /// One byte per frame, zero.
    pub states: *mut u8,
    /// Two links per frame.
    pub links: *mut [u32; 2],
    /// One entry per 512 frames, zero.
    pub pageblocks: *mut u32,
    /// The first frame, a multiple of 1024.
    pub first: u64,
    /// Number of frames.
    pub frames: u64,
    /// Number of entries.
    pub nr_pageblocks: u64,
}

/// What is lent for good.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Memory {
    /// For each node.
    pub nodes: *const NodeMemory,
    /// Number of nodes.
    pub nr_nodes: u64,
    /// Place for pools, [`pb_node_bytes`] of zeroes for each node.
    pub pools: *mut u8,
    /// Place for colour sets, [`pb_slot_bytes`] each.
    pub slots: *mut u8,
    /// Number of places.
    pub nr_slots: u64,
}

/// No such thing, or none in this state (the kernel's numbers).
pub(crate) const EINVAL: i32 = -22;
/// The pool has no frame that may be given.
pub(crate) const EAGAIN: i32 = -11;
/// The pool is empty.
pub(crate) const ENOMEM: i32 = -12;

/// Too few colours are left, or no place for a set.
const ENOSPC: i32 = -28;

/// What a fault is as a number of the kernel's.
const fn number_of(fault: &Fault) -> i32 {
    match fault {
        Fault::Refused(Refusal::TooMany { .. } | Refusal::NoSlot { .. }) => ENOSPC,
        _ => EINVAL,
    }
}

/// Bytes of a core.
#[unsafe(no_mangle)]
pub extern "C" fn pb_core_bytes() -> usize {
    size_of::<Core>()
}

/// Bytes of a place for a colour set.
#[unsafe(no_mangle)]
pub extern "C" fn pb_slot_bytes() -> usize {
    size_of::<Partition>()
}

/// Bytes that the pool of a node needs, beside what it is lent for its frames.
#[unsafe(no_mangle)]
pub extern "C" fn pb_node_bytes() -> usize {
    size_of::<Pool>().wrapping_add(size_of::<Lending>())
}

/// Makes a core.
///
/// # Safety
/// `core` has [`pb_core_bytes`] zero bytes aligned to 64, as has `pools` of `memory`; its arrays have the
/// lengths beside them, and there is one node at least. All but the array `nodes` stays until the core is
/// not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_set_up(core: *mut Core, memory: *const Memory) {
    // SAFETY: the caller's promise; everything is written before it is used. Pools and lendings consist of
    // words, so that one array may follow the other.
    unsafe {
        let m = *memory;
        let nr_nodes = m.nr_nodes as usize;
        let pools = m.pools.cast::<Pool>();
        let lendings = pools.add(nr_nodes).cast::<Lending>();
        for at in 0..nr_nodes {
            let node = *m.nodes.add(at);
            let lending = lendings.add(at);
            lending.write(Lending {
                map: ColorMap::PLAIN,
                states: node.states,
                links: node.links,
                frames: node.frames as usize,
                first: node.first,
                pageblocks: node.pageblocks,
                nr_pageblocks: node.nr_pageblocks as usize,
                lists: ptr::null_mut(),
                nr_lists: 0,
                words: ptr::null_mut(),
                nr_words: 0,
            });
            Pool::set_up(pools.add(at), lending);
        }
        let pools = slice::from_raw_parts_mut(pools, nr_nodes);
        let slots = m.slots.cast::<Partition>();
        for at in 0..m.nr_slots as usize {
            slots.add(at).write(Partition::EMPTY);
        }
        let slots = slice::from_raw_parts_mut(slots, m.nr_slots as usize);
        Host::set_up(ptr::addr_of_mut!((*core).host), pools, slots);
    }
}

/// The host of a core.
///
/// # Safety
/// `core` was set up and is not used by anyone else during the call.
pub(crate) unsafe fn host<'a>(core: *mut Core) -> &'a mut Host {
    // SAFETY: the caller's promise.
    unsafe { &mut *ptr::addr_of_mut!((*core).host) }
}

/// A text of the C side; nothing if it is no UTF-8.
///
/// # Safety
/// `text` has `len` bytes.
unsafe fn text<'a>(text: *const u8, len: usize) -> Option<&'a str> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { slice::from_raw_parts(text, len) };
    core::str::from_utf8(bytes).ok()
}

/// A buffer of the C side.
///
/// # Safety
/// `out` has `len` bytes.
pub(crate) unsafe fn line<'a>(out: *mut u8, len: usize) -> Line<'a> {
    // SAFETY: the caller's promise.
    Line::new(unsafe { slice::from_raw_parts_mut(out, len) })
}

/// Reads a map and says what it needs. Answers 0, or less and a reason in `why`.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_read_map(
    core: *mut Core,
    map: *const u8,
    map_len: usize,
    needs: *mut Needs,
    why: *mut u8,
    why_len: usize,
) -> i32 {
    // SAFETY: the caller's promise.
    let (host, map, mut why) = unsafe { (host(core), text(map, map_len), line(why, why_len)) };
    let Some(map) = map else {
        why.say(&"the map is no text");
        return EINVAL;
    };
    if let Err(error) = host.next_map().set_from_text(map) {
        why.say(&error);
        return EINVAL;
    }
    match host.needs() {
        Ok(found) => {
            // SAFETY: the caller's promise.
            unsafe { needs.write(found) };
            0
        }
        Err(fault) => {
            why.say(&fault);
            EINVAL
        }
    }
}

/// Sets the map that was read last, and forgets every colour set. The pools must be empty.
///
/// # Safety
/// `lists` and `words` are as [`pb_core_read_map`] asked for, once for each node; the arrays for states and
/// pageblocks are zero again. What was lent before may be freed afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_set_map(
    core: *mut Core,
    needs: *const Needs,
    lists: *mut u8,
    words: *mut u64,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        match host(core).set_map(&*needs, lists.cast::<List>(), words) {
            Ok(()) => 0,
            Err(_) => EINVAL,
        }
    }
}

/// Adds a block to the pool of a node. Answers 0, or less if it cannot be added.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_add(core: *mut Core, node: u32, pfn: u64, order: u32) -> i32 {
    // SAFETY: the caller's promise.
    let host = unsafe { host(core) };
    match host.add(node as usize, Pfn(pfn), Order(order as u8)) {
        Ok(()) => 0,
        Err(_) => EINVAL,
    }
}

/// Takes a block of at most `frames` out of a node's pool. Answers its order, or less if there is
/// none.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_shed(
    core: *mut Core,
    node: u32,
    frames: u64,
    pfn: *mut u64,
) -> i32 {
    // SAFETY: the caller's promise.
    let host = unsafe { host(core) };
    match host.shed(node as usize, frames) {
        Some((first, order)) => {
            // SAFETY: the caller's promise.
            unsafe { pfn.write(first.0) };
            i32::from(order.0)
        }
        None => ENOMEM,
    }
}

/// Takes a block of at most `frames` frames out of a node's pool that leaves enough of its colours.
/// Answers its order, or less if the largest does not.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_shed_surplus(
    core: *mut Core,
    node: u32,
    frames: u64,
    pfn: *mut u64,
) -> i32 {
    // SAFETY: the caller's promise.
    let host = unsafe { host(core) };
    match host.shed_surplus(node as usize, frames) {
        Some((first, order)) => {
            // SAFETY: the caller's promise.
            unsafe { pfn.write(first.0) };
            i32::from(order.0)
        }
        None => ENOMEM,
    }
}

/// Takes up to `len` frames out of a node's pool, of the colour that it has most of. Answers how
/// many; 0 if the pool is empty.
///
/// # Safety
/// See the module; `out` has `len` entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_shed_most(
    core: *mut Core,
    node: u32,
    out: *mut u64,
    len: usize,
) -> usize {
    // SAFETY: the caller's promise.
    let (host, out) = unsafe { (host(core), slice::from_raw_parts_mut(out, len)) };
    host.shed_most(node as usize, out)
}

/// A frame of a node for a process, or with a null seat for one without colours. `reach` is 0 for the
/// colour whose turn it is, 1 for the allowed ones, 2 for any. Answers 0, -EAGAIN if only
/// frames of other colours are there, -ENOMEM if none.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_take(
    core: *mut Core,
    node: u32,
    seat: *mut Seat,
    reach: u32,
    given: *mut Given,
) -> i32 {
    // SAFETY: the caller's promise.
    let (host, seat) = unsafe { (host(core), seat.as_mut()) };
    let reach = match reach {
        0 => Reach::Turn,
        1 => Reach::Allowed,
        _ => Reach::Any,
    };
    match host.take(node as usize, seat, reach) {
        Ok(found) => {
            // SAFETY: the caller's promise.
            unsafe { given.write(found) };
            0
        }
        Err(AllocError::ColorsExhausted) => EAGAIN,
        Err(_) => ENOMEM,
    }
}

/// A seat without colours.
///
/// # Safety
/// `seat` has [`SEAT_BYTES`], aligned to 8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_seat_clear(seat: *mut Seat) {
    // SAFETY: the caller's promise.
    unsafe { seat.write(Seat::default()) };
}

/// Gives a set colours, or others than it has. Answers 0, or less and a reason in `why`.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_reserve(
    core: *mut Core,
    seat: *mut Seat,
    ask: *const u8,
    ask_len: usize,
    why: *mut u8,
    why_len: usize,
) -> i32 {
    // SAFETY: the caller's promise.
    let (host, seat, ask, mut why) = unsafe {
        (
            host(core),
            &mut *seat,
            text(ask, ask_len),
            line(why, why_len),
        )
    };
    match host.reserve(seat, ask.unwrap_or_default()) {
        Ok(()) => 0,
        Err(fault) => {
            why.say(&fault);
            number_of(&fault)
        }
    }
}

/// Ends a colour set, if it is one.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_leave(core: *mut Core, seat: *mut Seat) {
    // SAFETY: the caller's promise.
    unsafe { host(core).leave(&mut *seat) };
}

/// Prints the colours of a process, or with a null seat those that no set has. Answers the
/// length of the text.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_print_colors(
    core: *mut Core,
    seat: *const Seat,
    out: *mut u8,
    len: usize,
) -> usize {
    // SAFETY: the caller's promise.
    let (host, seat, mut out) = unsafe { (host(core), seat.as_ref(), line(out, len)) };
    let colors = match seat {
        Some(seat) => host.colors_of(seat),
        None => Some(host.unreserved()),
    };
    match colors {
        Some(colors) => out.say(colors),
        None => out.say(&"none"),
    }
    out.len()
}

/// Prints the map, one line per colour bit. Answers the length of the text.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_print_map(core: *mut Core, out: *mut u8, len: usize) -> usize {
    // SAFETY: the caller's promise.
    let (host, mut out) = unsafe { (host(core), line(out, len)) };
    out.say(host.map());
    out.len()
}

/// Number of colours, 0 without a map.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_colors(core: *mut Core) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { host(core).colors() }
}

/// The order of the largest blocks of one colour.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_whole_order(core: *mut Core) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { host(core).whole_order() }
}

/// Deals up to `len` of the frames that the kernel has at hand, as [`Host::deal_spare`] says: `nr_spare` of
/// them, of which the first `fitting` are known to be such as the process may have. Answers how many.
///
/// # Safety
/// See the module. There is room for `len` frames at `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_deal_spare(
    core: *mut Core,
    seat: *mut Seat,
    spare: *mut Given,
    nr_spare: usize,
    fitting: *mut usize,
    out: *mut Given,
    len: usize,
) -> usize {
    // SAFETY: the caller's promise.
    let (host, seat, spare, fitting, out) = unsafe {
        (
            host(core),
            seat.as_mut(),
            slice::from_raw_parts_mut(spare, nr_spare),
            &mut *fitting,
            slice::from_raw_parts_mut(out, len),
        )
    };
    host.deal_spare(seat, spare, fitting, out)
}

/// Deals up to `len` frames of a node's pool in the order of the round, as [`Host::deal_pool`] says. Answers how
/// many.
///
/// # Safety
/// See the module. There is room for `len` frames at `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_deal_pool(
    core: *mut Core,
    node: u32,
    seat: *mut Seat,
    out: *mut Given,
    len: usize,
) -> usize {
    // SAFETY: the caller's promise.
    let (host, seat, out) = unsafe {
        (
            host(core),
            seat.as_mut(),
            slice::from_raw_parts_mut(out, len),
        )
    };
    host.deal_pool(node as usize, seat, out)
}

/// May a process have a frame that the pool does not have? Writes its colour into `given`, whose
/// `pfn` says which.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_may_have(
    core: *mut Core,
    seat: *const Seat,
    given: *mut Given,
) -> bool {
    // SAFETY: the caller's promise.
    let (host, seat, given) = unsafe { (host(core), seat.as_ref(), &mut *given) };
    let (color, it_may) = host.may_have(seat, Pfn(given.pfn));
    (given.color, given.fallback) = (u32::from(color.0), 0);
    it_may
}

/// The colours from a place on of those that a process may have, as [`Host::colors_at`] says; how many.
///
/// # Safety
/// See the module. There is room for `len` colours at `out`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_colors_at(
    core: *mut Core,
    seat: *const Seat,
    place: u32,
    out: *mut u32,
    len: usize,
) -> usize {
    // SAFETY: the caller's promise.
    let (host, seat) = unsafe { (host(core), seat.as_ref()) };
    // SAFETY: likewise.
    let out = unsafe { core::slice::from_raw_parts_mut(out, len) };
    host.colors_at(seat, place, out)
}

/// The number of a process's colour set; 0 for all that have none.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_set_of(core: *mut Core, seat: *const Seat) -> u64 {
    // SAFETY: the caller's promise.
    let (host, seat) = unsafe { (host(core), seat.as_ref()) };
    host.set_of(seat)
}

/// A number that changes whenever a colour set comes, goes or changes.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_version(core: *mut Core) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { host(core).version() }
}

/// Free frames of one colour in all pools.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_free_of(core: *mut Core, color: u32) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { host(core).free_of(Color(color as u16)) }
}

/// Free frames in a node's pool.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_free(core: *mut Core, node: u32) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { host(core).free_frames(node as usize) }
}

/// Frames that left a node's pool one by one, since the map was set.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_granted(core: *mut Core, node: u32) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { host(core).granted(node as usize) }
}

/// What was done.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_counters(core: *mut Core, out: *mut Counters) {
    // SAFETY: the caller's promise.
    unsafe { out.write(host(core).counters()) };
}

/// Do two sets have a colour in common?
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_overlap(
    core: *mut Core,
    one: *const Seat,
    other: *const Seat,
) -> bool {
    // SAFETY: the caller's promise.
    let (host, one, other) = unsafe { (host(core), &*one, &*other) };
    host.overlap(one, other)
}

/// Writes 1 for each of `len` frames from `first` on that has a colour of the set, else 0.
///
/// # Safety
/// See the module; `out` has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_mark(
    core: *mut Core,
    seat: *const Seat,
    first: u64,
    out: *mut u8,
    len: usize,
) {
    // SAFETY: the caller's promise.
    let (host, seat, out) = unsafe { (host(core), &*seat, slice::from_raw_parts_mut(out, len)) };
    for (pfn, mark) in (first..).zip(out) {
        *mark = u8::from(host.owns(seat, Pfn(pfn)));
    }
}

/// Does the process have colours, and the frame none of them?
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_misplaced(core: *mut Core, seat: *const Seat, pfn: u64) -> bool {
    // SAFETY: the caller's promise.
    unsafe { host(core).is_misplaced(&*seat, Pfn(pfn)) }
}

/// Recounts everything. Answers 0, or the length of a text that says what does not hold.
///
/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_core_check(core: *mut Core, out: *mut u8, len: usize) -> usize {
    // SAFETY: the caller's promise.
    let (host, mut out) = unsafe { (host(core), line(out, len)) };
    if let Err(rule) = host.check() {
        out.say(&rule);
    }
    out.len()
}
