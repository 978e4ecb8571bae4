//! The contract of `Replacement`, for every policy of the registry: random lists of
//! all calls against a host that keeps the truth.

use std::collections::{BTreeSet, HashMap};

use piebald_os_model::replace::registry::{POLICIES, Setup, boxed};
use piebald_policy::contract::replacement::{
    Fetch, Gone, Insert, PageKind, PageName, PageRef, Replacement, State, Touch, Via,
};
use piebald_units::{DiskBlock, Picos};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// How the host makes room. What a policy does must not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Evict,
    ProposeAndForget,
}

/// A host that knows what is in memory, what is detached and what has left.
struct Host {
    policy: Box<dyn Replacement>,
    way: Way,
    /// Key of each number that is not free.
    key_of: Vec<Option<u64>>,
    number_of: HashMap<u64, PageRef>,
    truth: Vec<State>,
    free: Vec<PageRef>,
    now: Picos,
    /// Everything that the policy decided, for comparison.
    log: Vec<(char, u32)>,
    label: String,
}

impl Host {
    fn new(name: &str, capacity: u32, way: Way, label: String) -> Self {
        let policy = boxed(name, &Setup::new(capacity)).expect(name);
        let slots = policy.slots();
        assert!(
            slots > capacity,
            "{label}: no number for the page that comes in"
        );
        Self {
            policy,
            way,
            key_of: vec![None; slots as usize],
            number_of: HashMap::new(),
            truth: vec![State::Unknown; slots as usize],
            free: (0..slots).rev().map(PageRef).collect(),
            now: Picos(0),
            log: Vec::new(),
            label,
        }
    }

    fn count(&self, state: State) -> usize {
        self.truth.iter().filter(|s| **s == state).count()
    }

    fn drain(&mut self) {
        let mut given_back = BTreeSet::new();
        while let Some(page) = self.policy.dropped() {
            assert!(given_back.insert(page), "{}: {page:?} twice", self.label);
        }
        for page in given_back {
            let at = page.index();
            let was = self.truth[at];
            assert_eq!(was, State::Ghost, "{}: {page:?} dropped", self.label);
            self.truth[at] = State::Unknown;
            let key = self.key_of[at].take().expect("a ghost has a key");
            self.number_of.remove(&key);
            self.free.push(page);
            self.log.push(('d', page.0));
        }
    }

    fn forget(&mut self, page: PageRef, why: Gone) {
        self.policy.forget(page, why);
        self.left(page, why);
    }

    /// A page is not in memory any more: the policy remembers it or gives its
    /// number back.
    fn left(&mut self, page: PageRef, why: Gone) {
        self.truth[page.index()] = State::Ghost;
        self.drain();
        if why == Gone::Deleted {
            let now = self.truth[page.index()];
            assert_eq!(now, State::Unknown, "{}: deleted, kept", self.label);
        }
    }

    /// Makes room for one page; `false` if nothing may go.
    fn make_room(&mut self, capacity: u32) -> bool {
        while self.policy.resident() >= capacity {
            let mut first = [PageRef(0)];
            let page = match self.way {
                Way::Evict => match self.policy.evict() {
                    Some(page) => page,
                    None => return false,
                },
                Way::ProposeAndForget => {
                    if self.policy.propose(&mut first) == 0 {
                        return false;
                    }
                    self.policy.forget(first[0], Gone::Evicted);
                    first[0]
                }
            };
            self.log.push(('e', page.0));
            let was = self.truth[page.index()];
            assert_eq!(was, State::Resident, "{}: evicts {page:?}", self.label);
            self.left(page, Gone::Evicted);
        }
        true
    }

    fn use_key(&mut self, key: u64, insert: Insert, touch: Touch, between: Option<(u64, Insert)>) {
        self.now = Picos(self.now.0 + 1_000_000);
        let number = self.number_of.get(&key).copied();
        let state = number.map_or(State::Unknown, |n| self.truth[n.index()]);
        if let (Some(page), State::Resident | State::Detached) = (number, state) {
            return self.policy.hit(page, touch, self.now);
        }
        self.policy.miss(number, &insert, self.now);
        self.drain();
        if let Some((other, what)) = between.filter(|b| b.0 != key) {
            self.use_key(other, what, touch, None);
        }
        if !self.make_room(self.policy.capacity()) {
            return self.give_up(key);
        }
        // Looked up again: the ghost may have been dropped meanwhile.
        let page = match self.number_of.get(&key) {
            Some(page) => *page,
            None => self
                .free
                .pop()
                .unwrap_or_else(|| panic!("{}: no free number", self.label)),
        };
        self.number_of.insert(key, page);
        self.key_of[page.index()] = Some(key);
        self.policy.insert(page, &insert, self.now);
        self.truth[page.index()] = State::Resident;
        self.drain();
    }

