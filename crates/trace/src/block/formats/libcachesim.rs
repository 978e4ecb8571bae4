//! Forms of libCacheSim.
//!
//! *oracleGeneral*: 24 bytes, little-endian and packed: seconds (u32), object (u64), size (u32),
//! number of the request that uses it next, counted from 1 (i64, -1 for none). Objects are opaque;
//! in the sample they are block numbers, but the format does not promise it. Reads are not told from
//! writes.
//!
//! *CSV with named columns*: a header names the columns, of which `lbn` (sectors of 512 B) is
//! required, and `time` (seconds), `op` (a SCSI operation code in hexadecimal, or r/w/read/write)
//! and `size` (bytes, one sector without it) are used. Other columns are passed over.

use std::num::NonZeroU64;

use super::super::reader::{Entry, Lines, Looks, ParseLine, Records};
use super::super::request::{Nanos, NextUse, Op};
use super::super::sink::Sink;
use super::super::text::{comma_fields, number, seconds};
use super::super::{TargetKind, Times, Traits};
use super::disk;
use crate::foreign::error::Complaint;

pub(crate) const ORACLE: Entry = Entry {
    name: "oracle-general",
    aliases: &["oracleGeneral"],
    traits: Traits {
        target: TargetKind::Id,
        times: Times::Ordered,
        directions: false,
        tasks: false,
    },
    looks: Looks::Binary(plausible),
    parser: |_| {
        let mut requests = 0;
        Box::new(Records {
            what: ("24-byte oracleGeneral record", "24"),
            parse: move |record: &[u8; 24], sink: &mut Sink<'_>| {
                requests += 1;
                oracle(record, requests, sink)
            },
        })
    },
};

pub(crate) const CSV: Entry = Entry {
    name: "libcachesim-csv",
    aliases: &["csv"],
    traits: disk(Times::Ordered),
    looks: Looks::Text,
    parser: |_| Box::new(Lines(Csv { columns: None })),
};

/// Records that are looked at.
const SAMPLE: usize = 64;

/// There is no mark in the file, so the sample must hold together: times that do not fall and
/// hardly grow, sizes below 1 GiB, and next uses that come later.
fn plausible(head: &[u8]) -> bool {
    let records = head.as_chunks::<24>().0;
    let mut before = records.first().map_or(0, |r| split(r).0);
    records
        .iter()
        .take(SAMPLE)
        .zip(1..)
        .all(|(record, number)| {
            let (time, _, size, next) = split(record);
            let order = time >= before && time - before < 86_400;
            before = time;
            order && (1..1 << 30).contains(&size) && (next == -1 || next > number)
        })
}

fn split(record: &[u8; 24]) -> (u32, u64, u32, i64) {
    let [t0, t1, t2, t3, i @ .., n0, n1, n2, n3, n4, n5, n6, n7] = *record;
    let [o0, o1, o2, o3, o4, o5, o6, o7, s @ ..] = i;
    (
        u32::from_le_bytes([t0, t1, t2, t3]),
        u64::from_le_bytes([o0, o1, o2, o3, o4, o5, o6, o7]),
        u32::from_le_bytes(s),
        i64::from_le_bytes([n0, n1, n2, n3, n4, n5, n6, n7]),
    )
}

fn oracle(record: &[u8; 24], number: u64, sink: &mut Sink<'_>) -> Result<(), Complaint> {
    let (time, id, size, next) = split(record);
    let next = match u64::try_from(next).ok().and_then(NonZeroU64::new) {
        _ if next == -1 => NextUse::Never,
        Some(at) if at.get() > number => NextUse::At(at),
        _ => {
            return Err(Complaint {
                field: "the next use",
                value: next.to_string(),
                allowed: "-1, or the number of a later request",
            });
        }
    };
    let time = Nanos(u64::from(time) * 1_000_000_000);
    sink.id(Some(time), id, Some(size), next)
}

/// What a column holds.
#[derive(Clone, Copy)]
enum Column {
    Time,
    Op,
    Size,
    Lbn,
    Other,
}

struct Csv {
    columns: Option<Vec<Column>>,
}

const HEADER: &str = "names of columns, with lbn and optionally time, op and size";
const CELLS: &str = "as many fields as the header has";

fn header(line: &[u8]) -> Result<Vec<Column>, Complaint> {
    let columns: Vec<Column> = comma_fields(line)
        .map(|name| match name {
            b"time" | b"timestamp" => Column::Time,
            b"op" => Column::Op,
            b"size" => Column::Size,
            b"lbn" | b"lba" => Column::Lbn,
            _ => Column::Other,
        })
        .collect();
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
            self.columns = Some(header(line)?);
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
                Column::Other => {}
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
