//! Which calls matter, and the names that they give.

use std::borrow::Cow;

use super::super::super::request::{FileKey, Nanos, Op};
use super::super::super::sink::Sink;
use super::Strace;
use super::args::{Call, Flag, Value};
use super::process::{Open, What};
use super::text::{annotation, string, tidy, unescape};
use crate::foreign::error::Complaint;

pub(super) type Done = Result<(), Complaint>;
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

/// Whether a call begins another program in the process.
pub(super) fn runs_program(name: &[u8]) -> bool {
    matches!(name, b"execve" | b"execveat")
}

/// `None` for calls that change nothing here.
pub(super) fn handler(name: &[u8]) -> Option<Handler> {
    Some(match name {
        b"read" => |c| c.advance(Op::Read, Some(2)),
        b"readv" => |c| c.advance(Op::Read, None),
        b"write" | b"writev" => |c| c.advance(Op::Write, None),
        b"pread64" | b"pread" => |c| c.at_offset(Op::Read, Some(2)),
        b"preadv" | b"preadv2" => |c| c.at_offset(Op::Read, None),
        b"pwrite64" | b"pwrite" | b"pwritev" | b"pwritev2" => |c| c.at_offset(Op::Write, None),
        b"lseek" => |c| c.seek(),
        b"_llseek" | b"llseek" => |c| c.long_seek(),
        b"sendfile" | b"sendfile64" => |c| c.send(),
        b"copy_file_range" => |c| c.copy("copy_file_range"),
        b"splice" => |c| c.copy("splice"),
        b"mmap" | b"old_mmap" => |c| c.map(),
        b"mmap2" => |c| c.map_by_pages(),
        b"mremap" => |c| c.map_more(),
        b"munmap" => |c| c.unmap(),
        b"io_submit" => |c| c.submit(),
        b"truncate" | b"truncate64" => |c| c.truncate(),
        b"ftruncate" | b"ftruncate64" => |c| c.truncate_open(),
        b"fallocate" => |c| c.allocate(),
        b"unlink" => |c| c.remove(None, 0),
        b"unlinkat" => |c| c.remove(Some(0), 1),
        b"rename" => |c| c.rename((None, 0), (None, 1)),
        b"renameat" | b"renameat2" => |c| c.rename((Some(0), 1), (Some(2), 3)),
        b"link" => |c| c.link((None, 0), (None, 1)),
        b"linkat" => |c| c.link((Some(0), 1), (Some(2), 3)),
        b"symlink" => |c| c.link_to((None, 1)),
        b"symlinkat" => |c| c.link_to((Some(1), 2)),
        b"io_uring_enter" => |c| c.left_out("io_uring_enter"),
        b"vmsplice" => |c| c.left_out("vmsplice"),
        b"tee" => |c| c.left_out("tee"),
        b"readahead" => |c| c.left_out("readahead"),
        b"fadvise64" | b"fadvise64_64" | b"arm_fadvise64_64" => |c| c.advise(),
        b"ioctl" => |c| c.device_control(),
        _ => return descriptor_handler(name),
    })
}

/// Of calls that only change descriptors, processes and what is known of files.
fn descriptor_handler(name: &[u8]) -> Option<Handler> {
    Some(match name {
        b"open" => |c| c.open(Some((None, 0)), 1),
        b"creat" => |c| c.create(),
        b"openat" | b"openat2" => |c| c.open(Some((Some(0), 1)), 2),
        b"open_by_handle_at" => |c| c.open(None, 2),
        b"close" => |c| c.close(),
        b"close_range" => |c| c.close_range(),
        b"dup" | b"dup2" => |c| c.duplicate(false),
        b"dup3" => |c| c.duplicate(c.call.has(2, CLOSE_ON_EXEC)),
        b"fcntl" | b"fcntl64" => |c| c.control(),
        b"pipe" | b"pipe2" => |c| c.pair(0),
        b"socketpair" => |c| c.pair(3),
        b"socket" | b"accept" | b"accept4" | b"eventfd" | b"eventfd2" | b"epoll_create"
        | b"epoll_create1" | b"memfd_create" | b"memfd_secret" | b"timerfd_create"
        | b"signalfd" | b"signalfd4" | b"inotify_init" | b"inotify_init1" | b"fanotify_init"
        | b"userfaultfd" | b"pidfd_open" | b"pidfd_getfd" | b"perf_event_open"
        | b"io_uring_setup" | b"mq_open" => |c| c.nameless(),
        b"fstat" | b"fstat64" | b"newfstatat" | b"fstatat64" | b"statx" => |c| c.status(Some(0), 1),
        b"stat" | b"stat64" | b"lstat" | b"lstat64" => |c| c.status(None, 0),
        b"chdir" => |c| c.change_directory(),
        b"fchdir" => |c| c.change_to_open(),
        b"chroot" => |c| c.change_root(),
        b"unshare" => |c| c.unshare(),
        _ if runs_program(name) => |c| c.strace.processes.exec(c.pid),
        _ if makes_process(name) => |c| c.fork(),
        _ => return None,
    })
}

