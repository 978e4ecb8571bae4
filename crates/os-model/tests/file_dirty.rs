//! Writes: what is read first, when dirty pages go out, who waits; and the swap area.

use crate::filehost::{
    Host,
    driver::{self, Do, one, reads},
    host, ms,
};
use piebald_os_model::file::{FileConfig, Span, SwapArea, WriteBack};
use piebald_units::{
    Lba, Picos,
    block::BlockDir::{Read, Write},
};

const SECOND: u64 = 1000;

fn writes(pages: impl IntoIterator<Item = u64>) -> Vec<Do> {
    let pages = pages.into_iter();
    pages.map(|p| Do::Write(0, Span::pages(p, 1))).collect()
}

fn run(h: &mut Host, ops: impl IntoIterator<Item = Do>) -> Picos {
    driver::run(h, &mut one(ops), |h| h.validate().unwrap())
}

/// Lets write-back finish.
fn settle(h: &mut Host) {
    while let Some(event) = h.next_event() {
        h.advance(event).unwrap();
        h.validate().unwrap();
    }
}

#[test]
fn only_parts_of_pages_within_the_file_are_read_before_they_are_written() {
    let mut h = host(FileConfig::plain(), 100, &[10]);
    let part = |offset, len| Do::Write(0, Span { offset, len });
    assert_eq!(run(&mut h, [part(4096, 8192)]), ms(0), "two whole pages");
    assert_eq!(
        run(&mut h, [part(10 * 4096 + 5, 10)]),
        ms(0),
        "behind the end"
    );
    assert_eq!(
        h.files()
            .pages(h.files().index(piebald_units::FileId(0)).unwrap()),
        11
    );
    let mut h = host(FileConfig::plain(), 100, &[10]);
    run(&mut h, [part(4000, 200)]);
    assert_eq!(
        h.disk().requests(Read),
        [(0, 1), (1, 1)],
        "both have a rest"
    );
    assert_eq!(h.stats().writes.misses, 2);
    assert_eq!(h.dirty_pages(), 2);
}

#[test]
fn pages_dirty_for_30_seconds_are_written_at_the_next_look_in_order_of_the_file() {
    let mut h = host(FileConfig::linux_2_6_11(), 1000, &[100]);
    let ops = [Do::Think(ms(7 * SECOND))].into_iter();
    run(&mut h, ops.chain(writes([9, 3, 5, 4, 20, 8])));
    settle(&mut h);
    let log = &h.disk().log;
    // Dirty at 7 s; looked at every 5 s: 37 s have passed at 40 s.
    assert!(log.iter().all(|(_, at)| *at >= ms(40 * SECOND)), "{log:?}");
    assert!(log[0].1 <= ms(40 * SECOND + 3));
    assert_eq!(h.disk().requests(Write), [(3, 3), (8, 2), (20, 1)]);
    assert_eq!((h.dirty_pages(), h.stats().written_back), (0, 6));
    assert_eq!(h.resident(), 6, "clean now, and still there");
}

#[test]
fn above_a_tenth_of_memory_writing_starts_and_above_four_tenths_writers_wait() {
    let mut h = host(FileConfig::plain(), 100, &[1000]);
    assert_eq!(run(&mut h, writes(0..10)), ms(0));
    assert!(h.disk().log.is_empty());
    let mut most = 0;
    driver::run(&mut h, &mut one(writes(10..600)), |h| {
        most = most.max(h.dirty_pages());
        h.validate().unwrap();
    });
    assert!(most <= 41, "{most}");
    let s = h.stats();
    assert!(s.throttled > 0 && s.written_back > 500, "{s:?}");
    assert!(
        h.disk().requests(Write).len() < 590 / 8,
        "whole runs are written"
    );
}

#[test]
fn reclaim_writes_dirty_pages_and_takes_clean_ones() {
    let mut h = host(FileConfig::plain(), 20, &[1000]);
    // Two dirty pages at the cold end, below the background share.
    let ops = writes([0, 500]).into_iter().chain(reads(0, 100..118));
    run(&mut h, ops);
    assert!(h.disk().requests(Write).is_empty());
    run(
        &mut h,
        [Do::Think(ms(1000)), Do::Read(0, Span::pages(200, 1))],
    );
    assert_eq!(h.disk().requests(Write), [(0, 1), (500, 1)]);
    let s = h.stats();
    // The dirty ones are gone when they are written.
    assert_eq!((s.victims_written, s.written_back, s.evicted), (2, 0, 3));
    assert_eq!(h.resident(), 18);
}

#[test]
fn a_kernel_of_today_writes_a_victim_with_the_dirty_pages_around_it() {
    let requests = |write_back| {
        let config = FileConfig {
            write_back,
            ..FileConfig::plain()
        };
        let mut h = host(config, 100, &[1000]);
        // The first victim lies in the middle of a run.
        let dirty = writes([3, 4, 5, 0, 1, 2, 500]);
        run(&mut h, dirty.into_iter().chain(reads(0, 100..193)));
        assert!(h.disk().log.iter().all(|(r, _)| r.dir == Read));
        let more = [Do::Think(ms(1000)), Do::Read(0, Span::pages(200, 1))];
        run(&mut h, more);
        settle(&mut h);
        assert_eq!((h.stats().victims_written, h.resident()), (7, 93));
        h.disk().requests(Write)
    };
    assert_eq!(requests(WriteBack::LINUX_6), [(0, 6), (500, 1)]);
    let single = requests(WriteBack::LINUX_2_6_11);
    assert!(single.len() > 2, "merged in the queue at best: {single:?}");
}

