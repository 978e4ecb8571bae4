//! FIFO, LRU, CLOCK and SIEVE against oracles, and their worked examples.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::replacement_kit::{
    Memory, NOW, Oracle, agree, coldest, misses, propose, readahead, wrong_calls_change_nothing,
};
use piebald_policy::{
    contract::replacement::{Base, Fetch, Gone, Insert, PageRef, Replacement, State, Touch, Via},
    replacement::{Clock, ClockConfig, Config, Fifo, Lru, NewError, Sieve, Slots},
};

/// What the four oracles share: pages with a count of uses, oldest first, and those
/// that are detached.
#[derive(Clone, Default)]
struct Queue {
    pages: VecDeque<(u32, u32)>,
    detached: BTreeMap<u32, u32>,
    dropped: BTreeSet<u32>,
}

impl Queue {
    fn place(&self, page: u32) -> Option<usize> {
        self.pages.iter().position(|(p, _)| *p == page)
    }

    fn uses_mut(&mut self, page: u32) -> &mut u32 {
        match self.place(page) {
            Some(i) => &mut self.pages[i].1,
            None => self.detached.get_mut(&page).unwrap(),
        }
    }

    fn remove(&mut self, page: u32) {
        if let Some(i) = self.place(page) {
            self.pages.remove(i);
        } else {
            self.detached.remove(&page).unwrap();
        }
        self.dropped.insert(page);
    }

    fn detach(&mut self, page: u32) {
        let i = self.place(page).unwrap();
        let (page, uses) = self.pages.remove(i).unwrap();
        self.detached.insert(page, uses);
    }

    fn state(&self, page: u32) -> State {
        match (self.place(page), self.detached.contains_key(&page)) {
            (Some(_), _) => State::Resident,
            (_, true) => State::Detached,
            _ => State::Unknown,
        }
    }

    fn coldest(&self) -> Vec<u32> {
        self.pages.iter().map(|(page, _)| *page).collect()
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Fifo,
    Lru,
    /// With so many uses counted.
    Clock(u32),
    Sieve,
}

#[derive(Clone)]
struct Plain {
    kind: Kind,
    queue: Queue,
    /// SIEVE's hand: the page that it is on.
    hand: Option<u32>,
    /// Read ahead and not used yet.
    unseen: BTreeSet<u32>,
}

impl Plain {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            queue: Queue::default(),
            hand: None,
            unseen: BTreeSet::new(),
        }
    }

    /// The first use of a page that was read ahead, if it is on the list.
    fn see(&mut self, page: u32, place: usize) {
        if let Kind::Clock(_) = self.kind {
            self.queue.pages.remove(place);
            self.queue.pages.push_back((page, 0));
        }
    }

    /// Where the next eviction finds its victim.
    fn turn(&mut self) -> Option<u32> {
        let pages = &mut self.queue.pages;
        match self.kind {
            Kind::Fifo | Kind::Lru => pages.front().map(|(page, _)| *page),
            Kind::Clock(_) => loop {
                let (page, uses) = *pages.front()?;
                if uses == 0 {
                    return Some(page);
                }
                pages.pop_front();
                pages.push_back((page, uses - 1));
            },
            Kind::Sieve => {
                let mut i = match self.hand {
                    Some(page) => self.queue.place(page).unwrap(),
                    None => 0,
                };
                loop {
                    let len = self.queue.pages.len();
                    let (page, visited) = self.queue.pages.get_mut(i)?;
                    if *visited == 0 {
                        self.hand = Some(*page);
                        return Some(*page);
                    }
                    *visited = 0;
                    i = (i + 1) % len;
                }
            }
        }
    }

    /// The hand leaves a page that goes: to the next newer one, or to the end.
    fn pass_on_the_hand(&mut self, page: u32) {
        if self.hand == Some(page) {
            let next = self.queue.place(page).unwrap() + 1;
            self.hand = self.queue.pages.get(next).map(|(page, _)| *page);
        }
    }

    /// CLOCK's rule for a victim that was chosen from several proposals.
    fn turn_up_to(&mut self, page: u32) {
        let before = self.queue.place(page).unwrap();
        let old: Vec<_> = self.queue.pages.drain(..before).collect();
        let (stay, turn): (Vec<_>, Vec<_>) = old.into_iter().partition(|(_, uses)| *uses == 0);
        stay.into_iter()
            .rev()
            .for_each(|page| self.queue.pages.push_front(page));
        self.queue
            .pages
            .extend(turn.into_iter().map(|(page, uses)| (page, uses - 1)));
    }

    fn chosen(&mut self, page: u32, for_good: bool) {
        let uses = *self.queue.uses_mut(page);
        let is_first = self.victims().first() == Some(&page);
        match self.kind {
            Kind::Clock(_) if uses == 0 => self.turn_up_to(page),
            Kind::Clock(_) | Kind::Sieve if is_first && (for_good || uses == 0) => {
                self.turn();
            }
            _ => {}
        }
    }
}

