//! What can go wrong with a recording.

use std::{io, path::PathBuf};

use crate::quote::shell_word;
use crate::source;

/// Why something could not be encoded. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// The raw stream does not begin with a block entry.
    #[error("raw entry 0 is an access; a chunk begins with a block entry")]
    NoBlock,
    /// A block that the dictionary does not hold.
    #[error("raw entry {entry} names block {block}, which the dictionary does not hold")]
    UnknownBlock {
        /// Index of the raw entry.
        entry: usize,
        /// Block id that it names.
        block: u32,
    },
    /// An access that its block's definition does not hold.
    #[error(
        "raw entry {entry} names access {index} of block {block}, which has {accesses} accesses"
    )]
    UnknownAccess {
        /// Index of the raw entry.
        entry: usize,
        /// The block that is being executed.
        block: u32,
        /// Access index that it names.
        index: u16,
        /// How many the block has.
        accesses: usize,
    },
    /// More than a chunk may hold.
    #[error("a chunk holds at most {allowed} {what}; this one has more")]
    ChunkTooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How many are allowed.
        allowed: u64,
    },
    /// Events out of order, or beyond the end of the raw stream.
    #[error("event {event} lies before raw entry {at}; positions must rise and be at most {limit}")]
    EventPlace {
        /// Index of the event in the list.
        event: usize,
        /// Its raw index.
        at: usize,
        /// Length of the raw stream.
        limit: usize,
    },
    /// A block definition that makes no sense.
    #[error("block {block}: {what}")]
    BadBlock {
        /// Block id.
        block: u64,
        /// What is wrong and what is allowed.
        what: String,
    },
    /// The compressor failed.
    #[error("compression failed: {0}")]
    Compress(#[from] io::Error),
    /// The serializer failed.
    #[error("serialization failed: {0}")]
    Serialize(#[from] postcard::Error),
}

/// Why a recording could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The operating system refused.
    #[error("{}: {action}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was being done.
        action: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The output would replace the input.
    #[error("{}: the output is the input; allowed: another file", path.display())]
    SameFile {
        /// The file.
        path: PathBuf,
    },
    /// The output is there already, and is nothing that a recording may replace.
    #[error(
        "{}: {what}; allowed: a new file, an empty one, or a recording, which is replaced",
        path.display()
    )]
    Taken {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// What was written is not a recording.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The footer could not be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The header no longer fits into the space that was reserved for it.
    #[error("{}: header needs {needed} bytes, {reserved} are reserved", path.display())]
    HeaderTooLong {
        /// The file.
        path: PathBuf,
        /// Bytes needed.
        needed: usize,
        /// Bytes reserved.
        reserved: usize,
    },
}

/// Why a recording could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The operating system refused.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// Why it failed.
        source: io::Error,
    },
    /// The file says something that no recording says.
    #[error("{file}: offset {offset}: {what}")]
    Corrupt {
        /// The file.
        file: String,
        /// Byte offset of the place.
        offset: u64,
        /// What is wrong and what is allowed.
        what: String,
    },
    /// Written by an incompatible version, older or newer.
    #[error(
        "{file}: format version {major}.{minor}; this version reads {supported}.x: {}",
        if major < supported { "record again" } else { "a newer version of Piebald reads it" }
    )]
    Version {
        /// The file.
        file: String,
        /// Its major version.
        major: u16,
        /// Its minor version.
        minor: u16,
        /// The major version that can be read.
        supported: u16,
    },
    /// The file was not finished.
    #[error(
        "{file}: no footer at offset {offset}: the file was not finished, or its end is missing; {}",
        how_to_repair(file)
    )]
    NoFooter {
        /// The file.
        file: String,
        /// Where the footer should end.
        offset: u64,
    },
    /// No such thread.
    #[error("{file}: no thread {thread}; its threads: {known}")]
    NoThread {
        /// The file.
        file: String,
        /// What was asked for.
        thread: u32,
        /// What there is.
        known: String,
    },
    /// No such place in the thread.
    #[error("{file}: thread {thread} has {instrs} instructions; cannot start at {start}")]
    NoPlace {
        /// The file.
        file: String,
        /// Which thread.
        thread: u32,
        /// Its length.
        instrs: u64,
        /// What was asked for.
        start: u64,
    },
    /// Basic-block vectors would not fit their budget.
    #[error(
        "{file}: intervals of {interval} instructions give more than {allowed} {what}; allowed: a \
         longer interval or fewer instructions"
    )]
    TooManyVectors {
        /// The file.
        file: String,
        /// Instructions of an interval.
        interval: u64,
        /// What there is too much of.
        what: &'static str,
        /// How many are allowed.
        allowed: usize,
    },
}

/// The command that makes a whole recording of this file, as it can be pasted into a shell.
pub(super) fn how_to_repair(file: &str) -> String {
    let input = source::argument(file);
    let output = if input == source::STDIN {
        "repaired.pbr".to_owned()
    } else {
        let stem = file.strip_suffix(".partial").unwrap_or(file);
        let stem = stem.strip_suffix(".pbr").unwrap_or(stem);
        format!("{stem}.repaired.pbr")
    };
    format!(
        "`piebald trace repair {} {}` makes a whole recording of what is left",
        shell_word(input),
        shell_word(&output)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_repairs_can_be_pasted() {
        let command = |file| how_to_repair(file);
        assert!(
            command("out/gz.pbr")
                .starts_with("`piebald trace repair out/gz.pbr out/gz.repaired.pbr`")
        );
        assert!(command("x.pbr.partial").contains(" x.pbr.partial x.repaired.pbr`"));
        assert!(command("a b").starts_with("`piebald trace repair 'a b' 'a b.repaired.pbr'`"));
        assert!(command("standard input").starts_with("`piebald trace repair - repaired.pbr`"));
    }
}
