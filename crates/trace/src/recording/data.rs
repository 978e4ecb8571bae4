//! The bytes of a recording: a file or memory, read piece by piece.
//!
//! Files are read, not mapped: a mapped file that somebody cuts kills the reader
//! with a signal, a read one gives an error. Of a pipe everything is taken first.

use std::{fs::File, io, os::unix::fs::FileExt, path::Path};

use zstd::bulk::Decompressor;

use super::{
    error::ReadError,
    record::{Flaw, HEADER_LEN, Layout, RecordKind},
};
use crate::source::{self, Source, Whole};

/// Where the bytes are.
enum Store {
    File(File),
    Memory(Vec<u8>),
}

/// What unpacking sections needs, kept from one chunk to the next: memory that is
/// given back to the system and taken again costs more than what it is used for.
#[derive(Default)]
pub(crate) struct Unpacker {
    decompressor: Option<Decompressor<'static>>,
    stored: Vec<u8>,
    /// Buffers for sections.
    spare: Vec<Vec<u8>>,
}

impl Unpacker {
    /// Takes back buffers that [`Data::sections`] gave.
    pub(crate) fn take_back(&mut self, buffers: impl IntoIterator<Item = Vec<u8>>) {
        self.spare.extend(buffers);
    }
}

/// Bytes that are read at a time when all are.
const PART: u64 = 1 << 20;

/// Named bytes with bounds-checked reads.
pub(crate) struct Data {
    store: Store,
    name: String,
    len: u64,
}

impl Data {
    pub(crate) fn open(path: &Path) -> Result<Self, ReadError> {
        let name = source::name_of(path);
        let fail = |source| ReadError::Io {
            file: name.clone(),
            source,
        };
        let whole = source::open(path).and_then(Source::whole).map_err(fail)?;
        let file = match whole {
            Whole::Memory(bytes) => return Ok(Self::memory(bytes, &name)),
            Whole::File(file) => file,
        };
        let meta = file.metadata().map_err(fail)?;
        if !meta.is_file() {
            return Err(fail(io::Error::other("not a regular file")));
        }
        Ok(Self {
            store: Store::File(file),
            len: meta.len(),
            name,
        })
    }

    pub(crate) fn memory(bytes: Vec<u8>, name: &str) -> Self {
        Self {
            len: bytes.len() as u64,
            store: Store::Memory(bytes),
            name: name.into(),
        }
    }

