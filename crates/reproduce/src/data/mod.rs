//! Papers that are data: `grid.toml` says what is run, `rows.toml` what is read from it, and
//! `programs.toml`, if it is there, which programs are recorded. `docs/papers.md` has their forms.

mod axes;
mod cells;
mod clocks;
mod curves;
mod drawn;
mod eval;
mod fold;
mod formula;
mod grid;
mod guests;
mod made;
mod making;
mod narrowed;
mod replays;
mod requests;
mod rows;
mod run;
mod shown;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_courses;
#[cfg(test)]
mod tests_drawn;
#[cfg(test)]
mod tests_formulas;
#[cfg(test)]
mod tests_guests;
#[cfg(test)]
mod tests_missing;
#[cfg(test)]
mod tests_narrowed;
#[cfg(test)]
mod tests_outcomes;
#[cfg(test)]
mod tests_replays;
#[cfg(test)]
mod tests_several;
#[cfg(test)]
mod tests_sysmon;
mod thresholds;

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet, HashMap},
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use piebald_hw::{Machine, Options as Parts};
use piebald_lab::host::{Hosted, Hosts, ModelAlone};
use piebald_report::Reproduction;
use rayon::prelude::*;
use serde::de::DeserializeOwned;

use self::{
    cells::{Dry, Its, Runs},
    eval::{Chosen, INPUTS, Names, Value},
    grid::Grid,
    made::{AllRan, Made, its},
    replays::Planned,
    rows::{RowFile, Rows},
};
use crate::{
    Hooks, Options, ReproduceError, StandIn, Wanted, Written,
    experiment::Bench,
    paper::{Paper, Whole},
    programs::of_toml,
    stand_ins,
};

/// The three files, in a paper's folder.
const GRID: &str = "grid.toml";
const ROWS: &str = "rows.toml";
const PROGRAMS: &str = "programs.toml";

/// Numbers of an experiment that formulas may name.
type OfExperiment = (&'static str, fn(&Planned) -> Option<u64>);
const OF_EXPERIMENTS: [OfExperiment; 3] = [
    ("budget_refs", |p| Some(p.study()?.lengths()?.budget)),
    ("warmup_refs", |p| Some(p.study()?.lengths()?.warmup)),
    ("repetitions", |p| match p {
        Planned::Study(study) => Some(study.repetitions().into()),
        Planned::Replay(replayed) => Some(replayed.repetitions.into()),
    }),
];

/// The kernel module and the seed, for formulas of a grid.
const MODULE: &str = "module";
const SEED: &str = "seed";
/// What stands for the module where nothing is run.
const NO_MODULE: &str = "/piebald.ko";

/// Numbers that a paper has beside those of runs, by their names.
pub(crate) type Known = BTreeMap<String, Value>;

/// A number that is known.
pub(crate) fn number(value: f64) -> Value {
    Value::Number(value)
}

/// A text that is known.
pub(crate) fn text(text: String) -> Value {
    Value::Text(text)
}

/// Whether something is known to hold.
pub(crate) fn is(value: bool) -> Value {
    Value::Is(value)
}

/// A paper that is data.
pub struct DataPaper {
    name: String,
    /// Of the files, for errors.
    folder: PathBuf,
    grid: String,
    rows: Rows,
    stand_ins: Vec<StandIn>,
    known: Known,
    /// What runs its experiments.
    hosts: &'static dyn Hosts,
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|e| of_toml(text, &e))
}

/// Mixes of each list that formulas are checked over; all of them are drawn.
const CHECKED_MIXES: u64 = 4;

