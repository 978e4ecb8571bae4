//! A file, what is laid over it, and the lines of its keys.

use std::{
    io,
    path::{Path, PathBuf},
};

use piebald_hw::nearest::{did_you_mean, hint_of, in_words};
use serde::{Deserialize as _, de::IntoDeserializer as _};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::{
    Experiment, HostName, KeyPath, Part, Place, Problem, Refused, Words,
    hosts::not_of,
    merge::{Node, find, label, lay, settled, shifted, step},
    problem::STDIN,
    replayed::REPLAYED,
    shapes::no_tables,
    text_file::{read_text, read_text_from},
    value::Version,
    version,
};

/// Letters of a line that a message shows.
const LONGEST_SHOWN: usize = 60;
/// The table of patches for hosts.
const ON: &str = "on";
/// The table of axes.
pub(crate) const SWEEP: &str = "sweep";

/// The text of an experiment, where it was read, and what is laid over it.
#[derive(Clone, Debug)]
pub struct Document {
    /// The file.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
    host: Option<HostName>,
    patches: Vec<Patch>,
}

/// What is laid over a file.
#[derive(Clone, Debug)]
enum Patch {
    /// `KEY=VALUE` of a command line, its key, and TOML that has the value under the key `v`.
    Set(String, KeyPath, String),
    /// A value of an axis, which the file has.
    Axis(KeyPath, KeyPath),
}

/// What a file and its patches say together.
struct Merged<'a> {
    root: Spanned<DeTable<'a>>,
    /// Was it written in the keys that files of guests had?
    is_old: bool,
}

