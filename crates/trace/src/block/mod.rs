//! Traces of what is read and written on disks and in files.
//!
//! A [`BlockTrace`] reads one file as a stream, in memory that depends on the number of files and
//! disks that the trace names, not on its length. It yields [`Request`]s in batches, plain or
//! packed by gzip, bzip2, xz or zstd (told by their magic bytes). The formats fall into three
//! kinds by what their requests are about ([`Traits::target`]), and what a format lacks is never
//! made up: whoever needs disk addresses must state a layout for the second kind, and cannot have
//! any for the third.
//!
//! The kinds are sectors of a disk, bytes of a file, and opaque blocks. Each reader in `formats` has a
//! table entry beside it, which says what a record holds ([`Format::about`]).
//!
//! # Time
//!
//! Times may step back in any format, most often where the logs of several queues, processors or
//! volumes were merged ([`Times::Loose`]). The order of the requests is the file's. Steps back are
//! counted in [`Notes`], with the largest, and the times left as they are: most replays need no clock,
//! and one that does takes the latest time so far or refuses.
//!
//! # Damage
//!
//! The first record that is wrong ends strict reading with its place, field, value and what is
//! allowed; what came before it is handed out. [`Options::lenient`] leaves such records out and
//! counts them in [`Skipped`]. A last line that no line feed ends is taken if it parses, and
//! [`Notes::unended_lines`] says so: a number that was cut in half still looks like a number. An
//! input that cannot be unpacked is an error in both.
//!
//! Adding a format takes its file in `formats`, one line in the list below, and a test.

pub(crate) mod columns;
mod error;
pub(crate) mod formats;
pub mod fuzz;
mod layout;
mod names;
pub(crate) mod reader;
mod remarks;
mod request;
mod runs;
pub(crate) mod sink;
mod summary;
mod text;

use std::fmt;
use std::str::FromStr;

pub use columns::{Columns, ColumnsError, FIELDS, Objects};
pub use error::BlockError;
pub(crate) use error::names;
pub use formats::fpt::FptWriter;
pub use layout::{Extent, Layout};
pub use names::{Devices, FileInfo, Files, MAX_DEVICES, MAX_FILES, MAX_NAME_BYTES};
pub use reader::{BATCH, BlockTrace, Requests};
pub use request::{FileKey, Nanos, NextUse, Op, PageShift, PageSpan, Request, Space, Target};
pub use sink::{LeftOut, Notes, Passed, Skipped};
pub use summary::{Summary, head, summarize};

use crate::about::About;
use crate::quote::shorten;
use reader::Entry;

