//! Calls that change or tell the size of files and their names.

use super::super::super::request::FileKey;
use super::super::super::text::plain;
use super::args::{Flag, Value};
use super::calls::{Context, Done};
use super::process::What;
use super::text::string;

/// The directory and the path of a name, as arguments.
type Name = (Option<usize>, usize);

/// What `fallocate` does to a range other than to reserve space.
#[derive(Clone, Copy)]
enum Change {
    /// Its pages leave the file.
    Empties,
    /// All behind it moves down.
    TakesOut,
    /// All behind it moves up.
    PutsIn,
    /// Its bytes are written anew where they lie.
    Rewrites,
}

const MODES: [(Flag, &str, Change); 6] = [
    (
        Flag("FALLOC_FL_PUNCH_HOLE", 0x02),
        "fallocate PUNCH_HOLE",
        Change::Empties,
    ),
    (
        Flag("FALLOC_FL_COLLAPSE_RANGE", 0x08),
        "fallocate COLLAPSE_RANGE",
        Change::TakesOut,
    ),
    (
        Flag("FALLOC_FL_ZERO_RANGE", 0x10),
        "fallocate ZERO_RANGE",
        Change::Empties,
    ),
    (
        Flag("FALLOC_FL_INSERT_RANGE", 0x20),
        "fallocate INSERT_RANGE",
        Change::PutsIn,
    ),
    (
        Flag("FALLOC_FL_UNSHARE_RANGE", 0x40),
        "fallocate UNSHARE_RANGE",
        Change::Rewrites,
    ),
    (
        Flag("FALLOC_FL_WRITE_ZEROES", 0x80),
        "fallocate WRITE_ZEROES",
        Change::Rewrites,
    ),
];
const KEEP_SIZE: Flag = Flag("FALLOC_FL_KEEP_SIZE", 0x01);

/// Where no file has a name while two of them change theirs.
const ASIDE: &[u8] = b"\0";

impl Context<'_, '_> {
    /// Learns a size from `st_size=` or `stx_size=`. Without a name this is about a descriptor, in
    /// `fstat(fd, ...)` and `fstatat(fd, "", ..., AT_EMPTY_PATH)`.
    pub fn status(&mut self, directory: Option<usize>, path: usize) -> Done {
        let named = string(self.call.arg(path)).is_some_and(|name| !name.is_empty());
        let has =
            |what: &[u8]| (1..5).any(|n| memchr::memmem::find(self.call.arg(n), what).is_some());
        // A pipe, a socket and a device may have names, but are no files.
        let aside = [&b"S_IFIFO"[..], b"S_IFSOCK", b"S_IFCHR"];
        if !named && aside.into_iter().any(has) {
            if let Some(open) = self.open_file(self.call.arg(0))? {
                open.what = What::Elsewhere;
            }
            return Ok(());
        }
        let size = (1..5).find_map(|n| size_in(self.call.arg(n)));
        let Some(size) = size else {
            return Ok(());
        };
        let file = match named {
            true => {
                let path = self.path((directory, path));
                path.and_then(|p| self.sink.state.files.find(&p))
            }
            false => self.file_behind(self.call.arg(0))?,
        };
        if let Some(file) = file {
            self.sink.state.files.ends(file, size);
        }
        Ok(())
    }

    pub fn truncate(&mut self) -> Done {
        if string(self.call.arg(0)).is_none() {
            return self.left_out("truncate, the path not printed");
        }
        let path = self.path((None, 0));
        let file = path.and_then(|p| self.sink.state.files.find(&p));
        self.cut_if_known(file)
    }

    pub fn truncate_open(&mut self) -> Done {
        let file = self.file_behind(self.call.arg(0))?;
        self.cut_if_known(file)
    }

    fn cut_if_known(&mut self, file: Option<FileKey>) -> Done {
        match (file, self.call.size(1)) {
            (Some(file), Some(length)) => self.cut(file, length),
            _ => Ok(()),
        }
    }

