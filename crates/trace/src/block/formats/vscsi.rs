//! VMware vscsi tracing (CloudPhysics): little-endian records of SCSI commands to one disk.
//!
//! | field | version 1 (32 B) | version 2 (40 B) |
//! |---|---|---|
//! | serial number (u32) | 0 | 4 |
//! | length in bytes (u32) | 4 | 8 |
//! | scatter-gather elements (u32) | 8 | 12 |
//! | command (u16), version in the high byte of the next (u16) | 12, 14 | 0, 2 |
//! | first sector of 512 B (u64) | 16 | 16 |
//! | time in microseconds (u64) | 24 | 24 |
//! | response time (u64) | - | 32 |
//!
//! Source: libCacheSim's `vscsi.h` (fields, and "microsec" for the time) and the header of VMware's
//! own text form ("Time Stamp (microseconds)"). Sectors: in libCacheSim's sample
//! `cloudPhysicsIO.vscsi` all 113,872 lengths are multiples of 512 B, and 29,558 requests begin where
//! the one before ends if a sector has 512 B. Commands other than reads and writes are passed over.
//! Operation codes: SCSI SBC.

use super::super::Times;
use super::super::reader::{Entry, Looks, Records};
use super::super::request::{Nanos, Op};
use super::super::sink::Sink;
use super::disk;
use crate::foreign::error::Complaint;

pub(crate) const V1: Entry = Entry {
    name: "vscsi-v1",
    aliases: &["vscsi"],
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
            0x0a | 0x2a | 0xaa | 0x8a => Op::Write,
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
