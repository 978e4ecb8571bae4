//! Finding the plugin, the program, and where things are kept.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::carried;

/// The plugin is not found.
#[derive(Debug, thiserror::Error)]
pub enum NoPlugin {
    /// There is none where it may be.
    #[error("the plugin {PLUGIN} is not found in {looked}; set PIEBALD_PLUGIN to its path")]
    NotThere {
        /// Where it was looked for.
        looked: String,
    },
    /// There is no memory for the one inside the executable.
    #[error("the plugin inside this program: {0}")]
    Carried(#[from] std::io::Error),
}

/// File name of the plugin.
pub const PLUGIN: &str = "libpiebald_qemu.so";

/// A plugin that the executable carries inside: used unless another one is named.
pub fn carry(library: &'static [u8]) {
    carried::set(library);
}

/// The plugin: as given, as `PIEBALD_PLUGIN` says, from [inside](carry) the executable, or near it.
pub fn plugin(given: Option<&Path>) -> Result<PathBuf, NoPlugin> {
    let said = given.map(Path::to_owned);
    let said = said.or_else(|| env::var_os("PIEBALD_PLUGIN").map(PathBuf::from));
    let candidates = match said {
        Some(path) => vec![path],
        None => match carried::path()? {
            Some(path) => return Ok(path.to_owned()),
            None => near_executable(PLUGIN),
        },
    };
    let mut files = candidates.iter().filter(|c| c.is_file());
    if let Some(found) = files.find_map(|c| std::path::absolute(c).ok()) {
        return Ok(found);
    }
    let looked: Vec<_> = candidates.iter().map(|c| c.display().to_string()).collect();
    Err(NoPlugin::NotThere {
        looked: looked.join(", "),
    })
}

/// Where a plugin was found, for people.
pub fn told(plugin: &Path) -> String {
    match carried::path() {
        Ok(Some(path)) if path == plugin => "inside this program".to_owned(),
        _ => plugin.display().to_string(),
    }
}

/// Is there `/proc`, through which processes of a recording find what the driver holds?
pub fn has_proc() -> bool {
    Path::new("/proc/self/fd").exists()
}

/// Where a file may be that comes with the running program.
pub fn near_executable(name: &str) -> Vec<PathBuf> {
    let executable = env::current_exe().unwrap_or_default();
    let mut found = Vec::new();
    if let Some(dir) = executable.parent() {
        // `deps` is where cargo puts it for a dependent executable.
        for place in [".", "..", "deps", "../deps", "../lib", "../lib/piebald"] {
            found.push(dir.join(place).join(name));
        }
    }
    found
}

/// The folder of what can be made again; `None` if neither `XDG_CACHE_HOME` nor `HOME` says.
pub fn cache_folder() -> Option<PathBuf> {
    let home = || env::var_os("HOME").map(|h| PathBuf::from(h).join(".cache"));
    let base = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let absolute = base.filter(|p| p.is_absolute());
    Some(absolute.or_else(home)?.join("piebald"))
}

/// A program, as a shell finds it. A name with a slash is taken as it is.
pub fn program(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return path.exists().then_some(path);
    }
    let path = env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
    let mut found = env::split_paths(&path).map(|dir| dir.join(name));
    found.find(|p| is_executable(p))
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}
