//! Machines that come with the model, and how a machine file is read.
//!
//! A preset is a TOML file whose every value carries a mark of its source; the
//! file's `sources` table says what each mark stands for. Nothing here touches a
//! disk: the presets are part of the program, other files come as text.

pub mod check;
pub mod derive;

use std::ops::Range;

use serde::de::DeserializeOwned;

use crate::{
    SpecError,
    nearest::{did_you_mean, hint_of, in_words},
    spec::MachineSpec,
};

/// A machine file that could not be read, or a preset that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PresetError {
    /// The text is no machine.
    #[error("{file}:{line}: {key}{message}", key = prefixed(.key))]
    Parse {
        /// What the caller called the text.
        file: String,
        /// Line of the error, from 1.
        line: usize,
        /// Path of the key on that line, as in `cache[2].ways`; none if the
        /// error is not at a key.
        key: Option<String>,
        /// What is wrong, and what is allowed.
        message: String,
    },
    /// No machine has this value.
    #[error("{file}:{line}: {error}")]
    Value {
        /// What the caller called the text.
        file: String,
        /// Line of the value, from 1.
        line: usize,
        /// The key, its value and what is allowed.
        error: SpecError,
    },
    /// No preset has this name.
    #[error(
        "no machine preset \"{name}\"{hint}",
        hint = match did_you_mean(.name, names()) {
            near if near.is_empty() => format!("; there are {allowed}"),
            near => near,
        }
    )]
    Unknown {
        /// The name asked for.
        name: String,
        /// The names that exist.
        allowed: String,
    },
}

fn prefixed(key: &Option<String>) -> String {
    key.as_ref().map_or(String::new(), |key| format!("{key}: "))
}

const PRESETS: [(&str, &str); 8] = [
    ("epyc", include_str!("../presets/epyc.toml")),
    ("i7-860", include_str!("../presets/i7-860.toml")),
    ("opteron4x4", include_str!("../presets/opteron4x4.toml")),
    ("skylake-sp", include_str!("../presets/skylake-sp.toml")),
    ("w3540", include_str!("../presets/w3540.toml")),
    ("x5355", include_str!("../presets/x5355.toml")),
    ("x7560", include_str!("../presets/x7560.toml")),
    ("zen", include_str!("../presets/zen.toml")),
];

/// Names of the presets, in alphabetical order.
pub fn names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|(name, _)| *name)
}

/// Text of a preset.
pub fn get(name: &str) -> Option<&'static str> {
    let found = PRESETS.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text)
}

/// Reads a machine: the name of a preset, or the text of a machine file. What
/// has a line end or a `=` is text.
///
/// # Errors
/// As [`parse`]; a name that is no preset lists those that are.
pub fn load(name_or_text: &str) -> Result<MachineSpec, PresetError> {
    if name_or_text.contains(['\n', '=']) {
        return parse(name_or_text, "machine");
    }
    let Some(text) = get(name_or_text) else {
        return Err(PresetError::Unknown {
            name: name_or_text.into(),
            allowed: names().collect::<Vec<_>>().join(", "),
        });
    };
    parse(text, name_or_text)
}

/// Reads the text of a machine file; `file` names it in errors.
///
/// This checks form (keys, types and units), and that caches are what caches can be: a
/// level no smaller and no faster than one inside it. Further values that contradict one
/// another show when the machine is built; those that are merely odd are for
/// [`check::oddities`].
///
/// # Errors
/// The first thing that is no machine, with its line, its key and what is
/// allowed there.
pub fn parse(text: &str, file: &str) -> Result<MachineSpec, PresetError> {
    let spec = parse_as(text, file)?;
    match check::impossible(&spec) {
        None => Ok(spec),
        Some(error) => Err(PresetError::Value {
            file: file.into(),
            line: line_of(text, &error.field).unwrap_or(1),
            error,
        }),
    }
}

