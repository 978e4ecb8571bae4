//! Random lists of all calls of the contract, carried out by a policy and by a slow
//! and obvious oracle side by side.

#![allow(dead_code, reason = "each test uses a part")]

use std::collections::BTreeSet;

use piebald_policy::{
    contract::replacement::{
        Base, Fetch, Gone, Insert, PageKind, PageRef, Replacement, State, Touch, Via,
    },
    replacement::{Link, Slots},
};
use piebald_units::Picos;

pub use crate::kit::{Random, setting};

/// Memory on vectors.
pub type Memory = Slots<Vec<Link>, Vec<u8>>;

/// Time means nothing to these policies.
pub const NOW: Picos = Picos(0);

/// A policy written straight from its source, over ordinary collections.
pub trait Oracle: Clone {
    fn miss(&mut self, ghost: Option<u32>) {
        let _ = ghost;
    }
    fn insert(&mut self, page: u32, insert: &Insert);
    fn hit(&mut self, page: u32, via: Via);
    fn evict(&mut self) -> Option<u32>;
    fn detach(&mut self, page: u32);
    fn reattach(&mut self, page: u32);
    fn forget(&mut self, page: u32, why: Gone);
    /// Numbers given up since the last call.
    fn dropped(&mut self) -> BTreeSet<u32>;
    fn state(&self, page: u32) -> State;
    fn coldest(&self) -> Vec<u32>;
    fn wanted(&self, page: u32) -> bool;

    fn set_dirty(&mut self, page: u32, dirty: bool) {
        let _ = (page, dirty);
    }

    fn class(&self, page: u32) -> u8 {
        let _ = page;
        0
    }

    /// All victims: those that one eviction after another takes.
    fn victims(&self) -> Vec<u32> {
        let mut copy = self.clone();
        std::iter::from_fn(|| copy.evict()).collect()
    }
}

pub fn propose<P: Replacement>(policy: &P, most: usize) -> Vec<u32> {
    let mut out = vec![PageRef(u32::MAX); most];
    let found = policy.propose(&mut out);
    out[..found].iter().map(|page| page.0).collect()
}

pub fn coldest<P: Base>(policy: &P, most: usize) -> Vec<u32> {
    let mut out = vec![PageRef(u32::MAX); most];
    let found = policy.coldest(&mut out);
    out[..found].iter().map(|page| page.0).collect()
}

pub fn drain<P: Replacement>(policy: &mut P) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    while let Some(page) = policy.dropped() {
        assert!(found.insert(page.0), "{} was given up twice", page.0);
    }
    found
}

pub fn page_of(kind: PageKind) -> Insert {
    Insert {
        kind,
        ..Insert::default()
    }
}

pub fn by(via: Via) -> Touch {
    Touch {
        via,
        ..Touch::default()
    }
}

/// What one step does.
#[derive(Clone, Copy, Debug)]
enum Call {
    Hit(u32, Via),
    Come(Option<u32>, Insert, Room),
    Dirty(u32, bool),
    Detach(u32),
    DetachFirst,
    Reattach(u32),
    Forget(u32, Gone),
    ForgetFirst,
}

/// How room is made for a page that comes.
#[derive(Clone, Copy, Debug)]
enum Room {
    Evict,
    Propose,
    /// The n-th proposal goes, those before it are passed over.
    PassOver(usize),
}

/// A policy, its oracle, and a host that drives both.
pub struct Pair<P, O> {
    pub policy: P,
    pub oracle: O,
    pub random: Random,
    trail: Vec<Call>,
}

impl<P: Base + Clone, O: Oracle> Pair<P, O> {
    pub fn new(policy: P, oracle: O, seed: u64) -> Self {
        Self {
            policy,
            oracle,
            random: Random(seed),
            trail: Vec::new(),
        }
    }

    fn pages(&self, which: impl Fn(State) -> bool) -> Vec<u32> {
        (0..self.policy.slots())
            .filter(|page| which(self.oracle.state(*page)))
            .collect()
    }

