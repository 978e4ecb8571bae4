//! Calls the generic parts of the policy core from a program without an
//! operating system, so that they are compiled and can be inspected.
//!
//! Functions that are not generic need no entry here: `scripts/bare-metal.sh`
//! compiles and inspects all of them, called or not. A generic one (a policy
//! over lent slices) is compiled only where it is used, so each room adds one
//! exported function that drives it through its public calls.

#![no_std]

mod dulo;
mod hvr;
mod mfc;
mod rainbow;
mod replacement;
mod srm;

use core::fmt::Write;

use piebald_policy::{
    buddy::{
        Buddy, CoreLists, CoreMemory, CoreSlices, Ends, List, MigrateType, Slices, Slot, Store,
    },
    color_map::{ColorMap, Geometry, PrivateL2},
    contract::{FrameAllocator, FrameRequest},
};
use piebald_units::{Color, ColorSet, CoreId, Order, Pfn, TaskId, Vpn};

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    piebald_panic_reached()
}

/// Its presence in the linked program means that a panic is reachable.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn piebald_panic_reached() -> ! {
    loop {
        core::hint::spin_loop();
    }
}

/// Where the linker starts: every probe is reached from here.
#[unsafe(no_mangle)]
pub extern "C" fn piebald_probe_start(word: u64) -> u64 {
    let probed = colors(word) ^ contract(word) ^ maps(word) ^ frames(word);
    probed
        ^ rainbow::partitions(word)
        ^ replacement::policies(word)
        ^ dulo::sequences(word)
        ^ srm::zone(word)
        ^ mfc::reads(word)
        ^ hvr::programs(word)
        ^ planted(word)
}

/// A sink that keeps nothing, for messages.
struct Sink(u64);

impl Write for Sink {
    fn write_str(&mut self, s: &str) -> core::fmt::Result {
        self.0 = self.0.wrapping_add(s.len() as u64);
        Ok(())
    }
}

#[inline(never)]
fn colors(word: u64) -> u64 {
    let mut set = ColorSet::EMPTY;
    set.insert(Color(word as u16));
    set.remove(Color((word >> 16) as u16));
    let seen = set
        .iter()
        .fold(0u64, |sum, c| sum.wrapping_add(u64::from(c.0)));
    seen ^ u64::from(set.contains(Color((word >> 32) as u16))) ^ set.word(word as usize)
}

/// An allocator without frames: drives the contract's types and messages.
struct Empty;

impl FrameAllocator for Empty {
    fn alloc(
        &mut self,
        request: &FrameRequest<'_>,
    ) -> Result<piebald_policy::contract::Grant, piebald_policy::contract::AllocError> {
        use piebald_policy::contract::AllocError;
        Err(match request.order > Order::MAX {
            true => AllocError::OrderTooLarge,
            false => AllocError::OutOfMemory,
        })
    }

    fn free(
        &mut self,
        _: Pfn,
        _: Order,
        _: CoreId,
    ) -> Result<(), piebald_policy::contract::FreeError> {
        Err(piebald_policy::contract::FreeError::Foreign)
    }

    fn free_frames(&self) -> u64 {
        0
    }

    fn total_frames(&self) -> u64 {
        0
    }

    fn counters(&self) -> piebald_policy::contract::FrameCounters {
        Default::default()
    }

    fn validate(&self) -> Result<(), piebald_policy::contract::Broken> {
        Ok(())
    }
}

#[inline(never)]
fn contract(word: u64) -> u64 {
    let request = FrameRequest::fault(TaskId(word as u32), CoreId(0), Vpn(word));
    let mut sink = Sink(0);
    if let Err(e) = core::hint::black_box(&mut Empty).alloc(&request) {
        let _ = write!(sink, "{e}");
    }
    if let Err(e) = Empty.free(Pfn(word), Order(0), CoreId(0)) {
        let _ = write!(sink, "{e}");
    }
    sink.0
}

/// Maps from text and from a geometry, and their questions.
#[inline(never)]
fn maps(word: u64) -> u64 {
    map_from_text(word) ^ map_from_geometry(word)
}

#[inline(never)]
fn map_from_text(word: u64) -> u64 {
    let bytes = word.to_le_bytes();
    let text = core::str::from_utf8(&bytes).unwrap_or("B 14 18");
    let mut sink = Sink(0);
    // SAFETY: one thread; the reference ends with this function.
    let map = unsafe { &mut *(&raw mut MAP) };
    let _ = match map.set_from_text(text) {
        Ok(_) => write!(sink, "{map}"),
        Err(e) => write!(sink, "{e}"),
    };
    sink.0
}

#[inline(never)]
fn map_from_geometry(word: u64) -> u64 {
    let banks = [word, word >> 1];
    let geometry = Geometry {
        llc: None,
        l2: None,
        banks: &banks,
    };
    // SAFETY: one thread; the reference ends with this function.
    let map = unsafe { &mut *(&raw mut MAP) };
    match map.set_from_geometry(&geometry, PrivateL2::Keep) {
        Ok(()) => questions(map, word),
        Err(_) => 0,
    }
}

#[inline(never)]
fn questions(map: &ColorMap, word: u64) -> u64 {
    let near = map.nearest_frame(Pfn(word), Color(word as u16));
    let mut set = ColorSet::EMPTY;
    map.colors_in(Pfn(word), Order(word as u8), &mut set);
    map.group(word as u16, 1, &mut set);
    near.map_or(0, |f| f.0) ^ set.word(0)
}

