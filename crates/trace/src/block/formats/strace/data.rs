//! Calls that move data: where they begin, and what they do to offsets.

use super::super::super::request::{FileKey, Op};
use super::Strace;
use super::args::{Flag, Value};
use super::calls::{Context, Done};
use super::maps::{PAGE, pages};
use super::process::What;

/// Where a call begins to read or write.
#[derive(Clone, Copy, Debug)]
pub(super) enum Start {
    /// At the descriptor's own offset, which goes on by what was moved.
    Own,
    /// At an offset that the call names.
    At(u64),
}

/// What a call reads or writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub op: Op,
    pub start: Start,
    pub moved: u64,
    /// What was asked for, if a read that comes back with less has met the end of the file.
    pub asked: Option<u64>,
    /// Writes go to the file's end; by default if it was opened so.
    pub append: Option<bool>,
}

impl Move {
    pub const fn new(op: Op, start: Start, moved: u64) -> Self {
        Self {
            op,
            start,
            moved,
            asked: None,
            append: None,
        }
    }
}

impl<'a> Context<'a, '_> {
    /// Reads or writes at the descriptor's offset. `asked` is the argument that says how much.
    pub fn advance(&mut self, op: Op, asked: Option<usize>) -> Done {
        let asked = asked.and_then(|n| self.call.size(n));
        let moves = Move::new(op, Start::Own, self.returned());
        self.moves(self.call.arg(0), Move { asked, ..moves })
    }

    /// Reads or writes at the offset in the argument behind the sizes; -1 in `preadv2` and `pwritev2`
    /// is the descriptor's own.
    pub fn at_offset(&mut self, op: Op, asked: Option<usize>) -> Done {
        let asked = asked.and_then(|n| self.call.size(n));
        let start = self.call.size(3).map_or(Start::Own, Start::At);
        let moves = Move::new(op, start, self.returned());
        // Where strace was told not to decode, the offset has two arguments.
        let flags = if self.call.arg(5).is_empty() { 4 } else { 5 };
        let append = append_by(self.call.arg(flags));
        self.moves(
            self.call.arg(0),
            Move {
                asked,
                append,
                ..moves
            },
        )
    }

    /// Makes the request of a call, if `fd` leads to a file.
    pub fn moves(&mut self, fd: &'a [u8], moves: Move) -> Done {
        let Move { op, moved, .. } = moves;
        let Some(open) = self.open_file(fd)? else {
            self.sink.state.passed.unresolved += 1;
            return Ok(());
        };
        let (offset, append) = (open.offset, moves.append.unwrap_or(open.append));
        let direct = open.direct;
        let file = match open.what {
            What::File(file) => file,
            What::Elsewhere => {
                self.sink.state.passed.elsewhere += 1;
                return Ok(());
            }
            What::Unnamed => {
                self.sink.state.passed.unresolved += 1;
                return Ok(());
            }
        };
        let at = match moves.start {
            // Linux appends at the end even where the call names another offset.
            _ if append && op == Op::Write => self.end_of(file),
            Start::Own => offset,
            Start::At(offset) => offset,
        };
        self.sink.file((self.time, self.pid, op), file, at, moved)?;
        self.sink.state.notes.direct += u64::from(direct);
        let end = at.saturating_add(moved);
        let short = moved > 0 && moves.asked.is_some_and(|asked| moved < asked);
        // A signal cuts reads short as well: what was said of the size is believed.
        let beyond = |size: u64| size < end;
        let reaches_end = short && op == Op::Read && self.size_of(file).is_none_or(beyond);
        // What is appended is the end from then on.
        if reaches_end || append && op == Op::Write && moved > 0 {
            self.sink.state.files.ends(file, end);
        } else if moved > 0 {
            self.sink.state.files.grow(file, end);
        }
        let appended = append && op == Op::Write;
        if let Start::Own = moves.start
            && let Some(open) = self.open_file(fd)?
        {
            open.offset = end;
            if moved > 0 {
                let guessed = std::mem::take(&mut open.begins_anywhere) && !appended;
                self.sink.state.notes.assumed_offsets += u64::from(guessed);
            }
        }
        Ok(())
    }

    /// Where the file ends; if that is not known, behind what is known of it.
    fn end_of(&mut self, file: FileKey) -> u64 {
        if let Some(end) = self.size_of(file) {
            return end;
        }
        self.sink.state.notes.assumed_ends += 1;
        let info = self.sink.state.files.get(file);
        info.and_then(|f| f.size).unwrap_or(0)
    }

    /// The file's size; none if it is only known to be at least so long.
    pub fn size_of(&self, file: FileKey) -> Option<u64> {
        let info = self.sink.state.files.get(file)?;
        info.size.filter(|_| info.is_end)
    }

    // Offsets -------------------------------------------------------------

    pub fn seek(&mut self) -> Done {
        let place = self.returned();
        let asks = self.call.is(2, Flag("SEEK_CUR", 1)) && self.call.number(1) == Some(0);
        if asks && self.is_shared_for_certain(self.call.arg(0)) {
            return Ok(());
        }
        let from_end = self.call.is(2, Flag("SEEK_END", 2));
        let step = self.call.number(1).filter(|_| from_end);
        self.set_offset(place, step)
    }

    /// Whether other descriptors share the open file, and its opening was seen. Then an answer to where
    /// it is may be older than what others have read: strace prints calls of several processes in
    /// another order than that in which they happen.
    fn is_shared_for_certain(&self, fd: &'a [u8]) -> bool {
        let fd = self.descriptor(fd);
        fd.is_some_and(|(fd, _)| self.strace.processes.is_shared_for_certain(self.pid, fd))
    }

    pub fn long_seek(&mut self) -> Done {
        // Up to strace 4.8 the offset had two arguments.
        let (result, whence) = if self.call.arg(4).is_empty() {
            (2, 3)
        } else {
            (3, 4)
        };
        let from_end = self.call.is(whence, Flag("SEEK_END", 2));
        let step = self.call.number(result - 1).filter(|_| from_end);
        match self.call.in_brackets(result) {
            Some(place) => self.set_offset(place, step),
            None => self.left_out("_llseek, the offset not printed"),
        }
    }

    /// The offset is `place`, which lies `from_end` bytes behind the file's end.
    fn set_offset(&mut self, place: u64, from_end: Option<i64>) -> Done {
        let Some(open) = self.open_file(self.call.arg(0))? else {
            return Ok(());
        };
        open.offset = place;
        open.begins_anywhere = false;
        let what = open.what;
        let size = from_end.and_then(|step| place.checked_add_signed(step.checked_neg()?));
        if let (What::File(file), Some(size)) = (what, size) {
            self.sink.state.files.ends(file, size);
        }
        Ok(())
    }

    // In the kernel -------------------------------------------------------

    /// Through a pointer to an offset, or at the descriptor's own where that is null.
    fn start_at(&self, pointer: usize) -> Option<Start> {
        match self.call.in_brackets(pointer) {
            Some(offset) => Some(Start::At(offset)),
            None => self.call.is_null(pointer).then_some(Start::Own),
        }
    }

    pub fn send(&mut self) -> Done {
        let Some(start) = self.start_at(2) else {
            return self.left_out("sendfile, the offset not printed");
        };
        let moved = self.returned();
        self.moves(self.call.arg(1), Move::new(Op::Read, start, moved))?;
        self.moves(self.call.arg(0), Move::new(Op::Write, Start::Own, moved))
    }

    /// From one descriptor to another, each with a pointer to an offset behind it.
    pub fn copy(&mut self, name: &'static str) -> Done {
        let (Some(from), Some(to)) = (self.start_at(1), self.start_at(3)) else {
            return self.left_out(name);
        };
        let moved = self.returned();
        self.moves(self.call.arg(0), Move::new(Op::Read, from, moved))?;
        self.moves(self.call.arg(2), Move::new(Op::Write, to, moved))
    }

    pub fn map(&mut self) -> Done {
        self.map_from(|_, offset| Some(offset))
    }

    /// `mmap2` takes its offset in pages. strace shows bytes; earlier ones, up to 4.x, showed the pages.
    /// No offset in bytes is part of a page, so the first that is tells how the log counts.
    pub fn map_by_pages(&mut self) -> Done {
        self.map_from(|strace, offset| {
            strace.counts_pages |= offset % PAGE != 0;
            if strace.counts_pages {
                offset.checked_mul(PAGE)
            } else {
                Some(offset)
            }
        })
    }

    fn map_from(&mut self, in_bytes: impl FnOnce(&mut Strace, u64) -> Option<u64>) -> Done {
        let fd = self.call.arg(4);
        let Some(length) = self.call.size(1) else {
            return Ok(());
        };
        let addresses = pages(self.result().number as u64, length);
        self.strace.processes.unmap(self.pid, addresses.clone());
        // -1 of 32 bits, if strace was told not to decode.
        let none = Value::parse(fd).is_none_or(|v| v.number < 0 || v.number == 0xffff_ffff);
        if none || self.call.has(3, Flag("MAP_ANONYMOUS", 0x20)) {
            return Ok(());
        }
        let Some(offset) = self.call.size(5) else {
            return Ok(());
        };
        let Some(offset) = in_bytes(self.strace, offset) else {
            return Ok(());
        };
        let file = match self.what(fd)? {
            What::File(file) => file,
            What::Elsewhere => {
                self.sink.state.passed.elsewhere += 1;
                return Ok(());
            }
            What::Unnamed => {
                self.sink.state.passed.unresolved += 1;
                return Ok(());
            }
        };
        let processes = &mut self.strace.processes;
        processes.map(self.pid, addresses, file, offset)?;
        self.show(file, offset, length)
    }

    /// A range of the file is in reach of the process.
    fn show(&mut self, file: FileKey, offset: u64, length: u64) -> Done {
        let size = self.size_of(file);
        if size.is_none() {
            self.sink.state.notes.unclipped_maps += 1;
        }
        let length = match size {
            Some(size) => length.min(size.saturating_sub(offset)),
            None => length,
        };
        let what = (self.time, self.pid, Op::Map);
        self.sink.file(what, file, offset, length)
    }

    /// `mremap`: what it adds to the end of a file's mapping is mapped as well.
    pub fn map_more(&mut self) -> Done {
        let (Some(old), Some(before), Some(after)) =
            (self.call.size(0), self.call.size(1), self.call.size(2))
        else {
            return Ok(());
        };
        let to = pages(self.result().number as u64, after);
        let processes = &mut self.strace.processes;
        let shown = processes.mapped_at(self.pid, old);
        if !self.call.has(3, Flag("MREMAP_DONTUNMAP", 4)) {
            processes.unmap(self.pid, pages(old, before));
        }
        processes.unmap(self.pid, to.clone());
        let Some((file, offset)) = shown else {
            return Ok(());
        };
        processes.map(self.pid, to, file, offset)?;
        if after <= before {
            return Ok(());
        }
        self.show(file, offset.saturating_add(before), after - before)
    }

    pub fn unmap(&mut self) -> Done {
        if let (Some(address), Some(length)) = (self.call.size(0), self.call.size(1)) {
            let processes = &mut self.strace.processes;
            processes.unmap(self.pid, pages(address, length));
        }
        Ok(())
    }
}

/// What `RWF_APPEND` and `RWF_NOAPPEND` say.
pub(super) fn append_by(flags: &[u8]) -> Option<bool> {
    let has = |name, bit| Flag(name, bit).is_in(flags);
    match (has("RWF_APPEND", 0x10), has("RWF_NOAPPEND", 0x20)) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}
