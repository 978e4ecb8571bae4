//! Replays of random traces in every block and file format: the misses are those of an oracle that is
//! given the requests before they were written.

#[path = "../../trace/tests/writers/mod.rs"]
mod writers;

use std::collections::VecDeque;

use piebald_os_model::replace::PolicySpec;
use piebald_os_model::replace::registry::Setup;
use piebald_sim::replay::{Batch, CallStream, InputSetup, cache_instance};
use piebald_trace::block::{Format, Op, Options};
use writers::{Place, Row, Seen, What, write};

const PAGE: u64 = 4096;

/// A page, by the name of its disk or file.
type Page<'a> = (&'a str, u64);

/// The pages that a request touches; those that are gone with a deletion.
fn pages(seen: &Seen) -> (&str, std::ops::Range<u64>) {
    let of = |first: u64, end: u64| first / PAGE..end.div_ceil(PAGE);
    match &seen.place {
        Place::Disk {
            name,
            sector,
            sectors,
        } => (name, of(sector * 512, (sector + sectors) * 512)),
        Place::File { path, offset, .. } if seen.op == Op::Delete => {
            (path, offset.div_ceil(PAGE)..u64::MAX)
        }
        Place::File {
            path,
            offset,
            length,
        } => (path, of(*offset, offset + length)),
        Place::Block { id, .. } => ("", *id..id + 1),
    }
}

/// Misses of LRU, or of FIFO, which does not move what is used again.
fn oracle(requests: &[Seen], capacity: usize, moves: bool) -> u64 {
    let (mut memory, mut misses) = (VecDeque::<Page>::new(), 0);
    for (name, range) in requests.iter().map(pages) {
        if range.end == u64::MAX {
            memory.retain(|page| page.0 != name || page.1 < range.start);
            continue;
        }
        for page in range.map(|n| (name, n)) {
            let found = memory.iter().position(|p| *p == page);
            misses += u64::from(found.is_none());
            match found {
                Some(at) if moves => drop(memory.remove(at)),
                Some(_) => continue,
                None if memory.len() == capacity => drop(memory.pop_front()),
                None => {}
            }
            memory.push_back(page);
        }
    }
    misses
}

/// What Piebald counts.
fn replay(setup: &InputSetup, policy: &str, capacity: u32) -> u64 {
    let policy: PolicySpec = policy.parse().expect("a policy");
    let mut stream = CallStream::open(setup).unwrap_or_else(|e| panic!("{e}"));
    let mut cache = cache_instance(&policy, &Setup::new(capacity), 0, true).expect("an instance");
    let mut batch = Batch::default();
    while stream
        .next_batch(&mut batch)
        .unwrap_or_else(|e| panic!("{e}"))
    {
        cache.run(&batch, &[]).expect("no disk");
    }
    cache.validate().expect("agrees");
    cache.outcome().counts.misses
}

/// SplitMix64 (Steele, Lea, Flood 2014).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Requests to few pages, the first ones more often than the last, so that there are hits; some begin
/// or end within one.
fn rows(state: &mut u64) -> Vec<Row> {
    let mut time = 0;
    let row = |_| {
        let mut below = |bound: u64| random(state) % bound;
        time += below(1 << 30);
        let within = [0, 0, 0, 512, 100];
        Row {
            time,
            task: below(3) as u32,
            disk: below(3) as u32,
            what: [What::Read, What::Read, What::Write, What::Other][below(4) as usize],
            place: below(60) % (8 + below(60)) * PAGE + within[below(5) as usize],
            length: below(4) * PAGE + within[below(5) as usize],
            spice: below(u64::MAX),
        }
    };
    (0..600).map(row).collect()
}

#[test]
fn misses_of_every_format_are_those_of_the_requests_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut state = 0xf0_4a75;
    for format in Format::ALL.into_iter().filter(|f| *f != Format::Columns) {
        let mut differ = false;
        for round in 0..6 {
            let written = write(format, &rows(&mut state));
            let path = folder.path().join(format!("{format}.{round}"));
            std::fs::write(&path, &written.bytes).expect("a file");
            let setup = InputSetup {
                paths: vec![path],
                options: Options {
                    format: Some(format),
                    ..Options::default()
                },
                ..InputSetup::default()
            };
            for capacity in [1, 7, 32, 100, 300] {
                let expected = [true, false].map(|moves| oracle(&written.seen, capacity, moves));
                let found = ["lru", "fifo"].map(|policy| replay(&setup, policy, capacity as u32));
                assert_eq!(found, expected, "{format} {round}: {capacity} pages");
                differ |= found[0] != found[1];
            }
        }
        // Traces on which the policies make no difference would say little.
        assert!(differ, "{format}");
    }
}

#[test]
fn the_oracle_tells_lru_from_fifo() {
    let of = |page: u64| Seen {
        time: None,
        task: 0,
        op: Op::Read,
        place: Place::Block {
            id: page,
            bytes: None,
            next: None,
        },
    };
    // 1 is used again before 3 pushes the coldest or the oldest out.
    let requests = [1, 2, 1, 3, 1].map(of);
    assert_eq!(oracle(&requests, 2, true), 3);
    assert_eq!(oracle(&requests, 2, false), 4);
}
