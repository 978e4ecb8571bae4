//! Calls that open, share and close descriptors, and make processes.

use super::args::{Flag, Value};
use super::calls::{CLOSE_ON_EXEC, Context, Done, is_lost, name_behind};
use super::process::{Open, What};
use super::text::Parts;

const APPEND: Flag = Flag("O_APPEND", 0x400);
const CUT: Flag = Flag("O_TRUNC", 0x200);
const CREATE: Flag = Flag("O_CREAT", 0x40);
const DIRECT: Flag = Flag("O_DIRECT", 0x4000);
const NEW: Flag = Flag("O_EXCL", 0x80);
const DIRECTORY: Flag = Flag("O_DIRECTORY", 0x1_0000);
const PATH: Flag = Flag("O_PATH", 0x20_0000);
/// A new file without a name, in the directory that is named.
const NAMELESS: Flag = Flag("O_TMPFILE", 0x41_0000);

/// What opening a file does to it.
#[derive(Default)]
struct Mode {
    append: bool,
    /// The page cache is passed by.
    direct: bool,
    /// All of it goes away.
    cut: bool,
    /// It did not exist before.
    new: bool,
    /// The path is its directory's.
    nameless: bool,
    close_on_exec: bool,
    /// Nothing is read or written through the descriptor.
    aside: bool,
}

