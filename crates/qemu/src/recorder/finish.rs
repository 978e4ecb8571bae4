//! The end of a recording: what killed processes left behind, the warnings, the
//! index.

use core::sync::atomic::Ordering::Acquire;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::process::ExitStatus;

use piebald_trace::recording::model::{BlockDef, Event, EventKind, Raw};
use piebald_trace::recording::{
    Base, ChunkEncoder, EncodeError, ReadError, Recording, RecordingWriter, encode_dictionary,
};

use super::{RecordError, Summary, signal_of};
use crate::plugin::lane::parse_journal;
use crate::shared::{AT_LIMIT, DICTIONARY, FREE, REPLACED, Shared, SlotMap, THREAD, WITH_IMAGE};

/// Bytes that warnings may take in the header, which has a fixed place.
const HEADER_ROOM: usize = 300;

/// Is a process of the recording still running?
pub fn anyone_alive(shared: &Shared) -> bool {
    slots(shared).any(|slot| is_alive(slot.head().pid))
}

/// Is a process about to append a record, or doing so?
pub fn anyone_writing(shared: &Shared) -> bool {
    slots(shared).any(|slot| slot.head().writing.load(Acquire) != 0 && is_alive(slot.head().pid))
}

fn slots(shared: &Shared) -> impl Iterator<Item = SlotMap> + '_ {
    let all = (0..shared.nr_slots()).filter_map(|i| shared.slot(i).ok());
    all.filter(|s| s.head().state.load(Acquire) != FREE)
}

/// A zombie has ended, even if nobody waits for it.
fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let state = stat.rsplit(") ").next().and_then(|s| s.bytes().next());
    !matches!(state, Some(b'Z' | b'X') | None)
}

/// How the program's run ended.
pub struct End {
    /// Its exit status.
    pub status: ExitStatus,
    /// The last signal to the driver.
    pub received: Option<i32>,
    /// What it printed to standard error, if that was kept.
    pub said: String,
    /// Seconds that it took.
    pub seconds: f64,
}

/// Completes the file.
pub fn finish(
    mut writer: RecordingWriter,
    shared: &Shared,
    end: End,
) -> Result<Summary, RecordError> {
    let status = end.status;
    if shared.processes.load(Acquire) == 0 {
        let said = end.said;
        return Err(RecordError::NotStarted { status, said });
    }
    let spool = |shared: &Shared| match shared.failure.load(Acquire) {
        0 => Ok(()),
        errno => Err(RecordError::Spool {
            file: shared.spool().to_owned(),
            source: io::Error::from_raw_os_error(errno),
        }),
    };
    spool(shared)?;
    let mut found = Found::default();
    found.leftovers(&mut writer, shared, status)?;
    spool(shared)?;
    found.other_losses(shared, end.received);
    let header = writer.header_mut();
    header.complete = found.missing.is_empty();
    header.missing = short(&found.missing);
    let output = shared.spool().with_extension("");
    let finished = writer.finish().map_err(|e| {
        found.missing.clear();
        RecordError::from(e)
    })?;
    if !finished.found.lost.is_empty() {
        let n = finished.found.lost.len();
        found.missing.push(format!("{n} torn records"));
    }
    let counts = finished.header.counts;
    let mut warnings = found.missing;
    warnings.extend(found.remarks);
    Ok(Summary {
        status,
        complete: finished.header.complete,
        interrupted: end.received.is_some(),
        at_limit: shared.stopped.load(Acquire) == AT_LIMIT,
        said: end.said,
        warnings,
        processes: counts.processes,
        threads: counts.threads,
        instructions: counts.instructions,
        references: counts.references,
        bytes: length(&output)?,
        seconds: end.seconds,
    })
}

fn length(path: &Path) -> Result<u64, RecordError> {
    let meta = std::fs::metadata(path);
    let meta = meta.map_err(super::system(&path.display().to_string()))?;
    Ok(meta.len())
}

/// As many of the reasons as the header has room for.
fn short(missing: &[String]) -> Vec<String> {
    let mut room = HEADER_ROOM;
    let mut kept = Vec::new();
    for (i, text) in missing.iter().enumerate() {
        // Quoted text may double.
        if 2 * text.len() + 32 > room {
            kept.push(format!("and {} more", missing.len() - i));
            break;
        }
        room -= 2 * text.len();
        kept.push(text.clone());
    }
    kept
}

#[derive(Default)]
struct Found {
    missing: Vec<String>,
    remarks: Vec<String>,
}

impl Found {
    fn other_losses(&mut self, shared: &Shared, received: Option<i32>) {
        if let Some(signal) = received {
            self.missing
                .push(format!("ended early by {}", name(signal)));
        }
        let dropped = shared.dropped.load(Acquire);
        if dropped != 0 {
            self.missing.push(format!("{dropped} entries had no room"));
        }
        let (notices, more) = shared.notices();
        let escapes = shared.escapes.load(Acquire);
        if escapes != 0 {
            self.missing
                .push(format!("{escapes} programs not followed"));
        }
        self.remarks.extend(notices);
        if more != 0 {
            self.remarks.push(format!("and {more} more remarks"));
        }
    }

