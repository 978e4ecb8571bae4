//! The commit that a tree of sources is at.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

/// Digits that are shown: enough to be unambiguous in a history of any size.
const DIGITS: usize = 12;

/// What `git archive` fills in for a tarball of the sources (`.gitattributes`).
const ARCHIVED: &str = "crates/cli/build/archived-commit";

/// The commit of the tree in `root`: from git, or from what a tarball says of itself. `None` if
/// neither knows. Changes that are not committed do not show.
pub fn of(root: &Path) -> Option<String> {
    let hash = from_git(root).or_else(|| from_archive(root))?;
    Some(hash[..DIGITS].to_owned())
}

/// The file that git changes whenever another commit is checked out or made; relative to `root`
/// where it can be.
pub fn log_of(root: &Path) -> Option<PathBuf> {
    from_git(root)?;
    let log = git(root, &["rev-parse", "--git-path", "logs/HEAD"])?;
    let log = PathBuf::from(log.trim_end());
    root.join(&log).exists().then_some(log)
}

/// Only of a repository that begins in `root`: an unpacked tarball may lie inside another one.
fn from_git(root: &Path) -> Option<String> {
    let said = git(root, &["rev-parse", "--show-toplevel", "HEAD"])?;
    let (top, hash) = said.trim_end().rsplit_once('\n')?;
    let same = Path::new(top).canonicalize().ok()? == root.canonicalize().ok()?;
    same.then_some(hash).and_then(hash_of)
}

fn from_archive(root: &Path) -> Option<String> {
    hash_of(&std::fs::read_to_string(root.join(ARCHIVED)).ok()?)
}

/// A whole hash, and nothing else: an archive's file holds a pattern where git did not fill it in.
fn hash_of(text: &str) -> Option<String> {
    let text = text.trim();
    let whole = text.len() >= 40 && text.bytes().all(|b| b.is_ascii_hexdigit());
    whole.then(|| text.to_owned())
}

/// What git prints; `None` if there is no git, or it fails.
fn git(root: &Path, args: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    git.args(args).current_dir(root);
    // Set while a hook runs, and then they name another repository.
    git.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE");
    let output = git.output().ok().filter(|o| o.status.success())?;
    String::from_utf8(output.stdout).ok()
}
