//! What DULO promises beyond the paper's example and its oracle.

use std::collections::VecDeque;

use crate::dulo_kit::{
    Host, Kind, NOW, Random, Simple, SimpleDulo, VecStore, dulo_on, setting, simple, sizes,
};
use piebald_policy::{
    contract::replacement::{Base, Fetch, Gone, Insert, PageRef, Replacement, State, Touch, Via},
    dulo::{
        Config, ConfigError, Cost, Dulo, FRACTION_BITS, Rest, Sections, Sizes, Slices, continues,
    },
};
use piebald_units::DiskBlock;

const ONE: u64 = 1 << FRACTION_BITS;

fn host(kind: Kind, capacity: u32, config: Config) -> Host<SimpleDulo> {
    Host::new(simple(kind, capacity, config))
}

/// The sizes of the sequences of the named pages, and their H.
fn standings(host: &Host<SimpleDulo>, names: &[u64]) -> Vec<(u32, u64)> {
    let standing = |name: &u64| {
        let page = host.number(*name).expect("a page in memory");
        let s = host.policy.standing(page).expect("in the evicting section");
        (s.size, s.h)
    };
    names.iter().map(standing).collect()
}

// Sizes

#[test]
fn published_sizes_are_those_of_section_4_1_1() {
    let mib = |pages: u32| pages / 256;
    let small = Config::published(20_479);
    assert_eq!((mib(small.bank), mib(small.evicting)), (4, 16));
    let large = Config::published(20_480);
    assert_eq!((mib(large.bank), mib(large.evicting)), (8, 64));
    // 160 MB, as multi1 had: the correlation buffer is what remains.
    let sections = large.sections(40_960).unwrap();
    assert_eq!(
        sections,
        Sections {
            correlation: 40_960 - 2048 - 16_384,
            bank: 2048,
            evicting: 16_384,
        }
    );
}

#[test]
fn the_rest_goes_to_the_section_that_was_chosen() {
    let config = sizes(10, 20, 40);
    let of = |rest, capacity| Config { rest, ..config }.sections(capacity).unwrap();
    let whole = |s: Sections| (s.correlation, s.bank, s.evicting);
    assert_eq!(whole(of(Rest::Correlation, 100)), (40, 20, 40));
    assert_eq!(whole(of(Rest::Evicting, 100)), (10, 20, 70));
    for rest in [Rest::Correlation, Rest::Evicting] {
        assert_eq!(whole(of(rest, 70)), (10, 20, 40));
        assert_eq!(whole(of(rest, 69)), (10, 20, 39), "the section shrinks");
        assert_eq!(whole(of(rest, 50)), (10, 20, 20), "to a bank");
        let error = Config { rest, ..config }.sections(49).unwrap_err();
        assert_eq!(
            error,
            ConfigError::Memory {
                capacity: 49,
                needed: 50
            }
        );
    }
}

#[test]
fn scaled_sizes_fit_every_memory_of_two_pages_and_more() {
    for capacity in (2..6000).chain([20_479, 20_480, 1 << 20, u32::MAX]) {
        let sections = Config::scaled(capacity).sections(capacity);
        let sections = sections.unwrap_or_else(|e| panic!("{capacity}: {e}"));
        let sum = u64::from(sections.correlation)
            + u64::from(sections.bank)
            + u64::from(sections.evicting);
        assert_eq!(sum, u64::from(capacity));
        assert!(sections.bank >= 1 && sections.evicting >= sections.bank);
    }
    assert_eq!(Config::scaled(20_479), Config::SMALL);
    assert_eq!(Config::scaled(5376), Config::SMALL, "21 MB hold them whole");
    assert_ne!(Config::scaled(5375), Config::SMALL);
    assert!(Config::scaled(1).sections(1).is_err());
}

