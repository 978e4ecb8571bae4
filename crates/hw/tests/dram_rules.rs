//! Every command that the model books obeys every constraint: a slow check of
//! all pairs over logged random streams, written from the standard's list of
//! constraints and not from the model.

use crate::dram_kit::{GIB, Rng, spec};
use piebald_hw::dram::{Command, CommandKind, Dram, spec::TimingSpec};
use piebald_units::{PhysAddr, Picos};

use CommandKind::{Activate, Precharge, Read, Refresh, Write};

const RANKS: u32 = 4;
const BANKS: u32 = 8;

/// Least distance from `first` to a later `second`, if the two constrain one
/// another, in cycles. `None` = any order will do.
fn distance(t: &TimingSpec, first: &Command, second: &Command) -> Option<u32> {
    let burst = t.bl / 2;
    let same_bank = first.bank == second.bank;
    let same_rank = first.bank / BANKS == second.bank / BANKS;
    let same_channel = first.bank / BANKS / RANKS == second.bank / BANKS / RANKS;
    let switch = if same_rank { 0 } else { t.rtrs };
    let least = match (first.kind, second.kind) {
        (Activate, Activate) if same_bank => t.rc,
        (Activate, Activate) if same_rank => t.rrd,
        (Activate, Read | Write) if same_bank => t.rcd,
        (Activate, Precharge) if same_bank => t.ras,
        (Activate, Refresh) if same_rank => t.rc,
        (Precharge, Activate) if same_bank => t.rp,
        (Precharge, Refresh) if same_rank => t.rp,
        (Read, Precharge) if same_bank => t.rtp,
        (Write, Precharge) if same_bank => t.cwl + burst + t.wr,
        (Read, Read) | (Write, Write) if same_rank => t.ccd.max(burst),
        (Read, Read) | (Write, Write) if same_channel => burst + switch,
        (Read, Write) if same_channel => t.cl + burst + 2 - t.cwl,
        (Write, Read) if same_rank => t.cwl + burst + t.wtr,
        // Data after data, measured at the commands.
        (Write, Read) if same_channel => (t.cwl + burst + switch).saturating_sub(t.cl),
        (Refresh, _) if same_rank => t.rfc,
        _ => return None,
    };
    Some(least)
}

/// Checks a whole log; returns the number of pairs that were constrained.
fn check(t: &TimingSpec, log: &[Command]) -> usize {
    let mut log = log.to_vec();
    // A precharge may share its time with nothing that depends on it.
    log.sort_by_key(|c| c.at);
    let longest = u64::from(t.rfc + t.rc + t.cl + t.wr) * t.tck.0;
    let mut pairs = 0;
    for (i, second) in log.iter().enumerate() {
        let recent = log[..i]
            .iter()
            .rev()
            .take_while(|c| c.at.0 + longest > second.at.0);
        for first in recent {
            if let Some(cycles) = distance(t, first, second) {
                pairs += 1;
                let gap = second.at.0 - first.at.0;
                assert!(
                    gap >= u64::from(cycles) * t.tck.0,
                    "{gap} ps from {first:?} to {second:?}"
                );
            }
        }
    }
    check_windows(t, &log);
    check_rows(&log);
    check_bus(t, &log);
    pairs
}

/// At most four activates of a rank in any tFAW.
fn check_windows(t: &TimingSpec, log: &[Command]) {
    for rank in 0..2 * RANKS {
        let in_rank = |c: &&Command| c.kind == Activate && c.bank / BANKS == rank;
        let times: Vec<u64> = log.iter().filter(in_rank).map(|c| c.at.0).collect();
        for five in times.windows(5) {
            assert!(
                five[4] - five[0] >= u64::from(t.faw) * t.tck.0,
                "{five:?} in rank {rank}"
            );
        }
    }
}

/// Columns only in open rows, activates only of closed banks, refreshes only of
/// closed ranks.
fn check_rows(log: &[Command]) {
    let mut open = vec![false; (2 * RANKS * BANKS) as usize];
    for c in log {
        let bank = c.bank as usize;
        match c.kind {
            Activate => assert!(
                !std::mem::replace(&mut open[bank], true),
                "{c:?} of an open bank"
            ),
            Read | Write => assert!(open[bank], "{c:?} of a closed bank"),
            Precharge => assert!(std::mem::take(&mut open[bank]), "{c:?} of a closed bank"),
            Refresh => {
                let rank = bank / BANKS as usize * BANKS as usize;
                assert!(
                    !open[rank..rank + BANKS as usize].contains(&true),
                    "{c:?} of an open rank"
                );
            }
        }
    }
}

