//! What a host tells a policy that places reads, and what it is answered.
//!
//! A *read* copies file data from the page cache to a program. On a machine with
//! several caches it matters which core does it, since the copy fills that core's
//! cache. The calls for one read, in order:
//!
//! 1. [`before`](ReadPlacement::before), on the core where the thread runs. The
//!    answer is a [`Read`]: where to read and with which loads.
//! 2. If the core is another one, the host moves the thread there; then it copies.
//!    The thread stays where it is afterwards.
//! 3. [`after`](ReadPlacement::after), with what came of it.
//!
//! A long read asks again at [`Read::until`]. Both calls may be made by many threads
//! at once; a policy is *shared*. Neither waits for another thread.

use piebald_units::{Bytes, CoreId, CoreSet, FileId, Picos};

/// A thing that is not a file and that programs use as a whole (a table, an index, a
/// large object of a language's run time), by a number that the host keeps unique.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub u64);

/// Which of the files that a thread works on at the same time this one is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Among {
    /// The only one, or the one that the thread should be moved for.
    #[default]
    First,
    /// Another one.
    Second,
}

/// The reader: where it runs and where it may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader {
    /// The core that it runs on.
    pub core: CoreId,
    /// Cores that it may be moved to; a pinned thread has one.
    pub allowed: CoreSet,
}

impl Reader {
    /// A thread that may run everywhere.
    pub const fn on(core: CoreId) -> Self {
        Self {
            core,
            allowed: CoreSet::first(u64::BITS),
        }
    }
}

/// A read that is about to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadRequest {
    /// Who reads.
    pub reader: Reader,
    /// What is read.
    pub file: FileId,
    /// Size of the whole file, now.
    pub size: Bytes,
    /// Where the read starts, in bytes from the file's start.
    pub offset: u64,
    /// How many bytes it fills in the program's buffer at most; 0 if that is not known, or it
    /// fills none.
    pub len: Bytes,
    /// The part that the file plays for the thread.
    pub among: Among,
}

/// Which instructions copy the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Load {
    /// Ordinary ones: the data is in the core's caches afterwards.
    #[default]
    Caching,
    /// Non-temporal ones (`prefetchnta`): the data passes the caches by and displaces
    /// nothing there.
    NonCaching,
}

/// Where and how to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The core that should read. The reader's own: do not move it.
    pub core: CoreId,
    /// How the data is copied.
    pub load: Load,
    /// Where in the file the answer ends: a read that goes on asks again at this
    /// offset. `u64::MAX` if it holds for all of the file.
    pub until: u64,
    /// The policy chose this core's cache for the data just now; it takes it to be
    /// there from here on, unless [`ReadPlacement::after`] says otherwise.
    pub placed: bool,
    /// The policy looked for the data in its books to answer. Without, the answer was clear
    /// beforehand, and took no time worth counting.
    pub looked_up: bool,
}

impl Read {
    /// Read as if there were no policy.
    pub const fn stay(core: CoreId) -> Self {
        Self {
            core,
            load: Load::Caching,
            until: u64::MAX,
            placed: false,
            looked_up: false,
        }
    }
}

/// What came of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOutcome {
    /// What was asked.
    pub request: ReadRequest,
    /// What was answered.
    pub read: Read,
    /// The core that did the copy. Another one than `read.core` if the host could or
    /// would not move the thread.
    pub ran_on: CoreId,
}

/// A policy that places reads. See the [module](self) for the order of calls.
pub trait ReadPlacement {
    /// Where and how a read should be done. The verdict is advice: a host that does
    /// otherwise says so in `after`, and nothing breaks if it does not.
    fn before(&self, request: &ReadRequest, now: Picos) -> Read;

    /// The read is done.
    fn after(&self, outcome: &ReadOutcome, now: Picos);
}

/// No policy: every thread reads where it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stay;

impl ReadPlacement for Stay {
    fn before(&self, request: &ReadRequest, _now: Picos) -> Read {
        Read::stay(request.reader.core)
    }

    fn after(&self, _outcome: &ReadOutcome, _now: Picos) {}
}
