//! SPC trace format, as the UMass repository uses it. Blanks after commas are allowed. A disk is an
//! application storage unit (ASU).

use super::super::Times;
use super::super::reader::{Entry, Lines, Looks};
use super::super::request::Nanos;
use super::super::sink::Sink;
use super::super::text::{
    at_least, comma_fields, may_be_bytes, may_be_sectors, number, number_32, plain, seconds,
};
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
    looks: Looks::TextBut(doubt),
    parser: |_| Box::new(Lines(line)),
};

/// Largest number of a storage unit that is taken for one: the traces have a few dozen.
const LARGEST_ASU: u64 = 65_535;

/// Rows of other tools have a direction in the fourth field, too.
fn doubt(lines: &[&[u8]]) -> Option<&'static str> {
    let cell = |line: &&[u8], n| comma_fields(line).nth(n).map(<[u8]>::to_vec);
    let number = |n| {
        lines
            .iter()
            .map(move |l| cell(l, n).as_deref().and_then(plain))
    };
    if number(0).any(|asu| asu.is_none_or(|asu| asu > LARGEST_ASU)) {
        return Some("its first field is too large for the number of a storage unit");
    }
    let fraction = |line: &&[u8]| cell(line, 4).is_some_and(|time| time.contains(&b'.'));
    if !lines.iter().any(fraction) {
        return Some("its fifth field has no fraction, as times in seconds have");
    }
    if may_be_sectors(number(2)) {
        return Some("all its lengths are below 512, as numbers of blocks are");
    }
    may_be_bytes(number(1)).then_some("all its places are multiples of 512, as bytes are")
}

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
