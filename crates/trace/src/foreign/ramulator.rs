//! Traces of the DRAM simulator Ramulator. Both forms hold only what caches let through.
//!
//! * CPU trace: `bubble_count read_address [writeback_address]`: so many instructions without
//!   memory access, then one that loads a line, and the dirty line that its fill pushed out of the
//!   cache. The writeback becomes a store in the load's instruction (gap 0), although no
//!   instruction of the program made it; whoever replays through caches should know.
//! * DRAM trace: `0xADDRESS R|W`. Physical addresses, no instructions: each request counts as one,
//!   or the whole trace would be a single instruction.
//!
//! Source: Ramulator's README ("Memory Trace Driven", "CPU Trace Driven": decimal addresses) and
//! `Processor.cpp` (`get_filtered_request`, `get_dramtrace_request`). Addresses are references to the
//! rest of their 64-byte line. Ramulator itself takes a leading 0 as octal; here `017` is 17, for no
//! tracer writes octal.

use piebald_units::VirtAddr;
use piebald_units::op::{Next, RefKind};

use super::error::{Complaint, ForeignError};
use super::input::Input;
use super::text::{decimal, fields, hex_prefixed};
use super::thread::{Decode, Sink, within_line};

const CPU_LINE: &str = "\"bubble_count read_address [writeback_address]\"";
const BUBBLES: &str = "a decimal number from 0 to 4294967294";
const ADDRESS: &str = "a decimal number below 2^64, or 0x and hexadecimal digits";
const DRAM_LINE: &str = "\"0xADDRESS R|W\"";

/// A line of a CPU trace.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CpuLine {
    pub bubbles: u64,
    read: u64,
    writeback: Option<u64>,
}

impl CpuLine {
    /// Both addresses are those of whole lines.
    pub fn is_aligned(&self) -> bool {
        let whole = |addr: u64| addr.is_multiple_of(64);
        whole(self.read) && self.writeback.is_none_or(whole)
    }
}

pub(crate) fn parse_cpu(line: &[u8]) -> Result<Option<CpuLine>, Complaint> {
    let mut fields = fields(line);
    let Some(bubbles) = fields.next() else {
        return Ok(None);
    };
    let bubbles = decimal(
        "the bubble count",
        bubbles,
        u64::from(u32::MAX) - 1,
        BUBBLES,
    )?;
    let Some(read) = fields.next() else {
        return Err(Complaint::text("the line", line, CPU_LINE));
    };
    let read = address("the read address", read)?;
    let writeback = fields
        .next()
        .map(|f| address("the writeback address", f))
        .transpose()?;
    if fields.next().is_some() {
        return Err(Complaint::text("the line", line, CPU_LINE));
    }
    Ok(Some(CpuLine {
        bubbles,
        read,
        writeback,
    }))
}

fn address(field: &'static str, text: &[u8]) -> Result<u64, Complaint> {
    if text.starts_with(b"0x") || text.starts_with(b"0X") {
        hex_prefixed(field, text)
    } else {
        decimal(field, text, u64::MAX, ADDRESS)
    }
}

pub(crate) fn parse_dram(line: &[u8]) -> Result<Option<(u64, RefKind)>, Complaint> {
    let mut fields = fields(line);
    let Some(addr) = fields.next() else {
        return Ok(None);
    };
    let addr = hex_prefixed("the address", addr)?;
    let kind = match fields.next() {
        Some(b"R") => RefKind::Load,
        Some(b"W") => RefKind::Store,
        Some(other) => return Err(Complaint::text("the kind", other, "R (read) or W (write)")),
        None => return Err(Complaint::text("the line", line, DRAM_LINE)),
    };
    if fields.next().is_some() {
        return Err(Complaint::text("the line", line, DRAM_LINE));
    }
    Ok(Some((addr, kind)))
}

#[derive(Debug)]
pub(crate) struct Cpu;

impl Decode for Cpu {
    fn step(
        &mut self,
        input: &mut Input,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Next>, ForeignError> {
        let Some(line) = input.line(parse_cpu)? else {
            return Ok(Some(Next::End));
        };
        if let Some(line) = line {
            sink.retire(line.bubbles + 1);
            push_line(line.read, RefKind::Load, sink);
            if let Some(addr) = line.writeback {
                push_line(addr, RefKind::Store, sink);
            }
        } else {
            sink.skipped.comments += 1;
        }
        Ok(None)
    }
}

#[derive(Debug)]
pub(crate) struct Dram;

impl Decode for Dram {
    fn step(
        &mut self,
        input: &mut Input,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Next>, ForeignError> {
        let Some(line) = input.line(parse_dram)? else {
            return Ok(Some(Next::End));
        };
        if let Some((addr, kind)) = line {
            sink.retire(1);
            push_line(addr, kind, sink);
        } else {
            sink.skipped.comments += 1;
        }
        Ok(None)
    }
}

fn push_line(addr: u64, kind: RefKind, sink: &mut Sink<'_>) {
    sink.push(VirtAddr(addr), within_line(addr, 64), kind, 0, 0);
}
