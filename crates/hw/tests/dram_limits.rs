//! Closed formulas: bandwidth, bank-bound throughput, the price of refresh, and
//! what a request pays that is called after later ones.

use crate::dram_kit::{GIB, Rng, at, i7, spec};
use piebald_hw::dram::{Dram, RowOutcome};
use piebald_units::{PhysAddr, Picos};

const ROW: u64 = 1 << 23;
const BANK: u64 = 1 << 13;

/// Time for `addrs` with so many reads outstanding.
fn total(dram: &mut Dram, outstanding: usize, addrs: impl Iterator<Item = u64>) -> u64 {
    let mut slots = vec![0; outstanding];
    let mut end = 0;
    for (i, addr) in addrs.enumerate() {
        let slot = i % outstanding;
        slots[slot] = at(dram, addr, slots[slot]);
        end = end.max(slots[slot]);
    }
    end
}

#[test]
fn streaming_reaches_the_peak_of_both_buses() {
    let lines = 100_000u64;
    let mut dram = i7("refresh = false");
    let took = total(&mut dram, 32, (0..lines).map(|i| i * 64));
    // 6 ns per line and channel.
    let ideal = lines / 2 * 6_000;
    assert!(
        (ideal..ideal + ideal / 100).contains(&took),
        "{took} ps against {ideal}"
    );
}

#[test]
fn streaming_writes_reach_the_peak_too() {
    let lines = 100_000u64;
    let mut dram = i7("refresh = false");
    let mut now = Picos(0);
    for i in 0..lines {
        now = now.max(dram.write(PhysAddr(i * 64), now).ready);
    }
    let took = dram.drain(now).0;
    let ideal = lines / 2 * 6_000;
    // A drain starts when the one before is over, and its first burst waits for
    // its column: at most tRP + tRCD + CWL for every 16 writes of a channel.
    let starts = lines / 2 / 16 * (13_500 + 13_500 + 10_500);
    assert!(
        (ideal..ideal + starts).contains(&took),
        "{took} ps against {ideal}"
    );
}

#[test]
fn refresh_costs_streaming_its_share_and_no_more() {
    let lines = 400_000u64;
    let mut dram = i7("");
    let took = total(&mut dram, 32, (0..lines).map(|i| i * 64)) as f64;
    let ideal = (lines / 2 * 6_000) as f64;
    // A stream that stays in one rank for long stands still for precharge,
    // tRFC, and the row's opening, once per tREFI of that rank; while it is in
    // another rank, refreshes go by unnoticed.
    let share = (111.0 + 13.5 + 13.5 + 9.0 * 1.5 + 7.5) / 7_800.0;
    assert!(
        took > ideal * 1.002,
        "no refresh was felt: {took} against {ideal}"
    );
    assert!(
        took < ideal / (1.0 - share) * 1.005,
        "{took} against {ideal}"
    );
}

#[test]
fn conflicts_are_bound_by_banks_over_rc() {
    for banks in [1u64, 2, 4] {
        let reads = 20_000u64;
        let mut dram = i7("refresh = false");
        let addrs = (0..reads).map(|i| (i % banks) * BANK + (i / banks % 512) * ROW);
        let took = total(&mut dram, 2 * banks as usize, addrs);
        let ideal = reads / banks * 49_500;
        assert!(
            (ideal - 49_500..ideal + 100_000).contains(&took),
            "{banks} banks: {took} against {ideal}"
        );
    }
}

#[test]
fn eight_banks_of_one_rank_are_bound_by_faw() {
    let reads = 20_000u64;
    let mut dram = i7("refresh = false");
    let took = total(
        &mut dram,
        32,
        (0..reads).map(|i| (i % 8) * BANK + (i / 8 % 512) * ROW),
    );
    // 8 banks / 49.5 ns would be 161 M/s; four activates per 30 ns are 133 M/s.
    let ideal = reads / 4 * 30_000;
    assert!(
        (ideal - 30_000..ideal + ideal / 100).contains(&took),
        "{took} against {ideal}"
    );
}

