//! Piebald's page-level file trace, as text.
//!
//! Ids are any numbers of 32 bits. Requests of pages become bytes of whole pages, so the last one
//! may reach behind the file's end. An id is declared once, before its first use.
//!
//! [`FptWriter`] writes it.

use std::collections::HashMap;
use std::io::Write;

use super::super::error::BlockError;
use super::super::names::{FileInfo, Files};
use super::super::reader::{Entry, Lines, Looks, ParseLine};
use super::super::request::{FileKey, Op, PageShift, Request, Target};
use super::super::sink::Sink;
use super::super::text::{at_least, fields, number, number_32, plain};
use super::super::{TargetKind, Times, Traits};
use crate::about::{About, Form, Stamps};
use crate::foreign::error::Complaint;

pub(crate) const ENTRY: Entry = Entry {
    name: "fpt",
    aliases: &[],
    about: About {
        what: "Piebald's page-level file trace",
        form: Form::Text {
            line: "letter and its fields",
            fields: &[
                ("# text", "a comment"),
                (
                    "F id size path",
                    "declares a file: size in bytes, -1 if it is not known; the path may hold blanks",
                ),
                ("R pid id first_page pages", "pages of 4 KiB are read"),
                ("W pid id first_page pages", "they are written"),
                ("M pid id first_page pages", "they are mapped"),
                (
                    "D pid id [first_page pages]",
                    "the file is removed, cut before first_page (0 pages), or loses these pages",
                ),
            ],
            sample: "F 0 10000 /data/a\nR 697 0 0 3\n",
        },
        source: "this project: FptWriter in crates/trace",
        stamps: Stamps::Absent,
        left_out: "nothing but comments",
    },
    traits: Traits {
        target: TargetKind::File,
        times: Times::None,
        directions: true,
        tasks: true,
    },
    looks: Looks::Text,
    parser: |_| Box::new(Lines(Fpt::default())),
};

/// What the first line that [`FptWriter`] writes begins with.
pub(crate) const MARK: &[u8] = b"# file-page-trace v1";
const DECLARATION: &str = "\"F id size path\"";
const ACCESS: &str = "\"R|W|M pid id first_page pages\" or \"D pid id\"";
const PAGE_SHIFT: u32 = 12;
/// Pages below the end of the largest file.
const MAX_PAGE: u64 = 1 << 51;
const PAGES: &str = "page numbers up to 2251799813685248";

#[derive(Default)]
struct Fpt {
    /// Ids from 0 on without gaps, as our own converter numbers them.
    dense: Vec<FileKey>,
    others: HashMap<u32, FileKey>,
}

impl Fpt {
    fn key(&self, id: u32) -> Option<FileKey> {
        match self.dense.get(id as usize) {
            Some(key) => Some(*key),
            None => self.others.get(&id).copied(),
        }
    }

