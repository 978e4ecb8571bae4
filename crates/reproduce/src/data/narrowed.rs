//! Axes of the values of another axis that outcomes choose, and give columns.

use std::{collections::BTreeMap, sync::Arc};

use serde::Deserialize;
use toml::{Table, Value as Toml};

use super::{
    axes::scalar,
    eval::{Axes, Chosen, Names, Value, Valued, number},
    formula::Formula,
    grid::table,
};

/// The key by which such an axis is told from one that is drawn.
const OF: &str = "of";

/// Some values of an axis.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Narrowed {
    /// Of this axis.
    of: String,
    /// Experiments, and other such axes, that its formulas need.
    pub(super) after: Vec<String>,
    /// Those for which this holds. Default: all.
    when: Option<Formula>,
    /// By this number, the least first; those of the same number stay in their order.
    by: Option<Formula>,
    /// The first so many. Default: all.
    take: Option<usize>,
    /// What outcomes say of each.
    #[serde(default)]
    columns: BTreeMap<String, Column>,
}

/// A column that outcomes give.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Column {
    /// What they give.
    is: Formula,
    /// What it is before they are there, so that everything can be checked.
    until: Toml,
}

/// Such axes, by their names.
pub(super) type AllNarrowed = BTreeMap<String, Narrowed>;

/// Is it such an axis?
pub(super) fn is_narrowed(values: &Toml) -> bool {
    values.get(OF).is_some()
}

/// The axes of a grid whose values outcomes choose.
///
/// # Errors
/// What is wrong with one.
pub(super) fn all(root: &Table) -> Result<AllNarrowed, String> {
    let tables = table(root.get("axis").cloned(), "axis")?;
    let experiments = table(root.get("experiment").cloned(), "experiment")?;
    let mut all = AllNarrowed::new();
    for (name, values) in tables.into_iter().filter(|(_, values)| is_narrowed(values)) {
        let told = |e: toml::de::Error| format!("axis.{name}: {}", e.message());
        let one: Narrowed = values.try_into().map_err(told)?;
        all.insert(name, one);
    }
    for (name, one) in &all {
        let is_known = |after: &&String| {
            experiments.contains_key(*after) || all.get(*after).is_some_and(|_| *after != name)
        };
        if let Some(unknown) = one.after.iter().find(|after| !is_known(after)) {
            return Err(format!(
                "axis.{name}.after: \"{unknown}\": allowed: experiments, and other axes with of"
            ));
        }
        if rests_on_itself(&all, name, one, 0) {
            return Err(format!("axis.{name}.after: the axis follows from itself"));
        }
    }
    Ok(all)
}

fn rests_on_itself(all: &AllNarrowed, name: &str, one: &Narrowed, depth: usize) -> bool {
    let others = one.after.iter().filter(|after| all.contains_key(*after));
    depth > all.len()
        || others.into_iter().any(|after| {
            let other = all.get(after);
            after == name || other.is_some_and(|o| rests_on_itself(all, name, o, depth + 1))
        })
}

impl Narrowed {
    /// The axis that it has values of, if outcomes choose that one.
    pub(super) fn of_such<'n>(&'n self, all: &AllNarrowed) -> Option<&'n str> {
        all.contains_key(&self.of).then_some(&*self.of)
    }

    /// All values that it may have.
    ///
    /// # Errors
    /// There is no such axis, or it has a column of its own that is given here.
    pub(super) fn of(&self, axes: &Axes) -> Result<Vec<Value>, String> {
        let values = axes.get(&self.of).ok_or_else(|| {
            let names: Vec<&str> = axes.keys().map(String::as_str).collect();
            let names = names.join(", ");
            format!("{OF} = \"{}\": allowed: {names}", self.of)
        })?;
        let until = |(name, column): (&String, &Column)| {
            let value = scalar(&column.until, &format!("columns.{name}.until"))?;
            Ok((name.clone(), value))
        };
        let until: Result<Columns, String> = self.columns.iter().map(until).collect();
        let until = until?;
        let with = |value: &Value| {
            let twice = until.keys().find(|name| has(value, name));
            twice.map_or_else(
                || Ok(with(value, until.clone())),
                |name| Err(format!("columns.{name}: {} has such a column", self.of)),
            )
        };
        values.iter().map(with).collect()
    }

    /// Do outcomes say more of its values?
    pub(super) fn has_columns(&self) -> bool {
        !self.columns.is_empty()
    }

    /// All values that it may have, of which nobody knows what outcomes would have given. None if they give nothing.
    pub(super) fn unknown(&self, axes: &Axes, why: &str) -> Option<Vec<Value>> {
        let values = axes.get(&self.of).filter(|_| self.has_columns())?;
        let names = self.columns.keys();
        let unknown = names.map(|name| (name.clone(), Value::Unknown(why.into())));
        let unknown: Columns = unknown.collect();
        let values = values.iter().map(|value| with(value, unknown.clone()));
        Some(values.collect())
    }

    /// The values that it has by what was counted.
    pub(super) fn chosen(&self, names: &Names<'_>) -> Valued<Vec<Value>> {
        let axis = std::slice::from_ref(&self.of);
        let mut values: Vec<(f64, Value)> = Vec::new();
        for chosen in names.each(axis, self.when.as_ref(), &Chosen::new())? {
            let by = self.by.as_ref().map(|by| names.value(by, &chosen));
            let by = by.transpose()?.map_or(Ok(0.0), |by| number(&by))?;
            let given = self.columns.iter().map(|(name, column)| {
                let value = names.value(&column.is, &chosen)?;
                Ok((name.clone(), value))
            });
            let given: Columns = given.collect::<Valued<_>>()?;
            let chosen = chosen.into_iter();
            values.extend(chosen.map(|(_, value)| (by, with(&value, given.clone()))));
        }
        values.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        values.truncate(self.take.unwrap_or(usize::MAX));
        Ok(values.into_iter().map(|(_, value)| value).collect())
    }
}

/// Columns by their names.
type Columns = BTreeMap<String, Value>;

/// Has a value such a column, as its name is one?
fn has(value: &Value, name: &str) -> bool {
    match value {
        Value::Item(columns) => columns.contains_key(name),
        _ => name == NAME,
    }
}

/// A value with more columns.
fn with(value: &Value, more: Columns) -> Value {
    if more.is_empty() {
        return value.clone();
    }
    let mut columns = match value {
        Value::Item(columns) => Columns::clone(columns),
        other => Columns::from([(NAME.to_owned(), other.clone())]),
    };
    columns.extend(more);
    Value::Item(Arc::new(columns))
}

/// The column by which a value is called.
const NAME: &str = "name";
