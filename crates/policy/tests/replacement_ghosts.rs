//! 2Q and S3-FIFO, which remember pages that left, against oracles written from
//! their papers.

use crate::replacement_kit;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::replacement_kit::{
    Memory, NOW, Oracle, agree, coldest, drain, misses, propose, wrong_calls_change_nothing,
};
use piebald_policy::{
    contract::replacement::{Base, Fetch, Gone, Insert, PageRef, Replacement, State, Touch, Via},
    replacement::{
        NameLeaves, NewError, S3Fifo, S3FifoConfig, S3FifoRule, Slots, TwoQ, TwoQConfig,
    },
};

/// A queue, newest at the back.
type Queue = VecDeque<u32>;

fn take(queue: &mut Queue, page: u32) -> bool {
    let place = queue.iter().position(|p| *p == page);
    place.is_some_and(|i| queue.remove(i).is_some())
}

fn is_in(queue: &Queue, page: u32) -> bool {
    queue.contains(&page)
}

/// Names of pages that left, and what the host asked about.
#[derive(Clone)]
struct Names {
    queue: Queue,
    most: usize,
    leaves: NameLeaves,
    asked: BTreeSet<u32>,
    dropped: BTreeSet<u32>,
    /// Pages in memory that were read ahead and not used yet: was the name known?
    unseen: BTreeMap<u32, bool>,
}

impl Names {
    fn of(most: usize, leaves: NameLeaves) -> Self {
        Self {
            queue: Queue::new(),
            most,
            leaves,
            asked: BTreeSet::new(),
            dropped: BTreeSet::new(),
            unseen: BTreeMap::new(),
        }
    }

    /// The host asks for a page.
    fn ask(&mut self, page: Option<u32>) {
        self.asked.extend(page);
        if self.leaves == NameLeaves::AtMiss {
            self.queue.retain(|name| Some(*name) != page);
        }
    }

    /// A page left memory.
    fn add(&mut self, page: u32) {
        if self.unseen.remove(&page) == Some(false) {
            self.dropped.insert(page);
            return;
        }
        self.queue.push_back(page);
        if self.queue.len() > self.most {
            let last = self.queue.pop_front().unwrap();
            if !self.asked.contains(&last) {
                self.dropped.insert(last);
            }
        }
    }

    fn knows(&self, page: u32) -> bool {
        is_in(&self.queue, page) || self.asked.contains(&page)
    }

    /// A page comes: true if it was asked for while its name was known.
    fn proves_hot(&mut self, page: u32, insert: &Insert) -> bool {
        let known = self.remove(page);
        if insert.fetch == Fetch::Readahead {
            self.unseen.insert(page, known);
        }
        known && insert.fetch == Fetch::Demand
    }

    /// True if it was known.
    fn remove(&mut self, page: u32) -> bool {
        let was_asked = self.asked.remove(&page);
        take(&mut self.queue, page) || was_asked
    }
}

/// Which of the two queues in memory a page belongs to.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Side {
    /// A1in, small.
    New,
    /// Am, main.
    Hot,
}

// 2Q --------------------------------------------------------------------------

#[derive(Clone)]
struct FullTwoQ {
    a1in: Queue,
    am: Queue,
    a1out: Names,
    kin: usize,
    /// Detached pages: their queue, and whether one of Am was used.
    detached: BTreeMap<u32, (Side, bool)>,
}

impl FullTwoQ {
    fn new(capacity: u32, names: NameLeaves) -> Self {
        Self {
            a1in: Queue::new(),
            am: Queue::new(),
            a1out: Names::of(capacity as usize / 2, names),
            kin: capacity as usize / 4,
            detached: BTreeMap::new(),
        }
    }
}

impl Oracle for FullTwoQ {
    fn miss(&mut self, ghost: Option<u32>) {
        self.a1out.ask(ghost);
    }

