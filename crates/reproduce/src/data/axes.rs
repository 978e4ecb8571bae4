//! The axes of a grid: lists of values, what is drawn from them, and the stand-ins.

use std::{collections::BTreeMap, sync::Arc};

use toml::{Table, Value as Toml};

use super::{
    drawn::Drawn,
    eval::{Axes, EXPERIMENT, Value},
    grid::{PROGRAM, name_of, table},
    narrowed::{self, is_narrowed},
};
use crate::StandIn;

/// Key of an axis of numbers, and most of them.
const NUMBERS: &str = "numbers";
const MOST_NUMBERS: u32 = 1000;

/// The axes of a grid, and that of the stand-ins.
pub(super) fn axes(
    root: &Table,
    stand_ins: &[StandIn],
    mixes: Option<u64>,
) -> Result<Axes, String> {
    let mut axes = Axes::new();
    let tables = table(root.get("axis").cloned(), "axis")?;
    let (narrowed, others): (Vec<_>, Vec<_>) =
        (tables.into_iter()).partition(|(_, values)| is_narrowed(values));
    let (drawn, listed): (Vec<_>, Vec<_>) =
        (others.into_iter()).partition(|(_, values)| values.is_table());
    for (name, values) in listed {
        let place = format!("axis.{name}");
        if [PROGRAM, "policy", "run", EXPERIMENT].contains(&name.as_str()) {
            return Err(format!(
                "{place}: allowed: a name other than program, policy, run and experiment"
            ));
        }
        let values = match values {
            Toml::Array(values) if !values.is_empty() => values,
            other => {
                return Err(format!(
                    "{place} = {other}: allowed: a list of one value or more"
                ));
            }
        };
        let item = |(i, value): (usize, &Toml)| axis_value(value, &format!("{place}[{i}]"));
        let values: Vec<Value> = values
            .iter()
            .enumerate()
            .map(item)
            .collect::<Result<_, _>>()?;
        for (i, value) in values.iter().enumerate() {
            if values[..i].iter().any(|v| v.text() == value.text()) {
                let name = value.text().unwrap_or_default();
                return Err(format!("{place}[{i}]: \"{name}\" is there already"));
            }
        }
        axes.insert(name, values);
    }
    for (name, values) in drawn {
        if let Some(count) = count(&values) {
            let numbers = count.map_err(|says| format!("axis.{name}.{says}"))?;
            axes.insert(name, numbers);
            continue;
        }
        let place = format!("axis.{name}");
        let list: Drawn = values.try_into().map_err(|e: toml::de::Error| {
            let says = e.message();
            format!("{place}: {says}: allowed: a list of values, or what draws some")
        })?;
        let values = list.values(&axes, mixes);
        axes.insert(name, values.map_err(|says| format!("{place}: {says}"))?);
    }
    // Until outcomes choose, such an axis may have all.
    let all = narrowed::all(root)?;
    for (name, _) in narrowed {
        let values = all.get(&name).map(|one| one.of(&axes));
        let values = values
            .transpose()
            .map_err(|says| format!("axis.{name}.{says}"))?;
        axes.insert(name, values.unwrap_or_default());
    }
    if !stand_ins.is_empty() {
        axes.insert(PROGRAM.to_owned(), stand_ins.iter().map(stand_in).collect());
    }
    Ok(axes)
}

/// The values of an axis that has nothing but their number: the numbers from 0.
fn count(values: &Toml) -> Option<Result<Vec<Value>, String>> {
    let table = values.as_table().filter(|table| table.len() == 1)?;
    let given = table.get(NUMBERS)?;
    let number = given.as_integer().and_then(|n| u32::try_from(n).ok());
    let number = number.filter(|n| (1..=MOST_NUMBERS).contains(n));
    let refused = || format!("{NUMBERS} = {given}: allowed: 1 to {MOST_NUMBERS}");
    let all = number.map(|n| (0..n).map(|n| Value::Number(n.into())).collect());
    Some(all.ok_or_else(refused))
}

fn axis_value(value: &Toml, place: &str) -> Result<Value, String> {
    match value {
        Toml::Table(columns) => {
            if name_of(value).is_none() {
                return Err(format!("{place}: allowed: a table with a name = \"...\""));
            }
            if let Some(over) = columns.get(OVER).filter(|over| !over.is_table()) {
                return Err(format!("{place}.{OVER} = {over}: allowed: a table"));
            }
            // What is laid over the experiment is no value.
            let columns = columns.iter().filter(|(key, _)| *key != OVER);
            let column = |(key, value): (&String, &Toml)| {
                let place = format!("{place}.{key}");
                let value = match value {
                    Toml::Array(items) => list(items, &place)?,
                    other => scalar(other, &place)?,
                };
                Ok((key.clone(), value))
            };
            let columns: Result<BTreeMap<String, Value>, String> = columns.map(column).collect();
            Ok(Value::Item(Arc::new(columns?)))
        }
        other => scalar(other, place),
    }
}

/// A column with several values.
fn list(items: &[Toml], place: &str) -> Result<Value, String> {
    let item = |(i, value): (usize, &Toml)| axis_value(value, &format!("{place}[{i}]"));
    let values: Result<Vec<Value>, String> = items.iter().enumerate().map(item).collect();
    Ok(Value::List(Arc::new(values?)))
}

/// Key of an axis's value: what is laid over the experiment there.
pub(super) const OVER: &str = "over";

/// A single value.
pub(super) fn scalar(value: &Toml, place: &str) -> Result<Value, String> {
    match value {
        Toml::String(text) => Ok(Value::Text(text.clone())),
        Toml::Integer(n) => Ok(Value::Number(*n as f64)),
        Toml::Float(n) if !n.is_nan() => Ok(Value::Number(*n)),
        Toml::Boolean(is) => Ok(Value::Is(*is)),
        other => Err(format!(
            "{place} = {other}: allowed: a text, a number, true or false"
        )),
    }
}

/// A stand-in as a value of its axis.
fn stand_in(program: &StandIn) -> Value {
    let texts = [
        ("name", &program.name),
        ("class", &program.class),
        ("stands_for", &program.stands_for),
    ];
    let columns = texts.map(|(key, text)| (key.to_owned(), Value::Text(text.clone())));
    Value::Item(Arc::new(columns.into()))
}
