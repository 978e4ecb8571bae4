//! Recorded programs (design decision 5).
//!
//! A recorder hands the *raw stream* of each thread to a [`ChunkEncoder`], with
//! the blocks it translated ([`encode_dictionary`]) beside it; the resulting
//! records go into one file in any order, from any number of processes
//! ([`RecordingWriter`]; built-in programs use [`MemoryWriter`]). A [`Recording`]
//! is opened for reading and replayed thread by thread ([`Recording::source`]).
//!
//! # Vocabulary
//!
//! * *block*: a straight run of instructions, described once in a *dictionary*;
//!   *execution*: one pass through it;
//! * *access*: a place in a block that refers to memory; *reference*: one
//!   execution of it; *site*: the instruction that made it, as a number;
//! * *chunk*: at most [`MAX_CHUNK_REFS`] references of a thread with the events
//!   among them, decodable alone;
//! * *recorded thread*: what one thread did in one image; *thread of the program*
//!   ([`ProgramThread`]): recorded threads that follow one another over `exec`;
//! * *place*: a number in the total order of the events of all processes.
//!
//! # How it is used
//!
//! ```
//! use piebald_trace::recording::{model::*, *};
//! use piebald_units::op::{MemRef, Next, OpSource};
//!
//! let load = AccessDef {
//!     insn: 0,
//!     offset: 0,
//!     size: 8,
//!     kind: AccessKind::Load,
//!     address: Sources::default(),
//! };
//! let dictionary = vec![BlockDef {
//!     addr: 0x40_1000,
//!     bytes: 12,
//!     instrs: 3,
//!     accesses: vec![load],
//!     outs: vec![],
//! }];
//! let mut writer = MemoryWriter::new(FileHeader::new(vec!["scan".into()]));
//! encode_dictionary(0, None, 0, &dictionary, writer.records())?;
//! let raw: Vec<Raw> = (0..100)
//!     .flat_map(|i| [Raw::block(0), Raw::access(0, 0x1000 + 8 * i)])
//!     .collect();
//! ChunkEncoder::new(0, 0, 1, 1)?.encode(&dictionary, &raw, &[], writer.records())?;
//!
//! let recording = Recording::from_bytes(writer.finish()?, "scan")?;
//! let mut source = recording.source(0, ReplayOptions::default())?;
//! let mut refs = [MemRef::default(); 128];
//! let filled = source.fill(&mut refs);
//! assert_eq!((filled.refs, filled.next), (100, Next::End));
//! assert_eq!(refs[99].addr.0, 0x1000 + 8 * 99);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where things are
//!
//! | module | content |
//! |---|---|
//! | `model` | what a recording says |
//! | `file`, `record`, `dictionary`, `encode` | layout of the file and its parts, byte by byte |
//! | `predict` | what makes addresses and blocks small |
//! | `translate`, `waits`, `analysis` | what events mean |

pub mod fuzz;
pub mod model;
pub mod regions;

mod analysis;
mod chunk;
mod compiled;
mod data;
mod decode;
mod dictionary;
mod emit;
mod encode;
mod error;
mod file;
mod pages;
mod predict;
mod programs;
mod reader;
mod record;
mod repair;
mod replay;
mod scan;
mod translate;
mod varint;
mod vectors;
mod waits;
mod writer;

pub use analysis::{FileInfo, ProgramThread};
pub use chunk::RawChunk;
pub use compiled::{Block, Dictionary};
pub use dictionary::{Base, BlockLookup, encode_dictionary};
pub use encode::{ChunkEncoder, ChunkSummary, MAX_CHUNK_BLOCKS, MAX_CHUNK_REFS};
pub use error::{EncodeError, ReadError, WriteError};
pub use file::{
    ChunkEntry, Counts, DictionaryEntry, FileHeader, Index, MAJOR, MINOR, RefusedCall, ThreadEntry,
};
pub use pages::PageTouch;
pub use programs::ProgramShare;
pub use reader::Recording;
pub use repair::{Repaired, repair};
pub use replay::{RecordedThread, ReplayOptions};
pub use scan::Recovered;
pub use translate::file_id;
pub use vectors::{BlockKey, BlockVector, ThreadVectors, VectorBudget};
pub use writer::{Finished, MemoryWriter, RecordingWriter, append_record};

/// Whether a file or pipe begins as a recording does. A pipe can be read from its
/// beginning afterwards; `-` is standard input.
///
/// # Errors
/// Those of opening and reading it.
pub fn is_recording(path: &std::path::Path) -> std::io::Result<bool> {
    let magic = file::FILE_MAGIC;
    Ok(crate::source::first_bytes(path, magic.len())? == magic)
}

#[cfg(test)]
mod tests;