#[test]
fn what_does_not_fit_is_refused_by_name_and_value() {
    let good = sizes(0, 2, 4);
    let refused = |config: Config, words: &str| {
        let error = config.sections(8).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    };
    refused(Config { bank: 0, ..good }, "bank is 0");
    refused(
        Config {
            evicting: 1,
            ..good
        },
        "evicting is 1",
    );
    refused(
        Config {
            max_sequence: 0,
            ..good
        },
        "max_sequence is 0",
    );
    refused(
        Config {
            max_sequence: 129,
            ..good
        },
        "129",
    );
    refused(sizes(4, 4, 4), "memory of 8 pages");

    let base = || Simple::new(Kind::Clock, 8, 9);
    let sections = good.sections(8).unwrap();
    let store = |sizes: &Sizes| -> VecStore { Slices::collect(sizes) };
    let fits = Sizes::of(&sections, 9);
    let short: [(&str, Sizes); 4] = [
        ("slots", Sizes { slots: 8, ..fits }),
        (
            "sequences",
            Sizes {
                sequences: 5,
                ..fits
            },
        ),
        ("bank", Sizes { bank: 1, ..fits }),
        (
            "buckets",
            Sizes {
                buckets: 127,
                ..fits
            },
        ),
    ];
    for (name, sizes) in short {
        let error = Dulo::new(base(), store(&sizes), good, Cost::Uniform).unwrap_err();
        assert!(error.to_string().starts_with(name), "{error}");
    }
    let costs = |costs: &[u32]| Dulo::new(base(), store(&fits), good, Cost::Runs(costs)).err();
    assert_eq!(
        costs(&[1; 127]),
        Some(ConfigError::Costs {
            given: 127,
            needed: 128
        })
    );
    let mut free = [1; 128];
    free[6] = 0;
    assert_eq!(costs(&free), Some(ConfigError::Free(7)));
    assert_eq!(costs(&[1; 128]), None);

    let mut used = base();
    used.insert(PageRef(0), &Insert::default(), NOW);
    let error = Dulo::new(used, store(&fits), good, Cost::Uniform).unwrap_err();
    assert_eq!(error, ConfigError::BaseNotEmpty(1));
}

// Sequences and their values

#[test]
fn the_conditions_of_section_3_3() {
    assert!(continues(0, 0, 1, 128), "neither was accessed before");
    assert!(!continues(0, 4, 1, 128) && !continues(4, 0, 1, 128), "2");
    assert!(continues(4, 4, 1, 128) && continues(4, 5, 1, 128) && continues(5, 4, 1, 128));
    assert!(!continues(4, 6, 1, 128) && !continues(6, 4, 1, 128), "3");
    assert!(continues(4, 4, 127, 128) && !continues(4, 4, 128, 128), "4");
    assert!(!continues(0, 1, 1, 128), "time 1 is not never");
}

#[test]
fn values_are_one_over_the_size_to_the_last_bit() {
    let mut host = host(Kind::Clock, 12, sizes(0, 6, 6));
    // Three neighbours, two, and one alone.
    for name in [10, 11, 12, 50, 51, 90] {
        host.access(name);
    }
    assert_eq!(
        standings(&host, &[10, 11, 12, 50, 51, 90]),
        [
            (3, ONE / 3),
            (3, ONE / 3),
            (3, ONE / 3),
            (2, ONE / 2),
            (2, ONE / 2),
            (1, ONE)
        ]
    );
    assert_eq!(
        host.stack(),
        [10, 11, 12, 50, 51, 90],
        "small values leave first"
    );
    assert_eq!([1, 2, 3].map(|n| host.policy.formed(n)), [1, 1, 1]);
}

#[test]
fn a_full_sequence_ends_at_128_blocks() {
    let mut host = host(Kind::Clock, 600, sizes(0, 300, 300));
    host.access_all(1000..1300);
    assert_eq!(host.policy.formed(128), 2);
    assert_eq!(host.policy.formed(300 - 256), 1);
    assert_eq!(
        standings(&host, &[1127, 1128, 1256]),
        [(128, ONE / 128), (128, ONE / 128), (44, ONE / 44)]
    );
}

#[test]
fn a_gap_in_the_numbers_of_a_disk_ends_a_sequence() {
    let mut host = host(Kind::Clock, 12, sizes(0, 6, 6));
    // A track ends behind 11: 12 is left out.
    for name in [10, 11, 13, 14, 15, 16] {
        host.access(name);
    }
    assert_eq!(host.policy.formed(2), 1);
    assert_eq!(host.policy.formed(4), 1);
    assert_eq!(host.stack(), [13, 14, 15, 16, 10, 11]);
}

