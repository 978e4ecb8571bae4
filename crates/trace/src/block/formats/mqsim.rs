//! MQSim's ASCII form. MQSim itself refuses a step back in time.

use super::super::Times;
use super::super::reader::{Entry, Lines, Looks};
use super::super::request::{Nanos, Op};
use super::super::sink::Sink;
use super::super::text::{exactly, fields, may_be_bytes, number, number_32, plain};
use super::disk;
use crate::about::{About, Form, Stamps};
use crate::foreign::error::Complaint;

pub(crate) const ENTRY: Entry = Entry {
    name: "mqsim",
    aliases: &[],
    about: About {
        what: "MQSim's ASCII traces",
        form: Form::Text {
            line: LINE,
            fields: &[
                (
                    "arrival_ns",
                    "time in nanoseconds, whatever the workload file's Time_Unit says",
                ),
                ("device", "number of the disk"),
                ("sector", "first sector, of 512 B"),
                ("sectors", "number of sectors"),
                ("type", "1 read, 0 write"),
            ],
            sample: "1000 0 64 8 1\n",
        },
        source: "MQSim's ASCII_Trace_Definition.h (columns, ASCIITraceReadCode \"1\"), its README \
                 (sectors of 512 B) and IO_Flow_Trace_Based.cpp (the number is taken as nanoseconds)",
        stamps: Stamps::Relative("nanoseconds since the trace began"),
        left_out: "nothing",
    },
    traits: disk(Times::Ordered),
    looks: Looks::TextBut(doubt),
    parser: |_| Box::new(Lines(line)),
};

/// Eleven days in nanoseconds. Times since 1970 in microseconds, or since 1601, are above it.
const LONG: u64 = 1_000_000_000_000_000;

/// Five numbers of other tools parse as well.
fn doubt(lines: &[&[u8]]) -> Option<&'static str> {
    let cell = |line: &&[u8], n| fields(line).nth(n).and_then(plain);
    if lines.iter().all(|l| cell(l, 0).is_some_and(|t| t >= LONG)) {
        return Some("its times begin after more than eleven days, as those of a date do");
    }
    let sectors = lines.iter().map(|l| cell(l, 3));
    may_be_bytes(sectors).then_some("all its lengths are multiples of 512, as bytes are")
}

const LINE: &str = "arrival_ns device sector sectors type";

fn line(line: &[u8], sink: &mut Sink<'_>) -> Result<(), Complaint> {
    let [time, device, sector, sectors, kind] = exactly(line, fields(line), LINE)?;
    let time = number("the arrival", time)?;
    let device = number_32("the device", device)?;
    let sector = number("the sector", sector)?;
    let sectors = number("the number of sectors", sectors)?;
    let op = match kind {
        b"1" => Op::Read,
        b"0" => Op::Write,
        _ => return Err(Complaint::text("the type", kind, "1 (read) or 0 (write)")),
    };
    sink.sectors((Some(Nanos(time)), 0, op), device, sector, sectors)
}