    /// The bytes of [`Self::memory`]; none of a file.
    pub(crate) fn into_memory(self) -> Vec<u8> {
        match self.store {
            Store::Memory(bytes) => bytes,
            Store::File(_) => Vec::new(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn corrupt(&self, offset: u64, what: impl Into<String>) -> ReadError {
        ReadError::Corrupt {
            file: self.name.clone(),
            offset,
            what: what.into(),
        }
    }

    /// A flaw of the record at `offset`.
    pub(crate) fn flaw(&self, offset: u64, (at, what): Flaw) -> ReadError {
        self.corrupt(offset.saturating_add(at as u64), what)
    }

    /// Hands over all bytes, part by part.
    pub(crate) fn each_part(&self, mut take: impl FnMut(&[u8])) -> Result<(), ReadError> {
        let mut buffer = Vec::new();
        let mut at = 0;
        while at < self.len {
            let len = (self.len - at).min(PART) as usize;
            self.read_into(at, len, &mut buffer)?;
            take(&buffer);
            at += len as u64;
        }
        Ok(())
    }

    /// Reads exactly these bytes.
    pub(crate) fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>, ReadError> {
        let mut buffer = Vec::new();
        self.read_into(offset, len, &mut buffer)?;
        Ok(buffer)
    }

    /// The same, in place of what the buffer holds.
    fn read_into(&self, offset: u64, len: usize, buffer: &mut Vec<u8>) -> Result<(), ReadError> {
        let end = offset.checked_add(len as u64).filter(|&e| e <= self.len);
        if end.is_none() {
            let what = format!("{len} bytes expected, the file ends at {}", self.len);
            return Err(self.corrupt(offset, what));
        }
        match &self.store {
            Store::Memory(bytes) => {
                buffer.clear();
                buffer.extend_from_slice(&bytes[offset as usize..offset as usize + len]);
                Ok(())
            }
            Store::File(file) => {
                buffer.resize(len, 0);
                let result = file.read_exact_at(buffer, offset);
                result.map_err(|source| match source.kind() {
                    io::ErrorKind::UnexpectedEof => {
                        let what = "the file became shorter while it was read".to_owned();
                        self.corrupt(offset, what)
                    }
                    _ => ReadError::Io {
                        file: self.name.clone(),
                        source,
                    },
                })
            }
        }
    }

    /// Reads and verifies header and section table of the record at `offset`.
    pub(crate) fn layout(&self, offset: u64) -> Result<Layout, ReadError> {
        let most = HEADER_LEN + 16 * 16;
        let left = self.len.saturating_sub(offset).min(most as u64);
        let head = self.read(offset, left as usize)?;
        let layout = Layout::parse(&head).map_err(|f| self.flaw(offset, f))?;
        let end = offset.checked_add(layout.len as u64);
        if end.is_none_or(|e| e > self.len) {
            let what = format!(
                "record of {} bytes is cut: the file ends at {}",
                layout.len, self.len
            );
            return Err(self.corrupt(offset, what));
        }
        Ok(layout)
    }

    /// As [`Self::layout`], for a record that must be of this kind.
    pub(crate) fn layout_of(&self, offset: u64, kind: RecordKind) -> Result<Layout, ReadError> {
        let layout = self.layout(offset)?;
        if layout.header.kind != kind {
            let what = format!(
                "a record of kind {} where the index has one of kind {}",
                layout.header.kind.name(),
                kind.name()
            );
            return Err(self.corrupt(offset + 16, what));
        }
        Ok(layout)
    }

    /// Reads, verifies and decompresses one section.
    pub(crate) fn section(
        &self,
        offset: u64,
        layout: &Layout,
        index: usize,
    ) -> Result<Vec<u8>, ReadError> {
        let [bytes] = self.sections(offset, layout, [index], &mut Unpacker::default())?;
        Ok(bytes)
    }

    /// Reads, verifies and decompresses these sections.
    pub(crate) fn sections<const N: usize>(
        &self,
        offset: u64,
        layout: &Layout,
        indices: [usize; N],
        unpacker: &mut Unpacker,
    ) -> Result<[Vec<u8>; N], ReadError> {
        let Unpacker {
            decompressor,
            stored,
            spare,
        } = unpacker;
        let decompressor = match decompressor {
            Some(decompressor) => decompressor,
            none => none.insert(Decompressor::new().map_err(|source| ReadError::Io {
                file: self.name.clone(),
                source,
            })?),
        };
        let mut all = [const { Vec::new() }; N];
        for (bytes, index) in all.iter_mut().zip(indices) {
            let Some(range) = layout.range(index) else {
                return Err(self.corrupt(offset + 17, format!("section {index} is missing")));
            };
            self.read_into(offset + range.start as u64, range.len(), stored)?;
            *bytes = spare.pop().unwrap_or_default();
            layout
                .unpack(index, stored, decompressor, bytes)
                .map_err(|f| self.flaw(offset, f))?;
        }
        Ok(all)
    }

    /// Verifies all sections of a record.
    pub(crate) fn verify(&self, offset: u64, layout: &Layout) -> Result<(), ReadError> {
        (0..layout.sections()).try_for_each(|i| self.section(offset, layout, i).map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_becomes_shorter_is_told_with_the_place() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("x.pbr");
        std::fs::write(&path, [7; 100]).expect("written");
        let data = Data::open(&path).expect("a file");
        let file = File::options().write(true).open(&path).expect("there");
        file.set_len(60).expect("shorter");
        assert_eq!(data.read(0, 60).expect("is there").len(), 60);
        let said = data.read(40, 60).expect_err("is gone").to_string();
        assert!(
            said.contains("offset 40: the file became shorter"),
            "{said}"
        );
    }
}
