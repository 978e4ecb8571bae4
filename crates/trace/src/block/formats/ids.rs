//! One block number per line. libCacheSim takes octal numbers, too; here a leading 0 is decimal, for no
//! tracer writes octal.
//!
//! A line `*` asks the LIRS simulator to print its state and means nothing here (README of the LIRS
//! traces). In the LIRS traces blocks are numbered in order of first use, so that numbers say nothing
//! about places.

use super::super::reader::{Entry, Lines, Looks};
use super::super::request::{NextUse, Op};
use super::super::sink::Sink;
use super::super::text::plain;
use super::super::{TargetKind, Times, Traits};
use crate::about::{About, Form, Stamps};
use crate::foreign::error::Complaint;
use crate::foreign::text::hex_prefixed;

pub(crate) const ENTRY: Entry = Entry {
    name: "ids",
    aliases: &["lirs", "txt"],
    about: About {
        what: "One block number per line: the LIRS authors' traces, and libCacheSim's txt",
        form: Form::Text {
            line: "block",
            fields: &[("block", "number, decimal or with 0x hexadecimal")],
            sample: "4711\n",
        },
        source: "libCacheSim's txt.c (strtoull with base 0); README of the LIRS traces",
        stamps: Stamps::Absent,
        left_out: "lines with * alone, and blank lines",
    },
    traits: Traits {
        target: TargetKind::Id,
        times: Times::None,
        directions: false,
        tasks: false,
    },
    looks: Looks::Text,
    parser: |_| Box::new(Lines(line)),
};

const BLOCK: &str = "a decimal number from 0 to 18446744073709551615, 0x and hexadecimal, or *";

fn line(line: &[u8], sink: &mut Sink<'_>) -> Result<(), Complaint> {
    let word = line.trim_ascii();
    if word.is_empty() || word == b"*" {
        sink.state.passed.comments += 1;
        return Ok(());
    }
    let id = plain(word)
        .or_else(|| hex_prefixed("the block", word).ok())
        .ok_or_else(|| Complaint::text("the block", word, BLOCK))?;
    sink.id((None, 0, Op::Read), id, None, NextUse::Unknown);
    Ok(())
}
