//! libCacheSim's *lcs*, version 1 and versions 2 to 8: a header, then packed records.
//!
//! The header is 8192 bytes in current files and 1024 in older ones, with the magic number in its last
//! 8 bytes, too. Version 1 is oracleGeneral behind a header and has no operations: it is a format of
//! its own here, since what a format tells does not depend on the file. A still older form has a format
//! string in its header instead of a version, and is refused. What fields mean is as in
//! [`oracle`](super::oracle).

use super::super::reader::{Entry, Looks, Parse};
use super::super::sink::Sink;
use super::oracle::{NEXT, OPERATIONS, Record, STAMPS, bytes_at, general, traits};
use crate::about::{About, ByteOrder, Field, Form, Kind, Part, field, hex, unused};
use crate::foreign::ForeignError;
use crate::foreign::error::Complaint;
use crate::foreign::input::Input;

const HEADER_NOTE: &str = "Older files have one of 1024 B.";
const SOURCE: &str = "libCacheSim's lcs.h and lcs.c";

/// The header of a file of this version.
const fn header_fields(version: i64) -> [Field; 4] {
    let magic = hex(field(
        "magic",
        Kind::U64,
        "0x123456789abcdef0",
        MAGIC as i64,
    ));
    [
        magic,
        field("version", Kind::U64, "1 to 8", version),
        unused("statistics", LONG - 24),
        magic,
    ]
}

pub(crate) const V1: Entry = Entry {
    name: "lcs-v1",
    aliases: &[],
    about: About {
        what: "libCacheSim's lcs, version 1: oracleGeneral behind a header",
        form: Form::Binary {
            order: ByteOrder::Little,
            parts: &[
                Part {
                    what: "Header",
                    note: HEADER_NOTE,
                    fields: &header_fields(1),
                },
                Part {
                    what: "Record",
                    note: "",
                    fields: &[
                        field("clock_time", Kind::U32, "s", 10),
                        field("obj_id", Kind::U64, "object", 800),
                        field("obj_size", Kind::U32, "bytes", 512),
                        NEXT,
                    ],
                },
            ],
        },
        source: SOURCE,
        stamps: STAMPS,
        left_out: "the header's statistics. All requests are taken as reads",
    },
    traits: traits(false),
    looks: Looks::Binary(|head| version(head) == Some(1), 1),
    parser: |_| Box::new(Lcs::new("1", 1..=1)),
};

pub(crate) const V2: Entry = Entry {
    name: "lcs",
    aliases: &["lcs-v2", "lcs-v3"],
    about: About {
        what: "libCacheSim's lcs, versions 2 to 8",
        form: Form::Binary {
            order: ByteOrder::Little,
            parts: &[
                Part {
                    what: "Header",
                    note: HEADER_NOTE,
                    fields: &header_fields(3),
                },
                Part {
                    what: "Record of version 3",
                    note: "Version 2 has 32 bits for the size and no ttl (28 B). \
                           Versions 4 to 8 append 1, 2, 4, 8 or 16 features (u32, not used).",
                    fields: &[
                        field("clock_time", Kind::U32, "s", 10),
                        field("obj_id", Kind::U64, "object", 800),
                        field("obj_size", Kind::I64, "bytes, up to 2^32 - 1", 512),
                        field("op", Kind::U8, OPERATIONS, 12),
                        unused("tenant", 3),
                        field("ttl", Kind::U32, "time to live in s; not used", 0),
                        NEXT,
                    ],
                },
            ],
        },
        source: SOURCE,
        stamps: STAMPS,
        left_out: "the header's statistics, tenants, times to live, features, and operations that \
                   neither ask nor change (nop, delete)",
    },
    traits: traits(true),
    looks: Looks::Binary(|head| version(head).is_some_and(|v| v != 1), 1),
    parser: |_| Box::new(Lcs::new("2 to 8", 2..=8)),
};

