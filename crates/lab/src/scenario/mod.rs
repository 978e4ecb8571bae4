//! Scenarios: experiments that the model can run.
//!
//! [`Scenario::read`] reads a file as an [`Experiment`] and looks up what it names: the
//! machine, its cores and colors, policies, drives and formats. What the model does not have
//! is refused with file, line, key, value and what is allowed, all of it at once.

mod colors;
mod files;
mod policies;
mod programs;
mod source;
mod utility;

use std::path::{Path, PathBuf};

use piebald_experiment::{
    Advise, Alone, BudgetOf, Clock, Deal, Document, Draws, Enter, Experiment, Frames, HostName,
    KeyPath, MadeFile, MemorySize, MemoryState, MissCurves, PolicyColors, Problem, Refused,
    RegionRequest, Share, SysMon, Text, Together,
};
use piebald_hw::{Features, spec::MachineSpec};
use piebald_os_model::{
    kernel::{OnLimit, SysMonConfig},
    replace::PolicySpec,
};
use piebald_policy::{color_map::ColorMap, hvr, srm};
use piebald_report::Role;
use piebald_sim::{ColorChange, Course, Files, Stay, Threads};
use piebald_trace::foreign::Format;
use piebald_units::{Bytes, ColorAsk, CoreSet, Picos};

use crate::drawn::Repetition;

pub(crate) use self::files::swap;
pub use self::source::{document, is_scenario};

/// Least memory of a modelled kernel.
const LEAST_MEMORY: Bytes = Bytes(64 * Bytes::MIB);

/// A checked scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its text, and where it was read from.
    pub document: Document,
    /// Title of the report.
    pub title: String,
    /// Seed of all draws.
    pub seed: u64,
    /// What draws follow from, beside it.
    pub draws: Draws,
    /// Runs of each policy with different draws.
    pub repetitions: u32,
    /// References that each program makes per run in the measured part.
    pub budget_refs: u64,
    /// References before it.
    pub warmup_refs: u64,
    /// Both are of each thread; otherwise of all threads of a program together.
    pub of_threads: bool,
    /// The machine.
    pub machine: MachineSpec,
    /// By what its processors advance.
    pub clock: Clock,
    /// Memory that the kernel knows of; `None` = all of the machine's.
    pub memory: Option<Bytes>,
    /// Parts of the model that are on.
    pub features: Features,
    /// Memory controllers that are off.
    pub disabled_controllers: Vec<u16>,
    /// Samples of the set map; 0 = no map.
    pub set_map: u32,
    /// Misses of each program against the size of the last level.
    pub miss_curve: MissCurves,
    /// What SysMon sees of each program alone; `None` = nothing is watched so.
    pub sysmon: Option<SysMon>,
    /// Which programs run together.
    pub together: Together,
    /// Which programs run alone.
    pub alone: Alone,
    /// Ends runs of several programs by time; `None` = their measured parts do.
    pub course: Option<Course>,
    /// It ends runs of one program as well.
    pub course_alone: bool,
    /// Advise on shares of the last level; `None` = no advice.
    pub advise: Option<Advise>,
    /// A disk and one memory for files and programs; `None` = neither disk nor reclaim.
    pub files: Option<Files>,
    /// Files that commands read, made before they are recorded.
    pub made: Vec<MadeFile>,
    /// What runs before the programs, in this order.
    pub before: Vec<BeforeEntry>,
    /// Hardware threads that are dealt out; `None` = programs say which they may use.
    pub deal: Option<Deal>,
    /// Programs, in the file's order.
    pub programs: Vec<ProgramEntry>,
    /// Policies, in the file's order; at least one.
    pub policies: Vec<Policy>,
}

