//! Where programs come from, and programs that change another: one that starts again, one that
//! reads what another will read, one that leaves only its system calls.

use std::sync::{Arc, atomic::AtomicBool};

use piebald_store::digest;
use piebald_units::{
    FileId, VirtAddr,
    op::{Access, Backing, Filled, MemRef, Next, OpSource, SysOp},
};
use piebald_workload::{Program, ProgramError, memory::mark};

use crate::experiment::unless_stopped;

/// Stands for the code of these programs, which lies outside the rooms that an epoch stands for.
fn code() -> String {
    digest(include_bytes!("sources.rs"))
}

/// A program, and what is done to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Source {
    /// Built in.
    Builtin(String),
    /// A command of the list, on the directory drawn with this seed.
    Recorded(String, u64),
    /// A query of PostgreSQL, recorded in the middle into the folder of the inputs.
    Backend(String),
    /// Reads the files of another from beginning to end.
    Reader(Box<Source>),
    /// A built-in program without its set-up: its system calls from there on, each with the
    /// reference before it.
    Transactions(String),
    /// Another as it is needed where it costs no time.
    Free(Box<Source>),
    /// Files of its own, one set for each number.
    Own(Box<Source>, u32),
}

/// A program of one thread that starts again when it ends: as another image in the same process.
pub(super) struct Again(pub(super) Arc<dyn Program>);

impl Program for Again {
    fn identity(&self) -> Option<String> {
        let code = code();
        Some(format!("again {code} {}", self.0.identity()?))
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn threads(&self) -> u32 {
        self.0.threads()
    }

    fn open(&self, thread: u32) -> Result<Box<dyn OpSource>, ProgramError> {
        let source = self.0.open(thread)?;
        Ok(Box::new(AgainSource {
            program: self.0.clone(),
            source,
            made: 0,
            failure: None,
        }))
    }

    fn files(&self) -> Vec<(FileId, u64)> {
        self.0.files()
    }
}

struct AgainSource {
    program: Arc<dyn Program>,
    source: Box<dyn OpSource>,
    /// References since it started last: one that makes none would start again for ever.
    made: u64,
    failure: Option<String>,
}

impl OpSource for AgainSource {
    fn fill(&mut self, out: &mut [MemRef]) -> Filled {
        let filled = self.source.fill(out);
        self.made += filled.refs as u64;
        if !matches!(filled.next, Next::Exit(_) | Next::End) || self.made == 0 {
            return filled;
        }
        self.made = 0;
        let next = match self.program.open(0) {
            Ok(source) => {
                self.source = source;
                Next::Sys(SysOp::Exec)
            }
            Err(e) => {
                self.failure = Some(e.to_string());
                Next::Broken
            }
        };
        Filled { next, ..filled }
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref().or_else(|| self.source.failure())
    }
}

/// Bytes of a call of [`Reader`].
const CALL: u64 = 32 << 10;
/// Where its buffer lies.
const BUFFER: VirtAddr = VirtAddr(0x1000_0000);

/// Reads files from beginning to end, in order.
pub(super) struct Reader(pub(super) Vec<(FileId, u64)>);

impl Program for Reader {
    fn identity(&self) -> Option<String> {
        Some(format!("reader {} {:?}", code(), self.0))
    }

    fn name(&self) -> &str {
        "reader"
    }

    fn threads(&self) -> u32 {
        1
    }

    fn open(&self, _: u32) -> Result<Box<dyn OpSource>, ProgramError> {
        Ok(Box::new(ReaderSource {
            files: self.0.clone(),
            at: None,
        }))
    }

