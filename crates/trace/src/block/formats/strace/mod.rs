//! Text of `strace`, best of `strace -f -y`, in the forms that its options give it.
//!
//! System calls become reads and writes of bytes of files. What is tracked:
//!
//! * offsets, through `open`, `lseek`, `read`, `write`, their vector forms, `sendfile`, `splice` and
//!   `copy_file_range`; explicit ones of `pread`, `pwrite` and `io_submit`;
//! * open files that descriptors share after `dup`, `fcntl` and forks; tables of descriptors that
//!   threads share; what `execve` closes. A child may appear before its parent's `clone` returns (it
//!   always does after `vfork`): it is taken for the child of the latest such call;
//! * appending (`O_APPEND`, `RWF_APPEND`), which begins at the largest end of file known; cutting by
//!   `O_TRUNC`, `truncate` and `ftruncate`, by `fallocate` where all behind its range is gone or moved,
//!   and removal of the last name by `unlink` or by a rename over the file ([`Op::Delete`](super::super::Op));
//! * current directories, and the root that `chroot` gives a process and its children;
//! * files that have lost their names (`</a (deleted)>`): each is another than the one that has the name now;
//! * symbolic links that are made, renamed and removed, at the end of a path or within it;
//! * mappings of files and what `mremap` adds to them ([`Op::Map`](super::super::Op)), cut at the file's end as far as `fstat`, reads or writes have
//!   told it; [`Notes::unclipped_maps`](super::super::Notes) counts the others.
//!
//! A file's size is the largest end seen. Pipes, sockets, `/proc`, `/sys` and `/dev` are counted as
//! [`elsewhere`](super::super::Passed). Without `-y` paths come from `open`, relative to what `chdir` says.
//!
//! # Forms
//!
//! The options that change how a line looks are read past (`-i -k -n -N -q -s -T -v -x -y -Y -z -C`, and
//! `-X`, whose numbers are those of x86). Processes are told apart as `who` describes. Times are
//! those of the line on which a call ends: nanoseconds since 1970 with `-ttt`, since the log's first
//! midnight with `-t` and `-tt`, and since its first line with `-r`.
//!
//! A log of standard error (`strace ... 2>log`) holds the program's own messages, too. They are
//! counted as [`comments`](super::super::Passed), as are strace's. A text in which strace has not written a single
//! line is an error, as is a call of strace's that has no end.
//!
//! # Deviations
//!
//! * Links that the log does not show being made are separate files, unless `-y` says where they lead.
//! * What strace prints without offsets or sizes is left out: data moved by `io_uring`, pages that
//!   `readahead`, `posix_fadvise` and `execve` load, extents that `ioctl(FICLONE)` shares. A hole in
//!   the middle of a file is left out as well: a deletion reaches to the end. Each is counted by its
//!   name.
//! * A read by `io_submit` is as long as was asked: what its events say later is not looked up.
//! * Of files of `-ff` that are read one by one, a child does not know what its parent opened. Those of one
//!   run are read together, by their times ([`run`]); `-r` counts the time since the line before of any
//!   process, so such files do not fit together.

mod aio;
mod args;
mod calls;
mod clock;
mod data;
mod descriptors;
mod events;
mod files;
mod known;
mod line;
mod links;
mod maps;
mod process;
mod reader;
pub(crate) mod run;
mod text;
mod torn;
mod who;

use std::collections::HashMap;

use super::super::reader::{Entry, Looks};
use super::super::request::Nanos;
use super::super::{Options, TargetKind, Times, Traits};
use crate::about::{About, Form, Stamps};
use crate::foreign::error::Complaint;
use clock::Calendar;
use links::Links;
use process::Processes;
use torn::{Pending, Place, Torn};
use who::Who;

pub(crate) const ENTRY: Entry = Entry {
    name: "strace",
    aliases: &[],
    about: About {
        what: "Text of strace, best of strace -f -y -ttt -o LOG",
        form: Form::Text {
            line: "[pid] [time] call(arguments) = result",
            fields: &[
                (
                    "pid",
                    "process, with -f; else that of the file's name, or 0",
                ),
                ("time", "as -t, -tt, -ttt or -r give it"),
                (
                    "call",
                    "read, write, their vector forms, pread, pwrite, sendfile, splice, \
                     copy_file_range, io_submit; mmap, mremap; unlink, rename, truncate, fallocate; and what \
                     changes descriptors",
                ),
                (
                    "arguments",
                    "offsets and lengths in bytes; with -y the file's name",
                ),
                ("result", "bytes done"),
            ],
            sample: "697 1600000000.000005 pread64(3</data/a>, \"x\"..., 4096, 8192) = 4096\n",
        },
        source: "strace(1) and the manual pages of the calls; forms of lines: logs that strace itself \
                 wrote (crates/trace/tests/block/strace_logs)",
        stamps: Stamps::Optional(
            "-ttt: seconds since 1970; -t and -tt: time of day; -r: seconds since the line before; \
             otherwise absent",
        ),
        left_out: "data moved by io_uring, vmsplice and tee; pages that readahead, posix_fadvise and \
                   execve load; extents that ioctl(FICLONE) shares; the offset that a \
                   descriptor received over a socket shares with the sender's; calls that failed; pipes, sockets, and files in /proc, /sys and /dev",
    },
    traits: Traits {
        target: TargetKind::File,
        times: Times::Optional,
        directions: true,
        tasks: true,
    },
    looks: Looks::Doubtful(reader::doubt),
    parser: |options| Box::new(Strace::new(options)),
};

struct Strace {
    under: Vec<Vec<u8>>,
    processes: Processes,
    links: Links,
    calendar: Calendar,
    /// `None` before the first line.
    who: Option<Who>,
    /// A process that strace has attached to with all its threads, whose numbers it does not say.
    leader: Option<u32>,
    /// Calls that other processes have interrupted, by process.
    pending: HashMap<u32, Pending>,
    /// The process whose call the line before says to be unfinished.
    interrupted: Option<u32>,
    /// When the last call ended, and whose it was.
    last: (Option<Nanos>, u32),
    /// Offsets of `mmap2` are pages.
    counts_pages: bool,
    /// Number of calls that did not end on the line on which they began.
    begun: u64,
    /// A call whose line is torn.
    torn: Option<Torn>,
    /// What was wrong with a torn call that is over.
    late: Option<(Place, Complaint)>,
    /// Where this line begins.
    place: Place,
    /// Lines that were strace's, and others.
    lines: u64,
    messages: u64,
    /// What to say of the first line if none is strace's.
    foreword: Option<Complaint>,
}

impl Strace {
    fn new(options: &Options) -> Self {
        Self {
            under: options
                .under
                .iter()
                .map(|p| p.as_bytes().to_vec())
                .collect(),
            processes: Processes::default(),
            links: Links::default(),
            calendar: Calendar::default(),
            who: None,
            leader: None,
            pending: HashMap::new(),
            interrupted: None,
            last: (None, 0),
            counts_pages: false,
            begun: 0,
            torn: None,
            late: None,
            place: Place::default(),
            lines: 0,
            messages: 0,
            foreword: None,
        }
    }
}

#[cfg(test)]
mod tests;
