//! Readers of foreign memory traces, by their public interface.

#[path = "foreign/damage.rs"]
mod damage;
#[path = "foreign/entries.rs"]
mod entries;
#[path = "foreign/formats.rs"]
mod formats;
#[path = "foreign/kinds.rs"]
mod kinds;
#[path = "foreign/mutations.rs"]
mod mutations;
#[path = "foreign/packing.rs"]
mod packing;
#[path = "foreign/pipes.rs"]
mod pipes;
#[path = "foreign/samples.rs"]
mod samples;
#[path = "foreign/support.rs"]
mod support;
mod traces;
