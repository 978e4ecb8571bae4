//! Least recently used, by the obvious means: a map from time of use to page.

use std::collections::BTreeMap;

use piebald_policy::contract::replacement::{
    BrokenOrder, Gone, Insert, PageRef, Replacement, State, Touch,
};
use piebald_units::{DiskBlock, Picos};

#[derive(Debug)]
pub struct Lru {
    capacity: u32,
    /// Pages whose names are remembered after they left.
    ghosts: u32,
    order: BTreeMap<u64, PageRef>,
    gone: BTreeMap<u64, PageRef>,
    stamps: Vec<Option<u64>>,
    states: Vec<State>,
    places: Vec<Option<DiskBlock>>,
    dropped: Vec<PageRef>,
    clock: u64,
    resident: u32,
    /// Calls of `miss` less calls of `insert`.
    announced: i64,
}

impl Lru {
    pub fn new(capacity: u32) -> Self {
        Self::with_ghosts(capacity, 0)
    }

    pub fn with_ghosts(capacity: u32, ghosts: u32) -> Self {
        let slots = (capacity + ghosts + 1) as usize;
        Self {
            capacity,
            ghosts,
            order: BTreeMap::new(),
            gone: BTreeMap::new(),
            stamps: vec![None; slots],
            states: vec![State::Unknown; slots],
            places: vec![None; slots],
            dropped: Vec::new(),
            clock: 0,
            resident: 0,
            announced: 0,
        }
    }

    pub fn place_of(&self, page: PageRef) -> Option<DiskBlock> {
        self.places[page.index()]
    }

    fn hottest(&mut self, page: PageRef) {
        if let Some(old) = self.stamps[page.index()].take() {
            self.order.remove(&old);
        }
        self.clock += 1;
        self.stamps[page.index()] = Some(self.clock);
        self.order.insert(self.clock, page);
    }

    fn unlist(&mut self, page: PageRef) {
        if let Some(old) = self.stamps[page.index()].take() {
            self.order.remove(&old);
            self.gone.remove(&old);
        }
    }

    fn drop_name(&mut self, page: PageRef) {
        self.unlist(page);
        self.states[page.index()] = State::Unknown;
        self.dropped.push(page);
    }
}

impl Replacement for Lru {
    fn capacity(&self) -> u32 {
        self.capacity
    }

    fn slots(&self) -> u32 {
        self.states.len() as u32
    }

    fn miss(&mut self, ghost: Option<PageRef>, _: &Insert, _: Picos) {
        if let Some(ghost) = ghost {
            assert_eq!(self.state(ghost), State::Ghost);
        }
        self.announced += 1;
    }

    fn insert(&mut self, page: PageRef, insert: &Insert, _: Picos) {
        assert_ne!(self.state(page), State::Resident);
        assert!(self.resident < self.capacity, "room was made before");
        self.announced -= 1;
        assert_eq!(self.announced, 0, "a page that was announced comes");
        self.unlist(page);
        self.states[page.index()] = State::Resident;
        self.places[page.index()] = insert.at;
        self.resident += 1;
        self.hottest(page);
    }

    fn hit(&mut self, page: PageRef, _: Touch, _: Picos) {
        match self.state(page) {
            State::Resident => self.hottest(page),
            state => assert_eq!(state, State::Detached),
        }
    }

    fn propose(&self, out: &mut [PageRef]) -> usize {
        let coldest = self.order.values().zip(out.iter_mut());
        coldest.map(|(page, to)| *to = *page).count()
    }

    fn detach(&mut self, page: PageRef) {
        assert_eq!(self.state(page), State::Resident);
        self.unlist(page);
        self.states[page.index()] = State::Detached;
    }

    fn reattach(&mut self, page: PageRef) {
        assert_eq!(self.state(page), State::Detached);
        self.states[page.index()] = State::Resident;
        self.hottest(page);
    }

    fn forget(&mut self, page: PageRef, why: Gone) {
        match self.state(page) {
            State::Resident | State::Detached => self.resident -= 1,
            State::Ghost => assert_eq!(why, Gone::Deleted),
            other => panic!("{other:?} is forgotten"),
        }
        if why == Gone::Deleted || self.ghosts == 0 {
            return self.drop_name(page);
        }
        self.unlist(page);
        self.states[page.index()] = State::Ghost;
        self.clock += 1;
        self.stamps[page.index()] = Some(self.clock);
        self.gone.insert(self.clock, page);
        if self.gone.len() > self.ghosts as usize {
            let oldest = *self.gone.values().next().unwrap();
            self.drop_name(oldest);
        }
    }

    fn dropped(&mut self) -> Option<PageRef> {
        self.dropped.pop()
    }

    fn place(&mut self, page: PageRef, at: Option<DiskBlock>) {
        self.places[page.index()] = at;
    }

    fn state(&self, page: PageRef) -> State {
        self.states[page.index()]
    }

    fn resident(&self) -> u32 {
        self.resident
    }

    fn validate(&self) -> Result<(), BrokenOrder> {
        let detached = self.states.iter().filter(|s| **s == State::Detached);
        match self.order.len() + detached.count() == self.resident as usize {
            true => Ok(()),
            false => Err(BrokenOrder {
                rule: "every page in memory is in the order or detached",
                page: None,
            }),
        }
    }
}