    fn files(&self) -> Vec<(FileId, u64)> {
        self.0.clone()
    }
}

struct ReaderSource {
    files: Vec<(FileId, u64)>,
    /// File and offset of the next call; `None` = the buffer is not there yet.
    at: Option<(usize, u64)>,
}

impl OpSource for ReaderSource {
    fn fill(&mut self, _: &mut [MemRef]) -> Filled {
        let next = match self.at {
            None => {
                self.at = Some((0, 0));
                Next::Sys(SysOp::Map {
                    addr: BUFFER,
                    len: CALL,
                    backing: Backing::Anon,
                    access: Access {
                        write: true,
                        exec: false,
                    },
                    shared: false,
                })
            }
            Some((mut nth, mut offset)) => loop {
                match self.files.get(nth) {
                    None => break Next::Exit(0),
                    Some((_, bytes)) if *bytes <= offset => (nth, offset) = (nth + 1, 0),
                    Some((file, bytes)) => {
                        let len = CALL.min(bytes - offset);
                        self.at = Some((nth, offset + len));
                        break Next::Sys(SysOp::Read {
                            file: *file,
                            offset,
                            len,
                            buffer: BUFFER,
                        });
                    }
                }
            },
        };
        Filled {
            refs: 0,
            tail: 0,
            next,
        }
    }
}

/// The system calls of a built-in program after its set-up.
pub(super) struct Transactions(pub(super) Arc<dyn Program>);

impl Program for Transactions {
    fn identity(&self) -> Option<String> {
        let code = code();
        Some(format!("transactions {code} {}", self.0.identity()?))
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn threads(&self) -> u32 {
        1
    }

    fn open(&self, thread: u32) -> Result<Box<dyn OpSource>, ProgramError> {
        Ok(Box::new(TransactionSource {
            source: self.0.open(thread)?,
            ready: false,
            buffer: vec![MemRef::default(); 1024],
        }))
    }

    fn files(&self) -> Vec<(FileId, u64)> {
        self.0.files()
    }
}

struct TransactionSource {
    source: Box<dyn OpSource>,
    ready: bool,
    buffer: Vec<MemRef>,
}

impl OpSource for TransactionSource {
    fn fill(&mut self, out: &mut [MemRef]) -> Filled {
        let mut last = None;
        loop {
            let filled = self.source.fill(&mut self.buffer);
            if self.ready {
                last = self.buffer[..filled.refs].last().copied().or(last);
            }
            let is_call = matches!(
                filled.next,
                Next::Sys(SysOp::Read { .. } | SysOp::Write { .. })
            );
            match filled.next {
                Next::Mark(mark::READY) => self.ready = true,
                Next::More | Next::Mark(_) => {}
                Next::Sys(_) if is_call && !self.ready => {}
                next => {
                    let refs = match (last, out.first_mut()) {
                        (Some(last), Some(slot)) => {
                            *slot = last;
                            1
                        }
                        _ => 0,
                    };
                    return Filled {
                        refs,
                        tail: 0,
                        next,
                    };
                }
            }
        }
    }

