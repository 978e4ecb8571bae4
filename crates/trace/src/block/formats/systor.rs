//! SYSTOR '17 (SNIA): `Timestamp,Response,IOType,LUN,Offset,Size` below a header.
//!
//! Seconds since 1970, seconds, R or W or nothing, a logical unit, bytes, bytes. Rows are in order
//! of completion, so times step back. A row without a type is another command.
//!
//! The README at SNIA was not at hand; the units are those of the sample there: times such as
//! 1456095145.1 (February 2016), all 999 offsets and sizes multiples of 512, sizes up to 131072,
//! which as sectors would be 64 MiB.

use super::super::Times;
use super::super::reader::{Entry, Lines, Looks};
use super::super::request::Nanos;
use super::super::sink::Sink;
use super::super::text::{comma_fields, exactly, number, number_32, seconds};
use super::{disk, read_or_write};
use crate::foreign::error::Complaint;

pub(crate) const ENTRY: Entry = Entry {
    name: "systor17",
    aliases: &["systor"],
    traits: disk(Times::Loose),
    looks: Looks::Text,
    parser: |_| Box::new(Lines(line)),
};

/// The header that every file has.
pub(crate) const HEADER: &[u8] = b"Timestamp,Response,IOType,LUN,";
const LINE: &str = "Timestamp,Response,IOType,LUN,Offset,Size";

fn line(line: &[u8], sink: &mut Sink<'_>) -> Result<(), Complaint> {
    let [time, _, kind, lun, offset, size] = exactly(line, comma_fields(line), LINE)?;
    if time == b"Timestamp" {
        sink.state.passed.comments += 1;
        return Ok(());
    }
    let time = seconds("the timestamp", time)?;
    if kind.is_empty() {
        sink.state.passed.others += 1;
        return Ok(());
    }
    let op = read_or_write("the IOType", kind)?;
    let lun = number_32("the LUN", lun)?;
    let offset = number("the offset", offset)?;
    let size = number("the size", size)?;
    sink.bytes((Some(Nanos(time)), 0, op), lun, offset, size)
}
