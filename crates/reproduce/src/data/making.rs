//! Tables of a grid with the values of their formulas.

use std::{collections::BTreeMap, path::Path};

use piebald_lab::host::Hosts;
use toml::{Table, Value as Toml};

use super::{
    eval::{Axes, Chosen, Fault, Names, NoRuns, Value},
    formula::{Formula, Template},
};
use crate::StandIn;

/// The key of what is there only where a formula holds.
pub(super) const WHEN: &str = "when";
/// The key of a table that stands for what a formula comes to.
const IS: &str = "is";
/// Numbers below it that are whole are written as such.
const WHOLE: f64 = 9_007_199_254_740_992.0;

/// Where the recording of a stand-in is, or why there is none.
pub(super) type Recordings<'r> = dyn Fn(&StandIn) -> Result<String, String> + 'r;

/// What an experiment is made of.
pub(super) struct Making<'m> {
    pub(super) axes: &'m Axes,
    pub(super) known: &'m BTreeMap<String, Value>,
    pub(super) stand_ins: &'m [StandIn],
    pub(super) recording: &'m Recordings<'m>,
    /// Paths are relative to it.
    pub(super) folder: &'m Path,
    pub(super) hosts: &'static dyn Hosts,
    /// Why a program has no recording.
    pub(super) missing: Vec<String>,
}

impl Making<'_> {
    pub(super) fn names<'n>(&'n self, none: &'n NoRuns) -> Names<'n> {
        Names {
            axes: self.axes,
            known: self.known,
            lets: Vec::new(),
            cells: none,
            hosts: Some(self.hosts),
        }
    }

    pub(super) fn each(
        &self,
        axes: &[String],
        only: Option<&Formula>,
        chosen: &Chosen,
        place: &str,
    ) -> Result<Vec<Chosen>, String> {
        let none = NoRuns;
        let found = self.names(&none).each(axes, only, chosen);
        found.map_err(|fault| format!("{place}: {}", fault.says()))
    }

    pub(super) fn text(&self, text: &str, chosen: &Chosen, place: &str) -> Result<String, String> {
        let none = NoRuns;
        let template = Template::parse(text).map_err(|says| format!("{place}: {says}"))?;
        let text = self.names(&none).text(&template, chosen);
        text.map_err(|fault| format!("{place}: {}", fault.says()))
    }

    /// A table whose texts have the values of their formulas.
    pub(super) fn table(
        &mut self,
        table: &Table,
        chosen: &Chosen,
        place: &str,
    ) -> Result<Table, String> {
        let mut made = Table::new();
        for (key, value) in table {
            let place = format!("{place}.{key}");
            let key = self.text(key, chosen, &place)?;
            let value = match value {
                Toml::Table(formulas) if formulas.contains_key(IS) => {
                    self.worked_out(formulas, chosen, &place)?
                }
                other => Some(self.value(other, chosen, &place)?),
            };
            if let Some(value) = value {
                put(&mut made, key, value, &place)?;
            }
        }
        if let Some(name) = made.remove("stand_in") {
            self.record(&mut made, &name, place)?;
        }
        Ok(made)
    }

    /// What a formula comes to, in the place of its table `{ is = "...", when = "..." }`; nothing where `when` does not hold.
    fn worked_out(
        &self,
        formulas: &Table,
        chosen: &Chosen,
        place: &str,
    ) -> Result<Option<Toml>, String> {
        let mut formulas = formulas.clone();
        let is = condition(formulas.remove(IS), (place, IS))?;
        let when = condition(formulas.remove(WHEN), (place, WHEN))?;
        if let Some(key) = formulas.keys().next() {
            return Err(format!("{place}.{key}: allowed: {IS}, {WHEN}"));
        }
        let none = NoRuns;
        let names = self.names(&none);
        let told = |fault: Fault| format!("{place}: {}", fault.says());
        let holds = when.map_or(Ok(true), |when| names.holds(&when, chosen));
        let Some(is) = is.filter(|_| holds != Ok(false)) else {
            return Ok(None);
        };
        holds.map_err(told)?;
        match names.value(&is, chosen).map_err(told)? {
            Value::Number(n) if n.fract() == 0.0 && n.abs() < WHOLE => {
                Ok(Some(Toml::Integer(n as i64)))
            }
            Value::Number(n) if n.is_finite() => Ok(Some(Toml::Float(n))),
            Value::Number(n) => Err(format!("{place} = {n}: allowed: a number that is finite")),
            Value::Is(is) => Ok(Some(Toml::Boolean(is))),
            other => Ok(Some(Toml::String(other.text().map_err(told)?))),
        }
    }

    fn value(&mut self, value: &Toml, chosen: &Chosen, place: &str) -> Result<Toml, String> {
        match value {
            Toml::String(text) => Ok(Toml::String(self.text(text, chosen, place)?)),
            Toml::Table(table) => {
                let mut made = Table::new();
                for (table, chosen) in self.repeated(table, chosen, place)? {
                    for (key, value) in self.table(&table, &chosen, place)? {
                        put(&mut made, key, value, place)?;
                    }
                }
                Ok(Toml::Table(made))
            }
            Toml::Array(items) => {
                let mut made = Vec::new();
                for (i, item) in items.iter().enumerate() {
                    let place = format!("{place}[{i}]");
                    let Toml::Table(table) = item else {
                        made.push(self.value(item, chosen, &place)?);
                        continue;
                    };
                    for (table, chosen) in self.repeated(table, chosen, &place)? {
                        made.extend(if table.contains_key(IS) {
                            self.worked_out(&table, &chosen, &place)?
                        } else {
                            Some(Toml::Table(self.table(&table, &chosen, &place)?))
                        });
                    }
                }
                Ok(Toml::Array(made))
            }
            other => Ok(other.clone()),
        }
    }

    /// A table without `each` and `when`, for each of the choices that these name.
    fn repeated(
        &self,
        table: &Table,
        chosen: &Chosen,
        place: &str,
    ) -> Result<Vec<(Table, Chosen)>, String> {
        let mut table = table.clone();
        let each = words(table.remove("each"), &format!("{place}.each"))?;
        let when = condition(table.remove(WHEN), (place, WHEN))?;
        let all = self.each(&each, when.as_ref(), chosen, &format!("{place}.each"))?;
        Ok(all
            .into_iter()
            .map(|chosen| (table.clone(), chosen))
            .collect())
    }

    /// The recording of a stand-in, in the place of its name.
    fn record(&mut self, program: &mut Table, name: &Toml, place: &str) -> Result<(), String> {
        let known = self
            .stand_ins
            .iter()
            .find(|s| name.as_str() == Some(&s.name));
        let Some(known) = known else {
            let names: Vec<&str> = self.stand_ins.iter().map(|s| s.name.as_str()).collect();
            let allowed = if names.is_empty() {
                "none, as there is no programs.toml".to_owned()
            } else {
                names.join(", ")
            };
            return Err(format!("{place}.stand_in = {name}: allowed: {allowed}"));
        };
        program.entry("name").or_insert(name.clone());
        if let Some(walk) = known.walk_us.and_then(|walk| i64::try_from(walk).ok()) {
            program.entry("walk_us").or_insert(Toml::Integer(walk));
        }
        if let Some(builtin) = &known.builtin {
            program.insert("builtin".to_owned(), Toml::String(builtin.clone()));
            program.entry("redraw").or_insert(Toml::Boolean(true));
            return Ok(());
        }
        match (self.recording)(known) {
            Ok(path) => {
                program.insert("recording".to_owned(), Toml::String(path));
            }
            Err(why) => {
                let why = format!("{}: {why}", known.name);
                if !self.missing.contains(&why) {
                    self.missing.push(why);
                }
            }
        }
        Ok(())
    }
}