/// As [`parse`], for other things that are written as such files.
pub(crate) fn parse_as<T: DeserializeOwned>(text: &str, file: &str) -> Result<T, PresetError> {
    toml::from_str(text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        let line = line_at(text, &span);
        PresetError::Parse {
            file: file.into(),
            line,
            key: key_at(text, line),
            // The parser's message has a line break before what it expected.
            message: in_words(&error.message().trim().replace('\n', ", "))
                + &hint_of(error.message()),
        }
    })
}

/// Line of a field, from 1, by its path as errors print it
/// (`memory.dram.timing.ras`, `cache[2].ways`, `cache[3].slice_hash[0]`). Where the file leaves the field
/// to its default, the line of the innermost table that is there; `None` if
/// there is none.
pub fn line_of(text: &str, field: &str) -> Option<usize> {
    let mut wanted = field;
    loop {
        let mut keys = Keys::new(text);
        if let Some((line, _)) = keys.find(|(_, path)| path == wanted) {
            return Some(line);
        }
        // An item of a list stands on the lines of its key.
        wanted = match wanted.strip_suffix(']') {
            Some(item) => item.rsplit_once('[')?.0,
            None => wanted.rsplit_once('.')?.0,
        };
    }
}

/// The comment behind a key, without its `#`, by the key's path as errors print it: the
/// mark of the value's source, and remarks. None if there is no such key, or no comment.
pub fn remark<'a>(text: &'a str, field: &str) -> Option<&'a str> {
    let (line, _) = Keys::new(text).find(|(_, path)| path == field)?;
    let (_, comment) = text.lines().nth(line - 1)?.split_once(" #")?;
    Some(comment.trim())
}

fn line_at(text: &str, span: &Range<usize>) -> usize {
    let before = text.as_bytes().get(..span.start).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|&&b| b == b'\n').count()
}

/// Path of the key or table that a line of a file belongs to, as errors print it
/// (`cache[2].ways`): the last that begins on or before the line, unless a blank
/// or comment line separates them.
pub fn key_at(text: &str, line: usize) -> Option<String> {
    let last = Keys::new(text).take_while(|(at, _)| *at <= line).last();
    let (at, path) = last?;
    let between = text.lines().skip(at).take(line - at);
    let torn = between
        .map(str::trim)
        .any(|l| l.is_empty() || l.starts_with('#'));
    (!torn).then_some(path)
}

/// Lines that open a table or assign a key, with the full path.
///
/// A scan of lines is enough: machine files write one key per line, and a value
/// that spans lines starts on its key's line.
struct Keys<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    table: String,
    /// Arrays of tables seen so far, with the number of their last entry.
    arrays: Vec<(String, usize)>,
}

impl<'a> Keys<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            lines: text.lines().enumerate(),
            table: String::new(),
            arrays: Vec::new(),
        }
    }

    /// Path of an entry of an array of tables, counted from 0.
    fn next_entry(&mut self, name: &str) -> String {
        match self.arrays.iter_mut().find(|(known, _)| known == name) {
            Some((_, count)) => *count += 1,
            None => self.arrays.push((name.into(), 0)),
        }
        let count = self.arrays.iter().find(|(known, _)| known == name);
        format!("{name}[{}]", count.map_or(0, |(_, count)| *count))
    }
}

impl Iterator for Keys<'_> {
    type Item = (usize, String);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (index, line) = self.lines.next()?;
            let line = line.trim();
            if let Some(name) = line.strip_prefix("[[").and_then(|l| l.split("]]").next()) {
                self.table = self.next_entry(name.trim());
                return Some((index + 1, self.table.clone()));
            }
            if let Some(name) = line.strip_prefix('[').and_then(|l| l.split(']').next()) {
                self.table = name.trim().into();
                return Some((index + 1, self.table.clone()));
            }
            let Some((key, _)) = line.split_once('=') else {
                continue;
            };
            let key = key.trim();
            let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
            if key.is_empty() || !key.chars().all(plain) {
                continue;
            }
            let path = match self.table.is_empty() {
                true => key.to_string(),
                false => format!("{}.{key}", self.table),
            };
            return Some((index + 1, path));
        }
    }
}
