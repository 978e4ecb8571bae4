//! The file around the records: header, footer, trailer.
//!
//! | bytes | content |
//! |---|---|
//! | 8 | magic `PBLDREC\0` |
//! | 2, 2 | major and minor version |
//! | 4 | length of the JSON text, padding included |
//! | .. | JSON text ([`FileHeader`]), padded with spaces |
//! | 8 | xxh3-64 of everything before |
//! | .. | records, in any order |
//! | .. | the footer: a record whose one section is the [`Index`] in postcard |
//! | 8, 8, 8 | offset and length of the footer, magic `PBLDEND\0` |

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use super::{
    error::EncodeError,
    record::{Composer, RecordHeader, RecordKind},
};

/// First bytes of the file.
pub const FILE_MAGIC: [u8; 8] = *b"PBLDREC\0";
/// Last bytes of a finished file.
pub(crate) const END_MAGIC: [u8; 8] = *b"PBLDEND\0";
/// Written, and the only one that is read: chunks of 1.x were packed by other
/// predictors.
pub const MAJOR: u16 = 2;
/// Written; a higher one is read.
pub const MINOR: u16 = 1;
/// Bytes before the JSON text.
pub(crate) const PREFIX_LEN: usize = 16;
/// Bytes after it: the checksum.
pub(crate) const SUFFIX_LEN: usize = 8;
/// Length of the trailer in bytes.
pub(crate) const TRAILER_LEN: usize = 24;
/// The header takes a multiple of this.
const HEADER_UNIT: usize = 4096;
/// Room for numbers that grow between creation and completion.
const HEADER_SLACK: usize = 512;
/// Longest JSON text that is read.
pub(crate) const MAX_JSON: usize = 1 << 24;

/// How much a recording holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Processes, every executed image counted.
    pub processes: u64,
    /// Threads as they were recorded (an `exec` begins a new one).
    pub threads: u64,
    /// Chunks.
    pub chunks: u64,
    /// Instructions of all threads.
    pub instructions: u64,
    /// References of all threads.
    pub references: u64,
    /// Block executions of all threads.
    pub blocks: u64,
    /// Events of all threads.
    pub events: u64,
}

/// A system call that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedCall {
    /// Its number on the recorded architecture.
    pub number: u32,
    /// Its name; its number in digits if the recorder knew no name.
    pub name: String,
    /// How many times.
    pub count: u64,
}

impl core::fmt::Display for RefusedCall {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            f,
            "{} ({} time{})",
            self.name,
            self.count,
            if self.count == 1 { "" } else { "s" }
        )
    }
}

/// What the file says about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHeader {
    /// The command that was recorded.
    pub argv: Vec<String>,
    /// SHA-256 of the program's file, in hexadecimal; empty for built-in
    /// programs.
    #[serde(default)]
    pub binary_sha256: String,
    /// The processor that the program saw.
    #[serde(default)]
    pub cpu: String,
    /// Bytes in a page.
    #[serde(default = "default_page_size")]
    pub page_size: u32,
    /// It begins in the middle of the program: what the program touched before is not known.
    #[serde(default)]
    pub midway: bool,
    /// False while it is being written, and if something could not be recorded.
    pub complete: bool,
    /// Why it is not complete, for people.
    #[serde(default)]
    pub missing: Vec<String>,
    /// System calls that the emulator refused although the kernel below has them, by number: the
    /// program may have gone another way than on the kernel itself.
    ///
    /// This and the next are left out where they are empty, and readers that do not know them pass
    /// over them: no new minor version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedCall>,
    /// What else the user of the recording should know, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// How much it holds; zeros while it is being written.
    #[serde(default)]
    pub counts: Counts,
}

const fn default_page_size() -> u32 {
    piebald_units::PAGE_SIZE as u32
}

impl FileHeader {
    /// A header for this command; complete once the recording is finished.
    pub fn new(argv: Vec<String>) -> Self {
        Self {
            argv,
            binary_sha256: String::new(),
            cpu: String::new(),
            page_size: default_page_size(),
            midway: false,
            complete: true,
            missing: Vec::new(),
            refused: Vec::new(),
            remarks: Vec::new(),
            counts: Counts::default(),
        }
    }

