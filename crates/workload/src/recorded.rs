//! Replays of recordings as programs.

use piebald_trace::recording::{Recording, ReplayOptions};
use piebald_units::{FileId, op::OpSource};

use crate::{Builtin, Library, Program, ProgramError};

/// A recording that is replayed: of a real program or of a built-in one.
pub struct Recorded {
    name: String,
    recording: Recording,
    /// Numbers of the threads, the first one's first. In a recording of several
    /// processes they have gaps.
    threads: Vec<u32>,
    options: ReplayOptions,
}

impl Recorded {
    /// Replays `recording` under this name.
    ///
    /// The options hold for every thread. A start inside the program
    /// ([`ReplayOptions::start_at`]) is allowed for programs of one thread only:
    /// a thread that was started earlier would have no beginning.
    ///
    /// # Errors
    /// The recording is damaged, has no thread, or has several and the start
    /// lies inside it.
    pub fn new(
        name: &str,
        recording: Recording,
        options: ReplayOptions,
    ) -> Result<Self, ProgramError> {
        let unreadable = |problem: String| ProgramError::Unreadable {
            name: name.to_owned(),
            problem,
        };
        let threads = recording.threads().map_err(|e| unreadable(e.to_string()))?;
        let Some(first) = threads.iter().position(|t| t.parent.is_none()) else {
            return Err(unreadable("the recording has no first thread".to_owned()));
        };
        if threads.len() > 1 && options.start_at > 0 {
            return Err(unreadable(format!(
                "start at instruction {} of a program of {} threads; allowed: 0",
                options.start_at,
                threads.len()
            )));
        }
        let mut threads: Vec<u32> = threads.iter().map(|t| t.thread).collect();
        threads.swap(0, first);
        Ok(Self {
            name: name.to_owned(),
            recording,
            threads,
            options,
        })
    }

    /// What is replayed.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }
}

impl Program for Recorded {
    fn name(&self) -> &str {
        &self.name
    }

    fn threads(&self) -> u32 {
        u32::try_from(self.threads.len()).unwrap_or(u32::MAX)
    }

    fn open(&self, thread: u32) -> Result<Box<dyn OpSource>, ProgramError> {
        let known = match thread {
            0 => self.threads.first(),
            _ => self.threads.iter().find(|&&t| t == thread),
        };
        let Some(&number) = known else {
            return Err(ProgramError::NoThread {
                name: self.name.clone(),
                thread,
                threads: self.threads(),
            });
        };
        let source = self.recording.source(number, self.options);
        let source = source.map_err(|e| ProgramError::Unreadable {
            name: self.name.clone(),
            problem: e.to_string(),
        })?;
        Ok(Box::new(source))
    }

    fn identity(&self) -> Option<String> {
        // One that cannot be read now fails when it is run.
        let digest = self.recording.digest().ok()?;
        Some(format!("recording {digest} {:?}", self.options))
    }

    fn files(&self) -> Vec<(FileId, u64)> {
        let files = self.recording.files().unwrap_or_default();
        files.iter().map(|f| (f.file, f.ident.size)).collect()
    }
}

impl Library {
    /// A built-in program as a replay of its recording; see
    /// [`recording`](Self::recording).
    ///
    /// # Errors
    /// The program could not be executed, or the options do not fit it.
    pub fn program(
        &self,
        builtin: &Builtin,
        seed: u64,
        refs: u64,
        options: ReplayOptions,
    ) -> Result<Recorded, ProgramError> {
        let recording = self.recording(builtin, seed, refs)?;
        Recorded::new(&builtin.to_string(), recording, options)
    }
}
