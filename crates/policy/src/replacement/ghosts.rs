//! Pages that left and are remembered, newest first, as many as fit.
//!
//! A ghost that the host asked about ([`Ghosts::ask`]) is not given up when it leaves
//! the list: its number stays known until the page comes in or is forgotten. When it
//! leaves the list is a policy's choice ([`NameLeaves`]).

use super::{
    Store,
    book::{AWAITED, Book, GHOST, PLACE},
    list::List,
};
use crate::contract::replacement::PageRef;

/// The host asked about this ghost.
const ASKED: u8 = 1 << 7;

/// When the name of a page that is asked for leaves the queue of names. It makes a
/// difference if the page that makes room leaves a name: the queue has a free place
/// for it or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameLeaves {
    /// At the lookup, before room is made: libCacheSim's order.
    AtMiss,
    /// When the page is in memory: the order of the pseudo-code of 2Q and S3-FIFO.
    AtInsert,
}

/// A bounded queue of ghosts.
#[derive(Clone, Debug)]
pub(super) struct Ghosts {
    list: List,
    most: u32,
    leaves: NameLeaves,
}

impl Ghosts {
    pub(super) const fn new(most: u32, leaves: NameLeaves) -> Self {
        let list = List::EMPTY;
        Self { list, most, leaves }
    }

    #[inline]
    pub(super) const fn list(&self) -> &List {
        &self.list
    }

    /// Holds at most as many as allowed?
    pub(super) const fn fits(&self) -> bool {
        self.list.len() <= self.most
    }

    /// A page that the host is about to fetch was found to be a ghost.
    #[inline]
    pub(super) fn ask<S: Store>(&mut self, book: &mut Book<S>, ghost: PageRef) {
        let mark = book.mark(ghost.0);
        debug_assert!(is_ghost(mark), "miss of a ghost that is none");
        if mark & PLACE == GHOST && self.leaves == NameLeaves::AtMiss {
            book.unlink(&mut self.list, ghost.0);
            book.set_mark(ghost.0, AWAITED);
        } else if is_ghost(mark) {
            book.set_mark(ghost.0, mark | ASKED);
        }
    }

    /// Remembers a page that is on no list, and gives up what no longer fits.
    #[inline]
    pub(super) fn remember<S: Store>(&mut self, book: &mut Book<S>, at: u32) {
        book.push(&mut self.list, at, GHOST);
        while self.list.len() > self.most
            && let Some(last) = self.list.oldest()
        {
            book.unlink(&mut self.list, last);
            if book.mark(last) & ASKED != 0 {
                book.set_mark(last, AWAITED);
            } else {
                book.give_up(last);
            }
        }
    }

    /// Takes a ghost with this mark off the list, if it is still there; the caller
    /// marks it.
    #[inline]
    pub(super) fn recall<S: Store>(&mut self, book: &mut Book<S>, at: u32, mark: u8) {
        if mark & PLACE == GHOST {
            book.unlink(&mut self.list, at);
        }
    }
}

/// Is a page with this mark a ghost?
#[inline]
pub(super) const fn is_ghost(mark: u8) -> bool {
    matches!(mark & PLACE, GHOST | AWAITED)
}