/// One program of a scenario.
#[derive(Clone, Debug)]
pub struct ProgramEntry {
    /// Name, unique in the scenario.
    pub name: String,
    /// Where its references come from.
    pub input: Input,
    /// It is executed anew for each repetition, with other draws.
    pub redraw: bool,
    /// Where it is met; `None` = by its role.
    pub enter: Option<Enter>,
    /// Share of warm-up and budget that it has; `None` = all.
    pub length: Option<Share>,
    /// It goes on as another image when it ends.
    pub again: bool,
    /// It is measured over whole iterations.
    pub whole_iterations: bool,
    /// What its calls copy counts as references.
    pub count_copies: bool,
    /// Its files are no other program's.
    pub own_files: bool,
    /// How long SysMon takes to walk its page table; `None` = by its pages.
    pub walk: Option<Picos>,
    /// Regions that stand for it; `None` = it is run from its beginning.
    pub regions: Option<RegionRequest>,
    /// Hardware threads that it may use, or of which it is dealt one.
    pub cores: CoreSet,
    /// It is dealt one.
    pub is_dealt: bool,
    /// Page colors that it owns under policies that have colors.
    pub colors: Option<ColorAsk>,
    /// What happens when the colors that it may have are used up.
    pub on_limit: OnLimit,
    /// How its colors change while it runs, by rising time.
    pub changes: Vec<ColorChange>,
    /// When it comes and goes, and what HVR is told of it.
    pub stay: Stay,
    /// Why it is there.
    pub role: Role,
}

/// What runs before the programs of a scenario.
#[derive(Clone, Debug)]
pub struct BeforeEntry {
    /// What it is.
    pub input: BeforeInput,
    /// Page colors that it owns under policies that have owners.
    pub colors: Option<ColorAsk>,
    /// What happens when these are used up.
    pub on_limit: OnLimit,
}

/// What runs before the programs.
#[derive(Clone, Debug)]
pub enum BeforeInput {
    /// A program of the scenario, by its place.
    Run(usize),
    /// A reader of the files of a program of the scenario.
    Read(usize),
    /// Another program: it is prepared behind those of the scenario, at this place.
    Other(Input, usize),
}

/// Where references come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A recording; the path is resolved against the scenario's folder.
    Recording(PathBuf),
    /// A command line to record first.
    Command(Vec<String>),
    /// A built-in program, as in `triad:64MiB`.
    Builtin(String),
    /// A memory trace of another tool: a file or a folder of them, resolved as a
    /// recording's path is, and its format if it is not to be found out.
    Trace(PathBuf, Option<Format>),
}

impl std::fmt::Display for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Recording(path) => write!(f, "recording {}", path.display()),
            Self::Command(words) => write!(f, "command {}", words.join(" ")),
            Self::Builtin(text) => write!(f, "builtin {text}"),
            Self::Trace(path, _) => write!(f, "trace {}", path.display()),
        }
    }
}

/// How HVR manages the programs of a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HvrPolicy {
    /// Its choices.
    pub config: hvr::Config,
    /// How programs are watched whose class is not given; `None` = not at all.
    pub sysmon: Option<SysMonConfig>,
    /// A program that ends and is started again is no new one to it.
    pub remember: bool,
}

/// One policy of a scenario.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Name, unique in the scenario.
    pub name: String,
    /// Frame policy.
    pub frames: Frames,
    /// State of memory at the start.
    pub memory: MemoryState,
    /// 2 MiB pages for anonymous memory.
    pub thp: bool,
    /// Which page leaves memory; `None` = as the scenario's files say.
    pub replace: Option<PolicySpec>,
    /// Who manages programs with [`Frames::Hvr`].
    pub hvr: Option<HvrPolicy>,
    /// SRM-buffer chooses the frames of pages that come; `None` = the allocator does.
    pub files: Option<srm::Config>,
    /// How threads move between cores, and whether reads are placed.
    pub threads: Threads,
    /// Where threads start is drawn.
    pub first_drawn: bool,
    /// Time between two timer ticks; `None` = the kernel's.
    pub tick: Option<Picos>,
    /// What frame bits make the colors; `None` = the machine's geometry.
    pub color_map: Option<ColorMap>,
    /// Colors of programs by name, where they are not as the program says.
    pub colors: std::collections::BTreeMap<String, PolicyColors>,
}

