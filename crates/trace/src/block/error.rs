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
    /// The content fits no format.
    #[error(
        "{name}: no known block or file trace: {why}; --format takes one of {}",
        names()
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

/// Every format.
pub(crate) fn names() -> String {
    Format::ALL.map(Format::name).join(", ")
}