    // "if X is on A1out then add X to the head of Am; else add X to the head of A1in"
    fn insert(&mut self, page: u32, insert: &Insert) {
        if self.a1out.proves_hot(page, insert) {
            self.am.push_back(page);
        } else {
            self.a1in.push_back(page);
        }
    }

    // "if X is on Am then move X to the head of Am; else if X is in A1in do nothing"
    fn hit(&mut self, page: u32, _: Via) {
        if take(&mut self.am, page) {
            self.am.push_back(page);
        }
        if self.a1out.unseen.remove(&page) == Some(true) {
            if take(&mut self.a1in, page) {
                self.am.push_back(page);
            } else {
                self.detached.insert(page, (Side::Hot, true));
            }
        }
        if let Some((side, used)) = self.detached.get_mut(&page) {
            *used = *side == Side::Hot;
        }
    }

    // "reclaimfor": the tail of A1in if |A1in| > Kin, remembered; else Am's tail.
    fn evict(&mut self) -> Option<u32> {
        if self.a1in.len() > self.kin || self.am.is_empty() {
            let page = self.a1in.pop_front()?;
            self.a1out.add(page);
            return Some(page);
        }
        let page = self.am.pop_front()?;
        self.a1out.dropped.insert(page);
        Some(page)
    }

    fn detach(&mut self, page: u32) {
        let side = if take(&mut self.am, page) {
            Side::Hot
        } else {
            Side::New
        };
        take(&mut self.a1in, page);
        self.detached.insert(page, (side, false));
    }

    fn reattach(&mut self, page: u32) {
        match self.detached.remove(&page).unwrap().0 {
            Side::New => self.a1in.push_back(page),
            Side::Hot => self.am.push_back(page),
        }
    }

    fn forget(&mut self, page: u32, why: Gone) {
        let was_new =
            take(&mut self.a1in, page) || matches!(self.detached.get(&page), Some((Side::New, _)));
        take(&mut self.am, page);
        self.detached.remove(&page);
        self.a1out.remove(page);
        if was_new && why == Gone::Evicted {
            self.a1out.add(page);
        } else {
            self.a1out.unseen.remove(&page);
            self.a1out.dropped.insert(page);
        }
    }

    fn dropped(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.a1out.dropped)
    }

    fn state(&self, page: u32) -> State {
        if is_in(&self.a1in, page) || is_in(&self.am, page) {
            return State::Resident;
        }
        match (self.detached.contains_key(&page), self.a1out.knows(page)) {
            (true, _) => State::Detached,
            (_, true) => State::Ghost,
            _ => State::Unknown,
        }
    }

    fn coldest(&self) -> Vec<u32> {
        self.victims()
    }

    fn wanted(&self, page: u32) -> bool {
        self.detached.get(&page) == Some(&(Side::Hot, true))
    }
}

fn two_q_with(config: TwoQConfig) -> TwoQ<Memory> {
    TwoQ::new(Slots::collect(config.slots().unwrap()), config).unwrap()
}

fn two_q(capacity: u32) -> TwoQ<Memory> {
    two_q_with(TwoQConfig::new(capacity))
}

#[test]
fn fuzz_two_q_agrees_with_its_oracle() {
    for names in [NameLeaves::AtInsert, NameLeaves::AtMiss] {
        agree(|capacity, _| {
            let config = TwoQConfig {
                names,
                ..TwoQConfig::new(capacity)
            };
            (two_q_with(config), FullTwoQ::new(capacity, names))
        });
    }
}

// S3-FIFO ---------------------------------------------------------------------

#[derive(Clone)]
struct S3 {
    small: Queue,
    main: Queue,
    ghost: Names,
    share: usize,
    uses: BTreeMap<u32, u32>,
    detached: BTreeMap<u32, Side>,
    rule: S3FifoRule,
    has_evicted: bool,
}

