//! Readers of block and file traces, by their public interface.

#[path = "block/columns.rs"]
mod columns;
#[path = "block/columns_random.rs"]
mod columns_random;
#[path = "block/cuts.rs"]
mod cuts;
#[path = "block/damage.rs"]
mod damage;
#[path = "block/fetched.rs"]
mod fetched;
#[path = "block/formats.rs"]
mod formats;
#[path = "block/kinds.rs"]
mod kinds;
#[path = "block/mutations.rs"]
mod mutations;
#[path = "block/samples.rs"]
mod samples;
#[path = "block/strace_forms.rs"]
mod strace_forms;
#[path = "block/strace_oracle.rs"]
mod strace_oracle;
#[path = "block/support.rs"]
mod support;
mod traces;
