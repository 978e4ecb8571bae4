//! SRM-buffer under a kernel with paging: which frames the pages of files and programs
//! get, and that no frame is lost when memory is short.

use crate::colored;
use crate::paged;
use crate::paged::{Host, Op, plain, random, read};
use piebald_os_model::{
    file::FileConfig,
    kernel::{Kernel, KernelError, PagingConfig, ZoneState},
};
use piebald_policy::{
    color_map::{BitClass, ColorMap},
    srm::Config,
};
use piebald_units::{FileId, Pfn, TaskId, op::RefKind};

const POLICIES: [&str; 6] = ["lru", "clock", "dulo", "linux-2.6.30", "arc", "s3-fifo"];

/// Colours of neighbouring frames differ.
fn bits(bits: u32) -> ColorMap {
    let masks: Vec<_> = (0..bits).map(|b| (1 << b, BitClass::Cache)).collect();
    ColorMap::from_masks(&masks).unwrap()
}

fn hashed() -> ColorMap {
    let masks = [0x11, 0x22, 0x44].map(|mask| (mask, BitClass::Cache));
    ColorMap::from_masks(&masks).unwrap()
}

fn threshold(threshold: u32) -> Config {
    Config {
        threshold,
        ..Config::PAPER
    }
}

fn host(policy: &str, pages: u32, map: &ColorMap, config: Config) -> Host {
    let mut h = Host::new(policy, pages, plain());
    h.k.color_files(map.clone(), config).unwrap();
    h
}

fn zone(h: &Host) -> ZoneState {
    h.k.zone().unwrap()
}

/// The colours of a process's mapped pages from `first` on.
fn colors(h: &Host, map: &ColorMap, task: TaskId, first: u64, pages: u64) -> Vec<u16> {
    let space = h.k.space(task).unwrap();
    (first..first + pages)
        .map(|page| {
            let entry = space.entry(piebald_units::Vpn(page)).unwrap();
            map.color(Pfn(u64::from(entry.frame()))).0
        })
        .collect()
}

fn runs(colors: &[u16]) -> Vec<(u16, usize)> {
    let mut runs: Vec<(u16, usize)> = Vec::new();
    for color in colors {
        match runs.last_mut() {
            Some((last, n)) if last == color => *n += 1,
            _ => runs.push((*color, 1)),
        }
    }
    runs
}

#[test]
fn a_large_file_lies_in_runs_of_one_color_and_memory_goes_round() {
    for map in [bits(2), hashed()] {
        let colors_of_map = map.colors() as usize;
        let mut h = host("clock", 600, &map, threshold(8));
        let t = h.start();
        h.read(t, 7, 0, 40);
        h.map_file(t, 1000, 40, 7, true);
        (1000..1040).for_each(|page| h.load(t, page));
        let file = runs(&colors(&h, &map, t, 1000, 40));
        assert!(file.iter().all(|(_, n)| *n == 8), "{file:?}");
        assert!(file.windows(2).all(|w| w[0].0 != w[1].0), "{file:?}");

        (0..64).for_each(|page| h.store(t, page));
        let memory = colors(&h, &map, t, 0, 64);
        let next = |w: &[u16]| usize::from(w[1]) == (usize::from(w[0]) + 1) % colors_of_map;
        assert!(memory.windows(2).all(next), "{memory:?}");
        h.check();
    }
}

#[test]
fn small_files_of_one_program_share_a_sequence() {
    let map = bits(2);
    let mut h = host("clock", 600, &map, threshold(8));
    let t = h.start();
    for file in 0..12 {
        h.read(t, file, 0, 2);
        h.map_file(t, 1000 + 2 * file, 2, file, true);
    }
    (1000..1024).for_each(|page| h.load(t, page));
    let found = runs(&colors(&h, &map, t, 1000, 24));
    assert_eq!(found.iter().map(|(_, n)| *n).collect::<Vec<_>>(), [8, 8, 8]);
    assert_eq!(zone(&h).counters.sequences, 3);
}

#[test]
fn a_page_of_the_zone_that_is_read_again_goes_back() {
    let map = bits(2);
    let mut h = host("lru", 200, &map, threshold(8));
    let t = h.start();
    let room = u64::from(h.k.paging().unwrap().capacity);
    // Memory is full: the next page makes the zone pull cold ones.
    h.read(t, 7, 0, room);
    h.read(t, 8, 0, 40);
    h.check();
    let before = zone(&h);
    assert!(before.pages > before.free, "{before:?}");
    // Of the old file those are in memory that were not taken yet; all are hits or
    // misses, and each hit leaves the zone.
    h.read(t, 7, 0, room);
    let after = zone(&h);
    assert!(after.counters.hits > before.counters.hits, "{after:?}");
    h.check();
}

