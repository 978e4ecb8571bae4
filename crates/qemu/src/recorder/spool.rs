//! The driver appends what processes hand over, outside of their limits.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::path::Path;
use std::thread::{Builder, Scope, ScopedJoinHandle};

use crate::shared::Shared;

/// The thread that appends records, until this is ended or dropped.
pub struct Spooler<'scope> {
    shared: &'scope Shared,
    thread: Option<ScopedJoinHandle<'scope, ()>>,
}

impl<'scope> Spooler<'scope> {
    /// Begins to append to the file.
    ///
    /// # Errors
    /// The system's.
    pub fn begin<'env>(
        scope: &'scope Scope<'scope, 'env>,
        shared: &'scope Shared,
        path: &Path,
    ) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).open(path)?;
        let thread = Builder::new().name("spool".into());
        let thread = thread.spawn_scoped(scope, move || serve(shared, file))?;
        let thread = Some(thread);
        Ok(Self { shared, thread })
    }

    /// Appends what was handed over, and takes no more.
    ///
    /// # Errors
    /// The thread did not live until now.
    pub fn end(mut self) -> io::Result<()> {
        self.shared.close();
        match self.thread.take().map(ScopedJoinHandle::join) {
            Some(Err(_)) => Err(io::Error::from_raw_os_error(libc::EIO)),
            _ => Ok(()),
        }
    }
}

impl Drop for Spooler<'_> {
    fn drop(&mut self) {
        // The scope waits for the thread.
        self.shared.close();
    }
}

fn serve(shared: &Shared, mut file: File) {
    let _no_signal = NoSizeSignal::begin();
    // Records of which pieces are missing, by slot.
    let mut begun: HashMap<u32, Vec<u8>> = HashMap::new();
    let mut whole = std::cell::RefCell::new(Vec::new());
    shared.take_pieces(
        |piece| {
            let record = begun.entry(piece.slot).or_default();
            if piece.first {
                record.clear();
            }
            record.extend_from_slice(piece.bytes);
            if piece.last {
                core::mem::swap(&mut *whole.borrow_mut(), record);
                record.clear();
            }
        },
        || {
            let mut record = whole.borrow_mut();
            // After an error nothing is kept, but nobody waits for ever.
            if !record.is_empty()
                && shared.failure() == 0
                && let Err(e) = file.write_all(&record)
            {
                shared.fail(&e);
            }
            record.clear();
        },
    );
    whole.get_mut().clear();
}

/// While it lives, a write beyond the limit on file sizes is an error for the calling thread, and
/// no signal that ends the process.
pub struct NoSizeSignal {
    old: libc::sigset_t,
}

impl NoSizeSignal {
    /// Blocks the signal.
    pub fn begin() -> Self {
        let set = size_signal();
        let mut old = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: plain system call on initialised memory; it fills `old`.
        let old = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, old.as_mut_ptr());
            old.assume_init()
        };
        Self { old }
    }
}

impl Drop for NoSizeSignal {
    fn drop(&mut self) {
        let (set, now) = (
            size_signal(),
            libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
        );
        // SAFETY: plain system calls on initialised memory. The signal that a write has raised is
        // taken back first.
        unsafe {
            libc::sigtimedwait(&set, core::ptr::null_mut(), &now);
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.old, core::ptr::null_mut());
        }
    }
}

fn size_signal() -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the first call initialises the set.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGXFSZ);
        set.assume_init()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::{Setup, THREAD};

    fn shared() -> (Shared, std::os::fd::OwnedFd) {
        let setup = Setup {
            slots: 8,
            emulator: crate::emulator::Emulator::example(),
            skip: 0,
            limit: None,
            region: None,
            stop_at_limit: false,
        };
        Shared::create(&setup).expect("shared memory")
    }

    #[test]
    fn records_of_many_pieces_from_many_threads_arrive_whole() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("spool");
        File::create(&path).expect("file");
        let (shared, _open) = shared();
        let record = |owner: u8, n: usize| vec![owner; [1, 1 << 18, 700_000][n % 3]];
        std::thread::scope(|scope| {
            let _spooler = Spooler::begin(scope, &shared, &path).expect("begins");
            std::thread::scope(|owners| {
                for owner in 1..=4_u8 {
                    let shared = &shared;
                    owners.spawn(move || {
                        let slot = shared.claim(THREAD, 0, owner.into()).expect("a slot");
                        for n in 0..6 {
                            slot.hand_over(shared, &record(owner, n)).expect("taken");
                        }
                    });
                }
            });
        });
        let bytes = std::fs::read(&path).expect("reads");
        let mut runs = std::collections::HashMap::new();
        for run in bytes.chunk_by(|a, b| a == b) {
            runs.entry(run[0]).or_insert_with(Vec::new).push(run.len());
        }
        for owner in 1..=4 {
            let whole: usize = (0..6).map(|n| record(owner, n).len()).sum();
            assert_eq!(runs[&owner].iter().sum::<usize>(), whole, "{owner}");
            // No run ends inside a record.
            let ends = [1, 1 << 18, 700_000];
            let sums = |n: &usize| {
                (0..7).any(|a| {
                    (0..7).any(|b| (0..7).any(|c| a * ends[0] + b * ends[1] + c * ends[2] == *n))
                })
            };
            assert!(runs[&owner].iter().all(sums), "{:?}", runs[&owner]);
        }
    }

    #[test]
    fn a_record_whose_owner_ended_before_the_last_piece_is_left_out() {
        let dir = tempfile::tempdir().expect("directory");
        let path = dir.path().join("spool");
        File::create(&path).expect("file");
        let (shared, _open) = shared();
        let (other, killed) = (shared.claim(THREAD, 0, 0), shared.claim(THREAD, 0, 1));
        let (other, killed) = (other.expect("a slot"), killed.expect("a slot"));
        std::thread::scope(|scope| {
            let _spooler = Spooler::begin(scope, &shared, &path).expect("begins");
            killed
                .hand_over_first_piece(&shared, b"torn")
                .expect("taken");
            other.hand_over(&shared, b"whole").expect("taken");
        });
        assert_eq!(std::fs::read(&path).expect("reads"), b"whole");
    }

    #[test]
    fn a_full_disk_stops_the_recording_and_holds_nobody_up() {
        let (shared, _open) = shared();
        let slot = shared.claim(THREAD, 0, 0).expect("a slot");
        std::thread::scope(|scope| {
            let full = Path::new("/dev/full");
            let _spooler = Spooler::begin(scope, &shared, full).expect("begins");
            slot.hand_over(&shared, &[1; 1 << 20]).expect("taken");
            slot.hand_over(&shared, b"more").expect("taken");
        });
        assert_eq!(shared.failure(), libc::ENOSPC);
        // And when the driver is gone.
        let error = slot.hand_over(&shared, b"more").expect_err("not taken");
        assert_eq!(error.raw_os_error(), Some(libc::EPIPE));
    }
}
