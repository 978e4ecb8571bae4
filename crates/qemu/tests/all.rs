//! All integration tests of the crate, in one program: it is linked once.

mod common;
mod counts;
mod differences;
mod limits;
mod odd_programs;
mod processes;
mod references;
