//! Address maps: every line has its own place, and wrong maps are refused by name.

use std::collections::HashSet;

use crate::dram_kit::{GIB, Rng, i7, text};
use piebald_hw::dram::{Dram, DramSpec, Location};
use piebald_units::PhysAddr;

#[test]
fn the_paper_s_map_puts_bits_where_the_paper_says() {
    let dram = i7("");
    let at = |addr: u64| dram.locate(PhysAddr(addr));
    let zero = Location {
        channel: 0,
        rank: 0,
        bank: 0,
        row: 0,
        column: 0,
    };
    assert_eq!(at(0), zero);
    assert_eq!(at(1 << 6), Location { channel: 1, ..zero });
    assert_eq!(
        at(1 << 16),
        Location {
            channel: 1,
            column: 512,
            ..zero
        }
    );
    assert_eq!(
        at(1 << 6 | 1 << 16),
        Location {
            column: 512,
            ..zero
        }
    );
    assert_eq!(at(1 << 14), Location { bank: 2, ..zero });
    assert_eq!(at(1 << 22), Location { rank: 2, ..zero });
    assert_eq!(at(1 << 17), Location { row: 1, ..zero });
    assert_eq!(
        at(1 << 32),
        Location {
            row: 1 << 13,
            ..zero
        }
    );
    // A 4 KiB page: both channels, one bank index of each.
    let banks: HashSet<u32> = (0..64)
        .map(|line| dram.bank_index(PhysAddr(line * 64)))
        .collect();
    assert_eq!(banks, HashSet::from([0, 32]));
}

fn small(top: &str, bits: &str) -> DramSpec {
    let text = text(top);
    let head = text.split("[bits]").next().unwrap();
    let head = head
        .replace("ranks = 4", "ranks = 2")
        .replace("8KiB", "1KiB");
    let timing = text.split("[timing]").nth(1).unwrap();
    toml::from_str(&format!("{head}\n{bits}\n[timing]{timing}")).unwrap()
}

/// Every line of a small memory, all places.
fn assert_one_to_one(spec: &DramSpec, bytes: u64) {
    let dram = Dram::new(spec, bytes, "memory.dram").unwrap();
    let mut seen = HashSet::new();
    let mut banks = vec![0u64; dram.banks() as usize];
    for line in 0..bytes / 64 {
        let addr = PhysAddr(line * 64);
        let at = dram.locate(addr);
        assert!(seen.insert(at), "{addr} shares {at:?}");
        assert!(at.channel < spec.channels && at.rank < spec.ranks && at.bank < spec.banks);
        assert!(u64::from(at.column) * u64::from(spec.bus_bytes) < spec.row_size.0);
        let rank = u32::from(at.channel) * u32::from(spec.ranks) + u32::from(at.rank);
        let index = rank * u32::from(spec.banks) + u32::from(at.bank);
        assert_eq!(dram.bank_index(addr), index);
        banks[index as usize] += 64;
    }
    assert!(banks.iter().all(|&b| b == bytes / banks.len() as u64));
}

#[test]
fn every_standard_map_gives_every_line_its_own_place() {
    for map in [
        "row-rank-bank-column",
        "row-rank-bank-column-xor",
        "row-column-rank-bank",
    ] {
        assert_one_to_one(&small(&format!("map = \"{map}\""), ""), 1 << 20);
    }
}

#[test]
fn three_round_robin_channels_give_every_line_its_own_place() {
    for granule in ["64B", "4KiB"] {
        let mut spec = small("", "");
        spec.channels = 3;
        spec.interleave = Some(piebald_hw::dram::spec::Interleave::Modulo(
            granule.parse().unwrap(),
        ));
        assert_one_to_one(&spec, 3 << 18);
        let dram = Dram::new(&spec, 3 << 18, "memory.dram").unwrap();
        let step = granule.parse::<piebald_units::Bytes>().unwrap().0;
        let channels: Vec<u16> = (0..6)
            .map(|i| dram.locate(PhysAddr(i * step)).channel)
            .collect();
        assert_eq!(channels, [0, 1, 2, 0, 1, 2]);
    }
}

#[test]
fn random_bit_lists_are_refused_or_one_to_one() {
    // 1 MiB, rows of 1 KiB: 20 bits = 1 channel, 1 rank, 3 bank, 7 column, 5 row.
    let mut rng = Rng(5);
    let (mut good, mut bad) = (0, 0);
    for _ in 0..300 {
        let mut spec = small("", "");
        let mut list = |n: u64| (0..n).map(|_| 11 + rng.below(9) as u8).collect::<Vec<_>>();
        spec.bits = Some(piebald_hw::dram::spec::BitMap {
            bank: vec![list(2), list(2), list(3)],
            rank: vec![list(1)],
            column: vec![3, 4, 5, 7, 8, 9, 10],
            row: Some(vec![15, 16, 17, 18, 19]),
        });
        match Dram::new(&spec, 1 << 20, "memory.dram") {
            Ok(_) => {
                good += 1;
                assert_one_to_one(&spec, 1 << 20);
            }
            Err(e) => {
                bad += 1;
                assert!(e.field.starts_with("memory.dram."), "{e}");
            }
        }
    }
    assert!(good > 3 && bad > 3, "{good} accepted, {bad} refused");
}

