//! One record: fixed header, table of sections, sections.
//!
//! All numbers are little endian.
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | magic `PBLDRCD\0` |
//! | 8 | 8 | xxh3-64 of bytes 16.. up to the end of the section table |
//! | 16 | 1 | kind: 1 dictionary, 2 chunk, 3 footer |
//! | 17 | 1 | number of sections |
//! | 18 | 2 | 0 |
//! | 20 | 4 | bytes that follow the header (table and sections) |
//! | 24 | 4 | bytes of all sections when decompressed |
//! | 28 | 16 | process, thread, pid, tid (4 each) |
//! | 44 | 4 | events |
//! | 48 | 24 | first instruction, first reference, instructions (8 each) |
//! | 72 | 8 | references, blocks (4 each) |
//! | 80 | 16 | lowest and highest event place (8 each), 0 without events |
//!
//! The table has 16 bytes for each section: length when decompressed (4), length
//! as stored (4), xxh3-64 of the stored bytes (8). A section whose two lengths
//! are equal is stored as it is; a shorter one is a zstd frame. Because each
//! section has its own checksum, events or blocks can be read, and verified,
//! without the addresses beside them.

use std::ops::Range;

use twox_hash::XxHash3_64;
use zstd::bulk::{Compressor, Decompressor};

use super::{error::EncodeError, varint::PADDING};

/// First bytes of each record.
pub(crate) const RECORD_MAGIC: [u8; 8] = *b"PBLDRCD\0";
/// Length of the fixed header in bytes.
pub(crate) const HEADER_LEN: usize = 96;
/// Length of an entry of the section table in bytes.
const ENTRY_LEN: usize = 16;
/// Most sections that a record may have.
const MAX_SECTIONS: usize = 16;
/// Most bytes that a section may have when decompressed: guards against records
/// that claim absurd sizes.
pub(crate) const MAX_SECTION: usize = 1 << 28;
/// The fastest ordinary level: the recorder compresses while the program runs.
const LEVEL: i32 = 1;

/// What a record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// Blocks of a process.
    Dictionary,
    /// Part of a thread's stream.
    Chunk,
    /// The index.
    Footer,
}

impl RecordKind {
    /// In messages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Dictionary => "dictionary",
            Self::Chunk => "chunk",
            Self::Footer => "footer",
        }
    }
}

/// The fixed header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// What the record holds.
    pub kind: RecordKind,
    /// Process number, unique within the recording.
    pub process: u32,
    /// Thread number, unique within the recording; 0 in a dictionary.
    pub thread: u32,
    /// Linux process id.
    pub pid: u32,
    /// Linux thread id.
    pub tid: u32,
    /// Number of events.
    pub events: u32,
    /// Number of the first instruction in its thread. In a dictionary: id of the
    /// first block.
    pub first_instr: u64,
    /// Number of the first reference in its thread.
    pub first_ref: u64,
    /// Number of instructions.
    pub instrs: u64,
    /// Number of references.
    pub refs: u32,
    /// Number of block executions. In a dictionary: number of blocks.
    pub blocks: u32,
    /// Lowest `seq` of its events, 0 without events.
    pub first_seq: u64,
    /// Highest `seq_end` of its events, 0 without events.
    pub last_seq: u64,
}

impl RecordHeader {
    /// A header of this kind with all numbers 0.
    pub(crate) const fn empty(kind: RecordKind) -> Self {
        Self {
            kind,
            process: 0,
            thread: 0,
            pid: 0,
            tid: 0,
            events: 0,
            first_instr: 0,
            first_ref: 0,
            instrs: 0,
            refs: 0,
            blocks: 0,
            first_seq: 0,
            last_seq: 0,
        }
    }
}

/// One entry of the section table, with its place in the record.
#[derive(Clone, Copy, Debug)]
struct Section {
    raw: usize,
    stored: usize,
    checksum: u64,
    start: usize,
}

/// Header and section table of a record that was found well-formed.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) header: RecordHeader,
    /// Whole length of the record in bytes.
    pub(crate) len: usize,
    sections: Vec<Section>,
}

/// Composes records; keeps the compressor and its memory.
pub(crate) struct Composer {
    compressor: Compressor<'static>,
    scratch: Vec<u8>,
}

impl Composer {
    /// # Errors
    /// The compressor has no memory.
    pub(crate) fn new() -> Result<Self, EncodeError> {
        Ok(Self {
            compressor: Compressor::new(LEVEL)?,
            scratch: Vec::new(),
        })
    }

