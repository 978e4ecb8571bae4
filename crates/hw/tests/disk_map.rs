//! Where blocks lie and how the arm gets there: against a walk over all sectors, and
//! against closed formulas.

use crate::disk_kit::{Numbers, close, ms, open, preset, read, spec};
use piebald_hw::disk::{self, DiskSpec, Run, Spot};
use piebald_units::{Lba, Picos, block::BlockPort};

/// Zone and sector of every block by walking over all sectors.
fn slow_table(spec: &DiskSpec, mut visit: impl FnMut(u64, usize, u64)) -> u64 {
    use disk::spec::SparesAt;
    let zoned = spec.zoned.as_ref().expect("a zoned disk");
    let mut lba = 0;
    for (at, zone) in zoned.zones.iter().enumerate() {
        let cylinder = u64::from(zoned.surfaces * zone.sectors);
        let cylinders = u64::from(zone.last - zone.first + 1);
        let step = match zoned.spares_at {
            SparesAt::RangeEnd => u64::from(zoned.range_cylinders),
            _ => cylinders,
        };
        let mut slips = zone.slips.iter().map(|s| u64::from(*s)).peekable();
        for from in (0..cylinders).step_by(step as usize) {
            let end = (from + step).min(cylinders) * cylinder;
            let mut good = Vec::new();
            let mut slipped = 0;
            for sector in (from * cylinder).max(u64::from(zone.reserved))..end {
                if slips.next_if_eq(&sector).is_some() {
                    slipped += 1;
                } else {
                    good.push(sector);
                }
            }
            if zoned.spares_at != SparesAt::DiskEnd {
                let unused = u64::from(zone.spares) - slipped;
                good.truncate(good.len() - unused as usize);
            }
            for sector in good {
                visit(lba, at, sector);
                lba += 1;
            }
        }
    }
    lba
}

#[test]
fn the_map_is_that_of_a_walk_over_all_sectors() {
    for name in ["st39102lw", "atlas10k", "st32171w", "ibm18es"] {
        let disk = preset(name);
        let zoned = disk.spec().zoned.as_ref().expect("a zoned disk");
        let map = disk.zoned().expect("a zoned disk").map();
        let mut line = 0;
        let mut before = None;
        let blocks = slow_table(disk.spec(), |lba, zone, sector| {
            let last = before.replace((zone, sector));
            let broken = last != Some((zone, sector.wrapping_sub(1)));
            // Every block at a slip, a spare or a zone's end, and a share of the others.
            if lba >= disk.capacity_sectors() || !(broken || lba % 101 == 0) {
                return;
            }
            let z = &zoned.zones[zone];
            let track = sector / u64::from(z.sectors);
            let (cylinder, order) = (
                track / u64::from(zoned.surfaces),
                track % u64::from(zoned.surfaces),
            );
            let place = map.place(lba);
            assert_eq!(place.zone as usize, zone, "{name} {lba}");
            assert_eq!(
                u64::from(place.sector),
                sector % u64::from(z.sectors),
                "{name} {lba}"
            );
            assert_eq!(
                u64::from(place.cylinder),
                u64::from(z.first) + cylinder,
                "{name} {lba}"
            );
            let turned = zoned.mapping == disk::spec::Mapping::Turning && cylinder % 2 == 1;
            let head = if turned {
                u64::from(zoned.surfaces) - 1 - order
            } else {
                order
            };
            assert_eq!(u64::from(place.head), head, "{name} {lba}");
            let physical = disk.physical_block(Lba(lba));
            assert!(physical > line || lba == 0, "{name} {lba}: the line rises");
            line = physical;
        });
        assert!(blocks >= disk.capacity_sectors(), "{name}: {blocks}");
        println!("{name}: {} of {blocks} blocks", disk.capacity_sectors());
    }
}

