//! AMD's prefetcher of consecutive lines: accesses to l and l+1 fetch l+3.

use crate::machine_kit::{Build, LINE, Rig, Rng, cache, load};
use piebald_hw::Counters;

fn build(into: &str, first: &str) -> Build {
    Build {
        caches: vec![
            cache(1, 128, 2, 4, first),
            cache(2, 256, 8, 10, ""),
            cache(3, 512, 16, 40, ""),
        ],
        rest: format!("[prefetch]\nconsecutive = \"{into}\"\n"),
        ..Build::default()
    }
}

fn rig(into: &str) -> Rig {
    build(into, "").rig("window,prefetch")
}

/// Loads of lines one after the other, each long after the one before.
fn visit(rig: &mut Rig, lines: &[u64]) -> Counters {
    let before = rig.counters(0);
    for line in lines {
        rig.settle();
        rig.run(0, &[load(line * LINE)]);
    }
    rig.counters(0) - before
}

/// The level in which a line is found: 1, 2 or 3, or 4 for memory.
fn found(rig: &mut Rig, line: u64) -> usize {
    let c = visit(rig, &[line]);
    1 + c.level.iter().filter(|l| l.misses == 1).count()
}

#[test]
fn two_neighbours_fetch_the_line_two_ahead_and_no_other() {
    for (into, level) in [("l1", 1), ("l2", 2), ("off", 4)] {
        for (first, second, ahead) in [(10, 11, 13), (30, 29, 27)] {
            for (line, expected) in [(ahead, level), (12, 4), (14, 4), (28, 4), (26, 4)] {
                let mut rig = rig(into);
                let c = visit(&mut rig, &[first, second]);
                assert_eq!(c.prefetch_reads, u64::from(into != "off"), "{into}");
                assert_eq!(
                    found(&mut rig, line),
                    expected,
                    "{into} {first} line {line}"
                );
            }
        }
    }
}

#[test]
fn strides_and_other_pages_fetch_nothing() {
    for into in ["l1", "l2"] {
        let c = visit(&mut rig(into), &[0, 2, 4, 6, 3, 70, 200, 203]);
        assert_eq!(c.prefetches, 0, "{into}");
        // The page's last lines have nothing behind them.
        let c = visit(&mut rig(into), &[62, 63, 64]);
        assert_eq!(c.prefetches, 0, "{into}");
        let mut random = Rng(3);
        let lines: Vec<u64> = (0..2000).map(|_| random.below(1 << 20)).collect();
        assert!(visit(&mut rig(into), &lines).prefetches < 5, "{into}");
    }
}

#[test]
fn a_scan_misses_three_lines_of_each_page() {
    // Two streams at once, upwards and downwards, in pages of their own.
    let up = |i: u64| i;
    let down = |i: u64| (1 << 14) - 1 - i;
    let lines: Vec<u64> = (0..640).flat_map(|i| [up(i), down(i)]).collect();
    for (into, level) in [("l1", 0), ("l2", 1)] {
        let c = visit(&mut rig(into), &lines);
        assert_eq!(c.level[level].misses, 2 * 10 * 3, "{into}");
        assert_eq!(c.memory_reads + c.prefetch_reads, 2 * 640, "{into}");
        assert_eq!(c.useful_prefetches, c.prefetches, "{into}");
    }
}

#[test]
fn a_virtually_indexed_first_level_finds_what_came_by_prefetch() {
    // Sets reach over two pages, and frames are not in the pages' order.
    let build = build("l1", "index = \"virtual\"");
    let mut rig = build.rig("window,prefetch");
    let mut misses = 0;
    for page in 0..10u64 {
        let lines = (0..64).map(|i| {
            let mut r = load(page * 4096 + i * LINE);
            r.frame = (page ^ 5) as u32;
            r
        });
        for r in lines {
            rig.settle();
            let before = rig.counters(0).level[0].misses;
            rig.run(0, &[r]);
            misses += rig.counters(0).level[0].misses - before;
        }
    }
    assert_eq!(misses, 10 * 3);
}
