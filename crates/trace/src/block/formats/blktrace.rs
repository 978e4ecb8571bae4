//! blktrace's binary log.
//!
//! Source of the numbers: `include/uapi/linux/blktrace_api.h`, of which fio has a copy
//! (`blktrace_api.h`): `BLK_TC_READ` 1 << 0, `BLK_TC_WRITE` 1 << 1, `BLK_TC_FLUSH` 1 << 2,
//! `BLK_TC_NOTIFY` 1 << 10 and `BLK_TC_DISCARD` 1 << 13, all above `BLK_TC_SHIFT` 16. Notices have low
//! bytes of their own and no read or write bit.
//!
//! A file per processor is in order; a merged one may step back. One stage of each request is taken,
//! see [`Stage`]. A request that an upper layer remaps to a disk is queued once per layer, on different
//! devices.

use super::super::reader::{Entry, Looks, Parse};
use super::super::request::{Nanos, Op};
use super::super::sink::Sink;
use super::super::{Options, Stage, TargetKind, Times, Traits};
use crate::about::{About, ByteOrder, Form, Kind, Part, Stamps, field, hex};
use crate::foreign::ForeignError;
use crate::foreign::error::Complaint;
use crate::foreign::input::Input;

pub(crate) const ENTRY: Entry = Entry {
    name: "blktrace",
    aliases: &[],
    about: About {
        what: "Binary log of Linux' blktrace, one file per processor or merged",
        form: Form::Binary {
            order: ByteOrder::OfMachine,
            parts: &[Part {
                what: "Event",
                note: "pdu_len bytes follow, which are passed over.",
                fields: &[
                    hex(field(
                        "magic",
                        Kind::U32,
                        "0x65617400 + version 7",
                        0x6561_7407,
                    )),
                    field("sequence", Kind::U32, "not used", 1),
                    field("time", Kind::U64, "ns", 9_507_758),
                    field("sector", Kind::U64, "first sector, of 512 B", 223_490),
                    field("bytes", Kind::U32, "length in bytes", 4096),
                    hex(field(
                        "action",
                        Kind::U32,
                        "low byte: stage (1 queued, 7 issued, 8 completed); bit 16 read, 17 write, \
                         18 flush, 26 notice, 29 discard",
                        0x2_0001,
                    )),
                    field("pid", Kind::U32, "process", 697),
                    hex(field("device", Kind::U32, "major << 20 | minor", 8 << 20)),
                    field("cpu", Kind::U32, "processor; not used", 3),
                    field("error", Kind::U16, "not used", 0),
                    field("pdu_len", Kind::U16, "bytes behind the event", 0),
                ],
            }],
        },
        source: "Linux' include/uapi/linux/blktrace_api.h (\"time in nanoseconds\"); sectors are the \
                 kernel's",
        stamps: Stamps::Shared("nanoseconds of a clock of the machine whose origin is not told"),
        left_out: "all stages but Q (queued), or with --stage issue all but D (issued; a log of blktrace -a issue has no other), discards, flushes, \
                   notices, and what follows an event",
    },
    traits: TRAITS,
    looks: Looks::Binary(|head| order_of(head).is_some(), 1),
    parser: |options| Box::new(Blktrace::new(options)),
};

pub(super) const TRAITS: Traits = Traits {
    target: TargetKind::Device,
    times: Times::Loose,
    directions: true,
    tasks: true,
};

const WHAT: &str = "blktrace record";
const MAGIC: u32 = 0x6561_7407;
/// What the magic numbers of all versions begin with.
const FAMILY: u32 = 0x6561_7400;
const READ: u32 = 1 << 16;
const WRITE: u32 = 1 << 17;
const FLUSH: u32 = 1 << 18;
/// A command to the device (`BLK_TC_PC` of linux/blktrace_api.h).
const COMMAND: u32 = 1 << 25;
const DISCARD: u32 = 1 << 29;
const QUEUED: u8 = 1;
const ISSUED: u8 = 7;
const REMAPPED: u32 = 15;

fn order_of(head: &[u8]) -> Option<ByteOrder> {
    let first: [u8; 4] = *head.first_chunk()?;
    match first {
        _ if u32::from_le_bytes(first) == MAGIC => Some(ByteOrder::Little),
        _ if u32::from_be_bytes(first) == MAGIC => Some(ByteOrder::Big),
        _ => None,
    }
}