    fn json(&self) -> Vec<u8> {
        // Strings, numbers and lists always serialize.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Length of a header in the file that leaves room for growing numbers, and for `room` bytes
    /// of text.
    pub(crate) fn reserve(&self, room: usize) -> usize {
        let needed = PREFIX_LEN + self.json().len() + HEADER_SLACK + room + SUFFIX_LEN;
        needed.next_multiple_of(HEADER_UNIT)
    }

    /// The header's bytes, exactly `len` of them.
    ///
    /// # Errors
    /// The number of bytes needed, if `len` is less.
    pub(crate) fn to_bytes(&self, len: usize) -> Result<Vec<u8>, usize> {
        let json = self.json();
        let needed = PREFIX_LEN + json.len() + SUFFIX_LEN;
        if needed > len {
            return Err(needed);
        }
        let text = len - PREFIX_LEN - SUFFIX_LEN;
        let mut bytes = FILE_MAGIC.to_vec();
        bytes.extend(MAJOR.to_le_bytes());
        bytes.extend(MINOR.to_le_bytes());
        bytes.extend((text as u32).to_le_bytes());
        bytes.extend(json);
        bytes.resize(len - SUFFIX_LEN, b' ');
        let checksum = XxHash3_64::oneshot(&bytes);
        bytes.extend(checksum.to_le_bytes());
        Ok(bytes)
    }
}

/// Where a chunk lies and what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkEntry {
    /// Byte offset of its record.
    pub offset: u64,
    /// Length of its record in bytes.
    pub len: u64,
    /// Thread number.
    pub thread: u32,
    /// Process number.
    pub process: u32,
    /// Number of its first instruction in the thread.
    pub first_instr: u64,
    /// Number of its first reference in the thread.
    pub first_ref: u64,
    /// Instructions.
    pub instrs: u64,
    /// References.
    pub refs: u32,
    /// Block executions.
    pub blocks: u32,
    /// Events.
    pub events: u32,
    /// Lowest event place, 0 without events.
    pub first_seq: u64,
    /// Highest event place, 0 without events.
    pub last_seq: u64,
}

impl ChunkEntry {
    pub(crate) fn new(offset: u64, len: u64, h: &RecordHeader) -> Self {
        Self {
            offset,
            len,
            thread: h.thread,
            process: h.process,
            first_instr: h.first_instr,
            first_ref: h.first_ref,
            instrs: h.instrs,
            refs: h.refs,
            blocks: h.blocks,
            events: h.events,
            first_seq: h.first_seq,
            last_seq: h.last_seq,
        }
    }
}

impl ChunkEntry {
    /// Is something missing between the chunk before it in its thread and this?
    pub(crate) fn lacks(&self, before: Option<&Self>) -> bool {
        let Some(before) = before else {
            return self.first_instr != 0 || self.first_ref != 0;
        };
        before.first_instr.checked_add(before.instrs) != Some(self.first_instr)
            || before.first_ref.checked_add(before.refs.into()) != Some(self.first_ref)
            || before.process != self.process
    }
}

/// Where a dictionary record lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DictionaryEntry {
    /// Byte offset of its record.
    pub offset: u64,
    /// Length of its record in bytes.
    pub len: u64,
    /// Process number.
    pub process: u32,
    /// Id of its first block.
    pub first: u32,
    /// Number of blocks.
    pub blocks: u32,
}

/// A thread as it was recorded: it ends where its process starts another image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadEntry {
    /// Thread number.
    pub thread: u32,
    /// Process number.
    pub process: u32,
    /// Linux process id.
    pub pid: u32,
    /// Linux thread id.
    pub tid: u32,
    /// Instructions.
    pub instrs: u64,
    /// References.
    pub refs: u64,
}

