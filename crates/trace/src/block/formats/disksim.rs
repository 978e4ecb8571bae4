//! DiskSim's two text forms.
//!
//! With whole milliseconds throughout, the five numbers of the default form could be anything (such
//! as [`mqsim`](super::mqsim)'s), and the format must be named. In the validation form the time is
//! the sum of the inter-arrival times before: the first request comes at 0.

use super::super::Times;
use super::super::reader::{Entry, Lines, Looks, ParseLine};
use super::super::request::{Nanos, Op};
use super::super::sink::Sink;
use super::super::text::{exactly, fields, may_be_bytes, number, number_32, plain, scaled};
use super::{disk, read_or_write};
use crate::about::{About, Form, Stamps};
use crate::foreign::error::Complaint;

pub(crate) const ASCII: Entry = Entry {
    name: "disksim",
    aliases: &["disksim-ascii"],
    about: About {
        what: "DiskSim's default ASCII traces",
        form: Form::Text {
            line: ASCII_LINE,
            fields: &[
                ("arrival_ms", "time in milliseconds, with a fraction"),
                ("device", "number of the disk"),
                ("block", "first block, of 512 B"),
                ("blocks", "number of blocks"),
                ("flags", "hexadecimal; bit 0 is set for a read"),
            ],
            sample: "663.5 0 4583176 4 1\n",
        },
        source: "DiskSim's disksim_iotrace.c (iotrace_ascii_get_ioreq_event: \"%lf %d %d %d %x\" into \
                 milliseconds) and disksim_reqflags.h (DISKSIM_READ 1)",
        stamps: Stamps::Relative("milliseconds since the trace began"),
        left_out: "flags other than the direction",
    },
    traits: disk(Times::Ordered),
    looks: Looks::Doubtful(doubt),
    parser: |_| Box::new(Lines(ascii)),
};

pub(crate) const VALIDATE: Entry = Entry {
    name: "disksim-validate",
    aliases: &[],
    about: About {
        what: "DiskSim's validation traces, measured on real disks",
        form: Form::Text {
            line: VALIDATE_LINE,
            fields: &[
                ("R|W", "read or write"),
                (
                    "cache",
                    "whether the disk's cache answered: Hit or Miss; not used",
                ),
                ("block", "first block, of 512 B"),
                ("blocks", "number of blocks"),
                ("service_us", "measured time in microseconds; not used"),
                (
                    "interarrival_us",
                    "microseconds from this request to the next",
                ),
            ],
            sample: "R Hit 4583176 4 663.00000 45422.50000\n",
        },
        source: "DiskSim's disksim_iotrace.c (iotrace_validate_get_ioreq_event: times by 1000)",
        stamps: Stamps::Relative("microseconds from one request to the next"),
        left_out: "the cache's answer and the service time. There is one disk",
    },
    traits: disk(Times::Ordered),
    looks: Looks::Text,
    parser: |_| Box::new(Lines(Validate { now: 0 })),
};

/// Eleven days in milliseconds. Seconds since 1970 have been as many since 2001.
const LONG: u64 = 1_000_000_000;

fn doubt(lines: &[&[u8]]) -> Option<&'static str> {
    let fraction = |line: &&[u8]| fields(line).next().is_some_and(|t| t.contains(&b'.'));
    if !lines.iter().any(fraction) {
        return Some("its times are whole milliseconds throughout");
    }
    let blocks = lines.iter().map(|l| fields(l).nth(3).and_then(plain));
    if may_be_bytes(blocks) {
        return Some("all its lengths are multiples of 512, as bytes are");
    }
    let whole = |line: &&[u8]| {
        let time = fields(line).next()?;
        time.split(|b| *b == b'.').next().and_then(plain)
    };
    let is_late = |line: &&[u8]| whole(line).is_some_and(|t| t >= LONG);
    (lines.iter().all(is_late))
        .then_some("its times begin after more than eleven days, as those of a date do")
}

const ASCII_LINE: &str = "arrival_ms device block blocks flags";
const VALIDATE_LINE: &str = "R|W cache block blocks service_us interarrival_us";
const MILLISECONDS: &str = "milliseconds with an optional fraction, below 2^64 ns";
const MICROSECONDS: &str = "microseconds with an optional fraction, below 2^64 ns in sum";

fn ascii(line: &[u8], sink: &mut Sink<'_>) -> Result<(), Complaint> {
    let [time, device, block, blocks, flags] = exactly(line, fields(line), ASCII_LINE)?;
    let time = scaled("the arrival", time, 6, MILLISECONDS)?;
    let device = number_32("the device", device)?;
    let block = number("the block", block)?;
    let blocks = number("the number of blocks", blocks)?;
    let digits = flags.strip_prefix(b"0x").unwrap_or(flags);
    let flags = std::str::from_utf8(digits)
        .ok()
        .filter(|d| !d.starts_with('+'))
        .and_then(|d| u32::from_str_radix(d, 16).ok())
        .ok_or_else(|| {
            Complaint::text("the flags", flags, "a hexadecimal number up to ffffffff")
        })?;
    let op = match flags & 1 {
        1 => Op::Read,
        _ => Op::Write,
    };
    sink.sectors((Some(Nanos(time)), 0, op), device, block, blocks)
}

struct Validate {
    now: u64,
}

impl ParseLine for Validate {
    fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Complaint> {
        let [kind, cache, block, blocks, service, gap] =
            exactly(line, fields(line), VALIDATE_LINE)?;
        let op = read_or_write("the direction", kind)?;
        if !cache.first().is_some_and(u8::is_ascii_alphabetic) {
            return Err(Complaint::text(
                "the cache's answer",
                cache,
                "a word such as Hit or Miss",
            ));
        }
        let block = number("the block", block)?;
        let blocks = number("the number of blocks", blocks)?;
        scaled("the service time", service, 3, MICROSECONDS)?;
        let step = scaled("the inter-arrival time", gap, 3, MICROSECONDS)?;
        let next = self.now.checked_add(step);
        let next =
            next.ok_or_else(|| Complaint::text("the inter-arrival time", gap, MICROSECONDS))?;
        let now = std::mem::replace(&mut self.now, next);
        sink.sectors((Some(Nanos(now)), 0, op), 0, block, blocks)
    }
}
