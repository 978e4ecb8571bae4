//! SIEVE (Zhang et al., NSDI'24, algorithm 1): a queue by age, a bit per page that
//! a use sets, and a hand that moves from the oldest page towards the newest. The
//! hand clears the bits that it meets and takes out the first page without one;
//! nothing ever moves in the queue. From the newest page the hand goes back to the
//! oldest.
//!
//! # What the contract leaves open
//!
//! * A page that leaves under the hand passes it on to the next newer page, as an
//!   evicted one does; from the newest, to the end.
//! * A detached page that goes back is inserted anew, at the newest end, without its
//!   bit: SIEVE knows no other way to the hot end.
//! * The first use of a page that was read ahead is to it what coming in is to one
//!   that was asked for: it sets no bit, unless the page is detached, whose use shows
//!   that it should come back.

use piebald_units::Picos;

use super::{
    Config, NewError, Store, answered_by_the_book,
    book::{Answer, Book, DETACHED, FIRST, NONE, OWN, PLACE, attached, in_memory, require},
    list::List,
};
use crate::contract::replacement::{
    Base, BrokenOrder, Effort, Fetch, Gone, Insert, PageRef, Replacement, State, Touch,
};

/// Used since the hand was there.
const VISITED: u8 = OWN;
/// Read ahead and not used yet.
const UNSEEN: u8 = OWN << 1;

/// SIEVE. A hit touches one byte. An eviction looks at each page at most twice, and
/// clears no more bits than hits set.
#[derive(Clone, Debug)]
pub struct Sieve<S> {
    book: Book<S>,
    queue: List,
    /// Where the hand is; `NONE`: at the oldest page, whichever that is then.
    hand: u32,
}

impl<S: Store> Sieve<S> {
    /// An empty queue over lent memory.
    ///
    /// # Errors
    /// If the configuration or the memory does not fit.
    pub fn new(store: S, config: Config) -> Result<Self, NewError> {
        Ok(Self {
            book: Book::new(store, config.capacity, config.slots()?)?,
            queue: List::EMPTY,
            hand: NONE,
        })
    }

    #[inline]
    fn visited(&self, at: u32) -> bool {
        self.book.mark(at) & VISITED != 0
    }

    /// The page next to one in the hand's direction, as a place of the hand.
    #[inline]
    fn after(&self, at: u32) -> u32 {
        self.queue.newer(self.book.links(), at).unwrap_or(NONE)
    }

    /// Moves the hand to the next page without a bit.
    #[inline]
    fn turn(&mut self) -> Option<u32> {
        let mut at = self.hand;
        loop {
            if at == NONE {
                at = self.queue.oldest()?;
            }
            self.book.looked();
            let mark = self.book.mark(at);
            if mark & VISITED == 0 {
                self.hand = at;
                return Some(at);
            }
            self.book.set_mark(at, mark & !VISITED);
            at = self.after(at);
        }
    }

    /// The pages from the hand on, once round.
    fn round(&self) -> impl Iterator<Item = u32> {
        let links = self.book.links();
        let upper = self.queue.walk_from(links, self.hand);
        let lower = self.queue.walk(links).take_while(|at| *at != self.hand);
        upper.chain(lower)
    }

    fn first(&self) -> Option<PageRef> {
        let mut first = [PageRef(0)];
        let [page] = (self.propose(&mut first) == 1).then_some(first)?;
        Some(page)
    }

    #[inline]
    fn unlink(&mut self, at: u32) {
        if self.hand == at {
            self.hand = self.after(at);
        }
        self.book.unlink(&mut self.queue, at);
    }

    #[inline]
    fn remove(&mut self, at: u32, is_attached: bool) {
        if is_attached {
            self.unlink(at);
        }
        self.book.left();
        self.book.give_up(at);
    }
}

impl<S: Store> Replacement for Sieve<S> {
    answered_by_the_book!();

    #[inline]
    fn miss(&mut self, _: Option<PageRef>, _: &Insert, _: Picos) {}

    #[inline]
    fn insert(&mut self, page: PageRef, insert: &Insert, _: Picos) {
        let may = self.book.may_come(page).is_some();
        debug_assert!(may, "insert of a page that is in memory or out of range");
        if may {
            let unseen = match insert.fetch {
                Fetch::Demand => 0,
                Fetch::Readahead => UNSEEN,
            };
            self.book.came();
            self.book.push(&mut self.queue, page.0, FIRST | unseen);
        }
    }

    #[inline]
    fn hit(&mut self, page: PageRef, _: Touch, _: Picos) {
        if let Some(mark) = self.book.mark_mut(page.0)
            && in_memory(*mark)
        {
            *mark = match *mark & UNSEEN != 0 && attached(*mark) {
                true => *mark & !UNSEEN,
                false => *mark & !UNSEEN | VISITED,
            };
        } else {
            debug_assert!(false, "hit of an absent page");
        }
    }

    fn propose(&self, out: &mut [PageRef]) -> usize {
        let mut answer = Answer::new(out);
        answer.extend(self.round().filter(|at| !self.visited(*at)));
        answer.extend(self.round().filter(|at| self.visited(*at)));
        answer.len()
    }

    fn detach(&mut self, page: PageRef) {
        let mark = self.book.mark(page.0);
        debug_assert!(attached(mark), "detach of a page that is not attached");
        if attached(mark) {
            if mark & VISITED == 0 && self.first() == Some(page) {
                self.turn();
            }
            self.unlink(page.0);
            self.book.set_mark(page.0, DETACHED | mark & !PLACE);
        }
    }

    fn reattach(&mut self, page: PageRef) {
        let mark = self.book.mark(page.0);
        let is_detached = mark & PLACE == DETACHED;
        debug_assert!(is_detached, "reattach of a page that is not detached");
        if is_detached {
            self.book
                .push(&mut self.queue, page.0, FIRST | mark & UNSEEN);
        }
    }

    fn forget(&mut self, page: PageRef, why: Gone) {
        let mark = self.book.mark(page.0);
        debug_assert!(in_memory(mark), "forget of an unknown page");
        if !in_memory(mark) {
            return;
        }
        if why == Gone::Evicted && attached(mark) && self.first() == Some(page) {
            self.turn();
        }
        self.remove(page.0, attached(mark));
    }

    #[inline]
    fn evict(&mut self) -> Option<PageRef> {
        let at = self.turn()?;
        self.remove(at, true);
        Some(PageRef(at))
    }

    fn validate(&self) -> Result<(), BrokenOrder> {
        self.book.validate(&[(&self.queue, FIRST)])?;
        require(
            self.hand == NONE || self.book.mark(self.hand) & PLACE == FIRST,
            "the hand is on a page of the queue",
        )
    }
}

impl<S: Store> Base for Sieve<S> {
    /// The oldest pages, wherever the hand is.
    fn coldest(&self, out: &mut [PageRef]) -> usize {
        let mut answer = Answer::new(out);
        answer.extend(self.queue.walk(self.book.links()));
        answer.len()
    }

    /// If its bit is set.
    fn wanted(&self, page: PageRef) -> bool {
        let mark = self.book.mark(page.0);
        in_memory(mark) && mark & VISITED != 0
    }
}
