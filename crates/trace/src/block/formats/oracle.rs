//! libCacheSim's *oracleGeneral* and *oracleGeneralOpNS*: packed records.
//!
//! A size of 0, any gap and steps back in time are legal. Objects are opaque; in the samples they are
//! block numbers, but the format does not promise it.
//!
//! Operations that only ask are reads, those that change are writes; `nop` and `delete` are counted
//! and passed over, since a cache does not look a deleted object up.

use std::collections::HashMap;
use std::num::NonZeroU64;

use super::super::reader::{Entry, Looks, Records};
use super::super::request::{Nanos, NextUse, Op};
use super::super::sink::Sink;
use super::super::{TargetKind, Times, Traits};
use crate::about::{About, ByteOrder, Field, Form, Kind, Part, Stamps, field};
use crate::foreign::error::Complaint;
use crate::foreign::input::BUFFER;

/// The last field of all records of the family.
pub(super) const NEXT: Field = field(
    "next_access_vtime",
    Kind::I64,
    "number of the request that uses the object next, from 1; -1 or 2^63 - 1 for none",
    -1,
);
pub(super) const OPERATIONS: &str = "1 get, 2 gets and 12 read; 3 set, 4 add, 5 cas, 6 replace, 7 append, \
    8 prepend, 10 incr, 11 decr, 13 write and 14 update; 0 nop and 9 delete are passed over";
pub(super) const STAMPS: Stamps = Stamps::Relative("seconds of a clock whose origin is not told");

pub(crate) const GENERAL: Entry = Entry {
    name: "oracle-general",
    aliases: &["oracleGeneral"],
    about: About {
        what: "libCacheSim's oracleGeneral: requests for objects, with their next use",
        form: Form::Binary {
            order: ByteOrder::Little,
            parts: &[Part {
                what: "Record",
                note: "",
                fields: &[
                    field("clock_time", Kind::U32, "s", 10),
                    field("obj_id", Kind::U64, "object", 800),
                    field("obj_size", Kind::U32, "bytes", 512),
                    NEXT,
                ],
            }],
        },
        source: "libCacheSim's oracleGeneralBin.h",
        stamps: STAMPS,
        left_out: "nothing. All requests are taken as reads",
    },
    traits: traits(false),
    looks: Looks::Binary(
        |head| plausible(head.as_chunks::<24>().0.iter().map(general), head),
        1,
    ),
    parser: |_| {
        let mut requests = 0;
        Box::new(Records {
            what: "oracleGeneral record",
            parse: move |record: &[u8; 24], sink: &mut Sink<'_>| {
                requests += 1;
                general(record).emit(requests, sink)
            },
        })
    },
};

pub(crate) const OP_NS: Entry = Entry {
    name: "oracle-general-opns",
    aliases: &["oracleGeneralOpNS"],
    about: About {
        what: "libCacheSim's oracleGeneralOpNS: the same with operations",
        form: Form::Binary {
            order: ByteOrder::Little,
            parts: &[Part {
                what: "Record",
                note: "",
                fields: &[
                    field("clock_time", Kind::U32, "s", 10),
                    field("obj_id", Kind::U64, "object", 800),
                    field("obj_size", Kind::U32, "bytes", 512),
                    field("op", Kind::U8, OPERATIONS, 12),
                    field("ns", Kind::U16, "name space; not used", 1),
                    NEXT,
                ],
            }],
        },
        source: "libCacheSim's oracleGeneralBin.h; operations: req_op_e in its enum.h",
        stamps: STAMPS,
        left_out: "name spaces, and operations that neither ask nor change (nop, delete)",
    },
    traits: traits(true),
    looks: Looks::Binary(
        |head| plausible(head.as_chunks::<27>().0.iter().map(op_ns), head),
        1,
    ),
    parser: |_| {
        let mut requests = 0;
        Box::new(Records {
            what: "oracleGeneralOpNS record",
            parse: move |record: &[u8; 27], sink: &mut Sink<'_>| {
                requests += 1;
                op_ns(record).emit(requests, sink)
            },
        })
    },
};

pub(super) const fn traits(directions: bool) -> Traits {
    Traits {
        target: TargetKind::Id,
        times: Times::Ordered,
        directions,
        tasks: false,
    }
}

/// A record of this family.
#[derive(Clone, Copy)]
pub(super) struct Record {
    pub seconds: u32,
    pub object: u64,
    /// Bytes; version 3 of lcs has a sign and 64 bits.
    pub size: i64,
    /// As libCacheSim numbers them; `None` in records without.
    pub op: Option<u8>,
    pub next: i64,
}

pub(super) fn bytes_at<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&record[at..at + N]);
    bytes
}

pub(super) fn general(record: &[u8; 24]) -> Record {
    Record {
        seconds: u32::from_le_bytes(bytes_at(record, 0)),
        object: u64::from_le_bytes(bytes_at(record, 4)),
        size: u32::from_le_bytes(bytes_at(record, 12)).into(),
        op: None,
        next: i64::from_le_bytes(bytes_at(record, 16)),
    }
}

fn op_ns(record: &[u8; 27]) -> Record {
    Record {
        seconds: u32::from_le_bytes(bytes_at(record, 0)),
        object: u64::from_le_bytes(bytes_at(record, 4)),
        size: u32::from_le_bytes(bytes_at(record, 12)).into(),
        op: Some(record[16]),
        next: i64::from_le_bytes(bytes_at(record, 19)),
    }
}

