//! Traces of the ARC authors: `start_block blocks ignored request_number`.
//!
//! Blocks are sectors of 512 B; a request stands for as many references. There is one disk, no
//! time, and reads are not told from writes.

use super::super::reader::{Entry, Lines, Looks};
use super::super::request::Op;
use super::super::sink::Sink;
use super::super::text::{exactly, fields, number};
use super::super::{TargetKind, Times, Traits};
use crate::foreign::error::Complaint;

pub(crate) const ENTRY: Entry = Entry {
    name: "arc",
    aliases: &["lis"],
    traits: Traits {
        target: TargetKind::Device,
        times: Times::None,
        directions: false,
        tasks: false,
    },
    looks: Looks::Text,
    parser: |_| Box::new(Lines(line)),
};

const LINE: &str = "start_block blocks ignored request_number";

fn line(line: &[u8], sink: &mut Sink<'_>) -> Result<(), Complaint> {
    let [start, blocks, ignored, request] = exactly(line, fields(line), LINE)?;
    let start = number("the start block", start)?;
    let blocks = number("the number of blocks", blocks)?;
    number("the third field", ignored)?;
    number("the request number", request)?;
    sink.sectors((None, 0, Op::Read), 0, start, blocks)
}
