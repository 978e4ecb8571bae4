//! The way into a core: what a core reads from a level takes as long as the level's bandwidth
//! says, by closed formulas, on a machine whose cycle is 1 ns.

use crate::machine_kit::{Build, DRAM, FIXED, LINE, access, cache, load};
use piebald_hw::{Machine, Options, presets};
use piebald_units::{memory::PhysRef, op::RefKind};

/// 4 KiB, 32 KiB and 512 KiB of 4, 10 and 40 cycles.
fn build(second: u32, third: u32, rest: &str) -> Build {
    Build {
        caches: vec![
            cache(1, 8, 8, 4, ""),
            cache(2, 64, 8, 10, &format!("line_cycles = {second}")),
            cache(3, 512, 16, 40, &format!("line_cycles = {third}")),
        ],
        rest: rest.into(),
        ..Build::default()
    }
}

fn lines(n: u64) -> Vec<PhysRef> {
    (0..n).map(|i| load(i * LINE)).collect()
}

/// Cycles of a pass over `n` lines that the levels hold as far as they have room.
fn pass(build: &Build, features: &str, n: u64) -> u64 {
    let mut rig = build.rig(features);
    for _ in 0..3 {
        rig.cycles(0, &lines(n));
        rig.settle();
    }
    rig.cycles(0, &lines(n))
}

#[test]
fn lines_of_a_level_follow_one_another_at_its_rate() {
    for (second, third) in [(2, 3), (8, 16), (5, 40)] {
        let build = build(second, third, "");
        // The first is dispatched after a cycle and takes the level's latency.
        for (n, latency, each) in [(256, 10, second), (4096, 40, third)] {
            let expected = 1 + latency + (n - 1) * u64::from(each);
            assert_eq!(
                pass(&build, "window", n),
                expected,
                "{n} lines, {each} each"
            );
        }
    }
}

#[test]
fn a_level_without_a_limit_sends_a_line_a_cycle() {
    assert_eq!(pass(&build(0, 0, ""), "window", 256), 1 + 10 + 255);
}

#[test]
fn what_is_in_the_first_level_does_not_pass_the_port() {
    assert_eq!(pass(&build(8, 16, ""), "window", 32), 32 + 4);
}

#[test]
fn a_chase_waits_for_nobody_and_takes_the_latency_alone() {
    let mut rig = build(8, 16, "").rig("window");
    let chase: Vec<_> = (0..256)
        .map(|i| PhysRef {
            dep: 1,
            ..load(i * LINE)
        })
        .collect();
    rig.cycles(0, &chase);
    assert_eq!(rig.cycles(0, &chase), 1 + 256 * 10);
}

#[test]
fn memory_comes_in_no_faster_than_from_the_last_level() {
    // Its bus alone would take 4 cycles a line.
    let n = 400;
    let mut rig = build(8, 16, "").rig("window");
    let cycles = rig.cycles(0, &lines(n));
    assert_eq!(cycles, 1 + 40 + FIXED + DRAM + (n - 1) * 16);
}

#[test]
fn a_line_on_its_way_from_memory_leaves_the_port_to_those_that_are_there() {
    let mut rig = build(8, 16, "").rig("window");
    rig.cycles(0, &lines(256));
    rig.settle();
    // Asked for first, there last: the near ones, each of which waits for the one before it,
    // are done long before.
    let mut refs = vec![load(1 << 30)];
    refs.extend((0..5).map(|i| PhysRef {
        dep: u16::from(i > 0),
        ..load(i * LINE)
    }));
    // The last one misses everything, and cannot start before the fifth is there.
    refs.push(PhysRef {
        dep: 1,
        ..load(2 << 30)
    });
    let expected = 2 + 5 * 10 + 40 + FIXED + DRAM;
    assert_eq!(rig.cycles(0, &refs), expected);
}

#[test]
fn a_prefetch_into_the_second_level_and_the_demand_after_it_share_the_whole_way() {
    // Found in the third level, with the streamer and without: 16 cycles a line.
    let n = 4096;
    let refs = |rest: &str, features: &str| {
        let build = build(6, 16, rest);
        pass(&build, features, n) as f64 / n as f64
    };
    let without = refs("", "window");
    let with = refs("[prefetch]\nl2_streamer = true\n", "window,prefetch");
    assert!((without - 16.0).abs() < 0.1, "{without}");
    assert!((with - 16.0).abs() < 0.2, "{with}");
}

#[test]
fn stores_and_fetches_pass_the_same_port() {
    let mut build = build(8, 16, "");
    build
        .caches
        .insert(0, cache(1, 8, 8, 4, "holds = \"instruction\""));
    let mut rig = build.rig("window,fetch");
    rig.cycles(0, &lines(256));
    rig.settle();
    // A store that misses and a fetch behind it: the line of the fetch is 8 cycles later.
    let alone = {
        let mut rig = build.rig("window,fetch");
        rig.cycles(0, &lines(256));
        rig.settle();
        rig.cycles(0, &[access(RefKind::Fetch, 64 * LINE, 1)])
    };
    let both = rig.cycles(
        0,
        &[
            access(RefKind::Store, 0, 0),
            access(RefKind::Fetch, 64 * LINE, 1),
        ],
    );
    // The store was a cycle ahead.
    assert_eq!(both, alone - 1 + 8);
}

#[test]
fn limits_that_no_level_has_are_refused_by_name() {
    let text = presets::get("w3540").unwrap();
    let with = |behind: &str, value: &str| {
        let start = text.find(behind).expect("the cache");
        let at = start + text[start..].find("line_cycles = ").expect("its limit");
        let end = at + text[at..].find('#').expect("its source");
        let text = format!("{}line_cycles = {value} {}", &text[..at], &text[end..]);
        presets::parse(&text, "w.toml").map(|spec| Machine::new(&spec, &Options::default()).err())
    };
    let error = with("name = \"L1D\"", "4").unwrap().unwrap().to_string();
    assert!(
        error.contains("cache[1].line_cycles = 4: 0 at level 1"),
        "{error}"
    );
    let error = with("name = \"L2\"", "1001").unwrap().unwrap().to_string();
    assert!(
        error.contains("cache[2].line_cycles = 1001: 0 to 1000"),
        "{error}"
    );
    assert!(with("name = \"L2\"", "6").unwrap().is_none());
    assert!(with("name = \"L2\"", "-1").is_err());
}
