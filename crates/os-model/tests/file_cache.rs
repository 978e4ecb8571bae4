//! The page cache over a disk of two costs (10 ms to seek, 1 ms per page), compared
//! with closed formulas and with a plain cache simulation.

use crate::filehost;
use std::collections::VecDeque;

use crate::filehost::{
    disk::TestDisk,
    driver::{self, Do, one, reads},
    host,
    lru::Lru,
    ms,
};
use piebald_os_model::{
    file::{
        CpuCost, FileConfig, FileError, FileHost, FileTable, Layout, Span, Step, Watermarks,
        readahead::ReadaheadConfig,
    },
    io::IoConfig,
};
use piebald_units::{FileId, Lba, Picos, TaskId, block::BlockDir};
use rand::{Rng, SeedableRng, rngs::SmallRng};

/// Every kernel with readahead.
fn kernels() -> [FileConfig; 4] {
    [
        FileConfig::dulo_simulation(),
        FileConfig::linux_2_6_11(),
        FileConfig::linux_2_6_30(),
        FileConfig::linux_6(),
    ]
}

/// Pages of the first window of a scan by single pages.
fn first_window(config: &FileConfig) -> u64 {
    match *config == FileConfig::linux_2_6_11() {
        true => 8,
        false => 4,
    }
}

#[test]
fn a_scan_without_readahead_waits_for_every_page() {
    let mut h = host(FileConfig::plain(), 100, &[50]);
    let end = driver::run(&mut h, &mut one(reads(0, 0..50)), |h| h.validate().unwrap());
    assert_eq!(
        end,
        ms(10 + 50),
        "one seek, then every page follows the last"
    );
    assert_eq!(h.stats().reads.misses, 50);
    assert_eq!(h.stats().blocked, end);
    assert_eq!(h.disk().requests(BlockDir::Read).len(), 50);
    assert_eq!(h.runs().histogram(), [(50, 1)]);
}

#[test]
fn random_reads_cost_a_seek_and_a_transfer_each_and_hits_cost_nothing() {
    let mut h = host(FileConfig::plain(), 100, &[1000]);
    let pages: Vec<u64> = (0..80).map(|n| n * 37 % 1000).collect();
    let twice = pages.iter().chain(&pages).copied();
    let end = driver::run(&mut h, &mut one(reads(0, twice)), |_| {});
    assert_eq!(end, Picos(80 * ms(11).0));
    let reads = h.stats().reads;
    assert_eq!((reads.misses, reads.hits, reads.waited), (80, 80, 0));
    assert_eq!(h.resident(), 80);
}

/// Reads pages one by one, and thinks before each but the first.
fn thinking(pages: u64, think: Picos) -> driver::Tasks {
    let ops = reads(0, 0..pages).into_iter();
    one(ops.flat_map(|op| [op, Do::Think(think)]))
}

#[test]
fn a_reader_that_thinks_longer_than_a_page_takes_waits_for_the_first_window_only() {
    let mut plain = host(FileConfig::plain(), 2000, &[1000]);
    let end = driver::run(&mut plain, &mut thinking(1000, ms(5)), |_| {});
    assert_eq!(end, ms(10 + 1000 * (5 + 1)));
    for config in kernels() {
        let first = first_window(&config);
        let mut h = host(config.clone(), 2000, &[1000]);
        let end = driver::run(&mut h, &mut thinking(1000, ms(5)), |_| {});
        let (stats, io) = (h.stats(), h.io_stats());
        assert_eq!(stats.blocked, ms(10 + first), "{config:?}");
        assert_eq!(end, ms(10 + first + 1000 * 5));
        assert_eq!(io.pages_read, 1000, "every page once");
        assert_eq!(
            (stats.reads.misses, stats.prefetched, stats.prefetched_used),
            (1, 999, 999)
        );
        assert_eq!(h.runs().histogram(), [(1000, 1)]);
        let most = u64::from(config.io.max_sectors / 8);
        let requests = io.requests_read;
        assert!(
            requests >= 1000 / most && requests <= 2 * 1000 / 32 + 6,
            "{requests}"
        );
    }
}

#[test]
fn a_reader_that_does_not_think_is_limited_by_the_disk_alone() {
    for config in kernels() {
        let mut h = host(config, 2000, &[1000]);
        let end = driver::run(&mut h, &mut one(reads(0, 0..1000)), |_| {});
        assert_eq!(end, ms(10 + 1000), "the disk never idles");
        assert_eq!(h.stats().blocked, end);
    }
}

