//! All integration tests of the crate, in one program: it is linked once.

mod dependency_edges;
mod guest_script;
mod hygiene;
mod imports;
mod lines;
mod qemu_script;
mod runner;
mod stand_ins;
mod tables;
