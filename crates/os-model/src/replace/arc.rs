//! ARC, the adaptive replacement cache: N. Megiddo and D. S. Modha, *ARC: a
//! self-tuning, low overhead replacement cache*, FAST 2003, figure 4.
//!
//! Pages seen once recently are in T1, those seen at least twice in T2; B1 and B2
//! remember what was evicted from each. A hit on a ghost moves the target `p` of
//! |T1| towards the list that lost the page: by `max(1, |B2| / |B1|)` up for B1,
//! by `max(1, |B1| / |B2|)` down for B2 (real numbers, as in the paper). REPLACE
//! takes the LRU page of T1 if |T1| > p, or |T1| = p and the page that comes in is
//! in B2; of T2 otherwise.
//!
//! *Order of the steps.* The paper trims the directory (case IV) before it
//! replaces; here it is trimmed after the insertion. The outcome is the same: the
//! page that REPLACE puts at the hot end of a ghost list is the one trimmed only
//! where the list was empty, and that is case IV.A with |T1| = c, in which the
//! paper drops the page unremembered.
//!
//! *Beyond the paper.* If every page of the list that REPLACE wants is detached, the other
//! list serves. Detached pages count in |T1| and |T2|.
//!
//! 12 B of state per slot, `2 * capacity + 1` slots.

use piebald_policy::contract::replacement::{
    Base, BrokenOrder, Fetch, Gone, Insert, PageRef, Replacement, State, Touch,
};
use piebald_units::Picos;

use super::{
    ConfigError, check_capacity,
    kit::{Dropped, Link, Linked, List, NIL, Note, broken, fill, linked, misuse, rule_holds},
};

/// Configuration of ARC. It has nothing to tune.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArcConfig {
    /// Pages that fit in memory: 1 to 2^28.
    pub capacity: u32,
}

impl ArcConfig {
    /// The published algorithm.
    pub fn new(capacity: u32) -> Self {
        Self { capacity }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Nowhere,
    T1,
    T2,
    B1,
    B2,
}

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    link: Link,
    place: Place,
    detached: bool,
    note: Note,
}
linked!(Node, 0, link);

/// The adaptive replacement cache.
#[derive(Clone, Debug)]
pub struct Arc {
    nodes: Vec<Node>,
    t1: List,
    t2: List,
    b1: List,
    b2: List,
    /// Detached pages of T1 and of T2.
    held: [u32; 2],
    capacity: u32,
    /// Target size of T1, 0 to `capacity`.
    p: f64,
    /// The page that comes in is in B2.
    from_b2: bool,
    /// Ghost that is being fetched: kept until it is here or another is.
    coming: u32,
    dropped: Dropped,
}

impl Arc {
    /// An empty cache.
    ///
    /// # Errors
    /// If the capacity is out of range.
    pub fn new(config: ArcConfig) -> Result<Self, ConfigError> {
        let capacity = check_capacity("arc", config.capacity)?;
        Ok(Self {
            nodes: vec![Node::default(); 2 * capacity as usize + 1],
            t1: List::default(),
            t2: List::default(),
            b1: List::default(),
            b2: List::default(),
            held: [0; 2],
            capacity,
            p: 0.0,
            from_b2: false,
            coming: NIL,
            dropped: Dropped::default(),
        })
    }

    /// Target size of T1 in pages, 0 to the capacity.
    pub fn target(&self) -> f64 {
        self.p
    }

    fn place_of(&self, page: PageRef) -> Place {
        self.nodes
            .get(page.index())
            .map_or(Place::Nowhere, |n| n.place)
    }

    /// |T1| and |T2|, detached pages included.
    fn sizes(&self) -> [u32; 2] {
        [self.t1.len() + self.held[0], self.t2.len() + self.held[1]]
    }

    fn adapt(&mut self, ghost: Place) {
        let (b1, b2) = (f64::from(self.b1.len()), f64::from(self.b2.len()));
        match ghost {
            Place::B1 => self.p = (self.p + (b2 / b1).max(1.0)).min(f64::from(self.capacity)),
            _ => self.p = (self.p - (b1 / b2).max(1.0)).max(0.0),
        }
    }

    /// Does REPLACE take from T1, if that has `t1` pages?
    fn takes_t1(&self, t1: u32) -> bool {
        let t1 = f64::from(t1);
        t1 > self.p || (self.from_b2 && t1 == self.p && t1 >= 1.0)
    }

