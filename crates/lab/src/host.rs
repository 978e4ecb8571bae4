//! What runs an experiment: the model, or [a host in another room](Hosted).

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use piebald_experiment::{Clock, Document, HostName, MadeFile, Refused};
use piebald_hw::spec::MachineSpec;
use piebald_report::Study;
use piebald_sim::Model;
use piebald_store::Store;

use crate::{
    colors::cache_parts,
    foresee::study,
    jobs::{curve_sizes, runs_of},
    prepare::prepare,
    scenario::Scenario,
    study::{Hooks, StudyError},
};

/// An experiment that its host has read. Nothing of it has been run, and whatever its file asks for that the host
/// cannot do was refused.
pub trait Hosted: Send + Sync {
    /// Its file, and where that was read from.
    fn document(&self) -> &Document;
    /// Title of the report.
    fn title(&self) -> String;
    /// The modelled machine.
    fn machine(&self) -> &MachineSpec;
    /// Names of its policies.
    fn policies(&self) -> Vec<&str>;
    /// Names of its programs.
    fn programs(&self) -> Vec<Cow<'_, str>>;
    /// Whether a program, by its number, is run alone, and together with others.
    fn runs_of(&self, program: usize) -> (bool, bool);
    /// How often everything is run.
    fn repetitions(&self) -> u32;
    /// Seed of all draws.
    fn seed(&self) -> u64;
    /// What the times of its programs are counted by. A ratio of times that are counted by different clocks says nothing.
    fn clock(&self) -> &'static str;
    /// Files that have to be there.
    fn inputs(&self) -> Vec<PathBuf>;
    /// None where programs say themselves what counts.
    fn lengths(&self) -> Option<Lengths> {
        None
    }
    /// None where runs end by references.
    fn course(&self) -> Option<Timed> {
        None
    }
    /// Does SysMon watch its programs?
    fn watches(&self) -> bool {
        false
    }
    /// Sizes of the last level, in bytes, that its miss curves have, rising.
    fn curve_sizes(&self) -> Vec<u64> {
        Vec::new()
    }
    /// Parts of the last level that the colors of a policy select, if they do.
    fn cache_parts(&self, _policy: &str) -> Option<u32> {
        None
    }
    /// Runs it. A study that was stopped, or of which policies failed, says that it is not complete.
    ///
    /// # Errors
    /// Why there is no result.
    fn run(&self, ground: &Ground<'_>) -> Result<Study, NoStudy>;
}

/// The hosts that there are. Whoever runs experiments of any of them knows them by this alone.
pub trait Hosts: Sync {
    /// Reads an experiment as its host does.
    ///
    /// # Errors
    /// What the host cannot run of it.
    fn read(&self, host: HostName, text: &str, path: &Path) -> Result<Box<dyn Hosted>, Refused>;
    /// Can guests have this program? It comes with Piebald, or is on this computer.
    fn has_program(&self, name: &str) -> bool;
    /// Compiles the programs that come with Piebald, as guests run them, into the folder `programs` of a folder.
    ///
    /// # Errors
    /// What is missing or failed.
    fn compile(&self, folder: &Path) -> Result<(), String>;
    /// Writes files as guests find them in `/data` to a folder, which is made.
    ///
    /// # Errors
    /// Those of the file system.
    fn write_files(&self, files: &[MadeFile], folder: &Path) -> Result<(), String>;
}

/// The model, and no guests: of these everything is refused, and they have no programs.
pub struct ModelAlone;

/// Why experiments in guests are refused.
const NO_GUESTS: &str = "host = \"guest\": allowed: \"model\", as there are no guests here";

impl Hosts for ModelAlone {
    fn read(&self, host: HostName, text: &str, path: &Path) -> Result<Box<dyn Hosted>, Refused> {
        match host {
            HostName::Model => Ok(Box::new(Scenario::parse(text, path)?)),
            HostName::Guest => Err(Refused::unread(path, NO_GUESTS)),
        }
    }

    fn has_program(&self, _: &str) -> bool {
        false
    }

    fn compile(&self, _: &Path) -> Result<(), String> {
        Err(NO_GUESTS.to_owned())
    }

