//! A whole recording of what is left of a damaged one.
//!
//! A reader of a recovered recording replays each thread up to its first gap and fails there. A
//! repaired one ends each thread before the gap, so every reader takes it like any other; that it
//! is not complete, and why, stands in its header.
//!
//! A program begins with one thread, which starts the others. Where the thread that starts some is
//! lost (its blocks may stand at the end of the file), what is left falls into several trees of
//! threads, and those in one tree would wait for ever for what others never do. The tree with the
//! most references is kept.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use super::{
    Counts, DictionaryEntry, FileHeader, Index, Recording, RecordingWriter,
    data::Data,
    error::{ReadError, WriteError},
    file::ChunkEntry,
    reader::Recovery,
};

/// What [`repair`] kept and what it had to leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// How much the new recording holds.
    pub counts: Counts,
    /// Records that were kept.
    pub records: u64,
    /// Bytes that belong to no whole record.
    pub lost_bytes: u64,
    /// What is missing, one loss in a line; empty if only the index had to be made anew.
    pub lost: Vec<String>,
}

/// Writes a new recording of all that can be read of the one at `input`, which stays as it is.
/// `output` is written as `OUT.partial` and renamed when it is whole.
///
/// # Errors
/// The input's header is damaged or no chunk can be read; the output is the input or cannot be
/// written.
pub fn repair(input: &Path, output: &Path) -> Result<Repaired, WriteError> {
    refuse_same(input, output)?;
    let Recovery {
        recording,
        found,
        header,
    } = Recording::recovery(input)?;
    let kept = largest_tree(&recording, whole_parts(&recording))?;
    let counts = kept.counts();
    if counts.chunks == 0 {
        let what = "no chunk can be read: nothing can be repaired";
        return Err(recording.0.data.corrupt(0, what).into());
    }
    let lost_bytes = found.lost.iter().map(|range| range.end - range.start).sum();
    let lost = losses(&header, recording.index(), &counts, lost_bytes);
    let mut header = FileHeader {
        complete: header.complete && lost.is_empty(),
        ..header
    };
    header.missing.extend(lost.iter().cloned());
    let writer = RecordingWriter::create(output, header)?;
    let partial = writer.partial_path().to_owned();
    let written = copy(&recording.0.data, &kept, writer);
    if written.is_err() {
        // The error that is reported says more than one about what is left behind.
        let _ = std::fs::remove_file(partial);
    }
    Ok(Repaired {
        records: written?,
        counts,
        lost_bytes,
        lost,
    })
}

fn refuse_same(input: &Path, output: &Path) -> Result<(), WriteError> {
    match (input.canonicalize(), output.canonicalize()) {
        (Ok(from), Ok(to)) if from == to => Err(WriteError::SameFile { path: to }),
        _ => Ok(()),
    }
}

/// The part of the index that readers can use: of each thread the chunks up to the first that is
/// missing or cannot be decoded.
fn whole_parts(recording: &Recording) -> Index {
    let all = recording.index();
    let mut kept = Index {
        chunks: Vec::new(),
        dictionaries: without_gaps(&all.dictionaries),
        threads: all.threads.clone(),
    };
    let usable = recording.with_index(Index {
        chunks: all.chunks.clone(),
        ..kept.clone()
    });
    let mut before: Option<&ChunkEntry> = None;
    let mut ended = None;
    for (at, chunk) in all.chunks.iter().enumerate() {
        let same = before.filter(|b| b.thread == chunk.thread);
        if ended == Some(chunk.thread) {
            continue;
        }
        if chunk.lacks(same) || usable.raw_chunk(at).is_err() {
            ended = Some(chunk.thread);
            continue;
        }
        kept.chunks.push(*chunk);
        before = Some(chunk);
    }
    with_threads_of_chunks(kept)
}

/// Forgets threads without chunks, and sums the others up anew.
fn with_threads_of_chunks(mut index: Index) -> Index {
    let threads: BTreeSet<u32> = index.chunks.iter().map(|c| c.thread).collect();
    index.threads.retain(|t| threads.contains(&t.thread));
    index.settle();
    index
}

