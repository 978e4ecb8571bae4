//! Replacement policies that a kernel can use: which page leaves when memory is
//! needed.
//!
//! | policy | source | on a hit | order of victims |
//! |---|---|---|---|
//! | [`Fifo`] | folklore | nothing | by age |
//! | [`Lru`] | folklore | moves the page | by last use |
//! | [`Clock`] | DULO (FAST'05), section 3.4 | marks the page | by age, young ones get another turn |
//! | [`Sieve`] | NSDI'24 | marks the page | unmarked ones from the hand on |
//! | [`TwoQ`] | VLDB'94 | moves the page if it is hot | by age, hot ones by last use |
//! | [`S3Fifo`] | SOSP'23 | counts the use | by age, used ones get other turns |
//! | [`TwoLists`] | Linux 2.6.11 | marks or promotes the page | from the inactive tail |
//!
//! All answer to [`Replacement`](crate::contract::replacement::Replacement) and
//! can carry DULO ([`Base`](crate::contract::replacement::Base)).
//!
//! # Memory
//!
//! The host lends a [`Store`]: a [`Link`] of 8 B and a mark of 1 B per number, 9 B
//! for each page and each ghost, and nothing else. [`Slots`] is a store of vectors,
//! boxed or lent slices:
//!
//! ```
//! use piebald_policy::contract::replacement::{Insert, PageRef, Replacement, Touch};
//! use piebald_policy::replacement::{Clock, ClockConfig, Link, Slots};
//! use piebald_units::Picos;
//!
//! let config = ClockConfig::new(2);
//! let store = Slots::<Vec<Link>, Vec<u8>>::collect(config.slots()?);
//! let mut clock = Clock::new(store, config)?;
//! let now = Picos(0);
//! for page in [PageRef(0), PageRef(1)] {
//!     clock.miss(None, &Insert::default(), now);
//!     clock.insert(page, &Insert::default(), now);
//! }
//! clock.hit(PageRef(0), Touch::default(), now);
//! assert_eq!(clock.evict(), Some(PageRef(1)), "page 0 is young");
//! # Ok::<(), piebald_policy::replacement::NewError>(())
//! ```
//!
//! # Rules that all of them keep
//!
//! * Evicting the first proposal is the policy's own eviction, with all that it
//!   does on the way. [`Gone::Evicted`](crate::contract::replacement::Gone) for
//!   another page takes out that page and changes nothing else, except where a
//!   policy says more ([`Clock`]).
//! * Several proposals are the pages that as many evictions in a row would take
//!   ([`TwoLists`]: as far as its inactive list goes).
//! * Shares of the capacity (a probationary queue's) count attached pages.
//! * A ghost that was named in `miss` is remembered until it comes in or is
//!   forgotten, whatever room the ghosts need meanwhile.

mod book;
mod clock;
mod config;
mod fifo;
mod ghosts;
mod list;
mod lru;
mod s3_fifo;
mod sieve;
mod two_lists;
mod two_q;

pub use book::{Slots, Store};
pub use clock::{Clock, Config as ClockConfig};
pub use config::{Config, MAX_SLOTS, NewError};
pub use fifo::Fifo;
pub use ghosts::NameLeaves;
pub use list::Link;
pub use lru::Lru;
pub use s3_fifo::{Config as S3FifoConfig, Rule as S3FifoRule, S3Fifo};
pub use sieve::Sieve;
pub use two_lists::{Config as TwoListsConfig, TwoLists};
pub use two_q::{Config as TwoQConfig, TwoQ};

/// The calls of `Replacement` that the book answers for every policy.
macro_rules! answered_by_the_book {
    () => {
        #[inline]
        fn capacity(&self) -> u32 {
            self.book.capacity()
        }

        #[inline]
        fn slots(&self) -> u32 {
            self.book.slots()
        }

        #[inline]
        fn dropped(&mut self) -> Option<PageRef> {
            self.book.dropped()
        }

        #[inline]
        fn state(&self, page: PageRef) -> State {
            self.book.state(page)
        }

        #[inline]
        fn resident(&self) -> u32 {
            self.book.resident()
        }

        #[inline]
        fn effort(&self) -> Effort {
            self.book.effort
        }
    };
}
pub(crate) use answered_by_the_book;
