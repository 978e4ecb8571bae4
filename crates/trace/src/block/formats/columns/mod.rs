//! Any text in columns, which the user describes: [`Columns`] says which field stands in which
//! column and in which unit.
//!
//! Nothing is found out but the separator and, if columns are given by name, their places. All lines
//! have as many columns as the first: a name that holds a blank, say, would shift the numbers behind
//! it, and they could still be read. Blank lines and those that begin with `#` are comments.
//!
//! The times of merged logs step back, so [`Times::Loose`](crate::block::Times) is what is promised.
//! Objects with names, or of several volumes, are numbered in the order in which they appear; what
//! that takes is about 80 B and the name for each, up to 1 GiB of names.

mod fit;

use std::ops::Range;

use fit::{Places, is_comment};

use super::super::columns::date;
use super::super::columns::fields::{
    Clock, Digits, Direction, IdKind, Moment, Others, Process, Quantity, Size, What, Words, usual,
};
use super::super::columns::{Columns, Objects};
use super::super::reader::{Entry, Looks, Parse};
use super::super::request::{Nanos, NextUse, Op};
use super::super::sink::Sink;
use super::super::text::{plain, scaled};
use super::super::{BlockError, Times};
use super::disk;
use crate::about::{About, Form, Origin, Stamps};
use crate::foreign::ForeignError;
use crate::foreign::error::Complaint;
use crate::foreign::input::Input;
use crate::foreign::text::{hex, hex_prefixed};

pub(crate) const ENTRY: Entry = Entry {
    name: "columns",
    aliases: &[],
    about: About {
        what: "Any text in columns, as the list of --columns says",
        form: Form::Text {
            line: "the columns of the list, between commas, tabs, semicolons or blanks",
            fields: &[
                ("time", "when, in the unit of the list; may be missing"),
                (
                    "op",
                    "read or write, by the words of the list; may be missing",
                ),
                ("offset", "first byte, sector, page or block on a disk, or"),
                ("id", "number or name of an object"),
                (
                    "size",
                    "length in the unit of the list, or the same for all",
                ),
                ("device", "name of the volume; may be missing"),
                (
                    "process",
                    "number of the process that asks, below 2^32; may be missing",
                ),
            ],
            sample: "0,R,4096,8192,5\n",
        },
        source: "docs/replay.md, \"Texts in columns\"",
        stamps: Stamps::Optional(
            "as the list says; those of 1,000,000,000 s and more count from 1970, others from the \
             beginning of the file",
        ),
        left_out: "columns that the list does not name",
    },
    // Of places with directions and times; the list says what a file has.
    traits: disk(Times::Loose),
    looks: Looks::Described,
    parser: |options| {
        Box::new(Reader {
            columns: options.columns.clone(),
            objects: options.objects.clone(),
            table: None,
        })
    },
};

/// What a time of this size counts from: seconds since 1970 have ten digits since 2001.
fn origin(first: Nanos) -> Origin {
    match first.0 >= 1_000_000_000_000_000_000 {
        true => Origin::Absolute,
        false => Origin::Relative,
    }
}

struct Reader {
    columns: Option<Columns>,
    objects: Objects,
    /// `None` before the beginning was seen, and if there is no record in the file.
    table: Option<Table>,
}

/// Lines that end as those of old Macs would be one.
const NO_RETURN: &str = "lines that end in a line feed; where a carriage return ends them, \
                         tr '\\r' '\\n' makes them so";

impl Parse for Reader {
    fn begin(&mut self, input: &mut Input) -> Result<(), BlockError> {
        let columns = self.columns.as_ref().ok_or(BlockError::Undescribed)?;
        input.refuse_wide_letters()?;
        let name = input.name().to_owned();
        let places = fit::fit(columns, &name, input.peek()?)?;
        self.table = places.map(|places| Table {
            header_left: places.header,
            unexplained: columns.header.is_none() && places.header == 0,
            names: Vec::new(),
            has_names: columns.has_names(),
            begun: false,
            places,
            cells: Vec::new(),
            objects: self.objects.clone(),
        });
        Ok(())
    }

    fn step(&mut self, input: &mut Input, sink: &mut Sink<'_>) -> Result<bool, ForeignError> {
        let parsed = input.line(|line| match &mut self.table {
            Some(table) => table.line(line, sink),
            None => {
                sink.state.passed.comments += 1;
                Ok(())
            }
        })?;
        Ok(parsed.is_some())
    }
}

struct Table {
    places: Places,
    header_left: u64,
    /// The next record is the first, and nothing was said of a header.
    unexplained: bool,
    cells: Vec<Range<usize>>,
    objects: Objects,
    /// The last line of the header, where the list names its columns.
    names: Vec<u8>,
    has_names: bool,
    /// A record was read.
    begun: bool,
}

