//! Scenarios: what a study shall run.
//!
//! A scenario is a TOML file; [`Scenario::read`] gives it checked and resolved,
//! or one error that names file, line, key, value and what is allowed.

mod advise;
mod colors;
mod company;
mod file;
mod files;
mod hvr;
mod policies;
mod reads;
mod regions;
mod source;

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use piebald_report::Role;
use piebald_sim::{
    ColorChange, Course, Files, Stay, Threads,
    rooms::{
        hw::{
            Features, Machine, Options, nearest::did_you_mean, nearest_size, presets,
            spec::MachineSpec,
        },
        os_model::{
            kernel::{OnLimit, Want},
            replace::PolicySpec,
        },
        policy::{color_map::ColorMap, srm},
        trace::foreign::Format,
    },
};
use piebald_units::{Bytes, CoreSet, Count};
use toml::Spanned;

use self::source::Source;
pub use self::{
    advise::{AdviseRequest, Goal, NotWithin, Within},
    company::{Alone, Together},
    hvr::HvrPolicy,
    regions::RegionRequest,
    source::{ScenarioError, is_scenario},
};
use crate::{colors::Colors, jobs::last_level};

/// References of a program and run if the scenario does not say.
const DEFAULT_BUDGET: u64 = 20_000_000;

/// Samples of a set map if the scenario does not say.
const DEFAULT_SET_MAP: u32 = 60;

/// Most references that a part of a run may have: a hundred days of simulation.
pub const MAX_REFS: u64 = 1_000_000_000_000;

/// Most programs of a scenario: owners of cache lines are numbered in a byte.
const MAX_PROGRAMS: usize = 250;

/// A checked scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Where it was read from.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    /// Title of the report.
    pub title: String,
    /// Seed of all draws.
    pub seed: u64,
    /// Runs of each policy with different draws.
    pub repetitions: u32,
    /// References that each program makes per run in the measured part.
    pub budget_refs: u64,
    /// References before it.
    pub warmup_refs: u64,
    /// The machine.
    pub machine: MachineSpec,
    /// Parts of the model that are on.
    pub features: Features,
    /// Memory controllers that are off.
    pub disabled_controllers: Vec<u16>,
    /// Samples of the set map; 0 = no map.
    pub set_map: u32,
    /// Cache sizes of the miss curves; 0 = no curves.
    pub miss_curve: u32,
    /// Which programs run together.
    pub together: Together,
    /// Which programs run alone.
    pub alone: Alone,
    /// Ends runs of several programs by time; `None` = their measured parts do.
    pub course: Option<Course>,
    /// Advise on shares of the last level; `None` = no advice.
    pub advise: Option<AdviseRequest>,
    /// A disk and one memory for files and programs; `None` = neither disk nor reclaim.
    pub files: Option<Files>,
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
    /// Regions that stand for it; `None` = it is run from its beginning.
    pub regions: Option<RegionRequest>,
    /// Hardware threads that it may use.
    pub cores: CoreSet,
    /// Page colours that it owns under policies that have colours.
    pub colors: Option<Colors>,
    /// What happens when the colours that it may have are used up.
    pub on_limit: OnLimit,
    /// How its colours change while it runs, by rising time.
    pub changes: Vec<ColorChange>,
    /// When it comes and goes, and what HVR is told of it.
    pub stay: Stay,
    /// Why it is there.
    pub role: Role,
    /// Line of its table, for later errors.
    pub line: usize,
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

/// Which frames pages get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Frames {
    /// Linux's buddy allocator with per-core lists.
    Stock,
    /// Uniformly random free frames.
    Random,
    /// Successive faults of a task walk through the page colours.
    BinHopping,
    /// A page gets the colour of its virtual address.
    PageColoring,
    /// Programs own colours of the last level.
    Rainbow,
    /// Programs get colours of cache and banks by what they are.
    Hvr,
}

