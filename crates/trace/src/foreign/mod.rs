//! Memory traces that other tools made.
//!
//! A *trace* is one or more files of one format; each file is one *thread*, read as a stream in
//! constant memory and handed on as an [`OpSource`](piebald_units::op::OpSource). A *record* is
//! one line of a text or one structure of a binary file; a *container* is what it is packed in
//! (gzip, bzip2, xz, zstd, or the zip of chunks of drmemtrace), told by its magic bytes. Offsets in
//! errors count bytes of the unpacked stream.
//!
//! What these formats lack is stated, not invented silently: each reader has a table entry beside it
//! that says what is left out ([`Format::about`]) and what is assumed ([`Format::assumes`]). Adding a
//! format takes its file, one line in the list below, and a test.
//!
//! The forms of Ramulator and Ramulator 2 hold only what caches let through, so feeding them to a
//! model with caches filters them twice: [`Format::filtered`] says so. An instruction address of 64 bits is
//! folded to the 32 bits of [`MemRef::site`](piebald_units::op::MemRef::site): equal addresses
//! stay equal, and addresses below 4 GiB stay readable. A reference larger than 64 bytes becomes
//! several of up to 64.
//!
//! A text's last line that no line feed ends is taken if it parses, and [`Notes::unended_lines`] says
//! so: a number that was cut in half still looks like a number, and this is the only sign of it.

mod bunzip2;
pub(crate) mod champsim;
pub(crate) mod container;
mod detect;
mod din;
pub(crate) mod drmemtrace;
pub(crate) mod entry;
pub(crate) mod error;
mod fetch;
pub mod fuzz;
pub(crate) mod input;
pub(crate) mod lackey;
mod loadstore;
mod pinatrace;
mod ramulator;
mod ramulator2;
pub(crate) mod set;
mod summary;
pub(crate) mod text;
mod thread;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

pub use detect::detect;
use entry::Entry;
pub use error::ForeignError;
pub(crate) use error::names;
pub use fetch::Fetches;
pub use summary::{DEFAULT_DISTINCT_BOUND, Distinct, Ending, Place, Summary, Touched};
pub use thread::{ForeignThread, Identity, Notes, Skipped};

use crate::about::About;
use crate::quote::shorten;

/// Makes the enum of formats and its table from one list.
macro_rules! formats {
    ($($(#[$doc:meta])* $variant:ident => $entry:expr,)*) => {
        /// A foreign trace format. [`Display`](fmt::Display) and [`FromStr`] use the names of
        /// [`Format::name`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Format {
            $($(#[$doc])* $variant,)*
        }

        impl Format {
            /// Every format.
            pub const ALL: [Self; [$(stringify!($variant)),*].len()] = [$(Self::$variant),*];

            pub(crate) const fn entry(self) -> &'static Entry {
                match self {
                    $(Self::$variant => &$entry,)*
                }
            }
        }
    };
}

formats! {
    /// Text of `valgrind --tool=lackey --trace-mem=yes`.
    Lackey => lackey::ENTRY,
    /// ChampSim's `input_instr`: 64 bytes per instruction.
    ChampSim => champsim::SMALL,
    /// ChampSim's `cloudsuite_instr`: 96 bytes per instruction.
    CloudSuite => champsim::LARGE,
    /// DynamoRIO drmemtrace, offline: 12 bytes per entry, one file per thread.
    DrMemtrace => drmemtrace::ENTRY,
    /// Ramulator CPU trace.
    RamulatorCpu => ramulator::CPU,
    /// Ramulator DRAM trace.
    RamulatorDram => ramulator::DRAM,
    /// Ramulator 2 load/store trace.
    Ramulator2LoadStore => ramulator2::LOAD_STORE,
    /// Ramulator 2 read/write trace: DRAM coordinates.
    Ramulator2ReadWrite => ramulator2::READ_WRITE,
    /// Loads and stores with the instructions between them, as in SimpleScalar-style address traces.
    LoadStore => loadstore::ENTRY,
    /// Dinero's `din`.
    Din => din::ENTRY,
    /// Pin's example tool pinatrace.
    Pinatrace => pinatrace::ENTRY,
}

impl Format {
    /// The name that users write.
    pub const fn name(self) -> &'static str {
        self.entry().name
    }

    /// What is said of the format.
    pub const fn about(self) -> &'static About {
        &self.entry().about
    }

    /// Whether the format holds only references that missed in caches.
    pub const fn filtered(self) -> bool {
        self.entry().filtered
    }

    /// What a reader has to assume about every trace of the format, in words; most need nothing.
    pub const fn assumes(self) -> Option<&'static str> {
        self.entry().assumes
    }

    /// Whether the format says where instructions lie, so that fetches and sites exist.
    pub const fn has_instructions(self) -> bool {
        self.entry().instructions
    }

    /// Whether a whole file says that its thread has ended; one that does not was cut.
    pub const fn writes_ends(self) -> bool {
        matches!(self, Self::DrMemtrace)
    }
}

