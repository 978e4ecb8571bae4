//! What this computer has, and whether page colouring can isolate programs on it.
//!
//! * [`Facts`]: what the kernel tells: caches, hypervisor, huge pages, resctrl;
//! * [`candidates`]: address bits above the page that would index the caches if their index
//!   were linear. That they do is a guess: the last levels of today hash it, and inside a
//!   virtual machine addresses are not those of the memory. Where the number of sets rules it
//!   out, nothing is measured;
//! * [`measure`]: what each of these bits does, timed on this computer;
//! * [`judge`]: the verdict.
//!
//! All but the clock ([`Memory`]) is pure and tested on made-up computers.

mod bits;
mod facts;
mod measure;
mod memory;
mod verdict;

pub use bits::{Candidate, Hashed, bytes_of, candidates, last_level, level_two};
pub use facts::{Facts, Hypervisor, Resctrl, available_bytes, unsupported};
pub use measure::{Bench, BitRounds, Crowding, Measured, Plan, Unmeasured, measure};
pub(crate) use memory::frames_at;
pub use memory::{Memory, MemoryError};
pub use verdict::{BitVerdict, Effect, Outlook, Verdict, effect_of, judge};
