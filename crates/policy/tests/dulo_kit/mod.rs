//! Bases for DULO's tests, written for being obvious, and a host that drives them.

#![allow(dead_code, unused_imports, reason = "each test uses a part")]

pub mod oracle;

use std::collections::BTreeMap;

use piebald_policy::{
    contract::replacement::{
        Base, BrokenOrder, Fetch, Gone, Insert, PageRef, Replacement, State, Touch, Via,
    },
    dulo::{Bucket, Config, Cost, Dulo, Hits, Link, Rest, Sequence, Sizes, Slices, TableNode},
};
use piebald_units::{DiskBlock, Picos};

pub const NOW: Picos = Picos(0);

pub use crate::random::{Random, setting};

/// How a base orders its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A stack with young bits.
    Clock,
    /// A stack to whose top a hit page moves.
    Lru,
    /// Linux's active and inactive list.
    TwoLists,
}

#[derive(Clone, Copy, Debug)]
struct Page {
    state: State,
    /// Young, or referenced.
    used: bool,
    /// Two lists: used again while detached.
    earned: bool,
    active: bool,
    demoted: bool,
    /// Place in the order: larger is hotter.
    stamp: u64,
}

const NEW: Page = Page {
    state: State::Unknown,
    used: false,
    earned: false,
    active: false,
    demoted: false,
    stamp: 0,
};

/// A base without ghosts; (active, stamp) orders the pages, coldest first.
#[derive(Clone, Debug)]
pub struct Simple {
    kind: Kind,
    capacity: u32,
    pages: Vec<Page>,
    order: BTreeMap<(bool, u64), u32>,
    next: u64,
    resident: u32,
    dropped: Vec<PageRef>,
}

impl Simple {
    pub fn new(kind: Kind, capacity: u32, slots: u32) -> Self {
        Self {
            kind,
            capacity,
            pages: vec![NEW; slots as usize],
            order: BTreeMap::new(),
            next: 1,
            resident: 0,
            dropped: Vec::new(),
        }
    }

    fn at(&mut self, page: PageRef) -> &mut Page {
        &mut self.pages[page.index()]
    }

    fn attach(&mut self, page: PageRef, active: bool) {
        self.next += 1;
        let stamp = self.next;
        let p = self.at(page);
        (p.state, p.stamp, p.active) = (State::Resident, stamp, active);
        self.order.insert((active, stamp), page.0);
    }

    fn take(&mut self, page: PageRef) {
        let p = *self.at(page);
        if p.state == State::Resident {
            assert_eq!(self.order.remove(&(p.active, p.stamp)), Some(page.0));
        }
    }

    /// All attached pages, coldest first.
    pub fn cold_first(&self) -> Vec<u32> {
        self.order.values().copied().collect()
    }

    fn wants(&self, page: PageRef) -> bool {
        let p = self.pages[page.index()];
        match self.kind {
            Kind::Clock | Kind::Lru => p.used,
            Kind::TwoLists => p.earned || (p.active && p.used),
        }
    }
}

impl Replacement for Simple {
    fn capacity(&self) -> u32 {
        self.capacity
    }

    fn slots(&self) -> u32 {
        self.pages.len() as u32
    }

    fn miss(&mut self, _: Option<PageRef>, _: &Insert, _: Picos) {}

    fn insert(&mut self, page: PageRef, _: &Insert, _: Picos) {
        assert_eq!(self.at(page).state, State::Unknown, "{page:?}");
        *self.at(page) = NEW;
        self.resident += 1;
        self.attach(page, false);
    }

    fn hit(&mut self, page: PageRef, touch: Touch, _: Picos) {
        let kind = self.kind;
        let p = self.at(page);
        assert!(matches!(p.state, State::Resident | State::Detached));
        let attached = p.state == State::Resident;
        match kind {
            Kind::Clock => p.used = true,
            Kind::Lru if attached => {
                self.take(page);
                self.attach(page, false);
            }
            Kind::Lru => p.used = true,
            Kind::TwoLists if touch.via == Via::Mapping => p.earned |= !p.active,
            Kind::TwoLists if p.active || !p.used => p.used = true,
            Kind::TwoLists if attached => {
                self.take(page);
                self.at(page).used = false;
                self.attach(page, true);
            }
            Kind::TwoLists => p.earned = true,
        }
    }