#[test]
fn the_mean_wait_for_refresh_follows_its_formula() {
    // Reads far apart on closed rows: one waits only if it falls into a refresh.
    let mut dram = i7("page_policy = \"closed\"");
    let mut rng = Rng(11);
    let (mut wait, mut now, reads) = (0u64, 0u64, 200_000u64);
    for _ in 0..reads {
        now += 400_000 + rng.below(2_600_000);
        let done = dram.read(PhysAddr(rng.below(128) * BANK), Picos(now));
        assert_eq!(done.row, RowOutcome::Closed);
        wait += done.ready.0 - now - 33_000;
    }
    let mean = wait as f64 / reads as f64;
    // Probability tRFC / tREFI, mean rest tRFC / 2.
    let formula = 111_000f64.powi(2) / (2.0 * 7_800_000.0);
    assert!(
        (mean / formula - 1.0).abs() < 0.05,
        "{mean} ps against {formula}"
    );
}

#[test]
fn a_request_called_late_pays_nothing_for_later_ones_on_bus_and_activates() {
    let mut dram = i7("refresh = false");
    // Eight reads of other banks of the same rank, 100 ns in the future.
    for bank in 1..8 {
        at(&mut dram, bank * BANK, 100_000);
    }
    assert_eq!(at(&mut dram, 0, 0), 33_000);
    // A row hit among them, too.
    assert_eq!(at(&mut dram, 1 << 7, 40_000), 59_500);
}

#[test]
fn in_its_bank_it_pays_at_most_the_skew_and_one_row_cycle() {
    let mut rng = Rng(3);
    let mut worst = 0;
    for _ in 0..20_000 {
        let mut dram = i7("refresh = false");
        at(&mut dram, 5 * ROW, 0);
        let now = 200_000 + rng.below(1_000);
        let skew = rng.below(100_001);
        let mut alone = dram.clone();
        let fair = at(&mut alone, ROW, now);
        at(&mut dram, 2 * ROW, now + skew);
        let late = at(&mut dram, ROW, now);
        let bound = skew + 49_500 + 13_500;
        assert!(
            late - fair <= bound,
            "{} ps late with a skew of {skew}",
            late - fair
        );
        worst = worst.max((late - fair).saturating_sub(skew));
    }
    assert!(worst > 49_000, "the bound is loose: {worst}");
}

#[test]
fn queued_writes_answer_reads_merge_and_drain_at_the_watermark() {
    let mut dram = Dram::new(&spec("refresh = false"), 8 * GIB, "memory.dram").unwrap();
    let line = |i: u64| PhysAddr(i << 7 & 0x1fff | i >> 6 << 23);
    for i in 0..23 {
        dram.write(line(i), Picos(i));
    }
    dram.write(line(3), Picos(30));
    let counters = dram.channel_counters(0).unwrap();
    assert_eq!(
        (dram.queued(0), counters.merged, counters.drains),
        (23, 1, 0)
    );
    assert_eq!(at(&mut dram, line(7).0, 50), 50);
    assert_eq!(at(&mut dram, line(40).0, 1_000), 34_000, "reads go first");
    dram.write(line(24), Picos(500_000));
    let counters = dram.channel_counters(0).unwrap();
    assert_eq!(
        (dram.queued(0), counters.forwarded, counters.drains),
        (8, 1, 1)
    );
    // 16 row hits back to back, CWL before the first burst.
    assert_eq!(counters.busy, Picos(17 * 6_000));
    let next = at(&mut dram, line(41).0, 500_000);
    assert_eq!(next, 500_000 + 10_500 + 16 * 6_000 + 7_500 + 19_500);
}

#[test]
fn a_flood_of_writes_is_held_back() {
    let mut dram = i7("refresh = false");
    let mut ready = Picos(0);
    for i in 0..512 {
        ready = ready.max(dram.write(PhysAddr(i << 7), Picos(0)).ready);
    }
    // All but the last drain and the queue's rest are over.
    assert!(ready.0 >= (512 - 24 - 16) * 6_000, "{ready}");
}
