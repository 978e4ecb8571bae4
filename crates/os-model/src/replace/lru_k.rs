//! LRU-2: E. J. O'Neil, P. E. O'Neil and G. Weikum, *The LRU-K page replacement
//! algorithm for database disk buffering*, SIGMOD 1993, figure 2.1, with K = 2.
//!
//! The victim is the page whose second last use lies farthest back; pages used once
//! have none, go before all others, and among themselves in LRU order (the paper's
//! subsidiary policy). Uses within the *correlated reference period* of the last one
//! count as one, and a page within it is no victim. A page that left keeps its
//! history for the *retained information period*.
//!
//! *Time* is the number of uses told so far, as in the paper. *Retained
//! information* is bounded by a number of pages, the first to leave forgotten
//! first, not by a time. If every page is within its correlated reference period
//! (the paper then has no victim) they go in the same order as otherwise.
//!
//! 32 B of state per slot and up to 32 B of heap per page in memory,
//! `capacity + ghosts + 1` slots. A use costs O(1) on average, a victim
//! O(log capacity).

use std::cmp::Reverse;

use piebald_policy::contract::replacement::{
    BrokenOrder, Fetch, Gone, Insert, PageRef, Replacement, State, Touch,
};
use piebald_units::Picos;

use super::{
    ConfigError, check, check_capacity,
    kit::{Dropped, Link, Linked, List, NIL, broken, fill, linked, misuse, rule_holds, share},
    lazy_heap::LazyHeap,
};

/// Configuration of LRU-2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LruKConfig {
    /// Pages that fit in memory: 1 to 2^28.
    pub capacity: u32,
    /// Correlated reference period in uses. The paper names 5 s for its canonical
    /// period and uses 0 in its experiments `[M]`: 0. Where uses come in bursts it
    /// matters: see the trace OLTP in the tests.
    pub correlated_uses: u64,
    /// Pages not in memory whose history is kept, in percent of the capacity: 0 to
    /// 400. The paper keeps it for about 200 s; 100. libCacheSim keeps none.
    pub retained_percent: u32,
}

impl LruKConfig {
    /// The defaults above.
    pub fn new(capacity: u32) -> Self {
        Self {
            capacity,
            correlated_uses: 0,
            retained_percent: 100,
        }
    }

    fn ghosts(&self) -> u32 {
        share(
            self.capacity,
            self.retained_percent,
            self.retained_percent.min(1),
        )
    }
}

#[derive(Clone, Copy, Debug)]
struct Node {
    /// In the list of pages used at most once, or in that of ghosts.
    link: Link,
    /// HIST(p, 1) and HIST(p, 2), 0 for none: times of the last two uncorrelated
    /// uses.
    hist: [u64; 2],
    /// LAST(p): time of the last use.
    last: u64,
    state: State,
}
linked!(Node, 0, link);

impl Default for Node {
    fn default() -> Self {
        Self {
            link: Link::default(),
            hist: [0; 2],
            last: 0,
            state: State::Unknown,
        }
    }
}

/// LRU-2.
#[derive(Clone, Debug)]
pub struct LruK {
    nodes: Vec<Node>,
    /// Attached pages without a second last use, in LRU order.
    once: List,
    /// The others, by second last use.
    twice: LazyHeap<Reverse<u64>>,
    ghosts: List,
    resident: u32,
    capacity: u32,
    ghost_limit: u32,
    correlated: u64,
    clock: u64,
    /// Ghost that is being fetched.
    coming: u32,
    dropped: Dropped,
}

fn holds(nodes: &[Node]) -> impl Fn(Reverse<u64>, u32) -> bool {
    |key, page| {
        let node = &nodes[page as usize];
        node.state == State::Resident && node.hist[1] == key.0 && key.0 != 0
    }
}

