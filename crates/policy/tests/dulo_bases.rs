//! DULO on the core's own policies.

use std::collections::BTreeSet;

use crate::dulo_kit::{Host, NOW, Random, VecStore, dulo_on, setting, sizes};
use crate::policies::{clock, fifo, lru, s3_fifo, sieve, two_lists, two_q};
use piebald_policy::{
    contract::replacement::{
        Base, Gone, Insert, PageKind, PageRef, Replacement, State, Touch, Via,
    },
    dulo::{Config, Cost, Dulo},
};
use piebald_units::DiskBlock;

fn pages<P: Replacement>(policy: &P, which: impl Fn(State) -> bool) -> Vec<PageRef> {
    let fits = |page: &PageRef| which(policy.state(*page));
    (0..policy.slots()).map(PageRef).filter(fits).collect()
}

/// What the contract says of proposals, whatever the base.
fn check<B: Base>(dulo: &Dulo<B, VecStore>, random: &mut Random) {
    dulo.validate().unwrap();
    let attached: BTreeSet<PageRef> = pages(dulo, |s| s == State::Resident).into_iter().collect();
    let mut all = vec![PageRef(u32::MAX); attached.len() + 2];
    let n = dulo.propose(&mut all);
    all.truncate(n);
    assert_eq!(all.iter().copied().collect::<BTreeSet<_>>(), attached);
    assert_eq!(n, attached.len(), "each page is proposed once");
    let mut some = vec![PageRef(u32::MAX); random.below(n as u64 + 1) as usize];
    assert_eq!(dulo.propose(&mut some), some.len());
    if let [first, ..] = some[..] {
        assert_eq!(first, all[0]);
    }
}

fn one_call<B: Base>(host: &mut Host<Dulo<B, VecStore>>, random: &mut Random) {
    let any = |random: &mut Random, pages: Vec<PageRef>| {
        let n = pages.len() as u64;
        (n > 0).then(|| pages[random.below(n) as usize])
    };
    let resident = any(random, pages(&host.policy, |s| s == State::Resident));
    let held = any(random, pages(&host.policy, |s| s == State::Detached));
    let ghost = any(random, pages(&host.policy, |s| s == State::Ghost));
    match (random.below(24), resident, held, ghost) {
        (0, Some(page), _, _) => host.policy.detach(page),
        (1 | 2, _, Some(page), _) => host.policy.reattach(page),
        (3, Some(page), _, _) => host.forget(page, Gone::Evicted),
        (4, Some(page), _, _) => host.forget(page, Gone::Deleted),
        (5, _, Some(page), _) => host.forget(page, Gone::Evicted),
        (6, _, _, Some(page)) => host.forget(page, Gone::Deleted),
        (7, Some(page), _, _) => {
            let touch = Touch {
                via: Via::Mapping,
                ..Touch::default()
            };
            host.policy.hit(page, touch, NOW);
        }
        (8, Some(_), _, _) => {
            let mut first = [PageRef(0)];
            assert_eq!(host.policy.propose(&mut first), 1);
            let name = host.name(first[0]);
            assert_eq!(host.evict(), name, "the first proposal is evicted");
        }
        (_, None, Some(_), _) => {}
        _ => {
            let name = match random.below(3) {
                0 => random.below(400),
                1 => 1000 + random.below(30),
                _ => 2000 + random.below(4) * 64 + random.below(12),
            };
            host.access(name);
        }
    }
}

/// Random lists of every call of the contract.
fn keeps_its_books<B: Base>(make: impl Fn(u32) -> B) {
    for (seed, capacity) in [(1, 2), (2, 9), (3, 40), (4, 150)] {
        for config in [Config::scaled(capacity), Config::scaled(capacity).linux()] {
            let mut random = Random(seed);
            let dulo = dulo_on(make(capacity), config, Cost::Uniform, None);
            let mut host = Host::new(dulo);
            for _ in 0..setting("PIEBALD_DULO_OPS", 3000) {
                one_call(&mut host, &mut random);
                check(&host.policy, &mut random);
            }
            let counters = host.policy.counters();
            assert!(counters.sequencings > 20, "{capacity}: {counters:?}");
        }
    }
}

