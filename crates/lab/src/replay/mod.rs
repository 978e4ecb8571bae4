//! Replays: block and file traces against replacement policies, at many sizes, with or
//! without a disk below.
//!
//! A trace is read once or twice: first, where something depends on all of it (shares
//! of the footprint, places on a disk, curves), to count what it consists of; then to
//! run all policies and sizes side by side, batch by batch, on all cores. Results do
//! not depend on how many there are.

mod asked;
mod closed;
mod code;
mod curves;
mod disk;
mod draws;
mod fill;
mod load;
mod loops;
mod passes;
mod plan;
mod sized;
mod sizes;
mod timed;

use std::{
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use piebald_experiment::{DiskStart, MemorySize};
use piebald_os_model::replace::PolicySpec;
use piebald_report::Replay;
use piebald_sim::replay::{Align, DriverError, InputError, InputSetup, InstanceError, Pace};
use piebald_trace::{printable, source::path_of_input};

use crate::{near, study::Hooks};

pub use asked::{POLICIES, SIZES, USUAL_FOR_OBJECTS, asked, is_replay};
pub use code::code;
pub(crate) use disk::kernel;
pub use disk::{DeviceChoice, LayoutChoice, READAHEADS, SCHEDULERS};
pub use draws::{Counts, counts};
pub use load::{ClientsAsked, Load, Paging, Part};
pub use loops::{Queries, QueryFile};
pub use plan::MIN;
pub use sized::OBJECT_POLICIES;
pub use sizes::SizeError;

/// What is asked.
#[derive(Clone, Debug)]
pub struct ReplayRequest {
    /// What is replayed.
    pub load: Load,
    /// Traces and how they are read.
    pub input: InputSetup,
    /// Which part of the traces is replayed.
    pub part: Part,
    /// Policies over pages, in the order of the output.
    pub policies: Vec<PolicySpec>,
    /// Policies for a trace of objects of different sizes, of [`OBJECT_POLICIES`].
    pub object_policies: Vec<PolicySpec>,
    /// Let each object take a page, whatever its size.
    pub ignore_sizes: bool,
    /// Sizes of memory.
    pub sizes: Vec<MemorySize>,
    /// The disk below, if any.
    pub device: DeviceChoice,
    /// Readahead: one of [`READAHEADS`].
    pub readahead: String,
    /// I/O scheduler: one of [`SCHEDULERS`].
    pub scheduler: String,
    /// Where pages lie.
    pub layout: LayoutChoice,
    /// When calls begin.
    pub pace: Pace,
    /// References before counting.
    pub warmup: u64,
    /// Miss-ratio curves.
    pub curves: Option<CurveRequest>,
    /// Where the disk stands at the beginning.
    pub start: DiskStart,
    /// Seed of all draws.
    pub seed: u64,
    /// Bytes of this computer's memory that the policies' tables may take; `None`: nobody looks.
    pub available: Option<u64>,
}

impl ReplayRequest {
    /// The file that the device is read from.
    pub fn device_file(&self) -> Option<&Path> {
        match &self.device {
            DeviceChoice::File(path) => Some(path),
            DeviceChoice::None | DeviceChoice::Preset(_) => None,
        }
    }

    /// The file that the layout is read from.
    pub fn layout_file(&self) -> Option<&Path> {
        match &self.layout {
            LayoutChoice::File(path) => Some(path),
            _ => None,
        }
    }

    /// All files that it reads, as far as they are known before.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = self.input.paths.clone();
        if let Load::Clients(clients) = &self.load {
            files.extend([clients.queries.clone(), clients.sequences.clone()]);
            let traces = closed::traces(&clients.queries).unwrap_or_default();
            files.extend(traces.into_iter().map(|(path, _)| path));
        }
        let others = [self.device_file(), self.layout_file()];
        files.extend(others.into_iter().flatten().map(Path::to_owned));
        files
    }
}

/// Which curves, and how exact.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CurveRequest {
    /// Share of the pages in a sample, `None` = by the footprint.
    pub rate: Option<f64>,
}

