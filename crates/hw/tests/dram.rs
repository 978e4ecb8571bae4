//! Row outcomes, exact to the picosecond, on the DDR3-1333 machine of the HVR paper.

use crate::dram_kit::{GIB, i7, spec};
use piebald_hw::dram::{Dram, RowOutcome};
use piebald_units::{PhysAddr, Picos};

/// Two rows of bank 0, and the same row of another bank, another rank.
const ROW: u64 = 1 << 23;
const BANK: u64 = 1 << 13;
const RANK: u64 = 1 << 21;
/// Another line of the same row: column bit 7.
const NEXT: u64 = 1 << 7;
/// The other channel.
const CHANNEL: u64 = 1 << 6;
const FAR: u64 = 1_000_000;

fn read(dram: &mut Dram, addr: u64, now: u64) -> (u64, RowOutcome) {
    let done = dram.read(PhysAddr(addr), Picos(now));
    (done.ready.0, done.row)
}

#[test]
fn closed_hit_and_conflict_cost_what_the_sheet_says() {
    let mut dram = i7("refresh = false");
    assert_eq!(read(&mut dram, 0, 0), (33_000, RowOutcome::Closed));
    assert_eq!(read(&mut dram, NEXT, FAR), (FAR + 19_500, RowOutcome::Hit));
    assert_eq!(
        read(&mut dram, ROW, 2 * FAR),
        (2 * FAR + 46_500, RowOutcome::Conflict)
    );
}

#[test]
fn a_conflict_waits_for_the_rest_of_ras_and_not_one_picosecond_longer() {
    // tRAS ends 36 ns after the activate at 0.
    for (now, ready) in [
        (30_000, 82_500),
        (35_999, 82_500),
        (36_000, 82_500),
        (36_001, 82_501),
    ] {
        let mut dram = i7("refresh = false");
        read(&mut dram, 0, 0);
        assert_eq!(
            read(&mut dram, ROW, now),
            (ready, RowOutcome::Conflict),
            "asked at {now}"
        );
    }
}

#[test]
fn a_read_delays_the_precharge_by_rtp() {
    // The hit's column read goes out at 40 ns; tRTP = 5 cycles holds the row
    // until 47.5 ns.
    for (now, ready) in [(41_000, 94_000), (47_500, 94_000), (47_501, 94_001)] {
        let mut dram = i7("refresh = false");
        read(&mut dram, 0, 0);
        assert_eq!(read(&mut dram, NEXT, 40_000).0, 59_500);
        assert_eq!(read(&mut dram, ROW, now).0, ready, "asked at {now}");
    }
}

#[test]
fn a_row_hit_goes_before_the_conflict_that_waits_as_long_as_it_delays_nothing() {
    // A at 0 opens its row: tRAS keeps it open until 36 ns, when B's precharge is
    // booked. Until tRTP = 7.5 ns before that, A's row is served first.
    for (now, ready, row) in [
        (0, 39_000, RowOutcome::Hit),
        (28_500, 48_000, RowOutcome::Hit),
        // Too late: B's row stays open for tRAS, then a whole conflict.
        (28_501, 132_000, RowOutcome::Conflict),
    ] {
        let mut dram = i7("refresh = false");
        assert_eq!(read(&mut dram, 0, 0), (33_000, RowOutcome::Closed));
        assert_eq!(read(&mut dram, ROW, 0), (82_500, RowOutcome::Conflict));
        assert_eq!(read(&mut dram, NEXT, now), (ready, row), "asked at {now}");
        // B's own next line is a hit where it was, behind its first.
        if row == RowOutcome::Hit {
            assert_eq!(read(&mut dram, ROW + NEXT, now), (88_500, RowOutcome::Hit));
        }
    }
}

#[test]
fn activates_of_a_rank_keep_rrd_and_faw() {
    let mut dram = i7("refresh = false");
    // Five banks of one rank at once: tRRD 6 ns apart, the fifth waits for
    // tFAW = 30 ns, which is 6 ns more than four tRRD.
    let ready: Vec<u64> = (0..5)
        .map(|bank| read(&mut dram, bank * BANK, 0).0)
        .collect();
    assert_eq!(ready, [33_000, 39_000, 45_000, 51_000, 63_000]);
    // Another rank is not held up by them, only by bursts on the bus: those of
    // rank 0 end at 51 and start again at 57 ns, no room for two switches.
    let mut dram = i7("refresh = false");
    read(&mut dram, 0, 0);
    assert_eq!(read(&mut dram, RANK, 0).0, 33_000 + 1_500 + 6_000);
    assert_eq!(read(&mut dram, CHANNEL, 0).0, 33_000);
}