/// What strace before 6.4 writes behind the name of a file that has lost it.
const GONE: &[u8] = b" (deleted)";

/// Of all calls that open; in `dup3`, too.
pub(super) const CLOSE_ON_EXEC: Flag = Flag("O_CLOEXEC", 0x8_0000);

impl<'a> Context<'a, '_> {
    /// Runs the handler; a call that makes no request is counted.
    pub fn run(mut self, handler: Handler) -> Done {
        let before = self.tally();
        self.strace.processes.calls(self.pid);
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

    /// A call that moves data and becomes no request.
    pub fn left_out(&mut self, name: &'static str) -> Done {
        self.sink.state.left_out.count(name, 1);
        Ok(())
    }

    pub fn result(&self) -> Value<'a> {
        let nothing = Value {
            number: 0,
            path: None,
            lost: false,
        };
        self.call.result.unwrap_or(nothing)
    }

    /// Bytes moved, or a new descriptor or place.
    pub fn returned(&self) -> u64 {
        u64::try_from(self.result().number).unwrap_or(0)
    }

    // Names ---------------------------------------------------------------

    /// The path in argument `path`, relative to the directory in argument `directory`, and where it leads.
    pub fn path(&self, name: (Option<usize>, usize)) -> Option<Vec<u8>> {
        Some(self.strace.links.follow(&self.path_as_it_is(name)?, true))
    }

    /// The same of a call that takes a link for itself.
    pub fn path_of_link(&self, name: (Option<usize>, usize)) -> Option<Vec<u8>> {
        Some(self.strace.links.follow(&self.path_as_it_is(name)?, false))
    }

    fn path_as_it_is(&self, (directory, path): (Option<usize>, usize)) -> Option<Vec<u8>> {
        let name = string(self.call.arg(path))?;
        if name.is_empty() {
            return None;
        }
        if name.starts_with(b"/") {
            let root = self.strace.processes.root(self.pid);
            // What stands behind `..` in a root is that root.
            return Some(root.map_or(name.clone(), |root| [root, &tidy(&name)].concat()));
        }
        let base = match directory.and_then(|n| self.directory_in(n)) {
            Some(known) => Some(Cow::Owned(known?)),
            None => self.strace.processes.directory(self.pid).map(Cow::Borrowed),
        };
        Some(match base {
            Some(base) => [&base[..], b"/", &name].concat(),
            None => name,
        })
    }

    /// The directory in argument `n`: nothing if it is the current one, and `Some(None)` if the log does
    /// not say where it is.
    fn directory_in(&self, n: usize) -> Option<Option<Vec<u8>>> {
        if let Some(path) = self.annotated(n) {
            return Some(Some(path));
        }
        if self.call.is(n, Flag("AT_FDCWD", -100_i64 as u64)) {
            return None;
        }
        Some(self.open_directory(n))
    }

    /// The path of the directory that the descriptor in argument `n` was opened on.
    pub fn open_directory(&self, n: usize) -> Option<Vec<u8>> {
        let fd = u32::try_from(Value::parse(self.call.arg(n))?.number).ok()?;
        let open = self.strace.processes.seen(self.pid, fd)?;
        if let Some(path) = &open.directory {
            return Some(path.to_vec());
        }
        let What::File(file) = open.what else {
            return None;
        };
        let file = self.sink.state.files.get(file)?;
        Some(file.path().as_bytes().to_vec())
    }

    /// Learns the current directory from `AT_FDCWD</w>`: other calls do not say it.
    pub fn learn_directory(&mut self) {
        let current = self.call.is(0, Flag("AT_FDCWD", -100_i64 as u64));
        if let Some(path) = self.annotated(0).filter(|_| current)
            && self.strace.processes.directory(self.pid) != Some(&path)
        {
            self.strace.processes.set_directory(self.pid, path);
        }
    }

    /// The path that strace wrote behind a descriptor or `AT_FDCWD`.
    pub fn annotated(&self, n: usize) -> Option<Vec<u8>> {
        let arg = self.call.arg(n);
        let open = memchr::memchr(b'<', arg)?;
        annotation(&arg[open..]).map(unescape)
    }

    pub fn wanted(&self, path: &[u8]) -> bool {
        let apart = ["/proc", "/sys", "/dev"].iter().any(|root| {
            let rest = path.strip_prefix(root.as_bytes());
            rest.is_some_and(|r| r.is_empty() || r.starts_with(b"/"))
        });
        let under = &self.strace.under;
        let inside = under.is_empty() || under.iter().any(|u| path.starts_with(u));
        !apart && !path.starts_with(b"/memfd:") && inside
    }

    pub fn file_of(&mut self, path: &[u8]) -> Result<What, Complaint> {
        match self.wanted(path) {
            true => self.sink.state.files.intern(path).map(What::File),
            false => Ok(What::Elsewhere),
        }
    }

    /// What a name that strace wrote behind a descriptor leads to. Without a slash before it, it is
    /// `pipe:[12]`, `socket:[12]`, `TCP:[...]`, `{eventfd-count=0}`, `pid:12`. A file that has lost its name is
    /// another than the one that has it now.
    pub fn file_named(&mut self, path: &[u8]) -> Result<What, Complaint> {
        if path.starts_with(b"/") {
            self.file_of(path)
        } else {
            Ok(What::Elsewhere)
        }
    }

    /// The number of a descriptor, and the name that strace wrote behind it.
    pub fn descriptor(&self, text: &'a [u8]) -> Option<(u32, Option<&'a [u8]>)> {
        let value = Value::parse(text)?;
        Some((u32::try_from(value.number).ok()?, value.path))
    }

    /// The open file behind a descriptor. One that was not seen to be opened begins at 0.
    pub fn open_file(&mut self, text: &'a [u8]) -> Result<Option<&mut Open>, Complaint> {
        let Some((fd, path)) = self.descriptor(text) else {
            return Ok(None);
        };
        if let Some(path) = path
            && self
                .strace
                .processes
                .needs_name(self.pid, fd, is_path(path))
            && let Some(name) = Value::parse(text).and_then(name_behind)
        {
            self.assume(fd, &name)?;
        }
        Ok(self.strace.processes.get(self.pid, fd))
    }

    /// What a descriptor leads to; `Unnamed` if the log does not say.
    pub fn what(&mut self, text: &'a [u8]) -> Result<What, Complaint> {
        Ok(self
            .open_file(text)?
            .map_or(What::Unnamed, |open| open.what))
    }

    /// The file behind a descriptor.
    pub fn file_behind(&mut self, text: &'a [u8]) -> Result<Option<FileKey>, Complaint> {
        Ok(match self.what(text)? {
            What::File(file) => Some(file),
            What::Elsewhere | What::Unnamed => None,
        })
    }

    /// Goes by the name behind a descriptor, at an offset that is not known.
    fn assume(&mut self, fd: u32, path: &[u8]) -> Done {
        let before = self.strace.processes.seen(self.pid, fd);
        let before = before.map(|open| open.what);
        // It is the file that had the name before.
        let had = path.strip_suffix(GONE);
        let had = had.and_then(|had| self.sink.state.files.find(had));
        if had.is_some_and(|had| before == Some(What::File(had))) {
            return Ok(());
        }
        let what = self.file_named(path)?;
        if before == Some(what) {
            return Ok(());
        }
        let open = Open {
            assumed: true,
            begins_anywhere: true,
            ..Open::begun(what)
        };
        self.strace.processes.open(self.pid, fd, open, false)
    }
}

/// The name that strace wrote behind a descriptor; that of a file that has lost it in the form of before 6.4.
pub(super) fn name_behind(value: Value<'_>) -> Option<Vec<u8>> {
    let mut name = unescape(value.path?);
    if value.lost {
        name.extend(GONE);
    }
    Some(name)
}

/// Has the file behind a value lost its name?
pub(super) fn is_lost(value: Value<'_>) -> bool {
    name_behind(value).is_some_and(|name| name.ends_with(GONE))
}

/// Whether a name that strace wrote behind a descriptor, with its escapes, is a path.
fn is_path(name: &[u8]) -> bool {
    name.starts_with(b"/") || name.starts_with(b"\\x2f")
}
