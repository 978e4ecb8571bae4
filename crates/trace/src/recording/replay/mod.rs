//! A recorded thread as an [`OpSource`].

mod depend;
mod engine;

use std::{collections::VecDeque, ops::Range, sync::Arc};

use piebald_units::op::{Filled, MemRef, Next, OpSource};

use self::engine::{Engine, Executed};
use super::{
    analysis::Analysis,
    chunk::ChunkReader,
    data::Unpacker,
    decode::{Fault, Placed},
    error::ReadError,
    file::ChunkEntry,
    reader::Recording,
    translate,
};

/// Instructions without a reference after which they are reported anyway.
const LONG_GAP: u64 = 1 << 30;

/// What a replay gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayOptions {
    /// Instruction fetches too, one for each 64 B line that a block spans unless
    /// it is the line fetched last.
    pub fetches: bool,
    /// Fill in [`MemRef::dep`]; otherwise 0.
    pub dependences: bool,
    /// Start at the first block that begins at this instruction of the thread or
    /// after it.
    pub start_at: u64,
    /// With `start_at`: first yield the mappings that the process has by then.
    pub mappings: bool,
    /// End ([`Next::End`]) after the block that reaches this many references,
    /// fetches not counted.
    pub max_refs: Option<u64>,
    /// End after the block that reaches this many instructions.
    pub max_instrs: Option<u64>,
}

impl Default for ReplayOptions {
    fn default() -> Self {
        Self {
            fetches: false,
            dependences: true,
            start_at: 0,
            mappings: true,
            max_refs: None,
            max_instrs: None,
        }
    }
}

/// A thread of a recording, from its start to its exit, through any number of
/// `exec`s.
pub struct RecordedThread {
    recording: Recording,
    analysis: Arc<Analysis>,
    options: ReplayOptions,
    /// Recorded threads that follow one another, the current one first.
    segments: VecDeque<u32>,
    /// Chunks of the current segment that were not begun.
    chunks: Range<usize>,
    before: Option<ChunkEntry>,
    engine: Engine,
    reader: Option<ChunkReader>,
    unpacker: Unpacker,
    events: VecDeque<Placed>,
    /// Executions of the chunk that were begun.
    begun: u32,
    spill: Spill,
    /// References and instructions after which to end.
    limits: (u64, u64),
    queue: VecDeque<Next>,
    done: Done,
    failure: Option<String>,
}

/// References of one execution that did not fit, or that an event divides.
#[derive(Default)]
struct Spill {
    refs: Vec<MemRef>,
    at: usize,
    fetches: usize,
}

impl Spill {
    fn is_empty(&self) -> bool {
        self.at == self.refs.len()
    }

    /// Makes room for an execution.
    fn prepare(&mut self, room: usize) -> &mut [MemRef] {
        self.refs.resize(room, MemRef::default());
        self.at = 0;
        &mut self.refs
    }

    /// The execution was written.
    fn filled(&mut self, executed: &Executed) {
        self.refs.truncate(executed.refs);
        self.fetches = executed.fetches;
    }
}

/// How far the replay got.
#[derive(Default)]
struct Done {
    refs: u64,
    instrs: u64,
    /// Nothing follows but this.
    end: Option<Next>,
}

impl Recording {
    /// A thread of the program ([`Self::threads`]) as a source of operations.
    ///
    /// # Errors
    /// There is no such thread or place, or the recording is damaged.
    pub fn source(&self, thread: u32, options: ReplayOptions) -> Result<RecordedThread, ReadError> {
        let analysis = self.analysis()?;
        let Some(found) = analysis.threads.iter().find(|t| t.thread == thread) else {
            return Err(ReadError::NoThread {
                file: self.name().into(),
                thread,
                known: analysis.known_threads(),
            });
        };
        let mut segments: VecDeque<u32> = found.segments.iter().copied().collect();
        let total = found.instrs;
        let mut start = options.start_at;
        while segments.len() > 1 && start >= self.segment_instrs(segments[0]) && start > 0 {
            start -= self.segment_instrs(segments[0]);
            segments.pop_front();
        }
        if options.start_at > total {
            return Err(ReadError::NoPlace {
                file: self.name().into(),
                thread,
                instrs: total,
                start: options.start_at,
            });
        }
        let mut source = RecordedThread::new(self.clone(), analysis, options, segments)?;
        if options.start_at > 0 {
            source.seek(start)?;
        }
        Ok(source)
    }

