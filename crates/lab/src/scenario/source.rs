//! The text of a scenario, and errors that name a place in it.

use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

use piebald_sim::rooms::{
    hw::{
        nearest::{did_you_mean, hint_of},
        presets,
    },
    trace::{detect::detect, recording::is_recording},
};
use toml::Spanned;

/// The path that stands for standard input.
const STDIN: &str = "-";

/// How messages call the file.
fn name(path: &Path) -> String {
    match path == Path::new(STDIN) {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    }
}

/// The text of a scenario's file. What is something else that Piebald knows is called by its name.
pub(super) fn text(path: &Path) -> Result<String, ScenarioError> {
    let refuse = |problem: String| ScenarioError {
        path: path.to_owned(),
        line: None,
        problem,
    };
    let unread = |e: std::io::Error| refuse(format!("cannot be read: {e}"));
    if path == Path::new(STDIN) {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(unread)?;
        return Ok(text);
    }
    let file = path.display();
    if path.is_file() && is_recording(path).map_err(unread)? {
        return Err(refuse(format!(
            "is a recording, not a scenario; allowed: a scenario (TOML) that runs it as a program: \
             [[program]] with recording = \"{file}\""
        )));
    }
    std::fs::read_to_string(path).map_err(|e| match detect(path) {
        Ok(format) if path.is_file() => refuse(format!(
            "is a trace ({}), not a scenario; allowed: a scenario (TOML)",
            format.name()
        )),
        _ => unread(e),
    })
}

/// Is this file a scenario? So that other verbs can say so.
pub fn is_scenario(path: &Path) -> bool {
    let small = std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() < MOST_BYTES);
    let text = small.then(|| std::fs::read_to_string(path).ok()).flatten();
    let table = text.and_then(|text| toml::from_str::<toml::Table>(&text).ok());
    table.is_some_and(|t| t.contains_key("program") && t.contains_key("schema"))
}

/// No scenario is longer.
const MOST_BYTES: u64 = 1 << 20;

/// Why a scenario was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {problem}", name(path), line.map_or(String::new(), |l| format!(":{l}")))]
pub struct ScenarioError {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: Option<usize>,
    /// Key, value and what is allowed.
    pub problem: String,
}

/// Turns places of the text into errors.
pub(super) struct Source<'a> {
    pub path: &'a Path,
    pub text: &'a str,
}

impl Source<'_> {
    pub fn line(&self, offset: usize) -> usize {
        let end = offset.min(self.text.len());
        1 + self.text.as_bytes()[..end]
            .iter()
            .filter(|b| **b == b'\n')
            .count()
    }

    pub fn error(&self, at: usize, problem: impl Into<String>) -> ScenarioError {
        ScenarioError {
            path: self.path.to_owned(),
            line: Some(self.line(at)),
            problem: problem.into(),
        }
    }

    /// `key = value: allowed`, at the place of a value.
    pub fn refuse<T>(
        &self,
        at: &Spanned<T>,
        key: &str,
        value: impl std::fmt::Display,
        allowed: impl std::fmt::Display,
    ) -> ScenarioError {
        self.error(
            at.span().start,
            format!("{key} = {value}: allowed: {allowed}"),
        )
    }

    pub fn toml(&self, error: &toml::de::Error) -> ScenarioError {
        let hint = hint_of(error.message());
        let message = error.message().trim().replace('\n', " ") + &hint;
        let line = error.span().map(|s| self.line(s.start));
        let key = line.and_then(|line| presets::key_at(self.text, line));
        ScenarioError {
            path: self.path.to_owned(),
            line,
            problem: match key {
                Some(key) => format!("{key}: {message}"),
                None => message,
            },
        }
    }

    /// Picks one of a few words.
    pub fn choose<T: Copy>(
        &self,
        value: &Option<Spanned<String>>,
        key: &str,
        choices: &[(&str, T)],
    ) -> Result<T, ScenarioError> {
        let Some(value) = value else {
            return Ok(choices[0].1);
        };
        let found = choices.iter().find(|(word, _)| word == value.get_ref());
        found.map(|(_, choice)| *choice).ok_or_else(|| {
            let words: Vec<String> = choices.iter().map(|(w, _)| format!("\"{w}\"")).collect();
            let given = value.get_ref();
            let near = did_you_mean(given, choices.iter().map(|(w, _)| *w));
            let allowed = words.join(", ") + &near;
            self.refuse(value, key, format!("\"{given}\""), allowed)
        })
    }
}