impl Document {
    /// A document of a text; `path` is for errors and for paths relative to its folder.
    pub fn new(path: &Path, text: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            text: text.into(),
            host: None,
            patches: Vec::new(),
        }
    }

    /// The document of a file; `-` is standard input.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(path: &Path) -> Result<Self, Refused> {
        let text = if Self::is_stdin(path) {
            read_text_from(io::stdin())
        } else {
            read_text(path)
        };
        let text = text.map_err(|e| Refused::unread(path, e.to_string()))?;
        Ok(Self::new(path, text))
    }

    /// Does this path stand for standard input?
    pub fn is_stdin(path: &Path) -> bool {
        path == Path::new(STDIN)
    }

    /// The folder that paths of the file are relative to.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// The same for a host: what the file says under `[on.HOST]` is laid over the rest, and keys
    /// that the host does not have are refused.
    #[must_use]
    pub fn on(mut self, host: HostName) -> Self {
        self.host = Some(host);
        self
    }

    /// The same with a value of a command line, `KEY=VALUE`. The value is TOML, or else text.
    ///
    /// # Errors
    /// It is no such pair.
    pub fn set(mut self, pair: &str) -> Result<Self, Refused> {
        let refuse = |says: String| Refused {
            path: self.path.clone(),
            problems: vec![(
                Place::Set(pair.to_owned()),
                Problem::at(KeyPath::default(), says),
            )],
        };
        let Some((key, value)) = pair.split_once('=') else {
            return Err(refuse("allowed: KEY=VALUE".to_owned()));
        };
        let key: KeyPath = key.trim().parse().map_err(&refuse)?;
        let given = |patch: &Patch| matches!(patch, Patch::Set(_, other, _) if *other == key);
        if self.patches.iter().any(given) {
            return Err(refuse("is given twice; allowed: once".to_owned()));
        }
        let value = value.trim();
        let is_value =
            DeTable::parse(&format!("v = {value}")).is_ok_and(|t| t.get_ref().len() == 1);
        let text = if is_value {
            format!("v = {value}")
        } else {
            format!("v = {}", toml::Value::from(value))
        };
        self.patches.push(Patch::Set(pair.to_owned(), key, text));
        Ok(self)
    }

    /// The same with a value of an axis.
    pub(crate) fn at(mut self, key: KeyPath, value: KeyPath) -> Self {
        self.patches.push(Patch::Axis(key, value));
        self
    }

    /// Reads and checks the experiment.
    ///
    /// # Errors
    /// The place where the text is none, or all that is wrong with what its keys say.
    pub fn experiment(&self) -> Result<Experiment, Refused> {
        let Merged { root, is_old } = self.merged()?;
        let tables = root.get_ref();
        let refuse = |problems| self.placed(tables, is_old, problems);
        let no_tables = no_tables(tables);
        if !no_tables.is_empty() {
            return Err(refuse(no_tables));
        }
        let from = toml::de::Deserializer::from(root.clone());
        let read: Result<Experiment, _> = serde_path_to_error::deserialize(from);
        let experiment = read.map_err(|e| {
            let path = KeyPath::from(e.path());
            let message = in_words(&one_line(e.inner().message()));
            let now = version::is_now(&path).filter(|_| message.starts_with("unknown field"));
            let message = now.unwrap_or_else(|| {
                let hint = hint_of(&message);
                let near = version::near(&path).filter(|_| hint.is_empty());
                message + &near.unwrap_or(hint)
            });
            let problem = Problem::of_message(path, &message);
            match e.inner().span() {
                Some(span) if problem.path.is_root() => {
                    self.refused(vec![(self.place(span.start), problem)])
                }
                _ => refuse(vec![problem]),
            }
        })?;
        let mut problems = needed(tables);
        problems.extend(experiment.check());
        if let Some(host) = self.host {
            problems.extend(not_of(host, tables));
        }
        if problems.is_empty() {
            Ok(experiment)
        } else {
            Err(refuse(problems))
        }
    }

    /// The file's tables with all that is laid over them.
    fn merged(&self) -> Result<Merged<'_>, Refused> {
        let mut root = DeTable::parse(&self.text).map_err(|e| self.no_toml(&e))?;
        let written = root.clone();
        let refuse = |problems| self.placed(written.get_ref(), false, problems);
        // What the keys are depends on the version.
        let number = root.get_ref().get("schema").cloned();
        let number = number.map(|number| Version::deserialize(number.into_deserializer()));
        match number {
            Some(Ok(_)) => {}
            Some(Err(e)) => {
                let says = one_line(e.message());
                let wrong = Problem::of_message(KeyPath::of("schema"), &says);
                return Err(refuse(vec![wrong]));
            }
            None => {
                let missing = Problem::at(KeyPath::default(), "missing field `schema`");
                return Err(refuse(vec![missing]));
            }
        }
        let is_old = version::is_of_guests(root.get_ref(), self.host);
        if is_old {
            for edit in version::edits(root.get_ref()).map_err(refuse)? {
                edit.apply(root.get_mut());
            }
        }
        // What `--set` gives for a host alone is laid over the rest like what the file gives.
        let sets = self.sets();
        for (pair, key, value) in &sets {
            if key.parts().first() == KeyPath::of(ON).parts().first() {
                let laid = lay(root.get_mut(), key.parts(), value.clone());
                let place = || Place::Set((*pair).to_owned());
                laid.map_err(|says| {
                    self.refused(vec![(place(), Problem::at((*key).clone(), says))])
                })?;
            }
        }
        let on = root.get_mut().remove(ON);
        if let Some(patch) = on.map(|on| self.of_host(on)).transpose().map_err(refuse)? {
            for (key, value) in patch {
                let path = KeyPath::of(&key);
                let laid = lay(root.get_mut(), path.parts(), value);
                laid.map_err(|says| refuse(vec![Problem::at(path, says)]))?;
            }
        }
        let mut sets = sets.into_iter();
        for patch in &self.patches {
            let (laid, place) = match patch {
                Patch::Set(pair, key, _) => {
                    let value = sets.next().map(|(.., value)| value);
                    let is_of_host = key.parts().first() == KeyPath::of(ON).parts().first();
                    let value = value.filter(|_| !is_of_host);
                    let laid = value.map(|value| lay(root.get_mut(), key.parts(), value));
                    let laid = laid.unwrap_or(Ok(()));
                    (laid.map_err(|says| (key, says)), Place::Set(pair.clone()))
                }
                Patch::Axis(key, from) => {
                    // What `--set` gives may be an axis as well.
                    let value = find(root.get_ref(), from).cloned();
                    let begins = value.as_ref().map_or(0, |value| value.span().start);
                    let laid = value.map(|value| lay(root.get_mut(), key.parts(), value));
                    let laid = laid.unwrap_or(Ok(()));
                    (laid.map_err(|says| (key, says)), self.place(begins))
                }
            };
            laid.map_err(|(key, says)| {
                self.refused(vec![(place, Problem::at(key.clone(), says))])
            })?;
        }
        if self.patches.iter().any(|p| matches!(p, Patch::Axis(..))) {
            root.get_mut().remove(SWEEP);
        }
        Ok(Merged { root, is_old })
    }

    /// What a command line gives, with the place of each value behind the file's text.
    fn sets(&self) -> Vec<(&str, &KeyPath, Node<'_>)> {
        let mut begins = self.text.len() + 1;
        let mut sets = Vec::new();
        for patch in &self.patches {
            if let Patch::Set(pair, key, text) = patch {
                sets.push((pair.as_str(), key, parsed(text, begins)));
                begins += text.len() + 1;
            }
        }
        sets
    }

    /// What the file says for this host alone.
    fn of_host<'a>(&self, on: Node<'a>) -> Result<Vec<(String, Node<'a>)>, Vec<Problem>> {
        let at = KeyPath::of(ON);
        let table_at = |path: KeyPath, value: Node<'a>| match value.into_inner() {
            DeValue::Table(table) => Ok(table),
            other => {
                let says = format!("allowed: a table, not {}", other.type_str());
                Err(vec![Problem::at(path, says)])
            }
        };
        let hosts = HostName::WORDS.iter().map(|(word, ..)| *word);
        let mut found = Vec::new();
        for (name, patch) in table_at(at.clone(), on)? {
            let name = name.into_inner();
            let path = at.key(&name);
            if !hosts.clone().any(|host| host == name) {
                let known: Vec<&str> = hosts.clone().collect();
                let says = format!("no host; allowed: {}", known.join(", "));
                let near = did_you_mean(&name, hosts.clone());
                return Err(vec![Problem::at(path, says + &near)]);
            }
            let patch = table_at(path, patch)?;
            if self.host.is_some_and(|host| host.word() == name) {
                found = patch
                    .into_iter()
                    .map(|(key, value)| (key.into_inner().into_owned(), value))
                    .collect();
            }
        }
        Ok(found)
    }

    /// Does the file, or what is laid over it, give this key?
    pub fn gives(&self, path: &KeyPath) -> bool {
        let merged = self.merged();
        merged.is_ok_and(|merged| find(merged.root.get_ref(), path).is_some())
    }

    /// Values of the axes, as the file gives them: paths of the lists and how many values
    /// each has.
    pub(crate) fn axes(&self) -> Result<Vec<(KeyPath, Vec<String>)>, Refused> {
        let merged = self.merged()?;
        let at = KeyPath::of(SWEEP);
        let axes = find(merged.root.get_ref(), &at).and_then(|axes| axes.get_ref().as_table());
        let axis = |(key, values): (&Spanned<_>, &Node<'_>)| {
            let key: &std::borrow::Cow<'_, str> = key.get_ref();
            let values = values.get_ref().as_array().map(|v| v.as_ref());
            let labels = values.unwrap_or_default().iter();
            (at.key(key), labels.map(label).collect())
        };
        Ok(axes.into_iter().flatten().map(axis).collect())
    }

    /// Whether each axis has a key of its own, and values that differ.
    pub(crate) fn check_axes(&self, axes: &[(KeyPath, Vec<String>)]) -> Result<(), Refused> {
        let merged = self.merged()?;
        let mut problems = Vec::new();
        let mut known: Vec<(KeyPath, String)> = Vec::new();
        for (at, values) in axes {
            let Some(Part::Key(name)) = at.parts().last() else {
                continue;
            };
            let Ok(key) = name.parse::<KeyPath>() else {
                continue;
            };
            let key = settled(merged.root.get_ref(), &key);
            let not_axes = ["schema", SWEEP, ON].map(KeyPath::of);
            if not_axes.iter().any(|not| not.meets(&key)) {
                let allowed = "allowed: a key other than schema, sweep and on";
                problems.push(Problem::at(at.clone(), allowed));
            }
            if let Some((_, other)) = known.iter().find(|(other, _)| other.meets(&key)) {
                let says =
                    format!("is of the same value as the axis {other}; allowed: one of them");
                problems.push(Problem::at(at.clone(), says));
            }
            let twice = values.iter().enumerate();
            let mut twice = twice.filter(|(i, value)| values[..*i].contains(value));
            if let Some((i, value)) = twice.next() {
                let says = format!("{value} is there already; allowed: each value once");
                problems.push(Problem::at(at.item(i), says));
            }
            known.push((key, name.clone()));
        }
        if !problems.is_empty() {
            return Err(self.placed(merged.root.get_ref(), merged.is_old, problems));
        }
        for patch in &self.patches {
            let Patch::Set(pair, given, _) = patch else {
                continue;
            };
            let key = settled(merged.root.get_ref(), &given.without(ON));
            if let Some((_, axis)) = known.iter().find(|(axis, _)| axis.meets(&key)) {
                let says = format!(
                    "is an axis of the file, whose values would hide it; allowed: \
                     --set 'sweep.\"{axis}\"=[VALUE, ...]'"
                );
                let place = Place::Set(pair.clone());
                return Err(self.refused(vec![(place, Problem::at(given.clone(), says))]));
            }
        }
        Ok(())
    }

    /// Keys that are given beside those of these patterns, such as `program[].name`; a pattern stands for
    /// all that is below it.
    pub fn beyond(&self, patterns: &[&str]) -> Vec<KeyPath> {
        let mut found = Vec::new();
        if let Ok(merged) = self.merged() {
            let root = merged.root.get_ref().iter();
            for (key, value) in root {
                beyond(&KeyPath::of(key.get_ref()), value, patterns, &mut found);
            }
        }
        found
    }

    /// Adds places to problems, in the order of the places.
    pub fn refuse(&self, problems: Vec<Problem>) -> Refused {
        match self.merged() {
            Ok(merged) => self.placed(merged.root.get_ref(), merged.is_old, problems),
            Err(refused) => refused,
        }
    }

    fn placed(&self, root: &DeTable<'_>, is_old: bool, problems: Vec<Problem>) -> Refused {
        let place = |mut problem: Problem| {
            let place = self.place(offset_in(root, &problem.path));
            if is_old {
                version::write(&mut problem);
            }
            (place, problem)
        };
        let mut placed: Vec<_> = problems.into_iter().map(place).collect();
        placed.sort_by(|(a, _), (b, _)| a.cmp(b));
        self.refused(placed)
    }

    fn refused(&self, problems: Vec<(Place, Problem)>) -> Refused {
        Refused {
            path: self.path.clone(),
            problems,
        }
    }

    fn no_toml(&self, error: &toml::de::Error) -> Refused {
        let mut says = one_line(error.message());
        let line = error.span().map(|span| self.line_at(span.start));
        let text = line.and_then(|line| self.text.lines().nth(line - 1));
        if let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) {
            let shown: String = text.chars().take(LONGEST_SHOWN).collect();
            says += &format!(", in `{shown}`");
        }
        let place = line.map_or(Place::File, Place::Line);
        self.refused(vec![(place, Problem::at(KeyPath::default(), says))])
    }

    /// The place of an offset: the file's text, and that of each `--set` behind it.
    fn place(&self, offset: usize) -> Place {
        let mut begins = self.text.len() + 1;
        for patch in &self.patches {
            if let Patch::Set(pair, _, text) = patch {
                let ends = begins + text.len() + 1;
                if (begins..ends).contains(&offset) {
                    return Place::Set(pair.clone());
                }
                begins = ends;
            }
        }
        Place::Line(self.line_at(offset))
    }

    fn line_at(&self, offset: usize) -> usize {
        let before = self.text.as_bytes().iter().take(offset);
        1 + before.filter(|byte| **byte == b'\n').count()
    }
}

