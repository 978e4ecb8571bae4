//! The active and inactive lists of Linux 2.6.11, one zone.
//!
//! Vocabulary: a page is *referenced* if a system call used it (`PG_referenced`) or
//! a page table entry of it is *young*; it is *mapped* if a program reaches it
//! through its page tables; a page of the active list that is moved to the inactive
//! one is *demoted*; a *round* of reclaim looks at ever larger parts of the lists
//! (priorities 12 to 0) until it has freed 32 pages.
//!
//! # What is as in the kernel
//!
//! * File pages start at the head of the inactive list, anonymous ones at the head
//!   of the active list.
//! * `mark_page_accessed` ([`Via::Call`]): inactive and unreferenced: referenced;
//!   inactive and referenced: active, unreferenced; active: referenced. The read
//!   that fetched a page is such a use too ([`Config::fetch_is_use`]).
//! * An access through a mapping ([`Via::Mapping`]) only makes the page young.
//! * `shrink_zone`: at priority p, each list owes `pages >> p` + 1 looks more, which
//!   are paid once there are 32, in batches of 32, active before inactive.
//! * At the inactive tail: referenced and mapped: to the active head; dirty and
//!   referenced: back to the head; any other leaves.
//! * `refill_inactive_zone`, at the active tail: a mapped page stays unless
//!   `mapped_ratio / 2 + distress + swappiness` reaches 100 and it is not referenced;
//!   any other is demoted. `distress` is 100 shifted right by the previous priority.
//! * A round ends when 32 pages were freed; the previous priority is where it ended,
//!   or the present one if that is lower.
//!
//! # What is not
//!
//! * The kernel frees a batch and lets programs go on with the free pages; here one
//!   page leaves at a time, and the round waits where it stands. Lists and looks
//!   are the same, but uses and new pages fall between two pages of one batch. A
//!   round goes on at a miss while memory is full, as direct reclaim does, and when
//!   a page is evicted.
//! * A page that the kernel would write out is proposed like any other: the host
//!   writes it, and passes it over or detaches it meanwhile. (The kernel moves it
//!   to the head; `detach` and `reattach` come to the same.)
//! * If no inactive page can leave as it stands, the kernel searches on, and what it
//!   finds depends on every page that it turns over. Proposals must not change
//!   anything, so the victim is then the first of: active pages that are not mapped;
//!   dirty and referenced ones; mapped active ones, unreferenced ones first; mapped
//!   referenced ones of the inactive list. Then the round goes on, so that the next
//!   victim is found where it should be.
//! * Whether a file page is mapped is learned from its uses; it stays so until it
//!   leaves. An anonymous page always counts as mapped (swap cache included).
//! * Several proposals are what as many evictions take only as far as the inactive
//!   list goes; those evictions may demote other pages meanwhile.
//! * Below some hundred pages a round ends before it owes 32 looks, so that its
//!   priorities say little; the kernel has no zones of that size.
//!
//! # DULO's view
//!
//! [`Base::coldest`] is the inactive list from its tail, then the active one.
//! Detaching the inactive tail counts as a look at it, so that reclaim demotes
//! active pages in the kernel's proportion while DULO drains the inactive list. A
//! detached page on which `mark_page_accessed` would have made it active is wanted,
//! and goes back to the active head.
//!
//! Memory: 9 B per page. A hit touches one byte, or moves the page.

mod scan;

use piebald_units::Picos;

use self::scan::{Scan, Verdict};
use super::{
    NewError, Store, answered_by_the_book,
    book::{
        Answer, Book, DETACHED, DETACHED_SECOND, FIRST, OWN, PLACE, SECOND, attached, detached,
        in_memory, require,
    },
    config::{self, within},
    list::List,
};
use crate::contract::replacement::{
    Base, BrokenOrder, Effort, Fetch, Gone, Insert, PageKind, PageRef, Replacement, State, Touch,
    Via,
};

const INACTIVE: u8 = FIRST;
const ACTIVE: u8 = SECOND;

/// `PG_referenced`.
const REFERENCED: u8 = OWN;
/// The access bit of a page table entry.
const YOUNG: u8 = OWN << 1;
const MAPPED: u8 = OWN << 2;
const DIRTY: u8 = OWN << 3;
/// Came from the active list.
const DEMOTED: u8 = OWN << 4;
/// The same bit in a page that was taken from the active list: used since.
const EARNED: u8 = DEMOTED;

