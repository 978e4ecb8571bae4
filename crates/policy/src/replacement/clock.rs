//! CLOCK, as DULO uses it (FAST'05, section 3.4): a use makes a page young, and
//! nothing moves; when memory is needed, a young page at the cold end stops being
//! young and goes to the hot end, any other leaves.
//!
//! With more than one bit ([`Config::uses`]) the mark is a count of uses, and each
//! turn takes one off.
//!
//! # What the contract leaves open
//!
//! * A page that comes in is not young: DULO marks it at its next use.
//! * The first use of a page that was read ahead is to it what coming in is to one
//!   that was asked for: it goes to the hot end, and is not young.
//! * A detached page that goes back has had its turn: it goes to the hot end, with
//!   one use less, as a young page at the bottom of the stack does.
//! * Evicting or detaching a page that is not young also gives the young pages
//!   before it their turn, even if the host passed others over to reach it; those
//!   stay where they are. So pages that cannot leave for the moment do not stop the
//!   clock. This holds as long as at most [`Config::reach`] pages were passed over:
//!   a page in the midst of the list is no victim, and is taken out alone.
//! * A young page is taken out alone, unless it is the first victim, which means
//!   that all pages are young: then the rounds until it is not are carried out for
//!   [`Gone::Evicted`]. [`Base::coldest`] pages can so be detached one after
//!   another, as DULO does, without any other page losing its youth.

use piebald_units::Picos;

use super::{
    NewError, Store, answered_by_the_book,
    book::{Answer, Book, DETACHED, FIRST, OWN, PLACE, attached, in_memory},
    config::{self, within},
    list::List,
};
use crate::contract::replacement::{
    Base, BrokenOrder, Effort, Fetch, Gone, Insert, PageRef, Replacement, State, Touch,
};

/// One use, in a mark.
const USE: u8 = OWN;
/// The uses, in a mark.
const USES: u8 = !PLACE & !UNSEEN;
/// A page that was read ahead and not used yet.
const UNSEEN: u8 = 0x80;

/// The thresholds of [`Clock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The size of memory.
    pub room: config::Config,
    /// Uses that are counted, 1 to 15. Default 1: DULO's young bit.
    pub uses: u8,
    /// How many victims a host may pass over and have the clock go on. Default 32:
    /// the batch in which Linux reclaims (`SWAP_CLUSTER_MAX`).
    pub reach: u32,
}

impl Config {
    /// DULO's clock for a memory of so many pages.
    pub const fn new(capacity: u32) -> Self {
        Self {
            room: config::Config::new(capacity),
            uses: 1,
            reach: 32,
        }
    }

    /// Numbers needed.
    ///
    /// # Errors
    /// If a threshold is out of its range, or the size of memory is.
    pub fn slots(&self) -> Result<u32, NewError> {
        within("uses", self.uses.into(), 1, 15)?;
        self.room.slots()
    }
}

/// CLOCK. A hit touches one byte, but for the first use of a page that was read ahead. An eviction looks at each page at most
/// [`Config::uses`] + 1 times, and at no more than there were hits since.
#[derive(Clone, Debug)]
pub struct Clock<S> {
    book: Book<S>,
    stack: List,
    /// The most uses, in a mark.
    most: u8,
    reach: u32,
}

impl<S: Store> Clock<S> {
    /// An empty clock over lent memory.
    ///
    /// # Errors
    /// If the configuration or the memory does not fit.
    pub fn new(store: S, config: Config) -> Result<Self, NewError> {
        Ok(Self {
            book: Book::new(store, config.room.capacity, config.slots()?)?,
            stack: List::EMPTY,
            most: config.uses.wrapping_mul(USE),
            reach: config.reach,
        })
    }

    #[inline]
    fn uses(&self, at: u32) -> u8 {
        self.book.mark(at) & USES
    }

    /// A turn for a young page: one use less.
    #[inline]
    fn spend(&mut self, at: u32) {
        if let Some(mark) = self.book.mark_mut(at) {
            *mark = mark.wrapping_sub(USE);
        }
        self.book.moved();
    }

    /// Gives young pages their turn until the oldest page is not young.
    #[inline]
    fn turn(&mut self) -> Option<u32> {
        loop {
            let at = self.stack.oldest()?;
            self.book.looked();
            if self.uses(at) == 0 {
                return Some(at);
            }
            self.spend(at);
            self.book.rotate(&mut self.stack);
        }
    }

