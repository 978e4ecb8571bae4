//! What runs came to, kept on disk from one command to the next.
//!
//! An entry has the text of all that its outcome depends on, the *epoch* of the code that made it, and
//! the outcome. Its place is the sum of text and epoch, so whatever changes, another entry is meant,
//! and nothing that is found can be stale. An entry is checked when it is read; one that is torn or
//! of another text is none.
//!
//! ```text
//! FOLDER/v1/ab/cdef....zst     one entry: zstd, with a checksum, of JSON
//! FOLDER/v1/ab/cdef....lease   empty; locked while somebody makes the entry
//! ```
//!
//! Entries are written to a file of their own, and put in place when they are whole: a process that is killed
//! leaves whole entries or none. Readers take no lock. Who makes an entry holds its lease, and others
//! wait for it; the kernel lets go of the lease of a process that ended.

mod entry;
mod folder;
mod gc;
mod look;

pub use entry::{Key, digest, digest_of_file};
pub use folder::{Lease, Store, StoreError, Tally};
pub use gc::{Contents, Removed};
pub use look::{Costs, Look};

/// What is said of a run whose outcome was looked for and is not there.
pub const NOT_KEPT: &str = "the store has no outcome of this run";