#[test]
fn the_order_of_access_within_a_bank_does_not_matter_for_forming() {
    let mut host = host(Kind::Clock, 8, sizes(0, 4, 4));
    for name in [13, 10, 12, 11] {
        host.access(name);
    }
    assert_eq!(host.policy.formed(4), 1);
    assert_eq!(
        host.stack(),
        [13, 10, 12, 11],
        "and is kept within the sequence"
    );
}

#[test]
fn pages_without_a_place_on_disk_are_random_until_they_get_one() {
    let mut host = host(Kind::Clock, 8, sizes(0, 4, 4));
    host.nowhere = 100;
    for name in [201, 202, 10, 11] {
        host.access(name);
    }
    assert_eq!(
        standings(&host, &[201, 202, 10]),
        [(1, ONE), (1, ONE), (2, ONE / 2)]
    );
    for name in [203, 204] {
        host.access(name);
    }
    // Swap slots are given, and the next bank knows them.
    for (name, slot) in [(203, 70), (204, 71)] {
        let page = host.number(name).unwrap();
        host.policy.place(page, Some(DiskBlock(slot)));
    }
    for name in [20, 21] {
        host.access(name);
    }
    assert_eq!(standings(&host, &[203, 204]), [(2, ONE / 2); 2]);
    host.policy.validate().unwrap();
}

#[test]
fn two_pages_for_one_block_are_not_one_sequence() {
    let base = Simple::new(Kind::Clock, 8, 9);
    let mut dulo = dulo_on(base, sizes(0, 4, 4), Cost::Uniform, None);
    for (page, block) in [(0, 5), (1, 5), (2, 6), (3, 7)] {
        let at = Some(DiskBlock(block));
        dulo.insert(
            PageRef(page),
            &Insert {
                at,
                ..Insert::default()
            },
            NOW,
        );
    }
    let sizes = [0, 1, 2, 3].map(|p| dulo.standing(PageRef(p)).unwrap().size);
    assert_eq!(sizes, [3, 1, 3, 3]);
    dulo.validate().unwrap();
}

#[test]
fn a_disks_own_costs_order_the_sequences() {
    // A seek costs 9, each block 1: H = (9 + n) / n, of 137 for the longest.
    let costs: Vec<u32> = (1..=128).map(|n| 9 + n).collect();
    let base = Simple::new(Kind::Clock, 12, 13);
    let mut host = Host::new(dulo_on(base, sizes(0, 6, 6), Cost::Runs(&costs), None));
    for name in [90, 50, 51, 10, 11, 12] {
        host.access(name);
    }
    let h = |n: u64| (9 + n) * ONE / 137 / n;
    assert_eq!(
        standings(&host, &[90, 50, 10]),
        [(1, h(1)), (2, h(2)), (3, h(3))]
    );
    // Where blocks cost the same alone and together, recency alone decides between
    // banks; within one, longer sequences go first.
    let costs: Vec<u32> = (1..=128).collect();
    let base = Simple::new(Kind::Clock, 8, 9);
    let mut host = Host::new(dulo_on(base, sizes(0, 4, 4), Cost::Runs(&costs), None));
    for name in [90, 92, 50, 51, 10, 11, 12, 13] {
        host.access(name);
    }
    assert_eq!(host.stack(), [50, 51, 90, 92, 10, 11, 12, 13]);
    host.policy.validate().unwrap();
}

#[test]
fn a_small_block_table_costs_sequences_and_nothing_else() {
    let base = Simple::new(Kind::Clock, 64, 65);
    let mut host = Host::new(dulo_on(base, sizes(0, 16, 48), Cost::Uniform, Some(3)));
    let mut random = Random(1);
    for _ in 0..5000 {
        host.access(random.below(40) * 640 + random.below(4));
        host.policy.validate().unwrap();
    }
    let table = host.policy.table_counters();
    assert!(table.shortages > 10 && table.unrecorded > 10, "{table:?}");
    assert!(host.policy.table_nodes() <= 3);
}

// The base

