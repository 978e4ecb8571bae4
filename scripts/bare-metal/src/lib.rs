//! Calls the generic parts of the policy core from a program without an
//! operating system, so that they are compiled and can be inspected.
//!
//! Functions that are not generic need no entry here: `scripts/bare-metal.sh`
//! compiles and inspects all of them, called or not. A generic one (a policy
//! over lent slices) is compiled only where it is used, so each room adds one
//! exported function that drives it through its public calls.

#![no_std]

use core::fmt::Write;

use piebald_policy::contract::{FrameAllocator, FrameRequest};
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
    let probed = colors(word) ^ contract(word);
    probed ^ planted(word)
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
    let seen = set.iter().fold(0u64, |sum, c| sum.wrapping_add(u64::from(c.0)));
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
