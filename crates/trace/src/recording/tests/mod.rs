//! Tests that need more than one module.

mod damage;
mod events;
mod replay;
mod round_trip;
mod support;