#[test]
fn one_long_call_costs_what_its_pages_cost_one_by_one() {
    for config in kernels() {
        let mut h = host(config, 2000, &[1000]);
        let call = Do::Read(0, Span::pages(0, 5000));
        let end = driver::run(&mut h, &mut one([call]), |h| h.validate().unwrap());
        assert_eq!(end, ms(10 + 1000));
        assert_eq!(
            h.stats().reads.references,
            1000,
            "cut off at the end of the file"
        );
        assert_eq!(h.io_stats().pages_read, 1000);
    }
}

#[test]
fn processor_time_passes_per_call_and_page_and_overlaps_with_the_disk() {
    let cpu = CpuCost {
        call: ms(1),
        page: ms(2),
    };
    let config = FileConfig {
        cpu,
        ..FileConfig::plain()
    };
    let mut h = host(config, 100, &[10]);
    let call = Do::Read(0, Span::pages(0, 3));
    let end = driver::run(&mut h, &mut one([call, call]), |h| h.validate().unwrap());
    assert_eq!(end, ms((10 + 3 + 3 * 2 + 1) + (3 * 2 + 1)));
    let config = FileConfig {
        cpu,
        ..FileConfig::linux_2_6_30()
    };
    let mut h = host(config, 2000, &[1000]);
    let end = driver::run(
        &mut h,
        &mut one([Do::Read(0, Span::pages(0, 1000))]),
        |_| {},
    );
    // The window of 32 pages carries its mark on its first page, so that the next one
    // starts at once, and the plug makes them one request.
    assert_eq!(h.disk().requests(BlockDir::Read)[0], (0, 64));
    assert_eq!(end, ms(10 + 64 + 2 * 1000 + 1));
}

/// Misses of least recently used over a row of pages.
fn plain_lru(memory: usize, pages: &[u64]) -> u64 {
    let mut order = VecDeque::new();
    let mut misses = 0;
    for page in pages {
        match order.iter().position(|p| p == page) {
            Some(at) => drop(order.remove(at)),
            None => misses += 1,
        }
        order.push_back(*page);
        if order.len() > memory {
            order.pop_front();
        }
    }
    misses
}

#[test]
fn without_readahead_the_misses_are_those_of_a_plain_cache_simulation() {
    for seed in 0..10 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let skewed =
            |rng: &mut SmallRng| rng.random_range(0..200u64) * rng.random_range(0..200) / 200;
        let pages: Vec<u64> = (0..3000).map(|_| skewed(&mut rng)).collect();
        for memory in [1, 7, 50, 200] {
            let mut h = host(FileConfig::plain(), memory, &[200]);
            driver::run(&mut h, &mut one(reads(0, pages.iter().copied())), |_| {});
            let misses = plain_lru(memory as usize, &pages);
            assert_eq!(
                h.stats().reads.misses,
                misses,
                "seed {seed}, {memory} pages"
            );
            assert_eq!(h.io_stats().pages_read, misses);
        }
    }
}

#[test]
fn table_1_of_the_dulo_paper_costs_95_ms_with_lru() {
    // Blocks A to D and the files X and Y, apart from one another.
    let run = |readahead| {
        let apart = Layout::Packed {
            start: Lba(0),
            gap_pages: 100,
        };
        let files = FileTable::new(apart).unwrap();
        // 9.5 ms per access; what follows on the disk costs nothing.
        let disk = TestDisk::new(Picos(9_500_000_000), Picos(0));
        let config = FileConfig {
            readahead,
            ..FileConfig::plain()
        };
        let mut h = FileHost::new(config, files, Lru::new(8), disk).unwrap();
        for (file, pages) in [1, 1, 1, 1, 4, 4].into_iter().enumerate() {
            h.add_file(FileId(file as u64), pages).unwrap();
        }
        let singles = || (0..4).flat_map(|file| reads(file, 0..1));
        let (x, y) = (|| reads(4, 0..4), || reads(5, 0..4));
        let stream = singles().chain(x()).chain(y()).chain(x()).chain(singles());
        let end = driver::run(&mut h, &mut one(stream), |h| h.validate().unwrap());
        (h.stats().reads.misses, end)
    };
    let prefetching = run(ReadaheadConfig::linux_2_4());
    assert_eq!(prefetching, (10, Picos(95_000_000_000)));
    assert_eq!(run(ReadaheadConfig::none()).0, 16, "without prefetching");
}