/// CLOCK as section 3.4 has it.
#[derive(Default)]
struct Clock {
    pages: VecDeque<(u64, bool)>,
    victims: Vec<u64>,
}

impl Clock {
    fn access(&mut self, name: u64, capacity: usize) {
        if let Some(page) = self.pages.iter_mut().find(|p| p.0 == name) {
            page.1 = true;
            return;
        }
        while self.pages.len() >= capacity {
            match self.pages.pop_front().unwrap() {
                (name, true) => self.pages.push_back((name, false)),
                (name, false) => self.victims.push(name),
            }
        }
        self.pages.push_back((name, false));
    }
}

/// DULO's victims are CLOCK's, one by one, whatever the sections.
fn degenerates(stretch: u64, max_sequence: u16) {
    for (seed, config) in [
        sizes(0, 4, 4),
        sizes(3, 5, 20),
        sizes(40, 8, 30),
        sizes(1, 1, 1),
    ]
    .into_iter()
    .enumerate()
    {
        let capacity = config.correlation + config.bank + config.evicting;
        let config = Config {
            max_sequence,
            ..config
        };
        let mut random = Random(seed as u64);
        let mut clock = Clock::default();
        let mut host = host(Kind::Clock, capacity, config);
        for turn in 0..20_000u64 {
            let name = match turn / 500 % 3 {
                0 => turn % 100,
                1 => random.below(u64::from(capacity) * 2),
                _ => random.below(10) * random.below(20),
            };
            host.access(name * stretch);
            clock.access(name * stretch, capacity as usize);
        }
        assert!(clock.victims.len() > 3000);
        assert_eq!(host.victims, clock.victims);
        assert_eq!(host.policy.formed(2), 0);
    }
}

#[test]
fn without_neighbours_the_victims_are_those_of_clock() {
    degenerates(2, 128);
}

#[test]
fn without_sequences_the_victims_are_those_of_clock() {
    degenerates(1, 1);
}

#[test]
fn random_blocks_outlive_sequential_ones_of_the_same_age() {
    let run = |config: Config| {
        let mut host = host(Kind::Clock, 400, config);
        let (mut misses, mut random) = (0u32, Random(4));
        for round in 0..200u64 {
            // A file is read once; between, blocks spread over the disk are used.
            host.access_all((0..64).map(|n| 1_000_000 + round * 64 + n));
            for _ in 0..32 {
                misses += u32::from(!host.access(random.below(250) * 1000));
            }
        }
        misses
    };
    let config = Config::scaled(400);
    let dulo = run(config);
    let clock = run(Config {
        max_sequence: 1,
        ..config
    });
    println!("misses of random blocks: DULO {dulo}, CLOCK {clock}");
    assert!(dulo * 2 < clock, "DULO {dulo}, CLOCK {clock}");
}

#[test]
fn in_linux_a_page_used_twice_by_calls_leaves_the_section_at_once() {
    let mut host = host(Kind::TwoLists, 8, sizes(0, 4, 4).linux());
    for name in [10, 11, 12, 13] {
        host.access(name);
    }
    let page = host.number(11).unwrap();
    host.access(11);
    assert!(
        host.policy.standing(page).is_some(),
        "referenced, not yet active"
    );
    host.access(11);
    assert!(host.policy.standing(page).is_none());
    assert_eq!(host.policy.base().class(page), 1, "in the active list");
    assert_eq!(host.policy.counters().promoted, 1);
    assert_eq!(standings(&host, &[10]), [(4, ONE / 4)], "the others stay");
    host.policy.validate().unwrap();

    // A mapped page's access bit is seen at the bottom only.
    let mapped = host.number(10).unwrap();
    let touch = Touch {
        via: Via::Mapping,
        ..Touch::default()
    };
    host.policy.hit(mapped, touch, NOW);
    assert!(host.policy.standing(mapped).is_some());
    for name in [20, 30, 40, 50, 60] {
        host.access(name);
    }
    assert_eq!(host.policy.counters().returned, 1);
    assert_eq!(host.policy.state(mapped), State::Resident);
}

