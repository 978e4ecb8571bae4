//! S3-FIFO (Yang et al., SOSP'23, section 4, algorithm 1): three FIFO queues. New
//! pages enter *small*; those used often enough there move on to *main*, the others
//! leave and are remembered in *ghost*; a page whose ghost is known enters main. A
//! use counts up to 3 and moves nothing; a page at the end of main with uses goes
//! round again with one less.
//!
//! # Choices where text and pseudo-code leave room
//!
//! * A page of small moves to main if it was used *more than once* since it came
//!   (algorithm 1, line 18: `freq > 1`); its count starts at 0 again, as the text
//!   says (the access bits are cleared during the move).
//! * Memory is taken from small if that holds at least its share of the capacity,
//!   else from main (line 12), one page at a time: line 20, which evicts from main
//!   as soon as a move fills it, is what the next look at small's length comes to.
//!   An empty queue leaves its turn to the other.
//! * Small has 10 % of the capacity, at least a page; ghost holds as many names as
//!   main has pages.
//! * Whether a page is a ghost is decided at the miss, before room is made, not
//!   after it (lines 5 to 8). It differs if the page was the oldest ghost.
//! * The name leaves ghost when the page comes in.
//! * A page that was read ahead and not used yet has not been seen: its first use
//!   does not count, as that of a page that was waited for does not; if it leaves
//!   unseen, its name is not kept. If it was read ahead while its name was in ghost,
//!   nobody has asked for it yet either: it waits in small, and its first use is
//!   enough to move on.
//! * A detached page goes back to the hot end of its queue; one of small that was
//!   used often enough to move on does so, and one of main has a use less, as if
//!   their turn had come.

use piebald_units::Picos;

use super::{
    NewError, Store, answered_by_the_book,
    book::{
        Answer, Book, DETACHED, DETACHED_SECOND, FIRST, GHOST, OWN, PLACE, SECOND, attached,
        detached, in_memory, require,
    },
    config::{self, percent, within},
    ghosts::{Ghosts, is_ghost},
    list::List,
};
use crate::contract::replacement::{
    Base, BrokenOrder, Effort, Fetch, Gone, Insert, PageRef, Replacement, State, Touch,
};

/// On small.
const SMALL: u8 = FIRST;
/// On main.
const MAIN: u8 = SECOND;
/// One use, in a mark.
const USE: u8 = OWN;
/// The uses, in a mark: two bits.
const USES: u8 = 3 * USE;
/// A page of small that was read ahead and not used yet.
const UNSEEN: u8 = OWN << 2;
/// Its name was in ghost when it was read ahead.
const NAMED: u8 = OWN << 3;

/// The thresholds of [`S3Fifo`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The size of memory.
    pub room: config::Config,
    /// Small's share of the capacity, 0 to 100. Default 10 (section 4.1).
    pub small_percent: u32,
    /// A page of small moves to main if it was used more often than this, 0 to 2.
    /// Default 1 (algorithm 1, line 18).
    pub promote_above: u8,
    /// Names in ghost, as a share of main's size, 0 to 1000. Default 100 (section
    /// 4.1).
    pub ghost_percent: u32,
}

impl Config {
    /// The paper's choice for a memory of so many pages.
    pub const fn new(capacity: u32) -> Self {
        Self {
            room: config::Config::new(capacity),
            small_percent: 10,
            promote_above: 1,
            ghost_percent: 100,
        }
    }

    fn small(&self) -> u32 {
        percent(self.room.capacity, self.small_percent).max(1)
    }

    fn ghosts(&self) -> u32 {
        let main = self.room.capacity.saturating_sub(self.small());
        percent(main, self.ghost_percent)
    }

    /// Numbers needed: pages and names.
    ///
    /// # Errors
    /// If a threshold is out of its range, or the size of memory is.
    pub fn slots(&self) -> Result<u32, NewError> {
        within("small_percent", self.small_percent, 0, 100)?;
        within("promote_above", self.promote_above.into(), 0, 2)?;
        within("ghost_percent", self.ghost_percent, 0, 1000)?;
        self.room.slots_with(self.ghosts())
    }
}

