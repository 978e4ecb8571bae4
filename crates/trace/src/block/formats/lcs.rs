//! libCacheSim's *lcs*, version 1 and versions 2 to 8: a header, then packed little-endian records.
//!
//! The header is 8192 bytes in current files and 1024 in older ones: `u64 magic
//! (0x123456789abcdef0), u64 version, statistics`, and the magic again in its last 8 bytes. The
//! statistics are not used.
//!
//! | field | version 1 (24 B) | 2 (28 B) | 3 (36 B), 4 to 8 |
//! |---|---|---|---|
//! | seconds (u32) | 0 | 0 | 0 |
//! | object (u64) | 4 | 4 | 4 |
//! | size in bytes | 12 (u32) | 12 (u32) | 12 (i64) |
//! | operation (8 bits), tenant (24 bits) | - | 16 | 20 |
//! | time to live (u32) | - | - | 24 |
//! | next use (i64) | 16 | 20 | 28 |
//! | features (u32) | - | - | 36: 0, 1, 2, 4, 8, 16 of them |
//!
//! Source: libCacheSim's `lcs.h` and `lcs.c`. Version 1 is oracleGeneral behind a header and has no
//! operations: it is a format of its own here, since what a format tells does not depend on the
//! file. A still older form has a format string in its header instead of a version, and is refused.
//! What fields mean is as in [`oracle`](super::oracle).

use super::super::reader::{Entry, Looks, Parse};
use super::super::sink::Sink;
use super::oracle::{Record, field, general, traits};
use crate::foreign::ForeignError;
use crate::foreign::error::Complaint;
use crate::foreign::input::Input;

pub(crate) const V1: Entry = Entry {
    name: "lcs-v1",
    aliases: &[],
    traits: traits(false),
    looks: Looks::Binary(|head| version(head) == Some(1), 1),
    parser: |_| Box::new(Lcs::new("1", 1..=1)),
};

pub(crate) const V2: Entry = Entry {
    name: "lcs",
    aliases: &["lcs-v2", "lcs-v3"],
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
            let found = u64::from_le_bytes(field(&first, 0));
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
        if u64::from_le_bytes(field(&first, SHORT - 8)) != MAGIC {
            let rest = input.body::<{ LONG - SHORT }>(HEADER)?;
            let last = u64::from_le_bytes(field(&rest, LONG - SHORT - 8));
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
                seconds: u32::from_le_bytes(field(&r, 0)),
                object: u64::from_le_bytes(field(&r, 4)),
                size: u32::from_le_bytes(field(&r, 12)).into(),
                op: Some(r[16]),
                next: i64::from_le_bytes(field(&r, 20)),
            }),
            version => {
                let Some(r) = input.record::<36>(WHAT)? else {
                    return Ok(None);
                };
                let features = [0, 1, 2, 4, 8, 16][(version - 3) as usize];
                input.skip(4 * features, WHAT)?;
                Some(Record {
                    seconds: u32::from_le_bytes(field(&r, 0)),
                    object: u64::from_le_bytes(field(&r, 4)),
                    size: i64::from_le_bytes(field(&r, 12)),
                    op: Some(r[20]),
                    next: i64::from_le_bytes(field(&r, 28)),
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
