//! Tencent block storage. Rows of several servers are merged, so times step back by seconds.
//!
//! Five numbers could be anything: without being named, a trace must have times after 2001.

use super::super::Times;
use super::super::reader::{Entry, Lines, Looks};
use super::super::request::{Nanos, Op};
use super::super::sink::Sink;
use super::super::text::{comma_fields, exactly, number, number_32, plain, seconds};
use super::disk;
use crate::about::{About, Form, Stamps};
use crate::foreign::error::Complaint;

pub(crate) const ENTRY: Entry = Entry {
    name: "tencent",
    aliases: &[],
    about: About {
        what: "SNIA's traces of Tencent's block storage, as CSV",
        form: Form::Text {
            line: LINE,
            fields: &[
                ("Timestamp", "time in seconds"),
                ("Offset", "first sector, of 512 B"),
                ("Size", "number of sectors"),
                ("IOType", "0 read, 1 write"),
                ("VolumeID", "number of the disk"),
            ],
            sample: "1538323200,12910952,128,0,1063\n",
        },
        source: "README of the traces at SNIA, which says all five",
        stamps: Stamps::Absolute("seconds since 1970"),
        left_out: "nothing",
    },
    traits: disk(Times::Loose),
    looks: Looks::Doubtful(doubt),
    parser: |_| Box::new(Lines(line)),
};

/// September 2001, in seconds since 1970: the smallest number of ten digits.
const RECENT: u64 = 1_000_000_000;

fn doubt(lines: &[&[u8]]) -> Option<&'static str> {
    let time = |line: &&[u8]| comma_fields(line).next().and_then(plain);
    let recent = lines.iter().all(|l| time(l).is_some_and(|t| t >= RECENT));
    if !recent {
        return Some("its times are not seconds since 1970");
    }
    let of_bytes = |line: &&[u8]| {
        let places = comma_fields(line).skip(1).take(2);
        places.map(plain).all(|n| n.is_some_and(|n| n % 512 == 0))
    };
    let several = lines.len() > 1;
    if several && lines.iter().all(of_bytes) {
        return Some("all its places and sizes are multiples of 512, as bytes are");
    }
    let sizes = lines
        .iter()
        .filter_map(|l| comma_fields(l).nth(2).and_then(plain));
    let odd: Vec<u64> = sizes.filter(|n| n % PAGE != 0).collect();
    let large = odd.iter().any(|n| *n > LARGE);
    (several && (large || 2 * odd.len() > lines.len()))
        .then_some("its sizes are not those of pages, which requests to disks have, but of objects")
}

/// Sectors of a page: what file systems and swap ask for is whole pages, and a few requests of boot loaders and
/// partition tables are not.
const PAGE: u64 = 8;
/// Linux of the years of this trace built no larger requests unless it was told to: `BLK_DEF_MAX_SECTORS` of
/// include/linux/blkdev.h in Linux 4.19.
const LARGE: u64 = 2560;

const LINE: &str = "Timestamp,Offset,Size,IOType,VolumeID";

fn line(line: &[u8], sink: &mut Sink<'_>) -> Result<(), Complaint> {
    let [time, offset, size, kind, volume] = exactly(line, comma_fields(line), LINE)?;
    let time = seconds("the timestamp", time)?;
    let offset = number("the offset", offset)?;
    let size = number("the size", size)?;
    let op = match kind {
        b"0" => Op::Read,
        b"1" => Op::Write,
        _ => {
            let allowed = "0 (read) or 1 (write)";
            return Err(Complaint::text("the IOType", kind, allowed));
        }
    };
    let volume = number_32("the volume", volume)?;
    sink.sectors((Some(Nanos(time)), 0, op), volume, offset, size)
}
