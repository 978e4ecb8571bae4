//! MQ: Y. Zhou, J. F. Philbin and K. Li, *The multi-queue replacement algorithm for
//! second level buffer caches*, USENIX Annual Technical Conference 2001, figure 5.
//!
//! Eight LRU queues by the logarithm of a page's uses, so that pages used 2^k to
//! 2^(k+1) - 1 times lie in queue k. The victim is the LRU page of the lowest queue
//! that has one. A page that is not used for `life_time` uses of any page moves one
//! queue down: after every use the LRU page of each queue but the lowest is looked
//! at. The number of uses of a page that left is remembered in the FIFO `Qout`, and
//! the page continues from it.
//!
//! *Not modelled:* the paper's tuning of `life_time` to the peak of the temporal
//! distances as it runs; the field is fixed.
//!
//! 24 B of state per slot, `capacity + ghosts + 1` slots.

use piebald_policy::contract::replacement::{
    Base, BrokenOrder, Fetch, Gone, Insert, PageRef, Replacement, State, Touch,
};
use piebald_units::Picos;

use super::{
    ConfigError, check, check_capacity,
    kit::{
        Dropped, Link, Linked, List, NIL, Note, broken, fill, linked, misuse, rule_holds, share,
    },
};

/// Queues: 8 in the paper `[M]`.
const NR_QUEUES: usize = 8;

/// Configuration of MQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MqConfig {
    /// Pages that fit in memory: 1 to 2^28.
    pub capacity: u32,
    /// Uses of any page after which an unused one moves a queue down: 1 to 2^40.
    /// The paper takes the peak of the temporal distances of its traces, which lies
    /// beyond the size of the cache; default four times the capacity `[M]`.
    pub life_time_uses: u64,
    /// Pages in Qout, in percent of the capacity: 1 to 400. 400 in the paper
    /// `[M]`.
    pub qout_percent: u32,
}

impl MqConfig {
    /// The defaults above.
    pub fn new(capacity: u32) -> Self {
        Self {
            capacity,
            life_time_uses: 4 * u64::from(capacity).max(1),
            qout_percent: 400,
        }
    }

    fn ghosts(&self) -> u32 {
        share(self.capacity, self.qout_percent, 1)
    }
}

#[derive(Clone, Copy, Debug)]
struct Node {
    link: Link,
    /// Uses so far.
    uses: u32,
    /// Queue, as long as the page is in memory.
    queue: u8,
    state: State,
    note: Note,
    /// When it moves a queue down.
    expires: u64,
}
linked!(Node, 0, link);

impl Default for Node {
    fn default() -> Self {
        Self {
            link: Link::default(),
            uses: 0,
            queue: 0,
            state: State::Unknown,
            note: Note::Plain,
            expires: 0,
        }
    }
}

/// The multi-queue algorithm.
#[derive(Clone, Debug)]
pub struct Mq {
    nodes: Vec<Node>,
    queues: [List; NR_QUEUES],
    qout: List,
    resident: u32,
    capacity: u32,
    ghost_limit: u32,
    life_time: u64,
    clock: u64,
    /// Ghost that is being fetched.
    coming: u32,
    dropped: Dropped,
}

/// The queue of a page with this many uses.
fn queue_of(uses: u32) -> u8 {
    (uses.max(1).ilog2() as u8).min(NR_QUEUES as u8 - 1)
}

impl Mq {
    /// An empty cache.
    ///
    /// # Errors
    /// If a field is out of its range.
    pub fn new(config: MqConfig) -> Result<Self, ConfigError> {
        let capacity = check_capacity("mq", config.capacity)?;
        let life = config.life_time_uses;
        check("mq", "life_time_uses", life, 1..=1 << 40, "1 to 2^40")?;
        let qout = u64::from(config.qout_percent);
        check("mq", "qout_percent", qout, 1..=400, "1 to 400")?;
        let slots = capacity as usize + config.ghosts() as usize + 1;
        Ok(Self {
            nodes: vec![Node::default(); slots],
            queues: [List::default(); NR_QUEUES],
            qout: List::default(),
            resident: 0,
            capacity,
            ghost_limit: config.ghosts(),
            life_time: life,
            clock: 0,
            coming: NIL,
            dropped: Dropped::default(),
        })
    }

    fn order(&self) -> impl Iterator<Item = u32> {
        self.queues.iter().flat_map(|q| q.coldest(&self.nodes))
    }

    /// Puts a page at the hot end of a queue, with a new life time.
    #[inline]
    fn enqueue(&mut self, page: u32, queue: u8) {
        let node = &mut self.nodes[page as usize];
        (node.queue, node.expires) = (queue, self.clock + self.life_time);
        self.queues[usize::from(queue)].push(&mut self.nodes, page);
    }

    fn dequeue(&mut self, page: u32) {
        let queue = self.nodes[page as usize].queue;
        self.queues[usize::from(queue)].unlink(&mut self.nodes, page);
    }

