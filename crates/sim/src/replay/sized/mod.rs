//! Caches whose capacity is in bytes, for objects of different sizes.
//!
//! The policies of `piebald-policy` count pages and answer to a kernel; those here count bytes
//! and serve replays only. libCacheSim 0.3.5 (`cache.c` and `eviction/*.c`) is the guide, and its
//! counts are held against ours (`testdata/libcachesim/sized-0.3.5.tsv`).
//!
//! # Rules of all of them
//!
//! * A request for an object that is in the cache is a hit, whatever its size.
//! * A missed object comes in after as many objects have left as it takes. An object that is
//!   larger than [`SizedPolicy::largest`](policy::SizedPolicy::largest) never comes in, and nothing leaves for it.
//! * If a later request says another size, the new size counts from then on: other objects leave
//!   if it has grown, and it leaves itself if it is too large now. In libCacheSim an object keeps
//!   the size that it came in with.
//! * A write is like a read, and nothing is larger than its own bytes: no metadata are counted.

mod belady;
mod bound;
mod cache;
mod one_queue;
mod policy;
mod queue;
mod s3_fifo;
mod survey;

#[cfg(test)]
mod libcachesim;
#[cfg(test)]
mod tests;

use piebald_os_model::replace::registry::Row;

use super::instance::Instance;

pub use policy::SizedSetup;
pub use survey::{ObjectSurvey, SizeSpread};

/// The policies and the bound, by name.
pub const SIZED_POLICIES: &[Row] = &[
    Row {
        name: "lru",
        about: "evicts the object whose last use lies farthest back",
        source: "folklore",
    },
    Row {
        name: "fifo",
        about: "evicts the object that came first",
        source: "folklore",
    },
    Row {
        name: "clock",
        about: "a queue in which objects that were used get another turn",
        source: "Corbato 1968",
    },
    Row {
        name: "s3-fifo",
        about: "a small queue as a filter, a main queue, and ghosts; lets in what is smaller \
                than a tenth of the capacity",
        source: "Yang et al., SOSP 2023; libCacheSim 0.3.5",
    },
    Row {
        name: "sieve",
        about: "a queue that is not reordered, swept by a hand that spares used objects",
        source: "Zhang et al., NSDI 2024",
    },
    Row {
        name: BELADY_SIZE,
        about: "evicts the object with the largest product of size and time to its next use, \
                among 128 drawn: a heuristic, not a bound",
        source: "libCacheSim 0.3.5",
    },
    Row {
        name: PFOO_L,
        about: "no policy misses fewer requests or fewer bytes: two lower bounds",
        source: "Berger, Beckmann and Harchol-Balter, SIGMETRICS 2018",
    },
];

/// The heuristic that knows the future.
pub const BELADY_SIZE: &str = "belady-size";
/// The lower bound on misses.
pub const PFOO_L: &str = "pfoo-l";

/// The policy or bound of this name over an empty cache; `None` if there is none.
///
/// It takes batches of a trace whose every call is for one object with a size.
pub fn sized_instance(name: &str, setup: &SizedSetup) -> Option<Box<dyn Instance>> {
    use one_queue::{Clock, Fifo, Lru, OneQueue, Sieve};
    let bytes = setup.capacity;
    Some(match name {
        "lru" => cache::instance(OneQueue::<Lru>::new(bytes), setup),
        "fifo" => cache::instance(OneQueue::<Fifo>::new(bytes), setup),
        "clock" => cache::instance(OneQueue::<Clock>::new(bytes), setup),
        "sieve" => cache::instance(OneQueue::<Sieve>::new(bytes), setup),
        "s3-fifo" => cache::instance(s3_fifo::S3Fifo::new(bytes), setup),
        BELADY_SIZE => cache::instance(belady::BeladySize::new(bytes, setup.seed), setup),
        PFOO_L => Box::new(bound::PfooL::new(setup)),
        _ => return None,
    })
}