/// The thresholds of [`TwoLists`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The size of memory.
    pub room: config::Config,
    /// `vm.swappiness`, 0 to 100. Default 60 (2.6.11).
    pub swappiness: u32,
    /// `SWAP_CLUSTER_MAX`: pages of a batch, and pages that a round frees, 1 to
    /// 65535. Default 32 (2.6.11).
    pub batch: u32,
    /// `DEF_PRIORITY`: the shift that a round begins with, 0 to 31. Default 12
    /// (2.6.11).
    pub priority: u8,
    /// A page that was fetched because somebody waits for it is used by that:
    /// referenced if it is a file's, young if it is anonymous. Default true: the
    /// kernel's read path marks the page that it waited for. A host that reports
    /// that use by [`Replacement::hit`] sets this to false.
    pub fetch_is_use: bool,
}

impl Config {
    /// Linux 2.6.11 with a zone of so many pages.
    pub const fn new(capacity: u32) -> Self {
        Self {
            room: config::Config::new(capacity),
            swappiness: 60,
            batch: 32,
            priority: 12,
            fetch_is_use: true,
        }
    }

    /// Numbers needed.
    ///
    /// # Errors
    /// If a threshold is out of its range, or the size of memory is.
    pub fn slots(&self) -> Result<u32, NewError> {
        within("swappiness", self.swappiness, 0, 100)?;
        within("batch", self.batch, 1, 65535)?;
        within("priority", self.priority.into(), 0, 31)?;
        self.room.slots()
    }
}

/// The active and the inactive list. An eviction looks at as many pages as the
/// kernel's reclaim would, at most a few times the number of pages.
#[derive(Clone, Debug)]
pub struct TwoLists<S> {
    book: Book<S>,
    inactive: List,
    active: List,
    /// Mapped pages in memory.
    mapped: u32,
    scan: Scan,
    config: Config,
}

impl<S: Store> TwoLists<S> {
    /// Empty lists over lent memory.
    ///
    /// # Errors
    /// If the configuration or the memory does not fit.
    pub fn new(store: S, config: Config) -> Result<Self, NewError> {
        Ok(Self {
            book: Book::new(store, config.room.capacity, config.slots()?)?,
            inactive: List::EMPTY,
            active: List::EMPTY,
            mapped: 0,
            scan: Scan::new(config.priority),
            config,
        })
    }

    /// Pages on the active list.
    pub const fn active(&self) -> u32 {
        self.active.len()
    }

    /// Pages on the inactive list.
    pub const fn inactive(&self) -> u32 {
        self.inactive.len()
    }

    /// How a page starts.
    fn fresh(&self, insert: &Insert) -> u8 {
        let used = self.config.fetch_is_use && insert.fetch == Fetch::Demand;
        let dirty = if insert.dirty { DIRTY } else { 0 };
        dirty
            | match (insert.kind, used) {
                (PageKind::File, false) => INACTIVE,
                (PageKind::File, true) => INACTIVE | REFERENCED,
                (PageKind::Anon, false) => ACTIVE | MAPPED,
                (PageKind::Anon, true) => ACTIVE | MAPPED | YOUNG,
            }
    }

    /// `mark_page_accessed`.
    #[inline]
    fn mark_accessed(&mut self, at: u32, mark: u8) {
        match (mark & PLACE, mark & REFERENCED != 0) {
            (INACTIVE, true) => {
                self.book.unlink(&mut self.inactive, at);
                let mark = mark & !(PLACE | REFERENCED | DEMOTED) | ACTIVE;
                self.book.push(&mut self.active, at, mark);
            }
            (DETACHED, true) => {
                let mark = mark & !(PLACE | REFERENCED) | DETACHED_SECOND | EARNED;
                self.book.set_mark(at, mark);
            }
            (DETACHED_SECOND, _) => self.book.set_mark(at, mark | REFERENCED | EARNED),
            _ => self.book.set_mark(at, mark | REFERENCED),
        }
    }