/// Why a replay failed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A trace.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A size.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// Nothing was asked for.
    #[error("no {0} given")]
    Nothing(&'static str),
    /// A policy at a size could not be made.
    #[error("policy {policy} with {pages} pages: {error}{}", near::instance(error))]
    Instance {
        /// Which.
        policy: String,
        /// Its size.
        pages: u64,
        /// Why.
        error: Box<InstanceError>,
    },
    /// A policy at a size failed.
    #[error("policy {policy} with {pages} pages: {error}")]
    Driver {
        /// Which.
        policy: String,
        /// Its size.
        pages: u64,
        /// Why.
        error: Box<DriverError>,
    },
    /// Something about device, kernel or layout.
    #[error("{what} \"{value}\": {problem}")]
    Choice {
        /// The option.
        what: &'static str,
        /// Its value.
        value: String,
        /// What is wrong, and what is allowed.
        problem: String,
    },
    /// It was stopped before there was anything to report.
    #[error("stopped before there was anything to report")]
    Stopped,
}

impl ReplayError {
    /// Did the command line or an input cause it, rather than a defect of ours?
    pub fn is_usage(&self) -> bool {
        !matches!(self, Self::Driver { .. } | Self::Stopped)
    }
}

/// Replays traces as asked. A trace that is an empty file is passed over beside others, with a note:
/// blktrace leaves one for each processor that had no requests, and strace for each process.
///
/// # Errors
/// See [`ReplayError`].
pub fn replay(request: &ReplayRequest, hooks: Hooks<'_>) -> Result<Replay, ReplayError> {
    if let Some(closed) = closed::run(request, hooks) {
        return closed;
    }
    if request.input.paths.is_empty() {
        return Err(ReplayError::Nothing("trace"));
    }
    let (empty, paths) = empty_and_others(&request.input.paths);
    if !(empty.is_empty() || paths.is_empty()) {
        let mut others = request.clone();
        others.input.paths = paths;
        let mut replay = replay(&others, hooks)?;
        let notes = empty
            .iter()
            .map(|path| format!("{}: the file is empty and is passed over", path.display()));
        replay.conditions.notes.extend(notes);
        return Ok(replay);
    }
    check_twice(&request.input)?;
    if request.policies.is_empty() {
        return Err(ReplayError::Nothing("policy"));
    }
    if request.sizes.is_empty() {
        return Err(ReplayError::Nothing("size"));
    }
    passes::run(request, hooks)
}

fn empty_and_others(paths: &[PathBuf]) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let is_empty = |path: &PathBuf| path.metadata().is_ok_and(|m| m.is_file() && m.len() == 0);
    paths.iter().cloned().partition(is_empty)
}

/// A trace that is merged with itself makes each of its requests twice, the second one a hit,
/// whatever the name or the link by which it is found.
fn check_twice(input: &InputSetup) -> Result<(), ReplayError> {
    let paths = &input.paths;
    let place = |path: &PathBuf| {
        let found = path_of_input(path).metadata().map(|m| (m.dev(), m.ino()));
        found.map_err(|_| path.to_owned())
    };
    let files: Vec<Result<(u64, u64), PathBuf>> = paths.iter().map(place).collect();
    let twice = (1..files.len()).find(|at| files[..*at].contains(&files[*at]));
    match twice.filter(|_| input.align == Align::Stamps) {
        None => Ok(()),
        Some(at) => Err(ReplayError::Choice {
            what: "trace",
            value: paths[at].display().to_string(),
            problem:
                "is given twice; allowed: once, or as a source of its own with --align turn, or \
                      with --align start if it has times"
                    .into(),
        }),
    }
}

/// The title of traces: their file names.
fn title(paths: &[PathBuf]) -> String {
    /// Traces that a title names.
    const NAMED: usize = 4;
    let name = |p: &PathBuf| match p.file_name() {
        Some(name) => printable(&name.to_string_lossy()).into_owned(),
        None => p.display().to_string(),
    };
    let named = if paths.len() > NAMED {
        NAMED - 1
    } else {
        NAMED
    };
    let mut names: Vec<String> = paths.iter().take(named).map(name).collect();
    match paths.len().saturating_sub(names.len()) {
        0 => names.join(", "),
        others => {
            names.push(format!("{others} more"));
            names.join(", ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_names_a_few_traces_and_counts_the_others() {
        let paths =
            |n: usize| -> Vec<PathBuf> { (1..=n).map(|n| format!("d/s.{n}").into()).collect() };
        assert_eq!(title(&paths(1)), "s.1");
        assert_eq!(title(&paths(4)), "s.1, s.2, s.3, s.4");
        assert_eq!(title(&paths(5)), "s.1, s.2, s.3, 2 more");
        assert_eq!(title(&paths(1500)), "s.1, s.2, s.3, 1497 more");
        assert_eq!(title(&["a\u{1b}[2J\nb".into()]), r"a\u{1b}[2J\nb");
    }
}