/// State of memory when programs start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryState {
    /// As after boot: large blocks.
    Fresh,
    /// After long use: scattered frames.
    Aged,
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
    /// What frame bits make the colours; `None` = the machine's geometry.
    pub color_map: Option<ColorMap>,
    /// For each program, in the scenario's order, whose colours this policy changes: `None` =
    /// as the program says, `Some(None)` = it owns none, `Some(Some(_))` = these.
    pub colors: Vec<Option<Option<Want>>>,
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
    /// The first thing that is wrong, with file, line, key, value and what is
    /// allowed.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let text = source::text(path)?;
        Self::parse(&text, path)
    }

    /// Checks a scenario's text; `path` is for errors and relative file names.
    ///
    /// # Errors
    /// As [`Scenario::read`].
    pub fn parse(text: &str, path: &Path) -> Result<Self, ScenarioError> {
        let source = Source { path, text };
        let file: file::File = toml::from_str(text).map_err(|e| source.toml(&e))?;
        if *file.schema.get_ref() != 1 {
            return Err(source.refuse(&file.schema, "schema", file.schema.get_ref(), "1"));
        }
        let repetitions = *file.repetitions.get_ref();
        if !(1..=1000).contains(&repetitions) {
            return Err(source.refuse(&file.repetitions, "repetitions", repetitions, "1..=1000"));
        }
        let refs = |value: &Option<Spanned<file::Written<Count>>>, key: &str, min: u64| {
            let Some(n) = value else { return Ok(None) };
            let count = n.get_ref().0;
            match count.0 {
                refs if (min..=MAX_REFS).contains(&refs) => Ok(Some(refs)),
                _ => Err(source.refuse(n, key, count, format!("{min} to {}", Count(MAX_REFS)))),
            }
        };
        let budget_refs = refs(&file.budget_refs, "budget_refs", 1)?.unwrap_or(DEFAULT_BUDGET);
        let warmup_refs = refs(&file.warmup_refs, "warmup_refs", 0)?.unwrap_or(budget_refs / 5);
        let (machine, features) = machine(&file.machine, &source)?;
        let threads = u32::from(machine.core.sockets * machine.core.per_socket * machine.core.smt);
        let advise = advise::advise(&file, &source)?;
        let programs = programs(&file, &source, threads)?;
        let (together, alone) = company::company(&file, &source, &programs)?;
        let course = hvr::course(&file, &source, &programs)?;
        let files = files::files(&file, &source)?;
        let policies = policies::policies(&file, &source, &machine, &programs)?;
        check_paged(&file, &source)?;
        colors::check(&file, &source, &machine, &programs, &policies)?;
        colors::check_changes(&file, &source, budget_refs)?;
        files::check_zone(&file, &source, &machine, &policies)?;
        let small = |value: &Option<Spanned<u32>>, key: &str, default: u32| match value {
            None => Ok(default),
            Some(n) if *n.get_ref() > 1000 => Err(source.refuse(n, key, n.get_ref(), "0..=1000")),
            Some(n) => Ok(*n.get_ref()),
        };
        let stem = path
            .file_stem()
            .map_or("study".into(), |s| s.to_string_lossy());
        Ok(Self {
            path: path.to_owned(),
            text: text.to_owned(),
            title: file.title.unwrap_or_else(|| stem.into_owned()),
            seed: file.seed,
            repetitions,
            budget_refs,
            warmup_refs,
            machine,
            features,
            disabled_controllers: file
                .machine
                .disabled_controllers
                .map_or_else(Vec::new, Spanned::into_inner),
            set_map: small(&file.output.set_map, "output.set_map", DEFAULT_SET_MAP)?,
            miss_curve: small(&file.output.miss_curve, "output.miss_curve", 0)?,
            together,
            alone,
            course,
            advise,
            files,
            programs,
            policies,
        })
    }
}

/// What does not go with a disk.
fn check_paged(file: &file::File, source: &Source<'_>) -> Result<(), ScenarioError> {
    if file.files.is_none() {
        return Ok(());
    }
    for (i, program) in file.program.iter().enumerate() {
        let table = program.get_ref();
        if let Some(on_limit) = table.on_limit.as_ref().filter(|o| *o.get_ref() == "swap") {
            let key = format!("program[{i}].on_limit");
            let allowed = "\"fail\" beside [files], whose own policy says what leaves memory";
            return Err(source.refuse(on_limit, &key, "\"swap\"", allowed));
        }
        if let Some(regions) = &table.regions {
            let problem = format!("program[{i}].regions: allowed only without [files]");
            return Err(source.error(regions.span().start, problem));
        }
    }
    let huge = file
        .policy
        .iter()
        .position(|p| p.get_ref().thp == Some(true));
    match huge {
        None => Ok(()),
        Some(i) => {
            let problem = format!("policy[{i}].thp = true: allowed: false beside [files]");
            Err(source.error(file.policy[i].span().start, problem))
        }
    }
}

/// A machine that comes with Piebald.
fn preset(name: &Spanned<String>, source: &Source<'_>) -> Result<MachineSpec, ScenarioError> {
    let given = name.get_ref();
    let Some(text) = presets::get(given) else {
        let names = presets::names().collect::<Vec<_>>().join(", ");
        let allowed = names + &did_you_mean(given, presets::names());
        return Err(source.refuse(name, "machine.preset", format!("\"{given}\""), allowed));
    };
    presets::parse(text, given).map_err(|e| source.error(name.span().start, e.to_string()))
}

