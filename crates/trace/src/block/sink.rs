//! Where parsers put their requests, and what they count beside them.

use std::collections::BTreeMap;

use super::names::{Devices, Files};
use super::request::{FileKey, Nanos, NextUse, Op, Request, Target};
use crate::about::{ByteOrder, Origin};
use crate::foreign::error::Complaint;

/// End of the largest device: 8 EiB.
const MAX_SECTOR: u64 = 1 << 54;
/// End of the largest file: offsets have a sign.
const MAX_OFFSET: u64 = 1 << 63;

/// Records that became no request although nothing is wrong with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Passed {
    /// Comments, blank lines, headers, checkpoints.
    pub comments: u64,
    /// Cache flushes.
    pub flushes: u64,
    /// Discards of blocks.
    pub discards: u64,
    /// Requests of no length.
    pub empty: u64,
    /// Stages of a request other than the one that is read (completions, merges), commands that
    /// move no data, system calls that touch no file's data.
    pub others: u64,
    /// Requests to something that is not a file on a disk: pipes, sockets, `/proc`, `/dev`, and
    /// paths that [`Options::under`](super::Options::under) leaves out.
    pub elsewhere: u64,
    /// Requests to a file that the trace does not name (a descriptor opened before tracing began,
    /// without `strace -y`; a relative path with an unknown directory).
    pub unresolved: u64,
}

/// What was done to requests that were kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Notes {
    /// Requests not aligned to 512 B, which were widened to whole sectors.
    pub widened: u64,
    /// Requests whose time lies before the latest one so far. The time is left as it is.
    pub backward: u64,
    /// Largest such step back, in nanoseconds.
    pub largest_step_back_ns: u64,
    /// Descriptors seen first in use, at an offset that is not known: taken as 0.
    pub assumed_offsets: u64,
    /// Writes that append to a file whose end is not known: taken to begin behind what is known of it.
    #[serde(skip)]
    pub assumed_ends: u64,
    /// Mappings beyond an end of file that is not known.
    pub unclipped_maps: u64,
    /// Requests to files that were opened with `O_DIRECT`, which pass the page cache by.
    pub direct: u64,
    /// Requests that a device handed on to another one: both have them.
    pub remapped: u64,
    /// Calls that gave files other names or took names away.
    #[serde(skip)]
    pub moved_names: u64,
    /// Comments among the records of a text in columns that have as many columns as these.
    #[serde(skip)]
    pub like_records: u64,
    /// 1 if no line feed ends the last line of a text. It parses, and is taken as whole, but a number
    /// that was cut in half looks like a number, too.
    pub unended_lines: u64,
    /// 1 if a byte order mark of UTF-8 stood before the text, which was dropped.
    pub byte_order_marks: u64,
}

/// Records that ask for data of files, or load and drop their pages, and become no request, since
/// the trace does not say which data.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub struct LeftOut {
    by_name: BTreeMap<&'static str, u64>,
}

impl LeftOut {
    /// Counts some under the name of a call, and of what it did where that matters.
    pub(crate) fn count(&mut self, name: &'static str, times: u64) {
        *self.by_name.entry(name).or_default() += times;
    }

    /// Was nothing left out?
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Each with its number, as in `io_uring_enter 12`.
    pub fn told(&self) -> Vec<String> {
        let all = self.by_name.iter();
        all.map(|(name, n)| format!("{name} {n}")).collect()
    }
}

/// Records that lenient reading left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Skipped {
    /// How many, by the field that was wrong.
    pub by_field: BTreeMap<&'static str, u64>,
    /// What strict reading would have said of the first.
    pub first: Option<String>,
}

impl Skipped {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.by_field.values().sum()
    }

    pub(crate) fn note(&mut self, field: &'static str, why: impl FnOnce() -> String) {
        *self.by_field.entry(field).or_default() += 1;
        self.first.get_or_insert_with(why);
    }
}

/// What a reader keeps beside its requests.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// What the stamps of this file count from, where only the file tells.
    pub origin: Option<Origin>,
    /// Byte order of the machine that was traced, where the file tells: files of one clock have one.
    pub byte_order: Option<ByteOrder>,
    pub passed: Passed,
    pub left_out: LeftOut,
    pub notes: Notes,
    pub files: Files,
    pub devices: Devices,
    /// Latest time so far.
    pub latest: Option<Nanos>,
}