    /// The hardware sets the access bit of a mapping.
    #[inline]
    fn touch_mapping(&mut self, at: u32, mark: u8) {
        if mark & MAPPED == 0 {
            self.mapped = self.mapped.wrapping_add(1);
        }
        let earned = if mark & PLACE == DETACHED_SECOND {
            EARNED
        } else {
            0
        };
        self.book.set_mark(at, mark | YOUNG | MAPPED | earned);
    }

    #[inline]
    fn unlink(&mut self, at: u32, mark: u8) {
        match mark & PLACE {
            INACTIVE => self.book.unlink(&mut self.inactive, at),
            ACTIVE => self.book.unlink(&mut self.active, at),
            _ => {}
        }
    }

    /// Counts the look that reclaim takes at a page of the inactive tail.
    fn look(&mut self, at: u32) {
        if self.inactive.oldest() == Some(at) {
            self.scan.look();
            self.book.looked();
        }
    }

    fn remove(&mut self, at: u32, why: Gone) {
        let mark = self.book.mark(at);
        if why == Gone::Evicted {
            self.look(at);
            self.scan.freed();
        }
        if mark & MAPPED != 0 {
            self.mapped = self.mapped.wrapping_sub(1);
        }
        self.unlink(at, mark);
        self.book.left();
        self.book.give_up(at);
    }

    fn first(&self) -> Option<u32> {
        let mut first = [PageRef(0)];
        let [page] = (self.propose(&mut first) == 1).then_some(first)?;
        Some(page.0)
    }

    /// The n-th choice among victims; 0 for what reclaim frees next.
    fn rank(mark: u8) -> u8 {
        let is_inactive = mark & PLACE == INACTIVE;
        let referenced = mark & (REFERENCED | YOUNG) != 0;
        match scan::verdict(mark) {
            Verdict::Free if is_inactive => 0,
            _ if mark & MAPPED != 0 => match (referenced, is_inactive) {
                (false, _) => 3,
                (true, false) => 4,
                (true, true) => 5,
            },
            Verdict::Free => 1,
            _ => 2,
        }
    }
}

impl<S: Store> Replacement for TwoLists<S> {
    answered_by_the_book!();

    /// While memory is full, reclaim goes on up to the next victim.
    fn miss(&mut self, _: Option<PageRef>, _: &Insert, _: Picos) {
        if self.book.resident() >= self.book.capacity() {
            self.reclaim();
        }
    }

    fn insert(&mut self, page: PageRef, insert: &Insert, _: Picos) {
        let may = self.book.may_come(page).is_some();
        debug_assert!(may, "insert of a page that is in memory or out of range");
        if !may {
            return;
        }
        self.book.came();
        let mark = self.fresh(insert);
        if mark & MAPPED != 0 {
            self.mapped = self.mapped.wrapping_add(1);
        }
        let is_active = mark & PLACE == ACTIVE;
        let list = if is_active {
            &mut self.active
        } else {
            &mut self.inactive
        };
        self.book.push(list, page.0, mark);
    }

    #[inline]
    fn hit(&mut self, page: PageRef, touch: Touch, _: Picos) {
        let mark = self.book.mark(page.0);
        debug_assert!(in_memory(mark), "hit of an absent page");
        if !in_memory(mark) {
            return;
        }
        match touch.via {
            Via::Call => self.mark_accessed(page.0, mark),
            Via::Mapping => self.touch_mapping(page.0, mark),
        }
    }

    fn propose(&self, out: &mut [PageRef]) -> usize {
        let mut answer = Answer::new(out);
        let links = self.book.links();
        for rank in 0..=5 {
            let pages = self.inactive.walk(links).chain(self.active.walk(links));
            answer.extend(pages.filter(|at| Self::rank(self.book.mark(*at)) == rank));
            if answer.is_full() {
                break;
            }
        }
        answer.len()
    }

    fn detach(&mut self, page: PageRef) {
        let (at, mark) = (page.0, self.book.mark(page.0));
        debug_assert!(attached(mark), "detach of a page that is not attached");
        if !attached(mark) {
            return;
        }
        if mark & PLACE == ACTIVE {
            self.unlink(at, mark);
            let bits = mark & !(PLACE | EARNED);
            self.book.set_mark(at, DETACHED_SECOND | bits);
            return;
        }
        if self.first_free() == Some(at) {
            self.reclaim_up_to(at);
        } else if self.inactive.oldest() == Some(at) {
            self.schedule();
        }
        self.look(at);
        self.unlink(at, mark);
        self.book.set_mark(at, DETACHED | mark & !PLACE);
    }

