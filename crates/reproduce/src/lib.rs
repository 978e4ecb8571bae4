//! Reruns of the papers' experiments: their numbers beside ours, with a verdict.
//!
//! One room for each system; [`System::ALL`] names them. A room builds runs, has them run, and fills a
//! [`Reproduction`]. Of a [`data::DataPaper`], files say what is run and what is read from it.
//! Vocabulary: a *target* is a row of results of the paper, a *stand-in* a program that
//! takes the place of one that cannot be had. Stand-ins are data (`programs.toml` of a
//! system), chosen from published properties before any result was read.
//!
//! [`guest_paper`] has some rows that are run in a real kernel as well, which is compared with the modelled
//! one. [`verdict`] has the rules by which results are judged; no room judges by itself.

pub mod data;
mod dulo;
mod experiment;
mod guest;
mod hvr;
mod mfc;
mod paper;
mod programs;
mod rainbow;
mod replayed;
mod row;
mod srm;
mod status;
pub mod verdict;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, atomic::AtomicBool},
};

use piebald_report::Reproduction;
use piebald_sim::Model;
use piebald_store::Store;
use serde::Deserialize;

pub use guest::guest_paper;
pub use programs::{ProgramsError, StandIn, Wanted, stand_ins};
pub use status::{RowStatus, Runs, State, status};

/// A system whose paper can be rerun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum System {
    /// Page-coloured buddy allocator.
    Rainbow,
    /// Replacement by temporal and spatial locality.
    Dulo,
    /// Colours of file blocks.
    Srm,
    /// Readers that go to the files.
    Mfc,
    /// Classes of programs, and partitions of cache and banks.
    Hvr,
}

/// What can be said of a paper before it is opened: a part of its `rows.toml`.
#[derive(Deserialize)]
struct Head {
    title: String,
    row: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    id: String,
}

impl System {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Rainbow, Self::Dulo, Self::Srm, Self::Mfc, Self::Hvr];

    /// As the command line names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rainbow => "rainbow",
            Self::Dulo => "dulo",
            Self::Srm => "srm",
            Self::Mfc => "mfc",
            Self::Hvr => "hvr",
        }
    }

    /// The paper.
    pub fn title(self) -> &'static str {
        self.head().map_or("", |head| &head.title)
    }

    /// Ids of its targets, in order.
    pub fn targets(self) -> Vec<&'static str> {
        let rows = self.head().into_iter().flat_map(|head| &head.row);
        rows.map(|row| row.id.as_str()).collect()
    }

    /// None if its rows are wrong: a defect.
    fn head(self) -> Option<&'static Head> {
        static HEADS: LazyLock<[Option<Head>; 5]> = LazyLock::new(|| {
            let head = |system: System| toml::from_str(system.rows()).ok();
            System::ALL.map(head)
        });
        let at = Self::ALL.iter().position(|system| *system == self);
        HEADS.get(at?)?.as_ref()
    }

    const fn rows(self) -> &'static str {
        match self {
            Self::Rainbow => rainbow::ROWS,
            Self::Dulo => dulo::ROWS,
            Self::Srm => srm::ROWS,
            Self::Mfc => mfc::ROWS,
            Self::Hvr => hvr::ROWS,
        }
    }

    /// Its paper, with the inputs in this folder.
    ///
    /// # Errors
    /// Its files are wrong: a defect.
    fn paper(self, inputs: &Path) -> Result<data::DataPaper, ReproduceError> {
        match self {
            Self::Rainbow => rainbow::paper(),
            Self::Dulo => dulo::paper(),
            Self::Srm => srm::paper(inputs),
            Self::Mfc => mfc::paper(),
            Self::Hvr => hvr::paper(),
        }
    }

    /// Programs that stand in for the paper's and are recorded; none if its inputs are traces, or
    /// in a list of its own.
    ///
    /// # Errors
    /// The built-in list is wrong: a defect.
    pub fn stand_ins(self) -> Result<Vec<StandIn>, ProgramsError> {
        match self {
            Self::Rainbow => stand_ins(rainbow::PROGRAMS),
            Self::Srm => stand_ins(srm::PROGRAMS),
            Self::Dulo | Self::Mfc | Self::Hvr => Ok(Vec::new()),
        }
    }
}

/// A paper that can be rerun.
pub enum Source {
    /// One that is built in.
    System(System),
    /// A folder's.
    Folder(Box<data::DataPaper>),
}

impl Source {
    /// As the command line names it.
    pub fn name(&self) -> &str {
        match self {
            Self::System(system) => system.name(),
            Self::Folder(paper) => paper.name(),
        }
    }