/// The threads that hang together, from the first of them on.
fn largest_tree(recording: &Recording, mut kept: Index) -> Result<Index, ReadError> {
    let threads = recording.with_index(kept.clone()).threads()?;
    let parents: BTreeMap<u32, Option<u32>> =
        threads.iter().map(|t| (t.thread, t.parent)).collect();
    let root = |thread: u32| {
        let mut at = thread;
        // A parent is another thread of the list; no path is longer than that.
        for _ in 0..parents.len() {
            match parents.get(&at) {
                Some(Some(parent)) => at = *parent,
                _ => break,
            }
        }
        at
    };
    let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
    for thread in &threads {
        let sum = sums.entry(root(thread.thread)).or_default();
        *sum = sum.saturating_add(thread.refs);
    }
    // Of equal ones the first.
    let largest = sums
        .iter()
        .max_by_key(|(root, refs)| (**refs, Reverse(**root)));
    let Some((&largest, _)) = largest else {
        return Ok(kept);
    };
    let in_tree = threads.iter().filter(|t| root(t.thread) == largest);
    let segments: BTreeSet<u32> = in_tree.flat_map(|t| t.segments.iter().copied()).collect();
    kept.chunks.retain(|c| segments.contains(&c.thread));
    Ok(with_threads_of_chunks(kept))
}

/// Of each process the records of blocks up to the first that is missing.
fn without_gaps(all: &[DictionaryEntry]) -> Vec<DictionaryEntry> {
    let mut kept: Vec<DictionaryEntry> = Vec::new();
    let mut ended = None;
    for entry in all {
        let before = kept.last().filter(|k| k.process == entry.process);
        let goes_on = before.is_none_or(|b| b.first.checked_add(b.blocks) == Some(entry.first));
        if ended == Some(entry.process) || !goes_on {
            ended = Some(entry.process);
            continue;
        }
        kept.push(*entry);
    }
    kept
}

/// In words. `header` is the damaged recording's own, `left` the index of all its whole records.
fn losses(header: &FileHeader, left: &Index, kept: &Counts, lost_bytes: u64) -> Vec<String> {
    let mut lost = Vec::new();
    if lost_bytes > 0 {
        lost.push(format!("{lost_bytes} bytes that are no whole record"));
    }
    let left = left.counts();
    if left.references > kept.references {
        let references = left.references - kept.references;
        let chunks = left.chunks - kept.chunks;
        lost.push(format!(
            "{references} references in {chunks} whole chunks that cannot be used: what comes before \
             them, defines their blocks or starts their threads is missing"
        ));
    }
    // Zeros stand there until a recording is finished.
    let was = header.counts.references;
    if was > kept.references {
        let gone = was - kept.references;
        let share = 100.0 * gone as f64 / was as f64;
        lost.push(format!("in all {gone} of {was} references ({share:.1} %)"));
    } else if was == 0 && !header.complete {
        lost.push("what came after the last whole record: it was not finished".to_owned());
    }
    lost
}

/// Copies the records in the order in which they lie; answers their number.
fn copy(data: &Data, kept: &Index, mut writer: RecordingWriter) -> Result<u64, WriteError> {
    let dictionaries = kept.dictionaries.iter().map(|d| (d.offset, d.len));
    let chunks = kept.chunks.iter().map(|c| (c.offset, c.len));
    let mut places: Vec<(u64, u64)> = dictionaries.chain(chunks).collect();
    places.sort_unstable();
    for &(offset, len) in &places {
        let len = usize::try_from(len).map_err(|_| long_record(data, offset))?;
        writer.append_record(&data.read(offset, len)?)?;
    }
    writer.finish()?;
    Ok(places.len() as u64)
}

fn long_record(data: &Data, offset: u64) -> ReadError {
    data.corrupt(offset, "a record that is longer than memory")
}
