//! libCacheSim's CSV with named columns.

use super::super::Times;
use super::super::reader::{Entry, Lines, Looks, ParseLine};
use super::super::request::{Nanos, Op};
use super::super::sink::Sink;
use super::super::text::{comma_fields, may_be_bytes, may_be_sectors, number, plain, seconds};
use super::disk;
use crate::about::{About, Form, Origin, Stamps};
use crate::foreign::error::Complaint;

pub(crate) const CSV: Entry = Entry {
    name: "libcachesim-csv",
    aliases: &["csv"],
    about: About {
        what: "libCacheSim's CSV, whose header names the columns",
        form: Form::Text {
            line: "columns in the order of the header",
            fields: &[
                ("lbn or lba", "first sector, of 512 B; required"),
                ("time or timestamp", "seconds, with a fraction; optional"),
                (
                    "op",
                    "a SCSI operation code in hexadecimal, or r, w, read, write; a read without it",
                ),
                ("size", "length in bytes; one sector without it"),
            ],
            sample: "version,time,op,size,lbn\n1,5633898,28,4096,42932745\n",
        },
        source: "libCacheSim's sample cloudPhysicsIO.csv, which holds the same requests as its \
                 cloudPhysicsIO.vscsi: 113,872 of both agree in operation, sector, length and second",
        stamps: Stamps::Optional(
            "seconds of a clock whose origin is not told, if there is a column for them",
        ),
        left_out: "the version, and commands other than reads and writes. There is one disk",
    },
    traits: disk(Times::Optional),
    looks: Looks::Doubtful(doubt),
    parser: |_| Box::new(Lines(Csv { columns: None })),
};

/// Whether a first line is a header of such a file.
pub(crate) fn is_header(line: &[u8]) -> bool {
    header(line).is_ok() && !says_lba(line)
}

/// A name for the place that other tools use as well, with other units beside it.
fn says_lba(header: &[u8]) -> bool {
    comma_fields(header).any(|name| name == b"lba")
}

pub(crate) fn doubt(lines: &[&[u8]]) -> Option<&'static str> {
    let (first, rest) = lines.split_first()?;
    if says_lba(first) {
        return Some("its header says lba, where libCacheSim's says lbn");
    }
    let columns = header(first.trim_ascii()).ok()?;
    let cells = |wanted: fn(&Column) -> bool| {
        let at = columns.iter().position(wanted);
        let cells = rest
            .iter()
            .filter_map(move |line| comma_fields(line).nth(at?));
        cells.collect::<Vec<&[u8]>>()
    };
    let ops = cells(|c| matches!(c, Column::Op));
    let others = ops.iter().filter(|op| matches!(direction(op), Ok(None)));
    if 2 * others.count() > ops.len() {
        return Some(
            "most of its ops are no reads and writes, which are SCSI codes in hexadecimal",
        );
    }
    let places = cells(|c| matches!(c, Column::Lbn));
    if may_be_bytes(places.into_iter().map(plain)) {
        return Some("all its places are multiples of 512, as bytes are");
    }
    let sizes = cells(|c| matches!(c, Column::Size));
    may_be_sectors(sizes.into_iter().map(plain))
        .then_some("all its sizes are below 512, as numbers of sectors are")
}

/// What a column holds.
#[derive(Clone, Copy)]
enum Column {
    Time,
    Op,
    Size,
    Lbn,
    /// What says nothing of a request: the version of the traced system.
    Version,
}

struct Csv {
    columns: Option<Vec<Column>>,
}

const HEADER: &str = "lbn, alone or with time, op, size and version; --columns reads other names";
const CELLS: &str = "as many fields as the header has";

fn header(line: &[u8]) -> Result<Vec<Column>, Complaint> {
    let column = |name: &[u8]| {
        Some(match name {
            b"time" | b"timestamp" => Column::Time,
            b"op" => Column::Op,
            b"size" => Column::Size,
            b"lbn" | b"lba" => Column::Lbn,
            b"version" => Column::Version,
            // It may be the disk, the length or the direction.
            _ => return None,
        })
    };
    let columns: Option<Vec<Column>> = comma_fields(line).map(column).collect();
    let Some(columns) = columns.filter(|columns| columns.len() > 1 || line == b"lbn") else {
        return Err(Complaint::text("the header", line, HEADER));
    };
    let named = |wanted: fn(&Column) -> bool| columns.iter().filter(|c| wanted(c)).count();
    let once = named(|c| matches!(c, Column::Lbn)) == 1
        && named(|c| matches!(c, Column::Time)) <= 1
        && named(|c| matches!(c, Column::Op)) <= 1
        && named(|c| matches!(c, Column::Size)) <= 1;
    match once {
        true => Ok(columns),
        false => Err(Complaint::text("the header", line, HEADER)),
    }
}

fn direction(text: &[u8]) -> Result<Option<Op>, Complaint> {
    let is = |words: &[&str]| {
        words
            .iter()
            .any(|w| text.eq_ignore_ascii_case(w.as_bytes()))
    };
    if is(&["28", "88", "8", "a8", "r", "read"]) {
        return Ok(Some(Op::Read));
    }
    if is(&["2a", "8a", "a", "aa", "w", "write"]) {
        return Ok(Some(Op::Write));
    }
    let code = text.len() <= 2 && text.iter().all(u8::is_ascii_hexdigit) && !text.is_empty();
    match code {
        true => Ok(None),
        false => {
            let allowed = "a SCSI operation code in hexadecimal, r, w, read or write";
            Err(Complaint::text("the op", text, allowed))
        }
    }
}

impl ParseLine for Csv {
    fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Complaint> {
        let Some(columns) = &self.columns else {
            let columns = header(line)?;
            let timed = columns.iter().any(|c| matches!(c, Column::Time));
            sink.state.origin = Some(if timed {
                Origin::Relative
            } else {
                Origin::Absent
            });
            self.columns = Some(columns);
            sink.state.passed.comments += 1;
            return Ok(());
        };
        let (mut time, mut op, mut size, mut lbn) = (None, Some(Op::Read), 512, 0);
        let mut cells = comma_fields(line);
        for column in columns {
            let Some(cell) = cells.next() else {
                return Err(Complaint::text("the line", line, CELLS));
            };
            match column {
                Column::Time => time = Some(Nanos(seconds("the time", cell)?)),
                Column::Op => op = direction(cell)?,
                Column::Size => size = number("the size", cell)?,
                Column::Lbn => lbn = number("the lbn", cell)?,
                Column::Version => {}
            }
        }
        if cells.next().is_some() {
            return Err(Complaint::text("the line", line, CELLS));
        }
        let Some(op) = op else {
            sink.state.passed.others += 1;
            return Ok(());
        };
        let sectors = sink.whole_sectors(size);
        sink.sectors((time, 0, op), 0, lbn, sectors)
    }
}