/// The zone's frames stay full, and what is read is as much as without a zone, give or
/// take the zone.
#[test]
fn a_file_that_fits_beside_the_zone_is_read_once() {
    let map = bits(2);
    for policy in POLICIES {
        let mut h = host(policy, 400, &map, threshold(8));
        let t = h.start();
        for _ in 0..3 {
            h.read(t, 7, 0, 250);
            h.check();
        }
        let reads = h.k.paging().unwrap().stats.reads;
        assert_eq!((reads.references, reads.misses), (750, 250), "{policy}");
    }
}

/// Little memory for the kernel's own: page tables take it from the zone first.
#[test]
fn page_tables_come_out_of_the_zone() {
    let map = bits(2);
    for policy in POLICIES {
        let mut h = host(policy, 300, &map, threshold(16));
        let t = h.start();
        h.read(t, 7, 0, 600);
        // One page in each 2 MiB: a table for every page.
        for page in 0..150 {
            h.store(t, page << 9);
        }
        h.check();
        assert!(zone(&h).counters.any > 0, "{policy}: {:?}", zone(&h));
        h.exit(t);
        while h.event() {}
        h.check();
    }
}

#[test]
fn a_file_that_is_deleted_leaves_the_zone() {
    let map = bits(2);
    let mut h = host("lru", 200, &map, threshold(8));
    let t = h.start();
    h.read(t, 7, 0, 180);
    h.read(t, 8, 0, 60);
    let before = zone(&h);
    assert!(before.pages > before.free);
    h.k.drop_file(FileId(7));
    h.check();
    h.k.drop_file(FileId(8));
    h.check();
    let after = zone(&h);
    assert_eq!(
        (h.k.paging().unwrap().resident, after.pages),
        (0, after.free)
    );
}

/// A page of the zone that a program has used through a mapping stays in memory.
#[test]
fn what_is_used_through_a_mapping_is_declined() {
    let map = bits(1);
    let mut h = host("lru", 150, &map, threshold(16));
    let (a, b) = (h.start(), h.start());
    h.map_file(a, 1000, 20, 7, true);
    for round in 0..40 {
        (1000..1020).for_each(|page| h.load(a, page));
        h.read(b, 8, round * 20, 20);
    }
    h.check();
    let stats = h.k.paging().unwrap().stats;
    // A page now and then is taken between two looks at access bits.
    assert!(stats.mapped.misses < 60, "{stats:?}");
}

#[test]
fn many_readers_at_once_lose_no_frame() {
    let map = hashed();
    for policy in POLICIES {
        let mut h = Host::new(
            policy,
            260,
            FileConfig {
                swap: plain().swap,
                ..FileConfig::linux_2_6_30()
            },
        );
        h.k.color_files(map.clone(), threshold(8)).unwrap();
        let tasks: Vec<_> = (0..6).map(|_| h.start()).collect();
        for round in 0..30u64 {
            for (i, t) in tasks.iter().enumerate() {
                let page = (round * 7) % 90;
                let _ = h.begin(*t, Op::Call(read(i as u64, page, 10, 0), false));
            }
            h.settle();
            h.check();
            for t in &tasks {
                h.finish(*t, Op::Touch(round << 12, RefKind::Store));
            }
        }
        assert!(h.k.paging().unwrap().stats.evicted > 100);
    }
}

#[test]
fn frames_are_conserved_under_random_programs() {
    for (policy, map) in POLICIES
        .iter()
        .zip([bits(1), bits(2), hashed()].iter().cycle())
    {
        for seed in 1..3 {
            let set_up = |k: &mut Kernel| k.color_files(map.clone(), threshold(3)).unwrap();
            random::run(policy, seed, 1500, 1, set_up);
        }
    }
}

#[test]
fn a_run_is_the_same_each_time() {
    let run = || {
        let set_up = |k: &mut Kernel| k.color_files(bits(2), threshold(3)).unwrap();
        random::run("dulo", 5, 3000, 1000, set_up)
    };
    assert_eq!(run(), run());
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut h = Host::new("lru", 200, plain());
    let refused = |h: &mut Host, config| h.k.color_files(bits(2), config).unwrap_err();
    for config in [threshold(0), threshold(100_000)] {
        let error = refused(&mut h, config);
        assert!(matches!(error, KernelError::Zone(_)), "{error}");
        assert!(error.to_string().contains("threshold"), "{error}");
    }
    let mut unpaged = Host::unpaged(100);
    let error = refused(&mut unpaged, threshold(4));
    assert!(error.to_string().contains("paging"), "{error}");
    h.start();
    let error = refused(&mut h, threshold(4));
    assert!(error.to_string().contains("tasks"), "{error}");
    assert!(h.k.zone().is_none());
}

