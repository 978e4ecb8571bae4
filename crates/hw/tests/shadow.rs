//! Shadow tags beside the level that they stand for, closed formulas, and a plain model
//! of lists.

use std::collections::HashMap;

use crate::machine_kit::{Build, Rig, Rng, cache, load, store};
use piebald_hw::{Features, MissCurve, Options, ShadowRequest, spec::MachineSpec};
use piebald_units::{CoreSet, Pfn, memory::PhysRef, op::RefKind};

/// Sets of a page, which are the places of a color here.
const PLACES: u64 = 64;
const WAYS: u64 = 4;
/// Colors of the machines below, on the lowest bits of a frame's number: pages that come
/// in rising order have the colors that they are drawn at the full size.
const COLORS: u64 = 8;

/// A first level of one page and a last one of `COLORS` times `WAYS`.
fn machine(rules: &str) -> MachineSpec {
    Build {
        caches: vec![
            cache(1, PLACES, 1, 4, ""),
            cache(2, PLACES * COLORS, WAYS, 12, rules),
        ],
        ..Build::default()
    }
    .spec()
}

fn request(sample_shift: u32) -> ShadowRequest {
    ShadowRequest {
        cores: CoreSet::first(1),
        colors: vec![1, 2, 4],
        sample_shift,
    }
}

fn watched(spec: &MachineSpec, request: ShadowRequest) -> Rig {
    let options = Options {
        features: Features::NONE,
        shadow: Some(request),
        ..Options::default()
    };
    Rig::with(spec, &options)
}

/// Performs references to pages that come as they are touched.
fn run(rig: &mut Rig, refs: &[PhysRef]) {
    refs.iter()
        .for_each(|r| rig.machine.page_has_come(Pfn(r.frame.into())));
    rig.run(0, refs);
}

fn curve(rig: &Rig) -> MissCurve {
    rig.machine.miss_curve().expect("it was asked for")
}

/// One reference to each line of some pages, in order.
fn scan(pages: u64) -> Vec<PhysRef> {
    (0..pages * 64).map(|line| load(line * 64)).collect()
}

/// The first touch of each page in order, then lines at random.
fn random(seed: u64, pages: u64, refs: usize) -> Vec<PhysRef> {
    let mut rng = Rng(seed);
    let mut some = || {
        // Few pages are used much.
        let page = rng.below(pages).min(rng.below(pages));
        let addr = page << 12 | rng.below(64) << 6;
        if rng.below(3) == 0 {
            store(addr)
        } else {
            load(addr)
        }
    };
    let others: Vec<PhysRef> = (0..refs).map(|_| some()).collect();
    let touch = (0..pages).map(|page| load(page << 12));
    touch.chain(others).collect()
}

#[test]
fn a_cyclic_scan_misses_always_where_a_set_overflows_and_never_elsewhere() {
    for pages in [1, 4, 5, 13, 16, 24, 31, 32, 33, 40] {
        let mut rig = watched(&machine(""), request(0));
        run(&mut rig, &scan(pages));
        rig.machine.restart_miss_curve();
        let rounds = 3;
        (0..rounds).for_each(|_| _ = rig.run(0, &scan(pages)));
        let curve = curve(&rig);
        // A scan of one page hits the first level.
        let reach = if pages == 1 { 0 } else { rounds * pages * 64 };
        assert_eq!(curve.accesses, reach, "{pages}");
        assert_eq!(u64::from(curve.pages), pages);
        for point in &curve.points {
            let colors = u64::from(point.colors);
            let of_color = |c| (pages + colors - 1 - c) / colors;
            let overflow = (0..colors).map(of_color).filter(|n| *n > WAYS);
            let lines: u64 = overflow.map(|n| n * 64).sum();
            assert_eq!(point.misses, rounds * lines, "{pages} pages, {colors}");
            assert_eq!((point.error, point.writebacks), (0, 0));
        }
    }
}

