//! Reclaim: how far a round is, and what it does to the lists on its way.

use super::{ACTIVE, DEMOTED, DIRTY, INACTIVE, MAPPED, PLACE, REFERENCED, Store, TwoLists, YOUNG};
use crate::contract::replacement::Gone;

/// Rounds that are tried for a page that can be freed. Each owes at least 13 looks
/// (one per priority), so that the third pays a batch of 32, at the latest its
/// priority 0 looks at every page.
const ROUNDS: u32 = 4;

/// What happens to a page at the inactive tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Leaves.
    Free,
    /// Goes to the active head.
    Activate,
    /// Goes back to the inactive head.
    Keep,
}

/// `shrink_list` for a page with this mark.
#[inline]
pub(super) const fn verdict(mark: u8) -> Verdict {
    if mark & (REFERENCED | YOUNG) == 0 {
        Verdict::Free
    } else if mark & MAPPED != 0 {
        Verdict::Activate
    } else if mark & DIRTY != 0 {
        Verdict::Keep
    } else {
        Verdict::Free
    }
}

/// Where a round of reclaim stands.
#[derive(Clone, Debug)]
pub(super) struct Scan {
    /// The present priority; none between two rounds.
    now: Option<u8>,
    /// `prev_priority`.
    previous: u8,
    /// Looks that the lists owe and that were not called in yet (`nr_scan_active`,
    /// `nr_scan_inactive`).
    active_due: u32,
    inactive_due: u32,
    /// Looks of this priority that are not in a batch yet.
    active_left: u32,
    inactive_left: u32,
    /// Looks left in the present batch of the inactive list.
    batch: u32,
    /// Pages freed at this priority, and in this round.
    freed_here: u32,
    freed: u32,
}

impl Scan {
    pub(super) const fn new(priority: u8) -> Self {
        Self {
            now: None,
            previous: priority,
            active_due: 0,
            inactive_due: 0,
            active_left: 0,
            inactive_left: 0,
            batch: 0,
            freed_here: 0,
            freed: 0,
        }
    }

    /// A page of the inactive tail was looked at.
    #[inline]
    pub(super) const fn look(&mut self) {
        self.batch = self.batch.saturating_sub(1);
    }

    /// A page was freed.
    #[inline]
    pub(super) const fn freed(&mut self) {
        self.freed_here = self.freed_here.saturating_add(1);
        self.freed = self.freed.saturating_add(1);
    }

    /// The looks of a list at a priority: none before a batch is due.
    fn call_in(due: &mut u32, pages: u32, priority: u8, batch: u32) -> u32 {
        let more = pages.checked_shr(priority.into()).unwrap_or(0);
        *due = due.saturating_add(more).saturating_add(1);
        if *due < batch {
            return 0;
        }
        core::mem::take(due)
    }

    fn begin(&mut self, priority: u8, active: u32, inactive: u32, batch: u32) {
        self.now = Some(priority);
        self.previous = self.previous.min(priority);
        self.freed_here = 0;
        self.active_left = Self::call_in(&mut self.active_due, active, priority, batch);
        self.inactive_left = Self::call_in(&mut self.inactive_due, inactive, priority, batch);
    }

    /// Ends the round at this priority.
    fn end(&mut self, priority: u8) {
        self.previous = priority;
        self.now = None;
        self.freed = 0;
    }

    /// Has this priority nothing left to do, or done enough?
    const fn is_through(&self, enough: u32) -> bool {
        (self.active_left == 0 && self.inactive_left == 0) || self.freed_here >= enough
    }
}

impl<S: Store> TwoLists<S> {
    /// The first page from the inactive tail that reclaim would free.
    pub(super) fn first_free(&self) -> Option<u32> {
        let mut pages = self.inactive.walk(self.book.links());
        pages.find(|at| verdict(self.book.mark(*at)) == Verdict::Free)
    }

    /// Evicts the first proposal.
    pub(super) fn take(&mut self, at: u32) {
        if Self::rank(self.book.mark(at)) == 0 {
            self.reclaim_up_to(at);
            self.remove(at, Gone::Evicted);
        } else {
            self.remove(at, Gone::Evicted);
            self.reclaim();
        }
    }