/// Where everything is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// Chunks, by thread and instruction.
    pub chunks: Vec<ChunkEntry>,
    /// Dictionary records, by process and first block.
    pub dictionaries: Vec<DictionaryEntry>,
    /// Threads, by number.
    pub threads: Vec<ThreadEntry>,
}

impl Index {
    /// Adds a record.
    pub(crate) fn add(&mut self, offset: u64, len: u64, h: &RecordHeader) {
        match h.kind {
            RecordKind::Chunk => {
                self.chunks.push(ChunkEntry::new(offset, len, h));
                self.threads.push(ThreadEntry {
                    thread: h.thread,
                    process: h.process,
                    pid: h.pid,
                    tid: h.tid,
                    instrs: 0,
                    refs: 0,
                });
            }
            RecordKind::Dictionary => self.dictionaries.push(DictionaryEntry {
                offset,
                len,
                process: h.process,
                first: u32::try_from(h.first_instr).unwrap_or(u32::MAX),
                blocks: h.blocks,
            }),
            RecordKind::Footer => {}
        }
    }

    /// Puts what was added in order and sums the threads up; changes nothing if
    /// that was done.
    pub(crate) fn settle(&mut self) {
        self.chunks
            .sort_by_key(|c| (c.thread, c.first_instr, c.offset));
        self.dictionaries
            .sort_by_key(|d| (d.process, d.first, d.offset));
        self.threads.sort_by_key(|t| t.thread);
        self.threads.dedup_by_key(|t| t.thread);
        for thread in &mut self.threads {
            let from = self.chunks.partition_point(|c| c.thread < thread.thread);
            let own = self.chunks[from..]
                .iter()
                .take_while(|c| c.thread == thread.thread);
            (thread.instrs, thread.refs) = (0, 0);
            for chunk in own {
                thread.instrs = thread.instrs.saturating_add(chunk.instrs);
                thread.refs = thread.refs.saturating_add(chunk.refs.into());
            }
        }
    }

    /// The first chunk before which another one is missing, and the instruction
    /// number at which that one begins.
    pub(crate) fn first_gap(&self) -> Option<(u64, &ChunkEntry)> {
        let mut previous: Option<&ChunkEntry> = None;
        for chunk in &self.chunks {
            let before = previous.filter(|p| p.thread == chunk.thread);
            if chunk.lacks(before) {
                let end = before.map_or(0, |p| p.first_instr.saturating_add(p.instrs));
                return Some((end, chunk));
            }
            previous = Some(chunk);
        }
        None
    }

    /// Is a chunk missing?
    pub(crate) fn has_gaps(&self) -> bool {
        self.first_gap().is_some()
    }

    /// Sums.
    pub fn counts(&self) -> Counts {
        let mut processes: Vec<u32> = self.threads.iter().map(|t| t.process).collect();
        processes.sort_unstable();
        processes.dedup();
        let mut counts = Counts {
            processes: processes.len() as u64,
            threads: self.threads.len() as u64,
            chunks: self.chunks.len() as u64,
            ..Counts::default()
        };
        for chunk in &self.chunks {
            counts.instructions = counts.instructions.saturating_add(chunk.instrs);
            counts.references = counts.references.saturating_add(chunk.refs.into());
            counts.blocks = counts.blocks.saturating_add(chunk.blocks.into());
            counts.events = counts.events.saturating_add(chunk.events.into());
        }
        counts
    }

    /// Footer record and trailer for a file that ends at `offset`.
    ///
    /// # Errors
    /// The index is too large for a record.
    pub(crate) fn to_footer(&self, offset: u64) -> Result<Vec<u8>, EncodeError> {
        let mut out = Vec::new();
        let section = postcard::to_allocvec(self)?;
        let header = RecordHeader::empty(RecordKind::Footer);
        Composer::new()?.compose(&header, &[&section], &mut out)?;
        let len = out.len() as u64;
        out.extend(offset.to_le_bytes());
        out.extend(len.to_le_bytes());
        out.extend(END_MAGIC);
        Ok(out)
    }
}
