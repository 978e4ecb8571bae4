//! Policies against slow versions of themselves, written straight from the papers
//! over `Vec` and `VecDeque`: every reference must hit in both or miss in both.

mod oracles;

use crate::replaying::{Cache, next_uses};
use oracles::{ArcOracle, LirsOracle, LruKOracle, MinOracle, MqOracle, Oracle};
use piebald_os_model::replace::{
    Arc, ArcConfig, Lirs, LirsConfig, LruK, LruKConfig, Min, MinConfig, Mq, MqConfig,
};
use piebald_policy::contract::replacement::Replacement;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Streams that mix what policies differ in: hot pages, loops longer and shorter
/// than memory, scans, and a working set that moves.
fn streams() -> Vec<Vec<u32>> {
    let mut streams = vec![
        (0..600).map(|at| at % 13).collect(),
        (0..600).map(|at| at % 40).collect(),
        (0..900).collect(),
    ];
    for seed in 0..10 {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mixed = |at: u32| match rng.random_range(0..10) {
            0..4 => rng.random_range(0..8),
            4..6 => 10 + at % 25,
            6..8 => 100 + at / 50 * 7 + rng.random_range(0..10),
            _ => 400 + rng.random_range(0..100),
        };
        streams.push((0..2500).map(mixed).collect());
    }
    streams
}

const CAPACITIES: [u32; 7] = [1, 2, 3, 5, 12, 20, 64];

fn agrees<P: Replacement, O: Oracle>(
    what: &str,
    build: impl Fn(u32) -> P,
    oracle: impl Fn(u32) -> O,
) {
    let mut hits = 0;
    for (number, stream) in streams().iter().enumerate() {
        let next = next_uses(stream);
        for capacity in CAPACITIES {
            let mut cache = Cache::new(build(capacity), 1000);
            let mut slow = oracle(capacity);
            for (at, (key, next)) in stream.iter().zip(&next).enumerate() {
                let fast = cache.access(*key, *next);
                let label = format!("{what}, stream {number}, {capacity} pages, reference {at}");
                assert_eq!(fast, slow.access(*key, *next), "{label}");
                hits += u64::from(fast);
                if at % 250 == 0 {
                    cache.policy.validate().expect(&label);
                }
            }
        }
    }
    assert!(hits > 5_000, "{what}: {hits} hits");
}

#[test]
fn arc_agrees_with_the_pseudo_code_of_its_paper() {
    agrees(
        "arc",
        |c| Arc::new(ArcConfig::new(c)).expect("arc"),
        ArcOracle::new,
    );
}

#[test]
fn lirs_agrees_with_its_paper_whatever_is_bounded() {
    for (hir_percent, ghost_percent) in [(1, 100), (10, 400), (40, 30)] {
        let config = |c| LirsConfig {
            hir_percent,
            ghost_percent,
            ..LirsConfig::new(c)
        };
        agrees(
            "lirs",
            |c| Lirs::new(config(c)).expect("lirs"),
            |c| {
                let part = |percent: u32| (c * percent / 100).max(1) as usize;
                LirsOracle::new(c as usize, part(hir_percent), part(ghost_percent))
            },
        );
    }
}

#[test]
fn lru_2_agrees_with_figure_2_1_of_its_paper() {
    for (correlated_uses, retained_percent) in [(0, 100), (4, 100), (0, 0)] {
        let config = |c| LruKConfig {
            correlated_uses,
            retained_percent,
            ..LruKConfig::new(c)
        };
        agrees(
            "lru-2",
            |c| LruK::new(config(c)).expect("lru-2"),
            |c| {
                let retained = c * retained_percent / 100;
                LruKOracle::new(c as usize, retained as usize, correlated_uses)
            },
        );
    }
}

