//! `grid.toml`: the experiments of a paper, as tables of the one language, and their axes.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    path::{self, Path},
};

use piebald_experiment::{HostName, Words};
use piebald_lab::host::Hosts;
use piebald_units::Count;
use toml::{Table, Value as Toml};

use super::{
    axes::OVER,
    eval::{Axes, Chosen, Fault, Names, NoRuns, Value},
    making::{Making, Recordings, WHEN, condition, words},
    narrowed::{self, AllNarrowed, Narrowed},
    requests::{is_replayed, limit, repetitions},
};
use crate::{Options, StandIn, programs::of_toml};

/// Version of the two files.
pub(super) const SCHEMA: i64 = 1;
/// The key of an experiment whose requests are only counted.
const REPLAY: &str = "replay";
/// The key of an experiment that says what runs it.
pub(super) const HOST: &str = "host";
/// The key of an experiment that says where its made files are for programs that are recorded, below the
/// folder of the inputs.
const DATA: &str = "data";
/// The key of an experiment whose formulas ask for columns that outcomes give.
const AFTER: &str = "after";
/// The key of an experiment that is another one's, but for some keys.
const LIKE: &str = "like";
/// The axis of the programs that stand in for others.
pub(super) const PROGRAM: &str = "program";
/// Key of an axis's value: the only form that has it.
const ONLY: &str = "only";
/// Most runs of an experiment's axes.
const MOST_POINTS: usize = 2000;

/// The experiments of a form.
pub(super) struct Grid {
    pub(super) axes: Axes,
    /// Axes whose values outcomes choose; until they have, such an axis has all.
    pub(super) narrowed: AllNarrowed,
    /// Those of these that have them.
    pub(super) settled: BTreeSet<String>,
    /// Of experiments, such axes beside their own that their formulas ask for columns.
    pub(super) after: BTreeMap<String, Vec<String>>,
    /// By their names, in the order of names.
    pub(super) experiments: BTreeMap<String, Vec<Point>>,
    /// Measured references of each run and those before, where an experiment says no others.
    pub(super) budget_refs: u64,
    pub(super) warmup_refs: u64,
}

/// An experiment with a value for each of its axes.
pub(super) struct Point {
    /// Its name, with the values of the axes.
    pub(super) name: String,
    pub(super) at: Chosen,
    /// As a file of the one language.
    pub(super) text: Result<String, String>,
    /// Of what is replayed, which has no repetitions of its own: the seed of each is one more.
    pub(super) repetitions: u32,
    /// Requests are replayed, and not only counted.
    pub(super) is_run: bool,
    /// What runs it.
    pub(super) host: HostName,
    /// Where its made files are, below the folder of the inputs.
    pub(super) data: Option<String>,
}

impl Point {
    /// Is it run in guests?
    pub(super) fn in_guest(&self) -> bool {
        self.host == HostName::Guest
    }
}

/// Numbers that are known, the stand-ins, the folder that paths are relative to, and what runs the experiments.
pub(super) type Given<'g> = (
    &'g BTreeMap<String, Value>,
    &'g [StandIn],
    &'g Path,
    &'static dyn Hosts,
);

/// The host of this name.
///
/// # Errors
/// Which there are.
fn host_named(name: &str) -> Result<HostName, String> {
    let found = HostName::WORDS.iter().find(|(word, ..)| *word == name);
    found.map(|(_, host, _)| *host).ok_or_else(|| {
        let words: Vec<&str> = HostName::WORDS.iter().map(|(word, ..)| *word).collect();
        format!("\"{name}\": allowed: {}", words.join(", "))
    })
}

