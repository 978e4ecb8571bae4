//! The buffer, averages, flash, and the figures of whole disks.

use crate::disk_kit::{Numbers, close, ms, open, preset, read, spec, write};
use piebald_hw::disk::{Disk, DiskSpec, Hit};
use piebald_units::{
    Picos,
    block::{BlockDir, BlockPort, BlockReq},
};

// --- the buffer ---

/// The Cheetah with a bus that is no limit and without overheads.
fn bare() -> DiskSpec {
    let mut spec = spec("st39102lw");
    let zoned = spec.zoned.as_mut().expect("zoned");
    zoned.bus.sector = Picos(0);
    let o = &mut zoned.overheads;
    o.read_hit_after_read = Picos(0);
    o.read_hit_after_write = Picos(0);
    o.read_miss_after_read = Picos(0);
    o.read_miss_after_write = Picos(0);
    spec
}

#[test]
fn what_is_read_ahead_is_there_when_its_last_sector_has_passed_and_not_before() {
    let mut disk = open(&bare());
    let first = disk.service(read(0, 8), Picos(0));
    assert_eq!(first.hit, Hit::Miss);
    // Sectors 8..16 follow without a gap.
    let mechanics = disk.zoned().expect("zoned").mechanics();
    let place = disk.zoned().expect("zoned").map().place(0);
    let begin = first.done.since(mechanics.pass(place, 8));
    let ready = begin + mechanics.pass(place, 16);
    let ask = |now: Picos| disk.clone().service(read(8, 8), now);
    let early = ask(Picos(ready.0 - 10));
    assert_eq!(
        (early.hit, early.done),
        (Hit::Partial, ready),
        "waits for the sector"
    );
    let late = ask(Picos(ready.0 + 10));
    assert_eq!((late.hit, late.done), (Hit::Full, Picos(ready.0 + 10)));
}

#[test]
fn reading_ahead_ends_with_the_next_track_and_hits_cost_overhead_and_bus() {
    let mut disk = preset("st39102lw");
    let first = disk.service(read(1000, 8), Picos(0));
    assert_eq!(first.hit, Hit::Miss);
    let later = first.done + Picos(50_000_000_000);
    let ask = |lba: u64| disk.clone().service(read(lba, 8), later);
    let hit = ask(1008);
    assert_eq!(hit.hit, Hit::Full);
    let cost = Picos(66_000_000 + 8 * 105_000_000);
    assert_eq!(
        hit.done.since(later),
        cost,
        "0.066 ms and eight sectors on the bus"
    );
    // 1000 lies on track 3 (762..1016); the track after it ends at 1270.
    assert_eq!(ask(1262).hit, Hit::Full);
    assert_eq!(
        ask(1266).hit,
        Hit::Partial,
        "four blocks held, four to fetch"
    );
    assert_eq!(ask(1270).hit, Hit::Miss);
    assert_eq!(
        ask(1000).hit,
        Hit::Miss,
        "what the host has taken is not kept"
    );
}

#[test]
fn a_drive_that_reads_whole_tracks_has_their_front_last() {
    let mut disk = preset("atlas10k");
    let first = disk.service(read(100, 4), Picos(1_000_000));
    let mechanics = disk.zoned().expect("zoned").mechanics();
    let map = disk.zoned().expect("zoned").map();
    assert_eq!(map.track_end(100), 334);
    let rev = mechanics.revolution();
    let ask = |lba: u64, now: Picos| disk.clone().service(read(lba, 4), now).hit;
    let late = first.done + rev + rev;
    assert_eq!(ask(330, late), Hit::Full);
    assert_eq!(ask(0, late), Hit::Full, "the front of the track");
    assert_eq!(ask(334, late), Hit::Miss, "another track");
    // The head saw `passed` sectors while it waited for block 100, and has them;
    // those in front of them have passed when it would see them again.
    let passed = mechanics.sectors_in(map.place(100), first.rotation);
    assert!((1..99).contains(&passed), "it came between block 1 and 100");
    let begin = first.start + first.overhead + first.wait + first.seek + first.rotation;
    assert_eq!(ask(100 - passed, first.done), Hit::Full, "seen on arrival");
    let ready = begin + mechanics.pass(map.place(100), 334 - passed);
    assert_eq!(
        ask(99 - passed, Picos(ready.0 - 10)),
        Hit::Miss,
        "not before t"
    );
    assert_eq!(ask(99 - passed, Picos(ready.0 + 10)), Hit::Full, "at t");
}

