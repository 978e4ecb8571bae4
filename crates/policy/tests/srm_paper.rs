//! The paper's figures and derived figures, step by step (EuroSys'11).

use std::collections::BTreeSet;

use crate::srm_kit::{
    Random, VecSrm, color, frame,
    host::{Host, reader},
    large, lengths, more, plain_map, small, with_threshold, zone,
};
use piebald_policy::{
    color_map::{ColorMap, Geometry, IndexedCache, PrivateL2},
    replacement::{Config as Room, Link, Lru, Slots},
    srm::{Answer, Config, FileFault, Holds, How, Sequence, VmTurn},
};
use piebald_units::{Color, Pfn};

type Memory = Slots<Vec<Link>, Vec<u8>>;

/// Frames of a gibibyte.
const GIB: u64 = 1 << 18;

/// The colours of a shared cache with lines of 64 B.
fn colors_of(sets: u64) -> ColorMap {
    let geometry = Geometry {
        llc: Some(IndexedCache {
            line: 64,
            sets,
            slices: &[],
        }),
        l2: None,
        banks: &[],
    };
    ColorMap::from_geometry(&geometry, PrivateL2::Keep).unwrap()
}

/// Xeon X5355: 4 MiB, 16 ways.
fn x5355() -> ColorMap {
    colors_of(4096)
}

/// Core i7-860: 8 MiB, 16 ways.
fn i7_860() -> ColorMap {
    colors_of(8192)
}

fn lru(capacity: u64) -> Lru<Memory> {
    let config = Room::new(capacity as u32);
    Lru::new(Memory::collect(config.slots().unwrap()), config).unwrap()
}

/// Section 2: "there are 64 different cache colors on Intel Xeon 5355"; with 4 GiB "there
/// are 16384 pages in each color". Figure 7: "Num of colors in system", 128.
#[test]
fn figure_3_colors_divide_the_machines_evenly() {
    assert_eq!(x5355().colors(), 64);
    assert_eq!(i7_860().colors(), 128);
    let map = x5355();
    let mut pages = vec![0; 64];
    for pfn in 0..4 * GIB {
        pages[usize::from(map.color(Pfn(pfn)).0)] += 1;
    }
    assert!(pages.iter().all(|n| *n == 16_384));
}

/// Figure 5, lists: the colours (1 to 4) from the cold end on. Its LRU end and its free
/// list "are dominated by" 4 and 3; what is shaded there, 32 pages here, is inactive.
const INACTIVE: [u16; 8] = [4, 3, 4, 3, 2, 4, 3, 1];
const ACTIVE: [u16; 4] = [2, 1, 1, 2];
const FREE: [u16; 4] = [4, 3, 4, 3];
/// Blocks of the sequence, and page faults.
const BLOCKS: usize = 6;
const FAULTS: usize = 6;

/// (colour, active), coldest first.
fn lru_of_figure_5() -> Vec<(u16, bool)> {
    let inactive = INACTIVE.iter().cycle().take(32).map(|c| (*c, false));
    let active = ACTIVE.iter().cycle().take(24).map(|c| (*c, true));
    inactive.chain(active).collect()
}

/// Figure 5 as it stands: a sequence takes pages of colour 2 wherever they are, faults take
/// what comes.
#[test]
fn figure_5_without_a_zone_active_pages_leave_and_faults_get_two_colors() {
    let (mut lru, mut free) = (lru_of_figure_5(), FREE.to_vec());
    let mut evicted = Vec::new();
    for _ in 0..BLOCKS {
        let at = lru.iter().position(|(color, _)| *color == 2).unwrap();
        evicted.push(lru.remove(at));
    }
    let faults: BTreeSet<u16> = (0..FAULTS)
        .map(|_| match free.is_empty() {
            false => free.remove(0),
            true => lru.remove(0).0,
        })
        .collect();
    let inactive_left = lru.iter().filter(|(_, active)| !active).count();
    assert!(evicted.iter().any(|(_, active)| *active) && inactive_left > 20);
    assert_eq!(faults, BTreeSet::from([3, 4]));
}