/// What all programs but requests need.
fn needed(root: &DeTable<'_>) -> Vec<Problem> {
    let programs = root
        .get("program")
        .and_then(|list| list.get_ref().as_array());
    let programs = programs
        .map(|list| list.as_ref())
        .unwrap_or_default()
        .iter();
    let programs = programs.enumerate().filter_map(|(i, program)| {
        let program = program.get_ref().as_table()?;
        let is_replayed = REPLAYED.iter().any(|key| program.contains_key(*key));
        (!is_replayed).then_some((i, program))
    });
    let mut problems = Vec::new();
    let mut has_programs = false;
    for (i, program) in programs {
        has_programs = true;
        if !program.contains_key("cores") && !root.contains_key("deal") {
            let at = KeyPath::of("program").item(i);
            problems.push(Problem::at(at, "missing field `cores`"));
        }
    }
    if has_programs && !root.contains_key("machine") {
        problems.push(Problem::at(KeyPath::default(), "missing field `machine`"));
    }
    problems
}

/// Adds the key to those that are found, or keys in it, unless they are allowed.
fn beyond(at: &KeyPath, value: &Node<'_>, patterns: &[&str], found: &mut Vec<KeyPath>) {
    let pattern = at.pattern();
    let is_below = |allowed: &&str| {
        let rest = allowed.strip_prefix(&*pattern);
        rest.is_some_and(|rest| rest.starts_with(['.', '[']))
    };
    match value.get_ref() {
        _ if patterns.contains(&&*pattern) => {}
        DeValue::Table(table) if patterns.iter().any(is_below) => {
            for (key, value) in table {
                beyond(&at.key(key.get_ref()), value, patterns, found);
            }
        }
        DeValue::Array(items) if patterns.iter().any(is_below) => {
            for (i, item) in items.iter().enumerate() {
                beyond(&at.item(i), item, patterns, found);
            }
        }
        _ => found.push(at.clone()),
    }
}

/// Where a key's value begins, or what is there of its path.
fn offset_in(root: &DeTable<'_>, path: &KeyPath) -> usize {
    let mut parts = path.parts().iter();
    let first = parts.next().and_then(|part| match part {
        crate::Part::Key(key) => root.get(key.as_str()),
        crate::Part::Item(_) => None,
    });
    let Some(mut at) = first else {
        return 0;
    };
    for part in parts {
        let Some(inner) = step(at, part) else {
            break;
        };
        at = inner;
    }
    at.span().start
}

/// The value of a `--set`, whose text begins `begins` bytes behind the file's beginning.
fn parsed(text: &str, begins: usize) -> Node<'_> {
    let value = DeTable::parse(text).ok();
    let value = value.and_then(|table| table.into_inner().remove("v"));
    let value = value.unwrap_or(Spanned::new(0..0, DeValue::Boolean(false)));
    shifted(value, begins)
}

/// A message of the parser without its line breaks, and without the key that it adds to
/// errors from inside a value: the path says that better.
fn one_line(message: &str) -> String {
    let lines = message.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("in `"));
    lines.collect::<Vec<_>>().join(" ")
}