    fn segment_instrs(&self, thread: u32) -> u64 {
        let threads = &self.index().threads;
        let found = threads.binary_search_by_key(&thread, |t| t.thread);
        found.map_or(0, |i| threads[i].instrs)
    }

    /// The chunks of a recorded thread.
    pub(crate) fn chunks_of(&self, thread: u32) -> Range<usize> {
        let chunks = &self.index().chunks;
        let from = chunks.partition_point(|c| c.thread < thread);
        from..chunks.partition_point(|c| c.thread <= thread)
    }
}

impl RecordedThread {
    fn new(
        recording: Recording,
        analysis: Arc<Analysis>,
        options: ReplayOptions,
        segments: VecDeque<u32>,
    ) -> Result<Self, ReadError> {
        let chunks = segments.front().map_or(0..0, |&s| recording.chunks_of(s));
        let process = recording.index().chunks.get(chunks.start);
        let dictionary = match process {
            Some(chunk) => recording.dictionary(chunk.process)?,
            None => Arc::default(),
        };
        Ok(Self {
            engine: Engine::new(dictionary, options.dependences, options.fetches),
            recording,
            analysis,
            options,
            segments,
            chunks,
            before: None,
            reader: None,
            unpacker: Unpacker::default(),
            events: VecDeque::new(),
            begun: 0,
            spill: Spill::default(),
            limits: (
                options.max_refs.unwrap_or(u64::MAX),
                options.max_instrs.unwrap_or(u64::MAX),
            ),
            queue: VecDeque::new(),
            done: Done::default(),
            failure: None,
        })
    }

    /// Passes over the segment's first `start` instructions.
    fn seek(&mut self, start: u64) -> Result<(), ReadError> {
        let entries = &self.recording.index().chunks;
        let within = |c: &ChunkEntry| c.first_instr.saturating_add(c.instrs) <= start;
        let skip = entries[self.chunks.clone()].partition_point(within);
        let first = self.chunks.start + skip;
        let mut last_seq = entries[self.chunks.start..first]
            .iter()
            .filter(|c| c.events > 0)
            .map(|c| c.last_seq)
            .max();
        self.before = first
            .checked_sub(1)
            .filter(|&i| i >= self.chunks.start)
            .map(|i| entries[i]);
        self.chunks.start = first;
        let mut at = entries.get(first).map_or(start, |c| c.first_instr);
        let mut scratch = Vec::new();
        // Up to the block, and over the events that lie right before it.
        while self.reader.as_ref().is_none_or(|r| r.blocks_left() == 0) && self.next_chunk()? {
            while at < start && self.reader.as_ref().is_some_and(|r| r.blocks_left() > 0) {
                at += self.execute_into(&mut scratch)?;
            }
            while let Some(event) = self.events.pop_front_if(|e| e.blocks <= self.begun) {
                last_seq = last_seq.max(Some(event.event.seq));
            }
        }
        self.engine.carry = 0;
        self.done = Done::default();
        if let (true, Some(seq)) = (self.options.mappings, last_seq) {
            let process = self.segment_process();
            let space = self.analysis.space_at(process, seq);
            self.queue.extend(space.into_iter().map(Next::Sys));
        }
        Ok(())
    }

    fn segment_process(&self) -> u32 {
        let chunks = self
            .segments
            .front()
            .map_or(0..0, |&s| self.recording.chunks_of(s));
        let entries = &self.recording.index().chunks;
        entries.get(chunks.start).map_or(0, |c| c.process)
    }

    /// Executes the next block into a vector; returns its instructions.
    fn execute_into(&mut self, out: &mut Vec<MemRef>) -> Result<u64, ReadError> {
        let Some(reader) = &mut self.reader else {
            return Ok(0);
        };
        let data = &self.recording.0.data;
        let offset = reader.entry.offset;
        let fail = |fault: Fault| data.corrupt(offset, fault.to_string());
        let dictionary = self.engine.dictionary.clone();
        let execution = reader
            .execution(&mut self.engine.tables, &dictionary)
            .map_err(fail)?;
        out.resize(
            self.engine.room(execution.0, execution.2),
            MemRef::default(),
        );
        let executed = self
            .engine
            .execute(&dictionary, reader, execution, out)
            .map_err(fail)?;
        self.count(1, &executed);
        Ok(executed.instrs)
    }