#[test]
fn a_page_that_is_on_its_way_is_read_once_for_all_who_want_it() {
    let mut h = host(FileConfig::plain(), 10, &[10]);
    let page = |task, h: &mut filehost::Host, at| {
        h.read(TaskId(task), FileId(0), Span::pages(3, 1), at)
            .unwrap()
    };
    assert_eq!(page(1, &mut h, ms(0)), Step::Blocked);
    assert_eq!(page(2, &mut h, ms(4)), Step::Blocked);
    assert_eq!(h.next_event(), Some(ms(11)));
    let woken: Vec<u32> = h
        .advance(ms(11))
        .unwrap()
        .iter()
        .map(|w| w.task.0)
        .collect();
    assert_eq!(woken, [1, 2]);
    let reads = h.stats().reads;
    assert_eq!(
        (reads.misses, reads.waited, h.io_stats().pages_read),
        (1, 1, 1)
    );
    assert_eq!(h.blocked_time(TaskId(1)), ms(11));
    assert_eq!(h.blocked_time(TaskId(2)), ms(7));
    assert_eq!(page(1, &mut h, ms(20)), Step::Ready(ms(20)));
}

#[test]
fn memory_smaller_than_a_window_is_enough() {
    for config in kernels() {
        for memory in [1, 2, 5] {
            let mut h = host(config.clone(), memory, &[60]);
            let call = Do::Read(0, Span::pages(0, 60));
            driver::run(&mut h, &mut one([call]), |h| h.validate().unwrap());
            assert_eq!(h.stats().reads.references, 60);
            assert!(h.resident() <= memory);
        }
    }
}

#[test]
fn pages_read_ahead_and_not_used_are_counted_when_they_leave() {
    let mut h = host(FileConfig::linux_2_6_30(), 8, &[1000]);
    // Two neighbours begin a window of four, of which two are used.
    let pages = (0..20).flat_map(|n| [n * 50 + 10, n * 50 + 11]);
    driver::run(&mut h, &mut one(reads(0, pages)), |h| h.validate().unwrap());
    let s = h.stats();
    assert_eq!((s.prefetched, s.prefetched_used), (60, 0));
    assert!(s.prefetched_unused >= 60 - 8);
}

#[test]
fn a_mapped_page_is_read_with_its_surroundings() {
    let mut h = host(FileConfig::linux_2_6_11(), 200, &[1000]);
    let touches = [500, 490, 515, 516].map(|p| Do::Map(0, p, false));
    driver::run(&mut h, &mut one(touches), |h| h.validate().unwrap());
    let s = h.stats().mapped;
    assert_eq!(
        (s.misses, s.hits, s.waited),
        (2, 1, 1),
        "515 is in the next request"
    );
    let first = h.disk().requests(BlockDir::Read)[0];
    assert_eq!(
        first,
        (484, 31),
        "32 pages around it, as far as a request goes"
    );
    let none = FileConfig {
        readahead: ReadaheadConfig::none(),
        ..FileConfig::linux_2_6_11()
    };
    let mut h = host(none, 200, &[1000]);
    driver::run(&mut h, &mut one(touches), |_| {});
    assert_eq!(h.io_stats().pages_read, 4);
}

#[test]
fn a_deleted_file_leaves_memory_and_its_name_may_return() {
    let mut h = host(FileConfig::linux_2_6_30(), 100, &[50, 50]);
    let call = Do::Read(0, Span::pages(0, 50));
    let ops = [
        call,
        Do::Read(1, Span::pages(0, 5)),
        Do::Delete(0, 30),
        call,
    ];
    driver::run(&mut h, &mut one(ops), |h| h.validate().unwrap());
    assert_eq!(h.stats().deleted, 50);
    assert_eq!(
        h.stats().reads.references,
        50 + 5 + 30,
        "it is another file now"
    );
    assert_eq!(
        h.io_stats().pages_read,
        h.stats().reads.misses + h.stats().prefetched
    );
}

#[test]
fn what_is_cut_off_leaves_memory_and_is_not_there_to_be_read() {
    let mut h = host(FileConfig::plain(), 100, &[50]);
    let all = Do::Read(0, Span::pages(0, 50));
    let ops = [all, Do::Cut(0, 20), all, Do::Cut(0, 30), all];
    driver::run(&mut h, &mut one(ops), |h| h.validate().unwrap());
    assert_eq!((h.stats().deleted, h.resident()), (30, 20));
    assert_eq!(
        h.stats().reads.references,
        50 + 20 + 20,
        "cutting makes no file longer"
    );
}

