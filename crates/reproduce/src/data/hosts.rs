//! What runs the experiments of a paper: the model, or a stock kernel in a guest.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
    sync::atomic::Ordering::Relaxed,
};

use piebald_experiment::{Document, HostName, Refused, Words};
use piebald_guest::{BootError, Hooks as BootHooks, Scenario as Guest, Tools};
use piebald_hw::spec::MachineSpec;
use piebald_lab::{colors::cache_parts, curve_sizes, runs_of, scenario::Scenario};
use piebald_report::Study;
use piebald_sim::NOT_KEPT;

use crate::experiment::{Bench, NoStudy, unless_stopped};

/// How long the runs of an experiment are, if it says so.
pub(super) struct Lengths {
    /// Measured references of each program and run.
    pub(super) budget: u64,
    /// Those before.
    pub(super) warmup: u64,
    /// Both are of each thread.
    pub(super) of_threads: bool,
}

/// Runs that end by time.
pub(super) struct CourseOf {
    /// Between two looks.
    pub(super) intervals: usize,
    /// Microseconds until the end.
    pub(super) until_us: u64,
}

/// An experiment that its host has read.
pub(super) trait Hosted: Send + Sync {
    /// The modelled machine.
    fn machine(&self) -> &MachineSpec;
    /// Names of its policies.
    fn policies(&self) -> Vec<&str>;
    /// Names of its programs.
    fn programs(&self) -> Vec<Cow<'_, str>>;
    /// Whether a program is run alone, and together with others.
    fn runs_of(&self, program: usize) -> (bool, bool);
    fn repetitions(&self) -> u32;
    fn seed(&self) -> u64;
    /// None where programs say themselves what counts.
    fn lengths(&self) -> Option<Lengths>;
    /// None where runs end by references.
    fn course(&self) -> Option<CourseOf>;
    /// Does SysMon watch its programs?
    fn watches(&self) -> bool;
    /// Sizes of the last level, in bytes, that its miss curves have, rising.
    fn curve_sizes(&self) -> Vec<u64>;
    /// Parts of the last level that the colors of a policy select, if they do.
    fn cache_parts(&self, policy: &str) -> Option<u32>;
    /// Files that have to be there.
    fn inputs(&self) -> Vec<PathBuf>;
    /// Runs it, or has it written down.
    ///
    /// # Errors
    /// Why there is no result.
    fn run(&self, bench: &Bench<'_>, name: &str) -> Result<Study, NoStudy>;
}

/// Reads an experiment as its host does.
///
/// # Errors
/// What the host cannot run of it.
pub(super) fn read(host: HostName, text: &str, path: &Path) -> Result<Box<dyn Hosted>, Refused> {
    Ok(match host {
        HostName::Model => Box::new(Scenario::parse(text, path)?),
        HostName::Guest => Box::new(Guest::of(Document::new(path, text))?),
    })
}

/// The host of this name.
///
/// # Errors
/// Which there are.
pub(super) fn named(name: &str) -> Result<HostName, String> {
    let found = HostName::WORDS.iter().find(|(word, ..)| *word == name);
    found.map(|(_, host, _)| *host).ok_or_else(|| {
        let words: Vec<&str> = HostName::WORDS.iter().map(|(word, ..)| *word).collect();
        format!("\"{name}\": allowed: {}", words.join(", "))
    })
}

impl Hosted for Scenario {
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

    fn lengths(&self) -> Option<Lengths> {
        Some(Lengths {
            budget: self.budget_refs,
            warmup: self.warmup_refs,
            of_threads: self.of_threads,
        })
    }

    fn course(&self) -> Option<CourseOf> {
        let course = self.course?;
        Some(CourseOf {
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

    fn inputs(&self) -> Vec<PathBuf> {
        Self::inputs(self)
    }

    fn run(&self, bench: &Bench<'_>, name: &str) -> Result<Study, NoStudy> {
        bench.run(name, &self.document.text, &self.document.path)
    }
}

impl Hosted for Guest {
    fn machine(&self) -> &MachineSpec {
        &self.machine
    }

    fn policies(&self) -> Vec<&str> {
        let policies = Self::policies(self).iter();
        policies.map(|p| p.name.as_str()).collect()
    }

    fn programs(&self) -> Vec<Cow<'_, str>> {
        let programs = self.experiment.program.iter();
        programs.map(|p| p.name()).collect()
    }

    fn runs_of(&self, program: usize) -> (bool, bool) {
        let is_target = self.programs().get(program) == Some(&self.target().name());
        let phases = self.phases();
        (is_target && phases.contains(&false), phases.contains(&true))
    }

    fn repetitions(&self) -> u32 {
        Self::repetitions(self)
    }

    fn seed(&self) -> u64 {
        self.experiment.seed.get()
    }

    fn lengths(&self) -> Option<Lengths> {
        None
    }

    fn course(&self) -> Option<CourseOf> {
        None
    }

    fn watches(&self) -> bool {
        false
    }

    fn curve_sizes(&self) -> Vec<u64> {
        Vec::new()
    }

    fn cache_parts(&self, _policy: &str) -> Option<u32> {
        None
    }

    fn inputs(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    fn run(&self, bench: &Bench<'_>, name: &str) -> Result<Study, NoStudy> {
        unless_stopped(bench.hooks.stop).map_err(NoStudy::NotRun)?;
        bench.unless_written(name, &self.document.text)?;
        let tools = Tools::prepare(self, None).map_err(no_study)?;
        let boots = u64::from(piebald_guest::boots(self));
        let show = |number: u32, what: &str| {
            if let Some(progress) = bench.hooks.progress {
                progress(&format!("{name}: {what}"), number.into(), boots);
            }
        };
        let hooks = BootHooks {
            stop: bench.hooks.stop,
            progress: Some(&show),
            // The model has the other processors meanwhile.
            at_once: 1,
            store: bench.hooks.store.map(|store| &**store),
        };
        let study = piebald_guest::run(self, &tools, &hooks).map_err(no_study)?;
        bench.refs.fetch_add(study.simulated_refs, Relaxed);
        if study.complete {
            return Ok(study);
        }
        unless_stopped(bench.hooks.stop).map_err(NoStudy::NotRun)?;
        let why = study.warnings.join("; ");
        if why.contains(&BootError::NotKept.to_string()) {
            return Err(no_study(BootError::NotKept));
        }
        Err(NoStudy::Failed(why))
    }
}

/// What could not be begun was not run.
fn no_study(error: BootError) -> NoStudy {
    match error {
        BootError::NotKept => NoStudy::NotRun(NOT_KEPT.to_owned()),
        BootError::Stopped => NoStudy::NotRun("interrupted".to_owned()),
        BootError::Guest { .. } | BootError::Results(_) => NoStudy::Failed(error.to_string()),
        other => NoStudy::NotRun(other.to_string()),
    }
}
