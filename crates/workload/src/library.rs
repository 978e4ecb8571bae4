//! Recordings of built-in programs, made once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use piebald_trace::recording::Recording;

use crate::{Builtin, RunError, record};

/// Everything that a built-in's recording depends on.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    builtin: Builtin,
    seed: u64,
    refs: u64,
}

type Slot = Arc<OnceLock<Result<Recording, RunError>>>;

/// Executes each built-in program once for each set of parameters, seed and
/// length, however many runs and threads ask for it. The recordings stay in
/// memory as long as the library does.
#[derive(Default)]
pub struct Library {
    slots: Mutex<HashMap<Key, Slot>>,
}

impl Library {
    /// An empty library.
    pub fn new() -> Self {
        Self::default()
    }

    /// The recording of a program, executed now if it was not before. `refs`
    /// bounds the references of each thread after set-up. Blocks while another
    /// thread executes the same program, but not for other programs.
    ///
    /// # Errors
    /// As [`record()`]; asking again gives the same error.
    pub fn recording(
        &self,
        builtin: &Builtin,
        seed: u64,
        refs: u64,
    ) -> Result<Recording, RunError> {
        let key = Key {
            builtin: builtin.clone(),
            seed,
            refs,
        };
        let slot = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            slots.entry(key).or_default().clone()
        };
        slot.get_or_init(|| record(builtin, seed, refs)).clone()
    }

    /// Number of programs that were executed or are being executed.
    pub fn len(&self) -> usize {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.len()
    }

    /// True before the first program.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
