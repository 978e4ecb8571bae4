//! Which format a trace has, of all that are read.
//!
//! Block and file traces are read by [`block`](mod@crate::block), memory traces by
//! [`foreign`](mod@crate::foreign). Both are asked what a file is, and the content decides, not the
//! name:
//!
//! 1. A mark in the first bytes (`fio version 3 iolog`, `==7== Lackey`, blktrace's magic number)
//!    settles it. What is wrong behind it is the reader's to report.
//! 2. Else the unpacked beginning (up to 64 KiB) is given to all readers. One that takes the first
//!    records is a candidate; where lines of other tools parse as well, it may have doubts.
//! 3. One candidate is the answer. Several are an error that names them, because reading a trace in
//!    the wrong format gives results that look right. None is an error that says how far the nearest
//!    reader got, and who had doubts.
//!
//! A format that is named (`--format`) or described (`--columns`) is not questioned.

mod marks;
mod trial;

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::about::About;
use crate::block::reader::Looks;
use crate::block::{self, BlockError, columns};
use crate::foreign::input::Input;
use crate::foreign::{self, ForeignError};
use crate::quote::{shorten, shorten_to};
use trial::Trials;

/// A format of a memory trace, or of a block or file trace. Their names are different;
/// [`Display`](fmt::Display) gives the name, which [`FromStr`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TraceFormat {
    /// References of programs.
    Memory(foreign::Format),
    /// Requests to disks and files.
    Block(block::Format),
}

impl TraceFormat {
    /// The name that users write.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Memory(format) => format.name(),
            Self::Block(format) => format.name(),
        }
    }
}

impl TraceFormat {
    /// Every format, those of block and file traces first.
    pub fn all() -> impl Iterator<Item = Self> {
        let block = block::Format::ALL.into_iter().map(Self::Block);
        block.chain(foreign::Format::ALL.into_iter().map(Self::Memory))
    }

    /// What is said of the format.
    pub const fn about(&self) -> &'static About {
        match self {
            Self::Memory(format) => format.about(),
            Self::Block(format) => format.about(),
        }
    }

    /// Other names that users may write.
    pub const fn aliases(&self) -> &'static [&'static str] {
        match self {
            Self::Memory(_) => &[],
            Self::Block(format) => format.aliases(),
        }
    }

    /// Whether the content tells the format.
    pub const fn found_out(&self) -> Found {
        match self {
            Self::Memory(format) => match &format.entry().lines {
                Some(lines) if lines.doubt.is_some() => Found::Unless,
                _ => Found::Always,
            },
            Self::Block(format) => match &format.entry().looks {
                Looks::Text | Looks::Binary(..) => Found::Always,
                Looks::TextBut(_) => Found::UnlessAlike,
                Looks::Doubtful(_) => Found::Unless,
                Looks::Unknowable | Looks::Described => Found::Never,
            },
        }
    }
}

/// Whether the content of a file tells a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It does, where no other format's records look the same.
    Always,
    /// The same, unless the records look like another tool's.
    UnlessAlike,
    /// It does if the records show more than that they can be read.
    Unless,
    /// It must be named.
    Never,
}

impl fmt::Display for TraceFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for TraceFormat {
    type Err = DetectError;

    fn from_str(name: &str) -> Result<Self, DetectError> {
        if let Ok(format) = name.parse() {
            return Ok(Self::Memory(format));
        }
        name.parse()
            .map(Self::Block)
            .map_err(|_| DetectError::NoSuchFormat {
                value: shorten(name.as_bytes()),
            })
    }
}

/// Why no format was found.
#[derive(Debug, thiserror::Error)]
pub enum DetectError {
    /// The file cannot be opened or unpacked.
    #[error(transparent)]
    Input(#[from] ForeignError),
    /// A format name that is none.
    #[error(
        "{value} is no trace format; allowed: {} for memory traces, {} for block and file traces",
        foreign::names(),
        block::names()
    )]
    NoSuchFormat {
        /// The name, shortened.
        value: String,
    },
    /// Nothing is in the file.
    #[error("{name}: the file is empty; allowed: at least one record")]
    Empty {
        /// The file.
        name: String,
    },
    /// The content fits no format.
    #[error(
        "{name}: no known trace: {why}; --format takes one of those that `piebald trace formats` lists"
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
        /// Which.
        candidates: Vec<TraceFormat>,
    },
}

/// The names of formats, with "or" between them.
pub(crate) fn list(formats: &[TraceFormat]) -> String {
    let names: Vec<&str> = formats.iter().map(TraceFormat::name).collect();
    names.join(" or ")
}

/// Finds out a file's format. `-` is standard input, and a pipe can be read again afterwards.
///
/// # Errors
/// See [`DetectError`].
pub fn detect(path: &Path) -> Result<TraceFormat, DetectError> {
    let mut input = Input::open(path)?;
    let name = input.name().to_owned();
    match recognise(&mut input)? {
        Verdict::Is(format) => Ok(format),
        Verdict::Empty => Err(DetectError::Empty { name }),
        Verdict::Unknown(why) => {
            let why = why.with_example(input.peek()?);
            Err(DetectError::Unrecognised { name, why })
        }
        Verdict::OneOf(candidates) => Err(DetectError::Ambiguous { name, candidates }),
    }
}