impl LruK {
    /// An empty cache.
    ///
    /// # Errors
    /// If a field is out of its range.
    pub fn new(config: LruKConfig) -> Result<Self, ConfigError> {
        let capacity = check_capacity("lru-2", config.capacity)?;
        let retained = u64::from(config.retained_percent);
        check("lru-2", "retained_percent", retained, 0..=400, "0 to 400")?;
        let slots = capacity as usize + config.ghosts() as usize + 1;
        Ok(Self {
            nodes: vec![Node::default(); slots],
            once: List::default(),
            twice: LazyHeap::new(),
            ghosts: List::default(),
            resident: 0,
            capacity,
            ghost_limit: config.ghosts(),
            correlated: config.correlated_uses,
            clock: 0,
            coming: NIL,
            dropped: Dropped::default(),
        })
    }

    /// Is a page outside its correlated reference period at the next use?
    fn ripe(&self, page: u32) -> bool {
        self.clock + 1 - self.nodes[page as usize].last > self.correlated
    }

    fn plain_order(&self) -> impl Iterator<Item = u32> {
        let once = self.once.coldest(&self.nodes);
        once.chain(self.twice.order(holds(&self.nodes)))
    }

    /// The victims: ripe pages first.
    fn order(&self) -> impl Iterator<Item = u32> {
        let ripe = self.plain_order().filter(|p| self.ripe(*p));
        let rest = (self.correlated > 0).then(|| self.plain_order().filter(|p| !self.ripe(*p)));
        ripe.chain(rest.into_iter().flatten())
    }

    /// Enters an attached page where its history puts it.
    #[inline]
    fn enlist(&mut self, page: u32) {
        match self.nodes[page as usize].hist[1] {
            0 => self.once.push(&mut self.nodes, page),
            second => {
                let live = self.resident;
                self.twice
                    .push(Reverse(second), page, live, holds(&self.nodes));
            }
        }
    }

    fn delist(&mut self, page: u32) {
        if self.nodes[page as usize].hist[1] == 0 {
            self.once.unlink(&mut self.nodes, page);
        }
    }

    /// Entries of pages that left go before `propose`, which changes nothing, has to
    /// look at them each time.
    fn clear_top(&mut self) {
        self.twice.top(holds(&self.nodes));
    }

    /// Figure 2.1, "p is already in the buffer".
    fn note_use(&mut self, page: u32) {
        self.clock += 1;
        let node = &mut self.nodes[page as usize];
        let [first, _] = node.hist;
        if first == 0 {
            node.hist[0] = self.clock;
        } else if self.clock - node.last > self.correlated {
            // The uses in between were one use that ended at LAST.
            node.hist = [self.clock, node.last];
        }
        node.last = self.clock;
    }

    fn drop_page(&mut self, page: u32) {
        self.nodes[page as usize] = Node::default();
        self.dropped.push(page);
    }

    /// Forgets the oldest ghosts beyond the bound; the one on its way stays.
    fn trim(&mut self) {
        let kept = |s: &Self| u32::from(s.coming != NIL);
        while self.ghosts.len() > self.ghost_limit + kept(self) {
            let Some(oldest) = self.ghosts.coldest_but(&self.nodes, self.coming) else {
                break;
            };
            self.ghosts.unlink(&mut self.nodes, oldest);
            self.drop_page(oldest);
        }
    }
}

impl Replacement for LruK {
    fn capacity(&self) -> u32 {
        self.capacity
    }

    fn slots(&self) -> u32 {
        self.capacity + self.ghost_limit + 1
    }

    fn miss(&mut self, ghost: Option<PageRef>, _insert: &Insert, _now: Picos) {
        let known = ghost.filter(|g| self.state(*g) == State::Ghost);
        debug_assert!(known == ghost, "miss of a page that is no ghost");
        self.coming = known.map_or(NIL, |g| g.0);
        self.trim();
    }

    #[inline]
    fn insert(&mut self, page: PageRef, insert: &Insert, _now: Picos) {
        match self.state(page) {
            State::Ghost => self.ghosts.unlink(&mut self.nodes, page.0),
            State::Unknown if page.index() < self.nodes.len() => {}
            _ => return misuse("insert", page),
        }
        if insert.fetch == Fetch::Demand {
            self.clock += 1;
            let node = &mut self.nodes[page.index()];
            node.hist = [self.clock, node.hist[0]];
            node.last = self.clock;
        }
        self.nodes[page.index()].state = State::Resident;
        self.resident += 1;
        self.enlist(page.0);
        if self.coming == page.0 {
            self.coming = NIL;
        }
        self.trim();
    }

