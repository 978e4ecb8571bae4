//! Handing a record to the driver, which appends it to the recording.
//!
//! A process of the recording writes no file: its limits (`RLIMIT_FSIZE`, `RLIMIT_NOFILE`), its
//! root directory and its user are the program's, which may change them at any time, and a signal
//! may end it in the middle. It copies the record, piece by piece, into its slot; the driver takes
//! each piece and appends the record when the last one has come. A record whose owner ends before
//! that is not appended, and the driver finds in the slot what the record was made of.

use core::sync::atomic::{AtomicU32, Ordering::*};
use std::io;
use std::time::Duration;

use super::{MAX_SLOTS, OUT_BYTES, Shared, SlotMap};

/// State of a slot's piece: it is the first one of a record.
const FIRST: u32 = 1;
/// It is the last one.
const LAST: u32 = 2;
/// It is there, and not yet taken.
const FULL: u32 = 4;

/// How long a process waits until it looks whether the driver is still there.
const LOOK: Duration = Duration::from_secs(1);
/// So many times it finds no driver until it believes that. A driver outside of the program's
/// process namespace is never found, but takes each piece at once.
const LOOKS: u32 = 10;
/// How long the driver sleeps at most if nobody wakes it.
const REST: Duration = Duration::from_millis(100);

/// A piece of a record.
pub struct Piece<'a> {
    /// The slot that it comes from.
    pub slot: u32,
    /// Its bytes.
    pub bytes: &'a [u8],
    /// A record begins with it; what came before from this slot was given up.
    pub first: bool,
    /// The record ends with it.
    pub last: bool,
}

impl SlotMap {
    /// Hands a record over. It is the driver's when this returns.
    ///
    /// # Errors
    /// The driver has ended, or memory is short.
    pub fn hand_over(&self, shared: &Shared, record: &[u8]) -> io::Result<()> {
        self.provide_out()?;
        let last = record.len().saturating_sub(1) / OUT_BYTES;
        for (i, piece) in record.chunks(OUT_BYTES).enumerate() {
            let first = if i == 0 { FIRST } else { 0 };
            let end = if i == last { LAST } else { 0 };
            self.hand_over_piece(shared, piece, first | end)?;
        }
        Ok(())
    }

    /// As an owner that ends in the middle of a record.
    #[cfg(test)]
    pub(crate) fn hand_over_first_piece(&self, shared: &Shared, piece: &[u8]) -> io::Result<()> {
        self.provide_out()?;
        self.hand_over_piece(shared, piece, FIRST)
    }

    fn hand_over_piece(&self, shared: &Shared, piece: &[u8], place: u32) -> io::Result<()> {
        self.write_out(piece);
        self.head().out_state.store(FULL | place, Release);
        shared.announce(self.index());
        self.wait_until_taken(shared)
    }

    fn wait_until_taken(&self, shared: &Shared) -> io::Result<()> {
        let mut looks = 0;
        loop {
            let state = self.head().out_state.load(Acquire);
            if state == 0 {
                return Ok(());
            }
            if shared.closed.load(Acquire) != 0 || looks == LOOKS {
                return Err(io::Error::from_raw_os_error(libc::EPIPE));
            }
            if !wait(&self.head().out_state, state, LOOK) && !shared.driver_exists() {
                looks += 1;
            }
        }
    }

    /// The piece that was handed over, if one was and it was not taken.
    fn piece(&self) -> Option<Piece<'_>> {
        let state = self.head().out_state.load(Acquire);
        (state & FULL != 0).then(|| Piece {
            slot: self.index(),
            bytes: self.out(),
            first: state & FIRST != 0,
            last: state & LAST != 0,
        })
    }

    fn taken(&self) {
        self.head().out_state.store(0, Release);
        wake(&self.head().out_state);
    }
}

impl Shared {
    /// Tells the driver that a slot has something for it.
    fn announce(&self, slot: u32) {
        let (word, bit) = (slot as usize / 64, slot % 64);
        self.full[word].fetch_or(1 << bit, Release);
        self.announced.fetch_add(1, Release);
        wake(&self.announced);
    }

    fn driver_exists(&self) -> bool {
        // SAFETY: plain system call; no signal is sent.
        let sent = unsafe { libc::kill(self.driver as libc::pid_t, 0) };
        // A process of another user may not be sent signals to, but exists.
        sent == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
    }

    /// The driver's part: takes pieces until the recording is [closed](Self::close) and nothing is
    /// left. `take` gets each piece before its owner goes on, `then` runs after that.
    pub fn take_pieces(&self, mut take: impl FnMut(&Piece<'_>), mut then: impl FnMut()) {
        let mut maps: Vec<Option<SlotMap>> = Vec::new();
        maps.resize_with(MAX_SLOTS as usize, || None);
        loop {
            let announced = self.announced.load(Acquire);
            let closed = self.closed.load(Acquire) != 0;
            let mut any = false;
            for slot in self.announcing() {
                any = true;
                let map = &mut maps[slot as usize];
                if map.is_none() {
                    *map = self.slot(slot).map_err(|e| self.fail(&e)).ok();
                }
                if let Some(map) = map
                    && let Some(piece) = map.piece()
                {
                    take(&piece);
                    map.taken();
                    then();
                }
            }
            match (any, closed) {
                (true, _) => {}
                (false, true) => return,
                (false, false) => {
                    wait(&self.announced, announced, REST);
                }
            }
        }
    }

    /// Slots that have announced something, each once.
    fn announcing(&self) -> impl Iterator<Item = u32> + '_ {
        let words = self.full.iter().enumerate();
        words.flat_map(|(i, word)| {
            let mut bits = word.swap(0, AcqRel);
            core::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros())?;
                bits &= bits - 1;
                Some(i as u32 * 64 + bit)
            })
        })
    }

    /// Nobody takes records any more.
    pub fn close(&self) {
        self.closed.store(1, Release);
        self.announced.fetch_add(1, Release);
        wake(&self.announced);
    }
}

/// Sleeps while the word has this value; `false` if the time was over.
fn wait(word: &AtomicU32, value: u32, at_most: Duration) -> bool {
    let time = libc::timespec {
        tv_sec: at_most.as_secs() as libc::time_t,
        tv_nsec: at_most.subsec_nanos().into(),
    };
    let op = libc::FUTEX_WAIT;
    // SAFETY: the word is in shared memory that stays mapped; the kernel only reads.
    let woken = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), op, value, &time) };
    woken == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ETIMEDOUT)
}

fn wake(word: &AtomicU32) {
    // SAFETY: as above.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
}