/// S3-FIFO. A hit touches one byte. An eviction looks at each page of main at most
/// four times, and takes off no more uses than there were.
#[derive(Clone, Debug)]
pub struct S3Fifo<S> {
    book: Book<S>,
    small: List,
    main: List,
    ghosts: Ghosts,
    small_share: u32,
    /// The uses that are not enough, in a mark.
    too_few: u8,
}

impl<S: Store> S3Fifo<S> {
    /// Empty queues over lent memory.
    ///
    /// # Errors
    /// If the configuration or the memory does not fit.
    pub fn new(store: S, config: Config) -> Result<Self, NewError> {
        Ok(Self {
            book: Book::new(store, config.room.capacity, config.slots()?)?,
            small: List::EMPTY,
            main: List::EMPTY,
            ghosts: Ghosts::new(config.ghosts()),
            small_share: config.small(),
            too_few: config.promote_above.wrapping_mul(USE),
        })
    }

    #[inline]
    fn uses(&self, at: u32) -> u8 {
        self.book.mark(at) & USES
    }

    /// Would a page with this mark be kept if its turn came?
    #[inline]
    const fn stays(&self, mark: u8) -> bool {
        match mark & PLACE {
            SMALL | DETACHED => mark & USES > self.too_few,
            MAIN | DETACHED_SECOND => mark & USES != 0,
            _ => false,
        }
    }

    /// Carries out promotions and second chances up to the next victim.
    #[inline]
    fn turn(&mut self) -> Option<u32> {
        loop {
            let from_small = self.small.len() >= self.small_share || self.main.is_empty();
            let next = if from_small { &self.small } else { &self.main };
            let at = next.oldest()?;
            let mark = self.book.mark(at);
            self.book.looked();
            if !self.stays(mark) {
                return Some(at);
            }
            self.book.moved();
            if from_small {
                self.book.unlink(&mut self.small, at);
                self.book.push(&mut self.main, at, MAIN);
            } else {
                self.book.set_mark(at, mark.wrapping_sub(USE));
                self.book.rotate(&mut self.main);
            }
        }
    }

    fn first(&self) -> Option<PageRef> {
        let mut first = [PageRef(0)];
        let [page] = (self.propose(&mut first) == 1).then_some(first)?;
        Some(page)
    }

    /// Pages that small loses before main does.
    fn above(&self) -> usize {
        let kept = self.small_share.saturating_sub(1);
        self.small.len().saturating_sub(kept) as usize
    }

    #[inline]
    fn unlink(&mut self, at: u32, mark: u8) {
        match mark & PLACE {
            SMALL => self.book.unlink(&mut self.small, at),
            MAIN => self.book.unlink(&mut self.main, at),
            _ => {}
        }
    }

    #[inline]
    fn remove(&mut self, at: u32, why: Gone) {
        let mark = self.book.mark(at);
        self.unlink(at, mark);
        self.book.left();
        let has_name = mark & (UNSEEN | NAMED) != UNSEEN;
        match (mark & PLACE, why) {
            (SMALL | DETACHED, Gone::Evicted) if has_name => {
                self.ghosts.remember(&mut self.book, at);
            }
            _ => self.book.give_up(at),
        }
    }
}

impl<S: Store> Replacement for S3Fifo<S> {
    answered_by_the_book!();

    #[inline]
    fn miss(&mut self, ghost: Option<PageRef>, _: &Insert, _: Picos) {
        if let Some(ghost) = ghost {
            self.ghosts.ask(&mut self.book, ghost);
        }
    }

    #[inline]
    fn insert(&mut self, page: PageRef, insert: &Insert, _: Picos) {
        let may = self.book.may_come(page);
        debug_assert!(may.is_some(), "insert of a page that may not come");
        let Some(mark) = may else { return };
        self.book.came();
        let (at, named) = (page.0, is_ghost(mark));
        self.ghosts.recall(&mut self.book, at, mark);
        match (insert.fetch, named) {
            (Fetch::Demand, true) => self.book.push(&mut self.main, at, MAIN),
            (Fetch::Demand, false) => self.book.push(&mut self.small, at, SMALL),
            (Fetch::Readahead, true) => {
                self.book.push(&mut self.small, at, SMALL | UNSEEN | NAMED);
            }
            (Fetch::Readahead, false) => self.book.push(&mut self.small, at, SMALL | UNSEEN),
        }
    }

