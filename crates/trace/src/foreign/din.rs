//! Dinero's `din`.
//!
//! The format limits addresses to 32 bits; here they may have 64.
//!
//! Deviations, for lack of data: a reference is 4 bytes, Dinero's word, cut at the line's end; an
//! instruction is 1 byte, so that its fetch stays on one line. Until the first instruction each data
//! reference counts as one, or a trace of data alone would be a single instruction.

use piebald_units::VirtAddr;
use piebald_units::op::{Next, RefKind};

use super::Options;
use super::entry::{Entry, Lines};
use super::error::{Complaint, ForeignError};
use super::fetch::FetchFilter;
use super::input::Input;
use super::text::{fields, hex};
use super::thread::{Decode, Sink, drive, site_of, within_line};
use crate::about::{About, Form, Stamps};

pub(super) const ENTRY: Entry = Entry {
    name: "din",
    about: About {
        what: "Dinero's din: addresses of a program",
        form: Form::Text {
            line: "label address [comment]",
            fields: &[
                (
                    "label",
                    "0 data is read, 1 written, 2 an instruction is fetched; 3 (of unknown kind) and 4 \
                     (cache flush) are counted and passed over",
                ),
                ("address", "hexadecimal, without 0x"),
            ],
            sample: "0 7fff1000\n",
        },
        source: "\"Dinero File Format\" of the Dinero distribution, and Dinero IV's manual page",
        stamps: Stamps::Absent,
        left_out: "escape records (3 and 4), and what stands behind the address",
    },
    filtered: false,
    assumes: Some("sizes: 4 bytes, cut at the line's end; instructions of 1 byte"),
    instructions: true,
    lines: Some(Lines {
        holds_data: |line| Ok(parse(line)?.is_some()),
        doubt: Some(doubt),
    }),
    open: |options, input| drive(Din::new(options), input),
};

/// Addresses of 57 bits, the widest of x86-64: those of programs end at the one, those of kernels begin at
/// the other.
const LOW_END: u64 = 1 << 56;
const HIGH: u64 = u64::MAX << 56;

/// A number from 0 to 4 and another one are much; hexadecimal letters show that the second is an
/// address.
fn doubt(lines: &[&[u8]]) -> Option<&'static str> {
    let letter = |b: &u8| b.is_ascii_hexdigit() && !b.is_ascii_digit();
    let second = |line: &&[u8]| fields(line).nth(1).is_some_and(|a| a.iter().any(letter));
    if !lines.iter().any(second) {
        return Some("no address has a hexadecimal letter");
    }
    let more = |line: &&[u8]| fields(line).nth(2).is_some();
    if lines.iter().any(more) {
        return Some("there is more in a line than label and address");
    }
    let is_far = |line: &&[u8]| {
        let address = fields(line).nth(1).map(|a| hex("", a));
        address.is_some_and(|a| a.is_ok_and(|a| (LOW_END..HIGH).contains(&a)))
    };
    if lines.iter().any(is_far) {
        return Some("some of its addresses are none that a processor has");
    }
    let label = |line: &&[u8]| fields(line).next().and_then(|l| l.first().copied());
    let rises = |pair: &[&[u8]]| label(&pair[0]) < label(&pair[1]);
    let rising = lines.len() > 1 && lines.windows(2).all(rises);
    rising.then_some("its first number rises from line to line, as a time does")
}

const LINE: &str = "\"label address\"";
/// Instructions further apart than this do not follow one another.
const LONGEST_INSTR: u64 = 15;

/// What a line's label says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    Read,
    Write,
    Fetch,
    Unknown,
    Flush,
}

/// One record, or nothing on a blank line.
pub(crate) fn parse(line: &[u8]) -> Result<Option<(Label, u64)>, Complaint> {
    let mut fields = fields(line);
    let label = match fields.next() {
        None => return Ok(None),
        Some(b"0") => Label::Read,
        Some(b"1") => Label::Write,
        Some(b"2") => Label::Fetch,
        Some(b"3") => Label::Unknown,
        Some(b"4") => Label::Flush,
        Some(other) => return Err(Complaint::text("the label", other, "0 to 4")),
    };
    let Some(addr) = fields.next() else {
        return Err(Complaint::text("the line", line, LINE));
    };
    Ok(Some((label, hex("the address", addr)?)))
}

#[derive(Debug)]
pub(crate) struct Din {
    fetches: FetchFilter,
    /// Address of the last instruction.
    pc: Option<u64>,
}

impl Din {
    pub fn new(options: Options) -> Self {
        Self {
            fetches: FetchFilter::new(options.fetches),
            pc: None,
        }
    }

    fn data(&self, kind: RefKind, addr: u64, sink: &mut Sink<'_>) {
        let site = self.pc.map_or(0, site_of);
        sink.retire(u64::from(self.pc.is_none()));
        sink.push(VirtAddr(addr), within_line(addr, 4), kind, site, 0);
    }
}

impl Decode for Din {
    fn step(
        &mut self,
        input: &mut Input,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Next>, ForeignError> {
        let Some(record) = input.line(parse)? else {
            return Ok(Some(Next::End));
        };
        match record {
            None => sink.skipped.comments += 1,
            Some((Label::Read, addr)) => self.data(RefKind::Load, addr, sink),
            Some((Label::Write, addr)) => self.data(RefKind::Store, addr, sink),
            Some((Label::Fetch, addr)) => {
                let ahead = self.pc.map(|pc| addr.wrapping_sub(pc));
                let follows = ahead.is_some_and(|a| (1..=LONGEST_INSTR).contains(&a));
                sink.retire(1);
                self.fetches.fetch(addr, 1, !follows, sink);
                self.pc = Some(addr);
            }
            Some((Label::Unknown, _)) => sink.skipped.markers += 1,
            Some((Label::Flush, _)) => sink.skipped.flushes += 1,
        }
        Ok(None)
    }
}