    /// Nothing comes after a miss was told: a ghost that was asked about is deleted,
    /// or it would be kept for a page that never comes.
    fn give_up(&mut self, key: u64) {
        if let Some(ghost) = self.number_of.get(&key).copied() {
            self.forget(ghost, Gone::Deleted);
        }
    }

    fn any(&self, rng: &mut Pcg64Mcg, state: State) -> Option<PageRef> {
        let all: Vec<u32> = (0..)
            .zip(&self.truth)
            .filter(|(_, s)| **s == state)
            .map(|(n, _)| n)
            .collect();
        (!all.is_empty()).then(|| PageRef(all[rng.random_range(0..all.len())]))
    }

    fn check(&mut self) {
        let label = &self.label;
        if let Err(defect) = self.policy.validate() {
            panic!("{label}: {defect}");
        }
        for (number, truth) in (0..).zip(&self.truth) {
            let said = self.policy.state(PageRef(number));
            assert_eq!(said, *truth, "{label}: state of {number}");
        }
        let (attached, detached) = (self.count(State::Resident), self.count(State::Detached));
        assert_eq!(
            self.policy.resident() as usize,
            attached + detached,
            "{label}"
        );
        assert!(self.policy.resident() <= self.policy.capacity(), "{label}");
        self.check_proposals(attached);
    }

    fn check_proposals(&mut self, attached: usize) {
        let label = &self.label;
        let mut all = vec![PageRef(u32::MAX); self.truth.len()];
        let found = self.policy.propose(&mut all);
        assert_eq!(found, attached, "{label}: proposes every attached page");
        all.truncate(found);
        let distinct: BTreeSet<_> = all.iter().copied().collect();
        assert_eq!(distinct.len(), found, "{label}: proposes a page once");
        for page in &all {
            let truth = self.truth[page.index()];
            assert_eq!(truth, State::Resident, "{label}: proposes {page:?}");
        }
        for room in [0, 1, 2, 5, found] {
            let mut some = vec![PageRef(u32::MAX); room];
            let count = self.policy.propose(&mut some);
            assert_eq!(count, room.min(found), "{label}: room for {room}");
            assert_eq!(some[..count], all[..count], "{label}: the first {room}");
        }
        self.log.extend(all.iter().map(|page| ('p', page.0)));
    }
}

fn any_insert(rng: &mut Pcg64Mcg, key: u64, step: u64) -> Insert {
    let anon = key.is_multiple_of(5);
    Insert {
        name: PageName(key),
        kind: if anon { PageKind::Anon } else { PageKind::File },
        dirty: rng.random_bool(0.2),
        fetch: if rng.random_bool(0.2) {
            Fetch::Readahead
        } else {
            Fetch::Demand
        },
        at: (!anon || rng.random_bool(0.5)).then_some(DiskBlock(key)),
        next_use: any_next_use(rng, step),
    }
}

fn any_next_use(rng: &mut Pcg64Mcg, step: u64) -> Option<u64> {
    rng.random_bool(0.8)
        .then(|| step + rng.random_range(1..200))
}

fn any_touch(rng: &mut Pcg64Mcg, step: u64) -> Touch {
    Touch {
        via: if rng.random_bool(0.5) {
            Via::Call
        } else {
            Via::Mapping
        },
        next_use: any_next_use(rng, step),
    }
}

/// Keys that reuse at several distances: hot ones, a loop, and rare ones.
fn any_key(rng: &mut Pcg64Mcg, capacity: u32, step: u64) -> u64 {
    let c = u64::from(capacity);
    match rng.random_range(0..10) {
        0..4 => rng.random_range(0..c.div_ceil(2)),
        4..7 => 1_000_000 + step % (c + c / 3 + 1),
        _ => 2_000_000 + rng.random_range(0..4 * c + 2),
    }
}