/// The same state with a colored zone of 16 pages and T_l = 2.
#[test]
fn figure_5_with_the_zone_no_active_page_leaves_and_faults_get_all_colors() {
    let config = Config {
        max_pages: Some(16),
        ..with_threshold(2)
    };
    let mut host = Host::new(zone(plain_map(0, 2), 64, 0, config), lru(64), 64, 8);
    let mut is_active = Vec::new();
    for (name, (color, active)) in (0..).zip(lru_of_figure_5()) {
        host.preload(name, color - 1);
        is_active.push(active);
    }
    // What is left are the four free pages of the figure and four more of 3 and 4.
    host.keep_free(|color| FREE.iter().filter(|c| **c - 1 == color).count());
    assert_eq!(host.free_frames(), FREE.len());

    let faults: Vec<u16> = (0..FAULTS).map(|_| host.fault(0).unwrap().0 + 1).collect();
    assert_eq!(faults, [1, 2, 3, 4, 1, 2], "evenly, in turn");
    let blocks: Vec<u16> = (0..BLOCKS as u64)
        .map(|block| {
            assert!(host.read(1000 + block, reader(0, 0, 100)));
            host.map_of_frame(host.find(1000 + block).unwrap().frame).0
        })
        .collect();
    for pair in blocks.chunks(2) {
        assert_eq!(pair[0], pair[1], "a sequence lies in one color: {blocks:?}");
    }
    assert_ne!(blocks[0], blocks[2], "and is cut at T_l");
    assert!(host.evicted.iter().all(|name| !is_active[*name as usize]));
    assert!(host.evicted.iter().all(|name| *name < 24), "the coldest go");
    host.check();
}

/// Figure 6: the normal zone has active and most inactive pages; the colored zone has free
/// pages and a few inactive ones, by colour. What is hit there goes back; what is needed
/// is taken from there alone.
#[test]
fn figure_6_pages_go_from_zone_to_zone() {
    let mut host = Host::new(
        zone(plain_map(0, 1), 32, 0, with_threshold(2)),
        lru(32),
        32,
        4,
    );
    for name in 0..28 {
        host.preload(name, (name % 2) as u16);
    }
    assert_eq!(host.free_frames(), 4);
    assert_eq!(host.refill(), 6, "all free pages, and the two coldest");
    assert_eq!(lengths(&host.srm), [3, 3]);
    assert_eq!(host.srm.free_pages(), 4);
    let cold: Vec<u64> = (0..28)
        .filter(|n| host.srm.holds(host.find(*n).unwrap().frame).is_some())
        .collect();
    assert_eq!(cold, [0, 1], "from the LRU end");

    // Page 0 is hit: it leaves the zone, and is the hottest now.
    assert!(host.read(0, reader(0, 0, 1)));
    assert_eq!(host.srm.holds(host.find(0).unwrap().frame), None);
    assert_eq!(lengths(&host.srm), [2, 3]);
    host.check();

    // Four faults take the free pages. The fifth finds no page of colour 0: the zone is
    // refilled from the LRU end until both lists have three, and page 2 leaves. The sixth
    // evicts page 1.
    for evicted in [&[][..], &[], &[], &[], &[2], &[2, 1]] {
        assert!(host.fault(0).is_some());
        assert_eq!(host.evicted, evicted);
        host.check();
    }
    assert_eq!(host.srm.counters().free, 4);
    assert_eq!(lengths(&host.srm), [2, 2], "pages 4, 6, 3 and 5");
}

/// Figure 7 with plain numbers, but for which of several lists is found.
struct Figure7 {
    threshold: u32,
    marks: Vec<bool>,
    color: Vec<usize>,
    nr_block: Vec<u32>,
    vm_color: Vec<u16>,
}