    fn some(&mut self, which: impl Fn(State) -> bool) -> Option<u32> {
        let pages = self.pages(which);
        let chosen = self.random.below(pages.len().max(1) as u64) as usize;
        pages.get(chosen).copied()
    }

    fn via(&mut self) -> Via {
        match self.random.below(3) {
            0 => Via::Mapping,
            _ => Via::Call,
        }
    }

    fn new_page(&mut self) -> Insert {
        Insert {
            kind: match self.random.below(3) {
                0 => PageKind::Anon,
                _ => PageKind::File,
            },
            dirty: self.random.below(4) == 0,
            fetch: match self.random.below(2) {
                0 => Fetch::Demand,
                _ => Fetch::Readahead,
            },
            ..Insert::default()
        }
    }

    fn room(&mut self) -> Room {
        match self.random.below(8) {
            0 => Room::PassOver(self.random.below(4) as usize),
            1..=3 => Room::Propose,
            _ => Room::Evict,
        }
    }

    fn choose(&mut self) -> Option<Call> {
        let in_memory = |state| matches!(state, State::Resident | State::Detached);
        let (via, new, room) = (self.via(), self.new_page(), self.room());
        let dirty = self.random.below(2) == 0;
        Some(match self.random.below(100) {
            0..43 => Call::Hit(self.some(in_memory)?, via),
            43..45 => Call::Dirty(self.some(in_memory)?, dirty),
            45..70 => Call::Come(None, new, room),
            70..80 => Call::Come(self.some(|state| state == State::Ghost), new, room),
            80..84 => Call::Detach(self.some(|state| state == State::Resident)?),
            84..86 => Call::DetachFirst,
            86..93 => Call::Reattach(self.some(|state| state == State::Detached)?),
            93..95 => Call::ForgetFirst,
            95..96 => Call::Forget(self.some(in_memory)?, Gone::Evicted),
            96..98 => Call::Forget(self.some(in_memory)?, Gone::Deleted),
            _ => Call::Forget(self.some(|state| state == State::Ghost)?, Gone::Deleted),
        })
    }

    pub fn forget(&mut self, page: u32, why: Gone) {
        self.policy.forget(PageRef(page), why);
        self.oracle.forget(page, why);
        self.drain();
    }

    pub fn drain(&mut self) {
        let dropped = drain(&mut self.policy);
        assert_eq!(dropped, self.oracle.dropped(), "given up, {}", self.story());
    }

    /// Evicts in one of three ways that must come to the same.
    fn make_room(&mut self, how: Room) -> bool {
        let victims = propose(&self.policy, 8);
        match (how, victims.first()) {
            (_, None) => {
                assert_eq!(self.policy.evict(), None, "{}", self.story());
                return false;
            }
            (Room::Evict, Some(first)) => {
                let story = self.story();
                assert_eq!(self.policy.evict(), Some(PageRef(*first)), "{story}");
                assert_eq!(self.oracle.evict(), Some(*first), "{story}");
                self.drain();
            }
            (Room::Propose, Some(first)) => {
                self.policy.forget(PageRef(*first), Gone::Evicted);
                assert_eq!(self.oracle.evict(), Some(*first), "{}", self.story());
                self.drain();
            }
            (Room::PassOver(n), Some(_)) => {
                self.forget(victims[n.min(victims.len() - 1)], Gone::Evicted);
            }
        }
        true
    }

    fn come(&mut self, ghost: Option<u32>, insert: Insert, room: Room) {
        self.policy.miss(ghost.map(PageRef), &insert, NOW);
        self.oracle.miss(ghost);
        self.drain();
        while self.policy.resident() >= self.policy.capacity() {
            if !self.make_room(room) {
                // Everything is held by others; the fetch is given up.
                if let Some(ghost) = ghost {
                    self.forget(ghost, Gone::Deleted);
                }
                return;
            }
        }
        let page = ghost.or_else(|| self.some(|state| state == State::Unknown));
        let page = page.unwrap_or_else(|| panic!("no number is free, {}", self.story()));
        self.policy.insert(PageRef(page), &insert, NOW);
        self.oracle.insert(page, &insert);
        self.drain();
    }