#[test]
fn a_partition_of_everything_is_the_level_itself_whatever_its_rules() {
    for inclusion in [
        "non-inclusive",
        "inclusive",
        "exclusive",
        "victim",
        "mostly-exclusive",
    ] {
        for replacement in ["lru", "tree-plru", "nru", "rrip"] {
            let rules = format!("inclusion = \"{inclusion}\"\nreplacement = \"{replacement}\"");
            let mut rig = watched(&machine(&rules), request(0));
            let refs = random(7, 60, 40_000);
            run(&mut rig, &refs[..20_000]);
            rig.machine.restart_miss_curve();
            let before = rig.counters(0);
            rig.run(0, &refs[20_000..]);
            let real = rig.counters(0) - before;
            let curve = curve(&rig);
            let all = curve.points.last().expect("points");
            assert_eq!(curve.accesses, real.level[1].accesses, "{rules}");
            assert_eq!(all.misses, real.level[1].misses, "{rules}");
            // What an inclusive level takes out of the first one may be dirty there only.
            let unseen = match inclusion {
                "inclusive" => real.memory_writes / 50,
                _ => 0,
            };
            let off = all.writebacks.abs_diff(real.memory_writes);
            assert!(real.memory_writes > 1000 && off <= unseen, "{rules}: {off}");
            let one = &curve.points[0];
            assert!(one.misses > 2 * all.misses, "{rules}: {one:?} {all:?}");
        }
    }
}

