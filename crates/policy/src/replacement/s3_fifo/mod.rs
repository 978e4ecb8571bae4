//! S3-FIFO (Yang et al., SOSP'23, section 4, algorithm 1): three FIFO queues. New
//! pages enter *small*; those used often enough there move on to *main*, the others
//! leave and are remembered in *ghost*; a page whose ghost is known enters main. A
//! use counts up to 3 and moves nothing; a page at the end of main with uses goes
//! round again with one less.
//!
//! # Which rules
//!
//! The pseudo-code leaves room, and the authors' programs do what it does not say. Each
//! form is a [`Rule`]:
//!
//! | | [`Rule::LibCacheSim`], default | [`Rule::Artifact`] | [`Rule::Paper`] |
//! |---|---|---|---|
//! | source | libCacheSim 0.3.5, `S3FIFO.c` | `S3FIFO.c` of the SOSP artifact, now `S3FIFOv0.c` | algorithm 1 |
//! | a new page while memory fills | enters main if small has its share | enters small | enters small |
//! | a page of small moves on to main | the next one of small is looked at, until one leaves or small is empty | the same | the queue is chosen anew (lines 12 and 20) |
//! | the name of a page that is asked for | leaves ghost at the lookup | the same | leaves ghost when the page is in memory (lines 5 to 8) |
//!
//! The first row makes most of the difference: what enters main while memory fills
//! stays longer, on a loop for ever.
//!
//! # Choices that they share
//!
//! * A page of small moves to main if it was used *more than once* since it came
//!   (algorithm 1, line 18: `freq > 1`); its count starts at 0 again, as the text
//!   says (the access bits are cleared during the move).
//! * Memory is taken from small if that holds at least its share of the capacity,
//!   else from main (line 12), one page at a time. An empty queue leaves its turn to
//!   the other.
//! * Small has 10 % of the capacity, at least a page; ghost holds 90 % of the capacity
//!   in names, as many as main has pages. libCacheSim refuses a small of no page, and
//!   lets nothing into a small of one page.
//! * Whether a page is a ghost is decided at the miss, before room is made. It differs
//!   if the page was the oldest ghost.
//! * A page that was read ahead and not used yet has not been seen: its first use
//!   does not count, as that of a page that was waited for does not; if it leaves
//!   unseen, its name is not kept. If it was read ahead while its name was in ghost,
//!   nobody has asked for it yet either: it waits in small, and its first use is
//!   enough to move on.
//! * A detached page goes back to the hot end of its queue; one of small that was
//!   used often enough to move on does so, and one of main has a use less, as if
//!   their turn had come.

mod config;

use core::iter;

use piebald_units::Picos;

use super::{
    NewError, Store, answered_by_the_book,
    book::{
        Answer, Book, DETACHED, DETACHED_SECOND, FIRST, GHOST, OWN, PLACE, SECOND, attached,
        detached, in_memory, require,
    },
    ghosts::{Ghosts, is_ghost},
    list::List,
};
use crate::contract::replacement::{
    Base, BrokenOrder, Effort, Fetch, Gone, Insert, PageRef, Replacement, State, Touch,
};

pub use config::{Config, Rule};