#[test]
fn write_to_read_waits_for_wtr_in_the_rank_and_wr_before_precharge() {
    let queue = "refresh = false\nwrite_queue = { high = 1, low = 0 }";
    // Activate 0, column write 13.5, data 24..30 ns (CWL 7 = 10.5 ns).
    let mut dram = i7(queue);
    assert_eq!(dram.write(PhysAddr(0), Picos(0)).ready, Picos(0));
    // tWTR 7.5 ns, then CL + burst.
    assert_eq!(
        read(&mut dram, NEXT, 0),
        (30_000 + 7_500 + 19_500, RowOutcome::Hit)
    );
    let mut dram = i7(queue);
    dram.write(PhysAddr(0), Picos(0));
    // tWR 15 ns after the data, then a whole conflict.
    assert_eq!(
        read(&mut dram, ROW, 0),
        (45_000 + 46_500, RowOutcome::Conflict)
    );
    let mut dram = i7(queue);
    dram.write(PhysAddr(0), Picos(0));
    // Another rank needs only the bus: data from 30 + tRTRS.
    assert_eq!(read(&mut dram, RANK, 0).0, 30_000 + 1_500 + 6_000);
}

#[test]
fn a_write_after_a_read_turns_the_bus_around() {
    let mut dram = i7("refresh = false\nwrite_queue = { high = 1, low = 0 }");
    read(&mut dram, 0, 0);
    dram.write(PhysAddr(NEXT), Picos(0));
    // Write data from 33 + 2 cycles on, 6 ns long.
    assert_eq!(dram.drain(Picos(0)), Picos(0), "the write is out already");
    assert_eq!(
        read(&mut dram, 2 * NEXT, 0).0,
        36_000 + 6_000 + 7_500 + 19_500
    );
}

#[test]
fn a_closed_page_machine_opens_a_row_for_every_access() {
    let mut dram = i7("refresh = false\npage_policy = \"closed\"");
    assert_eq!(read(&mut dram, 0, 0), (33_000, RowOutcome::Closed));
    // Far later, even the same row is closed.
    assert_eq!(
        read(&mut dram, NEXT, FAR),
        (FAR + 33_000, RowOutcome::Closed)
    );
    // At once: tRAS + tRP after the activate.
    let busy = read(&mut dram, ROW, FAR).0;
    assert_eq!(busy, FAR + 49_500 + 33_000);
}

#[test]
fn a_refresh_blocks_its_rank_and_closes_its_rows() {
    // Four ranks in turn: rank 0 first at tREFI / 4 = 1.95 us.
    let due = 5_200 * 1_500 / 4;
    let rfc = 111_000;
    let mut dram = i7("");
    read(&mut dram, 0, 0);
    assert_eq!(
        read(&mut dram, NEXT, due - 1),
        (due - 1 + 19_500, RowOutcome::Hit)
    );
    // The hit's tRTP holds the precharge until due - 1 + 7.5 ns, tRP, then tRFC.
    let start = due - 1 + 7_500 + 13_500;
    assert_eq!(
        read(&mut dram, 0, due),
        (start + rfc + 33_000, RowOutcome::Closed)
    );
    assert_eq!(dram.channel_counters(0).unwrap().refreshes, 1);
    // An idle rank is refreshed when it is due: its reads wait for the end of
    // tRFC, and not one picosecond after it.
    let due = due + 7_800_000 * 3;
    for (now, ready) in [
        (due, due + rfc + 33_000),
        (due + rfc - 1, due + rfc + 33_000),
        (due + rfc + 1, due + rfc + 33_001),
    ] {
        let mut again = dram.clone();
        assert_eq!(
            read(&mut again, 0, now),
            (ready, RowOutcome::Closed),
            "asked at {now}"
        );
        assert_eq!(again.channel_counters(0).unwrap().refreshes, 4);
    }
}

#[test]
fn banks_and_channels_count_what_they_did() {
    let mut dram = i7("refresh = false");
    for (addr, now) in [(0, 0), (NEXT, FAR), (ROW, 2 * FAR), (CHANNEL, 0)] {
        read(&mut dram, addr, now);
    }
    let first = *dram.bank_counters(0).unwrap();
    assert_eq!(
        (first.reads, first.closed, first.hits, first.conflicts),
        (3, 1, 1, 1)
    );
    let other = dram.bank_index(PhysAddr(CHANNEL));
    assert_eq!(other, 32);
    assert_eq!(dram.bank_counters(other).unwrap().reads, 1);
    assert_eq!(dram.channel_counters(0).unwrap().busy, Picos(18_000));
    assert_eq!(dram.channel_counters(1).unwrap().busy, Picos(6_000));
    assert_eq!(dram.bank_counters(dram.banks()), None);
    assert_eq!(dram.channel_counters(2), None);
}

#[test]
fn two_channels_of_ddr3_1333_peak_at_21_3_gb_per_second() {
    let dram = Dram::new(&spec(""), 8 * GIB, "memory.dram").unwrap();
    assert_eq!(dram.peak_bytes_per_second(), 21_333_333_333);
}