fn machine(
    table: &file::MachineTable,
    source: &Source<'_>,
) -> Result<(MachineSpec, Features), ScenarioError> {
    let mut spec = match (&table.preset, &table.file) {
        (Some(name), None) => preset(name, source)?,
        (None, Some(file)) => {
            let path = beside(source.path, file.get_ref());
            let text = std::fs::read_to_string(&path).map_err(|e| {
                let problem = format!("machine.file = \"{}\": {e}", path.display());
                source.error(file.span().start, problem)
            })?;
            let name = path.display().to_string();
            let refuse = |e: String| source.error(file.span().start, format!("machine.file: {e}"));
            let spec = presets::parse(&text, &name).map_err(|e| refuse(e.to_string()))?;
            Machine::new(&spec, &Options::default()).map_err(|e| {
                let line = presets::line_of(&text, &e.field);
                refuse(format!(
                    "{name}{}: {e}",
                    line.map_or(String::new(), |l| format!(":{l}"))
                ))
            })?;
            spec
        }
        _ => {
            let problem = "machine: give either preset or file";
            return Err(source.error(0, problem));
        }
    };
    if let Some(memory) = &table.memory {
        let size: Bytes = memory.get_ref().0;
        if size.0 < 64 * Bytes::MIB || !size.0.is_multiple_of(4 * Bytes::MIB) {
            let allowed = "a multiple of 4MiB, at least 64MiB";
            return Err(source.refuse(memory, "machine.memory", size, allowed));
        }
        spec.memory.size = size;
        Machine::new(&spec, &Options::default()).map_err(|e| {
            let near = nearest_size(&spec.memory).filter(|near| *near != size);
            let asked = near.map_or(String::new(), |near| {
                format!("; the nearest is asked for by memory = \"{near}\"")
            });
            source.error(memory.span().start, format!("machine.memory: {e}{asked}"))
        })?;
    }
    if let Some(hash) = &table.slice_hash {
        let last = last_level(&spec).level;
        for cache in spec.cache.iter_mut().filter(|c| c.level == last) {
            cache.slice_hash.clone_from(hash.get_ref());
        }
        Machine::new(&spec, &Options::default())
            .map_err(|e| source.error(hash.span().start, format!("machine.slice_hash: {e}")))?;
    }
    if let Some(off) = &table.disabled_controllers {
        let options = Options {
            disabled_controllers: off.get_ref().clone(),
            ..Options::default()
        };
        let last = spec.memory.controllers - 1;
        let beyond = off.get_ref().iter().any(|c| *c > last);
        if beyond || Machine::new(&spec, &options).is_err() {
            let key = "machine.disabled_controllers";
            let allowed = format!("controllers of this machine, 0-{last}, but not all");
            return Err(source.refuse(off, key, format!("{:?}", off.get_ref()), allowed));
        }
    }
    let mut features = match &table.features {
        None => Features::ALL,
        Some(text) => text
            .get_ref()
            .parse()
            .map_err(|e| source.error(text.span().start, format!("machine.features: {e}")))?,
    };
    if let Some(on) = &table.prefetch {
        features.prefetch = *on.get_ref();
    }
    Ok((spec, features))
}

/// A path of the file, relative to the file's folder.
fn beside(scenario: &Path, name: &str) -> PathBuf {
    scenario.parent().unwrap_or(Path::new("")).join(name)
}

