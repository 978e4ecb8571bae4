//! Files of schema 1 rewritten as files of schema 2, comments and all.
//!
//! The text is changed where [`version::edits`] says, and nowhere else; the result is only given
//! if it reads as the same experiment.

use std::ops::Range;

use toml::{
    Spanned,
    de::{DeString, DeTable},
};

use crate::{
    Document, KeyPath, Part, Problem, Refused, Whole,
    merge::{Node, find},
    version::{self, Edit, New},
};

/// A change of the text.
type Change = (Range<usize>, String);

impl Document {
    /// The text as a file of schema 2 that says the same; `None` if it is one.
    ///
    /// # Errors
    /// The file is wrong, or has a form that cannot be rewritten without a change of its meaning.
    pub fn upgraded(&self) -> Result<Option<String>, Refused> {
        let mut before = self.experiment()?;
        let unreadable = || self.refuse(vec![Problem::at(KeyPath::default(), "is no TOML")]);
        let root = DeTable::parse(&self.text).map_err(|_| unreadable())?;
        let root = root.get_ref();
        if !version::is_first(root) {
            return Ok(None);
        }
        let edits = if version::is_of_guests(root, None) {
            version::edits(root).map_err(|problems| self.refuse(problems))?
        } else {
            vec![version::to_schema_2()]
        };
        let mut changes: Vec<Change> = Vec::new();
        for edit in edits {
            changes.extend(of_edit(&self.text, root, edit));
        }
        // From behind, so that places before stay as they are. What is inserted at one place
        // stays in its order.
        changes.sort_by_key(|(range, _)| range.start);
        let mut text = self.text.clone();
        for (range, new) in changes.into_iter().rev() {
            text.replace_range(range, &new);
        }
        before.schema = Whole::new(2);
        match Self::new(&self.path, text.as_str()).experiment() {
            Ok(after) if after == before => Ok(Some(text)),
            _ => Err(self.refuse(vec![Problem::at(
                KeyPath::of("schema"),
                "this file cannot be rewritten by itself without a change of its meaning; write \
                 each table as [table] and each key on a line of its own",
            )])),
        }
    }
}

fn of_edit(text: &str, root: &DeTable<'_>, edit: Edit) -> Vec<Change> {
    let Edit { from, to, value } = edit;
    let literal = |new: &New| match new {
        New::Text(text) => toml::Value::from(text.as_str()).to_string(),
        New::Number(number) => number.to_string(),
    };
    let Some((key, was)) = from.as_ref().and_then(|from| entry(root, from)) else {
        let (Some(to), Some(value)) = (to, value) else {
            return Vec::new();
        };
        return insert(text, root, &to, &literal(&value))
            .into_iter()
            .collect();
    };
    let Some(to) = to else {
        return vec![delete(text, key.span(), was.span())];
    };
    let value = value.map(|value| literal(&value));
    if from.is_some_and(|from| parent(&from) == parent(&to)) {
        let name = last(&to).to_owned();
        let renamed = (key.get_ref() != name.as_str()).then(|| (key.span(), name));
        let changed = value.map(|value| (was.span(), value));
        return renamed.into_iter().chain(changed).collect();
    }
    let value = value.unwrap_or_else(|| text[was.span()].to_owned());
    let deleted = delete(text, key.span(), was.span());
    insert(text, root, &to, &value)
        .into_iter()
        .chain([deleted])
        .collect()
}

/// A key and its value.
fn entry<'t, 'a>(
    root: &'t DeTable<'a>,
    path: &KeyPath,
) -> Option<(&'t Spanned<DeString<'a>>, &'t Node<'a>)> {
    let above = parent(path);
    let table = if above.is_root() {
        root
    } else {
        find(root, &above)?.get_ref().as_table()?
    };
    table.get_key_value(last(path))
}

fn parent(path: &KeyPath) -> KeyPath {
    let parts = path.parts();
    let above = parts.get(..parts.len().saturating_sub(1));
    let above = above.unwrap_or_default().iter();
    above.fold(KeyPath::default(), |path, part| match part {
        Part::Key(key) => path.key(key),
        Part::Item(at) => path.item(*at),
    })
}

fn last(path: &KeyPath) -> &str {
    match path.parts().last() {
        Some(Part::Key(key)) => key,
        _ => "",
    }
}

/// A new key: behind the line of `schema`, or before the first key of its table.
fn insert(text: &str, root: &DeTable<'_>, to: &KeyPath, value: &str) -> Option<Change> {
    let above = parent(to);
    let table = find(root, &above).and_then(|table| table.get_ref().as_table());
    if let Some(table) = table {
        let first = table
            .keys()
            .map(Spanned::span)
            .min_by_key(|span| span.start)?;
        let begins = line_begins(text, first.start);
        let before = &text[begins..first.start];
        let behind = if before.trim().is_empty() { "\n" } else { ", " };
        let new = format!("{} = {value}{behind}", last(to));
        let indent = if behind == "\n" { before } else { "" };
        return Some((first.start..first.start, new + indent));
    }
    let (_, schema) = root.get_key_value("schema")?;
    let ends = text[schema.span().end..].find('\n');
    let at = ends.map_or(text.len(), |n| schema.span().end + n + 1);
    let begins = if ends.is_none() { "\n" } else { "" };
    // A table that was not there: `memory = { size = "1GiB" }`.
    let line = match above.parts() {
        [] => format!("{begins}{} = {value}\n", last(to)),
        _ => format!("{begins}{above} = {{ {} = {value} }}\n", last(to)),
    };
    Some((at..at, line))
}

