//! DULO against an obvious oracle under random calls, on three bases.
//!
//! `PIEBALD_DULO_OPS` sets the number of calls per configuration (default 3,000).

use crate::dulo_kit::{
    Kind, NOW, Random, Simple, SimpleDulo, dulo_on, oracle::Oracle, setting, sizes,
};
use piebald_policy::{
    contract::replacement::{Gone, Insert, PageRef, Replacement, State, Touch, Via},
    dulo::{Config, Cost, Hits, Rest},
};
use piebald_units::DiskBlock;

/// References as programs make them: runs, loops over files, single blocks.
struct Stream {
    random: Random,
    next: u64,
    left: u64,
    space: u64,
}

impl Stream {
    fn next(&mut self) -> u64 {
        if self.left == 0 {
            let (start, length) = match self.random.below(4) {
                0 => (self.random.below(self.space), 1 + self.random.below(12)),
                1 => (self.random.below(4) * 16, 16),
                _ => (self.random.below(self.space), 1),
            };
            (self.next, self.left) = (start, length);
        }
        self.left -= 1;
        self.next += 1;
        self.next - 1
    }
}

/// Both, and what is in memory.
struct Pair {
    dulo: SimpleDulo,
    oracle: Oracle,
    stream: Stream,
    random: Random,
    blocks: Vec<Option<u64>>,
    free: Vec<u32>,
    capacity: u32,
    checks: u64,
    calls: u64,
}

impl Pair {
    fn new(kind: Kind, capacity: u32, config: Config, seed: u64) -> Self {
        let base = Simple::new(kind, capacity, capacity + 2);
        let space = u64::from(capacity) * 3;
        Self {
            dulo: dulo_on(base.clone(), config, Cost::Uniform, None),
            oracle: Oracle::new(base, config),
            stream: Stream {
                random: Random(seed),
                next: 0,
                left: 0,
                space,
            },
            random: Random(!seed),
            blocks: vec![None; capacity as usize + 2],
            free: (0..capacity + 2).collect(),
            capacity,
            checks: 0,
            calls: 0,
        }
    }

    fn any(&mut self, state: State) -> Option<PageRef> {
        let fits = |p: &PageRef| self.dulo.state(*p) == state;
        let pages: Vec<PageRef> = (0..self.dulo.slots()).map(PageRef).filter(fits).collect();
        let nr = pages.len() as u64;
        (nr > 0).then(|| pages[self.random.below(nr) as usize])
    }

    fn forget(&mut self, page: PageRef, why: Gone) {
        self.dulo.forget(page, why);
        self.oracle.forget(page, why);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(page) = self.dulo.dropped() {
            assert_eq!(self.oracle.base.dropped(), Some(page));
            self.blocks[page.index()] = None;
            self.free.push(page.0);
        }
        assert_eq!(self.oracle.base.dropped(), None);
    }

    /// Evicts one page the fast way.
    fn evict(&mut self) -> bool {
        let first = self.oracle.proposals().first().copied();
        let evicted = self.dulo.evict();
        assert_eq!(evicted.map(|p| p.0), first, "the first proposal is evicted");
        if let Some(page) = evicted {
            self.oracle.forget(page, Gone::Evicted);
        }
        self.drain();
        evicted.is_some()
    }

    fn access(&mut self) {
        let block = self.stream.next();
        if let Some(at) = self.blocks.iter().position(|b| *b == Some(block)) {
            let touch = Touch {
                via: match self.random.below(4) {
                    0 => Via::Mapping,
                    _ => Via::Call,
                },
                ..Touch::default()
            };
            self.dulo.hit(PageRef(at as u32), touch, NOW);
            self.oracle.hit(PageRef(at as u32), touch);
            return;
        }
        let placed = self.random.below(16) != 0;
        let insert = Insert {
            at: placed.then_some(DiskBlock(block)),
            ..Insert::default()
        };
        self.dulo.miss(None, &insert, NOW);
        self.oracle.miss(&insert);
        self.compare();
        while self.dulo.resident() >= self.capacity {
            if !self.evict() {
                return;
            }
        }
        let page = PageRef(self.free.pop().unwrap());
        self.blocks[page.index()] = Some(block);
        self.dulo.insert(page, &insert, NOW);
        self.oracle.insert(page, &insert);
    }

