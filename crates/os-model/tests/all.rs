//! All integration tests of the crate, in one program: it is linked once.

mod colored;
mod file_cache;
mod file_dirty;
mod file_large;
mod file_layout;
mod file_random;
mod filehost;
mod frames;
mod io_oracle;
mod io_queue;
mod kernel_colors;
mod kernel_contents;
mod kernel_facade;
mod kernel_hvr;
mod kernel_paging;
mod kernel_swap;
mod kernel_zone;
mod memory_model;
mod oracle;
mod paged;
mod recorded;
mod replacement_contract;
mod replacement_libcachesim;
mod replacement_linux;
mod replacement_oracles;
mod replacement_traces;
mod replaying;
mod sched;
mod sched_moves;
mod libcachesim {
    pub mod traces;
}
