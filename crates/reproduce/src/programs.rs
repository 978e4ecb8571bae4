//! Stand-ins: the list, and what has to be recorded of each.

use std::collections::{BTreeMap, HashSet};

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
    #[serde(default)]
    pub command: Vec<String>,
    /// A recording in the folder of the inputs that is made by hand, instead of a command.
    pub recording: Option<String>,
    /// It is recorded up to its limit, however few references are run.
    #[serde(default)]
    pub whole: bool,
    /// Words in braces and what stands for them in turn: one program for each.
    #[serde(default)]
    pub each: BTreeMap<String, Vec<String>>,
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
    let programs: Vec<StandIn> = list.program.iter().flat_map(StandIn::each).collect();
    let mut names = HashSet::new();
    for program in &programs {
        let name = &program.name;
        if name.is_empty() || !names.insert(name.as_str()) {
            return Err(ProgramsError(format!(
                "name = \"{name}\": allowed: unique names that are not empty"
            )));
        }
        if program.command.is_empty() == program.recording.is_none() {
            return Err(ProgramsError(format!(
                "{name}: command = {:?}: allowed: a program and its arguments, or else a recording",
                program.command
            )));
        }
    }
    Ok(programs)
}

impl StandIn {
    /// One for each value of its words.
    fn each(&self) -> Vec<Self> {
        let mut all = vec![Self {
            each: BTreeMap::new(),
            ..self.clone()
        }];
        for (word, values) in &self.each {
            let with = |program: &Self| -> Vec<Self> {
                let values = values.iter();
                values.map(|value| program.with(word, value)).collect()
            };
            all = all.iter().flat_map(with).collect();
        }
        all
    }

    fn with(&self, word: &str, value: &str) -> Self {
        let said = |text: &String| text.replace(&format!("{{{word}}}"), value);
        let all = |texts: &[String]| texts.iter().map(said).collect();
        Self {
            name: said(&self.name),
            command: all(&self.command),
            inputs: all(&self.inputs),
            recording: self.recording.as_ref().map(said),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::System;

    #[test]
    fn every_list_can_be_read_and_says_why_each_program_is_there() {
        for system in System::ALL {
            let programs = system.stand_ins().unwrap_or_else(|e| panic!("{e}"));
            let recorded = matches!(system, System::Rainbow | System::Srm);
            assert_eq!(programs.is_empty(), !recorded, "{}", system.name());
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
        let each = entry
            .replace("\"a\"", "\"a-{n}\"")
            .replace("\"x\"", "\"x\", \"{n}\"");
        let each = stand_ins(&(each + "each = { n = [\"1\", \"two\"] }\n"));
        let each = each.unwrap_or_else(|e| panic!("{e}"));
        let commands: Vec<&[String]> = each.iter().map(|p| &p.command[..]).collect();
        assert_eq!(commands, [["x", "1"], ["x", "two"]]);
        assert_eq!(
            (each[0].name.as_str(), each[1].name.as_str()),
            ("a-1", "a-two")
        );
        for (text, part) in [
            (entry.repeat(2), "unique"),
            (entry.replace("[\"x\"]", "[]"), "command = []"),
            (
                entry.to_owned() + "recording = \"x.pbr\"\n",
                "or else a recording",
            ),
            (entry.replace("\"1M\"", "\"1Q\""), "1Q"),
            (entry.replace("why", "reason"), "reason"),
        ] {
            let error = stand_ins(&text).expect_err(part).to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