#[track_caller]
fn refused(change: (&str, &str), bytes: u64, field: &str, says: &str) {
    let text = text("");
    assert!(
        text.contains(change.0),
        "{} is not in the machine",
        change.0
    );
    let spec: DramSpec = toml::from_str(&text.replacen(change.0, change.1, 1)).unwrap();
    let Err(error) = Dram::new(&spec, bytes, "memory.dram") else {
        panic!("{change:?} was accepted");
    };
    assert_eq!(error.field, field, "{error}");
    assert!(error.to_string().contains(says), "{error}");
}

#[test]
fn impossible_machines_are_refused_with_field_value_and_range() {
    let size = 8 * GIB;
    refused(
        ("ras = 24", "ras = 8"),
        size,
        "memory.dram.timing.ras",
        "at least 9 cycles",
    );
    refused(
        ("rc = 33", "rc = 32"),
        size,
        "memory.dram.timing.rc",
        "at least 33 cycles",
    );
    refused(
        ("ccd = 4", "ccd = 3"),
        size,
        "memory.dram.timing.ccd",
        "at least 4 cycles",
    );
    refused(
        ("faw = 20", "faw = 3"),
        size,
        "memory.dram.timing.faw",
        "at least 4",
    );
    refused(
        ("refi = 5200", "refi = 70"),
        size,
        "memory.dram.timing.refi",
        "at least 107",
    );
    refused(
        ("bl = 8", "bl = 4"),
        size,
        "memory.dram.timing.bl",
        "8 words",
    );
    refused(
        ("cl = 9", "cl = 0"),
        size,
        "memory.dram.timing.cl",
        "1 to 65536",
    );
    refused(
        ("tck = \"1.5ns\"", "tck = \"1s\""),
        size,
        "memory.dram.timing.tck",
        "100ps to 100ns",
    );
    refused(
        ("banks = 8", "banks = 6"),
        size,
        "memory.dram.banks",
        "a power of two, 1 to 256",
    );
    refused(
        ("ranks = 4", "ranks = 8"),
        size,
        "memory.dram.bits.rank",
        "3 lists of bits, for 8",
    );
    refused(("[13]", "[14]"), size, "memory.dram.bits.bank", "overlaps");
    refused(
        ("[13]", "[16, 16]"),
        size,
        "memory.dram.bits.bank",
        "each bit once",
    );
    refused(
        ("[13]", "[33]"),
        size,
        "memory.dram.bits.bank",
        "address bits 6 to 32",
    );
    refused(("[13]", "[255]"), size, "memory.dram.bits.bank", "bit 255");
    refused(
        ("[13]", "[]"),
        size,
        "memory.dram.bits.bank",
        "at least one address bit",
    );
    refused(
        ("12, 16]", "12]"),
        size,
        "memory.dram.bits.column",
        "10 bits",
    );
    refused(
        ("[3, 4, 5, 7", "[3, 4, 7, 5"),
        size,
        "memory.dram.bits.column",
        "[3, 4, 5]",
    );
    refused(
        ("12, 16]", "12, 15]"),
        size,
        "memory.dram.bits.bank",
        "overlaps",
    );
    refused(
        ("[[6, 16]]", "[[6], [7]]"),
        size,
        "memory.dram.interleave.xor",
        "1 lists",
    );
    refused(
        ("channels = 2", "channels = 3"),
        size,
        "memory.dram.channels",
        "modulo",
    );
}

#[test]
fn bits_that_no_field_uses_are_named() {
    let rows = "rank = [[21], [22]]";
    let with_rows = "rank = [[21], [22]]\nrow = [17, 18, 19, 20]";
    refused(
        (rows, with_rows),
        8 * GIB,
        "memory.dram.bits",
        "[23, 24, 25, 26, 27, 28, 29, 30, 31, 32]",
    );
}

#[test]
fn memory_that_does_not_fit_its_chips_is_refused() {
    refused(
        ("channels", "channels"),
        6 * GIB,
        "memory.size",
        "a power of two",
    );
    refused(("channels", "channels"), 1 << 16, "memory.size", "512KiB");
    refused(("channels", "channels"), 0, "memory.size", "a power of two");
    refused(
        ("channels", "channels"),
        u64::MAX,
        "memory.size",
        "a power of two",
    );
}

#[test]
fn unknown_keys_are_refused() {
    let text = text("rank_count = 3");
    let error = toml::from_str::<DramSpec>(&text).unwrap_err().to_string();
    assert!(error.contains("rank_count"), "{error}");
}

#[test]
fn the_latest_times_do_not_overflow() {
    let mut dram = i7("");
    for addr in [0u64, 1 << 23, u64::MAX] {
        dram.read(PhysAddr(addr), piebald_units::Picos::MAX);
        dram.write(PhysAddr(addr), piebald_units::Picos::MAX);
    }
    dram.drain(piebald_units::Picos::MAX);
}
