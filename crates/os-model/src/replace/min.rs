//! MIN, the bound: L. A. Belady, *A study of replacement algorithms for a
//! virtual-storage computer*, IBM Systems Journal 5(2), 1966.
//!
//! The victim is the page whose next use lies farthest in the future. The host
//! tells every next use ([`Insert::next_use`], [`Touch::next_use`]); a page without
//! one is never used again and goes first. Among pages that are never used again
//! the greater number goes first, which changes no count of misses.
//!
//! A page that comes in always gets room, as demand paging must; a cache that may
//! refuse a page could miss less. Nothing is remembered of pages that left.
//!
//! 16 B of state per slot and up to 32 B of heap per page in memory,
//! `capacity + 1` slots.

use piebald_policy::contract::replacement::{
    BrokenOrder, Gone, Insert, PageRef, Replacement, State, Touch,
};
use piebald_units::Picos;

use super::{
    ConfigError, check_capacity,
    kit::{Dropped, broken, fill, misuse, rule_holds},
    lazy_heap::LazyHeap,
};

/// Configuration of MIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinConfig {
    /// Pages that fit in memory: 1 to 2^28.
    pub capacity: u32,
}

impl MinConfig {
    /// Belady's rule.
    pub fn new(capacity: u32) -> Self {
        Self { capacity }
    }
}

#[derive(Clone, Copy, Debug)]
struct Node {
    next_use: u64,
    state: State,
}

/// The key of a page that is never used again.
const NEVER: u64 = u64::MAX;

/// Belady's optimal replacement.
#[derive(Clone, Debug)]
pub struct Min {
    nodes: Vec<Node>,
    heap: LazyHeap<u64>,
    resident: u32,
    capacity: u32,
    dropped: Dropped,
}

/// Does an entry of the heap still say where the page stands?
fn holds(nodes: &[Node]) -> impl Fn(u64, u32) -> bool {
    |key, page| {
        let node = &nodes[page as usize];
        node.state == State::Resident && node.next_use == key
    }
}

impl Min {
    /// An empty cache.
    ///
    /// # Errors
    /// If the capacity is out of range.
    pub fn new(config: MinConfig) -> Result<Self, ConfigError> {
        let capacity = check_capacity("min", config.capacity)?;
        let free = Node {
            next_use: NEVER,
            state: State::Unknown,
        };
        Ok(Self {
            nodes: vec![free; capacity as usize + 1],
            heap: LazyHeap::new(),
            resident: 0,
            capacity,
            dropped: Dropped::default(),
        })
    }

    #[inline]
    fn enlist(&mut self, page: u32) {
        let key = self.nodes[page as usize].next_use;
        self.heap.push(key, page, self.capacity, holds(&self.nodes));
    }

    fn order(&self) -> impl Iterator<Item = u32> {
        self.heap.order(holds(&self.nodes))
    }
}

impl Replacement for Min {
    fn capacity(&self) -> u32 {
        self.capacity
    }

    fn slots(&self) -> u32 {
        self.capacity + 1
    }

    fn miss(&mut self, ghost: Option<PageRef>, _insert: &Insert, _now: Picos) {
        debug_assert!(ghost.is_none(), "miss of a page that is no ghost");
    }

    #[inline]
    fn insert(&mut self, page: PageRef, insert: &Insert, _now: Picos) {
        match self.nodes.get_mut(page.index()) {
            Some(node) if node.state == State::Unknown => {
                let next_use = insert.next_use.unwrap_or(NEVER);
                let state = State::Resident;
                *node = Node { next_use, state };
            }
            _ => return misuse("insert", page),
        }
        self.resident += 1;
        self.enlist(page.0);
    }

    #[inline]
    fn hit(&mut self, page: PageRef, touch: Touch, _now: Picos) {
        let Some(node) = self.nodes.get_mut(page.index()) else {
            return misuse("hit", page);
        };
        let next_use = touch.next_use.unwrap_or(NEVER);
        let before = std::mem::replace(&mut node.next_use, next_use);
        match node.state {
            State::Resident if before != next_use => self.enlist(page.0),
            State::Resident | State::Detached => {}
            State::Unknown | State::Ghost => misuse("hit", page),
        }
    }

    fn propose(&self, out: &mut [PageRef]) -> usize {
        fill(out, self.order())
    }

    fn detach(&mut self, page: PageRef) {
        match self.state(page) {
            State::Resident => self.nodes[page.index()].state = State::Detached,
            _ => misuse("detach", page),
        }
    }

    fn reattach(&mut self, page: PageRef) {
        if self.state(page) != State::Detached {
            return misuse("reattach", page);
        }
        self.nodes[page.index()].state = State::Resident;
        self.enlist(page.0);
    }

    fn forget(&mut self, page: PageRef, _why: Gone) {
        if self.state(page) == State::Unknown {
            return misuse("forget", page);
        }
        self.nodes[page.index()].state = State::Unknown;
        self.resident -= 1;
        self.dropped.push(page.0);
    }

    #[inline]
    fn evict(&mut self) -> Option<PageRef> {
        let page = PageRef(self.heap.top(holds(&self.nodes))?);
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
        let known = self.nodes.iter().filter(|n| n.state != State::Unknown);
        rule_holds(
            known.count() == self.resident as usize,
            "pages in memory are counted",
        )?;
        let attached = self.nodes.iter().filter(|n| n.state == State::Resident);
        rule_holds(
            self.order().count() == attached.count(),
            "every attached page is in the order once",
        )?;
        let mut last = NEVER;
        for page in self.order() {
            let next_use = self.nodes[page as usize].next_use;
            if next_use > last || self.dropped.has(page) {
                return Err(broken("the farthest next use comes first", page));
            }
            last = next_use;
        }
        Ok(())
    }
}
