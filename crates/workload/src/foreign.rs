//! Memory traces of other tools as programs.

use std::sync::OnceLock;

use piebald_trace::foreign::{ForeignThread, ForeignTrace, Identity};
use piebald_units::op::{Filled, MemRef, Next, OpSource, RefKind, SpawnKind, SysOp};

use crate::{Program, ProgramError};

/// References read at a time while a trace is measured.
const BATCH: usize = 4096;
/// Records that tell process and thread come before this many references.
const PREVIEW: usize = 64;

/// A foreign trace as a program.
///
/// No trace says who started whom: the first thread starts the others before its
/// first instruction, as processes of their own where the trace gives them other
/// process ids. Mappings are not in a trace; pages appear when they are first
/// touched.
pub struct Foreign {
    name: String,
    trace: ForeignTrace,
    identities: Vec<Identity>,
    refs: u64,
    identity: OnceLock<Option<String>>,
}

impl Foreign {
    /// Reads the trace until it is known to hold `enough` references besides
    /// instruction fetches, or to its end.
    ///
    /// # Errors
    /// A file cannot be opened, or is damaged in the part that was read.
    pub fn new(name: &str, trace: ForeignTrace, enough: u64) -> Result<Self, ProgramError> {
        let mut program = Self {
            name: name.to_owned(),
            trace,
            identities: Vec::new(),
            refs: 0,
            identity: OnceLock::new(),
        };
        for thread in 0..program.trace.threads() {
            let mut source = program.source(thread)?;
            program.count(&mut source, enough)?;
            program.identities.push(source.identity());
        }
        Ok(program)
    }

    /// What is run.
    pub const fn trace(&self) -> &ForeignTrace {
        &self.trace
    }

    /// References besides instruction fetches: exact if it is less than what was
    /// enough, otherwise at least that many.
    pub const fn refs(&self) -> u64 {
        self.refs
    }

    /// References that hit in caches of the tracer are missing.
    pub fn filtered(&self) -> bool {
        self.trace.format().filtered() || self.identities.iter().any(|i| i.filtered)
    }

    fn unreadable(&self, problem: impl std::fmt::Display) -> ProgramError {
        ProgramError::Unreadable {
            name: self.name.clone(),
            problem: problem.to_string(),
        }
    }

    fn source(&self, thread: usize) -> Result<ForeignThread, ProgramError> {
        let source = self.trace.open(thread);
        source.map_err(|e| self.unreadable(e))
    }

    /// Counts a thread's references; looks at its beginning even if there are
    /// enough already.
    fn count(&mut self, source: &mut ForeignThread, enough: u64) -> Result<(), ProgramError> {
        let mut refs = vec![MemRef::default(); PREVIEW];
        loop {
            let filled = source.fill(&mut refs);
            let data = refs[..filled.refs].iter();
            self.refs += data.filter(|r| r.kind != RefKind::Fetch).count() as u64;
            match filled.next {
                Next::Broken => {
                    let why = source.failure().unwrap_or("cannot be read further");
                    return Err(self.unreadable(why));
                }
                Next::End | Next::Exit(_) => return Ok(()),
                _ if self.refs >= enough => return Ok(()),
                _ => refs.resize(BATCH, MemRef::default()),
            }
        }
    }

    fn spawn(&self, thread: usize) -> SysOp {
        let process = |n: usize| self.identities.get(n).and_then(|i| i.process);
        SysOp::Spawn {
            thread: thread as u32,
            kind: match process(thread) == process(0) {
                true => SpawnKind::Thread,
                false => SpawnKind::Fork,
            },
        }
    }
}

impl Program for Foreign {
    fn identity(&self) -> Option<String> {
        let known = || {
            self.trace
                .identity()
                .ok()
                .map(|text| format!("trace {text}"))
        };
        self.identity.get_or_init(known).clone()
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn threads(&self) -> u32 {
        u32::try_from(self.trace.threads()).unwrap_or(u32::MAX)
    }

    fn open(&self, thread: u32) -> Result<Box<dyn OpSource>, ProgramError> {
        let source = self.source(thread as usize)?;
        if thread > 0 {
            return Ok(Box::new(source));
        }
        let children = (1..self.trace.threads()).rev();
        Ok(Box::new(First {
            spawns: children.map(|n| self.spawn(n)).collect(),
            source,
        }))
    }
}

/// The first thread: starts the others, then does what its trace says.
struct First {
    /// The next one last.
    spawns: Vec<SysOp>,
    source: ForeignThread,
}

impl OpSource for First {
    fn fill(&mut self, out: &mut [MemRef]) -> Filled {
        match self.spawns.pop() {
            Some(op) => Filled {
                refs: 0,
                tail: 0,
                next: Next::Sys(op),
            },
            None => self.source.fill(out),
        }
    }

    fn failure(&self) -> Option<&str> {
        self.source.failure()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use piebald_trace::foreign::Options;

    use super::*;

    fn sample(name: &str) -> ForeignTrace {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/mem");
        ForeignTrace::at(&[folder.join(name)], None, Options::default()).expect("a trace")
    }

    #[test]
    fn fetches_do_not_count_towards_the_length() {
        let program = Foreign::new("chase", sample("chase.lackey"), u64::MAX).expect("whole");
        assert_eq!(program.refs(), 18);
        assert!(!program.filtered());
    }

    #[test]
    fn the_first_thread_starts_the_others_and_processes_stay_apart() {
        let names = [
            "chase.drmemtrace.7.trace.gz",
            "chase.drmemtrace.7.trace.zip",
        ];
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/mem");
        let files = names.map(|n| folder.join(n));
        let trace = ForeignTrace::at(&files, None, Options::default()).expect("a trace");
        let mut program = Foreign::new("two", trace, u64::MAX).expect("whole");
        assert_eq!((program.threads(), program.refs()), (2, 36));
        let mut refs = [MemRef::default(); 64];
        let mut first = |program: &Foreign| {
            let mut source = program.open(0).expect("thread 0");
            [(); 2]
                .map(|()| source.fill(&mut refs))
                .map(|f| (f.refs, f.next))
        };
        let spawn = |kind| Next::Sys(SysOp::Spawn { thread: 1, kind });
        assert_eq!(first(&program)[0], (0, spawn(SpawnKind::Thread)));
        assert!(first(&program)[1].0 > 0);
        program.identities[1].process = Some(8);
        assert_eq!(first(&program)[0], (0, spawn(SpawnKind::Fork)));
        assert!(program.open(2).is_err());
    }

    #[test]
    fn damage_in_the_part_that_is_needed_is_told_with_its_place() {
        let folder = std::env::temp_dir().join(format!("piebald-foreign-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("x.trace");
        std::fs::write(&path, "l 0x10 0\nl 0x20 x\n").expect("written");
        let open = || {
            let format = Some(piebald_trace::foreign::Format::LoadStore);
            ForeignTrace::at(&[&path], format, Options::default()).expect("opens")
        };
        let error = Foreign::new("x", open(), 2).err().map(|e| e.to_string());
        std::fs::remove_dir_all(&folder).expect("removed");
        let error = error.expect("damaged");
        assert!(error.contains("byte 9, line 2"), "{error}");
    }
}