#[test]
fn pages_of_the_kernel_keep_their_color_and_are_outside_of_partitions_without_it() {
    // Five pages of the program, six of the kernel, of colors 0, 1 and 5, two each.
    let mut rig = watched(&machine(""), request(0));
    let page = |frame: u64| (0..64).map(move |line| load(frame << 12 | line << 6));
    let own: Vec<PhysRef> = (16..21).flat_map(page).collect();
    let kernel: Vec<PhysRef> = [32, 33, 37, 40, 41, 45]
        .into_iter()
        .flat_map(page)
        .collect();
    run(&mut rig, &own);
    rig.run(0, &kernel);
    rig.machine.restart_miss_curve();
    run(&mut rig, &own);
    rig.run(0, &kernel);
    let misses: Vec<u64> = curve(&rig).points.iter().map(|p| p.misses / 64).collect();
    // One color: seven pages in four ways, the others fit. Two: five in the first (three
    // and two), four in the second. From three on all fit.
    assert_eq!(misses, [7, 5, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn watching_changes_nothing() {
    let spec = Build {
        per_socket: 2,
        caches: vec![
            cache(1, 8, 2, 4, ""),
            cache(2, 64, 4, 12, ""),
            cache(
                3,
                PLACES * COLORS,
                8,
                30,
                "shared_by = 2\ninclusion = \"inclusive\"",
            ),
        ],
        rest: "[prefetch]\ndcu_next_line = true\nl2_streamer = true\nl2_adjacent_line = true\n"
            .to_owned(),
        ..Build::default()
    }
    .spec();
    let run = |shadow: Option<ShadowRequest>| {
        let options = Options {
            shadow,
            ..Options::default()
        };
        let mut rig = Rig::with(&spec, &options);
        for round in 1..20 {
            rig.run(0, &random(round, 200, 2000));
            rig.run(1, &random(100 + round, 150, 2000));
        }
        rig.machine.validate().expect("the rules hold");
        (rig.counters(0), rig.counters(1), rig.now, rig.machine)
    };
    let plain = run(None);
    assert_eq!(plain.3.miss_curve(), None);
    for sample_shift in [0, 2] {
        let mut seen = run(Some(request(sample_shift)));
        assert_eq!((plain.0, plain.1), (seen.0, seen.1));
        assert_eq!(plain.2, seen.2);
        // Only one of the two cores is watched, prefetches are told apart.
        let curve = seen.3.miss_curve().expect("it was asked for");
        assert_eq!(curve.accesses, plain.0.level[2].accesses);
        assert!(curve.prefetches > 1000, "{curve:?}");
        assert!(curve.points[0].prefetch_misses > 1000, "{curve:?}");
        seen.3.restart_miss_curve();
        let zero = seen.3.miss_curve().expect("still there");
        assert_eq!((zero.accesses, zero.prefetches), (0, 0));
        assert!(zero.points.iter().all(|p| p.misses + p.writebacks == 0));
    }
}

/// A list of lines for each set, most recent first, and whether dirty.
#[derive(Default)]
struct Lists(HashMap<u64, Vec<(u64, bool)>>);

impl Lists {
    /// Whether the line was there, and the dirty line that had to leave.
    fn take_in(&mut self, set: u64, ways: u64, line: u64, write: bool) -> (bool, Option<u64>) {
        let set = self.0.entry(set).or_default();
        let held = set
            .iter()
            .position(|l| l.0 == line)
            .map(|at| set.remove(at));
        set.insert(0, (line, write || held.is_some_and(|l| l.1)));
        let gone = if set.len() as u64 > ways {
            set.pop()
        } else {
            None
        };
        let dirty = gone.filter(|l| l.1).map(|l| l.0);
        (held.is_some(), dirty)
    }
}

/// Misses and writes to memory of a partition of `colors`, of pages drawn by the order in
/// which they came.
fn oracle(refs: &[PhysRef], colors: u64) -> (u64, u64) {
    let (mut first, mut last) = (Lists::default(), Lists::default());
    let mut pages: Vec<u64> = Vec::new();
    let (mut misses, mut writes) = (0, 0);
    for r in refs {
        let line = r.paddr().0 / 64;
        let page = line / 64;
        if !pages.contains(&page) {
            pages.push(page);
        }
        let place = |line: u64| {
            let turn = pages.iter().position(|p| *p == line / 64).expect("it came");
            turn as u64 % colors * PLACES + line % 64
        };
        let (hit, gone) = first.take_in(line % 64, 1, line, r.kind == RefKind::Store);
        if !hit {
            let (hit, written) = last.take_in(place(line), WAYS, line, false);
            misses += u64::from(!hit);
            writes += u64::from(written.is_some());
        }
        // A dirty victim becomes no younger for it where it is held.
        if let Some(gone) = gone {
            let set = last.0.entry(place(gone)).or_default();
            match set.iter_mut().find(|l| l.0 == gone) {
                Some(held) => held.1 = true,
                None => {
                    let (_, written) = last.take_in(place(gone), WAYS, gone, true);
                    writes += u64::from(written.is_some());
                }
            }
        }
    }
    (misses, writes)
}

#[test]
fn every_size_agrees_with_lists() {
    for (seed, pages) in [(3, 20), (4, 45), (5, 90)] {
        let mut refs = random(seed, pages, 12_000);
        // Pages come in no particular order.
        refs.drain(..pages as usize);
        let mut rig = watched(&machine(""), request(0));
        run(&mut rig, &refs);
        let curve = curve(&rig);
        assert_eq!(curve.points.len() as u64, COLORS);
        for point in &curve.points {
            let (misses, writes) = oracle(&refs, u64::from(point.colors));
            let found = (point.misses, point.writebacks);
            assert_eq!(found, (misses, writes), "{seed}: {}", point.colors);
        }
    }
}

#[test]
fn a_sample_of_the_sets_is_off_by_about_what_it_says() {
    let (mut beyond, mut all) = (0, 0);
    for seed in 1..12 {
        let refs = random(seed, 60, 30_000);
        let run = |sample_shift| {
            let mut rig = watched(&machine(""), request(sample_shift));
            run(&mut rig, &refs);
            curve(&rig)
        };
        let full = run(0);
        for sample_shift in [1, 3] {
            let part = run(sample_shift);
            assert_eq!((part.sets, part.sets_seen), (64, 64 >> sample_shift));
            assert_eq!(part.accesses, full.accesses);
            for (seen, real) in part.points.iter().zip(&full.points) {
                let off = seen.misses.abs_diff(real.misses);
                assert!(seen.error > 0 && seen.error < real.misses / 10, "{seen:?}");
                assert!(off < 5 * seen.error + 1, "{seed}: {seen:?} {}", real.misses);
                all += 1;
                beyond += u32::from(off > 2 * seen.error);
            }
        }
    }
    assert!(beyond * 5 < all, "{beyond} of {all} beyond two errors");
}

#[test]
fn what_cannot_be_watched_is_refused() {
    let refused = |spec: &MachineSpec, request: ShadowRequest| {
        let options = Options {
            shadow: Some(request),
            ..Options::default()
        };
        let error = piebald_hw::Machine::new(spec, &options).err();
        error.expect("refused").to_string()
    };
    let cores = |n: u32| ShadowRequest {
        cores: CoreSet::first(n),
        ..request(0)
    };
    let two = Build {
        per_socket: 2,
        ..Build::default()
    };
    let apart = Build {
        caches: vec![cache(1, PLACES, 1, 4, ""), cache(2, 512, 4, 12, "")],
        ..two
    }
    .spec();
    assert!(refused(&apart, cores(0)).contains(": one or more of 0-1"));
    assert!(refused(&apart, cores(2)).starts_with("shadow.cores = 0-1: one or more"));
    assert!(refused(&apart, cores(3)).starts_with("shadow.cores = 0-2: 0-1 on this"));
    let single = Build {
        caches: vec![cache(1, PLACES, 4, 4, "")],
        ..Build::default()
    };
    assert!(refused(&single.spec(), request(0)).starts_with("cache = one level: two"));
    let high = ShadowRequest {
        colors: vec![1, 8],
        ..request(0)
    };
    assert!(refused(&machine(""), high).starts_with("shadow.colors = [0x1, 0x8]: independent"));
    assert!(refused(&machine(""), request(6)).starts_with("shadow.sample_shift = 6: 0 to 5"));
}