impl<'a> Context<'a, '_> {
    /// Opens the path in the arguments `path`, with the flags in another one: its value, or in
    /// `openat2` the field `flags` of a structure. Without a path in the arguments it stands behind the
    /// result, if anywhere.
    pub fn open(&mut self, path: Option<(Option<usize>, usize)>, flags: usize) -> Done {
        let arg = self.call.arg(flags);
        let flags = Parts::of(arg).and_then(|parts| parts.field("flags"));
        let flags = flags.unwrap_or(arg);
        let has = |flag: Flag| flag.is_in(flags);
        self.learn_directory();
        let mode = Mode {
            append: has(APPEND),
            direct: has(DIRECT),
            cut: has(CUT),
            new: has(CREATE) && has(NEW) || has(NAMELESS),
            nameless: has(NAMELESS),
            close_on_exec: has(CLOSE_ON_EXEC),
            aside: (has(DIRECTORY) && !has(NAMELESS)) || has(PATH),
        };
        self.open_as(path, &mode)
    }

    pub fn create(&mut self) -> Done {
        let cut = Mode {
            cut: true,
            ..Mode::default()
        };
        self.open_as(Some((None, 0)), &cut)
    }

    fn open_as(&mut self, path: Option<(Option<usize>, usize)>, mode: &Mode) -> Done {
        let Ok(fd) = u32::try_from(self.result().number) else {
            return Ok(());
        };
        let annotated = name_behind(self.result());
        let named = path.and_then(|p| self.path(p));
        let directory = annotated.clone().or(named.clone()).filter(|_| mode.aside);
        // What a descriptor leads to is opened once more; a name that it has lost does not say which file that was.
        let again = path.and_then(|(_, path)| self.descriptor_in(path));
        let again = again.and_then(|fd| self.strace.processes.seen(self.pid, fd));
        let lost = is_lost(self.result());
        let again = again
            .map(|open| open.what)
            .filter(|what| annotated.is_none() || lost && matches!(what, What::File(_)));
        let what = match (annotated, named) {
            _ if mode.aside => What::Elsewhere,
            _ if again.is_some() => again.unwrap_or(What::Elsewhere),
            (Some(path), _) if mode.nameless && self.wanted(&path) => {
                What::File(self.sink.state.files.add(&path, None)?)
            }
            (Some(path), _) => self.file_named(&path)?,
            (None, Some(path)) if mode.nameless && self.wanted(&path) => {
                What::File(self.sink.state.files.add(&path, None)?)
            }
            (None, Some(path)) => self.file_of(&path)?,
            (None, None) => What::Unnamed,
        };
        let open = Open {
            append: mode.append,
            direct: mode.direct,
            directory: directory.map(Vec::into_boxed_slice),
            ..Open::begun(what)
        };
        let processes = &mut self.strace.processes;
        processes.open(self.pid, fd, open, mode.close_on_exec)?;
        let What::File(file) = what else {
            return Ok(());
        };
        if mode.new {
            self.sink.state.files.ends(file, 0);
        }
        if mode.nameless {
            // It is there as long as it is open, or until it gets a name.
            self.sink.state.files.forget_path(file);
            self.strace.processes.unlink(file);
        }
        match mode.cut {
            true => self.cut(file, 0),
            false => Ok(()),
        }
    }

    /// The result is a descriptor of something that is no file.
    pub fn nameless(&mut self) -> Done {
        let fd = self.result();
        self.open_nameless(fd)
    }

    /// Argument `n` holds two descriptors of something that is no file.
    pub fn pair(&mut self, n: usize) -> Done {
        let parts = Parts::of(self.call.arg(n)).into_iter().flatten();
        for fd in parts.filter_map(Value::parse) {
            self.open_nameless(fd)?;
        }
        Ok(())
    }

    fn open_nameless(&mut self, fd: Value<'a>) -> Done {
        let Ok(number) = u32::try_from(fd.number) else {
            return Ok(());
        };
        let what = match name_behind(fd) {
            Some(name) => self.file_named(&name)?,
            None => What::Elsewhere,
        };
        // `SOCK_CLOEXEC`, `EFD_CLOEXEC` and so on have the same bit.
        let flagged = |arg: &[u8]| {
            memchr::memmem::find(arg, b"_CLOEXEC").is_some() || CLOSE_ON_EXEC.is_in(arg)
        };
        let close_on_exec = (0..4).any(|n| flagged(self.call.arg(n)));
        let open = Open {
            assumed: true,
            // A descriptor of another process, as `pidfd_getfd` takes it, may stand anywhere.
            begins_anywhere: true,
            ..Open::begun(what)
        };
        let processes = &mut self.strace.processes;
        processes.open(self.pid, number, open, close_on_exec)
    }

    pub fn close(&mut self) -> Done {
        if let Some((fd, _)) = self.descriptor(self.call.arg(0)) {
            self.strace.processes.close(self.pid, fd);
        }
        Ok(())
    }

    pub fn close_range(&mut self) -> Done {
        let (Some(first), Some(last)) = (self.call.size(0), self.call.size(1)) else {
            return Ok(());
        };
        let (pid, range) = (self.pid, first..=last);
        let picks = |fd: u32| range.contains(&fd.into());
        let processes = &mut self.strace.processes;
        if self.call.has(2, Flag("CLOSE_RANGE_UNSHARE", 2)) {
            processes.unshare(pid)?;
        }
        match self.call.has(2, Flag("CLOSE_RANGE_CLOEXEC", 4)) {
            true => processes.set_close_on_exec(pid, picks, true),
            false => processes.close_where(pid, |fd, _| picks(fd)),
        }
        Ok(())
    }

    pub fn duplicate(&mut self, close_on_exec: bool) -> Done {
        let from = self.call.arg(0);
        self.open_file(from)?;
        let to = u32::try_from(self.result().number);
        if let (Some((from, _)), Ok(to)) = (self.descriptor(from), to) {
            let processes = &mut self.strace.processes;
            processes.duplicate(self.pid, from, to, close_on_exec);
        }
        Ok(())
    }

    pub fn control(&mut self) -> Done {
        let is = |name, number| self.call.is(1, Flag(name, number));
        if is("F_DUPFD", 0) {
            return self.duplicate(false);
        }
        if is("F_DUPFD_CLOEXEC", 0x406) {
            return self.duplicate(true);
        }
        if is("F_SETFD", 2) {
            let set = self.call.has(2, Flag("FD_CLOEXEC", 1));
            self.close_on_exec(set);
        } else if is("F_SETFL", 4) {
            let append = self.call.has(2, APPEND);
            if let Some(open) = self.open_file(self.call.arg(0))? {
                open.append = append;
            }
        }
        Ok(())
    }

    pub fn close_on_exec(&mut self, set: bool) {
        if let Some((fd, _)) = self.descriptor(self.call.arg(0)) {
            let processes = &mut self.strace.processes;
            processes.set_close_on_exec(self.pid, |n| n == fd, set);
        }
    }

    // Processes -----------------------------------------------------------

    pub fn fork(&mut self) -> Done {
        let Ok(child) = u32::try_from(self.result().number) else {
            return Ok(());
        };
        let shares = super::events::shares(&self.call.args);
        let processes = &mut self.strace.processes;
        match child {
            0 => Ok(()),
            _ if processes.knows(child) => processes.fork_known(self.pid, child, shares),
            _ => processes.fork(self.pid, child, shares),
        }
    }

    pub fn unshare(&mut self) -> Done {
        // A process with a new namespace of mounts no longer shares its current directory.
        if self.call.has(0, Flag("CLONE_FS", 0x200))
            || self.call.has(0, Flag("CLONE_NEWNS", 0x2_0000))
        {
            self.strace.processes.unshare_directory(self.pid);
        }
        if self.call.has(0, Flag("CLONE_FILES", 0x400)) {
            self.strace.processes.unshare(self.pid)?;
        }
        Ok(())
    }

    pub fn change_directory(&mut self) -> Done {
        if let Some(path) = self.path((None, 0)) {
            self.strace.processes.set_directory(self.pid, path);
        }
        Ok(())
    }

    /// Absolute paths of the process begin there from now on; its current directory stays.
    pub fn change_root(&mut self) -> Done {
        if let Some(path) = self.path((None, 0)) {
            self.strace.processes.set_root(self.pid, path);
        }
        Ok(())
    }

    pub fn change_to_open(&mut self) -> Done {
        if let Some(path) = self.annotated(0).or_else(|| self.open_directory(0)) {
            self.strace.processes.set_directory(self.pid, path);
        }
        Ok(())
    }
}
