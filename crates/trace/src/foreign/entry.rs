//! The table entry that each reader has beside it.

use super::Options;
use super::error::Complaint;
use super::input::Input;
use super::thread::Drive;
use crate::about::About;
use crate::block::reader::Doubt;

/// All about a format.
pub(crate) struct Entry {
    pub name: &'static str,
    pub about: About,
    /// It holds only references that missed in caches.
    pub filtered: bool,
    /// What a reader has to assume about every trace of the format; most need nothing.
    pub assumes: Option<&'static str>,
    /// It says where instructions lie.
    pub instructions: bool,
    /// Of a text.
    pub lines: Option<Lines>,
    pub open: fn(Options, Input) -> Box<dyn Drive>,
}

/// What a line of a text format is, for detection.
pub(crate) struct Lines {
    /// Whether a line holds data; otherwise it is blank or a comment.
    pub holds_data: fn(&[u8]) -> Result<bool, Complaint>,
    /// Why the first lines, which all parse, may be another tool's.
    pub doubt: Option<Doubt>,
}
