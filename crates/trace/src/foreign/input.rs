//! A thread's unpacked bytes, as lines or fixed records, with their offsets.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

use super::container;
use super::error::{Complaint, ForeignError};

/// Bytes held at a time; also how much a detector may look at.
const BUFFER: usize = 1 << 16;
/// Longest line of a text, in bytes. The longest legal one is a comment of lackey that repeats a
/// command line.
const MAX_LINE: usize = 1 << 14;

/// What a record was, for the place of an error.
#[derive(Clone, Copy, Debug)]
struct Last {
    offset: u64,
    line: Option<u64>,
}

pub(crate) struct Input {
    name: String,
    reader: Box<dyn Read + Send>,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// Offset of `buffer[start]`.
    offset: u64,
    lines: u64,
    last: Last,
    /// A line is longer than the buffer, and only its beginning was seen.
    overlong: bool,
}

impl Input {
    pub fn open(path: &Path) -> Result<Self, ForeignError> {
        let opened = File::open(path).and_then(|file| {
            if file.metadata()?.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            Ok(file)
        });
        let file = opened.map_err(|source| ForeignError::Open {
            path: path.to_owned(),
            source,
        })?;
        let name = path.display().to_string();
        let reader = container::unpack(&name, file)?;
        Ok(Self::new(name, reader))
    }

    /// Reads bytes in memory, packed or not.
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Self, ForeignError> {
        let reader = container::unpack(name, Cursor::new(bytes.to_vec()))?;
        Ok(Self::new(name.to_owned(), reader))
    }

