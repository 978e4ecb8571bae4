//! Recordings and traces, in and out.
//!
//! [`recording`] is Piebald's own format: programs recorded under QEMU. [`foreign`] reads memory
//! traces of other tools, [`block`] traces of what is read and written on disks and in files;
//! [`mod@detect`] says which of them a file is. All read files, pipes and standard input
//! ([`source`]).

pub mod about;
pub mod block;
pub mod convert;
pub mod detect;
pub mod foreign;
mod quote;
pub mod recording;
pub mod source;

pub use quote::printable;
