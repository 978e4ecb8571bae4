//! Scenarios and studies.
//!
//! [`scenario`] reads what a user wants to know, [`prepare()`] gets the programs
//! ready, [`regions`] says what choosing parts of a recording costs, [`study()`] runs
//! them and fills the record that `piebald-report` prints.

mod advise;
mod assemble;
mod boot;
pub mod colors;
mod course;
mod describe;
mod divided;
mod drawn;
mod executed;
mod extra;
mod foresee;
pub mod guests;
pub mod host;
mod jobs;
mod memory;
mod met;
mod meter;
mod near;
mod parts;
mod prepare;
pub mod regions;
pub mod replay;
pub mod runs;
pub mod scenario;
mod study;
mod sysmon;
mod tally;
pub mod utility;

pub use describe::machine_lines;
pub use drawn::{Repetition, share_of};
pub use extra::extra_names;
pub use foresee::study;
pub use jobs::{curve_sizes, runs_of};
pub use memory::MOVES;
pub use parts::Parts;
pub use prepare::{Prepared, Recorder, opened, prepare};
pub use study::{Hooks, StudyError};
pub use tally::Counted;
