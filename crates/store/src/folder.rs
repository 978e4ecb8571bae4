//! The folder: entries that are found, made and put in place.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    entry::{self, Key},
    look::Looks,
};

/// Of the form that is described in the crate's documentation.
pub(crate) const FORM: &str = "v1";
/// How long to wait before a lease is tried once more.
const PAUSE: Duration = Duration::from_millis(20);
/// An entry that is used is marked so at most once in this time.
const MARKED: Duration = Duration::from_secs(3600);

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Of the operating system.
    #[error("{}: {source}", path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

/// What was taken out of a store, and what was put in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Outcomes that were found.
    pub found: u64,
    /// Outcomes that were made and kept.
    pub kept: u64,
    /// Outcomes that were found, made once more and were the same.
    pub checked: u64,
    /// Why the first outcome was not kept that should have been: a full disk, for one.
    pub problem: Option<String>,
}

/// Outcomes on disk. Any number of threads and processes may use one folder.
pub struct Store {
    folder: PathBuf,
    epoch: String,
    found: AtomicU64,
    kept: AtomicU64,
    checked: AtomicU64,
    problem: Mutex<Option<String>>,
    /// Nothing is made or kept: it is noted what was looked for.
    looks: Option<Looks>,
}

/// The right to make an entry, until it is dropped.
pub struct Lease {
    file: File,
    path: PathBuf,
}

