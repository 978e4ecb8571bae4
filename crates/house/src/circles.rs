//! Circles of files: which are accepted.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::packages::Circle;

/// Largest circle of files that needs no reason.
pub const MAX_CIRCLE: usize = 3;

/// A larger circle that is accepted.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Accepted {
    /// Directory of the package, as in `crates/lab`.
    #[serde(rename = "crate")]
    pub package: String,
    /// All its files, as in `src/lib.rs`.
    pub files: BTreeSet<String>,
    /// Why it is there.
    pub reason: String,
}

/// The file of accepted circles.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    circle: Vec<Accepted>,
}

/// Reads the list of accepted circles.
///
/// # Errors
/// If it is not TOML of this form.
pub fn read_list(text: &str) -> Result<Vec<Accepted>, toml::de::Error> {
    toml::from_str::<List>(text).map(|list| list.circle)
}

/// Everything in which the circles of more than [`MAX_CIRCLE`] files differ from those that
/// are accepted: a new or grown one is a defect, and so is an entry that is larger than what
/// is there, so that the list only shrinks.
pub fn circle_defects(found: &[Circle], accepted: &[Accepted]) -> Vec<String> {
    let mut defects = Vec::new();
    let large = |circle: &&Circle| circle.files.len() > MAX_CIRCLE;
    for circle in found.iter().filter(large) {
        let size = circle.files.len();
        let name = format!("{}: circle of {size} files", circle.package);
        if !accepted.iter().any(|entry| overlaps(entry, circle)) {
            let files = circle.files.join(" ");
            defects.push(format!("{name}, at most {MAX_CIRCLE} allowed: {files}"));
        }
    }
    for entry in accepted {
        let size = entry.files.len();
        let name = format!("{}: listed circle of {size} files", entry.package);
        if entry.reason.trim().is_empty() {
            defects.push(format!("{name}: without a reason"));
        }
        let overlapping = |circle: &&Circle| overlaps(entry, circle);
        let mut same = found.iter().filter(large).filter(overlapping);
        match (same.next(), same.next()) {
            (None, _) => defects.push(format!("{name} is gone: {}", list(&entry.files))),
            (Some(_), Some(_)) => defects.push(format!("{name} fell apart: list what is left")),
            (Some(circle), None) => defects.extend(change(&name, entry, circle)),
        }
    }
    defects
}

fn overlaps(entry: &Accepted, circle: &Circle) -> bool {
    entry.package == circle.package && circle.files.iter().any(|f| entry.files.contains(f))
}

fn change(name: &str, entry: &Accepted, circle: &Circle) -> Vec<String> {
    let files: BTreeSet<String> = circle.files.iter().cloned().collect();
    let joined: BTreeSet<String> = files.difference(&entry.files).cloned().collect();
    let left: BTreeSet<String> = entry.files.difference(&files).cloned().collect();
    let mut changes = Vec::new();
    if !joined.is_empty() {
        changes.push(format!("{name} has grown by {}", list(&joined)));
    }
    if !left.is_empty() {
        let left = list(&left);
        changes.push(format!("{name} has shrunk: take out of the list {left}"));
    }
    changes
}

fn list(files: &BTreeSet<String>) -> String {
    files
        .iter()
        .map(String::as_str)
        .collect::<Vec<_>>()
        .join(" ")
}