/// The tables of a grid, with those of its form laid over them.
pub(super) fn of_form(text: &str, quick: bool) -> Result<Table, String> {
    let mut root: Table = toml::from_str(text).map_err(|e| of_toml(text, &e))?;
    let schema = root.remove("schema");
    if schema != Some(Toml::Integer(SCHEMA)) {
        let found = schema.map_or("missing".to_owned(), |s| s.to_string());
        return Err(format!("schema: {found}: allowed: schema = {SCHEMA}"));
    }
    let forms = table(root.remove("form"), "form")?;
    for (name, patch) in forms {
        let patch = table(Some(patch), &format!("form.{name}"))?;
        match name.as_str() {
            "quick" if quick => patch
                .iter()
                .try_for_each(|(key, value)| lay(&mut root, key, value, key))?,
            "quick" => {}
            _ => return Err(format!("form.{name}: allowed: form.quick")),
        }
    }
    if let Some(Toml::Table(axes)) = root.get_mut("axis") {
        for (name, values) in axes.iter_mut() {
            if let Toml::Array(values) = values {
                of_one_form(values, quick, &format!("axis.{name}"))?;
            }
        }
    }
    let allowed = ["axis", "default", "experiment"];
    match root.keys().find(|key| !allowed.contains(&key.as_str())) {
        Some(key) => Err(format!(
            "{key}: allowed: schema, form, {}",
            allowed.join(", ")
        )),
        None => Ok(root),
    }
}

/// Leaves out values of an axis that are another form's.
fn of_one_form(values: &mut Vec<Toml>, quick: bool, place: &str) -> Result<(), String> {
    let mut kept = Vec::new();
    for (i, mut value) in std::mem::take(values).into_iter().enumerate() {
        let only = value.as_table_mut().and_then(|table| table.remove(ONLY));
        let is_kept = match only.as_ref().map(|only| (only, only.as_str())) {
            None => true,
            Some((_, Some("quick"))) => quick,
            Some((_, Some("full"))) => !quick,
            Some((only, _)) => {
                let allowed = "allowed: \"quick\" or \"full\"";
                return Err(format!("{place}[{i}].{ONLY} = {only}: {allowed}"));
            }
        };
        if is_kept {
            kept.push(value);
        }
    }
    *values = kept;
    Ok(())
}

/// A table, or an empty one.
pub(super) fn table(value: Option<Toml>, place: &str) -> Result<Table, String> {
    match value {
        None => Ok(Table::new()),
        Some(Toml::Table(table)) => Ok(table),
        Some(other) => Err(format!("{place} = {other}: allowed: a table")),
    }
}

/// Lays a value over another: tables key by key, lists of tables by their `name`; all else is
/// replaced.
fn lay(into: &mut Table, key: &str, over: &Toml, place: &str) -> Result<(), String> {
    match (into.get_mut(key), over) {
        (Some(Toml::Table(table)), Toml::Table(over)) => over
            .iter()
            .try_for_each(|(key, value)| lay(table, key, value, &format!("{place}.{key}"))),
        (Some(Toml::Array(items)), Toml::Array(over))
            if !over.is_empty() && over.iter().all(|i| name_of(i).is_some()) =>
        {
            for value in over {
                let there = items.iter_mut().find(|i| name_of(i) == name_of(value));
                let Some(Toml::Table(there)) = there else {
                    let name = value.get("name").cloned().unwrap_or(Toml::Boolean(false));
                    return Err(format!("{place}: no table of the list has name = {name}"));
                };
                for (key, value) in value.as_table().into_iter().flatten() {
                    lay(there, key, value, &format!("{place}.{key}"))?;
                }
            }
            Ok(())
        }
        _ => {
            into.insert(key.to_owned(), over.clone());
            Ok(())
        }
    }
}

pub(super) fn name_of(item: &Toml) -> Option<&str> {
    item.as_table()?.get("name")?.as_str()
}

impl Grid {
    /// Has each of its axes the value that it has at this point?
    pub(super) fn is_chosen(&self, point: &Point) -> bool {
        let mut narrowed = point.at.iter();
        narrowed.all(|(axis, value)| {
            let is_narrowed = self.narrowed.contains_key(axis);
            let name = value.text().unwrap_or_default();
            let has = |all: &Vec<Value>| all.iter().any(|value| value.is_called(&name));
            !is_narrowed || self.axes.get(axis).is_none_or(has)
        })
    }