/// Reads and writes; `None` for what is neither.
fn direction(op: Option<u8>) -> Result<Option<Op>, Complaint> {
    match op {
        // get, gets, read.
        None | Some(1 | 2 | 12) => Ok(Some(Op::Read)),
        // set, add, cas, replace, append, prepend, incr, decr, write, update.
        Some(3..=8 | 10 | 11 | 13 | 14) => Ok(Some(Op::Write)),
        // nop, delete; 15 and 255 are "invalid" in old and new versions.
        Some(0 | 9 | 15 | 255) => Ok(None),
        Some(op) => Err(Complaint::number(
            "the operation",
            op.into(),
            "0 to 15, or 255",
        )),
    }
}

impl Record {
    fn next_use(&self, number: u64) -> Option<NextUse> {
        match self.next {
            -1 | i64::MAX => Some(NextUse::Never),
            next => {
                let at = NonZeroU64::new(u64::try_from(next).ok()?)?;
                (at.get() > number).then_some(NextUse::At(at))
            }
        }
    }

    /// The record is the one of this number, counted from 1.
    pub fn emit(&self, number: u64, sink: &mut Sink<'_>) -> Result<(), Complaint> {
        let next = self.next_use(number).ok_or_else(|| {
            Complaint::new(
                "the next use",
                self.next.to_string(),
                "-1 or 9223372036854775807 (none), or the number of a later request",
            )
        })?;
        let size = u32::try_from(self.size).map_err(|_| {
            Complaint::new("the size", self.size.to_string(), "0 to 4294967295 bytes")
        })?;
        match direction(self.op)? {
            None => sink.state.passed.others += 1,
            Some(op) => {
                let time = Nanos(u64::from(self.seconds) * 1_000_000_000);
                sink.id((Some(time), 0, op), self.object, Some(size), next);
            }
        }
        Ok(())
    }
}

/// Next uses above this are none: 10^12 requests are 24 TB.
const MOST_REQUESTS: u64 = 1 << 40;
const SECTOR: i64 = 512;

/// There is no mark in the file, but next uses are a chain that other data do not form: an object's
/// record names the number of the object's next record, and no two records name the same. One such
/// pair in the beginning is proof enough. Without any, no record may point behind the end, not all
/// sizes may be 0, times may not step back half of the time, and an object must be used no more or
/// all be at least a sector: as records, numbers of 64 bits have small sizes or far next uses.
fn plausible(records: impl Iterator<Item = Record>, head: &[u8]) -> bool {
    let whole = head.len() < BUFFER;
    let mut due: HashMap<u64, u64> = HashMap::new();
    let mut open: HashMap<u64, NextUse> = HashMap::new();
    let (mut number, mut proofs, mut back, mut before) = (0, 0, 0, 0);
    let (mut sized, mut ends, mut sectors) = (false, false, true);
    for record in records {
        number += 1;
        let Some(next) = record.next_use(number) else {
            return false;
        };
        if direction(record.op).is_err() {
            return false;
        }
        let told = open.insert(record.object, next);
        match (due.remove(&number), told) {
            (None, None) => {}
            (Some(object), Some(_)) if object == record.object => proofs += 1,
            _ => return false,
        }
        if let NextUse::At(at) = next
            && (at.get() > MOST_REQUESTS || due.insert(at.get(), record.object).is_some())
        {
            return false;
        }
        sized |= record.size > 0;
        sectors &= record.size >= SECTOR;
        ends |= next == NextUse::Never;
        back += u64::from(record.seconds < before);
        before = record.seconds;
    }
    let points_out = !due.is_empty() && whole;
    let fits = sized && (ends || sectors) && !points_out && back * 2 <= number;
    number > 0 && (proofs > 0 || fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(seconds: u32, object: u64, size: u32, next: i64) -> Vec<u8> {
        let mut bytes = seconds.to_le_bytes().to_vec();
        bytes.extend(object.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(next.to_le_bytes());
        bytes
    }

    fn takes(bytes: &[u8]) -> bool {
        plausible(bytes.as_chunks::<24>().0.iter().map(general), bytes)
    }

    #[test]
    fn next_uses_must_form_chains() {
        let chained = [record(9, 5, 0, 2), record(3, 5, u32::MAX, -1)].concat();
        assert!(takes(&chained));
        // The second record is of another object than the first says.
        assert!(!takes(&[record(9, 5, 1, 2), record(9, 6, 1, -1)].concat()));
        // An object comes again although its record says that it does not.
        assert!(!takes(&[record(9, 5, 1, -1), record(9, 5, 1, -1)].concat()));
        // Two records name the same next one.
        let twice = [record(1, 5, 1, 3), record(1, 6, 1, 3), record(1, 5, 1, -1)].concat();
        assert!(!takes(&twice));
    }

    #[test]
    fn without_a_chain_the_rest_must_fit() {
        assert!(takes(&record(1, 5, 1, -1)));
        assert!(takes(&record(1, 5, 1, i64::MAX)));
        assert!(!takes(&record(1, 5, 0, -1)), "no size at all");
        assert!(!takes(&record(1, 5, 1, 7)), "points behind the end");
        assert!(!takes(&record(1, 5, 1, 1)), "points at itself");
        assert!(!takes(&[0; 23]), "less than a record");
    }
}
