//! First in, first out: the page that came in first leaves first, used or not.

use piebald_units::Picos;

use super::{
    Config, NewError, Store, answered_by_the_book,
    book::{Answer, Book, DETACHED, FIRST, PLACE, attached, in_memory},
    list::List,
};
use crate::contract::replacement::{
    Base, BrokenOrder, Effort, Gone, Insert, PageRef, Replacement, State, Touch,
};

/// FIFO. Every call takes constant time.
#[derive(Clone, Debug)]
pub struct Fifo<S> {
    book: Book<S>,
    queue: List,
}

impl<S: Store> Fifo<S> {
    /// An empty queue over lent memory.
    ///
    /// # Errors
    /// If the configuration or the memory does not fit.
    pub fn new(store: S, config: Config) -> Result<Self, NewError> {
        Ok(Self {
            book: Book::new(store, config.capacity, config.slots()?)?,
            queue: List::EMPTY,
        })
    }

    #[inline]
    fn remove(&mut self, at: u32, mark: u8) {
        if attached(mark) {
            self.book.unlink(&mut self.queue, at);
        }
        self.book.left();
        self.book.give_up(at);
    }
}

impl<S: Store> Replacement for Fifo<S> {
    answered_by_the_book!();

    #[inline]
    fn miss(&mut self, _: Option<PageRef>, _: &Insert, _: Picos) {}

    #[inline]
    fn insert(&mut self, page: PageRef, _: &Insert, _: Picos) {
        let may = self.book.may_come(page).is_some();
        debug_assert!(may, "insert of a page that is in memory or out of range");
        if may {
            self.book.came();
            self.book.push(&mut self.queue, page.0, FIRST);
        }
    }

    #[inline]
    fn hit(&mut self, page: PageRef, _: Touch, _: Picos) {
        debug_assert!(in_memory(self.book.mark(page.0)), "hit of an absent page");
    }

    fn propose(&self, out: &mut [PageRef]) -> usize {
        self.coldest(out)
    }

    fn detach(&mut self, page: PageRef) {
        let is_attached = attached(self.book.mark(page.0));
        debug_assert!(is_attached, "detach of a page that is not attached");
        if is_attached {
            self.book.unlink(&mut self.queue, page.0);
            self.book.set_mark(page.0, DETACHED);
        }
    }

    fn reattach(&mut self, page: PageRef) {
        let is_detached = self.book.mark(page.0) & PLACE == DETACHED;
        debug_assert!(is_detached, "reattach of a page that is not detached");
        if is_detached {
            self.book.push(&mut self.queue, page.0, FIRST);
        }
    }

    #[inline]
    fn forget(&mut self, page: PageRef, _: Gone) {
        let mark = self.book.mark(page.0);
        debug_assert!(in_memory(mark), "forget of an unknown page");
        if in_memory(mark) {
            self.remove(page.0, mark);
        }
    }

    #[inline]
    fn evict(&mut self) -> Option<PageRef> {
        let at = self.queue.oldest()?;
        self.remove(at, FIRST);
        Some(PageRef(at))
    }

    fn validate(&self) -> Result<(), BrokenOrder> {
        self.book.validate(&[(&self.queue, FIRST)])
    }
}

impl<S: Store> Base for Fifo<S> {
    fn coldest(&self, out: &mut [PageRef]) -> usize {
        let mut answer = Answer::new(out);
        answer.extend(self.queue.walk(self.book.links()));
        answer.len()
    }

    /// Never: no use counts.
    fn wanted(&self, _: PageRef) -> bool {
        false
    }
}