    /// The victims, in the order in which REPLACE takes them.
    fn order(&self) -> impl Iterator<Item = u32> {
        let (mut t1, mut t2) = (self.t1.tail(), self.t2.tail());
        let [mut left, _] = self.sizes();
        std::iter::from_fn(move || {
            let first = match (t1, t2) {
                (Some(_), Some(_)) => self.takes_t1(left),
                (one, _) => one.is_some(),
            };
            let cursor = if first { &mut t1 } else { &mut t2 };
            let page = (*cursor)?;
            *cursor = List::<0>::above(&self.nodes, page);
            left -= u32::from(first);
            Some(page)
        })
    }

    /// Puts a page that is in no list at the hot end of T1 or T2.
    fn attach(&mut self, page: u32, place: Place) {
        let node = &mut self.nodes[page as usize];
        (node.place, node.detached) = (place, false);
        match place {
            Place::T1 => self.t1.push(&mut self.nodes, page),
            _ => self.t2.push(&mut self.nodes, page),
        }
    }

    /// Takes a page out of its list, or off the count of the detached ones.
    fn take_out(&mut self, page: u32) {
        let node = self.nodes[page as usize];
        match (node.place, node.detached) {
            (Place::T1, false) => self.t1.unlink(&mut self.nodes, page),
            (Place::T2, false) => self.t2.unlink(&mut self.nodes, page),
            (Place::T1, true) => self.held[0] -= 1,
            (Place::T2, true) => self.held[1] -= 1,
            (Place::B1, _) => self.b1.unlink(&mut self.nodes, page),
            (Place::B2, _) => self.b2.unlink(&mut self.nodes, page),
            (Place::Nowhere, _) => {}
        }
    }

    fn drop_page(&mut self, page: u32) {
        self.take_out(page);
        self.nodes[page as usize] = Node::default();
        self.dropped.push(page);
    }

    /// Case IV: |T1| + |B1| at most c, everything at most 2c.
    fn trim(&mut self) {
        let [t1, t2] = self.sizes();
        while t1 + self.b1.len() > self.capacity {
            let Some(page) = self.b1.coldest_but(&self.nodes, self.coming) else {
                break;
            };
            self.drop_page(page);
        }
        while t1 + t2 + self.b1.len() + self.b2.len() > 2 * self.capacity {
            let Some(page) = self.b2.coldest_but(&self.nodes, self.coming) else {
                break;
            };
            self.drop_page(page);
        }
    }

    fn remember(&mut self, page: u32) {
        let place = self.nodes[page as usize].place;
        self.take_out(page);
        let node = &mut self.nodes[page as usize];
        *node = Node::default();
        if place == Place::T1 {
            node.place = Place::B1;
            self.b1.push(&mut self.nodes, page);
        } else {
            node.place = Place::B2;
            self.b2.push(&mut self.nodes, page);
        }
    }
}

impl Replacement for Arc {
    fn capacity(&self) -> u32 {
        self.capacity
    }

    fn slots(&self) -> u32 {
        2 * self.capacity + 1
    }

    #[inline]
    fn miss(&mut self, ghost: Option<PageRef>, insert: &Insert, _now: Picos) {
        let place = ghost.map_or(Place::Nowhere, |g| self.place_of(g));
        (self.from_b2, self.coming) = (place == Place::B2, NIL);
        match (place, ghost) {
            (Place::B1 | Place::B2, Some(ghost)) => {
                self.coming = ghost.0;
                if insert.fetch == Fetch::Demand {
                    self.adapt(place);
                }
            }
            _ => debug_assert!(ghost.is_none(), "miss of a page that is no ghost"),
        }
    }

    #[inline]
    fn insert(&mut self, page: PageRef, insert: &Insert, _now: Picos) {
        if page.index() >= self.nodes.len() {
            return misuse("insert", page);
        }
        let asked = insert.fetch == Fetch::Demand;
        let (place, note) = match self.place_of(page) {
            Place::Nowhere => (Place::T1, Note::of(insert)),
            Place::B1 if !asked => (Place::T1, Note::Plain),
            Place::B1 | Place::B2 => (Place::T2, Note::Plain),
            Place::T1 | Place::T2 => return misuse("insert", page),
        };
        self.take_out(page.0);
        self.nodes[page.index()] = Node {
            note,
            ..Node::default()
        };
        self.attach(page.0, place);
        if self.coming == page.0 {
            (self.from_b2, self.coming) = (false, NIL);
        }
        self.trim();
    }

