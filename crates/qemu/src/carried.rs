//! A plugin inside the executable, under a name by which QEMU can load it.
//!
//! It is a file in memory that the driver holds open, reached through the driver's `/proc/PID/fd`
//! as the shared memory is. A file on a disk would have to be removed after a crash, could not be
//! loaded from a file system mounted `noexec`, and could be another version's.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

static LIBRARY: OnceLock<&'static [u8]> = OnceLock::new();

/// The file, and its name; made when it is first asked for.
static FILE: OnceLock<(File, PathBuf)> = OnceLock::new();
static MAKING: Mutex<()> = Mutex::new(());

/// Takes the library; later ones are ignored.
pub fn set(library: &'static [u8]) {
    let _ = LIBRARY.set(library);
}

/// The name, while this process runs; `None` if the executable carries no plugin.
///
/// # Errors
/// The system's, if there is no memory for the file.
pub fn path() -> io::Result<Option<&'static Path>> {
    let Some(library) = LIBRARY.get() else {
        return Ok(None);
    };
    let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    if FILE.get().is_none() {
        let _ = FILE.set(file(library)?);
    }
    Ok(FILE.get().map(|(_, path)| path.as_path()))
}

fn file(library: &[u8]) -> io::Result<(File, PathBuf)> {
    // SAFETY: plain system call with a constant name, which debuggers show.
    let fd = unsafe { libc::memfd_create(c"libpiebald_qemu.so".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and owned here.
    let mut file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    file.write_all(library)?;
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    Ok((file, PathBuf::from(path)))
}
