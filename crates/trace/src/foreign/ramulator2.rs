//! Traces of Ramulator 2's two trace frontends, which go to the memory system without a cache.
//!
//! No instructions: each request counts as one, or the whole trace would be a single instruction. A
//! request moves a line of 64 bytes.
//!
//! A coordinate has no address; which one it had depends on a mapping that the trace does not name.
//! The addresses here are those of the linear mapping of a channel of 64 bits: the levels from the
//! top as written, 15 bits for all above the row together (15 divided by their number, the first gets
//! the rest), 18 bits of row, and a column of 8 bytes, of which a row has up to 2048. So distinct
//! coordinates are distinct addresses, a row's columns are neighbours, and nothing else can be
//! concluded from them; [`Format::assumes`](super::Format::assumes) says so.

use piebald_units::VirtAddr;
use piebald_units::op::{Next, RefKind};

use super::entry::{Entry, Lines};
use super::error::{Complaint, ForeignError};
use super::input::Input;
use super::text::{decimal, fields, hex_prefixed};
use super::thread::{Decode, Sink, drive, within_line};
use crate::about::{About, Form, Stamps};

pub(super) const LOAD_STORE: Entry = Entry {
    name: "ramulator2-load-store",
    about: About {
        what: "Traces of Ramulator 2's load/store frontend",
        form: Form::Text {
            line: "LD|ST ADDRESS",
            fields: &[
                ("LD|ST", "load or store"),
                ("address", "decimal or with 0x"),
            ],
            sample: "LD 0x12345680\n",
        },
        source: "Ramulator 2's loadstore_trace.cpp",
        stamps: Stamps::Absent,
        left_out: "nothing",
    },
    filtered: true,
    assumes: Some("sizes: whole lines; one instruction per request"),
    instructions: false,
    lines: Some(Lines {
        holds_data: |line| Ok(parse_load_store(line)?.is_some()),
        doubt: Some(unaligned),
    }),
    open: |_, input| drive(Requests(parse_load_store), input),
};

pub(super) const READ_WRITE: Entry = Entry {
    name: "ramulator2-read-write",
    about: About {
        what: "Traces of Ramulator 2's read/write frontend",
        form: Form::Text {
            line: "R|W n,n,...",
            fields: &[
                ("R|W", "read or write"),
                (
                    "n,n,...",
                    "a DRAM coordinate of 3 to 7 levels; the last two are row and column",
                ),
            ],
            sample: "R 0,0,3,1200,8\n",
        },
        source: "Ramulator 2's readwrite_trace.cpp: \"channel,rank,bank,row,column\"",
        stamps: Stamps::Absent,
        left_out: "nothing",
    },
    filtered: true,
    assumes: Some(
        "addresses: made from DRAM coordinates by a linear mapping, not the traced machine's; sizes: \
         whole lines; one instruction per request",
    ),
    instructions: false,
    lines: Some(Lines {
        holds_data: |line| Ok(parse_read_write(line)?.is_some()),
        doubt: Some(few_levels),
    }),
    open: |_, input| drive(Requests(parse_read_write), input),
};

const ADDRESS: &str = "a decimal number up to 9223372036854775807, or 0x and hexadecimal digits";
const LS_LINE: &str = "\"LD|ST ADDRESS\"";
const RW_LINE: &str = "\"R|W\" and 3 to 7 numbers with commas between them";
/// Numbers of a coordinate.
const LEVELS: std::ops::RangeInclusive<usize> = 3..=7;
const ROW_BITS: u32 = 18;
/// Bits of a column, and of the bytes in it.
const COLUMN_BITS: u32 = 11;
const BYTE_BITS: u32 = 3;
/// Bits of all levels above the row.
const UPPER_BITS: u32 = 15;

/// A request: kind and address.
type Request = (RefKind, u64);

fn parse_load_store(line: &[u8]) -> Result<Option<Request>, Complaint> {
    let mut fields = fields(line);
    let kind = match fields.next() {
        None => return Ok(None),
        Some(b"LD") => RefKind::Load,
        Some(b"ST") => RefKind::Store,
        Some(other) => {
            let allowed = "LD (load) or ST (store)";
            return Err(Complaint::text("the kind", other, allowed));
        }
    };
    let (Some(addr), None) = (fields.next(), fields.next()) else {
        return Err(Complaint::text("the line", line, LS_LINE));
    };
    let addr = match addr {
        [b'0', b'x' | b'X', ..] => hex_prefixed("the address", addr)?,
        _ => decimal("the address", addr, i64::MAX as u64, ADDRESS)?,
    };
    Ok(Some((kind, addr)))
}

/// Levels of a DRAM's coordinate: channel, rank, bank, row and column at least.
const LEAST_LEVELS: usize = 5;

/// Rows of other tools have numbers behind a direction, too: a place, a length, a time.
fn few_levels(lines: &[&[u8]]) -> Option<&'static str> {
    let few = |line: &&[u8]| line.split(|b| *b == b',').count() < LEAST_LEVELS;
    lines
        .iter()
        .all(few)
        .then_some("its coordinates have three or four levels, where a DRAM has five or more")
}

