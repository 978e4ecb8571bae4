//! Recordings and traces, in and out.
//!
//! [`recording`] is Piebald's own format: programs recorded under QEMU.

pub mod convert;
pub mod foreign;
pub mod recording;
