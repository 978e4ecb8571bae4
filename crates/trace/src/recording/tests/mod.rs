//! Tests that need more than one module.

mod batches;
mod damage;
mod event_support;
mod events;
mod replay;
mod round_trip;
mod support;
mod waits;