#[test]
fn what_is_discarded_is_read_again_from_where_it_was() {
    let mut h = host(FileConfig::plain(), 100, &[50]);
    let write = Do::Write(0, Span::pages(40, 5));
    driver::run(&mut h, &mut one(reads(0, 0..50)), |_| {});
    driver::run(&mut h, &mut one([write]), |_| {});
    let now = h.now();
    h.discard(FileId(0), 30, now).unwrap();
    h.validate().unwrap();
    assert_eq!(
        (h.stats().deleted, h.resident(), h.dirty_pages()),
        (20, 30, 0)
    );
    let before = h.disk().log.len();
    driver::run(&mut h, &mut one(reads(0, 25..50)), |h| {
        h.validate().unwrap()
    });
    let again: Vec<_> = h.disk().log[before..].iter().map(|(r, _)| r.lba).collect();
    let places: Vec<_> = (30..50).map(|page| Lba(page * 8)).collect();
    assert_eq!(again, places);
    let error = h.discard(FileId(9), 0, h.now()).unwrap_err();
    assert!(
        matches!(error, FileError::UnknownFile(FileId(9))),
        "{error}"
    );
}

#[test]
fn with_watermarks_reclaim_begins_at_the_low_mark_and_stops_at_the_high_one() {
    let marks = Watermarks { low: 5, high: 20 };
    let config = FileConfig {
        watermarks: Some(marks),
        ..FileConfig::plain()
    };
    let mut h = host(config, 100, &[1000]);
    let mut seen = std::collections::BTreeSet::new();
    driver::run(&mut h, &mut one(reads(0, 0..500)), |h| {
        seen.insert(100 - h.resident());
    });
    // The page that finds 5 free makes 20 free and takes one.
    assert_eq!(seen.first(), Some(&5));
    assert_eq!(h.stats().evicted, (500 - 95) / 15 * 15);
    // 512 MiB: 2896 KiB are 724 pages.
    let real = Watermarks::linux_2_6_11(131_072);
    assert_eq!((real.low, real.high), (905, 1086));
}

#[test]
fn a_file_deleted_under_a_reader_ends_its_call() {
    let mut h = host(FileConfig::plain(), 100, &[50]);
    let call = h
        .read(TaskId(1), FileId(0), Span::pages(0, 50), ms(0))
        .unwrap();
    assert_eq!(call, Step::Blocked);
    h.delete(FileId(0), ms(3)).unwrap();
    h.validate().unwrap();
    let woken = h.advance(ms(11)).unwrap();
    assert_eq!(woken[0].at, ms(11));
    assert_eq!((h.resident(), h.stats().deleted), (0, 1));
    h.validate().unwrap();
}

#[test]
fn calls_that_are_out_of_order_are_refused() {
    let mut h = host(FileConfig::plain(), 100, &[50]);
    let page = Span::pages(0, 1);
    let unknown = h.read(TaskId(1), FileId(9), page, ms(0)).unwrap_err();
    assert_eq!(unknown.to_string(), "file 9 is not known");
    let _ = h.read(TaskId(1), FileId(0), page, ms(5)).unwrap();
    let busy = h.read(TaskId(1), FileId(0), page, ms(6)).unwrap_err();
    assert_eq!(busy, FileError::Busy(TaskId(1)));
    let back = h.read(TaskId(2), FileId(0), page, ms(4)).unwrap_err();
    assert!(matches!(back, FileError::TimeBackwards { .. }));
    let late = h.read(TaskId(2), FileId(0), page, ms(100)).unwrap_err();
    assert!(matches!(late, FileError::EventDue { .. }), "{late}");
    let far = h.touch_anon(TaskId(2), 1 << 40, false, ms(6)).unwrap_err();
    assert_eq!(far, FileError::PageRange(1 << 40));
}

#[test]
fn a_configuration_out_of_range_is_refused_by_name() {
    let bad = FileConfig {
        readahead: ReadaheadConfig::linux_6().with_max_pages(0),
        ..FileConfig::linux_6()
    };
    let text = bad.check().unwrap_err().to_string();
    assert_eq!(
        text,
        "file side: readahead.max_pages is 0, must be 1 to 1048576"
    );
    let bad = FileConfig {
        io: IoConfig {
            max_sectors: 7,
            ..IoConfig::noop()
        },
        ..FileConfig::plain()
    };
    let text = bad.check().unwrap_err().to_string();
    assert_eq!(text, "block I/O: max_sectors is 7, must be at least 8");
}
