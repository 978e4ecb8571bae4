//! Recorded programs (design decision 5).

pub mod model;