impl Oracle for Plain {
    fn insert(&mut self, page: u32, insert: &Insert) {
        self.queue.pages.push_back((page, 0));
        match insert.fetch {
            Fetch::Demand => self.unseen.remove(&page),
            Fetch::Readahead => self.unseen.insert(page),
        };
    }

    fn hit(&mut self, page: u32, _: Via) {
        let kind = self.kind;
        let unseen = self.unseen.remove(&page);
        match (kind, self.queue.place(page)) {
            (Kind::Clock(_) | Kind::Sieve, Some(i)) if unseen => self.see(page, i),
            (Kind::Fifo, _) => {}
            (Kind::Lru, Some(i)) => {
                let page = self.queue.pages.remove(i).unwrap();
                self.queue.pages.push_back(page);
            }
            _ => {
                let most = if let Kind::Clock(most) = kind {
                    most
                } else {
                    1
                };
                let uses = self.queue.uses_mut(page);
                *uses = most.min(*uses + 1);
            }
        }
    }

    fn evict(&mut self) -> Option<u32> {
        let page = self.turn()?;
        self.pass_on_the_hand(page);
        self.queue.remove(page);
        Some(page)
    }

    fn detach(&mut self, page: u32) {
        self.chosen(page, false);
        self.pass_on_the_hand(page);
        self.queue.detach(page);
    }

    fn reattach(&mut self, page: u32) {
        let uses = self.queue.detached.remove(&page).unwrap();
        let left = match self.kind {
            Kind::Clock(_) => uses.saturating_sub(1),
            _ => 0,
        };
        self.queue.pages.push_back((page, left));
    }

    fn forget(&mut self, page: u32, why: Gone) {
        if self.queue.place(page).is_some() {
            if why == Gone::Evicted {
                self.chosen(page, true);
            }
            self.pass_on_the_hand(page);
        }
        self.queue.remove(page);
    }

    fn dropped(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.queue.dropped)
    }

    fn state(&self, page: u32) -> State {
        self.queue.state(page)
    }

    fn coldest(&self) -> Vec<u32> {
        self.queue.coldest()
    }

    fn wanted(&self, page: u32) -> bool {
        let attached = self.queue.pages.iter().find(|(p, _)| *p == page);
        let uses = attached
            .map(|(_, uses)| uses)
            .or(self.queue.detached.get(&page));
        uses.is_some_and(|uses| *uses > 0)
    }
}

fn fifo(capacity: u32) -> Fifo<Memory> {
    let config = Config::new(capacity);
    Fifo::new(Slots::collect(config.slots().unwrap()), config).unwrap()
}

fn lru(capacity: u32) -> Lru<Memory> {
    let config = Config::new(capacity);
    Lru::new(Slots::collect(config.slots().unwrap()), config).unwrap()
}

fn sieve(capacity: u32) -> Sieve<Memory> {
    let config = Config::new(capacity);
    Sieve::new(Slots::collect(config.slots().unwrap()), config).unwrap()
}

fn clock_with(config: ClockConfig) -> Clock<Memory> {
    Clock::new(Slots::collect(config.slots().unwrap()), config).unwrap()
}

fn clock(capacity: u32) -> Clock<Memory> {
    clock_with(ClockConfig::new(capacity))
}

#[test]
fn fuzz_fifo_agrees_with_its_oracle() {
    agree(|capacity, _| (fifo(capacity), Plain::new(Kind::Fifo)));
}

#[test]
fn fuzz_lru_agrees_with_its_oracle() {
    agree(|capacity, _| (lru(capacity), Plain::new(Kind::Lru)));
}

