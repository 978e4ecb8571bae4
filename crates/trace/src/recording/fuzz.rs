//! Entry points for random bytes: none of them may panic, whatever they are given.

use piebald_units::op::{MemRef, Next, OpSource};

use super::{Recording, ReplayOptions, VectorBudget, data::Data, record::HEADER_LEN, regions};

/// Reads these bytes as a recording in every way there is: opened, recovered,
/// verified, analysed, and replayed in full.
pub fn recording(bytes: &[u8]) {
    if let Ok(recording) = Recording::from_bytes(bytes.to_vec(), "fuzz") {
        read_everything(&recording);
    }
    if let Ok((recording, _)) = Recording::recover_bytes(bytes.to_vec(), "fuzz") {
        read_everything(&recording);
    }
}

/// As [`recording`], with the checksums made right first: what a damaged file
/// cannot reach, a crafted one can.
pub fn crafted_recording(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    mend(&mut bytes);
    recording(&bytes);
}

/// Puts right checksums wherever there is a header of the file or of a record.
fn mend(bytes: &mut [u8]) {
    use twox_hash::XxHash3_64 as Hash;
    if let Some(text) = bytes.get(12..16) {
        let text = u32::from_le_bytes([text[0], text[1], text[2], text[3]]) as usize;
        let end = text.saturating_add(16);
        if end.saturating_add(8) <= bytes.len() {
            let hash = Hash::oneshot(&bytes[..end]);
            bytes[end..end + 8].copy_from_slice(&hash.to_le_bytes());
        }
    }
    for at in 0..bytes.len().saturating_sub(HEADER_LEN) {
        if bytes[at..].starts_with(&super::record::RECORD_MAGIC) {
            mend_record(&mut bytes[at..]);
        }
    }
}

fn mend_record(record: &mut [u8]) {
    use twox_hash::XxHash3_64 as Hash;
    let table = HEADER_LEN + 16 * usize::from(record[17]);
    if record.len() < table {
        return;
    }
    let mut at = table;
    for entry in (HEADER_LEN..table).step_by(16) {
        let stored = record[entry + 4..entry + 8]
            .try_into()
            .map_or(0, u32::from_le_bytes);
        let end = at.saturating_add(stored as usize).min(record.len());
        let hash = Hash::oneshot(&record[at..end]);
        record[entry + 8..entry + 16].copy_from_slice(&hash.to_le_bytes());
        at = end;
    }
    let hash = Hash::oneshot(&record[16..table]);
    record[8..16].copy_from_slice(&hash.to_le_bytes());
}

fn read_everything(recording: &Recording) {
    let _ = recording.verify();
    for chunk in 0..recording.index().chunks.len() {
        let _ = recording.pages_touched(chunk);
        let _ = recording.raw_chunk(chunk);
    }
    for vectors in recording
        .block_vectors(1000, VectorBudget::default())
        .into_iter()
        .flatten()
    {
        regions::choose(&vectors, &regions::RegionOptions::default());
    }
    let _ = recording.files();
    for thread in recording.threads().unwrap_or_default() {
        for (fetches, start_at) in [(false, 0), (true, 0), (true, thread.instrs / 2)] {
            let options = ReplayOptions {
                fetches,
                start_at,
                ..ReplayOptions::default()
            };
            if let Ok(mut source) = recording.source(thread.thread, options) {
                replay(&mut source);
            }
        }
    }
}

fn replay(source: &mut impl OpSource) {
    let mut out = [MemRef::default(); 100];
    while !matches!(source.fill(&mut out).next, Next::End | Next::Broken) {}
}

/// Reads these bytes as one record's header and sections.
pub fn record(bytes: &[u8]) {
    let data = Data::memory(bytes.to_vec(), "fuzz");
    if let Ok(layout) = data.layout(0) {
        let _ = data.verify(0, &layout);
    }
}