    /// Ids of its rows, in order.
    pub fn ids(&self) -> Vec<&str> {
        match self {
            Self::System(system) => system.targets(),
            Self::Folder(paper) => paper.ids(),
        }
    }

    /// Mixes of its longest list that [`Options::mixes`] shortens; none without such lists.
    ///
    /// # Errors
    /// Its files are wrong: a defect.
    pub fn mixes(&self) -> Result<Option<u64>, ReproduceError> {
        match self {
            Self::System(system) => Ok(system.paper(Path::new(""))?.mixes()),
            Self::Folder(paper) => Ok(paper.mixes()),
        }
    }
}

impl From<System> for Source {
    fn from(system: System) -> Self {
        Self::System(system)
    }
}

/// What a user may choose.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Fewer sizes, repetitions and references.
    pub quick: bool,
    /// Seed of all draws.
    pub seed: u64,
    /// Instead of the form's numbers.
    pub repetitions: Option<u32>,
    /// Measured references of each program and run; the warm-up keeps its share.
    pub budget_refs: Option<u64>,
    /// Ids of targets to run; empty = all.
    pub only: Vec<String>,
    /// The folder with the inputs of the stand-ins.
    pub inputs: PathBuf,
    /// Mixes of each list, the first ones, instead of the form's number: up to [`Source::mixes`].
    pub mixes: Option<u64>,
    /// The kernel module, for experiments in guests; none = a paper that has some is refused.
    pub module: Option<PathBuf>,
}

impl Options {
    /// Whether a target shall be run.
    pub fn wants(&self, id: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|o| o.eq_ignore_ascii_case(id))
    }
}

/// Records a stand-in, or finds it recorded: where the recording is, or why there is none.
pub type Recorder<'a> = dyn Fn(&Wanted<'_>, &Path) -> Result<PathBuf, String> + Sync + 'a;

/// What is under way, with references done and planned.
pub type Show<'a> = dyn Fn(&str, u64, u64) + Sync + 'a;

/// What a reproduction needs from outside.
#[derive(Clone, Copy)]
pub struct Hooks<'a> {
    /// Set to end early: targets that are not done are then not run.
    pub stop: Option<&'a AtomicBool>,
    /// Called now and then.
    pub progress: Option<&'a Show<'a>>,
    /// Gets recordings of stand-ins.
    pub record: &'a Recorder<'a>,
    /// Where outcomes of runs are kept from one command to the next.
    pub store: Option<&'a Arc<Store>>,
}

impl Hooks<'_> {
    /// A model that keeps so many states of aged memory, with the store.
    pub(crate) fn model(&self, histories: usize) -> Model {
        Model::keeping(histories).with_store(self.store.cloned())
    }
}

/// An experiment that a row runs, as a file of the one language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// What is under way when it is run.
    pub name: String,
    /// The file.
    pub text: String,
}

/// Why a reproduction failed as a whole.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// The list of stand-ins is wrong.
    #[error(transparent)]
    Programs(#[from] ProgramsError),
    /// The list of inputs is wrong.
    #[error("{0}")]
    Inputs(String),
    /// A file of a paper that is data is wrong.
    #[error("{0}")]
    Paper(String),
    /// The experiments of a row cannot be written down.
    #[error("{id}: {why}")]
    Unwritten {
        /// The row.
        id: String,
        /// Why, and what is allowed.
        why: String,
    },
    /// The store cannot be read.
    #[error("{0}")]
    Store(String),
    /// A machine cannot be built.
    #[error("machine: {0}")]
    Machine(String),
}

/// Reruns a paper's experiments. An experiment that cannot be run leaves its targets as not
/// run, with the reason.
///
/// # Errors
/// What makes the whole impossible.
pub fn reproduce(
    source: &Source,
    options: &Options,
    hooks: Hooks<'_>,
) -> Result<Reproduction, ReproduceError> {
    match source {
        Source::System(system) => system.paper(&options.inputs)?.reproduce(options, hooks),
        Source::Folder(paper) => paper.reproduce(options, hooks),
    }
}

