//! What can be wrong with a block or file trace.

use std::path::PathBuf;

use super::Format;
use crate::detect::{TraceFormat, list};
use crate::foreign::ForeignError;

/// Why a trace cannot be read. Offsets count bytes of the unpacked stream, from 0; lines count
/// from 1.
#[derive(Debug, thiserror::Error)]
pub enum BlockError {
    /// The file cannot be opened, read or unpacked, ends inside a record, or has a record with a
    /// value that is not allowed.
    #[error(transparent)]
    Input(#[from] ForeignError),
    /// A format name that is none.
    #[error("{value} is no block or file trace format; allowed: {}", names())]
    NoSuchFormat {
        /// The name, shortened.
        value: String,
    },
    /// [`Options::format`](super::Options::format) and
    /// [`Options::columns`](super::Options::columns) are both given.
    #[error("--format {format} and --columns are both given; allowed: one of them")]
    FormatAndColumns {
        /// The format.
        format: Format,
    },
    /// Two files of one run of strace are of one process.
    #[error("{second}: the log of process {pid}, as {first} is; allowed: one of them")]
    SameProcess {
        /// A file.
        first: String,
        /// Another one.
        second: String,
        /// The process.
        pid: u32,
    },
    /// A stage is asked for where the format tells none.
    #[error(
        "{name}: stage is issue; allowed for {format}: queue, as it tells no stages of a request"
    )]
    NoStages {
        /// The file.
        name: String,
        /// Its format.
        format: Format,
    },
    /// The format is [`Format::Columns`], but nothing says what is in them.
    #[error(
        "nothing says what is in which column; allowed: --columns with a list of them instead of \
         --format"
    )]
    Undescribed,
    /// A column that is not in the file.
    #[error("{name}: --columns: {field} is column {column}; allowed: {allowed}; {line}")]
    NoColumn {
        /// The file.
        name: String,
        /// What should be in it.
        field: &'static str,
        /// Its number or name.
        column: String,
        /// Which columns there are.
        allowed: String,
        /// The line that tells the columns, and how many it has.
        line: String,
    },
    /// A header that is longer than the file.
    #[error(
        "{name}: --columns: header is {header}; allowed: 0 to {lines}, the number of lines that are \
         there"
    )]
    HeaderBeyond {
        /// The file.
        name: String,
        /// Its lines before the first record, as the list says.
        header: u64,
        /// All of its lines.
        lines: usize,
    },
    /// A text in columns that begins with a long line.
    #[error("{name}: line 1 has more than 64 KiB; allowed: a shorter one")]
    LongLine {
        /// The file.
        name: String,
    },
    /// A text in columns that begins with a long header.
    #[error("{name}: the first 64 KiB hold no record; allowed: less of comments and headers")]
    NoRecord {
        /// The file.
        name: String,
    },
    /// The content fits no format.
    #[error(
        "{name}: no known block or file trace: {why}; --format takes one of those that `piebald trace \
         formats` lists"
    )]
    Unrecognised {
        /// The file.
        name: String,
        /// What was seen instead, and how far the nearest format got.
        why: String,
    },
    /// The content fits several formats.
    #[error("{name}: this may be {}; say which with --format", list(candidates))]
    Ambiguous {
        /// The file.
        name: String,
        /// Which. They may be formats of memory traces, too.
        candidates: Vec<TraceFormat>,
    },
    /// Nothing is in the file.
    #[error("{name}: the file is empty; allowed: at least one request")]
    Empty {
        /// The file.
        name: String,
    },
    /// A file cannot be written.
    #[error("{}: cannot write: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// What a request says cannot be written in the format.
    #[error("{what} is {value}; allowed: {allowed}")]
    Unwritable {
        /// What of the request.
        what: &'static str,
        /// What it is.
        value: String,
        /// What could be written.
        allowed: &'static str,
    },
}

/// Every format that can be named; [`Format::Columns`] is described instead.
pub(crate) fn names() -> String {
    let named = Format::ALL.into_iter().filter(|f| *f != Format::Columns);
    let names: Vec<&str> = named.map(Format::name).collect();
    names.join(", ")
}