    /// The file is `length` bytes long from now on. Growing it, or cutting nothing, is no request.
    pub fn cut(&mut self, file: FileKey, length: u64) -> Done {
        let before = self.size_of(file);
        self.sink.state.files.ends(file, length);
        if before.is_some_and(|size| size <= length) {
            return Ok(());
        }
        self.sink.cut((self.time, self.pid), file, length)
    }

    /// `fallocate`. A hole that reaches the end takes all behind its beginning away, one in the middle
    /// its own pages: Linux drops them for a range of zeroes, too. A range that is taken out or put
    /// in moves all behind it to other pages, so none of the old ones are left.
    pub fn allocate(&mut self) -> Done {
        let Some(file) = self.file_behind(self.call.arg(0))? else {
            return Ok(());
        };
        let (Some(offset), Some(length)) = (self.call.size(2), self.call.size(3)) else {
            return Ok(());
        };
        let (size, end) = (self.size_of(file), offset.saturating_add(length));
        let mode = MODES.iter().find(|(flag, ..)| self.call.has(1, *flag));
        let (new_size, name) = match mode {
            None => (Some(size.map_or(end, |s| s.max(end))), None),
            Some((_, _, Change::TakesOut)) => (size.map(|s| s.saturating_sub(length)), None),
            Some((_, _, Change::PutsIn)) => (size.map(|s| s.saturating_add(length)), None),
            Some((_, _, Change::Empties)) if size.is_some_and(|s| s <= end) => (Some(end), None),
            Some((_, _, Change::Empties)) => {
                let who = (self.time, self.pid);
                return self.sink.punch(who, file, offset, length);
            }
            Some((_, name, Change::Rewrites)) => (size.map(|s| s.max(end)), Some(*name)),
        };
        if let Some(name) = name {
            self.left_out(name)?;
        } else if mode.is_some() && size.is_none_or(|s| offset < s) {
            self.sink.cut((self.time, self.pid), file, offset)?;
        }
        if self.call.has(1, KEEP_SIZE) {
            return Ok(());
        }
        match (size, new_size) {
            (Some(_), Some(new)) => self.sink.state.files.ends(file, new),
            // Room that is reserved: the file is at least so long.
            (None, Some(new)) if mode.is_none() => self.sink.state.files.grow(file, new),
            (None, Some(new)) => self.sink.state.files.ends(file, new),
            (_, None) => {
                if let Some(info) = self.sink.state.files.info(file) {
                    (info.size, info.is_end) = (None, false);
                }
            }
        }
        Ok(())
    }

    /// `posix_fadvise`, where it loads or drops pages.
    pub fn advise(&mut self) -> Done {
        let is = |name, number| self.call.is(3, Flag(name, number));
        if is("POSIX_FADV_WILLNEED", 3) {
            return self.left_out("fadvise64 WILLNEED");
        }
        match is("POSIX_FADV_DONTNEED", 4) {
            true => self.left_out("fadvise64 DONTNEED"),
            false => Ok(()),
        }
    }

    /// `ioctl`, where it copies between files or is about the descriptor.
    pub fn device_control(&mut self) -> Done {
        let command = self.call.arg(1);
        let number = Value::parse(command).map(|v| v.number);
        let is = |name: &str, code: i64| {
            number == Some(code) || memchr::memmem::find(command, name.as_bytes()).is_some()
        };
        if is("FIDEDUPERANGE", 0xc018_9436) {
            return self.left_out("ioctl FIDEDUPERANGE");
        }
        if is("FICLONERANGE", 0x4020_940d) || is("BTRFS_IOC_CLONE_RANGE", 0x4020_940d) {
            return self.left_out("ioctl FICLONERANGE");
        }
        if is("FICLONE", 0x4004_9409) || is("BTRFS_IOC_CLONE", 0x4004_9409) {
            return self.left_out("ioctl FICLONE");
        }
        if is("FIOCLEX", 0x5451) {
            self.close_on_exec(true);
        } else if is("FIONCLEX", 0x5450) {
            self.close_on_exec(false);
        }
        Ok(())
    }

