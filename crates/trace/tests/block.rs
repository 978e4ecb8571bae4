//! Readers of block and file traces, by their public interface.

mod columns;
mod columns_random;
mod cuts;
mod damage;
mod fetched;
mod formats;
mod kinds;
mod mutations;
mod samples;
mod strace_forms;
mod strace_oracle;
mod support;
