//! A thread's unpacked bytes, as lines or fixed records, with their offsets.

use std::io::{self, Cursor, Read};
use std::num::NonZeroU64;
use std::path::Path;

use super::container;
use super::error::{Complaint, ForeignError};
use crate::source;

/// Bytes held at a time; also how much a detector may look at.
pub(crate) const BUFFER: usize = 1 << 16;
/// Unpacked bytes behind a wrong record in which damage is looked for.
const MOST_BEHIND: u64 = 1 << 30;
/// Longest line of a text, in bytes. strace writes all entries of a directory on one, if it is asked to.
const MAX_LINE: usize = 1 << 20;
/// The mark that some programs of Windows write before a text in UTF-8. It means nothing.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How texts begin whose letters have two or four bytes each, of either byte order.
pub(crate) const WIDE: [(&[u8], &str); 4] = [
    (&[0xff, 0xfe, 0, 0], "UTF-32"),
    (&[0, 0, 0xfe, 0xff], "UTF-32"),
    (&[0xff, 0xfe], "UTF-16"),
    (&[0xfe, 0xff], "UTF-16"),
];

/// What a record was, for the place of an error.
#[derive(Clone, Copy, Debug, Default)]
struct Last {
    offset: u64,
    line: Option<NonZeroU64>,
    /// It is a line that no line feed ends.
    unended: bool,
}

/// What was odd about a text and does not change what it says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Oddities {
    /// The last line parses, but no line feed ends it.
    pub unended_line: bool,
    /// It begins with a byte order mark.
    pub byte_order_mark: bool,
}

pub(crate) struct Input {
    name: String,
    /// What messages call what is read: a file or a pipe.
    medium: &'static str,
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
    oddities: Oddities,
    /// It is unpacked while it is read.
    is_packed: bool,
    /// An error that came while somebody only looked: a reader must not take the place behind it
    /// for the end.
    failed: Option<ForeignError>,
}

impl Input {
    /// Opens a file or pipe; `-` is standard input.
    pub fn open(path: &Path) -> Result<Self, ForeignError> {
        let opened = source::open(path).map_err(|source| ForeignError::Open {
            path: path.to_owned(),
            source,
        })?;
        let name = source::name_of(path);
        let medium = opened.medium();
        let unpacked = container::unpack(&name, opened)?;
        Self::new(name, medium, unpacked.reader).checked(unpacked.packing)
    }

    /// Reads bytes in memory, packed or not.
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Self, ForeignError> {
        let unpacked = container::unpack(name, Cursor::new(bytes.to_vec()))?;
        Self::new(name.to_owned(), "file", unpacked.reader).checked(unpacked.packing)
    }

    /// Reads bytes in memory as they are.
    pub fn plain(name: &str, bytes: &[u8]) -> Self {
        let reader = Box::new(Cursor::new(bytes.to_vec()));
        Self::new(name.to_owned(), "file", reader)
    }

