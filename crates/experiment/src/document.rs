//! A file, and the lines of its keys.

use std::path::{Path, PathBuf};

use piebald_hw::nearest::hint_of;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::{Experiment, KeyPath, Part, Problem, Refused, problem::STDIN};

/// Letters of a line that a message shows.
const LONGEST_SHOWN: usize = 60;

/// The text of an experiment, and where it was read.
#[derive(Clone, Debug)]
pub struct Document {
    /// The file.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
}

impl Document {
    /// A document of a text; `path` is for errors and for paths relative to its folder.
    pub fn new(path: &Path, text: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            text: text.into(),
        }
    }

    /// Does this path stand for standard input?
    pub fn is_stdin(path: &Path) -> bool {
        path == Path::new(STDIN)
    }

    /// The folder that paths of the file are relative to.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }

    /// Reads and checks the experiment.
    ///
    /// # Errors
    /// The place where the text is none, or all that is wrong with what its keys say.
    pub fn experiment(&self) -> Result<Experiment, Refused> {
        let tables = DeTable::parse(&self.text).map_err(|e| self.no_toml(&e))?;
        let from = toml::de::Deserializer::from(tables);
        let read: Result<Experiment, _> = serde_path_to_error::deserialize(from);
        let experiment = read.map_err(|e| {
            let message = one_line(e.inner().message());
            let hint = hint_of(&message);
            let problem = Problem::of_message(KeyPath::from(e.path()), &(message + &hint));
            match e.inner().span() {
                Some(span) if problem.path.is_root() => {
                    self.refused(vec![(Some(self.line_at(span.start)), problem)])
                }
                _ => self.refuse(vec![problem]),
            }
        })?;
        match experiment.check() {
            problems if problems.is_empty() => Ok(experiment),
            problems => Err(self.refuse(problems)),
        }
    }

    /// Adds file and lines to problems, in the order of their lines.
    pub fn refuse(&self, problems: Vec<Problem>) -> Refused {
        let line = |problem: &Problem| Some(self.line(&problem.path));
        let mut placed: Vec<_> = problems.into_iter().map(|p| (line(&p), p)).collect();
        placed.sort_by_key(|(line, _)| *line);
        self.refused(placed)
    }

    fn refused(&self, problems: Vec<(Option<usize>, Problem)>) -> Refused {
        Refused {
            path: self.path.clone(),
            problems,
        }
    }

    fn no_toml(&self, error: &toml::de::Error) -> Refused {
        let mut says = one_line(error.message());
        let line = error.span().map(|span| self.line_at(span.start));
        let text = line.and_then(|line| self.text.lines().nth(line - 1));
        if let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) {
            let shown: String = text.chars().take(LONGEST_SHOWN).collect();
            says += &format!(", in `{shown}`");
        }
        self.refused(vec![(line, Problem::at(KeyPath::default(), says))])
    }

    /// The line of a key, or of what is there of its path.
    pub fn line(&self, path: &KeyPath) -> usize {
        let Ok(tables) = DeTable::parse(&self.text) else {
            return 1;
        };
        let mut at = tables.span().start;
        let mut inner = Inner::Table(tables.get_ref());
        for part in path.parts() {
            let Some(value) = inner.part(part) else {
                break;
            };
            at = value.span().start;
            inner = Inner::of(value.get_ref());
        }
        self.line_at(at)
    }

    fn line_at(&self, offset: usize) -> usize {
        let before = self.text.as_bytes().iter().take(offset);
        1 + before.filter(|byte| **byte == b'\n').count()
    }
}

/// A message of the parser without its line breaks, and without the key that it adds to
/// errors from inside a value: the path says that better.
fn one_line(message: &str) -> String {
    let lines = message.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("in `"));
    lines.collect::<Vec<_>>().join(" ")
}

/// What a value holds.
enum Inner<'a> {
    Table(&'a DeTable<'a>),
    List(&'a [Spanned<DeValue<'a>>]),
    Nothing,
}

impl<'a> Inner<'a> {
    fn of(value: &'a DeValue<'a>) -> Self {
        match value {
            DeValue::Table(table) => Self::Table(table),
            DeValue::Array(items) => Self::List(items),
            _ => Self::Nothing,
        }
    }

    fn part(&self, part: &Part) -> Option<&'a Spanned<DeValue<'a>>> {
        match (self, part) {
            (Self::Table(table), Part::Key(key)) => {
                let mut entries = table.iter();
                entries.find(|(k, _)| k.get_ref() == key).map(|(_, v)| v)
            }
            (Self::List(items), Part::Item(index)) => items.get(*index),
            _ => None,
        }
    }
}
