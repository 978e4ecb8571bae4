//! The request queue: merging, plugging, the schedulers' orders, limits.

use std::collections::BTreeSet;

use crate::filehost::{disk::TestDisk, ms};
use crate::io_oracle::Oracle;
use piebald_os_model::io::{Done, IoConfig, Queue, Run, RunLengths};
use piebald_units::{
    Lba, Picos, TaskId,
    block::{
        BlockDir::{self, Read, Write},
        BlockPort,
    },
};
use rand::{Rng, SeedableRng, rngs::SmallRng};

type Tested = Queue<TestDisk, u64>;

fn queue(config: IoConfig) -> Tested {
    Queue::new(config, TestDisk::default()).unwrap()
}

/// Pages are their own tokens.
fn submit(q: &mut Tested, first: u64, pages: u64, dir: BlockDir, now: Picos) {
    submit_for(q, 1, first, pages, dir, now);
}

fn submit_for(q: &mut Tested, task: u32, first: u64, pages: u64, dir: BlockDir, now: Picos) {
    let units: Vec<u64> = (first..first + pages).collect();
    let run = Run {
        lba: Lba(first * 8),
        units: &units,
        dir,
        task: TaskId(task),
    };
    q.submit(run, now);
    q.validate().unwrap();
}

/// Lets time pass until an event at `until` or none is left.
fn pass(q: &mut Tested, until: Picos) -> Vec<Done<u64>> {
    let mut done = Vec::new();
    while let Some(event) = q.next_event().filter(|&e| e <= until) {
        q.poll(event, &mut done);
        q.validate().unwrap();
    }
    done
}

fn finish(q: &mut Tested) -> Vec<Done<u64>> {
    let done = pass(q, Picos::MAX);
    assert!(q.is_idle());
    done
}

#[test]
fn the_plug_holds_three_milliseconds_or_until_the_fourth_request_or_a_waiter() {
    let config = IoConfig::deadline_2_6_11;
    let mut q = queue(config());
    submit(&mut q, 0, 1, Read, ms(5));
    assert_eq!(q.next_event(), Some(ms(8)));
    assert!(pass(&mut q, Picos(ms(8).0 - 1)).is_empty() && q.port().log.is_empty());
    pass(&mut q, ms(8));
    assert_eq!(q.port().log[0].1, ms(8));

    let mut q = queue(config());
    (0..3).for_each(|n| submit(&mut q, n * 100, 1, Read, ms(1)));
    assert!(q.port().log.is_empty());
    submit(&mut q, 300, 1, Read, ms(2));
    assert_eq!(q.port().log[0].1, ms(2));

    let mut q = queue(config());
    submit(&mut q, 0, 1, Read, ms(1));
    q.unplug(ms(2));
    assert_eq!(q.port().log[0].1, ms(2));
}

#[test]
fn runs_merge_at_both_ends_close_gaps_and_stop_at_the_largest_request() {
    let mut q = queue(IoConfig {
        max_sectors: 64,
        ..IoConfig::deadline_2_6_11()
    });
    for (first, pages) in [(10, 2), (12, 1), (9, 1), (15, 1), (13, 2)] {
        submit(&mut q, first, pages, Read, ms(0));
    }
    let s = q.stats();
    assert_eq!((s.back_merges, s.front_merges, s.joins), (2, 1, 1));
    // 9..16 has 7 pages: one more fits, two do not.
    submit(&mut q, 16, 2, Read, ms(0));
    submit(&mut q, 8, 1, Read, ms(0));
    let done = finish(&mut q);
    assert_eq!(q.port().requests(Read), [(8, 8), (16, 2)]);
    let pages: Vec<u64> = done.iter().map(|d| d.unit).collect();
    assert_eq!(pages, (8..18).collect::<Vec<_>>(), "in order of the medium");
}

#[test]
fn reads_and_writes_never_merge() {
    let mut q = queue(IoConfig::deadline_2_6_11());
    submit(&mut q, 10, 1, Read, ms(0));
    submit(&mut q, 11, 1, Write, ms(0));
    finish(&mut q);
    assert_eq!(q.port().log.len(), 2);
}