#[test]
fn in_linux_demoted_pages_are_sequenced_apart_from_faulted_ones() {
    let mut host = host(Kind::TwoLists, 8, sizes(0, 4, 4).linux());
    // 10 and 12 become active and are the coldest of the base with 11 and 13.
    for name in [10, 12] {
        host.access_all([name; 3]);
    }
    for name in [11, 13] {
        host.access(name);
    }
    // The bank is all four; by place they are neighbours, by class they alternate.
    let sizes = standings(&host, &[10, 11, 12, 13])
        .iter()
        .map(|s| s.0)
        .collect::<Vec<_>>();
    assert_eq!(sizes, [1, 1, 1, 1]);
}

// Held pages and pages that the host chooses

#[test]
fn a_held_page_is_never_proposed_and_comes_back_hot() {
    let mut host = host(Kind::Clock, 8, sizes(0, 4, 4));
    host.access_all((0..8).map(|n| n * 10));
    let (cold, hot) = (host.number(0).unwrap(), host.number(70).unwrap());
    for page in [cold, hot] {
        host.policy.detach(page);
        assert_eq!(host.policy.state(page), State::Detached);
    }
    let mut all = [PageRef(0); 9];
    assert_eq!(host.policy.propose(&mut all), 6);
    assert!(!all[..6].contains(&cold) && !all[..6].contains(&hot));
    host.policy.validate().unwrap();
    host.policy.reattach(cold);
    assert_eq!(host.stack().last(), Some(&0));
    assert_eq!(host.policy.state(cold), State::Resident);
    host.forget(hot, Gone::Deleted);
    host.policy.validate().unwrap();
    assert_eq!(host.policy.resident(), 7);
}

#[test]
fn a_victim_out_of_order_does_not_raise_l_above_what_is_left() {
    let mut host = host(Kind::Clock, 12, sizes(0, 6, 6));
    for name in [10, 11, 12, 13, 90, 95] {
        host.access(name);
    }
    // The random block goes first, against the proposal; the run stays.
    let random = host.number(90).unwrap();
    host.forget(random, Gone::Evicted);
    assert_eq!(host.policy.inflation(), ONE / 4);
    // In order: the run ends, and L is its value.
    for _ in 0..4 {
        host.evict();
    }
    assert_eq!(host.victims, [10, 11, 12, 13]);
    assert_eq!(host.policy.inflation(), ONE / 4);
    assert_eq!(host.evict(), 95);
    assert_eq!(host.policy.inflation(), ONE);
    let counters = host.policy.counters();
    assert_eq!((counters.evicted, counters.ended), (6, 3));
    host.policy.validate().unwrap();
}

#[test]
fn deletion_ends_a_sequence_without_raising_l() {
    let mut host = host(Kind::Clock, 8, sizes(0, 4, 4));
    for name in [10, 11, 12, 13] {
        host.access(name);
    }
    for name in [10, 11, 12, 13] {
        host.forget(host.number(name).unwrap(), Gone::Deleted);
        host.policy.validate().unwrap();
    }
    assert_eq!(host.policy.inflation(), 0);
    assert_eq!(host.policy.resident(), 0);
    assert_eq!(host.policy.evict(), None);
}

#[test]
fn a_page_that_cannot_leave_does_not_keep_young_ones_below_its_successor() {
    let mut host = host(Kind::Clock, 8, sizes(0, 4, 4));
    host.access_all((0..8).map(|n| n * 10));
    // 0 is dirty; 10 and 20 are young; 30 is taken.
    for name in [10, 20] {
        host.access(name);
    }
    let mut out = [PageRef(0); 2];
    host.policy.propose(&mut out);
    assert_eq!(out.map(|p| host.name(p)), [0, 30]);
    host.forget(out[1], Gone::Evicted);
    assert_eq!(host.policy.counters().returned, 2);
    assert_eq!(host.stack().first(), Some(&0));
    host.policy.validate().unwrap();
}

#[test]
fn memory_that_is_short_below_its_capacity_is_sequenced_too() {
    // 100 pages by the books, of which the host can spare 40.
    let mut host = host(Kind::Clock, 100, sizes(2, 4, 16));
    for name in 0..200 {
        while host.policy.resident() >= 40 {
            host.evict();
        }
        host.access(name);
        host.policy.validate().unwrap();
    }
    assert!(host.policy.counters().sequencings > 30);
    assert!(host.policy.evicting().count() >= 12);
    assert_eq!(host.policy.counters().short_banks, 0);
}

