//! The machine model: caches, TLBs, DRAM, links, core timing and disks.
//!
//! Nothing here knows a file, a clock or a thread: every call takes the time of
//! the core that asks and returns when it is done. [`Machine`] implements
//! [`piebald_units::memory::MemoryPort`]; a machine is described by a
//! [`spec::MachineSpec`], which preset files hold as data.

mod cache;
mod counters;
pub mod disk;
pub mod dram;
mod error;
mod features;
mod hierarchy;
mod lane;
mod links;
mod machine;
mod memory;
pub mod nearest;
mod prefetch;
pub mod presets;
mod replace;
mod shadow;
pub mod spec;
mod tlb;
mod topology;
mod window;

pub use counters::{Counters, LevelCount};
pub use error::SpecError;
pub use features::{Features, UnknownFeature};
pub use hierarchy::{LevelFill, SetFill};
pub use machine::{Machine, Options};
pub use memory::nearest_size;
pub use shadow::{CurvePoint, MissCurve, ShadowRequest};