    #[inline]
    fn hit(&mut self, page: PageRef, _touch: Touch, _now: Picos) {
        match self.state(page) {
            State::Resident => {
                self.delist(page.0);
                self.note_use(page.0);
                self.enlist(page.0);
            }
            State::Detached => self.note_use(page.0),
            State::Unknown | State::Ghost => misuse("hit", page),
        }
    }

    fn propose(&self, out: &mut [PageRef]) -> usize {
        fill(out, self.order())
    }

    fn detach(&mut self, page: PageRef) {
        if self.state(page) != State::Resident {
            return misuse("detach", page);
        }
        self.delist(page.0);
        self.nodes[page.index()].state = State::Detached;
        self.clear_top();
    }

    fn reattach(&mut self, page: PageRef) {
        if self.state(page) != State::Detached {
            return misuse("reattach", page);
        }
        self.nodes[page.index()].state = State::Resident;
        self.enlist(page.0);
    }

    fn forget(&mut self, page: PageRef, why: Gone) {
        match (self.state(page), why) {
            (State::Unknown, _) | (State::Ghost, Gone::Evicted) => return misuse("forget", page),
            (State::Ghost, _) => self.ghosts.unlink(&mut self.nodes, page.0),
            (State::Resident, _) => {
                self.delist(page.0);
                self.resident -= 1;
            }
            (State::Detached, _) => self.resident -= 1,
        }
        let seen = self.nodes[page.index()].hist[0] != 0;
        if why == Gone::Deleted || !seen {
            self.drop_page(page.0);
        } else {
            self.nodes[page.index()].state = State::Ghost;
            self.ghosts.push(&mut self.nodes, page.0);
        }
        if self.state(PageRef(self.coming)) != State::Ghost {
            self.coming = NIL;
        }
        self.clear_top();
        self.trim();
    }

    #[inline]
    fn evict(&mut self) -> Option<PageRef> {
        // The first of either kind is nearly always ripe; in the list of those used
        // once all are, if the coldest is.
        let first = match self.once.tail().filter(|page| self.ripe(*page)) {
            None => self.twice.top(holds(&self.nodes)),
            once => once,
        };
        let page = match first.filter(|page| self.ripe(*page)) {
            None => self.order().next()?,
            Some(page) => page,
        };
        self.forget(PageRef(page), Gone::Evicted);
        Some(PageRef(page))
    }

    fn dropped(&mut self) -> Option<PageRef> {
        self.dropped.pop()
    }

    fn state(&self, page: PageRef) -> State {
        let node = self.nodes.get(page.index());
        node.map_or(State::Unknown, |n| n.state)
    }

    fn resident(&self) -> u32 {
        self.resident
    }

    fn validate(&self) -> Result<(), BrokenOrder> {
        let count = |test: fn(&Node) -> bool| self.nodes.iter().filter(|n| test(n)).count();
        let once = |n: &Node| n.state == State::Resident && n.hist[1] == 0;
        let ghost = |n: &Node| n.state == State::Ghost;
        let resident = |n: &Node| matches!(n.state, State::Resident | State::Detached);
        self.once
            .check(&self.nodes, "used once: links, length, members", once)?;
        self.ghosts
            .check(&self.nodes, "ghosts: links, length, members", ghost)?;
        let once = count(once) == self.once.len() as usize;
        rule_holds(once, "pages used once are listed")?;
        let ghosts = count(ghost) == self.ghosts.len() as usize;
        rule_holds(ghosts, "ghosts are listed")?;
        let resident = count(resident) == self.resident as usize;
        rule_holds(resident, "pages in memory are counted")?;
        let attached = count(|n| n.state == State::Resident);
        rule_holds(
            self.order().count() == attached,
            "every attached page is in the order once",
        )?;
        let mut last = 0;
        for page in self.plain_order() {
            let node = &self.nodes[page as usize];
            let key = if node.hist[1] == 0 { 0 } else { node.hist[1] };
            if key < last || self.dropped.has(page) || node.hist[1] > node.hist[0] {
                return Err(broken("the oldest second last use comes first", page));
            }
            last = key;
        }
        Ok(())
    }
}
