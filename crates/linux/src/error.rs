//! Why the module did not answer or obey.

use std::{io, path::PathBuf};

/// Why a file of the module or of a control group was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    /// There is no such tree.
    #[error("{}: no such directory: the module is not loaded; `piebald load` loads it", dir.display())]
    NotLoaded {
        /// Where the tree would be.
        dir: PathBuf,
    },
    /// The directory of colour sets is not there.
    #[error("{}: no such directory: configfs is not mounted; mount -t configfs configfs /sys/kernel/config", dir.display())]
    NoSets {
        /// Where it would be.
        dir: PathBuf,
    },
    /// There are no control groups of version 2.
    #[error("{}: no control groups of version 2; mount -t cgroup2 cgroup2 /sys/fs/cgroup", path.display())]
    NoGroups {
        /// Where they were looked for.
        path: PathBuf,
    },
    /// There is no such process.
    #[error("there is no process {pid}")]
    NoProcess {
        /// Its number.
        pid: u32,
    },
    /// A process's group has no colours of its own.
    #[error("process {pid} is in the group {group}, which has no colors of its own")]
    Uncolored {
        /// The process.
        pid: u32,
        /// Its group.
        group: String,
    },
    /// systemd made no scope.
    #[error("no scope of systemd for the program: {why}")]
    Scope {
        /// Why.
        why: String,
    },
    /// The caller may not.
    #[error("{}: not permitted; root with CAP_SYS_ADMIN is needed", path.display())]
    NotPermitted {
        /// The file.
        path: PathBuf,
    },
    /// The module refused what was written.
    #[error("{}: \"{value}\" refused: {why}", path.display())]
    Refused {
        /// The file.
        path: PathBuf,
        /// What was written.
        value: String,
        /// What the module says, from its file `error`.
        why: String,
    },
    /// A file says what this program does not know.
    #[error("{}:{line}: \"{text}\"; allowed: {allowed}; the module is of another version than this program", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What is there.
        text: String,
        /// What could be there.
        allowed: &'static str,
    },
    /// The kernel failed otherwise.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}