/// The experiments of one row, for `piebald study` or `piebald replay`. Nothing is run.
///
/// # Errors
/// The row's runs are no experiments of the one language, or an input is missing.
pub fn experiments(
    source: &Source,
    options: &Options,
    hooks: Hooks<'_>,
    id: &str,
) -> Result<Vec<Written>, ReproduceError> {
    let unwritten = |why: String| ReproduceError::Unwritten {
        id: id.to_owned(),
        why,
    };
    let options = Options {
        only: vec![id.to_owned()],
        ..options.clone()
    };
    let built_in;
    let paper = match source {
        Source::Folder(paper) => paper,
        Source::System(system) => {
            built_in = system.paper(&options.inputs)?;
            &built_in
        }
    };
    let (written, targets) = paper.experiments(&options, hooks)?;
    if written.is_empty() {
        let why = targets.into_iter().find_map(|t| t.why);
        return Err(unwritten(
            why.unwrap_or_else(|| "it needs no runs".to_owned()),
        ));
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use piebald_experiment::{Document, HostName};

    use super::*;

    /// Recordings that stand for all programs: only their headers are read.
    fn recorded(_: &Wanted<'_>, _: &Path) -> Result<PathBuf, String> {
        Ok(PathBuf::from("/nowhere/program.pbr"))
    }

    /// No row is lost, and nothing is wrong with their files.
    #[test]
    fn every_system_has_its_targets() {
        for (system, letter, numbers, others) in [
            (System::Rainbow, "R", 9, &["B1", "B2", "B3"][..]),
            (System::Dulo, "D", 13, &[]),
            (System::Srm, "S", 21, &["O1", "O2", "B1", "B2"]),
            (System::Mfc, "M", 17, &[]),
            (System::Hvr, "H", 20, &["B1", "B2", "B3"]),
        ] {
            let numbers = (1..=numbers).map(|n: u32| n.to_string());
            let all = numbers.chain(others.iter().map(|id| (*id).to_owned()));
            let all: Vec<String> = all.map(|id| format!("{letter}-{id}")).collect();
            assert_eq!(system.targets(), all, "{}", system.name());
            let paper = system.paper(Path::new("nowhere"));
            let paper = paper.and_then(data::DataPaper::checked);
            let paper = paper.unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(
                (paper.name(), paper.ids()),
                (system.name(), system.targets())
            );
            assert!(system.title().len() > 30, "{}", system.name());
        }
    }

    #[test]
    fn experiments_of_rows_are_files_that_can_be_read() {
        let hooks = Hooks {
            stop: None,
            progress: None,
            record: &recorded,
            store: None,
        };
        let options = Options {
            quick: true,
            ..Options::default()
        };
        let of_rainbow = &[1, 1, 3, 1, 10, 4, 2, 1, 4][..];
        // The quick form: 4 sizes of read, one of three other programs, two in parallel.
        let of_mfc = &[10, 7, 11, 8, 16, 10, 2, 10, 6, 5, 2, 4, 20][..];
        // The quick form: 3 sizes on two pairs of cores, 2 joins, 4 pairs.
        let of_srm = &[
            6, 6, 2, 2, 2, 4, 4, 4, 1, 1, 4, 4, 1, 10, 2, 3, 1, 2, 9, 3, 2, 3,
        ][..];
        // Three repetitions at each size; rows that are only counted are none.
        let of_dulo = &[0, 6, 3, 12, 12, 12, 6, 6, 12, 6, 12, 9][..];
        let srm = srm::paper(Path::new("nowhere"));
        for (paper, numbers) in [
            (rainbow::paper(), of_rainbow),
            (srm, of_srm),
            (mfc::paper(), of_mfc),
            (dulo::paper(), of_dulo),
        ] {
            let paper = paper.unwrap_or_else(|e| panic!("{e}"));
            let ids: Vec<String> = paper
                .of_experiments()
                .iter()
                .map(|id| (*id).to_owned())
                .collect();
            assert_eq!(ids.len(), numbers.len());
            // Read once: a system is read each time that it is named.
            let source = Source::Folder(Box::new(paper));
            for (id, number) in ids.iter().zip(numbers) {
                let found = experiments(&source, &options, hooks, id);
                if *number == 0 {
                    let why = found.expect_err(id).to_string();
                    assert!(why.contains("counted and not replayed"), "{why}");
                    continue;
                }
                let found = found.unwrap_or_else(|e| panic!("{id}: {e}"));
                assert_eq!(found.len(), *number, "{id}");
                for one in found {
                    let document = Document::new(Path::new(id), one.text).on(HostName::Model);
                    document.experiment().unwrap_or_else(|e| panic!("{e}"));
                }
            }
        }
        let refused = |system: System, id| {
            let found = experiments(&system.into(), &options, hooks, id);
            found.expect_err(id).to_string()
        };
        assert_eq!(refused(System::Rainbow, "R-9"), "R-9: it needs no runs");
        let none = Hooks {
            record: &|_, _| Err("no such file".to_owned()),
            ..hooks
        };
        let found = experiments(&System::Rainbow.into(), &options, none, "R-5");
        let why = found.expect_err("no inputs").to_string();
        assert!(
            why.contains("no such file") && why.contains("stand-ins.sh"),
            "{why}"
        );
    }
}
