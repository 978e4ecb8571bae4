//! The block table against a map, and the shape of its tree.
//!
//! `PIEBALD_FUZZ_CASES` sets the number of random lists of calls.

use std::collections::BTreeMap;

use crate::dulo_kit::{Random, setting};
use piebald_policy::dulo::{BLOCK_BITS, BlockTable, MAX_TIME, TableNode};
use piebald_units::DiskBlock;

type Table = BlockTable<Vec<TableNode>>;

fn table(nodes: usize) -> Table {
    BlockTable::new(vec![TableNode::EMPTY; nodes])
}

fn blocks_at(table: &Table, time: u32) -> Vec<u64> {
    table.accessed_at(time).map(|b| b.0).collect()
}

/// The table as a map; leaves matter only when something is dropped.
#[derive(Clone, Default)]
struct Oracle(BTreeMap<u64, [u32; 2]>);

impl Oracle {
    fn record(&mut self, block: u64, time: u32) {
        let times = self.0.entry(block).or_insert([0; 2]);
        if times[0] != time {
            *times = [time, times[0]];
        }
    }

    fn times(&self, block: u64) -> [u32; 2] {
        self.0.get(&block).copied().unwrap_or([0; 2])
    }

    fn at(&self, time: u32) -> Vec<u64> {
        let of_time = self.0.iter().filter(|(_, t)| t[0] == time);
        of_time.map(|(b, _)| *b).collect()
    }

    /// Leaves have 64 blocks.
    fn newest_of_leaf(&self, block: u64) -> u32 {
        let leaf = block / 64 * 64;
        let times = self.0.range(leaf..leaf + 64).map(|(_, t)| t[0]);
        times.max().unwrap_or(0)
    }

    fn reclaim(&mut self, threshold: u32) {
        let before = self.clone();
        self.0
            .retain(|block, _| before.newest_of_leaf(*block) >= threshold);
    }
}

/// A block somewhere on one of three disks, neighbours being likely.
fn some_block(random: &mut Random) -> u64 {
    let near = random.below(300);
    match random.below(6) {
        0 => (1 << 56) - 1 - near,
        1 => (7 << 40) + near * 1000,
        2 => (7 << 40) + near,
        3 => random.next() >> 4,
        _ => near,
    }
}

fn compare(table: &Table, oracle: &Oracle, now: u32) {
    table.validate().unwrap();
    for (block, times) in &oracle.0 {
        assert_eq!(table.times(DiskBlock(*block)), *times, "block {block:#x}");
    }
    assert_eq!(blocks_at(table, now), oracle.at(now));
}

#[test]
fn a_block_keeps_its_latest_two_times() {
    let mut table = table(4);
    let block = DiskBlock(5);
    assert_eq!(table.times(block), [0, 0]);
    for (time, expected) in [(3, [3, 0]), (3, [3, 0]), (4, [4, 3]), (9, [9, 4])] {
        assert!(table.record(block, time));
        assert_eq!(table.times(block), expected);
    }
    assert_eq!(table.times(DiskBlock(6)), [0, 0]);
    assert_eq!(table.nodes_in_use(), 1);
}

#[test]
fn it_grows_with_the_largest_block_and_holds_disks_far_apart() {
    let mut table = table(64);
    let mut expected = Vec::new();
    for shift in [0, 5, 6, 12, 30, 48, 55, BLOCK_BITS - 1] {
        let block = 1u64 << shift;
        assert!(table.record(DiskBlock(block), 1), "2^{shift}");
        expected.push(block);
        table.validate().unwrap();
        assert_eq!(blocks_at(&table, 1), expected);
    }
    assert!(!table.record(DiskBlock(1 << BLOCK_BITS), 1));
    assert!(!table.record(DiskBlock(u64::MAX), 1));
    assert_eq!(table.counters().unrecorded, 2);
    assert_eq!(table.times(DiskBlock(u64::MAX)), [0, 0]);
}

#[test]
fn random_calls_agree_with_a_map() {
    for seed in 0..8 {
        let mut random = Random(seed);
        let (mut table, mut oracle) = (table(1 << 15), Oracle::default());
        for now in 1..60 {
            for _ in 0..40 {
                let block = some_block(&mut random);
                assert!(table.record(DiskBlock(block), now));
                oracle.record(block, now);
            }
            if random.below(5) == 0 {
                let threshold = now - random.below(u64::from(now).min(20)) as u32;
                let before = table.nodes_in_use();
                let reclaimed = table.reclaim(threshold);
                assert_eq!(reclaimed.next, None);
                assert_eq!(before - reclaimed.nodes, table.nodes_in_use());
                oracle.reclaim(threshold);
            }
            compare(&table, &oracle, now);
        }
        table.reclaim(MAX_TIME);
        assert_eq!(table.nodes_in_use(), 0, "all is older than the last time");
        table.validate().unwrap();
    }
}