// Long runs

/// A million blocks: files of all lengths and random ones.
#[test]
fn a_million_blocks() {
    let capacity = 6000;
    let mut host = host(Kind::Clock, capacity, Config::published(capacity));
    let mut random = Random(8);
    let blocks = setting("PIEBALD_DULO_BLOCKS", 1_000_000);
    let (mut misses, mut accesses) = (0u64, 0u64);
    while accesses < blocks {
        let (start, length) = match random.below(3) {
            0 => (random.below(1 << 20) & !63, 1 + random.below(300)),
            _ => (random.below(1 << 22), 1),
        };
        for name in start..start + length {
            misses += u64::from(!host.access(name));
            accesses += 1;
            if accesses.is_multiple_of(100_000) {
                host.policy.validate().unwrap();
            }
        }
    }
    let counters = host.policy.counters();
    let per_miss = counters.comparisons as f64 / misses as f64;
    println!("{misses} misses, {per_miss:.3} comparisons per miss, {counters:?}");
    assert!(
        per_miss < 1.7,
        "the paper's overhead (section 4.1.3): {per_miss}"
    );
    let banks = misses / u64::from(host.policy.sections().bank);
    assert!(counters.sequencings.abs_diff(banks) < banks / 5);
}

/// Any list of calls that a careful host may make: nothing panics, all stays counted.
#[test]
fn fuzz_dulo_keeps_its_books() {
    for case in 0..setting("PIEBALD_FUZZ_CASES", 30) {
        let mut random = Random(case);
        let capacity = 2 + random.below(60) as u32;
        let kind = [Kind::Clock, Kind::Lru, Kind::TwoLists][random.below(3) as usize];
        let config = Config {
            max_sequence: 1 + random.below(128) as u16,
            reach: random.below(4) as u32,
            ..Config::scaled(capacity)
        };
        let base = Simple::new(kind, capacity, capacity + 1);
        let table = random.below(40) as usize;
        let mut host = Host::new(dulo_on(base, config, Cost::Uniform, Some(table)));
        for _ in 0..300 {
            let page = PageRef(random.below(u64::from(capacity) + 1) as u32);
            match (random.below(10), host.policy.state(page)) {
                (0, State::Resident) => host.policy.detach(page),
                (1 | 2, State::Detached) => host.policy.reattach(page),
                (3, State::Resident | State::Detached) => host.forget(page, Gone::Deleted),
                (4, State::Resident) => host.forget(page, Gone::Evicted),
                (5, _) => drop(host.policy.reclaim_table(
                    random.below(50) as u32,
                    DiskBlock(random.below(1000)),
                    2,
                )),
                _ if host.policy.propose(&mut [PageRef(0)]) == 1 || host.policy.resident() == 0 => {
                    let name = random.below(6) * 1000 + random.below(40);
                    host.access(name);
                }
                _ => {}
            }
            host.policy.validate().unwrap();
        }
    }
}

#[test]
fn a_page_read_ahead_comes_in_like_any_other() {
    let mut host = host(Kind::Clock, 8, sizes(0, 4, 4));
    for name in 10..14 {
        host.fetch(name, Fetch::Readahead);
    }
    assert_eq!(host.policy.formed(4), 1);
}

/// A memory that stands for a larger one has the same shares of it; sequences stay as long, as extents of the
/// pages are sampled whole.
#[test]
fn a_miniature_has_the_same_shares() {
    let whole = Config::published(1 << 20);
    let small = whole.miniature(1 << 18, 1 << 20);
    let quarter = [whole.correlation, whole.bank, whole.evicting].map(|pages| pages / 4);
    assert_eq!([small.correlation, small.bank, small.evicting], quarter);
    assert_eq!(small.max_sequence, whole.max_sequence);
    // Each section has a page at least, and the evicting one the bank's.
    let least = whole.miniature(1, 1 << 28);
    assert_eq!([least.correlation, least.bank, least.evicting], [1; 3]);
    assert_eq!(whole.miniature(1 << 20, 1 << 20), whole);
}
