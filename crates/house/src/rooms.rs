//! Which room may depend on which.

use std::collections::{BTreeMap, BTreeSet};

use crate::markdown;

/// The rooms inside `policy`: one per system from the literature. They share
/// base modules, and never one another.
pub const POLICY_ROOMS: [&str; 5] = ["rainbow", "srm", "dulo", "mfc", "hvr"];

/// One row of the table in `docs/architecture.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// Name of the room: the directory below `crates/`, or a path with a slash.
    pub name: String,
    /// Rooms that it may depend on.
    pub may_use: BTreeSet<String>,
    /// The table says that it is built.
    pub built: bool,
}

/// Reads the room table.
///
/// # Errors
/// A row that cannot be understood, or no table with the columns `room`, `may
/// depend on` and `state`.
pub fn read_table(document: &str) -> Result<Vec<Room>, String> {
    let rows = markdown::table(document, &["room", "may depend on", "state"])
        .ok_or("no table with the columns room, may depend on, state")?;
    let names: BTreeSet<String> = rows
        .iter()
        .flat_map(|row| markdown::code_words(&row[0]))
        .map(str::to_owned)
        .collect();
    rows.iter().map(|row| read_row(row, &names)).collect()
}

fn read_row(row: &[String], names: &BTreeSet<String>) -> Result<Room, String> {
    let (name, uses, state) = (&row[0], &row[1], &row[2]);
    let [name] = markdown::code_words(name)[..] else {
        return Err(format!("\"{name}\": one room in backquotes expected"));
    };
    let mut may_use: BTreeSet<String> = match uses.as_str() {
        "every room" => names.clone(),
        "nothing" => BTreeSet::new(),
        _ => markdown::code_words(uses)
            .into_iter()
            .map(str::to_owned)
            .collect(),
    };
    may_use.remove(name);
    if may_use.is_empty() && uses != "nothing" {
        return Err(format!(
            "{name}: \"{uses}\" names no room; write \"nothing\""
        ));
    }
    if let Some(unknown) = may_use.difference(names).next() {
        return Err(format!("{name}: \"{unknown}\" has no row"));
    }
    let built = match state.as_str() {
        "built" => true,
        "not yet built" => false,
        _ => {
            return Err(format!(
                "{name}: state \"{state}\"; allowed: built, not yet built"
            ));
        }
    };
    Ok(Room {
        name: name.to_owned(),
        may_use,
        built,
    })
}

/// Everything in which the real edges (room to the rooms it depends on) differ
/// from the table.
pub fn edge_defects(table: &[Room], real: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut defects = Vec::new();
    for (name, uses) in real {
        let Some(room) = table.iter().find(|r| r.name == *name) else {
            defects.push(format!("{name} has no row in the table"));
            continue;
        };
        if !room.built {
            defects.push(format!(
                "{name} exists, and the table says \"not yet built\""
            ));
        }
        for forbidden in uses.difference(&room.may_use) {
            defects.push(format!(
                "{name} depends on {forbidden}, which the table does not allow"
            ));
        }
    }
    for room in table
        .iter()
        .filter(|r| r.built && !real.contains_key(&r.name))
    {
        defects.push(format!(
            "{} is said to be built and does not exist",
            room.name
        ));
    }
    defects.extend(cycle(table));
    defects
}

/// A room that may depend on itself by way of others.
fn cycle(table: &[Room]) -> Option<String> {
    let mut settled: BTreeSet<&str> = BTreeSet::new();
    loop {
        let next = table.iter().find(|r| {
            !settled.contains(r.name.as_str())
                && r.may_use.iter().all(|u| settled.contains(u.as_str()))
        });
        match next {
            Some(room) => settled.insert(&room.name),
            None => break,
        };
    }
    let stuck = table.iter().find(|r| !settled.contains(r.name.as_str()))?;
    Some(format!(
        "the table lets {} depend on itself by way of others",
        stuck.name
    ))
}

/// Names of other rooms in a source file of `policy`. `path` is relative to its
/// `src`. Comments and strings may name any room; code of a room may name only
/// its own, and code of a base module none. The crate's root declares them all.
pub fn policy_defects(path: &str, source: &str) -> Vec<String> {
    if path == "lib.rs" {
        return Vec::new();
    }
    let own = path
        .split('/')
        .next()
        .unwrap_or(path)
        .trim_end_matches(".rs");
    let mut defects = Vec::new();
    for (number, line) in source.lines().enumerate() {
        let code = code_of(line);
        let words = code.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        for word in words.filter(|w| *w != own && POLICY_ROOMS.contains(w)) {
            defects.push(format!("{path}:{}: names the room {word}", number + 1));
        }
    }
    defects
}

/// A line without its `//` comment and its string literals.
fn code_of(line: &str) -> String {
    let outside = line.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    outside.split("//").next().unwrap_or_default().to_owned()
}
