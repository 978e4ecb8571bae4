//! Foreign memory traces become recordings.
//!
//! A recording says more than a trace: blocks, mappings, who waits for whom. What a trace lacks
//! is not made up; [`Converted::loses`] and [`Converted::assumes`] say what went and what had to
//! be assumed.
//!
//! * *Blocks.* Where a trace has instruction addresses, a straight run of instructions is a block,
//!   ended by a jump, an event or `blocks::MAX_INSTRS`. Where it has none, a reference with the
//!   instructions before it is one, at address 0 and of 0 bytes: nothing is fetched for it.
//! * *References* keep address, size, kind and the number of instructions before them; addresses
//!   are cut to the 48 bits that a recording holds. Instruction fetches are made again from the
//!   blocks when the recording is replayed.
//! * *Dependences* are stated by a recording through registers. A dependence on a load of the
//!   same execution is kept; the 16 registers serve as a list of the last 16 loads before the
//!   block, so that a dependence on one of these is kept too. One that reaches further is lost.
//! * *Threads* of one process share one dictionary. No trace says who started whom: the first
//!   thread starts the others before its first instruction.
//! * *System calls* keep their number only, as calls that failed: no trace format that is read
//!   here holds arguments.

mod blocks;
mod thread;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use self::blocks::Dictionary;
use self::thread::{Events, Losses};
use crate::foreign::{
    Fetches, ForeignError, ForeignTrace, Format, Identity, Notes, Options, Skipped,
};
use crate::recording::model::{Event, EventKind, NR_REGS};
use crate::recording::{
    Counts, EncodeError, FileHeader, RecordingWriter, WriteError, encode_dictionary,
};
use piebald_units::op::{MemRef, OpSource};

/// Blocks in one dictionary record: keeps a record far below the largest one that is read.
const BLOCKS_PER_RECORD: usize = 1 << 18;
/// Records of a format that tell process and thread come before this many references.
const PREVIEW: usize = 64;
/// Number of `clone` in Linux on x86-64.
const CLONE: u32 = 56;

/// Why a trace was not converted. Nothing is left at the output's place.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// The trace cannot be opened.
    #[error(transparent)]
    Open(#[from] ForeignError),
    /// The trace is damaged; the message names file, offset and what is allowed there.
    #[error("{0}")]
    Broken(String),
    /// There is nothing to record.
    #[error("{}: the trace holds no reference and no instruction; allowed: at least one", path.display())]
    Nothing {
        /// The trace's first file.
        path: PathBuf,
    },
    /// The output would replace the input.
    #[error("{}: the output is the input; allowed: another file", path.display())]
    SameFile {
        /// The file.
        path: PathBuf,
    },
    /// The output cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The blocks or a chunk could not be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// What a conversion made.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Converted {
    /// Format of the trace.
    pub format: Format,
    /// What the recording holds.
    pub counts: Counts,
    /// Blocks in all dictionaries.
    pub distinct_blocks: u64,
    /// What the trace has and the recording has not, in words, with counts.
    pub loses: Vec<String>,
    /// What the recording says and the trace does not, in words.
    pub assumes: Vec<String>,
}

/// Converts the trace in `paths` (see [`ForeignTrace::at`]) to a recording at `out`, which is
/// written as `OUT.partial` and renamed when it is whole.
///
/// # Errors
/// See [`ConvertError`].
pub fn convert<P: AsRef<Path>>(
    paths: &[P],
    format: Option<Format>,
    out: &Path,
) -> Result<Converted, ConvertError> {
    let options = Options {
        fetches: Fetches::All,
        prefetches: false,
    };
    let trace = ForeignTrace::at(paths, format, options)?;
    refuse_same(&trace, out)?;
    let plan = Plan::of(&trace)?;
    let writer = RecordingWriter::create(out, plan.header(&trace))?;
    let partial = writer.partial_path().to_owned();
    let result = Conversion::new(&trace, plan, writer).run();
    if result.is_err() {
        // The error that is reported says more than one about what is left behind.
        let _ = std::fs::remove_file(partial);
    }
    result
}