impl Figure7 {
    /// `l` is the list that the search found, `pages` what the lists had then.
    fn update_color(&mut self, who: usize, l: usize, pages: &[u32]) -> usize {
        self.nr_block[who] += 1;
        if self.nr_block[who].is_multiple_of(self.threshold) {
            if let Some(mark) = self.marks.get_mut(self.color[who]) {
                *mark = false;
            }
            assert!(!self.marks[l], "the list is unmarked");
            assert!(pages[l] > self.threshold, "the list has more pages");
            self.marks[l] = true;
            self.color[who] = l;
            self.nr_block[who] = 0;
        }
        self.color[who]
    }

    /// The list is empty, or no unmarked list has more pages than the threshold.
    fn may_replenish(&self, who: usize, pages: &[u32]) -> bool {
        let due = (self.nr_block[who] + 1).is_multiple_of(self.threshold);
        let own = self.color[who];
        let found =
            (0..pages.len()).any(|l| (!self.marks[l] || l == own) && pages[l] > self.threshold);
        if due { !found } else { pages[own] == 0 }
    }
}

/// Free memory without end, by colour.
fn replenish(srm: &mut VecSrm, free: &mut [Vec<Pfn>]) {
    srm.fill(u32::MAX, |c| free[usize::from(c.0)].pop())
        .unwrap();
    assert!(!srm.wants_pages(), "until the shortest list has more");
}

/// Figure 7 with its own numbers, on the machine that has them: three files larger than
/// FILE_SIZE_THRESHOLD, small files read by two processes, and memory of both.
#[test]
fn figure_7_step_by_step() {
    let (map, frames) = (i7_860(), 8 * GIB);
    let mut srm = zone(map.clone(), frames, 0, Config::PAPER);
    let mut free = vec![Vec::new(); 128];
    for pfn in (0..frames).rev().map(Pfn) {
        free[usize::from(map.color(pfn).0)].push(pfn);
    }
    let mut figure = Figure7 {
        threshold: 256,
        marks: vec![false; 128],
        // The first block of a sequence chooses: see the room's documentation.
        color: vec![usize::MAX; 5],
        nr_block: vec![255; 5],
        vm_color: vec![0; 2],
    };
    let (mut files, mut processes) = ([Sequence::NONE; 3], [Sequence::NONE; 2]);
    let mut turns = [VmTurn::default(); 2];
    let mut random = Random(7);
    let (mut sequences, mut replenished) = (0, 0);
    for _ in 0..100_000 {
        let process = random.below(2) as usize;
        if random.below(4) == 0 {
            let mut answer = srm.vm_fault(&mut turns[process], more());
            if answer == Answer::Refill {
                assert_eq!(lengths(&srm)[usize::from(figure.vm_color[process])], 0);
                replenish(&mut srm, &mut free);
                answer = srm.vm_fault(&mut turns[process], more());
            }
            let taken = frame(answer);
            assert_eq!(taken.color, Color(figure.vm_color[process]));
            figure.vm_color[process] = (figure.vm_color[process] + 1) % 128;
            free[usize::from(taken.color.0)].insert(0, taken.frame);
            continue;
        }
        let file = random.below(6) as usize;
        let (who, file_blocks) = match file {
            0..3 => (file, 257 + random.below(5000)),
            _ => (3 + process, random.below(257)),
        };
        let mut ask = |srm: &mut VecSrm| {
            srm.file_fault(FileFault {
                file: files.get_mut(file).unwrap_or(&mut { Sequence::NONE }),
                process: &mut processes[process],
                file_blocks,
                limited: more(),
            })
        };
        let mut answer = ask(&mut srm);
        if answer == Answer::Refill {
            assert!(figure.may_replenish(who, &lengths(&srm)));
            replenish(&mut srm, &mut free);
            replenished += 1;
            // Which list is found then is seen below.
            answer = ask(&mut srm);
        }
        let taken = frame(answer);
        assert_eq!((taken.how, taken.holds), (How::Meant, Holds::Free));
        let l = usize::from(taken.color.0);
        let mut before = lengths(&srm);
        before[l] += 1;
        assert_eq!(figure.update_color(who, l, &before), l);
        sequences += u32::from(figure.nr_block[who] == 0);
        free[l].insert(0, taken.frame);
        for (color, mark) in (0..).zip(&figure.marks) {
            assert_eq!(srm.standing(Color(color)).marked, *mark);
        }
    }
    srm.validate().unwrap();
    assert!(
        sequences > 250 && replenished > 1,
        "{sequences}, {replenished}"
    );
    assert_eq!(srm.counters().sequences, u64::from(sequences));
}

