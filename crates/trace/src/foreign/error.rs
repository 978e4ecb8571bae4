//! What can be wrong with a foreign trace.

use std::borrow::Cow;
use std::io;
use std::num::NonZeroU64;
use std::path::PathBuf;

use super::Format;
use crate::detect::{TraceFormat, list};
use crate::quote::{shell_word, shorten};
use crate::source;

/// Why a foreign trace cannot be read. Offsets count bytes of the unpacked stream, from 0; lines
/// count from 1.
#[derive(Debug, thiserror::Error)]
pub enum ForeignError {
    /// No file was named.
    #[error("no trace file named; allowed: at least one file, or a directory of them")]
    NoFiles,
    /// A directory without traces.
    #[error(
        "{}: no trace files in this directory; allowed: files with \".trace\" in their names",
        path.display()
    )]
    EmptyDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// The thread does not exist.
    #[error("no thread {thread}; allowed: 0 to {} (both included)", threads.saturating_sub(1))]
    NoSuchThread {
        /// The number asked for.
        thread: usize,
        /// How many there are.
        threads: usize,
    },
    /// A format name that is none.
    #[error("{value} is no trace format; allowed: {}", names())]
    NoSuchFormat {
        /// The name, shortened.
        value: String,
    },
    /// Files of different formats in one trace.
    #[error(
        "{}: its format is {found}, but the first file's is {expected}; all files of a trace \
         have one format",
        path.display()
    )]
    Mixed {
        /// The file.
        path: PathBuf,
        /// What it holds.
        found: Format,
        /// What the first file holds.
        expected: Format,
    },
    /// The content fits no format.
    #[error(
        "{}: no known memory trace: {why}; allowed: {}, which can also be given by --format",
        path.display(), names()
    )]
    Unrecognised {
        /// The file.
        path: PathBuf,
        /// What was seen instead.
        why: String,
    },
    /// The content fits several formats.
    #[error("{}: this may be {}; say which with --format", path.display(), list(candidates))]
    Ambiguous {
        /// The file.
        path: PathBuf,
        /// Which. They may be formats of block or file traces, too.
        candidates: Vec<TraceFormat>,
    },
    /// The file cannot be opened.
    #[error("{}: cannot open: {}", path.display(), not_opened(source))]
    Open {
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Reading or unpacking failed.
    #[error(
        "{name}: byte {offset} of the unpacked stream cannot be read: {}",
        reason(source)
    )]
    Read {
        /// The file.
        name: String,
        /// Bytes unpacked before.
        offset: u64,
        /// The system's or the decompressor's reason.
        source: io::Error,
    },
    /// The packing is recognised but not accepted.
    #[error(
        "{name}: {found}; allowed: plain, gzip, bzip2, xz, zstd, or a zip of stored or deflated chunks"
    )]
    Container {
        /// The file.
        name: String,
        /// What it is.
        found: String,
    },
    /// A text in another encoding, where a text is read.
    #[error(
        "{name}: this is a text in {encoding}, by its byte order mark; iconv -f {encoding} -t UTF-8 \
         makes it readable"
    )]
    Encoding {
        /// The file.
        name: String,
        /// UTF-16 or UTF-32.
        encoding: &'static str,
    },
    /// An archive of files instead of a trace.
    #[error(
        "{name}: this is a tar archive, not a trace; unpack one of its files, for example with \
         \"tar -xOf {} {}{}\", to a file or to standard input, which is -",
        shell_word(source::argument(name)),
        if member.starts_with('-') { "-- " } else { "" },
        shell_word(member)
    )]
    Tar {
        /// The file.
        name: String,
        /// The first file inside.
        member: String,
    },
    /// The input ends inside a record.
    #[error("{name}: byte {offset}: the {medium} ends inside a {what}: {have} of {need} bytes")]
    Cut {
        /// The file.
        name: String,
        /// Where the record begins.
        offset: u64,
        /// What ends: a file or a pipe.
        medium: &'static str,
        /// What the record is.
        what: &'static str,
        /// Bytes of it that are there.
        have: u64,
        /// Bytes that it has at least.
        need: u64,
    },
    /// A value that the format does not allow.
    #[error(
        "{name}: byte {offset}{}: {field} is {value}; allowed: {allowed}{}",
        at_line(line),
        at_end(unended)
    )]
    Value {
        /// The file.
        name: String,
        /// Where the record begins.
        offset: u64,
        /// Its line, in a text.
        line: Option<NonZeroU64>,
        /// Field of the record.
        field: &'static str,
        /// What it says, shortened.
        value: String,
        /// What it may say.
        allowed: Cow<'static, str>,
        /// It is in the last line, and no line feed ends that: the file or pipe, whichever this
        /// says, may have been cut.
        unended: Option<&'static str>,
    },
    /// The trace broke before the references asked for.
    #[error("{0}")]
    Broken(String),
}

/// What a parser objects to; the input adds the place.
#[derive(Debug)]
pub(crate) struct Complaint {
    pub field: &'static str,
    pub value: String,
    pub allowed: Cow<'static, str>,
}

impl Complaint {
    pub fn new(field: &'static str, value: String, allowed: impl Into<Cow<'static, str>>) -> Self {
        Self {
            field,
            value,
            allowed: allowed.into(),
        }
    }

    pub fn text(field: &'static str, value: &[u8], allowed: impl Into<Cow<'static, str>>) -> Self {
        Self::new(field, shorten(value), allowed)
    }

    pub fn number(field: &'static str, value: u64, allowed: impl Into<Cow<'static, str>>) -> Self {
        Self::new(field, value.to_string(), allowed)
    }
}

/// Why a file was not opened. That too many are open is a limit that the user can raise.
fn not_opened(source: &io::Error) -> String {
    /// `EMFILE`.
    const TOO_MANY: i32 = 24;
    match source.raw_os_error() {
        Some(TOO_MANY) => {
            "this process has as many files open as it may have (`ulimit -n` says how many); \
             allowed: fewer traces at a time, or a higher limit"
                .to_owned()
        }
        _ => source.to_string(),
    }
}

/// Why reading or unpacking failed. Unpackers have many words for a file that was cut.
fn reason(source: &io::Error) -> String {
    match source.kind() {
        io::ErrorKind::UnexpectedEof => {
            "the packed data ends in the middle; the file may have been cut".to_owned()
        }
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
            format!("the packed data is damaged ({source})")
        }
        _ => source.to_string(),
    }
}

fn at_line(line: &Option<NonZeroU64>) -> String {
    line.map_or_else(String::new, |n| format!(", line {n}"))
}

fn at_end(unended: &Option<&'static str>) -> String {
    let told = |medium| format!("; no line feed ends this line: the {medium} may have been cut");
    unended.map_or_else(String::new, told)
}

/// Every format.
pub(crate) fn names() -> String {
    Format::ALL.map(Format::name).join(", ")
}