impl S3 {
    fn new(capacity: u32, rule: S3FifoRule) -> Self {
        let names = match rule {
            S3FifoRule::Paper => NameLeaves::AtInsert,
            S3FifoRule::LibCacheSim | S3FifoRule::Artifact => NameLeaves::AtMiss,
        };
        Self {
            small: Queue::new(),
            main: Queue::new(),
            ghost: Names::of(capacity as usize * 9 / 10, names),
            share: (capacity as usize / 10).max(1),
            uses: BTreeMap::new(),
            detached: BTreeMap::new(),
            rule,
            has_evicted: false,
        }
    }

    fn uses(&self, page: u32) -> u32 {
        self.uses.get(&page).copied().unwrap_or(0)
    }

    // "function evictS": until it evicts or small is empty; to the letter of the paper
    // also until small has no more than its share, for then main is full.
    fn evict_small(&mut self) -> Option<u32> {
        let is_due = |s: &Self| s.small.len() >= s.share || s.main.is_empty();
        let mut goes_on = is_due(self);
        while goes_on {
            let t = self.small.pop_front()?;
            if self.uses(t) > 1 {
                self.uses.insert(t, 0);
                self.main.push_back(t);
                goes_on = match self.rule {
                    S3FifoRule::Paper => is_due(self),
                    _ => !self.small.is_empty(),
                };
            } else {
                self.uses.remove(&t);
                self.ghost.add(t);
                return Some(t);
            }
        }
        None
    }

    // "function evictM"
    fn evict_main(&mut self) -> Option<u32> {
        loop {
            let t = self.main.pop_front()?;
            match self.uses(t) {
                0 => {
                    self.uses.remove(&t);
                    self.ghost.unseen.remove(&t);
                    self.ghost.dropped.insert(t);
                    return Some(t);
                }
                uses => {
                    self.uses.insert(t, uses - 1);
                    self.main.push_back(t);
                }
            }
        }
    }

    fn remove(&mut self, page: u32) -> Option<Side> {
        self.uses.remove(&page);
        if take(&mut self.small, page) {
            return Some(Side::New);
        }
        if take(&mut self.main, page) {
            return Some(Side::Hot);
        }
        self.detached.remove(&page)
    }

    fn is_first(&self, page: u32) -> bool {
        self.clone().evict() == Some(page)
    }

    /// Everything on the way to the first victim, which stays.
    fn turn(&mut self) {
        let before = self.clone();
        let page = self.evict().unwrap();
        let was_promoted = is_in(&before.small, page) && !is_in(&self.ghost.queue, page);
        let in_main = is_in(&before.main, page) || (was_promoted && before.uses(page) > 1);
        if in_main {
            self.main.push_front(page);
        } else {
            self.small.push_front(page);
            self.uses.insert(page, before.uses(page));
        }
        self.ghost = before.ghost;
        self.has_evicted = before.has_evicted;
    }
}

impl Oracle for S3 {
    fn miss(&mut self, ghost: Option<u32>) {
        self.ghost.ask(ghost);
    }

    fn insert(&mut self, page: u32, insert: &Insert) {
        self.uses.insert(page, 0);
        let knows = self.ghost.knows(page);
        let fills = self.rule == S3FifoRule::LibCacheSim && !self.has_evicted;
        let is_filled = fills && self.small.len() >= self.share && !knows;
        if self.ghost.proves_hot(page, insert) || is_filled {
            self.main.push_back(page);
        } else {
            self.small.push_back(page);
        }
    }

    fn hit(&mut self, page: u32, _: Via) {
        let uses = match self.ghost.unseen.remove(&page) {
            Some(true) => 2,
            Some(false) => 0,
            None => 3.min(self.uses(page) + 1),
        };
        self.uses.insert(page, uses);
    }

    fn evict(&mut self) -> Option<u32> {
        let page = self.evict_small().or_else(|| self.evict_main());
        self.has_evicted |= page.is_some();
        page
    }

    fn detach(&mut self, page: u32) {
        let few = if is_in(&self.small, page) { 1 } else { 0 };
        if self.uses(page) <= few && self.is_first(page) {
            self.turn();
        }
        let uses = self.uses(page);
        let side = self.remove(page).unwrap();
        self.uses.insert(page, uses);
        self.detached.insert(page, side);
    }