fn random_step(host: &mut Host, rng: &mut Pcg64Mcg, step: u64) {
    let capacity = host.policy.capacity();
    match rng.random_range(0..100) {
        0..75 => {
            let key = any_key(rng, capacity, step);
            let insert = any_insert(rng, key, step);
            let other = any_key(rng, capacity, step + 1);
            let what = any_insert(rng, other, step);
            let between = rng.random_bool(0.1).then_some((other, what));
            let touch = any_touch(rng, step);
            host.use_key(key, insert, touch, between);
        }
        75..80 => {
            if let Some(page) = host.any(rng, State::Resident) {
                host.policy.detach(page);
                host.truth[page.index()] = State::Detached;
            }
        }
        80..87 => {
            if let Some(page) = host.any(rng, State::Detached) {
                host.policy.reattach(page);
                host.truth[page.index()] = State::Resident;
            }
        }
        87..89 => {
            if let Some(page) = host.any(rng, State::Detached) {
                host.policy.hit(page, any_touch(rng, step), host.now);
            }
        }
        89..92 => forget_any(host, rng, State::Resident, 0.5),
        92..94 => forget_any(host, rng, State::Detached, 0.7),
        94..95 => forget_any(host, rng, State::Ghost, 0.0),
        95..97 => {
            if let Some(page) = host.any(rng, State::Resident) {
                let at = rng
                    .random_bool(0.8)
                    .then(|| DiskBlock(rng.random_range(0..1000)));
                host.policy.place(page, at);
                host.policy.set_dirty(page, rng.random_bool(0.5));
            }
        }
        97..98 => {
            // A read that failed: the miss was told, nothing comes.
            let ghost = host.any(rng, State::Ghost);
            host.policy.miss(ghost, &Insert::default(), host.now);
            host.drain();
            let key = ghost.and_then(|g| host.key_of[g.index()]);
            key.into_iter().for_each(|key| host.give_up(key));
        }
        _ => {
            host.make_room(capacity.saturating_sub(3).max(1));
        }
    }
}

fn forget_any(host: &mut Host, rng: &mut Pcg64Mcg, state: State, evicted: f64) {
    if let Some(page) = host.any(rng, state) {
        let why = if rng.random_bool(evicted) {
            Gone::Evicted
        } else {
            Gone::Deleted
        };
        host.forget(page, why);
    }
}

fn run(name: &str, capacity: u32, seed: u64, steps: u64, way: Way) -> Vec<(char, u32)> {
    let label = format!("{name}, {capacity} pages, seed {seed}, {way:?}");
    let mut host = Host::new(name, capacity, way, label.clone());
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let every = if capacity < 64 {
        1
    } else {
        u64::from(capacity / 16)
    };
    for step in 0..steps {
        host.label = format!("{label}, step {step}");
        random_step(&mut host, &mut rng, step);
        if step % every == 0 {
            host.check();
        }
    }
    host.log
}

/// Policies that need more memory than this: DULO has at least a page in each of
/// its sections.
fn refuses(name: &str, capacity: u32) -> bool {
    let refused = boxed(name, &Setup::new(capacity)).is_err();
    assert!(!refused || capacity < 2, "{name} refuses {capacity} pages");
    refused
}

/// All lists, both ways of eviction: the decisions must be the same.
fn keeps_the_contract(capacity: u32, seeds: u64, steps: u64) {
    for row in POLICIES.iter().filter(|row| !refuses(row.name, capacity)) {
        for seed in 0..seeds {
            let evicted = run(row.name, capacity, seed, steps, Way::Evict);
            let proposed = run(row.name, capacity, seed, steps, Way::ProposeAndForget);
            let differ = evicted.iter().zip(&proposed).position(|(a, b)| a != b);
            assert_eq!(differ, None, "{}, {capacity} pages, seed {seed}", row.name);
            assert_eq!(evicted.len(), proposed.len(), "{}", row.name);
            assert!(evicted.iter().any(|(what, _)| *what == 'e'), "{}", row.name);
        }
    }
}

#[test]
fn every_policy_keeps_the_contract_with_one_page() {
    keeps_the_contract(1, 4, 1000);
}

#[test]
fn every_policy_keeps_the_contract_with_two_pages() {
    keeps_the_contract(2, 4, 1000);
}

#[test]
fn every_policy_keeps_the_contract_with_three_pages() {
    keeps_the_contract(3, 4, 1000);
}

#[test]
fn every_policy_keeps_the_contract_with_seven_pages() {
    keeps_the_contract(7, 3, 1500);
}

#[test]
fn every_policy_keeps_the_contract_with_64_pages() {
    keeps_the_contract(64, 2, 2500);
}

#[test]
fn every_policy_keeps_the_contract_with_1000_pages() {
    keeps_the_contract(1000, 1, 8_000);
}