const MAGIC: u64 = 0x1234_5678_9abc_def0;
const SHORT: usize = 1024;
const LONG: usize = 8192;
const WHAT: &str = "lcs record";
const HEADER: &str = "header of lcs";

/// The version that a beginning with the magic number names.
pub(crate) fn version(head: &[u8]) -> Option<u64> {
    let (magic, rest) = head.split_first_chunk::<8>()?;
    let version = u64::from_le_bytes(*rest.first_chunk()?);
    (u64::from_le_bytes(*magic) == MAGIC).then_some(version)
}

struct Lcs {
    versions: std::ops::RangeInclusive<u64>,
    /// The same in words.
    allowed: &'static str,
    /// Of the file; 0 before its header.
    version: u64,
    requests: u64,
    /// The header is wrong: nothing behind it can be read.
    lost: bool,
}

impl Lcs {
    const fn new(allowed: &'static str, versions: std::ops::RangeInclusive<u64>) -> Self {
        Self {
            versions,
            allowed,
            version: 0,
            requests: 0,
            lost: false,
        }
    }

    fn header(&mut self, input: &mut Input) -> Result<(), ForeignError> {
        self.lost = true;
        let Some(first) = input.record::<SHORT>(HEADER)? else {
            return Ok(());
        };
        let Some(version) = version(&first) else {
            let found = u64::from_le_bytes(bytes_at(&first, 0));
            return Err(input.fault(Complaint::new(
                "the magic number",
                format!("{found:#018x}"),
                "0x123456789abcdef0",
            )));
        };
        if !self.versions.contains(&version) {
            let complaint = Complaint::number("the version", version, self.allowed);
            return Err(input.fault(complaint));
        }
        if u64::from_le_bytes(bytes_at(&first, SHORT - 8)) != MAGIC {
            let rest = input.body::<{ LONG - SHORT }>(HEADER)?;
            let last = u64::from_le_bytes(bytes_at(&rest, LONG - SHORT - 8));
            if last != MAGIC {
                return Err(input.fault(Complaint::new(
                    "the magic number at the header's end",
                    format!("{last:#018x}"),
                    "0x123456789abcdef0",
                )));
            }
        }
        self.version = version;
        self.lost = false;
        Ok(())
    }

    fn record(&self, input: &mut Input) -> Result<Option<Record>, ForeignError> {
        Ok(match self.version {
            1 => input.record::<24>(WHAT)?.map(|r| general(&r)),
            2 => input.record::<28>(WHAT)?.map(|r| Record {
                seconds: u32::from_le_bytes(bytes_at(&r, 0)),
                object: u64::from_le_bytes(bytes_at(&r, 4)),
                size: u32::from_le_bytes(bytes_at(&r, 12)).into(),
                op: Some(r[16]),
                next: i64::from_le_bytes(bytes_at(&r, 20)),
            }),
            version => {
                let Some(r) = input.record::<36>(WHAT)? else {
                    return Ok(None);
                };
                let features = [0, 1, 2, 4, 8, 16][(version - 3) as usize];
                input.skip(4 * features, WHAT)?;
                Some(Record {
                    seconds: u32::from_le_bytes(bytes_at(&r, 0)),
                    object: u64::from_le_bytes(bytes_at(&r, 4)),
                    size: i64::from_le_bytes(bytes_at(&r, 12)),
                    op: Some(r[20]),
                    next: i64::from_le_bytes(bytes_at(&r, 28)),
                })
            }
        })
    }
}

impl Parse for Lcs {
    fn step(&mut self, input: &mut Input, sink: &mut Sink<'_>) -> Result<bool, ForeignError> {
        if self.lost {
            return Ok(false);
        }
        if self.version == 0 {
            self.header(input)?;
            sink.state.passed.comments += 1;
            return Ok(!self.lost);
        }
        let Some(record) = self.record(input)? else {
            return Ok(false);
        };
        self.requests += 1;
        record
            .emit(self.requests, sink)
            .map_err(|c| input.fault(c))?;
        Ok(true)
    }
}
