//! Recordings of events alone, and what they become.

use piebald_units::{
    VirtAddr,
    op::{Access, Backing, MemRef, Next, OpSource, SysOp},
};

use super::support::*;
use crate::recording::{model::*, *};

pub(super) const REGULAR: u32 = 0o100_644;
pub(super) const FIFO: u32 = 0o010_600;

pub(super) fn file(ino: u64, mode: u32) -> FileIdent {
    FileIdent {
        dev: 8,
        ino,
        size: 100,
        mode,
    }
}

pub(super) fn file_call(
    number: u32,
    args: [u64; 6],
    ret: i64,
    file: FileIdent,
    position: u64,
) -> EventKind {
    EventKind::Call {
        number,
        args,
        ret: Some(ret),
        path: None,
        file: Some(file),
        position: Some(position),
    }
}

pub(super) fn map(addr: u64, len: u64, backing: Backing, write: bool, shared: bool) -> SysOp {
    SysOp::Map {
        addr: VirtAddr(addr),
        len,
        backing,
        access: Access { write, exec: false },
        shared,
    }
}

/// Threads as (process, thread, pid, tid, events); each event after one block.
pub(super) fn events_only(threads: &[([u32; 4], Vec<Event>)]) -> Recording {
    let dict = [block(0x1000, 3, vec![])];
    let raws: Vec<Vec<Raw>> = threads
        .iter()
        .map(|t| vec![Raw::block(0); t.1.len()])
        .collect();
    let parts: Vec<Part<'_>> = threads
        .iter()
        .zip(&raws)
        .map(|((ids, events), raw)| Part {
            ids: *ids,
            raw,
            events: events.iter().cloned().enumerate().collect(),
        })
        .collect();
    Recording::from_bytes(recording(&dict, &parts), "events").unwrap()
}

/// What follows, without the references; the end too.
pub(super) fn ops(recording: &Recording, thread: u32) -> Vec<Next> {
    let mut source = recording.source(thread, ReplayOptions::default()).unwrap();
    let mut out = [MemRef::default(); 64];
    let mut all = Vec::new();
    loop {
        let filled = source.fill(&mut out);
        assert_ne!(filled.next, Next::Broken, "{:?}", source.failure());
        match filled.next {
            Next::More => {}
            next => all.push(next),
        }
        if filled.next == Next::End {
            return all;
        }
    }
}

pub(super) fn sys(ops: &[Next]) -> Vec<SysOp> {
    ops.iter()
        .filter_map(|n| match n {
            Next::Sys(op) => Some(*op),
            _ => None,
        })
        .collect()
}
