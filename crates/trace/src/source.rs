//! Files, pipes and standard input as inputs that can be read more than once.
//!
//! A regular file is opened anew by every reader. A pipe gives its bytes once, so the first reader
//! of a pipe pulls them in while it reads, and they are kept for the next one: up to 1 MiB in memory,
//! beyond that in a temporary file without a name, in the folder that `TMPDIR` names. A pipe is known by its device and inode, so that any path to it (`/dev/stdin`,
//! `/dev/fd/63`, a named pipe) leads to the same bytes; `-` stands for standard input.
//!
//! Bytes are handed out as they arrive: a reader that stops early leaves the rest in the pipe.
//! [`last_pass`] says that nobody will read a pipe again, and what follows is not kept.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of a pipe that are kept in memory, before a temporary file takes them.
const MEMORY: usize = 1 << 20;
/// Bytes pulled at a time where all of a pipe is wanted.
const PULL: usize = 1 << 16;
/// The path that stands for standard input.
pub(crate) const STDIN: &str = "-";
/// How messages call it.
const STDIN_NAME: &str = "standard input";

/// Device and inode.
type Identity = (u64, u64);

/// Every pipe that was opened. It stays open, so that no other gets its identity.
static PIPES: Mutex<BTreeMap<Identity, Arc<Pipe>>> = Mutex::new(BTreeMap::new());

/// Says that the next reader of the pipe at `path` is the last one: it gets what earlier readers
/// pulled in and then the pipe's own bytes, and nothing more is kept. Without meaning for files.
///
/// # Errors
/// Those of opening it.
pub fn last_pass(path: &Path) -> io::Result<()> {
    if let Place::Pipe { pipe, .. } = open(path)?.place {
        pipe.lock().keep = false;
    }
    Ok(())
}

/// The first bytes of a file or pipe, fewer than `bytes` if it is shorter. They stay there for later
/// readers.
pub(crate) fn first_bytes(path: &Path, bytes: usize) -> io::Result<Vec<u8>> {
    let mut first = Vec::with_capacity(bytes);
    open(path)?.take(bytes as u64).read_to_end(&mut first)?;
    Ok(first)
}

/// How messages call standard input and other paths.
pub(crate) fn name_of(path: &Path) -> String {
    if path.as_os_str() == STDIN {
        STDIN_NAME.to_owned()
    } else {
        path.display().to_string()
    }
}

/// The word for a command line by which messages call an input.
pub(crate) fn argument(name: &str) -> &str {
    if name == STDIN_NAME { STDIN } else { name }
}

/// Where a name of an input leads: `-` is standard input.
pub fn path_of_input(path: &Path) -> &Path {
    if path.as_os_str() == STDIN {
        Path::new("/dev/stdin")
    } else {
        path
    }
}

/// Opens a file or pipe at its beginning.
pub(crate) fn open(path: &Path) -> io::Result<Source> {
    let is_stdin = path.as_os_str() == STDIN;
    let path = path_of_input(path);
    let kind = std::fs::metadata(path)?;
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let file_type = kind.file_type();
    let streams = file_type.is_fifo() || file_type.is_socket() || file_type.is_char_device();
    if !streams {
        let place = Place::File(File::open(path)?);
        return Ok(Source { place });
    }
    let identity = (kind.dev(), kind.ino());
    let known = pipes().get(&identity).cloned();
    let pipe = match known {
        Some(pipe) => pipe,
        None => {
            // Not under the lock: opening a named pipe waits for its writer.
            let opened = Arc::new(Pipe::new(open_pipe(path, is_stdin)?));
            pipes().entry(identity).or_insert(opened).clone()
        }
    };
    let place = Place::Pipe { pipe, at: 0 };
    Ok(Source { place })
}

fn pipes() -> MutexGuard<'static, BTreeMap<Identity, Arc<Pipe>>> {
    PIPES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A socket cannot be opened by its path, but standard input is open already.
fn open_pipe(path: &Path, is_stdin: bool) -> io::Result<File> {
    match File::open(path) {
        Err(_) if is_stdin => {
            let own = io::stdin().as_fd().try_clone_to_owned()?;
            Ok(own.into())
        }
        opened => opened,
    }
}

enum Place {
    File(File),
    Pipe { pipe: Arc<Pipe>, at: u64 },
}

/// One reader of a file or pipe.
pub(crate) struct Source {
    place: Place,
}

/// All bytes of a source, to be read at any place.
pub(crate) enum Whole {
    File(File),
    Memory(Vec<u8>),
}