    /// Reads bytes in memory as they are.
    pub fn plain(name: &str, bytes: &[u8]) -> Self {
        Self::new(name.to_owned(), Box::new(Cursor::new(bytes.to_vec())))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    fn new(name: String, reader: Box<dyn Read + Send>) -> Self {
        Self {
            name,
            reader,
            buffer: vec![0; BUFFER].into_boxed_slice(),
            start: 0,
            end: 0,
            offset: 0,
            lines: 0,
            last: Last {
                offset: 0,
                line: None,
            },
            overlong: false,
        }
    }

    /// As many of the next bytes as fit the buffer, without consuming them.
    pub fn peek(&mut self) -> Result<&[u8], ForeignError> {
        loop {
            match self.refill() {
                Ok(0) => break,
                Ok(_) => {}
                // A detector can do with what came before the damage.
                Err(_) if self.end > self.start => break,
                Err(error) => return Err(error),
            }
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// The next `N` bytes, or `None` at the end.
    pub fn record<const N: usize>(
        &mut self,
        what: &'static str,
        need: &'static str,
    ) -> Result<Option<[u8; N]>, ForeignError> {
        self.last = Last {
            offset: self.offset,
            line: None,
        };
        while self.end - self.start < N {
            if self.refill()? == 0 {
                return self.end_in(what, need).map(|()| None);
            }
        }
        let mut record = [0; N];
        record.copy_from_slice(&self.buffer[self.start..self.start + N]);
        self.consume(N);
        Ok(Some(record))
    }

    /// Parses the next line, without its line end; `None` at the end of the text.
    pub fn line<T>(
        &mut self,
        parse: impl FnOnce(&[u8]) -> Result<T, Complaint>,
    ) -> Result<Option<T>, ForeignError> {
        self.last = Last {
            offset: self.offset,
            line: Some(self.lines + 1),
        };
        let mut searched = 0;
        let length = loop {
            let window = &self.buffer[self.start..self.end];
            if let Some(at) = memchr::memchr(b'\n', &window[searched..]) {
                break searched + at;
            }
            searched = window.len();
            if searched > MAX_LINE {
                let value = window[..64].to_vec();
                self.overlong = true;
                return Err(self.fault(Complaint::text(
                    "the line's length is above 16384 bytes, its beginning",
                    &value,
                    "lines of up to 16384 bytes",
                )));
            }
            if self.refill()? == 0 {
                return self
                    .end_in(
                        "line",
                        "a line feed at its end (add one if the line is whole)",
                    )
                    .map(|()| None);
            }
        };
        let line = &self.buffer[self.start..self.start + length];
        let parsed = parse(line.strip_suffix(b"\r").unwrap_or(line));
        self.consume(length + 1);
        self.lines += 1;
        match parsed {
            Ok(value) => Ok(Some(value)),
            Err(complaint) => Err(self.fault(complaint)),
        }
    }

    /// An error at the record or line that was read last.
    pub fn fault(&self, complaint: Complaint) -> ForeignError {
        ForeignError::Value {
            name: self.name.clone(),
            offset: self.last.offset,
            line: self.last.line,
            field: complaint.field,
            value: complaint.value,
            allowed: complaint.allowed,
        }
    }

    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// After an error: drops the rest of a line that was too long to read.
    pub fn drop_overlong(&mut self) -> Result<(), ForeignError> {
        if std::mem::take(&mut self.overlong) && self.skip_to(b"\n")? {
            self.consume(1);
            self.lines += 1;
        }
        Ok(())
    }

    /// Drops bytes up to the next place where `pattern` stands; `false` if there is none.
    pub fn skip_to(&mut self, pattern: &[u8]) -> Result<bool, ForeignError> {
        loop {
            let window = &self.buffer[self.start..self.end];
            if let Some(at) = memchr::memmem::find(window, pattern) {
                self.consume(at);
                return Ok(true);
            }
            // The pattern may begin in the last bytes.
            self.consume((window.len() + 1).saturating_sub(pattern.len()));
            if self.refill()? == 0 {
                self.consume(self.end - self.start);
                return Ok(false);
            }
        }
    }

    /// Right after a record: its last `n` bytes are to be read again.
    pub fn give_back(&mut self, n: usize) {
        self.start -= n;
        self.offset -= n as u64;
    }

    /// Drops `n` bytes that belong to the record read last; fewer are a cut record.
    pub fn skip(
        &mut self,
        n: usize,
        what: &'static str,
        need: &'static str,
    ) -> Result<(), ForeignError> {
        let mut left = n;
        loop {
            let step = left.min(self.end - self.start);
            self.consume(step);
            left -= step;
            if left == 0 {
                return Ok(());
            }
            if self.refill()? == 0 {
                return Err(self.cut(what, n - left, need));
            }
        }
    }

    /// The bytes that continue the record read last.
    pub fn body<const N: usize>(
        &mut self,
        what: &'static str,
        need: &'static str,
    ) -> Result<[u8; N], ForeignError> {
        let mut body = [0; N];
        self.read_body(&mut body, what, need)?;
        Ok(body)
    }

    /// Fills `body`, which must be shorter than the buffer, with what continues the record read
    /// last.
    pub fn read_body(
        &mut self,
        body: &mut [u8],
        what: &'static str,
        need: &'static str,
    ) -> Result<(), ForeignError> {
        while self.end - self.start < body.len() {
            if self.refill()? == 0 {
                return Err(self.cut(what, self.end - self.start, need));
            }
        }
        body.copy_from_slice(&self.buffer[self.start..self.start + body.len()]);
        self.consume(body.len());
        Ok(())
    }

    fn end_in(&self, what: &'static str, need: &'static str) -> Result<(), ForeignError> {
        let have = self.end - self.start;
        if have == 0 {
            return Ok(());
        }
        Err(self.cut(what, have, need))
    }

    fn cut(&self, what: &'static str, have: usize, need: &'static str) -> ForeignError {
        ForeignError::Cut {
            name: self.name.clone(),
            offset: self.last.offset,
            line: self.last.line,
            what,
            have,
            need,
        }
    }

    fn consume(&mut self, n: usize) {
        self.start += n;
        self.offset += n as u64;
    }

    /// Reads more bytes behind those that are there; 0 at the end, or if the buffer is full.
    fn refill(&mut self) -> Result<usize, ForeignError> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        // Some unpackers take an empty place for a mistake.
        if self.end == self.buffer.len() {
            return Ok(0);
        }
        loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(n) => {
                    self.end += n;
                    return Ok(n);
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(ForeignError::Read {
                        name: self.name.clone(),
                        offset: self.offset + self.end as u64,
                        source,
                    });
                }
            }
        }
    }
}