    #[inline]
    fn hit(&mut self, page: PageRef, _touch: Touch, _now: Picos) {
        let Some(node) = self.nodes.get_mut(page.index()) else {
            return misuse("hit", page);
        };
        let first = node.note.first_use();
        match (node.place, node.detached) {
            (Place::T1 | Place::T2, true) if first => {}
            (Place::T1 | Place::T2, true) => node.note = Note::Used,
            (Place::T2, false) => self.t2.raise(&mut self.nodes, page.0),
            (Place::T1, false) if first => self.t1.raise(&mut self.nodes, page.0),
            (Place::T1, false) => {
                self.t1.unlink(&mut self.nodes, page.0);
                self.attach(page.0, Place::T2);
            }
            _ => misuse("hit", page),
        }
    }

    fn propose(&self, out: &mut [PageRef]) -> usize {
        fill(out, self.order())
    }

    fn detach(&mut self, page: PageRef) {
        match self.state(page) {
            State::Resident => {}
            _ => return misuse("detach", page),
        }
        self.take_out(page.0);
        let node = &mut self.nodes[page.index()];
        node.detached = true;
        self.held[usize::from(node.place == Place::T2)] += 1;
    }

    fn reattach(&mut self, page: PageRef) {
        if self.state(page) != State::Detached {
            return misuse("reattach", page);
        }
        self.take_out(page.0);
        let node = &mut self.nodes[page.index()];
        let place = match node.note.take_used() {
            true => Place::T2,
            false => node.place,
        };
        self.attach(page.0, place);
    }

    fn forget(&mut self, page: PageRef, why: Gone) {
        match (self.state(page), why) {
            (State::Unknown, _) | (State::Ghost, Gone::Evicted) => misuse("forget", page),
            (State::Resident | State::Detached, Gone::Evicted)
                if self.nodes[page.index()].note != Note::Unread =>
            {
                self.remember(page.0);
            }
            _ => self.drop_page(page.0),
        }
    }

    #[inline]
    fn evict(&mut self) -> Option<PageRef> {
        let page = PageRef(self.order().next()?);
        self.forget(page, Gone::Evicted);
        Some(page)
    }

    #[inline]
    fn dropped(&mut self) -> Option<PageRef> {
        self.dropped.pop()
    }

    fn state(&self, page: PageRef) -> State {
        match self.nodes.get(page.index()) {
            None => State::Unknown,
            Some(node) => match node.place {
                Place::Nowhere => State::Unknown,
                Place::B1 | Place::B2 => State::Ghost,
                Place::T1 | Place::T2 if node.detached => State::Detached,
                Place::T1 | Place::T2 => State::Resident,
            },
        }
    }

    fn resident(&self) -> u32 {
        self.sizes().iter().sum()
    }

    fn validate(&self) -> Result<(), BrokenOrder> {
        let lists = [
            (&self.t1, Place::T1, "T1: links, length, members"),
            (&self.t2, Place::T2, "T2: links, length, members"),
            (&self.b1, Place::B1, "B1: links, length, members"),
            (&self.b2, Place::B2, "B2: links, length, members"),
        ];
        for (list, place, rule) in lists {
            list.check(&self.nodes, rule, |n| n.place == place && !n.detached)?;
            let there = |n: &&Node| n.place == place && !n.detached;
            let count = self.nodes.iter().filter(there).count();
            rule_holds(count == list.len() as usize, rule)?;
        }
        for (held, place) in self.held.iter().zip([Place::T1, Place::T2]) {
            let there = |n: &&Node| n.place == place && n.detached;
            let count = self.nodes.iter().filter(there).count();
            rule_holds(count == *held as usize, "detached pages are counted")?;
        }
        for (page, node) in (0..).zip(&self.nodes) {
            if node.place != Place::Nowhere && self.dropped.has(page) {
                return Err(broken("a page with a place is not dropped", page));
            }
        }
        let [t1, t2] = self.sizes();
        let spare = u32::from(self.coming != NIL);
        let within = t1 + t2 > self.capacity || t1 + self.b1.len() <= self.capacity + spare;
        rule_holds(within, "|T1| + |B1| is at most the capacity")?;
        rule_holds(
            (0.0..=f64::from(self.capacity)).contains(&self.p),
            "the target lies between 0 and the capacity",
        )
    }
}

impl Base for Arc {
    fn coldest(&self, out: &mut [PageRef]) -> usize {
        self.propose(out)
    }

    fn wanted(&self, page: PageRef) -> bool {
        self.nodes
            .get(page.index())
            .is_some_and(|n| n.note == Note::Used)
    }
}
