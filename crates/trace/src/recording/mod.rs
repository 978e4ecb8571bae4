//! Recorded programs (design decision 5).
//!
//! temporary
pub mod model;

mod compiled;
mod data;
mod decode;
mod dictionary;
mod encode;
mod error;
mod file;
mod pages;
mod predict;
mod reader;
mod record;
mod scan;
mod varint;
mod writer;

pub use compiled::{Block, Dictionary};
pub use dictionary::{Base, BlockLookup, encode_dictionary};
pub use encode::{ChunkEncoder, ChunkSummary, MAX_CHUNK_BLOCKS, MAX_CHUNK_REFS};
pub use error::{EncodeError, ReadError, WriteError};
pub use file::{ChunkEntry, Counts, DictionaryEntry, FileHeader, Index, MAJOR, MINOR, ThreadEntry};
pub use pages::PageTouch;
pub use reader::Recording;
pub use scan::Recovered;
pub use writer::{Finished, MemoryWriter, RecordingWriter, append_record};
