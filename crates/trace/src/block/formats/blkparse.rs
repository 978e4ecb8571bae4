//! blkparse's text in its default form.
//!
//! Lines of other stages have other ends and are passed over, as is the summary at the end of the
//! text, from its first line `CPU0 (...)` or `Total (...)` on. The device is `major << 20 | minor` as
//! in the binary log.

use super::super::reader::{Entry, Lines, Looks, ParseLine};
use super::super::request::{Nanos, Op};
use super::super::sink::Sink;
use super::super::text::{at_least, fields, number, number_32, plain, seconds};
use super::super::{Options, Stage};
use super::blktrace::TRAITS;
use crate::about::{About, Form, Stamps};
use crate::foreign::error::Complaint;

pub(crate) const ENTRY: Entry = Entry {
    name: "blkparse",
    aliases: &[],
    about: About {
        what: "Text that blkparse makes of a log of blktrace, in its default form",
        form: Form::Text {
            line: "device cpu sequence seconds pid action rwbs sector + sectors [program]",
            fields: &[
                ("device", "major,minor"),
                ("cpu", "processor; not used"),
                ("sequence", "counts the events of a processor; not used"),
                (
                    "seconds",
                    "time in seconds, with up to nine digits behind the point",
                ),
                ("pid", "process"),
                (
                    "action",
                    "stage: Q queued, D issued; others are passed over",
                ),
                (
                    "rwbs",
                    "letters: R read, W write, D discard, F flush (before W: a write with a flush \
                     first), N none, and S, A, M",
                ),
                ("sector", "first sector, of 512 B"),
                ("sectors", "number of sectors"),
                ("program", "its name; not used"),
            ],
            sample: "8,0 3 11 0.009507758 697 Q WS 223490 + 8 [kjournald]\n",
        },
        source: "blkparse(1), \"default output\" and \"RWBS description\"; sectors as in blktrace",
        stamps: Stamps::Relative("seconds since the first event of this run of blkparse"),
        left_out: "all stages but Q (queued), or with --stage issue all but D (issued; a log of blktrace -a issue has no other), discards, flushes, requests without data, commands to the device, \
                   messages, and the summary at the end",
    },
    traits: TRAITS,
    looks: Looks::Text,
    parser: |options| Box::new(Lines(Blkparse::new(options))),
};

const LINE: &str = "\"major,minor cpu sequence seconds pid action rwbs ...\"";
const EXTENT: &str = "\"sector + sectors\" behind the kind";

struct Blkparse {
    stage: &'static [u8],
    summary: bool,
}

impl Blkparse {
    const fn new(options: &Options) -> Self {
        Self {
            stage: match options.stage {
                Stage::Queue => b"Q",
                Stage::Issue => b"D",
            },
            summary: false,
        }
    }
}

impl ParseLine for Blkparse {
    fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Complaint> {
        // Another output may follow: each has a summary at its end.
        self.summary = (self.summary && !begins_event(line)) || begins_summary(line);
        if self.summary || line.trim_ascii().is_empty() || is_of_blkparse(line) {
            sink.state.passed.comments += 1;
            return Ok(());
        }
        let mut words = fields(line);
        let [device, cpu, sequence, time, pid, action] = at_least(line, &mut words, LINE)?;
        let device = device_number(device)?;
        number("the processor", cpu)?;
        number("the sequence", sequence)?;
        let time = Nanos(seconds("the time", time)?);
        let pid = number_32("the process", pid)?;
        if action != self.stage {
            sink.state.notes.remapped += u64::from(action == b"A");
            sink.state.passed.others += 1;
            return Ok(());
        }
        let [kind] = at_least(line, &mut words, LINE)?;
        let Some(op) = direction(kind, sink)? else {
            return Ok(());
        };
        let [sector, plus, sectors] = match (words.next(), words.next(), words.next()) {
            (Some(a), Some(b), Some(c)) if !b.starts_with(b"(") => [a, b, c],
            // A flush has no place: `FWS [program]`.
            _ if kind.contains(&b'F') => {
                sink.state.passed.flushes += 1;
                return Ok(());
            }
            // A command to the device, which is no request for sectors: `R 36 (12 00 ..) [hald]`.
            (Some(_), Some(command), _) if command.starts_with(b"(") => {
                sink.state.passed.others += 1;
                return Ok(());
            }
            _ => return Err(Complaint::text("the line", line, EXTENT)),
        };
        if plus != b"+" {
            return Err(Complaint::text("the line", line, EXTENT));
        }
        let sector = number("the sector", sector)?;
        let sectors = number("the number of sectors", sectors)?;
        sink.sectors((Some(time), pid, op), device, sector, sectors)
    }
}