impl Policy {
    /// What it does, in a few words.
    pub fn description(&self) -> String {
        let frames = match self.frames {
            Frames::Stock => "stock buddy allocator",
            Frames::Random => "random frames",
            Frames::BinHopping => "bin hopping over the page colors",
            Frames::PageColoring => "the colors of virtual pages",
            Frames::Rainbow => "colors owned by programs",
            Frames::Hvr => "colors by what programs are (HVR)",
            Frames::Uvp => "colors by the misses of programs alone (UVP)",
        };
        let memory = match self.memory {
            MemoryState::Fresh => "fresh memory",
            MemoryState::Aged => "aged memory",
        };
        let huge = if self.thp { ", 2 MiB pages" } else { "" };
        let files = match self.files {
            None => String::new(),
            Some(config) => format!(", file pages by sequence (T_l {})", config.threshold),
        };
        let reads = match self.threads.reads {
            Some(_) => ", readers go to the files (MFC)",
            None => "",
        };
        let balance = match self.threads.balance {
            true => ", even run queues",
            false => "",
        };
        format!("{frames}, {memory}{huge}{files}{reads}{balance}")
    }
}

impl Scenario {
    /// Reads and checks a scenario file; `-` is standard input.
    ///
    /// # Errors
    /// All that is wrong, with file, line, key, value and what is allowed.
    pub fn read(path: &Path) -> Result<Self, Refused> {
        Self::of(source::document(path)?)
    }

    /// Checks a scenario's text; `path` is for errors and relative file names.
    ///
    /// # Errors
    /// As [`Scenario::read`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, Refused> {
        Self::of(Document::new(path, text))
    }

    /// Checks the experiment of a document.
    ///
    /// # Errors
    /// As [`Scenario::read`].
    pub fn of(document: Document) -> Result<Self, Refused> {
        let document = document.on(HostName::Model);
        let experiment = document.experiment()?;
        let keys = experiment
            .program
            .iter()
            .map(piebald_experiment::Program::replayed);
        if let Some((i, key)) = (0..).zip(keys).find_map(|(i, key)| Some((i, key?))) {
            let path = KeyPath::of("program").item(i).key(key);
            let says = format!("`piebald replay FILE` runs {key}");
            return Err(document.refuse(vec![Problem::at(path, says)]));
        }
        let machine = experiment
            .machine
            .build(document.folder(), &KeyPath::of("machine"));
        let (machine, features) = machine.map_err(|problem| document.refuse(vec![problem]))?;
        let mut problems = Vec::new();
        let memory = kept(memory(&experiment, &machine), &mut problems).flatten();
        let programs = programs::programs(&experiment, document.folder(), &machine, &mut problems);
        let before = programs::before(&experiment, document.folder(), &mut problems);
        let files = experiment.files.as_ref().and_then(|table| {
            let seed = experiment.seed.get();
            kept(files::files(table, seed), &mut problems)
        });
        let policies = policies::policies(&experiment, (&machine, memory), &mut problems);
        problems.extend(curve_problem(&experiment, &machine));
        // Colors are checked for programs and policies that exist.
        if problems.is_empty() {
            colors::check(&experiment, &machine, (&programs, &policies), &mut problems);
            utility::check(&experiment, &machine, (&programs, &policies), &mut problems);
        }
        if !problems.is_empty() {
            return Err(document.refuse(problems));
        }
        Ok(Self::with(
            document,
            experiment,
            (machine, memory, features),
            (files, before, programs, policies),
        ))
    }

    /// How many times the budget's references a program of so many threads makes if all of its threads make as many.
    pub(crate) fn budgets_of(&self, threads: u32) -> u64 {
        if self.of_threads {
            u64::from(threads.max(1))
        } else {
            1
        }
    }

    /// The words that a message adds to numbers of references if these are of each thread.
    pub(crate) const fn of_each(&self) -> &'static str {
        if self.of_threads {
            " of each thread"
        } else {
            ""
        }
    }

    /// What all draws of a repetition follow from.
    pub(crate) fn draw(&self, repetition: u32) -> Repetition {
        Repetition::new((self.seed, self.draws), repetition)
    }

    /// Files that it reads beside its own.
    pub fn inputs(&self) -> Vec<PathBuf> {
        let path_of = |input: &Input| match input {
            Input::Recording(path) | Input::Trace(path, _) => Some(path.clone()),
            Input::Command(_) | Input::Builtin(_) => None,
        };
        let others = self.before.iter().filter_map(|entry| match &entry.input {
            BeforeInput::Other(input, _) => Some(input),
            BeforeInput::Run(_) | BeforeInput::Read(_) => None,
        });
        let machine = self.document.experiment().ok();
        let machine = machine.and_then(|experiment| experiment.machine.file);
        let machine = machine.map(|file| self.document.folder().join(file));
        let inputs = self.programs.iter().map(|entry| &entry.input).chain(others);
        inputs.filter_map(path_of).chain(machine).collect()
    }

    fn with(
        document: Document,
        experiment: Experiment,
        (machine, memory, features): (MachineSpec, Option<Bytes>, Features),
        (files, before, programs, policies): (
            Option<Files>,
            Vec<BeforeEntry>,
            Vec<ProgramEntry>,
            Vec<Policy>,
        ),
    ) -> Self {
        let stem = document.path.file_stem();
        let stem = stem.map_or("study".into(), |s| s.to_string_lossy().into_owned());
        Self {
            title: experiment.title.clone().unwrap_or(stem),
            seed: experiment.seed.get(),
            draws: experiment.draws,
            deal: experiment.deal.clone(),
            repetitions: experiment.repetitions.get_u32(),
            budget_refs: experiment.budget(),
            warmup_refs: experiment.warmup(),
            of_threads: experiment.budget_of == BudgetOf::Thread,
            machine,
            memory,
            features,
            disabled_controllers: experiment.machine.controllers_off(),
            set_map: experiment.output.set_map.get_u32(),
            miss_curve: experiment.output.miss_curve,
            clock: experiment.machine.clock.unwrap_or(Clock::Time),
            sysmon: experiment.sysmon,
            together: experiment.together,
            alone: experiment.alone,
            course: experiment.course.map(|course| Course {
                until: course.until_us.picos(),
                every: course.every(),
                after_setup: course.after_setup,
                warmup: course.warmup_us.map(|time| time.picos()),
            }),
            course_alone: experiment.course.is_some_and(|course| course.alone),
            advise: experiment.advise,
            files,
            made: experiment.file,
            before,
            programs,
            policies,
            document,
        }
    }
}

