//! A built-in program as a recording.

use piebald_trace::recording::{
    ChunkEncoder, FileHeader, MemoryWriter, Recording, encode_dictionary,
    model::{BlockDef, Event, EventKind, Raw},
};

use crate::memory::{EmitError, Sink};
use crate::{Builtin, RunError};

/// Raw entries that are encoded at once: as many always fit a chunk.
const CHUNK_ENTRIES: usize = 1 << 20;
/// Events that are encoded at once: bounds memory for programs that do little
/// else.
const CHUNK_EVENTS: usize = 1 << 16;
/// Built-in programs are one process.
const PROCESS: u32 = 0;

/// Executes a built-in program once and gives its recording, which is kept in
/// memory. `refs` bounds the references of each thread after set-up. Equal
/// arguments give equal bytes.
///
/// # Errors
/// If a result is wrong or the recording cannot be encoded.
pub fn record(builtin: &Builtin, seed: u64, refs: u64) -> Result<Recording, RunError> {
    let name = builtin.to_string();
    let mut encoder = Encoder::new(&name);
    builtin.run(seed, refs, &mut encoder)?;
    encoder
        .finish(&name)
        .map_err(|error| RunError::Emit { name, error })
}

/// A thread whose stream is being encoded.
struct Thread {
    number: u32,
    encoder: ChunkEncoder,
    raw: Vec<Raw>,
    events: Vec<(usize, Event)>,
}

/// Encodes a tape into memory.
struct Encoder {
    blocks: Vec<BlockDef>,
    writer: MemoryWriter,
    thread: Option<Thread>,
    next_seq: u64,
}

fn refused(error: impl core::fmt::Display) -> EmitError {
    EmitError(error.to_string())
}

impl Encoder {
    fn new(name: &str) -> Self {
        Self {
            blocks: Vec::new(),
            writer: MemoryWriter::new(FileHeader::new(vec![name.to_owned()])),
            thread: None,
            next_seq: 0,
        }
    }

    /// Encodes what has gathered, and begins another thread.
    fn begin(&mut self, number: u32, pid: u32, tid: u32) -> Result<(), EmitError> {
        self.flush()?;
        let encoder = ChunkEncoder::new(PROCESS, number, pid, tid).map_err(refused)?;
        self.thread = Some(Thread {
            number,
            encoder,
            raw: Vec::with_capacity(CHUNK_ENTRIES),
            events: Vec::new(),
        });
        Ok(())
    }

    fn current(&mut self, number: u32) -> Result<&mut Thread, EmitError> {
        match &mut self.thread {
            Some(thread) if thread.number == number => Ok(thread),
            _ => Err(EmitError(format!("thread {number} has not started"))),
        }
    }

    fn flush(&mut self) -> Result<(), EmitError> {
        let Some(Thread {
            encoder,
            raw,
            events,
            ..
        }) = &mut self.thread
        else {
            return Ok(());
        };
        if !raw.is_empty() || !events.is_empty() {
            encoder
                .encode(&self.blocks, raw, events, self.writer.records())
                .map_err(refused)?;
        }
        raw.clear();
        events.clear();
        Ok(())
    }

    fn finish(mut self, name: &str) -> Result<Recording, EmitError> {
        self.flush()?;
        encode_dictionary(PROCESS, None, 0, &self.blocks, self.writer.records())
            .map_err(refused)?;
        let bytes = self.writer.finish().map_err(refused)?;
        Recording::from_bytes(bytes, name).map_err(refused)
    }
}

impl Sink for Encoder {
    fn define(&mut self, block: BlockDef) -> Result<u32, EmitError> {
        let id = u32::try_from(self.blocks.len()).map_err(refused)?;
        self.blocks.push(block);
        Ok(id)
    }

    fn stream(&mut self, thread: u32, entries: &[Raw]) -> Result<(), EmitError> {
        if self.current(thread)?.raw.len() + entries.len() > CHUNK_ENTRIES {
            self.flush()?;
        }
        self.current(thread)?.raw.extend_from_slice(entries);
        Ok(())
    }

    fn event(&mut self, thread: u32, event: EventKind) -> Result<(), EmitError> {
        if let EventKind::Start { pid, tid, .. } = event {
            self.begin(thread, pid, tid)?;
        }
        let seq = self.next_seq;
        self.next_seq += 1;
        let current = self.current(thread)?;
        let event = Event {
            seq,
            seq_end: seq,
            kind: event,
        };
        current.events.push((current.raw.len(), event));
        match current.events.len() < CHUNK_EVENTS {
            true => Ok(()),
            false => self.flush(),
        }
    }
}