#[test]
fn three_segments_hold_three_streams_and_the_fourth_takes_the_oldest() {
    let mut disk = preset("st39102lw");
    let mut now = Picos(0);
    for lba in [1_000, 5_000_000, 9_000_000] {
        now = disk.service(read(lba, 8), now).done + Picos(50_000_000_000);
    }
    let after = |disk: &Disk, lba: u64| disk.clone().service(read(lba, 8), now).hit;
    for lba in [1_008, 5_000_008, 9_000_008] {
        assert_eq!(after(&disk, lba), Hit::Full, "{lba}");
    }
    now = disk.service(read(13_000_000, 8), now).done + Picos(50_000_000_000);
    let after = |lba: u64| disk.clone().service(read(lba, 8), now).hit;
    assert_eq!(after(1_008), Hit::Miss);
    assert_eq!(after(5_000_008), Hit::Full);
}

#[test]
fn a_buffered_write_is_done_by_bus_time_and_read_back_from_the_buffer() {
    let mut disk = preset("st39102lw");
    let timing = disk.service(write(1_000_000, 16), Picos(0));
    assert_eq!(timing.hit, Hit::Buffered);
    assert_eq!(timing.done, Picos(748_000_000 + 16 * 105_000_000));
    let back = disk.service(read(1_000_000, 16), timing.done);
    assert_eq!(back.hit, Hit::Full);
}

#[test]
fn a_write_waits_for_room_until_the_medium_has_taken_one() {
    let mut disk = preset("atlas10k");
    // One segment for writes: a second, distant write has to wait for the first.
    let first = disk.service(write(9_000_000, 8), Picos(0));
    let second = disk.service(write(100, 8), first.done);
    assert!(second.wait > Picos(0));
    let gone = second.start + second.wait;
    let clone = || {
        let mut disk = preset("atlas10k");
        disk.service(write(9_000_000, 8), Picos(0));
        disk
    };
    assert!(
        clone().service(write(100, 8), Picos(gone.0 - 1)).wait > Picos(0),
        "not at t - 1"
    );
    assert_eq!(clone().service(write(100, 8), gone).wait, Picos(0), "at t");
}

#[test]
fn without_write_back_a_write_takes_the_medium() {
    let mut spec = spec("st39102lw");
    spec.zoned.as_mut().expect("zoned").buffer.write_back = false;
    let mut disk = open(&spec);
    let timing = disk.service(write(9_000_000, 8), Picos(0));
    assert_eq!(timing.hit, Hit::Miss);
    assert!(timing.seek > Picos(5_000_000_000));
}

// --- averages and flash ---

#[test]
fn an_access_of_the_disk_of_averages_costs_its_average_unless_it_continues() {
    // DULO, Table 1: ten misses of LRU cost 95.0 ms, seven of dual 66.5 ms.
    let cost = |places: &[u64]| {
        let mut disk = preset("dulo-table1");
        let mut now = Picos(0);
        for lba in places {
            now = disk.service(read(*lba, 8), now).done;
        }
        now
    };
    let scattered: Vec<u64> = (0..10).map(|i| i * 1000).collect();
    assert_eq!(cost(&scattered), Picos(95_000_000_000));
    assert_eq!(cost(&scattered[..7]), Picos(66_500_000_000));
    let sequential: Vec<u64> = (0..10).map(|i| i * 8).collect();
    assert_eq!(cost(&sequential), Picos(9_500_000_000));
}

/// Commands a second with `depth` always outstanding, through the port.
fn rate(disk: &mut Disk, depth: u64, count: u64, mut next: impl FnMut() -> BlockReq) -> f64 {
    for _ in 0..depth {
        disk.submit(next(), Picos(0));
    }
    let mut now = Picos(0);
    for _ in 0..count {
        let (id, done) = disk.next_done().expect("some are outstanding");
        assert!(done >= now, "completions are in order");
        now = done;
        disk.retire(id);
        disk.submit(next(), now);
    }
    count as f64 / (now.0 as f64 / 1e12)
}

