//! Which part of a recording is kept: regions, `skip` and `limit`.
//!
//! Both count *references* of all threads together, in the order in which
//! threads write their slots: exact to a block for one thread, and to a slot
//! (2^20 entries) for several. A region (`A:B`) opens for all processes when
//! any thread executes mark A and closes at mark B; the thread that executes the
//! mark is cut exactly there, the others at their next full slot.
//! Outside, and before `skip`, events are kept: a replay needs the mappings.
//! After `limit`, nothing is.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};
use std::time::{Duration, Instant};

use piebald_trace::recording::model::{Event, Raw};

use crate::shared::{AT_LIMIT, FREE, Shared};

/// What is kept of a slot.
pub struct Cut<'a> {
    /// Whole executions.
    pub raw: &'a [Raw],
    /// Events, with their places in `raw`.
    pub events: Vec<(usize, Event)>,
    /// The limit lies in this slot.
    pub last: bool,
}

/// Cuts a slot's content to what is asked for, and counts it.
pub fn cut<'a>(shared: &Shared, raw: &'a [Raw], events: Vec<(usize, Event)>) -> Cut<'a> {
    if shared.open.load(Acquire) == 0 {
        return place(raw, 0, 0, events);
    }
    if shared.skip == 0 && shared.limit == u64::MAX {
        return Cut {
            raw,
            events,
            last: false,
        };
    }
    let refs = references(raw);
    let base = shared.counted.fetch_add(refs, AcqRel);
    let stop = shared.skip.saturating_add(shared.limit);
    let from = block_at(raw, shared.skip.saturating_sub(base));
    let to = block_at(raw, stop.saturating_sub(base)).max(from);
    let mut cut = place(raw, from, to, events);
    shared.kept.fetch_add(references(cut.raw), AcqRel);
    cut.last = base + refs >= stop;
    if cut.last {
        // What follows the last reference is beyond the limit.
        cut.events
            .retain(|e| e.0 < cut.raw.len() || cut.raw.is_empty() && base < stop);
    }
    cut
}

fn references(raw: &[Raw]) -> u64 {
    raw.iter().filter(|r| !is_block(r)).count() as u64
}

fn is_block(raw: &Raw) -> bool {
    raw.index() == Raw::NO_INDEX
}

/// Index of the first block that begins after `refs` references.
fn block_at(raw: &[Raw], refs: u64) -> usize {
    let mut seen = 0;
    for (i, entry) in raw.iter().enumerate() {
        if is_block(entry) {
            if seen >= refs {
                return i;
            }
        } else {
            seen += 1;
        }
    }
    raw.len()
}

fn place(raw: &[Raw], from: usize, to: usize, events: Vec<(usize, Event)>) -> Cut<'_> {
    let moved = |(at, event): (usize, Event)| (at.clamp(from, to) - from, event);
    Cut {
        raw: &raw[from..to],
        events: events.into_iter().map(moved).collect(),
        last: false,
    }
}

/// The limit is reached: nothing more is recorded. `true` for the first who says so, if the program
/// shall end: [`end_program`] then, when this thread writes no more.
pub fn reached(shared: &Shared) -> bool {
    // Not if the driver was told to end: it reads the slots.
    let first = shared.stopped.compare_exchange(0, AT_LIMIT, SeqCst, SeqCst);
    first.is_ok() && shared.stop_at_limit.load(Relaxed) != 0
}

/// How long records that were begun may take until their processes are killed all the same.
const PATIENCE: Duration = Duration::from_secs(5);

/// Waits until no thread is in the middle of a record: a kill would end the write there, and none
/// begins another. `false` if one still was.
fn wait_for_writers(shared: &Shared, patience: Duration) -> bool {
    let until = Instant::now() + patience;
    while shared.writing().any(|slot| exists(slot.head().pid)) {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

fn exists(pid: u32) -> bool {
    // SAFETY: plain system call; no signal is sent.
    unsafe { libc::kill(pid as libc::pid_t, 0) == 0 }
}

/// Ends all processes of the recording, this one last.
pub fn end_program(shared: &Shared) {
    shared.notice("the limit is reached; the program was ended there");
    if !wait_for_writers(shared, PATIENCE) {
        shared.notice("a record was not waited for any longer");
    }
    let own = std::process::id();
    for index in 0..shared.nr_slots() {
        let Ok(slot) = shared.slot(index) else {
            continue;
        };
        let head = slot.head();
        if head.state.load(Acquire) != FREE && head.pid != own {
            // SAFETY: plain system call. The process holds a slot of this recording, or ended
            // without giving it back.
            unsafe { libc::kill(head.pid as libc::pid_t, libc::SIGKILL) };
        }
    }
    // SAFETY: as above.
    unsafe { libc::kill(own as libc::pid_t, libc::SIGKILL) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::{EARLY, Setup, THREAD};

    fn shared(stop_at_limit: bool) -> (Shared, std::os::fd::OwnedFd) {
        let setup = Setup {
            slots: 8,
            emulator: crate::emulator::Emulator::example(),
            skip: 0,
            limit: Some(1),
            region: None,
            stop_at_limit,
        };
        Shared::create(&setup).expect("shared memory")
    }

    #[test]
    fn who_ends_the_program_waits_for_records_that_were_begun() {
        let (shared, _open) = shared(true);
        let slot = shared.claim(THREAD, 0, 0).expect("a slot");
        assert!(wait_for_writers(&shared, Duration::ZERO));
        assert!(slot.begin_writing(&shared));
        assert!(reached(&shared));
        assert!(!wait_for_writers(&shared, Duration::from_millis(5)));
        slot.appends_chunk();
        assert!(!wait_for_writers(&shared, Duration::from_millis(5)));
        slot.done_writing();
        assert!(wait_for_writers(&shared, Duration::ZERO));
    }

    #[test]
    fn only_the_first_at_the_limit_ends_the_program_and_nobody_if_the_driver_ends() {
        let (limited, _open) = shared(true);
        assert_eq!([reached(&limited), reached(&limited)], [true, false]);
        let (endless, _open) = shared(false);
        assert!(!reached(&endless));
        assert_eq!(endless.stopped.load(SeqCst), AT_LIMIT);
        let (early, _open) = shared(true);
        early.stopped.store(EARLY, SeqCst);
        assert!(!reached(&early));
        assert!(early.ended_early());
    }

    #[test]
    fn at_the_limit_a_record_is_begun_only_where_nobody_is_killed() {
        for stop_at_limit in [false, true] {
            let (shared, _open) = shared(stop_at_limit);
            let slot = shared.claim(THREAD, 0, 0).expect("a slot");
            shared.stopped.store(AT_LIMIT, SeqCst);
            assert_eq!(slot.begin_writing(&shared), !stop_at_limit);
            let writing = shared.writing().count();
            assert_eq!(writing, usize::from(!stop_at_limit));
        }
    }
}