impl Table {
    fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Complaint> {
        if self.header_left > 0 {
            self.header_left -= 1;
            if self.header_left == 0 && self.has_names {
                self.names = line.to_vec();
            }
            sink.state.passed.comments += 1;
            return Ok(());
        }
        if is_comment(line) {
            if self.begun && !line.trim_ascii().is_empty() {
                self.places.separator.split(line, &mut self.cells);
                let is_like = self.cells.len() == self.places.width;
                sink.state.notes.like_records += u64::from(is_like);
            }
            sink.state.passed.comments += 1;
            return Ok(());
        }
        // Of files that were put one behind the other, each has its names.
        if self.has_names && *line == self.names {
            sink.state.passed.comments += 1;
            return Ok(());
        }
        if memchr::memchr(b'\r', line).is_some() {
            return Err(Complaint::text("the line", line, NO_RETURN));
        }
        self.begun = true;
        let first = std::mem::take(&mut self.unexplained);
        self.record(line, sink).map_err(|complaint| match first {
            true => explained(complaint),
            false => complaint,
        })
    }

    fn record(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Complaint> {
        let Self {
            places,
            cells,
            objects,
            ..
        } = self;
        places.separator.split(line, cells);
        if cells.len() != places.width {
            let (n, between) = (places.width, places.separator.words());
            let allowed = format!("{n} columns with {between} between them, as in the first line");
            return Err(Complaint::text("the line", line, allowed));
        }
        let cells: &[Range<usize>] = cells;
        let cell = |n: usize| &line[cells[n].clone()];
        let fields = &places.fields;
        let time = match &fields.time {
            Some(moment) => moment.read(cell(moment.column))?,
            None => None,
        };
        if let (Some(time), Some(moment)) = (time, &fields.time) {
            let since = match moment.clock {
                Clock::Date => Origin::Absolute,
                _ => origin(time),
            };
            sink.state.origin.get_or_insert(since);
        }
        let op = match &fields.op {
            Some(direction) => direction.read(cell(direction.column))?,
            None => Some(Op::Read),
        };
        let Some(op) = op else {
            sink.state.passed.others += 1;
            return Ok(());
        };
        let task = match &fields.process {
            Some(process) => process.read(cell(process.column))?,
            None => 0,
        };
        let device = fields.device.iter().map(|n| cell(*n));
        match &fields.what {
            What::Place { offset, size } => {
                let offset = offset.read("the offset", cell(offset.column))?;
                let size = size.read(cell)?;
                let device = volume(device, sink)?;
                sink.bytes((time, task, op), device, offset, size)
            }
            What::Object { id, size } => {
                let size = size.as_ref().map(|size| size.read(cell)).transpose()?;
                let bytes = size.map(small).transpose()?;
                let id = object(objects, id.kind, cell(id.column), device)?;
                sink.id((time, task, op), id, bytes, NextUse::Unknown);
                Ok(())
            }
        }
    }
}

/// A first line of words is a header more often than damage.
fn explained(complaint: Complaint) -> Complaint {
    let begins = complaint.value.trim_start_matches('"').chars().next();
    if !begins.is_some_and(char::is_alphabetic) {
        return complaint;
    }
    let allowed = complaint.allowed + "; if this line is a header, say header=1";
    Complaint {
        allowed,
        ..complaint
    }
}

const DECIMAL: &str =
    "a decimal number from 0 to 18446744073709551615, or 0x and a hexadecimal number";
const DATE: &str = "a date with a time as in 2024-01-02T03:04:05.678Z or 2024-01-02 03:04:05+01:00, from \
                    1970 to 2554";
const HEX: &str = "a hexadecimal number of 1 to 16 digits, with or without 0x";

impl Digits {
    fn read(self, field: &'static str, text: &[u8]) -> Result<u64, Complaint> {
        let prefixed = || hex_prefixed(field, text);
        match self {
            Self::Decimal => plain(text)
                .map_or_else(prefixed, Ok)
                .map_err(|_| Complaint::text(field, text, DECIMAL)),
            Self::Hex => hex(field, text)
                .or_else(|_| prefixed())
                .map_err(|_| Complaint::text(field, text, HEX)),
        }
    }
}

impl Moment<usize> {
    fn read(&self, text: &[u8]) -> Result<Option<Nanos>, Complaint> {
        let (shift, digits) = match self.clock {
            Clock::Scaled { shift, digits } => (shift, digits),
            Clock::Order => return Ok(None),
            Clock::Date => {
                let time = date::nanoseconds(text);
                return time
                    .map(|time| Some(Nanos(time)))
                    .ok_or_else(|| Complaint::text("the time", text, DATE));
            }
        };
        let allowed = match shift {
            9 => "seconds with an optional fraction, below 2^64 ns",
            6 => "milliseconds with an optional fraction, below 2^64 ns",
            3 => "microseconds with an optional fraction, below 2^64 ns",
            _ => "nanoseconds, below 2^64",
        };
        let is_hex = digits == Digits::Hex || text.starts_with(b"0x");
        let time = match is_hex {
            false => scaled("the time", text, shift, allowed)?,
            true => Digits::Hex
                .read("the time", text)?
                .checked_mul(10_u64.pow(shift as u32))
                .ok_or_else(|| Complaint::text("the time", text, allowed))?,
        };
        Ok(Some(Nanos(time)))
    }
}

impl Process<usize> {
    fn read(&self, text: &[u8]) -> Result<u32, Complaint> {
        let number = self.digits.read("the process", text)?;
        let allowed = "a number from 0 to 4294967295";
        u32::try_from(number).map_err(|_| Complaint::text("the process", text, allowed))
    }
}

impl Direction<usize> {
    /// `None` for what is neither a read nor a write.
    fn read(&self, text: &[u8]) -> Result<Option<Op>, Complaint> {
        match &self.words {
            Words::Usual => match usual(text) {
                Some(op) => Ok(Some(op)),
                None => Err(Complaint::text("the op", text, USUAL)),
            },
            Words::Told {
                reads,
                writes,
                others,
            } => {
                let is_in = |words: &[String]| words.iter().any(|word| word.as_bytes() == text);
                match others {
                    _ if is_in(reads) => Ok(Some(Op::Read)),
                    _ if is_in(writes) => Ok(Some(Op::Write)),
                    Others::Any => Ok(None),
                    Others::Words(words) if is_in(words) => Ok(None),
                    Others::Words(words) => {
                        let all = [&reads[..], writes, words].concat().join(", ");
                        Err(Complaint::text("the op", text, all))
                    }
                }
            }
        }
    }
}

const USUAL: &str = "r, read, rs, w, write or ws, in any case; other words for reads and writes are \
                     told as in op=2:0/1";

impl Quantity<usize> {
    /// In bytes.
    fn read(&self, field: &'static str, text: &[u8]) -> Result<u64, Complaint> {
        let number = self.digits.read(field, text)?;
        number
            .checked_mul(self.unit)
            .ok_or_else(|| Complaint::text(field, text, "less than 2^64 bytes"))
    }
}

impl Size<usize> {
    fn read<'a>(&self, cell: impl Fn(usize) -> &'a [u8]) -> Result<u64, Complaint> {
        match self {
            Self::Always(bytes) => Ok(*bytes),
            Self::Column(quantity) => quantity.read("the size", cell(quantity.column)),
        }
    }
}