#[test]
fn what_is_deleted_is_not_written() {
    let mut h = host(FileConfig::plain(), 100, &[50]);
    let ops = writes(0..8).into_iter().chain([Do::Delete(0, 50)]);
    run(&mut h, ops);
    settle(&mut h);
    assert!(h.disk().log.is_empty());
    assert_eq!((h.resident(), h.stats().deleted), (0, 8));
}

fn swapping(memory: u32, slots: u32) -> Host {
    let config = FileConfig {
        swap: Some(SwapArea::new(Lba(80_000), slots)),
        ..FileConfig::plain()
    };
    host(config, memory, &[1000])
}

fn touches(pages: std::ops::Range<u64>, write: bool) -> Vec<Do> {
    pages.map(|page| Do::Anon(page, write)).collect()
}

#[test]
fn pages_leave_in_order_to_slots_in_order_and_come_back_by_the_group() {
    let mut h = swapping(64, 4096);
    run(&mut h, touches(0..200, true));
    let s = h.stats();
    assert_eq!(s.anon.misses, 200);
    assert_eq!(
        (s.swap_ins, h.io_stats().pages_read),
        (0, 0),
        "first touches are not read"
    );
    assert!(s.swap_outs >= 200 - 64);
    let first_slot = 10_000;
    let mut written: Vec<u64> = Vec::new();
    for (first, pages) in h.disk().requests(Write) {
        written.extend(first..first + pages);
    }
    let slots: Vec<u64> = (0..s.swap_outs).map(|n| first_slot + 1 + n).collect();
    assert_eq!(written, slots, "slot 0 is the header");
    // Slot 1 holds page 0: its group is slots 1 to 7.
    let before = h.disk().log.len();
    run(&mut h, [Do::Think(ms(60 * SECOND)), Do::Anon(0, false)]);
    // What must leave for it is dirty and written at the same time.
    let reads = h.disk().log[before..].iter().filter(|(r, _)| r.dir == Read);
    let reads: Vec<_> = reads.map(|(r, _)| (r.lba, r.sectors)).collect();
    assert_eq!(reads, [(Lba(8 * (first_slot + 1)), 7 * 8)]);
    let s = h.stats();
    assert_eq!((s.swap_ins, s.swap_readahead), (1, 6));
    run(
        &mut h,
        [Do::Think(ms(120 * SECOND))]
            .into_iter()
            .chain(touches(1..7, false)),
    );
    assert_eq!(h.stats().swap_ins, 1, "its neighbours are there");
}

#[test]
fn pages_that_are_only_read_again_leave_without_being_written_again() {
    let mut h = swapping(64, 4096);
    run(&mut h, touches(0..200, true));
    let quiet = [Do::Think(ms(100 * SECOND))];
    run(&mut h, quiet.into_iter().chain(touches(0..200, false)));
    let once = h.stats().swap_outs;
    assert_eq!(once, 200, "the rest of them, too");
    let quiet = [Do::Think(ms(200 * SECOND))];
    run(&mut h, quiet.into_iter().chain(touches(0..200, false)));
    assert_eq!(h.stats().swap_outs, once);
    let quiet = [Do::Think(ms(300 * SECOND))];
    run(&mut h, quiet.into_iter().chain(touches(0..200, true)));
    let quiet = [Do::Think(ms(400 * SECOND))];
    run(&mut h, quiet.into_iter().chain(touches(0..200, false)));
    assert!(
        h.stats().swap_outs >= once + 200 - 64,
        "what was written to is"
    );
    assert_eq!(h.swap_used(), 200, "to the same slots");
}

#[test]
fn a_swap_area_that_is_half_full_gives_slots_back_when_their_pages_return() {
    let mut h = swapping(64, 256);
    run(&mut h, touches(0..250, true));
    assert!(h.swap_used() > 128);
    let quiet = [Do::Think(ms(100 * SECOND))];
    run(&mut h, quiet.into_iter().chain(touches(0..30, false)));
    assert!(h.swap_used() <= 250 - 30);
    run(&mut h, [Do::Think(ms(200 * SECOND)), Do::Exit]);
    settle(&mut h);
    assert_eq!((h.swap_used(), h.resident()), (0, 0));
}

#[test]
fn without_a_swap_area_programs_wait_forever_and_the_driver_can_see_it() {
    let mut h = host(FileConfig::plain(), 10, &[]);
    let task = piebald_units::TaskId(1);
    for page in 0..10 {
        let _ = h.touch_anon(task, page, true, ms(0)).unwrap();
    }
    let step = h.touch_anon(task, 10, true, ms(0)).unwrap();
    assert_eq!(step, piebald_os_model::file::Step::Blocked);
    assert_eq!(
        (h.next_event(), h.blocked_tasks().next()),
        (None, Some(task))
    );
    h.validate().unwrap();
}