impl Source {
    /// What messages call it.
    pub(crate) const fn medium(&self) -> &'static str {
        match self.place {
            Place::File(_) => "file",
            Place::Pipe { .. } => "pipe",
        }
    }

    /// All bytes, after the end of a pipe has come.
    pub(crate) fn whole(self) -> io::Result<Whole> {
        match self.place {
            Place::File(file) => Ok(Whole::File(file)),
            Place::Pipe { pipe, .. } => {
                let mut state = pipe.lock();
                state.pull_to(u64::MAX)?;
                match &state.kept {
                    _ if state.stored < state.length => Err(gone()),
                    Kept::Memory(bytes) => Ok(Whole::Memory(bytes.clone())),
                    Kept::File(file) => Ok(Whole::File(file.try_clone()?)),
                }
            }
        }
    }
}

impl Read for Source {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match &mut self.place {
            Place::File(file) => file.read(out),
            Place::Pipe { pipe, at } => {
                let n = pipe.lock().read_at(*at, out)?;
                *at += n as u64;
                Ok(n)
            }
        }
    }
}

impl Seek for Source {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match &mut self.place {
            Place::File(file) => file.seek(to),
            Place::Pipe { pipe, at } => {
                let (base, step) = match to {
                    SeekFrom::Start(at) => (at, 0),
                    SeekFrom::Current(step) => (*at, step),
                    SeekFrom::End(step) => {
                        let mut state = pipe.lock();
                        state.pull_to(u64::MAX)?;
                        (state.length, step)
                    }
                };
                let outside = || io::Error::from(io::ErrorKind::InvalidInput);
                *at = base.checked_add_signed(step).ok_or_else(outside)?;
                Ok(*at)
            }
        }
    }
}

/// A pipe with what was pulled out of it.
struct Pipe(Mutex<State>);

struct State {
    pipe: File,
    kept: Kept,
    /// Bytes in `kept`.
    stored: u64,
    /// Bytes that came out of the pipe.
    length: u64,
    ended: bool,
    keep: bool,
}

enum Kept {
    Memory(Vec<u8>),
    File(File),
}

impl Pipe {
    const fn new(pipe: File) -> Self {
        Self(Mutex::new(State {
            pipe,
            kept: Kept::Memory(Vec::new()),
            stored: 0,
            length: 0,
            ended: false,
            keep: true,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn gone() -> io::Error {
    io::Error::other("this part of the pipe was read before and is not kept")
}

impl State {
    fn read_at(&mut self, at: u64, out: &mut [u8]) -> io::Result<usize> {
        self.pull_to(at)?;
        if at < self.stored {
            let room = usize::try_from(self.stored - at).unwrap_or(usize::MAX);
            let want = out.len().min(room);
            return match &self.kept {
                Kept::File(file) => file.read_at(&mut out[..want], at),
                Kept::Memory(bytes) => {
                    let from = at as usize;
                    out[..want].copy_from_slice(&bytes[from..from + want]);
                    Ok(want)
                }
            };
        }
        match at == self.length {
            true => self.pull(out),
            false if at < self.length => Err(gone()),
            false => Ok(0),
        }
    }

    /// Takes bytes out of the pipe until `at` is reached or it ends.
    fn pull_to(&mut self, at: u64) -> io::Result<()> {
        let mut buffer = [0; PULL];
        while self.length < at && !self.ended {
            let want = usize::try_from(at - self.length).unwrap_or(PULL).min(PULL);
            match self.pull(&mut buffer[..want]) {
                Err(e) if e.kind() != io::ErrorKind::Interrupted => return Err(e),
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes the next bytes out of the pipe, and keeps them.
    fn pull(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.ended || out.is_empty() {
            return Ok(0);
        }
        let n = self.pipe.read(out)?;
        self.ended = n == 0;
        self.length += n as u64;
        if self.keep {
            self.store(&out[..n])?;
        }
        Ok(n)
    }

    fn store(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Kept::Memory(kept) = &mut self.kept {
            if kept.len() + bytes.len() <= MEMORY {
                kept.extend_from_slice(bytes);
                self.stored += bytes.len() as u64;
                return Ok(());
            }
            let mut file = nameless()?;
            file.write_all(kept)?;
            self.kept = Kept::File(file);
        }
        if let Kept::File(file) = &self.kept {
            file.write_all_at(bytes, self.stored)?;
            self.stored += bytes.len() as u64;
        }
        Ok(())
    }
}

/// A temporary file that only its handle leads to.
fn nameless() -> io::Result<File> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let folder = std::env::temp_dir();
    loop {
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("piebald-pipe-{}-{n}", std::process::id()));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        match options.open(&path) {
            Ok(file) => {
                std::fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => {
                let text = format!("no temporary file in {}: {e}", folder.display());
                return Err(io::Error::new(e.kind(), text));
            }
        }
    }
}

#[cfg(test)]
mod tests;