/// `  8,0    3        1     0.000000000   697  Q`: no line of a summary begins so.
fn begins_event(line: &[u8]) -> bool {
    let mut words = fields(line);
    let device = words.next().is_some_and(|word| device_number(word).is_ok());
    device && words.take(2).filter_map(plain).count() == 2
}

fn begins_summary(line: &[u8]) -> bool {
    let after_cpu = line.strip_prefix(b"CPU").and_then(<[u8]>::first);
    after_cpu.is_some_and(u8::is_ascii_digit) || line.starts_with(b"Total (") || is_program(line)
}

/// With `-s` the summary begins with the programs, each as `fio (697)`.
fn is_program(line: &[u8]) -> bool {
    let inner = line.strip_suffix(b")");
    let open = inner.and_then(|inner| Some((inner, memchr::memrchr(b'(', inner)?)));
    open.is_some_and(|(inner, at)| {
        let pid = &inner[at + 1..];
        let name = inner[..at].strip_suffix(b" ");
        name.is_some_and(|n| {
            n.first().is_some_and(|b| !b.is_ascii_whitespace()) && !n.contains(&b',')
        }) && !pid.is_empty()
            && pid.iter().all(u8::is_ascii_digit)
    })
}

/// What blkparse says of its inputs before it begins: `Input file sda.blktrace.0 added`.
fn is_of_blkparse(line: &[u8]) -> bool {
    line.starts_with(b"Input file ") && line.ends_with(b" added")
}

fn device_number(text: &[u8]) -> Result<u32, Complaint> {
    let split = memchr::memchr(b',', text);
    let parts = split.and_then(|at| Some((plain(&text[..at])?, plain(&text[at + 1..])?)));
    match parts {
        Some((major @ 0..4096, minor @ 0..0x10_0000)) => Ok((major << 20 | minor) as u32),
        _ => {
            let allowed = "major,minor with major below 4096 and minor below 1048576";
            Err(Complaint::text("the device", text, allowed))
        }
    }
}

/// Nothing for kinds that move no data, which are counted.
fn direction(kind: &[u8], sink: &mut Sink<'_>) -> Result<Option<Op>, Complaint> {
    if !kind.iter().all(u8::is_ascii_uppercase) {
        let allowed = "letters such as R, W, WS, RA or D";
        return Err(Complaint::text("the kind", kind, allowed));
    }
    let passed = &mut sink.state.passed;
    if kind.contains(&b'D') {
        passed.discards += 1;
        return Ok(None);
    }
    // Of zones, an append (ZA) alone moves data: ZR, ZRA, ZO, ZC and ZF reset, open, close and finish them.
    if let Some(zone) = memchr::memchr(b'Z', kind) {
        let appends = kind.get(zone + 1) == Some(&b'A');
        passed.others += u64::from(!appends);
        return Ok(appends.then_some(Op::Write));
    }
    match kind.iter().find(|b| matches!(b, b'R' | b'W')) {
        Some(b'R') => return Ok(Some(Op::Read)),
        Some(_) => return Ok(Some(Op::Write)),
        None if kind.contains(&b'F') => passed.flushes += 1,
        None => passed.others += 1,
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::super::{BlockTrace, Format, Op};
    use super::*;

    #[test]
    fn of_zones_appends_alone_move_data() {
        let line = |kind: &str| format!("  8,0 3 1 0.000000001 7 Q {kind} 8 + 8 [fio]\n");
        let kinds = ["ZA", "ZAS", "ZR", "ZRA", "ZF", "ZO", "ZC", "RA", "FWS"];
        let text: String = kinds.iter().map(|kind| line(kind)).collect();
        let options = Options {
            format: Some(Format::Blkparse),
            ..Options::default()
        };
        let mut trace = BlockTrace::from_bytes("run", text.as_bytes(), options).expect("opens");
        let (mut all, mut batch) = (Vec::new(), Vec::new());
        while trace.next_batch(&mut batch).expect("reads") {
            all.extend(batch.iter().map(|r| r.op));
        }
        assert_eq!(all, [Op::Write, Op::Write, Op::Read, Op::Write]);
        assert_eq!(trace.passed().others, 5);
    }
}
