//! Limits under which the driver itself was started.
//!
//! The limit on file sizes touches what the driver does: the recording, and the shared memory,
//! which is a file too. The program keeps the limit that it would have. Others may keep QEMU from
//! starting, and are named then.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::RecordError;
use crate::shared::{MAX_SLOTS, memory_bytes};

/// Slots without which nothing is recorded: some processes with some threads.
const MIN_SLOTS: u32 = 32;

/// While it lives, files of the driver may be as large as the hard limit allows.
pub struct FileSize {
    old: libc::rlimit,
}

impl FileSize {
    /// Raises the soft limit.
    ///
    /// # Errors
    /// Even the hard limit leaves no room for a recording.
    pub fn raise() -> Result<Self, RecordError> {
        let old = limit(libc::RLIMIT_FSIZE);
        let raised = Self { old };
        let needed = memory_bytes(MIN_SLOTS);
        if old.rlim_max < needed {
            return Err(RecordError::FileSizeLimit {
                allowed: old.rlim_max,
                needed,
            });
        }
        let most = libc::rlimit {
            rlim_cur: old.rlim_max,
            ..old
        };
        set(&most).map_err(super::system("the limit on file sizes"))?;
        Ok(raised)
    }

    /// As many slots as there may be.
    pub fn slots(&self) -> u32 {
        let fits = |slots: &u32| memory_bytes(*slots) <= self.old.rlim_max;
        // From the largest number down: there are few of them.
        (MIN_SLOTS..=MAX_SLOTS)
            .rev()
            .find(fits)
            .unwrap_or(MIN_SLOTS)
    }

    /// Gives the program the limit that this process was started with.
    pub fn leave_to(&self, command: &mut Command) {
        let old = self.old;
        // SAFETY: the function makes one system call, which is async-signal-safe.
        unsafe { command.pre_exec(move || set(&old)) };
    }
}

impl Drop for FileSize {
    fn drop(&mut self) {
        // It was allowed before, so it is now.
        let _ = set(&self.old);
    }
}

/// A limit of this process.
pub fn limit(resource: libc::__rlimit_resource_t) -> libc::rlimit {
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: plain system call on a local structure, which it leaves alone if it fails.
    unsafe { libc::getrlimit(resource, &mut limit) };
    limit
}

fn set(limit: &libc::rlimit) -> io::Result<()> {
    // SAFETY: plain system call on a valid structure.
    match unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, limit) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The limits of this process that may be why something cannot be begun, in brackets; empty if
/// there are none.
pub fn told() -> String {
    let limits = [
        (libc::RLIMIT_AS, "-v", 1024),
        (libc::RLIMIT_DATA, "-d", 1024),
        (libc::RLIMIT_NPROC, "-u", 1),
        (libc::RLIMIT_NOFILE, "-n", 1),
    ];
    let set = limits.into_iter().filter_map(|(resource, option, unit)| {
        let soft = limit(resource).rlim_cur;
        let usual = match resource {
            // Always limited; these many are enough.
            libc::RLIMIT_NOFILE | libc::RLIMIT_NPROC => soft >= 256,
            _ => soft == libc::RLIM_INFINITY,
        };
        (!usual).then(|| format!("ulimit {option} {}", soft / unit))
    });
    let set: Vec<String> = set.collect();
    match set.is_empty() {
        true => String::new(),
        false => format!(" (limits here: {})", set.join(", ")),
    }
}