#[test]
fn mq_agrees_with_the_pseudo_code_of_its_paper() {
    for life_time_uses in [3, 30, 1000] {
        let config = |c| MqConfig {
            life_time_uses,
            ..MqConfig::new(c)
        };
        agrees(
            "mq",
            |c| Mq::new(config(c)).expect("mq"),
            |c| MqOracle::new(c as usize, life_time_uses),
        );
    }
}

#[test]
fn min_agrees_with_a_search_of_the_future() {
    agrees(
        "min",
        |c| Min::new(MinConfig::new(c)).expect("min"),
        MinOracle::new,
    );
}

#[test]
fn no_policy_hits_more_than_min() {
    use piebald_os_model::replace::registry::{POLICIES, Setup, boxed};
    for stream in streams().iter().take(8) {
        for capacity in [2, 12, 64] {
            let hits = |name: &str| {
                let policy = boxed(name, &Setup::new(capacity)).expect(name);
                Cache::new(Boxed(policy), 1000).hits(stream)
            };
            let bound = hits("min");
            for row in POLICIES {
                assert!(
                    hits(row.name) <= bound,
                    "{} with {capacity} pages",
                    row.name
                );
            }
        }
    }
}

#[test]
fn a_loop_longer_than_memory_has_the_hits_that_theory_says() {
    // A loop over n pages in a memory of c, after the first round.
    let (n, c, rounds) = (500u32, 200u32, 400u32);
    let refs: Vec<u32> = (0..n * rounds).map(|at| at % n).collect();
    let mut min = Cache::new(Min::new(MinConfig::new(c)).expect("min"), 500);
    // MIN keeps c - 1 pages of the loop and passes the others through one frame; which
    // ones it keeps moves on, so that of n - 1 references c - 1 hit.
    let expected = f64::from(c - 1) / f64::from(n - 1);
    let share = min.hits(&refs) as f64 / f64::from(n * (rounds - 1));
    assert!((share - expected).abs() < 0.002, "{share} for {expected}");
    // LIRS keeps its LIR blocks, 99 % of memory, for ever.
    let mut lirs = Cache::new(Lirs::new(LirsConfig::new(c)).expect("lirs"), 500);
    assert_eq!(lirs.hits(&refs), u64::from((c - 2) * (rounds - 1)));
}

/// A policy behind a pointer is one as well.
struct Boxed(Box<dyn Replacement>);

mod boxed_policy {
    use super::Boxed;
    use piebald_policy::contract::replacement::{
        BrokenOrder, Gone, Insert, PageRef, Replacement, State, Touch,
    };
    use piebald_units::Picos;

    impl Replacement for Boxed {
        fn capacity(&self) -> u32 {
            self.0.capacity()
        }
        fn slots(&self) -> u32 {
            self.0.slots()
        }
        fn miss(&mut self, ghost: Option<PageRef>, insert: &Insert, now: Picos) {
            self.0.miss(ghost, insert, now);
        }
        fn insert(&mut self, page: PageRef, insert: &Insert, now: Picos) {
            self.0.insert(page, insert, now);
        }
        fn hit(&mut self, page: PageRef, touch: Touch, now: Picos) {
            self.0.hit(page, touch, now);
        }
        fn propose(&self, out: &mut [PageRef]) -> usize {
            self.0.propose(out)
        }
        fn detach(&mut self, page: PageRef) {
            self.0.detach(page);
        }
        fn reattach(&mut self, page: PageRef) {
            self.0.reattach(page);
        }
        fn forget(&mut self, page: PageRef, why: Gone) {
            self.0.forget(page, why);
        }
        fn evict(&mut self) -> Option<PageRef> {
            self.0.evict()
        }
        fn dropped(&mut self) -> Option<PageRef> {
            self.0.dropped()
        }
        fn state(&self, page: PageRef) -> State {
            self.0.state(page)
        }
        fn resident(&self) -> u32 {
            self.0.resident()
        }
        fn validate(&self) -> Result<(), BrokenOrder> {
            self.0.validate()
        }
    }
}
