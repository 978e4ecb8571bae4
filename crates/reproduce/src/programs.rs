//! Stand-ins: the list, and what has to be recorded of each.

use std::collections::HashSet;

use piebald_units::Count;
use serde::{Deserialize, Deserializer, de};

/// A program that takes the place of one that cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StandIn {
    /// Name in results.
    pub name: String,
    /// The program of the paper.
    pub stands_for: String,
    /// Class that the paper gives it.
    pub class: String,
    /// Command line, run in the folder of the inputs.
    pub command: Vec<String>,
    /// Debian packages that it needs.
    #[serde(default)]
    pub packages: Vec<String>,
    /// References to pass over: its set-up.
    #[serde(deserialize_with = "count")]
    pub skip: u64,
    /// References to keep.
    #[serde(deserialize_with = "count")]
    pub limit: u64,
    /// Why this program.
    pub why: String,
    /// Files in the folder of the inputs that it reads.
    #[serde(default)]
    pub inputs: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    program: Vec<StandIn>,
}

fn count<'de, D: Deserializer<'de>>(d: D) -> Result<u64, D::Error> {
    let text = String::deserialize(d)?;
    let read: Result<Count, _> = text.parse();
    read.map(|n| n.0)
        .map_err(|e| de::Error::custom(format!("\"{text}\" {e}")))
}

/// What is to be recorded.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The program.
    pub program: &'a StandIn,
    /// References to keep: no more than its limit.
    pub refs: u64,
}

/// Why a list of stand-ins is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("list of stand-ins: {0}")]
pub struct ProgramsError(pub(crate) String);

/// An error of a TOML text, with its line.
pub(crate) fn of_toml(text: &str, error: &toml::de::Error) -> String {
    let line = error.span().map(|span| {
        let before = text.get(..span.start).unwrap_or(text);
        format!("line {}: ", before.matches('\n').count() + 1)
    });
    let message = error.message().replace('\n', " ");
    format!("{}{message}", line.unwrap_or_default())
}

/// Reads a list of stand-ins.
///
/// # Errors
/// Not the form, a name that occurs twice, an empty command.
pub fn stand_ins(text: &str) -> Result<Vec<StandIn>, ProgramsError> {
    let list: List = toml::from_str(text).map_err(|e| ProgramsError(of_toml(text, &e)))?;
    let mut names = HashSet::new();
    for program in &list.program {
        let name = &program.name;
        if name.is_empty() || !names.insert(name.as_str()) {
            return Err(ProgramsError(format!(
                "name = \"{name}\": allowed: unique names that are not empty"
            )));
        }
        if program.command.is_empty() {
            return Err(ProgramsError(format!(
                "{name}: command = []: allowed: a program and its arguments"
            )));
        }
    }
    Ok(list.program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::System;

    #[test]
    fn every_list_can_be_read_and_says_why_each_program_is_there() {
        for system in System::ALL {
            let programs = system.stand_ins().unwrap_or_else(|e| panic!("{e}"));
            // DULO's inputs are traces, SRM-buffer's programs have a list of their own.
            assert_eq!(programs.is_empty(), system != System::Rainbow);
            for p in programs {
                assert!(p.why.len() > 20 && !p.stands_for.is_empty(), "{}", p.name);
                assert!(p.limit > 0, "{}", p.name);
            }
        }
    }

    #[test]
    fn a_list_that_is_wrong_is_refused_with_the_reason() {
        let entry = "[[program]]\nname = \"a\"\nstands_for = \"b\"\nclass = \"R\"\n\
                     command = [\"x\"]\nskip = \"1M\"\nlimit = \"2M\"\nwhy = \"because\"\n";
        assert_eq!(stand_ins(entry).map(|p| p[0].skip), Ok(1_000_000));
        for (text, part) in [
            (entry.repeat(2), "unique"),
            (entry.replace("[\"x\"]", "[]"), "command = []"),
            (entry.replace("\"1M\"", "\"1Q\""), "1Q"),
            (entry.replace("why", "reason"), "reason"),
        ] {
            let error = stand_ins(&text).expect_err(part).to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