/// Whether a file begins with the magic number of any version.
pub(crate) fn is_marked(head: &[u8]) -> bool {
    let first = head.first_chunk().copied().unwrap_or_default();
    let family = |magic: u32| magic & !0xff == FAMILY;
    family(u32::from_le_bytes(first)) || family(u32::from_be_bytes(first))
}

struct Blktrace {
    stage: u8,
    order: Option<ByteOrder>,
    /// The last record was none, so the next begins at the next magic number.
    lost: bool,
}

impl Blktrace {
    const fn new(options: &Options) -> Self {
        Self {
            stage: match options.stage {
                Stage::Queue => QUEUED,
                Stage::Issue => ISSUED,
            },
            order: None,
            lost: false,
        }
    }

    fn event(&mut self, record: &[u8; 48]) -> Result<Event, Complaint> {
        let found = order_of(record);
        let order = *self.order.get_or_insert(found.unwrap_or(ByteOrder::Little));
        if found != Some(order) {
            self.lost = true;
            let allowed = "0x65617407 (version 7), in one byte order for the whole file";
            let magic = record.first_chunk().copied().unwrap_or_default();
            return Err(Complaint::new(
                "the magic number",
                format!("{:#010x}", u32::from_le_bytes(magic)),
                allowed,
            ));
        }
        Ok(Event::decode(record, order))
    }
}

struct Event {
    time: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    pid: u32,
    device: u32,
    extra: u16,
}

impl Event {
    fn decode(record: &[u8; 48], order: ByteOrder) -> Self {
        // Big-endian fields become little-endian ones when their bytes are turned round.
        let field = |at: usize, size: usize| {
            let bytes = record[at..at + size].iter();
            let fold = |value: u64, b: &u8| value << 8 | u64::from(*b);
            if order == ByteOrder::Big {
                bytes.fold(0, fold)
            } else {
                bytes.rev().fold(0, fold)
            }
        };
        Self {
            time: field(8, 8),
            sector: field(16, 8),
            bytes: field(24, 4) as u32,
            action: field(28, 4) as u32,
            pid: field(32, 4) as u32,
            device: field(36, 4) as u32,
            extra: field(46, 2) as u16,
        }
    }

    fn emit(&self, stage: u8, sink: &mut Sink<'_>) -> Result<(), Complaint> {
        let passed = &mut sink.state.passed;
        // A command to the device, as blkparse shows it: `R 36 (12 00 ..)`. It has no sectors.
        if self.action & COMMAND != 0 {
            passed.others += 1;
            return Ok(());
        }
        if self.action & 0xff != u32::from(stage) {
            sink.state.notes.remapped += u64::from(self.action & 0xff == REMAPPED);
            passed.others += 1;
            return Ok(());
        }
        let op = match self.action {
            a if a & DISCARD != 0 => {
                passed.discards += 1;
                return Ok(());
            }
            a if a & WRITE != 0 && self.bytes > 0 => Op::Write,
            a if a & READ != 0 => Op::Read,
            a if a & (FLUSH | WRITE) != 0 => {
                passed.flushes += 1;
                return Ok(());
            }
            _ => {
                passed.others += 1;
                return Ok(());
            }
        };
        let sectors = sink.whole_sectors(self.bytes.into());
        let what = (Some(Nanos(self.time)), self.pid, op);
        sink.sectors(what, self.device, self.sector, sectors)
    }
}

impl Parse for Blktrace {
    fn step(&mut self, input: &mut Input, sink: &mut Sink<'_>) -> Result<bool, ForeignError> {
        if std::mem::take(&mut self.lost) {
            let magic = match self.order {
                Some(ByteOrder::Big) => MAGIC.to_be_bytes(),
                _ => MAGIC.to_le_bytes(),
            };
            input.skip_to(&magic)?;
        }
        let Some(record) = input.record::<48>(WHAT)? else {
            return Ok(false);
        };
        let event = match self.event(&record) {
            Ok(event) => event,
            Err(complaint) => {
                // The next record may begin anywhere behind this one's first byte.
                input.give_back(record.len() - 1);
                return Err(input.fault(complaint));
            }
        };
        sink.state.byte_order = self.order;
        let emitted = event.emit(self.stage, sink);
        if event.extra > 0 {
            input.skip(event.extra.into(), WHAT)?;
        }
        emitted.map_err(|c| input.fault(c))?;
        Ok(true)
    }
}