    fn failure(&self) -> Option<&str> {
        self.source.failure()
    }
}

/// A program whose files are its own.
pub(super) struct Own(pub(super) Arc<dyn Program>, pub(super) u32);

/// Another file for each number; 0 leaves it as it is.
fn renumbered(file: FileId, number: u32) -> FileId {
    FileId(file.0 ^ u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

impl Program for Own {
    fn identity(&self) -> Option<String> {
        let code = code();
        Some(format!("own {code} {} {}", self.1, self.0.identity()?))
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn threads(&self) -> u32 {
        self.0.threads()
    }

    fn open(&self, thread: u32) -> Result<Box<dyn OpSource>, ProgramError> {
        Ok(Box::new(OwnSource(self.0.open(thread)?, self.1)))
    }

    fn files(&self) -> Vec<(FileId, u64)> {
        let files = self.0.files().into_iter();
        files.map(|(f, n)| (renumbered(f, self.1), n)).collect()
    }
}

struct OwnSource(Box<dyn OpSource>, u32);

impl OpSource for OwnSource {
    fn fill(&mut self, out: &mut [MemRef]) -> Filled {
        let mut filled = self.0.fill(out);
        if let Next::Sys(
            SysOp::Read { file, .. }
            | SysOp::Write { file, .. }
            | SysOp::Map {
                backing: Backing::File { file, .. },
                ..
            },
        ) = &mut filled.next
        {
            *file = renumbered(*file, self.1);
        }
        filled
    }

    fn failure(&self) -> Option<&str> {
        self.0.failure()
    }
}

/// Where things happen in a program's main thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    /// All references and those to data, to its end.
    pub end: Place,
    /// Where its set-up ends.
    pub ready: Place,
    /// Where its iterations are marked.
    pub iterations: Vec<Place>,
    /// Its calls that read a file: the file, the offset, and where.
    pub reads: Vec<(FileId, u64, Place)>,
    /// Bytes that its calls read and write.
    pub copied: u64,
}

impl Places {
    /// What a reference stands for on average, itself included: the kernel's copy of a line
    /// of 64 B is a load and a store.
    pub(super) fn weight(&self) -> f64 {
        let copies = self.copied as f64 / 64.0 * 2.0;
        1.0 + copies / self.end.data.max(1) as f64
    }
}

/// References so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Place {
    /// With instruction fetches.
    pub all: u64,
    /// To data alone, which is what runs are measured in.
    pub data: u64,
}

/// Reads a program's main thread to its end.
///
/// # Errors
/// It cannot be read, or `stop` is set meanwhile.
pub(super) fn places(program: &dyn Program, stop: Option<&AtomicBool>) -> Result<Places, String> {
    let mut source = program.open(0).map_err(|e| e.to_string())?;
    let mut buffer = vec![MemRef::default(); 4096];
    let mut found = Places::default();
    let mut at = Place::default();
    loop {
        unless_stopped(stop)?;
        let filled = source.fill(&mut buffer);
        let refs = &buffer[..filled.refs];
        at.all += refs.len() as u64;
        let fetch = piebald_units::op::RefKind::Fetch;
        at.data += refs.iter().filter(|r| r.kind != fetch).count() as u64;
        match filled.next {
            Next::Mark(mark::READY) => found.ready = at,
            Next::Mark(mark::ITERATION) => found.iterations.push(at),
            Next::Sys(SysOp::Read {
                file, offset, len, ..
            }) => {
                found.reads.push((file, offset, at));
                found.copied += len;
            }
            Next::Sys(SysOp::Write { len, .. }) => found.copied += len,
            Next::Exit(_) | Next::End => break,
            Next::Broken => return Err(source.failure().unwrap_or("broken").to_owned()),
            _ => {}
        }
    }
    found.end = at;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use piebald_trace::recording::ReplayOptions;
    use piebald_workload::{Builtin, Library};

    use super::*;

    fn builtin(text: &str) -> Arc<dyn Program> {
        let builtin = Builtin::parse(text).unwrap_or_else(|e| panic!("{e}"));
        let program = Library::new().program(&builtin, 1, 1 << 40, ReplayOptions::default());
        Arc::new(program.unwrap_or_else(|e| panic!("{e}")))
    }

    /// All events of a source until it ends, or so many of them.
    fn events(program: &dyn Program, most: usize) -> (u64, Vec<Next>) {
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

    #[test]
    fn a_program_that_starts_again_does_the_same_again() {
        let program = builtin("scan:64KiB,iterations=2");
        let (refs, once) = events(&*program, usize::MAX);
        let again = Again(program);
        let (twice_refs, twice) = events(&again, 2 * once.len());
        assert_eq!(twice_refs, 2 * refs);
        let (first, second) = twice.split_at(once.len());
        assert_eq!(first[..once.len() - 1], once[..once.len() - 1]);
        assert_eq!(first, second);
        assert_eq!(first.last(), Some(&Next::Sys(SysOp::Exec)));
    }

    #[test]
    fn a_reader_reads_every_byte_of_the_files_once() {
        let files = vec![(FileId(7), 0), (FileId(8), 70_000), (FileId(9), 1)];
        let (refs, seen) = events(&Reader(files), usize::MAX);
        let read = |wanted: u64| {
            let mut at = 0;
            for next in &seen {
                if let Next::Sys(SysOp::Read {
                    file, offset, len, ..
                }) = next
                    && file.0 == wanted
                {
                    assert_eq!(*offset, at);
                    at += len;
                }
            }
            at
        };
        assert_eq!((refs, read(7), read(8), read(9)), (0, 0, 70_000, 1));
        assert_eq!(seen.last(), Some(&Next::Exit(0)));
    }

    #[test]
    fn transactions_are_the_calls_after_the_set_up() {
        let program = builtin("postmark:8,low=4KiB,high=8KiB,iterations=5");
        let calls = |seen: &[Next]| {
            let call = |n: &&Next| matches!(n, Next::Sys(SysOp::Read { .. } | SysOp::Write { .. }));
            seen.iter().filter(call).copied().collect::<Vec<Next>>()
        };
        let (_, all) = events(&*program, usize::MAX);
        let at = all.iter().position(|n| *n == Next::Mark(mark::READY));
        let (set_up, rest) = all.split_at(at.unwrap_or(0));
        assert!(!calls(set_up).is_empty() && !calls(rest).is_empty());
        let (refs, left) = events(&Transactions(program), usize::MAX);
        assert_eq!(calls(&left), calls(rest));
        assert!(refs > 0 && refs <= left.len() as u64);
    }

    #[test]
    fn files_of_its_own_are_no_other_programs() {
        let program = builtin("filesort:size=64KiB,block=16KiB,iterations=1");
        let plain = program.files();
        let ids = |n| -> Vec<FileId> {
            let own = Own(program.clone(), n);
            own.files().iter().map(|f| f.0).collect()
        };
        assert_eq!(ids(0), plain.iter().map(|f| f.0).collect::<Vec<_>>());
        assert!(
            ids(1)
                .iter()
                .all(|f| !ids(0).contains(f) && !ids(2).contains(f))
        );
        let (_, seen) = events(&Own(program.clone(), 3), usize::MAX);
        for next in seen {
            if let Next::Sys(SysOp::Read { file, .. } | SysOp::Write { file, .. }) = next {
                assert!(ids(3).contains(&file));
            }
        }
    }

    #[test]
    fn places_count_what_a_program_refers_to() {
        let program = builtin("scan:64KiB,iterations=3");
        let found = places(&*program, None).unwrap_or_else(|e| panic!("{e}"));
        let (refs, seen) = events(&*program, usize::MAX);
        assert_eq!(found.end.all, refs);
        let marks = |n| seen.iter().filter(|s| **s == Next::Mark(n)).count();
        assert_eq!(found.iterations.len(), marks(mark::ITERATION));
        assert!(found.iterations.is_sorted() && found.ready <= found.iterations[0]);
        // 64 KiB in calls of 32 KiB, three times.
        assert_eq!(found.reads.len(), 6);
        let stop = AtomicBool::new(true);
        let ended = places(&*program, Some(&stop)).err();
        assert_eq!(ended.as_deref(), Some("interrupted"));
    }
}