    #[inline]
    fn count(&mut self, blocks: usize, executed: &Executed) {
        self.begun += blocks as u32;
        self.done.refs += (executed.refs - executed.fetches) as u64;
        self.done.instrs += executed.instrs;
    }

    /// Begins the next chunk; false at the end of the last segment.
    fn next_chunk(&mut self) -> Result<bool, ReadError> {
        if let Some(reader) = self.reader.take() {
            let data = &self.recording.0.data;
            let offset = reader.entry.offset;
            let fail = |fault: Fault| data.corrupt(offset, fault.to_string());
            reader.finish().map_err(fail)?;
            reader.give_back(&mut self.unpacker);
            if !self.events.is_empty() {
                return Err(fail(Fault::EventBeyond));
            }
        }
        while self.chunks.is_empty() {
            if !self.next_segment()? {
                return Ok(false);
            }
        }
        let entry = self.recording.index().chunks[self.chunks.start];
        self.chunks.start += 1;
        if entry.lacks(self.before.as_ref()) {
            let what = format!(
                "a chunk of thread {} is missing before instruction {}",
                entry.thread, entry.first_instr
            );
            return Err(self.recording.0.data.corrupt(entry.offset, what));
        }
        self.engine.reset();
        let layout = self.recording.chunk_layout(&entry)?;
        let unpacker = &mut self.unpacker;
        self.reader = Some(ChunkReader::open(
            &self.recording,
            &entry,
            &layout,
            unpacker,
        )?);
        self.events = self.recording.placed_events(&entry, &layout)?.into();
        self.begun = 0;
        self.before = Some(entry);
        Ok(true)
    }

    fn next_segment(&mut self) -> Result<bool, ReadError> {
        self.segments.pop_front();
        let Some(&segment) = self.segments.front() else {
            return Ok(false);
        };
        self.chunks = self.recording.chunks_of(segment);
        self.before = None;
        let dictionary = self.recording.dictionary(self.segment_process())?;
        let carry = self.engine.carry;
        self.engine = Engine::new(dictionary, self.options.dependences, self.options.fetches);
        self.engine.carry = carry;
        Ok(true)
    }

    /// The event that is due now, if any.
    fn due(&mut self) -> Option<Placed> {
        // References of the last execution that were given; none before its fetches.
        let reached = match self.spill.is_empty() {
            true => Some(u32::MAX),
            false => (self.spill.at.checked_sub(self.spill.fetches)).map(|refs| refs as u32),
        };
        self.events.pop_front_if(|e| {
            e.blocks < self.begun
                || e.blocks == self.begun && reached.is_some_and(|reached| e.refs <= reached)
        })
    }

    #[inline]
    fn limit_reached(&self) -> bool {
        self.done.refs >= self.limits.0 || self.done.instrs >= self.limits.1
    }

    /// What ends the batch now, if anything does.
    fn next_op(&mut self) -> Option<Next> {
        loop {
            if let Some(next) = self.queue.pop_front() {
                if matches!(next, Next::Exit(_)) {
                    self.done.end = Some(Next::End);
                }
                return Some(next);
            }
            let placed = self.due()?;
            translate::event(&placed.event, &self.analysis, &mut self.queue);
        }
    }

    /// Instructions that the host has not heard of, unless references of the
    /// same execution are still to come: these will count them.
    fn tail(&mut self) -> u32 {
        if !self.spill.is_empty() {
            return 0;
        }
        u32::try_from(std::mem::take(&mut self.engine.carry)).unwrap_or(u32::MAX)
    }

    /// Copies spilled references up to the next event among them.
    fn drain(&mut self, out: &mut [MemRef]) -> usize {
        let upto = match self.events.front() {
            Some(e) if e.blocks == self.begun => self.spill.fetches.saturating_add(e.refs as usize),
            _ => usize::MAX,
        };
        let upto = upto.min(self.spill.refs.len());
        let count = upto.saturating_sub(self.spill.at).min(out.len());
        out[..count].copy_from_slice(&self.spill.refs[self.spill.at..self.spill.at + count]);
        self.spill.at += count;
        count
    }