    fn reattach(&mut self, page: PageRef) {
        let (at, mark) = (page.0, self.book.mark(page.0));
        debug_assert!(detached(mark), "reattach of a page that is not detached");
        let bits = mark & !PLACE;
        match mark & PLACE {
            DETACHED => match scan::verdict(mark) {
                Verdict::Activate => {
                    let bits = bits & !(REFERENCED | YOUNG | DEMOTED);
                    self.book.push(&mut self.active, at, ACTIVE | bits);
                }
                Verdict::Keep => {
                    let bits = bits & !(REFERENCED | YOUNG);
                    self.book.push(&mut self.inactive, at, INACTIVE | bits);
                }
                Verdict::Free => self.book.push(&mut self.inactive, at, INACTIVE | bits),
            },
            DETACHED_SECOND => {
                let seen = if mark & MAPPED != 0 {
                    REFERENCED | YOUNG
                } else {
                    0
                };
                let bits = bits & !(EARNED | seen);
                self.book.push(&mut self.active, at, ACTIVE | bits);
            }
            _ => {}
        }
    }

    fn forget(&mut self, page: PageRef, why: Gone) {
        let mark = self.book.mark(page.0);
        debug_assert!(in_memory(mark), "forget of an unknown page");
        if !in_memory(mark) {
            return;
        }
        if why == Gone::Evicted && attached(mark) && self.first() == Some(page.0) {
            self.take(page.0);
        } else {
            self.remove(page.0, why);
        }
    }

    fn evict(&mut self) -> Option<PageRef> {
        let at = self.first_free().or_else(|| self.first())?;
        self.take(at);
        Some(PageRef(at))
    }

    fn set_dirty(&mut self, page: PageRef, dirty: bool) {
        let mark = self.book.mark(page.0);
        debug_assert!(in_memory(mark), "set_dirty of an absent page");
        if in_memory(mark) {
            let dirty = if dirty { DIRTY } else { 0 };
            self.book.set_mark(page.0, mark & !DIRTY | dirty);
        }
    }

    fn validate(&self) -> Result<(), BrokenOrder> {
        let lists = [(&self.inactive, INACTIVE), (&self.active, ACTIVE)];
        self.book.validate(&lists)?;
        let all = || (0..self.book.slots()).map(|at| self.book.mark(at));
        let mapped = all().filter(|mark| in_memory(*mark) && mark & MAPPED != 0);
        require(
            mapped.count() == self.mapped as usize,
            "as many pages are mapped as were counted",
        )?;
        let wrong = |mark: u8| mark & PLACE == ACTIVE && mark & DEMOTED != 0;
        require(!all().any(wrong), "an active page is not demoted")
    }
}

impl<S: Store> Base for TwoLists<S> {
    fn coldest(&self, out: &mut [PageRef]) -> usize {
        let mut answer = Answer::new(out);
        let links = self.book.links();
        answer.extend(self.inactive.walk(links).chain(self.active.walk(links)));
        answer.len()
    }

    /// Inactive: referenced and mapped, or referenced and dirty, or made active
    /// while it was detached. Active: reclaim would not demote it, or it was used
    /// while it was detached.
    fn wanted(&self, page: PageRef) -> bool {
        let mark = self.book.mark(page.0);
        match mark & PLACE {
            INACTIVE | DETACHED => scan::verdict(mark) != Verdict::Free,
            ACTIVE => self.stays_active(mark),
            DETACHED_SECOND => mark & EARNED != 0 || self.stays_active(mark),
            _ => false,
        }
    }

    /// 1 for pages that were demoted, or taken from the active list.
    fn class(&self, page: PageRef) -> u8 {
        let mark = self.book.mark(page.0);
        match mark & PLACE {
            ACTIVE | DETACHED_SECOND => 1,
            INACTIVE | DETACHED => u8::from(mark & DEMOTED != 0),
            _ => 0,
        }
    }
}
