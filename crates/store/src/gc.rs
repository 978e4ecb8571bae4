//! How much a store holds, and making room.

use std::{
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::folder::{Store, StoreError};

/// What lies in a store, of whatever epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Entries.
    pub entries: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What was removed, and what is left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// What is not there any more.
    pub removed: Contents,
    /// What is.
    pub left: Contents,
}

pub(crate) struct Found {
    used: SystemTime,
    bytes: u64,
    pub(crate) path: PathBuf,
}

impl Store {
    /// What the store holds.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub fn contents(&self) -> Result<Contents, StoreError> {
        let found = found(self.folder())?;
        Ok(Contents {
            entries: found.len() as u64,
            bytes: found.iter().map(|f| f.bytes).sum(),
        })
    }

    /// Removes entries, those first that were used longest ago, until at most `bytes` are left.
    ///
    /// # Errors
    /// A folder cannot be read, or an entry not be removed.
    pub fn keep(&self, bytes: u64) -> Result<Removed, StoreError> {
        let mut found = found(self.folder())?;
        found.sort_by(|a, b| a.used.cmp(&b.used).then_with(|| a.path.cmp(&b.path)));
        let mut result = Removed::default();
        result.left.entries = found.len() as u64;
        result.left.bytes = found.iter().map(|f| f.bytes).sum();
        for entry in found {
            if result.left.bytes <= bytes {
                break;
            }
            match fs::remove_file(&entry.path) {
                // Somebody else makes room, too.
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(problem(&entry.path)(e));
                }
                _ => {}
            }
            result.removed.entries += 1;
            result.removed.bytes += entry.bytes;
            result.left.entries -= 1;
            result.left.bytes -= entry.bytes;
        }
        Ok(result)
    }
}

pub(crate) fn problem(path: &Path) -> impl Fn(std::io::Error) -> StoreError + '_ {
    |source| StoreError::Io {
        path: path.to_owned(),
        source,
    }
}

pub(crate) fn found(folder: &Path) -> Result<Vec<Found>, StoreError> {
    let mut found = Vec::new();
    for part in fs::read_dir(folder).map_err(problem(folder))? {
        let part = part.map_err(problem(folder))?.path();
        if !part.is_dir() {
            continue;
        }
        for entry in fs::read_dir(&part).map_err(problem(&part))? {
            let entry = entry.map_err(problem(&part))?;
            let path = entry.path();
            // One that is removed in the meantime is not there.
            let Ok(meta) = entry.metadata() else { continue };
            if path.extension().is_some_and(|e| e == "zst") {
                found.push(Found {
                    used: meta.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                    bytes: meta.len(),
                    path,
                });
            }
        }
    }
    Ok(found)
}