/// What the beginning of an input says.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    Is(TraceFormat),
    Empty,
    /// None, and why.
    Unknown(Why),
    OneOf(Vec<TraceFormat>),
}

/// Why the format of an input is not known.
#[derive(Debug, PartialEq)]
pub(crate) struct Why {
    text: String,
    /// It names a reader that took a record, or most of the only one: columns of other meanings would only lead astray.
    is_near: bool,
}

impl Why {
    /// With an example of columns, if nothing better is known.
    fn with_example(self, head: &[u8]) -> String {
        if self.is_near {
            self.text
        } else {
            self.text + &example(head)
        }
    }
}

impl From<String> for Why {
    fn from(text: String) -> Self {
        Self {
            text,
            is_near: false,
        }
    }
}

/// Finds out the format without consuming anything.
pub(crate) fn recognise(input: &mut Input) -> Result<Verdict, ForeignError> {
    Ok(of_head(input.peek()?))
}

fn of_head(head: &[u8]) -> Verdict {
    if head.is_empty() {
        return Verdict::Empty;
    }
    if let Some(verdict) = marks::find(head) {
        return verdict;
    }
    let mut trials = match trial::is_text(head) {
        true => Trials::of_text(head),
        false => Trials::of_binary(head),
    };
    match &mut trials.candidates[..] {
        [] => {
            let (text, is_near) = trials.why(head);
            Verdict::Unknown(Why { text, is_near })
        }
        [format] if trials.proven || trials.doubts.is_empty() => Verdict::Is(*format),
        _ => {
            let doubtful = trials.doubts.iter().map(|d| d.0);
            trials.candidates.extend(doubtful);
            Verdict::OneOf(trials.candidates)
        }
    }
}

/// Bytes of a record that an example repeats.
const SHOWN: usize = 96;

/// How a text could be described as columns, if it has some. The example reads the first record.
fn example(head: &[u8]) -> String {
    if !trial::is_text(head) {
        return String::new();
    }
    let Some(found) = columns::suggest(head) else {
        return String::new();
    };
    let list = &found.list;
    // Without columns the format would be looked for, which brought us here.
    let Ok(columns) = list.parse() else {
        return String::new();
    };
    let options = block::Options {
        columns: Some(columns),
        ..block::Options::default()
    };
    let reads = block::BlockTrace::from_bytes("", head, options)
        .and_then(|mut trace| trace.next_batch(&mut Vec::new()));
    match reads {
        Ok(true) => format!(
            "; if its lines are requests, say what is in their columns; for example --columns {list} \
             would read {} (check every column and unit{})",
            shorten_to(found.record, SHOWN),
            passed_over(&found.unused)
        ),
        _ => String::new(),
    }
}

/// What an example says of the columns that it does not read.
fn passed_over(unused: &[usize]) -> String {
    let numbers: Vec<String> = unused.iter().map(ToString::to_string).collect();
    match numbers.as_slice() {
        [] => String::new(),
        [one] => format!("; column {one} is passed over"),
        many => format!("; columns {} are passed over", many.join(", ")),
    }
}

/// The same for who reads block and file traces.
pub(crate) fn block(input: &mut Input) -> Result<block::Format, BlockError> {
    let name = input.name().to_owned();
    match recognise(input)? {
        Verdict::Is(TraceFormat::Block(format)) => Ok(format),
        Verdict::Is(TraceFormat::Memory(format)) => Err(BlockError::Unrecognised {
            name,
            why: format!("this is a memory trace ({format})"),
        }),
        Verdict::Empty => Err(BlockError::Empty { name }),
        Verdict::Unknown(why) => {
            let why = why.with_example(input.peek()?);
            Err(BlockError::Unrecognised { name, why })
        }
        Verdict::OneOf(candidates) => Err(BlockError::Ambiguous { name, candidates }),
    }
}

/// The same for who reads memory traces.
pub(crate) fn memory(path: &Path) -> Result<foreign::Format, ForeignError> {
    let path = path.to_owned();
    match recognise(&mut Input::open(&path)?)? {
        Verdict::Is(TraceFormat::Memory(format)) => Ok(format),
        Verdict::Is(TraceFormat::Block(format)) => Err(ForeignError::Unrecognised {
            path,
            why: format!("this is a block or file trace ({format})"),
        }),
        Verdict::Empty => Err(ForeignError::Unrecognised {
            path,
            why: "the file is empty".to_owned(),
        }),
        Verdict::Unknown(why) => Err(ForeignError::Unrecognised {
            path,
            why: why.text,
        }),
        Verdict::OneOf(candidates) => Err(ForeignError::Ambiguous { path, candidates }),
    }
}

#[cfg(test)]
mod tests;
