//! Coherence: random operations of many cores under every protocol and kind of
//! inclusion, and what it costs to pass a line around.

use crate::machine_kit::{Build, LINE, Rig, Rng, access, cache, load, store};
use piebald_hw::{presets, spec::MachineSpec};
use piebald_units::{Pfn, memory::MemoryPort, op::RefKind};

const KINDS: [&str; 5] = [
    "non-inclusive",
    "inclusive",
    "exclusive",
    "victim",
    "mostly-exclusive",
];

/// Two sockets of four cores, private L1I, L1D and L2, an L3 for `share` cores.
fn multi(inner: &str, outer: &str, protocol: &str, share: u16, smt: u16) -> Build {
    Build {
        sockets: 2,
        per_socket: 4,
        smt,
        caches: vec![
            cache(1, 4, 2, 4, "holds = \"instruction\""),
            cache(1, 4, 2, 4, "holds = \"data\""),
            cache(2, 8, 4, 10, &format!("inclusion = \"{inner}\"")),
            cache(
                3,
                16,
                8,
                40,
                &format!("inclusion = \"{outer}\"\nshared_by = {share}"),
            ),
        ],
        rest: format!(
            "[links]\nprotocol = \"{protocol}\"\nsame_group_transfer = 60\n\
             same_socket_transfer = 90\nother_socket_transfer = 150\n\
             [prefetch]\nl2_streamer = true\nl2_adjacent_line = true\ndcu_next_line = true"
        ),
        ..Build::default()
    }
}

/// What each physical core may still see without asking anybody: the version
/// that a line had when the core last got it from outside or stored to it.
struct Versions {
    latest: Vec<u32>,
    seen: Vec<Vec<u32>>,
}

/// Performs one access. A load that stays in the core's private caches must see
/// the last store of anybody.
fn step(rig: &mut Rig, versions: &mut Versions, thread: usize, kind: RefKind, line: u64) {
    let physical = thread % 8;
    let before = rig.counters(thread);
    rig.run(thread, &[access(kind, line * LINE, 3)]);
    let after = rig.counters(thread) - before;
    if kind == RefKind::Fetch {
        return;
    }
    let at = line as usize;
    let stayed = after.level[1].misses == 0;
    // A prefetch may have brought the line without being asked.
    if stayed && kind != RefKind::Store && !rig.machine.features().prefetch {
        assert_eq!(
            versions.seen[physical][at], versions.latest[at],
            "thread {thread} {kind:?} line {line}: a stale copy in a private cache"
        );
    }
    if kind.writes() {
        versions.latest[at] += 1;
    }
    versions.seen[physical][at] = versions.latest[at];
}

fn random_list(build: &Build, features: &str, seed: u64, steps: u32) {
    let mut rig = build.rig(features);
    let mut rng = Rng(seed);
    let threads = rig.now.len();
    let lines = 600;
    let mut versions = Versions {
        latest: vec![0; lines],
        seen: vec![vec![0; lines]; 8],
    };
    let mut heat = 8;
    for n in 0..steps {
        if n % 500 == 0 {
            heat = [8, 60, lines as u64][rng.below(3) as usize];
        }
        let thread = rng.below(threads as u64) as usize;
        let kind = match rng.below(12) {
            0..4 => RefKind::Load,
            4..7 => RefKind::Store,
            7 => RefKind::Update,
            8..10 => RefKind::LoadNt,
            _ => RefKind::Fetch,
        };
        // Code and data do not share lines: nothing here writes code.
        let line = match kind {
            RefKind::Fetch => lines as u64 + rng.below(heat),
            _ => rng.below(heat),
        };
        step(&mut rig, &mut versions, thread, kind, line);
        if n % 40 == 0 {
            rig.machine
                .validate()
                .unwrap_or_else(|e| panic!("step {n}: {e}"));
        }
    }
}

