//! All integration tests of the crate, in one program: it is linked once.

mod fuzz;
mod module;
mod probe;