fn refuse_same(trace: &ForeignTrace, out: &Path) -> Result<(), ConvertError> {
    let Ok(there) = out.canonicalize() else {
        return Ok(());
    };
    let same = |p: &&PathBuf| p.canonicalize().is_ok_and(|p| p == there);
    match trace.files().iter().find(same) {
        Some(path) => Err(ConvertError::SameFile { path: path.clone() }),
        None => Ok(()),
    }
}

/// Numbers of the threads in the recording.
struct Plan {
    threads: Vec<Ids>,
    processes: u32,
    filtered: bool,
    /// Ids that the trace does not tell, or tells twice, were made up.
    numbered: bool,
}

#[derive(Clone, Copy)]
struct Ids {
    process: u32,
    pid: u32,
    tid: u32,
}

impl Plan {
    fn of(trace: &ForeignTrace) -> Result<Self, ConvertError> {
        let mut identities = Vec::new();
        for thread in 0..trace.threads() {
            let mut source = trace.open(thread)?;
            source.fill(&mut [MemRef::default(); PREVIEW]);
            identities.push(source.identity());
        }
        let filtered = trace.format().filtered() || identities.iter().any(|i| i.filtered);
        let told = told(&identities);
        let numbered = told.is_none();
        let made_up = || (0..identities.len() as u32).map(|n| (1, 1 + n)).collect();
        let ids = told.unwrap_or_else(made_up);
        let mut pids: Vec<u32> = Vec::new();
        let mut threads = Vec::new();
        for (pid, tid) in ids {
            let known = pids.iter().position(|p| *p == pid);
            let process = known.unwrap_or_else(|| {
                pids.push(pid);
                pids.len() - 1
            }) as u32;
            threads.push(Ids { process, pid, tid });
        }
        Ok(Self {
            threads,
            processes: pids.len() as u32,
            filtered,
            numbered,
        })
    }

    fn header(&self, trace: &ForeignTrace) -> FileHeader {
        let files = trace.files().iter().take(1);
        let mut header = FileHeader::new(files.map(|f| f.display().to_string()).collect());
        header.cpu = format!("converted from {}", trace.format());
        if self.filtered {
            header.complete = false;
            let what = "references that hit in caches of the tracer";
            header.missing.push(what.to_owned());
        }
        header
    }
}

/// Process and thread of every file, if all tell them and no two are the same thread.
fn told(identities: &[Identity]) -> Option<Vec<(u32, u32)>> {
    let id = |n: Option<u64>| u32::try_from(n?).ok().filter(|n| *n > 0);
    let ids: Vec<(u32, u32)> = identities
        .iter()
        .map(|i| Some((id(i.process)?, id(i.thread.or(i.process))?)))
        .collect::<Option<_>>()?;
    let mut tids: Vec<u32> = ids.iter().map(|i| i.1).collect();
    tids.sort_unstable();
    tids.dedup();
    (tids.len() == ids.len()).then_some(ids)
}

struct Conversion<'a> {
    trace: &'a ForeignTrace,
    plan: Plan,
    writer: RecordingWriter,
    dictionaries: Vec<Dictionary>,
    next_seq: u64,
    losses: Losses,
    skipped: Skipped,
    notes: Notes,
}

impl<'a> Conversion<'a> {
    fn new(trace: &'a ForeignTrace, plan: Plan, writer: RecordingWriter) -> Self {
        let with_dependences = matches!(trace.format(), Format::ChampSim | Format::CloudSuite);
        let dictionaries = (0..plan.processes)
            .map(|_| Dictionary::new(with_dependences))
            .collect();
        Self {
            trace,
            plan,
            writer,
            dictionaries,
            next_seq: 0,
            losses: Losses::default(),
            skipped: Skipped::default(),
            notes: Notes::default(),
        }
    }