#[test]
fn reclaiming_in_steps_drops_the_same() {
    let mut random = Random(3);
    let mut whole = table(1 << 14);
    for now in 1..40 {
        for _ in 0..30 {
            whole.record(DiskBlock(some_block(&mut random)), now);
        }
    }
    for step in [1, 2, 7] {
        let (mut all, mut stepped) = (whole.clone(), whole.clone());
        let nodes = all.reclaim(30).nodes;
        assert!(nodes > 100);
        let (mut from, mut sum, mut calls) = (Some(DiskBlock(0)), 0, 0u32);
        while let Some(block) = from {
            let reclaimed = stepped.reclaim_step(30, block, step);
            sum += reclaimed.nodes;
            from = reclaimed.next;
            calls += 1;
        }
        assert_eq!(sum, nodes);
        assert!(
            calls > nodes / (11 * step),
            "{calls} calls are not stepwise"
        );
        stepped.validate().unwrap();
        assert_eq!(blocks_at(&stepped, 39), blocks_at(&all, 39));
        assert_eq!(stepped.nodes_in_use(), all.nodes_in_use());
    }
}

#[test]
fn a_full_table_forgets_the_oldest_first_and_says_so() {
    // One directory and ten leaves.
    let mut table = table(11);
    for n in 0..10 {
        assert!(table.record(DiskBlock(n * 64), n as u32 + 1));
    }
    assert_eq!(table.nodes_in_use(), 11);
    assert_eq!(table.counters().shortages, 0);
    assert!(table.record(DiskBlock(10 * 64), 11));
    assert_eq!(table.counters().shortages, 1);
    assert!(table.counters().dropped >= 1);
    assert_eq!(table.times(DiskBlock(0)), [0, 0], "the oldest is gone");
    assert_eq!(
        table.times(DiskBlock(9 * 64)),
        [10, 0],
        "the newest are there"
    );
    assert_eq!(table.times(DiskBlock(640)), [11, 0]);
    table.validate().unwrap();
}

#[test]
fn what_is_as_new_as_the_record_is_not_dropped_for_it() {
    let mut table = table(3);
    assert!(table.record(DiskBlock(0), 7));
    assert!(table.record(DiskBlock(64), 7), "two leaves and a directory");
    assert!(!table.record(DiskBlock(128), 7));
    assert_eq!(table.counters().unrecorded, 1);
    assert_eq!(blocks_at(&table, 7), [0, 64]);
    assert!(table.record(DiskBlock(128), 8), "at 8 the others are old");
    assert_eq!(blocks_at(&table, 8), [128]);
    table.validate().unwrap();
}

#[test]
fn a_table_without_memory_records_nothing() {
    let mut table = table(0);
    assert!(!table.record(DiskBlock(1), 1));
    assert_eq!(table.times(DiskBlock(1)), [0, 0]);
    assert_eq!(blocks_at(&table, 1), [0u64; 0]);
    table.validate().unwrap();
}

#[test]
fn what_the_memory_held_before_does_not_matter() {
    // A new table in memory that an old one has used.
    let mut nodes = vec![TableNode::EMPTY; 64];
    {
        let mut old = BlockTable::new(&mut nodes[..]);
        for n in 0..3000u64 {
            old.record(DiskBlock(n * 64), 5);
        }
    }
    let mut fresh = BlockTable::new(&mut nodes[..]);
    assert!(fresh.record(DiskBlock(77), 2));
    assert_eq!(fresh.accessed_at(2).collect::<Vec<_>>(), [DiskBlock(77)]);
    assert_eq!(fresh.times(DiskBlock(78)), [0, 0]);
    fresh.validate().unwrap();
}

/// Small tables, so that nodes run out all the time: whatever is still there is right.
#[test]
fn fuzz_block_table_is_consistent_when_nodes_run_out() {
    for case in 0..setting("PIEBALD_FUZZ_CASES", 60) {
        let mut random = Random(case);
        let mut table = table(1 + random.below(40) as usize);
        let mut oracle = Oracle::default();
        let mut now = 1;
        for _ in 0..400 {
            now += (random.below(8) == 0) as u32;
            let block = some_block(&mut random);
            let had = table.times(DiskBlock(block));
            if table.record(DiskBlock(block), now) {
                oracle.record(block, now);
                let times = table.times(DiskBlock(block));
                assert_eq!(times[0], now);
                assert!(times[1] == 0 || times[1] == had[0] || times[1] == had[1]);
            }
            if random.below(20) == 0 {
                table.reclaim_step(now - 1, DiskBlock(random.below(1 << 42)), 3);
            }
            table.validate().unwrap();
            let walked = blocks_at(&table, now);
            assert!(walked.is_sorted());
            assert!(walked.iter().all(|b| oracle.times(*b)[0] == now));
        }
    }
}