#[test]
fn on_fifo_every_call_keeps_the_books() {
    keeps_its_books(fifo);
}

#[test]
fn on_lru_every_call_keeps_the_books() {
    keeps_its_books(lru);
}

#[test]
fn on_clock_every_call_keeps_the_books() {
    keeps_its_books(clock);
}

#[test]
fn on_sieve_every_call_keeps_the_books() {
    keeps_its_books(sieve);
}

#[test]
fn on_2q_every_call_keeps_the_books() {
    keeps_its_books(two_q);
}

#[test]
fn on_s3_fifo_every_call_keeps_the_books() {
    keeps_its_books(s3_fifo);
}

#[test]
fn on_linux_lists_every_call_keeps_the_books() {
    keeps_its_books(two_lists);
}

/// Victims of a base alone and of DULO on it that may not form sequences.
fn degenerates<B: Base>(make: impl Fn(u32) -> B, capacity: u32) {
    let config = Config {
        max_sequence: 1,
        ..Config::scaled(capacity)
    };
    let mut alone = Host::new(make(capacity));
    let mut dulo = Host::new(dulo_on(make(capacity), config, Cost::Uniform, None));
    let mut random = Random(u64::from(capacity));
    for turn in 0..30_000u64 {
        let name = match turn / 1000 % 3 {
            0 => turn % (u64::from(capacity) * 2),
            1 => random.below(u64::from(capacity) * 3),
            _ => random.below(20) * random.below(30),
        };
        alone.access(name);
        dulo.access(name);
    }
    assert!(alone.victims.len() > 5000);
    assert_eq!(alone.victims, dulo.victims);
}

#[test]
fn without_sequences_it_is_clock_or_fifo() {
    for capacity in [2, 20, 100, 333] {
        degenerates(clock, capacity);
        degenerates(fifo, capacity);
    }
}

/// Files read once among blocks that come back now and then, a few too many for
/// memory: the blocks' misses on a base alone and with DULO on it.
fn saved<B: Base>(make: impl Fn(u32) -> B) -> (u32, u32) {
    let capacity = 400;
    let run = |max_sequence| {
        let config = Config {
            max_sequence,
            ..Config::scaled(capacity)
        };
        let dulo = dulo_on(make(capacity), config, Cost::Uniform, None);
        let (mut host, mut random) = (Host::new(dulo), Random(4));
        let mut misses = 0;
        for round in 0..200 {
            host.access_all((0..64).map(|n| 1_000_000 + round * 64 + n));
            for _ in 0..32 {
                misses += u32::from(!host.access(random.below(250) * 1000));
            }
        }
        misses
    };
    (run(1), run(128))
}

#[test]
fn sequences_leave_first_on_every_base() {
    let all = [
        ("fifo", saved(fifo)),
        ("lru", saved(lru)),
        ("clock", saved(clock)),
        ("sieve", saved(sieve)),
        ("linux", saved(two_lists)),
        ("2q", saved(two_q)),
        ("s3-fifo", saved(s3_fifo)),
    ];
    for (name, (without, with)) in all {
        println!("{name}: {without} misses of single blocks without sequences, {with} with");
        assert!(with <= without, "{name}: {with} against {without}");
    }
}

#[test]
fn anonymous_pages_without_a_slot_are_single_blocks() {
    let mut dulo = dulo_on(clock(8), sizes(0, 4, 4), Cost::Uniform, None);
    let insert = Insert {
        kind: PageKind::Anon,
        ..Insert::default()
    };
    for page in 0..8 {
        dulo.insert(PageRef(page), &insert, NOW);
    }
    assert_eq!((dulo.formed(1), dulo.clock()), (8, 2));
    dulo.place(PageRef(7), Some(DiskBlock(3)));
    dulo.validate().unwrap();
}