impl Drop for Lease {
    fn drop(&mut self) {
        // Still locked: whoever opens the file that is made next waits for nobody.
        if is_at(&self.file, &self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The bytes of an entry. A pipe in its place would be waited for.
fn read(path: &Path) -> Option<Vec<u8>> {
    let is_file = path.metadata().is_ok_and(|found| found.is_file());
    is_file.then(|| fs::read(path).ok())?
}

impl Store {
    /// Opens a folder, which is made if it is not there. `epoch` stands for the code that makes
    /// outcomes: what another epoch left is not seen.
    ///
    /// # Errors
    /// The folder can neither be made nor written to.
    pub fn open(folder: &Path, epoch: &str) -> Result<Self, StoreError> {
        let own = folder.join(FORM);
        let problem = |source| StoreError::Io {
            path: own.clone(),
            source,
        };
        fs::create_dir_all(&own).map_err(problem)?;
        tempfile::tempfile_in(&own).map_err(problem)?;
        Ok(Self::of(own, epoch, None))
    }

    /// The same to look only: nothing is made in the folder, which need not be there, and
    /// [`looked`](Self::looked) says what was looked for. Whoever has no outcome from it makes none.
    pub fn to_look(folder: &Path, epoch: &str) -> Self {
        Self::of(folder.join(FORM), epoch, Some(Looks::default()))
    }

    fn of(folder: PathBuf, epoch: &str, looks: Option<Looks>) -> Self {
        Self {
            folder,
            epoch: epoch.to_owned(),
            found: AtomicU64::new(0),
            kept: AtomicU64::new(0),
            checked: AtomicU64::new(0),
            problem: Mutex::new(None),
            looks,
        }
    }

    /// Is it there to look only?
    pub const fn only_looks(&self) -> bool {
        self.looks.is_some()
    }

    /// What was looked for in a store that is there to look only; nothing of another.
    pub fn looked(&self) -> Vec<crate::Look> {
        self.looks.as_ref().map_or_else(Vec::new, Looks::all)
    }

    /// The key of a text.
    pub fn key(&self, text: &str) -> Key {
        Key::new(&self.epoch, text)
    }

    /// The outcome of a text, if it is there.
    pub fn get<T: DeserializeOwned>(&self, text: &str) -> Option<T> {
        self.get_if(text, Some)
    }

    /// The same, if it is of use; what is not counts as not found.
    pub fn get_if<T: DeserializeOwned, U>(
        &self,
        text: &str,
        of_use: impl FnOnce(T) -> Option<U>,
    ) -> Option<U> {
        let key = self.key(text);
        let path = self.path(key, "zst");
        let bytes = read(&path);
        let found = bytes.and_then(|bytes| entry::read(&bytes, &self.epoch, text));
        if let Some(looks) = &self.looks {
            let seconds = found.as_ref().map(|(_, seconds)| *seconds);
            looks.note(key, text, seconds);
            return found.and_then(|(outcome, _)| of_use(outcome));
        }
        let outcome = of_use(found?.0)?;
        mark_used(&path);
        self.found.fetch_add(1, Ordering::Relaxed);
        Some(outcome)
    }

    /// The right to make the entry of a text. Waits while somebody else has it; nothing if `stop`
    /// is set in the meantime, or if there can be no leases here.
    pub fn lease(&self, text: &str, stop: Option<&AtomicBool>) -> Option<Lease> {
        let path = self.path(self.key(text), "lease");
        loop {
            if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                return None;
            }
            let mut options = OpenOptions::new();
            let options = options.create(true).truncate(false).write(true);
            fs::create_dir_all(path.parent()?).ok()?;
            let file = options.open(&path).ok()?;
            match file.try_lock() {
                // Who had it may have removed it, and somebody made it anew.
                Ok(()) if is_at(&file, &path) => return Some(Lease { file, path }),
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
                Err(TryLockError::Error(_)) => return None,
            }
        }
    }

    /// Keeps an outcome, and what it took to make it. A disk that is full is no reason to end: it is said once, in
    /// [`Store::tally`].
    pub fn put<T: Serialize>(&self, text: &str, outcome: &T, took: Duration) {
        if self.only_looks() {
            return;
        }
        let path = self.path(self.key(text), "zst");
        match self.write(&path, text, (outcome, took)) {
            Ok(()) => {
                self.kept.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => {
                let mut problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
                problem.get_or_insert(format!("{}: {error}", path.display()));
            }
        }
    }

    /// An outcome was found and made once more, and both were the same.
    pub fn count_check(&self) {
        self.checked.fetch_add(1, Ordering::Relaxed);
    }

    /// What was found and kept since the store was opened.
    pub fn tally(&self) -> Tally {
        let problem = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        Tally {
            found: self.found.load(Ordering::Relaxed),
            kept: self.kept.load(Ordering::Relaxed),
            checked: self.checked.load(Ordering::Relaxed),
            problem: problem.clone(),
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, key: Key, ending: &str) -> PathBuf {
        let name = key.to_string();
        let (first, rest) = name.split_at(2);
        self.folder.join(first).join(format!("{rest}.{ending}"))
    }

    fn write<T: Serialize>(
        &self,
        path: &Path,
        text: &str,
        outcome: (&T, Duration),
    ) -> io::Result<()> {
        let bytes = entry::write(&self.epoch, text, outcome)?;
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder)?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&bytes)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|e| e.error)?;
        File::open(folder)?.sync_all()
    }
}

/// In words.
impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "runs found in the store: {}, kept there now: {}",
            self.found, self.kept
        )?;
        if self.checked > 0 {
            write!(f, "; run once more and the same: {}", self.checked)?;
        }
        match &self.problem {
            Some(problem) => write!(f, "; not kept: {problem}"),
            None => Ok(()),
        }
    }
}

/// A file is still what lies at a path.
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |meta: fs::Metadata| (meta.dev(), meta.ino());
    let (open, there) = (file.metadata().map(place), fs::metadata(path).map(place));
    matches!((open, there), (Ok(open), Ok(there)) if open == there)
}

/// An entry was used now: what was used last is removed last.
fn mark_used(path: &Path) {
    let Ok(file) = OpenOptions::new().append(true).open(path) else {
        return;
    };
    let age = file.metadata().and_then(|m| m.modified());
    let age = age.ok().and_then(|time| time.elapsed().ok());
    if age.is_some_and(|age| age > MARKED) {
        // A store that cannot be written to can be read all the same.
        let _ = file.set_modified(SystemTime::now());
    }
}