type KernelBuddy = Buddy<
    Slices<
        &'static ColorMap,
        &'static mut [u8],
        &'static mut [[u32; 2]],
        &'static mut [u32],
        &'static mut [List],
        &'static mut [u64],
    >,
>;
type KernelLists =
    CoreLists<CoreSlices<&'static ColorMap, &'static mut [Slot], &'static mut [Ends]>>;

/// What a kernel keeps in static memory, since no stack holds it.
static mut MAP: ColorMap = ColorMap::PLAIN;
static mut STATES: [u8; 4096] = [0; 4096];
static mut LINKS: [[u32; 2]; 4096] = [[0; 2]; 4096];
static mut PAGEBLOCKS: [u32; 8] = [0; 8];
static mut LISTS: [List; 33] = [List::EMPTY; 33];
static mut WORDS: [u64; 33] = [0; 33];
static mut SLOTS: [Slot; 64] = [Slot::EMPTY; 64];
static mut ENDS: [Ends; 1] = [Ends::EMPTY; 1];
static mut BUDDY: Option<KernelBuddy> = None;
static mut CORE: Option<KernelLists> = None;

/// The buddy allocator and per-core lists over lent slices.
#[inline(never)]
fn frames(word: u64) -> u64 {
    make_buddy();
    // SAFETY: one thread; the reference ends with this function.
    let Some(buddy) = (unsafe { (&mut *(&raw mut BUDDY)).as_mut() }) else {
        return 0;
    };
    if buddy.set_up(word & 0xfff, Pfn(word << 10)).is_err() {
        return 0;
    }
    make_lists(buddy.origin());
    // SAFETY: as above.
    let Some(lists) = (unsafe { (&mut *(&raw mut CORE)).as_mut() }) else {
        return 0;
    };
    drive(buddy, word) ^ drive_core(lists, buddy, word)
}

#[inline(never)]
fn make_buddy() {
    // SAFETY: one thread, and this runs once.
    unsafe {
        let store = Slices {
            map: &ColorMap::PLAIN,
            states: (&mut *(&raw mut STATES)).as_mut_slice(),
            links: (&mut *(&raw mut LINKS)).as_mut_slice(),
            pageblocks: (&mut *(&raw mut PAGEBLOCKS)).as_mut_slice(),
            lists: (&mut *(&raw mut LISTS)).as_mut_slice(),
            words: (&mut *(&raw mut WORDS)).as_mut_slice(),
        };
        BUDDY = Some(Buddy::over(store));
    }
}

#[inline(never)]
fn make_lists(origin: Pfn) {
    // SAFETY: one thread, and this runs once.
    unsafe {
        let memory = CoreSlices {
            map: &ColorMap::PLAIN,
            slots: (&mut *(&raw mut SLOTS)).as_mut_slice(),
            ends: (&mut *(&raw mut ENDS)).as_mut_slice(),
        };
        CORE = CoreLists::new(memory, origin, MigrateType::Movable, 16).ok();
    }
}

#[inline(never)]
fn drive_core<C: CoreMemory, S: Store>(
    lists: &mut CoreLists<C>,
    buddy: &mut Buddy<S>,
    word: u64,
) -> u64 {
    let request = FrameRequest::fault(TaskId(0), CoreId(0), Vpn(0));
    let taken = lists.alloc(buddy, &request).map_or(0, |g| g.frame.0);
    let _ = lists.put(Pfn(word));
    taken ^ u64::from(lists.give_back(buddy, word as u32))
}

#[inline(never)]
fn drive<S: Store>(buddy: &mut Buddy<S>, word: u64) -> u64 {
    let mut sink = Sink(0);
    if let Err(e) = buddy.add_range(Pfn(word)..Pfn(word >> 3)) {
        let _ = write!(sink, "{e}");
    }
    let mut allowed = ColorSet::EMPTY;
    allowed.insert(Color(word as u16));
    let request = FrameRequest {
        order: Order(word as u8),
        allowed: Some(&allowed),
        wish: Some(Color(3)),
        ..FrameRequest::fault(TaskId(0), CoreId(0), Vpn(0))
    };
    let granted = buddy.alloc(&request).map_or(0, |g| g.frame.0);
    let freed = buddy.free(Pfn(word), Order(word as u8)).is_ok();
    let left = buddy.detach(Pfn(word), Order(0)).is_ok();
    let removed = buddy.remove_block(Order(word as u8)).map_or(0, |f| f.0);
    if let Err(e) = buddy.validate() {
        let _ = write!(sink, "{e}");
    }
    granted ^ removed ^ u64::from(freed) ^ u64::from(left) ^ sink.0
}

/// A defect, if the build asks for one.
#[inline(never)]
pub fn planted(word: u64) -> u64 {
    let mut seen = 0;
    if cfg!(feature = "plant-panic") {
        let table = core::hint::black_box([1u8, 2, 3]);
        seen ^= u64::from(table[word as usize]);
    }
    if cfg!(feature = "plant-float") {
        seen ^= (f64::from_bits(word) * 1.5).to_bits();
    }
    if cfg!(feature = "plant-frame") {
        seen ^= core::hint::black_box([word; 160])[3];
    }
    if cfg!(feature = "plant-helper") {
        seen ^= (u128::from(word) << 64).wrapping_div(u128::from(word | 1) << 3) as u64;
    }
    seen
}
