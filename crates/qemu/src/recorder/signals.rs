//! Signals to the driver: passed on to the program, and remembered.
//!
//! A terminal sends Ctrl-C to the whole foreground group, the program included;
//! a signal that some process sent to the driver alone is passed on. Either way
//! the driver lives on and finishes the file.

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering::*};
use std::io;

const SIGNALS: [c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

static CHILD: AtomicU32 = AtomicU32::new(0);
static RECEIVED: AtomicI32 = AtomicI32::new(0);

/// Handlers in force while this lives. One recording at a time per process.
pub struct Forwarding {
    old: [libc::sigaction; SIGNALS.len()],
}

extern "C" fn on_signal(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    RECEIVED.store(signal, Release);
    // SAFETY: the kernel passes a valid structure; `kill` is async-signal-safe.
    unsafe {
        let from_terminal = (*info).si_code > 0;
        let child = CHILD.load(Acquire);
        if child != 0 && !from_terminal {
            libc::kill(child as libc::pid_t, signal);
        }
    }
}

impl Forwarding {
    /// Installs the handlers.
    pub fn begin() -> io::Result<Self> {
        RECEIVED.store(0, Release);
        let mut old = [const { MaybeUninit::<libc::sigaction>::zeroed() }; SIGNALS.len()];
        for (signal, old) in SIGNALS.iter().zip(&mut old) {
            // SAFETY: an all-zero `sigaction` is valid and is then filled.
            unsafe {
                let mut new: libc::sigaction = core::mem::zeroed();
                new.sa_sigaction = on_signal as *const () as usize;
                new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
                libc::sigaction(*signal, core::ptr::null(), old.as_mut_ptr());
                // What the caller ignores (nohup) stays ignored.
                if (*old.as_ptr()).sa_sigaction != libc::SIG_IGN
                    && libc::sigaction(*signal, &new, core::ptr::null_mut()) != 0
                {
                    return Err(io::Error::last_os_error());
                }
            }
        }
        Ok(Self {
            // SAFETY: filled above (or zeroed, which is valid too).
            old: old.map(|o| unsafe { o.assume_init() }),
        })
    }

    /// Passes signals on to this process; 0 = to none.
    pub fn forward_to(&self, pid: u32) {
        CHILD.store(pid, Release);
    }

    /// The last signal that came.
    pub fn received(&self) -> Option<i32> {
        match RECEIVED.load(Acquire) {
            0 => None,
            signal => Some(signal),
        }
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        CHILD.store(0, Release);
        for (signal, old) in SIGNALS.iter().zip(&self.old) {
            // SAFETY: restores what was found.
            unsafe { libc::sigaction(*signal, old, core::ptr::null_mut()) };
        }
    }
}