/// A kernel whose programs own colours, perhaps with a zone of the same colours.
fn partitioned(frames: u64, has_zone: bool) -> Host {
    let config = colored::config(1, piebald_policy::rainbow::Config::PAPER);
    let mut k = Kernel::new(config, colored::frames(frames, 1)).unwrap();
    let capacity = k.free_frames() as u32 - paged::RESERVE;
    let side = paged::paging("clock", capacity, plain());
    let reserve = PagingConfig {
        reserve: paged::RESERVE,
    };
    k.page_with(side, reserve).unwrap();
    if has_zone {
        k.color_files(colored::color_map(), threshold(8)).unwrap();
    }
    Host::over(k)
}

#[test]
fn pages_of_a_partition_keep_to_its_colors() {
    for has_zone in [false, true] {
        let mut h = partitioned(1024, has_zone);
        let map = colored::color_map();
        let (owner, other) = (h.start(), h.start());
        colored::reserve(&mut h.k, owner, &colored::exactly("2-3"));
        for round in 0..4 {
            (0..60).for_each(|page| h.store(owner, page));
            h.read(owner, 7, 0, 100);
            h.read(other, 8, 400 * round, 400);
            (0..100).for_each(|page| h.store(other, page));
            h.check();
        }
        h.map_file(owner, 1000, 100, 7, true);
        (1000..1100).for_each(|page| h.load(owner, page));
        let own = colors(&h, &map, owner, 0, 60);
        assert!(own.iter().all(|c| [2, 3].contains(c)), "{own:?}");
        let foreign = colors(&h, &map, other, 0, 100);
        assert!(!foreign.iter().any(|c| [2, 3].contains(c)), "{foreign:?}");
    }
}

/// Frames that a partition leaves free do not fill the zone, which has to have pages in the
/// colours of others to give their files runs.
#[test]
fn files_of_others_have_runs_beside_a_partition_that_is_idle() {
    let mut h = partitioned(1024, true);
    let map = colored::color_map();
    let (owner, other) = (h.start(), h.start());
    colored::reserve(&mut h.k, owner, &colored::exactly("0-3"));
    // All that others may have is full, and then comes a file.
    for file in 8..16 {
        h.read(other, file, 0, 400);
    }
    h.map_file(other, 1000, 64, 7, true);
    (1000..1064).for_each(|page| h.load(other, page));
    h.check();
    let runs = runs(&colors(&h, &map, other, 1000, 64));
    assert!(runs.iter().all(|(_, pages)| *pages == 8), "{runs:?}");
    let counters = zone(&h).counters;
    assert_eq!((counters.empty, counters.cut), (0, 0), "{counters:?}");
}

/// More memory than its colours have: it swaps among its own pages, and those of others
/// stay, for which there is room.
#[test]
fn a_bound_program_whose_colors_are_used_up_goes_on() {
    for has_zone in [false, true] {
        let mut h = partitioned(1024, has_zone);
        let map = colored::color_map();
        let (owner, other) = (h.start(), h.start());
        colored::reserve(&mut h.k, owner, &colored::exactly("5"));
        h.read(other, 8, 0, 400);
        for _ in 0..3 {
            for page in 0..200 {
                h.store(owner, page);
                assert_eq!(colors(&h, &map, owner, page, 1), [5]);
            }
            h.check();
        }
        let stats = h.k.paging().unwrap().stats;
        assert!(stats.swap_outs > 100, "{stats:?}");
        h.read(other, 8, 0, 400);
        let reads = h.k.paging().unwrap().stats.reads;
        assert!(reads.misses <= 400 + 8, "zone {has_zone}: {reads:?}");
    }
}

#[test]
fn a_zone_of_other_colors_than_the_kernels_is_refused() {
    let config = colored::config(1, piebald_policy::rainbow::Config::PAPER);
    let mut k = Kernel::new(config, colored::frames(1024, 1)).unwrap();
    let capacity = k.free_frames() as u32 - paged::RESERVE;
    let reserve = PagingConfig {
        reserve: paged::RESERVE,
    };
    k.page_with(paged::paging("clock", capacity, plain()), reserve)
        .unwrap();
    let error = k.color_files(bits(2), threshold(8)).unwrap_err();
    assert!(error.to_string().contains("color map"), "{error}");
}
