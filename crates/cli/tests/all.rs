//! All integration tests of the crate, in one program: it is linked once.

mod advise;
mod columns;
mod fixtures;
mod formats;
mod interrupts;
mod json;
mod live;
mod machine;
mod near;
mod outputs;
mod overrides;
mod record;
mod repair;
mod replay;
mod reproduce;
mod scenario;
mod schema;
mod shell;
mod store;
mod study;
mod terminal;
mod told;
mod trace;
mod wrong_scenarios;