#[test]
fn neighbours_on_the_line_are_neighbours_on_a_track() {
    let disk = preset("st39102lw");
    let line = |lba: u64| disk.physical_block(Lba(lba));
    assert_eq!((line(0), line(253)), (0, 253));
    assert_eq!(line(254), 255, "a dummy at the track's end");
    // The first slip of zone 0 is sector 168317, on track 662 with 662 dummies before.
    assert_eq!(line(168_316), 168_316 + 662);
    assert_eq!(
        line(168_317),
        168_318 + 662,
        "the slipped sector is counted"
    );
    // Zone 0 has 847 x 12 tracks; its spares and dummies lie before zone 1.
    let zone1 = 847 * 12 * 254 - 1270;
    assert_eq!(line(zone1), 847 * 12 * 255);
    assert_eq!(preset("nvme").physical_block(Lba(77)), 77);
}

#[test]
fn pages_are_neighbours_if_nothing_breaks_the_track_between_them() {
    let disk = preset("st39102lw");
    let place = |lba: u64| disk.place(Lba(lba)).0;
    // 254 sectors of track 0: pages 0 to 30 start and end on it, page 31 starts.
    for page in 0..31 {
        assert_eq!(place(page * 8 + 8), place(page * 8) + 1, "page {page}");
    }
    assert_eq!(place(256), place(248) + 2, "the track's end lies between");
    // The slipped sector 168317 lies between the pages at 168312 and 168320.
    assert_eq!(place(168_312), place(168_304) + 1);
    assert_eq!(place(168_320), place(168_312) + 2);
    // Zone 0 ends with 1270 spares, 34 of them used up by slips, on its last five tracks
    // and part of the one before.
    let zone1 = 847 * 12 * 254 - 1270;
    let before = zone1 / 8 * 8;
    let breaks = 1270 - 34 + 5;
    assert_eq!(place(before + 8), place(before) + 1 + breaks);
    assert_eq!(preset("nvme").place(Lba(80)).0, 10);
    // The order is kept everywhere.
    let pages = (0..disk.capacity_sectors() / 8).step_by(101);
    let pairs = pages.map(|p| (place(p * 8), place(p * 8 + 8)));
    assert!(pairs.into_iter().all(|(a, b)| a < b));
}

#[test]
fn a_run_is_cut_at_track_ends_and_slips_cost_their_time() {
    let disk = preset("st39102lw");
    let map = disk.zoned().expect("a zoned disk").map();
    let piece = map.piece(250, 10);
    assert_eq!((piece.blocks, piece.sectors), (4, 4));
    let piece = map.piece(168_315, 4);
    assert_eq!(
        (piece.blocks, piece.sectors),
        (4, 5),
        "one slipped sector passes"
    );
    let end = map.track_end(168_315);
    let whole = map.piece(168_315, 10_000);
    assert_eq!(168_315 + u64::from(whole.blocks), end);
    let stretch = map.stretch(168_315);
    assert!(!stretch.whole);
    assert_eq!(map.blocks_within(&stretch, 3), 2);
    let rest = map.rest(&stretch, 3).expect("the track goes on");
    assert_eq!(rest, map.stretch(168_318));
    assert!(rest.whole, "the slip lies before it");
    assert_eq!(map.rest(&rest, 5), Some(map.stretch(168_323)));
    assert_eq!(map.rest(&stretch, end - 168_315), None);
    assert_eq!(
        map.track_start(end - 1),
        end - 253,
        "a track with a slip has 253 blocks"
    );
}

#[test]
fn the_mean_random_seek_and_rotation_are_the_published_ones() {
    let disk = preset("st39102lw");
    let mechanics = disk.zoned().expect("a zoned disk").mechanics();
    close(ms(mechanics.curve.mean(6962)), 5.47, 0.01, "mean seek, ms");
    close(ms(mechanics.revolution()), 5.973, 0.0001, "revolution, ms");
    assert_eq!(mechanics.curve.time(6894), Picos(10_627_000_000));

    let mut disk = preset("st39102lw");
    let mut numbers = Numbers(1);
    let mut now = Picos(0);
    for _ in 0..20_000 {
        let req = read(numbers.below(disk.capacity_sectors() - 8), 8);
        now = disk.service(req, now).done + Picos(numbers.below(40_000_000_000));
    }
    let sums = disk.counters();
    let misses = (sums.reads - sums.full_hits - sums.partial_hits) as f64;
    close(
        ms(sums.rotation) / misses,
        2.987,
        0.02,
        "mean rotational wait, ms",
    );
    close(
        ms(sums.seek) / misses,
        5.47,
        0.03,
        "mean seek of requests, ms",
    );
}