/// The memory that the kernel knows of, if the file says it.
fn memory(experiment: &Experiment, machine: &MachineSpec) -> Result<Option<Bytes>, Problem> {
    let Some(Text(asked)) = experiment.memory.size else {
        return Ok(None);
    };
    let most = machine.memory.size;
    match asked {
        MemorySize::Bytes(size) if LEAST_MEMORY <= size && size <= most && size.0 % 4096 == 0 => {
            Ok(Some(size))
        }
        _ => {
            let path = KeyPath::of("memory").key("size");
            let allowed = format!(
                "{LEAST_MEMORY} to {most}, the machine's memory, in pages of 4KiB; a share for requests only"
            );
            Err(Problem::refuse(path, format!("\"{asked}\""), allowed))
        }
    }
}

/// A curve has a point for each number of ways at most: more would be the same points again.
fn curve_problem(experiment: &Experiment, machine: &MachineSpec) -> Option<Problem> {
    let MissCurves::Timed(points) = experiment.output.miss_curve else {
        return None;
    };
    let ways = machine.last_level().ways;
    (points > u32::from(ways)).then(|| {
        let path = KeyPath::of("output").key("miss_curve");
        let allowed = format!("0 to {ways}, the ways of the last level");
        Problem::refuse(path, points, allowed)
    })
}

/// A value, or the problem in the list.
fn kept<T>(result: Result<T, Problem>, problems: &mut Vec<Problem>) -> Option<T> {
    result.map_err(|problem| problems.push(problem)).ok()
}
