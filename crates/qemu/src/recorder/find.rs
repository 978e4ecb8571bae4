//! Finding QEMU, the plugin and the program.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{RecordError, carried};

/// File name of the plugin.
pub const PLUGIN: &str = "libpiebald_qemu.so";
const QEMU: &str = "qemu-x86_64";

/// QEMU: as given, or from `PATH`.
pub fn qemu(given: Option<&Path>) -> Result<PathBuf, RecordError> {
    let name = given.map_or(OsStr::new(QEMU), Path::as_os_str);
    let found = program(name).and_then(|p| std::path::absolute(p).ok());
    found.ok_or_else(|| RecordError::NoQemu {
        what: name.to_string_lossy().into_owned(),
    })
}

/// A plugin that the executable carries inside: used unless another one is named.
pub fn carry(library: &'static [u8]) {
    carried::set(library);
}

/// The plugin: as given, as `PIEBALD_PLUGIN` says, from [inside](carry) the executable, or near it.
pub fn plugin(given: Option<&Path>) -> Result<PathBuf, RecordError> {
    let said = given.map(Path::to_owned);
    let said = said.or_else(|| env::var_os("PIEBALD_PLUGIN").map(PathBuf::from));
    let candidates = match said {
        Some(path) => vec![path],
        None => match carried::path()? {
            Some(path) => return Ok(path.to_owned()),
            None => near_executable(),
        },
    };
    if let Some(found) = candidates.iter().find(|c| c.is_file()) {
        return std::path::absolute(found).map_err(super::system(PLUGIN));
    }
    let looked: Vec<_> = candidates.iter().map(|c| c.display().to_string()).collect();
    Err(RecordError::NoPlugin {
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

/// `/proc`, through which processes of a recording find what the driver holds.
pub fn proc() -> Result<(), RecordError> {
    let there = Path::new("/proc/self/fd").exists();
    there.then_some(()).ok_or(RecordError::NoProc)
}

fn near_executable() -> Vec<PathBuf> {
    let executable = env::current_exe().unwrap_or_default();
    let mut found = Vec::new();
    if let Some(dir) = executable.parent() {
        // `deps` is where cargo puts it for a dependent executable.
        for place in [".", "..", "deps", "../deps", "../lib", "../lib/piebald"] {
            found.push(dir.join(place).join(PLUGIN));
        }
    }
    found
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