    fn reattach(&mut self, page: u32) {
        let uses = self.uses(page);
        let (queue, left) = match self.detached.remove(&page).unwrap() {
            Side::New if uses > 1 => (&mut self.main, 0),
            Side::New => (&mut self.small, uses),
            Side::Hot => (&mut self.main, uses.saturating_sub(1)),
        };
        queue.push_back(page);
        self.uses.insert(page, left);
    }

    fn forget(&mut self, page: u32, why: Gone) {
        let is_detached = self.detached.contains_key(&page);
        if why == Gone::Evicted && !is_detached && self.is_first(page) {
            self.evict();
            return;
        }
        self.has_evicted |= why == Gone::Evicted;
        let side = self.remove(page);
        self.ghost.remove(page);
        if side == Some(Side::New) && why == Gone::Evicted {
            self.ghost.add(page);
        } else {
            self.ghost.unseen.remove(&page);
            self.ghost.dropped.insert(page);
        }
    }

    fn dropped(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.ghost.dropped)
    }

    fn state(&self, page: u32) -> State {
        if is_in(&self.small, page) || is_in(&self.main, page) {
            return State::Resident;
        }
        match (self.detached.contains_key(&page), self.ghost.knows(page)) {
            (true, _) => State::Detached,
            (_, true) => State::Ghost,
            _ => State::Unknown,
        }
    }

    fn coldest(&self) -> Vec<u32> {
        let above = (self.small.len() + 1).saturating_sub(self.share);
        let (first, last) = (0..above, above..self.small.len());
        let main = self.main.iter().copied();
        let from_small = |range: std::ops::Range<usize>| range.map(|i| self.small[i]);
        from_small(first)
            .chain(main)
            .chain(from_small(last))
            .collect()
    }

    fn wanted(&self, page: u32) -> bool {
        let is_new = is_in(&self.small, page) || self.detached.get(&page) == Some(&Side::New);
        self.uses(page) > u32::from(is_new)
    }
}

fn s3_with(config: S3FifoConfig) -> S3Fifo<Memory> {
    S3Fifo::new(Slots::collect(config.slots().unwrap()), config).unwrap()
}

fn s3_by(rule: S3FifoRule, capacity: u32) -> S3Fifo<Memory> {
    s3_with(S3FifoConfig {
        rule,
        ..S3FifoConfig::new(capacity)
    })
}

fn s3(capacity: u32) -> S3Fifo<Memory> {
    s3_with(S3FifoConfig::new(capacity))
}

#[test]
fn fuzz_s3_fifo_agrees_with_its_oracle() {
    for rule in [
        S3FifoRule::LibCacheSim,
        S3FifoRule::Artifact,
        S3FifoRule::Paper,
    ] {
        agree(|capacity, _| (s3_by(rule, capacity), S3::new(capacity, rule)));
    }
}

// By hand ---------------------------------------------------------------------

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

#[test]
fn wrong_calls_to_policies_with_ghosts_change_nothing() {
    wrong_calls_change_nothing(two_q(4));
    wrong_calls_change_nothing(s3(4));
}

#[test]
fn a_page_becomes_hot_in_2q_only_through_its_name() {
    // Kin 2, Kout 4.
    let mut policy = two_q(8);
    fill(&mut policy, 0..8);
    touch(&mut policy, [0, 0, 0]);
    assert_eq!(
        policy.evict(),
        Some(PageRef(0)),
        "uses in A1in do not count"
    );
    assert_eq!(policy.state(PageRef(0)), State::Ghost);
    assert_eq!(policy.dropped(), None, "the name is kept");
    policy.miss(Some(PageRef(0)), &Insert::default(), NOW);
    assert_eq!(policy.evict(), Some(PageRef(1)));
    fill(&mut policy, [0]);
    // Am: 0. A1in: 2 to 7, which go down to Kin before Am loses anything.
    assert_eq!(propose(&policy, 8), [2, 3, 4, 5, 0, 6, 7]);
}

