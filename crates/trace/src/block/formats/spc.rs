//! SPC trace format, as the UMass repository uses it. Blanks after commas are allowed. A disk is an
//! application storage unit (ASU).

use super::super::Times;
use super::super::reader::{Entry, Lines, Looks};
use super::super::request::Nanos;
use super::super::sink::Sink;
use super::super::text::{at_least, comma_fields, number, number_32, seconds};
use super::{disk, read_or_write};
use crate::about::{About, Form, Stamps};
use crate::foreign::error::Complaint;

pub(crate) const ENTRY: Entry = Entry {
    name: "spc",
    aliases: &["umass"],
    about: About {
        what: "Storage Performance Council's traces, as the UMass repository has them (Financial, \
               WebSearch)",
        form: Form::Text {
            line: "ASU,LBA,Size,Opcode,Timestamp[,more]",
            fields: &[
                ("ASU", "number of the disk (application storage unit)"),
                ("LBA", "first sector, of 512 B"),
                ("Size", "length in bytes"),
                ("Opcode", "R or W, in either case"),
                ("Timestamp", "time in seconds, with a fraction"),
            ],
            sample: "0,303567,3584,w,0.000000\n",
        },
        source: "SPC Trace File Format Specification 1.0.1, which leaves the size of a block to each \
                 trace. UMass' have 512 B: Financial1 begins with 3584 B at 303567 and goes on at \
                 303574, 7 blocks later",
        stamps: Stamps::Relative("seconds since the trace began"),
        left_out: "fields behind the fifth. A length that is no whole sector is widened",
    },
    traits: disk(Times::Ordered),
    looks: Looks::Text,
    parser: |_| Box::new(Lines(line)),
};

const LINE: &str = "ASU,LBA,Size,Opcode,Timestamp and further fields";

fn line(line: &[u8], sink: &mut Sink<'_>) -> Result<(), Complaint> {
    let [asu, lba, size, op, time] = at_least(line, &mut comma_fields(line), LINE)?;
    let asu = number_32("the ASU", asu)?;
    let lba = number("the LBA", lba)?;
    let size = number("the size", size)?;
    let op = read_or_write("the opcode", op)?;
    let time = seconds("the timestamp", time)?;
    let sectors = sink.whole_sectors(size);
    let what = (Some(Nanos(time)), 0, op);
    sink.sectors(what, asu, lba, sectors)
}