fn programs(
    file: &file::File,
    source: &Source<'_>,
    threads: u32,
) -> Result<Vec<ProgramEntry>, ScenarioError> {
    if file.program.is_empty() {
        return Err(source.error(0, "program: at least one [[program]] table is needed"));
    }
    if let Some(extra) = file.program.get(MAX_PROGRAMS) {
        let problem = format!(
            "program: {} tables: allowed: 1 to {MAX_PROGRAMS}",
            file.program.len()
        );
        return Err(source.error(extra.span().start, problem));
    }
    let mut names = HashSet::new();
    let mut entries = Vec::new();
    for (i, spanned) in file.program.iter().enumerate() {
        let table = spanned.get_ref();
        let key = |name: &str| format!("program[{i}].{name}");
        let input = input(spanned, source, i)?;
        let name = match &table.name {
            Some(name) => name.get_ref().clone(),
            None => default_name(&input),
        };
        if name.is_empty() || !names.insert(name.clone()) {
            let at = table
                .name
                .as_ref()
                .map_or(spanned.span().start, |n| n.span().start);
            let problem = format!(
                "{} = \"{name}\": names must be unique and not empty",
                key("name")
            );
            return Err(source.error(at, problem));
        }
        let cores: CoreSet = table.cores.get_ref().parse().map_err(|e| {
            let value = format!("\"{}\" ({e})", table.cores.get_ref());
            source.refuse(
                &table.cores,
                &key("cores"),
                value,
                format!("0-{}", threads - 1),
            )
        })?;
        if cores.is_empty() || cores.bits() & !CoreSet::first(threads).bits() != 0 {
            let allowed = format!("cores of this machine, 0-{}", threads - 1);
            return Err(source.refuse(&table.cores, &key("cores"), cores, allowed));
        }
        let roles = [("target", Role::Target), ("polluter", Role::Polluter)];
        entries.push(ProgramEntry {
            name,
            regions: regions::regions(table, &input, source, i)?,
            input,
            cores,
            colors: colors::colors(table, source, i)?,
            on_limit: colors::on_limit(table, source, i)?,
            changes: colors::color_changes(table, source, i)?,
            stay: hvr::stay(table, source, i)?,
            role: source.choose(&table.role, &key("role"), &roles)?,
            line: source.line(spanned.span().start),
        });
    }
    if entries.iter().all(|p| p.role == Role::Polluter) {
        let at = file.program[0].span().start;
        return Err(source.error(at, "program: at least one must have role = \"target\""));
    }
    Ok(entries)
}

fn default_name(input: &Input) -> String {
    match input {
        Input::Recording(path) | Input::Trace(path, _) => path
            .file_stem()
            .map_or_else(String::new, |s| s.to_string_lossy().into_owned()),
        Input::Command(words) => Path::new(&words[0])
            .file_name()
            .map_or_else(String::new, |s| s.to_string_lossy().into_owned()),
        Input::Builtin(text) => text.split(':').next().unwrap_or_default().to_owned(),
    }
}

fn input(
    spanned: &Spanned<file::ProgramTable>,
    source: &Source<'_>,
    i: usize,
) -> Result<Input, ScenarioError> {
    let table = spanned.get_ref();
    if let Some(path) = &table.trace {
        return trace(table, path, spanned, source, i);
    }
    if let Some(format) = &table.format {
        let problem = format!("program[{i}].format: only a trace has one");
        return Err(source.error(format.span().start, problem));
    }
    match (&table.recording, &table.command, &table.builtin) {
        (Some(path), None, None) => Ok(Input::Recording(beside(source.path, path.get_ref()))),
        (None, Some(words), None) if words.get_ref().is_empty() => {
            let key = format!("program[{i}].command");
            Err(source.refuse(words, &key, "[]", "a program and its arguments"))
        }
        (None, Some(words), None) => Ok(Input::Command(words.get_ref().clone())),
        (None, None, Some(builtin)) => Ok(Input::Builtin(builtin_text(builtin.get_ref()))),
        _ => {
            let problem =
                format!("program[{i}]: give exactly one of recording, command, builtin and trace");
            Err(source.error(spanned.span().start, problem))
        }
    }
}

/// A foreign trace as input.
fn trace(
    table: &file::ProgramTable,
    path: &Spanned<String>,
    spanned: &Spanned<file::ProgramTable>,
    source: &Source<'_>,
    i: usize,
) -> Result<Input, ScenarioError> {
    if table.recording.is_some() || table.command.is_some() || table.builtin.is_some() {
        let problem =
            format!("program[{i}]: give exactly one of recording, command, builtin and trace");
        return Err(source.error(spanned.span().start, problem));
    }
    let choices = Format::ALL.map(|f| (f.name(), Some(f)));
    let format = match &table.format {
        None => None,
        given => source.choose(given, &format!("program[{i}].format"), &choices)?,
    };
    Ok(Input::Trace(beside(source.path, path.get_ref()), format))
}

/// The one-line form of a built-in program.
fn builtin_text(builtin: &file::Builtin) -> String {
    match builtin {
        file::Builtin::Text(text) => text.clone(),
        file::Builtin::Table(table) => {
            let name = table
                .get("name")
                .map_or(String::new(), file::Value::to_string);
            let rest: Vec<String> = table
                .iter()
                .filter(|(k, _)| *k != "name")
                .map(|(k, v)| format!("{k}={v}"))
                .collect();
            match rest.is_empty() {
                true => name,
                false => format!("{name}:{}", rest.join(",")),
            }
        }
    }
}
