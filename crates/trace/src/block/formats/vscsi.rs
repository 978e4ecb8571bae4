//! VMware vscsi tracing (CloudPhysics): records of SCSI commands to one disk. Operation codes: SCSI
//! SBC.

use super::super::Times;
use super::super::reader::{Entry, Looks, Records};
use super::super::request::{Nanos, Op};
use super::super::sink::Sink;
use super::disk;
use crate::about::{About, ByteOrder, Field, Form, Kind, Part, Stamps, field};
use crate::foreign::error::Complaint;

const LENGTH: Field = field("len", Kind::U32, "length in bytes", 4096);
const ELEMENTS: Field = field("nSG", Kind::U32, "scatter-gather elements; not used", 1);
const CODE: Field = field(
    "cmd",
    Kind::U16,
    "SCSI operation code: 0x08, 0x28, 0xa8 and 0x88 read, 0x0a, 0x2a, 0xaa and 0x8a write, \
     0x2e, 0xae and 0x8e write and verify",
    0x28,
);
const SECTOR: Field = field("lbn", Kind::U64, "first sector, of 512 B", 42_932_745);
const TIME: Field = field("ts", Kind::U64, "us", 5_633_898_368_802);
const SOURCE: &str = "libCacheSim's vscsi.h (fields, and \"microsec\" for the time) and the header of \
    VMware's own text form (\"Time Stamp (microseconds)\"). Sectors: in libCacheSim's sample \
    cloudPhysicsIO.vscsi all 113,872 lengths are multiples of 512 B, and 29,558 requests begin where \
    the one before ends if a sector has 512 B";
const STAMPS: Stamps = Stamps::Relative("microseconds of a clock whose origin is not told");
const LEFT_OUT: &str =
    "commands other than reads and writes, and response times. There is one disk";

pub(crate) const V1: Entry = Entry {
    name: "vscsi-v1",
    aliases: &["vscsi"],
    about: About {
        what: "VMware's vscsi tracing, version 1 (CloudPhysics)",
        form: Form::Binary {
            order: ByteOrder::Little,
            parts: &[Part {
                what: "Command",
                note: "",
                fields: &[
                    field("sn", Kind::U32, "serial number; not used", 0),
                    LENGTH,
                    ELEMENTS,
                    CODE,
                    field("ver", Kind::U16, "1 in the high byte", 1 << 8),
                    SECTOR,
                    TIME,
                ],
            }],
        },
        source: SOURCE,
        stamps: STAMPS,
        left_out: LEFT_OUT,
    },
    traits: disk(Times::Ordered),
    looks: Looks::Binary(|head| version_at(head, 14) == Some(1), 2),
    parser: |_| {
        Box::new(Records {
            what: "vscsi record",
            parse: |record: &[u8; 32], sink: &mut Sink<'_>| {
                let command = Command {
                    version: (word(record, 14), 1),
                    code: word(record, 12),
                    length: half(record, 4),
                    sector: long(record, 16),
                    micros: long(record, 24),
                };
                command.emit(sink)
            },
        })
    },
};

pub(crate) const V2: Entry = Entry {
    name: "vscsi-v2",
    aliases: &[],
    about: About {
        what: "VMware's vscsi tracing, version 2",
        form: Form::Binary {
            order: ByteOrder::Little,
            parts: &[Part {
                what: "Command",
                note: "",
                fields: &[
                    CODE,
                    field("ver", Kind::U16, "2 in the high byte", 2 << 8),
                    field("sn", Kind::U32, "serial number; not used", 0),
                    LENGTH,
                    ELEMENTS,
                    SECTOR,
                    TIME,
                    field("rt", Kind::U64, "response time; not used", 90),
                ],
            }],
        },
        source: SOURCE,
        stamps: STAMPS,
        left_out: LEFT_OUT,
    },
    traits: disk(Times::Ordered),
    looks: Looks::Binary(|head| version_at(head, 2) == Some(2), 2),
    parser: |_| {
        Box::new(Records {
            what: "vscsi record",
            parse: |record: &[u8; 40], sink: &mut Sink<'_>| {
                let command = Command {
                    version: (word(record, 2), 2),
                    code: word(record, 0),
                    length: half(record, 8),
                    sector: long(record, 16),
                    micros: long(record, 24),
                };
                command.emit(sink)
            },
        })
    },
};

fn version_at(head: &[u8], at: usize) -> Option<u8> {
    head.get(at + 1).copied()
}

struct Command {
    /// What the record says and what it must say in its high byte.
    version: (u16, u8),
    code: u16,
    length: u32,
    sector: u64,
    micros: u64,
}

impl Command {
    fn emit(&self, sink: &mut Sink<'_>) -> Result<(), Complaint> {
        let (found, expected) = self.version;
        if found >> 8 != u16::from(expected) {
            let allowed = match expected {
                1 => "256 to 511 (version 1)",
                _ => "512 to 767 (version 2)",
            };
            return Err(Complaint::number("the version", found.into(), allowed));
        }
        let op = match self.code {
            0x08 | 0x28 | 0xa8 | 0x88 => Op::Read,
            0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e => Op::Write,
            0x00..=0xff => {
                self.pass(sink);
                return Ok(());
            }
            _ => {
                let allowed = "a SCSI operation code from 0 to 255";
                return Err(Complaint::number("the command", self.code.into(), allowed));
            }
        };
        let time = self.micros.checked_mul(1000).ok_or_else(|| {
            let allowed = "up to 18446744073709551 microseconds";
            Complaint::number("the time", self.micros, allowed)
        })?;
        let sectors = sink.whole_sectors(self.length.into());
        sink.sectors((Some(Nanos(time)), 0, op), 0, self.sector, sectors)
    }

    const fn pass(&self, sink: &mut Sink<'_>) {
        let passed = &mut sink.state.passed;
        match self.code {
            0x35 | 0x91 => passed.flushes += 1,
            0x42 => passed.discards += 1,
            _ => passed.others += 1,
        }
    }
}

fn word(record: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([record[at], record[at + 1]])
}

fn half(record: &[u8], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&record[at..at + 4]);
    u32::from_le_bytes(bytes)
}

fn long(record: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&record[at..at + 8]);
    u64::from_le_bytes(bytes)
}
