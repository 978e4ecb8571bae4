//! All integration tests of the crate, in one program: it is linked once.

mod about;
mod block;
mod differential;
mod foreign;
mod traces;
mod writers;
