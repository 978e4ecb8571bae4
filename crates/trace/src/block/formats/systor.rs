//! SNIA's SYSTOR '17. Rows are in order of completion, so times step back. A row without a type is
//! another command.

use super::super::Times;
use super::super::reader::{Entry, Lines, Looks};
use super::super::request::Nanos;
use super::super::sink::Sink;
use super::super::text::{comma_fields, exactly, number, number_32, plain, seconds};
use super::{disk, read_or_write};
use crate::about::{About, Form, Stamps};
use crate::foreign::error::Complaint;

pub(crate) const ENTRY: Entry = Entry {
    name: "systor17",
    aliases: &["systor"],
    about: About {
        what: "SNIA's SYSTOR '17: block requests of a virtual desktop installation, as CSV",
        form: Form::Text {
            line: LINE,
            fields: &[
                ("Timestamp", "time in seconds, with a fraction"),
                ("Response", "seconds; not used"),
                ("IOType", "R read, W write, nothing for other commands"),
                ("LUN", "number of the disk (logical unit)"),
                ("Offset", "first byte"),
                ("Size", "length in bytes"),
            ],
            sample: "Timestamp,Response,IOType,LUN,Offset,Size\n1456095145.1,0.001,R,3,4096,8192\n",
        },
        source: "the sample at SNIA (its README was not at hand): times such as 1456095145.1 \
                 (February 2016), all 999 offsets and sizes multiples of 512, sizes up to 131072, \
                 which as sectors would be 64 MiB",
        stamps: Stamps::Absolute("seconds since 1970"),
        left_out: "the response time, the header, and rows without a type. A request that is not \
                   aligned is widened to whole sectors",
    },
    traits: disk(Times::Loose),
    looks: Looks::Doubtful(doubt),
    parser: |_| Box::new(Lines(line)),
};

/// September 2001, in seconds since 1970: the smallest number of ten digits.
const RECENT: u64 = 1_000_000_000;

/// Rows of other tools have six fields and a direction in the third one, too, and a header can stand
/// above any.
pub(crate) fn doubt(lines: &[&[u8]]) -> Option<&'static str> {
    let is_header = |line: &&[u8]| line.trim_ascii_start().starts_with(HEADER);
    let lines: Vec<&[u8]> = lines.iter().copied().filter(|l| !is_header(l)).collect();
    let whole = |cell: &[u8]| cell.split(|b| *b == b'.').next().and_then(plain);
    let is = |n: usize, fits: &dyn Fn(&[u8]) -> bool| {
        let cell = |line: &&[u8]| comma_fields(line).nth(n).is_some_and(fits);
        lines.iter().all(cell)
    };
    if !is(0, &|cell| whole(cell).is_some_and(|t| t >= RECENT)) {
        return Some("its times are not seconds since 1970");
    }
    if !is(1, &|cell| cell.is_empty() || whole(cell).is_some()) {
        return Some("its second field is no response time");
    }
    let sectors = |cell: &[u8]| plain(cell).is_some_and(|n| n % 512 == 0);
    (!is(4, &sectors) || !is(5, &sectors))
        .then_some("its places and sizes are not those of whole sectors")
}

/// The header that every file has.
pub(crate) const HEADER: &[u8] = b"Timestamp,Response,IOType,LUN,";
const LINE: &str = "Timestamp,Response,IOType,LUN,Offset,Size";

fn line(line: &[u8], sink: &mut Sink<'_>) -> Result<(), Complaint> {
    let [time, _, kind, lun, offset, size] = exactly(line, comma_fields(line), LINE)?;
    if time == b"Timestamp" {
        sink.state.passed.comments += 1;
        return Ok(());
    }
    let time = seconds("the timestamp", time)?;
    if kind.is_empty() {
        sink.state.passed.others += 1;
        return Ok(());
    }
    let op = read_or_write("the IOType", kind)?;
    let lun = number_32("the LUN", lun)?;
    let offset = number("the offset", offset)?;
    let size = number("the size", size)?;
    sink.bytes((Some(Nanos(time)), 0, op), lun, offset, size)
}