    fn other_call(&mut self) {
        let held = self.any(State::Detached);
        let resident = self.any(State::Resident);
        match (self.random.below(8), resident, held) {
            (0, Some(page), _) => self.forget(page, Gone::Evicted),
            (1, Some(page), _) => self.forget(page, Gone::Deleted),
            (2, Some(page), _) if self.random.below(2) == 0 => {
                self.dulo.detach(page);
                self.oracle.detach(page);
            }
            (3 | 4, _, Some(page)) => {
                self.dulo.reattach(page);
                self.oracle.reattach(page);
            }
            (5, _, Some(page)) => self.forget(page, Gone::Evicted),
            (6, Some(page), _) => {
                let at = (self.random.below(2) == 0).then(|| self.stream.next());
                self.dulo.place(page, at.map(DiskBlock));
                self.oracle.place(page, at);
            }
            // Memory shrinks for a while: below its capacity, too, pages leave.
            (7, Some(_), _) if self.random.below(20) == 0 => {
                for _ in 0..self.random.below(u64::from(self.capacity)) {
                    self.evict();
                    self.compare();
                }
            }
            _ => drop(self.evict()),
        }
    }

    fn compare(&mut self) {
        let dulo = &self.dulo;
        dulo.validate().unwrap();
        let standing = |page: PageRef| {
            let s = dulo.standing(page).unwrap();
            (page.0, s.h - dulo.inflation(), s.size)
        };
        let section: Vec<_> = dulo.evicting().map(standing).collect();
        assert_eq!(section, self.oracle.evicting());
        assert_eq!(dulo.base().cold_first(), self.oracle.base.cold_first());
        for block in 0..self.stream.space {
            assert_eq!(dulo.times(DiskBlock(block)), self.oracle.times(block));
        }
        let all = self.oracle.proposals();
        let nr = self.random.below(all.len() as u64 + 3) as usize;
        let mut out = vec![PageRef(u32::MAX); nr];
        let given = self.dulo.propose(&mut out);
        let given: Vec<u32> = out[..given].iter().map(|p| p.0).collect();
        assert_eq!(given, all[..nr.min(all.len())]);
        self.checks += 1;
    }

    fn run(&mut self, ops: u64, other: u64) {
        for _ in 0..ops {
            self.calls += 1;
            match self.random.below(100) < other {
                true => self.other_call(),
                false => self.access(),
            }
            self.compare();
        }
    }
}

fn configs() -> Vec<(u32, Config)> {
    vec![
        (8, sizes(0, 4, 4)),
        (9, sizes(1, 2, 6)),
        (24, sizes(4, 4, 16)),
        (40, sizes(10, 6, 24)),
        (
            33,
            Config {
                rest: Rest::Evicting,
                ..sizes(5, 8, 8)
            },
        ),
        (
            21,
            Config {
                max_sequence: 3,
                reach: 2,
                ..sizes(2, 5, 14)
            },
        ),
        (2, sizes(0, 1, 1)),
        (30, sizes(2, 4, 12)),
    ]
}

fn agree(kind: Kind, hits: Hits, other: u64) {
    let ops = setting("PIEBALD_DULO_OPS", 3_000);
    let mut joined = 0;
    for (seed, (capacity, config)) in (1u64..).zip(configs()) {
        let config = Config { hits, ..config };
        let mut pair = Pair::new(kind, capacity, config, seed);
        pair.run(ops, other);
        let c = pair.dulo.counters();
        assert!(c.sequencings > ops / 200, "{config:?}: {c:?}");
        assert!(pair.checks >= ops && pair.calls == ops);
        joined += (2..=128).map(|n| pair.dulo.formed(n)).sum::<u64>();
    }
    assert!(joined > 100, "the streams formed {joined} sequences");
}

#[test]
fn on_clock_it_agrees_with_the_oracle() {
    agree(Kind::Clock, Hits::Mark, 0);
}

#[test]
fn on_clock_with_every_call_of_the_contract_it_agrees_with_the_oracle() {
    agree(Kind::Clock, Hits::Mark, 20);
}

#[test]
fn on_two_lists_it_agrees_with_the_oracle() {
    agree(Kind::TwoLists, Hits::Promote, 15);
}

#[test]
fn on_lru_with_sequences_restored_it_agrees_with_the_oracle() {
    agree(Kind::Lru, Hits::Restore, 15);
}

#[test]
fn on_lru_with_marks_it_agrees_with_the_oracle() {
    agree(Kind::Lru, Hits::Mark, 10);
}

/// `L` grows without end, and is taken off every `H` now and then: no order changes.
#[test]
fn inflation_is_taken_off_without_changing_the_order() {
    let mut pair = Pair::new(Kind::Clock, 4, sizes(0, 1, 3), 99);
    pair.run(6_000, 0);
    assert!(
        pair.dulo.counters().renormalised >= 1,
        "{:?}",
        pair.dulo.counters()
    );
}
