//! All integration tests of the crate, in one program: it is linked once.

mod builtin;
mod common;
mod kernels;
mod recorded;
mod replay;
mod tape;
