//! SimpleScalar-style address traces.
//!
//! The number counts the instructions *between* this reference and the previous one: in real traces
//! of this form it is 0 on 25 % (swim) to 87 % (mcf) of the lines, which a count that included the
//! reference's own instruction could not be. The gap is therefore the number plus one. A variant
//! that appends two latencies is accepted; they are not used, since latencies are what the machine
//! model finds out. Sizes are not in the format: 4 bytes (the machines traced so had 32-bit words), cut
//! at the line's end.

use piebald_units::VirtAddr;
use piebald_units::op::{Next, RefKind};

use super::entry::{Entry, Lines};
use super::error::{Complaint, ForeignError};
use super::input::Input;
use super::text::{decimal, fields, hex_prefixed};
use super::thread::{Decode, Sink, drive, within_line};
use crate::about::{About, Form, Stamps};

pub(super) const ENTRY: Entry = Entry {
    name: "load-store",
    about: About {
        what: "Loads and stores with the instructions between them, as SimpleScalar-style tracers write",
        form: Form::Text {
            line: "l|s 0xADDRESS instructions [latency latency]",
            fields: &[
                ("l|s", "load or store"),
                ("address", "hexadecimal, with 0x"),
                (
                    "instructions",
                    "between the reference before and this one, neither of them counted",
                ),
                ("latency", "not used"),
            ],
            sample: "l 0x1fffff50 1\n",
        },
        source: "real traces of this form (swim, mcf): the count is 0 on 25 % to 87 % of the lines",
        stamps: Stamps::Absent,
        left_out: "latencies",
    },
    filtered: false,
    assumes: Some("sizes: 4 bytes, cut at the line's end"),
    instructions: false,
    lines: Some(Lines {
        holds_data: |line| Ok(parse(line)?.is_some()),
        doubt: Some(doubt),
    }),
    open: |_, input| drive(LoadStore, input),
};

/// Lines of which one at least has no instructions in between.
const SEVERAL: usize = 3;

/// Programs log `l ADDRESS SIZE` as well, and `l ADDRESS TIME`.
fn doubt(lines: &[&[u8]]) -> Option<&'static str> {
    let third = lines
        .iter()
        .filter_map(|line| parse(line).ok()?.map(|(.., n)| n));
    let third: Vec<u32> = third.collect();
    if third.len() < SEVERAL {
        return None;
    }
    if !third.contains(&0) && third.iter().any(|n| *n > 1) {
        return Some(
            "none of its third numbers is 0: they may be sizes of accesses rather than instructions in \
             between",
        );
    }
    (third.is_sorted() && third.first() < third.last())
        .then_some("its third number never falls, as a time does")
}

const LINE: &str = "\"l|s 0xADDRESS instructions\", optionally with two more numbers";
const GAP: &str = "a decimal number from 0 to 4294967294";

/// One reference, or nothing on a blank line.
pub(crate) fn parse(line: &[u8]) -> Result<Option<(RefKind, u64, u32)>, Complaint> {
    let mut fields = fields(line);
    let kind = match fields.next() {
        None => return Ok(None),
        Some(b"l") => RefKind::Load,
        Some(b"s") => RefKind::Store,
        Some(other) => return Err(Complaint::text("the kind", other, "l (load) or s (store)")),
    };
    let (Some(addr), Some(gap)) = (fields.next(), fields.next()) else {
        return Err(Complaint::text("the line", line, LINE));
    };
    let addr = hex_prefixed("the address", addr)?;
    let gap = decimal("the instruction count", gap, u64::from(u32::MAX) - 1, GAP)?;
    match (fields.next(), fields.next(), fields.next()) {
        (None, ..) => {}
        (Some(a), Some(b), None) => {
            decimal("the first latency", a, u64::MAX, "a decimal number")?;
            decimal("the second latency", b, u64::MAX, "a decimal number")?;
        }
        _ => return Err(Complaint::text("the line", line, LINE)),
    }
    Ok(Some((kind, addr, gap as u32)))
}

#[derive(Debug)]
pub(crate) struct LoadStore;

impl Decode for LoadStore {
    fn step(
        &mut self,
        input: &mut Input,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Next>, ForeignError> {
        let Some(line) = input.line(parse)? else {
            return Ok(Some(Next::End));
        };
        if let Some((kind, addr, gap)) = line {
            sink.retire(u64::from(gap) + 1);
            sink.push(VirtAddr(addr), within_line(addr, 4), kind, 0, 0);
        } else {
            sink.skipped.comments += 1;
        }
        Ok(None)
    }
}