    #[inline]
    fn hit(&mut self, page: PageRef, _: Touch, _: Picos) {
        let enough = self.too_few.wrapping_add(USE);
        if let Some(mark) = self.book.mark_mut(page.0)
            && in_memory(*mark)
        {
            if *mark & UNSEEN != 0 {
                let uses = if *mark & NAMED != 0 { enough } else { 0 };
                *mark = *mark & PLACE | uses;
            } else if *mark & USES < USES {
                *mark = mark.wrapping_add(USE);
            }
        } else {
            debug_assert!(false, "hit of an absent page");
        }
    }

    fn propose(&self, out: &mut [PageRef]) -> usize {
        let mut answer = Answer::new(out);
        let (links, above) = (self.book.links(), self.above());
        let small = self.small.walk(links);
        let enough = |at: &u32| self.uses(*at) > self.too_few;
        let (leave, move_on) = (small.clone().take(above), small.clone().take(above));
        answer.extend(leave.filter(|at| !enough(at)));
        for round in 0..=3 {
            let due = |at: &u32| self.uses(*at) == USE.wrapping_mul(round);
            answer.extend(self.main.walk(links).filter(due));
            if round == 0 {
                answer.extend(move_on.clone().filter(enough));
            }
        }
        answer.extend(small.skip(above));
        answer.len()
    }

    fn detach(&mut self, page: PageRef) {
        let mark = self.book.mark(page.0);
        debug_assert!(attached(mark), "detach of a page that is not attached");
        if !attached(mark) {
            return;
        }
        if !self.stays(mark) && self.first() == Some(page) {
            self.turn();
        }
        self.unlink(page.0, mark);
        let from_main = mark & PLACE == MAIN;
        let place = if from_main { DETACHED_SECOND } else { DETACHED };
        self.book.set_mark(page.0, place | mark & !PLACE);
    }

    fn reattach(&mut self, page: PageRef) {
        let (at, mark) = (page.0, self.book.mark(page.0));
        debug_assert!(detached(mark), "reattach of a page that is not detached");
        if !detached(mark) {
            return;
        }
        let (uses, bits) = (mark & USES, mark & !PLACE);
        match (mark & PLACE == DETACHED, self.stays(mark)) {
            (true, true) => self.book.push(&mut self.main, at, MAIN),
            (true, false) => self.book.push(&mut self.small, at, SMALL | bits),
            (false, _) => {
                let left = uses.saturating_sub(USE);
                self.book.push(&mut self.main, at, MAIN | left);
            }
        }
    }

    fn forget(&mut self, page: PageRef, why: Gone) {
        let mark = self.book.mark(page.0);
        if in_memory(mark) {
            if why == Gone::Evicted && attached(mark) && self.first() == Some(page) {
                self.turn();
            }
            self.remove(page.0, why);
        } else if is_ghost(mark) && why == Gone::Deleted {
            self.ghosts.recall(&mut self.book, page.0, mark);
            self.book.give_up(page.0);
        } else {
            debug_assert!(false, "forget of an unknown page, or of a ghost as evicted");
        }
    }

    #[inline]
    fn evict(&mut self) -> Option<PageRef> {
        let at = self.turn()?;
        self.remove(at, Gone::Evicted);
        Some(PageRef(at))
    }

    fn validate(&self) -> Result<(), BrokenOrder> {
        let lists = [
            (&self.small, SMALL),
            (&self.main, MAIN),
            (self.ghosts.list(), GHOST),
        ];
        self.book.validate(&lists)?;
        require(
            self.ghosts.fits(),
            "ghost holds at most as many names as main pages",
        )
    }
}

impl<S: Store> Base for S3Fifo<S> {
    /// What small has too much, then main, then the rest of small, whatever their
    /// uses.
    fn coldest(&self, out: &mut [PageRef]) -> usize {
        let mut answer = Answer::new(out);
        let above = self.above();
        let small = self.small.walk(self.book.links());
        answer.extend(small.clone().take(above));
        answer.extend(self.main.walk(self.book.links()));
        answer.extend(small.skip(above));
        answer.len()
    }

    fn wanted(&self, page: PageRef) -> bool {
        self.stays(self.book.mark(page.0))
    }
}