/// Takes a key and its value out, with its line if nothing else is on it.
fn delete(text: &str, key: Range<usize>, value: Range<usize>) -> Change {
    let begins = line_begins(text, key.start);
    let is_path = |c: char| c.is_ascii_alphanumeric() || " \t._-\"'".contains(c);
    let rest = &text[value.end..];
    if text[begins..key.start].chars().all(is_path) {
        let line = rest.find('\n').map_or(rest.len(), |n| n + 1);
        return match rest[..line].trim().is_empty() {
            true => (begins..value.end + line, String::new()),
            // A comment stays.
            false => (
                begins..text.len() - rest.trim_start_matches([' ', '\t']).len(),
                String::new(),
            ),
        };
    }
    // In a table on one line: with the comma behind it, or else the one before it.
    let after = rest.trim_start();
    if let Some(next) = after.strip_prefix(',') {
        return (
            key.start..text.len() - next.trim_start_matches(' ').len(),
            String::new(),
        );
    }
    let before = text[..key.start].trim_end();
    let before = before.strip_suffix(',').unwrap_or(before);
    (before.len()..value.end, String::new())
}

fn line_begins(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |n| n + 1)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn upgraded(text: &str) -> String {
        let document = Document::new(Path::new("old.toml"), text);
        let text = document.upgraded().unwrap_or_else(|e| panic!("{e}"));
        text.expect("is of schema 1")
    }

    const GUEST: &str = r#"# Two programs.
schema = 1   # the first
seed = 7
alone = false
[machine]
preset = "w3540"
[guest]
# a small one
memory = "512MiB"   # no more
vcpus = 3
[[program]]
name = "sort"
command = ["mergesort", "1000", "1"]
vcpu = 2   # the last
measure = "marks"
[[program]]
name = "scan"
command = ["scan", "/data/a", "1"]
vcpu = 0
role = "polluter"
[[policy]]
name = "stock"
[[policy]]
name = "both"
module = "a.ko"
map = ["15", "16"]
colors = { scan = "0", sort = "1-3 hard" }   # apart
srm = true   # and files
threshold = 256
[[policy]]
name = "files"
module = "a.ko"
map = [
    "15", # a bit
]
srm = true
"#;

    const NOW: &str = r#"# Two programs.
schema = 2   # the first
title = "Programs in a guest"
repetitions = 1
memory = { size = "512MiB" }
seed = 7
alone = "none"
[machine]
preset = "w3540"
[guest]
# a small one
# no more
vcpus = 3
[[program]]
name = "sort"
command = ["mergesort", "1000", "1"]
cores = "2"   # the last
measure = "marks"
[[program]]
name = "scan"
command = ["scan", "/data/a", "1"]
cores = "0"
role = "polluter"
[[policy]]
name = "stock"
[[policy]]
frames = "rainbow"
name = "both"
module = "a.ko"
color_map = ["15", "16"]
colors = { scan = "0 hint", sort = "1-3 hard" }   # apart
# and files
files = "srm:threshold=256"
[[policy]]
name = "files"
module = "a.ko"
color_map = [
    "15", # a bit
]
files = "srm"
"#;

    #[test]
    fn a_guest_file_keeps_its_comments_and_its_order() {
        assert_eq!(upgraded(GUEST), NOW);
        let again = Document::new(Path::new("new.toml"), NOW).upgraded();
        assert_eq!(again, Ok(None));
    }

    #[test]
    fn a_study_changes_its_number_alone() {
        let text = "# a\nschema = 1 # b\n[machine]\npreset = \"w3540\"\n[[program]]\n\
                    builtin = \"chase\"\ncores = \"0\"\n";
        assert_eq!(upgraded(text), text.replace("schema = 1", "schema = 2"));
    }

    #[test]
    fn tables_on_one_line_are_rewritten_as_well() {
        let text = "schema = 1\nmachine = { preset = \"w3540\" }\n\
                    guest = { memory = \"1GiB\", vcpus = 2 }\n\
                    program = [{ name = \"sort\", command = [\"mergesort\"], vcpu = 1 }]\n\
                    policy = [{ name = \"p\", module = \"a.ko\", map = [\"15\"], srm = false }]\n";
        let now = upgraded(text);
        assert!(now.contains("guest = { vcpus = 2 }"), "{now}");
        assert!(now.contains("memory = { size = \"1GiB\" }"), "{now}");
        assert!(
            now.contains("command = [\"mergesort\"], cores = \"1\" }"),
            "{now}"
        );
        assert!(
            now.contains(
                "{ frames = \"rainbow\", name = \"p\", module = \"a.ko\", color_map = [\"15\"] }"
            ),
            "{now}"
        );
    }

    #[test]
    fn a_wrong_file_is_not_rewritten() {
        let text = GUEST.replace("vcpu = 0", "vcpu = 9");
        let refused = Document::new(Path::new("old.toml"), text).upgraded();
        let refused = refused.expect_err("the guest has three").to_string();
        assert!(
            refused.contains("old.toml:19: program[1].vcpu = 9: allowed: 0 to 2 (guest.vcpus - 1)"),
            "{refused}"
        );
    }
}
