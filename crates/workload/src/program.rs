//! What a program is to the simulator.

use piebald_units::{FileId, op::OpSource};

/// Why a thread of a program cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// The program has no thread of that number.
    #[error("program \"{name}\" has no thread {thread}; it has {threads}")]
    NoThread {
        /// The program.
        name: String,
        /// What was asked for.
        thread: u32,
        /// How many it has.
        threads: u32,
    },
    /// Its recording cannot be read.
    #[error("program \"{name}\": {problem}")]
    Unreadable {
        /// The program.
        name: String,
        /// What is wrong, with the offset in the recording.
        problem: String,
    },
    /// The built-in program could not be executed.
    #[error(transparent)]
    Builtin(#[from] crate::RunError),
}

/// A program that runs inside the model: a built-in or a replayed recording.
///
/// Thread 0 exists from the start. The others are opened when their
/// [`SysOp::Spawn`](piebald_units::op::SysOp::Spawn) is met, whose number is the
/// argument of [`open`](Self::open). Each `open` starts from the beginning, so a
/// program that ends before a run does can be started again, as the papers'
/// experiments do.
pub trait Program: Send + Sync {
    /// Name for reports.
    fn name(&self) -> &str;

    /// Number of threads, those that are spawned later included; at least 1.
    fn threads(&self) -> u32;

    /// Starts a thread.
    ///
    /// # Errors
    /// If there is no such thread, or its recording cannot be read.
    fn open(&self, thread: u32) -> Result<Box<dyn OpSource>, ProgramError>;

    /// The files that exist before the program starts, with their lengths in bytes.
    /// Others come into being, and grow, as the program reads, maps and writes them: a
    /// length that is not known here keeps readahead from going beyond each read.
    fn files(&self) -> Vec<(FileId, u64)> {
        Vec::new()
    }

    /// All that its threads' references and calls depend on, besides the code of the rooms from here
    /// down: inputs by the sums of their bytes, and options. A program whose code lies elsewhere adds
    /// that, too. `None` = it is not known, and outcomes with this program are not kept.
    fn identity(&self) -> Option<String> {
        None
    }
}