/// The formula of a key.
pub(super) fn condition(
    when: Option<Toml>,
    (place, key): (&str, &str),
) -> Result<Option<Formula>, String> {
    let Some(when) = when else { return Ok(None) };
    let text = when
        .as_str()
        .ok_or_else(|| format!("{place}.{key} = {when}: allowed: a formula, as a text"))?;
    let parsed = Formula::parse(text);
    let parsed = parsed.map_err(|says| format!("{place}.{key}: {says}"))?;
    Ok(Some(parsed))
}

/// A key that is not there yet.
fn put(table: &mut Table, key: String, value: Toml, place: &str) -> Result<(), String> {
    if table.contains_key(&key) {
        return Err(format!("{place}: the key \"{key}\" is made twice"));
    }
    table.insert(key, value);
    Ok(())
}

/// One word, or a list of some.
pub(super) fn words(value: Option<Toml>, place: &str) -> Result<Vec<String>, String> {
    let refuse = |value: &Toml| format!("{place} = {value}: allowed: a text, or a list of texts");
    match value {
        None => Ok(Vec::new()),
        Some(Toml::String(word)) => Ok(vec![word]),
        Some(Toml::Array(items)) => {
            let word = |item: &Toml| item.as_str().map(str::to_owned).ok_or_else(|| refuse(item));
            items.iter().map(word).collect()
        }
        Some(other) => Err(refuse(&other)),
    }
}