#[test]
fn fuzz_clock_agrees_with_its_oracle_whatever_it_counts() {
    agree(|capacity, seed| {
        let uses = [1, 1, 2, 3, 15][seed as usize % 5];
        // The oracle has no bound, so no list is longer than the reach.
        let config = ClockConfig {
            uses,
            reach: 40,
            ..ClockConfig::new(capacity)
        };
        (clock_with(config), Plain::new(Kind::Clock(uses.into())))
    });
}

#[test]
fn fuzz_sieve_agrees_with_its_oracle() {
    agree(|capacity, _| (sieve(capacity), Plain::new(Kind::Sieve)));
}

#[test]
fn wrong_calls_to_plain_policies_change_nothing() {
    wrong_calls_change_nothing(fifo(4));
    wrong_calls_change_nothing(lru(4));
    wrong_calls_change_nothing(clock(4));
    wrong_calls_change_nothing(sieve(4));
}

fn fill<P: Replacement>(policy: &mut P, pages: impl IntoIterator<Item = u32>) {
    for page in pages {
        policy.insert(PageRef(page), &Insert::default(), NOW);
    }
}

fn touch<P: Replacement>(policy: &mut P, pages: impl IntoIterator<Item = u32>) {
    for page in pages {
        policy.hit(PageRef(page), Touch::default(), NOW);
    }
}

fn evict<P: Replacement>(policy: &mut P) -> u32 {
    let page = policy.evict().expect("a victim");
    while policy.dropped().is_some() {}
    page.0
}

#[test]
fn the_hand_of_sieve_stays_where_it_was_and_newcomers_go_first() {
    // NSDI'24, algorithm 1, step by step: the hand skips marked pages, clears them,
    // and stays; a later eviction goes on from there and not from the oldest page.
    let mut policy = sieve(7);
    let [a, b, c, d, e, f, g] = [0, 1, 2, 3, 4, 5, 6];
    fill(&mut policy, [a, b, c, d, e, f, g]);
    touch(&mut policy, [a, b, g]);
    assert_eq!(evict(&mut policy), c, "a and b are passed and cleared");
    fill(&mut policy, [7]);
    touch(&mut policy, [a, d]);
    assert_eq!(evict(&mut policy), e, "the hand went on from c, past d");
    fill(&mut policy, [c]);
    assert_eq!(evict(&mut policy), f);
    fill(&mut policy, [e]);
    assert_eq!(evict(&mut policy), 7, "g was marked, the newcomer was not");
    assert_eq!(evict(&mut policy), c, "newcomers go while old pages stay");
    assert_eq!(evict(&mut policy), e);
    assert_eq!(evict(&mut policy), b, "round again: a was marked meanwhile");
}

#[test]
fn clock_gives_a_young_page_one_more_turn_at_the_hot_end() {
    // DULO, section 3.4.
    let mut policy = clock(3);
    fill(&mut policy, [0, 1, 2]);
    touch(&mut policy, [0, 0, 0]);
    assert_eq!(propose(&policy, 3), [1, 2, 0], "a second chance comes last");
    assert_eq!(evict(&mut policy), 1);
    assert_eq!(coldest(&policy, 3), [2, 0], "page 0 went to the hot end");
    assert!(!policy.wanted(PageRef(0)), "and is young no more");
    fill(&mut policy, [1]);
    assert_eq!([evict(&mut policy), evict(&mut policy)], [2, 0]);
}

#[test]
fn the_first_use_of_what_was_read_ahead_is_no_second_one() {
    let ahead = readahead();
    let (mut clock, mut sieve) = (clock(4), sieve(4));
    for policy in [&mut clock as &mut dyn Replacement, &mut sieve] {
        policy.insert(PageRef(0), &ahead, NOW);
        for page in [1, 2] {
            policy.insert(PageRef(page), &Insert::default(), NOW);
        }
        policy.hit(PageRef(0), Touch::default(), NOW);
    }
    assert!(!clock.wanted(PageRef(0)) && !sieve.wanted(PageRef(0)));
    let order = |page: PageRef| page.0;
    assert_eq!(clock.evict().map(order), Some(1), "0 is the newest now");
    assert_eq!(sieve.evict().map(order), Some(0), "nothing moves");
    clock.hit(PageRef(0), Touch::default(), NOW);
    assert!(clock.wanted(PageRef(0)));
    let mut detached = self::clock(4);
    detached.insert(PageRef(0), &ahead, NOW);
    detached.detach(PageRef(0));
    detached.hit(PageRef(0), Touch::default(), NOW);
    assert!(detached.wanted(PageRef(0)), "it is to come back");
    detached.reattach(PageRef(0));
    assert!(!detached.wanted(PageRef(0)), "used once");
}