    /// Adjust(): the LRU pages of the higher queues that expired move down.
    #[inline]
    fn adjust(&mut self) {
        self.clock += 1;
        for queue in 1..NR_QUEUES {
            let Some(page) = self.queues[queue].tail() else {
                continue;
            };
            if self.nodes[page as usize].expires < self.clock {
                self.dequeue(page);
                self.enqueue(page, queue as u8 - 1);
            }
        }
    }

    fn drop_page(&mut self, page: u32) {
        self.nodes[page as usize] = Node::default();
        self.dropped.push(page);
    }

    /// Forgets the oldest of Qout beyond its size; the one on its way stays.
    fn trim(&mut self) {
        let kept = |s: &Self| u32::from(s.coming != NIL);
        while self.qout.len() > self.ghost_limit + kept(self) {
            let Some(oldest) = self.qout.coldest_but(&self.nodes, self.coming) else {
                break;
            };
            self.qout.unlink(&mut self.nodes, oldest);
            self.drop_page(oldest);
        }
    }
}

impl Replacement for Mq {
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
            State::Ghost => self.qout.unlink(&mut self.nodes, page.0),
            State::Unknown if page.index() < self.nodes.len() => {}
            _ => return misuse("insert", page),
        }
        let node = &mut self.nodes[page.index()];
        node.state = State::Resident;
        if insert.fetch == Fetch::Demand {
            node.uses = node.uses.saturating_add(1);
        }
        let queue = queue_of(node.uses);
        self.resident += 1;
        self.enqueue(page.0, queue);
        self.adjust();
        if self.coming == page.0 {
            self.coming = NIL;
        }
        self.trim();
    }

    #[inline]
    fn hit(&mut self, page: PageRef, _touch: Touch, _now: Picos) {
        let state = self.state(page);
        if !matches!(state, State::Resident | State::Detached) {
            return misuse("hit", page);
        }
        let node = &mut self.nodes[page.index()];
        node.uses = node.uses.saturating_add(1);
        let queue = queue_of(node.uses);
        if state == State::Resident {
            self.dequeue(page.0);
            self.enqueue(page.0, queue);
        } else {
            (node.queue, node.note) = (queue, Note::Used);
        }
        self.adjust();
    }

    fn propose(&self, out: &mut [PageRef]) -> usize {
        fill(out, self.order())
    }

    fn detach(&mut self, page: PageRef) {
        if self.state(page) != State::Resident {
            return misuse("detach", page);
        }
        self.dequeue(page.0);
        self.nodes[page.index()].state = State::Detached;
    }

    fn reattach(&mut self, page: PageRef) {
        if self.state(page) != State::Detached {
            return misuse("reattach", page);
        }
        let node = &mut self.nodes[page.index()];
        (node.state, node.note) = (State::Resident, Note::Plain);
        let queue = node.queue;
        self.enqueue(page.0, queue);
    }

    fn forget(&mut self, page: PageRef, why: Gone) {
        match (self.state(page), why) {
            (State::Unknown, _) | (State::Ghost, Gone::Evicted) => return misuse("forget", page),
            (State::Ghost, _) => self.qout.unlink(&mut self.nodes, page.0),
            (State::Resident, _) => {
                self.dequeue(page.0);
                self.resident -= 1;
            }
            (State::Detached, _) => self.resident -= 1,
        }
        if why == Gone::Deleted || self.nodes[page.index()].uses == 0 {
            self.drop_page(page.0);
        } else {
            let node = &mut self.nodes[page.index()];
            (node.state, node.note) = (State::Ghost, Note::Plain);
            self.qout.push(&mut self.nodes, page.0);
        }
        if self.state(PageRef(self.coming)) != State::Ghost {
            self.coming = NIL;
        }
        self.trim();
    }

    #[inline]
    fn evict(&mut self) -> Option<PageRef> {
        let page = PageRef(self.order().next()?);
        self.forget(page, Gone::Evicted);
        Some(page)
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
        let mut attached = 0;
        for (queue, list) in (0..).zip(&self.queues) {
            list.check(&self.nodes, "queue: links, length, members", |n| {
                n.state == State::Resident && n.queue == queue && n.queue <= queue_of(n.uses)
            })?;
            attached += list.len();
        }
        let ghost = |n: &Node| n.state == State::Ghost;
        self.qout
            .check(&self.nodes, "Qout: links, length, members", ghost)?;
        let count = |state| self.nodes.iter().filter(|n| n.state == state).count() as u32;
        rule_holds(
            count(State::Resident) == attached,
            "attached pages are queued",
        )?;
        rule_holds(count(State::Ghost) == self.qout.len(), "ghosts are in Qout")?;
        let resident = attached + count(State::Detached);
        rule_holds(resident == self.resident, "pages in memory are counted")?;
        for (page, node) in (0..).zip(&self.nodes) {
            if node.state != State::Unknown && self.dropped.has(page) {
                return Err(broken("a page with a state is not dropped", page));
            }
        }
        Ok(())
    }
}

impl Base for Mq {
    fn coldest(&self, out: &mut [PageRef]) -> usize {
        self.propose(out)
    }

    fn wanted(&self, page: PageRef) -> bool {
        let node = self.nodes.get(page.index());
        node.is_some_and(|n| n.note == Note::Used)
    }
}