    fn run(mut self) -> Result<Converted, ConvertError> {
        for thread in 0..self.trace.threads() {
            self.thread(thread)?;
        }
        if self.dictionaries.iter().all(|d| d.blocks().is_empty()) {
            return Err(ConvertError::Nothing {
                path: self.trace.files().first().cloned().unwrap_or_default(),
            });
        }
        let mut record = Vec::new();
        for (process, dictionary) in self.dictionaries.iter().enumerate() {
            let blocks = dictionary.blocks();
            for (n, part) in blocks.chunks(BLOCKS_PER_RECORD).enumerate() {
                let first = (n * BLOCKS_PER_RECORD) as u32;
                record.clear();
                encode_dictionary(process as u32, None, first, part, &mut record)?;
                self.writer.append_record(&record)?;
            }
        }
        let (loses, assumes) = (self.loses(), self.assumes());
        if self.losses.ends > 0 {
            let cut = format!("the ends of {} threads", self.losses.ends);
            self.writer.header_mut().missing.push(cut);
        }
        let finished = self.writer.finish()?;
        Ok(Converted {
            format: self.trace.format(),
            counts: finished.header.counts,
            distinct_blocks: self
                .dictionaries
                .iter()
                .map(|d| d.blocks().len() as u64)
                .sum(),
            loses,
            assumes,
        })
    }

    fn thread(&mut self, number: usize) -> Result<(), ConvertError> {
        let ids = self.plan.threads[number];
        let mut source = self.trace.open(number)?;
        let mut events = Events::new(&mut self.next_seq);
        events.add(
            0,
            EventKind::Start {
                pid: ids.pid,
                tid: ids.tid,
                argv: match number {
                    0 => self.writer.header_mut().argv.clone(),
                    _ => Vec::new(),
                },
            },
        );
        if number == 0 {
            for child in &self.plan.threads[1..] {
                events.add(0, clone_of(child.tid));
            }
        }
        let losses = thread::convert(
            &mut source,
            self.trace.format(),
            (ids.process, number as u32, ids.pid, ids.tid),
            &mut self.dictionaries[ids.process as usize],
            events,
            &mut self.writer,
        )?;
        self.losses += losses;
        self.skipped += source.skipped();
        self.notes += source.notes();
        Ok(())
    }

    fn loses(&self) -> Vec<String> {
        let (lost, skipped) = (&self.losses, &self.skipped);
        let counted = [
            (
                lost.dependences,
                format!(
                    "dependences on loads that a block cannot name (more than {} loads before it)",
                    NR_REGS
                ),
            ),
            (
                lost.calls,
                "system calls keep their number only: the format has no arguments".to_owned(),
            ),
            (
                lost.ends,
                "threads were cut: their exits are missing, which whole files have".to_owned(),
            ),
            (lost.cut_addresses, "addresses cut to 48 bits".to_owned()),
            (skipped.prefetches, "prefetches".to_owned()),
            (skipped.flushes, "cache flushes".to_owned()),
            (skipped.markers, "markers of the tracer".to_owned()),
        ];
        let counted = counted.into_iter().filter(|(n, _)| *n > 0);
        counted.map(|(n, what)| format!("{n} {what}")).collect()
    }

    fn assumes(&self) -> Vec<String> {
        let format = self.trace.format();
        let mut assumes = Vec::new();
        if self.losses.added_instructions > 0 {
            assumes.push(format!(
                "{} instructions for references that have none of their own",
                self.losses.added_instructions
            ));
        }
        if self.plan.filtered {
            assumes.push(
                "nothing for the references that the tracer's caches kept back: a model with \
                 caches filters them twice"
                    .to_owned(),
            );
        }
        assumes.extend(format.assumes().map(str::to_owned));
        if self.notes.unended_lines > 0 {
            assumes.push("a last line that no line feed ends is whole".to_owned());
        }
        if !format.has_instructions() {
            assumes.push("one instruction address for everything, never fetched".to_owned());
        }
        if !self.dictionaries.iter().any(Dictionary::with_dependences) {
            assumes.push("no load's address depends on another load".to_owned());
        }
        assumes.push("no mappings: pages appear when they are first touched".to_owned());
        if self.plan.threads.len() > 1 {
            let numbers = if self.plan.numbered {
                ", ids made up"
            } else {
                ""
            };
            assumes.push(format!(
                "the first of {} threads starts the others at once{numbers}",
                self.plan.threads.len()
            ));
        }
        assumes
    }
}

fn clone_of(child: u32) -> EventKind {
    EventKind::Call {
        number: CLONE,
        args: [0; 6],
        ret: Some(child.into()),
        path: None,
        file: None,
        position: None,
    }
}

/// An event at one place of the total order.
fn point(seq: u64, kind: EventKind) -> Event {
    Event {
        seq,
        seq_end: seq,
        kind,
    }
}
