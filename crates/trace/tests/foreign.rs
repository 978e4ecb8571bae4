//! Readers of foreign memory traces, by their public interface.

mod damage;
mod entries;
mod formats;
mod kinds;
mod mutations;
mod packing;
mod pipes;
mod samples;
mod support;
