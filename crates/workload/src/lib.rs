//! Programs that run inside the model.
//!
//! Three kinds, one interface ([`Program`]): recordings of real programs, memory
//! traces of other tools, and *built-ins*: algorithms that really compute, over instrumented [`memory`],
//! and whose results are checked. A built-in is executed once, into a recording
//! of bounded size; the simulator sees only the replay of that recording.
//!
//! Vocabulary. A *block* is a straight run of instructions; a *reference* is one
//! access of one execution of a block; *set-up* is what a program does before
//! its measured part ([`memory::mark::READY`]); an *iteration* is the unit that
//! a program repeats until its recording is full
//! ([`memory::mark::ITERATION`]).
//!
//! What built-ins leave out of what a recorder would see: program start and
//! libraries, the stack, spilled registers. Their references go to memory that
//! the algorithm's text names, and instruction counts per block are those that a
//! compiler makes at -O2, stated in each kernel's documentation.

mod builtin;
mod foreign;
pub mod kernels;
mod library;
pub mod memory;
mod program;
mod random;
mod record;
mod recorded;
pub mod spec;

pub use builtin::{Builtin, BuiltinError, RunError, list};
pub use foreign::Foreign;
pub use library::Library;
pub use program::{Program, ProgramError};
pub use record::record;
pub use recorded::Recorded;
