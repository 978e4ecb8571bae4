//! 2Q, the full version (Johnson and Shasha, VLDB'94, section 3): pages that were
//! used once pass through a FIFO queue, *A1in*; their names stay for a while in
//! *A1out*; a page that is asked for while its name is there has proved that it is
//! hot, and enters *Am*, an LRU stack.
//!
//! # Choices
//!
//! * A use of a page in A1in changes nothing (the paper: it is correlated with the
//!   first). So nothing but A1out leads to Am.
//! * The victim comes from A1in if that holds more than Kin pages, else from Am; if
//!   Am is empty, from A1in.
//! * Kin and Kout are shares of the capacity, rounded down; the paper recommends
//!   25 % and 50 %. A Kout of 0 names makes A1in all there is.
//! * The name of the page that is asked for counts in A1out until the page is in
//!   memory, since `reclaimfor` comes before it moves to Am. If it is pushed out by
//!   the very page that makes room for it, it enters Am all the same. libCacheSim
//!   takes the name out first ([`Config::names`]); nothing else differs.
//! * A page that was read ahead and not used yet has not been seen: if it leaves so,
//!   its name is not kept. If it was read ahead while its name was in A1out, nobody
//!   has asked for it yet either: it waits in A1in, and its first use takes it to Am.
//! * A detached page goes back to the hot end of the queue that it was taken from;
//!   it is wanted if it belongs to Am and was used meanwhile.

use piebald_units::Picos;

use super::{
    NewError, Store, answered_by_the_book,
    book::{
        Answer, Book, DETACHED, DETACHED_SECOND, FIRST, GHOST, OWN, PLACE, SECOND, attached,
        detached, in_memory, require,
    },
    config::{self, percent, within},
    ghosts::{Ghosts, NameLeaves, is_ghost},
    list::List,
};
use crate::contract::replacement::{
    Base, BrokenOrder, Effort, Fetch, Gone, Insert, PageRef, Replacement, State, Touch,
};

/// On A1in.
const A1IN: u8 = FIRST;
/// On Am.
const AM: u8 = SECOND;
/// A page of Am that was used while it was detached.
const USED: u8 = OWN;
/// A page of A1in that was read ahead and not used yet.
const UNSEEN: u8 = OWN << 1;
/// Its name was in A1out when it was read ahead.
const NAMED: u8 = OWN << 2;

/// The thresholds of [`TwoQ`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The size of memory.
    pub room: config::Config,
    /// Kin: the share of the capacity that A1in may keep, 0 to 100. Default 25
    /// (section 3).
    pub kin_percent: u32,
    /// Kout: names in A1out, as a share of the capacity, 0 to 1000. Default 50
    /// (section 3).
    pub kout_percent: u32,
    /// When the name of a page that is asked for leaves A1out. Default: when the page
    /// is in memory (section 3).
    pub names: NameLeaves,
}

impl Config {
    /// The paper's recommendation for a memory of so many pages.
    pub const fn new(capacity: u32) -> Self {
        Self {
            room: config::Config::new(capacity),
            kin_percent: 25,
            kout_percent: 50,
            names: NameLeaves::AtInsert,
        }
    }

    const fn kout(&self) -> u32 {
        percent(self.room.capacity, self.kout_percent)
    }

    /// Numbers needed: pages and names.
    ///
    /// # Errors
    /// If a threshold is out of its range, or the size of memory is.
    pub fn slots(&self) -> Result<u32, NewError> {
        within("kin_percent", self.kin_percent, 0, 100)?;
        within("kout_percent", self.kout_percent, 0, 1000)?;
        self.room.slots_with(self.kout())
    }
}

/// 2Q. Every call takes constant time.
#[derive(Clone, Debug)]
pub struct TwoQ<S> {
    book: Book<S>,
    a1in: List,
    am: List,
    a1out: Ghosts,
    kin: u32,
}

impl<S: Store> TwoQ<S> {
    /// Empty queues over lent memory.
    ///
    /// # Errors
    /// If the configuration or the memory does not fit.
    pub fn new(store: S, config: Config) -> Result<Self, NewError> {
        let capacity = config.room.capacity;
        Ok(Self {
            book: Book::new(store, capacity, config.slots()?)?,
            a1in: List::EMPTY,
            am: List::EMPTY,
            a1out: Ghosts::new(config.kout(), config.names),
            kin: percent(capacity, config.kin_percent),
        })
    }

    #[inline]
    fn unlink(&mut self, at: u32, mark: u8) {
        match mark & PLACE {
            A1IN => self.book.unlink(&mut self.a1in, at),
            AM => self.book.unlink(&mut self.am, at),
            _ => {}
        }
    }

    /// A page leaves memory; that of A1in is remembered if it may come back.
    #[inline]
    fn remove(&mut self, at: u32, mark: u8, why: Gone) {
        self.unlink(at, mark);
        self.book.left();
        let has_name = mark & (UNSEEN | NAMED) != UNSEEN;
        match (mark & PLACE, why) {
            (A1IN | DETACHED, Gone::Evicted) if has_name => {
                self.a1out.remember(&mut self.book, at);
            }
            _ => self.book.give_up(at),
        }
    }
}

