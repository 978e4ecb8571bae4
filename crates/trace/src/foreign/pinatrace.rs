//! The output of Pin's example tool pinatrace, with `#eof` at the end.
//!
//! There is a line for each memory operand; an instruction that touches no memory has none, so the
//! instructions are fewer than the program's. A line with the address of the line before is the same
//! instruction if it writes and the one before reads (as `push (%rax)` does), which is one `Update` if
//! both are of one place; else it is the instruction once more.
//!
//! Deviations, for lack of data: a reference is 8 bytes, cut at the line's end; an instruction is 1
//! byte, so that its fetch stays on one line. A file without `#eof` ends as cut.

use piebald_units::VirtAddr;
use piebald_units::op::{Next, RefKind};

use super::Options;
use super::entry::{Entry, Lines};
use super::error::{Complaint, ForeignError};
use super::fetch::FetchFilter;
use super::input::Input;
use super::text::{fields, hex_prefixed};
use super::thread::{Decode, Sink, drive, site_of, within_line};
use crate::about::{About, Form, Stamps};

pub(super) const ENTRY: Entry = Entry {
    name: "pinatrace",
    about: About {
        what: "The output of Pin's example tool pinatrace",
        form: Form::Text {
            line: "0xINSTRUCTION: R|W 0xADDRESS",
            fields: &[
                (
                    "instruction",
                    "address of the instruction, hexadecimal, with 0x",
                ),
                ("R|W", "read or written"),
                ("address", "of the data, hexadecimal, with 0x"),
            ],
            sample: "0x401000: R 0x7ffe1000\n#eof\n",
        },
        source: "source/tools/ManualExamples/pinatrace.cpp of the Pin kit: fprintf(trace, \"%p: R %p\\n\", \
                 ip, addr)",
        stamps: Stamps::Absent,
        left_out: "#eof. A read and a write of one place by one instruction are one update",
    },
    filtered: false,
    assumes: Some(
        "sizes: 8 bytes, cut at the line's end; instructions of 1 byte, and none besides those that \
         touch memory",
    ),
    instructions: true,
    lines: Some(Lines {
        holds_data: |line| Ok(matches!(parse(line)?, Line::Access(_))),
        doubt: None,
    }),
    open: |options, input| drive(Pinatrace::new(options), input),
};

const LINE: &str = "\"0xINSTRUCTION: R|W 0xADDRESS\" or \"#eof\"";

/// One memory operand of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pc: u64,
    writes: bool,
    addr: u64,
}

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Access(Access),
    End,
    Blank,
}

pub(crate) fn parse(line: &[u8]) -> Result<Line, Complaint> {
    let wrong = || Complaint::text("the line", line, LINE);
    let mut fields = fields(line);
    let Some(pc) = fields.next() else {
        return Ok(Line::Blank);
    };
    if line.trim_ascii() == b"#eof" {
        return Ok(Line::End);
    }
    let pc = hex_prefixed(
        "the instruction's address",
        pc.strip_suffix(b":").ok_or_else(wrong)?,
    )?;
    let writes = match fields.next() {
        Some(b"R") => false,
        Some(b"W") => true,
        Some(other) => return Err(Complaint::text("the kind", other, "R (read) or W (write)")),
        None => return Err(wrong()),
    };
    let addr = hex_prefixed("the address", fields.next().ok_or_else(wrong)?)?;
    match fields.next() {
        Some(_) => Err(wrong()),
        None => Ok(Line::Access(Access { pc, writes, addr })),
    }
}

#[derive(Debug)]
pub(crate) struct Pinatrace {
    fetches: FetchFilter,
    /// A read that the next line may belong to.
    held: Option<Access>,
}

impl Pinatrace {
    pub fn new(options: Options) -> Self {
        Self {
            fetches: FetchFilter::new(options.fetches),
            held: None,
        }
    }

    fn refer(&mut self, access: Access, kind: RefKind, sink: &mut Sink<'_>) {
        let Access { pc, addr, .. } = access;
        sink.push(VirtAddr(addr), within_line(addr, 8), kind, site_of(pc), 0);
    }

    /// A new instruction begins. Where the next one lies is not known, so a jump is only seen where
    /// it leaves the line.
    fn begin(&mut self, pc: u64, sink: &mut Sink<'_>) {
        sink.retire(1);
        self.fetches.fetch(pc, 1, false, sink);
    }

    fn release(&mut self, sink: &mut Sink<'_>) {
        if let Some(read) = self.held.take() {
            self.refer(read, RefKind::Load, sink);
        }
    }

    fn access(&mut self, access: Access, sink: &mut Sink<'_>) {
        let before = self.held.take();
        match before.filter(|read| access.writes && read.pc == access.pc) {
            Some(read) if read.addr == access.addr => self.refer(access, RefKind::Update, sink),
            Some(read) => {
                self.refer(read, RefKind::Load, sink);
                self.refer(access, RefKind::Store, sink);
            }
            None => {
                self.held = before;
                self.release(sink);
                self.begin(access.pc, sink);
                match access.writes {
                    true => self.refer(access, RefKind::Store, sink),
                    false => self.held = Some(access),
                }
            }
        }
    }
}

impl Decode for Pinatrace {
    fn step(
        &mut self,
        input: &mut Input,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Next>, ForeignError> {
        let line = match input.line(parse) {
            Ok(line) => line,
            Err(error) => {
                // The read that was held came before the damage.
                self.release(sink);
                return Err(error);
            }
        };
        match line {
            None => {
                self.release(sink);
                return Ok(Some(Next::End));
            }
            Some(Line::Access(access)) => self.access(access, sink),
            Some(Line::End | Line::Blank) => {
                self.release(sink);
                sink.skipped.comments += 1;
            }
        }
        Ok(None)
    }
}