#[test]
fn pages_read_ahead_and_never_used_are_evicted() {
    for row in POLICIES {
        for capacity in [1, 3, 50] {
            if refuses(row.name, capacity) {
                continue;
            }
            let mut host = Host::new(row.name, capacity, Way::Evict, row.name.to_owned());
            let ahead = Insert {
                fetch: Fetch::Readahead,
                ..Insert::default()
            };
            for key in 0..u64::from(4 * capacity) {
                let (name, at) = (PageName(key), Some(DiskBlock(key)));
                host.use_key(key, Insert { name, at, ..ahead }, Touch::default(), None);
                host.check();
            }
            assert_eq!(host.policy.resident(), capacity, "{}", row.name);
            while let Some(page) = host.policy.evict() {
                host.left(page, Gone::Evicted);
            }
            assert_eq!(host.policy.resident(), 0, "{}", row.name);
            host.check();
        }
    }
}

#[test]
fn with_every_page_detached_nothing_is_proposed_and_nothing_evicted() {
    for row in POLICIES {
        let mut host = Host::new(row.name, 4, Way::Evict, row.name.to_owned());
        for key in 0..4 {
            host.use_key(key, Insert::default(), Touch::default(), None);
        }
        for page in (0..host.truth.len()).filter(|n| host.truth[*n] == State::Resident) {
            host.policy.detach(PageRef(page as u32));
        }
        assert_eq!(host.policy.evict(), None, "{}", row.name);
        assert_eq!(host.policy.resident(), 4, "{}", row.name);
        assert!(!host.make_room(4), "{}", row.name);
    }
}

/// Fills memory and turns it over, so that policies with ghosts have some.
fn turned_over(name: &str, capacity: u32) -> Host {
    let mut host = Host::new(name, capacity, Way::Evict, name.to_owned());
    for key in 0..u64::from(3 * capacity) {
        let insert = Insert {
            name: PageName(key),
            at: Some(DiskBlock(key)),
            ..Insert::default()
        };
        host.use_key(key, insert, Touch::default(), None);
        host.use_key(key % 5, insert, Touch::default(), None);
    }
    host
}

#[test]
fn a_ghost_whose_fetch_was_given_up_is_forgotten_and_its_number_comes_back_once() {
    let mut with_ghosts = 0;
    for row in POLICIES {
        let mut host = turned_over(row.name, 40);
        let ghosts = host.count(State::Ghost);
        with_ghosts += usize::from(ghosts > 0);
        // More of them than a policy has ghosts: a number that is lost is missed.
        for _ in 0..ghosts {
            let ghost = host.truth.iter().position(|s| *s == State::Ghost);
            let Some(ghost) = ghost else { break };
            let (ghost, free) = (PageRef(ghost as u32), host.free.len());
            host.policy.miss(Some(ghost), &Insert::default(), host.now);
            host.drain();
            let asked = host.policy.state(ghost);
            assert_eq!(asked, State::Ghost, "{}: kept while it comes", row.name);
            host.forget(ghost, Gone::Deleted);
            assert!(host.free.len() > free, "{}: {ghost:?} is lost", row.name);
            host.check();
        }
        assert_eq!(host.count(State::Ghost), 0, "{}", row.name);
        for key in 1000..1200 {
            let name = PageName(key);
            let insert = Insert {
                name,
                ..Insert::default()
            };
            host.use_key(key, insert, Touch::default(), None);
            host.check();
        }
    }
    assert!(with_ghosts >= 5, "{with_ghosts} policies had ghosts");
}

#[test]
fn what_is_counted_of_a_page_survives_its_number() {
    // Key 7 is used often and leaves; when it returns under any number, and without a
    // place on disk, it displaces a page that was used once.
    let mut host = Host::new("w-tinylfu", 100, Way::Evict, "w-tinylfu".to_owned());
    let insert = |key| Insert {
        name: PageName(key),
        ..Insert::default()
    };
    for key in [7; 12].into_iter().chain(100..199) {
        host.use_key(key, insert(key), Touch::default(), None);
    }
    let seven = host.number_of[&7];
    host.forget(seven, Gone::Evicted);
    // Takes that number, and keeps it.
    for _ in 0..4 {
        host.use_key(200, insert(200), Touch::default(), None);
    }
    host.use_key(7, insert(7), Touch::default(), None);
    assert_ne!(host.number_of[&7], seven, "it has another number");
    // Each newcomer pushes its predecessor out of the window into the duel.
    for key in 300..340 {
        host.use_key(key, insert(key), Touch::default(), None);
        assert!(host.number_of.contains_key(&7), "key {key} displaced it");
    }
    let newcomers = (300..340).filter(|key| host.number_of.contains_key(key));
    assert_eq!(newcomers.count(), 1, "pages used once do not win");
}