/// The size of an object, for which a request has 32 bits.
fn small(bytes: u64) -> Result<u32, Complaint> {
    u32::try_from(bytes).map_err(|_| Complaint::number("the size", bytes, "0 to 4294967295 bytes"))
}

/// Names longer than this are none of volumes.
const LONGEST_VOLUME: usize = 64;

/// The number of a volume, whose name may have several parts.
fn volume<'a>(
    parts: impl Iterator<Item = &'a [u8]> + Clone,
    sink: &mut Sink<'_>,
) -> Result<u32, Complaint> {
    // `a.b` and `c` are not `a` and `b.c`.
    let dotted = parts.clone().any(|part| part.contains(&b'.'));
    let between: &[u8] = if dotted { b", " } else { b"." };
    let mut name = [0; LONGEST_VOLUME];
    let mut end = 0;
    for part in parts {
        if end > 0 {
            end += put(&mut name[end..], between, part)?;
        }
        end += put(&mut name[end..], part, part)?;
    }
    match end {
        0 => Ok(0),
        _ => sink.state.devices.intern(&name[..end]),
    }
}

fn put(room: &mut [u8], text: &[u8], part: &[u8]) -> Result<usize, Complaint> {
    let place = room.get_mut(..text.len()).filter(|_| !text.is_empty());
    let place = place.ok_or_else(|| {
        let allowed = "a name of 1 to 64 bytes, all its columns together";
        Complaint::text("the device", part, allowed)
    })?;
    place.copy_from_slice(text);
    Ok(text.len())
}

/// The number of an object: its own, or that of its name among all.
fn object<'a>(
    objects: &Objects,
    kind: IdKind,
    text: &[u8],
    device: impl Iterator<Item = &'a [u8]>,
) -> Result<u64, Complaint> {
    let mut key = Vec::new();
    for part in device {
        // Where a part ends must be told: "a" and "bc" are not "ab" and "c".
        key.extend(part.len().to_le_bytes());
        key.extend(part);
    }
    match kind {
        IdKind::Text if text.is_empty() => {
            let allowed = "at least one letter or digit";
            return Err(Complaint::text("the id", text, allowed));
        }
        IdKind::Text => key.extend(text),
        IdKind::Number(digits) => {
            let allowed = |c: Complaint| Complaint {
                allowed: c.allowed + "; :text behind its column takes any name",
                ..c
            };
            let number = digits.read("the id", text).map_err(allowed)?;
            if key.is_empty() {
                return Ok(number);
            }
            key.extend(number.to_le_bytes());
        }
    }
    objects.number(&key).map_err(|many| {
        let allowed = "objects whose names have up to 1 GiB together";
        Complaint::number("the number of objects", many, allowed)
    })
}
