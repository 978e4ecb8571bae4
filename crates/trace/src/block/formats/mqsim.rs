//! MQSim ASCII: `arrival_ns device sector sectors type`, with type **1 for a read** and 0 for a
//! write.
//!
//! Source: MQSim's `ASCII_Trace_Definition.h` (columns, `ASCIITraceReadCode "1"`), its README (sectors
//! of 512 B) and `IO_Flow_Trace_Based.cpp`, which hands the number to the simulator as nanoseconds
//! whatever the workload file's `Time_Unit` says. MQSim itself refuses a step back in time.

use super::super::Times;
use super::super::reader::{Entry, Lines, Looks};
use super::super::request::{Nanos, Op};
use super::super::sink::Sink;
use super::super::text::{exactly, fields, number, number_32};
use super::disk;
use crate::foreign::error::Complaint;

pub(crate) const ENTRY: Entry = Entry {
    name: "mqsim",
    aliases: &[],
    traits: disk(Times::Ordered),
    looks: Looks::Text,
    parser: |_| Box::new(Lines(line)),
};

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
