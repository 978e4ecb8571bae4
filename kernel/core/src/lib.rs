//! The policy core as the Linux module sees it.
//!
//! All decisions are `piebald-policy`'s: which frame of which colour (`buddy`), which
//! colours belong to whom (`rainbow`), which colour a file's blocks have (`srm`). This crate lends it the kernel's memory and gives it C
//! names; `core.h` is the C side of every function in [`entry`], [`zone_entry`] and [`btf_entry`]. The
//! last is no policy: it reads what a kernel says of its own functions.
//!
//! # Memory and locking
//!
//! The C side allocates everything, zeroed, and frees it; nothing here allocates. A [`Host`]
//! never moves after [`Host::set_up`]. Every call holds the module's one lock (`pool.c`), so
//! all of it is *exclusive*. Each call is short: the buddy says what a frame costs; only a new
//! map, a block that comes or goes and [`Host::check`] take longer.
//!
//! Source: the Rainbow thesis, chapters 4 and 5, and the SRM-buffer paper, section 3, as
//! `piebald-policy` has them.

#![cfg_attr(target_os = "none", no_std)]

mod ask;
#[cfg(test)]
mod block_tests;
mod btf;
pub mod btf_entry;
#[cfg(test)]
mod btf_tests;
#[cfg(test)]
mod deal_tests;
pub mod entry;
mod host;
mod lent;
mod line;
#[cfg(test)]
mod node_tests;
#[cfg(test)]
mod tests;
pub mod zone_entry;
#[cfg(test)]
mod zone_tests;

pub use host::{
    Counters, Fault, Found, Given, Host, Key, Needs, Reach, Seat, Short, ZoneAsk, ZoneColor,
    ZoneCounters,
};
pub use lent::{Lending, Lent};
pub use line::Line;

/// No panic can be reached: the module does not define this hook, and `build.sh` refuses an
/// object that asks for it.
#[cfg(target_os = "none")]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    unsafe extern "C" {
        safe fn pb_core_panic(line: u32) -> !;
    }
    pb_core_panic(info.location().map_or(0, |place| place.line()))
}
