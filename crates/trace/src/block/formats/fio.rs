//! fio's I/O log, versions 2 and 3.
//!
//! The unit of version 3's times is not in fio's HOWTO: fio writes
//! `utime_since_now(&td->io_log_start_time)` and compares the differences with `utime_since_now` when
//! it replays them. The `wait` of version 2 is counted, and its time not used.
//!
//! A file may also be a disk in `/dev`: it is given as a file all the same, since the log does not tell.
//! Names are known from `add`, which fio needs as well; a request to another file is an error. fio writes
//! a name with blanks as it is, and cannot read it back; here a name reaches up to the action.

use super::super::reader::{Entry, Lines, Looks, ParseLine};
use super::super::request::{FileKey, Nanos, Op};
use super::super::sink::Sink;
use super::super::text::number;
use super::super::{TargetKind, Times, Traits};
use crate::about::{About, Form, Origin, Stamps};
use crate::foreign::error::Complaint;

pub(crate) const ENTRY: Entry = Entry {
    name: "fio",
    aliases: &["iolog"],
    about: About {
        what: "fio's I/O log, versions 2 and 3",
        form: Form::Text {
            line: "fio version 2|3 iolog, then [time] file action [offset length]",
            fields: &[
                ("time", "microseconds; in version 3 alone"),
                ("file", "its name; the first action with it is add"),
                (
                    "action",
                    "read and write; trim, sync, datasync, sync_file_range, syncfs, wait; without \
                     offset and length: add, open, close",
                ),
                ("offset", "first byte"),
                ("length", "bytes"),
            ],
            sample: "fio version 3 iolog\n0 /data/a add\n5 /data/a read 4096 8192\n",
        },
        source: "fio's HOWTO, \"Trace file format v2\" and \"v3\" (bytes); names: io_ddir.h; times: \
                 iolog.c (log_io_u, log_file, iolog_delay)",
        stamps: Stamps::Optional("version 3: microseconds since the log began; version 2: absent"),
        left_out: "trims, syncs, and waits",
    },
    traits: Traits {
        target: TargetKind::File,
        times: Times::Optional,
        directions: true,
        tasks: false,
    },
    looks: Looks::Text,
    parser: |_| Box::new(Lines(Fio { version: None })),
};

/// What the first line of a log of any version begins with.
pub(crate) const MARK: &[u8] = b"fio version ";

/// The versions that exist.
#[derive(Clone, Copy, PartialEq)]
enum Version {
    Two,
    Three,
}

struct Fio {
    version: Option<Version>,
}

const ACTIONS: &str = "file action offset length, the action being read, write, trim, sync, datasync, \
    sync_file_range, syncfs or wait; or file and one of add, open, close";
const TIMED: &str = "the time before file and action";

/// What a line does.
enum Action<'a> {
    Add,
    /// With offset and length.
    Data(Op, [&'a [u8]; 2]),
    Trim,
    Sync,
    Other,
}

impl<'a> Action<'a> {
    /// An action that stands last.
    fn of_file(word: &[u8]) -> Option<Self> {
        match word {
            b"add" => Some(Self::Add),
            b"open" | b"close" => Some(Self::Other),
            // HOWTO asks for offset and length; logs written by hand leave them out.
            b"sync" | b"datasync" | b"sync_file_range" | b"syncfs" => Some(Self::Sync),
            _ => None,
        }
    }

    /// An action with offset and length behind it.
    fn of_place(word: &[u8], place: [&'a [u8]; 2]) -> Option<Self> {
        match word {
            b"read" => Some(Self::Data(Op::Read, place)),
            b"write" => Some(Self::Data(Op::Write, place)),
            b"trim" => Some(Self::Trim),
            b"sync" | b"datasync" | b"sync_file_range" | b"syncfs" => Some(Self::Sync),
            b"wait" => Some(Self::Other),
            _ => None,
        }
    }
}

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
        if self.version == Some(Version::Three) {
            sink.state.origin = Some(Origin::Relative);
        }
        sink.state.passed.comments += 1;
        Ok(())
    }
}

impl ParseLine for Fio {
    fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Complaint> {
        let Some(version) = self.version else {
            return self.header(line, sink);
        };
        let (time, rest) = match version {
            Version::Two => (None, line),
            Version::Three => {
                let (time, rest) = first_word(line.trim_ascii_start())
                    .ok_or_else(|| Complaint::text("the line", line, TIMED))?;
                (Some(microseconds(time)?), rest)
            }
        };
        let (name, action) =
            parts(rest).ok_or_else(|| Complaint::text("the line", rest.trim_ascii(), ACTIONS))?;
        match action {
            Action::Add => return sink.state.files.intern(name).map(drop),
            Action::Trim => sink.state.passed.discards += 1,
            Action::Sync => sink.state.passed.flushes += 1,
            Action::Other => sink.state.passed.others += 1,
            Action::Data(op, [offset, length]) => {
                let offset = number("the offset", offset)?;
                let length = number("the length", length)?;
                let file = known(name, sink)?;
                return sink.file((time, 0, op), file, offset, length);
            }
        }
        Ok(())
    }
}

fn first_word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = line.iter().position(|b| matches!(b, b' ' | b'\t'))?;
    Some((&line[..end], line[end..].trim_ascii_start()))
}

fn last_word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.trim_ascii_end();
    let start = line.iter().rposition(|b| matches!(b, b' ' | b'\t'))? + 1;
    Some((line[..start].trim_ascii_end(), &line[start..]))
}

/// Name and action, read from the right, since the name may hold blanks.
fn parts(line: &[u8]) -> Option<(&[u8], Action<'_>)> {
    let (before, last) = last_word(line)?;
    if let Some(action) = Action::of_file(last) {
        return Some((before, action));
    }
    let (before, offset) = last_word(before)?;
    let (name, action) = last_word(before)?;
    Some((name, Action::of_place(action, [offset, last])?))
}

fn microseconds(text: &[u8]) -> Result<Nanos, Complaint> {
    number("the time", text)?
        .checked_mul(1000)
        .map(Nanos)
        .ok_or_else(|| Complaint::text("the time", text, "up to 18446744073709551 microseconds"))
}

fn known(name: &[u8], sink: &Sink<'_>) -> Result<FileKey, Complaint> {
    let file = sink.state.files.find(name);
    file.ok_or_else(|| Complaint::text("the file", name, "one that an earlier \"add\" names"))
}
