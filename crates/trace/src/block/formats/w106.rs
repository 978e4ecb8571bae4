//! CloudPhysics w106 in the form that Caffeine keeps: block numbers of 32 bits, big-endian.
//!
//! Any file of a multiple of 4 bytes could be one, so this format is only read when it is named.

use super::super::reader::{Entry, Looks, Records};
use super::super::request::NextUse;
use super::super::sink::Sink;
use super::super::{TargetKind, Times, Traits};

pub(crate) const ENTRY: Entry = Entry {
    name: "w106",
    aliases: &["caffeine"],
    traits: Traits {
        target: TargetKind::Id,
        times: Times::None,
        directions: false,
        tasks: false,
    },
    looks: Looks::Unknowable,
    parser: |_| {
        Box::new(Records {
            what: ("4-byte block number", "4"),
            parse: |record: &[u8; 4], sink: &mut Sink<'_>| {
                let id = u64::from(u32::from_be_bytes(*record));
                sink.id(None, id, None, NextUse::Unknown)
            },
        })
    },
};
