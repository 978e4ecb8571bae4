//! What each system call does to descriptors, and which requests it makes.

use std::borrow::Cow;

use super::super::super::request::{FileKey, Nanos, Op};
use super::super::super::sink::Sink;
use super::super::super::text::plain;
use super::Strace;
use super::lex::{self, Call, Value};
use super::process::Open;
use crate::foreign::error::Complaint;

type Done = Result<(), Complaint>;
/// Carries out a call that succeeded.
pub(super) type Handler = fn(&mut Context<'_, '_>) -> Done;

/// One call, and what it acts on.
pub(super) struct Context<'a, 'b> {
    pub strace: &'a mut Strace,
    pub sink: &'a mut Sink<'b>,
    pub pid: u32,
    pub time: Option<Nanos>,
    pub call: &'a Call<'a>,
}

/// Whether a call makes a process or a thread.
pub(super) fn makes_process(name: &[u8]) -> bool {
    matches!(name, b"clone" | b"clone3" | b"fork" | b"vfork")
}

/// `None` for calls that change nothing here.
pub(super) fn handler(name: &[u8]) -> Option<Handler> {
    Some(match name {
        b"open" => |c| c.open(None, 0, 1),
        b"creat" => |c| c.open(None, 0, usize::MAX),
        b"openat" | b"openat2" => |c| c.open(Some(0), 1, 2),
        b"close" => |c| c.close(),
        b"close_range" => |c| c.close_range(),
        b"dup" => |c| c.duplicate(false),
        b"dup2" => |c| c.duplicate(false),
        b"dup3" => |c| c.duplicate(c.call.has(2, "O_CLOEXEC")),
        b"fcntl" | b"fcntl64" => |c| c.control(),
        b"lseek" => |c| c.seek(),
        b"_llseek" | b"llseek" => |c| c.long_seek(),
        b"read" | b"readv" => |c| c.advance(Op::Read),
        b"write" | b"writev" => |c| c.advance(Op::Write),
        b"pread64" | b"preadv" | b"preadv2" | b"pread" => |c| c.at_offset(Op::Read),
        b"pwrite64" | b"pwritev" | b"pwritev2" | b"pwrite" => |c| c.at_offset(Op::Write),
        b"sendfile" | b"sendfile64" => |c| c.send(),
        b"copy_file_range" => |c| c.copy(),
        b"mmap" | b"mmap2" => |c| c.map(),
        b"fstat" | b"fstat64" | b"newfstatat" | b"fstatat64" | b"statx" => |c| c.status(),
        b"truncate" | b"truncate64" => |c| c.truncate(),
        b"ftruncate" | b"ftruncate64" => |c| c.truncate_open(),
        b"unlink" => |c| c.remove(None, 0),
        b"unlinkat" => |c| c.remove(Some(0), 1),
        b"rename" => |c| c.rename((None, 0), (None, 1)),
        b"renameat" | b"renameat2" => |c| c.rename((Some(0), 1), (Some(2), 3)),
        b"chdir" => |c| c.change_directory(),
        b"fchdir" => |c| c.change_to_open(),
        b"execve" | b"execveat" => |c| {
            c.strace.processes.exec(c.pid);
            Ok(())
        },
        _ if makes_process(name) => |c| c.fork(),
        _ => return None,
    })
}

impl Context<'_, '_> {
    /// Runs the handler; a call that makes no request is counted.
    pub fn run(mut self, handler: Handler) -> Done {
        let before = self.tally();
        handler(&mut self)?;
        if self.tally() == before {
            self.sink.state.passed.others += 1;
        }
        Ok(())
    }

    fn tally(&self) -> u64 {
        let passed = &self.sink.state.passed;
        self.sink.out.len() as u64 + passed.elsewhere + passed.unresolved + passed.empty
    }

