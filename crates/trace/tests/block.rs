//! Readers of block and file traces, by their public interface.

#[path = "block/damage.rs"]
mod damage;
#[path = "block/formats.rs"]
mod formats;
#[path = "block/mutations.rs"]
mod mutations;
#[path = "block/samples.rs"]
mod samples;
#[path = "block/support.rs"]
mod support;
