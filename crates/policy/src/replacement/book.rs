//! What all policies keep of a page, and the memory that it lies in.
//!
//! A page is a *mark* of 1 B and a [`Link`] of 8 B: 9 B per number. Marks and links
//! are apart, so that a hit that only notes the use touches one byte.
//!
//! | bits of a mark | meaning |
//! |---|---|
//! | 0-2 | the *place*: free, given up, detached, or a list |
//! | 3-7 | the policy's: young, a count of uses, a class |
//!
//! Numbers that were given up wait on a stack that runs through the same links
//! until the host drains them.

use super::{
    config::NewError,
    list::{Link, List, NIL},
};
use crate::contract::replacement::{BrokenOrder, Effort, PageRef, State};

/// The place within a mark.
pub(super) const PLACE: u8 = 7;
/// The number stands for nothing.
pub(super) const FREE: u8 = 0;
/// The number was given up and not drained yet.
pub(super) const GIVEN_UP: u8 = 1;
/// A ghost that the host asked about, and that would have been given up since.
pub(super) const AWAITED: u8 = 2;
/// On the policy's list of ghosts.
pub(super) const GHOST: u8 = 3;
/// In memory, on no list; it was on the policy's first.
pub(super) const DETACHED: u8 = 4;
/// On the policy's first list.
pub(super) const FIRST: u8 = 5;
/// On the policy's second list.
pub(super) const SECOND: u8 = 6;
/// In memory, on no list; it was on the policy's second.
pub(super) const DETACHED_SECOND: u8 = 7;

/// The lowest bit that is the policy's.
pub(super) const OWN: u8 = 8;

/// Is a page with this mark in memory?
#[inline]
pub(super) const fn in_memory(mark: u8) -> bool {
    mark & PLACE >= DETACHED
}

/// Is a page with this mark in memory and on a list?
#[inline]
pub(super) const fn attached(mark: u8) -> bool {
    matches!(mark & PLACE, FIRST | SECOND)
}

/// Is a page with this mark in memory and on no list?
#[inline]
pub(super) const fn detached(mark: u8) -> bool {
    matches!(mark & PLACE, DETACHED | DETACHED_SECOND)
}

/// Memory for a policy, at least as long as its configuration says. Contents
/// stay what the policy left until the next call; no one else writes them.
pub trait Store {
    /// One link per number.
    fn links(&self) -> &[Link];
    /// One mark per number.
    fn marks(&self) -> &[u8];
    /// Both, to change.
    fn parts_mut(&mut self) -> (&mut [Link], &mut [u8]);
}

/// A store of slices, vectors or arrays: whatever can be seen as slices.
#[derive(Clone, Debug)]
pub struct Slots<L, M> {
    /// One link of 8 B per number.
    pub links: L,
    /// One mark of 1 B per number.
    pub marks: M,
}

impl<L: FromIterator<Link>, M: FromIterator<u8>> Slots<L, M> {
    /// Memory for so many numbers, for hosts that allocate: vectors, boxed slices.
    pub fn collect(slots: u32) -> Self {
        Self {
            links: (0..slots).map(|_| Link::default()).collect(),
            marks: (0..slots).map(|_| FREE).collect(),
        }
    }
}

impl<L, M> Store for Slots<L, M>
where
    L: AsRef<[Link]> + AsMut<[Link]>,
    M: AsRef<[u8]> + AsMut<[u8]>,
{
    #[inline]
    fn links(&self) -> &[Link] {
        self.links.as_ref()
    }

    #[inline]
    fn marks(&self) -> &[u8] {
        self.marks.as_ref()
    }

    #[inline]
    fn parts_mut(&mut self) -> (&mut [Link], &mut [u8]) {
        (self.links.as_mut(), self.marks.as_mut())
    }
}

/// Pages and their marks, and the counts that every policy answers for.
#[derive(Clone, Debug)]
pub(super) struct Book<S> {
    store: S,
    capacity: u32,
    slots: u32,
    resident: u32,
    given_up: List,
    pub(super) effort: Effort,
}

impl<S: Store> Book<S> {
    /// An empty book; the marks are cleared.
    pub(super) fn new(mut store: S, capacity: u32, slots: u32) -> Result<Self, NewError> {
        let (links, marks) = store.parts_mut();
        if links.len() < slots as usize {
            return Err(NewError::Links {
                lent: links.len(),
                needed: slots,
            });
        }
        if marks.len() < slots as usize {
            return Err(NewError::Marks {
                lent: marks.len(),
                needed: slots,
            });
        }
        marks.fill(FREE);
        Ok(Self {
            store,
            capacity,
            slots,
            resident: 0,
            given_up: List::EMPTY,
            effort: Effort::default(),
        })
    }

    #[inline]
    pub(super) const fn capacity(&self) -> u32 {
        self.capacity
    }

    #[inline]
    pub(super) const fn slots(&self) -> u32 {
        self.slots
    }

    #[inline]
    pub(super) const fn resident(&self) -> u32 {
        self.resident
    }

    #[inline]
    pub(super) fn links(&self) -> &[Link] {
        self.store.links()
    }

    /// The mark of a page; a number out of range is free.
    #[inline]
    pub(super) fn mark(&self, at: u32) -> u8 {
        self.store.marks().get(at as usize).copied().unwrap_or(FREE)
    }

    /// The mark of a page, to change.
    #[inline]
    pub(super) fn mark_mut(&mut self, at: u32) -> Option<&mut u8> {
        let (_, marks) = self.store.parts_mut();
        marks.get_mut(at as usize)
    }