    /// Appends one record to `out`, which is unchanged on failure.
    ///
    /// # Errors
    /// A section is too large, or the compressor fails.
    pub(crate) fn compose(
        &mut self,
        header: &RecordHeader,
        sections: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let start = out.len();
        let result = self.append(header, sections, out);
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    fn append(
        &mut self,
        header: &RecordHeader,
        sections: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        debug_assert!(sections.len() <= MAX_SECTIONS);
        let start = out.len();
        let table = start + HEADER_LEN;
        out.resize(table + ENTRY_LEN * sections.len(), 0);
        let mut raw_len = 0u64;
        for (i, section) in sections.iter().enumerate() {
            if section.len() > MAX_SECTION {
                return Err(EncodeError::ChunkTooLarge {
                    what: "bytes in a section",
                    allowed: MAX_SECTION as u64,
                });
            }
            raw_len += section.len() as u64;
            let from = out.len();
            self.store(section, out)?;
            let entry = entry_bytes(section.len(), &out[from..]);
            out[table + ENTRY_LEN * i..][..ENTRY_LEN].copy_from_slice(&entry);
        }
        let too_large = |_| EncodeError::ChunkTooLarge {
            what: "bytes in a record",
            allowed: u32::MAX.into(),
        };
        let payload = u32::try_from(out.len() - table).map_err(too_large)?;
        let raw_len = u32::try_from(raw_len).map_err(too_large)?;
        let bytes = header_bytes(header, sections.len() as u8, payload, raw_len);
        out[start..table].copy_from_slice(&bytes);
        let end = table + ENTRY_LEN * sections.len();
        let checksum = XxHash3_64::oneshot(&out[start + 16..end]);
        out[start + 8..start + 16].copy_from_slice(&checksum.to_le_bytes());
        Ok(())
    }

    fn store(&mut self, section: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        if section.is_empty() {
            return Ok(());
        }
        let bound = zstd::zstd_safe::compress_bound(section.len());
        if self.scratch.len() < bound {
            self.scratch.resize(bound, 0);
        }
        let len = self
            .compressor
            .compress_to_buffer(section, &mut self.scratch[..])?;
        if len < section.len() {
            out.extend_from_slice(&self.scratch[..len]);
        } else {
            out.extend_from_slice(section);
        }
        Ok(())
    }
}

fn entry_bytes(raw: usize, stored: &[u8]) -> [u8; ENTRY_LEN] {
    let mut entry = [0; ENTRY_LEN];
    entry[..4].copy_from_slice(&(raw as u32).to_le_bytes());
    entry[4..8].copy_from_slice(&(stored.len() as u32).to_le_bytes());
    entry[8..].copy_from_slice(&XxHash3_64::oneshot(stored).to_le_bytes());
    entry
}

fn header_bytes(h: &RecordHeader, sections: u8, payload: u32, raw: u32) -> [u8; HEADER_LEN] {
    let mut bytes = [0; HEADER_LEN];
    let mut at = 0;
    let mut put = |value: &[u8]| {
        bytes[at..at + value.len()].copy_from_slice(value);
        at += value.len();
    };
    put(&RECORD_MAGIC);
    put(&[0; 8]);
    let kind = match h.kind {
        RecordKind::Dictionary => 1,
        RecordKind::Chunk => 2,
        RecordKind::Footer => 3,
    };
    put(&[kind, sections, 0, 0]);
    for word in [payload, raw, h.process, h.thread, h.pid, h.tid, h.events] {
        put(&word.to_le_bytes());
    }
    for word in [h.first_instr, h.first_ref, h.instrs] {
        put(&word.to_le_bytes());
    }
    for word in [h.refs, h.blocks] {
        put(&word.to_le_bytes());
    }
    for word in [h.first_seq, h.last_seq] {
        put(&word.to_le_bytes());
    }
    bytes
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..at + 4)
        .and_then(|b| b.try_into().ok())
        .map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at..at + 8)
        .and_then(|b| b.try_into().ok())
        .map_or(0, u64::from_le_bytes)
}

/// A flaw: offset from the start of the record, and what is wrong.
pub(crate) type Flaw = (usize, String);

impl Layout {
    /// How many bytes of the record must be at hand for [`Self::parse`]: a look
    /// at the fixed header.
    ///
    /// # Errors
    /// The bytes are no record header.
    pub(crate) fn head_len(bytes: &[u8]) -> Result<usize, Flaw> {
        if bytes.len() < HEADER_LEN {
            let what = format!(
                "record header needs {HEADER_LEN} bytes, {} are left",
                bytes.len()
            );
            return Err((bytes.len(), what));
        }
        if bytes[..8] != RECORD_MAGIC {
            return Err((0, "no record magic".into()));
        }
        let sections = usize::from(bytes[17]);
        if sections > MAX_SECTIONS {
            let what = format!("{sections} sections; at most {MAX_SECTIONS} are allowed");
            return Err((17, what));
        }
        Ok(HEADER_LEN + ENTRY_LEN * sections)
    }

