//! Where recorded traces lie: the free ones in the repository, the others where
//! `scripts/fetch-traces.sh` puts them.

use std::path::{Path, PathBuf};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file below `testdata`.
pub fn packed(name: &str) -> PathBuf {
    workspace().join("testdata").join(name)
}

/// A file that was fetched.
///
/// # Panics
/// If it was not.
pub fn fetched(name: &str) -> PathBuf {
    let variable = |name: &str| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from)
    };
    let cache = || {
        let home = || variable("HOME").map(|home| home.join(".cache"));
        let cache = variable("XDG_CACHE_HOME").or_else(home);
        cache.map(|cache| cache.join("piebald/traces"))
    };
    let folder = variable("PIEBALD_TRACES").or_else(cache);
    // What is relative was meant so by the caller of cargo, which starts tests in their crate.
    let path = workspace().join(folder.expect("HOME is set")).join(name);
    assert!(
        path.is_file(),
        "{} is missing: run scripts/fetch-traces.sh",
        path.display()
    );
    path
}