    #[inline]
    pub(super) fn set_mark(&mut self, at: u32, to: u8) {
        if let Some(mark) = self.mark_mut(at) {
            *mark = to;
        }
    }

    /// Adds a page at the newest end of a list, with this mark.
    #[inline]
    pub(super) fn push(&mut self, list: &mut List, at: u32, mark: u8) {
        let (links, marks) = self.store.parts_mut();
        list.push(links, at);
        if let Some(slot) = marks.get_mut(at as usize) {
            *slot = mark;
        }
    }

    /// Takes a page out of the list that it is on; the caller marks it.
    #[inline]
    pub(super) fn unlink(&mut self, list: &mut List, at: u32) {
        list.unlink(self.store.parts_mut().0, at);
    }

    /// Moves the oldest page of a list to its newest end.
    #[inline]
    pub(super) fn rotate(&mut self, list: &mut List) {
        list.rotate(self.store.parts_mut().0);
    }

    /// The mark of a page that may come into memory: its number is free, or it is a
    /// ghost.
    #[inline]
    pub(super) fn may_come(&self, page: PageRef) -> Option<u8> {
        let mark = self.mark(page.0);
        let may = matches!(mark & PLACE, FREE | AWAITED | GHOST) && page.0 < self.slots;
        may.then_some(mark)
    }

    /// Notes a page that was looked at in a search for a victim.
    #[inline]
    pub(super) fn looked(&mut self) {
        self.effort.scanned = self.effort.scanned.wrapping_add(1);
    }

    /// Notes a page that a search for a victim moved.
    #[inline]
    pub(super) fn moved(&mut self) {
        self.effort.moved = self.effort.moved.wrapping_add(1);
    }

    /// Counts a page that came into memory.
    #[inline]
    pub(super) fn came(&mut self) {
        self.resident = self.resident.wrapping_add(1);
    }

    /// Counts a page that left memory.
    #[inline]
    pub(super) fn left(&mut self) {
        self.resident = self.resident.wrapping_sub(1);
    }

    /// Gives up a number that is on no list.
    #[inline]
    pub(super) fn give_up(&mut self, at: u32) {
        let (links, marks) = self.store.parts_mut();
        self.given_up.push(links, at);
        if let Some(mark) = marks.get_mut(at as usize) {
            *mark = GIVEN_UP;
        }
    }

    /// As [`crate::contract::replacement::Replacement::dropped`]; the number given up last comes
    /// first, since its memory was touched last.
    #[inline]
    pub(super) fn dropped(&mut self) -> Option<PageRef> {
        let at = self.given_up.newest()?;
        let (links, marks) = self.store.parts_mut();
        self.given_up.unlink(links, at);
        if let Some(mark) = marks.get_mut(at as usize) {
            *mark = FREE;
        }
        Some(PageRef(at))
    }

    pub(super) fn state(&self, page: PageRef) -> State {
        match self.mark(page.0) & PLACE {
            FREE | GIVEN_UP => State::Unknown,
            AWAITED | GHOST => State::Ghost,
            DETACHED | DETACHED_SECOND => State::Detached,
            _ => State::Resident,
        }
    }

    /// Recounts the places, and walks these lists of a place each.
    pub(super) fn validate(&self, lists: &[(&List, u8)]) -> Result<(), BrokenOrder> {
        for (list, place) in lists {
            self.check_list(list, *place)?;
        }
        self.check_list(&self.given_up, GIVEN_UP)?;
        let marks = || self.store.marks().iter().take(self.slots as usize);
        let resident = marks().filter(|mark| in_memory(**mark)).count();
        require(
            resident == self.resident as usize,
            "as many pages are in memory as were counted",
        )
    }

    fn check_list(&self, list: &List, place: u8) -> Result<(), BrokenOrder> {
        require(
            list.holds(self.links()),
            "a list is linked both ways, and as long as it says",
        )?;
        for at in list.walk(self.links()) {
            if self.mark(at) & PLACE != place || at >= self.slots {
                return Err(BrokenOrder {
                    rule: "a page on a list is marked so",
                    page: Some(PageRef(at)),
                });
            }
        }
        let marked = self.store.marks().iter().take(self.slots as usize);
        require(
            marked.filter(|mark| **mark & PLACE == place).count() == list.len() as usize,
            "a page that is marked for a list is on it",
        )
    }
}

/// Turns a rule that does not hold into an error.
pub(super) fn require(holds: bool, rule: &'static str) -> Result<(), BrokenOrder> {
    if holds {
        return Ok(());
    }
    Err(BrokenOrder { rule, page: None })
}

/// The pages of an answer, as far as they fit.
pub(super) struct Answer<'a> {
    out: &'a mut [PageRef],
    len: usize,
}

impl<'a> Answer<'a> {
    #[inline]
    pub(super) const fn new(out: &'a mut [PageRef]) -> Self {
        Self { out, len: 0 }
    }

    #[inline]
    pub(super) const fn is_full(&self) -> bool {
        self.len == self.out.len()
    }

    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Adds pages until it is full.
    #[inline]
    pub(super) fn extend(&mut self, pages: impl Iterator<Item = u32>) {
        if self.is_full() {
            return;
        }
        for at in pages {
            if let Some(slot) = self.out.get_mut(self.len) {
                *slot = PageRef(at);
                self.len = self.len.wrapping_add(1);
            }
            if self.is_full() {
                return;
            }
        }
    }
}

/// No page, as an index that is never in range.
pub(super) const NONE: u32 = NIL;
