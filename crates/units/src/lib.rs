//! Ids, units and ports: the words that every room of Piebald shares.
//!
//! Nothing here decides or measures anything. The crate holds three things:
//!
//! * **ids and units** as types, with checked arithmetic, parsing and printing
//!   ([`Pfn`], [`Bytes`], [`Count`], [`Picos`], [`ColorSet`], ...);
//! * **what a program does**, one reference or system call at a time ([`op`]);
//! * **ports**, the narrow interfaces through which rooms meet without naming
//!   one another ([`memory`], [`block`]).
//!
//! The crate is `no_std`, allocates nothing and contains no `unsafe` code, so
//! that the policy core and a kernel module can use it as it is.

#![no_std]
#![forbid(unsafe_code)]

pub mod block;
mod bytes;
mod color_ask;
mod color_set;
mod core_set;
mod count;
mod ids;
pub mod memory;
mod number;
pub mod op;
mod time;

pub use bytes::Bytes;
pub use color_ask::{ColorAsk, NotAsked};
pub use color_set::{ColorSet, ColorSetIter, MAX_COLORS};
pub use core_set::{CoreSet, MAX_CORES};
pub use count::Count;
pub use ids::{
    Asid, Color, CoreId, DiskBlock, FileId, LINE_SHIFT, Lba, Order, PAGE_SHIFT, PAGE_SIZE,
    PageSize, Pfn, PhysAddr, TaskId, VirtAddr, Vpn,
};
pub use number::{Meant, ParseError};
pub use time::{Hertz, Picos};