/// One burst at a time on each bus.
fn check_bus(t: &TimingSpec, log: &[Command]) {
    for channel in 0..2 {
        let data = |c: &Command| {
            let latency = match c.kind {
                Read => t.cl,
                Write => t.cwl,
                _ => return None,
            };
            (c.bank / BANKS / RANKS == channel).then(|| c.at.0 + u64::from(latency) * t.tck.0)
        };
        let mut starts: Vec<u64> = log.iter().filter_map(data).collect();
        starts.sort_unstable();
        for two in starts.windows(2) {
            assert!(
                two[1] - two[0] >= u64::from(t.bl / 2) * t.tck.0,
                "bursts overlap at {two:?}"
            );
        }
    }
}

/// What a random stream looks like.
struct Stream {
    top: &'static str,
    /// Mean time between requests in ps.
    gap: u64,
    /// How far a request's time may step back.
    skew: u64,
    /// Rows that the stream uses, 1..; few rows give hits.
    rows: u64,
    /// Of 8 requests, writes.
    writes: u64,
    /// Outstanding reads.
    outstanding: usize,
}

fn run(stream: &Stream, seed: u64) -> Vec<Command> {
    let log = Vec::new();
    let mut dram = Dram::with_log(&spec(stream.top), 8 * GIB, "memory.dram", log).unwrap();
    let mut rng = Rng(seed);
    let mut slots = vec![0u64; stream.outstanding];
    let mut clock = 0;
    for i in 0..6_000 {
        clock += rng.below(2 * stream.gap + 1);
        let slot = i % slots.len();
        clock = clock.max(slots[slot]);
        let now = clock.saturating_sub(rng.below(stream.skew + 1));
        let row = rng.below(stream.rows) << 23;
        let addr = PhysAddr(row | rng.below(1 << 23) & !63);
        let done = match rng.below(8) < stream.writes {
            true => dram.write(addr, Picos(now)),
            false => dram.read(addr, Picos(now)),
        };
        assert!(done.ready.0 >= now);
        slots[slot] = done.ready.0;
    }
    dram.drain(Picos(clock));
    dram.log().clone()
}

#[test]
fn random_streams_break_no_constraint() {
    let tops = [
        "",
        "refresh = false",
        "page_policy = \"closed\"",
        "write_queue = { high = 1, low = 0 }",
        "write_queue = { high = 64, low = 0 }\npage_policy = \"closed\"",
    ];
    let mut pairs = 0;
    for (n, &top) in tops.iter().enumerate() {
        for (gap, skew) in [
            (0, 0),
            (3_000, 0),
            (3_000, 100_000),
            (20_000, 100_000),
            (900_000, 0),
        ] {
            for (rows, writes, outstanding) in [(1, 0, 40), (2, 3, 10), (512, 0, 24), (512, 4, 40)]
            {
                let stream = Stream {
                    top,
                    gap,
                    skew,
                    rows,
                    writes,
                    outstanding,
                };
                let log = run(&stream, 0x5eed + n as u64 + gap);
                pairs += check(&spec(top).timing, &log);
            }
        }
    }
    assert!(pairs > 1_000_000, "only {pairs} pairs were constrained");
}

#[test]
fn the_check_notices_a_command_that_is_one_picosecond_early() {
    let stream = Stream {
        top: "",
        gap: 3_000,
        skew: 0,
        rows: 64,
        writes: 3,
        outstanding: 10,
    };
    let log = run(&stream, 7);
    let t = spec("").timing;
    check(&t, &log);
    // Somewhere in this dense stream each kind of command stands at its limit.
    for kind in [Activate, Read, Write, Precharge, Refresh] {
        let caught = log
            .iter()
            .enumerate()
            .filter(|(_, c)| c.kind == kind)
            .any(|(i, _)| {
                let mut early = log.clone();
                early[i].at.0 = early[i].at.0.saturating_sub(1);
                let window = 400;
                let near = &early[i.saturating_sub(window)..(i + window).min(early.len())];
                breaks(&t, near)
            });
        assert!(caught, "no early {kind:?} was noticed");
    }
}

/// Does any pair break its distance?
fn breaks(t: &TimingSpec, log: &[Command]) -> bool {
    let mut log = log.to_vec();
    log.sort_by_key(|c| c.at);
    log.iter().enumerate().any(|(i, second)| {
        log[..i].iter().any(|first| {
            distance(t, first, second)
                .is_some_and(|cycles| second.at.0 - first.at.0 < u64::from(cycles) * t.tck.0)
        })
    })
}
