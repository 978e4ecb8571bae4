//! Memory traces that other tools made.
//!
//! A *trace* is one or more files of one format; each file is one *thread*, read as a stream in
//! constant memory and handed on as an [`OpSource`](piebald_units::op::OpSource). A *record* is
//! one line of a text or one structure of a binary file; a *container* is what it is packed in
//! (gzip, bzip2, xz, zstd, or the zip of chunks of drmemtrace), told by its magic bytes. Offsets in
//! errors count bytes of the unpacked stream.
//!
//! What these formats lack is stated, not invented silently:
//!
//! | format | sizes | instruction addresses | gaps | dependences | end |
//! |---|---|---|---|---|---|
//! | `lackey` | yes | yes | yes | no | exit with the log's number, which Valgrind 3.19 leaves at 0 |
//! | `champsim`, `champsim-cloudsuite` | no: 8 bytes, cut at the line's end | yes | yes | from registers | none |
//! | `drmemtrace` | yes | yes | yes | no | thread exit, status unknown: 0 |
//! | `ramulator-cpu` | lines | no | yes | no | none |
//! | `ramulator-dram`, `ramulator2-load-store` | lines | no | none: one instruction per request | no | none |
//! | `ramulator2-read-write` | lines, at addresses made from coordinates | no | none: one instruction per request | no | none |
//! | `load-store` | no: 4 bytes, cut at the line's end | no | yes | no | none |
//! | `din` | no: 4 bytes, cut at the line's end | yes | yes | no | none |
//! | `pinatrace` | no: 8 bytes, cut at the line's end | those that touch memory | of these | no | none |
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
pub(crate) mod error;
mod fetch;
pub mod fuzz;
pub(crate) mod input;
pub(crate) mod lackey;
pub(crate) mod lines;
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
pub use error::ForeignError;
pub(crate) use error::names;
pub use fetch::Fetches;
pub use summary::{DEFAULT_DISTINCT_BOUND, Distinct, Ending, Place, Summary, Touched};
pub use thread::{ForeignThread, Identity, Notes, Skipped};

use crate::quote::shorten;

/// A foreign trace format. [`Display`](fmt::Display) and [`FromStr`] use the names of
/// [`Format::name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Text of `valgrind --tool=lackey --trace-mem=yes`.
    Lackey,
    /// ChampSim's `input_instr`: 64 bytes per instruction.
    #[serde(rename = "champsim")]
    ChampSim,
    /// ChampSim's `cloudsuite_instr`: 96 bytes per instruction.
    #[serde(rename = "champsim-cloudsuite")]
    CloudSuite,
    /// DynamoRIO drmemtrace, offline: 12 bytes per entry, one file per thread.
    #[serde(rename = "drmemtrace")]
    DrMemtrace,
    /// Ramulator CPU trace: `bubble_count read_address [writeback_address]`.
    RamulatorCpu,
    /// Ramulator DRAM trace: `0xADDRESS R|W`.
    RamulatorDram,
    /// Ramulator 2 load/store trace: `LD|ST ADDRESS`.
    #[serde(rename = "ramulator2-load-store")]
    Ramulator2LoadStore,
    /// Ramulator 2 read/write trace: `R|W` and DRAM coordinates.
    #[serde(rename = "ramulator2-read-write")]
    Ramulator2ReadWrite,
    /// `l|s 0xADDRESS instructions_since_last`, as in SimpleScalar-style address traces.
    LoadStore,
    /// Dinero's `din`: `label address`.
    Din,
    /// Pin's example tool: `0xINSTRUCTION: R|W 0xADDRESS`.
    Pinatrace,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 11] = [
        Self::Lackey,
        Self::ChampSim,
        Self::CloudSuite,
        Self::DrMemtrace,
        Self::RamulatorCpu,
        Self::RamulatorDram,
        Self::Ramulator2LoadStore,
        Self::Ramulator2ReadWrite,
        Self::LoadStore,
        Self::Din,
        Self::Pinatrace,
    ];

    /// The name that users write.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lackey => "lackey",
            Self::ChampSim => "champsim",
            Self::CloudSuite => "champsim-cloudsuite",
            Self::DrMemtrace => "drmemtrace",
            Self::RamulatorCpu => "ramulator-cpu",
            Self::RamulatorDram => "ramulator-dram",
            Self::Ramulator2LoadStore => "ramulator2-load-store",
            Self::Ramulator2ReadWrite => "ramulator2-read-write",
            Self::LoadStore => "load-store",
            Self::Din => "din",
            Self::Pinatrace => "pinatrace",
        }
    }

    /// Whether the format holds only references that missed in caches.
    pub const fn filtered(self) -> bool {
        matches!(
            self,
            Self::RamulatorCpu
                | Self::RamulatorDram
                | Self::Ramulator2LoadStore
                | Self::Ramulator2ReadWrite
        )
    }

    /// What a reader has to assume about every trace of the format, in words; most need nothing.
    pub const fn assumes(self) -> Option<&'static str> {
        match self {
            Self::ChampSim | Self::CloudSuite => Some("sizes: 8 bytes, cut at the line's end"),
            Self::LoadStore => Some("sizes: 4 bytes, cut at the line's end"),
            Self::RamulatorCpu => Some("sizes: whole lines"),
            Self::RamulatorDram | Self::Ramulator2LoadStore => {
                Some("sizes: whole lines; one instruction per request")
            }
            Self::Ramulator2ReadWrite => Some(
                "addresses: made from DRAM coordinates by a linear mapping, not the traced \
                 machine's; sizes: whole lines; one instruction per request",
            ),
            Self::Din => Some("sizes: 4 bytes, cut at the line's end; instructions of 1 byte"),
            Self::Pinatrace => Some(
                "sizes: 8 bytes, cut at the line's end; instructions of 1 byte, and none besides \
                 those that touch memory",
            ),
            Self::Lackey | Self::DrMemtrace => None,
        }
    }

    /// Whether the format says where instructions lie, so that fetches and sites exist.
    pub const fn has_instructions(self) -> bool {
        matches!(
            self,
            Self::Lackey
                | Self::ChampSim
                | Self::CloudSuite
                | Self::DrMemtrace
                | Self::Din
                | Self::Pinatrace
        )
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
