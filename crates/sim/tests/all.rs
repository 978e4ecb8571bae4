//! All integration tests of the crate, in one program: it is linked once.

mod colors;
mod course;
mod events;
mod files;
mod formats;
mod hvr;
mod kit;
mod merge;
mod model;
mod partitions;
mod programs;
mod reads;
