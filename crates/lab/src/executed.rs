//! Built-in programs, which are executed when they are first needed: a run whose outcome is in the store needs none.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError},
};

use piebald_trace::recording::{Recording, ReplayOptions};
use piebald_units::{FileId, op::OpSource};
use piebald_workload::{Builtin, Library, Program, ProgramError, Recorded, record};

use crate::{met, regions::setup_refs};

/// A built-in program, and how it is executed.
#[derive(Clone)]
pub struct Executed {
    pub(crate) name: String,
    pub(crate) builtin: Builtin,
    /// References of each thread behind the set-up.
    pub(crate) refs: u64,
    pub(crate) options: ReplayOptions,
}

/// It with a seed.
struct Seeded {
    of: Executed,
    seed: u64,
    /// Has its recording for others as well; none = it goes with the program.
    library: Option<Arc<Library>>,
    executed: OnceLock<Result<Recorded, ProgramError>>,
}

/// What executing programs told, by all that it depends on.
type Known = Mutex<HashMap<String, Arc<OnceLock<Result<u64, String>>>>>;

/// What this key is known to come to, found once in a process.
pub(crate) fn known(
    key: String,
    find: impl FnOnce() -> Result<u64, String>,
) -> Result<u64, String> {
    static KNOWN: LazyLock<Known> = LazyLock::new(Known::default);
    let slot = {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(key).or_default().clone()
    };
    // Others that ask for the same wait, and for nothing else.
    slot.get_or_init(find).clone()
}

impl Executed {
    /// As a program with a seed.
    pub(crate) fn with(&self, seed: u64, library: Option<&Arc<Library>>) -> Arc<dyn Program> {
        Arc::new(Seeded {
            of: self.clone(),
            seed,
            library: library.cloned(),
            executed: OnceLock::new(),
        })
    }

    /// References of its first thread until it is set up. No more than that is executed.
    pub(crate) fn set_up(&self, seed: u64) -> Result<u64, String> {
        self.of_set_up("references", seed, |recording| {
            let program = Recorded::new(&self.name, recording, self.options);
            met::set_up(&program.map_err(|e| e.to_string())?)
        })
    }

    /// Those to data alone.
    pub(crate) fn set_up_data(&self, seed: u64) -> Result<u64, String> {
        self.of_set_up("data", seed, |recording| {
            setup_refs(&recording).map_err(|e| e.to_string())
        })
    }

    fn of_set_up(
        &self,
        what: &str,
        seed: u64,
        find: impl FnOnce(Recording) -> Result<u64, String>,
    ) -> Result<u64, String> {
        let key = format!("set-up {what} {} {seed} {:?}", self.builtin, self.options);
        known(key, || {
            find(record(&self.builtin, seed, 1).map_err(|e| e.to_string())?)
        })
    }
}

impl Seeded {
    fn executed(&self) -> Result<&Recorded, ProgramError> {
        let Executed {
            name,
            builtin,
            refs,
            options,
        } = &self.of;
        let execute = || {
            let recording = match &self.library {
                Some(library) => library.recording(builtin, self.seed, *refs),
                None => record(builtin, self.seed, *refs),
            };
            Recorded::new(name, recording?, *options)
        };
        let executed = self.executed.get_or_init(execute);
        executed.as_ref().map_err(Clone::clone)
    }
}

impl Program for Seeded {
    fn name(&self) -> &str {
        &self.of.name
    }

    fn threads(&self) -> u32 {
        self.of.builtin.threads()
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
        let Executed {
            name: _,
            builtin,
            refs,
            options,
        } = &self.of;
        let seed = self.seed;
        Some(format!(
            "built-in {builtin}, seed {seed}, {refs} references, {options:?}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use piebald_workload::list;

    use super::*;

    #[test]
    fn a_set_up_by_itself_is_as_long_as_that_of_the_whole() {
        let texts = [
            "chase:64KiB",
            "fft:1024",
            "filesort:64KiB,block=8KiB",
            "gups:64KiB",
            "hashjoin:1MiB,dimension=1000",
            "lookup:2,size=16KiB,chunk=4KiB",
            "lu:40",
            "matmul:30",
            "mergesort:64KiB",
            "phold:1000,processes=100",
            "postmark:20,low=1KiB,high=8KiB",
            "randread:64KiB",
            "readfiles:4,size=4KiB,chunk=4KiB,instrs=16",
            "reread:64KiB",
            "scan:64KiB",
            "seqscan:64KiB",
            "smm:1000,nz=5000",
            "sor:40",
            "triad:64KiB,threads=2",
        ];
        let is_tried = |name: &str| {
            texts
                .iter()
                .any(|text| text.split(':').next() == Some(name))
        };
        for spec in list() {
            assert!(is_tried(spec.name), "{} is not tried", spec.name);
        }
        for text in texts {
            let builtin = Builtin::parse(text).expect(text);
            let options = ReplayOptions {
                fetches: true,
                ..ReplayOptions::default()
            };
            for seed in [1, 42] {
                let executed = Executed {
                    name: "it".to_owned(),
                    builtin: builtin.clone(),
                    refs: 20_000,
                    options,
                };
                let whole = record(&builtin, seed, executed.refs).expect("it runs");
                let data = setup_refs(&whole).expect("a recording");
                assert_eq!(executed.set_up_data(seed), Ok(data), "{text}");
                let program = executed.with(seed, None);
                assert_eq!(program.threads(), builtin.threads(), "{text}");
                let of_whole = met::set_up(&*program);
                assert_eq!(executed.set_up(seed), of_whole, "{text}");
            }
        }
    }
}
