//! Files of nothing but block numbers of one width. Any file of the right length could be one, so
//! they are only read when they are named.
//!
//! `w106` is little-endian: read so, 39.0 % of the 5,292,456 references of w106 go to the next block
//! and the largest number is 1,197,769; read big-endian, none does and the largest is 4,294,905,344.
//! Caffeine reads the same file with `DataInputStream.readInt`, which is big-endian
//! (`CloudPhysicsTraceReader.java`): hits do not change by that, since each number still stands for one
//! block, but the order of the numbers does.

use super::super::reader::{Entry, Looks, Records};
use super::super::request::{NextUse, Op};
use super::super::sink::Sink;
use super::super::{TargetKind, Times, Traits};
use crate::about::{About, ByteOrder, Form, Kind, Part, Stamps, field};
use crate::foreign::error::Complaint;

pub(crate) const LITTLE: Entry = Entry {
    name: "w106",
    aliases: &["cloudphysics", "le32"],
    about: About {
        what: "Block numbers of 32 bits, as CloudPhysics' w106 that Caffeine's repository keeps and the \
               LIRS2 authors made",
        form: Form::Binary {
            order: ByteOrder::Little,
            parts: &[Part {
                what: "Reference",
                note: "",
                fields: &[field("block", Kind::U32, "number of a block", 4711)],
            }],
        },
        source: "the file itself, by how its numbers follow one another; github.com/zhongch4g/LIRS2",
        stamps: Stamps::Absent,
        left_out: "nothing",
    },
    traits: TRAITS,
    looks: Looks::Unknowable,
    parser: |_| {
        Box::new(Records {
            what: "4-byte block number",
            parse: |record: &[u8; 4], sink: &mut Sink<'_>| take(u32::from_le_bytes(*record), sink),
        })
    },
};

pub(crate) const BIG: Entry = Entry {
    name: "w106-be",
    aliases: &["caffeine", "cache2k", "be32"],
    about: About {
        what: "Block numbers of 32 bits, as Caffeine and cache2k write them",
        form: Form::Binary {
            order: ByteOrder::Big,
            parts: &[Part {
                what: "Reference",
                note: "",
                fields: &[field("block", Kind::U32, "number of a block", 4711)],
            }],
        },
        source: "Caffeine's CloudPhysicsTraceWriter (writeInt, of hashed numbers); cache2k's \
                 AccessTrace.java (ByteOrder.BIG_ENDIAN)",
        stamps: Stamps::Absent,
        left_out: "nothing",
    },
    traits: TRAITS,
    looks: Looks::Unknowable,
    parser: |_| {
        Box::new(Records {
            what: "4-byte block number",
            parse: |record: &[u8; 4], sink: &mut Sink<'_>| take(u32::from_be_bytes(*record), sink),
        })
    },
};

pub(crate) const VALPIN: Entry = Entry {
    name: "valpin",
    aliases: &["le64"],
    about: About {
        what: "Block numbers of 64 bits, libCacheSim's valpin",
        form: Form::Binary {
            order: ByteOrder::Little,
            parts: &[Part {
                what: "Reference",
                note: "",
                fields: &[field("block", Kind::U64, "number of a block", 4711)],
            }],
        },
        source: "libCacheSim's valpinBin.h",
        stamps: Stamps::Absent,
        left_out: "nothing",
    },
    traits: TRAITS,
    looks: Looks::Unknowable,
    parser: |_| {
        Box::new(Records {
            what: "8-byte block number",
            parse: |record: &[u8; 8], sink: &mut Sink<'_>| take(u64::from_le_bytes(*record), sink),
        })
    },
};

const TRAITS: Traits = Traits {
    target: TargetKind::Id,
    times: Times::None,
    directions: false,
    tasks: false,
};

fn take(id: impl Into<u64>, sink: &mut Sink<'_>) -> Result<(), Complaint> {
    sink.id((None, 0, Op::Read), id.into(), None, NextUse::Unknown);
    Ok(())
}