fn parse_read_write(line: &[u8]) -> Result<Option<Request>, Complaint> {
    let mut fields = fields(line);
    let kind = match fields.next() {
        None => return Ok(None),
        Some(b"R") => RefKind::Load,
        Some(b"W") => RefKind::Store,
        Some(other) => return Err(Complaint::text("the kind", other, "R (read) or W (write)")),
    };
    let (Some(coordinate), None) = (fields.next(), fields.next()) else {
        return Err(Complaint::text("the line", line, RW_LINE));
    };
    let levels = coordinate.split(|b| *b == b',').count();
    if !LEVELS.contains(&levels) {
        return Err(Complaint::text("the line", line, RW_LINE));
    }
    let upper = levels as u32 - 2;
    let mut addr = 0;
    for (level, number) in (0..).zip(coordinate.split(|b| *b == b',')) {
        let (field, bits) = match level {
            0 => (
                "the first level",
                UPPER_BITS - (upper - 1) * (UPPER_BITS / upper),
            ),
            level if level < upper => ("a level above the row", UPPER_BITS / upper),
            level if level == upper => ("the row", ROW_BITS),
            _ => ("the column", COLUMN_BITS),
        };
        let max = (1 << bits) - 1;
        addr = addr << bits | decimal(field, number, max, limit(bits))?;
    }
    Ok(Some((kind, addr << BYTE_BITS)))
}

/// What numbers of so many bits may be, in words.
const fn limit(bits: u32) -> &'static str {
    match bits {
        3 => "a decimal number from 0 to 7",
        5 => "a decimal number from 0 to 31",
        6 => "a decimal number from 0 to 63",
        7 => "a decimal number from 0 to 127",
        8 => "a decimal number from 0 to 255",
        11 => "a decimal number from 0 to 2047",
        15 => "a decimal number from 0 to 32767",
        _ => "a decimal number from 0 to 262143",
    }
}

/// Bytes of a line.
const LINE: u64 = 64;

/// Programs log `LD ADDRESS` of their own accesses, too.
fn unaligned(lines: &[&[u8]]) -> Option<&'static str> {
    let mut requests = lines.iter().filter_map(|line| parse_load_store(line).ok()?);
    let unaligned = requests.any(|(_, address)| !address.is_multiple_of(LINE));
    unaligned.then_some("its addresses are not those of lines")
}

/// Either form, by its parser.
struct Requests(fn(&[u8]) -> Result<Option<Request>, Complaint>);

impl Decode for Requests {
    fn step(
        &mut self,
        input: &mut Input,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Next>, ForeignError> {
        let Some(request) = input.line(self.0)? else {
            return Ok(Some(Next::End));
        };
        if let Some((kind, addr)) = request {
            sink.retire(1);
            sink.push(VirtAddr(addr), within_line(addr, 64), kind, 0, 0);
        } else {
            sink.skipped.comments += 1;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(line: &str) -> Result<u64, String> {
        let parsed = parse_read_write(line.as_bytes());
        parsed
            .map(|r| r.expect("a request").1)
            .map_err(|c| format!("{} is {}; allowed: {}", c.field, c.value, c.allowed))
    }

    #[test]
    fn coordinates_are_packed_from_the_top() {
        assert_eq!(address("R 0,0,0,0,1"), Ok(8));
        assert_eq!(address("R 0,0,0,1,0"), Ok(1 << 14));
        assert_eq!(address("R 0,0,1,0,0"), Ok(1 << 32));
        assert_eq!(address("R 1,0,0,0,0"), Ok(1 << 42));
        // Four upper levels have 3 bits each, the first 6: the highest address has 47 bits.
        assert_eq!(address("W 63,7,7,7,262143,2047"), Ok((1 << 47) - 8),);
        assert_eq!(address("W 32767,262143,2047"), Ok((1 << 47) - 8));
    }

    #[test]
    fn a_coordinate_that_does_not_fit_is_named() {
        for (line, message) in [
            (
                "R 0,0,0,0,2048",
                "the column is \"2048\"; allowed: a decimal number from 0 to 2047",
            ),
            ("R 0,0,0,262144,0", "the row is \"262144\""),
            (
                "R 0,0,32,0,0",
                "a level above the row is \"32\"; allowed: a decimal number from 0 to 31",
            ),
            (
                "R 64,0,0,0,0,0",
                "the first level is \"64\"; allowed: a decimal number from 0 to 63",
            ),
            ("R 0,0", "allowed: \"R|W\" and 3 to 7 numbers"),
            ("R 0,-1,0,0,0", "a level above the row is \"-1\""),
            ("X 0,0,0", "the kind is \"X\""),
        ] {
            let error = address(line).expect_err(line);
            assert!(error.contains(message), "{error}");
        }
    }
}
