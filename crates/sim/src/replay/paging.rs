//! One program's own memory, paged on a swap area of the disk.
//!
//! The program is a stream of touches of pages, in order. Nothing else runs; what the
//! program computes between touches is a time of its own ([`PageTouch::think`]).

use piebald_os_model::file::{FileHost, Step};
use piebald_policy::contract::replacement::Replacement;
use piebald_units::block::BlockPort;
use piebald_units::{Picos, TaskId};
use piebald_workload::PageTouch;

use super::driver::{DriverError, Snapshot};

/// The program's only task.
const TASK: TaskId = TaskId(0);

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct PagingOutcome {
    /// From the first touch to the end of the last, computing included. What is written
    /// back later does not count.
    pub time: Picos,
    /// Of that, what the program computed.
    pub computed: Picos,
    /// Touches.
    pub touches: u64,
    /// Counters at the end.
    pub end: Snapshot,
}

/// Runs a program on a host with a swap area, from `begin` on: the platters of a disk
/// have turned until then.
///
/// # Errors
/// See [`DriverError`]; without a swap area, memory that is too small is
/// [`DriverError::Stuck`].
pub fn run_paging<P: Replacement, D: BlockPort>(
    mut host: FileHost<P, D>,
    touches: &mut dyn Iterator<Item = PageTouch>,
    begin: Picos,
) -> Result<(PagingOutcome, FileHost<P, D>), DriverError> {
    let mut outcome = PagingOutcome::default();
    let mut now = begin;
    for touch in touches {
        // An event at the time of a call comes first.
        while let Some(event) = host.next_event().filter(|&event| event <= now) {
            host.advance(event)?;
        }
        now = match host.touch_anon(TASK, touch.page, touch.write, now)? {
            Step::Ready(at) => at,
            Step::Blocked => wait(&mut host)?,
        };
        now += touch.think;
        outcome.computed += touch.think;
        outcome.touches += 1;
    }
    outcome.time = now.since(begin);
    outcome.end = Snapshot {
        stats: host.stats(),
        io: host.io_stats(),
        sequences: host.runs().histogram(),
        at: now,
    };
    Ok((outcome, host))
}

/// Lets time pass until the program may go on.
fn wait<P: Replacement, D: BlockPort>(host: &mut FileHost<P, D>) -> Result<Picos, DriverError> {
    loop {
        let event = host.next_event().ok_or(DriverError::Stuck {
            waiting: 1,
            resident: host.resident(),
        })?;
        if let Some(woken) = host.advance(event)?.first() {
            return Ok(woken.at);
        }
    }
}

#[cfg(test)]
mod tests {
    use piebald_hw::disk::{Disk, by_name};
    use piebald_os_model::file::{FileConfig, FileTable, Layout, SwapArea};
    use piebald_os_model::replace::PolicySpec;
    use piebald_units::Lba;

    use super::super::kernel::{FileSide, LoopError, paging_with};
    use super::*;

    fn run(policy: &str, capacity: u32, swap: u32, touches: &[PageTouch]) -> Outcome {
        let config = FileConfig {
            swap: (swap > 0).then(|| SwapArea::new(Lba(1000), swap)),
            ..FileConfig::linux_2_6_11()
        };
        let side = FileSide {
            config,
            files: FileTable::new(Layout::Extents).expect("layout"),
            disk: Disk::new(&by_name("wd400bb").expect("preset")).expect("disk"),
        };
        let policy = PolicySpec::plain(policy);
        let touches = &mut touches.iter().copied();
        match paging_with(&policy, capacity, &side, touches, Picos(5)) {
            Ok(done) => Ok(done.programs),
            Err(LoopError::Run(error)) => Err(error),
            Err(other) => panic!("{other}"),
        }
    }

    type Outcome = Result<PagingOutcome, DriverError>;

    fn sweep(pages: u64, times: u64, write: bool) -> Vec<PageTouch> {
        let all = (0..pages * times).map(|n| PageTouch {
            page: n % pages,
            write: write || n < pages,
            think: Picos(1000),
        });
        all.collect()
    }

    #[test]
    fn what_fits_takes_the_time_of_its_computing() {
        for policy in ["lru", "linux-2.6.11", "dulo-linux"] {
            let done = run(policy, 400, 1000, &sweep(399, 3, true)).expect(policy);
            assert_eq!(done.time, Picos(399 * 3 * 1000), "{policy}");
            assert_eq!(done.computed, done.time);
            assert_eq!((done.end.stats.swap_ins, done.end.stats.swap_outs), (0, 0));
        }
    }

    #[test]
    fn a_sweep_through_more_than_memory_reads_every_page_again() {
        let done = run("lru", 200, 1000, &sweep(400, 3, false)).expect("run");
        let stats = done.end.stats;
        // LRU keeps nothing of a cyclic sweep, but pages that are used while they are
        // written out, at most a batch of 32. A read brings a group of eight.
        assert!(stats.swap_outs >= 400, "{stats:?}");
        let (ins, ahead) = (stats.swap_ins, stats.swap_readahead);
        assert!((800 - 32 - 5..=800).contains(&(ins + ahead)), "{stats:?}");
        assert!(ins <= 110, "{stats:?}");
        assert!(done.time > done.computed);
    }

    #[test]
    fn without_a_swap_area_it_says_that_memory_is_too_small() {
        let error = run("lru", 10, 0, &sweep(11, 1, true)).expect_err("stuck");
        assert!(matches!(error, DriverError::Stuck { .. }), "{error}");
    }

    #[test]
    fn a_swap_area_that_is_full_is_no_crash() {
        let error = run("lru", 10, 4, &sweep(40, 1, true)).expect_err("stuck");
        assert!(matches!(error, DriverError::Stuck { .. }), "{error}");
    }
}