    /// The first use of a page that was read ahead. If it is detached, its use is
    /// kept, which is spent when it comes back.
    #[cold]
    fn see(&mut self, at: u32) {
        if attached(self.book.mark(at)) {
            self.book.unlink(&mut self.stack, at);
            self.book.push(&mut self.stack, at, FIRST);
        } else if let Some(mark) = self.book.mark_mut(at) {
            *mark = (*mark & !UNSEEN).wrapping_add(USE);
        }
    }

    /// Is this page among the first victims, young pages not counted?
    fn in_reach(&self, at: u32) -> bool {
        let mut passed = 0;
        for other in self.stack.walk(self.book.links()) {
            if other == at {
                return true;
            }
            if self.uses(other) == 0 {
                if passed == self.reach {
                    return false;
                }
                passed = passed.wrapping_add(1);
            }
        }
        false
    }

    /// Gives the young pages before this one their turn.
    fn turn_up_to(&mut self, at: u32) {
        if !self.in_reach(at) {
            return;
        }
        let mut next = self.stack.oldest();
        while let Some(other) = next
            && other != at
        {
            next = self.stack.newer(self.book.links(), other);
            self.book.looked();
            if self.uses(other) != 0 {
                self.spend(other);
                let mark = self.book.mark(other);
                self.book.unlink(&mut self.stack, other);
                self.book.push(&mut self.stack, other, mark);
            }
        }
    }

    fn first(&self) -> Option<PageRef> {
        let mut first = [PageRef(0)];
        let [page] = (self.propose(&mut first) == 1).then_some(first)?;
        Some(page)
    }

    #[inline]
    fn remove(&mut self, at: u32, is_attached: bool) {
        if is_attached {
            self.book.unlink(&mut self.stack, at);
        }
        self.book.left();
        self.book.give_up(at);
    }
}

impl<S: Store> Replacement for Clock<S> {
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
            self.book.push(&mut self.stack, page.0, FIRST | unseen);
        }
    }

    #[inline]
    fn hit(&mut self, page: PageRef, _: Touch, _: Picos) {
        let most = self.most;
        if let Some(mark) = self.book.mark_mut(page.0)
            && in_memory(*mark)
        {
            if *mark & UNSEEN != 0 {
                self.see(page.0);
            } else if *mark & USES < most {
                *mark = mark.wrapping_add(USE);
            }
        } else {
            debug_assert!(false, "hit of an absent page");
        }
    }

    fn propose(&self, out: &mut [PageRef]) -> usize {
        let mut answer = Answer::new(out);
        let mut level = 0u8;
        while level <= self.most && !answer.is_full() {
            let pages = self.stack.walk(self.book.links());
            answer.extend(pages.filter(|at| self.uses(*at) == level));
            if answer.len() == self.stack.len() as usize {
                break;
            }
            level = level.saturating_add(USE);
        }
        answer.len()
    }

    fn detach(&mut self, page: PageRef) {
        let mark = self.book.mark(page.0);
        debug_assert!(attached(mark), "detach of a page that is not attached");
        if attached(mark) {
            if mark & USES == 0 {
                self.turn_up_to(page.0);
            }
            self.book.unlink(&mut self.stack, page.0);
            self.book.set_mark(page.0, DETACHED | mark & !PLACE);
        }
    }

    fn reattach(&mut self, page: PageRef) {
        let mark = self.book.mark(page.0);
        let is_detached = mark & PLACE == DETACHED;
        debug_assert!(is_detached, "reattach of a page that is not detached");
        if is_detached {
            let uses = (mark & USES).saturating_sub(USE);
            let unseen = mark & UNSEEN;
            self.book
                .push(&mut self.stack, page.0, FIRST | uses | unseen);
        }
    }

    fn forget(&mut self, page: PageRef, why: Gone) {
        let mark = self.book.mark(page.0);
        debug_assert!(in_memory(mark), "forget of an unknown page");
        if !in_memory(mark) {
            return;
        }
        if why == Gone::Evicted && attached(mark) {
            if mark & USES == 0 {
                self.turn_up_to(page.0);
            } else if self.first() == Some(page) {
                self.turn();
            }
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
        self.book.validate(&[(&self.stack, FIRST)])
    }
}

impl<S: Store> Base for Clock<S> {
    fn coldest(&self, out: &mut [PageRef]) -> usize {
        let mut answer = Answer::new(out);
        answer.extend(self.stack.walk(self.book.links()));
        answer.len()
    }

    /// If it is young.
    fn wanted(&self, page: PageRef) -> bool {
        let mark = self.book.mark(page.0);
        in_memory(mark) && mark & USES != 0
    }
}
