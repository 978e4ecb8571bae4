//! The page cache over a disk of two costs, compared with closed formulas and with
//! a plain cache simulation.

mod filehost;

use filehost::{driver, host, ms};
use piebald_os_model::file::FileConfig;
use piebald_units::{Picos, block::BlockDir};

#[test]
fn a_scan_without_readahead_waits_for_every_page() {
    let mut h = host(FileConfig::plain(), 100, &[50]);
    let end = driver::run(&mut h, &mut driver::one(driver::reads(0, 0..50)), |h| {
        h.validate().unwrap();
    });
    assert_eq!(
        end,
        ms(10 + 50),
        "one seek, then every page follows the last"
    );
    assert_eq!(h.stats().reads.misses, 50);
    assert_eq!(h.stats().blocked, end);
    assert_eq!(h.disk().requests(BlockDir::Read).len(), 50);
}

#[test]
fn random_reads_cost_a_seek_and_a_transfer_each_and_hits_cost_nothing() {
    let mut h = host(FileConfig::plain(), 100, &[1000]);
    let pages: Vec<u64> = (0..80).map(|n| n * 37 % 1000).collect();
    let twice = pages.iter().chain(&pages).copied();
    let end = driver::run(&mut h, &mut driver::one(driver::reads(0, twice)), |_| {});
    assert_eq!(end, Picos(80 * ms(11).0));
    let reads = h.stats().reads;
    assert_eq!((reads.misses, reads.hits, reads.waited), (80, 80, 0));
    assert_eq!(h.resident(), 80);
}