    fn carry_out(&mut self, call: Call) {
        match call {
            Call::Hit(page, via) => {
                self.policy.hit(PageRef(page), by(via), NOW);
                self.oracle.hit(page, via);
            }
            Call::Come(ghost, new, room) => self.come(ghost, new, room),
            Call::Dirty(page, dirty) => {
                self.policy.set_dirty(PageRef(page), dirty);
                self.oracle.set_dirty(page, dirty);
            }
            Call::Detach(page) => self.detach(page),
            Call::DetachFirst => {
                if let Some(first) = propose(&self.policy, 1).first() {
                    self.detach(*first);
                }
            }
            Call::Reattach(page) => {
                self.policy.reattach(PageRef(page));
                self.oracle.reattach(page);
            }
            Call::Forget(page, why) => self.forget(page, why),
            Call::ForgetFirst => {
                if let Some(first) = propose(&self.policy, 1).first() {
                    self.forget(*first, Gone::Evicted);
                }
            }
        }
    }

    fn detach(&mut self, page: u32) {
        self.policy.detach(PageRef(page));
        self.oracle.detach(page);
    }

    fn story(&self) -> String {
        let from = self.trail.len().saturating_sub(40);
        format!("after {:?}", &self.trail[from..])
    }

    /// Compares everything that can be asked.
    fn compare(&self) {
        let story = || self.story();
        self.policy
            .validate()
            .unwrap_or_else(|broken| panic!("{broken}, {}", story()));
        let (slots, all) = (self.policy.slots(), self.policy.slots() as usize + 1);
        for page in 0..slots {
            let state = self.oracle.state(page);
            assert_eq!(
                self.policy.state(PageRef(page)),
                state,
                "{page} {}",
                story()
            );
            let wanted = self.oracle.wanted(page);
            assert_eq!(
                self.policy.wanted(PageRef(page)),
                wanted,
                "{page} {}",
                story()
            );
            let class = self.oracle.class(page);
            assert_eq!(
                self.policy.class(PageRef(page)),
                class,
                "{page} {}",
                story()
            );
        }
        let in_memory = self.pages(|s| matches!(s, State::Resident | State::Detached));
        assert_eq!(self.policy.resident() as usize, in_memory.len());
        let victims = self.oracle.victims();
        assert_eq!(propose(&self.policy, all), victims, "victims {}", story());
        for most in [0, 1, 2, victims.len()] {
            let some = &victims[..most.min(victims.len())];
            assert_eq!(propose(&self.policy, most), some, "{most} {}", story());
        }
        let coldest_pages = self.oracle.coldest();
        assert_eq!(
            coldest(&self.policy, all),
            coldest_pages,
            "coldest {}",
            story()
        );
        let attached = self.pages(|state| state == State::Resident);
        for list in [victims, coldest_pages] {
            let list = BTreeSet::from_iter(list);
            assert_eq!(list, attached.iter().copied().collect(), "{}", story());
        }
    }

    /// Runs so many random calls.
    pub fn run(&mut self, steps: u64) {
        self.compare();
        for _ in 0..steps {
            if let Some(call) = self.choose() {
                self.trail.push(call);
                self.carry_out(call);
                self.compare();
            }
        }
    }
}

/// Random lists at sizes where off-by-one errors live, and at some larger ones.
pub fn agree<P: Base + Clone, O: Oracle>(make: impl Fn(u32, u64) -> (P, O)) {
    agree_at(&[1, 2, 3, 4, 5, 7, 10, 11, 24, 40], 12, 150, make);
}

/// So many random lists per capacity, of so many steps each.
pub fn agree_at<P: Base + Clone, O: Oracle>(
    capacities: &[u32],
    lists: u64,
    steps: u64,
    make: impl Fn(u32, u64) -> (P, O),
) {
    // A list is some hundred steps at each capacity, as long as twenty of other rooms' cases.
    let lists = (setting("PIEBALD_FUZZ_CASES", 0) / 20).clamp(lists, 5000);
    for capacity in capacities {
        for seed in 0..lists {
            let (policy, oracle) = make(*capacity, seed);
            Pair::new(policy, oracle, seed << 8 | u64::from(*capacity)).run(steps);
        }
    }
}

