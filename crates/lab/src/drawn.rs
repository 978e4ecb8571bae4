//! Built-in programs that draw anew in each repetition.

use std::sync::{Arc, OnceLock};

use piebald_sim::mix;
use piebald_trace::recording::ReplayOptions;
use piebald_units::{FileId, op::OpSource};
use piebald_workload::{Builtin, Program, ProgramError, Recorded, record};

/// How a built-in program is made for a repetition.
#[derive(Clone)]
pub struct Redraw {
    pub(crate) name: String,
    pub(crate) builtin: Builtin,
    pub(crate) threads: u32,
    /// References of each thread.
    pub(crate) refs: u64,
    pub(crate) options: ReplayOptions,
}

/// The seed of a built-in program, of all that a repetition draws.
pub(crate) fn seed_of(draw: u64) -> u64 {
    mix(&[draw, 8])
}

/// A built-in program that is executed when it is first needed. It is not executed if the outcome is
/// in the store, and only recordings of runs that are under way take memory.
pub(crate) struct Drawn {
    redraw: Redraw,
    seed: u64,
    executed: OnceLock<Result<Recorded, ProgramError>>,
}

impl Redraw {
    /// The program of a repetition whose draws all follow from `draw`.
    pub(crate) fn of(&self, draw: u64) -> Arc<dyn Program> {
        Arc::new(Drawn {
            redraw: self.clone(),
            seed: seed_of(draw),
            executed: OnceLock::new(),
        })
    }
}

impl Drawn {
    fn executed(&self) -> Result<&Recorded, ProgramError> {
        let Redraw {
            name,
            builtin,
            refs,
            options,
            ..
        } = &self.redraw;
        let execute = || Recorded::new(name, record(builtin, self.seed, *refs)?, *options);
        self.executed
            .get_or_init(execute)
            .as_ref()
            .map_err(Clone::clone)
    }
}

impl Program for Drawn {
    fn name(&self) -> &str {
        &self.redraw.name
    }

    fn threads(&self) -> u32 {
        self.redraw.threads
    }

    fn open(&self, thread: u32) -> Result<Box<dyn OpSource>, ProgramError> {
        self.executed()?.open(thread)
    }

    fn files(&self) -> Vec<(FileId, u64)> {
        // What went wrong is told when a thread is opened.
        self.executed().map_or_else(|_| Vec::new(), Program::files)
    }

    /// Its parameters: the rooms that execute it are in the epoch.
    fn identity(&self) -> Option<String> {
        let Redraw {
            builtin,
            refs,
            options,
            ..
        } = &self.redraw;
        let seed = self.seed;
        Some(format!(
            "built-in {builtin}, seed {seed}, {refs} references, {options:?}"
        ))
    }
}
