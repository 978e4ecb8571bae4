//! Appending a record to the spool.
//!
//! The file is opened for each record and closed again: guests close and reuse
//! every descriptor number that they find. One `write` on an `O_APPEND`
//! descriptor keeps records of different processes apart.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Appends `record` in one piece.
///
/// The program's own limits on descriptors and file size are lifted as far as
/// they may be while this runs, and a `SIGXFSZ` that the write causes does not
/// reach the program.
///
/// # Errors
/// The system's. After an error the file may end in part of the record.
pub fn append(path: &Path, record: &[u8]) -> io::Result<()> {
    let file = with_room(libc::RLIMIT_NOFILE, libc::EMFILE, || open(path))?;
    with_room(libc::RLIMIT_FSIZE, libc::EFBIG, || write(&file, record))
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    let name = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CLOEXEC;
    // SAFETY: the name is a C string.
    let fd = unsafe { libc::open(name.as_ptr(), flags) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new and owned here.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn write(file: &OwnedFd, record: &[u8]) -> io::Result<()> {
    let mut rest = record;
    while !rest.is_empty() {
        let n = without_size_signal(|| {
            // SAFETY: the descriptor is open and the bytes are readable.
            unsafe { libc::write(file.as_raw_fd(), rest.as_ptr().cast(), rest.len()) }
        });
        match n {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            // A part was written: the next attempt tells why it was a part.
            Ok(n) => rest = &rest[n..],
            Err(e) if e.raw_os_error() == Some(libc::EINTR) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Runs `act`; if it fails with `errno`, once more with the soft limit raised to
/// the hard one for the while.
fn with_room<T>(
    resource: libc::__rlimit_resource_t,
    errno: i32,
    act: impl Fn() -> io::Result<T>,
) -> io::Result<T> {
    match act() {
        Err(e) if e.raw_os_error() == Some(errno) => {}
        other => return other,
    }
    let mut old = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: plain system calls on a local structure.
    unsafe {
        libc::getrlimit(resource, &mut old);
        let raised = libc::rlimit {
            rlim_cur: old.rlim_max,
            rlim_max: old.rlim_max,
        };
        libc::setrlimit(resource, &raised);
    }
    let result = act();
    // SAFETY: as above.
    unsafe { libc::setrlimit(resource, &old) };
    result
}

/// Performs a write with `SIGXFSZ` blocked, and takes the signal back if the
/// write raised it.
fn without_size_signal(act: impl FnOnce() -> isize) -> io::Result<usize> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    let mut old = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `set` is initialised by the first call before it is used.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGXFSZ);
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), old.as_mut_ptr());
    }
    let n = act();
    let error = io::Error::last_os_error();
    let now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: both sets were initialised above.
    unsafe {
        if n < 0 && error.raw_os_error() == Some(libc::EFBIG) {
            libc::sigtimedwait(set.as_ptr(), core::ptr::null_mut(), &now);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, old.as_ptr(), core::ptr::null_mut());
    }
    usize::try_from(n).map_err(|_| error)
}