    fn result(&self) -> Value<'_> {
        let nothing = Value {
            number: 0,
            path: None,
        };
        self.call.result.unwrap_or(nothing)
    }

    /// Bytes moved, or a new descriptor or place.
    fn returned(&self) -> u64 {
        u64::try_from(self.result().number).unwrap_or(0)
    }

    fn descriptor(&self, n: usize) -> Option<(u32, Option<&[u8]>)> {
        let value = Value::parse(self.call.arg(n))?;
        Some((u32::try_from(value.number).ok()?, value.path))
    }

    // Names ---------------------------------------------------------------

    /// The path in argument `path`, relative to the directory in argument `directory`.
    fn path(&self, directory: Option<usize>, path: usize) -> Option<Vec<u8>> {
        let name = lex::string(self.call.arg(path))?;
        if name.is_empty() {
            return None;
        }
        if name.starts_with(b"/") {
            return Some(tidy(&name));
        }
        let base = directory.and_then(|n| self.annotated(n));
        let base = match base {
            Some(base) => Some(base),
            None => self.strace.processes.directory(self.pid).map(Cow::Borrowed),
        };
        Some(match base {
            Some(base) => tidy(&[&base[..], b"/", &name].concat()),
            None => tidy(&name),
        })
    }

    /// The path that strace wrote behind a descriptor or `AT_FDCWD`.
    fn annotated(&self, n: usize) -> Option<Cow<'static, [u8]>> {
        let arg = self.call.arg(n);
        let open = memchr::memchr(b'<', arg)?;
        let text = lex::annotation(&arg[open..])?;
        Some(Cow::Owned(lex::unescape(text)))
    }

    fn wanted(&self, path: &[u8]) -> bool {
        let apart = ["/proc", "/sys", "/dev"].iter().any(|root| {
            let rest = path.strip_prefix(root.as_bytes());
            rest.is_some_and(|r| r.is_empty() || r.starts_with(b"/"))
        });
        // `pipe:[12]`, `socket:[12]`, `TCP:[...]`, `anon_inode:[eventpoll]`.
        let nameless = !path.starts_with(b"/") && memchr::memmem::find(path, b":[").is_some()
            || path.starts_with(b"/memfd:");
        let under = &self.strace.under;
        let inside = under.is_empty() || under.iter().any(|u| path.starts_with(u));
        !apart && !nameless && inside
    }

    fn file_of(&mut self, path: &[u8]) -> Result<Option<FileKey>, Complaint> {
        match self.wanted(path) {
            true => self.sink.state.files.intern(path).map(Some),
            false => Ok(None),
        }
    }

    /// The open file behind a descriptor argument. One that was not seen to be opened begins at 0.
    fn open_file(&mut self, n: usize) -> Result<Option<(u32, &mut Open)>, Complaint> {
        let Some((fd, path)) = self.descriptor(n) else {
            return Ok(None);
        };
        let certain = self.strace.processes.saw_opening(self.pid, fd);
        let path = path.filter(|_| !certain).map(lex::unescape);
        if let Some(path) = path {
            self.assume(fd, &path)?;
        }
        Ok(self
            .strace
            .processes
            .get(self.pid, fd)
            .map(|open| (fd, open)))
    }

    fn assume(&mut self, fd: u32, path: &[u8]) -> Done {
        let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
        // Files are often renamed while they are open, so a path that differs says something only if
        // the descriptor itself is a guess.
        if let Some(open) = self.strace.processes.get(self.pid, fd) {
            let known = open.file;
            if !open.assumed || known == self.sink.state.files.find(path) {
                return Ok(());
            }
        }
        let file = self.file_of(path)?;
        if file.is_some() {
            self.sink.state.notes.assumed_offsets += 1;
        }
        let open = Open {
            file,
            offset: 0,
            append: false,
            assumed: true,
        };
        self.strace.processes.open(self.pid, fd, open, false)
    }

    // Descriptors ---------------------------------------------------------

    fn open(&mut self, directory: Option<usize>, path: usize, flags: usize) -> Done {
        let Ok(fd) = u32::try_from(self.result().number) else {
            return Ok(());
        };
        let path = match self.result().path {
            Some(text) => Some(lex::unescape(text)),
            None => self.path(directory, path),
        };
        let creat = flags == usize::MAX;
        let has = |flag| !creat && self.call.has(flags, flag);
        let (append, cut) = (has("O_APPEND"), creat || has("O_TRUNC"));
        let close_on_exec = has("O_CLOEXEC");
        let aside = has("O_DIRECTORY") || has("O_PATH");
        let file = match path {
            Some(path) if !aside => self.file_of(&path)?,
            _ => None,
        };
        let open = Open {
            file,
            offset: 0,
            append,
            assumed: false,
        };
        self.strace
            .processes
            .open(self.pid, fd, open, close_on_exec)?;
        match file {
            Some(file) if cut => self.cut(file, 0),
            _ => Ok(()),
        }
    }

    fn close(&mut self) -> Done {
        if let Some((fd, _)) = self.descriptor(0) {
            self.strace.processes.close(self.pid, fd);
        }
        Ok(())
    }

    fn close_range(&mut self) -> Done {
        let (first, last) = (self.call.number(0), self.call.number(1));
        if self.call.has(2, "CLOSE_RANGE_CLOEXEC") {
            return Ok(());
        }
        if let (Some(first), Some(last)) = (first, last) {
            let closes = |fd: u32, _| (first..=last).contains(&fd.into());
            self.strace.processes.close_where(self.pid, closes);
        }
        Ok(())
    }

    fn duplicate(&mut self, close_on_exec: bool) -> Done {
        self.open_file(0)?;
        let to = u32::try_from(self.result().number);
        if let (Some((from, _)), Ok(to)) = (self.descriptor(0), to) {
            self.strace
                .processes
                .duplicate(self.pid, from, to, close_on_exec);
        }
        Ok(())
    }

    fn control(&mut self) -> Done {
        match self.call.arg(1) {
            b"F_DUPFD" => return self.duplicate(false),
            b"F_DUPFD_CLOEXEC" => return self.duplicate(true),
            b"F_SETFD" => {
                let set = self.call.has(2, "FD_CLOEXEC");
                if let Some((fd, _)) = self.descriptor(0) {
                    self.strace.processes.set_close_on_exec(self.pid, fd, set);
                }
            }
            b"F_SETFL" => {
                let append = self.call.has(2, "O_APPEND");
                if let Some((_, open)) = self.open_file(0)? {
                    open.append = append;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn fork(&mut self) -> Done {
        let Ok(child) = u32::try_from(self.result().number) else {
            return Ok(());
        };
        if child == 0 || self.strace.processes.knows(child) {
            return Ok(());
        }
        let share = (0..8).any(|n| super::shares_descriptors(self.call.arg(n)));
        self.strace.processes.fork(self.pid, child, share)
    }

    fn change_directory(&mut self) -> Done {
        if let Some(path) = self.path(None, 0) {
            self.strace.processes.set_directory(self.pid, path);
        }
        Ok(())
    }

    fn change_to_open(&mut self) -> Done {
        if let Some(path) = self.annotated(0) {
            self.strace
                .processes
                .set_directory(self.pid, path.into_owned());
        }
        Ok(())
    }

    // Offsets -------------------------------------------------------------

    fn seek(&mut self) -> Done {
        let place = self.returned();
        let at_end = self.call.arg(1) == b"0" && self.call.arg(2) == b"SEEK_END";
        self.set_offset(place, at_end)
    }

    fn long_seek(&mut self) -> Done {
        let at_end = self.call.arg(4) == b"SEEK_END" || self.call.arg(3) == b"SEEK_END";
        let place = self.call.in_brackets(3).or(self.call.in_brackets(2));
        match place {
            Some(place) => self.set_offset(place, at_end && self.call.arg(1) == b"0"),
            None => Ok(()),
        }
    }

    fn set_offset(&mut self, place: u64, at_end: bool) -> Done {
        let mut file = None;
        if let Some((_, open)) = self.open_file(0)? {
            open.offset = place;
            file = open.file;
        }
        if let Some(file) = file.filter(|_| at_end) {
            self.sink.state.files.grow(file, place);
        }
        Ok(())
    }

    // Data ----------------------------------------------------------------

    /// Reads or writes at the descriptor's offset.
    fn advance(&mut self, op: Op) -> Done {
        let asked = self.call.number(2).and_then(|n| u64::try_from(n).ok());
        self.stream(0, op, asked)
    }

    fn stream(&mut self, n: usize, op: Op, asked: Option<u64>) -> Done {
        let moved = self.returned();
        let Some((_, open)) = self.open_file(n)? else {
            self.sink.state.passed.unresolved += 1;
            return Ok(());
        };
        let Some(file) = open.file else {
            self.sink.state.passed.elsewhere += 1;
            return Ok(());
        };
        let (at, append) = (open.offset, open.append && op == Op::Write);
        let at = if append { self.end_of(file) } else { at };
        self.data(op, file, at, moved)?;
        if let Some((_, open)) = self.open_file(n)? {
            open.offset = at.saturating_add(moved);
        }
        // A read that comes back short has met the end.
        if op == Op::Read && asked.is_some_and(|asked| moved < asked) {
            self.sink.state.files.grow(file, at.saturating_add(moved));
        }
        Ok(())
    }

    fn end_of(&mut self, file: FileKey) -> u64 {
        let size = self.sink.state.files.get(file).and_then(|f| f.size);
        if size.is_none() {
            self.sink.state.notes.assumed_offsets += 1;
        }
        size.unwrap_or(0)
    }

    fn data(&mut self, op: Op, file: FileKey, at: u64, moved: u64) -> Done {
        self.sink.file((self.time, self.pid, op), file, at, moved)?;
        if moved > 0 && op == Op::Write {
            self.sink.state.files.grow(file, at.saturating_add(moved));
        }
        Ok(())
    }

    /// Reads or writes at the offset in the argument behind the sizes.
    fn at_offset(&mut self, op: Op) -> Done {
        let offset = self.call.number(3).and_then(|n| u64::try_from(n).ok());
        let Some(offset) = offset else {
            // -1 in preadv2: the descriptor's own.
            return self.stream(0, op, None);
        };
        self.explicit(0, op, offset)
    }

    fn explicit(&mut self, n: usize, op: Op, offset: u64) -> Done {
        let moved = self.returned();
        let Some((_, open)) = self.open_file(n)? else {
            self.sink.state.passed.unresolved += 1;
            return Ok(());
        };
        match open.file {
            Some(file) => self.data(op, file, offset, moved),
            None => {
                self.sink.state.passed.elsewhere += 1;
                Ok(())
            }
        }
    }

    /// Through a pointer to an offset, or at the descriptor's own where that is `NULL`.
    fn through(&mut self, n: usize, op: Op, pointer: usize) -> Done {
        match self.call.in_brackets(pointer) {
            Some(offset) => self.explicit(n, op, offset),
            None => self.stream(n, op, None),
        }
    }

    fn send(&mut self) -> Done {
        self.through(1, Op::Read, 2)?;
        self.stream(0, Op::Write, None)
    }

    fn copy(&mut self) -> Done {
        self.through(0, Op::Read, 1)?;
        self.through(2, Op::Write, 3)
    }

    fn map(&mut self) -> Done {
        let anonymous = self.call.has(3, "MAP_ANONYMOUS") || self.call.arg(4) == b"-1";
        if anonymous {
            return Ok(());
        }
        let length = self.call.number(1).and_then(|n| u64::try_from(n).ok());
        let offset = self.call.number(5).and_then(|n| u64::try_from(n).ok());
        let (Some(length), Some(offset)) = (length, offset) else {
            return Ok(());
        };
        let Some((_, open)) = self.open_file(4)? else {
            self.sink.state.passed.unresolved += 1;
            return Ok(());
        };
        let Some(file) = open.file else {
            self.sink.state.passed.elsewhere += 1;
            return Ok(());
        };
        let size = self.sink.state.files.get(file).and_then(|f| f.size);
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

    // Files ---------------------------------------------------------------

    /// Learns a size from `st_size=` or `stx_size=`.
    fn status(&mut self) -> Done {
        let size = (1..5).find_map(|n| size_in(self.call.arg(n)));
        let Some(size) = size else {
            return Ok(());
        };
        // `fstatat(fd, "", ..., AT_EMPTY_PATH)` is about the descriptor, as is `fstat(fd, ...)`.
        let file = match lex::string(self.call.arg(1)) {
            Some(name) if !name.is_empty() => {
                let path = self.path(Some(0), 1);
                path.and_then(|p| self.sink.state.files.find(&p))
            }
            _ => self.open_file(0)?.and_then(|(_, open)| open.file),
        };
        if let Some(info) = file.and_then(|f| self.sink.state.files.info(f)) {
            info.size = Some(size);
        }
        Ok(())
    }

    fn truncate(&mut self) -> Done {
        let length = self.call.number(1).and_then(|n| u64::try_from(n).ok());
        let path = self.path(None, 0);
        let file = path.and_then(|p| self.sink.state.files.find(&p));
        match (file, length) {
            (Some(file), Some(length)) => self.cut(file, length),
            _ => Ok(()),
        }
    }

    fn truncate_open(&mut self) -> Done {
        let length = self.call.number(1).and_then(|n| u64::try_from(n).ok());
        let file = self.open_file(0)?.and_then(|(_, open)| open.file);
        match (file, length) {
            (Some(file), Some(length)) => self.cut(file, length),
            _ => Ok(()),
        }
    }

    /// The file is `length` bytes long from now on. Growing it, or cutting nothing, is no request.
    fn cut(&mut self, file: FileKey, length: u64) -> Done {
        let Some(info) = self.sink.state.files.info(file) else {
            return Ok(());
        };
        let before = info.size.replace(length);
        if before.is_some_and(|size| size <= length) {
            return Ok(());
        }
        self.sink.cut((self.time, self.pid), file, length)
    }

    fn remove(&mut self, directory: Option<usize>, path: usize) -> Done {
        let path = self.path(directory, path);
        match path.and_then(|p| self.sink.state.files.remove(&p)) {
            Some(file) => self.sink.cut((self.time, self.pid), file, 0),
            None => Ok(()),
        }
    }

    fn rename(&mut self, from: (Option<usize>, usize), to: (Option<usize>, usize)) -> Done {
        let (Some(old), Some(new)) = (self.path(from.0, from.1), self.path(to.0, to.1)) else {
            return Ok(());
        };
        match self.sink.state.files.rename(&old, &new) {
            Some(replaced) => self.sink.cut((self.time, self.pid), replaced, 0),
            None => Ok(()),
        }
    }
}

fn size_in(arg: &[u8]) -> Option<u64> {
    let name = b"_size=";
    let at = memchr::memmem::find(arg, name)? + name.len();
    let digits = arg[at..].iter().take_while(|b| b.is_ascii_digit()).count();
    plain(&arg[at..at + digits])
}

/// Takes out `.`, `..` and double slashes, as if there were no symbolic links.
fn tidy(path: &[u8]) -> Vec<u8> {
    let absolute = path.starts_with(b"/");
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|b| *b == b'/') {
        match part {
            b"" | b"." => {}
            b".." if parts.last().is_some_and(|p| *p != b"..") => drop(parts.pop()),
            b".." if absolute => {}
            _ => parts.push(part),
        }
    }
    let mut tidied = if absolute { b"/".to_vec() } else { Vec::new() };
    tidied.extend_from_slice(&parts.join(&b'/'));
    tidied
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_tidied() {
        for (path, tidied) in [
            (&b"/a//b/./c"[..], &b"/a/b/c"[..]),
            (b"/a/../../b", b"/b"),
            (b"../a/..", b".."),
            (b"a/../..", b".."),
            (b"./x", b"x"),
        ] {
            assert_eq!(tidy(path), tidied, "{}", path.escape_ascii());
        }
    }

    #[test]
    fn sizes_are_found_in_structures() {
        assert_eq!(
            size_in(b"{st_mode=S_IFREG|0644, st_size=123, ...}"),
            Some(123)
        );
        assert_eq!(size_in(b"{stx_mask=X, stx_size=9}"), Some(9));
        assert_eq!(size_in(b"{st_mode=S_IFDIR}"), None);
    }
}