    fn propose(&self, out: &mut [PageRef]) -> usize {
        let (wanted, mut all): (Vec<u32>, Vec<u32>) = self
            .order
            .values()
            .partition(|page| self.wants(PageRef(**page)));
        all.extend(wanted);
        let n = out.len().min(all.len());
        for (slot, page) in out.iter_mut().zip(all) {
            *slot = PageRef(page);
        }
        n
    }

    fn detach(&mut self, page: PageRef) {
        assert_eq!(self.at(page).state, State::Resident);
        self.take(page);
        let p = self.at(page);
        p.demoted |= p.active;
        (p.state, p.active) = (State::Detached, false);
    }

    fn reattach(&mut self, page: PageRef) {
        assert_eq!(self.at(page).state, State::Detached);
        let earned = self.at(page).earned;
        let p = self.at(page);
        (p.used, p.earned, p.demoted) = (false, false, false);
        self.attach(page, earned);
    }

    fn forget(&mut self, page: PageRef, why: Gone) {
        assert!(matches!(
            self.state(page),
            State::Resident | State::Detached
        ));
        if why == Gone::Evicted && self.state(page) == State::Resident {
            let mut first = [PageRef(0)];
            if self.propose(&mut first) == 1 && first[0] == page && !self.wants(page) {
                let before: Vec<u32> = self.order.values().copied().collect();
                for other in before.into_iter().take_while(|p| *p != page.0) {
                    self.take(PageRef(other));
                    self.at(PageRef(other)).used = false;
                    let active = self.at(PageRef(other)).active;
                    self.attach(PageRef(other), active);
                }
            }
        }
        self.take(page);
        *self.at(page) = NEW;
        self.resident -= 1;
        self.dropped.push(page);
    }

    fn dropped(&mut self) -> Option<PageRef> {
        self.dropped.pop()
    }

    fn state(&self, page: PageRef) -> State {
        self.pages
            .get(page.index())
            .map_or(State::Unknown, |p| p.state)
    }

    fn resident(&self) -> u32 {
        self.resident
    }

    fn validate(&self) -> Result<(), BrokenOrder> {
        let count = |s| self.pages.iter().filter(|p| p.state == s).count();
        assert_eq!(count(State::Resident), self.order.len());
        assert_eq!(
            count(State::Resident) + count(State::Detached),
            self.resident as usize
        );
        Ok(())
    }
}

impl Base for Simple {
    fn coldest(&self, out: &mut [PageRef]) -> usize {
        let n = out.len().min(self.order.len());
        for (slot, page) in out.iter_mut().zip(self.order.values()) {
            *slot = PageRef(*page);
        }
        n
    }

    fn wanted(&self, page: PageRef) -> bool {
        self.wants(page)
    }

    fn class(&self, page: PageRef) -> u8 {
        let p = self.pages[page.index()];
        u8::from(p.active || p.demoted)
    }
}

pub type VecStore =
    Slices<Vec<Link>, Vec<u64>, Vec<Sequence>, Vec<PageRef>, Vec<Bucket>, Vec<TableNode>>;

/// DULO on a simple base.
pub type SimpleDulo = Dulo<Simple, VecStore>;

/// DULO with memory on vectors, and a table of the size that [`Sizes`] says or this.
pub fn dulo_on<B: Base>(
    base: B,
    config: Config,
    cost: Cost<'_>,
    table: Option<usize>,
) -> Dulo<B, VecStore> {
    let sections = config.sections(base.capacity()).unwrap();
    let mut sizes = Sizes::of(&sections, base.slots());
    sizes.table = table.unwrap_or(sizes.table);
    Dulo::new(base, Slices::collect(&sizes), config, cost).unwrap()
}