    /// No formula has what outcomes would have given to this axis.
    pub(super) fn columns_are_unknown(&mut self, axis: &str, why: &str) {
        let one = self.narrowed.get(axis);
        if let Some(unknown) = one.and_then(|one| one.unknown(&self.axes, why)) {
            self.axes.insert(axis.to_owned(), unknown);
        }
    }

    /// Gives axes that follow from no outcome, as they come after nothing, the values that they choose. Then they are as any
    /// others.
    ///
    /// # Errors
    /// A formula that is wrong.
    fn choose_at_once(
        &mut self,
        known: &BTreeMap<String, Value>,
        hosts: &'static dyn Hosts,
    ) -> Result<(), String> {
        let (at_once, later) = (std::mem::take(&mut self.narrowed).into_iter())
            .partition(|(_, one)| one.after.is_empty());
        self.narrowed = later;
        for (name, one) in at_once {
            if let Some(of) = one.of_such(&self.narrowed) {
                return Err(format!(
                    "axis.{name}.after = []: allowed: [\"{of}\"], whose values outcomes choose"
                ));
            }
            let none = NoRuns;
            let names = Names {
                axes: &self.axes,
                known,
                lets: Vec::new(),
                cells: &none,
                hosts: Some(hosts),
            };
            let values = one.chosen(&names);
            let values = values.map_err(|fault| format!("axis.{name}: {}", fault.says()))?;
            self.axes.insert(name, values);
        }
        Ok(())
    }

    /// The experiments of a grid's tables that are wanted.
    ///
    /// # Errors
    /// What is wrong, with its place.
    pub(super) fn new(
        (root, wanted): (&Table, &dyn Fn(&str) -> bool),
        axes: Axes,
        options: &Options,
        given: Given<'_>,
        recording: &Recordings<'_>,
    ) -> Result<Self, String> {
        let default = table(root.get("default").cloned(), "default")?;
        let mut asked = default.clone();
        choose(&mut asked, options, &[], "default")?;
        let lengths = |key| Ok::<_, String>(refs(&asked, key, "default")?.unwrap_or(0));
        let mut grid = Self {
            narrowed: narrowed::all(root)?,
            settled: BTreeSet::new(),
            after: BTreeMap::new(),
            experiments: BTreeMap::new(),
            budget_refs: lengths("budget_refs")?,
            warmup_refs: lengths("warmup_refs")?,
            axes,
        };
        grid.choose_at_once(given.0, given.3)?;
        let experiments = table(root.get("experiment").cloned(), "experiment")?;
        for name in experiments.keys().filter(|name| wanted(name)) {
            grid.make((root, name), options, given, recording)?;
        }
        Ok(grid)
    }

    /// Makes an experiment at the values that its axes have.
    ///
    /// # Errors
    /// What is wrong, with its place.
    pub(super) fn make(
        &mut self,
        (root, name): (&Table, &str),
        options: &Options,
        (known, stand_ins, folder, hosts): Given<'_>,
        recording: &Recordings<'_>,
    ) -> Result<(), String> {
        let empty = Table::new();
        let tables = |key: &str| root.get(key).and_then(Toml::as_table);
        let default = tables("default").unwrap_or(&empty);
        let experiments = tables("experiment").unwrap_or(&empty);
        let Some(experiment) = experiments.get(name) else {
            return Ok(());
        };
        let place = format!("experiment.{name}");
        let is_word = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || !name.chars().all(is_word) {
            return Err(format!(
                "{place}: allowed: letters, digits, -, _ and . in its name"
            ));
        }
        let mut merged = like(experiments, (experiment, &place), default, 0)?;
        let after = words(merged.remove(AFTER), &format!("{place}.{AFTER}"))?;
        if let Some(unknown) = after.iter().find(|axis| !self.narrowed.contains_key(*axis)) {
            let names: Vec<&str> = self.narrowed.keys().map(String::as_str).collect();
            return Err(format!(
                "{place}.{AFTER}: \"{unknown}\": allowed: axes whose values outcomes choose: {}",
                names.join(", ")
            ));
        }
        let own = words(merged.get("each").cloned(), &format!("{place}.each"))?;
        let axes = self.without_columns_but(own.iter().chain(&after));
        let mut making = Making {
            axes: &axes,
            known,
            stand_ins,
            recording,
            folder,
            hosts,
            missing: Vec::new(),
        };
        let points = making.points(name, merged, (root, options), &place)?;
        let has_columns = |axis: &&String| self.has_columns(axis);
        let own: Vec<String> = own.iter().filter(has_columns).cloned().collect();
        self.experiments.insert(name.to_owned(), points);
        self.after.insert(name.to_owned(), [after, own].concat());
        Ok(())
    }

