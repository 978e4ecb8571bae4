//! `--json [FILE]`, which means the same for every verb.

use std::path::{Path, PathBuf};

use piebald_report::write_atomically;
use serde::Serialize;

use crate::{
    failure::{Failure, print},
    outputs::is_stdout,
};

/// The name that stands for standard output.
pub(crate) const STDOUT: &str = "-";

/// The option of every verb that has something for programs.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Json {
    /// As JSON to this file, or to standard output without a name or with -. Without = the next
    /// word is the file only if it ends in .json
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = STDOUT, require_equals = true)]
    json: Option<PathBuf>,
}

impl Json {
    /// The file, or `-`; `None` if nothing was asked for.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.json.as_deref()
    }

    /// JSON takes the place of what is for people.
    pub(crate) fn on_stdout(&self) -> bool {
        self.path().is_some_and(is_stdout)
    }

    /// Prints `text`, or JSON in its place; writes the file that JSON goes to, whole or not at all.
    pub(crate) fn show(&self, text: &str, json: &impl Serialize) -> Result<(), Failure> {
        let as_json = || {
            let json = serde_json::to_string_pretty(json).map_err(Failure::failed)?;
            Ok(json + "\n")
        };
        self.show_text(text, as_json)
    }

    /// The same for JSON that is text already.
    pub(crate) fn show_text(
        &self,
        text: &str,
        json: impl FnOnce() -> Result<String, Failure>,
    ) -> Result<(), Failure> {
        match self.path() {
            None => print(text),
            Some(_) if self.on_stdout() => print(&json()?),
            Some(path) => {
                write_atomically(path, json()?.as_bytes()).map_err(Failure::failed)?;
                print(text)
            }
        }
    }
}
