//! Traces of the ARC authors. A request of several blocks stands for as many references.
//!
//! Four numbers could be anything: without being named, a trace must count its requests in the last
//! field, as P1 to P14 do, or have zeros there, as OLTP has; and it must begin with zeros in the third, as all of
//! these do.

use super::super::reader::{Entry, Lines, Looks};
use super::super::request::Op;
use super::super::sink::Sink;
use super::super::text::{exactly, fields, may_be_bytes, number, plain};
use super::super::{TargetKind, Times, Traits};
use crate::about::{About, Form, Stamps};
use crate::foreign::error::Complaint;

pub(crate) const ENTRY: Entry = Entry {
    name: "arc",
    aliases: &["lis"],
    about: About {
        what: "Traces of the ARC authors (Megiddo and Modha): P1 to P14, S1 to S3, OLTP and others",
        form: Form::Text {
            line: LINE,
            fields: &[
                ("start_block", "first block, of 512 B"),
                ("blocks", "number of blocks"),
                ("ignored", "not used"),
                ("request_number", "counts the requests; not used"),
            ],
            sample: "100 8 0 0\n",
        },
        source: "README of the traces: \"each block is 512 bytes\"",
        stamps: Stamps::Absent,
        left_out: "the third and fourth field. There is one disk",
    },
    traits: Traits {
        target: TargetKind::Device,
        times: Times::None,
        directions: false,
        tasks: false,
    },
    looks: Looks::Doubtful(doubt),
    parser: |_| Box::new(Lines(line)),
};

fn doubt(lines: &[&[u8]]) -> Option<&'static str> {
    let field = |line: &[u8], n| fields(line).nth(n).and_then(plain);
    let counts = |pair: &[&[u8]]| {
        let before = field(pair[0], 3).and_then(|n| n.checked_add(1));
        before.is_some() && before == field(pair[1], 3)
    };
    let counted = lines.len() > 1 && lines.windows(2).all(counts);
    let zeros = |n| lines.iter().all(|l| field(l, n) == Some(0));
    if !counted && !zeros(3) {
        return Some("its last field does not count the requests");
    }
    if !zeros(2) {
        return Some("its third field does not begin with 0");
    }
    let places = lines.iter().flat_map(|l| [field(l, 0), field(l, 1)]);
    may_be_bytes(places).then_some("all its places and lengths are multiples of 512, as bytes are")
}

const LINE: &str = "start_block blocks ignored request_number";

fn line(line: &[u8], sink: &mut Sink<'_>) -> Result<(), Complaint> {
    let [start, blocks, ignored, request] = exactly(line, fields(line), LINE)?;
    let start = number("the start block", start)?;
    let blocks = number("the number of blocks", blocks)?;
    number("the third field", ignored)?;
    number("the request number", request)?;
    sink.sectors((None, 0, Op::Read), 0, start, blocks)
}