    /// Reads a text that is made of several files.
    pub fn of_lines(name: String, reader: Box<dyn Read + Send>) -> Self {
        Self::new(name, "file", reader)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    fn new(name: String, medium: &'static str, reader: Box<dyn Read + Send>) -> Self {
        Self {
            name,
            medium,
            reader,
            buffer: vec![0; BUFFER].into_boxed_slice(),
            start: 0,
            end: 0,
            offset: 0,
            lines: 0,
            last: Last::default(),
            overlong: false,
            oddities: Oddities::default(),
            is_packed: false,
            failed: None,
        }
    }

    /// Refuses an archive, whose headers would be taken for records, and what is packed in a packed
    /// file.
    fn checked(mut self, packing: Option<&'static str>) -> Result<Self, ForeignError> {
        self.is_packed = packing.is_some();
        self.look(container::TAR_BLOCK);
        if let Some(outer) = packing
            && let Some(inner) = container::packing(&self.buffer[..self.end])
        {
            return Err(ForeignError::Container {
                name: self.name,
                found: format!("this is packed twice, {inner} in {outer}; unpack it once"),
            });
        }
        match container::tar_member(&self.buffer[..self.end]) {
            None => Ok(self),
            Some(member) => Err(ForeignError::Tar {
                name: self.name,
                member,
            }),
        }
    }

    /// What was odd about the text so far.
    pub const fn oddities(&self) -> Oddities {
        self.oddities
    }

    /// Why what was unpacked is not what was packed, if that shows further behind: checksums stand at the end
    /// of what they are of, so that a damaged file gives wrong records first. What is behind is gone then.
    pub fn damage_behind(&mut self) -> Option<ForeignError> {
        let mut read = 0;
        while self.is_packed && read < MOST_BEHIND {
            self.consume(self.end - self.start);
            match self.refill() {
                Ok(0) => break,
                Ok(n) => read += n as u64,
                Err(error) => return Some(error),
            }
        }
        None
    }

    /// As many of the next bytes as fit the buffer, without consuming them.
    pub fn peek(&mut self) -> Result<&[u8], ForeignError> {
        self.look(BUFFER);
        if self.start == self.end
            && let Some(error) = self.failed.take()
        {
            return Err(error);
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// Fetches up to `bytes` bytes. A detector can do with what came before some damage, which the
    /// reader meets later.
    fn look(&mut self, bytes: usize) {
        while self.end - self.start < bytes && self.failed.is_none() {
            match self.refill() {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => self.failed = Some(error),
            }
        }
    }

    /// The next `N` bytes, or `None` at the end. `what` names them in messages.
    pub fn record<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<Option<[u8; N]>, ForeignError> {
        self.last = Last {
            offset: self.offset,
            ..Last::default()
        };
        while self.end - self.start < N {
            if self.refill()? > 0 {
                continue;
            }
            return match self.end - self.start {
                0 => Ok(None),
                _ => Err(self.cut(what, N)),
            };
        }
        let mut record = [0; N];
        record.copy_from_slice(&self.buffer[self.start..self.start + N]);
        self.consume(N);
        Ok(Some(record))
    }

    /// Parses the next line, without its line end; `None` at the end of the text. What follows the
    /// last line feed is a line if it parses; if it does not, the error says that the line has no
    /// end.
    pub fn line<T>(
        &mut self,
        parse: impl FnOnce(&[u8]) -> Result<T, Complaint>,
    ) -> Result<Option<T>, ForeignError> {
        if self.offset == 0 {
            self.pass_mark()?;
        }
        self.last = Last {
            offset: self.offset,
            line: NonZeroU64::new(self.lines + 1),
            unended: false,
        };
        let mut searched = 0;
        let (length, end) = loop {
            let window = &self.buffer[self.start..self.end];
            if let Some(at) = memchr::memchr(b'\n', &window[searched..]) {
                break (searched + at, 1);
            }
            searched = window.len();
            if searched >= MAX_LINE {
                let value = window[..64].to_vec();
                self.overlong = true;
                return Err(self.fault(Complaint::text(
                    "the line has 1048576 bytes or more, its beginning",
                    &value,
                    "lines of less than 1048576 bytes",
                )));
            }
            if searched == self.buffer.len() {
                self.enlarge();
            }
            if self.refill()? == 0 {
                break (searched, 0);
            }
        };
        if length + end == 0 {
            return Ok(None);
        }
        let line = &self.buffer[self.start..self.start + length];
        let parsed = parse(line.strip_suffix(b"\r").unwrap_or(line));
        self.consume(length + end);
        self.lines += 1;
        self.last.unended = end == 0;
        match parsed {
            Ok(value) => {
                self.oddities.unended_line |= end == 0;
                Ok(Some(value))
            }
            Err(complaint) => Err(self.fault(complaint)),
        }
    }

    /// Refuses a text whose letters have two or four bytes each. Only who reads a text may ask.
    pub fn refuse_wide_letters(&mut self) -> Result<(), ForeignError> {
        self.look(WIDE[0].0.len());
        let head = &self.buffer[self.start..self.end];
        match WIDE.iter().find(|(mark, _)| head.starts_with(mark)) {
            None => Ok(()),
            Some((_, encoding)) => Err(ForeignError::Encoding {
                name: self.name.clone(),
                encoding,
            }),
        }
    }

    /// Drops a byte order mark at the beginning of a text.
    fn pass_mark(&mut self) -> Result<(), ForeignError> {
        self.refuse_wide_letters()?;
        while self.end - self.start < BYTE_ORDER_MARK.len() {
            if self.refill()? == 0 {
                return Ok(());
            }
        }
        if self.buffer[self.start..].starts_with(BYTE_ORDER_MARK) {
            self.consume(BYTE_ORDER_MARK.len());
            self.oddities.byte_order_mark = true;
        }
        Ok(())
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
            unended: self.last.unended.then_some(self.medium),
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
    pub fn skip(&mut self, n: usize, what: &'static str) -> Result<(), ForeignError> {
        let mut left = n;
        loop {
            let step = left.min(self.end - self.start);
            self.consume(step);
            left -= step;
            if left == 0 {
                return Ok(());
            }
            if self.refill()? == 0 {
                return Err(self.cut(what, left));
            }
        }
    }

    /// The bytes that continue the record read last.
    pub fn body<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], ForeignError> {
        let mut body = [0; N];
        self.read_body(&mut body, what)?;
        Ok(body)
    }

    /// Fills `body`, which must be shorter than the buffer, with what continues the record read
    /// last.
    pub fn read_body(&mut self, body: &mut [u8], what: &'static str) -> Result<(), ForeignError> {
        while self.end - self.start < body.len() {
            if self.refill()? == 0 {
                return Err(self.cut(what, body.len()));
            }
        }
        body.copy_from_slice(&self.buffer[self.start..self.start + body.len()]);
        self.consume(body.len());
        Ok(())
    }

    /// The input ends where `need` further bytes of a record should be.
    fn cut(&self, what: &'static str, need: usize) -> ForeignError {
        let before = self.offset - self.last.offset;
        ForeignError::Cut {
            name: self.name.clone(),
            offset: self.last.offset,
            medium: self.medium,
            what,
            have: before + (self.end - self.start) as u64,
            need: before + need as u64,
        }
    }

    fn consume(&mut self, n: usize) {
        self.start += n;
        self.offset += n as u64;
    }

    /// Makes room for a longer line.
    fn enlarge(&mut self) {
        let mut buffer = std::mem::take(&mut self.buffer).into_vec();
        buffer.resize(2 * buffer.len(), 0);
        self.buffer = buffer.into_boxed_slice();
    }

    /// Reads more bytes behind those that are there; 0 at the end, or if the buffer is full.
    fn refill(&mut self) -> Result<usize, ForeignError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
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
                        offset: self.offset + (self.end - self.start) as u64,
                        source,
                    });
                }
            }
        }
    }
}
