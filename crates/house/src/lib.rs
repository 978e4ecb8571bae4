//! Checks of the repository itself.
//!
//! The rules that no compiler knows are tests of this crate: which room may
//! depend on which (read from the table in `docs/architecture.md`, so that the
//! document cannot drift from the manifests), and what every file owes to its
//! readers. Nothing depends on this crate, and it is part of no program.
//!
//! The rules work on text that is handed in, so that each is also tested on text
//! that breaks it.

#![forbid(unsafe_code)]

pub mod census;
pub mod circles;
pub mod imports;
pub mod lines;
pub mod markdown;
pub mod modules;
pub mod packages;
pub mod reexports;
pub mod rooms;
pub mod rules;
pub mod rust;
pub mod scope;
pub mod stages;
pub mod uses;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// The repository's root.
pub fn root() -> PathBuf {
    // Two levels above this crate's manifest, whatever the target directory is. Cargo says at
    // run time where that is: two clones that share a target directory share the program too.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest
        .ancestors()
        .nth(2)
        .unwrap_or(&manifest)
        .to_path_buf()
}

/// Reads a text file of the repository.
///
/// # Panics
/// If it cannot be read as UTF-8: the check that needs it has failed.
pub fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// All files below a directory of the repository, sorted, without those that git
/// never holds (`.git`, `target`, `out`).
///
/// # Panics
/// If a directory cannot be listed.
pub fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_path_buf()];
    while let Some(next) = open.pop() {
        let entries =
            std::fs::read_dir(&next).unwrap_or_else(|e| panic!("{}: {e}", next.display()));
        for entry in entries {
            let entry = entry.unwrap_or_else(|e| panic!("{}: {e}", next.display()));
            let name = entry.file_name();
            // `file_type` does not follow links: a linked target directory is left out.
            let kind = entry.file_type().ok();
            let built = [".git", "target", "out", "__pycache__", ".venv"];
            if built.iter().any(|n| name == *n) {
                continue;
            }
            match kind {
                Some(kind) if kind.is_dir() => open.push(entry.path()),
                Some(kind) if kind.is_file() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// The texts that the counter reads below a directory: sources, scripts and manifests, by
/// their paths from it.
///
/// # Panics
/// If a directory or a file cannot be read.
pub fn texts_below(directory: &Path) -> BTreeMap<String, String> {
    const EXTENSIONS: [&str; 6] = ["rs", "c", "h", "sh", "py", "toml"];
    files_below(directory)
        .iter()
        .filter(|file| match file.extension() {
            Some(extension) => EXTENSIONS.iter().any(|e| extension == *e),
            // A script that is called like a program.
            None => file
                .parent()
                .is_some_and(|p| p.file_name().is_some_and(|n| n == ".ci")),
        })
        .map(|file| {
            let path = file.strip_prefix(directory).unwrap_or(file);
            (path.to_string_lossy().into_owned(), read(file))
        })
        .collect()
}