impl DataPaper {
    /// Reads the files of a folder.
    ///
    /// # Errors
    /// A file that is not there or cannot be read, and what is wrong with one.
    pub fn read(folder: &Path, hosts: &'static dyn Hosts) -> Result<Self, ReproduceError> {
        let unread = |name: &str, e: io::Error| {
            let path = folder.join(name);
            ReproduceError::Paper(format!("{}: {e}", path.display()))
        };
        let file = |name: &str| fs::read_to_string(folder.join(name)).map_err(|e| unread(name, e));
        let programs = match fs::read_to_string(folder.join(PROGRAMS)) {
            Ok(text) => Some(text),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(unread(PROGRAMS, e)),
        };
        let whole = folder.canonicalize().map_err(|e| unread("", e))?;
        let name = whole
            .file_name()
            .map_or_else(|| "paper".into(), |n| n.to_string_lossy());
        let texts = [&*file(GRID)?, &*file(ROWS)?];
        let paper = Self::new((&name, folder), texts, programs.as_deref(), Known::new())?;
        paper.on(hosts).checked()
    }

    /// A paper of these texts, of which it is only seen whether each has its form: those that are built in
    /// are [`checked`](Self::checked) by tests, and not whenever they are opened. Its experiments are the model's,
    /// unless it is [`on`](Self::on) others.
    pub(crate) fn new(
        (name, folder): (&str, &Path),
        [grid, rows]: [&str; 2],
        programs: Option<&str>,
        known: Known,
    ) -> Result<Self, ReproduceError> {
        let paper = |file: &str, says: String| {
            ReproduceError::Paper(format!("{}: {says}", folder.join(file).display()))
        };
        let mut read_rows: Rows = read(rows).map_err(|says| paper(ROWS, says))?;
        read_rows.pair();
        let list = programs.map(stand_ins).transpose();
        let stand_ins = list.map_err(|e| paper(PROGRAMS, e.to_string()))?;
        Ok(Self {
            name: name.to_owned(),
            folder: folder.to_owned(),
            grid: grid.to_owned(),
            rows: read_rows,
            stand_ins: stand_ins.unwrap_or_default(),
            known,
            hosts: &ModelAlone,
        })
    }

    /// The same, whose experiments these run.
    pub(crate) fn on(self, hosts: &'static dyn Hosts) -> Self {
        Self { hosts, ..self }
    }