/// Makes the enum of formats and its table from one list.
macro_rules! formats {
    ($($(#[$doc:meta])* $variant:ident => $entry:expr,)*) => {
        /// A block or file trace format. [`Display`](fmt::Display) gives the name, which
        /// [`FromStr`] reads, along with a few other names.
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
    /// blktrace's binary log, one file per processor or merged.
    Blktrace => formats::blktrace::ENTRY,
    /// Text of blkparse in its default form.
    Blkparse => formats::blkparse::ENTRY,
    /// MSR Cambridge CSV.
    Msr => formats::msr::ENTRY,
    /// SPC, the form of the UMass repository.
    Spc => formats::spc::ENTRY,
    /// VMware vscsi tracing, version 1 (CloudPhysics).
    VscsiV1 => formats::vscsi::V1,
    /// VMware vscsi tracing, version 2.
    VscsiV2 => formats::vscsi::V2,
    /// libCacheSim's CSV with named columns.
    LibCacheSimCsv => formats::libcachesim::CSV,
    /// libCacheSim's oracleGeneral: 24 bytes per request.
    OracleGeneral => formats::oracle::GENERAL,
    /// libCacheSim's oracleGeneralOpNS: 27 bytes per request, with operations.
    OracleGeneralOpNs => formats::oracle::OP_NS,
    /// libCacheSim's lcs, version 1, which has no operations.
    LcsV1 => formats::lcs::V1,
    /// libCacheSim's lcs, versions 2 to 8.
    Lcs => formats::lcs::V2,
    /// One block number per line: LIRS traces, libCacheSim txt.
    Ids => formats::ids::ENTRY,
    /// Text of the ARC authors (`.lis`).
    Arc => formats::arc::ENTRY,
    /// SNIA's SYSTOR '17 traces of a virtual desktop installation.
    Systor17 => formats::systor::ENTRY,
    /// SNIA's Tencent block storage traces.
    Tencent => formats::tencent::ENTRY,
    /// MQSim's ASCII form.
    Mqsim => formats::mqsim::ENTRY,
    /// DiskSim's default ASCII form.
    DiskSim => formats::disksim::ASCII,
    /// DiskSim's validation traces of measured disks.
    DiskSimValidate => formats::disksim::VALIDATE,
    /// AccuSim's binary log of system calls.
    AccuSim => formats::accusim::ENTRY,
    /// Text of `strace -f -y`.
    Strace => formats::strace::ENTRY,
    /// Piebald's page-level file trace.
    Fpt => formats::fpt::ENTRY,
    /// fio's I/O log, versions 2 and 3.
    Fio => formats::fio::ENTRY,
    /// Little-endian numbers of 32 bits, as the file of CloudPhysics w106 that Caffeine keeps.
    W106 => formats::w106::LITTLE,
    /// Big-endian numbers of 32 bits, as Caffeine and cache2k write them.
    W106Be => formats::w106::BIG,
    /// Little-endian numbers of 64 bits, libCacheSim's valpin.
    Valpin => formats::w106::VALPIN,
    /// Any text in columns, which [`Options::columns`] describes.
    Columns => formats::columns::ENTRY,
}

impl Format {
    /// The name that users write.
    pub const fn name(self) -> &'static str {
        self.entry().name
    }

    /// Other names that users may write.
    pub const fn aliases(self) -> &'static [&'static str] {
        self.entry().aliases
    }

    /// What the format's requests say; `None` where that depends on a list of columns.
    pub const fn traits(self) -> Option<Traits> {
        match self {
            Self::Columns => None,
            _ => Some(self.entry().traits),
        }
    }

    /// What is said of the format.
    pub const fn about(self) -> &'static About {
        &self.entry().about
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl serde::Serialize for Format {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl FromStr for Format {
    type Err = BlockError;

    fn from_str(name: &str) -> Result<Self, BlockError> {
        Self::ALL
            .into_iter()
            .find(|f| f.name() == name || f.entry().aliases.contains(&name))
            .ok_or_else(|| BlockError::NoSuchFormat {
                value: shorten(name.as_bytes()),
            })
    }
}

/// What a format's requests are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TargetKind {
    /// [`Target::Device`]: disk addresses.
    Device,
    /// [`Target::File`]: a layout must say where files lie.
    File,
    /// [`Target::Id`]: no address at all.
    Id,
}

/// Whether a format has times, and how far they can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Times {
    /// None.
    None,
    /// Its tracer writes them in order. A step back in a file is counted in [`Notes::backward`].
    Ordered,
    /// They fall now and then in any file: several logs were merged. Counted as well.
    Loose,
    /// Only if the tracer was asked for them. Counted as well.
    Optional,
}

/// What a format's requests say, whatever the trace; of [`Format::Columns`], what the columns say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Traits {
    /// What they are about.
    pub target: TargetKind,
    /// When they are made.
    pub times: Times,
    /// Whether reads and writes are told apart; otherwise all are taken as reads.
    pub directions: bool,
    /// Whether they name the process.
    pub tasks: bool,
}

/// Which stage of a request in the block layer is taken as the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Stage {
    /// When it is queued: what programs and the file system ask for.
    #[default]
    Queue,
    /// When it is issued to the disk: after merging.
    Issue,
}

/// How a trace is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The format, if it is not to be found out.
    pub format: Option<Format>,
    /// What is in the columns of a text. The format is [`Format::Columns`] then.
    pub columns: Option<Columns>,
    /// Leave out wrong records and count them instead of ending with the first.
    pub lenient: bool,
    /// The stage that `blktrace` and `blkparse` yield.
    pub stage: Stage,
    /// Where the objects of a text are numbered by their names ([`Format::Columns`]).
    pub objects: Objects,
    /// Only files whose paths begin with one of these (`strace`); all if there are none.
    pub under: Vec<String>,
}

impl Options {
    /// The format, given by its name or by columns.
    fn chosen(&self) -> Result<Option<Format>, BlockError> {
        match (self.format, &self.columns) {
            (None | Some(Format::Columns), Some(_)) => Ok(Some(Format::Columns)),
            (Some(format), Some(_)) => Err(BlockError::FormatAndColumns { format }),
            (format, None) => Ok(format),
        }
    }

    /// What requests of a format say.
    fn traits(&self, format: Format) -> Traits {
        match &self.columns {
            Some(columns) => described(columns),
            None => format.entry().traits,
        }
    }
}

/// What requests in these columns say. Logs of several disks may be merged in one text.
fn described(columns: &Columns) -> Traits {
    Traits {
        target: match columns.has_places() {
            true => TargetKind::Device,
            false => TargetKind::Id,
        },
        times: match columns.has_times() {
            true => Times::Loose,
            false => Times::None,
        },
        directions: columns.has_directions(),
        tasks: false,
    }
}
