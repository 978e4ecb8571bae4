//! All that touches a live Linux.
//!
//! * [`Module`] is `/proc/piebald` and the colour sets in configfs with types: the files of the
//!   kernel module (`docs/kernel.md`), each value checked on its way in and out;
//! * [`load`] and [`unload`] put the module into the kernel and take it out;
//!   [`build_module`] makes it for the kernel that runs;
//! * [`become_program`] starts a program in colours of its own (the thesis's `rlaunch`,
//!   Rainbow, section 5.5);
//! * [`Facts`], [`measure`] and [`judge`] say whether page colouring can isolate programs on this
//!   computer;
//! * [`compare`] runs a program with and without it and says what the difference is worth;
//! * [`Work`] is what such programs do where a machine itself is looked at.
//!
//! Every file is found below a root that the caller names, so that tests run over a tree of
//! plain files. System calls and `unsafe` are in `sys` alone.

#![deny(unsafe_code)]

mod ask;
mod build;
mod compare;
mod counters;
mod error;
mod firmware;
mod ground;
mod group;
mod launch;
mod load;
mod log;
mod module;
mod probe;
mod sets;
#[allow(unsafe_code)]
mod sys;
mod text;
mod transient;
mod work;

pub use ask::{AskError, BitsError, MapBits, Share, Wanted, parse_mode};
pub use build::{BuildError, build_module, checkout_above, headers_of, installed_module};
pub use compare::{CompareError, Comparison, Finding, Quantity, Trial, compare};
pub use counters::EventCounters;
pub use error::ModuleError;
pub use firmware::memory_end;
pub use launch::{LaunchError, become_program};
pub use load::{LoadError, Parameters, load, unload};
pub use module::{Counters, Module, Moved, Status};
pub use probe::{
    Bench, BitRounds, BitVerdict, Candidate, Crowding, Effect, Facts, Hashed, Hypervisor, Measured,
    Memory, MemoryError, Outlook, Plan, Resctrl, Unmeasured, Verdict, available_bytes, bytes_of,
    candidates, effect_of, judge, last_level, level_two, measure, unsupported,
};
pub use sets::Set;
pub use sys::{hypervisor_name, mount_configfs, release};
pub use work::Work;
