//! MSR Cambridge. A disk is a host and a number on it, such as `hm.0`. Rows are in order of completion
//! in some files, so times may step back.

use super::super::Times;
use super::super::reader::{Entry, Lines, Looks};
use super::super::request::{Nanos, Op};
use super::super::sink::Sink;
use super::super::text::{comma_fields, exactly, may_be_sectors, number, plain};
use super::disk;
use crate::about::{About, Form, Stamps};
use crate::foreign::error::Complaint;

pub(crate) const ENTRY: Entry = Entry {
    name: "msr",
    aliases: &["msr-cambridge"],
    about: About {
        what: "MSR Cambridge: block requests of Microsoft Research's servers, as CSV",
        form: Form::Text {
            line: LINE,
            fields: &[
                ("Timestamp", "Windows FILETIME: units of 100 ns"),
                ("Hostname", "the server; with the number it names the disk"),
                ("DiskNumber", "number of the disk on it"),
                ("Type", "Read or Write"),
                ("Offset", "first byte"),
                ("Size", "length in bytes"),
                ("ResponseTime", "not used"),
            ],
            sample: "128166372003061629,hm,0,Read,4096,512,100\n",
        },
        source: "README of the traces at SNIA: \"Windows filetime\", \"in bytes from the start of the \
                 logical disk\"",
        stamps: Stamps::Absolute("units of 100 ns since 1601"),
        left_out: "the response time, and a header if there is one. A request that is not aligned is \
                   widened to whole sectors",
    },
    traits: disk(Times::Loose),
    looks: Looks::TextBut(doubt),
    parser: |_| Box::new(Lines(line)),
};

/// 2001 to 2096 in seconds since 1970; in units of 100 ns since 1601, two minutes of that year.
const SINCE_1970: std::ops::Range<u64> = 1_000_000_000..4_000_000_000;

/// The same columns have been written with times since 1970, in one of three units.
pub(crate) fn doubt(lines: &[&[u8]]) -> Option<&'static str> {
    let times = || {
        let first = lines.iter().filter_map(|l| comma_fields(l).next());
        first.filter(|cell| *cell != b"Timestamp").map(plain)
    };
    let all = |per_second: u64| {
        let is = |t: Option<u64>| t.is_some_and(|t| SINCE_1970.contains(&(t / per_second)));
        times().next().is_some() && times().all(is)
    };
    if [1, 1_000, 1_000_000].into_iter().any(all) {
        return Some("its times are like those since 1970, not since 1601");
    }
    let sizes = lines.iter().filter_map(|l| comma_fields(l).nth(5));
    may_be_sectors(sizes.filter(|cell| *cell != b"Size").map(plain))
        .then_some("all its sizes are below 512, as numbers of sectors are")
}

/// The header that some copies have.
pub(crate) const HEADER: &[u8] = b"Timestamp,Hostname,DiskNumber,Type,";
const LINE: &str = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";
/// Ticks of 100 ns that fit into 64 bits as nanoseconds: up to the year 2185.
const TICKS: &str = "a number of 100 ns ticks from 0 to 184467440737095516";

fn line(line: &[u8], sink: &mut Sink<'_>) -> Result<(), Complaint> {
    let [time, host, disk, kind, offset, size, _] = exactly(line, comma_fields(line), LINE)?;
    if time == b"Timestamp" {
        sink.state.passed.comments += 1;
        return Ok(());
    }
    let ticks = number("the timestamp", time)?;
    let time = ticks
        .checked_mul(100)
        .ok_or_else(|| Complaint::text("the timestamp", time, TICKS))?;
    let disk = number("the disk number", disk)?;
    let is = |words: [&[u8]; 2]| words.iter().any(|word| kind.eq_ignore_ascii_case(word));
    let op = if is([b"Read", b"R"]) {
        Op::Read
    } else if is([b"Write", b"W"]) {
        Op::Write
    } else {
        return Err(Complaint::text("the type", kind, "Read, Write, R or W"));
    };
    let offset = number("the offset", offset)?;
    let size = number("the size", size)?;
    let device = device(host, disk.to_string().as_bytes(), sink)?;
    sink.bytes((Some(Nanos(time)), 0, op), device, offset, size)
}

/// Names longer than this are no host names.
const LONGEST_HOST: usize = 64;

fn device(host: &[u8], disk: &[u8], sink: &mut Sink<'_>) -> Result<u32, Complaint> {
    if host.is_empty() || host.len() > LONGEST_HOST || disk.len() > LONGEST_HOST {
        let allowed = "a name of 1 to 64 bytes";
        return Err(Complaint::text("the host name", host, allowed));
    }
    let mut name = [0; 2 * LONGEST_HOST + 1];
    let end = host.len() + 1 + disk.len();
    name[..host.len()].copy_from_slice(host);
    name[host.len()] = b'.';
    name[host.len() + 1..end].copy_from_slice(disk);
    sink.state.devices.intern(&name[..end])
}