    fn has_columns(&self, axis: &str) -> bool {
        let one = self.narrowed.get(axis);
        one.is_some_and(Narrowed::has_columns)
    }

    /// The axes for an experiment that is made anew when outcomes have given columns to some. Those of others it may
    /// not ask for, as nobody would make it anew.
    fn without_columns_but<'n>(
        &self,
        some: impl Iterator<Item = &'n String> + Clone,
    ) -> Cow<'_, Axes> {
        let mut axes = Cow::Borrowed(&self.axes);
        for (name, one) in &self.narrowed {
            let why = format!("allowed with {AFTER} = \"{name}\": outcomes give it");
            let is_other = !some.clone().any(|axis| axis == name);
            if let Some(unknown) = one.unknown(&self.axes, &why).filter(|_| is_other) {
                axes.to_mut().insert(name.clone(), unknown);
            }
        }
        axes
    }
}

/// An experiment laid over the one that it is like, and that one over the default.
fn like(
    all: &Table,
    (experiment, place): (&Toml, &str),
    default: &Table,
    depth: usize,
) -> Result<Table, String> {
    let mut own = table(Some(experiment.clone()), place)?;
    let mut merged = match own.remove(LIKE) {
        None => default.clone(),
        Some(like_that) => {
            let found = like_that.as_str().and_then(|name| all.get(name));
            let Some(found) = found.filter(|_| depth < all.len()) else {
                return Err(format!(
                    "{place}.{LIKE} = {like_that}: allowed: the name of an experiment that is not like this one"
                ));
            };
            let name = like_that.as_str().unwrap_or_default();
            let place = format!("experiment.{name}");
            like(all, (found, &place), default, depth + 1)?
        }
    };
    for (key, value) in &own {
        lay(&mut merged, key, value, &format!("{place}.{key}"))?;
    }
    Ok(merged)
}

/// References that a table names, as `3M` or a number.
fn refs(table: &Table, key: &str, place: &str) -> Result<Option<u64>, String> {
    let refuse =
        |value: &Toml| format!("{place}.{key} = {value}: allowed: references, such as \"3M\"");
    match table.get(key) {
        None => Ok(None),
        Some(value @ Toml::Integer(n)) => u64::try_from(*n).map(Some).map_err(|_| refuse(value)),
        Some(value) => {
            let text = value.as_str().ok_or_else(|| refuse(value))?;
            let count: Count = text.parse().map_err(|_| refuse(value))?;
            Ok(Some(count.0))
        }
    }
}