    /// Brings the first page that can be freed to the inactive tail.
    pub(super) fn reclaim_up_to(&mut self, at: u32) {
        for _ in 0..ROUNDS {
            if self.inactive.oldest() == Some(at) && self.scan.batch > 0 || self.reclaim() {
                return;
            }
        }
    }

    /// Goes on until the page at the inactive tail can be freed, or a round ends in
    /// vain.
    pub(super) fn reclaim(&mut self) -> bool {
        while self.schedule() {
            let Some(at) = self.inactive.oldest() else {
                self.scan.batch = 0;
                continue;
            };
            let mark = self.book.mark(at);
            let seen = mark & !(REFERENCED | YOUNG);
            match verdict(mark) {
                Verdict::Free => return true,
                Verdict::Activate => {
                    self.book.unlink(&mut self.inactive, at);
                    let seen = seen & !(PLACE | DEMOTED);
                    self.book.push(&mut self.active, at, ACTIVE | seen);
                }
                Verdict::Keep => {
                    self.book.set_mark(at, seen);
                    self.book.rotate(&mut self.inactive);
                }
            }
            self.scan.look();
            self.book.looked();
            self.book.moved();
        }
        false
    }

    /// Gets a batch of the inactive list under way: false if a round ended in vain.
    pub(super) fn schedule(&mut self) -> bool {
        while self.scan.batch == 0 {
            match self.scan.now {
                Some(_) if !self.scan.is_through(self.config.batch) => self.next_batch(),
                Some(now) if self.scan.freed >= self.config.batch => self.scan.end(now),
                Some(0) => {
                    self.scan.end(0);
                    return false;
                }
                Some(now) => self.begin(now.saturating_sub(1)),
                None => self.begin(self.config.priority),
            }
        }
        true
    }

    fn begin(&mut self, priority: u8) {
        let (active, inactive) = (self.active.len(), self.inactive.len());
        self.scan
            .begin(priority, active, inactive, self.config.batch);
    }

    /// A batch of the active list, and the start of one of the inactive list.
    fn next_batch(&mut self) {
        let active = self.scan.active_left.min(self.config.batch);
        self.scan.active_left = self.scan.active_left.wrapping_sub(active);
        self.refill(active);
        let inactive = self.scan.inactive_left.min(self.config.batch);
        self.scan.inactive_left = self.scan.inactive_left.wrapping_sub(inactive);
        self.scan.batch = inactive;
    }

    /// `refill_inactive_zone`: looks at so many pages of the active tail.
    fn refill(&mut self, looks: u32) {
        let takes_mapped = self.takes_mapped();
        for _ in 0..looks.min(self.active.len()) {
            let Some(at) = self.active.oldest() else {
                return;
            };
            let mark = self.book.mark(at);
            self.book.looked();
            self.book.moved();
            if mark & MAPPED != 0 && takes_mapped {
                self.book.set_mark(at, mark & !(REFERENCED | YOUNG));
            }
            if Self::stays(mark, takes_mapped) {
                self.book.rotate(&mut self.active);
            } else {
                self.book.unlink(&mut self.active, at);
                let demoted = mark & !PLACE | INACTIVE | DEMOTED;
                self.book.push(&mut self.inactive, at, demoted);
            }
        }
    }

    /// Are mapped pages demoted at all?
    fn takes_mapped(&self) -> bool {
        let mapped = u64::from(self.mapped).saturating_mul(100);
        let ratio = mapped.checked_div(self.book.capacity().into()).unwrap_or(0);
        let distress = 100u64.checked_shr(self.scan.previous.into()).unwrap_or(0);
        let tendency = (ratio / 2)
            .saturating_add(distress)
            .saturating_add(self.config.swappiness.into());
        tendency >= 100
    }

    /// Does an active page with this mark stay active?
    const fn stays(mark: u8, takes_mapped: bool) -> bool {
        mark & MAPPED != 0 && (!takes_mapped || mark & (REFERENCED | YOUNG) != 0)
    }

    /// As [`Self::stays`], as things are now.
    pub(super) fn stays_active(&self, mark: u8) -> bool {
        Self::stays(mark, self.takes_mapped())
    }
}