/// The queue and the list that is searched from end to end, with the same calls.
fn compare(config: IoConfig, seed: u64, calls: usize) {
    let config = IoConfig {
        unplug_delay: Picos(0),
        requests: 1 << 20,
        max_sectors: 96,
        ..config
    };
    let mut rng = SmallRng::seed_from_u64(seed);
    let (mut q, mut oracle) = (queue(config.clone()), Oracle::new(config));
    let (mut free, mut now, mut expected, mut busy) = (BTreeSet::new(), 0, Vec::new(), false);
    let mut done = Vec::new();
    for call in 0..calls + 4000 {
        // All events before the next call.
        let next_call = now + rng.random_range(0..30) * 1_000_000_000;
        while let Some(event) = q.next_event().filter(|e| e.0 <= next_call || call >= calls) {
            now = event.0;
            q.poll(event, &mut done);
            busy = oracle.take(now).map(|r| expected.push(r)).is_some();
        }
        if call >= calls {
            break;
        }
        now = now.max(next_call);
        let (first, pages) = (rng.random_range(0..600), rng.random_range(1..6));
        if (first..first + pages).any(|p| !free.insert(p)) {
            continue; // no page is under way twice
        }
        let dir = if rng.random_range(0..3) == 0 {
            Write
        } else {
            Read
        };
        submit(&mut q, first, pages, dir, Picos(now));
        oracle.submit(first, pages, dir, now);
        if !busy {
            busy = oracle.take(now).map(|r| expected.push(r)).is_some();
        }
        for d in done.drain(..) {
            free.remove(&d.unit);
        }
    }
    let log = q.port().log.iter();
    let log: Vec<_> = log
        .map(|(r, _)| (r.lba.0 / 8, u64::from(r.sectors) / 8, r.dir))
        .collect();
    assert!(log.len() > calls / 20);
    for (i, (got, want)) in log.iter().zip(&expected).enumerate() {
        assert_eq!(got, want, "seed {seed}, request {i}");
    }
    assert_eq!(log.len(), expected.len());
}

#[test]
fn merging_and_order_are_those_of_a_list_that_is_searched_from_end_to_end() {
    for seed in 0..20 {
        compare(IoConfig::noop(), seed, 400);
        compare(IoConfig::deadline_2_6_11(), seed, 400);
        compare(IoConfig::deadline_2_6_30(), seed, 400);
        let impatient = IoConfig {
            read_expire: ms(30),
            write_expire: ms(100),
            fifo_batch: 3,
            ..IoConfig::deadline_2_6_30()
        };
        compare(impatient.clone(), seed, 400);
        compare(
            IoConfig {
                scheduler: IoConfig::deadline_2_6_11().scheduler,
                ..impatient
            },
            seed,
            400,
        );
    }
}

/// First pages in the order of dispatch, after page 1000 has kept the disk busy.
fn order(config: IoConfig, requests: &[(u64, BlockDir)]) -> Vec<u64> {
    let mut q = queue(IoConfig {
        unplug_delay: Picos(0),
        ..config
    });
    submit(&mut q, 1000, 1, Read, ms(0));
    for (page, dir) in requests {
        submit(&mut q, *page, 1, *dir, ms(1));
    }
    finish(&mut q);
    q.port().log[1..].iter().map(|(r, _)| r.lba.0 / 8).collect()
}

#[test]
fn deadline_of_2_6_11_sweeps_from_the_lowest_sector_and_later_forms_from_the_oldest() {
    let requests = [50, 10, 90, 30].map(|p| (p, Read));
    assert_eq!(
        order(IoConfig::deadline_2_6_11(), &requests),
        [10, 30, 50, 90]
    );
    assert_eq!(
        order(IoConfig::deadline_2_6_30(), &requests),
        [50, 90, 10, 30]
    );
    assert_eq!(order(IoConfig::noop(), &requests), [50, 10, 90, 30]);
}

#[test]
fn a_batch_has_16_requests_in_later_forms_and_ends_at_a_gap_in_2_6_11() {
    let mut requests = vec![(5000, Write)];
    requests.extend((0..60).map(|n| (n * 10, Read)));
    let writes_at = |config| order(config, &requests).iter().position(|&p| p == 5000);
    // Two batches of reads go first.
    assert_eq!(writes_at(IoConfig::deadline_2_6_30()), Some(32));
    assert_eq!(writes_at(IoConfig::deadline_2_6_11()), Some(2));
}

/// When a read behind an endless stream of ascending reads is served.
fn patience(config: IoConfig) -> Picos {
    let mut q = queue(config);
    let mut done = Vec::new();
    for n in 0..4 {
        submit(&mut q, 10_000 + 2 * n, 1, Read, ms(0));
    }
    submit(&mut q, 100, 1, Read, ms(0));
    let behind = |q: &Tested| {
        q.port()
            .log
            .iter()
            .find(|(r, _)| r.lba == Lba(800))
            .map(|r| r.1)
    };
    for n in 4..2000 {
        let event = q.next_event().unwrap();
        q.poll(event, &mut done);
        submit(&mut q, 10_000 + 2 * n, 1, Read, event);
        if let Some(at) = behind(&q) {
            return at;
        }
    }
    panic!("it was never served");
}

#[test]
fn a_read_whose_deadline_has_passed_waits_at_most_for_the_batch_under_way() {
    // 11 ms per request.
    let at = patience(IoConfig::deadline_2_6_30());
    assert!(
        at >= ms(500) && at <= Picos(ms(500).0 + 16 * ms(11).0),
        "{at}"
    );
    let short = IoConfig {
        fifo_batch: 1,
        ..IoConfig::deadline_2_6_30()
    };
    assert!(patience(short) <= Picos(ms(500).0 + ms(11).0));
    let at = patience(IoConfig::anticipatory_2_6_11());
    assert!(at >= ms(125) && at <= Picos(ms(125).0 + ms(11).0), "{at}");
}

