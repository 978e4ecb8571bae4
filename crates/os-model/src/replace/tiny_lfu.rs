//! W-TinyLFU: G. Einziger, R. Friedman and B. Manes, *TinyLFU: a highly efficient
//! cache admission policy*, ACM Transactions on Storage 13(4), 2017, section 4.
//!
//! New pages enter an LRU window of 1 % of the memory. The page that the window
//! pushes out is admitted to the main part only if it was used more often, by the
//! count-min sketch, than the victim of the main part; the loser leaves. The main
//! part is a segmented LRU: a page enters *probation*, a hit moves it to
//! *protected* (80 % of the main part), whose overflow goes back to probation.
//!
//! *When the duel takes place.* Memory is made free before a page comes in, so the
//! duel is fought when room is needed and the window is full: between its LRU page,
//! which the next page will push out, and the main part's victim. If the window is
//! not full, the main part's victim goes. A host that frees pages in batches fights
//! one duel per batch; the pages that the window pushes out while there is room
//! are admitted.
//!
//! *Keys.* The sketch counts by the name that the host gives a page ([`Insert::name`]),
//! which outlives the page's number.
//!
//! *Fixed:* the window does not adapt (the paper's successor does by hill climbing).
//! On a tie the newcomer leaves.
//!
//! 16 B of state per slot, `capacity + 1` slots, and 8 to 16 B of sketch per page.

use piebald_policy::contract::replacement::{
    Base, BrokenOrder, Fetch, Gone, Insert, PageRef, Replacement, State, Touch,
};
use piebald_units::Picos;

use super::{
    ConfigError, check, check_capacity,
    kit::{Dropped, Link, Linked, List, Note, broken, fill, linked, misuse, rule_holds, share},
    sketch::{Sketch, hash},
};

/// Configuration of W-TinyLFU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WTinyLfuConfig {
    /// Pages that fit in memory: 1 to 2^28.
    pub capacity: u32,
    /// Size of the window in percent of the memory, 0 to 99, at least one page; 1
    /// in the paper `[M]`.
    pub window_percent: u32,
    /// Size of the protected segment in percent of the main part, 0 to 99; 80 in
    /// the paper `[M]`.
    pub protected_percent: u32,
    /// Uses after which the sketch is halved, in multiples of the capacity, 1 to
    /// 1000; 10, as Caffeine has it. (Zipf 1.0, 1 M ids, 100 k pages: .184 are
    /// missed with 10, .179 with 32, which suits references that never change.)
    pub sample_factor: u32,
    /// Put a Bloom filter before the sketch (section 3.4.2 `[M]`); off, as in Caffeine.
    pub doorkeeper: bool,
}

