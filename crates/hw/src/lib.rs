//! The machine model: caches, TLBs, DRAM, links and core timing.
//!
//! Nothing here knows a file, a clock or a thread: every call takes the time of
//! the core that asks and returns when it is done.

pub mod dram;
mod error;
pub mod presets;
pub mod spec;

pub use error::SpecError;