impl serde::Serialize for Format {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = ForeignError;

    fn from_str(name: &str) -> Result<Self, ForeignError> {
        Self::ALL
            .into_iter()
            .find(|f| f.name() == name)
            .ok_or_else(|| ForeignError::NoSuchFormat {
                value: shorten(name.as_bytes()),
            })
    }
}

/// How a trace is turned into references.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Which instruction fetches become references. Ignored by formats without instruction
    /// addresses.
    pub fetches: Fetches,
    /// Hand on software data prefetches (drmemtrace) as loads of one byte (`LoadNt` for the
    /// non-temporal ones) instead of counting them in [`Skipped::prefetches`].
    pub prefetches: bool,
}

/// A foreign trace: files of one format, one thread each.
#[derive(Clone, Debug)]
pub struct ForeignTrace {
    format: Format,
    options: Options,
    files: Vec<PathBuf>,
}

impl ForeignTrace {
    /// What its references depend on: format, options, and the sums of its files' bytes (BLAKE3),
    /// all of which are read.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn identity(&self) -> std::io::Result<String> {
        let mut text = format!("{:?} {:?}", self.format, self.options);
        for path in &self.files {
            let mut hasher = blake3::Hasher::new();
            std::io::copy(&mut std::fs::File::open(path)?, &mut hasher)?;
            text += &format!(" {}", hasher.finalize().to_hex());
        }
        Ok(text)
    }

    /// Names the files of a trace; thread *n* is the *n*-th file.
    ///
    /// A directory stands for the files in it whose names contain `.trace`, sorted by name (and
    /// for its subdirectory `trace`, where drmemtrace puts them). Without `format`, all files
    /// must be [detected](detect()) as the same format.
    ///
    /// # Errors
    /// No file, an unreadable one, an unknown format, or files of different formats.
    pub fn at<P: AsRef<Path>>(
        paths: &[P],
        format: Option<Format>,
        options: Options,
    ) -> Result<Self, ForeignError> {
        let mut files = Vec::new();
        for path in paths {
            detect::collect(path.as_ref(), &mut files)?;
        }
        let Some(first) = files.first() else {
            return Err(ForeignError::NoFiles);
        };
        let format = match format {
            Some(format) => format,
            None => {
                let expected = detect(first)?;
                for path in &files[1..] {
                    let found = detect(path)?;
                    if found != expected {
                        return Err(ForeignError::Mixed {
                            path: path.clone(),
                            found,
                            expected,
                        });
                    }
                }
                expected
            }
        };
        Ok(Self {
            format,
            options,
            files,
        })
    }

    /// The format of all files.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The files, in order of thread.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Number of threads: [`open`](Self::open) takes 0 up to this number, exclusive.
    pub fn threads(&self) -> usize {
        self.files.len()
    }

    /// Opens one thread at its beginning.
    ///
    /// # Errors
    /// No such thread, or its file cannot be opened. Damage inside is reported later, by
    /// [`Next::Broken`](piebald_units::op::Next::Broken).
    pub fn open(&self, thread: usize) -> Result<ForeignThread, ForeignError> {
        let path = self.files.get(thread).ok_or(ForeignError::NoSuchThread {
            thread,
            threads: self.files.len(),
        })?;
        let input = input::Input::open(path)?;
        Ok(ForeignThread::new(self.format, self.options, input))
    }

    /// Reads everything once and sums it up. Exact counts of distinct pages and lines are kept up
    /// to `distinct_bound` of each, at about 18 bytes of memory per unit; see
    /// [`DEFAULT_DISTINCT_BOUND`].
    ///
    /// # Errors
    /// A file cannot be opened. A thread that breaks ends as [`Ending::Broken`] in the summary.
    pub fn summary(&self, distinct_bound: usize) -> Result<Summary, ForeignError> {
        summary::of(self, distinct_bound)
    }

    /// The first `n` references of a thread as text, one line each:
    /// `#reference instruction kind size address site`, with `instruction` the number of
    /// instructions retired up to and including this reference's own (1 for the first), and
    /// address and site in hexadecimal.
    ///
    /// # Errors
    /// No such thread, the file cannot be opened, or it breaks before the `n`-th reference.
    pub fn head(&self, thread: usize, n: u64) -> Result<Vec<String>, ForeignError> {
        summary::head(self, thread, n)
    }
}
