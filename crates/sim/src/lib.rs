//! The simulator: programs on a modelled operating system on a modelled machine.
//!
//! A [`Case`] says what to run: a machine, a kernel as programs meet it, and programs. [`Model`] makes
//! the kernel, runs the case and gives an [`Outcome`]: for each program, what its measured part
//! took. With a store ([`piebald_store`]) it runs nothing twice.
//!
//! [`run`] is the part below that: it takes a [`Setup`] with the kernel made, owns the
//! clocks of all hardware threads, the seed, and the statistics; it prints
//! nothing and reads no file.
//!
//! The machine's hardware threads have one clock each. The one with the lowest
//! clock runs next; it may run ahead of the others inside its private caches for
//! a *quantum*, but shared caches and memory see requests of different threads
//! at most a *skew* out of order (`docs/decisions/`).

mod case;
mod draws;
mod engine;
mod files;
mod model;
mod reads;
pub mod replay;
mod setup;
mod snapshot;
mod sysmon;
mod task;
mod threads;
mod work;

pub use case::{Boot, Case, FrameRule, Managed};
pub use draws::{draw, mix};
pub use engine::{run, run_after};
pub use files::{Files, FilesError, Zone};
pub use model::{CaseError, EPOCH, Model, RAINBOW, Watch};
pub use reads::{Domains, Reads};
pub use setup::{
    ColorChange, ColorSetup, Course, CurveRequest, Input, MapRequest, MapSample, MemoryUse,
    Outcome, ProgramOutcome, ProgramSetup, Progress, Recolor, Setup, SimError, Stay,
};
pub use snapshot::{IoUse, ReadUse, Region, Snapshot, TimeSample};
pub use sysmon::{PageWatch, PagesSeen};
pub use threads::{NR_HOPS, Threads};
