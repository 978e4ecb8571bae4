//! Writing recordings: the file around what encoders produce.
//!
//! While it is written, a file is called `NAME.partial` and has no footer;
//! any number of processes append records to it ([`append_record`]). The driver
//! then finishes it: finds the records, writes footer and header, renames it.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use super::{
    data::Data,
    error::WriteError,
    file::{FileHeader, Index},
    is_recording,
    scan::{self, Recovered},
};

/// Appends one record with a single `write`, so that records of several
/// processes do not mix. The file must have been opened for appending.
///
/// # Errors
/// Those of the operating system; a short write is one (the disk is full), and
/// leaves a torn record that readers pass over and report.
pub fn append_record(file: &mut File, record: &[u8]) -> io::Result<()> {
    loop {
        match file.write(record) {
            Ok(n) if n == record.len() => return Ok(()),
            Ok(n) => {
                let what = format!("wrote {n} of {} bytes of a record", record.len());
                return Err(io::Error::new(io::ErrorKind::WriteZero, what));
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// What [`RecordingWriter::finish`] made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The header as written, with its counts.
    pub header: FileHeader,
    /// What was found; [`Recovered::lost`] is empty if all went well.
    pub found: Recovered,
}

/// Creates and finishes a recording file.
#[derive(Debug)]
pub struct RecordingWriter {
    path: PathBuf,
    partial: PathBuf,
    file: File,
    header: FileHeader,
    reserved: usize,
}

impl RecordingWriter {
    /// Creates `PATH.partial` (replacing an old one) with a header that says
    /// that it is not complete.
    ///
    /// # Errors
    /// Those of the operating system, or something at `path` that a recording may not replace.
    pub fn create(path: &Path, header: FileHeader) -> Result<Self, WriteError> {
        Self::create_with_room(path, header, 0)
    }

    /// As [`Self::create`], with space for `room` bytes of text that come to the header later.
    ///
    /// # Errors
    /// As for [`Self::create`].
    pub fn create_with_room(
        path: &Path,
        header: FileHeader,
        room: usize,
    ) -> Result<Self, WriteError> {
        check_old(path)?;
        // A link stays one: the file that it leads to is replaced.
        let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut name = path.as_os_str().to_owned();
        name.push(".partial");
        let partial = PathBuf::from(name);
        let fail = |action| {
            let path = partial.clone();
            move |source| WriteError::Io {
                path,
                action,
                source,
            }
        };
        // Not truncated by `open`: appending processes share it from here on.
        match std::fs::remove_file(&partial) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(fail("remove")(e)),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create_new(true)
            .open(&partial)
            .map_err(fail("create"))?;
        let reserved = header.reserve(room);
        let bytes = header_bytes(&unfinished(&header), reserved, &partial)?;
        file.write_all(&bytes)
            .inspect_err(|_| drop(std::fs::remove_file(&partial)))
            .map_err(fail("write header"))?;
        Ok(Self {
            path: path.into(),
            partial,
            file,
            header,
            reserved,
        })
    }

    /// The file that other processes may append records to.
    pub fn partial_path(&self) -> &Path {
        &self.partial
    }

    /// Where the recording will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The header; may be changed until the recording is finished, within the
    /// space that was reserved (about 500 bytes more than at creation, and the room that was asked
    /// for).
    pub fn header_mut(&mut self) -> &mut FileHeader {
        &mut self.header
    }

    /// Appends one record.
    ///
    /// # Errors
    /// Those of [`append_record`].
    pub fn append_record(&mut self, record: &[u8]) -> Result<(), WriteError> {
        append_record(&mut self.file, record).map_err(|source| WriteError::Io {
            path: self.partial.clone(),
            action: "append record",
            source,
        })
    }

    /// Writes the footer, completes the header and gives the file its name. Call
    /// it when nobody appends any more. If records are torn or missing, the
    /// header says that the recording is not complete.
    ///
    /// # Errors
    /// Those of the operating system, or a header that outgrew its space.
    pub fn finish(mut self) -> Result<Finished, WriteError> {
        let data = Data::open(&self.partial)?;
        let (index, found) = scan::scan(&data, self.reserved as u64, false)?;
        complete(&mut self.header, &index, &found);
        let header = header_bytes(&self.header, self.reserved, &self.partial)?;
        let footer = index.to_footer(data.len())?;
        let fail = |action| {
            let path = self.partial.clone();
            move |source| WriteError::Io {
                path,
                action,
                source,
            }
        };
        self.file.write_all(&footer).map_err(fail("write footer"))?;
        // A file opened for appending appends, wherever it is told to write.
        let plain = OpenOptions::new()
            .write(true)
            .open(&self.partial)
            .map_err(fail("open"))?;
        plain
            .write_all_at(&header, 0)
            .map_err(fail("write header"))?;
        plain.sync_all().map_err(fail("sync"))?;
        std::fs::rename(&self.partial, &self.path).map_err(fail("rename"))?;
        Ok(Finished {
            header: self.header,
            found,
        })
    }
}

/// Refuses to replace what is no recording: a file of another kind, a device, a folder.
fn check_old(path: &Path) -> Result<(), WriteError> {
    let refuse = |what| {
        let path = path.to_owned();
        Err(WriteError::Taken { path, what })
    };
    if path == Path::new("-") {
        return refuse("a recording cannot go to standard output");
    }
    match std::fs::metadata(path) {
        Ok(old) if old.is_dir() => refuse("this is a folder"),
        Ok(old) if !old.is_file() => refuse("this is a device or a pipe"),
        Ok(old) if old.len() > 0 && !is_recording(path).unwrap_or(false) => {
            refuse("this file is there and is no recording")
        }
        _ => Ok(()),
    }
}

/// Composes a recording in memory, for built-in programs and tests.
pub struct MemoryWriter {
    bytes: Vec<u8>,
    header: FileHeader,
    reserved: usize,
}

impl MemoryWriter {
    /// Begins with a header that says that it is not complete.
    pub fn new(header: FileHeader) -> Self {
        let reserved = header.reserve(0);
        // The space was measured a line above.
        let bytes = unfinished(&header).to_bytes(reserved).unwrap_or_default();
        Self {
            bytes,
            header,
            reserved,
        }
    }

    /// Where encoders append their records.
    pub fn records(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The bytes as they are now: a recording that was not finished.
    pub fn unfinished(&self) -> &[u8] {
        &self.bytes
    }

    /// Adds the footer and completes the header.
    ///
    /// # Errors
    /// The index is too large for a record, or what was appended is no record.
    pub fn finish(mut self) -> Result<Vec<u8>, WriteError> {
        let data = Data::memory(self.bytes, "memory");
        let (index, found) = scan::scan(&data, self.reserved as u64, false)?;
        complete(&mut self.header, &index, &found);
        let header = header_bytes(&self.header, self.reserved, Path::new("memory"))?;
        let footer = index.to_footer(data.len())?;
        let mut bytes = data.into_memory();
        bytes[..self.reserved].copy_from_slice(&header);
        bytes.extend(footer);
        Ok(bytes)
    }
}

fn unfinished(header: &FileHeader) -> FileHeader {
    FileHeader {
        complete: false,
        ..header.clone()
    }
}

fn complete(header: &mut FileHeader, index: &Index, found: &Recovered) {
    header.counts = index.counts();
    header.complete &= found.lost.is_empty() && !index.has_gaps();
}

fn header_bytes(header: &FileHeader, len: usize, path: &Path) -> Result<Vec<u8>, WriteError> {
    header
        .to_bytes(len)
        .map_err(|needed| WriteError::HeaderTooLong {
            path: path.into(),
            needed,
            reserved: len,
        })
}
