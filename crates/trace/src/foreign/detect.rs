//! Which format a memory trace has, and which files are the threads of a trace.

use std::fs;
use std::path::{Path, PathBuf};

use super::Format;
use super::error::ForeignError;

/// Finds out a file's format by its content, which must be none of a block or file trace.
///
/// # Errors
/// [`ForeignError::Open`], [`ForeignError::Container`], [`ForeignError::Tar`], [`ForeignError::Read`]
/// if the beginning cannot be unpacked, [`ForeignError::Ambiguous`], and
/// [`ForeignError::Unrecognised`] with what was seen.
pub fn detect(path: &Path) -> Result<Format, ForeignError> {
    crate::detect::memory(path)
}

/// Adds a file, or the traces of a directory.
pub(crate) fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), ForeignError> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let inner = path.join("trace");
    let path = if inner.is_dir() { &inner } else { path };
    let failed = |source| ForeignError::Open {
        path: path.to_owned(),
        source,
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let named = entry.file_name().to_string_lossy().contains(".trace");
        if named && entry.path().is_file() {
            found.push(entry.path());
        }
    }
    if found.is_empty() {
        return Err(ForeignError::EmptyDirectory {
            path: path.to_owned(),
        });
    }
    found.sort();
    files.append(&mut found);
    Ok(())
}