#[test]
fn the_name_that_is_asked_for_survives_the_page_that_makes_room() {
    let mut policy = two_q(2); // Kin 0, Kout 1
    fill(&mut policy, [0, 1]);
    assert_eq!(policy.evict(), Some(PageRef(0)));
    fill(&mut policy, [2]);
    policy.miss(Some(PageRef(0)), &Insert::default(), NOW);
    assert_eq!(policy.evict(), Some(PageRef(1)), "pushes 0 out of A1out");
    assert_eq!(policy.state(PageRef(0)), State::Ghost);
    assert!(drain(&mut policy).is_empty());
    fill(&mut policy, [0]);
    assert_eq!(propose(&policy, 2), [2, 0], "0 is in Am");
    assert_eq!(policy.validate(), Ok(()));
}

#[test]
fn a_fetch_that_is_given_up_gives_up_its_name() {
    let mut policy = s3(4);
    fill(&mut policy, 0..4);
    assert_eq!(policy.evict(), Some(PageRef(0)));
    policy.miss(Some(PageRef(0)), &Insert::default(), NOW);
    policy.forget(PageRef(0), Gone::Deleted);
    assert_eq!(drain(&mut policy), [0].into());
    assert_eq!(policy.state(PageRef(0)), State::Unknown);
}

#[test]
fn s3_fifo_moves_on_what_was_used_twice_and_remembers_the_rest() {
    // Small 1, main 9.
    let mut policy = s3_by(S3FifoRule::Paper, 10);
    fill(&mut policy, 0..10);
    touch(&mut policy, [0, 0, 1, 2, 2, 2]);
    // 0 and 2 were used more than once: they pass to main, with no uses left, and so
    // go first once small is down to its share; before it is, small's others go.
    let order = [1, 3, 4, 5, 6, 7, 8, 9, 0, 2];
    assert_eq!(propose(&policy, 10), order);
    assert!(policy.wanted(PageRef(0)) && !policy.wanted(PageRef(1)));
    assert_eq!(policy.evict(), Some(PageRef(1)));
    assert_eq!(policy.state(PageRef(1)), State::Ghost, "once is not enough");
    assert_eq!(coldest(&policy, 10), [2, 3, 4, 5, 6, 7, 8, 9, 0]);
    policy.miss(Some(PageRef(1)), &Insert::default(), NOW);
    fill(&mut policy, [1]);
    assert_eq!(coldest(&policy, 10)[8..], [0, 1], "a ghost enters main");
    // Main gives a page as many turns as it has uses.
    touch(&mut policy, [0, 0, 0, 0, 0]);
    assert_eq!(propose(&policy, 10)[8..], [2, 0], "1 and 2 go before 0");
    let gone: Vec<u32> = (0..10).map(|_| policy.evict().unwrap().0).collect();
    assert_eq!(gone, [3, 4, 5, 6, 7, 8, 9, 1, 2, 0]);
}

#[test]
fn s3_fifo_fills_main_when_small_has_its_share_until_a_page_is_evicted() {
    // Small 2, main 18. Pages 2 to 19 pass small by.
    let mut policy = s3(20);
    fill(&mut policy, 0..20);
    let in_order: Vec<u32> = (2..20).collect();
    assert_eq!(propose(&policy, 20), [&[0][..], &in_order, &[1]].concat());
    assert_eq!(policy.evict(), Some(PageRef(0)));
    assert_eq!(policy.evict(), Some(PageRef(2)), "small has one page left");
    // Memory fills again, but not for the first time: new pages enter small.
    fill(&mut policy, [20, 21]);
    assert_eq!(coldest(&policy, 3), [1, 20, 3], "two more than small keeps");
    assert_eq!(policy.validate(), Ok(()));
}