impl<S: Store> Replacement for TwoQ<S> {
    answered_by_the_book!();

    #[inline]
    fn miss(&mut self, ghost: Option<PageRef>, _: &Insert, _: Picos) {
        if let Some(ghost) = ghost {
            self.a1out.ask(&mut self.book, ghost);
        }
    }

    #[inline]
    fn insert(&mut self, page: PageRef, insert: &Insert, _: Picos) {
        let may = self.book.may_come(page);
        debug_assert!(may.is_some(), "insert of a page that may not come");
        let Some(mark) = may else { return };
        self.book.came();
        let (at, named) = (page.0, is_ghost(mark));
        self.a1out.recall(&mut self.book, at, mark);
        match (insert.fetch, named) {
            (Fetch::Demand, true) => self.book.push(&mut self.am, at, AM),
            (Fetch::Demand, false) => self.book.push(&mut self.a1in, at, A1IN),
            (Fetch::Readahead, true) => {
                self.book.push(&mut self.a1in, at, A1IN | UNSEEN | NAMED);
            }
            (Fetch::Readahead, false) => self.book.push(&mut self.a1in, at, A1IN | UNSEEN),
        }
    }

    #[inline]
    fn hit(&mut self, page: PageRef, _: Touch, _: Picos) {
        let (at, mark) = (page.0, self.book.mark(page.0));
        match mark & PLACE {
            A1IN | DETACHED if mark & UNSEEN == 0 => {}
            A1IN if mark & NAMED != 0 => {
                self.book.unlink(&mut self.a1in, at);
                self.book.push(&mut self.am, at, AM);
            }
            DETACHED if mark & NAMED != 0 => self.book.set_mark(at, DETACHED_SECOND | USED),
            A1IN | DETACHED => self.book.set_mark(at, mark & PLACE),
            AM => {
                if self.am.newest() != Some(at) {
                    self.book.unlink(&mut self.am, at);
                    self.book.push(&mut self.am, at, AM);
                }
            }
            DETACHED_SECOND => self.book.set_mark(at, DETACHED_SECOND | USED),
            _ => debug_assert!(false, "hit of an absent page"),
        }
    }

    fn propose(&self, out: &mut [PageRef]) -> usize {
        self.coldest(out)
    }

    fn detach(&mut self, page: PageRef) {
        let mark = self.book.mark(page.0);
        debug_assert!(attached(mark), "detach of a page that is not attached");
        if attached(mark) {
            self.unlink(page.0, mark);
            let from_am = mark & PLACE == AM;
            let place = if from_am { DETACHED_SECOND } else { DETACHED };
            self.book.set_mark(page.0, place | mark & !PLACE);
        }
    }

    fn reattach(&mut self, page: PageRef) {
        let mark = self.book.mark(page.0);
        debug_assert!(detached(mark), "reattach of a page that is not detached");
        match mark & PLACE {
            DETACHED => self.book.push(&mut self.a1in, page.0, A1IN | mark & !PLACE),
            DETACHED_SECOND => self.book.push(&mut self.am, page.0, AM),
            _ => {}
        }
    }

    fn forget(&mut self, page: PageRef, why: Gone) {
        let mark = self.book.mark(page.0);
        if in_memory(mark) {
            self.remove(page.0, mark, why);
        } else if is_ghost(mark) && why == Gone::Deleted {
            self.a1out.recall(&mut self.book, page.0, mark);
            self.book.give_up(page.0);
        } else {
            debug_assert!(false, "forget of an unknown page, or of a ghost as evicted");
        }
    }

    #[inline]
    fn evict(&mut self) -> Option<PageRef> {
        let from_a1in = self.a1in.len() > self.kin || self.am.is_empty();
        let list = if from_a1in { &self.a1in } else { &self.am };
        let at = list.oldest()?;
        self.remove(at, self.book.mark(at), Gone::Evicted);
        Some(PageRef(at))
    }

    fn validate(&self) -> Result<(), BrokenOrder> {
        let lists = [
            (&self.a1in, A1IN),
            (&self.am, AM),
            (self.a1out.list(), GHOST),
        ];
        self.book.validate(&lists)?;
        require(self.a1out.fits(), "A1out holds at most Kout names")
    }
}

impl<S: Store> Base for TwoQ<S> {
    /// What A1in has too much, then Am, then the rest of A1in: this is the order in
    /// which pages are evicted.
    fn coldest(&self, out: &mut [PageRef]) -> usize {
        let mut answer = Answer::new(out);
        let above = self.a1in.len().saturating_sub(self.kin) as usize;
        let a1in = self.a1in.walk(self.book.links());
        answer.extend(a1in.clone().take(above));
        answer.extend(self.am.walk(self.book.links()));
        answer.extend(a1in.skip(above));
        answer.len()
    }

    fn wanted(&self, page: PageRef) -> bool {
        self.book.mark(page.0) == DETACHED_SECOND | USED
    }
}