#[test]
fn the_sequential_rate_is_a_revolution_and_a_skew_per_track() {
    let disk = preset("st39102lw");
    let zoned = disk.zoned().expect("a zoned disk");
    // 100 cylinders of zone 0 as one run: slips aside, each takes 12 revolutions,
    // 11 track skews and one cylinder skew.
    let blocks = 100 * 12 * 254;
    let run = Run {
        lba: 0,
        blocks,
        write: false,
        busy_until: Picos(0),
    };
    let access = zoned
        .mechanics()
        .run(zoned.map(), Spot::default(), Picos(0), run);
    let seconds = access.end.since(access.begin).0 as f64 / 1e12;
    let rate = blocks as f64 * 512.0 / seconds / 1e6;
    let revolutions = 12.0 + (11.0 * 97.0 + 133.0) / 254.0;
    let formula = 12.0 * 254.0 * 512.0 / (revolutions * 5.973_121e-3) / 1e6;
    close(rate, formula, 0.001, "MB/s");
    close(
        rate,
        15.8,
        0.015,
        "MB/s as the figures of track skew alone give it",
    );

    // The same through the buffer, with a bus that is no limit.
    let mut spec = spec("st39102lw");
    spec.zoned.as_mut().expect("zoned").bus.sector = Picos(0);
    let mut disk = open(&spec);
    let mut now = Picos(0);
    for at in 0..4000 {
        now = disk.service(read(at * 64, 64), now).done;
    }
    let rate = 4000.0 * 64.0 * 512.0 / (now.0 as f64 / 1e12) / 1e6;
    close(rate, formula, 0.01, "MB/s of single reads");
}

#[test]
fn the_platter_turns_by_time_alone() {
    let disk = preset("st39102lw");
    let zoned = disk.zoned().expect("a zoned disk");
    let (map, mechanics) = (zoned.map(), zoned.mechanics());
    let place = map.place(100);
    let rev = mechanics.revolution().0;
    // Sector 100 of 254, no skew on the first track: its start passes at 100/254.
    let angle = Picos(100 * rev / 254);
    assert_eq!(mechanics.wait(place, angle), Picos(0), "ready at t");
    assert_eq!(
        mechanics.wait(place, Picos(angle.0 - 1)),
        Picos(1),
        "not at t - 1"
    );
    assert_eq!(
        mechanics.wait(place, Picos(angle.0 + 1000)),
        Picos(rev - 1000),
        "missed"
    );
    assert_eq!(mechanics.wait(place, Picos(angle.0 + 7 * rev)), Picos(0));
    // The second track is turned by its skew.
    let place = map.place(254 + 100);
    let angle = Picos((100 + 97) * rev / 254);
    assert_eq!(mechanics.wait(place, angle), Picos(0));
}

#[test]
fn writes_settle_and_a_head_switch_hides_behind_a_seek() {
    let disk = preset("st39102lw");
    let mechanics = disk.zoned().expect("a zoned disk").mechanics();
    let at = |cylinder, head| Spot { cylinder, head };
    assert_eq!(mechanics.travel(at(5, 1), at(5, 1), true), Picos(0));
    assert_eq!(
        mechanics.travel(at(5, 1), at(5, 2), false),
        Picos(30_000_000)
    );
    assert_eq!(
        mechanics.travel(at(5, 1), at(5, 2), true),
        Picos(491_000_000)
    );
    assert_eq!(
        mechanics.travel(at(5, 1), at(6, 2), false),
        Picos(831_000_000)
    );
    assert_eq!(
        mechanics.travel(at(6, 1), at(5, 1), true),
        Picos(1_292_000_000)
    );
}