    /// The same, if nothing is wrong with it that can be seen without a run, in both forms.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn checked(self) -> Result<Self, ReproduceError> {
        for quick in [false, true] {
            let in_grid = |says: String| self.error(GRID, &says);
            let root = grid::of_form(&self.grid, quick).map_err(in_grid)?;
            axes::axes(&root, &self.stand_ins, None).map_err(in_grid)?;
            let options = Options {
                quick,
                mixes: Some(CHECKED_MIXES),
                ..Options::default()
            };
            self.check(&options)?;
        }
        Ok(self)
    }

    /// Mixes of its longest list that `--mixes` shortens; none without such lists.
    pub fn mixes(&self) -> Option<u64> {
        let root = grid::of_form(&self.grid, false).ok()?;
        drawn::longest(&root)
    }

    /// As the command line names it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The paper.
    pub fn title(&self) -> &str {
        &self.rows.title
    }

    /// Ids of its rows, in order.
    pub fn ids(&self) -> Vec<&str> {
        self.rows.row.iter().map(|row| row.id.as_str()).collect()
    }

    /// Ids of the rows whose runs are experiments.
    pub fn of_experiments(&self) -> Vec<&str> {
        let rows = self
            .rows
            .row
            .iter()
            .filter(|row| !row.experiment.is_empty());
        rows.map(|row| row.id.as_str()).collect()
    }

    fn error(&self, file: &str, says: &str) -> ReproduceError {
        ReproduceError::Paper(format!("{}: {says}", self.folder.join(file).display()))
    }

    /// What can be seen without a run to be wrong: each formula is evaluated over made numbers.
    fn check(&self, options: &Options) -> Result<(), ReproduceError> {
        // Only the headers of recordings would be read.
        let recording = |_: &StandIn| Ok("stand-in.pbr".to_owned());
        let made = self.make((options, true), &|_| true, &recording)?;
        let has = |name: &str| made.grid.experiments.contains_key(name);
        let in_rows = |says: String| self.error(ROWS, &says);
        self.rows.check(&has).map_err(in_rows)?;
        let names = made.grid.axes.keys().chain(self.known.keys());
        let taken = OF_EXPERIMENTS
            .iter()
            .map(|(name, _)| *name)
            .chain([INPUTS, MODULE, SEED])
            .chain(eval::TAKEN);
        let names = names.map(String::as_str).chain(taken);
        let lets = |table: &eval::Lets, place: &str| {
            let taken = names.clone().find(|name| table.contains_key(*name));
            taken.map_or(Ok(()), |name| {
                Err(in_rows(format!(
                    "{place}let.{name}: is the name of an axis or a number already"
                )))
            })
        };
        lets(&self.rows.lets, "")?;
        let rows = self.rows.row.par_iter().map(|row| {
            let place = format!("row {}: ", row.id);
            lets(&row.lets, &place)?;
            let filled = self.over(&made, &row.experiment, &row.lets, None, |names| {
                row.fill(names)
            });
            filled
                .map(|_| ())
                .map_err(|says| in_rows(format!("{place}{says}")))
        });
        // The first that is wrong is told, whichever was found first.
        let rows: Vec<Result<(), ReproduceError>> = rows.collect();
        rows.into_iter().collect::<Result<(), _>>()?;
        for figure in &self.rows.figure {
            let none = eval::Lets::new();
            let drawn = self.over(&made, &figure.experiment, &none, None, |names| {
                figure.draw(names)
            });
            drawn.map_err(|says| in_rows(format!("figure \"{}\": {says}", figure.name)))?;
        }
        for (name, axis) in &made.grid.narrowed {
            let chosen = self.over(
                &made,
                &run::needs(&made, name),
                &eval::Lets::new(),
                None,
                |names| axis.chosen(names).map_err(|fault| fault.says().to_owned()),
            );
            chosen.map_err(|says| self.error(GRID, &format!("axis.{name}: {says}")))?;
        }
        let conditions = self.conditions(&made, (&BTreeSet::new(), 0), &[]);
        conditions.map(|_| ()).map_err(in_rows)
    }

    /// What `give` makes of the names of a row; without runs over made numbers.
    fn over<T>(
        &self,
        made: &Made,
        experiments: &[String],
        lets: &eval::Lets,
        runs: Option<&AllRan>,
        give: impl FnOnce(&Names<'_>) -> Result<T, String>,
    ) -> Result<T, String> {
        let planned = experiments
            .iter()
            .map(|name| its(&made.planned, made, name));
        let planned: Vec<Its<'_, Option<Planned>>> = planned.collect();
        let all_planned = || planned.iter().flat_map(|its| its.all()).flatten();
        let studies = all_planned().filter_map(Planned::study);
        // Only what is not run is asked for the levels that it would have.
        let levels = levels_of(studies.filter(|_| runs.is_none()));
        let ran = runs.map(|runs| {
            let ran = experiments.iter().map(|name| its(runs, made, name));
            Runs(ran.collect())
        });
        let mut known = self.known.clone();
        known.insert(INPUTS.to_owned(), text(made.inputs.clone()));
        if made.is_dry {
            known.insert(eval::HAS_ALL.to_owned(), is(true));
        }
        for (key, of) in OF_EXPERIMENTS {
            let mut all = all_planned().filter_map(of);
            // What differs from run to run is no number of the experiment.
            if let Some(first) = all.next().filter(|first| all.all(|n| n == *first)) {
                known.insert(key.to_owned(), number(first as f64));
            }
        }
        let dry = Dry {
            of: planned,
            levels: &levels,
            asked: Cell::new(0),
        };
        let cells: &dyn eval::Cells = match (experiments, &ran) {
            ([], _) => &eval::NoRuns,
            (_, None) => &dry,
            (_, Some(ran)) => ran,
        };
        give(&Names {
            axes: &made.grid.axes,
            known: &known,
            lets: vec![lets, &self.rows.lets],
            cells,
            hosts: Some(self.hosts),
        })
    }

    fn conditions(
        &self,
        made: &Made,
        (experiments, seed): (&BTreeSet<&str>, u64),
        recorded: &[(&StandIn, Option<&str>)],
    ) -> Result<Vec<String>, String> {
        let none = eval::Lets::new();
        let mut lines = self.over(made, &[], &none, None, |names| {
            let text = |template| names.text(template, &Chosen::new());
            let lines = self.rows.conditions.iter().map(text);
            let lines: Result<Vec<String>, _> = lines.collect();
            lines.map_err(|fault| format!("conditions: {}", fault.says()))
        })?;
        // One that has nothing to say here is none.
        lines.retain(|line| !line.is_empty());
        for name in experiments {
            lines.extend(self.lengths(made, name, seed));
        }
        for (program, why) in recorded {
            let state = why.map_or_else(String::new, |why| format!(" NOT RUN: {why}."));
            lines.push(format!(
                "{} ({}) stands for {}.{state}",
                program.name,
                program.command.join(" "),
                program.stands_for
            ));
        }
        Ok(lines)
    }

    /// How long the runs of an experiment are; from the least to the largest number if they differ.
    fn lengths(&self, made: &Made, name: &str, seed: u64) -> Option<String> {
        let planned = made.planned.get(name).into_iter().flatten().flatten();
        let mut replayed = planned.clone().filter_map(Planned::replayed).peekable();
        if let Some(replayed) = replayed.peek() {
            return replayed.is_run.then(|| {
                let n = replayed.repetitions;
                let s = if n == 1 {
                    ""
                } else {
                    "s, each with draws of its own"
                };
                let first = replayed.request.part.limit;
                let first =
                    first.map_or_else(String::new, |n| format!(", of the first {n} references"));
                format!("Runs of {name}: {n} repetition{s}{first}.")
            });
        }
        let studies = planned.filter_map(Planned::study);
        let range = |of: &dyn Fn(&dyn Hosted) -> Option<u64>| {
            let all = studies.clone().filter_map(of);
            let (least, most) = (all.clone().min()?, all.max()?);
            Some(if least == most {
                least.to_string()
            } else {
                format!("{least} to {most}")
            })
        };
        let repetitions = range(&|s| Some(s.repetitions().into()))?;
        let s = if repetitions == "1" { "" } else { "s" };
        if studies.clone().all(|study| study.course().is_some()) {
            let until = range(&|s| Some(s.course()?.until_us))?;
            return Some(format!(
                "Runs of {name}: {until} us, {repetitions} repetition{s}."
            ));
        }
        let is_other = studies.clone().any(|study| study.seed() != seed);
        let other = is_other.then(|| range(&|s| Some(s.seed()))).flatten();
        let other = other.map_or_else(String::new, |seed| format!(", seed {seed}"));
        let lengths = studies.clone().filter_map(Hosted::lengths);
        let each = lengths.clone().any(|lengths| lengths.of_threads);
        let Some(budget) = range(&|s| Some(s.lengths()?.budget)) else {
            return Some(format!(
                "Runs of {name}: {repetitions} repetition{s}{other}."
            ));
        };
        let references = if budget == "1" {
            "reference"
        } else {
            "references"
        };
        Some(format!(
            "Runs of {name}: {budget} {references}{} after {} of warm-up, {repetitions} repetition{s}{other}.",
            if each { " of each thread" } else { "" },
            range(&|s| Some(s.lengths()?.warmup))?,
        ))
    }

    /// Runs the rows that are wanted.
    ///
    /// # Errors
    /// What makes the whole impossible.
    pub fn reproduce(
        &self,
        options: &Options,
        hooks: Hooks<'_>,
    ) -> Result<Reproduction, ReproduceError> {
        self.reproduce_on(&Bench::new(hooks), options, hooks)
    }

    /// The experiments of the rows that are wanted, as files of the one language, and what else is known of
    /// these rows.
    pub(crate) fn experiments(
        &self,
        options: &Options,
        hooks: Hooks<'_>,
    ) -> Result<(Vec<Written>, Vec<piebald_report::Target>), ReproduceError> {
        let written = Mutex::default();
        let found = self.reproduce_on(&Bench::writing(hooks, &written), options, hooks)?;
        let written = written.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok((written, found.targets))
    }

    fn reproduce_on(
        &self,
        bench: &Bench<'_>,
        options: &Options,
        hooks: Hooks<'_>,
    ) -> Result<Reproduction, ReproduceError> {
        let mut paper = Paper::begin(&self.name, &self.rows.title, self.ids(), options);
        let wanted: Vec<&RowFile> = self
            .rows
            .row
            .iter()
            .filter(|row| options.wants(&row.id))
            .collect();
        let names: BTreeSet<&str> = wanted
            .iter()
            .flat_map(|row| &row.experiment)
            .map(String::as_str)
            .collect();
        let root = grid::of_form(&self.grid, options.quick);
        let narrowed = root.and_then(|root| narrowed::all(&root));
        let narrowed = narrowed.map_err(|says| self.error(GRID, &says))?;
        // Those of the rows, and those that decide where these are run.
        let needed = narrowed.values().flat_map(|axis| &axis.after);
        let needed: BTreeSet<&str> = needed
            .map(String::as_str)
            .chain(names.iter().copied())
            .collect();
        let recordings = self.record(&needed, options, hooks)?;
        let recording = |program: &StandIn| match recordings.get(program.name.as_str()) {
            Some(Ok(path)) => std::path::absolute(path)
                .map(|path| path.display().to_string())
                .map_err(|e| e.to_string()),
            Some(Err(why)) => Err(why.clone()),
            // No row that is wanted has it.
            None => Ok("not-wanted.pbr".to_owned()),
        };
        let mut made = self.make((options, false), &|name| needed.contains(name), &recording)?;
        // Experiments are made; formulas of rows have no columns that outcomes have not given.
        let axes: Vec<String> = made.grid.narrowed.keys().cloned().collect();
        for axis in axes {
            let why = format!(
                "no experiment of the row comes after axis {axis}, which has it by outcomes"
            );
            made.grid.columns_are_unknown(&axis, &why);
        }
        let mut runs = AllRan::new();
        let in_order = wanted.iter().flat_map(|row| &row.experiment);
        self.run_beside_guests(bench, &mut made, &mut runs, in_order);
        let in_rows = |says: String| self.error(ROWS, &says).to_string();
        for row in &wanted {
            for name in &row.experiment {
                self.run_once(bench, &mut made, &mut runs, name);
            }
            let filled = self.over(&made, &row.experiment, &row.lets, Some(&runs), |names| {
                row.fill(names)
            });
            // What the check could not see leaves the other rows as they are.
            paper.add([filled.unwrap_or_else(|says| row.not_run(&in_rows(says)))]);
        }
        for figure in &self.rows.figure {
            let is_wanted = figure.rows.iter().any(|id| options.wants(id));
            // What was not run leaves its panels and points out.
            let is_run = figure.experiment.iter().any(|name| runs.contains_key(name));
            if !(is_wanted && is_run) {
                continue;
            }
            let none = eval::Lets::new();
            let drawn = self.over(&made, &figure.experiment, &none, Some(&runs), |names| {
                figure.draw(names)
            });
            // The check has evaluated its formulas; what is wrong with one number is none.
            paper.draw(drawn.ok().flatten());
        }
        let named =
            (self.stand_ins.iter()).filter(|p| p.command.is_empty() || p.recording.is_none());
        let recorded = named.filter_map(|program| {
            let found = recordings.get(program.name.as_str())?;
            Some((program, found.as_ref().err().map(String::as_str)))
        });
        let recorded: Vec<_> = recorded.collect();
        let conditions = self.conditions(&made, (&names, options.seed), &recorded);
        let mut conditions = conditions.map_err(|says| self.error(ROWS, &says))?;
        conditions.extend(guests::weakened(&made, &runs));
        Ok(Reproduction {
            columns: self.rows.columns.clone(),
            ..paper.end(Whole {
                budget_refs: made.grid.budget_refs,
                warmup_refs: made.grid.warmup_refs,
                conditions,
                simulated_refs: bench.refs(),
            })
        })
    }

    /// Records the stand-ins of experiments, several at a time, by their names.
    fn record(
        &self,
        experiments: &BTreeSet<&str>,
        options: &Options,
        hooks: Hooks<'_>,
    ) -> Result<HashMap<&str, Result<PathBuf, String>>, ReproduceError> {
        let used = RefCell::new(BTreeSet::new());
        let root =
            grid::of_form(&self.grid, options.quick).map_err(|says| self.error(GRID, &says))?;
        // Those that the wanted experiments name.
        let wanted = |name: &str| experiments.contains(name);
        let note = |program: &StandIn| {
            used.borrow_mut().insert(program.name.clone());
            Ok(String::new())
        };
        let axes = axes::axes(&root, &self.stand_ins, options.mixes)
            .map_err(|says| self.error(GRID, &says))?;
        let known = self.known_in(options);
        let known = known.map_err(|says| self.error(GRID, &says))?;
        let given = (&known, &self.stand_ins[..], &*self.folder, self.hosts);
        let grid = Grid::new((&root, &wanted), axes, options, given, &note);
        let grid = grid.map_err(|says| self.error(GRID, &says))?;
        self.prepare(&grid, options)?;
        // The place where a polluter is met is drawn from the first half.
        let refs = 2 * (grid.budget_refs + grid.warmup_refs);
        let used = used.into_inner();
        let programs: Vec<&StandIn> = self
            .stand_ins
            .iter()
            .filter(|s| used.contains(&s.name))
            .collect();
        let record = |program: &StandIn| {
            if let Some(file) = &program.recording {
                let path = options.inputs.join(file);
                if !path.is_file() {
                    return Err(format!("{}: not there", path.display()));
                }
                return program.check(&path).map(|()| path);
            }
            let refs = if program.whole {
                program.limit
            } else {
                refs.min(program.limit)
            };
            let wanted = Wanted { program, refs };
            (hooks.record)(&wanted, &options.inputs)
        };
        let found: Vec<_> = programs.par_iter().map(|program| record(program)).collect();
        Ok(programs
            .iter()
            .map(|p| p.name.as_str())
            .zip(found)
            .collect())
    }

    /// What formulas of a grid know.
    fn known_in(&self, options: &Options) -> Result<Known, String> {
        let folder = std::path::absolute(&options.inputs).or_else(|e| {
            // An empty path is this folder.
            if options.inputs.as_os_str().is_empty() {
                std::env::current_dir().map_err(|e| e.to_string())
            } else {
                Err(format!("{}: {e}", options.inputs.display()))
            }
        })?;
        let mut known = self.known.clone();
        known.insert(INPUTS.to_owned(), text(folder.display().to_string()));
        let module = options.module.as_deref().unwrap_or(Path::new(NO_MODULE));
        let module = std::path::absolute(module);
        let module = module.map_err(|e| format!("{MODULE}: {e}"))?;
        known.insert(MODULE.to_owned(), text(module.display().to_string()));
        known.insert(SEED.to_owned(), number(options.seed as f64));
        Ok(known)
    }
}

/// Names of the levels of studies' caches, as results have them.
fn levels_of<'s>(studies: impl Iterator<Item = &'s dyn Hosted>) -> Vec<String> {
    let mut machines = BTreeMap::new();
    for study in studies {
        let caches = format!("{:?}", study.machine().cache);
        machines.entry(caches).or_insert(study.machine());
    }
    let made = machines.into_values();
    let made = made.filter_map(|spec| Machine::new(spec, &Parts::default()).ok());
    let levels: BTreeSet<String> = made.flat_map(|m| m.level_names().to_vec()).collect();
    levels.into_iter().collect()
}