impl WTinyLfuConfig {
    /// The values above.
    pub fn new(capacity: u32) -> Self {
        Self {
            capacity,
            window_percent: 1,
            protected_percent: 80,
            sample_factor: 10,
            doorkeeper: false,
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        let name = "w-tinylfu";
        check_capacity(name, self.capacity)?;
        let window = u64::from(self.window_percent);
        check(name, "window_percent", window, 0..=99, "0 to 99")?;
        let protected = u64::from(self.protected_percent);
        check(name, "protected_percent", protected, 0..=99, "0 to 99")?;
        let factor = u64::from(self.sample_factor);
        check(name, "sample_factor", factor, 1..=1000, "1 to 1000")
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Nowhere,
    Window,
    Probation,
    Protected,
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    link: Link,
    key: u32,
    place: Place,
    detached: bool,
    note: Note,
}
linked!(Node, 0, link);

/// Window TinyLFU.
#[derive(Clone, Debug)]
pub struct WTinyLfu {
    nodes: Vec<Node>,
    window: List,
    probation: List,
    protected: List,
    /// Detached pages of the window, of probation and of protected.
    held: [u32; 3],
    capacity: u32,
    window_limit: u32,
    protected_limit: u32,
    sketch: Sketch,
    dropped: Dropped,
}

impl WTinyLfu {
    /// An empty cache.
    ///
    /// # Errors
    /// If a field is out of its range.
    pub fn new(config: WTinyLfuConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let capacity = config.capacity;
        let window_limit = share(capacity, config.window_percent, 1);
        let sample = u64::from(config.sample_factor) * u64::from(capacity);
        Ok(Self {
            nodes: vec![Node::default(); capacity as usize + 1],
            window: List::default(),
            probation: List::default(),
            protected: List::default(),
            held: [0; 3],
            capacity,
            window_limit,
            protected_limit: share(capacity - window_limit, config.protected_percent, 0),
            sketch: Sketch::new(capacity, sample, config.doorkeeper),
            dropped: Dropped::default(),
        })
    }

    fn list(&mut self, place: Place) -> &mut List {
        match place {
            Place::Protected => &mut self.protected,
            Place::Probation => &mut self.probation,
            Place::Window | Place::Nowhere => &mut self.window,
        }
    }

    fn held(&mut self, place: Place) -> &mut u32 {
        &mut self.held[match place {
            Place::Window | Place::Nowhere => 0,
            Place::Probation => 1,
            Place::Protected => 2,
        }]
    }

    #[inline]
    fn attach(&mut self, page: u32, place: Place) {
        self.nodes[page as usize].place = place;
        let mut list = *self.list(place);
        list.push(&mut self.nodes, page);
        *self.list(place) = list;
    }

    #[inline]
    fn take_out(&mut self, page: u32) {
        let Node {
            place, detached, ..
        } = self.nodes[page as usize];
        if detached {
            *self.held(place) -= 1;
            return;
        }
        let mut list = *self.list(place);
        list.unlink(&mut self.nodes, page);
        *self.list(place) = list;
    }

    #[inline]
    fn relocate(&mut self, page: u32, place: Place) {
        self.take_out(page);
        self.attach(page, place);
    }

    /// Moves what the window and protected have too much to probation.
    fn settle(&mut self) {
        while self.protected.len() + self.held[2] > self.protected_limit {
            let Some(page) = self.protected.tail() else {
                break;
            };
            self.relocate(page, Place::Probation);
        }
        while self.window.len() + self.held[0] > self.window_limit {
            let Some(page) = self.window.tail() else {
                break;
            };
            self.relocate(page, Place::Probation);
        }
    }

    /// The window's page that room must be made for, if the window is full.
    fn candidate(&self) -> Option<u32> {
        let full = self.window.len() + self.held[0] >= self.window_limit;
        self.window.tail().filter(|_| full)
    }

    fn main_order(&self) -> impl Iterator<Item = u32> {
        let probation = self.probation.coldest(&self.nodes);
        probation.chain(self.protected.coldest(&self.nodes))
    }

    /// The first victim, and the window's page that its leaving admits.
    fn duel(&self) -> Option<(u32, Option<u32>)> {
        let victim = self.main_order().next();
        let (Some(candidate), Some(victim)) = (self.candidate(), victim) else {
            let alone = self.window.tail().filter(|_| victim.is_none());
            return Some((victim.or(alone)?, None));
        };
        let count = |page: u32| self.sketch.estimate(self.nodes[page as usize].key);
        match count(candidate) > count(victim) {
            true => Some((victim, Some(candidate))),
            false => Some((candidate, None)),
        }
    }

    /// The victims: the first by duel, then the main part, then the window.
    fn order(&self) -> impl Iterator<Item = u32> {
        let (first, admitted) = self.duel().unzip();
        let admitted = admitted.flatten();
        let probation = self.probation.coldest(&self.nodes).chain(admitted);
        let main = probation.chain(self.protected.coldest(&self.nodes));
        let window = self.window.coldest(&self.nodes);
        let rest = main.chain(window.filter(move |page| Some(*page) != admitted));
        let rest = rest.filter(move |page| Some(*page) != first);
        first.into_iter().chain(rest)
    }
}

impl Replacement for WTinyLfu {
    fn capacity(&self) -> u32 {
        self.capacity
    }

    fn slots(&self) -> u32 {
        self.capacity + 1
    }

    #[inline]
    fn miss(&mut self, ghost: Option<PageRef>, insert: &Insert, _now: Picos) {
        debug_assert!(ghost.is_none(), "miss of a page that is no ghost");
        if insert.fetch == Fetch::Demand {
            self.sketch.add(hash(insert.name.0));
        }
    }

    #[inline]
    fn insert(&mut self, page: PageRef, insert: &Insert, _now: Picos) {
        let key = hash(insert.name.0);
        match self.nodes.get_mut(page.index()) {
            Some(node) if node.place == Place::Nowhere => {
                *node = Node {
                    key,
                    note: Note::of(insert),
                    ..Node::default()
                };
            }
            _ => return misuse("insert", page),
        }
        self.attach(page.0, Place::Window);
        self.settle();
    }

    #[inline]
    fn hit(&mut self, page: PageRef, _touch: Touch, _now: Picos) {
        let Some(node) = self.nodes.get_mut(page.index()) else {
            return misuse("hit", page);
        };
        if node.place == Place::Nowhere {
            return misuse("hit", page);
        }
        let first = node.note.first_use();
        let Node {
            key,
            place,
            detached,
            ..
        } = *node;
        if detached && !first {
            node.note = Note::Used;
        }
        self.sketch.add(key);
        if !detached {
            self.advance(page.0, place, first);
        }
    }

    fn propose(&self, out: &mut [PageRef]) -> usize {
        fill(out, self.order())
    }

    fn detach(&mut self, page: PageRef) {
        if self.state(page) != State::Resident {
            return misuse("detach", page);
        }
        self.take_out(page.0);
        let node = &mut self.nodes[page.index()];
        node.detached = true;
        let place = node.place;
        *self.held(place) += 1;
    }

    fn reattach(&mut self, page: PageRef) {
        if self.state(page) != State::Detached {
            return misuse("reattach", page);
        }
        let place = self.nodes[page.index()].place;
        *self.held(place) -= 1;
        let node = &mut self.nodes[page.index()];
        node.detached = false;
        let used = node.note.take_used();
        self.attach(page.0, place);
        if used {
            self.advance(page.0, place, false);
        }
        self.settle();
    }

    fn forget(&mut self, page: PageRef, why: Gone) {
        if self.state(page) == State::Unknown {
            return misuse("forget", page);
        }
        if let (Gone::Evicted, Some((victim, Some(admitted)))) = (why, self.duel())
            && victim == page.0
        {
            self.relocate(admitted, Place::Probation);
        }
        self.take_out(page.0);
        self.nodes[page.index()] = Node::default();
        self.dropped.push(page.0);
    }

    fn dropped(&mut self) -> Option<PageRef> {
        self.dropped.pop()
    }

    fn state(&self, page: PageRef) -> State {
        match self.nodes.get(page.index()) {
            Some(node) if node.place == Place::Nowhere => State::Unknown,
            Some(node) if node.detached => State::Detached,
            Some(_) => State::Resident,
            None => State::Unknown,
        }
    }

    fn resident(&self) -> u32 {
        let attached = self.window.len() + self.probation.len() + self.protected.len();
        attached + self.held.iter().sum::<u32>()
    }

    fn validate(&self) -> Result<(), BrokenOrder> {
        let parts = [
            (&self.window, Place::Window, "window"),
            (&self.probation, Place::Probation, "probation"),
            (&self.protected, Place::Protected, "protected"),
        ];
        for ((list, place, rule), held) in parts.into_iter().zip(self.held) {
            list.check(&self.nodes, rule, |n| n.place == place && !n.detached)?;
            let there = |detached| move |n: &&Node| n.place == place && n.detached == detached;
            let attached = self.nodes.iter().filter(there(false)).count();
            rule_holds(attached == list.len() as usize, rule)?;
            let detached = self.nodes.iter().filter(there(true)).count();
            rule_holds(detached == held as usize, rule)?;
        }
        rule_holds(
            self.window.is_empty() || self.window.len() + self.held[0] <= self.window_limit,
            "the window keeps its size",
        )?;
        rule_holds(
            self.protected.is_empty()
                || self.protected.len() + self.held[2] <= self.protected_limit,
            "the protected segment keeps its size",
        )?;
        for (page, node) in (0..).zip(&self.nodes) {
            if node.place != Place::Nowhere && self.dropped.has(page) {
                return Err(broken("a page with a place is not dropped", page));
            }
        }
        Ok(())
    }
}

impl WTinyLfu {
    /// Where a hit moves a page: up a segment from probation, else to the hot end
    /// of its own.
    #[inline]
    fn advance(&mut self, page: u32, place: Place, first: bool) {
        let to = match place {
            Place::Probation if !first => Place::Protected,
            other => other,
        };
        self.relocate(page, to);
        if to != place {
            self.settle();
        }
    }
}

impl Base for WTinyLfu {
    fn coldest(&self, out: &mut [PageRef]) -> usize {
        self.propose(out)
    }

    fn wanted(&self, page: PageRef) -> bool {
        let node = self.nodes.get(page.index());
        node.is_some_and(|n| n.note == Note::Used)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use rand::{Rng, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    use super::*;
    use piebald_policy::contract::replacement::PageName;

    /// The paper's section 4 over queues whose fronts are LRU ends, with the same
    /// sketch.
    struct Oracle {
        sketch: Sketch,
        limits: [usize; 3],
        window: VecDeque<u64>,
        probation: VecDeque<u64>,
        protected: VecDeque<u64>,
    }

    fn take(queue: &mut VecDeque<u64>, key: u64) -> bool {
        let at = queue.iter().position(|k| *k == key);
        at.is_some_and(|at| queue.remove(at).is_some())
    }

    impl Oracle {
        fn new(config: &WTinyLfuConfig) -> Self {
            let all = config.capacity as usize;
            let window = (all * config.window_percent as usize / 100).max(1);
            let protected = (all - window) * config.protected_percent as usize / 100;
            let new = VecDeque::new;
            Self {
                sketch: Sketch::new(config.capacity, 10 * all as u64, config.doorkeeper),
                limits: [window, all - window, protected],
                window: new(),
                probation: new(),
                protected: new(),
            }
        }

        fn access(&mut self, key: u64) -> bool {
            self.sketch.add(hash(key));
            if take(&mut self.window, key) {
                self.window.push_back(key);
                return true;
            }
            if take(&mut self.protected, key) || take(&mut self.probation, key) {
                self.protected.push_back(key);
                while self.protected.len() > self.limits[2] {
                    self.probation.extend(self.protected.pop_front());
                }
                return true;
            }
            self.window.push_back(key);
            if self.window.len() > self.limits[0] {
                let candidate = self.window.pop_front().expect("it is full");
                self.admit(candidate);
            }
            false
        }

        fn admit(&mut self, candidate: u64) {
            if self.probation.len() + self.protected.len() == self.limits[1] {
                let from = match self.probation.is_empty() {
                    true => &mut self.protected,
                    false => &mut self.probation,
                };
                let Some(victim) = from.front().copied() else {
                    return;
                };
                let [ours, theirs] = [candidate, victim].map(|k| self.sketch.estimate(hash(k)));
                if ours <= theirs {
                    return;
                }
                from.pop_front();
            }
            self.probation.push_back(candidate);
        }
    }

    fn access(lfu: &mut WTinyLfu, key_of: &mut [Option<u64>], key: u64) -> bool {
        let insert = Insert {
            name: PageName(key),
            ..Insert::default()
        };
        let place = |keys: &[Option<u64>], key| keys.iter().position(|k| *k == key);
        if let Some(page) = place(key_of, Some(key)) {
            lfu.hit(PageRef(page as u32), Touch::default(), Picos(0));
            return true;
        }
        lfu.miss(None, &insert, Picos(0));
        if lfu.resident() == lfu.capacity() {
            lfu.evict().expect("it is full");
        }
        while let Some(page) = lfu.dropped() {
            key_of[page.index()] = None;
        }
        let page = place(key_of, None).expect("a free number");
        key_of[page] = Some(key);
        lfu.insert(PageRef(page as u32), &insert, Picos(0));
        false
    }

    #[test]
    fn hits_are_those_of_the_paper_over_plain_queues() {
        for (seed, capacity) in (0..).zip([1, 2, 3, 7, 30, 100, 100, 250]) {
            let mut rng = Pcg64Mcg::seed_from_u64(seed);
            let config = WTinyLfuConfig {
                window_percent: 1 + seed as u32 * 3,
                doorkeeper: seed % 2 == 1,
                ..WTinyLfuConfig::new(capacity)
            };
            let mut lfu = WTinyLfu::new(config).expect("in range");
            let mut oracle = Oracle::new(&config);
            let mut key_of = vec![None; lfu.slots() as usize];
            let mut hits = 0;
            for at in 0..6000u64 {
                let key = match rng.random_range(0..4) {
                    0 => at % (u64::from(capacity) * 3 / 2 + 1),
                    1 => 10_000 + rng.random_range(0..u64::from(capacity) / 4 + 1),
                    2 => 20_000 + at / 64,
                    _ => 30_000 + rng.random_range(0..u64::from(capacity) * 4),
                };
                let hit = access(&mut lfu, &mut key_of, key);
                assert_eq!(hit, oracle.access(key), "{capacity} pages, reference {at}");
                hits += u32::from(hit);
            }
            lfu.validate().expect("the books");
            assert!(hits > 100, "{capacity} pages: {hits} hits");
        }
    }
}