fn random_rate(name: &str, depth: u64, dir: BlockDir) -> f64 {
    let mut disk = preset(name);
    let pages = disk.capacity_sectors() / 8;
    let mut numbers = Numbers(depth);
    rate(&mut disk, depth, 20_000, || BlockReq {
        dir,
        ..read(numbers.below(pages) * 8, 8)
    })
}

fn sequential_rate(name: &str, depth: u64, dir: BlockDir) -> f64 {
    let mut disk = preset(name);
    let mut at = 0;
    let commands = rate(&mut disk, depth, 20_000, || {
        at += 256;
        BlockReq {
            dir,
            ..read(at - 256, 256)
        }
    });
    commands * 256.0 * 512.0
}

#[test]
fn flash_reaches_the_published_rates_and_no_more() {
    use BlockDir::{Read, Write};
    for (name, depth, dir, iops) in [
        ("sata-ssd", 1, Read, 13_000.0),
        ("sata-ssd", 1, Write, 36_000.0),
        ("sata-ssd", 32, Read, 98_000.0),
        ("sata-ssd", 32, Write, 88_000.0),
        ("nvme", 1, Read, 22_000.0),
        ("nvme", 512, Read, 1_200_000.0),
    ] {
        let found = random_rate(name, depth, dir);
        close(
            found,
            iops,
            0.03,
            &format!("{name} depth {depth} {dir:?} a second"),
        );
    }
    for (name, dir, bytes) in [
        ("sata-ssd", Read, 560e6),
        ("sata-ssd", Write, 530e6),
        ("nvme", Read, 7e9),
        ("nvme", Write, 5e9),
    ] {
        let found = sequential_rate(name, 32, dir);
        close(
            found,
            bytes,
            0.02,
            &format!("{name} {dir:?} bytes a second"),
        );
    }
}

// --- a disk of today ---

#[test]
fn a_sata_disk_of_today_has_the_figures_of_its_class() {
    let disk = preset("sata-7200");
    let mechanics = disk.zoned().expect("zoned").mechanics();
    close(ms(mechanics.curve.mean(545_000)), 7.4, 0.1, "mean seek, ms");
    let one = random_rate("sata-7200", 1, BlockDir::Read);
    let deep = random_rate("sata-7200", 16, BlockDir::Read);
    println!("sata-7200: {one:.0} reads a second alone, {deep:.0} of 16");
    close(
        one,
        1000.0 / (7.4 + 4.17 + 0.2),
        0.1,
        "reads a second, one outstanding",
    );
    close(deep, 170.0, 0.2, "reads a second, 16 outstanding");
    let outer = sequential_rate("sata-7200", 4, BlockDir::Read);
    close(outer, 270e6, 0.02, "bytes a second outside");
}

#[test]
fn the_averages_of_the_wd400bb_are_those_of_its_sheet() {
    let disk = preset("wd400bb");
    let mechanics = disk.zoned().expect("zoned").mechanics();
    close(ms(mechanics.curve.mean(32_500)), 8.9, 0.1, "mean seek, ms");
    close(
        ms(mechanics.curve.time(1)),
        2.0,
        0.001,
        "to the next track, ms",
    );
    close(
        ms(mechanics.curve.time(32_499)),
        21.0,
        0.01,
        "full stroke, ms",
    );
}

// --- cost of a run ---

#[test]
fn the_cost_of_a_run_is_the_mean_of_random_runs() {
    for name in ["st39102lw", "wd400bb", "atlas10k"] {
        let mut spec = spec(name);
        let zoned = spec.zoned.as_mut().expect("zoned");
        zoned.buffer.segments = 0;
        zoned.mechanics.least_access = Picos(0);
        for sectors in [8u32, 128, 1024] {
            let mut disk = open(&spec);
            let mut numbers = Numbers(7);
            let mut now = Picos(0);
            let mut sum = 0.0;
            for _ in 0..4000 {
                let lba = numbers.below(disk.capacity_sectors() - u64::from(sectors));
                let timing = disk.service(read(lba, sectors), now);
                sum += ms(timing.done.since(now));
                now = timing.done + Picos(numbers.below(20_000_000_000));
            }
            let cost = ms(disk.run_cost(u64::from(sectors)));
            close(
                sum / 4000.0,
                cost,
                0.05,
                &format!("{name}: {sectors} sectors, ms"),
            );
        }
    }
    assert_eq!(preset("dulo-table1").run_cost(128), Picos(9_500_000_000));
}