    /// Writes what processes that ended without a word left in shared memory.
    fn leftovers(
        &mut self,
        writer: &mut RecordingWriter,
        shared: &Shared,
        status: ExitStatus,
    ) -> Result<(), RecordError> {
        let left: Vec<SlotMap> = slots(shared).collect();
        if left.is_empty() || shared.stopped.load(Acquire) == AT_LIMIT {
            return Ok(());
        }
        for slot in left.iter().filter(|s| s.head().kind == DICTIONARY) {
            let record = dictionary(slot).map_err(encode_failed)?;
            writer.append_record(&record)?;
        }
        for slot in left.iter().filter(|s| is_record(s)) {
            writer.append_record(slot.journal())?;
            let pid = slot.head().pid;
            self.missing
                .push(format!("process {pid} did not start its new image"));
        }
        let (recording, _) = Recording::recover(writer.partial_path()).map_err(read_failed)?;
        let mut defs = HashMap::new();
        let mut ended = HashSet::new();
        for slot in left
            .iter()
            .filter(|s| s.head().kind == THREAD && !is_record(s))
        {
            let head = slot.head();
            if let std::collections::hash_map::Entry::Vacant(v) = defs.entry(head.process) {
                v.insert(recording.block_defs(head.process).unwrap_or_default());
            }
            let how = how_it_ended(shared, head.pid, head.process, status);
            let code = how.map_or(0, |signal| 128 + signal);
            if let Some(record) = rest(slot, &recording, &defs[&head.process], code) {
                writer.append_record(&record)?;
            }
            if how != Some(libc::SIGPIPE)
                && head.ended.load(Acquire) != WITH_IMAGE
                && ended.insert(head.pid)
            {
                let how = how.map_or("without a word".into(), |s| format!("by {}", name(s)));
                self.missing
                    .push(format!("process {} ended {how}", head.pid));
            }
        }
        Ok(())
    }
}

fn encode_failed(e: EncodeError) -> RecordError {
    RecordError::Write(e.into())
}

fn read_failed(e: ReadError) -> RecordError {
    RecordError::Write(e.into())
}

/// Does the slot hold the record of an image that was to be replaced?
fn is_record(slot: &SlotMap) -> bool {
    slot.head().kind == THREAD && slot.head().state.load(Acquire) == REPLACED
}

/// The signal that ended a process, if that is known.
fn how_it_ended(shared: &Shared, pid: u32, process: u32, status: ExitStatus) -> Option<i32> {
    let noted = shared
        .end_of(pid)
        .map(|s| (s & 0x7f) as i32)
        .filter(|&s| s != 0);
    // The first process is the driver's own child.
    noted.or_else(|| (process == 0).then(|| signal_of(status)).flatten())
}

/// The blocks that a process had not yet written.
fn dictionary(slot: &SlotMap) -> Result<Vec<u8>, EncodeError> {
    let head = slot.head();
    let mut blocks = Vec::new();
    let mut rest = slot.journal();
    while let Ok((block, after)) = postcard::take_from_bytes::<BlockDef>(rest) {
        blocks.push(block);
        rest = after;
    }
    let mut record = Vec::new();
    let base = (head.inherited != 0).then_some(Base {
        process: head.parent,
        blocks: head.inherited,
    });
    if !blocks.is_empty() {
        encode_dictionary(head.process, base, head.written, &blocks, &mut record)?;
    }
    Ok(record)
}

/// The chunk that a thread had not yet written.
fn rest(slot: &SlotMap, so_far: &Recording, defs: &Vec<BlockDef>, code: i32) -> Option<Vec<u8>> {
    let head = slot.head();
    let threads = &so_far.index().threads;
    let written = threads.iter().find(|t| t.thread == head.thread);
    let (instrs, refs) = written.map_or((0, 0), |t| (t.instrs, t.refs));
    let mut events = parse_journal(slot.journal());
    let mut raw: Vec<Raw> = slot.raw().iter().map(|&w| Raw(w)).collect();
    let in_spool = head.writing.load(Acquire) != 0 && instrs == head.instrs;
    if in_spool {
        raw.clear();
        events.clear();
    }
    let known = |r: &Raw| r.index() != Raw::NO_INDEX || ((r.0 as u32) as usize) < defs.len();
    let whole = raw.iter().position(|r| !known(r)).unwrap_or(raw.len());
    raw.truncate(whole);
    events.retain(|e| e.0 <= raw.len());
    let seq = events.last().map_or(0, |e| e.1.seq_end);
    if let Ok(call) = postcard::from_bytes::<Event>(slot.call()) {
        events.push((raw.len(), call));
    }
    let exit = EventKind::Exit { status: code };
    events.push((
        raw.len(),
        Event {
            seq,
            seq_end: seq,
            kind: exit,
        },
    ));
    let encoder = ChunkEncoder::new(head.process, head.thread, head.pid, head.tid).ok()?;
    let mut record = Vec::new();
    encoder
        .resume_at(instrs, refs)
        .encode(defs, &raw, &events, &mut record)
        .ok()?;
    Some(record)
}

fn name(signal: i32) -> String {
    let known = match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        _ => return format!("signal {signal}"),
    };
    known.into()
}