    // Names ---------------------------------------------------------------

    pub fn remove(&mut self, directory: Option<usize>, path: usize) -> Done {
        self.sink.state.notes.moved_names += 1;
        let path = self.path_of_link((directory, path));
        let path = path.filter(|p| self.strace.links.take(p).is_none());
        match path.and_then(|p| self.sink.state.files.remove(&p)) {
            Some(file) => self.unlink(file),
            None => Ok(()),
        }
    }

    /// Its pages go away when nobody has it open any more.
    fn unlink(&mut self, file: FileKey) -> Done {
        self.strace.processes.unlink(file);
        Ok(())
    }

    pub fn rename(&mut self, from: Name, to: Name) -> Done {
        let (Some(old), Some(new)) = (self.path_of_link(from), self.path_of_link(to)) else {
            return Ok(());
        };
        self.sink.state.notes.moved_names += 1;
        let exchanges = self.call.has(4, Flag("RENAME_EXCHANGE", 2));
        let links = &mut self.strace.links;
        let (moved, replaced) = (links.take(&old), links.take(&new));
        let is_link = moved.is_some();
        if let Some(target) = moved {
            links.put(new.clone(), target);
        }
        if let Some(target) = replaced.filter(|_| exchanges) {
            links.put(old.clone(), target);
        }
        let files = &mut self.sink.state.files;
        if is_link && !exchanges {
            // What had the name is gone, as if it had been removed.
            return match files.remove(&new) {
                Some(replaced) => self.unlink(replaced),
                None => Ok(()),
            };
        }
        if exchanges {
            files.rename(&old, ASIDE)?;
            files.rename(&new, &old)?;
            files.rename(ASIDE, &new)?;
            return Ok(());
        }
        match files.rename(&old, &new)? {
            Some(replaced) => self.unlink(replaced),
            None => Ok(()),
        }
    }

    /// `link` and `linkat`: one more name of a file, which may be that of a descriptor.
    pub fn link(&mut self, from: Name, to: Name) -> Done {
        let Some(new) = self.path_of_link(to) else {
            return Ok(());
        };
        let file = match self.descriptor_in(from.1) {
            Some(fd) => {
                let open = self.strace.processes.seen(self.pid, fd);
                open.map_or(What::Unnamed, |open| open.what)
            }
            None => match (self.path(from), from.0) {
                (Some(old), _) => self.file_of(&old)?,
                // `AT_EMPTY_PATH`
                (None, Some(fd)) => self.what(self.call.arg(fd))?,
                (None, None) => return Ok(()),
            },
        };
        if let What::File(file) = file {
            self.strace.processes.has_name(file);
            self.sink.state.files.link(file, &new)?;
        }
        Ok(())
    }

    /// `symlink` and `symlinkat`: a path that leads to another, which need not be there.
    pub fn link_to(&mut self, to: Name) -> Done {
        if let (Some(target), Some(path)) = (string(self.call.arg(0)), self.path_of_link(to)) {
            self.strace.links.put(path, target);
        }
        Ok(())
    }

    /// The descriptor that a path such as `/proc/self/fd/3` leads to.
    pub fn descriptor_in(&self, path: usize) -> Option<u32> {
        let name = string(self.call.arg(path))?;
        let places = [&b"/proc/self/fd/"[..], b"/dev/fd/"];
        let fd = places
            .into_iter()
            .find_map(|place| name.strip_prefix(place))?;
        u32::try_from(plain(fd)?).ok()
    }
}

fn size_in(arg: &[u8]) -> Option<u64> {
    let name = b"_size=";
    let at = memchr::memmem::find(arg, name)? + name.len();
    let digits = arg[at..].iter().take_while(|b| b.is_ascii_digit()).count();
    plain(&arg[at..at + digits])
}

#[cfg(test)]
mod tests {
    use super::*;

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
