//! Paths of keys, as messages print them: `program[1].regions.interval`.

use std::fmt;

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

    /// Is it the whole file?
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
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