    fn write_files(&self, _: &[MadeFile], _: &Path) -> Result<(), String> {
        Err(NO_GUESTS.to_owned())
    }
}

/// How long the runs of an experiment are.
pub struct Lengths {
    /// Measured references of each program and run.
    pub budget: u64,
    /// Those before.
    pub warmup: u64,
    /// Both are of each thread.
    pub of_threads: bool,
}

/// Runs that end by time.
pub struct Timed {
    /// Between two looks.
    pub intervals: usize,
    /// Microseconds until the end.
    pub until_us: u64,
}

/// What is under way, and how much of it is done and planned: references, or boots; 0 of 0 where nobody knows.
pub type Show<'g> = dyn Fn(&str, u64, u64) + Sync + 'g;

/// Records a command, which finds these files in /data, up to a number of references: where the recording is.
pub type Record<'g> = dyn Fn(&[String], &[MadeFile], u64) -> Result<PathBuf, String> + Sync + 'g;

/// What a run has from whoever wants it.
#[derive(Clone, Copy)]
pub struct Ground<'g> {
    /// Called once all inputs are there and before anything is run; gives what is set to end early.
    pub begin: &'g (dyn Fn() -> Result<Option<&'g AtomicBool>, String> + Sync),
    /// Told now and then.
    pub progress: Option<&'g Show<'g>>,
    /// Records commands.
    pub record: &'g Record<'g>,
    /// Runs what is modelled; none = one of its own, that keeps nothing.
    pub model: Option<&'g Model>,
    /// Counts of guests that are there are not made again, and what is made is kept.
    pub store: Option<&'g Arc<Store>>,
    /// Guests at a time; none = one for each processor, as far as their memory fits into `memory`.
    pub guests: Option<u16>,
    /// Bytes that guests may have together.
    pub memory: u64,
    /// The plugin of guests, if it is not near this program.
    pub plugin: Option<&'g Path>,
}

/// Nothing is recorded or kept, nobody looks, and all of it is run, guests one at a time.
impl Default for Ground<'_> {
    fn default() -> Self {
        Self {
            begin: &|| Ok(None),
            progress: None,
            record: &|words, _, _| Err(format!("{words:?} is not recorded")),
            model: None,
            store: None,
            guests: None,
            memory: 0,
            plugin: None,
        }
    }
}

/// Why there is no study.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoStudy {
    /// An input or a tool is missing or wrong.
    #[error("{0}")]
    Missing(String),
    /// What is asked for cannot be had. Nothing was run.
    #[error("{0}")]
    Impossible(String),
    /// It was not run to its end: somebody wanted an end, or it is not kept where nothing is run.
    #[error("{0}")]
    NotRun(String),
    /// It was run, and ended with this error.
    #[error("{0}")]
    Failed(String),
}

impl Hosted for Scenario {
    fn document(&self) -> &Document {
        &self.document
    }

    fn title(&self) -> String {
        self.title.clone()
    }

    fn machine(&self) -> &MachineSpec {
        &self.machine
    }

    fn policies(&self) -> Vec<&str> {
        self.policies.iter().map(|p| p.name.as_str()).collect()
    }

    fn programs(&self) -> Vec<Cow<'_, str>> {
        let programs = self.programs.iter();
        programs.map(|p| Cow::from(&p.name)).collect()
    }

    fn runs_of(&self, program: usize) -> (bool, bool) {
        runs_of(self, program)
    }

    fn repetitions(&self) -> u32 {
        self.repetitions
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn clock(&self) -> &'static str {
        match self.clock {
            Clock::Instructions => "instructions of a modelled machine",
            Clock::Time => "the modelled machine's time",
        }
    }

    fn inputs(&self) -> Vec<PathBuf> {
        Self::inputs(self)
    }

    fn lengths(&self) -> Option<Lengths> {
        Some(Lengths {
            budget: self.budget_refs,
            warmup: self.warmup_refs,
            of_threads: self.of_threads,
        })
    }

    fn course(&self) -> Option<Timed> {
        let course = self.course?;
        Some(Timed {
            intervals: (course.until.0 / course.every.0.max(1)) as usize,
            until_us: course.until.0 / 1_000_000,
        })
    }

    fn watches(&self) -> bool {
        self.sysmon.is_some()
    }

    fn curve_sizes(&self) -> Vec<u64> {
        curve_sizes(self)
    }

    fn cache_parts(&self, policy: &str) -> Option<u32> {
        let policy = self.policies.iter().find(|p| p.name == policy)?;
        cache_parts(&self.machine, policy)
    }

    fn run(&self, ground: &Ground<'_>) -> Result<Study, NoStudy> {
        // `prepare` reads whole recordings to choose regions.
        let chooses = self.programs.iter().any(|p| p.regions.is_some());
        if let Some(show) = ground.progress.filter(|_| chooses) {
            show("choosing regions", 0, 0);
        }
        let record = |words: &[String], refs: u64| (ground.record)(words, &self.made, refs);
        let inputs = prepare(self, &record).map_err(|e| NoStudy::Missing(e.to_string()))?;
        let stop = (ground.begin)().map_err(NoStudy::NotRun)?;
        let progress = ground.progress;
        let show = progress.map(|show| move |done: u64, planned: u64| show("", done, planned));
        let hooks = Hooks {
            stop,
            progress: show.as_ref().map(|show| show as &(dyn Fn(u64, u64) + Sync)),
            model: ground.model,
        };
        study(self, &inputs, hooks).map_err(|error| match error {
            StudyError::NotKept { .. } | StudyError::Nothing => NoStudy::NotRun(error.to_string()),
            StudyError::Advise { .. } | StudyError::Colors { .. } => {
                NoStudy::Impossible(error.to_string())
            }
            StudyError::Run { .. } | StudyError::Kernel { .. } | StudyError::SysMon { .. } => {
                NoStudy::Failed(error.to_string())
            }
        })
    }
}
