//! The policy core: verdicts about where data lives.
//!
//! Everything here runs unchanged in three hosts: the simulated operating
//! system, a Linux module, and userspace. So the crate uses no standard
//! library, allocates nothing, contains no `unsafe` code and no floating point,
//! and never panics on a caller's mistake. The caller lends all memory as typed
//! slices and passes time and randomness as arguments.
//!
//! [`contract`] holds the few types and traits that hosts call; [`color_map`]
//! says which colour a frame has; [`buddy`] hands out frames by colour;
//! [`replacement`] says which pages leave memory; [`mfc`] says which core reads; [`hvr`]
//! says what kind a program is and how a mix of programs is partitioned.

#![no_std]
#![forbid(unsafe_code)]
#![deny(
    clippy::float_arithmetic,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

pub mod buddy;
pub mod color_map;
pub mod contract;
pub mod dulo;
pub mod hvr;
pub mod mfc;
pub mod rainbow;
pub mod replacement;
pub mod srm;