/// What the options choose instead, but for these keys.
fn choose(
    experiment: &mut Table,
    options: &Options,
    keeps: &[String],
    place: &str,
) -> Result<(), String> {
    let may = |key: &str| !keeps.iter().any(|k| k == key);
    if may("seed") {
        if let Some(seed) = experiment.get("seed") {
            return Err(format!(
                "{place}.seed = {seed}: the command line chooses it; allowed: with keeps = [\"seed\"]"
            ));
        }
        let seed = i64::try_from(options.seed);
        let seed = seed.map_err(|_| {
            let most = i64::MAX;
            format!(
                "seed {}: allowed: 0 to {most} for a paper that is data",
                options.seed
            )
        })?;
        experiment.insert("seed".to_owned(), Toml::Integer(seed));
    }
    if let Some(n) = options.repetitions.filter(|_| may("repetitions")) {
        experiment.insert("repetitions".to_owned(), Toml::Integer(i64::from(n)));
    }
    if let Some(asked) = options.budget_refs.filter(|_| may("budget_refs")) {
        let most = piebald_experiment::MAX_REFS;
        let asked = asked.clamp(1, most);
        if is_replayed(experiment) {
            limit(experiment, asked);
            return Ok(());
        }
        let text = |refs: u64| Toml::String(refs.to_string());
        // The warm-up keeps its share; one that is not named is a share already.
        if experiment.contains_key("warmup_refs") {
            let budget = refs(experiment, "budget_refs", place)?;
            let warmup = refs(experiment, "warmup_refs", place)?;
            let budget = budget.unwrap_or(piebald_experiment::DEFAULT_BUDGET);
            let share =
                u128::from(asked) * u128::from(warmup.unwrap_or(0)) / u128::from(budget.max(1));
            let share = u64::try_from(share).unwrap_or(most).min(most);
            experiment.insert("warmup_refs".to_owned(), text(share));
        }
        experiment.insert("budget_refs".to_owned(), text(asked));
    }
    Ok(())
}