#[test]
fn random_operations_keep_every_rule_and_no_private_copy_is_stale() {
    for protocol in ["mesi", "moesi"] {
        for inner in KINDS {
            for outer in KINDS {
                for (share, smt) in [(4, 1), (2, 2)] {
                    let build = multi(inner, outer, protocol, share, smt);
                    println!("{protocol} {inner} {outer} {share} {smt}");
                    random_list(
                        &build,
                        "coherence,fetch,window",
                        77 + u64::from(share),
                        3000,
                    );
                    random_list(&build, "all", 78 + u64::from(share), 1000);
                }
            }
        }
    }
}

#[test]
fn every_preset_keeps_its_rules_under_random_operations() {
    for name in presets::names() {
        let spec = presets::load(name).unwrap_or_else(|e| panic!("{e}"));
        let mut rig = Rig::new(&spec, "all");
        let mut rng = Rng(5);
        let threads = rig.now.len() as u64;
        for n in 0..6000 {
            let thread = rng.below(threads) as usize;
            let kind = [
                RefKind::Load,
                RefKind::Store,
                RefKind::Update,
                RefKind::LoadNt,
            ];
            let line = rng.below(if n % 1000 < 500 { 16 } else { 4000 });
            let kind = kind[rng.below(4) as usize];
            rig.run(thread, &[access(kind, line * LINE, 4)]);
        }
        rig.machine
            .validate()
            .unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

/// Evicts everything by loading lines that nobody stored to.
fn flush(rig: &mut Rig) {
    for thread in 0..rig.now.len() {
        for line in 0..2000 {
            rig.run(
                thread,
                &[load((1 << 24) + (thread as u64 * 2000 + line) * LINE)],
            );
        }
    }
}

fn memory_writes(rig: &Rig) -> u64 {
    (0..rig.now.len())
        .map(|t| rig.counters(t).memory_writes)
        .sum()
}

#[test]
fn no_dirty_line_is_lost_and_one_copy_is_written_once() {
    for inner in KINDS {
        for outer in KINDS {
            // MOESI: a dirty line that is passed around goes to memory once, when
            // its last dirty copy leaves. The lines fit even in one first level.
            let mut rig = multi(inner, outer, "moesi", 4, 1).rig("coherence,window");
            let mut rng = Rng(3);
            let mut stored = [false; 8];
            for _ in 0..400 {
                let (thread, line) = (rng.below(8) as usize, rng.below(8));
                let write = rng.below(3) == 0;
                stored[line as usize] |= write;
                let r = if write {
                    store(line * LINE)
                } else {
                    load(line * LINE)
                };
                rig.run(thread, &[r]);
            }
            assert_eq!(
                memory_writes(&rig),
                0,
                "{inner} {outer}: nothing had to leave"
            );
            flush(&mut rig);
            let dirty = stored.iter().filter(|s| **s).count() as u64;
            let writes = memory_writes(&rig);
            if outer == "inclusive" || outer == "exclusive" {
                assert_eq!(writes, dirty, "{inner} {outer}");
            } else {
                // Two levels may hold different dirty versions of one line.
                assert!(writes >= dirty, "{inner} {outer}: {writes} of {dirty}");
            }
        }
    }
}

#[test]
fn a_dirty_line_that_another_group_reads_is_written_back_under_mesi_only() {
    for (protocol, writes) in [("mesi", 1), ("moesi", 0)] {
        let mut rig = multi("non-inclusive", "inclusive", protocol, 4, 1).rig("coherence");
        rig.run(0, &[store(0)]);
        rig.run(4, &[load(0)]);
        rig.run(5, &[load(0)]);
        assert_eq!(memory_writes(&rig), writes, "{protocol}");
    }
}

#[test]
fn what_a_device_writes_is_in_no_cache_and_what_was_dirty_there_is_lost() {
    for inner in KINDS {
        for outer in KINDS {
            let mut rig = multi(inner, outer, "moesi", 4, 1).rig("coherence,fetch");
            let page = Pfn(3);
            let line = |n: u64| (page.0 << 12) + n * LINE;
            // Dirty in a core, dirty and shared, clean, and as instructions; the
            // line behind the page is not the device's.
            rig.run(0, &[store(line(0)), store(line(64))]);
            rig.run(1, &[store(line(1)), load(line(2))]);
            rig.run(5, &[load(line(1)), access(RefKind::Fetch, line(3), 1)]);
            rig.machine.device_write(page, rig.now[0]);
            rig.machine.validate().unwrap();
            for (core, lines) in [(0, [0, 1]), (1, [1, 2]), (5, [1, 2])] {
                for n in lines {
                    // Each is read for the first time since, or by another core
                    // that has just read it.
                    let before = rig.counters(core);
                    rig.run(core, &[load(line(n))]);
                    let part = rig.counters(core) - before;
                    assert_eq!(part.level[0].misses, 1, "{inner} {outer} {core} {n}");
                }
            }
            assert_eq!(memory_writes(&rig), 0, "{inner} {outer}");
            let before = rig.counters(0);
            rig.run(0, &[load(line(64))]);
            assert_eq!((rig.counters(0) - before).level[0].misses, 0);
            let before = rig.counters(5);
            rig.run(5, &[access(RefKind::Fetch, line(3), 1)]);
            assert_eq!((rig.counters(5) - before).fetch.misses, 1);
        }
    }
}

/// Cycles of one access on an idle machine, its own instruction not counted.
fn cost(rig: &mut Rig, core: usize, addr: u64) -> u64 {
    rig.settle();
    rig.cycles(core, &[access(RefKind::Update, addr, 0)])
}

#[test]
fn passing_a_modified_line_costs_the_links_cycles_exactly() {
    for outer in KINDS {
        for protocol in ["mesi", "moesi"] {
            // Two groups of two cores in each of two sockets.
            let mut rig = multi("non-inclusive", outer, protocol, 2, 1).rig("coherence,window");
            for addr in [0, 64 * 1024] {
                rig.run(0, &[store(addr)]);
            }
            for turn in 0..3 {
                let what = format!("{outer} {protocol} turn {turn}");
                assert_eq!(cost(&mut rig, 1, 0), 60, "{what}: same group");
                assert_eq!(cost(&mut rig, 2, 0), 90, "{what}: same socket");
                assert_eq!(cost(&mut rig, 5, 0), 150, "{what}: other socket");
                assert_eq!(cost(&mut rig, 0, 0), 150, "{what}: and back");
                assert_eq!(cost(&mut rig, 0, 0), 4, "{what}: own");
            }
        }
    }
}

fn preset(name: &str) -> MachineSpec {
    let mut spec = presets::load(name).unwrap_or_else(|e| panic!("{e}"));
    spec.tlb = None;
    spec
}

/// Core cycles that `ps` are, to the nearest.
fn in_cycles(spec: &MachineSpec, ps: u64) -> u64 {
    let cycle = spec.core.clock.cycle_ps_q8().expect("a clock") as f64 / 256.0;
    (ps as f64 / cycle).round() as u64
}

/// One update by `core` on an idle machine, in the machine's cycles.
fn preset_cost(rig: &mut Rig, spec: &MachineSpec, core: usize, addr: u64) -> u64 {
    rig.settle();
    let before = rig.now[core];
    rig.run(core, &[access(RefKind::Update, addr, 0)]);
    let id = piebald_units::CoreId(core as u16);
    let after = piebald_units::memory::MemoryPort::drain(&mut rig.machine, id, rig.now[core]);
    rig.now[core] = after;
    in_cycles(spec, after.0 - before.0)
}

#[test]
fn opteron_transfers_cost_121_cycles_on_the_chip_and_200_between_chips() {
    let spec = preset("opteron4x4");
    let mut rig = Rig::new(&spec, "coherence,window");
    rig.run(0, &[store(0)]);
    for _ in 0..3 {
        assert_eq!(preset_cost(&mut rig, &spec, 3, 0), 121);
        assert_eq!(preset_cost(&mut rig, &spec, 1, 0), 121);
        assert_eq!(preset_cost(&mut rig, &spec, 4, 0), 200);
        assert_eq!(preset_cost(&mut rig, &spec, 15, 0), 200);
        assert_eq!(preset_cost(&mut rig, &spec, 0, 0), 200);
    }
    assert_eq!(rig.counters(3).transfers, 3);
}

#[test]
fn a_store_to_a_shared_line_tells_the_holders_and_costs_the_way_to_them() {
    let build = multi("non-inclusive", "inclusive", "mesi", 4, 1);
    let upgrade = |holders: &[usize]| {
        let mut rig = build.rig("coherence,window");
        rig.run(0, &[load(0)]);
        for core in holders {
            rig.run(*core, &[load(0)]);
        }
        let cycles = cost(&mut rig, 0, 0);
        assert_eq!(rig.counters(0).upgrades, 1);
        assert_eq!(cost(&mut rig, 0, 0), 4, "it is the owner now");
        for core in holders {
            let before = rig.counters(*core).level[0].misses;
            rig.run(*core, &[load(0)]);
            assert_eq!(rig.counters(*core).level[0].misses, before + 1);
        }
        cycles
    };
    assert_eq!(upgrade(&[1]), 60);
    assert_eq!(upgrade(&[1, 4]), 150);
    assert_eq!(upgrade(&[5]), 150);
}

#[test]
fn an_unshared_line_is_stored_to_without_asking() {
    let mut rig = multi("non-inclusive", "inclusive", "mesi", 4, 1).rig("coherence,window");
    rig.run(1, &[load(1 << 20)]);
    rig.run(0, &[load(0)]);
    assert_eq!(cost(&mut rig, 0, 0), 4);
    assert_eq!(rig.counters(0).upgrades, 0);
}

#[test]
fn false_sharing_misses_on_every_turn_and_padding_cures_it() {
    for (apart, transfers) in [(8, 199), (LINE, 0)] {
        let mut rig = multi("non-inclusive", "inclusive", "mesi", 4, 1).rig("coherence,window");
        for turn in 0..200 {
            let core = turn % 2;
            rig.run(core, &[store(core as u64 * apart)]);
        }
        let all = rig.counters(0).transfers + rig.counters(1).transfers;
        assert_eq!(all, transfers, "{apart} bytes apart");
    }
}

#[test]
fn a_contended_line_moves_no_faster_than_one_transfer_after_the_other() {
    // Eight cores update one line at the same time: the line visits them in turn.
    let mut rig = multi("non-inclusive", "inclusive", "mesi", 4, 1).rig("coherence,window");
    rig.run(0, &[store(0)]);
    rig.settle();
    let start = rig.now[0].0;
    let mut last = 0;
    for core in [1, 2, 3] {
        let cycles = rig.cycles(core, &[access(RefKind::Update, 0, 0)]);
        last = last.max(cycles);
    }
    assert_eq!(last, 3 * 60, "started at {start}");
}

#[test]
fn a_mostly_exclusive_level_keeps_a_copy_of_what_two_cores_use() {
    // 8, 32 and 128 lines: 160 fit if each is in one level only.
    let misses = |outer, others: &[usize]| {
        let mut rig = multi("exclusive", outer, "moesi", 4, 1).rig("coherence");
        let pass: Vec<_> = (0..160).map(|line| load(line * LINE)).collect();
        for thread in [&[0, 0], others, &[0, 0]].concat() {
            rig.run(thread, &pass);
        }
        let before = rig.counters(0);
        rig.run(0, &pass);
        (rig.counters(0) - before).level[2].misses
    };
    assert_eq!(misses("exclusive", &[]), 0);
    assert_eq!(misses("mostly-exclusive", &[]), 0);
    assert!(misses("victim", &[]) > 50);
    // Another core's lines were in the way, and each core took over what it read.
    assert_eq!(misses("exclusive", &[1, 1]), 0);
    assert!(misses("mostly-exclusive", &[1, 1]) > 50);
}
