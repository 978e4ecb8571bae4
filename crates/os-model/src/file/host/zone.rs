//! Pages come in whose frame memory chooses: all of them in one that has a zone, else
//! those that may lie in some frames only.
//!
//! A zone is refilled from the cold end of the order of replacement. There are no watermarks
//! beside it: the zone is what is kept ready.

use piebald_policy::{
    contract::replacement::{PageRef, Replacement},
    srm::Supply,
};
use piebald_units::{Picos, block::BlockPort};

use super::{
    super::memory::{Came, Memory, Place, Spared},
    FileHost,
};

impl<P: Replacement, D: BlockPort> FileHost<P, D> {
    /// Sees to it that memory keeps a frame for a page. False if there is none: what
    /// could leave is dirty (and is being written now), under I/O or held.
    pub(super) fn placed<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        what: &Came,
        now: Picos,
    ) -> bool {
        // A zone gives frames of full memory; free ones have to be there first.
        let least = i64::from(!mem.has_zone());
        while self.room(mem) < least {
            if !self.relieve(mem, now) {
                return false;
            }
        }
        if !self.find_place(mem, what, now) {
            return false;
        }
        // A frame that was free may be one that the kernel has claimed meanwhile.
        while self.cache.free() == 0 || mem.room() < 0 {
            if !self.relieve(mem, now) {
                mem.unplace();
                return false;
            }
        }
        true
    }

    fn find_place<M: Memory + ?Sized>(&mut self, mem: &mut M, what: &Came, now: Picos) -> bool {
        let mut supply = Supply::More;
        loop {
            self.tell_warmed(mem);
            match mem.place(what, supply) {
                Place::Kept => return true,
                Place::Leaves(page) if self.vacate(mem, page, now) => return true,
                Place::Leaves(_) => mem.declined(what),
                Place::Refill if self.refill(mem, now) == 0 => supply = Supply::Spent,
                Place::Refill => {}
                Place::Nowhere { bound: true } if self.pull_for(mem, what, now) => {
                    supply = Supply::Spent;
                }
                Place::Nowhere { .. } => return false,
            }
        }
    }

    /// A page of the zone leaves memory, unless it is in use.
    fn vacate<M: Memory + ?Sized>(&mut self, mem: &mut M, page: PageRef, now: Picos) -> bool {
        if !mem.may_go(page) {
            self.cache.keep(page);
            return false;
        }
        if mem.young(page) {
            self.cache.used_in_zone(page, now);
            return false;
        }
        self.evict(mem, page);
        true
    }

    /// The zone hears of its pages that were used.
    fn tell_warmed<M: Memory + ?Sized>(&mut self, mem: &mut M) {
        while let Some(page) = self.cache.next_warmed() {
            mem.warmed(page);
        }
    }

    /// Moves pages from the cold end into the zone until it wants no more; answers how
    /// many. Dirty ones on the way are written, and leave when that is over.
    fn refill<M: Memory + ?Sized>(&mut self, mem: &mut M, now: Picos) -> u32 {
        let mut moved = 0;
        while mem.wants_cold()
            && let Some(page) = self.victim(mem, now)
        {
            // The zone hears first that the page was in it before and came back.
            self.tell_warmed(mem);
            if !mem.take_cold(page) {
                break;
            }
            self.cache.chill(page);
            moved += 1;
        }
        moved
    }

    /// For a page that is bound to frames of which none is free: the coldest page
    /// in such a frame goes into the zone, or leaves. Others stay where they are. False
    /// if none can go at once.
    fn pull_for<M: Memory + ?Sized>(&mut self, mem: &mut M, what: &Came, now: Picos) -> bool {
        mem.only_for(Some(what));
        let victim = self.victim(mem, now);
        mem.only_for(None);
        let Some(page) = victim else { return false };
        if !mem.has_zone() {
            self.evict(mem, page);
            return true;
        }
        self.tell_warmed(mem);
        let taken = mem.take_cold(page);
        if taken {
            self.cache.chill(page);
        }
        taken
    }

    /// The zone gives a frame back; a page that is in use stays and is not counted.
    fn spared<M: Memory + ?Sized>(&mut self, mem: &mut M, now: Picos) -> bool {
        loop {
            self.tell_warmed(mem);
            match mem.spare() {
                Some(Spared::Frame) => return true,
                Some(Spared::Page(page)) if self.vacate(mem, page, now) => return true,
                Some(Spared::Page(_)) => {}
                None => return false,
            }
        }
    }

    /// One frame more is free for others: the zone's, or that of the coldest page that
    /// can go at once.
    pub(super) fn relieve<M: Memory + ?Sized>(&mut self, mem: &mut M, now: Picos) -> bool {
        if mem.has_zone() && self.spared(mem, now) {
            return true;
        }
        match self.victim(mem, now) {
            Some(page) => {
                self.evict(mem, page);
                true
            }
            None => false,
        }
    }
}
