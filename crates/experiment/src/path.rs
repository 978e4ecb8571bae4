//! Paths of keys, as messages print them: `program[1].regions.interval`.

use std::{fmt, str::FromStr};

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A key of a table.
    Key(String),
    /// An item of a list, from 0.
    Item(usize),
}

/// Where a value stands in a file; the empty path is the whole file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyPath(Vec<Part>);

impl KeyPath {
    /// A key of the file's outermost table.
    pub fn of(key: &str) -> Self {
        Self::default().key(key)
    }

    /// A key of the table at this path.
    pub fn key(&self, key: &str) -> Self {
        self.with(Part::Key(key.to_owned()))
    }

    /// An item of the list at this path, from 0.
    pub fn item(&self, index: usize) -> Self {
        self.with(Part::Item(index))
    }

    fn with(&self, part: Part) -> Self {
        let mut parts = self.0.clone();
        parts.push(part);
        Self(parts)
    }

    /// Its steps, from the outside inwards.
    pub fn parts(&self) -> &[Part] {
        &self.0
    }

    /// The path without places in lists: `program[].regions`.
    pub fn pattern(&self) -> String {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Key(key) if text.is_empty() => text += key,
                Part::Key(key) => text += &format!(".{key}"),
                Part::Item(_) => text += "[]",
            }
        }
        text
    }

    /// The path within a host's table of `on`, or as it is.
    pub(crate) fn without(&self, on: &str) -> Self {
        match &self.0[..] {
            [Part::Key(first), _, rest @ ..] if first == on => Self(rest.to_vec()),
            _ => self.clone(),
        }
    }

    /// Does one of the two lead to the other, or to the same?
    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a == b)
    }

    /// Is it the whole file?
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }
}

/// As a person writes it: keys and names separated by dots, in quotation marks where they need
/// them, and places in lists: `program.grep.cores`, `policy."one color".files`, `program[1].cores`.
impl FromStr for KeyPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "\"{text}\" is no key; allowed: such as files.replace, program.NAME.cores or program[0].cores"
            )
        };
        let mut path = Self::default();
        let mut rest = text;
        loop {
            let quoted = rest.strip_prefix('"').and_then(|r| r.split_once('"'));
            let (key, after) = quoted.unwrap_or_else(|| {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                rest.split_at(end)
            });
            if key.is_empty() {
                return Err(wrong());
            }
            path = path.key(key);
            rest = after;
            while let Some((index, after)) = rest.strip_prefix('[').and_then(|r| r.split_once(']'))
            {
                path = path.item(index.parse().map_err(|_| wrong())?);
                rest = after;
            }
            if rest.is_empty() {
                return Ok(path);
            }
            rest = rest.strip_prefix('.').ok_or_else(wrong)?;
        }
    }
}

impl From<&serde_path_to_error::Path> for KeyPath {
    fn from(path: &serde_path_to_error::Path) -> Self {
        use serde_path_to_error::Segment;
        let part = |segment: &Segment| match segment {
            Segment::Seq { index } => Some(Part::Item(*index)),
            Segment::Map { key } => Some(Part::Key(key.clone())),
            Segment::Enum { .. } | Segment::Unknown => None,
        };
        Self(path.iter().filter_map(part).collect())
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, part) in self.0.iter().enumerate() {
            match part {
                Part::Key(key) if i == 0 => f.write_str(key)?,
                Part::Key(key) => write!(f, ".{key}")?,
                Part::Item(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}