    fn declare(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Complaint> {
        let wrong = || Complaint::text("the line", line, DECLARATION);
        let mut parts = line.splitn(4, |b| *b == b' ');
        let (Some(_), Some(id), Some(size), Some(path)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(wrong());
        };
        if path.is_empty() {
            return Err(wrong());
        }
        let id = number_32("the file id", id)?;
        let size = match size {
            b"-1" => None,
            _ => Some(plain(size).filter(|s| *s <= 1 << 63).ok_or_else(|| {
                Complaint::text("the size", size, "-1 or a number of bytes up to 2^63")
            })?),
        };
        if self.key(id).is_some() {
            let allowed = "one declaration per id";
            return Err(Complaint::number("the file id", id.into(), allowed));
        }
        let key = sink.state.files.add(path, size)?;
        match id as usize == self.dense.len() {
            true => self.dense.push(key),
            false => drop(self.others.insert(id, key)),
        }
        Ok(())
    }

    fn access(&self, line: &[u8], op: Op, sink: &mut Sink<'_>) -> Result<(), Complaint> {
        let mut words = fields(line);
        let [_, pid, id] = at_least(line, &mut words, ACCESS)?;
        let pid = number_32("the process", pid)?;
        let id = number_32("the file id", id)?;
        let file = self.key(id).ok_or_else(|| {
            let allowed = "an id that an earlier line declares";
            Complaint::number("the file id", id.into(), allowed)
        })?;
        let (first, pages) = match (words.next(), words.next(), words.next()) {
            (None, ..) if op == Op::Delete => (0, 0),
            (Some(first), Some(pages), None) => (
                number("the first page", first)?,
                number("the pages", pages)?,
            ),
            _ => return Err(Complaint::text("the line", line, ACCESS)),
        };
        let end = first.checked_add(pages).filter(|end| *end <= MAX_PAGE);
        if end.is_none() {
            return Err(Complaint::text("the line", line, PAGES));
        }
        match op {
            Op::Delete if pages > 0 => {
                let (offset, length) = (first << PAGE_SHIFT, pages << PAGE_SHIFT);
                sink.punch((None, pid), file, offset, length)
            }
            Op::Delete => sink.cut((None, pid), file, first << PAGE_SHIFT),
            _ => sink.file(
                (None, pid, op),
                file,
                first << PAGE_SHIFT,
                pages << PAGE_SHIFT,
            ),
        }
    }
}

impl ParseLine for Fpt {
    fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Complaint> {
        let op = match line {
            [b'R', b' ', ..] => Op::Read,
            [b'W', b' ', ..] => Op::Write,
            [b'M', b' ', ..] => Op::Map,
            [b'D', b' ', ..] => Op::Delete,
            [b'F', b' ', ..] => return self.declare(line, sink),
            [b'#', ..] => {
                sink.state.passed.comments += 1;
                return Ok(());
            }
            _ => {
                return Err(Complaint::text(
                    "the line",
                    line,
                    "a line with F, R, W, M, D or #",
                ));
            }
        };
        self.access(line, op, sink)
    }
}

/// Writes requests to files as `.fpt` text. A file is declared by its first request; its size is
/// the one known then, so [`declare`](Self::declare) everything first where final sizes matter.
pub struct FptWriter<W: Write> {
    out: W,
    declared: Vec<bool>,
}

impl<W: Write> FptWriter<W> {
    /// Begins a trace.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(mut out: W) -> std::io::Result<Self> {
        writeln!(
            out,
            "# file-page-trace v1: F id size_bytes path ; R/W/M pid fileid first_page npages \
             (4 KiB pages; M = mmap of the range; D = unlink)"
        )?;
        Ok(Self {
            out,
            declared: Vec::new(),
        })
    }

    /// Declares a file.
    ///
    /// # Errors
    /// [`BlockError::Unwritable`] if the path is empty or holds a line feed or carriage return, and
    /// those of the output.
    pub fn declare(&mut self, key: FileKey, info: &FileInfo) -> Result<(), BlockError> {
        let path = info.path_bytes();
        if path.is_empty() || memchr::memchr2(b'\n', b'\r', path).is_some() {
            return Err(BlockError::Unwritable {
                what: "the path",
                value: format!("\"{}\"", path.escape_ascii()),
                allowed: "paths of at least one byte, without line ends",
            });
        }
        let size = info.size.map_or("-1".to_owned(), |s| s.to_string());
        let written = write!(self.out, "F {} {size} ", key.0)
            .and_then(|()| self.out.write_all(path))
            .and_then(|()| self.out.write_all(b"\n"));
        written.map_err(failed)?;
        let index = key.0 as usize;
        if self.declared.len() <= index {
            self.declared.resize(index + 1, false);
        }
        self.declared[index] = true;
        Ok(())
    }

    /// Writes a request in pages of 4 KiB; `files` names its file.
    ///
    /// # Errors
    /// [`BlockError::Unwritable`] if it is not about a file of `files`, and those of the output.
    pub fn request(&mut self, request: &Request, files: &Files) -> Result<(), BlockError> {
        let unwritable = |value: String| BlockError::Unwritable {
            what: "the target",
            value,
            allowed: "a file that is named",
        };
        let Target::File { file, .. } = request.target else {
            return Err(unwritable(format!("{:?}", request.target)));
        };
        if !self.declared.get(file.0 as usize).is_some_and(|d| *d) {
            let info = files.get(file);
            let info = info.ok_or_else(|| unwritable(format!("file {}", file.0)))?;
            self.declare(file, info)?;
        }
        let span = request.pages(PageShift::PAGE_4K);
        let (letter, pages) = match request.op {
            Op::Read => ('R', span.count),
            Op::Write => ('W', span.count),
            Op::Map => ('M', span.count),
            Op::Delete if span.end() > MAX_PAGE => ('D', 0),
            // A hole with no whole page in it takes none.
            Op::Delete if span.count == 0 => return Ok(()),
            Op::Delete => ('D', span.count),
        };
        let (pid, id, first) = (request.task, file.0, span.first);
        writeln!(self.out, "{letter} {pid} {id} {first} {pages}").map_err(failed)
    }

    /// Gives the output back.
    pub fn into_inner(self) -> W {
        self.out
    }
}

fn failed(source: std::io::Error) -> BlockError {
    BlockError::Write {
        path: "the trace".into(),
        source,
    }
}