/// Calls that no state allows: each must change nothing. Test builds report them as
/// well, so the panic is caught.
pub fn wrong_calls_change_nothing<P: Base>(mut policy: P) {
    let before = |policy: &P| {
        let states: Vec<State> = (0..policy.slots() + 2)
            .map(|page| policy.state(PageRef(page)))
            .collect();
        (
            states,
            propose(policy, 9),
            coldest(policy, 9),
            policy.resident(),
        )
    };
    policy.insert(PageRef(0), &Insert::default(), NOW);
    policy.insert(PageRef(1), &page_of(PageKind::Anon), NOW);
    policy.insert(PageRef(2), &Insert::default(), NOW);
    policy.hit(PageRef(1), Touch::default(), NOW);
    policy.detach(PageRef(2));
    let (free, beyond) = (PageRef(3), PageRef(policy.slots()));
    let mut is_refused = |what: &str, call: &dyn Fn(&mut P)| {
        let expected = before(&policy);
        let quiet = std::panic::AssertUnwindSafe(|| call(&mut policy));
        let outcome = std::panic::catch_unwind(quiet);
        assert_eq!(outcome.is_err(), cfg!(debug_assertions), "{what}");
        assert_eq!(before(&policy), expected, "{what}");
        assert_eq!(policy.validate(), Ok(()), "{what}");
        assert_eq!(policy.dropped(), None, "{what}");
    };
    for page in [free, beyond, PageRef(u32::MAX)] {
        is_refused("hit", &|p| p.hit(page, Touch::default(), NOW));
        is_refused("detach", &|p| p.detach(page));
        is_refused("reattach", &|p| p.reattach(page));
        is_refused("evicted", &|p| p.forget(page, Gone::Evicted));
        is_refused("deleted", &|p| p.forget(page, Gone::Deleted));
    }
    is_refused("a page twice", &|p| {
        p.insert(PageRef(0), &Insert::default(), NOW)
    });
    is_refused("a detached page", &|p| {
        p.insert(PageRef(2), &Insert::default(), NOW)
    });
    is_refused("out of range", &|p| {
        p.insert(beyond, &Insert::default(), NOW)
    });
    is_refused("detached twice", &|p| p.detach(PageRef(2)));
    is_refused("not detached", &|p| p.reattach(PageRef(0)));
}

/// The misses of a stream of keys in a plain cache, where every key that is not in
/// memory is fetched, and evicts if memory is full.
pub fn misses<P: Replacement>(policy: &mut P, keys: impl Iterator<Item = u32>) -> u64 {
    let mut numbers: std::collections::HashMap<u32, PageRef> = Default::default();
    let mut keys_of = vec![u32::MAX; policy.slots() as usize];
    let mut free: Vec<PageRef> = (0..policy.slots()).rev().map(PageRef).collect();
    let mut misses = 0;
    for key in keys {
        let known = numbers.get(&key).copied();
        if let Some(page) = known
            && policy.state(page) != State::Ghost
        {
            policy.hit(page, Touch::default(), NOW);
            continue;
        }
        misses += 1;
        policy.miss(known, &Insert::default(), NOW);
        while policy.resident() >= policy.capacity() {
            policy.evict().expect("nothing is detached");
        }
        while let Some(page) = policy.dropped() {
            numbers.remove(&keys_of[page.index()]);
            free.push(page);
        }
        let page = known.unwrap_or_else(|| free.pop().expect("numbers suffice"));
        numbers.insert(key, page);
        keys_of[page.index()] = key;
        policy.insert(page, &Insert::default(), NOW);
        while let Some(page) = policy.dropped() {
            numbers.remove(&keys_of[page.index()]);
            free.push(page);
        }
    }
    misses
}

/// A page that was read ahead.
pub fn readahead() -> Insert {
    Insert {
        fetch: Fetch::Readahead,
        ..Insert::default()
    }
}
