//! One decimal block number per line: the LIRS authors' traces, and libCacheSim's `txt`.
//!
//! A line `*` asks their simulator to print its state and means nothing here. In the LIRS traces
//! blocks are numbered in order of first use, so that numbers say nothing about places.

use super::super::reader::{Entry, Lines, Looks};
use super::super::request::NextUse;
use super::super::sink::Sink;
use super::super::text::plain;
use super::super::{TargetKind, Times, Traits};
use crate::foreign::error::Complaint;

pub(crate) const ENTRY: Entry = Entry {
    name: "ids",
    aliases: &["lirs", "txt"],
    traits: Traits {
        target: TargetKind::Id,
        times: Times::None,
        directions: false,
        tasks: false,
    },
    looks: Looks::Text,
    parser: |_| Box::new(Lines(line)),
};

fn line(line: &[u8], sink: &mut Sink<'_>) -> Result<(), Complaint> {
    let word = line.trim_ascii();
    if word.is_empty() || word == b"*" {
        sink.state.passed.comments += 1;
        return Ok(());
    }
    let id = plain(word).ok_or_else(|| {
        let allowed = "a decimal number from 0 to 18446744073709551615, or *";
        Complaint::text("the block", word, allowed)
    })?;
    sink.id(None, id, None, NextUse::Unknown)
}
