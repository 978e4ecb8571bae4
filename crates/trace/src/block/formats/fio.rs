//! fio's I/O log.
//!
//! Version 2: a line `fio version 2 iolog`, then `file action [offset length]`. Version 3 has the
//! time in milliseconds before each of them \[M\]. Actions: `add`, `open`, `close`, `read`, `write`,
//! `sync`, `datasync`, `trim`, `wait`. Offsets and lengths are bytes. A file may also be a disk in
//! `/dev`: it is given as a file all the same, since the log does not tell. File names are known from
//! `add`; a request to another file is an error.

use super::super::reader::{Entry, Lines, Looks, ParseLine};
use super::super::request::{FileKey, Nanos, Op};
use super::super::sink::Sink;
use super::super::text::{fields, number};
use super::super::{TargetKind, Times, Traits};
use crate::foreign::error::Complaint;

pub(crate) const ENTRY: Entry = Entry {
    name: "fio",
    aliases: &["iolog"],
    traits: Traits {
        target: TargetKind::File,
        times: Times::Optional,
        directions: true,
        tasks: false,
    },
    looks: Looks::Text,
    parser: |_| Box::new(Lines(Fio { version: None })),
};

/// The versions that exist.
#[derive(Clone, Copy, PartialEq)]
enum Version {
    Two,
    Three,
}

struct Fio {
    version: Option<Version>,
}

const ACTIONS: &str = "add, open, close, read, write, sync, datasync, trim or wait";
const DATA: &str = "file action offset length";

impl Fio {
    fn header(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Complaint> {
        self.version = match line.trim_ascii() {
            b"fio version 2 iolog" => Some(Version::Two),
            b"fio version 3 iolog" => Some(Version::Three),
            _ => {
                let allowed = "\"fio version 2 iolog\" or \"fio version 3 iolog\"";
                return Err(Complaint::text("the first line", line, allowed));
            }
        };
        sink.state.passed.comments += 1;
        Ok(())
    }
}

impl ParseLine for Fio {
    fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Complaint> {
        let Some(version) = self.version else {
            return self.header(line, sink);
        };
        let mut words = fields(line);
        let mut word = |allowed| {
            let word = words.next();
            word.ok_or_else(|| Complaint::text("the line", line, allowed))
        };
        let time = match version {
            Version::Two => None,
            Version::Three => Some(milliseconds(word("time file action")?)?),
        };
        let (name, action) = (word("file action")?, word("file action")?);
        let op = match action {
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"trim" => {
                sink.state.passed.discards += 1;
                return Ok(());
            }
            b"sync" | b"datasync" => {
                sink.state.passed.flushes += 1;
                return Ok(());
            }
            b"add" => return sink.state.files.intern(name).map(drop),
            b"open" | b"close" | b"wait" => {
                sink.state.passed.others += 1;
                return Ok(());
            }
            _ => return Err(Complaint::text("the action", action, ACTIONS)),
        };
        let offset = number("the offset", word(DATA)?)?;
        let length = number("the length", word(DATA)?)?;
        let file = known(name, sink)?;
        sink.file((time, 0, op), file, offset, length)
    }
}

fn milliseconds(text: &[u8]) -> Result<Nanos, Complaint> {
    number("the time", text)?
        .checked_mul(1_000_000)
        .map(Nanos)
        .ok_or_else(|| Complaint::text("the time", text, "up to 18446744073709 milliseconds"))
}

fn known(name: &[u8], sink: &Sink<'_>) -> Result<FileKey, Complaint> {
    let file = sink.state.files.find(name);
    file.ok_or_else(|| Complaint::text("the file", name, "one that an earlier \"add\" names"))
}
