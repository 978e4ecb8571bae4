//! What recordings of a scenario's commands need: files as guests have them in /data, and the
//! programs that come with Piebald, compiled as guests run them.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use piebald_experiment::MadeFile;
use piebald_guest::{AllHosts, own_program, sources};
use piebald_lab::host::Hosts as _;
use sha2::{Digest, Sha256};

use crate::record::cache_folder;

/// Where programs find the files.
const DATA: &str = "/data";

/// A command with the paths that it has on this computer. What it needs is made if it is not
/// there.
pub(crate) fn here(words: &[String], files: &[MadeFile]) -> Result<Vec<String>, String> {
    let mut words = words.to_vec();
    if let Some(first) = words.first_mut().filter(|name| own_program(name)) {
        let folder = kept("programs", sources(), |folder| AllHosts.compile(folder))?;
        *first = folder.join("programs").join(&*first).display().to_string();
    }
    let is_below = |word: &str| {
        let rest = word.strip_prefix(DATA);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if files.is_empty() || !words.iter().any(|word| is_below(word)) {
        return Ok(words);
    }
    let names = files.iter().map(|file| {
        let (size, seed) = (file.size.0.0, file.seed.get());
        format!("{} {size} {seed}", file.name)
    });
    let folder = kept("data", names, |folder| AllHosts.write_files(files, folder))?;
    for word in words.iter_mut().filter(|word| is_below(word)) {
        *word = word.replacen(DATA, &folder.display().to_string(), 1);
    }
    Ok(words)
}

/// A folder of the cache that is made once from what `parts` say; whole or not at all.
fn kept(
    kind: &str,
    parts: impl IntoIterator<Item = impl AsRef<[u8]>>,
    make: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let mut hash = Sha256::new();
    for part in parts {
        let part = part.as_ref();
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let digest = hash.finalize();
    let name = digest.iter().take(16).fold(String::new(), |mut s, b| {
        let _ = write!(s, "{b:02x}");
        s
    });
    let above = cache_folder()?.join(kind);
    let folder = above.join(&name);
    if folder.is_dir() {
        return Ok(folder);
    }
    let failed = |path: &Path, e: std::io::Error| format!("{}: {e}", path.display());
    std::fs::create_dir_all(&above).map_err(|e| failed(&above, e))?;
    let partial = above.join(format!("{name}.{}", std::process::id()));
    let made = std::fs::create_dir_all(&partial)
        .map_err(|e| failed(&partial, e))
        .and_then(|()| make(&partial));
    let placed = made.and_then(|()| match std::fs::rename(&partial, &folder) {
        // Somebody else was faster.
        Err(_) if folder.is_dir() => Ok(()),
        result => result.map_err(|e| failed(&folder, e)),
    });
    let _ = std::fs::remove_dir_all(&partial);
    placed.map(|()| folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_need_nothing_stay_as_they_are() {
        let words = ["grep", "-c", "/data/text", "/database"].map(str::to_owned);
        assert_eq!(here(&words, &[]), Ok(words.to_vec()));
    }
}
