//! Instrumented memory: algorithms compute on real data, and each access also
//! leaves a reference on a [`Tape`].
//!
//! A kernel first declares its code as [`Shape`]s and its data as [`Array`]s.
//! Then it computes: it enters a block, and its `get`s and `set`s are that
//! block's accesses in order. What arrives at the [`Sink`] is what a recorder of
//! a real program would deliver: a dictionary of blocks, a stream of block
//! executions and data addresses, and events.
//!
//! Addresses are those of a Linux x86-64 process: code at 0x401000 (a static,
//! non-relocated image), data in page-aligned anonymous mappings handed out
//! downwards from the mmap base, one next to the other, as the kernel does for
//! large `malloc`s. Deviation: glibc puts a header of 16 B before such a block,
//! which shifts arrays off their lines; arrays here start on the page, so that
//! closed formulas about lines hold.

mod array;
mod shape;
mod tape;

pub use array::Array;
pub use shape::{INSTR_BYTES, MAX_ACCESSES, MAX_INSTRS, Shape};
pub use tape::{Block, EmitError, File, Limits, Sink, Tape, mark};
