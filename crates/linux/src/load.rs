//! The module into the kernel and out of it.

use std::{
    fmt::Write as _,
    fs::File,
    io,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{ask::MapBits, build::COMPRESSED, log::Log, sys};

/// What the module gets when it is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    /// Which address bits make colours. With a map colouring is on at once; without one the
    /// module changes nothing until it gets one.
    pub map: Option<MapBits>,
}

impl Parameters {
    fn text(&self) -> String {
        self.map.as_ref().map_or(String::new(), |map| {
            format!("map=\"{}\" on=1", map.as_parameter())
        })
    }
}

/// Why the module was not loaded or unloaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be opened.
    #[error("{}: {source}; allowed: the file piebald.ko of this kernel", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The kernel refused.
    #[error("{}: not loaded: {why}", path.display())]
    Load {
        /// The file.
        path: PathBuf,
        /// What that means, and what the kernel's log says.
        why: String,
    },
    /// The kernel keeps it.
    #[error("not unloaded: {0}")]
    Unload(String),
}

/// Loads the module in `path`, which the kernel unpacks if its name ends with `.xz`, `.zst` or `.gz`.
///
/// # Errors
/// If the file is no module of the running kernel, or compressed in a form that this kernel does not unpack, the module refuses this machine, it is
/// loaded already, or the caller may not. The kernel's log is searched for the reason.
pub fn load(path: &Path, parameters: &Parameters) -> Result<(), LoadError> {
    let file = File::open(path).map_err(|source| LoadError::File {
        path: path.to_owned(),
        source,
    })?;
    prepare();
    let log = Log::from_now(Path::new("/"));
    let compressed = path
        .extension()
        .is_some_and(|ending| COMPRESSED.iter().any(|known| ending == *known));
    let loaded =
        sys::text(&parameters.text()).and_then(|text| sys::load_module(&file, &text, compressed));
    loaded.map_err(|error| LoadError::Load {
        path: path.to_owned(),
        why: with_log(meaning_of_load(&error, compressed), &log.of_module()),
    })
}

/// The module's directories are in configfs, which may be a module itself. Where that cannot be had,
/// loading says so.
fn prepare() {
    if !Path::new("/sys/module/configfs").is_dir() && !Path::new("/sys/kernel/config").is_dir() {
        let _ = Command::new("modprobe").arg("configfs").status();
    }
}

/// Takes the module out. Colouring ends, and every process's memory is as without it.
///
/// # Errors
/// If it is not loaded, somebody has one of its files open, or the caller may not.
pub fn unload() -> Result<(), LoadError> {
    let error = match sys::unload_module(c"piebald") {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    Err(LoadError::Unload(match error.raw_os_error() {
        Some(libc::ENOENT) => "the module is not loaded".to_owned(),
        Some(libc::EAGAIN) => {
            "somebody uses it: a color set is there, or a file of the module is open".to_owned()
        }
        Some(libc::EPERM) => "not permitted; root with CAP_SYS_MODULE is needed".to_owned(),
        Some(libc::ENOSYS) => "this kernel has no modules that can be taken out".to_owned(),
        _ => error.to_string(),
    }))
}

fn meaning_of_load(error: &io::Error, compressed: bool) -> String {
    match error.raw_os_error() {
        Some(libc::EOPNOTSUPP | libc::EINVAL) if compressed => {
            "the kernel does not unpack it, or the module refused its parameters, this kernel or \
             this machine; allowed besides: the file piebald.ko, unpacked"
                .to_owned()
        }
        Some(libc::EPERM) => "not permitted; root with CAP_SYS_MODULE is needed".to_owned(),
        Some(libc::ENOENT) => {
            "the kernel lacks something that it needs; `modprobe configfs` loads what it has"
                .to_owned()
        }
        Some(libc::EEXIST) => "a module of this name is loaded already".to_owned(),
        Some(libc::ENOEXEC) => format!(
            "no module of the running kernel {}; `piebald load` without a file builds one",
            sys::release()
        ),
        Some(libc::EKEYREJECTED) => {
            "the kernel takes signed modules alone (Secure Boot lockdown)".to_owned()
        }
        Some(libc::EOPNOTSUPP) => "the module does not know this kernel or machine".to_owned(),
        Some(libc::ENOSYS) => "this kernel has no modules that can be loaded".to_owned(),
        Some(libc::EINVAL) => "the module refused its parameters".to_owned(),
        _ => error.to_string(),
    }
}

/// A meaning and what the kernel said.
fn with_log(mut meaning: String, said: &[String]) -> String {
    for line in said {
        let _ = write!(meaning, "; the kernel: {line}");
    }
    meaning
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_those_of_the_module() {
        let map = Some("15-16,17^20".parse().unwrap());
        assert_eq!(Parameters { map }.text(), "map=\"15;16;17 20\" on=1");
        assert_eq!(Parameters::default().text(), "");
    }

    #[test]
    fn refusals_say_what_they_mean() {
        let meaning = |number| meaning_of_load(&io::Error::from_raw_os_error(number), false);
        assert!(meaning(libc::ENOEXEC).contains(&sys::release()));
        assert!(meaning(libc::EEXIST).contains("loaded already"));
        assert_eq!(
            with_log(
                meaning(libc::EOPNOTSUPP),
                &["piebald: 17 memory nodes".into()]
            ),
            "the module does not know this kernel or machine; the kernel: piebald: 17 memory nodes"
        );
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = load(Path::new("no/such/piebald.ko"), &Parameters::default());
        let error = error.expect_err("no file").to_string();
        assert!(error.starts_with("no/such/piebald.ko: "), "{error}");
    }
}