    /// Reads header and section table and verifies their checksum.
    ///
    /// # Errors
    /// Whatever is wrong with them.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Flaw> {
        let head = Self::head_len(bytes)?;
        let Some(covered) = bytes.get(16..head) else {
            let what = format!("section table needs {head} bytes, {} are left", bytes.len());
            return Err((bytes.len(), what));
        };
        if XxHash3_64::oneshot(covered) != u64_at(bytes, 8) {
            return Err((8, "record header does not match its checksum".into()));
        }
        let kind = match bytes[16] {
            1 => RecordKind::Dictionary,
            2 => RecordKind::Chunk,
            3 => RecordKind::Footer,
            other => return Err((16, format!("record kind {other}; 1 to 3 are allowed"))),
        };
        let layout = Self {
            header: parse_header(bytes, kind),
            len: HEADER_LEN + u32_at(bytes, 20) as usize,
            sections: parse_table(&bytes[HEADER_LEN..head], head)?,
        };
        layout.check_lengths(head, u32_at(bytes, 24))?;
        Ok(layout)
    }

    fn check_lengths(&self, head: usize, raw: u32) -> Result<(), Flaw> {
        let end = self.sections.last().map_or(head, |s| s.start + s.stored);
        if end != self.len {
            let what = format!("sections end at {end}, the record at {}", self.len);
            return Err((20, what));
        }
        let sum: usize = self.sections.iter().map(|s| s.raw).sum();
        if sum != raw as usize {
            let what = format!("sections have {sum} bytes, the header says {raw}");
            return Err((24, what));
        }
        Ok(())
    }

    /// Number of sections.
    pub(crate) fn sections(&self) -> usize {
        self.sections.len()
    }

    /// Where a section lies, as offsets from the start of the record.
    pub(crate) fn range(&self, index: usize) -> Option<Range<usize>> {
        let s = self.sections.get(index)?;
        Some(s.start..s.start + s.stored)
    }

    /// Verifies the stored bytes of a section and decompresses them, in place of
    /// what `bytes` holds.
    ///
    /// # Errors
    /// They do not match the table.
    pub(crate) fn unpack(
        &self,
        index: usize,
        stored: &[u8],
        decompressor: &mut Decompressor<'_>,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Flaw> {
        bytes.clear();
        let Some(section) = self.sections.get(index) else {
            return Err((17, format!("section {index} is missing")));
        };
        let flaw = |what: String| (section.start, format!("section {index}: {what}"));
        if stored.len() != section.stored || XxHash3_64::oneshot(stored) != section.checksum {
            return Err(flaw("does not match its checksum".into()));
        }
        if section.stored == section.raw {
            bytes.reserve(section.raw + PADDING);
            bytes.extend_from_slice(stored);
            return Ok(());
        }
        // The frame names its size; asking first avoids reserving what a crafted
        // table claims.
        match zstd::zstd_safe::get_frame_content_size(stored) {
            Ok(Some(size)) if size == section.raw as u64 => {}
            _ => return Err(flaw(format!("frame is not one of {} bytes", section.raw))),
        }
        bytes.reserve(section.raw + PADDING);
        decompressor
            .decompress_to_buffer(stored, bytes)
            .map_err(|e| flaw(format!("cannot be decompressed: {e}")))?;
        if bytes.len() != section.raw {
            let what = format!("has {} bytes instead of {}", bytes.len(), section.raw);
            return Err(flaw(what));
        }
        Ok(())
    }
}

fn parse_header(bytes: &[u8], kind: RecordKind) -> RecordHeader {
    RecordHeader {
        kind,
        process: u32_at(bytes, 28),
        thread: u32_at(bytes, 32),
        pid: u32_at(bytes, 36),
        tid: u32_at(bytes, 40),
        events: u32_at(bytes, 44),
        first_instr: u64_at(bytes, 48),
        first_ref: u64_at(bytes, 56),
        instrs: u64_at(bytes, 64),
        refs: u32_at(bytes, 72),
        blocks: u32_at(bytes, 76),
        first_seq: u64_at(bytes, 80),
        last_seq: u64_at(bytes, 88),
    }
}

fn parse_table(table: &[u8], head: usize) -> Result<Vec<Section>, Flaw> {
    let mut start = head;
    let mut sections = Vec::with_capacity(table.len() / ENTRY_LEN);
    for (i, entry) in table.chunks_exact(ENTRY_LEN).enumerate() {
        let (raw, stored) = (u32_at(entry, 0) as usize, u32_at(entry, 4) as usize);
        if raw > MAX_SECTION || stored > raw {
            let what = format!(
                "section {i}: {stored} bytes stored for {raw}; at most {MAX_SECTION} and no more than that are allowed"
            );
            return Err((HEADER_LEN + ENTRY_LEN * i, what));
        }
        sections.push(Section {
            raw,
            stored,
            checksum: u64_at(entry, 8),
            start,
        });
        start += stored;
    }
    Ok(sections)
}
