//! Recordings and traces, in and out.
//!
//! [`recording`] is Piebald's own format: programs recorded under QEMU. [`foreign`] reads memory
//! traces of other tools, [`block`] traces of what is read and written on disks and in files.

pub mod block;
pub mod convert;
pub mod foreign;
pub mod recording;
