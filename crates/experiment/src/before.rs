//! The tables `[[before]]`.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Binding, Builtin, Colors, Frames, KeyPath, Policy, Problem, Program};

/// What runs before the programs, in the order of the tables: to its end, alone, on the first hardware
/// thread, so that its files are in memory. It takes no processor time, but waits for the disk, and nothing of
/// it is measured. Exactly one of `run`, `read`, `recording`, `command` and `builtin` says what it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Before {
    /// Its name in messages. Default: from what it is.
    pub name: Option<String>,
    /// A program of the experiment, by its name: it is run once from its beginning.
    pub run: Option<String>,
    /// A program of the experiment, by its name: the files that it finds are read from beginning to end.
    pub read: Option<String>,
    /// A file of `piebald record`, relative to the experiment's folder.
    pub recording: Option<PathBuf>,
    /// A program and its arguments, recorded first.
    pub command: Option<Vec<String>>,
    /// A program that comes with Piebald.
    pub builtin: Option<Builtin>,
    /// Page colors that it owns under `frames = "rainbow"`.
    pub colors: Option<Colors>,
    /// Do its colors bind? Default: `"hard"`.
    pub mode: Option<Binding>,
}

/// What runs before the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeforeInput<'a> {
    /// The program of this name.
    Run(&'a str),
    /// A reader of the files of the program of this name.
    Read(&'a str),
    /// A recording.
    Recording(&'a Path),
    /// A command line to record first.
    Command(&'a [String]),
    /// A built-in program.
    Builtin(&'a Builtin),
}

impl Before {
    /// What it is; `None` if that is not said exactly once.
    pub fn input(&self) -> Option<BeforeInput<'_>> {
        let all = [
            self.run.as_deref().map(BeforeInput::Run),
            self.read.as_deref().map(BeforeInput::Read),
            self.recording.as_deref().map(BeforeInput::Recording),
            self.command.as_deref().map(BeforeInput::Command),
            self.builtin.as_ref().map(BeforeInput::Builtin),
        ];
        let mut given = all.into_iter().flatten();
        given.next().filter(|_| given.next().is_none())
    }

    /// What its keys say together, beside the programs and policies of the experiment.
    pub(crate) fn check(
        &self,
        (programs, policies): (&[Program], &[Policy]),
        at: &KeyPath,
        problems: &mut Vec<Problem>,
    ) {
        match self.input() {
            None => {
                let says = "give exactly one of run, read, recording, command and builtin";
                problems.push(Problem::at(at.clone(), says));
            }
            Some(BeforeInput::Command([])) => {
                let allowed = "a program and its arguments";
                problems.push(Problem::refuse(at.key("command"), "[]", allowed));
            }
            Some(BeforeInput::Run(name)) => named(programs, ("run", name), at, problems),
            Some(BeforeInput::Read(name)) => named(programs, ("read", name), at, problems),
            Some(_) => {}
        }
        if self.mode.is_some() && self.colors.is_none() {
            let says = "colors is missing: mode says whether colors bind";
            problems.push(Problem::at(at.key("mode"), says));
        }
        let owns = policies.iter().any(|p| p.frames == Frames::Rainbow);
        if self.colors.is_some() && !owns {
            let says = "no policy has frames = \"rainbow\"";
            problems.push(Problem::at(at.key("colors"), says));
        }
    }
}

/// There is a program of this name.
fn named(
    programs: &[Program],
    (key, name): (&str, &str),
    at: &KeyPath,
    problems: &mut Vec<Problem>,
) {
    let names: Vec<_> = programs.iter().map(Program::name).collect();
    if !names.contains(&name.into()) {
        let allowed = format!("the name of a program: {}", names.join(", "));
        problems.push(Problem::refuse(at.key(key), format!("\"{name}\""), allowed));
    }
}