/// DULO on a base of this kind, with room for one page more than memory has.
pub fn simple(kind: Kind, capacity: u32, config: Config) -> SimpleDulo {
    let base = Simple::new(kind, capacity, capacity + 1);
    dulo_on(base, config, Cost::Uniform, None)
}

/// The sections given in full.
pub fn sizes(correlation: u32, bank: u32, evicting: u32) -> Config {
    Config {
        correlation,
        bank,
        evicting,
        rest: Rest::Correlation,
        max_sequence: 128,
        hits: Hits::Mark,
        reach: 32,
    }
}

/// A host: pages by name, which is also their block on disk.
pub struct Host<P> {
    pub policy: P,
    numbers: BTreeMap<u64, PageRef>,
    names: Vec<u64>,
    free: Vec<u32>,
    /// Names evicted, in order.
    pub victims: Vec<u64>,
    /// Pages whose name is not a place on disk: those from here on.
    pub nowhere: u64,
}

impl<P: Replacement> Host<P> {
    pub fn new(policy: P) -> Self {
        let slots = policy.slots();
        Self {
            policy,
            numbers: BTreeMap::new(),
            names: vec![u64::MAX; slots as usize],
            free: (0..slots).rev().collect(),
            victims: Vec::new(),
            nowhere: u64::MAX,
        }
    }

    pub fn name(&self, page: PageRef) -> u64 {
        self.names[page.index()]
    }

    pub fn number(&self, name: u64) -> Option<PageRef> {
        self.numbers.get(&name).copied()
    }

    /// Forgets a page and takes its number back.
    pub fn forget(&mut self, page: PageRef, why: Gone) {
        self.policy.forget(page, why);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(page) = self.policy.dropped() {
            let name = self.names[page.index()];
            assert_eq!(self.numbers.remove(&name), Some(page));
            self.free.push(page.0);
        }
    }

    pub fn evict(&mut self) -> u64 {
        let victim = self.policy.evict().expect("a page to evict");
        let name = self.name(victim);
        self.victims.push(name);
        self.drain();
        name
    }

    fn insert_for(&self, name: u64, fetch: Fetch) -> Insert {
        Insert {
            fetch,
            at: (name < self.nowhere).then_some(DiskBlock(name)),
            ..Insert::default()
        }
    }

    /// Brings a page in that is not in memory.
    pub fn fetch(&mut self, name: u64, fetch: Fetch) -> PageRef {
        let insert = self.insert_for(name, fetch);
        self.policy.miss(self.number(name), &insert, NOW);
        while self.policy.resident() >= self.policy.capacity() {
            self.evict();
        }
        self.drain();
        let ghost = self.number(name);
        let page = ghost.unwrap_or_else(|| PageRef(self.free.pop().expect("a free number")));
        self.names[page.index()] = name;
        self.numbers.insert(name, page);
        self.policy.insert(page, &insert, NOW);
        self.drain();
        page
    }

    fn is_in_memory(&self, page: PageRef) -> bool {
        matches!(self.policy.state(page), State::Resident | State::Detached)
    }

    /// References to all of these.
    pub fn access_all(&mut self, names: impl IntoIterator<Item = u64>) {
        for name in names {
            self.access(name);
        }
    }

    /// A reference; true for a hit.
    pub fn access(&mut self, name: u64) -> bool {
        match self.number(name).filter(|page| self.is_in_memory(*page)) {
            Some(page) => {
                self.policy.hit(page, Touch::default(), NOW);
                true
            }
            None => {
                self.fetch(name, Fetch::Demand);
                false
            }
        }
    }
}

impl Host<SimpleDulo> {
    /// The whole stack by names, coldest first.
    pub fn stack(&self) -> Vec<u64> {
        let evicting = self.policy.evicting().map(|page| page.0);
        let staging = self.policy.base().cold_first();
        evicting
            .chain(staging)
            .map(|page| self.name(PageRef(page)))
            .collect()
    }
}
