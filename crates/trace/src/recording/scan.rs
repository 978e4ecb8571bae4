//! Finding records without an index.

use std::ops::Range;

use super::{
    data::Data,
    error::ReadError,
    file::{
        END_MAGIC, FILE_MAGIC, FileHeader, Index, MAJOR, MAX_JSON, PREFIX_LEN, SUFFIX_LEN,
        TRAILER_LEN,
    },
    record::{Layout, RECORD_MAGIC, RecordKind},
};
use twox_hash::XxHash3_64;

/// Reads and verifies the file header; also returns where the records begin.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn header(data: &Data) -> Result<(FileHeader, u64), ReadError> {
    let prefix = data.read(0, PREFIX_LEN.min(data.len() as usize))?;
    if prefix.len() < PREFIX_LEN || prefix[..8] != FILE_MAGIC {
        return Err(data.corrupt(0, "not a recording: no magic PBLDREC"));
    }
    let major = u16::from_le_bytes([prefix[8], prefix[9]]);
    let minor = u16::from_le_bytes([prefix[10], prefix[11]]);
    if major != MAJOR {
        return Err(ReadError::Version {
            file: data.name().into(),
            major,
            minor,
            supported: MAJOR,
        });
    }
    let text = u32::from_le_bytes([prefix[12], prefix[13], prefix[14], prefix[15]]) as usize;
    if text > MAX_JSON {
        let what = format!("header of {text} bytes; at most {MAX_JSON} are allowed");
        return Err(data.corrupt(12, what));
    }
    let len = PREFIX_LEN + text + SUFFIX_LEN;
    let bytes = data.read(0, len)?;
    let (covered, checksum) = bytes.split_at(len - SUFFIX_LEN);
    if XxHash3_64::oneshot(covered).to_le_bytes() != *checksum {
        return Err(data.corrupt(0, "file header does not match its checksum"));
    }
    let header = serde_json::from_slice(&covered[PREFIX_LEN..])
        .map_err(|e| data.corrupt(PREFIX_LEN as u64, format!("header text: {e}")))?;
    Ok((header, len as u64))
}

/// The index that the footer holds.
///
/// # Errors
/// [`ReadError::NoFooter`] if the file was not finished, or what is wrong with
/// the footer.
pub(crate) fn footer(data: &Data, first: u64) -> Result<Index, ReadError> {
    let missing = ReadError::NoFooter {
        file: data.name().into(),
        offset: data.len(),
    };
    let at = match data.len().checked_sub(TRAILER_LEN as u64) {
        Some(at) if at >= first => at,
        _ => return Err(missing),
    };
    let trailer = data.read(at, TRAILER_LEN)?;
    if trailer[16..] != END_MAGIC {
        return Err(missing);
    }
    let word = |i: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&trailer[i..i + 8]);
        u64::from_le_bytes(bytes)
    };
    let (offset, len) = (word(0), word(8));
    if offset < first || offset.checked_add(len) != Some(at) {
        let what = format!("footer at {offset} of {len} bytes does not end at {at}");
        return Err(data.corrupt(at, what));
    }
    let layout = data.layout_of(offset, RecordKind::Footer)?;
    if layout.len as u64 != len || layout.sections() != 1 {
        return Err(data.corrupt(offset, "footer is not as long as the trailer says"));
    }
    let bytes = data.section(offset, &layout, 0)?;
    postcard::from_bytes(&bytes).map_err(|e| data.corrupt(offset, format!("footer: {e}")))
}

/// What a scan found besides whole records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Records that are whole.
    pub records: u64,
    /// Byte ranges that hold none: torn or damaged records.
    pub lost: Vec<Range<u64>>,
}

/// Builds the index from the records themselves. With `verify`, every byte is
/// read and a damaged record is passed over; without, only the headers are.
///
/// # Errors
/// Only those of the operating system: damage is reported in [`Recovered`].
pub(crate) fn scan(data: &Data, first: u64, verify: bool) -> Result<(Index, Recovered), ReadError> {
    let mut index = Index::default();
    let mut found = Recovered::default();
    let mut at = first;
    while at < data.len() {
        let whole = data.layout(at).and_then(|layout| {
            if verify {
                data.verify(at, &layout)?;
            }
            Ok(layout)
        });
        let layout: Layout = match whole {
            Ok(layout) => layout,
            Err(error @ ReadError::Io { .. }) => return Err(error),
            Err(_) if is_trailer(data, at)? => break,
            Err(_) => {
                let next = next_magic(data, at + 1)?;
                match found.lost.last_mut() {
                    Some(last) if last.end == at => last.end = next,
                    _ => found.lost.push(at..next),
                }
                at = next;
                continue;
            }
        };
        found.records += 1;
        index.add(at, layout.len as u64, &layout.header);
        at += layout.len as u64;
    }
    index.settle();
    Ok((index, found))
}

fn is_trailer(data: &Data, at: u64) -> Result<bool, ReadError> {
    if data.len() - at != TRAILER_LEN as u64 {
        return Ok(false);
    }
    Ok(data.read(at, TRAILER_LEN)?[16..] == END_MAGIC)
}

/// Where the next record may begin, at `from` or later; the end if nowhere.
fn next_magic(data: &Data, from: u64) -> Result<u64, ReadError> {
    const WINDOW: u64 = 1 << 20;
    let mut at = from;
    while at < data.len() {
        let len = (data.len() - at).min(WINDOW);
        let bytes = data.read(at, len as usize)?;
        let hit = bytes.windows(8).position(|w| w == RECORD_MAGIC);
        if let Some(hit) = hit {
            return Ok(at + hit as u64);
        }
        if at + len == data.len() {
            break;
        }
        // The magic may lie across the border of two windows.
        at += len - 7;
    }
    Ok(data.len())
}
