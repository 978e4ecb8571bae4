//! Disk models against closed formulas, slow tables and hand-worked steps.

use piebald_hw::disk::{self, Disk, DiskError, DiskSpec, Hit, Run, Spot};
use piebald_units::{
    Lba, Picos,
    block::{BlockDir, BlockPort, BlockReq},
};

const MS: f64 = 1e9;

fn spec(name: &str) -> DiskSpec {
    disk::by_name(name).unwrap_or_else(|e| panic!("{e}"))
}

fn open(spec: &DiskSpec) -> Disk {
    Disk::new(spec).unwrap_or_else(|e| panic!("{}: {e}", spec.name))
}

fn preset(name: &str) -> Disk {
    open(&spec(name))
}

fn ms(time: Picos) -> f64 {
    time.0 as f64 / MS
}

fn read(lba: u64, sectors: u32) -> BlockReq {
    BlockReq {
        lba: Lba(lba),
        sectors,
        dir: BlockDir::Read,
    }
}

fn write(lba: u64, sectors: u32) -> BlockReq {
    BlockReq {
        dir: BlockDir::Write,
        ..read(lba, sectors)
    }
}

/// Numbers from a multiplicative generator: the tests need spread, not chance.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 20) % end
    }
}

fn close(found: f64, expected: f64, share: f64, what: &str) {
    let off = (found / expected - 1.0).abs();
    assert!(
        off <= share,
        "{what}: {found}, expected {expected} within {share}"
    );
}

// --- presets ---

#[test]
fn every_preset_is_a_disk_under_its_own_name() {
    assert!(disk::presets().is_sorted());
    for name in disk::presets() {
        let disk = preset(name);
        assert_eq!(disk.spec().name, name);
        assert_eq!(disk.capacity_sectors(), disk.spec().capacity);
        assert_eq!(disk.validate(), Ok(()));
    }
}

#[test]
fn every_value_names_a_source_that_its_file_explains() {
    for name in disk::presets() {
        let sources = spec(name).sources;
        let text = disk::text(name).expect("a preset has a text");
        let mut table = "";
        for (n, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.starts_with('[') && !line.starts_with("[[") && line.ends_with(']') {
                table = line;
            }
            let (value, comment) = line.split_once('#').unwrap_or((line, ""));
            let keyed = value.split_once('=').map(|(key, _)| key.trim());
            let plain = |k: &str| {
                k.chars()
                    .all(|c| c.is_ascii_alphanumeric() || "_.".contains(c))
            };
            let Some(key) = keyed.filter(|k| plain(k) && table != "[sources]") else {
                continue;
            };
            if matches!(key, "name" | "title") {
                continue;
            }
            let marks: Vec<&str> = comment
                .split('[')
                .skip(1)
                .filter_map(|part| part.split_once(']').map(|(mark, _)| mark))
                .collect();
            assert!(!marks.is_empty(), "{name}:{}: no mark: {line}", n + 1);
            for mark in marks {
                let known = sources.contains_key(mark);
                assert!(known, "{name}:{}: [{mark}] is not explained", n + 1);
            }
        }
    }
}

#[test]
fn an_unknown_preset_lists_those_that_exist() {
    let error = disk::by_name("floppy").unwrap_err().to_string();
    assert!(
        error.contains("\"floppy\"") && error.contains("st39102lw"),
        "{error}"
    );
}

/// A preset's text with one piece replaced, and the message that it then gives.
fn broken(name: &str, from: &str, to: &str) -> String {
    let text = disk::text(name).expect("a preset");
    assert!(text.contains(from), "{name} has no {from}");
    let text = text.replacen(from, to, 1);
    match disk::parse(&text, "my.toml") {
        Err(error) => error.to_string(),
        Ok(spec) => Disk::new(&spec).expect_err(to).to_string(),
    }
}

#[test]
fn errors_name_file_line_key_value_and_what_is_allowed() {
    let cases = [
        (
            "rpm = 10045",
            "rpm = 3",
            "zoned.mechanics.rpm = 3: 60..=1000000",
        ),
        (
            "surfaces = 12",
            "surfaces = 0",
            "zoned.surfaces = 0: 1..=64",
        ),
        ("surfaces = 12", "surfaces = \"x\"", "zoned.surfaces: "),
        (
            "first = 848",
            "first = 846",
            "zoned.zones[1].first = 846: 847..=6961",
        ),
        (
            "last = 846",
            "last = 9000",
            "zoned.zones[0].last = 9000: 0..=6961",
        ),
        (
            "sectors = 254",
            "sectors = 0",
            "zoned.zones[0].sectors = 0: 1..=65535",
        ),
        (
            "spares = 1270",
            "spares = 3",
            "zoned.zones[0].spares = 3: at least the 34 slips",
        ),
        (
            "168317, 223330",
            "223330, 223330",
            "zoned.zones[0].slips[1] = 223330: 223331..=",
        ),
        (
            "capacity = 17783240",
            "capacity = 18000000",
            "capacity = 18000000: at most the 17918387",
        ),
        ("[1, 831]", "[2, 831]", "first distance 2"),
        (
            "[2, 1003]",
            "[1, 1003]",
            "points[1] = 1: a distance above 1",
        ),
        ("depth = 1 ", "depth = 0 ", "queue.depth = 0: 1..=65536"),
        (
            "head_switch = \"0.03ms\"",
            "head_switch = \"3\"",
            "zoned.mechanics.head_switch",
        ),
        (
            "write_segments = 3",
            "write_segments = 4",
            "zoned.buffer.write_segments = 4: 1..=3",
        ),
        ("mapping = \"ascending\"", "mapping = \"up\"", "turning"),
        ("[zoned.bus]", "[zoned.buss]", "buss"),
    ];
    for (from, to, expected) in cases {
        let message = broken("st39102lw", from, to);
        assert!(message.contains(expected), "{to}: {message}");
    }
    let text = disk::text("st39102lw").expect("a preset");
    let line = |key: &str| 1 + text.lines().position(|l| l.starts_with(key)).expect(key);
    for (from, to, key) in [
        ("rpm = 10045", "rpm = 3", "rpm = "),
        ("last = 846", "last = 9000", "zones = "),
        ("[2, 1003]", "[1, 1003]", "seek.points = "),
        ("surfaces = 12", "surfaces = \"x\"", "surfaces = "),
    ] {
        let message = broken("st39102lw", from, to);
        let place = format!("my.toml:{}: ", line(key));
        assert!(message.starts_with(&place), "{place}{message}");
    }
}

#[test]
fn a_disk_is_of_exactly_one_kind() {
    let average = "\n[average]\naccess = \"9ms\"\nsector = \"0ms\"\n";
    let two = format!("{}{average}", disk::text("nvme").expect("a preset"));
    let error = disk::parse(&two, "two.toml").unwrap_err();
    assert!(matches!(error, DiskError::Spec { .. }));
    let message = error.to_string();
    assert!(
        message.contains("average, flash") && message.contains("exactly one"),
        "{message}"
    );
}

// --- the map ---

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
            if lba >= disk.capacity_sectors() || !(broken || lba % 13 == 0) {
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

// --- mechanics ---

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
