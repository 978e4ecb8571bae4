//! Tables that are laid over one another before they are read.
//!
//! Each value keeps its span, so that what is wrong with the result is told where it was
//! written, in the file or in a patch.

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::{KeyPath, Part};

/// A value of a file, with its place.
pub(crate) type Node<'a> = Spanned<DeValue<'a>>;

/// The value at a path.
pub(crate) fn find<'t, 'a>(table: &'t DeTable<'a>, path: &KeyPath) -> Option<&'t Node<'a>> {
    let mut parts = path.parts().iter();
    let Some(Part::Key(first)) = parts.next() else {
        return None;
    };
    parts.try_fold(table.get(first.as_str())?, step)
}

/// The value that one part of a path names inside another.
pub(crate) fn step<'t, 'a>(value: &'t Node<'a>, part: &Part) -> Option<&'t Node<'a>> {
    match (value.get_ref(), part) {
        (DeValue::Table(table), Part::Key(key)) => table.get(key.as_str()),
        (DeValue::Array(items), Part::Item(index)) => items.get(*index),
        _ => None,
    }
}

/// The path with places in lists where it has names: two paths that lead to one value are the same.
pub(crate) fn settled(table: &DeTable<'_>, path: &KeyPath) -> KeyPath {
    let mut settled = KeyPath::default();
    let mut at: Option<&Node<'_>> = None;
    for part in path.parts() {
        let items = at.and_then(|node| node.get_ref().as_array());
        let place = match (items, part) {
            (Some(items), Part::Key(name)) => {
                items.iter().position(|item| name_of(item) == Some(name))
            }
            _ => None,
        };
        let part = place.map_or_else(|| part.clone(), Part::Item);
        at = match (at, &part) {
            (None, Part::Key(key)) if settled.is_root() => table.get(key.as_str()),
            (None, _) => None,
            (Some(node), part) => step(node, part),
        };
        settled = match part {
            Part::Key(key) => settled.key(&key),
            Part::Item(place) => settled.item(place),
        };
    }
    settled
}

/// Lays `value` over what is at `path`: tables key by key, lists of tables by their keys
/// `name`; all else is replaced.
///
/// # Errors
/// Why the path leads nowhere.
pub(crate) fn lay<'a>(
    table: &mut DeTable<'a>,
    path: &[Part],
    value: Node<'a>,
) -> Result<(), String> {
    let Some((Part::Key(key), rest)) = path.split_first() else {
        return Err("begins with no key".to_owned());
    };
    let span = value.span();
    match table.get_mut(key.as_str()) {
        Some(there) => lay_in(there, rest, value),
        None => {
            let mut made = Spanned::new(span.clone(), DeValue::Table(DeTable::new()));
            lay_in(&mut made, rest, value)?;
            table.insert(Spanned::new(span, key.clone().into()), made);
            Ok(())
        }
    }
}

fn lay_in<'a>(into: &mut Node<'a>, path: &[Part], value: Node<'a>) -> Result<(), String> {
    let Some((part, rest)) = path.split_first() else {
        merge(into, value);
        return Ok(());
    };
    match (into.get_mut(), part) {
        (DeValue::Table(table), Part::Key(_)) => lay(table, path, value),
        (DeValue::Array(items), Part::Key(name)) => {
            let found = items.iter_mut().find(|item| name_of(item) == Some(name));
            let found = found.ok_or_else(|| format!("no table of the list has name = \"{name}\""));
            lay_in(found?, rest, value)
        }
        (DeValue::Array(items), Part::Item(index)) => {
            let all = items.len();
            let found = items.get_mut(*index);
            lay_in(
                found.ok_or_else(|| format!("the list has {all} items"))?,
                rest,
                value,
            )
        }
        (_, Part::Key(_)) => {
            *into = Spanned::new(value.span(), DeValue::Table(DeTable::new()));
            lay_in(into, path, value)
        }
        (_, Part::Item(index)) => Err(format!("is no list, which [{index}] is an item of")),
    }
}

fn merge<'a>(into: &mut Node<'a>, value: Node<'a>) {
    let span = value.span();
    match (into.get_mut(), value.into_inner()) {
        (DeValue::Table(table), DeValue::Table(over)) => {
            for (key, value) in over {
                match table.get_mut(key.get_ref().as_ref()) {
                    Some(there) => merge(there, value),
                    None => {
                        table.insert(key, value);
                    }
                }
            }
        }
        (DeValue::Array(items), DeValue::Array(over))
            if !over.is_empty() && over.iter().all(|item| name_of(item).is_some()) =>
        {
            for value in over {
                let name = name_of(&value).unwrap_or_default().to_owned();
                let there = items.iter_mut().find(|item| name_of(item) == Some(&name));
                match there {
                    Some(there) => merge(there, value),
                    None => items.push(value),
                }
            }
        }
        (_, value) => *into = Spanned::new(span, value),
    }
}

fn name_of<'t>(item: &'t Node<'_>) -> Option<&'t str> {
    item.get_ref().as_table()?.get("name")?.get_ref().as_str()
}

/// A value whose places lie `by` bytes further behind: those of a text behind others.
pub(crate) fn shifted<'a>(value: Node<'a>, by: usize) -> Node<'a> {
    let span = value.span();
    let inner = match value.into_inner() {
        DeValue::Array(items) => {
            DeValue::Array(items.into_iter().map(|item| shifted(item, by)).collect())
        }
        DeValue::Table(table) => {
            let pairs = table
                .into_iter()
                .map(|(key, value)| (key, shifted(value, by)));
            DeValue::Table(pairs.collect())
        }
        other => other,
    };
    Spanned::new(span.start + by..span.end + by, inner)
}

/// A value as a message shows it.
pub(crate) fn shown(value: &Node<'_>) -> String {
    match value.get_ref() {
        DeValue::String(text) => format!("\"{text}\""),
        _ => label(value),
    }
}

/// A value of an axis, in few words.
pub(crate) fn label(value: &Node<'_>) -> String {
    match value.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(is) => is.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(items) => {
            let items: Vec<String> = items.iter().map(label).collect();
            format!("[{}]", items.join(", "))
        }
        DeValue::Table(table) => {
            let pairs = table
                .iter()
                .map(|(key, value)| format!("{} = {}", key.get_ref(), label(value)));
            pairs.collect::<Vec<_>>().join(", ")
        }
    }
}
