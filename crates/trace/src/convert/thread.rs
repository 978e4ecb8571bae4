//! One thread of a trace becomes chunks.

use piebald_units::op::{MemRef, Next, OpSource, SysOp};

use super::blocks::{Cutter, Dictionary};
use super::{ConvertError, point};
use crate::foreign::{ForeignThread, Format};
use crate::recording::model::{Event, EventKind};
use crate::recording::{ChunkEncoder, RecordingWriter};

/// References read at a time.
const BATCH: usize = 4096;
/// Raw entries after which a chunk is written; with one more execution it still fits.
const CHUNK_ENTRIES: usize = 3 << 18;
/// Events after which a chunk is written.
const CHUNK_EVENTS: usize = 1 << 16;
/// What a call returns whose outcome is not known: `ENOSYS`.
const UNKNOWN_OUTCOME: i64 = -38;

/// What could not be kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Losses {
    pub(super) dependences: u64,
    pub(super) calls: u64,
    pub(super) cut_addresses: u64,
    pub(super) added_instructions: u64,
    /// Threads whose end is missing, of formats that write it.
    pub(super) ends: u64,
}

impl std::ops::AddAssign for Losses {
    fn add_assign(&mut self, other: Self) {
        self.dependences += other.dependences;
        self.calls += other.calls;
        self.cut_addresses += other.cut_addresses;
        self.added_instructions += other.added_instructions;
        self.ends += other.ends;
    }
}

/// Events of a thread that were not written yet, in the total order of all threads.
pub(super) struct Events<'a> {
    next_seq: &'a mut u64,
    waiting: Vec<(usize, Event)>,
}

impl<'a> Events<'a> {
    pub(super) fn new(next_seq: &'a mut u64) -> Self {
        Self {
            next_seq,
            waiting: Vec::new(),
        }
    }

    /// An event before the raw entry `at`.
    pub(super) fn add(&mut self, at: usize, kind: EventKind) {
        self.waiting.push((at, point(*self.next_seq, kind)));
        *self.next_seq += 1;
    }
}

/// Reads the thread to its end and appends its chunks. `numbers`: process, thread, pid, tid.
pub(super) fn convert(
    source: &mut ForeignThread,
    format: Format,
    numbers: (u32, u32, u32, u32),
    dictionary: &mut Dictionary,
    mut events: Events<'_>,
    writer: &mut RecordingWriter,
) -> Result<Losses, ConvertError> {
    let unsized_instrs = matches!(
        format,
        Format::ChampSim | Format::CloudSuite | Format::Din | Format::Pinatrace
    );
    let mut cutter = Cutter::new(dictionary, unsized_instrs);
    let (process, thread, pid, tid) = numbers;
    let mut encoder = ChunkEncoder::new(process, thread, pid, tid)?;
    let mut refs = vec![MemRef::default(); BATCH];
    let mut calls = 0;
    loop {
        let filled = source.fill(&mut refs);
        for r in &refs[..filled.refs] {
            cutter.reference(r);
            // One long gap can be many executions: looked at after each reference.
            if cutter.raw.len() >= CHUNK_ENTRIES {
                write(&mut encoder, &mut cutter, &mut events, writer)?;
            }
        }
        cutter.silent(filled.tail);
        let last = match filled.next {
            Next::More => false,
            Next::Broken => {
                let why = source
                    .failure()
                    .unwrap_or("the trace cannot be read further");
                return Err(ConvertError::Broken(why.to_owned()));
            }
            Next::End => true,
            Next::Sys(op) => {
                calls += 1;
                cutter.close();
                events.add(cutter.raw.len(), call(&op));
                false
            }
            Next::Mark(mark) => {
                cutter.close();
                events.add(cutter.raw.len(), EventKind::Mark(mark));
                false
            }
            Next::Exit(status) => {
                cutter.close();
                events.add(cutter.raw.len(), EventKind::Exit { status });
                true
            }
        };
        if last {
            cutter.close();
        }
        if last || events.waiting.len() >= CHUNK_EVENTS {
            write(&mut encoder, &mut cutter, &mut events, writer)?;
        }
        if last {
            let dropped = cutter.dropped;
            return Ok(Losses {
                dependences: dropped.dependences,
                calls,
                cut_addresses: dropped.cut_addresses,
                added_instructions: dropped.added_instructions,
                ends: u64::from(filled.next == Next::End && format.writes_ends()),
            });
        }
    }
}

/// Writes the whole executions, and the events among them, as a chunk.
fn write(
    encoder: &mut ChunkEncoder,
    cutter: &mut Cutter<'_>,
    events: &mut Events<'_>,
    writer: &mut RecordingWriter,
) -> Result<(), ConvertError> {
    let mut record = Vec::new();
    encoder.encode(cutter.blocks(), &cutter.raw, &events.waiting, &mut record)?;
    writer.append_record(&record)?;
    cutter.raw.clear();
    events.waiting.clear();
    Ok(())
}

/// Readers give calls by number only. One whose outcome is not known is written as one that
/// failed: replays charge its entry and nothing else.
fn call(op: &SysOp) -> EventKind {
    let number = match op {
        SysOp::Other { number } => *number,
        _ => u32::MAX,
    };
    EventKind::Call {
        number,
        args: [0; 6],
        ret: Some(UNKNOWN_OUTCOME),
        path: None,
        file: None,
        position: None,
    }
}