/// Takes the requests of a parser.
pub(crate) struct Sink<'a> {
    pub out: &'a mut Vec<Request>,
    pub state: &'a mut State,
}

impl Sink<'_> {
    /// Sectors of 512 B.
    pub fn sectors(
        &mut self,
        (time, task, op): (Option<Nanos>, u32, Op),
        device: u32,
        sector: u64,
        sectors: u64,
    ) -> Result<(), Complaint> {
        let fits = sector
            .checked_add(sectors)
            .is_some_and(|end| end <= MAX_SECTOR);
        if !fits {
            return Err(Complaint::new(
                "the last sector",
                format!("{} + {}", sector, sectors),
                "up to 18014398509481984 (8 EiB)",
            ));
        }
        let target = Target::Device {
            device,
            sector,
            sectors,
        };
        self.push(time, task, op, target, sectors == 0);
        Ok(())
    }

    /// A length in bytes as whole sectors; one that is none is widened and counted.
    pub const fn whole_sectors(&mut self, bytes: u64) -> u64 {
        if !bytes.is_multiple_of(512) {
            self.state.notes.widened += 1;
        }
        bytes.div_ceil(512)
    }

    /// Bytes of a device, widened to whole sectors.
    pub fn bytes(
        &mut self,
        what: (Option<Nanos>, u32, Op),
        device: u32,
        offset: u64,
        length: u64,
    ) -> Result<(), Complaint> {
        let end = end_of(offset, length)?;
        let first = offset / 512;
        let sectors = match length {
            0 => 0,
            _ => end.div_ceil(512) - first,
        };
        if !(offset | length).is_multiple_of(512) {
            self.state.notes.widened += 1;
        }
        self.sectors(what, device, first, sectors)
    }

    /// Bytes of a file.
    pub fn file(
        &mut self,
        (time, task, op): (Option<Nanos>, u32, Op),
        file: FileKey,
        offset: u64,
        length: u64,
    ) -> Result<(), Complaint> {
        end_of(offset, length)?;
        let target = Target::File {
            file,
            offset,
            length,
        };
        self.push(time, task, op, target, length == 0);
        Ok(())
    }

    /// All of a file from `offset` goes away.
    pub fn cut(
        &mut self,
        (time, task): (Option<Nanos>, u32),
        file: FileKey,
        offset: u64,
    ) -> Result<(), Complaint> {
        end_of(offset, 0)?;
        let target = Target::File {
            file,
            offset,
            length: u64::MAX - offset,
        };
        self.push(time, task, Op::Delete, target, false);
        Ok(())
    }

    /// The pages that lie wholly in a range of a file go away; the file goes on behind it.
    pub fn punch(
        &mut self,
        (time, task): (Option<Nanos>, u32),
        file: FileKey,
        offset: u64,
        length: u64,
    ) -> Result<(), Complaint> {
        self.file((time, task, Op::Delete), file, offset, length)
    }

    /// An opaque block.
    pub fn id(
        &mut self,
        (time, task, op): (Option<Nanos>, u32, Op),
        id: u64,
        bytes: Option<u32>,
        next: NextUse,
    ) {
        self.push(time, task, op, Target::Id { id, bytes, next }, false);
    }

    fn push(&mut self, time: Option<Nanos>, task: u32, op: Op, target: Target, empty: bool) {
        if let Some(time) = time {
            self.note_time(time);
        }
        if empty {
            self.state.passed.empty += 1;
            return;
        }
        self.out.push(Request {
            time,
            task,
            op,
            target,
        });
    }

    fn note_time(&mut self, time: Nanos) {
        let state = &mut *self.state;
        let latest = state.latest.unwrap_or(time);
        if time < latest {
            let notes = &mut state.notes;
            notes.backward += 1;
            notes.largest_step_back_ns = notes.largest_step_back_ns.max(latest.0 - time.0);
        }
        state.latest = Some(time.max(latest));
    }
}

fn end_of(offset: u64, length: u64) -> Result<u64, Complaint> {
    offset
        .checked_add(length)
        .filter(|end| *end <= MAX_OFFSET)
        .ok_or_else(|| {
            Complaint::new(
                "the last byte",
                format!("{offset} + {length}"),
                "up to 9223372036854775808 (8 EiB)",
            )
        })
}
