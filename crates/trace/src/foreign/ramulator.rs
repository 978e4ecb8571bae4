//! Traces of the DRAM simulator Ramulator. Both forms hold only what caches let through.
//!
//! In a CPU trace the writeback, the dirty line that a fill pushed out of the cache, becomes a store in
//! the load's instruction (gap 0), although no instruction of the program made it; whoever replays
//! through caches should know. A DRAM trace has no instructions: each request counts as one, or the
//! whole trace would be a single instruction.
//!
//! Addresses are references to the rest of their 64-byte line. Ramulator itself takes a leading 0 as
//! octal; here `017` is 17, for no tracer writes octal.

use piebald_units::VirtAddr;
use piebald_units::op::{Next, RefKind};

use super::entry::{Entry, Lines};
use super::error::{Complaint, ForeignError};
use super::input::Input;
use super::text::{decimal, fields, hex_prefixed};
use super::thread::{Decode, Sink, drive, within_line};
use crate::about::{About, Form, Stamps};

pub(super) const CPU: Entry = Entry {
    name: "ramulator-cpu",
    about: About {
        what: "Ramulator's CPU traces: lines that missed in caches",
        form: Form::Text {
            line: "bubble_count read_address [writeback_address]",
            fields: &[
                (
                    "bubble_count",
                    "instructions without memory access before the one that loads",
                ),
                (
                    "read_address",
                    "of the line that is loaded, decimal or with 0x",
                ),
                (
                    "writeback_address",
                    "of the dirty line that the fill pushed out, decimal or with 0x; a store",
                ),
            ],
            sample: "3 20734016\n",
        },
        source: "Ramulator's README (\"CPU Trace Driven\": decimal addresses) and Processor.cpp \
                 (get_filtered_request)",
        stamps: Stamps::Absent,
        left_out: "nothing",
    },
    filtered: true,
    assumes: Some("sizes: whole lines"),
    instructions: false,
    lines: Some(Lines {
        holds_data: |line| Ok(parse_cpu(line)?.is_some()),
        doubt: Some(doubt),
    }),
    open: |_, input| drive(Cpu, input),
};

pub(super) const DRAM: Entry = Entry {
    name: "ramulator-dram",
    about: About {
        what: "Ramulator's DRAM traces: requests to memory",
        form: Form::Text {
            line: "0xADDRESS R|W",
            fields: &[
                ("address", "physical, hexadecimal, with 0x"),
                ("R|W", "read or write"),
            ],
            sample: "0x12345680 R\n",
        },
        source: "Ramulator's README (\"Memory Trace Driven\") and Processor.cpp (get_dramtrace_request)",
        stamps: Stamps::Absent,
        left_out: "nothing",
    },
    filtered: true,
    assumes: Some("sizes: whole lines; one instruction per request"),
    instructions: false,
    lines: Some(Lines {
        holds_data: |line| Ok(parse_dram(line)?.is_some()),
        doubt: Some(doubt_of_requests),
    }),
    open: |_, input| drive(Dram, input),
};

/// Bytes of a line.
const LINE: u64 = 64;
/// Bytes of the smallest block of a disk.
const BLOCK: u64 = 512;

/// Programs log `0xADDRESS R` of their own accesses, too.
fn doubt_of_requests(lines: &[&[u8]]) -> Option<&'static str> {
    let mut addresses = lines.iter().filter_map(|line| parse_dram(line).ok()?);
    let unaligned = addresses.any(|(address, _)| !address.is_multiple_of(LINE));
    unaligned.then_some("its addresses are not those of lines")
}

/// Two or three numbers a line are also what AdaptSize and LRB have (`time id size`), and lists of
/// sizes. Real traces of Ramulator hold what caches let through, which is whole lines, and the
/// instructions between two of them vary, while times do not fall.
fn doubt(lines: &[&[u8]]) -> Option<&'static str> {
    let lines: Vec<_> = lines.iter().filter_map(|l| parse_cpu(l).ok()?).collect();
    if !lines.iter().all(CpuLine::is_aligned) {
        return Some(
            "its addresses are not those of lines, as in \"time id size\" of AdaptSize and LRB",
        );
    }
    // Instructions between two accesses of a program are tens to thousands, in memory that it does not
    // touch for long some ten thousand; sectors and names of objects are more.
    let large = lines.iter().filter(|l| l.bubbles > MANY_BUBBLES).count();
    if 4 * large > lines.len() {
        return Some("its first numbers are too large for instructions between two accesses");
    }
    let falls = |pair: &[CpuLine]| pair[1].bubbles < pair[0].bubbles;
    if !lines.windows(2).any(falls) {
        return Some("its first number never falls, as a time does");
    }
    let of_blocks = |l: &CpuLine| l.addresses().all(|address| address.is_multiple_of(BLOCK));
    if lines.len() > 1 && lines.iter().all(of_blocks) {
        return Some("all its addresses are multiples of 512, as places and sizes of blocks are");
    }
    let is_label = |l: &CpuLine| l.bubbles <= MOST_LABELS && l.writeback.is_none();
    if lines.len() >= SEVERAL && lines.iter().all(is_label) {
        return Some(
            "its first numbers are 0 to 64 and no line is written back: they may be labels, threads or sizes",
        );
    }
    let is_low = |l: &CpuLine| l.addresses().any(|address| address < LOWEST);
    lines
        .iter()
        .any(is_low)
        .then_some("some of its addresses lie below 64 KiB, where programs have nothing")
}

/// Linux maps nothing below (`vm.mmap_min_addr`).
const LOWEST: u64 = 1 << 16;
/// Labels of kinds, numbers of threads and sizes of accesses are no larger; instructions between two accesses
/// that miss in caches seldom are so few without a line that is written back.
const MOST_LABELS: u64 = 64;
const SEVERAL: usize = 3;
/// More instructions than this rarely stand between two accesses.
const MANY_BUBBLES: u64 = 100_000;
const CPU_LINE: &str = "\"bubble_count read_address [writeback_address]\"";
const BUBBLES: &str = "a decimal number from 0 to 4294967294";
const ADDRESS: &str = "a decimal number below 2^64, or 0x and hexadecimal digits";
const DRAM_LINE: &str = "\"0xADDRESS R|W\"";

/// A line of a CPU trace.
#[derive(Debug, PartialEq, Eq)]
struct CpuLine {
    bubbles: u64,
    read: u64,
    writeback: Option<u64>,
}

impl CpuLine {
    fn addresses(&self) -> impl Iterator<Item = u64> {
        std::iter::once(self.read).chain(self.writeback)
    }

    /// Both addresses are those of whole lines.
    fn is_aligned(&self) -> bool {
        self.addresses().all(|address| address.is_multiple_of(LINE))
    }
}

fn parse_cpu(line: &[u8]) -> Result<Option<CpuLine>, Complaint> {
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

fn parse_dram(line: &[u8]) -> Result<Option<(u64, RefKind)>, Complaint> {
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
struct Cpu;

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
struct Dram;

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
