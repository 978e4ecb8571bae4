//! What processes left in shared memory that ended without handing it over.

use core::sync::atomic::Ordering::Acquire;
use std::collections::{HashMap, HashSet};
use std::process::ExitStatus;

use piebald_trace::recording::model::{BlockDef, Event, EventKind, Raw};
use piebald_trace::recording::{
    Base, ChunkEncoder, EncodeError, ReadError, Recording, RecordingWriter, encode_dictionary,
};

use super::finish::{Found, slots};
use super::{RecordError, signal_of};
use crate::plugin::lane::parse_journal;
use crate::plugin::limits;
use crate::shared::{APPENDS, AT_LIMIT, DICTIONARY, REPLACED, Shared, SlotMap, THREAD, WITH_IMAGE};

impl Found {
    /// Writes what processes that ended without a word left in shared memory.
    pub fn leftovers(
        &mut self,
        writer: &mut RecordingWriter,
        shared: &Shared,
        status: ExitStatus,
    ) -> Result<(), RecordError> {
        let left: Vec<SlotMap> = slots(shared).collect();
        if left.is_empty() || shared.stopped.load(Acquire) == AT_LIMIT {
            return Ok(());
        }
        let (so_far, _) = Recording::recover(writer.partial_path()).map_err(read_failed)?;
        for slot in left.iter().filter(|s| s.head().kind == DICTIONARY) {
            let record = dictionary(slot, &so_far).map_err(encode_failed)?;
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
                let known = recording.block_defs(head.process);
                if let Err(e) = &known {
                    let pid = head.pid;
                    self.missing.push(format!("blocks of process {pid}: {e}"));
                }
                v.insert(known.unwrap_or_default());
            }
            let how = how_it_ended(shared, head.pid, head.process, status);
            let code = how.map_or(0, |signal| 128 + signal);
            let rest = rest(shared, slot, &recording, &defs[&head.process], code);
            let rest = rest.map_err(encode_failed)?;
            writer.append_record(&rest.record)?;
            if let Some(why) = rest.torn {
                let (tid, n) = (head.tid, rest.dropped);
                self.missing
                    .push(format!("the last {n} entries of thread {tid}: {why}"));
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

/// The blocks that a process had not yet written. It may have ended between
/// writing them and noting so.
fn dictionary(slot: &SlotMap, so_far: &Recording) -> Result<Vec<u8>, EncodeError> {
    let head = slot.head();
    let records = so_far.index().dictionaries.iter();
    let own = records.filter(|d| d.process == head.process);
    let end = own.map(|d| d.first.saturating_add(d.blocks)).max();
    let first = head.written.max(end.unwrap_or(0));
    let mut blocks = Vec::new();
    let mut rest = slot.journal();
    while let Ok((block, after)) = postcard::take_from_bytes::<BlockDef>(rest) {
        blocks.push(block);
        rest = after;
    }
    blocks.drain(..blocks.len().min((first - head.written) as usize));
    let mut record = Vec::new();
    let base = (head.inherited != 0).then_some(Base {
        process: head.parent,
        blocks: head.inherited,
    });
    if !blocks.is_empty() {
        encode_dictionary(head.process, base, first, &blocks, &mut record)?;
    }
    Ok(record)
}

/// What a thread had not yet written.
struct Rest {
    record: Vec<u8>,
    /// Raw entries at the end that could not be kept, and why.
    dropped: usize,
    torn: Option<EncodeError>,
}

/// The chunk that a thread had not yet written, up to where it is consistent.
fn rest(
    shared: &Shared,
    slot: &SlotMap,
    so_far: &Recording,
    defs: &Vec<BlockDef>,
    code: i32,
) -> Result<Rest, EncodeError> {
    let head = slot.head();
    let index = so_far.index();
    let written = index.threads.iter().find(|t| t.thread == head.thread);
    let (instrs, refs) = written.map_or((0, 0), |t| (t.instrs, t.refs));
    let own = index.chunks.iter().filter(|c| c.thread == head.thread);
    let in_spool = head.writing.load(Acquire) == APPENDS && own.count() as u64 >= head.chunks;
    let mut events = parse_journal(slot.journal());
    let mut raw: Vec<Raw> = slot.raw().iter().map(|&w| Raw(w)).collect();
    if in_spool {
        raw.clear();
        events.clear();
    }
    let cut = limits::cut(shared, &raw, events);
    let (mut events, mut raw) = (cut.events, cut.raw.to_vec());
    let held = raw.len();
    let seq = events.last().map_or(0, |e| e.1.seq_end);
    if let Ok(call) = postcard::from_bytes::<Event>(slot.call()) {
        events.push((held, call));
    }
    let exit = Event {
        seq,
        seq_end: seq,
        kind: EventKind::Exit { status: code },
    };
    events.push((held, exit));
    let encoder = ChunkEncoder::new(head.process, head.thread, head.pid, head.tid)?;
    let mut encoder = encoder.resume_at(instrs, refs);
    let mut torn = None;
    loop {
        // What happened in a part that is dropped did happen.
        for (at, _) in &mut events {
            *at = (*at).min(raw.len());
        }
        let mut record = Vec::new();
        let Err(e) = encoder.encode(defs, &raw, &events, &mut record) else {
            let dropped = held - raw.len();
            return Ok(Rest {
                record,
                dropped,
                torn,
            });
        };
        if raw.is_empty() {
            return Err(e);
        }
        raw.truncate(consistent(&raw, &e));
        torn.get_or_insert(e);
    }
}

/// How many entries lie before the execution that cannot be encoded; fewer than
/// there are.
fn consistent(raw: &[Raw], error: &EncodeError) -> usize {
    let (EncodeError::UnknownBlock { entry, .. } | EncodeError::UnknownAccess { entry, .. }) =
        error
    else {
        return 0;
    };
    let up_to = raw.get(..=*entry).unwrap_or(raw);
    let block = up_to.iter().rposition(|r| r.index() == Raw::NO_INDEX);
    block.unwrap_or(0)
}

/// Name of a signal.
pub fn name(signal: i32) -> String {
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
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        _ => return format!("signal {signal}"),
    };
    known.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::Setup;
    use piebald_trace::recording::FileHeader;
    use piebald_trace::recording::model::{AccessDef, AccessKind, Sources};

    fn block(addr: u64) -> BlockDef {
        BlockDef {
            addr,
            bytes: 4,
            instrs: 1,
            accesses: vec![AccessDef {
                insn: 0,
                offset: 0,
                size: 8,
                kind: AccessKind::Load,
                address: Sources::default(),
            }],
            outs: Vec::new(),
        }
    }

    struct Killed {
        dir: tempfile::TempDir,
        shared: Shared,
        _open: std::os::fd::OwnedFd,
        writer: RecordingWriter,
        dictionary: SlotMap,
        thread: SlotMap,
    }

    /// A process with two blocks, of which nothing is in the spool.
    fn killed() -> Killed {
        let dir = tempfile::tempdir().unwrap();
        let header = FileHeader::new(vec!["killed".into()]);
        let writer = RecordingWriter::create(&dir.path().join("out.pbr"), header).unwrap();
        let setup = Setup {
            slots: 8,
            emulator: crate::emulator::Emulator::example(),
            skip: 0,
            limit: None,
            region: None,
            stop_at_limit: false,
        };
        let (shared, open) = Shared::create(&setup).unwrap();
        let dictionary = shared.claim(DICTIONARY, 0, 0).unwrap();
        for addr in [0x1000, 0x2000] {
            assert!(dictionary.write_journal(&postcard::to_stdvec(&block(addr)).unwrap()));
        }
        let thread = shared.claim(THREAD, 0, 0).unwrap();
        Killed {
            dir,
            shared,
            _open: open,
            writer,
            dictionary,
            thread,
        }
    }

    impl Killed {
        fn push(&self, entries: &[Raw]) {
            for &entry in entries {
                // SAFETY: the slot is this test's and has room for thousands.
                unsafe { crate::plugin::push_checked(self.thread.raw_head(), entry.0) };
            }
        }

        fn finish(mut self) -> (Vec<String>, Vec<Raw>) {
            let mut found = Found::default();
            let status = std::os::unix::process::ExitStatusExt::from_raw(9);
            found
                .leftovers(&mut self.writer, &self.shared, status)
                .unwrap();
            self.writer.finish().unwrap();
            let recording = Recording::open(&self.dir.path().join("out.pbr")).unwrap();
            recording.verify().unwrap();
            assert_eq!(
                recording.block_defs(0).unwrap(),
                [block(0x1000), block(0x2000)]
            );
            let chunks = 0..recording.index().chunks.len();
            let raw = chunks.flat_map(|c| recording.raw_chunk(c).unwrap().0);
            (found.missing, raw.collect())
        }
    }

    #[test]
    fn what_is_consistent_is_kept_and_the_rest_is_told() {
        let killed = killed();
        let whole = [
            Raw::block(0),
            Raw::access(0, 64),
            Raw::block(1),
            Raw::access(0, 128),
        ];
        killed.push(&whole);
        killed.push(&[Raw::block(1), Raw::access(3, 0), Raw::block(0)]);
        let (missing, raw) = killed.finish();
        assert_eq!(raw, whole);
        let told = "the last 3 entries of thread ";
        assert!(
            missing[0].starts_with(told) && missing[0].contains("access 3 of block 1"),
            "{missing:?}"
        );
    }

    #[test]
    fn blocks_that_were_written_but_not_noted_are_not_written_twice() {
        let mut killed = killed();
        let mut record = Vec::new();
        encode_dictionary(0, None, 0, &[block(0x1000)], &mut record).unwrap();
        killed.writer.append_record(&record).unwrap();
        assert_eq!(killed.dictionary.head().written, 0);
        let whole = [Raw::block(1), Raw::access(0, 8)];
        killed.push(&whole);
        let (missing, raw) = killed.finish();
        assert_eq!(raw, whole);
        assert_eq!(missing.len(), 1, "{missing:?}");
        assert!(missing[0].ends_with("ended by SIGKILL"), "{missing:?}");
    }

    #[test]
    fn a_chunk_that_was_written_but_not_cleared_is_not_written_twice() {
        let mut killed = killed();
        let whole = [Raw::block(1), Raw::access(0, 8)];
        killed.push(&whole);
        let mut record = Vec::new();
        let head = killed.thread.head();
        let defs = vec![block(0x1000), block(0x2000)];
        ChunkEncoder::new(0, head.thread, head.pid, head.tid)
            .and_then(|mut e| e.encode(&defs, &whole, &[], &mut record))
            .unwrap();
        killed.writer.append_record(&record).unwrap();
        assert!(killed.thread.begin_writing(&killed.shared));
        killed.thread.appends_chunk();
        assert_eq!(killed.finish().1, whole);
    }
}