    fn fill_or_fail(&mut self, out: &mut [MemRef]) -> Result<Filled, (usize, ReadError)> {
        let mut refs = 0;
        loop {
            if let Some(next) = self.done.end {
                let tail = self.tail();
                return Ok(Filled { refs, tail, next });
            }
            refs += self.drain(&mut out[refs..]);
            if let Some(next) = self.next_op() {
                let tail = self.tail();
                return Ok(Filled { refs, tail, next });
            }
            if refs == out.len() {
                return Ok(Filled {
                    refs,
                    tail: 0,
                    next: Next::More,
                });
            }
            if self.engine.carry >= LONG_GAP {
                let (tail, next) = (self.tail(), Next::More);
                return Ok(Filled { refs, tail, next });
            }
            if self.limit_reached() {
                self.done.end = Some(Next::End);
                continue;
            }
            refs += self.advance(&mut out[refs..]).map_err(|e| (refs, e))?;
        }
    }

    /// Executes blocks while their references fit and no event is due; the last
    /// execution may spill.
    fn advance(&mut self, out: &mut [MemRef]) -> Result<usize, ReadError> {
        if self.reader.as_ref().is_none_or(|r| r.blocks_left() == 0) {
            if !self.next_chunk()? {
                self.done.end = Some(Next::End);
            }
            return Ok(0);
        }
        let stop = self.events.front().map_or(u32::MAX, |e| e.blocks);
        let dictionary = self.engine.dictionary.clone();
        let mut refs = 0;
        while self.begun < stop && !self.limit_reached() && self.engine.carry < LONG_GAP {
            let most = self.unhindered(stop, out.len() - refs);
            let Some(reader) = self.reader.as_mut().filter(|r| r.blocks_left() > 0) else {
                break;
            };
            let data = &self.recording.0.data;
            let offset = reader.entry.offset;
            let fail = |fault: Fault| data.corrupt(offset, fault.to_string());
            if most > 0 {
                let made = self
                    .engine
                    .regulars(&dictionary, reader, most, &mut out[refs..])
                    .map_err(fail)?;
                if made.blocks > 0 {
                    self.count(made.blocks, &made.executed);
                    refs += made.executed.refs;
                    continue;
                }
            }
            let execution = reader
                .execution(&mut self.engine.tables, &dictionary)
                .map_err(fail)?;
            let room = self.engine.room(execution.0, execution.2);
            // An event may divide the execution before it.
            let spills = self.begun + 1 == stop || room > out.len() - refs;
            let to = match spills {
                true => self.spill.prepare(room),
                false => &mut out[refs..],
            };
            let executed = self
                .engine
                .execute(&dictionary, reader, execution, to)
                .map_err(fail)?;
            self.count(1, &executed);
            if spills {
                self.spill.filled(&executed);
                break;
            }
            refs += executed.refs;
        }
        Ok(refs)
    }

    /// How many executions may follow one another, whatever they are, without
    /// reaching a limit, a long gap or, with the last execution before it, an event.
    fn unhindered(&self, stop: u32, room: usize) -> usize {
        const MOST_INSTRS: u64 = u16::MAX as u64;
        if self.limits.0 - self.done.refs <= room as u64 {
            return 0;
        }
        let until_event = u64::from(stop - self.begun - 1);
        let until_gap = (LONG_GAP - 1 - self.engine.carry) / MOST_INSTRS;
        let until_limit = (self.limits.1 - 1 - self.done.instrs) / MOST_INSTRS;
        until_event.min(until_gap).min(until_limit) as usize
    }
}

impl OpSource for RecordedThread {
    fn fill(&mut self, out: &mut [MemRef]) -> Filled {
        match self.fill_or_fail(out) {
            Ok(filled) => filled,
            Err((refs, error)) => {
                self.failure = Some(error.to_string());
                self.done.end = Some(Next::Broken);
                let (tail, next) = (0, Next::Broken);
                Filled { refs, tail, next }
            }
        }
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}