impl Making<'_> {
    /// An experiment at each choice of its axes.
    fn points(
        &mut self,
        name: &str,
        mut experiment: Table,
        (root, options): (&Table, &Options),
        place: &str,
    ) -> Result<Vec<Point>, String> {
        let each = words(experiment.remove("each"), &format!("{place}.each"))?;
        let keeps = words(experiment.remove("keeps"), &format!("{place}.keeps"))?;
        let when = condition(experiment.remove(WHEN), (place, WHEN))?;
        let is_run = match experiment.remove(REPLAY) {
            None => true,
            Some(Toml::Boolean(is_run)) => is_run,
            Some(other) => {
                return Err(format!("{place}.{REPLAY} = {other}: allowed: true, false"));
            }
        };
        let host = match experiment.remove(HOST) {
            None => HostName::Model,
            Some(Toml::String(name)) => {
                host_named(&name).map_err(|says| format!("{place}.{HOST} = {says}"))?
            }
            Some(other) => return Err(format!("{place}.{HOST} = {other}: allowed: a text")),
        };
        let data = match experiment.remove(DATA) {
            None => None,
            Some(Toml::String(text)) => Some(text),
            Some(other) => return Err(format!("{place}.{DATA} = {other}: allowed: a text")),
        };
        let allowed = ["seed", "repetitions", "budget_refs"];
        if let Some(key) = keeps.iter().find(|key| !allowed.contains(&key.as_str())) {
            let allowed = allowed.join(", ");
            return Err(format!("{place}.keeps: \"{key}\": allowed: {allowed}"));
        }
        let lengths = each.iter().filter_map(|axis| self.axes.get(axis));
        let all = lengths.map(Vec::len).fold(1, usize::saturating_mul);
        if all > MOST_POINTS {
            return Err(format!("{place}.each: {all} runs: allowed: {MOST_POINTS}"));
        }
        let chosen = self.each(
            &each,
            when.as_ref(),
            &Chosen::new(),
            &format!("{place}.each"),
        )?;
        let mut points = Vec::new();
        for at in chosen {
            let mut experiment = experiment.clone();
            for (axis, value) in &at {
                for (key, over) in self.over(root, axis, value) {
                    lay(
                        &mut experiment,
                        &key,
                        &over,
                        &format!("axis.{axis}: over.{key}"),
                    )?;
                }
            }
            self.missing.clear();
            let data = match &data {
                None => None,
                Some(text) => Some(self.data(text, &at, place)?),
            };
            let mut table = self.table(&experiment, &at, place)?;
            choose(&mut table, options, &keeps, place)?;
            let repetitions = repetitions(&mut table, place)?;
            self.settle_paths(&mut table);
            let values: Vec<String> = at.iter().filter_map(|(_, v)| v.text().ok()).collect();
            let name = [&[name.to_owned()][..], &values].concat().join(" ");
            let text = toml::to_string(&table).map_err(|e| format!("{place}: {e}"))?;
            points.push(Point {
                name,
                text: if self.missing.is_empty() {
                    Ok(text)
                } else {
                    Err(self.missing.join("; "))
                },
                repetitions,
                is_run,
                host,
                data,
                at,
            });
        }
        Ok(points)
    }

    /// A folder's name, below the folder of the inputs.
    fn data(&self, text: &str, at: &Chosen, place: &str) -> Result<String, String> {
        let place = format!("{place}.{DATA}");
        let name = self.text(text, at, &place)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if name.is_empty() || !name.chars().all(plain) {
            let allowed = "allowed: a folder's name of letters, digits, - and _";
            return Err(format!("{place} = \"{name}\": {allowed}"));
        }
        Ok(name)
    }

    /// Paths from the paper's folder, so that an experiment can be run elsewhere.
    fn settle_paths(&self, experiment: &mut Table) {
        let whole = |value: &Toml| {
            let whole = path::absolute(self.folder.join(value.as_str()?)).ok()?;
            Some(Toml::String(whole.display().to_string()))
        };
        let settle = |table: &mut Table, key: &str| {
            if let Some(whole) = table.get(key).and_then(whole) {
                table.insert(key.to_owned(), whole);
            }
        };
        let settle_all = |table: &mut Table, key: &str| {
            let paths = table.get_mut(key).and_then(Toml::as_array_mut);
            for path in paths.into_iter().flatten() {
                *path = whole(path).unwrap_or_else(|| path.clone());
            }
        };
        if let Some(Toml::Table(machine)) = experiment.get_mut("machine") {
            settle(machine, "file");
        }
        if let Some(Toml::Table(guest)) = experiment.get_mut("guest") {
            settle(guest, "module");
        }
        for key in ["tree", "policy"] {
            let tables = experiment.get_mut(key).and_then(Toml::as_array_mut);
            for table in tables.into_iter().flatten().filter_map(Toml::as_table_mut) {
                settle(table, if key == "tree" { "from" } else { "module" });
            }
        }
        if let Some(Toml::Table(files)) = experiment.get_mut("files")
            && let Some(Toml::Table(layout)) = files.get_mut("layout")
        {
            settle(layout, "file");
        }
        for key in ["before", "program"] {
            if let Some(Toml::Array(programs)) = experiment.get_mut(key) {
                for program in programs.iter_mut().filter_map(Toml::as_table_mut) {
                    settle(program, "recording");
                    settle(program, "trace");
                    settle_all(program, "requests");
                    if let Some(Toml::Table(clients)) = program.get_mut("clients") {
                        settle(clients, "queries");
                        settle(clients, "sequences");
                    }
                }
            }
        }
    }

    /// What is laid over an experiment at a value of an axis.
    fn over(&self, root: &Table, axis: &str, value: &Value) -> Table {
        let values = root.get("axis").and_then(|axes| axes.get(axis));
        let place = self
            .axes
            .get(axis)
            .and_then(|all| all.iter().position(|v| v == value));
        let item = values.and_then(Toml::as_array).zip(place);
        let over = item.and_then(|(values, at)| values.get(at)?.get(OVER)?.as_table().cloned());
        over.unwrap_or_default()
    }
}

impl Fault {
    /// What it says.
    pub(super) fn says(&self) -> &str {
        match self {
            Self::Missing(says) | Self::Wrong(says) => says,
        }
    }
}