#[test]
fn s3_fifo_stays_with_small_until_a_page_leaves_but_by_the_paper_chooses_anew() {
    // Small 2, main 18. 0 and 1 were used twice and move on: then small has less than
    // its share, and the paper chooses main.
    for (rule, order) in [
        (S3FifoRule::Artifact, [2, 0, 1]),
        (S3FifoRule::Paper, [0, 1, 2]),
    ] {
        let mut policy = s3_by(rule, 20);
        fill(&mut policy, 0..3);
        touch(&mut policy, [0, 0, 1, 1]);
        assert_eq!(propose(&policy, 3), order, "{rule:?}");
        assert_eq!(policy.evict(), Some(PageRef(order[0])), "{rule:?}");
    }
}

#[test]
fn a_page_read_ahead_in_vain_leaves_no_name_and_does_not_become_hot() {
    fn check<P: Replacement>(mut policy: P) -> P {
        for page in 0..4 {
            policy.insert(PageRef(page), &replacement_kit::readahead(), NOW);
        }
        touch(&mut policy, [1]);
        assert_eq!(policy.evict(), Some(PageRef(0)));
        assert_eq!(drain(&mut policy), [0].into(), "never used, not remembered");
        assert_eq!(policy.evict(), Some(PageRef(1)), "its one use is its first");
        assert_eq!(policy.state(PageRef(1)), State::Ghost);
        let ahead = replacement_kit::readahead();
        policy.miss(Some(PageRef(1)), &ahead, NOW);
        policy.insert(PageRef(1), &ahead, NOW);
        policy
    }
    let mut two_q = check(two_q(4)); // Kin 1
    assert_eq!(propose(&two_q, 4), [2, 3, 1], "not hot yet");
    touch(&mut two_q, [1]);
    assert_eq!(propose(&two_q, 4), [2, 1, 3], "in Am");
    let mut s3 = check(s3_by(S3FifoRule::Paper, 4));
    assert!(!s3.wanted(PageRef(1)));
    touch(&mut s3, [1]);
    assert!(s3.wanted(PageRef(1)), "it moves on when its turn comes");
}

#[test]
fn one_scan_does_not_flush_hot_pages() {
    // 40 hot pages between pages that are never used again, in memory for 100.
    let stream = || (0..100_000u32).map(|i| if i % 2 == 0 { i / 2 * 7 % 40 } else { 1000 + i });
    // A hot page comes twice: when memory is full for the first time, it was used
    // once since it came, which proves nothing in either; its name does.
    let expected = 2 * 40 + 50_000;
    let mut by_the_paper = s3_by(S3FifoRule::Paper, 100);
    assert_eq!(misses(&mut by_the_paper, stream()), expected);
    assert_eq!(misses(&mut two_q(100), stream()), expected);
    // Small has ten pages, five of them hot. What comes after them enters main.
    assert_eq!(misses(&mut s3(100), stream()), 40 + 5 + 50_000);
}

#[test]
fn thresholds_out_of_range_are_named() {
    let refused = |config: TwoQConfig| config.slots().unwrap_err().to_string();
    let two_q = TwoQConfig::new(8);
    assert_eq!(
        refused(TwoQConfig {
            kin_percent: 101,
            ..two_q
        }),
        "kin_percent is 101: allowed are 0 to 100"
    );
    assert_eq!(
        refused(TwoQConfig {
            kout_percent: 1001,
            ..two_q
        }),
        "kout_percent is 1001: allowed are 0 to 1000"
    );
    let s3 = S3FifoConfig::new(8);
    let error = S3FifoConfig {
        promote_above: 3,
        ..s3
    }
    .slots()
    .unwrap_err();
    assert_eq!(error.to_string(), "promote_above is 3: allowed are 0 to 2");
    assert_eq!(TwoQConfig::new(0).slots(), Err(NewError::Capacity));
    assert_eq!(TwoQConfig::new(8).slots(), Ok(8 + 1 + 4));
    assert_eq!(S3FifoConfig::new(20).slots(), Ok(20 + 1 + 18));
}