#[test]
fn clock_passes_over_what_cannot_leave_and_goes_on() {
    let mut policy = clock_with(ClockConfig {
        reach: 1,
        ..ClockConfig::new(6)
    });
    fill(&mut policy, 0..6);
    touch(&mut policy, [1, 3]);
    assert_eq!(propose(&policy, 3), [0, 2, 4]);
    policy.forget(PageRef(2), Gone::Evicted);
    assert_eq!(
        coldest(&policy, 6),
        [0, 3, 4, 5, 1],
        "0 stays, 1 had its turn"
    );
    policy.forget(PageRef(5), Gone::Evicted);
    assert_eq!(
        coldest(&policy, 6),
        [0, 3, 4, 1],
        "two passed over are out of reach: 3 is left alone"
    );
    assert!(policy.wanted(PageRef(3)));
}

#[test]
fn pages_of_the_cold_end_can_be_taken_and_given_back_as_dulo_does() {
    let mut policy = clock(5);
    fill(&mut policy, 0..5);
    touch(&mut policy, 0..5);
    for page in 0..3 {
        assert_eq!(coldest(&policy, 1), [page]);
        policy.detach(PageRef(page));
    }
    assert!(
        policy.wanted(PageRef(3)) && policy.wanted(PageRef(4)),
        "kept"
    );
    assert!(policy.wanted(PageRef(0)), "youth goes along");
    policy.reattach(PageRef(0));
    assert!(!policy.wanted(PageRef(0)), "its turn is spent");
    policy.forget(PageRef(1), Gone::Evicted);
    assert_eq!(coldest(&policy, 5), [3, 4, 0]);
    assert_eq!(policy.resident(), 4);
    assert_eq!(policy.validate(), Ok(()));
}

#[test]
fn clock_of_unused_pages_is_fifo_and_lru_evicts_by_last_use() {
    let stream = |n: u32| (0..n).map(|i| (i * i) % 61);
    let (mut a, mut b) = (clock(16), fifo(16));
    let never_twice = || 0..1000;
    assert_eq!(misses(&mut a, never_twice()), misses(&mut b, never_twice()));
    let mut stack = lru(3);
    fill(&mut stack, [0, 1, 2]);
    touch(&mut stack, [0, 1]);
    assert_eq!(propose(&stack, 3), [2, 0, 1]);
    // A loop one page longer than memory: the worst case of both.
    let around = || (0..1000).map(|i| i % 17);
    assert_eq!(misses(&mut lru(16), around()), 1000);
    assert_eq!(misses(&mut fifo(16), around()), 1000);
    // With all in memory, only first uses miss.
    let keys: BTreeSet<u32> = stream(500).collect();
    assert_eq!(misses(&mut lru(61), stream(500)), keys.len() as u64);
}

#[test]
fn a_page_read_ahead_and_never_used_can_be_evicted() {
    let mut policy = clock(2);
    policy.insert(PageRef(0), &readahead(), NOW);
    assert_eq!(policy.evict(), Some(PageRef(0)));
}

#[test]
fn sizes_that_do_not_fit_are_refused_with_their_names() {
    assert_eq!(Config::new(0).slots(), Err(NewError::Capacity));
    let huge = Config::new(u32::MAX).slots().unwrap_err();
    assert_eq!(
        huge.to_string(),
        "4294967296 numbers are needed: at most 2147483648 are allowed"
    );
    let short = Memory {
        links: Slots::<Vec<_>, Vec<u8>>::collect(5).links,
        marks: vec![0; 4],
    };
    let error = Lru::new(short, Config::new(4)).unwrap_err();
    assert_eq!(error, NewError::Marks { lent: 4, needed: 5 });
    let error = Fifo::new(Memory::collect(4), Config::new(4)).unwrap_err();
    assert_eq!(error.to_string(), "4 links are lent: at least 5 are needed");
    for uses in [0, 16] {
        let config = ClockConfig {
            uses,
            ..ClockConfig::new(4)
        };
        let error = config.slots().unwrap_err().to_string();
        assert_eq!(error, format!("uses is {uses}: allowed are 1 to 15"));
    }
}