/// Colours of a file that is read once from beginning to end, memory being free.
fn colors_of_file(map: ColorMap, frames: u64, blocks: u64) -> Vec<u16> {
    let mut srm = zone(map.clone(), frames, 0, Config::PAPER);
    let mut free = vec![Vec::new(); map.colors() as usize];
    for pfn in (0..frames).map(Pfn) {
        free[usize::from(map.color(pfn).0)].push(pfn);
    }
    let mut file = Sequence::NONE;
    let mut next = || {
        if srm.short_colors() == map.colors() {
            replenish(&mut srm, &mut free);
        }
        color(large(&mut srm, &mut file, more()))
    };
    (0..blocks).map(|_| next()).collect()
}

/// Section 4.5, second scenario: a file of 3.4 MiB lies in 4 of 64 regions, one of 7.4
/// MiB in 8 of 128.
#[test]
fn section_4_5_a_file_of_cache_size_lies_in_few_regions() {
    for (map, gib, tenths, regions) in [(x5355(), 16, 34, 4), (i7_860(), 8, 74, 8)] {
        let blocks = tenths * (1 << 20) / 10 / 4096;
        let colors = colors_of_file(map, gib * GIB, blocks);
        let distinct: BTreeSet<u16> = colors.iter().copied().collect();
        assert_eq!(distinct.len(), regions);
        for sequence in colors.chunks(256) {
            assert!(sequence.iter().all(|c| *c == sequence[0]));
        }
    }
}

/// Section 4.5: the zone takes "less than 0.8 %" of 16 GiB, "about 12 %" of 1 GiB.
#[test]
fn section_4_5_share_of_memory_in_the_zone() {
    let share = |gib: u64| {
        let limits = Config::PAPER.limits(gib * GIB, 64).unwrap();
        f64::from(limits.max_pages) / (gib * GIB) as f64 * 100.0
    };
    assert!(share(16) < 0.8 && share(16) > 0.75, "{}", share(16));
    assert!(share(1) > 11.5 && share(1) < 12.6, "{}", share(1));
}

/// What a refill from a cold end of random colours takes, if nothing bounds it: less than
/// the bound, so the bound is for cold ends of few colours.
#[test]
fn a_refill_from_random_colors_stays_below_the_bound() {
    let frames = 16 * GIB;
    let mut random = Random(18);
    for map in [x5355(), i7_860()] {
        let config = Config {
            max_pages: Some(frames as u32),
            ..Config::PAPER
        };
        let mut srm = zone(map.clone(), frames, 0, config);
        while srm.wants_pages() {
            // A frame may come twice; it is refused.
            let _ = srm.add_cold(Pfn(random.below(frames)));
        }
        let least = 257 * map.colors();
        assert!(srm.pages() > least && srm.pages() < least * 5 / 4);
        let bound = Config::PAPER
            .limits(frames, map.colors())
            .unwrap()
            .max_pages;
        assert!(srm.pages() < bound);
    }
}

/// Section 3.1: "when the length of each sequence is 1, an SRM-buffer becomes a
/// conventional OS buffer": blocks go round all colours.
#[test]
fn sequences_of_one_block_are_an_ordinary_buffer() {
    let mut srm = zone(plain_map(0, 3), 256, 0, with_threshold(1));
    for pfn in 0..256 {
        srm.add_free(Pfn(pfn)).unwrap();
    }
    let mut process = Sequence::NONE;
    let colors: Vec<u16> = (0..16)
        .map(|_| color(small(&mut srm, &mut process, more())))
        .collect();
    assert_eq!(colors, [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7]);
}