/// On small.
const SMALL: u8 = FIRST;
/// On main.
const MAIN: u8 = SECOND;
/// One use, in a mark.
const USE: u8 = OWN;
/// The uses, in a mark: two bits.
const USES: u8 = 3 * USE;
/// Read ahead and not used yet.
const UNSEEN: u8 = OWN << 2;
/// Its name was in ghost when it was read ahead.
const NAMED: u8 = OWN << 3;

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
    rule: Rule,
    /// A page was evicted: memory is not filling for the first time.
    has_evicted: bool,
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
            ghosts: Ghosts::new(config.ghosts(), config.rule.names()),
            small_share: config.small(),
            too_few: config.promote_above.wrapping_mul(USE),
            rule: config.rule,
            has_evicted: false,
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

    /// Does an eviction begin with small?
    #[inline]
    const fn begins_with_small(&self) -> bool {
        self.small.len() >= self.small_share || self.main.is_empty()
    }

    /// Does small stay in turn after a page of it moved on?
    #[inline]
    fn stays_with_small(&self) -> bool {
        match self.rule {
            Rule::LibCacheSim | Rule::Artifact => !self.small.is_empty(),
            Rule::Paper => self.begins_with_small(),
        }
    }

    /// Carries out promotions and second chances up to the next victim.
    #[inline]
    fn turn(&mut self) -> Option<u32> {
        let mut from_small = self.begins_with_small();
        loop {
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
                from_small = self.stays_with_small();
            } else {
                self.book.set_mark(at, mark.wrapping_sub(USE));
                self.book.rotate(&mut self.main);
            }
        }
    }

    /// Does a new page enter main because memory fills for the first time and small has
    /// its share?
    #[inline]
    fn fills_main(&self) -> bool {
        self.rule == Rule::LibCacheSim && !self.has_evicted && self.small.len() >= self.small_share
    }

    /// Would a page of small move on to main?
    #[inline]
    fn moves_on(&self, at: u32) -> bool {
        self.uses(at) > self.too_few
    }

    /// The victims of small before main has any, if the queue is chosen anew for each
    /// page. Answers how many pages of small are passed: gone, or moved on.
    fn leave_above(&self, answer: &mut Answer<'_>) -> usize {
        let above = self.above();
        let small = self.small.walk(self.book.links()).take(above);
        answer.extend(small.filter(|at| !self.moves_on(*at)));
        above
    }

    /// The same if small stays in turn until a page of it leaves.
    fn leave_in_runs(&self, answer: &mut Answer<'_>) -> usize {
        let (all, above) = (self.small.len() as usize, self.above());
        let mut rest = self.small.walk(self.book.links());
        let mut passed: usize = 0;
        while passed < above && !answer.is_full() {
            match rest.find(|at| {
                passed = passed.wrapping_add(1);
                !self.moves_on(*at)
            }) {
                Some(victim) => answer.extend(iter::once(victim)),
                None => return all,
            }
        }
        passed
    }

    /// The victims of small when main is empty: each that leaves goes before those that
    /// moved on on the way to it.
    fn rest_in_runs(&self, answer: &mut Answer<'_>, mut rest: impl Iterator<Item = u32> + Clone) {
        while !answer.is_full() {
            let run = rest.clone().take_while(|at| self.moves_on(*at));
            let victim = rest.find(|at| !self.moves_on(*at));
            answer.extend(victim.into_iter().chain(run));
            if victim.is_none() {
                return;
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
        self.has_evicted |= why == Gone::Evicted;
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
        let bits = match (insert.fetch, named) {
            (Fetch::Demand, _) => 0,
            (Fetch::Readahead, true) => UNSEEN | NAMED,
            (Fetch::Readahead, false) => UNSEEN,
        };
        if (named && bits == 0) || (!named && self.fills_main()) {
            self.book.push(&mut self.main, at, MAIN | bits);
        } else {
            self.book.push(&mut self.small, at, SMALL | bits);
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
        let passed = match self.rule {
            Rule::LibCacheSim | Rule::Artifact => self.leave_in_runs(&mut answer),
            Rule::Paper => self.leave_above(&mut answer),
        };
        let small = self.small.walk(self.book.links());
        let moved_on = small.clone().take(passed).filter(|at| self.moves_on(*at));
        for round in 0..=3 {
            let due = |at: &u32| self.uses(*at) == USE.wrapping_mul(round);
            answer.extend(self.main.walk(self.book.links()).filter(due));
            if round == 0 {
                answer.extend(moved_on.clone());
            }
        }
        match self.rule {
            Rule::LibCacheSim | Rule::Artifact => {
                self.rest_in_runs(&mut answer, small.skip(passed))
            }
            Rule::Paper => answer.extend(small.skip(passed)),
        }
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
                let left = uses.saturating_sub(USE) | mark & UNSEEN;
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
        require(self.ghosts.fits(), "ghost holds at most its share of names")
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
