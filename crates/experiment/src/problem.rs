//! What is wrong with an experiment.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::KeyPath;

/// A key, the value that it has, and why that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The key.
    pub path: KeyPath,
    /// Its value, if the message needs it.
    pub value: Option<String>,
    /// Why not, and what is allowed.
    pub says: String,
}

impl Problem {
    /// A problem that is told without the key's value.
    pub fn at(path: KeyPath, says: impl Into<String>) -> Self {
        Self {
            path,
            value: None,
            says: says.into(),
        }
    }

    /// `key = value: allowed: ...`
    pub fn refuse(path: KeyPath, value: impl fmt::Display, allowed: impl fmt::Display) -> Self {
        Self {
            path,
            value: Some(value.to_string()),
            says: format!("allowed: {allowed}"),
        }
    }

    /// A message of a type of this crate or of serde: those of [`refused_value`] begin with
    /// the value.
    pub(crate) fn of_message(path: KeyPath, message: &str) -> Self {
        let parted = message
            .strip_prefix(VALUE)
            .and_then(|m| m.split_once(VALUE));
        Self {
            path,
            value: parted.map(|(value, _)| value.to_owned()),
            says: parted.map_or(message, |(_, says)| says).to_owned(),
        }
    }
}

/// Parts a value from what is said of it in a message on its way through serde.
const VALUE: char = '\u{1}';

/// An error of a type that was given `value`: what is allowed.
pub(crate) fn refused_value<E: serde::de::Error>(
    value: impl fmt::Display,
    allowed: impl fmt::Display,
) -> E {
    of_value(value, format_args!("allowed: {allowed}"))
}

/// An error of a type that was given `value`, in words of its own.
pub(crate) fn of_value<E: serde::de::Error>(
    value: impl fmt::Display,
    says: impl fmt::Display,
) -> E {
    E::custom(format!("{VALUE}{value}{VALUE}{says}"))
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_root() {
            self.path.fmt(f)?;
            match &self.value {
                Some(value) => write!(f, " = {value}: ")?,
                None => f.write_str(": ")?,
            }
        }
        f.write_str(&self.says)
    }
}

/// Where a problem was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The file as a whole.
    File,
    /// A line of the file, from 1.
    Line(usize),
    /// The command line: what follows `--set`.
    Set(String),
}

/// Why a file was refused: all of its problems.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Refused {
    /// The file.
    pub path: PathBuf,
    /// Problems and their places, in the order of the places.
    pub problems: Vec<(Place, Problem)>,
}

impl Refused {
    /// A file that could not be read at all.
    pub fn unread(path: &Path, says: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            problems: vec![(Place::File, Problem::at(KeyPath::default(), says))],
        }
    }

    /// Line of the first problem.
    pub fn line(&self) -> Option<usize> {
        match self.problems.first() {
            Some((Place::Line(line), _)) => Some(*line),
            _ => None,
        }
    }
}

/// The path that stands for standard input.
pub(crate) const STDIN: &str = "-";

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_stdin = self.path == Path::new(STDIN);
        for (i, (place, problem)) in self.problems.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            match place {
                Place::Set(given) => write!(f, "--set {given}")?,
                _ if is_stdin => f.write_str("standard input")?,
                _ => write!(f, "{}", self.path.display())?,
            }
            if let Place::Line(line) = place {
                write!(f, ":{line}")?;
            }
            write!(f, ": {problem}")?;
        }
        Ok(())
    }
}
