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

mod again;
mod brief;
mod builtin;
mod foreign;
pub mod kernels;
mod library;
pub mod memory;
mod own_files;
mod program;
mod random;
mod reader;
mod record;
mod recorded;
pub mod spec;
mod touches;

pub use again::Again;
pub use brief::Brief;
pub use builtin::{Builtin, BuiltinError, RunError, list};
pub use foreign::Foreign;
pub use library::Library;
pub use own_files::OwnFiles;
pub use program::{Program, ProgramError};
pub use reader::Reader;
pub use record::record;
pub use recorded::Recorded;
pub use touches::{PageTouch, Touches};

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use piebald_trace::recording::ReplayOptions;
    use piebald_units::op::{MemRef, Next};

    use super::*;

    pub(crate) fn builtin(text: &str) -> Arc<dyn Program> {
        let builtin = Builtin::parse(text).unwrap_or_else(|e| panic!("{e}"));
        let options = ReplayOptions {
            fetches: true,
            ..ReplayOptions::default()
        };
        let program = Library::new().program(&builtin, 1, 1 << 40, options);
        Arc::new(program.unwrap_or_else(|e| panic!("{e}")))
    }

    /// All events of a source until it ends, or so many of them.
    pub(crate) fn events(program: &dyn Program, most: usize) -> (u64, Vec<Next>) {
        let mut source = program.open(0).unwrap_or_else(|e| panic!("{e}"));
        let (mut refs, mut seen) = (0, Vec::new());
        let mut buffer = vec![MemRef::default(); 64];
        while seen.len() < most {
            let filled = source.fill(&mut buffer);
            refs += filled.refs as u64;
            match filled.next {
                Next::More => {}
                next => seen.push(next),
            }
            if matches!(seen.last(), Some(Next::Exit(_) | Next::End)) {
                break;
            }
        }
        (refs, seen)
    }
}