#[test]
fn requests_beyond_the_pool_wait_and_congestion_has_two_thresholds() {
    let mut q = queue(IoConfig::deadline_2_6_30());
    for n in 0..200 {
        submit(&mut q, n * 10, 1, Write, ms(0));
        // One is at the disk once the plug is out.
        let waiting = if n < 3 { n + 1 } else { n };
        assert_eq!(q.congested(Write), waiting >= 113, "{n}");
    }
    assert!(!q.congested(Read));
    assert_eq!(q.stats().backlogged, 200 - 128 - 1);
    let mut done = Vec::new();
    while q.congested(Write) {
        let event = q.next_event().unwrap();
        q.poll(event, &mut done);
        q.validate().unwrap();
    }
    // 200 less those done and the one at the disk wait: 102.
    assert_eq!(done.len(), 200 - 102 - 1);
    done.extend(finish(&mut q));
    assert_eq!(done.len(), 200, "every page completes once");
}

#[test]
fn the_disk_never_has_more_requests_than_its_depth() {
    for depth in [1, 2, 8] {
        let mut q = queue(IoConfig {
            depth,
            ..IoConfig::noop()
        });
        (0..20).for_each(|n| submit(&mut q, n * 10, 1, Read, ms(0)));
        assert_eq!(q.port().log.len(), depth as usize);
        assert_eq!(finish(&mut q).len(), 20);
    }
}

/// Two tasks read rows of pages far apart, each after `think` for its next page.
fn two_streams(config: IoConfig, think: Picos) -> (Picos, Tested) {
    let mut q = queue(config);
    let mut next = [(0, 0), (100_000, 0)];
    let mut due: Vec<(Picos, usize)> = vec![(ms(0), 0), (ms(0), 1)];
    let mut last = ms(0);
    loop {
        due.sort();
        let event = q.next_event();
        let call = due.first().map(|d| d.0);
        match (call, event) {
            (Some(at), event) if event.is_none_or(|e| at < e) => {
                let (_, task) = due.remove(0);
                let (first, n) = next[task];
                next[task].1 += 1;
                submit_for(&mut q, task as u32, first + n, 1, Read, at);
                q.unplug(at);
            }
            (_, Some(event)) => {
                let mut done = Vec::new();
                q.poll(event, &mut done);
                for d in done {
                    last = event;
                    let task = usize::from(d.unit >= 100_000);
                    if next[task].1 < 50 {
                        due.push((event + think, task));
                    }
                }
            }
            (None, None) => return (last, q),
            (Some(_), None) => unreachable!(),
        }
    }
}

#[test]
fn anticipation_keeps_two_streams_apart_if_their_tasks_come_back_soon() {
    let (fair, _) = two_streams(IoConfig::deadline_2_6_11(), ms(2));
    let (anticipating, q) = two_streams(IoConfig::anticipatory_2_6_11(), ms(2));
    assert!(
        fair >= Picos(100 * ms(11).0),
        "a seek for every page: {fair}"
    );
    // 3 ms per page, a seek per deadline (125 ms) that passes and per stream.
    assert!(
        anticipating < Picos(100 * ms(3).0 + 8 * ms(12).0),
        "{anticipating}"
    );
    let s = q.stats();
    assert!(
        s.anticipated > 80 && s.anticipations - s.anticipated < 5,
        "{s:?}"
    );
}

#[test]
fn anticipation_gives_up_on_tasks_that_think_for_long() {
    let (fair, _) = two_streams(IoConfig::deadline_2_6_11(), ms(9));
    let (anticipating, q) = two_streams(IoConfig::anticipatory_2_6_11(), ms(9));
    assert!(q.stats().anticipations <= 4, "{:?}", q.stats());
    assert!(anticipating.0 <= fair.0 + 4 * ms(6).0);
}

#[test]
fn run_lengths_are_those_of_rows_of_reads_in_the_order_of_dispatch() {
    let mut r = RunLengths::default();
    for (first, pages) in [(0, 4), (4, 4), (20, 1), (30, 2), (32, 1), (0, 1)] {
        r.read(Lba(first * 8), pages);
    }
    assert_eq!(r.histogram(), [(1, 2), (3, 1), (8, 1)]);
    assert_eq!(r.pages(), 13);
    let below = [0, 1, 2, 3, 4, 8, 9].map(|x| r.pages_below(x));
    assert_eq!(below, [0, 0, 2, 2, 5, 5, 13]);
}

#[test]
fn a_configuration_out_of_range_is_refused_by_name() {
    let bad = IoConfig {
        depth: 0,
        ..IoConfig::noop()
    };
    let error = Queue::<_, u32>::new(bad, TestDisk::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "block I/O: depth is 0, must be at least 1"
    );
    assert_eq!(TestDisk::default().next_done(), None);
}
