//! All integration tests of the crate, in one program: it is linked once.

mod advice;
mod colors;
mod files;
mod foresee;
mod hvr;
mod kit;
mod met;
mod mutate;
mod named;
mod partitions;
mod reads;
mod regions;
mod replay;
mod replayed;
mod scenario;
mod sized_columns;
mod study;
mod sysmon;
mod timed;
mod truth;
mod uvp;
